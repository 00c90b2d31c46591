"""Cases published by other projects: the records they sent, and the rows of a query over all of these records.

The SELECTs of a file answer the cases, in one catalog. `assert_answered` compares their rows.
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


def main_worktree(repository: Path) -> Path:
    """The first worktree of a repository, to which the `.git` file of every other one leads."""
    git = repository / ".git"
    return Path(git.read_text().strip().removeprefix("gitdir: ")).parents[2] if git.is_file() else repository


DATA = main_worktree(REPOSITORY).parent / "shared" / "data"
"""The folder of the cases, whose licences do not let this repository distribute them."""

TYPES = {"VARCHAR": "STRING", "INTEGER": "INT", "REAL": "FLOAT", "BIGINT (MICROSECONDS)": "BIGINT"}
"""Spark's names for types that the cases call otherwise. DuckDB knows both."""

SIGNIFICANT = 12
"""Digits to which fractions are compared. The published rows hold decimals as doubles."""

CHECKED = 6
"""Every sixth view is also compared with Spark's rows. Every view is compared with the published rows."""

Row = tuple[Any, ...]

Record = bytes | tuple[bytes, bytes | None]
"""A value, or a key and a value. The value is None if it deletes a row of a table."""


@dataclass(frozen=True)
class Source:
    """A topic's columns, and its records in the order in which they were sent.

    primary_key: empty for a stream
    options: the OPTIONS of its declaration
    event_time: the column that orders the versions of a table's row
    """

    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...]
    options: str
    event_time: str | None
    records: tuple[Record, ...]

    def declaration(self, name: str) -> str:
        """The declaration of the source under this name. Its one partition keeps the order of arrival."""
        columns = [f"{column} {kind}" for column, kind in self.columns]
        if self.primary_key:
            columns.append(f"PRIMARY KEY ({', '.join(self.primary_key)})")
        time = f", 'event_time' = '{self.event_time}'" if self.event_time else ""
        return f"""CREATE TABLE {name} ({", ".join(columns)})
            USING kafka OPTIONS (topic '{{topics}}_{name}', {self.options}) TBLPROPERTIES ('partitions' = '1'{time});"""


@dataclass(frozen=True)
class Case:
    """One published case, and its sources by their names in its query."""

    name: str
    sources: Mapping[str, Source]
    published: tuple[Row, ...] | None
    reference: str

    @cached_property
    def expected(self) -> Counter[Row]:
        """The published rows. If these lack late records or open windows, the rows of the reference query."""
        return comparable(self.published if self.published is not None else self._over_all())

    def _over_all(self) -> list[Row]:
        with duckdb.connect() as connection:
            for name, source in self.sources.items():
                assert not source.primary_key, f"{self.name}: {name} is a table, and DuckDB only has its records"
                columns = [f"{column} {kind}" for column, kind in source.columns]
                records = [json.loads(record) for record in source.records if isinstance(record, bytes)]
                values = [[record.get(column) for column, _ in source.columns] for record in records]
                if "_arr" in self.reference:
                    columns.append("_arr BIGINT")
                    values = [[*row, arrived] for arrived, row in enumerate(values)]
                connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)
            return list(connection.execute(self.reference).fetchall())


def read_cases(kind: str) -> dict[str, Case]:
    """The cases of a kind, by name. B has one stream, C has joins and tables."""
    with gzip.open(DATA / "cases.json.gz", "rt", encoding="utf-8") as file:
        return {case["name"]: _case(case) for case in json.load(file) if case["issue"] == kind}


def _case(case: dict[str, Any]) -> Case:
    # A join that looks up at arrival has a reference that SQL cannot express.
    is_published = case["equals_query_over_all_data"] or case["deviation"] == "temporal_asof_arrival"
    return Case(
        case["name"],
        {source["name"]: _source(source, case) for source in case["sources"]},
        tuple(map(tuple, case["expected"]["rows"])) if is_published else None,
        case["reference_sql_duckdb"],
    )


def _source(declared: dict[str, Any], case: dict[str, Any]) -> Source:
    kinds = {column["name"]: column["type"].upper() for column in declared["columns"]}
    columns = {name: TYPES.get(kind, kind) for name, kind in kinds.items()}
    records = _records(declared, case)
    if declared["kind"] == "stream":
        return Source(tuple(columns.items()), (), "format 'json'", None, records)
    keys = declared.get("primary_key") or [column["name"] for column in declared["columns"] if column.get("key")]
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
    events = [event for event in case["events"] if event["topic"] == declared["topic"]]
    if declared["kind"] == "stream":
        return tuple(_json(event["value"]) for event in events)
    return tuple((_key(event), None if event["value"] is None else _json(event["value"])) for event in events)


def _key(event: dict[str, Any]) -> bytes:
    return _json({_unreserved(name): value for name, value in event["key"].items()})


def _unreserved(key: str) -> str:
    """The name of a key as a column. Iceberg, which holds the master log, reserves `_row_id`."""
    return key.lstrip("_")


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def read_selects(file: str) -> dict[str, str]:
    """The SELECTs of a file, by the names in the comments above them."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    blocks = re.findall(r"((?:^-- \S+/.+\n)+)([^;]+);$", text, re.MULTILINE)
    return {name: select for names, select in blocks for name in re.findall(r"-- (.+)\n", names)}


def case_of(name: str, cases: Mapping[str, Case]) -> Case:
    """The case that a SELECT answers."""
    return cases[name.partition(" ")[0]]


def view_name(name: str) -> str:
    """The name of a SELECT's view, which has at most 36 letters."""
    return re.sub(r"\W", "_", name.rpartition("/")[2])[-36:]


def view(name: str, select: str, case: Case, names: Mapping[Source, str]) -> str:
    """The view that answers a case from its sources."""
    placed = {written: names[source] for written, source in case.sources.items()}
    return f"CREATE VIEW {view_name(name)} AS\n{select.format(**placed)};"


@dataclass(frozen=True)
class Steps:
    """Tables with the same declaration, kept as one table with a step in its key, and a view for each step.

    A source costs a query, a log and an archive run. A view of a table costs nothing.
    """

    name: str
    tables: Mapping[str, Source]

    def whole(self) -> Source:
        """The one table with the records of all steps."""
        first = next(iter(self.tables.values()))
        records = tuple(
            _in_step(number, record) for number, table in enumerate(self.tables.values()) for record in table.records
        )
        columns, keys = (("step", "INT"), *first.columns), ("step", *first.primary_key)
        return Source(columns, keys, first.options, first.event_time, records)

    def views(self) -> str:
        """A view for each of the tables, under its name."""
        texts = []
        for number, (name, table) in enumerate(self.tables.items()):
            listed = ", ".join(column for column, _ in table.columns)
            texts.append(f"CREATE VIEW {name} AS SELECT {listed} FROM {self.name} WHERE step = {number};")
        return "\n".join(texts)


def _in_step(number: int, record: Record) -> Record:
    if isinstance(record, bytes):
        return _json({"step": number, **json.loads(record)})
    key, value = (part and json.dumps({"step": number, **json.loads(part)}).encode() for part in record)
    return key or b"", value


def together(names: Mapping[Source, str]) -> tuple[dict[str, Source], list[Steps]]:
    """The sources to declare, by name, and the tables among them that hold several steps."""
    alike: dict[tuple[object, ...], dict[str, Source]] = {}
    for source, name in names.items():
        is_step = bool(source.primary_key) and "key_format" in source.options
        of = (source.columns, source.primary_key, source.options, source.event_time) if is_step else (name,)
        alike.setdefault(of, {})[name] = source
    alone = {name: source for group in alike.values() if len(group) == 1 for name, source in group.items()}
    several = [group for group in alike.values() if len(group) > 1]
    steps = [Steps(f"steps_{number}", group) for number, group in enumerate(several, 1)]
    return alone | {table.name: table.whole() for table in steps}, steps


def source_names(cases: Iterable[Case]) -> dict[Source, str]:
    """A name for each source. Cases with the same records share a source."""
    names: dict[Source, str] = {}
    for case in cases:
        for written, source in case.sources.items():
            names.setdefault(source, f"c{len(names) + 1:02d}_{written.lower()}")
    return names


def assert_answered(deployed: Deployed, cases: Mapping[str, Case], selects: Mapping[str, str]) -> None:
    """Compares the views of one catalog with their cases, live and after a rebuild, and some with Spark."""
    answers = {name: case_of(name, cases) for name in selects}
    names = source_names(answers.values())
    sources, steps = together(names)
    deployed.apply(
        sources="\n".join(source.declaration(name) for name, source in sources.items()),
        steps="\n".join(table.views() for table in steps),
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
    """Missing and surplus rows of the views that differ, by the name of the SELECT."""
    differing = {}
    for name, case in answers.items():
        actual = comparable(deployed.rows(f"SELECT * FROM {view_name(name)}"))
        if actual != case.expected:
            differing[name] = (case.expected - actual, actual - case.expected)
    return differing


def comparable(rows: Sequence[Row]) -> Counter[Row]:
    """Rows without their order, with every number as a decimal and every time in UTC."""
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
