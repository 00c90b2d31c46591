"""Commands for catalogs of views: plan, apply, preview and diff, explain, test."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.commands.command import Different, chosen_catalog, command, open_deployment, with_catalog
from lamina.terminal.render import Output, cell
from serving_layer.narration import amount, waiting
from view_algebra.errors import Unknown

if TYPE_CHECKING:
    from lamina.testing.results import Comparison
    from serving_layer.change.differences import Difference
    from serving_layer.change.planned_change import PlannedChange


@command()
@with_catalog
def plan(output: Output, catalog: Path) -> None:
    """Show the changes that an apply of a catalog would make.

    Exits 0 if there are no changes, 3 if there are some, even if `lamina apply` needs --prune or --allow-break for
    them, and 1 if `lamina apply` refuses one whatever the options.
    """
    from lamina.authoring.catalog_files import catalog_files
    from lamina.operations import applying

    files = catalog_files(catalog)
    with open_deployment(output) as deployment:
        changes = applying.plan(deployment, files)
        _show_changes(output, changes)
    if any(change.action == "drop" for change in changes):
        output.tell("A deployment holds one catalog: `lamina apply` drops what is not in it only with --prune.")
    if any(change.breaks for change in changes):
        output.tell("Readers may use what would be removed: `lamina apply` refuses it without --allow-break.")
    if any(change.action == "refuse" for change in changes):
        sys.exit(1)
    if any(change.action not in ("nothing", "keep") for change in changes):
        raise Different


@command()
@with_catalog
@click.option("--prune", is_flag=True, help="Drop views and sources that are not in this catalog.")
@click.option(
    "--allow-break",
    is_flag=True,
    help="Allow removing names or columns that readers may use, or changing a column's type.",
)
@click.option("--preview", metavar="NAME", help="Serve the views in schema NAME instead. Deployed views stay.")
@click.option("--drop", is_flag=True, help="With --preview: end the preview. No catalog is read.")
@click.option("--first", is_flag=True, help="If something is deployed already, only upgrade the database.")
def apply(
    output: Output, catalog: Path, prune: bool, allow_break: bool, preview: str | None, drop: bool, first: bool
) -> None:
    """Deploy a catalog: its sources and its views.

    A view whose cells change is computed from all records, and its old version is served until then. `plan` says which
    views these are. A deployment holds one catalog. Deployed views and sources that are not in this one are dropped
    only with --prune, or if a person agrees at a terminal.

    With --preview, the views of the catalog are served in a schema of their own, with live data. They share the cells
    of every view that has not changed. A later apply of the same catalog then only moves the views.
    """
    from lamina.authoring.catalog_files import catalog_files
    from lamina.operations import applying, installation
    from serving_layer.change.catalog_changes import WouldDrop

    if preview is not None or drop:
        if prune or allow_break or first:
            raise click.UsageError(
                "--prune, --allow-break and --first cannot be used with --preview, which removes nothing from readers."
            )
        if preview is None:
            raise click.UsageError("--drop ends a preview: name it with --preview.")
        if drop:
            _drop_preview(output, preview)
        else:
            _serve_preview(output, preview, catalog)
        return
    with open_deployment(output) as deployment:
        if first and deployment.is_deployed():
            installation.install(deployment)
            output.tell("The deployed catalog stays. `lamina plan` compares it with the catalog's files.")
            return
        files = catalog_files(catalog)
        try:
            changes = applying.apply(deployment, files, prune=prune, allow_break=allow_break)
        except WouldDrop as error:
            if output.as_json or not (sys.stdin.isatty() and output.err.is_terminal):
                raise
            output.tell(f"{error.what}:\n{error.evidence}")
            if not click.confirm("Drop these?", err=True):
                raise
            changes = applying.apply(deployment, files, prune=True, allow_break=allow_break)
        _show_changes(output, changes)


@command(name="explain")
@click.argument("view")
@with_catalog
def explain_(output: Output, view: str, catalog: Path) -> None:
    """Print the SQL that a view compiles to, and its cost.

    Spark runs "partial" over records. Postgres keeps "cells", merges by "merge" and shows "final". Then follow the
    columns and the aggregates that they come from. The view is read from the catalog that --catalog names. Without
    --catalog and a folder of the default name, it is read from the deployed catalog.
    """
    from view_algebra.compile import avoided
    from view_algebra.explain import cost, explain, kept

    compiled, where = chosen_catalog(output, catalog)
    if view not in compiled.views:
        way_out = "Name one of these, or name another catalog with --catalog."
        raise Unknown("view", view, compiled.views, state="declared", place=f" in {where}", way_out=way_out)
    chosen = compiled.views[view]
    obstacle = avoided(compiled, view) if chosen.cell_tables else None
    placement = f"-- placement: over records ({obstacle.reason})\n\n" if obstacle else ""
    output.text(
        placement + explain(chosen),
        records_because=obstacle.reason if obstacle else None,
        view=view,
        kind=chosen.kind,
        version=chosen.version,
        final=chosen.final,
        columns=[
            {"column": output_column.column, "aggregates": output_column.aggregates, "from": output_column.columns}
            for output_column in chosen.lineage
        ],
        tables=[
            {
                "name": table.name,
                "kept": kept(table),
                "cost": cost(table),
                "sub_keys": table.cost.sub_keys,
                "panes": table.cost.panes,
                "partial": table.partial,
                "cells": table.cells,
                "merge": table.merge,
            }
            for table in chosen.cell_tables
        ],
    )


@command()
@click.argument("tests", nargs=-1)
@with_catalog
@click.option("--seed", type=int, help="Decides the sizes of micro-batches. A failed test prints it.")
@click.option("--watch", is_flag=True, help="After each save, rerun the tests it may change, until Ctrl-C.")
def test(output: Output, tests: Sequence[str], catalog: Path, seed: int | None, watch: bool) -> None:
    """Run the tests of a catalog: files `*.test` next to its views.

    A test lists incoming records and expected rows. It runs in micro-batches, in a rebuild and in DuckDB. TESTS are
    names, or beginnings of names, by default all. Neither Kafka nor a deployment is needed.

    With --watch, Spark and Postgres stay up, and a test runs again as soon as its file, or SQL that it needs, is saved.
    """
    from lamina.testing.runner import any_seed, run

    seed = any_seed() if seed is None else seed
    if watch:
        from lamina.testing.reruns import Reruns

        Reruns(catalog, tests, seed, output.tell, lambda results: _show_tests(output, results), output.error).run()
    results = run(catalog, tests, seed, output.tell)
    _show_tests(output, results)
    if not all(result.equal for result in results):
        raise Different


def _show_tests(output: Output, results: Sequence[Comparison]) -> None:
    """A row per view and way, and a line per missing or surplus row."""
    if output.as_json:
        for result in results:
            output.record(result.record())
    else:
        rows = [(result.test, result.view, result.way, result.rows, result.result) for result in results]
        output.table(("test", "view", "way", "rows", "result"), rows)
    for why, times in Counter(result.left_out for result in results if result.left_out).items():
        output.tell(f"DuckDB was not asked {amount(times, 'time')}: {why}")
    for result in results:
        for line in result.difference:
            output.tell(f"{result.test}: {result.view}, {result.way}: {line}")


def _show_changes(output: Output, changes: Sequence[PlannedChange]) -> None:
    shown = [change for change in changes if change.action != "nothing"]
    if output.as_json:
        for change in shown:
            fields = asdict(change)
            output.record({"change": fields.pop("action"), "what": fields.pop("kind"), **fields})
        return
    if not shown:
        output.tell("nothing to change")
        return
    output.table(("change", "what", "name", "effect"), [(c.action, c.kind, c.name, c.effect) for c in shown])
    for change in shown:
        for lost in change.breaks:
            output.text(f"\n{change.name}: a break for readers: {lost}")
        if change.dependents:
            output.text(f"\n{change.name} is read by {', '.join(change.dependents)}")
        if change.diff:
            output.text(f"\n{change.diff}")


_CELLS = {
    "own": "computed for the preview",
    "shared": "shared with the deployed view",
    "none": "none: it is read from other views",
    "retired": "retired: make the preview again",
}


def _drop_preview(output: Output, name: str) -> None:
    from lamina.operations import applying

    with open_deployment(output) as deployment:
        applying.drop_preview(deployment, name)
    output.text(f"preview {name} dropped", preview=name, dropped=True)


def _serve_preview(output: Output, name: str, catalog: Path) -> None:
    """Serves the views of a catalog in the schema `name`."""
    from lamina.authoring.catalog_files import catalog_files
    from lamina.operations import applying

    files = catalog_files(catalog)
    with open_deployment(output) as deployment:
        previewed = applying.preview(deployment, name, files)
    if output.as_json:
        for view in previewed:
            output.record(asdict(view))
        return
    output.table(("view", "cells"), [(f"{view.preview}.{view.view}", _CELLS[view.cells]) for view in previewed])


@command()
@click.argument("view")
@click.option("--against", required=True, metavar="NAME", help="The preview to compare it with.")
@click.option("--key", multiple=True, metavar="COLUMN", help="Columns that identify a row; by default the group keys.")
def diff(output: Output, view: str, against: str, key: tuple[str, ...]) -> None:
    """Compare a deployed view with the one in a preview.

    All rows are compared in one snapshot. Exits 0 if they are equal, and 3 if they differ.
    """
    from serving_layer.change import differences
    from serving_layer.postgres import courtesy

    comparing = waiting(output.tell, "comparing every row")
    with open_deployment(output, installed=True) as deployment, comparing, deployment.database.snapshot() as connection:
        courtesy.stand_back(connection)
        difference = differences.between(connection, view, against, key)
    if output.as_json:
        output.record({**asdict(difference), "equal": difference.equal})
    else:
        _show_difference(output, difference)
    if not difference.equal:
        raise Different


def _show_difference(output: Output, difference: Difference) -> None:
    deployed, previewed = f"analytics.{difference.view}", f"{difference.against}.{difference.view}"
    if difference.equal:
        output.text(f"{deployed} and {previewed} are equal: {difference.same:,} rows")
        return
    rows = [
        ("rows", difference.rows_here, difference.rows_there),
        ("only there", difference.only_here, difference.only_there),
    ]
    output.table(("", deployed, previewed), rows)
    by = "as whole rows" if difference.key is None else f"by {', '.join(difference.key) or 'one row'}"
    output.text(f"\nthe same in both: {difference.same:,}; differing: {difference.differing:,} (compared {by})\n")
    output.table(
        ("column", deployed, previewed, "differs in rows"),
        [tuple(vars(column).values()) for column in difference.columns],
    )
    for example in difference.examples:
        output.text("")
        for name, row in ((deployed, example.here), (previewed, example.there)):
            output.text(f"{name}: {cell(row) if row is not None else 'no such row'}")
