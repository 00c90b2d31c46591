"""A view keeps a side for older snapshots while such snapshots exist."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing, suppress

import psycopg2
import psycopg2.errors
import pytest

from batch_layer import renewals
from serving_layer.promise import rebuilds
from serving_layer.readers import views
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, LARGEST, TOTAL, body, left, reading, rows
from tests.serving_layer.world import World, shown

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
    deadline = time.monotonic() + 60
    while left(world)["sides"]:  # the backend of a closed session ends a little later
        assert time.monotonic() < deadline
        dropping.drop_unused(world.database)
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


def test_sides_wait_only_for_transactions_from_before_the_move(world: World, database: str) -> None:
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


def test_a_busy_view_drops_its_older_sides(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    world.change(counts=BY_KEY)
    stop, readers = threading.Event(), [psycopg2.connect(database) for _ in range(4)]

    def read(connection: psycopg2.extensions.connection) -> None:
        connection.autocommit = True  # no reader is ever idle in a transaction
        with closing(connection), connection.cursor() as cursor:
            with suppress(psycopg2.errors.QueryCanceled):
                cursor.execute("SELECT c, pg_sleep(60) FROM analytics.counts")
            while not stop.is_set():
                cursor.execute("SELECT c, pg_sleep(0.05) FROM analytics.counts")

    threads = [threading.Thread(target=read, args=(connection,)) for connection in readers]
    for thread in threads:
        thread.start()
    try:
        until_read(world, len(threads))
        views.settle(world.database)
        assert "UNION ALL" in body(world, "counts"), "the view is held all the time"
        for connection in readers:
            connection.cancel()
        assert renewals.settle(world.database)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert "UNION ALL" not in body(world, "counts")


def until_read(world: World, readers: int) -> None:
    """Returns when this many sessions read `counts` at the same moment."""
    reads = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT c, pg_sleep%'"
    deadline = time.monotonic() + 30
    while True:
        with world.database.begin() as connection:
            if connection.exec_driver_sql(reads.replace("%", "%%")).scalar_one() == readers:
                return
        assert time.monotonic() < deadline, "never did all read at once"
