"""What is served: SQL, status, checks, receipts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

from lamina.commands.command import Different, command, deployment, show_verdicts, tell_failing
from lamina.failures import told
from lamina.render import Output
from lamina.settings import Settings
from master_log.offsets import brief
from serving_layer.narration.waiting import waiting
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from batch_layer.check import Checked


@command()
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=0), help="Print at most this many rows.")
def sql(output: Output, query: str, limit: int | None) -> None:
    """Run one SELECT as the analyst, read-only."""
    from lamina.statuses import behind_of
    from serving_layer.postgres.database import PostgresError
    from serving_layer.readers.analyst import select

    settings = Settings.read()
    with waiting(output.tell, "Postgres is asked"):
        columns, rows = select(settings.reader(), query, limit)
    output.table(columns, rows)
    with suppress(LaminaError, PostgresError), deployment(output) as opened:  # which the answer does not depend on
        for line in behind_of(opened, query):
            output.tell(line)


@command()
@click.option("--alarms", is_flag=True, help="Print only the alarms; fast enough for a health check.")
def status(output: Output, alarms: bool) -> None:
    """Show views, queries, generations and the last rebuild.

    Exits 1 if something needs attention.
    """
    from lamina.statuses import show, show_alarms

    with deployment(output) as opened:
        opened.require_installed()
        (show_alarms if alarms else show)(output, opened)


@command()
@click.argument("views", nargs=-1)
@click.option("--live", is_flag=True, help="Run the checks that the catalog declares for views, as they are read now.")
@click.option("--preview", metavar="NAME", help="The views of a preview, in place of the deployed ones.")
def check(output: Output, views: Sequence[str], live: bool, preview: str | None) -> None:
    """Compare every row of views with their SELECT over all records.

    Spark runs it over every record below the progress that was read with the view. Exits 3 if a view differs, else 1
    if a view could not be computed; the other views have their results. With --live, Postgres runs the checks of the
    catalog (ADD CONSTRAINT) instead, and Spark is not needed.
    """
    from batch_layer.check import EXAMPLES
    from batch_layer.check import check as run

    if live and preview is not None:
        raise click.UsageError("--live is about what is deployed; it is not given with --preview.")
    with deployment(output) as opened:
        opened.require_installed()
        if live:
            with waiting(output.tell, "the checks of views are run"):
                verdicts = opened.check_live(views)
            show_verdicts(output, verdicts)
            if tell_failing(output, verdicts):
                raise Different
            return
        compared: list[Checked] = []
        what = "every record is read from the log and Kafka, every row compared"
        with waiting(output.tell, what, so_far=lambda: f"views compared: {len(compared)}"):
            results = run(
                opened.database,
                lambda: (opened.spark, opened.log),
                opened.brokers,
                views,
                preview,
                watching=opened.watching,
                done=compared.append,
            )
    _show_checked(output, results)
    for each in results:
        if each.skipped:
            output.tell(
                f"{each.view}: {each.skipped:,} records were skipped by name (`lamina skip`) and are in neither"
            )
        for what, examples in (("missing", each.missing), ("surplus", each.surplus)):
            for row in examples[:EXAMPLES]:
                output.tell(f"{each.view}: {what} {row}")
    if any(each.differs for each in results):
        raise Different
    if failing := [each.view for each in results if each.failure is not None]:
        raise LaminaError(
            f"{len(failing)} of {len(results)} views could not be checked",
            evidence=", ".join(failing),
            way_out="Their reasons are above. What differs is unknown; the other views equal their SELECT.",
        )


def _show_checked(output: Output, results: Sequence[Checked]) -> None:
    """A row per view; why a view could not be computed is a field of its JSON, and a line of narration."""
    columns = ("view", "rows", "missing", "surplus", "result", "every record below")
    rows = []
    for each in results:
        result = "equal" if each.equal else "DIFFERENT" if each.differs else "FAILED"
        below = str(each.below) if output.as_json else brief(str(each.below))
        row: tuple[object, ...] = (each.view, each.rows, len(each.missing), len(each.surplus), result, below)
        failure = None if each.failure is None else told(each.failure)
        if output.as_json:
            row = (*row, dict(each.begins), None if failure is None else f"{failure.what}: {failure.evidence}")
        elif failure is not None:
            output.tell(f"{each.view}: {failure.what}: {failure.evidence}")
        rows.append(row)
    output.table((*columns, "begins", "error") if output.as_json else columns, rows)
    for source, begins in dict(pair for each in results for pair in each.begins.items()).items():
        if not output.as_json:
            output.tell(f"{source} begins at {brief(begins)}: what lies below is not part of it")


@command()
@click.argument("view")
def receipt(output: Output, view: str) -> None:
    """Print a line by which to verify a view's rows later.

    The line has the offsets below which every record is in it, the version and generation, and a digest of the rows. It
    is read in one snapshot, as the analyst. SQL has the same: SELECT lamina.receipt('view').
    """
    from lamina.receipts import line_of

    settings = Settings.read()
    with waiting(output.tell, "every row is read and digested"):
        sys.stdout.write(line_of(settings.reader(), view) + "\n")


@command()
@click.argument("receipt", metavar="FILE", type=click.File())
def verify(output: Output, receipt: TextIO) -> None:
    """Compare a receipt with what the master log gives.

    FILE holds the receipt; - is standard input. Spark runs the SELECT deployed at the time over every record below the
    receipt's offsets. Exits 3 if the rows differ.
    """
    from lamina.receipts import read, show

    given = read(receipt)
    with deployment(output) as opened:
        opened.require_installed()
        if not show(output, opened, given):
            raise Different
