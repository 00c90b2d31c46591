"""Previews of a catalog next to the deployed one: `apply --preview`, and `diff`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.commands.command import Different, command, deployment
from lamina.terminal.render import Output, cell
from serving_layer.narration import waiting

if TYPE_CHECKING:
    from serving_layer.change.differences import Difference

_CELLS = {
    "own": "computed for the preview",
    "shared": "shared with the deployed view",
    "none": "none: it is read from other views",
    "retired": "retired: make the preview again",
}


def apply_preview(output: Output, name: str | None, catalog: Path, *, drop: bool) -> None:
    """Serves the views of a catalog in the schema `name`, or ends the preview of that name."""
    from lamina.authoring.catalog_files import catalog_files

    if name is None:
        raise click.UsageError("--drop ends a preview: name it with --preview.")
    files = {} if drop else catalog_files(catalog)
    from lamina.operations import applying

    with deployment(output) as opened:
        if drop:
            applying.drop_preview(opened, name)
            output.text(f"preview {name} dropped", preview=name, dropped=True)
            return
        previewed = applying.preview(opened, name, files)
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

    with deployment(output) as opened:
        opened.require_installed()
        with waiting(output.tell, "comparing every row"), opened.database.snapshot() as connection:
            courtesy.stand_back(connection)
            difference = differences.between(connection, view, against, key)
    if output.as_json:
        output.record({**asdict(difference), "equal": difference.equal})
    else:
        _show(output, difference)
    if not difference.equal:
        raise Different


def _show(output: Output, difference: Difference) -> None:
    here, there = f"analytics.{difference.view}", f"{difference.against}.{difference.view}"
    if difference.equal:
        output.text(f"{here} and {there} are equal: {difference.same:,} rows")
        return
    rows = [
        ("rows", difference.rows_here, difference.rows_there),
        ("only there", difference.only_here, difference.only_there),
    ]
    output.table(("", here, there), rows)
    by = "as whole rows" if difference.key is None else f"by {', '.join(difference.key) or 'one row'}"
    output.text(f"\nthe same in both: {difference.same:,}; differing: {difference.differing:,} (compared {by})\n")
    output.table(
        ("column", here, there, "differs in rows"), [tuple(vars(column).values()) for column in difference.columns]
    )
    for example in difference.examples:
        output.text("")
        for name, row in ((here, example.here), (there, example.there)):
            output.text(f"{name}: {cell(row) if row is not None else 'no such row'}")
