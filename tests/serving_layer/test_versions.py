"""A view changes its cells: the new version beside the old one, the move of readers, and the way back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg2
import psycopg2.errors
import pytest
from sqlalchemy import Connection, text

from batch_layer import patience, reprocess, rollback
from batch_layer.rebuild import BatchLayer
from master_log.kafka import Brokers
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.change import registry, rollbacks
from serving_layer.postgres.bookkeeping import generation
from serving_layer.postgres.database import is_lock_timeout, session_of
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.promise.source_queries import End, Topic
from serving_layer.readers import views
from serving_layer.upkeep import dropping, indexes
from tests.fix_services import Services
from tests.serving_layer.world import FILES, World, assert_invariant, empty, shown
from view_algebra import Catalog, compile_catalog
from view_algebra.compiled import View
from view_algebra.errors import LaminaError

BY_KEY = "CREATE VIEW counts AS SELECT count(*) AS c, sum(n) AS s, k FROM a GROUP BY k;"
TOTAL = "CREATE VIEW total AS SELECT sum(c) AS c, sum(s) AS s FROM counts;"
LARGEST = "CREATE VIEW total AS SELECT sum(c) AS c, sum(s) AS s, max(k) AS k, count(*) AS groups FROM counts;"
RETYPED = "CREATE VIEW counts AS SELECT count(*) + 0.5 AS c, sum(n) AS s, k FROM a GROUP BY k;"


@contextmanager
def reading(database: str) -> Iterator[Any]:
    """A cursor in a snapshot of now."""
    connection = psycopg2.connect(database)
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lamina.publication")
        yield cursor
    connection.close()


def rows(cursor: Any, select: str) -> list[tuple[Any, ...]]:
    cursor.execute(select)
    return sorted((tuple(row) for row in cursor.fetchall()), key=repr)


def body(world: World, view: str) -> str:
    with world.database.begin() as connection:
        found = connection.execute(text(f"SELECT pg_get_viewdef('analytics.{view}'::regclass)"))
        return str(found.scalar_one())


def left(world: World) -> dict[str, int]:
    """The number of everything that a version leaves behind."""
    asked = {
        "tables": "pg_class WHERE relkind = 'r' AND relnamespace IN ('cells'::regnamespace, 'realtime'::regnamespace)",
        "cell tables": "lamina.cell_table",
        "versions": "lamina.version",
        "sides": "lamina.view WHERE before <> '[]'",
        "compiled": "lamina.compiled",
    }
    with world.database.begin() as connection:
        return {name: connection.execute(text(f"SELECT count(*) FROM {of}")).scalar_one() for name, of in asked.items()}


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


def test_a_snapshot_of_before_the_move_reads_the_old_version_and_nobody_waits(world: World, database: str) -> None:
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
            "nor is the view on top another version"
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


def test_the_side_that_is_not_published_is_not_read(world: World, database: str) -> None:
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


def test_views_on_top_are_made_again_with_their_rights_and_comments(world: World) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
        connection.execute(text("GRANT SELECT ON analytics.total TO lamina_writer WITH GRANT OPTION"))
        connection.execute(text("GRANT SELECT (s) ON analytics.counts TO lamina_writer"))
    world.change(
        counts="CREATE VIEW counts COMMENT 'by key' AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;"
    )
    with world.database.begin() as connection:
        may = "SELECT has_table_privilege('lamina_writer', 'analytics.total', 'SELECT WITH GRANT OPTION'),"
        may += " has_column_privilege('lamina_writer', 'analytics.counts', 's', 'SELECT'),"
        may += " has_table_privilege('lamina_writer', 'analytics.counts', 'SELECT'),"
        may += " has_table_privilege('analyst', 'analytics.total', 'SELECT'),"
        may += " obj_description('analytics.counts'::regclass)"
        assert connection.execute(text(may)).one() == (True, True, False, True, "by key")
    assert shown(world, "total") == [(None, None)]


def test_a_dropped_analysts_view_is_created_again_with_its_rights(world: World, database: str) -> None:
    """It comes first, since it reads the stream now; what it was before reads the view that is dropped after it."""
    world.change(alpha="CREATE VIEW alpha AS SELECT c FROM counts WHERE c > 0;")
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    with world.database.begin() as connection:
        connection.execute(text("GRANT SELECT ON analytics.alpha TO lamina_writer"))
    reordered = "CREATE VIEW counts AS SELECT count(*) AS c, k, sum(n) AS s FROM a GROUP BY k;"
    with reading(database):  # so that the older side is needed
        world.change(alpha="CREATE VIEW alpha AS SELECT count(*) AS c, sum(n) AS s FROM a;", counts=reordered)
        assert shown(world, "alpha")
        with world.database.begin() as connection:
            may = text("SELECT has_table_privilege('lamina_writer', 'analytics.alpha', 'SELECT')")
            assert connection.execute(may).scalar_one()


def test_a_right_on_a_column_that_goes_is_no_obstacle(world: World) -> None:
    with world.database.begin() as connection:
        connection.execute(text("GRANT SELECT (s) ON analytics.counts TO lamina_writer"))
    world.change(
        counts="CREATE VIEW counts AS SELECT k, count(*) AS c FROM a GROUP BY k;",
        total="CREATE VIEW total AS SELECT sum(c) AS c FROM counts;",
        allow_break=True,
    )
    with world.database.begin() as connection:
        columns = text("SELECT attname FROM pg_attribute WHERE attrelid = 'analytics.counts'::regclass AND attnum > 0")
        assert set(connection.execute(columns).scalars()) == {"k", "c"}


def test_a_relation_of_others_is_named_and_never_dropped(world: World) -> None:
    with world.database.begin() as connection:
        connection.execute(text("CREATE VIEW public.theirs AS SELECT s FROM analytics.counts"))
    world.change(counts=BY_KEY)
    moved = "CREATE VIEW counts AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;"
    world.files["counts.sql"] = moved
    with pytest.raises(LaminaError, match="not applied") as refused, world.database.begin() as connection:
        world.apply(connection)
    assert "public.theirs reads it" in refused.value.evidence or "theirs reads it" in refused.value.evidence
    world.files["counts.sql"] = BY_KEY
    del world.files["sums.sql"]
    with world.database.begin() as connection:
        world.apply(connection)
        assert connection.execute(text("SELECT count(*) FROM public.theirs")).scalar_one() == 0


def test_what_analysts_build_in_a_schema_of_their_own_gives_way(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    with world.database.begin() as connection:
        connection.execute(text("CREATE SCHEMA marts"))
        connection.execute(text("GRANT USAGE, CREATE ON SCHEMA marts TO analyst"))
        connection.execute(text(f"GRANT TEMPORARY ON DATABASE {name} TO analyst"))
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    analyst = psycopg2.connect(services.database_url(name, "analyst"))
    analyst.set_session(readonly=False, autocommit=True)
    with analyst.cursor() as cursor:  # the last of them as dbt does for an incremental model
        for statement in (
            "CREATE VIEW marts.theirs AS SELECT k, s FROM analytics.counts",
            "CREATE MATERIALIZED VIEW marts.sum AS SELECT sum(s) AS s FROM marts.theirs",
            "CREATE VIEW marts.above AS SELECT s FROM marts.sum JOIN analytics.sums USING (s)",
            "CREATE TABLE marts.kept AS SELECT * FROM marts.theirs",
            "CREATE TEMPORARY TABLE newer AS SELECT * FROM marts.theirs",
            "INSERT INTO marts.kept SELECT * FROM newer",
        ):
            cursor.execute(statement)
        world.change(counts="CREATE VIEW counts AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;")
        cursor.execute("SELECT count(*) FROM marts.kept")
        assert cursor.fetchall() == [(4,)]
        cursor.execute("CREATE VIEW marts.theirs AS SELECT k, s FROM analytics.counts")
        cursor.execute("CREATE VIEW marts.others AS SELECT k FROM analytics.sums")
        cursor.execute("SELECT table_name FROM information_schema.views WHERE table_schema = 'marts' ORDER BY 1")
        assert cursor.fetchall() == [("others",), ("theirs",)]
        del world.files["sums.sql"]
        with world.database.begin() as connection:
            effects = {each.name: each.effect for each in registry.plan(connection, compile_catalog(world.files))}
            assert "marts.others, of analysts, is dropped with it" in effects["sums"]
            world.apply(connection)
        cursor.execute("SELECT table_name FROM information_schema.views WHERE table_schema = 'marts' ORDER BY 1")
        assert cursor.fetchall() == [("theirs",)]
        told: list[str] = []
        rollback.roll_back(world.database, "counts", told.append)
        assert told == ["marts.theirs, of analysts, was dropped, because counts has other columns now: make it again"]
        cursor.execute("SELECT count(*) FROM information_schema.views WHERE table_schema = 'marts'")
        assert cursor.fetchall() == [(0,)]
    analyst.close()


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
        [change] = [each for each in registry.plan(connection, world.catalog) if each.name == "counts"]
        assert (change.action, change.records) == ("update", None)
        world.apply(connection)
    assert shown(world, "counts") == [(1, 1, "x"), (1, 8, "z"), (2, 6, "y")]
    dropping.drop_unused(world.database)
    assert left(world)["sides"] == 0


def test_as_many_old_versions_stay_live_as_the_view_says(world: World) -> None:
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


def test_what_was_rolled_back_from_does_not_come_back_after_a_rebuild(world: World) -> None:
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


def test_the_way_back_by_apply_shows_nothing_that_was_rolled_back_from(world: World) -> None:
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
    """A new generation of a view, which is handed over."""
    id = world.open(view)
    world.load(id)
    world.go_live(id)
    world.hand_over(view, id)
    return id


def published(world: World) -> int:
    """The generation that `counts` is read from."""
    with world.database.begin() as connection:
        return lookup.published(connection)["counts"]


def test_a_plan_says_what_the_cells_take_that_are_read(world: World) -> None:
    world.files["counts.sql"] = BY_KEY
    world._compile()
    with world.database.begin() as connection:
        [place] = lookup.get(connection, lookup.published(connection)["counts"]).places.values()
        taken = connection.execute(text(f"SELECT pg_total_relation_size('{place}')")).scalar_one()
        told = {each.name: each.bytes for each in registry.plan(connection, world.catalog)}
    assert taken > 0
    assert told["counts"] == taken
    assert told["sums"] is None, "it does not change"


def test_a_version_comes_back_as_it_was_declared_last(world: World) -> None:
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


def test_a_roll_back_that_a_view_on_top_could_not_follow_is_refused(world: World) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.change(counts=BY_KEY, total=LARGEST)
    alone = pytest.raises(LaminaError, match="cannot be rolled back alone: total reads it")
    with alone as refused, world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    assert "column k would go" in refused.value.evidence
    world.files |= {"counts.sql": FILES["counts.sql"], "total.sql": TOTAL}
    with world.database.begin() as connection:
        topics: dict[str, Topic] = {}
        world._compile()
        registry.apply(connection, world.files, world.catalog, topics, allow_break=True)
    assert shown(world, "total") == [(0, None)]


def test_a_rollback_to_another_source_is_refused_if_a_view_on_top_would_mistake_it(
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
        for _ in range(30):  # autovacuum may be reading one of the tables: that one is dropped the next time
            dropping.drop_unused(world.database)
            if left(world) == there:
                break
            time.sleep(0.1)
        assert left(world) == there, number
    assert len(shown(world, "counts")) == 2


def test_a_change_that_is_given_up_leaves_what_was_deployed_as_it_was(world: World) -> None:
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
    with pytest.raises(LaminaError, match="of another version than the one that is declared"):
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
                    found = cursor.fetchall()
            except psycopg2.Error as error:
                wrong.append(error)
                continue
            reads += 1
            keys = {row[2] for row in found if len(row) > 2}
            one_version = len(found) == 1 or None not in keys
            if (sum(row[0] for row in found), sum(row[1] for row in found)) != (records, total) or not one_version:
                wrong.append((found, records, total))
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


def move(world: World, connection: Any, ready: dict[str, int]) -> None:
    registry.apply(connection, world.files, world.catalog, {}, allow_break=True, ready=ready)


def test_a_change_of_final_alone_is_served_at_once_with_the_views_on_top(world: World) -> None:
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


OF_RECORDS = "CREATE VIEW total AS SELECT count(*) AS c, sum(n) AS s FROM a;"


@pytest.mark.parametrize(
    "declared", [(TOTAL, OF_RECORDS), (OF_RECORDS, TOTAL)], ids=["gets cells", "has none any more"]
)
def test_an_older_snapshot_reads_the_old_view_even_if_the_view_gains_or_loses_cells(
    world: World, database: str, declared: tuple[str, str]
) -> None:
    world.files["total.sql"] = declared[0]
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    with ExitStack() as open_now:
        snapshots = []
        for total in (*reversed(declared), declared[1]):
            snapshots.append((open_now.enter_context(reading(database)), shown(world, "total")))
            world.change(total=total)
            world.append("a", 0, ("y", 2))
            world.advance("a")
            dropping.drop_unused(world.database)
        for snapshot, then in snapshots:
            assert rows(snapshot, "SELECT * FROM analytics.total") == then
    dropping.drop_unused(world.database)
    assert left(world)["sides"] == 0
    assert shown(world, "total") == [(4, 7)]


def test_a_view_with_an_older_side_is_readable_in_every_snapshot_during_a_second_move(
    world: World, database: str
) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    with reading(database) as first:
        world.change(counts=BY_KEY, total=LARGEST)
        dropping.drop_unused(world.database)  # the side of `total` stays: the first snapshot may need it
        with reading(database) as second:
            world.change(counts=BY_KEY.replace("FROM a", "FROM a WHERE n > 0"))
            world.append("a", 0, ("y", 2))
            world.advance("a")
            assert rows(second, "SELECT c, s, k FROM analytics.total") == [(1, 1, "x")]
        assert rows(first, "SELECT c, s, k FROM analytics.total") == [(1, 1, None)]
    assert shown(world, "total") == [(2, 3, "y", 2)]


def test_sides_wait_only_for_transactions_of_before_the_move(world: World, database: str) -> None:
    with reading(database):
        world.change(counts=BY_KEY)
        assert not views.settle(world.database)
    with reading(database):
        assert views.settle(world.database)
    assert "UNION ALL" not in body(world, "counts")


def test_sides_do_not_wait_for_a_process_that_only_holds_a_lock(world: World) -> None:
    with rebuilds.in_one_process(world.database):
        world.change(counts=BY_KEY)
        assert views.settle(world.database), "the process has no snapshot"
    assert "UNION ALL" not in body(world, "counts")


def test_a_view_that_many_read_all_the_time_forgets_its_older_sides(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    world.change(counts=BY_KEY)
    stop = threading.Event()

    def read() -> None:
        with psycopg2.connect(database) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute("SELECT c, pg_sleep(0.07) FROM analytics.counts")
                connection.commit()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        until_read(world, len(threads))
        views.settle(world.database)
        assert "UNION ALL" in body(world, "counts"), "it is held all the time"
        assert patience.settle(world.database)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert "UNION ALL" not in body(world, "counts")


def until_read(world: World, readers: int) -> None:
    """Returns when so many sessions read `counts` at one moment."""
    reads = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT c, pg_sleep%'"
    deadline = time.monotonic() + 30
    while True:
        with world.database.begin() as connection:
            if connection.exec_driver_sql(reads.replace("%", "%%")).scalar_one() == readers:
                return
        assert time.monotonic() < deadline, "no moment at which all read"


def announce(connection: Connection, new: Sequence[View], catalog: Catalog) -> None:
    registry.announce(connection, new, catalog)


def open_versions(connection: Connection, new: Sequence[View], catalog: Catalog) -> None:
    id = rebuilds.begin(connection, [], purpose=rebuilds.APPLY)
    registry.open_versions(connection, new, catalog, id)


@pytest.mark.parametrize("step", [announce, open_versions])
def test_a_session_that_waits_for_a_query_holds_no_lock_on_versions(
    world: World, step: Callable[[Connection, Sequence[View], Catalog], None]
) -> None:
    catalog = compile_catalog({**world.files, "counts.sql": BY_KEY})
    waiting: list[int] = []

    def wait() -> None:
        with suppress(GivenUp), world.database.begin() as connection:
            waiting.append(session_of(connection))
            step(connection, [catalog.views["counts"]], catalog)
            raise GivenUp

    other = threading.Thread(target=wait)
    with world.database.begin() as connection:
        progress.lock(connection, ["a"])
        other.start()
        until_blocked(world, waiting)
        connection.execute(text("SET LOCAL lock_timeout = '300ms'"))
        versions.lock(connection)
    other.join()


def until_blocked(world: World, sessions: Sequence[int]) -> None:
    """Returns when the session that a thread puts into the list waits for a lock."""
    deadline = time.monotonic() + 30
    while not (sessions and world.database.is_blocked(sessions[0])):
        assert time.monotonic() < deadline, "nothing waits for a lock"
        time.sleep(0.01)


class GivenUp(Exception):
    """Nothing is to be kept."""


def test_a_version_that_was_announced_is_not_forgotten_while_it_is_opened(world: World) -> None:
    world.files["counts.sql"] = BY_KEY
    catalog = compile_catalog(world.files)
    with world.database.begin() as connection:
        changes = registry.plan(connection, catalog)
        after, soon = registry.to_compute(connection, catalog, changes)
        assert [each.name for each in soon] == ["counts"]
        assert not registry.announce(connection, soon, after), "nobody commits"
    with world.database.begin() as connection:
        names = {table.name for each in soon for table in each.cell_tables}
        assert versions.announced(connection, "a") == names
    failed: list[BaseException] = []

    def drop() -> None:
        try:
            dropping.drop_unused(world.database)
        except BaseException as error:  # noqa: BLE001 (told below)
            failed.append(error)

    with world.database.begin() as connection:
        id = rebuilds.begin(connection, ["counts"], purpose=rebuilds.APPLY)
        registry.prepare(connection, catalog, changes, {}, {}, id)
        dropper = threading.Thread(target=drop)
        dropper.start()
        dropper.join(1.0)
        assert dropper.is_alive(), "it waits"
    dropper.join()
    assert failed == []
    with world.database.begin() as connection:
        [opened] = lookup.of_rebuild(connection, id)
        assert versions.get(connection, "counts", opened.version).view == soon[0]
        assert versions.announced(connection, "a") == set()
        kept = text("SELECT cell_table FROM lamina.generation_cells WHERE generation = :id")
        assert set(connection.execute(kept, {"id": opened.id}).scalars()) == names


def test_a_version_that_was_announced_and_not_opened_is_forgotten(world: World) -> None:
    dropping.drop_unused(world.database)
    before = left(world)
    world.files["counts.sql"] = BY_KEY
    catalog = compile_catalog(world.files)
    with world.database.begin() as connection:
        after, soon = registry.to_compute(connection, catalog, registry.plan(connection, catalog))
        registry.announce(connection, soon, after)
    assert left(world) != before
    dropping.drop_unused(world.database)
    assert left(world) == before


NEW_SOURCE = "CREATE TABLE c (k STRING, n BIGINT) USING kafka OPTIONS (topic '{}', format 'json');"


def left_by_a_dead_apply(world: World, topic: str) -> tuple[int, Catalog]:
    """The rebuild of an apply that died after it had opened a version over a source that is new, and its catalog."""
    moved = world.files["sums.sql"].replace("FROM a", "FROM c")
    files = world.files | {"c.sql": NEW_SOURCE.format(topic), "sums.sql": moved}
    catalog = compile_catalog(files)
    at = Offsets.of(topic, {0: 7})
    with world.database.begin() as connection:
        id = rebuilds.begin(connection, ["sums"], purpose=rebuilds.APPLY)
        given = (catalog, registry.plan(connection, catalog), {"c": empty("id-c", topic)})
        registry.prepare(connection, *given, {"c": End(at, {TopicPartition(topic, 0): "a tail"})}, id)
        assert progress.read_with_tails(connection, "c") == (at, {TopicPartition(topic, 0): "a tail"})
    return id, catalog


def test_a_query_that_a_dead_apply_made_begins_at_the_first_record_in_another_catalog(world: World) -> None:
    id, _ = left_by_a_dead_apply(world, "c")
    new = {"c.sql": NEW_SOURCE.format("c"), "of_c.sql": "CREATE VIEW of_c AS SELECT count(*) AS n FROM c;"}
    files = world.files | new
    with world.database.begin() as connection:
        registry.apply(connection, files, compile_catalog(files), {"c": empty("id-c", "c")})
        assert progress.read_with_tails(connection, "c") == (Offsets.of("c", {0: 0}), {})
        assert rebuilds.get(connection, id).state == "failed"
        assert "of_c" in lookup.published(connection), "it lacks no record"
    with world.database.begin() as connection:
        world.apply(connection)


def test_a_dead_apply_is_not_resumed_if_its_source_reads_another_topic(world: World) -> None:
    id, catalog = left_by_a_dead_apply(world, "c")
    batch = BatchLayer(world.database, Brokers("nowhere:0"), pytest.fail, pytest.fail, "no address")
    source = replace(catalog.sources["c"], topic="d")
    other = replace(catalog, sources={**catalog.sources, "c": source})
    for wanted, goes_on in ((catalog, True), (other, False)):
        with world.database.begin() as connection:
            given = (connection, batch, rebuilds.APPLY, [catalog.views["sums"]])
            assert (reprocess.begun(*given, wanted, lambda _: None) == id) == goes_on
    with world.database.begin() as connection:
        world.apply(connection)


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


def test_a_view_that_another_is_computed_through_is_not_rolled_back_alone() -> None:
    catalog = through(1)
    assert (catalog.views["newest"].reads, catalog.views["sums"].reads) == ((), ("large",))
    [(why, _, _)] = rollbacks.of_views_above(catalog.views["large"], catalog)
    assert why == "newest is computed from its records"
    assert list(rollbacks.of_views_above(catalog.views["sums"], catalog)) == []


def test_a_rollback_to_a_version_computed_through_a_view_needs_that_same_view() -> None:
    """Nothing in its cells says so: only that its SELECT would be another version now."""
    before = through(1)
    old = versions.Version(before.views["newest"], before.sources)
    assert list(rollbacks.of_the_version(old, through(1, "first(n)"))) == []
    [(why, _, _)] = rollbacks.of_the_version(old, through(2, "first(n)"))
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
    assert list(rollbacks.of_the_version(old, beside_a_table(2))) == []
    [(why, _, _)] = rollbacks.of_the_version(old, beside_a_table(2, "INT"))
    assert why == "known, people changed since"


MANY = "CREATE VIEW many AS SELECT k, count(*) AS c, sum(n) AS s FROM b GROUP BY k HAVING count(*) > 1;"
OF_MANY = (
    "CREATE VIEW amounts AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE k IN (SELECT k FROM many) GROUP BY k;"
)
OF_ALL = "CREATE VIEW amounts AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE n > 0 GROUP BY k;"


def of_many(world: World) -> None:
    """A view that read another, and reads it no longer."""
    for each in "ab":
        world.append(each, 0, ("x", 1), ("x", 2), ("y", 3))
        world.advance(each)
    world.change(many=MANY, amounts=OF_MANY)
    world.change(amounts=OF_ALL)


def test_a_view_that_is_rolled_back_comes_after_what_it_reads_again(world: World) -> None:
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
def test_a_roll_back_to_what_reads_another_view_is_refused_where_that_has_changed(
    world: World, changed: str | None
) -> None:
    """Were `many.k` gone, the `k` of `(SELECT k FROM many)` would be the one of the query around it."""
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


def test_a_roll_back_is_judged_again_where_another_came_before_it(world: World) -> None:
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
            assert not late.done(), "it was judged, and waits for the other's lock"
        with pytest.raises(LaminaError, match="amounts cannot be rolled back alone: many changed since"):
            late.result()


def test_a_view_has_the_indexes_that_it_asks_for_before_it_is_handed_over(world: World) -> None:
    indexed = world.files["sums.sql"]

    def there(id: int) -> set[str]:
        with world.database.begin() as connection:
            [place] = lookup.get(connection, id).places.values()
            found = text("SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(:place)")
            texts = connection.execute(found, {"place": place}).scalars()
            return {each.partition(" USING ")[2] for each in texts}

    def ask(properties: str) -> int:
        world.files["sums.sql"] = indexed.replace(" AS SELECT", f"{properties} AS SELECT", 1)
        with world.database.begin() as connection:
            [change] = [each for each in registry.plan(connection, compile_catalog(world.files)) if each.name == "sums"]
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


def test_an_index_that_has_to_wait_for_a_reader_is_left_to_the_next_call(
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
            patched.setattr(indexes, "PATIENCE", "50ms")
            indexes.renew(world.database)
        with world.database.begin() as connection:
            assert connection.execute(valid).scalars().all() == [False]
            [alarm] = indexes.alarms(connection)
            assert alarm.startswith(
                "sums: an index that it asks for ('index') is not built (canceling statement due to lock timeout"
            )
    world.advance("a")
    indexes.renew(world.database)
    with world.database.begin() as connection:
        assert connection.execute(valid).scalars().all() == [True]
        assert indexes.alarms(connection) == []
