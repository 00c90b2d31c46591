"""A view has the indexes that it declares."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from serving_layer.catalog import lookup
from serving_layer.change import deploying
from serving_layer.monitoring.deployment_alarms import unbuilt_indexes
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.upkeep import indexes
from tests.serving_layer.world import World, assert_invariant
from view_algebra import compile_catalog


def test_a_view_has_its_declared_indexes_before_it_is_handed_over(world: World) -> None:
    indexed = world.files["sums.sql"]

    def there(id: int) -> set[str]:
        with world.database.begin() as connection:
            [place] = lookup.get(connection, id).places.values()
            definitions = text("SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(:place)")
            texts = connection.execute(definitions, {"place": place}).scalars()
            return {definition.partition(" USING ")[2] for definition in texts}

    def ask(properties: str) -> int:
        world.files["sums.sql"] = indexed.replace(" AS SELECT", f"{properties} AS SELECT", 1)
        with world.database.begin() as connection:
            [change] = [
                change for change in deploying.plan(connection, compile_catalog(world.files)) if change.name == "sums"
            ]
            assert change.action == "update", change
            assert "index is" in change.effect
            world.apply(connection)
            published = lookup.published(connection)["sums"]
        indexes.renew(world.database)
        return published

    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    first = ask(" TBLPROPERTIES ('index' = 'k, c, s')")
    key = "btree (k) NULLS NOT DISTINCT"
    assert there(first) == {key, "btree (count)", "btree (sum_n)"}, "k leads the unique index"
    with world.database.begin() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        plan = connection.execute(text("EXPLAIN SELECT * FROM analytics.sums WHERE c = 2")).scalars()
        assert "asked_" in "".join(plan)
    new = world.open("sums")
    world.load(new)
    indexes.renew(world.database)
    assert there(new) == there(first)
    world.go_live(new)
    world.hand_over("sums", new)
    world.append("a", 0, ("x", 1), ("z", 2))
    world.advance("a")
    assert_invariant(world)
    ask(" TBLPROPERTIES ('index' = 'c')")
    assert there(first) == there(new) == {key, "btree (count)"}
    ask("")
    assert there(first) == there(new) == {key}


def test_an_index_that_must_wait_for_a_reader_is_left_to_the_next_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    world.files["sums.sql"] = world.files["sums.sql"].replace(" AS SELECT", " TBLPROPERTIES ('index' = 'c') AS SELECT")
    with world.database.begin() as connection:
        world.apply(connection)
    valid = text("SELECT indisvalid FROM pg_index WHERE starts_with(indexrelid::regclass::text, 'cells.asked_')")
    with world.database.snapshot() as reader:
        reader.execute(text("SELECT * FROM analytics.sums"))
        with monkeypatch.context() as patched:
            patched.setattr(indexes, "LONGEST_WAIT", "50ms")
            indexes.renew(world.database)
        with world.database.begin() as connection:
            assert connection.execute(valid).scalars().all() == [False]
            [alarm] = unbuilt_indexes(connection, Thresholds())
            assert alarm.startswith(
                "sums: a declared index ('index') is not built (canceling statement due to lock timeout"
            )
    world.advance("a")
    indexes.renew(world.database)
    with world.database.begin() as connection:
        assert connection.execute(valid).scalars().all() == [True]
        assert indexes.unbuilt(connection) == {}
