"""The command line: each command opens the parts it needs, calls one function of a layer, and shows what it gave.

Exit codes: 0 done, 1 refused or failed, 2 usage, 3 a check, a proof or `plan` found a difference, 130 Ctrl-C.
"""

from __future__ import annotations

import functools
import os
import shlex
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

import click

from lamina import __version__
from lamina.failures import in_our_words
from lamina.render import Output, log_to_stderr
from lamina.settings import Settings
from serving_layer.waiting import waiting
from view_algebra import compile_catalog, explain
from view_algebra.errors import Blocked, LaminaError
from view_algebra.explain import cost, kept

if TYPE_CHECKING:
    from lamina.deployment import Deployment
    from serving_layer.changes import Change
    from serving_layer.checks import Verdict

DIFFERENT = 3
"""Exit code when a check or a proof found a difference, or `plan` something to do."""


INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it."""


AGAIN_SECONDS = 0.05
"""Until an interrupt that was lost comes again."""


class Different(Exception):
    """A check, a proof or `plan` found a difference; it has been shown."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lamina")
def lamina() -> None:
    """SQL views over Kafka, true at every instant."""


def command(*, parent: click.Group = lamina, name: str | None = None) -> Callable[[Callable[..., None]], click.Command]:
    """A command with the common option; its function takes the `Output` first."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def call(as_json: bool, **options: Any) -> None:
            output = Output(as_json=as_json)
            log_to_stderr(output.err)
            try:
                function(output, **options)
            except LaminaError as error:
                output.error(error)
                sys.exit(DIFFERENT if isinstance(error, Blocked) else 1)
            except Different:
                sys.exit(DIFFERENT)
            except BrokenPipeError:
                _nobody_reads()
            except KeyboardInterrupt:
                output.tell("\ninterrupted")
                sys.exit(INTERRUPTED)
            except Exception as error:
                told = in_our_words(error)
                if told is None:
                    raise
                output.error(told)
                sys.exit(1)

        with_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON, one object per line.")
        return parent.command(name or function.__name__.replace("_", "-"))(with_json(call))

    return decorate


def with_catalog(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--catalog DIR`."""
    return click.option(
        "--catalog",
        type=click.Path(path_type=Path),
        envvar="LAMINA_CATALOG",
        default=Path("catalog"),
        show_default=True,
        help="Folder of .sql files (or LAMINA_CATALOG).",
    )(function)


def with_rebuild(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--rebuild ID`; without it, the one that is running."""
    return click.option("--rebuild", "id", type=int, help="Its id; by default the one that is running.")(function)


@contextmanager
def deployment(output: Output) -> Iterator[Deployment]:
    """The deployment of the settings, closed at the end."""
    from lamina.deployment import Deployment

    opened = Deployment(Settings.read(), tell=output.tell, at=_stop_at)
    try:
        yield opened
    except KeyboardInterrupt:
        opened.give_up()
        raise
    finally:
        with suppress(Exception):
            opened.close()


def _stop_at(place: str) -> None:
    """Ends the process at a named place, as kill -9 would: only when LAMINA_STOP_AT asks for it (crash tests do)."""
    if os.environ.get("LAMINA_STOP_AT") == place:
        os.kill(os.getpid(), signal.SIGKILL)


@command()
def up(output: Output) -> None:
    """Start the embedded Kafka and Postgres, and the speed layer."""
    from lamina import embedded

    embedded.up(output)


@command()
def down(output: Output) -> None:
    """Stop what `up` has started; nothing is left running."""
    from lamina import embedded

    embedded.down(output)


@command()
@click.option("--once", is_flag=True, help="End when everything was shown, leaving nothing running.")
def demo(output: Output, once: bool) -> None:
    """See it all in five minutes, on real data.

    Live views over a shop's invoices, a rebuild under traffic, its proof, a late record.
    """
    from lamina.demo import run

    run(output, once=once)


@command()
@with_catalog
def plan(output: Output, catalog: Path) -> None:
    """Say what applying a catalog would do, without doing it.

    Exits 0 when there is nothing to do, 3 when there is.
    """
    from lamina.deployment import catalog_files

    files = catalog_files(catalog)
    with deployment(output) as opened:
        changes = opened.plan(files)
        _changes(output, changes)
    if any(change.action == "drop" for change in changes):
        output.tell("A deployment holds one catalog: `lamina apply` drops what is not in it with --prune only.")
    if any(change.breaks for change in changes):
        output.tell("Readers may use what would go: `lamina apply` does it with --allow-break only.")
    if any(change.action not in ("nothing", "keep") for change in changes):
        raise Different


@command()
@with_catalog
@click.option("--prune", is_flag=True, help="Drop what is deployed and is not in this catalog.")
@click.option("--allow-break", is_flag=True, help="Let columns go, or change their type, that readers may use.")
def apply(output: Output, catalog: Path, prune: bool, allow_break: bool) -> None:
    """Deploy a catalog: its sources, its views, what analysts see.

    A view whose cells change is computed from all records beside the old one, which is served until then. `plan` says
    which. A deployment holds one catalog. What is deployed and not in this one is dropped only with --prune, or a yes
    at a terminal.
    """
    from lamina.deployment import catalog_files
    from serving_layer.changes import WouldDrop

    files = catalog_files(catalog)
    with deployment(output) as opened:
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
    """Print the four texts of a view (partial, cells, merge, final), its cost, and what its columns are made of.

    Of the catalog in --catalog; where there is none, of the one that is deployed.
    """
    from lamina.deployment import catalog_files

    given = click.get_current_context().get_parameter_source("catalog")
    if given == click.core.ParameterSource.DEFAULT and not catalog.exists():
        with deployment(output) as opened:
            compiled, where = opened.deployed(), "the catalog that is deployed"
    else:
        compiled, where = compile_catalog(catalog_files(catalog)), str(catalog)
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
@click.argument("source")
@click.argument("file")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    help="By default by the file's name; needed with '-', standard input.",
)
@click.option(
    "--on-bad",
    type=click.Choice(["refuse", "quarantine"]),
    default="refuse",
    show_default=True,
    help="One bad line: send nothing, or send it and let it go to quarantine.",
)
@click.option("--ignore-unknown", is_flag=True, help="Send fields that the source does not declare, too.")
@click.option("--skip", type=click.IntRange(min=0), default=0, metavar="N", help="Leave the first N records out.")
@click.option("--key-by", multiple=True, metavar="COLUMN", help="Column that decides the partition (repeatable).")
@click.option("--rate", type=float, help="Records a second; by default as fast as the brokers take them.")
def ingest(
    output: Output,
    source: str,
    file: str,
    file_format: str | None,
    on_bad: Literal["refuse", "quarantine"],
    ignore_unknown: bool,
    skip: int,
    key_by: Sequence[str],
    rate: float | None,
) -> None:
    """Send a file (JSON lines, CSV, Parquet; - is stdin) to a source.

    Ctrl-C says how many records were sent, and the command that goes on behind them.
    """
    from master_log.ingest import Interrupted
    from master_log.ingest import ingest as send

    with deployment(output) as opened:
        declared = _known(opened.deployed().sources, source, "source")
        try:
            with output.progress(file) as told, waiting(output.tell, f"{file} is read and sent", said=output.has_bar):
                done = send(
                    declared,
                    file,
                    opened.brokers,
                    file_format=file_format,
                    on_bad=on_bad,
                    key_by=key_by or None,
                    rate=rate,
                    ignore_unknown=ignore_unknown,
                    skip=skip,
                    on_progress=told,
                )
        except Interrupted as error:
            output.tell(f"\n{error}. To go on behind them: {_with_skip(error.sent)}")
            if output.as_json:
                output.record({"source": source, "interrupted": True, "skip": error.sent})
            raise
    for bad in done.first_bad:
        output.tell(f"{file}: {bad}")
    records = "record" if done.sent == 1 else "records"
    said = f"{done.sent:,} {records} sent to {declared.topic}" + (f", {done.bad:,} of them bad" if done.bad else "")
    first = [vars(bad) for bad in done.first_bad]
    output.text(said, source=source, sent=done.sent, skipped=done.skipped, bad=done.bad, first_bad=first)


def _with_skip(count: int) -> str:
    """The command that was called, which leaves out the first `count` records."""
    given = iter(sys.argv[1:])
    kept = []
    for word in given:
        if word == "--skip":
            next(given, None)
        elif not word.startswith("--skip="):
            kept.append(word)
    return shlex.join(["lamina", *kept, "--skip", str(count)])


@command()
@click.argument("view")
@click.option("--to", required=True, metavar="FILE|kafka:TOPIC", help="A .jsonl, .csv or .parquet file (.gz too).")
def export(output: Output, view: str, to: str) -> None:
    """Write all rows of a view to a file or a topic."""
    from master_log.export import export as write
    from serving_layer.analyst import selected
    from serving_layer.sides import quoted

    with deployment(output) as opened:
        declared = _known(opened.deployed().views, view, "view")
        settings = opened.settings
        query = f"SELECT * FROM analytics.{quoted(view)}"
        with selected(settings.analyst or settings.postgres, query) as (_, rows):
            count = write(declared.columns, rows, to, opened.brokers)
    output.text(f"{count:,} rows of {view} written to {to}", view=view, rows=count, to=to)


@command()
@click.option("--until-caught-up", is_flag=True, help="End when every record that is in Kafka now is in Postgres.")
@click.option("--max-records", default=500_000, show_default=True, help="Records in one micro-batch, at the most.")
@click.option("--mark", hidden=True, help="Tells this process from others.")
def speed(output: Output, until_caught_up: bool, max_records: int, mark: str | None) -> None:  # noqa: ARG001
    """Run the speed layer: keep every view fresh until stopped."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    _wait_for_services(output, stopping)
    if stopping.is_set():
        return
    with deployment(output) as opened:
        opened.database.waiting(opened.require_installed, give_up=stopping.is_set)
        opened.speed(stopping, max_records=max_records).run(until_caught_up=until_caught_up)


def _wait_for_services(output: Output, stopping: threading.Event) -> None:
    """Returns when the embedded services run, or others are set: where one of them runs, the other is waited for."""
    from lamina.services.embedded import NotRunning

    told = False
    while not stopping.is_set():
        try:
            Settings.read()
            return
        except NotRunning as error:
            if not error.one_runs:
                raise
            if not told:
                output.tell(f"{error.what}: {error.evidence} Waiting; `lamina up` starts it.")
            told = True
            stopping.wait(1.0)


@command()
@click.argument("source")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@click.option("--reason", required=True, metavar="TEXT", help="Why: it is kept with the record's name, for ever.")
def skip(output: Output, source: str, partition: int, offset: int, reason: str) -> None:
    """Skip one record that stops a source: it goes to quarantine.

    Views, the master log, rebuilds and checks are without it from now on.
    """
    with deployment(output) as opened:
        declared = _known(opened.deployed().sources, source, "source")
        new = opened.skip(declared, partition, offset, reason)
    named = f"{source}: partition {partition}, offset {offset} of {declared.topic}"
    output.text(
        f"{named} is skipped" if new else f"{named} was skipped before",
        source=source,
        topic=declared.topic,
        partition=partition,
        offset=offset,
        reason=reason,
        new=new,
    )


@command()
@click.argument("sources", nargs=-1)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Go on where Kafka removed or lost records that should be in the log; which, is kept.",
)
def archive(output: Output, sources: Sequence[str], accept_loss: bool) -> None:
    """Take what Kafka holds of sources (all, by default) into the log."""
    with deployment(output) as opened:
        catalog = opened.deployed()
        rows, failed = [], []
        for name in sources or catalog.sources:
            source = _known(catalog.sources, name, "source")
            try:
                end = opened.brokers.latest(source.topic)
                count = opened.batch.archive_source(source, end, accept_loss=accept_loss)
                rows.append((name, count, str(opened.log.held(source))))
            except LaminaError as error:  # the records of the others do not wait for this one
                output.error(error)
                failed.append(name)
        output.table(("source", "records", "held"), rows)
        if failed:
            sys.exit(1)


@command()
@click.argument("sources", nargs=-1)
def maintain(output: Output, sources: Sequence[str]) -> None:
    """Compact the log of sources (all, by default), and remove what nothing needs any more.

    Every backup of the last LAMINA_BACKUP_DAYS can be restored afterwards.
    """
    from lamina.maintenance import maintain as run

    with deployment(output) as opened:
        declared = opened.deployed().sources
        done = run(opened, [_known(declared, name, "source") for name in sources or declared])
    output.tell(f"generations dropped: {', '.join(map(str, done.dropped)) or 'none'}")
    names = ("source", "files compacted", "snapshots expired", "files removed")
    output.table(names, [(name, log.compacted, log.expired, log.removed) for name, log in done.logs.items()])
    for error in done.failed:
        output.error(error)
    if done.failed:
        sys.exit(1)


@command()
@click.argument("views", nargs=-1)
@click.option("--leap", is_flag=True, help="Take the queries over and go on from the end of the log.")
def rebuild(output: Output, views: Sequence[str], leap: bool) -> None:
    """Recompute views (all, by default), prove and check them, hand them over."""
    with deployment(output) as opened:
        opened.require_installed()
        verdicts: list[Verdict] = []
        proofs = opened.batch.rebuild(views, leap=leap, on_checks=verdicts.extend)
        _proofs(output, proofs, fail=False)
        _verdicts(output, verdicts)
        if _blocked(output, verdicts) or any(each.differing for each in proofs):
            raise Different


@lamina.group()
def step() -> None:
    """The steps of a rebuild, one by one, for a scheduler. Each can be repeated."""


@command(parent=step)
@click.argument("views", nargs=-1)
@click.option("--leap", is_flag=True, help="Take the queries over and go on from the end of the log.")
@click.option("--key", help="A name for this request: repeated, it gives the rebuild that it has begun.")
@click.option("--due", is_flag=True, help="Leave views out whose `rebuild_every` is not over.")
def seal(output: Output, views: Sequence[str], leap: bool, key: str | None, due: bool) -> None:
    """Begin a rebuild: open a generation of each view at its cut.

    Prints the rebuild's id and its views. Where none is due, nothing begins.
    """
    from serving_layer.rebuilds import Scheduler

    with deployment(output) as opened:
        opened.require_installed()
        batch, by = opened.batch, Scheduler(key)
        if due and not (views := batch.due(views)):
            output.text("no view is due", rebuild=None, views=[])
            return
        id = batch.leap_seal(views, by=by) if leap else batch.seal(views, by=by)
        names = [each.view for each in batch.generations(id)]
        output.text(f"rebuild {id}: {', '.join(names)}", rebuild=id, views=names)


@command(parent=step, name="archive")
@with_rebuild
def step_archive(output: Output, id: int | None) -> None:
    """Take every record below the cuts into the master log."""
    with deployment(output) as opened:
        opened.batch.archive(_running(opened, id))


@command(parent=step)
@click.argument("views", nargs=-1)
@with_rebuild
def compute(output: Output, views: Sequence[str], id: int | None) -> None:
    """Compute the cells of views (all, by default) below their cuts."""
    with deployment(output) as opened:
        id = _running(opened, id)
        for name in views or [each.view for each in opened.batch.generations(id)]:
            opened.batch.compute(id, name)


@command(parent=step)
@with_rebuild
def go_live(output: Output, id: int | None) -> None:
    """Fold the realtime views into the new cells.

    Micro-batches merge into them from then on. Prints the rebuild's id and its views.
    """
    with deployment(output) as opened:
        id = _running(opened, id)
        opened.batch.go_live(id)
        names = [each.view for each in opened.batch.generations(id)]
        output.text(f"rebuild {id}: {', '.join(names)}", rebuild=id, views=names)


@command(parent=step)
@click.argument("views", nargs=-1)
@with_rebuild
def prove(output: Output, views: Sequence[str], id: int | None) -> None:
    """Compare every new cell with the one that is served.

    Of the views named; where none is, of all, and their checks are run, too.
    """
    with deployment(output) as opened:
        id = _running(opened, id)
        _proofs(output, opened.batch.prove(id, views), fail=False)
        if not views:
            _verdicts(output, opened.batch.check(id))


@command(parent=step, name="check")
@with_rebuild
def step_check(output: Output, id: int | None) -> None:
    """Run the checks of views over the new generations."""
    with deployment(output) as opened:
        _verdicts(output, opened.batch.check(_running(opened, id)))


@command(parent=step)
@with_rebuild
@click.option("--anyway", is_flag=True, help="Hand over what is held back, too; also after the rebuild.")
def hand_over(output: Output, id: int | None, anyway: bool) -> None:
    """Let readers read the new generations, all at once.

    Prints the views that were handed over, those over them, and those that are held back.
    """
    with deployment(output) as opened:
        id = _running(opened, id)
        held = opened.batch.hand_over(id, anyway=anyway)
        moved = opened.batch.handed_over(id, held)
        if held:
            blocked = [each for each in opened.batch.verdicts(id) if each.blocked]
            for each in blocked:
                output.tell(each.sentence)
            output.tell(f"held back by their {'checks' if blocked else 'proof'}: {', '.join(held)}")
        output.text(f"handed over: {', '.join(moved) or 'none'}", rebuild=id, handed_over=moved, held=held)
        if held:
            raise Different


@command(parent=step)
@with_rebuild
def retire(output: Output, id: int | None) -> None:
    """End the rebuild: retire what nobody reads or may roll back to."""
    with deployment(output) as opened:
        opened.batch.retire(_running(opened, id))


@command(parent=step)
@with_rebuild
def abandon(output: Output, id: int | None) -> None:
    """Give a rebuild up; nothing that is read changes."""
    with deployment(output) as opened:
        opened.batch.abandon(_running(opened, id))


@command()
@click.argument("view")
def rollback(output: Output, view: str) -> None:
    """Hand a view back to the generation before, kept current since."""
    with deployment(output) as opened:
        opened.require_installed()
        before, after = opened.batch.roll_back(view)
        output.text(f"{view}: generation {before} → {after}", view=view, before=before, after=after)


@command()
@click.argument("views", nargs=-1)
@click.option("--live", is_flag=True, help="Run the checks that the catalog declares for views, as they are read now.")
def check(output: Output, views: Sequence[str], live: bool) -> None:
    """Compare every row of views with their whole SELECT.

    Spark runs it over every record below the progress that was read with the view. With --live, Postgres runs the
    checks of the catalog (ADD CONSTRAINT) instead, and Spark is not needed.
    """
    from batch_layer.check import EXAMPLES
    from batch_layer.check import check as run

    with deployment(output) as opened:
        opened.require_installed()
        if live:
            verdicts = opened.check_live(views)
            _verdicts(output, verdicts)
            if _blocked(output, verdicts):
                raise Different
            return
        spark, log = opened.spark, opened.log
        with waiting(output.tell, "every record is read from the log and Kafka, every row compared"):
            results = run(opened.database, spark, log, opened.brokers, views)
    rows = [
        (
            each.view,
            each.rows,
            len(each.missing),
            len(each.surplus),
            "equal" if each.equal else "DIFFERENT",
            str(each.below),
        )
        for each in results
    ]
    output.table(("view", "rows", "missing", "surplus", "result", "every record below"), rows)
    for each in results:
        if each.skipped:
            output.tell(
                f"{each.view}: {each.skipped:,} records were skipped by name (`lamina skip`) and are in neither"
            )
        for what, examples in (("missing", each.missing), ("surplus", each.surplus)):
            for row in examples[:EXAMPLES]:
                output.tell(f"{each.view}: {what} {row}")
    if not all(each.equal for each in results):
        raise Different


@command()
@click.argument("view")
def receipt(output: Output, view: str) -> None:
    """Print what a view shows now, as one line that can be verified later.

    The line has the offsets below which every record is in it, the version and generation, and a digest of the rows. It
    is read in one snapshot, as the analyst. SQL has the same: SELECT lamina.receipt('view').
    """
    from lamina.receipts import of_view

    settings = Settings.read()
    with waiting(output.tell, "every row is read and digested"):
        sys.stdout.write(of_view(settings.reader(), view) + "\n")


@command()
@click.argument("receipt", type=click.File())
def verify(output: Output, receipt: TextIO) -> None:
    """Compute what a receipt says (a file, or - for stdin) from the master log.

    Spark runs the SELECT of then over every record below the receipt's offsets. Exits 3 when the rows are others.
    """
    from lamina.receipts import read, show

    given = read(receipt)
    with deployment(output) as opened:
        opened.require_installed()
        if not show(output, opened, given):
            raise Different


@command()
@click.argument("tests", nargs=-1)
@with_catalog
@click.option("--seed", type=int, help="Decides how records fall into micro-batches; a failed test tells it.")
def test(output: Output, tests: Sequence[str], catalog: Path, seed: int | None) -> None:
    """Run the tests of a catalog: files `*.test` beside its views.

    Each says which records come in and which rows go out, and is run by micro-batches, by a rebuild, and by DuckDB.
    TESTS are names, or beginnings of names; all by default. Neither Kafka nor a deployment is needed.
    """
    from lamina.testing import run

    found = run(catalog, tests, seed, output.tell)
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
    if not all(each.equal for each in found):
        raise Different


@command()
@click.option("--alarms", is_flag=True, help="Only what needs a person: quick, for a health check.")
def status(output: Output, alarms: bool) -> None:
    """Show views, queries, generations and the last rebuild.

    Exits 1 when something needs a person.
    """
    from lamina.statuses import show, show_alarms

    with deployment(output) as opened:
        opened.require_installed()
        (show_alarms if alarms else show)(output, opened)


@command()
@click.argument("query")
@click.option("--limit", type=int, help="Rows at the most.")
def sql(output: Output, query: str, limit: int | None) -> None:
    """Run one SELECT as the analyst, read-only."""
    from lamina.statuses import behind_of
    from serving_layer.analyst import select
    from serving_layer.database import PostgresError

    settings = Settings.read()
    with waiting(output.tell, "Postgres is asked"):
        columns, rows = select(settings.reader(), query, limit)
    output.table(columns, rows)
    with suppress(LaminaError, PostgresError), deployment(output) as opened:  # which the answer does not depend on
        for line in behind_of(opened, query):
            output.tell(line)


@command()
def password(output: Output) -> None:
    """Give the analyst's role the password in LAMINA_ANALYST."""
    with deployment(output) as opened:
        role = opened.set_password()
        output.text(f"{role} has the password of LAMINA_ANALYST", role=role)


def _running(opened: Deployment, id: int | None) -> int:
    from serving_layer import rebuilds

    opened.require_installed()
    with opened.database.begin() as connection:
        return rebuilds.get(connection, id).id


def _known(declared: Any, name: str, what: str) -> Any:
    if name not in declared:
        raise LaminaError(
            f"There is no {what} named {name}",
            evidence="deployed: " + (", ".join(declared) or "none"),
            way_out="`lamina apply` deploys a catalog.",
        )
    return declared[name]


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


def _verdicts(output: Output, verdicts: Sequence[Verdict]) -> None:
    if output.as_json:
        for each in verdicts:
            output.record({**vars(each), "result": each.result})
    elif verdicts:
        rows = [(each.view, each.check, each.failing, each.result) for each in verdicts]
        output.table(("view", "check", "failing", "result"), rows)


def _blocked(output: Output, verdicts: Sequence[Verdict]) -> bool:
    """Whether a check that blocks has failed; every check that fails is told in a sentence."""
    for each in verdicts:
        if each.failing:
            output.tell(each.sentence)
    return any(each.blocked for each in verdicts)


def _proofs(output: Output, proofs: Sequence[Any], *, fail: bool = True) -> None:
    output.table(
        ("view", "generation", "against", "cells", "differing"),
        [(each.view, each.generation, each.against, each.cells, each.differing) for each in proofs],
    )
    for each in proofs:
        for example in each.examples:
            output.tell(f"{each.view}: {example}")
    if fail and any(each.differing for each in proofs):
        raise Different


def interrupt_again_if_lost() -> None:
    """Makes a Ctrl-C come again that fell where Python can raise nothing: in `__del__`, or a weak reference's callback.

    Python only prints such an interrupt, and the command would go on to its end. The second comes by a timer, because
    the callback may run inside any lock of the threads, so that it must not start one of its own.
    """

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            sys.__unraisablehook__(unraisable)

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = hook


def main() -> None:
    """The entry point; Ctrl-C ends with 130 and no traceback."""
    interrupt_again_if_lost()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - None where a shell has closed it (`>&-`)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    try:
        lamina(standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _nobody_reads()


def _nobody_reads() -> NoReturn:
    """The reader of a pipe has gone (`| head`): there is nobody left to tell, and nothing went wrong."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


if __name__ == "__main__":
    main()
