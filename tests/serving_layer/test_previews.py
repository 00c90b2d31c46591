"""A preview next to the deployed catalog: changed views have their own cells, the others share the deployed ones."""

from __future__ import annotations

from typing import Any

import psycopg2.errors
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from master_log.offsets import Offsets
from serving_layer.catalog import lookup
from serving_layer.change import deploying, differences, previews, rollbacks
from serving_layer.change.differences import ColumnDifference, Difference, Example
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, TOTAL, left, reading, rows
from tests.serving_layer.world import FILES, PARTITIONS, World, landing
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError

POSITIVE = "CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE n > 0 GROUP BY k;"
FEW = "CREATE VIEW sums AS SELECT k, count(*) AS c, nullif(sum(n), 5) AS s FROM a GROUP BY k HAVING sum(n) <> 4;"
VIEWS = ("sums", "counts", "both")
NAMED = "CREATE VIEW named AS SELECT 'analytics.counts' AS name, c FROM counts;"


def preview(world: World, name: str, **files: str | None) -> list[str]:
    """Previews the catalog with these files (None: without). Returns the views that were computed for it."""
    changed = {f"{name}.sql": sql for name, sql in files.items()}
    catalog = compile_catalog({path: sql for path, sql in {**world.files, **changed}.items() if sql is not None})
    world.tables |= {table.name: table for view in catalog.views.values() for table in view.cell_tables}
    with world.database.begin() as connection:
        after = previews.previewed_catalog(connection, catalog)
        lacking = previews.uncomputed_views(connection, after)
        rebuild = rebuilds.begin(connection, [], purpose=rebuilds.APPLY)
        deploying.open_versions(connection, lacking, after, rebuild)
        ready = {opened.view: opened.id for opened in lookup.generations_of_rebuild(connection, rebuild)}
    for id in ready.values():
        world.load(id)
    world.go_live(*ready.values())
    with world.database.begin() as connection:
        previews.make(connection, name, catalog, ready)
        rebuilds.end(connection, rebuild, RebuildState.DONE)
    dropping.drop_unused(world.database)
    return sorted(ready)


def drop(world: World, name: str) -> None:
    with world.database.begin() as connection:
        previews.drop(connection, name)
    dropping.drop_unused(world.database)


def read(world: World, select: str) -> list[tuple[Any, ...]]:
    with world.database.snapshot() as connection:
        return sorted((tuple(row) for row in connection.execute(text(select))), key=repr)


def cells(world: World) -> dict[tuple[str, str], str]:
    with world.database.snapshot() as connection:
        return {(shown.preview, shown.view): shown.cells for shown in previews.listed(connection)}


def diff(world: World, view: str, name: str, *key: str) -> Difference:
    with world.database.snapshot() as connection:
        return differences.between(connection, view, name, key)


def rebuild(world: World, view: str) -> None:
    """A nightly rebuild: a new generation, handed over, and the surplus retired."""
    new = world.open(view)
    world.load(new)
    world.go_live(new)
    world.hand_over(view, new)
    with world.database.begin() as connection:
        generations.retire(connection, generations.superseded(connection, view))
    dropping.drop_unused(world.database)


def test_a_preview_counts_every_record_and_is_applied_without_computing(
    world: World,
) -> None:
    world.files |= {"total.sql": TOTAL, "named.sql": NAMED}
    with world.database.begin() as connection:
        world.apply(connection)
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    assert preview(world, "dev", counts=BY_KEY) == ["counts"]
    world.append("a", 1, ("x", 4))
    world.advance("a")
    assert read(world, "SELECT * FROM analytics.counts") == [(3, 7)]
    assert read(world, "SELECT * FROM dev.counts") == [(1, 2, "y"), (2, 5, "x")]
    assert read(world, "SELECT * FROM dev.total") == [(3, 7)]
    assert read(world, "SELECT * FROM dev.named") == [("analytics.counts", 1), ("analytics.counts", 2)]
    assert read(world, "SELECT * FROM dev.sums") == read(world, "SELECT * FROM analytics.sums")
    assert {view: of for (_, view), of in cells(world).items()} == {
        "sums": "shared", "both": "shared", "counts": "own", "total": "none", "named": "none"
    }  # fmt: skip
    for view in ("sums", "counts", "sums"):
        rebuild(world, view)
    world.append("a", 0, ("z", 8))
    world.advance("a")
    assert read(world, "SELECT * FROM dev.sums") == read(world, "SELECT * FROM analytics.sums")
    assert read(world, "SELECT s FROM dev.counts") == [(2,), (5,), (8,)]
    with world.database.begin() as connection:
        now, older = lookup.before_published(connection, "counts")
    assert older.version == now.version, "no rollback reaches a generation that only a preview reads"

    world.files["counts.sql"] = BY_KEY
    with world.database.begin() as connection:
        [change] = [change for change in deploying.plan(connection, compile_catalog(world.files)) if change.diff]
    assert (change.name, change.action) == ("counts", "update")
    generations_before = read(world, "SELECT max(id) FROM lamina.generation")
    with world.database.begin() as connection:
        world.apply(connection)
    assert read(world, "SELECT max(id) FROM lamina.generation") == generations_before
    assert read(world, "SELECT * FROM analytics.counts") == read(world, "SELECT * FROM dev.counts")
    assert set(cells(world).values()) == {"shared", "none"}
    rebuild(world, "counts")
    world.append("a", 0, ("z", 16))
    world.advance("a")
    assert read(world, "SELECT s FROM dev.counts") == [(2,), (24,), (5,)]
    drop(world, "dev")
    with world.database.begin() as connection:
        _, returned = rollbacks.roll_back(connection, "counts")
        back, first = lookup.before_published(connection, "counts")
    assert (back.id, first.version != back.version) == (returned, True), (
        "from the generation before to the version before"
    )
    assert read(world, "SELECT * FROM analytics.counts") == [(1, 2, "y"), (2, 24, "z"), (2, 5, "x")]


def test_a_preview_of_a_kept_version_does_not_change_rollbacks(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    preview(world, "dev", counts=FILES["counts.sql"].replace("sum(n)", "sum(n) * 10"))
    assert read(world, "SELECT * FROM dev.counts") == [(2, 30)]
    drop(world, "dev")
    with world.database.begin() as connection:
        rollbacks.roll_back(connection, "counts")
    assert read(world, "SELECT * FROM analytics.counts") == [(2, 3)]


def test_a_view_that_lost_its_cells_keeps_none_once_no_preview_reads_them(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    preview(world, "dev")
    world.files["counts.sql"] = "CREATE VIEW counts AS SELECT count(*) AS c, sum(s) AS s FROM sums;"
    with world.database.begin() as connection:
        world.apply(connection)
    drop(world, "dev")
    assert read(world, "SELECT count(*) FROM lamina.generation WHERE view = 'counts' AND state <> 'retired'") == [(0,)]


def test_a_dropped_preview_leaves_nothing_and_other_previews_stay(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    dropping.drop_unused(world.database)
    before = left(world)
    assert preview(world, "dev", counts=BY_KEY) == ["counts"]
    assert preview(world, "other", counts=BY_KEY, sums=POSITIVE) == ["sums"]
    assert preview(world, "dev", counts=BY_KEY, sums=None) == []
    drop(world, "dev")
    assert read(world, "SELECT * FROM other.counts") == [(1, 1, "x"), (1, 2, "y")]
    assert read(world, "SELECT * FROM other.sums") == [("x", 1, 1), ("y", 1, 2)]
    assert preview(world, "other", sums=POSITIVE) == []
    world.append("a", 0, ("y", 3))
    world.advance("a")
    assert read(world, "SELECT * FROM other.counts") == [(3, 6)]
    assert read(world, "SELECT * FROM other.sums") == [("x", 1, 1), ("y", 2, 5)]
    drop(world, "other")
    assert left(world) == before
    assert read(world, "SELECT nspname FROM pg_namespace WHERE nspname IN ('dev', 'other')") == []
    with pytest.raises(LaminaError, match="no preview named dev"):
        drop(world, "dev")


def test_a_preview_is_neither_dropped_nor_rebuilt_while_an_apply_may_move_to_its_cells(world: World) -> None:
    preview(world, "dev", counts=BY_KEY)
    with rebuilds.in_one_process(world.database):
        ready = world.begin_change(sums=POSITIVE, counts=BY_KEY)
        assert sorted(ready) == ["sums"], "the cells of the preview are not computed again"
        with pytest.raises(LaminaError, match="Another apply is running"), world.database.begin() as connection:
            previews.make(connection, "dev", compile_catalog(FILES))
        with pytest.raises(LaminaError, match="Another apply is running"), world.database.begin() as connection:
            previews.drop(connection, "dev")
        with world.database.begin() as connection:
            previews.make(connection, "another", compile_catalog(FILES))
        world.load(ready["sums"])
        world.go_live(*ready.values())
        world.end_change(ready, allow_break=True)
    assert read(world, "SELECT * FROM analytics.counts") == []


def test_a_preview_survives_changes_and_drops_of_the_views_it_shares(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    dropping.drop_unused(world.database)
    before = left(world)
    preview(world, "dev", named=NAMED)
    world.change(counts=BY_KEY)
    world.change(counts=BY_KEY.replace("FROM a", "FROM a WHERE n > 1"))
    world.change(counts=BY_KEY)
    del world.files["sums.sql"]
    with world.database.begin() as connection:
        world.apply(connection)
    dropping.drop_unused(world.database)
    world.append("a", 0, ("y", 4))
    world.advance("a")
    assert read(world, "SELECT * FROM dev.counts") == [(3, 7)]
    assert read(world, "SELECT * FROM dev.sums") == [("x", 1, 1), ("y", 2, 6)]
    assert cells(world)["dev", "sums"] == "own"
    world.files["sums.sql"] = FILES["sums.sql"]
    with world.database.begin() as connection:
        [change] = [
            change for change in deploying.plan(connection, compile_catalog(world.files)) if change.action == "create"
        ]
        assert change.effect == "its cells are live, for a preview: served at once"
        world.apply(connection)
    assert read(world, "SELECT * FROM analytics.sums") == [("x", 1, 1), ("y", 2, 6)]
    drop(world, "dev")
    rebuild(world, "counts")
    assert {name: left(world)[name] - before[name] for name in ("sides", "compiled")} == {"sides": 0, "compiled": 0}


def test_a_preview_raises_for_cells_that_a_leap_retired_and_serves_shared_ones(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    for query in PARTITIONS:
        world.advance(query)
    preview(world, "dev", counts=BY_KEY, total=TOTAL)
    world.append("a", 0, ("z", 8))
    with reading(database) as before:
        with world.database.begin() as connection:
            fences = {name: progress.take_over(connection, name, "the leap") for name in PARTITIONS}
            end = Offsets({**world.end("a"), **world.end("b")})
            new = [generations.open_building(connection, name, rebuild=None, at=end) for name in VIEWS]
        for opened in new:
            world.load(opened.id)
        world.database.retrying(
            lambda connection: generations.land(connection, [opened.id for opened in new], fences, landing(end, fences))
        )
        world.fences = fences
        dropping.drop_unused(world.database)
        assert rows(before, "SELECT * FROM dev.total") == [(2, 3)], "a snapshot from before the leap"
    for view in ("counts", "total"):
        with pytest.raises(DBAPIError, match=r"dev.counts has no live cells") as refused:
            read(world, f"SELECT c FROM dev.{view}")
        assert isinstance(refused.value.orig, psycopg2.errors.ObjectNotInPrerequisiteState)
    assert read(world, "SELECT * FROM dev.sums") == [("x", 1, 1), ("y", 1, 2), ("z", 1, 8)]
    assert {view: of for (_, view), of in cells(world).items()} == {
        "sums": "shared", "both": "shared", "counts": "retired", "total": "retired"
    }  # fmt: skip
    assert read(world, "SELECT view, served FROM lamina.previews WHERE NOT served") == [
        ("counts", False), ("total", False)
    ]  # fmt: skip
    assert preview(world, "dev", counts=BY_KEY, total=TOTAL) == ["counts"]
    assert read(world, "SELECT * FROM dev.total") == [(3, 11)]
    drop(world, "dev")


def test_a_snapshot_older_than_a_preview_cannot_read_it(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    with reading(database) as before:
        preview(world, "dev", counts=BY_KEY)
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="in this snapshot"):
            rows(before, "SELECT * FROM dev.counts")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("analytics", "Lamina's or Postgres' own"),
        ("pg_dev", "Lamina's or Postgres' own"),
        ("information_schema", "Lamina's or Postgres' own"),
        ("Dev", "needs no quotes"),
        ("user", "needs no quotes"),
        ("1st", "needs no quotes"),
        ('a"; DROP SCHEMA analytics', "needs no quotes"),
        ("x" * 64, "at most"),
        ("", "needs no quotes"),
        ("theirs", "no preview is called theirs"),
    ],
)
def test_an_invalid_preview_name_is_refused(world: World, name: str, why: str) -> None:
    with world.database.begin() as connection:
        connection.execute(text("CREATE SCHEMA theirs"))
        with pytest.raises(LaminaError, match="cannot be the name of a preview") as refused:
            previews.make(connection, name, world.catalog)
    assert why in refused.value.evidence
    assert "--preview" in refused.value.way_out or "another name" in refused.value.way_out


def test_relations_of_other_roles_over_a_preview_are_not_dropped(world: World) -> None:
    preview(world, "dev", counts=BY_KEY)
    with world.database.begin() as connection:
        connection.execute(text("CREATE VIEW dev.theirs AS SELECT c FROM dev.counts"))
    for what in (lambda: drop(world, "dev"), lambda: preview(world, "dev")):
        with pytest.raises(LaminaError, match="Other roles have relations over the preview dev") as refused:
            what()
        assert "dev.theirs" in refused.value.evidence
    with world.database.begin() as connection:
        connection.execute(text("DROP VIEW dev.theirs"))
        connection.execute(text("CREATE TABLE dev.theirs (n int)"))
    with pytest.raises(LaminaError, match="Other roles have relations"):
        drop(world, "dev")
    assert read(world, "SELECT * FROM dev.counts") == []


def test_a_preview_with_an_undeployed_source_is_refused(world: World) -> None:
    more = "CREATE TABLE more (n BIGINT) USING kafka OPTIONS (topic 'more', format 'json');"
    with pytest.raises(LaminaError, match="more cannot be previewed") as refused:
        preview(world, "dev", more=more)
    assert "`lamina apply`" in refused.value.way_out
    with pytest.raises(LaminaError, match="not applied") as refused:
        preview(world, "dev", sources=world.files["sources.sql"].replace("topic 'a'", "topic 'c'"))
    assert "declare it under another name" in refused.value.evidence


def test_the_rows_that_differ_are_counted_exactly(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2), (None, 3), ("w", 4))
    world.advance("a")
    assert preview(world, "dev", sums=FEW) == [], "the cells are shared"
    assert diff(world, "counts", "dev").equal
    difference = diff(world, "sums", "dev")
    assert (difference.rows_here, difference.rows_there, difference.only_here, difference.only_there) == (4, 3, 1, 0)
    assert (difference.same, difference.differing, difference.key, difference.columns) == (3, 0, ["k"], [])
    assert difference.examples == [Example({"k": "w", "c": 1, "s": 4}, None)]
    world.append("a", 0, ("x", 4), (None, 2), ("v", 4))
    world.advance("a")
    difference = diff(world, "sums", "dev")
    assert (difference.only_here, difference.only_there, difference.same, difference.differing) == (2, 0, 1, 2)
    assert difference.columns == [ColumnDifference("s", "bigint", "bigint", 2)]
    assert Example({"k": None, "c": 2, "s": 5}, {"k": None, "c": 2, "s": None}) in difference.examples
    assert difference.examples[0].there is not None, "pairs come first"
    preview(world, "dev", counts=BY_KEY, sums=FEW.replace("count(*) AS c", "count(*) + 0.5 AS c, sum(n) + 1 AS m"))
    difference = diff(world, "sums", "dev")
    assert difference.columns[0] == ColumnDifference("c", "bigint", "numeric", 3)
    assert difference.columns[-1] == ColumnDifference("m", None, "bigint", None)
    difference = diff(world, "counts", "dev")
    assert (difference.key, difference.only_here, difference.only_there, difference.same) == (None, 1, 5, 0)
    assert difference.columns == [ColumnDifference("k", None, "text", None)]
    assert diff(world, "sums", "dev", "k", "s").key == ["k", "s"]
    with pytest.raises(LaminaError, match="no column nothing"):
        diff(world, "sums", "dev", "nothing")
    for view, name, match in (("none", "dev", "not in either"), ("sums", "none", "no preview named none")):
        with pytest.raises(LaminaError, match=match):
            diff(world, view, name)
    drop(world, "dev")


def test_no_view_is_renamed_in_a_preview_or_while_one_has_it(world: World) -> None:
    totals = "CREATE VIEW totals TBLPROPERTIES ('renamed_from' = 'counts') AS SELECT count(*) AS c, sum(n) AS s FROM a;"
    with pytest.raises(LaminaError, match="totals cannot be previewed as another name of counts"):
        preview(world, "dev", counts=None, totals=totals)
    preview(world, "dev", sums=FEW)
    del world.files["counts.sql"]
    world.files["totals.sql"] = totals
    with world.database.begin() as connection, pytest.raises(LaminaError, match="not applied") as refused:
        world.apply(connection)
    assert "the preview dev has counts" in refused.value.evidence
    drop(world, "dev")
    with world.database.begin() as connection:
        deploying.plan(connection, compile_catalog(world.files))
