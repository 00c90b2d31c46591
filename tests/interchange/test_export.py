"""Rows are exported to files, whole or not at all, or to a topic."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interchange.export import export
from master_log.kafka.brokers import Brokers
from tests.fix_services import Topic
from tests.fix_sources import Contents
from view_algebra.compiled import Column
from view_algebra.errors import LaminaError

COLUMNS = [
    Column("hour", "TIMESTAMP", "timestamptz"),
    Column("country", "STRING", "text"),
    Column("total", "DECIMAL(12,2)", "numeric(12,2)"),
    Column("n", "BIGINT", "bigint"),
    Column("seen", "BOOLEAN", "boolean"),
    Column("tags", "ARRAY<STRING>", "jsonb"),
    Column("took", "INTERVAL DAY TO SECOND", "interval"),
]
TOOK = dt.timedelta(days=1, hours=2, microseconds=500_000)
HOUR = dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)
ROWS: list[tuple[Any, ...]] = [
    (HOUR, 'ä, "b"\n', Decimal("1.2500"), Decimal(7), True, ["x"], TOOK),
    (None, None, None, None, None, None, None),
    (None, "", None, None, None, None, None),
]


def test_tabs_separate_the_fields_of_a_tsv_file(tmp_path: Path) -> None:
    rows = []
    for name, separator in (("view.csv", ","), ("view.tsv", "\t")):
        export(COLUMNS, ROWS, str(tmp_path / name))
        with (tmp_path / name).open(newline="") as file:
            rows.append(list(csv.reader(file, delimiter=separator)))
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ["view.jsonl", "view.json.gz", "view.csv", "view.csv.gz", "view.parquet"])
def test_every_format_holds_every_row(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert export(COLUMNS, ROWS, str(path)) == 3
    content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    match name.split(".")[1]:
        case "csv":
            assert content.decode() == (
                "hour,country,total,n,seen,tags,took\n"
                '2024-01-02T03:00:00+00:00,"ä, ""b""\n",1.2500,7,true,"[""x""]",1 day 02:00:00.5\n,,,,,,\n,"",,,,,\n'
            )
        case "parquet":
            table = pq.read_table(path)
            assert table.schema.field("total").type == pa.decimal128(12, 2)
            assert table.schema.field("n").type == pa.int64()
            assert [tuple(row.values()) for row in table.to_pylist()] == [
                (HOUR, 'ä, "b"\n', Decimal("1.25"), 7, True, '["x"]', TOOK),
                *ROWS[1:],
            ]
        case _:
            first, second, _ = content.decode().splitlines()
            assert json.loads(first)["total"] == 1.25
            assert json.loads(first)["hour"] == "2024-01-02T03:00:00+00:00"
            assert json.loads(first)["took"] == "1 day 02:00:00.5"
            assert json.loads(second) == dict.fromkeys(column.name for column in COLUMNS)


def test_a_file_that_was_not_completed_does_not_appear(tmp_path: Path) -> None:
    path = tmp_path / "view.csv"
    path.write_text("the one before")

    def broken() -> Iterator[tuple[Any, ...]]:
        yield ROWS[0]
        raise RuntimeError("the connection is lost")

    with pytest.raises(RuntimeError):
        export(COLUMNS, broken(), str(path))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("view.csv", "the one before")]


@pytest.mark.parametrize(
    ("to", "what"), [("view.xls", "format is not known"), ("no/such/view.csv", "cannot be written")]
)
def test_a_file_that_cannot_be_written_is_one_error(tmp_path: Path, to: str, what: str) -> None:
    with pytest.raises(LaminaError, match=what) as raised:
        export(COLUMNS, ROWS, str(tmp_path / to))
    assert raised.value.way_out


def test_rows_go_to_a_topic_as_json(brokers: Brokers, topic: Topic, contents: Contents) -> None:
    name = topic()
    assert export(COLUMNS[:3], [row[:3] for row in ROWS[:2]], f"kafka:{name}", brokers) == 2
    assert [json.loads(value or b"") for _, value in contents(name)] == [
        {"hour": "2024-01-02T03:00:00+00:00", "country": 'ä, "b"\n', "total": 1.25},
        {"hour": None, "country": None, "total": None},
    ]
    with pytest.raises(LaminaError, match="there is no such topic"):
        export(COLUMNS, ROWS, "kafka:nowhere", brokers)
