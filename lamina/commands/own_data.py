"""`lamina init`: writes a source and a view for a file or a topic."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.commands.command import command, open_deployment, with_catalog, with_format
from lamina.configuration.setting_texts import catalog_folder
from lamina.terminal.render import Output
from serving_layer.narration import waiting
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from interchange.csv_forms import CsvForms
    from interchange.sampling import Sample
    from lamina.authoring.first_catalog import Proposal


@dataclass(frozen=True)
class _Origin:
    """Sampled records: their place, and the options for reading a file of them.

    `of_texts` is True for CSV and TSV, in which every value is a text.
    """

    sample: Sample
    place: str
    topic: str | None
    options: Sequence[str] = ()
    of_texts: bool = False


@command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic that exists (repeatable).")
@with_catalog
@click.option("--name", metavar="NAME", help="The source's name; by default the file's or the topic's.")
@click.option("--table", is_flag=True, help="Declare a table: the newest record of each key counts.")
@click.option("--key", multiple=True, metavar="COLUMN", help="Column that identifies a record (repeatable).")
@with_format
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Records to sample: the first of a file, the newest of a topic.",
)
@click.option("--force", is_flag=True, help="Overwrite files of the catalog.")
def init(
    output: Output,
    files: Sequence[str],
    topics: Sequence[str],
    catalog: Path,
    name: str | None,
    table: bool,
    key: Sequence[str],
    file_format: str | None,
    null: Sequence[str],
    timestamp_format: Sequence[str],
    sample: int,
    force: bool,
) -> None:
    """Write a source and a first view for your own records.

    Records come from a FILE of JSON lines, CSV or Parquet (also .gz and .zst), or from a topic. Types are guessed from
    the first records, and each of these can be counted under the guessed types. The files are yours to edit.
    """
    from interchange.csv_forms import CsvForms
    from lamina.authoring.first_catalog import name_of, name_of_file, proposal
    from view_algebra.language.quoting import spark_name

    forms = CsvForms(null, timestamp_format)
    if not files and not topics:
        raise click.UsageError("Name a file, or a topic with --topic.")
    if len(files) + len(topics) > 1 and (name or key or file_format):
        raise click.UsageError("--name, --key and --format need a single file or topic.")
    if name and spark_name(name) != name:
        raise click.UsageError(f"SQL takes {name!r} only in quotes. Name the source {name_of(name)!r}, for example.")
    if "-" in files and not name:
        raise click.UsageError("Standard input has no name. Name the source with --name.")
    proposals: dict[str, tuple[_Origin, Proposal]] = {}
    for origin in _samples(output, files, topics, file_format, forms, sample):
        source = name or (name_of_file(origin.place) if origin.topic is None else name_of(origin.topic))
        if source in proposals:
            raise LaminaError(
                f"Two sources would be named {source}", way_out="Call `lamina init` for each, with --name."
            )
        proposed = proposal(origin.sample, source, origin.place, topic=origin.topic, key=key, as_table=table)
        proposals[source] = origin, proposed
    texts = {path: text for _, proposed in proposals.values() for path, text in proposed.files.items()}
    _check(catalog, texts, force=force)
    for path, text in texts.items():
        (catalog / path).parent.mkdir(parents=True, exist_ok=True)
        (catalog / path).write_text(text, encoding="utf-8")
    for origin, proposed in proposals.values():
        _show(output, origin, proposed, catalog)


def _samples(
    output: Output,
    files: Sequence[str],
    topics: Sequence[str],
    file_format: str | None,
    forms: CsvForms,
    most: int,
) -> list[_Origin]:
    from interchange.files import format_of
    from interchange.sampling import file_sample
    from interchange.topic_sampling import topic_sample

    options = ["--format", file_format] if file_format else []
    options += [word for text in forms.nulls for word in ("--null", text)]
    options += [word for text in forms.times for word in ("--timestamp-format", text)]
    samples = []
    for file in files:
        if Path(file).is_dir():
            raise LaminaError(f"{file} is a folder", way_out="Name a file in it.")
        with waiting(output.tell, f"sampling {file}"):
            of_texts = format_of(file, file_format) in ("csv", "tsv")
            sample = file_sample(file, file_format, most, forms=forms)
            samples.append(_Origin(sample, file, None, options, of_texts))
    if topics:
        with open_deployment(output) as deployment:
            for topic in topics:
                with waiting(output.tell, f"sampling topic {topic}"):
                    sample = topic_sample(topic, deployment.brokers, most, deployment.schemas.registry)
                    samples.append(_Origin(sample, f"topic {topic}", topic))
    return samples


def _check(catalog: Path, texts: dict[str, str], *, force: bool) -> None:
    """Raises LaminaError if a file or a name is taken, or if the catalog would not compile."""
    from lamina.authoring.catalog_files import catalog_files, files_in
    from view_algebra import compile_catalog

    existing = [path for path in texts if (catalog / path).exists()]
    if existing and not force:
        raise LaminaError(
            f"The catalog at {catalog} has {' and '.join(existing)}; nothing was written",
            way_out="Choose another name with --name, or overwrite with --force.",
        )
    has_others = catalog.is_dir() and files_in(catalog, ".sql")
    others = {path: text for path, text in catalog_files(catalog).items() if path not in texts} if has_others else {}
    compile_catalog({**others, **texts})


def _show(output: Output, origin: _Origin, proposed: Proposal, catalog: Path) -> None:
    """Prints the written files, the columns, and the next commands."""
    sample, following = origin.sample, _next_commands(origin, proposed, catalog)
    if output.as_json:
        output.record(
            {
                "source": proposed.source,
                "view": proposed.view,
                "topic": proposed.topic,
                "files": [str(catalog / path) for path in proposed.files],
                "records": sample.records,
                "all": sample.is_all,
                "bad": sample.bad,
                "event_time": proposed.event_time,
                "key": list(proposed.key),
                "columns": [
                    {"column": column.name, "field": column.field.name, "type": column.kind.spark}
                    for column in proposed.columns
                ],
                "next": following,
            }
        )
        return
    output.tell(f"{origin.place}: types were guessed from {sample.part}")
    if sample.bad:
        output.tell(f"{sample.bad:,} of them cannot be read by any source: {'; '.join(map(str, sample.first_bad))}")
    if sample.topic.deletions:
        output.tell(f"{sample.topic.deletions:,} more have no value: in a table (--table), they delete a row")
    for path in proposed.files:
        output.tell(f"{catalog / path} written")
    if origin.of_texts and (times := [column.name for column in proposed.columns if column.looks_like_a_time]):
        output.tell(
            f"text columns that may hold times: {', '.join(times)}; to read them as times, repeat this command with"
            " --force and --timestamp-format, for example '%d/%m/%Y %H:%M'"
        )
    output.table(("column", "type"), [(column.name, column.kind.spark) for column in proposed.columns])
    output.text("\nnext:\n" + "\n".join(f"  {command}" for command in following))


def _next_commands(origin: _Origin, proposed: Proposal, catalog: Path) -> list[str]:
    """The commands that deploy the source, send the file, and show the view."""
    named = [] if catalog == catalog_folder() else ["--catalog", str(catalog)]
    commands = [["lamina", "apply", *named]]
    if origin.topic is None:
        bad = ["--on-bad", "quarantine"] if origin.sample.bad else []
        unknown = ["--ignore-unknown"] if origin.sample.has_unnamed else []
        commands.append(["lamina", "ingest", proposed.source, origin.place, *origin.options, *bad, *unknown, "--wait"])
    order = f" ORDER BY {proposed.order}" if proposed.order else ""
    commands.append(["lamina", "sql", f"SELECT * FROM {proposed.view}{order} LIMIT 10"])
    return [_quoted(words) for words in commands]


def _quoted(words: Sequence[str]) -> str:
    return " ".join(
        f'"{word}"' if word.startswith("SELECT ") and "`" not in word else shlex.quote(word) for word in words
    )
