"""A view returns to a kept version or generation if it equals its SELECT there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from batch_layer import renewals
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.change import deploying, rollbacks
from serving_layer.change.deploying import Target
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import session_of
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import generations, rebuilds
from serving_layer.promise.source_queries import Topic
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, LARGEST, MANY, TOTAL, left, move, of_many, published, until_blocked
from tests.serving_layer.world import FILES, World, shown
from view_algebra import Catalog, compile_catalog
from view_algebra.errors import LaminaError


def test_a_rollback_to_a_kept_version_shows_live_data_and_can_be_undone_at_once(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    world.append("a", 0, ("y", 4))
    world.advance("a")
    with world.database.begin() as connection:
        now, then = rollbacks.roll_back(connection, "counts")
    assert then < now
    assert shown(world, "counts") == [(3, 7)]
    world.append("a", 0, ("z", 8))
    world.advance("a")
    assert shown(world, "counts") == [(4, 15)]
    with world.database.begin() as connection:
        [change] = [change for change in deploying.plan(connection, world.catalog) if change.name == "counts"]
        assert (change.action, change.records) == ("update", None)
        world.apply(connection)
    assert shown(world, "counts") == [(1, 1, "x"), (1, 8, "z"), (2, 6, "y")]
    dropping.drop_unused(world.database)
    assert left(world)["sides"] == 0


def test_keep_versions_sets_how_many_old_versions_stay_live(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    for number in range(4):
        keeping = "CREATE VIEW counts TBLPROPERTIES ('keep_versions' = '2') AS"
        world.change(counts=f"{keeping} SELECT count(*) AS c, sum(n) AS s FROM a WHERE n <> -{number};")
    world.append("a", 0, ("z", 4))
    world.advance("a")
    for back in range(3):
        assert shown(world, "counts") == [(3, 7)]
        with world.database.begin() as connection:
            assert f"n <> -{3 - back}" in deployed(connection).views["counts"].sql
            if back < 2:
                rollbacks.roll_back(connection, "counts")
    with pytest.raises(LaminaError, match="no older"), world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")


def test_a_withdrawn_version_does_not_return_after_a_rebuild(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    first = published(world)
    world.change(counts=BY_KEY)
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    id = rebuilt(world, "counts")
    with world.database.begin() as connection:
        assert rollbacks.roll_back(connection, "counts") == (id, first)
    assert shown(world, "counts") == [(2, 3)]


def test_applying_the_previous_catalog_shows_no_withdrawn_generation(world: World) -> None:
    with world.database.begin() as connection:
        held = rebuilds.begin(connection, ["counts"])
        first = lookup.published(connection)["counts"]
        wrong = generations.open_building(connection, "counts", rebuild=held).id
    world.load(wrong)
    world.go_live(wrong)
    world.hand_over("counts", wrong)
    with world.database.begin() as connection:
        rebuilds.end(connection, held, RebuildState.HELD)
        assert rollbacks.roll_back(connection, "counts") == (wrong, first)
    before = world.files["counts.sql"]
    ready = world.begin_change(counts=BY_KEY)
    world.load(ready["counts"])
    world.go_live(*ready.values())
    with world.database.begin() as connection:
        move(world, connection, ready)
        generations.retire_superseded(connection, ["counts"])
    world.files["counts.sql"] = before
    world._compile()
    world.end_change({}, allow_break=True)
    with world.database.begin() as connection:
        assert lookup.published(connection)["counts"] == first


def test_a_version_applied_again_after_a_rollback_and_a_rebuild_can_be_rolled_back_again(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    first = world.files["counts.sql"]
    world.change(counts=BY_KEY)
    with world.database.begin() as connection:
        withdrawn, _ = rollbacks.roll_back(connection, "counts")
    id = rebuilt(world, "counts")
    world.change(counts=BY_KEY, allow_break=True)
    with world.database.begin() as connection:
        assert rollbacks.roll_back(connection, "counts") == (withdrawn, id)
        assert deployed(connection).views["counts"].sql in first
    assert shown(world, "counts") == [(2, 3)]


def rebuilt(world: World, view: str) -> int:
    """Hands over a new generation of a view."""
    id = world.open(view)
    world.load(id)
    world.go_live(id)
    world.hand_over(view, id)
    return id


def test_a_version_returns_as_it_was_last_declared(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    world.change(counts=BY_KEY.replace("k FROM", "k, sum(n) * 10 AS tenfold FROM"))
    assert shown(world, "counts") == [(1, 1, "x", 10), (1, 2, "y", 20)]
    world.change(counts=FILES["counts.sql"].replace("FROM a", "FROM a WHERE n > -5"), allow_break=True)
    assert shown(world, "counts") == [(2, 3)]
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    assert shown(world, "counts") == [(1, 1, "x", 10), (1, 2, "y", 20)]


def test_a_rollback_is_refused_if_a_view_above_could_not_follow(world: World) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.change(counts=BY_KEY, total=LARGEST)
    alone = pytest.raises(LaminaError, match="cannot be rolled back alone: total reads it")
    with alone as refused, world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    assert "column k would be removed" in refused.value.evidence
    world.files |= {"counts.sql": FILES["counts.sql"], "total.sql": TOTAL}
    with world.database.begin() as connection:
        topics: dict[str, Topic] = {}
        world._compile()
        deploying.apply(connection, Target(world.files, world.catalog, topics, allow_break=True))
    assert shown(world, "total") == [(0, None)]


def test_a_rollback_to_another_source_is_refused_if_a_view_above_reads_the_view(
    world: World,
) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.change(counts=FILES["counts.sql"].replace("FROM a", "FROM b"))
    with world.database.begin() as connection:
        assert deployed(connection).views["total"].sources == ("b",)
    alone = pytest.raises(LaminaError, match="cannot be rolled back alone: total reads it")
    with alone as refused, world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    assert "reads a" in refused.value.evidence


def through(least: int, newest: str = "last(n)") -> Catalog:
    """A row view, one that is computed from its records, and one that reads it."""
    return compile_catalog(
        {
            "v.sql": "CREATE TABLE events (k STRING, n BIGINT) USING kafka OPTIONS (topic 'events', format 'json');"
            f"CREATE VIEW large AS SELECT k, n FROM events WHERE n > {least};"
            f"CREATE VIEW newest AS SELECT k, {newest} AS n FROM large GROUP BY k;"
            "CREATE VIEW sums AS SELECT k, sum(n) AS n FROM large GROUP BY k;"
        }
    )


def test_a_view_folded_into_another_is_not_rolled_back_alone() -> None:
    catalog = through(1)
    assert (catalog.views["newest"].reads, catalog.views["sums"].reads) == ((), ("large",))
    [(why, _, _)] = rollbacks.obstacles_above(catalog.views["large"], catalog)
    assert why == "newest is computed from its records"
    assert list(rollbacks.obstacles_above(catalog.views["sums"], catalog)) == []


def test_a_rollback_to_a_version_computed_through_a_view_needs_that_same_view() -> None:
    """The cells do not show it. Only the version of its SELECT, compiled now, differs."""
    before = through(1)
    old = versions.Version(before.views["newest"], before.sources)
    assert list(rollbacks.obstacles_in_version(old, through(1, "first(n)"))) == []
    [(why, _, _)] = rollbacks.obstacles_in_version(old, through(2, "first(n)"))
    assert why == "large changed since"


def beside_a_table(least: int, city: str = "STRING") -> Catalog:
    """A view over a stream, a table, and a view of that table."""
    return compile_catalog(
        {
            "v.sql": "CREATE TABLE events (k STRING, n BIGINT) USING kafka OPTIONS (topic 'events', format 'json');"
            f"CREATE TABLE people (k STRING PRIMARY KEY, city {city}) USING kafka OPTIONS (topic 'p', format 'json');"
            "CREATE VIEW known AS SELECT k FROM people WHERE city IS NOT NULL;"
            "CREATE VIEW amounts AS SELECT p.city, sum(e.n) AS n FROM events AS e LEFT JOIN people AS p ON p.k = e.k"
            f" WHERE e.n > {least} AND e.k IN (SELECT k FROM known) GROUP BY p.city;"
            "ALTER VIEW amounts ADD CONSTRAINT some CHECK (n > 0);"
        }
    )


def test_a_rollback_to_a_version_that_joins_a_table_needs_the_same_table() -> None:
    before = beside_a_table(1)
    assert before.views["amounts"].version != beside_a_table(2).views["amounts"].version
    assert before.views["amounts"].fed_by == {"events"}
    old = versions.Version(before.views["amounts"], {"events": before.sources["events"]})
    assert list(rollbacks.obstacles_in_version(old, beside_a_table(2))) == []
    [(why, _, _)] = rollbacks.obstacles_in_version(old, beside_a_table(2, "INT"))
    assert why == "known, people changed since"


def test_a_view_that_is_rolled_back_comes_after_the_views_it_reads(world: World) -> None:
    of_many(world)
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "amounts")
        names = list(deployed(connection).views)
    assert names.index("many") < names.index("amounts")
    assert shown(world, "amounts") == [("x", 2, 3)]


@pytest.mark.parametrize(
    "changed",
    [
        None,
        MANY.replace("SELECT k,", "SELECT k AS j,"),
        "CREATE VIEW many AS SELECT k, c, s FROM amounts;",
    ],
)
def test_a_rollback_is_refused_if_a_view_that_the_version_reads_has_changed(world: World, changed: str | None) -> None:
    """Without `many.k`, the `k` of `(SELECT k FROM many)` would be the outer query's."""
    of_many(world)
    if changed is None:
        del world.files["many.sql"]
        with world.database.begin() as connection:
            world.apply(connection)
    else:
        world.change(many=changed, allow_break=True)
    before = shown(world, "amounts")
    with (
        pytest.raises(LaminaError, match="amounts cannot be rolled back alone: many changed since"),
        world.database.begin() as connection,
    ):
        rollbacks.roll_back(connection, "amounts")
    assert shown(world, "amounts") == before


def test_a_rollback_is_checked_again_if_another_came_first(world: World) -> None:
    world.change(many=MANY.replace("SELECT k", "SELECT k AS j").replace("FROM b", "FROM b WHERE n > 0"))
    world.change(many=MANY, allow_break=True)
    of_many(world)
    sessions: list[int] = []

    def roll_back() -> None:
        with world.database.begin() as connection:
            sessions.append(session_of(connection))
            rollbacks.roll_back(connection, "amounts")

    with ThreadPoolExecutor(1) as threads:
        with world.database.begin() as other:
            rollbacks.roll_back(other, "many")
            late = threads.submit(roll_back)
            until_blocked(world, sessions)
            assert not late.done(), "the rollback was judged, and waits for the other's lock"
        with pytest.raises(LaminaError, match="amounts cannot be rolled back alone: many changed since"):
            late.result()


def test_a_rollback_that_waits_says_that_it_compares_cells(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    _, new = world.rebuild("counts")
    world.hand_over("counts", new["counts"])
    lines = Queue[str]()
    with ThreadPoolExecutor(1) as threads:
        with world.database.begin() as connection:
            [place] = lookup.get(connection, new["counts"]).places.values()
            run(connection, f"LOCK TABLE {place} IN ACCESS EXCLUSIVE MODE")
            rolled_back = threads.submit(renewals.roll_back, world.database, "counts", lines.put)
            assert lines.get(timeout=10) == "counts: comparing its cells with those of the previous generation …"
        assert rolled_back.result()[0] == new["counts"]
