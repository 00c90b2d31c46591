"""A serving layer per test, over an empty database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serving_layer.postgres.database import Database
from serving_layer.upkeep.install import install
from tests.serving_layer.world import World, assert_invariant


@pytest.fixture
def serving(database: str) -> Iterator[Database]:
    """An installed serving layer with nothing deployed."""
    opened = Database(database)
    install(opened)
    yield opened
    opened.close()


@pytest.fixture
def world(serving: Database) -> Iterator[World]:
    """Deployed views over two streams. The invariant must hold when the test ends."""
    deployed = World(serving)
    deployed.deploy()
    yield deployed
    assert_invariant(deployed)
