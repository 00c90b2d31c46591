"""Commands that move records into a source, and rows out of a view."""

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
from lamina.terminal.render import Output
from serving_layer.narration import amount, waiting

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
        sending = waiting(output.tell, _narration(file), shown=output.err.is_terminal)
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
    parts = [f"{amount(done.sent, 'record')} sent to {topic}"]
    if done.bad:
        parts.append(f"{done.bad:,} of them bad")
    if done.with_null:
        parts.append(f"{done.with_null:,} counted with NULL for fields that cannot be read")
    if done.not_utf8:
        parts.append(f"{done.not_utf8:,} counted with replacement characters, since they are not UTF-8")
    return ", ".join(parts)


def _narration(file: str) -> str:
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
    output.text(f"{amount(count, 'row')} of {view} written to {to}", view=view, rows=count, to=to)
