"""Faults of schemas: a producer moves to another schema while its registry may be down."""

from __future__ import annotations

import random

from benchmarks.chaos.parcels import RegistryServer
from benchmarks.chaos.stage import Stage
from benchmarks.chaos.table import fault

PARCELS = 20
"""Records that are sent together with a new schema."""


@fault(4, "registry")
def schema_changed(stage: Stage, dice: random.Random) -> None:
    """A producer moves to another schema in the middle of a topic."""
    _registry(stage).add(stage.world.versions + 1)
    _move(stage, dice)


@fault(4, "registry")
def registry_killed(stage: Stage, dice: random.Random) -> None:
    """A producer moves to another schema, the schema registry is killed before anyone asks, and started again."""
    registry = _registry(stage)
    registry.add(stage.world.versions + 1)
    registry.stop()
    _move(stage, dice)
    waits = "SELECT 1 FROM lamina.query WHERE name = 'parcels' AND stopped LIKE 'it waits for the schema registry: %'"
    stage.until(lambda: bool(stage.query(waits.replace("%", "%%"))), "parcels wait for the registry")
    stage.wait(dice.uniform(0, 10))
    registry.start()


def _move(stage: Stage, dice: random.Random) -> None:
    stage.world.versions += 1
    stage.producer.burst([("parcels", stage.world.record("parcels", dice)) for _ in range(PARCELS)], dice)


def _registry(stage: Stage) -> RegistryServer:
    assert stage.registry is not None
    return stage.registry
