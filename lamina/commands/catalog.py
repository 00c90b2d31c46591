"""Catalogs of views: plan, apply, explain, test."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.commands.command import Different, chosen_catalog, command, deployment, with_catalog
from lamina.commands.previews import apply_preview
from lamina.render import Output
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from lamina.testing.runner import Compared
    from serving_layer.change.changes import Change


@command()
@with_catalog
def plan(output: Output, catalog: Path) -> None:
    """Show what applying a catalog would do, without doing it.

    Exits 0 if there is nothing to do, 3 if there is something to do, also if `lamina apply` then needs --prune or
    --allow-break for it, and 1 if `lamina apply` refuses it whatever the options.
    """
    from lamina.catalogs import catalog_files

    files = catalog_files(catalog)
    with deployment(output) as opened:
        changes = opened.plan(files)
        _changes(output, changes)
    if any(change.action == "drop" for change in changes):
        output.tell("A deployment holds one catalog: `lamina apply` refuses to drop what is not in it without --prune.")
    if any(change.breaks for change in changes):
        output.tell("Readers may use what would go: `lamina apply` refuses it without --allow-break.")
    if any(change.action == "refuse" for change in changes):
        sys.exit(1)
    if any(change.action not in ("nothing", "keep") for change in changes):
        raise Different


@command()
@with_catalog
@click.option("--prune", is_flag=True, help="Drop what is deployed but not in this catalog.")
@click.option(
    "--allow-break",
    is_flag=True,
    help="Allow removing names or columns that readers may use, or changing a column's type.",
)
@click.option("--preview", metavar="NAME", help="Serve the views in schema NAME instead; what is deployed stays.")
@click.option("--drop", is_flag=True, help="With --preview: end the preview. No catalog is read.")
@click.option(
    "--first", is_flag=True, help="Deploy only if nothing is deployed; if something is, only upgrade the database."
)
def apply(
    output: Output, catalog: Path, prune: bool, allow_break: bool, preview: str | None, drop: bool, first: bool
) -> None:
    """Deploy a catalog: its sources, its views, what analysts see.

    A view whose cells change is computed from all records; until then the old version is served. `plan` says which. A
    deployment holds one catalog. What is deployed but not in this one is dropped only with --prune, or a yes at a
    terminal.

    With --preview, the views of the catalog are served in a schema of their own, with live data. They share the cells
    of every view that has not changed. An apply of the same catalog then only moves the views.
    """
    from lamina.catalogs import catalog_files
    from serving_layer.change.changes import WouldDrop

    if preview is not None or drop:
        if prune or allow_break or first:
            raise click.UsageError(
                "--prune, --allow-break and --first do not go with --preview, which takes nothing from readers."
            )
        apply_preview(output, preview, catalog, drop=drop)
        return
    with deployment(output) as opened:
        if first and opened.is_deployed():
            opened.install()
            output.tell("What is deployed stays as it is. `lamina plan` compares it with the catalog's files.")
            return
        files = catalog_files(catalog)
        try:
            changes = opened.apply(files, prune=prune, allow_break=allow_break)
        except WouldDrop as error:
            if output.as_json or not (sys.stdin.isatty() and output.err.is_terminal):
                raise
            output.tell(f"{error.what}:\n{error.evidence}")
            if not click.confirm("Drop these?", err=True):
                raise
            changes = opened.apply(files, prune=True, allow_break=allow_break)
        _changes(output, changes)


@command(name="explain")
@click.argument("view")
@with_catalog
def explain_(output: Output, view: str, catalog: Path) -> None:
    """Print the SQL that a view compiles to, and its cost.

    Spark runs the text "partial" over records, and Postgres keeps "cells", merges by "merge" and shows "final". After
    them comes what each column is made of. The view is in the catalog that --catalog names, as this Lamina compiles it;
    without --catalog and a folder of the default name, it is in the deployed catalog.
    """
    from view_algebra.explain import cost, explain, kept

    compiled, where = chosen_catalog(output, catalog)
    if view not in compiled.views:
        raise LaminaError(
            f"There is no view named {view} in {where}",
            evidence="declared: " + (", ".join(compiled.views) or "none"),
            way_out="Name one of these, or another catalog with --catalog.",
        )
    chosen = compiled.views[view]
    output.text(
        explain(chosen),
        view=view,
        kind=chosen.kind,
        version=chosen.version,
        final=chosen.final,
        columns=[
            {"column": each.column, "aggregates": each.aggregates, "from": each.columns} for each in chosen.lineage
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
@click.option("--seed", type=int, help="Decides how records fall into micro-batches; a failed test prints it.")
@click.option("--watch", is_flag=True, help="Stay, and run again what a saved file may change, until Ctrl-C.")
def test(output: Output, tests: Sequence[str], catalog: Path, seed: int | None, watch: bool) -> None:
    """Run the tests of a catalog: files `*.test` next to its views.

    A test lists the records that come in and the rows that go out. It runs in micro-batches, in a rebuild and in
    DuckDB. TESTS are names, or beginnings of names; all by default. Neither Kafka nor a deployment is needed.

    With --watch, Spark and Postgres stay up, and a test runs again as soon as its file or SQL that it needs is saved.
    """
    from lamina.testing.runner import any_seed, run

    seed = any_seed() if seed is None else seed
    if watch:
        from lamina.testing.reruns import Reruns

        Reruns(catalog, tests, seed, output.tell, lambda found: _show_tests(output, found), output.error).run()
    found = run(catalog, tests, seed, output.tell)
    _show_tests(output, found)
    if not all(each.equal for each in found):
        raise Different


def _show_tests(output: Output, found: Sequence[Compared]) -> None:
    """A row per view and way, and a line per row that is missing or surplus."""
    if output.as_json:
        for each in found:
            output.record(each.record())
    else:
        rows = [(each.test, each.view, each.way, each.rows, each.result) for each in found]
        output.table(("test", "view", "way", "rows", "result"), rows)
    for why, times in Counter(each.left_out for each in found if each.left_out).items():
        output.tell(f"DuckDB was not asked {times} times: {why}")
    for each in found:
        for line in each.difference:
            output.tell(f"{each.test}: {each.view}, {each.way}: {line}")


def _changes(output: Output, changes: Sequence[Change]) -> None:
    shown = [change for change in changes if change.action != "nothing"]
    if output.as_json:
        for change in shown:
            said = asdict(change)
            output.record({"change": said.pop("action"), "what": said.pop("kind"), **said})
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
