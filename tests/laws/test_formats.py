"""Values of other formats than JSON: what they hold is what the columns show, and what is not of the format is bad."""

from __future__ import annotations

import csv
import io
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.laws.engines import Engines
from view_algebra import compile_catalog

COLUMNS = (
    "id BIGINT, name STRING, price DECIMAL(10,2), share DOUBLE, at TIMESTAMP, day DATE, ok BOOLEAN, tags ARRAY<INT>"
)
NO_LINE = "not CSV: one line of 8 fields is expected"

LINES: list[tuple[bytes, tuple[Any, ...] | str]] = [
    (
        b'7,"a, ""b""",12.50,0.1,2026-01-02T03:04:05Z,2026-01-02,true,"[1, 2]"\n',
        (7, 'a, "b"', Decimal("12.50"), 0.1, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), True, [1, 2]),
    ),
    (b',"",,,,,,', (None, "", None, None, None, None, None, None)),
    (b"007, a ,+1.5,1e3,,,FALSE,\r\n", (7, " a ", Decimal("1.50"), 1000.0, None, None, False, None)),
    ('-1,"two\nlines é",.5,NaN,,,1,'.encode(), (-1, "two\nlines é", Decimal("0.50"), "NaN", None, None, True, None)),
    (b'1,5" wide,1,1,,,,', (1, '5" wide', Decimal("1.00"), 1.0, None, None, None, None)),
    (b"1,NULL,1,1,,,,", (1, "NULL", Decimal("1.00"), 1.0, None, None, None, None)),
    (
        b"1,12345678901234567890.50,1,1,,,,",
        (1, "12345678901234567890.50", Decimal("1.00"), 1.0, None, None, None, None),
    ),
    (b"1,a,1,1,,,", NO_LINE),
    (b"1,a,1,1,,,,,", NO_LINE),
    (b'1,"a,1,1,,,,', NO_LINE),
    (b'1,"a"b,1,1,,,,', NO_LINE),
    (b"1,a,1,1,,,,\n2,b,1,1,,,,\n", NO_LINE),
    (b"", NO_LINE),
    (b"1,\xff,1,1,,,,", "the value is not UTF-8"),
    (b"1,a\0b,1,1,,,,", "a text holds the character U+0000, which Postgres cannot store"),
    (b"1.5,a,1,1,,,,", "a field has the wrong type: id is no BIGINT"),
    (b'x,a,"12,50",1,,,,', "a field has the wrong type: id is no BIGINT"),
    (b'1,a,"12,50",1,,,,', "a decimal has a comma: Spark would read 12,50 as 1250"),
    (b"1,a,1,1,03:04,,,", "a field holds a time of day without the day"),
    (b'1,a,1,1,,,,"[1],""x"":[2]"', "a field has the wrong type: tags is no ARRAY<INT>"),
]
"""Values, each with its fields or with the reason why it is bad."""


def declared(columns: str, options: str) -> str:
    return f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', {options});"


def found(engines: Engines, sql: str, values: list[Any]) -> list[Any]:
    """Of each value its fields, or why it is bad."""
    source = compile_catalog({"s.sql": sql}).sources["s"]
    engines.records(source, values)
    names = [f"`{column.name}`" for column in source.columns]
    rows = engines.spark.sql(f"SELECT kafka_error, {', '.join(names)} FROM records ORDER BY kafka_offset").collect()
    return [row[0] or tuple("NaN" if value != value else value for value in row[1:]) for row in rows]


def test_a_line_of_csv_is_its_fields_or_bad(engines: Engines) -> None:
    rows = found(engines, declared(COLUMNS, "format 'csv'"), [line for line, _ in LINES])
    expected = [tuple(_local(v) for v in row) if isinstance(row, tuple) else row for _, row in LINES]
    assert [*zip([line for line, _ in LINES], rows, strict=True)] == [
        *zip([line for line, _ in LINES], expected, strict=True)
    ]


def _local(value: Any) -> Any:
    """A time as PySpark shows it."""
    return datetime.fromtimestamp(value.timestamp()) if isinstance(value, datetime) else value  # noqa: DTZ006


@pytest.mark.parametrize(("delimiter", "quote"), [(";", "'"), ("\t", '"'), ("|", "^")])
def test_what_a_writer_of_csv_wrote_is_read_back(engines: Engines, delimiter: str, quote: str) -> None:
    letters, picked = f"ab {delimiter}{quote}\n\\\"'é,;", random.Random(7)
    rows = [
        tuple("".join(picked.choices(letters, k=picked.randrange(6))) or None for _ in range(3)) for _ in range(200)
    ]
    values = []
    for row in rows:
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, quotechar=quote, lineterminator="\n").writerow(row)
        values.append(line.getvalue().encode())
    options = f"format 'csv', delimiter '{delimiter}', quote '{quote.replace(chr(39), chr(92) + chr(39))}'"
    assert found(engines, declared("a STRING, b STRING, c STRING", options), values) == rows


def test_a_text_that_says_null_is_null(engines: Engines) -> None:
    sql = declared("a BIGINT, b STRING", "format 'csv', null 'NULL'")
    assert found(engines, sql, [b"NULL,NULL", b"1,null"]) == [(None, None), (1, "null")]


def test_text_and_bytes_are_the_value_itself(engines: Engines) -> None:
    values = [b'{"not": "read"} \\', "é\n".encode(), b"", None, b"\xff"]
    read = ['{"not": "read"} \\', "é\n", "", "the value is null", "the value is not UTF-8"]
    assert found(engines, declared("line STRING", "format 'text'"), values) == [
        each if each.startswith("the value") else (each,) for each in read
    ]
    assert found(engines, declared("b BINARY", "format 'bytes'"), [b"\x00\xff", b""]) == [(b"\x00\xff",), (b"",)]


def test_a_table_has_its_key_from_kafka_and_its_value_from_the_text(engines: Engines) -> None:
    sql = declared("id STRING, note STRING, PRIMARY KEY (id)", "format 'text', key_format 'string'")
    assert found(engines, sql, [(b"k", b"first"), (b"k", None)]) == [("k", "first"), ("k", None)]
