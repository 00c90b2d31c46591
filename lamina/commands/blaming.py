"""`lamina blame`: the events that moved a number."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lamina.commands.command import Different, command, deployment
from lamina.terminal.render import Output


@command()
@click.argument("view")
@click.argument("key", nargs=-1)
@click.option("--since", default="1 day", show_default=True, help="An age, or a time in UTC.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="List the newest N micro-batches one by one.",
)
def blame(output: Output, view: str, key: Sequence[str], since: str, limit: int) -> None:
    """List the events that changed a row of a view, with its values.

    Events are micro-batches with their offsets, rebuilds and new versions, each with the row before and after it. KEY
    is the values of the view's group columns, in order, or column=value for some of them. Write NULL for no value.
    Spark runs the SELECT over the records below the offsets before and after each event. Exits 3 if the view differs
    from its SELECT.
    """
    from lamina.reports.blame_lines import show

    with deployment(output) as opened:
        opened.require_installed()
        if not show(output, opened, view, key, since=since, limit=limit):
            raise Different
