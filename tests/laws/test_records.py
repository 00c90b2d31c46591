"""Any value is a record or a reason for quarantine. No value fails the statement that reads it."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from tests.laws.engines import Engines
from view_algebra import Source, compile_catalog
from view_algebra.records.quarantined import LONGEST_KEPT, quarantined

SOURCE = """CREATE TABLE s (
  id BIGINT, name STRING, d DOUBLE, c DECIMAL(10,2), ts TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, b BOOLEAN,
  st STRUCT<x: INT, since: TIMESTAMP>, arr ARRAY<STRING>, m MAP<STRING, INT>, tiny TINYINT,
  paid STRUCT<ref: STRING, parts: ARRAY<DECIMAL(10,2)>>
) USING kafka OPTIONS (topic 's', format 'json');"""

TODAY = f'"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"'.encode()
LONG = "a number is too long for a DECIMAL: it has 1,000 digits, or an exponent of 4"
WITHOUT = "is a number without a unit: set 'epoch' to 's', 'ms', 'us' or 'ns' in TBLPROPERTIES"
MARK = "a byte order mark stands before the object: let the producer leave it out"
FRAME = "the frame of a schema registry stands before the value: declare it by frame 'registry' in OPTIONS; schema id "
TWICE = "a JSON text that holds an object (JSON encoded twice): send the object itself"
COMMA = "a decimal has a comma: Spark would read 12,50 as 1250"
UTF_16 = "UTF-16, not JSON: let the producer write UTF-8"
CONTROL = "not JSON: a line break or another control character in a text is not escaped"
DEEP = b'{"z":' + b"[" * 5000 + b"]" * 5000 + b"}"
CASES: list[tuple[str, bytes | None, str | None]] = [
    ("null", None, "the value is null"),
    ("empty", b"", "the value is empty"),
    ("blank", b" \n", "the value is empty"),
    ("text", b"hello", "not JSON"),
    ("half an object", b'{"id": 1', "not JSON, or nested too deep"),
    ("two objects' comma", b'{"id": 1,}', "not JSON: a comma stands before } or ]"),
    ("two elements' comma", b'{"arr": ["}", "a"\n, ]}', "not JSON: a comma stands before } or ]"),
    ("an array", b'[{"id": 1}]', "a JSON array, not an object: send each element as a record"),
    ("an empty array", b" []", "a JSON array, not an object: send each element as a record"),
    ("a number", b"5", "a JSON number, not an object"),
    ("a boolean", b"true\n", "a JSON boolean, not an object"),
    ("a text", b'"x"', "a JSON text, not an object"),
    ("a number in a text", b'"5"', "a JSON text, not an object"),
    ("an object in a text", b'"{\\"id\\": 1}"', TWICE),
    ("JSON's null", b"null", "the JSON value null, not an object: a deletion is a record without a value"),
    ("a byte order mark", b'\xef\xbb\xbf{"id": 1}', MARK),
    ("a byte order mark of UTF-16", '{"id": 1}'.encode("utf-16"), MARK),
    ("gzip", gzip.compress(b'{"id": 1}', mtime=0), "gzip, not JSON: set compression.type of the producer instead"),
    ("UTF-16", '{"id": 1}'.encode("utf-16-le"), UTF_16),
    ("UTF-16 that begins with a zero", '{"id": 1}'.encode("utf-16-be"), UTF_16),
    ("a line in a text", b'{"name": "a\nb"}', CONTROL),
    ("a line in a text and half an object", b'{"name": "a\nb"', "not JSON, or nested too deep"),
    ("a frame of a registry", b'\x00\x00\x00\x01\x02{"id": 1}', f"{FRAME}258"),
    ("a frame around Avro", b"\x00\x00\x00\x00\x07\x02\x08", f"{FRAME}7"),
    ("an empty object", b"{}", None),
    ("white space around", b' \n{"id": 1}\r\n ', None),
    ("text behind", b'{"id": 1} x', "more text follows the object"),
    ("a text for a number", b'{"id": "x"}', "a field has the wrong type: id is no BIGINT"),
    ("an empty text for a number", b'{"id": ""}', "a field has the wrong type: id is no BIGINT"),
    ("a fraction in a text", b'{"id": "1.5"}', "a field has the wrong type: id is no BIGINT"),
    ("a number in a text", b'{"id": "1"}', None),
    ("a fraction for a whole number", b'{"id": 1.5}', "a field has the wrong type: id is no BIGINT"),
    ("too large a number", b'{"id": 99999999999999999999}', "a field has the wrong type: id is no BIGINT"),
    ("too large a tiny", b'{"tiny": 300}', "a field has the wrong type: tiny is no TINYINT"),
    ("a tiny that would wrap", b'{"tiny": 128}', "a field has the wrong type: tiny is no TINYINT"),
    ("the smallest tiny", b'{"tiny": -128}', None),
    ("a time of day", b'{"ts": "03:04:05"}', "a field holds a time of day without the day"),
    ("an hour", b'{"ts":"T3"}', "a field holds a time of day without the day"),
    ("an escaped time of day", b'{"ts": "\\u00303:04"}', "a field holds a time of day without the day"),
    ("a nested time of day", b'{"st": {"since": " 3:4"}}', "a field holds a time of day without the day"),
    ("a text like a time of day", b'{"name": "03:04", "ts": "2024-01-01T03:04:05Z"}', None),
    ("two objects", b'{"id": 1}{"id": 2}', "more text follows the object"),
    ("two lines", b'{"id": 1}\n{"id": 2}', "more text follows the object"),
    ("two objects in a row", b'{"id": 1},{"id": 2}', "more text follows the object"),
    ("two objects and a blank", b'{"id": 1}, {"id": 2}', "more text follows the object"),
    ("two objects and an empty line", b'{"id": 1}\n\n{"id": 2}', "more text follows the object"),
    ("two objects and a comma and a line", b'{"id": 1},\r\n\t{"id": 2}', "more text follows the object"),
    ("objects in an array with blanks", b'{"id": 1, "more": [{"a": 1}, {"a": 2}]}', None),
    ("objects in an array", b'{"id": 1, "more": [{"a": 1},{"a": 2}]}', None),
    ("braces in a text", b'{"name": "}{"}', None),
    ("two wrong fields", b'{"id": "x", "b": 2}', "a field has the wrong type: id is no BIGINT, b is no BOOLEAN"),
    ("a decimal that does not fit", b'{"c": 123456789012}', "a field has the wrong type: c is no DECIMAL(10,2)"),
    ("a decimal with a comma", b'{"id": 1, "c": "12,50"}', COMMA),
    ("a decimal with thousands", b'{"c": "-1,234.56"}', None),
    ("a decimal with what may be thousands", b'{"c": "1,234"}', COMMA),
    ("a decimal with groups that are not thousands", b'{"c": "12,34.56"}', COMMA),
    ("a decimal that begins with a comma", b'{"c":",5"}', COMMA),
    ("a decimal with an escaped comma", b'{"c": "12\\u002C5"}', COMMA),
    ("a decimal with a comma inside", b'{"paid": {"ref": "1,5", "parts": [1, "0,5"]}}', COMMA),
    ("texts like decimals with commas", b'{"name": "12,50", "arr": ["1,2", "x"], "c": "12.50"}', None),
    ("a text before a number", b'{"arr": ["a",5], "c": 1.5, "name": "7","id":8}', None),
    ("a decimal with more places", b'{"c": 1.239}', None),
    *(
        (f"{name} for a decimal", b'{"id": 1, "c": ' + number + b"}", LONG)
        for name, number in {
            "a great exponent": b"1e100000000",
            "a small exponent": b"-2.5E-100000000",
            "an exponent in a text": b'"1e-100000000"',
            "an exponent in other digits": '"1e-\u0661\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660"'.encode(),
            "an escaped exponent": b'"1\\u0065-\\u06610000000\\u0030"',
            "a megabyte of digits": b'"' + b"9" * 1_000_000 + b'"',
            "a megabyte of escaped digits": b'"' + b"\\u0039" * 160_000 + b'"',
        }.items()
    ),
    ("a great exponent inside", b'{"paid": {"parts": [1, 1e-100000000]}}', LONG),
    ("a great exponent before a mistake", b'{"c": 1e-100000000, "d": x}', "not JSON, or nested too deep"),
    ("a great exponent that another takes the place of", b'{"c": 1e-100000000, "c": 1, "ts": ' + TODAY + b"}", LONG),
    ("a great exponent in a text that another takes the place of", b'{"c": "1e-100000000", "c": 1}', LONG),
    ("a great exponent elsewhere", b'{"more": 1e-100000000, "c": 1}', LONG),
    ("a great exponent in a text elsewhere", b'{"more": ["1e-100000000"], "c": 1}', None),
    ("texts like great exponents", b'{"name": "1e100000000", "paid": {"ref": "7e12345", "parts": [1]}}', None),
    (
        "no decimal next to a great exponent",
        b'{"name": "1e5000", "c": true}',
        "a field has the wrong type: c is no DECIMAL(10,2)",
    ),
    ("an exponent of 3 digits", b'{"c": 1e-999}', None),
    ("a megabyte of spaces", b'{"ts": ' + TODAY + b', "name": "' + b" " * 1_000_000 + b'"}', None),
    ("a text for a time", b'{"ts": "soon"}', "a field has the wrong type: ts is no TIMESTAMP"),
    ("no such day", b'{"day": "2024-02-30"}', "a field has the wrong type: day is no DATE"),
    ("a nested wrong field", b'{"st": {"x": "q"}}', "a field has the wrong type: st.x is no INT"),
    ("a scalar for a struct", b'{"st": 5}', "a field has the wrong type: st is no STRUCT<x: INT, since: TIMESTAMP>"),
    ("a wrong map", b'{"m": {"a": "x"}}', "a field has the wrong type: m is no MAP<STRING, INT>"),
    ("a number of milliseconds", b'{"ts": 1700000000123}', f"ts {WITHOUT}"),
    ("a number of microseconds", b'{"ts": 1770905537404235}', f"ts {WITHOUT}"),
    ("a number of nanoseconds", b'{"ts" : -1770905537404235123}', f"ts {WITHOUT}"),
    ("a number of seconds", b'{"ts": 1700000000}', f"ts {WITHOUT}"),
    ("nested microseconds", b'{"st": {"since":1789512546948729}}', f"st.since {WITHOUT}"),
    ("microseconds elsewhere", b'{"id": 1770905537404235, "more": {"ts": 1770905537404235}}', None),
    ("the year 0", b'{"ts": "0000-01-01T00:00:00Z"}', "ts is outside the years 0001 to 9999"),
    ("the year 12024", b'{"day": "+12024-01-01"}', "day is outside the years 0001 to 9999"),
    (
        "a nested year 12024",
        b'{"st": {"since": "+12024-01-01T00:00:00Z"}}',
        "st.since is outside the years 0001 to 9999",
    ),
    ("U+0000", b'{"name": "a\\u0000b"}', "a text holds the character U+0000, which Postgres cannot store"),
    (
        "U+0000 in a nested text",
        b'{"arr": ["\\u0000"]}',
        "a text holds the character U+0000, which Postgres cannot store",
    ),
    ("U+0000 said, not meant", b'{"name": "\\\\u0000"}', None),
    ("U+0000 elsewhere", b'{"other": "\\u0000", "id": 1}', None),
    ("bytes that are no UTF-8", b'{"name": "\xff\xfe"}', None),
    ("half a surrogate pair", b'{"name": "\\ud800"}', None),
    ("too deep", DEEP, "not JSON, or nested too deep"),
    ("deep", b'{"z":' + b"[" * 500 + b"]" * 500 + b', "id": 3}', None),
    ("a megabyte", b'{"name": "' + b"x" * 1_000_000 + b'"}', None),
    ("a very long number", b'{"d": ' + b"9" * 1200 + b"}", None),
    (
        "a text with JSON for a struct",
        b'{"st": "{}"}',
        "a field has the wrong type: st is no STRUCT<x: INT, since: TIMESTAMP>",
    ),
    ("not a number", b'{"d": "NaN"}', None),
    ("infinity", b'{"d": 1e400}', None),
    ("missing fields", b'{"id": null}', None),
    ("unknown fields", b'{"id": 1, "more": {"a": []}}', None),
    ("a field twice", b'{"id": 1, "id": 2}', None),
    ("a text that is an object", b'{"name": {"a": 1}}', None),
]


@pytest.fixture(scope="module")
def source() -> Source:
    return compile_catalog({"s.sql": SOURCE}).sources["s"]


@pytest.fixture(scope="module")
def errors(engines: Engines, source: Source) -> list[str | None]:
    engines.records(source, [value for _, value, _ in CASES])
    return [row[0] for row in engines.spark.sql("SELECT kafka_error FROM records ORDER BY kafka_offset").collect()]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[name for name, _, _ in CASES])
def test_a_value_is_a_record_or_has_a_reason_for_quarantine(errors: list[str | None], number: int) -> None:
    assert errors[number] == CASES[number][2]


def test_quarantine_keeps_the_bytes(engines: Engines, source: Source, errors: list[str | None]) -> None:
    rows = engines.spark.sql(quarantined(source)).collect()
    assert len(rows) == sum(error is not None for error in errors)
    for row in rows:
        value = CASES[row.kafka_offset][1]
        assert row.kafka_value == (None if value is None else "\\x" + value[:LONGEST_KEPT].hex().upper())
        assert row.kafka_value_bytes == (None if value is None else len(value))


def test_the_senders_own_reason_replaces_ours_whatever_its_bytes_are(
    engines: Engines, source: Source, errors: list[str | None]
) -> None:
    texts = {b"line 4: no id": "line 4: no id", b"a\x00b\xff": "ab\ufffd", b"x" * 5_000: "x" * 200, b"": None}
    for header, kept in texts.items():
        headers = f"array(named_struct('key', 'lamina-problem', 'value', X'{header.hex()}')) AS kafka_headers"
        engines.spark.sql(f"SELECT * EXCEPT (kafka_headers), {headers} FROM records").createOrReplaceTempView("stated")
        rows = engines.spark.sql(quarantined(source).replace("FROM records", "FROM stated") + " LIMIT 1").collect()
        assert [row.kafka_error for row in rows] == [kept or errors[row.kafka_offset] for row in rows]


def test_a_decimal_next_to_a_text_like_a_long_number_keeps_its_digits(engines: Engines, source: Source) -> None:
    engines.records(source, [b'{"c":12345678.91,"name":"1e1000"}', b'{"c":"12345678.91","name":"1x1000"}'])
    rows = engines.spark.sql("SELECT CAST(c AS STRING) FROM records").collect()
    assert [row[0] for row in rows] == ["12345678.91"] * 2


def test_records_of_many_columns_are_filtered_at_once(engines: Engines) -> None:
    kinds = ("BIGINT", "STRING", "TIMESTAMP", "DATE", "INT")
    columns = ", ".join(f"c{number} {kinds[number % len(kinds)]}" for number in range(40))
    catalog = compile_catalog(
        {
            "wide.sql": f"CREATE TABLE wide ({columns}) USING kafka OPTIONS (topic 'wide', format 'json');"
            "CREATE VIEW v AS SELECT * FROM wide WHERE c1 LIKE '%a%' ORDER BY c2 LIMIT 10;"
        }
    )
    engines.records(catalog.sources["wide"], [b'{"c0": 1, "c1": "ab"}', b'{"c0": 2, "c1": "b"}'])
    assert [row.c0 for row in engines.spark.sql(catalog.views["v"].spelled).collect()] == [1]
