"""Commands that read: SQL, status, metrics, checks, receipts, and the events that moved a number."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

from lamina.commands.command import Different, command, listen_address, open_deployment, show_verdicts, tell_failing
from lamina.configuration.settings import Settings
from lamina.terminal.failures import as_lamina_error, naming_view
from lamina.terminal.render import Output
from master_log.offsets import brief
from serving_layer.narration import amount, waiting
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from batch_layer.check import CheckResult
    from lamina.operations.deployment import Deployment
    from serving_layer.change.view_checks import Verdict


@command()
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=0), help="Print at most this many rows.")
def sql(output: Output, query: str, limit: int | None) -> None:
    """Run one SELECT as the analyst, read-only."""
    from lamina.reports.lag_lines import lag_lines_of_select
    from serving_layer.postgres.database import PostgresError
    from serving_layer.readers.analyst import select

    settings = Settings.read()
    with waiting(output.tell, "asking Postgres"):
        columns, rows = select(settings.reader(), query, limit)
    output.table(columns, rows)
    # The answer does not depend on these lines.
    with suppress(LaminaError, PostgresError), open_deployment(output) as deployment:
        for line in lag_lines_of_select(deployment, query):
            output.tell(line)


@command()
@click.option("--alarms", is_flag=True, help="Print only the alarms. Fast enough for a health check.")
def status(output: Output, alarms: bool) -> None:
    """Show views, queries, generations and the last rebuild.

    Exits 1 if there are alarms.
    """
    from lamina.reports.status_lines import show, show_alarms

    with open_deployment(output, installed=True) as deployment:
        raised = (show_alarms if alarms else show)(output, deployment)
    if raised:
        sys.exit(1)


@command()
@click.option("--listen", metavar="HOST:PORT", help="Serve the numbers at http://HOST:PORT/metrics until stopped.")
def metrics(output: Output, listen: str | None) -> None:
    """Print the numbers for a monitoring system.

    They are in Prometheus' text format. docs/metrics.md lists them, and describes the alert rules and the Grafana
    board.
    """
    from prometheus_client import generate_latest, start_http_server

    from lamina.reports.metrics import MetricCollector, labels_of, registry

    with open_deployment(output) as deployment:
        if listen is not None:
            host, port = listen_address(listen, "127.0.0.1:9464")
            try:
                server, thread = start_http_server(port, host, registry(deployment))
            except (OSError, UnicodeError) as error:  # UnicodeError for a name such as `a..b`
                raise LaminaError(
                    f"The metrics cannot be served at {listen}",
                    evidence=getattr(error, "strerror", None) or str(error),
                    way_out="Another process may listen there. Name another address with --listen HOST:PORT.",
                ) from error
            shown = listen.rpartition(":")[0] or host
            output.tell(f"Serving http://{shown}:{server.server_port}/metrics. Press Ctrl-C to stop.")
            try:
                thread.join()
            finally:
                server.shutdown()
                server.server_close()
        elif output.as_json:
            for sample in MetricCollector(deployment).samples():
                labels = dict(zip(labels_of(sample.metric), sample.labels, strict=True))
                output.record({"metric": sample.metric, "labels": labels, "value": sample.value})
        else:
            output.text(generate_latest(registry(deployment)).decode().rstrip())


@command()
@click.argument("views", nargs=-1)
@click.option("--live", is_flag=True, help="Run the catalog's checks over the views as readers see them now.")
@click.option("--preview", metavar="NAME", help="Check the views of a preview instead of the deployed ones.")
def check(output: Output, views: Sequence[str], live: bool, preview: str | None) -> None:
    """Compare every row of views with their SELECT over all records.

    Spark runs the SELECT over every record below the progress that was read with the view. Exits 3 if a view differs,
    else 1 if a view could not be computed. The other views still have their results. With --live, Postgres runs the
    catalog's checks (ADD CONSTRAINT) instead, and Spark is not needed.
    """
    if live and preview is not None:
        raise click.UsageError("--live checks the deployed views. It cannot be used with --preview.")
    with open_deployment(output, installed=True) as deployment:
        if live:
            with waiting(output.tell, "running the checks of views"):
                verdicts = _check_live(deployment, views)
            show_verdicts(output, verdicts)
            if tell_failing(output, verdicts):
                raise Different
            return
        results = _compare(output, deployment, views, preview)
    _show_checked(output, results)
    if any(result.differs for result in results):
        raise Different
    if failing := [result.view for result in results if result.failure is not None]:
        raise LaminaError(
            f"{len(failing)} of {len(results)} views could not be checked",
            evidence=", ".join(failing),
            way_out="Each has its reason above. Correct it, then check these views again.",
        )


def _compare(
    output: Output, deployment: Deployment, views: Sequence[str], preview: str | None
) -> Sequence[CheckResult]:
    """Compares these views, or all, with their SELECT. Narrates how many are done."""
    from batch_layer.check import check as run

    compared: list[CheckResult] = []
    what = "reading every record from the log and Kafka, comparing every row"
    with waiting(output.tell, what, so_far=lambda: f"views compared: {len(compared)}"):
        return run(
            deployment.database,
            lambda: (deployment.spark(), deployment.log()),
            deployment.brokers,
            views,
            preview,
            watching=deployment.watching,
            done=compared.append,
        )


def _show_checked(output: Output, results: Sequence[CheckResult]) -> None:
    """Prints a row per view, and narrates skipped records and examples of differing rows.

    The reason why a view could not be computed is a field in JSON, and a line of narration otherwise.
    """
    from batch_layer.check import EXAMPLES

    columns = ("view", "rows", "missing", "surplus", "result", "every record below")
    rows = []
    for checked in results:
        result = "equal" if checked.equal else "DIFFERENT" if checked.differs else "FAILED"
        below = str(checked.below) if output.as_json else brief(str(checked.below))
        row: tuple[object, ...] = (
            checked.view,
            checked.rows,
            len(checked.missing),
            len(checked.surplus),
            result,
            below,
        )
        failure = None if checked.failure is None else as_lamina_error(checked.failure)
        reason = None if failure is None else ": ".join(filter(None, (failure.what, failure.evidence)))
        if output.as_json:
            row = (*row, dict(checked.begins), reason)
        elif failure is not None:
            output.tell(f"{checked.view}: {reason}\n{failure.way_out}".rstrip())
        rows.append(row)
    output.table((*columns, "begins", "error") if output.as_json else columns, rows)
    for source, begins in dict(pair for checked in results for pair in checked.begins.items()).items():
        if not output.as_json:
            output.tell(f"{source} begins at {brief(begins)}: earlier records are not part of it")
    for checked in results:
        if checked.skipped:
            skipped = f"{amount(checked.skipped, 'skipped record')} (`lamina skip`) on neither side"
            output.tell(f"{checked.view}: {skipped}")
        for what, examples in (("missing", checked.missing), ("surplus", checked.surplus)):
            for example in examples[:EXAMPLES]:
                output.tell(f"{checked.view}: {what} {example}")


@command()
@click.argument("view")
def receipt(output: Output, view: str) -> None:
    """Print a receipt, by which a view's rows can be verified later.

    It is one line with the offsets below which every record is counted, the version and generation, and a digest of the
    rows. It is read in one snapshot, as the analyst. In SQL: SELECT lamina.receipt('view').
    """
    from lamina.reports.receipt_lines import line_of

    settings = Settings.read()
    with waiting(output.tell, "reading and digesting every row"):
        sys.stdout.write(line_of(settings.reader(), view) + "\n")


@command()
@click.argument("receipt", metavar="FILE", type=click.File())
def verify(output: Output, receipt: TextIO) -> None:
    """Compare a receipt with the master log.

    FILE holds the receipt, and - is standard input. Spark runs the SELECT of that time over every record below the
    receipt's offsets. Exits 3 if the rows differ.
    """
    from batch_layer import verify as verifying
    from lamina.reports.receipt_lines import read, show

    receipt_read = read(receipt)
    with open_deployment(output, installed=True) as deployment:
        parts = deployment.database, deployment.spark(), deployment.log(), deployment.brokers
        with waiting(output.tell, "reading every record below the receipt's offsets, computing every row again"):
            try:
                verified = verifying.verify(*parts, receipt_read, deployment.watching)
            except Exception as error:
                raise naming_view(receipt_read.view, error) from error
    show(output, verified)
    if not verified.equal:
        raise Different


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
    from batch_layer.blame import blame as find
    from batch_layer.selects import Services
    from lamina.reports.blame_lines import show

    reading = waiting(output.tell, "reading every record of the view from the log and Kafka")
    with open_deployment(output, installed=True) as deployment, reading:
        services = Services(deployment.database, deployment.spark, deployment.log, deployment.brokers)
        history = find(services, view, key, since=since, limit=limit, watching=deployment.watching)
    show(output, view, history)
    if history.selected is not None:
        raise Different


def _check_live(deployment: Deployment, names: Sequence[str]) -> list[Verdict]:
    """Runs the checks of these views, or of all, as readers see them now. Stores the results."""
    from serving_layer.catalog.deployed import deployed
    from serving_layer.change import view_checks
    from serving_layer.readers import views

    with deployment.database.snapshot() as connection:
        catalog, served = deployed(connection), views.served_views(connection)
        for name in names:
            if name not in served:
                raise LaminaError(
                    f"{name} is not served",
                    evidence="served: " + (", ".join(sorted(served)) or "none"),
                    way_out="`lamina status` lists the views.",
                )
        wanted = names or [name for name in catalog.views if name in served]
        verdicts = view_checks.run_on_live(connection, catalog, wanted)
    with deployment.database.begin() as connection:
        view_checks.record(connection, verdicts, None)
        view_checks.forget(connection, deployed(connection))  # meanwhile, an apply may have removed some of them
    return verdicts
