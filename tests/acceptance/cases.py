"""The cases that other projects published: what they sent, and the rows that a query over all of it gives.

Cases are answered by the SELECTs of a file, one catalog for all of them; `assert_answered` compares their rows.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from tests.fix_lamina import Deployed

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY.parent / "shared" / "data"
"""The cases themselves are not the repository's to hand on."""

TYPES = {"VARCHAR": "STRING", "INTEGER": "INT", "REAL": "FLOAT", "BIGINT (MICROSECONDS)": "BIGINT"}
"""The cases' names of types as Spark's, where they differ; DuckDB knows both."""

SIGNIFICANT = 12
"""Digits to which fractions are compared: the published rows hold decimals as doubles."""

CHECKED = 6
"""One in so many is compared with Spark's rows, too: all are with those that were published."""

Row = tuple[Any, ...]

Record = bytes | tuple[bytes, bytes | None]
"""A value; or a key and a value, which is None where a row of a table is deleted."""


@dataclass(frozen=True)
class Source:
    """A topic's columns and its records in the order in which they were sent.

    options: how its records are read. A stream has no primary_key; event_time tells the versions of a table's rows.
    """

    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...]
    options: str
    event_time: str | None
    records: tuple[Record, ...]

    def declaration(self, name: str) -> str:
        """The source by that name, of one partition: arrival is an order."""
        columns = [f"{column} {kind}" for column, kind in self.columns]
        if self.primary_key:
            columns.append(f"PRIMARY KEY ({', '.join(self.primary_key)})")
        time = f", 'event_time' = '{self.event_time}'" if self.event_time else ""
        return f"""CREATE TABLE {name} ({", ".join(columns)})
            USING kafka OPTIONS (topic '{{topics}}_{name}', {self.options}) TBLPROPERTIES ('partitions' = '1'{time});"""


@dataclass(frozen=True)
class Case:
    """One published case over its sources, by the names that its query has for them."""

    name: str
    sources: Mapping[str, Source]
    published: tuple[Row, ...] | None
    reference: str

    @cached_property
    def expected(self) -> Counter[Row]:
        """The published rows; where those leave out late records or open windows, the reference query's over all."""
        return comparable(self.published if self.published is not None else self._over_all())

    def _over_all(self) -> list[Row]:
        with duckdb.connect() as connection:
            for name, source in self.sources.items():
                assert not source.primary_key, f"{self.name}: {name} is a table, and DuckDB has its records alone"
                columns = [f"{column} {kind}" for column, kind in source.columns]
                found = [json.loads(record) for record in source.records if isinstance(record, bytes)]
                values = [[each.get(column) for column, _ in source.columns] for each in found]
                if "_arr" in self.reference:
                    columns.append("_arr BIGINT")
                    values = [[*row, arrived] for arrived, row in enumerate(values)]
                connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)
            return list(connection.execute(self.reference).fetchall())


def read_cases(kind: str) -> dict[str, Case]:
    """The cases of one kind, by name: B over one stream, C over joins and tables."""
    with gzip.open(DATA / "cases.json.gz", "rt", encoding="utf-8") as file:
        return {each["name"]: _case(each) for each in json.load(file) if each["issue"] == kind}


def _case(found: dict[str, Any]) -> Case:
    # The reference of a join that looks up at arrival is no SQL.
    is_published = found["equals_query_over_all_data"] or found["deviation"] == "temporal_asof_arrival"
    return Case(
        found["name"],
        {each["name"]: _source(each, found) for each in found["sources"]},
        tuple(map(tuple, found["expected"]["rows"])) if is_published else None,
        found["reference_sql_duckdb"],
    )


def _source(declared: dict[str, Any], case: dict[str, Any]) -> Source:
    columns = {each["name"]: TYPES.get(each["type"].upper(), each["type"].upper()) for each in declared["columns"]}
    records = _records(declared, case)
    if declared["kind"] == "stream":
        return Source(tuple(columns.items()), (), "format 'json'", None, records)
    keys = declared.get("primary_key") or [each["name"] for each in declared["columns"] if each.get("key")]
    keys = tuple(map(_unreserved, keys))
    columns = {key: "BIGINT" for key in keys if key not in columns} | columns
    if "events_file" in case:
        return Source(tuple(columns.items()), keys, "format 'debezium-json'", None, records)
    options, event_time = "format 'json', key_format 'json'", declared.get("event_time_column")
    return Source(tuple(columns.items()), keys, options, event_time, records)


def _records(declared: dict[str, Any], case: dict[str, Any]) -> tuple[Record, ...]:
    if "events_file" in case:
        [path] = case["events_file"]
        with gzip.open(DATA / "events" / f"arroyo_{Path(path).stem}.jsonl.gz", "rb") as file:
            return tuple(line.rstrip(b"\n") for line in file)
    events = [each for each in case["events"] if each["topic"] == declared["topic"]]
    if declared["kind"] == "stream":
        return tuple(_json(each["value"]) for each in events)
    return tuple((_key(each), None if each["value"] is None else _json(each["value"])) for each in events)


def _key(event: dict[str, Any]) -> bytes:
    return _json({_unreserved(name): value for name, value in event["key"].items()})


def _unreserved(key: str) -> str:
    """The name of a key as a column; Iceberg, which the master log is in, reserves `_row_id` for itself."""
    return key.lstrip("_")


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def read_selects(file: str) -> dict[str, str]:
    """The SELECTs of a file, by the names above each of them."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    found = re.findall(r"((?:^-- \S+/.+\n)+)([^;]+);$", text, re.MULTILINE)
    return {name: select for names, select in found for name in re.findall(r"-- (.+)\n", names)}


def case_of(name: str, cases: Mapping[str, Case]) -> Case:
    """The case that a SELECT answers."""
    return cases[name.partition(" ")[0]]


def view_name(name: str) -> str:
    """A SELECT's name as a view's, which has no more than 36 letters."""
    return re.sub(r"\W", "_", name.rpartition("/")[2])[-36:]


def view(name: str, select: str, case: Case, names: Mapping[Source, str]) -> str:
    """The view that answers a case from its sources."""
    placed = {written: names[source] for written, source in case.sources.items()}
    return f"CREATE VIEW {view_name(name)} AS\n{select.format(**placed)};"


@dataclass(frozen=True)
class Steps:
    """Tables that are declared alike, each a step of some script: one table with the step in its key, and a view each.

    A source costs a query, a log and an archive run; a view of a table costs nothing.
    """

    name: str
    tables: Mapping[str, Source]

    def whole(self) -> Source:
        """The table of them all."""
        first = next(iter(self.tables.values()))
        records = tuple(
            _in_step(number, record) for number, table in enumerate(self.tables.values()) for record in table.records
        )
        columns, keys = (("step", "INT"), *first.columns), ("step", *first.primary_key)
        return Source(columns, keys, first.options, first.event_time, records)

    def views(self) -> str:
        """Each of the tables by its name."""
        texts = []
        for number, (name, table) in enumerate(self.tables.items()):
            listed = ", ".join(column for column, _ in table.columns)
            texts.append(f"CREATE VIEW {name} AS SELECT {listed} FROM {self.name} WHERE step = {number};")
        return "\n".join(texts)


def _in_step(number: int, record: Record) -> Record:
    if isinstance(record, bytes):
        return _json({"step": number, **json.loads(record)})
    key, value = (each and json.dumps({"step": number, **json.loads(each)}).encode() for each in record)
    return key or b"", value


def together(names: Mapping[Source, str]) -> tuple[dict[str, Source], list[Steps]]:
    """The sources to declare, by name, and those among them that are the steps of several."""
    alike: dict[tuple[object, ...], dict[str, Source]] = {}
    for source, name in names.items():
        is_step = bool(source.primary_key) and "key_format" in source.options
        of = (source.columns, source.primary_key, source.options, source.event_time) if is_step else (name,)
        alike.setdefault(of, {})[name] = source
    alone = {name: source for each in alike.values() if len(each) == 1 for name, source in each.items()}
    several = [each for each in alike.values() if len(each) > 1]
    steps = [Steps(f"steps_{number}", each) for number, each in enumerate(several, 1)]
    return alone | {each.name: each.whole() for each in steps}, steps


def source_names(cases: Iterable[Case]) -> dict[Source, str]:
    """A name for each source; cases of the same records share it."""
    names: dict[Source, str] = {}
    for case in cases:
        for written, source in case.sources.items():
            names.setdefault(source, f"c{len(names) + 1:02d}_{written.lower()}")
    return names


def assert_answered(deployed: Deployed, cases: Mapping[str, Case], selects: Mapping[str, str]) -> None:
    """The views of one catalog show the rows of their cases: live and after a rebuild; and some by Spark, too."""
    answers = {name: case_of(name, cases) for name in selects}
    names = source_names(answers.values())
    sources, steps = together(names)
    deployed.apply(
        sources="\n".join(source.declaration(name) for name, source in sources.items()),
        steps="\n".join(each.views() for each in steps),
        views="\n".join(view(name, selects[name], case, names) for name, case in answers.items()),
    )
    for name, source in sources.items():
        deployed.send(name, *source.records, partition=0)
    deployed.catch_up()
    assert wrong(deployed, answers) == {}
    proofs = deployed.deployment.batch.rebuild()
    assert [(proof.view, proof.differing) for proof in proofs if proof.differing] == []
    assert wrong(deployed, answers) == {}
    deployed.check(*list(map(view_name, answers))[::CHECKED])


def wrong(deployed: Deployed, answers: Mapping[str, Case]) -> dict[str, tuple[Counter[Row], Counter[Row]]]:
    """Missing and surplus rows of the views that differ, by the names of their SELECTs."""
    found = {}
    for name, case in answers.items():
        actual = comparable(deployed.rows(f"SELECT * FROM {view_name(name)}"))
        if actual != case.expected:
            found[name] = (case.expected - actual, actual - case.expected)
    return found


def comparable(rows: Sequence[Row]) -> Counter[Row]:
    """Rows without their order; a number is a number and a time is a time, whatever holds it."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, float | Decimal):
        return Decimal(f"{value:.{SIGNIFICANT}g}")
    return value
