"""Commands that move records into a source, into the log and out of a view, or that skip one."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lamina.commands.command import command, look_up, open_deployment, with_format
from lamina.terminal.failures import as_lamina_error
from lamina.terminal.render import Output
from serving_layer.narration import waiting

if TYPE_CHECKING:
    from interchange.ingest import Tally
    from lamina.operations.deployment import Deployment
    from view_algebra.compiled import Source


@command()
@click.argument("source")
@click.argument("file")
@with_format
@click.option(
    "--on-bad",
    type=click.Choice(["refuse", "quarantine"]),
    default="refuse",
    show_default=True,
    help="Send nothing if a line is bad, or send it and let it go to quarantine.",
)
@click.option("--ignore-unknown", is_flag=True, help="Also send fields that the source does not declare.")
@click.option("--skip", type=click.IntRange(min=0), default=0, metavar="N", help="Leave the first N records out.")
@click.option("--key-by", multiple=True, metavar="COLUMN", help="Column that decides the partition (repeatable).")
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    help="Records a second. By default as fast as the brokers take them.",
)
@click.option("--wait", is_flag=True, help="Wait until the views show the records.")
def ingest(
    output: Output,
    source: str,
    file: str,
    file_format: str | None,
    null: Sequence[str],
    timestamp_format: Sequence[str],
    on_bad: Literal["refuse", "quarantine"],
    ignore_unknown: bool,
    skip: int,
    key_by: Sequence[str],
    rate: int | None,
    wait: bool,
) -> None:
    """Send the records of a file to a source's topic.

    The file holds JSON lines, CSV or Parquet, optionally compressed with gzip or Zstandard, and - is standard input.
    Ctrl-C prints the number of sent records, and the command that continues after them.
    """
    from interchange.csv_forms import CsvForms
    from interchange.ingest import Options
    from interchange.ingest import ingest as send
    from interchange.writers import WriterSchemas

    with open_deployment(output) as deployment:
        declared = look_up(deployment.deployed().sources, source, "source")
        sending = waiting(output.tell, _waited_for(file), shown=output.has_bar)
        with _resumable(output, source), output.progress(file) as on_progress, sending:
            done = send(
                declared,
                file,
                deployment.brokers,
                Options(
                    file_format=file_format,
                    forms=CsvForms(null, timestamp_format),
                    on_bad=on_bad,
                    key_by=key_by or None,
                    rate=rate,
                    ignore_unknown=ignore_unknown,
                    skip=skip,
                ),
                on_progress=on_progress,
                newest=WriterSchemas.of(declared, deployment.schemas.registry),
            )
        timing = {"seconds_until_visible": _wait_until_visible(output, deployment, declared)} if wait else {}
    _show_ingested(output, file, declared, done, timing)


@contextmanager
def _resumable(output: Output, source: str) -> Iterator[None]:
    """Narrates the command that continues after Ctrl-C."""
    from interchange.ingest import Interrupted

    try:
        yield
    except Interrupted as error:
        output.tell(f"\n{error}. To continue after them: {_with_skip(error.sent)}")
        if output.as_json:
            output.record({"source": source, "interrupted": True, "skip": error.sent})
        raise


def _show_ingested(output: Output, file: str, source: Source, done: Tally, timing: Mapping[str, float]) -> None:
    for bad in done.first_bad:
        output.tell(f"{file}: {bad}")
    if done.first_with_null:
        output.tell(f"{file}: counted with NULL for a field: {done.first_with_null}")
    output.text(
        _summary(done, source.topic),
        source=source.name,
        sent=done.sent,
        skipped=done.skipped,
        bad=done.bad,
        first_bad=[vars(bad) for bad in done.first_bad],
        with_null=done.with_null,
        first_with_null=done.first_with_null and vars(done.first_with_null),
        not_utf8=done.not_utf8,
        **timing,
    )


def _wait_until_visible(output: Output, deployment: Deployment, source: Source) -> float:
    """Waits until the views show the records. Returns the seconds that it took."""
    from lamina.operations.topic_records import wait_until_counted

    began = time.monotonic()
    with waiting(output.tell, "waiting for the speed layer to count the records"):
        wait_until_counted(deployment, source, deployment.brokers.latest(source.topic))
    seconds = round(time.monotonic() - began, 1)
    output.tell(f"visible {seconds} s after the last record was sent")
    return seconds


def _summary(done: Tally, topic: str) -> str:
    parts = [f"{done.sent:,} {'record' if done.sent == 1 else 'records'} sent to {topic}"]
    if done.bad:
        parts.append(f"{done.bad:,} of them bad")
    if done.with_null:
        parts.append(f"{done.with_null:,} counted with NULL for fields that cannot be read")
    if done.not_utf8:
        parts.append(f"{done.not_utf8:,} counted with replacement characters, since they are not UTF-8")
    return ", ".join(parts)


def _waited_for(file: str) -> str:
    """The words for the wait. A pipe, which may have no end, is copied first."""
    if file == "-" or Path(file).is_fifo():
        return f"copying {file} until its writer closes it, then sending it"
    return f"reading and sending {file}"


def _with_skip(count: int) -> str:
    """The command that was called, with an option to leave out the first `count` records."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word == "--skip":
            next(words, None)
        elif not word.startswith("--skip="):
            kept.append(word)
    return shlex.join(["lamina", *kept, "--skip", str(count)])


@command()
@click.argument("source")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@click.option(
    "--reason", required=True, metavar="TEXT", help="The reason, stored permanently with the record's position."
)
def skip(output: Output, source: str, partition: int, offset: int, reason: str) -> None:
    """Skip one record that stops a source, and quarantine it.

    From now on, views, the master log, rebuilds and checks leave it out.
    """
    from lamina.operations import topic_records

    with open_deployment(output) as deployment:
        declared = look_up(deployment.deployed().sources, source, "source")
        new = topic_records.skip(deployment, declared, partition, offset, reason)
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
def schemas(output: Output, sources: Sequence[str]) -> None:
    """List the schemas of a registry that records name.

    Without SOURCES, those of all sources are listed. A schema is `lacked` if the registry did not have it when the
    first record with it came. Such records are bad. Once the registry has the schema, raise ask_again in OPTIONS of the
    source. Then `lamina apply` counts them.
    """
    from serving_layer.promise.kept_schemas import listed

    with open_deployment(output) as deployment:
        deployment.require_installed()
        deployed = deployment.deployed().sources
        for name in sources:
            look_up(deployed, name, "source")
        with deployment.database.begin() as connection:
            kept = listed(connection, sources)
    columns = ("source", "ask_again", "id", "schema", "since", "bad_records")
    rows = [
        (schema.source, schema.ask_again, schema.id, schema.kind or "lacked", schema.kept_at, schema.bad_records)
        for schema in kept
    ]
    output.table(columns, rows)


@command()
@click.argument("sources", nargs=-1)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Continue even if Kafka removed or lost records that should be in the log, and record which.",
)
def archive(output: Output, sources: Sequence[str], accept_loss: bool) -> None:
    """Archive the records that Kafka holds.

    Without SOURCES, those of all sources are archived.
    """
    if accept_loss and not sources:
        raise click.UsageError("--accept-loss needs SOURCES: it accepts the loss of these only")
    with open_deployment(output) as deployment:
        catalog = deployment.deployed()
        rows, failed = [], []
        for name in sources or catalog.sources:
            source = look_up(catalog.sources, name, "source")
            try:
                end = deployment.brokers.latest(source.topic)
                count = deployment.batch.logs.archive(source, end, accept_loss=accept_loss)
                rows.append((name, count, str(deployment.log.held(source))))
            except Exception as error:  # noqa: BLE001 (the other sources do not wait for this one)
                output.error(as_lamina_error(error))
                failed.append(name)
        output.table(("source", "records", "held"), rows)
        if failed:
            sys.exit(1)


@command()
@click.argument("sources", nargs=-1)
def maintain(output: Output, sources: Sequence[str]) -> None:
    """Compact the master log, and vacuum tables.

    It also removes files that nothing needs any more from the logs of SOURCES, by default of all. Afterwards, every
    backup of the last LAMINA_BACKUP_DAYS can still be restored.
    """
    from lamina.operations.maintenance import maintain as run

    with open_deployment(output) as deployment:
        declared = deployment.deployed().sources
        done = run(deployment, [look_up(declared, name, "source") for name in sources or declared])
    output.tell(f"generations dropped: {', '.join(map(str, done.dropped)) or 'none'}")
    output.tell(f"tables vacuumed: {', '.join(done.vacuumed) or 'none'}")
    names = ("source", "files compacted", "snapshots expired", "files removed")
    output.table(names, [(name, log.compacted, log.expired, log.removed) for name, log in done.logs.items()])
    for error in done.failed:
        output.error(error)
    if done.failed:
        sys.exit(1)


@command()
@click.argument("view")
@click.option("--to", required=True, metavar="FILE|kafka:TOPIC", help="A .jsonl, .csv or .parquet file (.gz too).")
def export(output: Output, view: str, to: str) -> None:
    """Write all rows of a view to a file or a topic."""
    from interchange.export import export as write
    from serving_layer.readers.analyst import selected
    from view_algebra.language.quoting import quoted

    with open_deployment(output) as deployment:
        declared = look_up(deployment.deployed().views, view, "view")
        settings = deployment.settings
        query = f"SELECT * FROM analytics.{quoted(view)}"
        written = waiting(output.tell, f"writing the rows of {view} to {to}")
        with written, selected(settings.analyst or settings.postgres, query) as (_, rows):
            count = write(declared.columns, rows, to, deployment.brokers)
    output.text(f"{count:,} rows of {view} written to {to}", view=view, rows=count, to=to)
