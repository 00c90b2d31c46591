"""Cells with many dead rows are vacuumed, and no session waits for it."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import text

from serving_layer.catalog import lookup
from serving_layer.upkeep.vacuuming import LEAST_DEAD, vacuum
from tests.serving_layer.world import World

GROUPS = 2 * LEAST_DEAD
DEAD = text("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = to_regclass(:table)")


@pytest.fixture
def bloated(world: World) -> str:
    """A table of cells, each updated once. Postgres vacuums no table by itself."""
    records = [(f"k{number}", 1) for number in range(GROUPS)]
    with world.database.begin() as connection:
        for place in [place for opened in lookup.find(connection) for place in opened.places.values()]:
            connection.exec_driver_sql(f"ALTER TABLE {place} SET (autovacuum_enabled = off)")
        [place] = lookup.get(connection, lookup.published(connection)["sums"]).places.values()
    for _ in range(2):
        world.append("a", 0, *records)
        world.advance("a")
    table = place.replace('"', "")
    until_dead(world, table)
    return table


def until_dead(world: World, table: str) -> None:
    """Waits until Postgres has counted the dead rows of a table."""
    deadline = time.monotonic() + 60
    while dead(world, table) < GROUPS and time.monotonic() < deadline:
        time.sleep(0.1)


def dead(world: World, table: str) -> int:
    with world.database.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return int(connection.execute(DEAD, {"table": table}).scalar_one())


def test_dead_rows_are_removed_next_to_a_reader_and_the_file_is_not_truncated(world: World, bloated: str) -> None:
    with world.database.snapshot() as reader:
        assert reader.exec_driver_sql(f"SELECT count(*) FROM {bloated}").scalar_one() == GROUPS
        assert bloated in vacuum(world.database)
    assert dead(world, bloated) == 0
    assert bloated not in vacuum(world.database), "no dead row is left"
    with world.database.begin() as connection:
        size = connection.exec_driver_sql(f"SELECT pg_relation_size('{bloated}')").scalar_one()
        connection.exec_driver_sql(f"CREATE TABLE aside AS SELECT * FROM {bloated}")
        connection.exec_driver_sql(f"DELETE FROM {bloated}")
    until_dead(world, bloated)
    assert bloated in vacuum(world.database)
    with world.database.begin() as connection:
        assert connection.exec_driver_sql(f"SELECT pg_relation_size('{bloated}')").scalar_one() == size
        connection.exec_driver_sql(f"INSERT INTO {bloated} SELECT * FROM aside")
        connection.exec_driver_sql("DROP TABLE aside")


def test_a_table_that_is_being_altered_is_left_for_the_next_run(world: World, bloated: str) -> None:
    with world.database.begin() as other:
        other.exec_driver_sql(f"LOCK TABLE {bloated} IN SHARE UPDATE EXCLUSIVE MODE")
        assert bloated not in vacuum(world.database)
    assert bloated in vacuum(world.database)
