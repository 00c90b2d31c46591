"""A view gets another name: its cells stay, nothing is computed, and every micro-batch counts once."""

from __future__ import annotations

import psycopg2
import psycopg2.errors
import pytest

from serving_layer.catalog import lookup
from serving_layer.change import deploying, renames, rollbacks
from serving_layer.change.deploying import Target
from serving_layer.promise.micro_batch import Outcome
from serving_layer.readers import views
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, MANY, OF_MANY, TOTAL, left, of_many, reading, rows
from tests.serving_layer.world import FILES, World, shown
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError

MORE = "CREATE VIEW more AS SELECT k, count(*) AS c, sum(n) AS s FROM b GROUP BY k;"

JOIN = "CREATE VIEW pairs AS SELECT sums.k, sums.s, more.s AS t FROM sums JOIN more ON sums.k = more.k;"

SUBQUERY = "CREATE VIEW pairs AS SELECT k, s, (SELECT max(more.s) FROM more WHERE more.k = sums.k) AS t FROM sums;"

FROM = "TBLPROPERTIES ('renamed_from' = '{}') "
SUMMED = FILES["counts.sql"].replace("VIEW counts ", "VIEW summed " + FROM.format("counts"))


def rename(world: World, **files: str) -> None:
    """Applies a catalog in which `counts` is called `summed`."""
    world.files |= {"counts.sql": SUMMED} | {f"{name}.sql": sql for name, sql in files.items()}
    world._compile()
    world.end_change({}, allow_break=True)


def rename_sums(world: World, **files: str) -> None:
    """Applies a catalog in which `sums` is called `totals`."""
    sums = FILES["sums.sql"].replace("VIEW sums ", "VIEW totals " + FROM.format("sums"))
    world.files |= {"sums.sql": sums} | {f"{name}.sql": sql for name, sql in files.items()}
    world._compile()
    world.end_change({}, allow_break=True)


def with_amounts_of_many(world: World) -> None:
    """Deploys `many`, and `amounts`, which reads it. Their files are not in the next catalog."""
    for name in "ab":
        world.append(name, 0, ("x", 1), ("x", 2), ("y", 3))
        world.advance(name)
    world.change(many=MANY, amounts=OF_MANY)
    del world.files["many.sql"], world.files["amounts.sql"]


def knows_the_first_version_by_its_new_name(world: World) -> None:
    older = compile_catalog({"sources.sql": FILES["sources.sql"], "counts.sql": SUMMED}).views["summed"]
    world.tables |= {table.name: table for table in older.cell_tables}


def begun(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")


def test_the_minutes_in_which_a_view_was_fresh_move_with_its_name(world: World) -> None:
    with world.database.begin() as connection:
        for name, met in (("counts", "B'1'"), ("summed", "B'0'")):
            values = f"'{name}', now(), now(), {met}::bit(1440)"
            connection.exec_driver_sql(f"INSERT INTO lamina.freshness_target VALUES ({values})")
    rename(world)
    with world.database.begin() as connection:
        targets = "SELECT view, met = B'1'::bit(1440) FROM lamina.freshness_target"
        assert connection.exec_driver_sql(targets).all() == [("summed", True)]


def test_records_before_during_and_after_a_rename_are_counted_once(world: World) -> None:
    begun(world)
    world.append("a", 1, ("x", 4))
    during = world.micro_batch("a", world.progress("a"), world.end("a"))
    rename(world)
    assert world.commit(during) is Outcome.OTHER_TABLES, "the micro-batch was computed for the old names"
    assert shown(world, "summed") == [(2, 3)]
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "summed") == [(3, 7)]
    world.append("a", 0, ("z", 8))
    world.advance("a")
    assert shown(world, "summed") == [(4, 15)]
    with world.database.begin() as connection:
        assert {change.action for change in deploying.plan(connection, world.catalog)} == {"nothing"}


def test_a_view_that_takes_the_old_name_has_cells_of_its_own(world: World) -> None:
    begun(world)
    rename(world, largest=BY_KEY)
    with world.database.begin() as connection:
        assert "counts" not in lookup.published(connection), "the view waits for a rebuild of its history"
    id = world.open("counts")
    world.append("a", 1, ("x", 4))
    world.advance("a")
    world.load(id)
    world.go_live(id)
    world.hand_over("counts", id)
    with world.database.begin() as connection:
        views.serve(connection)
    assert shown(world, "counts") == [(1, 2, "y"), (2, 5, "x")]
    assert shown(world, "summed") == [(3, 7)]


def test_a_new_view_under_the_old_name_finds_no_table_of_the_renamed_view(world: World) -> None:
    begun(world)
    rename(world)
    ready = world.begin_change(again=FILES["counts.sql"])
    world.append("a", 1, ("x", 4))
    world.advance("a")
    world.load(ready["counts"])
    world.go_live(*ready.values())
    world.end_change(ready)
    assert shown(world, "summed") == shown(world, "counts") == [(3, 7)]


def test_an_old_snapshot_reads_the_old_cells_under_the_new_name_only(world: World, database: str) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    begun(world)
    with reading(database) as before:
        rename(world, total=TOTAL.replace("counts", "summed"))
        world.append("a", 1, ("x", 4))
        world.advance("a")
        dropping.drop_unused(world.database)
        assert rows(before, "SELECT * FROM analytics.summed") == [(2, 3)]
        assert rows(before, "SELECT c, s FROM analytics.total") == [(2, 3)]
        with pytest.raises(psycopg2.errors.UndefinedTable):
            rows(before, "SELECT * FROM analytics.counts")
    assert shown(world, "total") == [(3, 7)]
    dropping.drop_unused(world.database)
    assert left(world)["sides"] == 0


@pytest.mark.parametrize("pairs", [JOIN, SUBQUERY], ids=["join", "subquery"])
def test_an_old_snapshot_reads_a_view_over_a_renamed_view_and_one_that_loses_its_cells(
    world: World, database: str, pairs: str
) -> None:
    world.change(more=MORE, pairs=pairs)
    for name, number in (("a", 1), ("b", 2)):
        world.append(name, 0, ("x", number))
        world.advance(name)
    with reading(database) as before:
        rename_sums(
            world, more="CREATE VIEW more AS SELECT k, c, s FROM totals;", pairs=pairs.replace("sums", "totals")
        )
        assert rows(before, "SELECT * FROM analytics.pairs") == [("x", 1, 2)]
    assert shown(world, "pairs") == [("x", 1, 1)]


def test_an_old_snapshot_reads_a_view_renamed_together_with_the_view_that_it_reads(world: World, database: str) -> None:
    with_amounts_of_many(world)
    world.files["lots.sql"] = MANY.replace("VIEW many ", "VIEW lots " + FROM.format("many"))
    sizes = OF_MANY.replace("VIEW amounts ", "VIEW sizes " + FROM.format("amounts"))
    with reading(database) as before:
        rename(world, sizes=sizes.replace("FROM many", "FROM lots"))
        assert rows(before, "SELECT * FROM analytics.sizes") == [("x", 2, 3)]
    assert shown(world, "sizes") == [("x", 2, 3)]


def test_a_view_is_renamed_while_the_view_that_it_read_is_dropped(world: World, database: str) -> None:
    with_amounts_of_many(world)
    select = "SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;"
    world.files["sizes.sql"] = f"CREATE VIEW sizes {FROM.format('amounts')}AS {select}"
    world._compile()
    with reading(database), world.database.begin() as connection:
        deploying.apply(connection, Target(world.files, world.catalog, {}, prune=True, allow_break=True))
    assert shown(world, "sizes") == [("x", 2, 3), ("y", 1, 3)]


@pytest.mark.parametrize("pairs", [JOIN, "CREATE VIEW pairs AS SELECT k, s FROM sums;"], ids=["join", "alone"])
def test_a_reader_of_the_old_name_reads_the_new_view_that_takes_it(world: World, pairs: str) -> None:
    world.change(more=MORE, pairs=pairs)
    for name in "ab":
        world.append(name, 0, ("x", 1), ("y", 2))
        world.advance(name)
    rename_sums(world, again="CREATE VIEW sums AS SELECT k, s * 10 AS s FROM totals WHERE k = 'x';")
    assert [row[:2] for row in shown(world, "pairs")] == [("x", 10)]


def test_a_rename_waits_for_a_reader_who_holds_a_moved_view(world: World, database: str) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
    begun(world)
    world.change(counts=FILES["counts.sql"].replace("sum(n)", "sum(n + 1)"))
    with psycopg2.connect(database) as holding, holding.cursor() as later:
        rows(later, "SELECT * FROM analytics.counts")  # READ COMMITTED: its next SELECT has another snapshot
        assert not views.settle(world.database), "the view is held, and stays visible with its older side"
        with world.database.begin() as connection:
            assert renames.unsettled(connection, ["counts"]) is None, "no snapshot needs that side"
    holding.close()
    knows_the_first_version_by_its_new_name(world)
    world.files["total.sql"] = TOTAL.replace("counts", "summed")
    rename(world, counts=SUMMED.replace("sum(n)", "sum(n + 1)"))
    assert shown(world, "summed") == shown(world, "total") == [(2, 3)]
    assert left(world)["sides"] == 1, "of the rename"


def test_rollbacks_after_a_rename_reach_kept_generations_and_versions(world: World) -> None:
    begun(world)
    id = world.open("counts")
    world.load(id)
    world.go_live(id)
    world.hand_over("counts", id)
    rename(world)
    with world.database.begin() as connection:
        assert rollbacks.roll_back(connection, "summed")[0] == id
    world.append("a", 1, ("x", 4))
    world.advance("a")
    assert shown(world, "summed") == [(3, 7)]


def test_an_apply_after_a_rename_returns_to_a_kept_version(world: World) -> None:
    begun(world)
    world.change(counts=BY_KEY)
    dropping.drop_unused(world.database)
    rename(world, counts=BY_KEY.replace("VIEW counts ", "VIEW summed " + FROM.format("counts")))
    dropping.drop_unused(world.database)
    knows_the_first_version_by_its_new_name(world)
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "summed")
    world.append("a", 1, ("x", 4))
    world.advance("a")
    assert shown(world, "summed") == [(3, 7)]


def test_a_version_over_a_view_that_was_renamed_is_applied_again_with_the_new_name(world: World) -> None:
    of_many(world)
    views.settle(world.database)
    del world.files["many.sql"]
    rename(world, lots=MANY.replace("VIEW many ", "VIEW lots " + FROM.format("many")))
    before = shown(world, "amounts")
    with (
        pytest.raises(LaminaError, match="amounts cannot be rolled back alone: many is called lots now") as refused,
        world.database.begin() as connection,
    ):
        rollbacks.roll_back(connection, "amounts")
    assert "with the new name" in refused.value.way_out
    assert shown(world, "amounts") == before
    assert world.begin_change(amounts=OF_MANY.replace("many", "lots")) == {}, "nothing is computed"
    world.end_change({})
    assert shown(world, "amounts") == [("x", 2, 3)]


def test_relations_of_other_roles_survive_a_rename_and_the_break_is_listed(world: World, database: str) -> None:
    begun(world)
    with psycopg2.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE VIEW public.theirs AS SELECT c FROM analytics.counts")
    world.files["counts.sql"] = SUMMED
    world._compile()
    with pytest.raises(LaminaError, match="Readers would lose columns or names") as refused:
        world.end_change({})
    assert refused.value.evidence == "summed: the name counts would be free (read by theirs)"
    rename(world)
    with reading(database) as now:
        assert rows(now, "SELECT * FROM public.theirs") == [(2,)]
