"""Two versions of a view take the same micro-batches until every reader moves to the new one."""

from __future__ import annotations

import threading
import time

import psycopg2
import psycopg2.errors
import pytest
from sqlalchemy import text

from serving_layer.catalog import lookup
from serving_layer.change import deploying
from serving_layer.postgres.bookkeeping import generation
from serving_layer.postgres.database import is_lock_timeout
from serving_layer.promise import generations
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, LARGEST, TOTAL, body, left, move, reading, rows
from tests.serving_layer.world import FILES, World, shown
from view_algebra.errors import LaminaError

RETYPED = "CREATE VIEW counts AS SELECT count(*) + 0.5 AS c, sum(n) AS s, k FROM a GROUP BY k;"


def test_two_versions_take_the_same_micro_batches_and_readers_see_the_old_one_until_all_move(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    ready = world.begin_change(counts=BY_KEY)
    world.append("a", 1, ("x", 4))
    world.advance("a")
    world.load(ready["counts"])
    world.go_live(*ready.values())
    world.append("a", 0, ("z", 8))
    world.advance("a")
    assert shown(world, "counts") == [(4, 15)]
    world.end_change(ready)
    assert shown(world, "counts") == [(1, 2, "y"), (1, 8, "z"), (2, 5, "x")]
    world.append("a", 0, ("y", 16))
    world.advance("a")
    assert shown(world, "counts") == [(1, 8, "z"), (2, 18, "y"), (2, 5, "x")]


def test_a_snapshot_from_before_the_move_reads_the_old_version_and_nobody_waits(world: World, database: str) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    with reading(database) as before:
        world.append("a", 0, ("y", 4))
        world.advance("a")
        world.change(counts=BY_KEY, total=LARGEST)
        assert rows(before, "SELECT * FROM analytics.counts") == [(2, 3, None)], "the old cells, in the new columns"
        assert rows(before, "SELECT c, s FROM analytics.total") == [(2, 3)]
        assert rows(before, "SELECT k, groups FROM analytics.total") == [(None, None)], (
            "the view above also keeps its version"
        )
        dropping.drop_unused(world.database)
        assert rows(before, "SELECT c, s FROM analytics.counts") == [(2, 3)]
    assert shown(world, "counts") == [(1, 1, "x"), (2, 6, "y")]
    assert shown(world, "total") == [(3, 7, "y", 2)]
    assert "UNION ALL" in body(world, "counts")
    dropping.drop_unused(world.database)
    assert "UNION ALL" not in body(world, "counts")
    assert "UNION ALL" not in body(world, "total")
    assert "publication" not in body(world, "total")


def test_an_unpublished_side_is_not_read(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    with reading(database) as before:
        world.change(counts=BY_KEY)
        before.execute("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM analytics.counts")
        of_before = "\n".join(line for (line,) in before.fetchall())
    with reading(database) as after:
        after.execute("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM analytics.counts")
        of_after = "\n".join(line for (line,) in after.fetchall())
    for plan in (of_before, of_after):
        scans = [line for line in plan.splitlines() if "Scan on counts_" in line]
        assert [line.endswith("(never executed)") for line in scans].count(True) == 1, plan
        assert len(scans) == 2
    assert of_before != of_after


def test_a_changed_column_type_needs_consent_and_older_snapshots_get_an_error(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    ready = world.begin_change(counts=RETYPED)
    world.load(ready["counts"])
    world.go_live(*ready.values())
    with pytest.raises(LaminaError, match="Readers would lose columns") as refused:
        world.end_change(ready)
    assert "counts: column c would be numeric" in refused.value.evidence
    with reading(database) as before:
        world.end_change(ready, allow_break=True)
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="after this transaction began"):
            rows(before, "SELECT * FROM analytics.counts")
    assert shown(world, "counts") == [(1.5, 1, "x")]


def test_a_plan_shows_the_size_of_the_published_cells(world: World) -> None:
    world.files["counts.sql"] = BY_KEY
    world._compile()
    with world.database.begin() as connection:
        [place] = lookup.get(connection, lookup.published(connection)["counts"]).places.values()
        taken = connection.execute(text(f"SELECT pg_total_relation_size('{place}')")).scalar_one()
        sizes = {change.name: change.bytes for change in deploying.plan(connection, world.catalog)}
    assert taken > 0
    assert sizes["counts"] == taken
    assert sizes["sums"] is None, "the view does not change"


def test_twenty_changes_leave_nothing_behind(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    dropping.drop_unused(world.database)
    there = left(world)
    for number in range(20):
        limit = f"CREATE VIEW counts AS SELECT count(*) AS c, sum(n) AS s, k FROM a WHERE n <> -{number} GROUP BY k;"
        world.change(counts=limit)
        world.append("a", 0, ("x", 1))
        world.advance("a")
        for _ in range(300):  # a table that autovacuum reads is dropped the next time
            dropping.drop_unused(world.database)
            if left(world) == there:
                break
            time.sleep(0.1)
        assert left(world) == there, number
    assert len(shown(world, "counts")) == 2


def test_an_abandoned_change_leaves_the_deployed_catalog_unchanged(world: World) -> None:
    dropping.drop_unused(world.database)
    before = left(world), body(world, "counts")
    ready = world.begin_change(counts=BY_KEY)
    world.load(ready["counts"])
    with world.database.begin() as connection:
        generations.retire(connection, list(ready.values()))
    dropping.drop_unused(world.database)
    assert (left(world), body(world, "counts")) == before
    with world.database.begin() as connection:
        assert not lookup.find(connection, generation.c.view == "counts", generation.c.state == "building")


def test_a_generation_of_another_version_is_not_handed_over(world: World) -> None:
    ready = world.begin_change(counts=BY_KEY)
    world.load(ready["counts"])
    world.go_live(*ready.values())
    with pytest.raises(LaminaError, match="does not have the declared version"):
        world.hand_over("counts", ready["counts"])
    world.end_change(ready)


def test_a_reader_who_holds_the_view_makes_the_move_wait_and_nobody_else(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    ready = world.begin_change(counts=BY_KEY)
    world.load(ready["counts"])
    world.go_live(*ready.values())
    with reading(database) as holding:
        assert rows(holding, "SELECT * FROM analytics.counts") == [(1, 1)]
        with pytest.raises(Exception, match="lock timeout") as raised:
            world.end_change(ready)
        assert is_lock_timeout(raised.value)  # type: ignore[arg-type]
        assert rows(holding, "SELECT * FROM analytics.counts") == [(1, 1)]
    world.end_change(ready)
    assert shown(world, "counts") == [(1, 1, "x")]


def test_readers_in_a_loop_never_see_two_versions_nor_fewer_records_nor_an_error(world: World, database: str) -> None:
    stop, wrong, reads = threading.Event(), list[object](), 0

    def read() -> None:
        nonlocal reads
        connection = psycopg2.connect(database)
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        most = 0
        while not stop.is_set():
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute("SELECT sum(c), sum(s) FROM analytics.sums")
                    [(records, total)] = cursor.fetchall()
                    cursor.execute("SELECT * FROM analytics.counts")
                    rows = cursor.fetchall()
            except psycopg2.Error as error:
                wrong.append(error)
                continue
            reads += 1
            keys = {row[2] for row in rows if len(row) > 2}
            one_version = len(rows) == 1 or None not in keys
            if (sum(row[0] for row in rows), sum(row[1] for row in rows)) != (records, total) or not one_version:
                wrong.append((rows, records, total))
            if records < most:
                wrong.append((records, most))
            most = records
        connection.close()

    world.append("a", 0, ("x", 1))
    world.advance("a")
    thread = threading.Thread(target=read)
    thread.start()
    try:
        for number in range(6):
            counts = BY_KEY if number % 2 == 0 else FILES["counts.sql"]
            world.append("a", 0, (f"k{number}", number))
            world.advance("a")
            ready = world.begin_change(counts=counts)
            for id in ready.values():
                world.load(id)
            world.append("a", 0, (f"l{number}", number))
            world.advance("a")
            world.go_live(*ready.values())
            world.database.retrying(lambda connection, ready=ready: move(world, connection, ready))  # type: ignore[misc]
            dropping.drop_unused(world.database)
    finally:
        stop.set()
        thread.join()
    assert not wrong, wrong[:3]
    assert reads > 20


def test_a_change_of_final_alone_is_served_at_once_with_the_views_above(world: World) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1), ("x", 3))
    world.advance("a")
    with world.database.begin() as connection:
        before = lookup.published(connection)
    world.files["counts.sql"] = "CREATE VIEW counts AS SELECT sum(n) AS s, count(*) AS c, sum(n) * 2 AS twice FROM a;"
    with world.database.begin() as connection:
        world.apply(connection)
        assert lookup.published(connection) == before
    assert shown(world, "counts") == [(4, 2, 8)]
    assert shown(world, "total") == [(2, 4)]
