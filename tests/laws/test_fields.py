"""A field is read as exactly the value that was written, or as NULL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.laws.bad_fields import LINES
from tests.laws.engines import Engines, Record
from view_algebra import Source, compile_catalog
from view_algebra.record_columns import NULLED

COLUMNS = """
  i INT, l BIGINT, t TINYINT, d DOUBLE, f FLOAT, c DECIMAL(10,2), b BOOLEAN, ts TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE,
  s STRING, st STRUCT<x: INT, s: STRING, inner: STRUCT<c: DECIMAL(5,1)>>, ints ARRAY<INT>, texts ARRAY<STRING>,
  m MAP<STRING, STRING>, sizes MAP<STRING, INT>, parts ARRAY<STRUCT<n: TINYINT, s: STRING>>, times ARRAY<TIMESTAMP>
"""
WITHOUT = "is a number without a unit: set 'epoch' to 's', 'ms', 'us' or 'ns' in TBLPROPERTIES"
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC).replace(tzinfo=None)

EXACT: list[tuple[str, str, Any]] = [
    ('"i": 17.0', "i", 17),
    ('"i": -17.000', "i", -17),
    ('"i": 1.7e1', "i", 17),
    ('"i": 170e-1', "i", 17),
    ('"i": 0.0', "i", 0),
    ('"i": 0e5', "i", 0),
    ('"i": " 5 "', "i", 5),
    ('"i": "3"', "i", 3),
    ('"i": "+3.0"', "i", 3),
    ('"l": 9007199254740993.0', "l", 9007199254740993),
    ('"l": 9.223372036854775807e18', "l", None),
    ('"l": "9223372036854775807"', "l", 9223372036854775807),
    ('"t": 12.0', "t", 12),
    ('"d": "1.5"', "d", 1.5),
    ('"d": "NaN", "i": "1"', "d", "nan"),
    ('"d": NaN, "i": "1"', "d", "nan"),
    ('"d": 1e400, "i": "1"', "d", float("inf")),
    ('"f": "0.1", "i": "1"', "f", 0.10000000149011612),
    ('"c": " 2.50 "', "c", Decimal("2.50")),
    ('"c": "1,000.50"', "c", Decimal("1000.50")),
    ('"c": "1,234,567"', "c", Decimal("1234567.00")),
    ('"c": 7, "i": "1"', "c", Decimal("7.00")),
    ('"b": 1', "b", True),
    ('"b": "0"', "b", False),
    ('"b": "True"', "b", True),
    ('"ts": "2024-03-01T14:00:00+0200", "i": "1"', "ts", NOON),
    ('"ts": "2024-03-01 12:00:00", "i": "1"', "ts", NOON),
    ('"ntz": "2024-03-01T12:00:00", "i": "1"', "ntz", NOON),
    ('"day": "2024-03-01", "i": "1"', "day", date(2024, 3, 1)),
    ('"s": 0.10', "s", "0.10"),
    ('"s": 12345678901234567.89', "s", "12345678901234567.89"),
    ('"s": 9007199254740993.0', "s", "9007199254740993.0"),
    ('"s": 1e5', "s", "1e5"),
    ('"s": -1.50E+2', "s", "-1.50E+2"),
    ('"s": 1e400', "s", "1e400"),
    ('"s": NaN', "s", "NaN"),
    ('"s": -Infinity, "d": NaN', "s", "-Infinity"),
    ('"s": "\\"NaN\\"", "d": NaN', "s", '"NaN"'),
    ('"s": "NaN, -0", "i": "1"', "s", "NaN, -0"),
    ('"s": -0', "s", "-0"),
    ('"s": {"a": NaN, "b": -0, "c": "\uf8ffNaN"}', "s", '{"a":"NaN","b":-0,"c":"\uf8ffNaN"}'),
    ('"texts": [NaN, -0, "NaN"]', "texts", ["NaN", "-0", "NaN"]),
    ('"st": {"s": NaN}', "st", (None, "NaN", None)),
    ('"m": {"a": Infinity}, "d": Infinity', "d", float("inf")),
    ('"s": 123456789012345678901234567890', "s", "123456789012345678901234567890"),
    ('"s": "1.50", "d": 1.50', "s", "1.50"),
    ('"s": {"a": 0.10, "b": [1.50, "2.50"]}', "s", '{"a":0.10,"b":[1.50,"2.50"]}'),
    ('"s": "{\\"a\\": 0.10}", "d": 1.5', "s", '{"a": 0.10}'),
    ('"s": "\uf8ff1.5", "i": "1"', "s", "\uf8ff1.5"),
    ('"s": "\\uF8FF1.5\uf8fft", "i": "1"', "s", "\uf8ff1.5\uf8fft"),
    ('"s": "a\\\\uf8ff\\"0.10", "i": "1"', "s", 'a\\uf8ff"0.10'),
    ('"st": {"x": "3", "s": 0.10, "inner": {"c": "1.5"}}', "st", (3, "0.10", (Decimal("1.5"),))),
    ('"texts": ["a", 0.10, null, {"b": 1.50}]', "texts", ["a", "0.10", None, '{"b":1.50}']),
    ('"ints": [1, "2", 3.0, null]', "ints", [1, 2, 3, None]),
    ('"m": {"a": 0.10, "b": "x", "c": null}', "m", {"a": "0.10", "b": "x", "c": None}),
    ('"sizes": {"a": 1.0, "b": "2"}', "sizes", {"a": 1, "b": 2}),
    ('"parts": [{"n": 1.0, "s": 2.50}, {}]', "parts", [(1, "2.50"), (None, None)]),
    ('"times": ["2024-03-01T12:00:00Z", null], "i": "1"', "times", [NOON, None]),
    ('"i": 1, "i": "2"', "i", 2),
]
"""Fields of a record, one of its columns, and the value of the column."""


def source(properties: str = "", columns: str = COLUMNS) -> Source:
    options = f"TBLPROPERTIES ({properties})" if properties else ""
    text = f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', format 'json') {options};"
    return compile_catalog({"s.sql": text}).sources["s"]


def read(engines: Engines, declared: Source, records: Sequence[Record]) -> list[Any]:
    engines.records(declared, records)
    return engines.spark.sql("SELECT * FROM records ORDER BY kafka_offset").collect()


def plain(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def exact(engines: Engines) -> list[Any]:
    return read(engines, source(), [f"{{{fields}}}".encode() for fields, _, _ in EXACT])


@pytest.mark.parametrize("number", range(len(EXACT)), ids=[fields for fields, _, _ in EXACT])
def test_a_field_is_read_as_it_is_written(exact: list[Any], number: int) -> None:
    _, column, value = EXACT[number]
    assert plain(exact[number][column]) == value
    assert exact[number].kafka_error == (None if value is not None else "a field has the wrong type: l is no BIGINT")


ORDER_LINES = "order_id BIGINT, qty INT, price DECIMAL(10, 2), shipped_at TIMESTAMP, note STRING, UNIQUE (order_id)"


def test_bad_fields_are_null_in_records_that_count(engines: Engines) -> None:
    engines.records(source("'on_bad_field' = 'null'", ORDER_LINES), [line.encode() for line in LINES])
    columns = "order_id, qty, price, CAST(shipped_at AS STRING), note, kafka_error, kafka_bad_fields"
    rows = engines.spark.sql(f"SELECT {columns} FROM records ORDER BY kafka_offset").collect()
    assert [tuple(row)[:5] for row in rows[:11]] == [
        (1, 2, Decimal("9.90"), "2024-03-01 12:00:00", ""),
        (2, None, Decimal("5.00"), None, None),
        (3, 3, None, None, None),
        (4, None, Decimal("1000.50"), "2024-03-01 13:00:00.123456", None),
        (5, 1, Decimal("7.00"), None, None),
        (6, 4, None, "2024-03-01 10:00:00", None),
        (7, 5, Decimal("2.50"), "2024-03-01 10:00:00", None),
        (8, None, None, "0001-01-01 00:00:00", None),
        (9, None, None, None, None),
        (10, 1, Decimal("1.00"), None, None),
        (11, None, None, None, None),
    ]
    qty, price, shipped = "qty is no INT", "price is no DECIMAL(10,2)", "shipped_at is no TIMESTAMP"
    named = [
        [],
        [qty, shipped],
        [price, shipped],
        [],
        [shipped],
        [price],
        [],
        [qty, price],
        [qty, price, shipped],
        [f"shipped_at {WITHOUT}", "note is no STRING"],
        [qty, price, shipped],
        [],
    ]
    assert [row.kafka_bad_fields for row in rows] == [NULLED + ", ".join(names) if names else None for names in named]
    assert [row.kafka_error for row in rows] == [None] * 11 + ["a field has the wrong type: order_id is no BIGINT"]


NESTED: list[tuple[str, str, Any, str | None]] = [
    ('"st": {"x": "q", "s": 1.50}', "st", (None, "1.50", None), "st.x is no INT"),
    ('"st": {"x": 1, "inner": {"c": "y"}}', "st", (1, None, (None,)), "st.inner.c is no DECIMAL(5,1)"),
    ('"st": {"x": 1, "inner": []}', "st", (1, None, None), "st.inner is no STRUCT<c: DECIMAL(5,1)>"),
    ('"m": []', "m", None, "m is no MAP<STRING, STRING>"),
    ('"sizes": "{}"', "sizes", None, "sizes is no MAP<STRING, INT>"),
    ('"ints": [1, "x", 3]', "ints", [1, None, 3], "ints is no ARRAY<INT>"),
    ('"sizes": {"a": "", "b": 2}', "sizes", {"a": None, "b": 2}, "sizes is no MAP<STRING, INT>"),
    (
        '"parts": [{"n": 300, "s": "a"}, {"n": 1}]',
        "parts",
        [(None, "a"), (1, None)],
        "parts is no ARRAY<STRUCT<n: TINYINT, s: STRING>>",
    ),
    (
        '"times": ["03:04", "2024-03-01T12:00:00Z", "0000-01-01"]',
        "times",
        [None, NOON, None],
        "times is no ARRAY<TIMESTAMP>",
    ),
    ('"day": "+12024-01-01"', "day", None, "day is no DATE"),
    ('"t": 128', "t", None, "t is no TINYINT"),
    ('"ntz": "2024-03-01T12:00:00Z"', "ntz", None, "ntz is no TIMESTAMP_NTZ"),
    ('"texts": ["a", "\\u0000"]', "texts", ["a", None], "texts is no ARRAY<STRING>"),
    ('"st": null, "ints": []', "ints", [], None),
]


def test_only_the_part_of_a_nested_value_that_cannot_be_read_is_null(engines: Engines) -> None:
    rows = read(engines, source("'on_bad_field' = 'null'"), [f"{{{case[0]}}}".encode() for case in NESTED])
    for row, (_, column, value, why) in zip(rows, NESTED, strict=True):
        assert (plain(row[column]), row.kafka_error) == (value, None)
        assert row.kafka_bad_fields == (None if why is None else NULLED + why)


def test_an_undecodable_datum_is_null_and_reading_it_again_changes_nothing(engines: Engines) -> None:
    declared = source(
        "'on_bad_field' = 'null', 'epoch' = 'ms'", "i INT, ts TIMESTAMP, day DATE, times ARRAY<TIMESTAMP>"
    )
    values = [
        b'{"i": 1, "ts": 1709294400000, "times": [1709294400000, "2024-03-01T12:00:00Z", null]}',
        b'{"i": "1", "ts": 1709294400000, "times": [1709294400000, "2024-03-01T12:00:00Z", null]}',
        b'{"i": "x", "ts": {}, "times": ["soon"]}',
        b'{"i": 2, "ts": "20240301"}',
    ]
    rows = read(engines, declared, values)
    assert [(row.i, row.ts, row.times, row.kafka_error) for row in rows] == [
        (1, NOON, [NOON, NOON, None], None),
        (1, NOON, [NOON, NOON, None], None),
        (None, None, [None], None),
        (2, None, None, None),
    ]
    assert [row.kafka_bad_fields for row in rows] == [
        None,
        None,
        f"{NULLED}i is no INT, ts is no TIMESTAMP",
        f"{NULLED}ts is a text of digits: send a number, or declare it STRING and cast it",
    ]


def test_in_a_table_by_event_time_a_record_with_an_unreadable_event_time_is_bad(engines: Engines) -> None:
    properties = "'on_bad_field' = 'null', 'event_time' = 'at', 'newest_by' = '{}'"
    values = [b'{"id": 1, "n": "x", "at": "2024-03-01T12:00:00Z"}', b'{"id": 1, "at": "01.03.2024"}', b'{"id": 1}']
    bad = "a field has the wrong type: at is no TIMESTAMP"
    for newest_by, errors in (("event_time", [None, bad, None]), ("log", [None, None, None])):
        declared = source(properties.format(newest_by), "id INT PRIMARY KEY, n INT, at TIMESTAMP")
        assert [row.kafka_error for row in read(engines, declared, values)] == errors


def test_numbers_in_fields_whose_names_differ_in_case_have_no_unit(engines: Engines) -> None:
    declared = source("'field.at_2' = 'createdat'", "createdAt TIMESTAMP, at_2 TIMESTAMP, c DECIMAL(3,1), n TINYINT")
    values = [b'{"createdAt": "2024-03-01T12:00:00Z", "createdat": 5}', b'{"createdAt": "03:04", "c": "1,5"}']
    rows = read(engines, declared, [*values, b'{"createdat": "20240301"}', b'{"createdat": "2024-03-01T12:00:00Z"}'])
    assert [row.kafka_error for row in rows] == [
        f"createdat {WITHOUT}",
        "a decimal has a comma: Spark would read 12,50 as 1250",
        "createdat is a text of digits: send a number, or declare it STRING and cast it",
        None,
    ]
    assert rows[3].at_2 == NOON


def test_a_value_that_is_not_a_record_is_bad_even_if_bad_fields_are_null(engines: Engines) -> None:
    values = [b"{", b"[]", b'{"i": 1} x', None, b'{"m": {"\\u0000": 1}}']
    rows = read(engines, source("'on_bad_field' = 'null'"), values)
    assert [row.kafka_error is not None for row in rows] == [True] * 5
    assert [row.kafka_bad_fields for row in rows] == [None] * 5


def test_empty_text_is_null_if_the_source_says_so(engines: Engines) -> None:
    values = [
        b'{"i": "", "d": " ", "c": "", "b": "", "ts": "", "day": "", "s": "", "st": [], "m": [], "ints": ""}',
        b'{"i": "", "l": "x", "sizes": {"a": ""}, "st": {"x": ""}}',
        b'{"ints": {}}',
    ]
    properties = ("'empty_as_null' = 'true'", "'empty_as_null' = 'true', 'on_bad_field' = 'null'")
    for prop, bad in zip(properties, ("kafka_error", "kafka_bad_fields"), strict=True):
        rows = read(engines, source(prop), values)
        assert [rows[0][name] for name in ("i", "d", "c", "b", "ts", "day", "st", "m", "ints", "s")] == [None] * 9 + [
            ""
        ]
        assert rows[0].kafka_error is None
        begins = NULLED if bad == "kafka_bad_fields" else "a field has the wrong type: "
        assert [row[bad] for row in rows] == [None, f"{begins}l is no BIGINT", f"{begins}ints is no ARRAY<INT>"]


def test_empty_text_is_null_for_types_that_json_lacks(engines: Engines) -> None:
    """Times with a unit and decimals of a connector are decoded from JSON, not read by Spark's reader."""
    columns = "ts TIMESTAMP, day DATE, ntz TIMESTAMP_NTZ, c DECIMAL(9, 2), st STRUCT<ts: TIMESTAMP>, times ARRAY<DATE>"
    values = [
        b'{"ts": "", "day": " ", "ntz": "", "c": "", "st": {"ts": ""}, "times": [""]}',
        b'{"ts": "", "st": [], "times": ""}',
        b'{"day": "", "ts": "x"}',
    ]
    modes = (
        "",
        ", 'decimal.handling.mode' 'precise'",
        ", 'decimal.handling.mode' 'string'",
        ", 'schemas.enable' 'true'",
    )
    for lenient, bad in (("", "kafka_error"), (", 'on_bad_field' = 'null'", "kafka_bad_fields")):
        for mode in modes:
            text = f"""CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', format 'json'{mode})
                TBLPROPERTIES ('epoch' = 'ms', 'empty_as_null' = 'true'{lenient});"""
            rows = read(engines, compile_catalog({"s.sql": text}).sources["s"], values)
            assert [row[bad] for row in rows[:2]] == [None, None], mode
            assert [tuple(row[name] for name in ("ts", "day", "ntz", "c")) for row in rows[:1]] == [(None,) * 4]
            assert (rows[0].st.ts, rows[0].times, rows[1].st, rows[1].times) == (None, [None], None, None)
            assert "ts is no TIMESTAMP" in rows[2][bad]


def test_a_column_may_come_from_a_field_of_another_name(engines: Engines) -> None:
    columns = "userId STRING, lower_id STRING, deleted BOOLEAN, topic INT, odd STRUCT<a: INT>"
    fields = (
        "'field.lower_id' = 'userid', 'field.deleted' = '_deleted', 'field.topic' = 'kafka_topic',"
        " 'field.odd' = 'a`b \"é\"'"
    )
    values = [
        b'{"userId": "A", "userid": "b", "_deleted": true, "kafka_topic": 1, "lower_id": "no", "deleted": false}',
        '{"userId": 0.10, "userid": 1.50, "kafka_topic": "2", "a`b \\"é\\"": {"a": "3"}}'.encode(),
        b'{"kafka_topic": "x"}',
        b'{"kafka_topic": {}, "lower_id": {}, "_deleted": 7}',
    ]
    rows = read(engines, source(fields, columns), values)
    assert [tuple(row)[-5:] for row in rows[:2]] == [("A", "b", True, 1, None), ("0.10", "1.50", None, 2, (3,))]
    wrong = "a field has the wrong type: "
    assert [row.kafka_error for row in rows] == [
        None,
        None,
        f"{wrong}kafka_topic is no INT",
        f"{wrong}_deleted is no BOOLEAN, kafka_topic is no INT",
    ]


def test_a_key_may_come_from_a_field_of_another_name_and_keeps_its_digits(engines: Engines) -> None:
    text = """CREATE TABLE s (id STRING, n INT, v STRING, PRIMARY KEY (id, n))
        USING kafka OPTIONS (topic 's', format 'json', key_format 'json')
        TBLPROPERTIES ('field.id' = '_id');"""
    records: list[Record] = [
        (b'{"_id": "a", "n": 1}', b'{"_id": "a", "n": 1.0, "v": "x"}'),
        (b'{"_id": 0.10, "n": "2"}', b'{"v": 1.50}'),
        (b'{"_id": 12345678901234567.89, "n": 3}', None),
    ]
    rows = read(engines, compile_catalog({"s.sql": text}).sources["s"], records)
    assert [tuple(row)[-3:] for row in rows] == [("a", 1, "x"), ("0.10", 2, "1.50"), ("12345678901234567.89", 3, None)]
    assert [row.kafka_error for row in rows] == [None] * 3
