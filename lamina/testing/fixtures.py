"""Tests next to the views of a catalog: `*.test` files that list incoming records and expected rows.

    -- A refund counts against the day on which it was given.

    -- given invoice_lines
    {"country": "France", "amount": "12.50", "ts": "2026-03-01T10:00:00Z"}
    {"country": "France", "amount": "-2.50", "ts": "2026-03-01T11:00:00Z"}

    -- expect revenue
    {"day": "2026-03-01", "country": "France", "revenue": "10.00"}

A line is a JSON object, as a producer sends it and as `lamina sql --json` prints it. Other lines that begin with `--`
are comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interchange.json_text import Number, as_written, instant
from interchange.writers import key_of, value_of
from lamina.authoring.catalog_files import files_in, read_text
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import LaminaError
from view_algebra.record_columns import DELETED
from view_algebra.refusals import suggestion

ENDING = ".test"

TIME, KEY, HEADERS = "kafka_timestamp", "kafka_key", "kafka_headers"
"""Names that a line may have besides the fields: the record's time in Kafka, its key, and its headers as an object."""

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
"""Time in Kafka of a test's first record, if the line does not say it. Each further record is a millisecond later."""


@dataclass(frozen=True)
class FixtureLine:
    """A line of a test: its place, and the object in it."""

    place: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A record as Kafka would hold it."""

    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None = None


@dataclass(frozen=True)
class Fixture:
    """One test: the records of its sources, in order, and the expected rows of its views."""

    name: str
    records: Mapping[str, tuple[Record, ...]]
    expect: Mapping[str, tuple[FixtureLine, ...]]


def tests_of(folder: Path, catalog: Catalog, names: Sequence[str]) -> list[Fixture]:
    """The tests in a catalog's folder whose names begin with one of `names`, or all if `names` is empty.

    Raises LaminaError for a folder without such a test.
    """
    files = files_in(folder, ENDING)
    tests = [fixture(str(path.relative_to(folder)), read_text(path), catalog) for path in files]
    begins = tuple(names) or ("",)
    wanted = [test for test in tests if test.name.startswith(begins) or Path(test.name).name.startswith(begins)]
    if not wanted:
        raise LaminaError(
            f"There is no test in {folder}" + (f" whose name begins with {' or '.join(names)}" if names else ""),
            evidence=f"wanted files *{ENDING} next to the .sql files",
            way_out="Write `-- given SOURCE` with JSON lines below it, and `-- expect VIEW` with the rows.",
        )
    return wanted


def needed(catalog: Catalog, views: Iterable[str]) -> Catalog:
    """The part of a catalog that these views need."""
    wanted, todo = set[str](), list(views)
    while todo:
        name = todo.pop()
        todo += [read for read in catalog.views[name].reads if read not in wanted]
        wanted.add(name)
    chosen = {name: replace(view, checks=()) for name, view in catalog.views.items() if name in wanted}
    sources = {source for view in chosen.values() for source in view.sources}
    return Catalog({name: source for name, source in catalog.sources.items() if name in sources}, chosen)


def fixture(path: str, text: str, catalog: Catalog) -> Fixture:
    """The test in a file. Raises LaminaError for a malformed line, and for a name that the catalog lacks."""
    records: dict[str, list[Record]] = {}
    expect: dict[str, list[FixtureLine]] = {}
    source, rows = None, None
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        if (head := re.fullmatch(r"--\s*(given|expect)\s+(\w+)\s*", line)) is not None:
            name, is_given = head[2], head[1] == "given"
            declared: Mapping[str, Source | View] = catalog.sources if is_given else catalog.views
            if name not in declared:
                what = f"{place}: there is no {'source' if is_given else 'view'} named {name}"
                raise LaminaError(what, evidence=line, way_out=suggestion(name, declared))
            source, rows = (catalog.sources[name], None) if is_given else (None, expect.setdefault(name, []))
            if is_given:
                records.setdefault(name, [])
        elif line.strip() and not line.startswith("--"):
            parsed = FixtureLine(place, _object(place, line))
            if source is not None:
                records[source.name].append(_record(source, parsed, FIRST + timedelta(milliseconds=count)))
                count += 1
            elif rows is not None:
                rows.append(parsed)
            else:
                raise LaminaError(
                    f"{place}: a line before any `-- given` and `-- expect`",
                    evidence=line,
                    way_out="Write `-- given SOURCE` above records, and `-- expect VIEW` above rows.",
                )
    if not expect:
        raise LaminaError(f"{path} expects nothing", way_out="Write `-- expect VIEW`, and the view's rows below it.")
    return Fixture(
        path.removesuffix(ENDING), {n: tuple(r) for n, r in records.items()}, {n: tuple(r) for n, r in expect.items()}
    )


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_float=Number)
        as_written(value)  # writing takes more levels than reading
    except RecursionError as error:
        raise LaminaError(
            f"{place}: nested too deep", evidence=f"{line[:60]} …", way_out="Write lists and objects with fewer levels."
        ) from error
    except ValueError as error:
        raise LaminaError(f"{place}: not JSON: {error}", evidence=line, way_out="Write one JSON object.") from error
    if not isinstance(value, dict):
        raise LaminaError(f"{place}: not a JSON object", evidence=line, way_out='Write {"column": value, …}.')
    return value


def _record(source: Source, line: FixtureLine, timestamp: datetime) -> Record:
    """The record of a line, keyed as `lamina ingest` keys it. It is a table's deletion if `kafka_deleted` is true."""
    value = dict(line.value)
    time, key, deleted = value.pop(TIME, None), value.pop(KEY, None), value.pop(DELETED, False)
    headers = _headers(line, value.pop(HEADERS, None))
    declared = [source.field(column.name) for column in source.columns]
    unknown = [name for name in value if name not in declared]
    if unknown and not source.has_changes:
        what = f"{line.place}: {source.name} has no field {unknown[0]}"
        raise LaminaError(what, evidence=json.dumps(line.value), way_out=suggestion(unknown[0], declared))
    if time is not None:
        timestamp = _time(line, time)
    fields = value if not source.has_changes else value.get("after") or value.get("before") or {}
    if key is None:
        encoded_key = key_of(source, [*map(source.field, source.unique)], as_written(fields).encode())
    else:
        encoded_key = (key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)).encode()
    record = as_written(value).encode()
    return Record(timestamp, encoded_key, None if deleted else value_of(source, record), headers)


def _headers(line: FixtureLine, headers: object) -> tuple[tuple[str, bytes | None], ...] | None:
    if headers is None:
        return None
    if not isinstance(headers, dict) or not all(value is None or isinstance(value, str) for value in headers.values()):
        way_out = f'Write "{HEADERS}": {{"key": "value"}}.'
        raise LaminaError(f"{line.place}: {HEADERS} are not texts by key", evidence=str(headers), way_out=way_out)
    return tuple((key, None if value is None else value.encode()) for key, value in headers.items()) or None


def _time(line: FixtureLine, text: object) -> datetime:
    try:
        return instant(str(text))
    except ValueError as error:
        way_out = 'Write it as "2026-03-01T10:00:00Z".'
        raise LaminaError(f"{line.place}: {TIME} is not a time", evidence=str(text), way_out=way_out) from error
