"""A view that was held back is handed over by its name, alone or with views that were checked with it."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from batch_layer.rebuild import BatchLayer
from master_log.kafka.brokers import Brokers
from serving_layer.catalog import lookup
from serving_layer.monitoring.deployment_alarms import failed_checks
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.postgres.bookkeeping import checked
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import rebuilds
from tests.serving_layer.world import World

OWN = "ALTER VIEW sums ADD CONSTRAINT named CHECK (k IS NOT NULL);"
BOTH = "ALTER VIEW counts ADD CONSTRAINT all_of_them CHECK (max(c) = (SELECT sum(c) FROM sums));"


def verdicts(world: World, rebuild: int, **failing: int) -> None:
    with world.database.begin() as connection:
        for name, count in failing.items():
            of = {"view": "sums" if name == "named" else "counts", "name": name, "rebuild": rebuild}
            verdict = {"counts": "row", "blocks": True, "failing": count, "examples": []}
            connection.execute(insert(checked).values(**of, **verdict))


@pytest.mark.parametrize(
    ("failing", "held", "released"),
    [
        ({"named": 1, "all_of_them": 0}, ["counts", "sums"], {"sums", "counts"}),
        ({"named": 1, "all_of_them": 1}, ["counts", "sums"], {"sums"}),
        ({"named": 0, "all_of_them": 0}, [], set[str]()),
    ],
    ids=["it alone fails", "it fails with another", "nothing fails"],
)
def test_an_enforced_hand_over_releases_only_the_views_that_the_named_ones_hold_back(
    world: World, failing: dict[str, int], held: list[str], released: set[str]
) -> None:
    world.files |= {"own.sql": OWN, "both_checked.sql": BOTH}
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1), (None, 2))
    world.advance("a")
    id, new = world.rebuild("counts", "sums")
    verdicts(world, id, **failing)
    batch = BatchLayer(world.database, Brokers("nowhere:0"), pytest.fail, pytest.fail, "no address")

    assert batch.hand_over(id) == held
    with world.database.begin() as connection:
        rebuilds.end(connection, id, RebuildState.HELD if held else RebuildState.DONE)
        raised = failed_checks(connection, Thresholds())
    if not held:
        assert raised == []
        return
    assert any(f"`lamina step hand-over --anyway sums --rebuild {id}`" in alarm for alarm in raised)
    left = batch.release(id, ["sums"])
    assert set(new) - set(left) == released
    with world.database.begin() as connection:
        published = lookup.published(connection)
        assert {name for name, opened in new.items() if published[name] == opened} == released
        raised = failed_checks(connection, Thresholds())
        assert rebuilds.get(connection, id).state == ("held" if left else "done")
    assert len(raised) == len(left)
    assert all(f"`lamina step hand-over --anyway counts --rebuild {id}`" in alarm for alarm in raised)
