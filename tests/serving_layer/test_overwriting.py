"""Batch overwrites realtime: a hand-over replaces the cells that differ where readers read, and nothing else."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from serving_layer.postgres.bookkeeping import generation
from serving_layer.promise import generations, overwriting
from serving_layer.upkeep import dropping
from tests.serving_layer.world import World, shown


def place_of(world: World, view: str) -> str:
    """The table that the analyst's view reads."""
    with world.database.begin() as connection:
        now = lookup.get(connection, lookup.published(connection)[view])
    [place] = now.places.values()
    return place


def run(world: World, statement: str) -> None:
    with world.database.begin() as connection:
        connection.execute(text(statement))


def rebuilt(world: World, view: str, *, noted: bool) -> int:
    """Makes a new live generation of a view. With `noted`, its differing cells are noted."""
    new = world.open(view)
    world.load(new)
    world.go_live(new)
    if noted:
        with world.database.begin() as connection:
            now = lookup.get(connection, lookup.published(connection)[view])
            overwriting.note(connection, lookup.get(connection, new), now)
    return new


def retire_what_is_wrong(world: World) -> None:
    """Retires the earlier generations, which hold mistakes: the invariant must hold at the end of every test."""
    with world.database.begin() as connection:
        now = lookup.published(connection)
        older = lookup.find(connection, generation.c.state == "live")
        generations.retire(connection, [generation.id for generation in older if generation.id != now[generation.view]])


@pytest.mark.parametrize("noted", [True, False])
def test_wrong_missing_and_surplus_cells_are_overwritten_and_a_rollback_restores_them(
    world: World, noted: bool
) -> None:
    world.append("a", 0, ("wrong", 1), ("missing", 1), (None, 1), ("right", 1))
    world.advance("a")
    place = place_of(world, "sums")
    run(world, f"UPDATE {place} SET count = 100 WHERE k = 'wrong' OR k IS NULL")
    run(world, f"DELETE FROM {place} WHERE k = 'missing'")
    run(world, f"INSERT INTO {place} (k, count, sum_n) VALUES ('surplus', 100, 100)")
    new = rebuilt(world, "sums", noted=noted)
    # records in between are merged into both
    world.append("a", 0, ("wrong", 1), ("missing", 1), ("surplus", 1), (None, 1), ("right", 1), ("new", 1))
    world.advance("a")
    right = [("missing", 2, 2), ("new", 1, 1), ("right", 2, 2), ("surplus", 1, 1), ("wrong", 2, 2), (None, 2, 2)]
    wrong = [
        ("missing", 1, 1),
        ("new", 1, 1),
        ("right", 2, 2),
        ("surplus", 101, 101),
        ("wrong", 101, 2),
        (None, 101, 2),
    ]
    assert shown(world, "sums") == sorted(wrong, key=repr)
    world.hand_over("sums", new)
    assert shown(world, "sums") == sorted(right, key=repr)
    assert place_of(world, "sums") == place, "readers still read the same table"
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "sums")
    assert shown(world, "sums") == sorted(wrong, key=repr)
    world.hand_over("sums", new)
    assert shown(world, "sums") == sorted(right, key=repr)
    retire_what_is_wrong(world)


@pytest.mark.parametrize("mistake", ["UPDATE {} SET count = 100", "DELETE FROM {}"])
def test_the_cell_of_an_aggregate_without_keys_is_overwritten(world: World, mistake: str) -> None:
    world.append("a", 0, ("x", 1), ("x", 2))
    world.advance("a")
    run(world, mistake.format(place_of(world, "counts")))
    world.hand_over("counts", rebuilt(world, "counts", noted=True))
    assert shown(world, "counts") == [(2, 3)]
    retire_what_is_wrong(world)


def test_equal_cells_are_not_touched(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    place = place_of(world, "sums")
    run(world, f"UPDATE {place} SET count = 100 WHERE k = 'y'")

    def rows() -> dict[object, object]:
        with world.database.begin() as connection:
            return dict(connection.execute(text(f"SELECT k, ctid::text FROM {place}")).all())

    before = rows()
    world.hand_over("sums", rebuilt(world, "sums", noted=True))
    after = rows()
    assert after["x"] == before["x"]
    assert after["y"] != before["y"]
    retire_what_is_wrong(world)


def test_cells_remember_whether_realtime_touched_them_since_the_cut(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 1))
    world.advance("a")

    def provisional() -> list[object]:
        with world.database.begin() as connection:
            id = lookup.published(connection)["sums"]
            [place] = lookup.get(connection, id).places.values()
            return list(connection.execute(text(f"SELECT k FROM {place} WHERE touched >= {id} ORDER BY k")).scalars())

    assert provisional() == ["x", "y"]
    new = world.open("sums")
    world.append("a", 0, ("y", 1))
    world.advance("a")
    world.load(new)
    world.go_live(new)
    world.hand_over("sums", new)
    assert provisional() == ["y"]
    world.append("a", 0, ("x", 1))
    world.advance("a")
    assert provisional() == ["x", "y"]


def test_notes_are_deleted_with_their_generation(world: World) -> None:
    new = rebuilt(world, "sums", noted=True)
    with world.database.begin() as connection:
        generations.retire(connection, [new])
    dropping.drop_unused(world.database)
    with world.database.begin() as connection:
        left = connection.execute(text("SELECT count(*) FROM pg_class WHERE relname LIKE 'differing%'")).scalar_one()
    assert left == 0


@pytest.mark.parametrize(
    ("new", "old", "differ"),
    [
        ("1.0", "1.0000000001", False),
        ("1.0", "1.00001", True),
        ("5.0", "NaN", True),
        ("NaN", "NaN", False),
        ("5.0", "Infinity", True),
        ("-Infinity", "Infinity", True),
        ("1.7e308", "-1.7e308", True),
        ("5e-324", "1e-323", False),
        ("0.0", "-0.0", False),
        ("1.0", None, True),
        (None, None, False),
    ],
)
def test_doubles_differ_beyond_the_order_in_which_they_were_added(
    world: World, new: str | None, old: str | None, differ: bool
) -> None:
    rows = f"SELECT {literal(new)}::float8 AS x, 'new' AS \"Side\" UNION ALL SELECT {literal(old)}::float8, 'old'"
    with world.database.begin() as connection:
        query = f"SELECT {overwriting.differs('x', '', tolerant=True)} FROM ({rows}) AS both_sides"
        assert connection.execute(text(query)).scalar_one() is differ


def literal(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"
