"""Numbers that are times, base64 of decimals and bytes: read as a schema or the declaration says, or bad."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.laws.engines import Engines, Record
from view_algebra import Source, compile_catalog
from view_algebra.records.quarantined import quarantined


def source(columns: str, options: str = "format 'json'", properties: str = "") -> Source:
    epoch = f" TBLPROPERTIES ({properties})" if properties else ""
    text = f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', {options}){epoch};"
    return compile_catalog({"s.sql": text}).sources["s"]


def read(engines: Engines, of: Source, records: Sequence[Record], *columns: str) -> list[tuple[Any, ...]]:
    """The columns of each record as texts, and its error."""
    engines.records(of, records)
    shown = "".join(f"CAST({column} AS STRING), " for column in columns)
    return [
        tuple(row)
        for row in engines.spark.sql(f"SELECT {shown}kafka_error FROM records ORDER BY kafka_offset").collect()
    ]


def unscaled(number: int, size: int | None = None) -> str:
    """Base64 of a whole number as Java's BigInteger writes it."""
    return base64.b64encode(number.to_bytes(size or (number.bit_length() // 8 + 1), "big", signed=True)).decode()


def created(row: dict[str, Any], fields: Sequence[dict[str, Any]] | None = None) -> bytes:
    """The event of a created row, with the schemas of its fields."""
    event: dict[str, Any] = {"before": None, "after": row, "op": "c", "source": {"ts_ms": 5}, "ts_ms": 7}
    if fields is not None:
        parts = [{"type": "struct", "field": name, "fields": [*fields]} for name in ("before", "after")]
        event = {"schema": {"type": "struct", "fields": [*parts, {"type": "string", "field": "op"}]}, "payload": event}
    return json.dumps(event).encode()


def of_type(name: str, type_: str, semantic: str | None = None, **parameters: str) -> dict[str, Any]:
    return {"field": name, "type": type_, "optional": True, "name": semantic, "version": 1, "parameters": parameters}


# declared units

NOON = "2024-06-01 12:00:00"
WITHOUT = "is a number without a unit: set 'epoch' to 's', 'ms', 'us' or 'ns' in TBLPROPERTIES"
WRONG = "a field has the wrong type: "
DIGITS = "is a text of digits: send a number, or declare it STRING and cast it"


@pytest.mark.parametrize(
    ("epoch", "number", "time"),
    [
        ("s", "1717243200", NOON),
        ("s", "1470840303.636", "2016-08-10 14:45:03.636"),
        ("s", "-1.5", "1969-12-31 23:59:58.5"),
        ("s", "1.7172432e9", NOON),
        ("ms", "1717243200123", f"{NOON}.123"),
        ("ms", "170812800000", "1975-06-01 00:00:00"),
        ("ms", "-1", "1969-12-31 23:59:59.999"),
        ("us", "1717243200123456", f"{NOON}.123456"),
        ("ns", "1717243200123456789", f"{NOON}.123456"),
        ("ns", "-1", "1969-12-31 23:59:59.999999"),
    ],
)
def test_a_number_is_a_time_in_the_declared_unit(engines: Engines, epoch: str, number: str, time: str) -> None:
    of = source("at TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE", properties=f"'epoch' = '{epoch}'")
    record = f'{{"at": {number}, "ntz": {number}, "day": {number}}}'.encode()
    assert read(engines, of, [record], "at", "ntz", "day") == [(time, time, time[:10], None)]


def test_a_declared_unit_changes_no_text_and_keeps_the_calendar(engines: Engines) -> None:
    of = source(
        "at TIMESTAMP, day DATE, st STRUCT<at: TIMESTAMP, n: INT>, ats ARRAY<TIMESTAMP>", properties="'epoch' = 'ms'"
    )
    outside = "is outside the years 0001 to 9999"
    cases: dict[str, tuple[Any, ...]] = {
        '{"at": "2024-06-01T12:00:00Z", "day": "2024-06-01"}': (NOON, "2024-06-01", None, None, None),
        '{"at": null}': (None, None, None, None, None),
        '{"at": "2024"}': ("2024-01-01 00:00:00", None, None, None, None),
        '{"at": "1717243200123"}': (None, None, None, None, f"at {DIGITS}"),
        '{"day": "100"}': (None, None, None, None, f"day {DIGITS}"),
        '{"at": 1717243200123456}': (None, None, None, None, f"at {outside}"),
        '{"at": 99999999999999999999999999}': (None, None, None, None, f"at {outside}"),
        '{"at": true}': (None, None, None, None, "a field has the wrong type: at is no TIMESTAMP"),
        '{"at": "soon"}': (None, None, None, None, "a field has the wrong type: at is no TIMESTAMP"),
        '{"at": "03:04"}': (None, None, None, None, "a field holds a time of day without the day"),
        '{"at": "+12024-01-01T00:00:00Z"}': (None, None, None, None, f"at {outside}"),
        '{"st": {"at": 0, "n": 1}, "ats": [0, null, "1970-01-02T00:00:00Z"]}': (
            None,
            None,
            "{1970-01-01 00:00:00, 1}",
            "[1970-01-01 00:00:00, null, 1970-01-02 00:00:00]",
            None,
        ),
        '{"st": {"at": "x"}}': (None, None, "{null, null}", None, "a field has the wrong type: st.at is no TIMESTAMP"),
        '{"ats": [0, "x"]}': (
            None,
            None,
            None,
            "[1970-01-01 00:00:00, null]",
            "a field has the wrong type: ats is no ARRAY<TIMESTAMP>",
        ),
    }
    rows = read(engines, of, [case.encode() for case in cases], "at", "day", "st", "ats")
    assert dict(zip(cases, rows, strict=True)) == cases


def test_every_number_without_a_unit_is_bad(engines: Engines) -> None:
    of = source(
        "at TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, `a-b` TIMESTAMP, st STRUCT<at: TIMESTAMP>, ats ARRAY<DATE>, "
        "m MAP<STRING, TIMESTAMP>, text STRING"
    )
    cases = {
        **{
            f'{{"at": {n}}}': f"at {WITHOUT}"
            for n in ("0", "-5", "1717243200", "20240501", "170812800000", "1770905537404235", "1.5", "1e9")
        },
        '{"ntz": 5}': f"ntz {WITHOUT}",
        '{"day": 19000}': f"day {WITHOUT}",
        '{"a-b" :  5}': f"a-b {WITHOUT}",
        '{"\\u0061t": 5}': f"at {WITHOUT}",
        '{"st": {"at": 5}}': f"st.at {WITHOUT}",
        '{"ats": ["2024-01-01", 5]}': f"ats {WITHOUT}",
        '{"m": {"a": 5}}': f"m {WITHOUT}",
        '{"at": "1717243200"}': f"at {DIGITS}",
        '{"day": "100"}': f"day {DIGITS}",
        '{"day": "1234567"}': f"day {DIGITS}",
        '{"day": " -5 "}': f"day {DIGITS}",
        '{"day": "1\\u00300"}': f"day {DIGITS}",
        '{"at": 5, "text": {"at': "not JSON, or nested too deep",
        '{"at": "2024", "day": "1995"}': None,
        '{"text": "at", "more": {"at": 5, "day": 7}}': None,
        '{"text": "\\"at\\": 5", "ats": ["2024-01-01"], "m": {"5": "2024-01-01T00:00:00Z"}}': None,
    }
    rows = read(engines, of, [case.encode() for case in cases])
    assert dict(zip(cases, (error for (error,) in rows), strict=True)) == cases


# change events without a schema

DEBEZIUM = "format 'debezium-json'"
REPORTED = {"AcnDgA==": "300000.00", "MDk=": "123.45", "1000": "-26672.12", "AA==": "0.00", "A9DC": "2500.50"}
"""Base64 that Debezium wrote of NUMERIC(12, 2) by default."""


def of_decimals(engines: Engines, kind: str, values: Sequence[Any], options: str = "") -> list[tuple[Any, ...]]:
    of = source(f"id INT PRIMARY KEY, d {kind}", DEBEZIUM + options)
    return read(engines, of, [(b'{"id":1}', created({"id": 1, "d": value})) for value in values], "d")


UNSURE = (
    "a field has the wrong type: d is no DECIMAL({}) for certain: set decimal.handling.mode in OPTIONS to that of the"
    " connector"
)


def test_a_decimal_is_base64_unless_it_has_a_point(engines: Engines) -> None:
    texts = {
        **{text: (number, None) for text, number in REPORTED.items()},
        "9.90": ("9.90", None),
        "-5.00": ("-5.00", None),
        "0E-10": ("0.00", None),
        "1e10": ("-27572.60", None),  # base64 of three bytes: a decimal with two places never ends like this
        **{
            bad: (None, UNSURE.format("12,2"))
            for bad in ("+5", "\u0663", "5", "", "A", "AA", "9.9.9", "1,5", "12,50", "NaN")
        },
        unscaled(10**12 - 1): ("9999999999.99", None),
        unscaled(10**12): (None, UNSURE.format("12,2")),
        unscaled(-1, 16): ("-0.01", None),
        unscaled(-1, 17): (None, UNSURE.format("12,2")),
    }
    numbers = {
        9.9: ("9.90", None),
        1e10: (None, UNSURE.format("12,2")),
        5: ("5.00", None),
        True: (None, UNSURE.format("12,2")),
    }
    cases = [*texts.items(), *numbers.items()]
    decimals = of_decimals(engines, "DECIMAL(12, 2)", [value for value, _ in cases])
    assert dict(zip((str(value) for value, _ in cases), decimals, strict=True)) == {
        str(value): decimal for value, decimal in cases
    }


def test_digits_alone_are_not_a_decimal_without_places_until_the_mode_is_declared(engines: Engines) -> None:
    values = ["1000", "5", "-5", "A9DC", unscaled(-(10**37)), 7]
    unsure = (None, UNSURE.format("38,0"))
    base64 = [("250050", None), (str(-(10**37)), None), ("7", None)]
    assert of_decimals(engines, "DECIMAL(38, 0)", values) == [unsure, unsure, ("-5", None), *base64]
    precise = of_decimals(engines, "DECIMAL(38, 0)", values, ", 'decimal.handling.mode' 'precise'")
    wrong = (
        None,
        "a field has the wrong type: d is no DECIMAL(38,0) as Debezium writes one with decimal.handling.mode 'precise'",
    )
    assert precise == [("-2667212", None), wrong, wrong, *base64]


def test_a_declared_mode_leaves_no_doubt(engines: Engines) -> None:
    values = ["1000", "5", "1e3", "AA==", "9.90", 9.9]
    wrong = "a field has the wrong type: d is no DECIMAL(12,2) as Debezium writes one with decimal.handling.mode '{}'"
    texts = of_decimals(engines, "DECIMAL(12, 2)", values, ", decimal.handling.mode 'string'")
    assert texts == [
        ("1000.00", None),
        ("5.00", None),
        ("1000.00", None),
        (None, wrong.format("string")),
        *[("9.90", None)] * 2,
    ]
    numbers = of_decimals(engines, "DECIMAL(12, 2)", values, ", 'decimal.handling.mode' 'double'")
    assert numbers == [*[(None, wrong.format("double"))] * 5, ("9.90", None)]


def test_the_decimals_of_one_row_are_written_alike(engines: Engines) -> None:
    of = source("id INT PRIMARY KEY, a DECIMAL(12, 2), b DECIMAL(12, 2)", DEBEZIUM)
    rows = [{"a": "9.90", "b": "1000"}, {"a": "AA==", "b": "1000"}, {"a": "9.90", "b": "AA=="}]
    columns = read(engines, of, [(b"1", created({"id": 1, **row})) for row in rows], "a", "b")
    wrong = UNSURE.format("12,2").replace("d is", "b is")
    assert columns == [("9.90", "1000.00", None), ("0.00", "-26672.12", None), ("9.90", None, wrong)]


@pytest.mark.parametrize(
    ("options", "at", "error"),
    [
        ([DEBEZIUM], None, f"at {WITHOUT}".replace("set", "set time.precision.mode in OPTIONS, or set")),
        ([f"{DEBEZIUM}, 'time.precision.mode' 'adaptive'"], None, f"at {WITHOUT}"),
        ([f"{DEBEZIUM}, 'time.precision.mode' 'microseconds'"], f"{NOON}.123456", None),
        ([f"{DEBEZIUM}, 'time.precision.mode' 'nanoseconds'"], "1970-01-20 21:00:43.200123", None),
        ([f"{DEBEZIUM}, 'time.precision.mode' 'connect'"], None, "at is outside the years 0001 to 9999"),
        ([DEBEZIUM, "'epoch' = 'us'"], f"{NOON}.123456", None),
    ],
)
def test_times_of_a_change_need_the_mode_of_the_connector_and_dates_are_days(
    engines: Engines, options: list[str], at: str | None, error: str | None
) -> None:
    of = source("id INT PRIMARY KEY, at TIMESTAMP, day DATE", *options)
    record = (b"1", created({"id": 1, "at": 1717243200123456, "day": 19875}))
    assert read(engines, of, [record], "at", "day") == [(at, "2024-06-01", error)]


def test_texts_of_times_are_read_in_every_mode(engines: Engines) -> None:
    of = source("id INT PRIMARY KEY, at TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE", DEBEZIUM)
    rows = {
        '{"at": "2024-06-01T12:00:00.123456Z", "ntz": "2024-06-01T12:00:00Z", "day": "2024-06-01Z"}': (
            f"{NOON}.123456",
            NOON,
            "2024-06-01",
            None,
        ),
        '{"at": "2024-06-01T14:00:00+02:00", "ntz": "2024-06-01 12:00:00", "day": "2024-06-01"}': (
            NOON,
            NOON,
            "2024-06-01",
            None,
        ),
        '{"ntz": "2024-06-01T14:00:00+02:00"}': (
            None,
            None,
            None,
            "a field has the wrong type: ntz is no TIMESTAMP_NTZ",
        ),
        '{"at": "infinity", "ntz": "-infinity", "day": "Infinity"}': (None, None, None, None),
        '{"at": "+292278994-08-16T23:00:00Z", "ntz": "-292275055-05-16T23:00:00Z", "day": "+5881580-07-11"}': (None,)
        * 4,
        '{"at": "+12024-01-01T00:00:00Z"}': (None, None, None, "at is outside the years 0001 to 9999"),
    }
    records = [(b"1", created({"id": 1, **json.loads(row)})) for row in rows]
    assert dict(zip(rows, read(engines, of, records, "at", "ntz", "day"), strict=True)) == rows


@pytest.mark.parametrize(
    ("mode", "numbers"),
    [
        ("microseconds", (9223372036825200000, -9223372036832400000, 9223372036854775807)),
        ("connect", (9223372036825200, -9223372036832400, 9223372036825200)),
        ("nanoseconds", (9223372036854775807, -9223372036854775808, 9223372036825200000)),
    ],
)
def test_an_infinity_that_debezium_writes_is_null_and_not_bad(
    engines: Engines, mode: str, numbers: tuple[int, ...]
) -> None:
    of = source("id INT PRIMARY KEY, at TIMESTAMP, day DATE", DEBEZIUM + f", 'time.precision.mode' '{mode}'")
    days = (2147483647, -2147483648, 2146033979)
    rows = [created({"id": 1, "at": at, "day": day}) for at, day in zip(numbers, days, strict=True)]
    assert read(engines, of, [(b"1", row) for row in rows], "at", "day") == [(None, None, None)] * 3


# change events with a schema

SEMANTIC: list[tuple[str, dict[str, Any], Any, str | None]] = [
    ("DATE", of_type("x", "int32", "io.debezium.time.Date"), 19875, "2024-06-01"),
    ("DATE", of_type("x", "int32", "org.apache.kafka.connect.data.Date"), -1, "1969-12-31"),
    ("TIMESTAMP", of_type("x", "int32", "io.debezium.time.Date"), 19875, "2024-06-01 00:00:00"),
    ("TIMESTAMP", of_type("x", "int64", "io.debezium.time.Timestamp"), 1717243200123, f"{NOON}.123"),
    ("TIMESTAMP", of_type("x", "int64", "org.apache.kafka.connect.data.Timestamp"), 1717243200123, f"{NOON}.123"),
    ("TIMESTAMP_NTZ", of_type("x", "int64", "io.debezium.time.MicroTimestamp"), 1717243200123456, f"{NOON}.123456"),
    ("TIMESTAMP", of_type("x", "int64", "io.debezium.time.NanoTimestamp"), -1, "1969-12-31 23:59:59.999999"),
    ("TIMESTAMP", of_type("x", "string", "io.debezium.time.ZonedTimestamp"), "2024-06-01T12:00:00Z", NOON),
    ("DATE", of_type("x", "int64", "io.debezium.time.Timestamp"), 1717243200123, "2024-06-01"),
    (
        "DECIMAL(12, 2)",
        of_type("x", "bytes", "org.apache.kafka.connect.data.Decimal", scale="4"),
        "AcnDgA==",
        "3000.00",
    ),
    (
        "DECIMAL(12, 2)",
        of_type("x", "bytes", "org.apache.kafka.connect.data.Decimal", scale="0"),
        "1000",
        "-2667212.00",
    ),
    ("DECIMAL(12, 2)", of_type("x", "bytes", "org.apache.kafka.connect.data.Decimal", scale="-2"), "AQ==", "100.00"),
    ("DECIMAL(12, 2)", of_type("x", "string"), "1000", "1000.00"),
    ("DECIMAL(12, 2)", of_type("x", "double"), 9.9, "9.90"),
    (
        "DECIMAL(12, 2)",
        of_type("x", "struct", "io.debezium.data.VariableScaleDecimal"),
        {"scale": 3, "value": unscaled(-1235)},
        "-1.24",
    ),
    ("BIGINT", of_type("x", "int64", "io.debezium.time.MicroTime"), 45000000000, "45000000000"),
    ("STRING", of_type("x", "int64", "io.debezium.time.MicroTime"), 45000000000, "45000000000"),
    ("STRING", of_type("x", "bytes"), "AA==", "AA=="),
    ("BINARY", of_type("x", "bytes"), "bGFtaW5h", "lamina"),
    ("TIMESTAMP", of_type("x", "int64", "io.debezium.time.MicroTimestamp"), 9223372036825200000, None),
    ("TIMESTAMP", of_type("x", "int64", "io.debezium.time.MicroTimestamp"), None, None),
]


@pytest.mark.parametrize(
    ("kind", "field", "value", "shown"), SEMANTIC, ids=[f"{k} {f['name']}" for k, f, _, _ in SEMANTIC]
)
def test_a_field_is_read_by_the_schema_next_to_it(
    engines: Engines, kind: str, field: dict[str, Any], value: Any, shown: str | None
) -> None:
    of = source(f"id INT PRIMARY KEY, x {kind}", f"{DEBEZIUM}, 'time.precision.mode' 'connect'")
    record = created({"id": 1, "x": value}, [of_type("id", "int32"), field])
    assert read(engines, of, [(b'{"id":1}', record)], "x") == [(shown, None)]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("TIMESTAMP", of_type("x", "int64", "io.debezium.time.MicroTime"), 45000000000),
        ("DATE", of_type("x", "int64", "io.debezium.time.NanoTime"), 5),
        ("DECIMAL(12, 2)", of_type("x", "bytes"), "1000"),
        ("BINARY", of_type("x", "string"), "DEADBEEF"),
    ],
)
def test_a_field_whose_schema_does_not_fit_the_column_is_bad(
    engines: Engines, kind: str, field: dict[str, Any], value: Any
) -> None:
    of = source(f"id INT PRIMARY KEY, x {kind}", DEBEZIUM)
    [(error,)] = read(engines, of, [(b"1", created({"id": 1, "x": value}, [of_type("id", "int32"), field]))])
    assert str(error).removeprefix(WRONG).startswith("x is "), error


def test_a_renamed_column_is_read_by_the_schema_of_its_field(engines: Engines) -> None:
    names = "'field.amount' = 'Amount', 'field.placed' = 'createdAt'"
    fields = [
        of_type("Amount", "string"),
        of_type("createdAt", "int64", "io.debezium.time.MicroTimestamp"),
        of_type("amount", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"),
    ]
    values = {"Amount": "1000", "createdAt": 86400000000}
    row = ("1000.00", "1970-01-02 00:00:00")
    of = source("amount DECIMAL(12, 2), n INT, placed TIMESTAMP", "format 'json'", f"{names}, 'epoch' = 'ms'")
    assert read(engines, of, [b'{"createdAt": "x"}']) == [
        ("a field has the wrong type: placed is no TIMESTAMP",),
    ]
    of = source(
        "amount DECIMAL(12, 2), n INT, placed TIMESTAMP, PRIMARY KEY (amount, placed)",
        DEBEZIUM,
        f"{names}, 'epoch' = 'ms'",
    )
    key = json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": values}).encode()
    event = json.loads(created({**values, "n": 1}, fields))
    event["payload"].update(op="u", before={**values, "createdAt": 0})
    rows = read(engines, of, [(key, json.dumps(event).encode()), (key, None)], "amount", "placed", "kafka_moved_from")
    assert rows == [(*row, "{1000.00, 1970-01-01 00:00:00}", None), (*row, None, None)]


def test_a_key_is_decoded_like_the_row(engines: Engines) -> None:
    of = source("d DECIMAL(12, 2), day DATE, n INT, PRIMARY KEY (d, day)", DEBEZIUM)
    fields = [
        of_type("d", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"),
        of_type("day", "int32", "io.debezium.time.Date"),
        of_type("n", "int32"),
    ]
    key = {"d": "AcnDgA==", "day": 19875}
    bare, whole = (
        json.dumps(key).encode(),
        json.dumps({"schema": {"type": "struct", "fields": fields[:2]}, "payload": key}).encode(),
    )
    moved = json.dumps({"op": "u", "before": {**key, "day": 19874}, "after": {**key, "n": 2}}).encode()
    records: list[Record] = [
        (bare, created({**key, "n": 1})),
        (whole, created({**key, "n": 1}, fields)),
        (bare, None),
        (whole, None),
        (bare, moved),
    ]
    rows = read(engines, of, records, "d", "day", "n", "kafka_deleted", "kafka_moved_from")
    row = ("300000.00", "2024-06-01")
    gone = (*row, None, "true", None, None)
    assert rows == [
        *[(*row, "1", "false", None, None)] * 2,
        gone,
        gone,
        (*row, "2", "false", "{300000.00, 2024-05-31}", None),
    ]


# bytes


def test_bytes_are_base64_in_json(engines: Engines) -> None:
    of = source("x BINARY")
    rows = read(
        engines, of, [b'{"x": "bGFtaW5h"}', b'{"x": ""}', b'{"x": "bGFtaW5"}', b'{"x": 5}', b'{"x": null}'], "hex(x)"
    )
    wrong = (None, "a field has the wrong type: x is no BINARY")
    assert rows == [("6C616D696E61", None), ("", None), wrong, wrong, (None, None)]


@pytest.mark.parametrize("format_", ["json", "debezium-json"])
@pytest.mark.parametrize(
    ("mode", "text"), [("hex", "fbff"), ("base64-url-safe", "-_8"), ("base64", "+/8="), ("bytes", "+/8=")]
)
def test_bytes_are_written_as_the_connector_says(engines: Engines, format_: str, mode: str, text: str) -> None:
    of = source("id INT PRIMARY KEY, x BINARY", f"format '{format_}', 'binary.handling.mode' '{mode}'")
    row = {"id": 1, "x": text}
    record = json.dumps(row).encode() if format_ == "json" else created(row)
    assert read(engines, of, [(b"1", record), (b"1", record.replace(text.encode(), b"!"))], "hex(x)") == [
        ("FBFF", None),
        (None, f"{WRONG}x is no BINARY as Debezium writes one with binary.handling.mode '{mode}'"),
    ]


# flattened changes, and streams of changes


@pytest.mark.parametrize(
    ("kind", "values"), [("STRING", ['"true"', '"false"', "null"]), ("BOOLEAN", ["true", "false", "null"])]
)
def test_a_flattened_change_may_delete(engines: Engines, kind: str, values: list[str]) -> None:
    of = source(f"id INT PRIMARY KEY, n INT, __deleted {kind}", "format 'json', key_format 'json'")
    records: list[Record] = [(b"1", f'{{"id": 1, "n": 2, "__deleted": {value}}}'.encode()) for value in values]
    rows = read(engines, of, [*records, (b"1", None)], "kafka_deleted", "id", "n")
    assert rows == [
        ("true", "1", None, None),
        ("false", "1", "2", None),
        ("false", "1", "2", None),
        ("true", "1", None, None),
    ]


def test_a_flattened_change_may_delete_by_a_renamed_column(engines: Engines) -> None:
    columns = "id INT PRIMARY KEY, n INT, gone STRING, __deleted STRING"
    names = "'field.gone' = '__deleted', 'field.__deleted' = 'flag'"
    of = source(columns, "format 'json', key_format 'json'", names)
    records: list[Record] = [
        (b"1", f'{{"id": 1, "n": 2, "__deleted": "{gone}", "flag": "{flag}"}}'.encode())
        for gone, flag in (("true", "false"), ("false", "true"))
    ]
    rows = read(engines, of, records, "kafka_deleted", "n", "gone", "__deleted")
    assert rows == [("true", None, "true", None, None), ("false", "2", "false", "true", None)]


def test_flattened_values_are_decoded_by_the_modes(engines: Engines) -> None:
    modes = "format 'json', 'decimal.handling.mode' 'precise', 'time.precision.mode' 'connect'"
    of = source("d DECIMAL(12, 2), at TIMESTAMP, day DATE", modes)
    record = b'{"d": "1000", "at": 1717243200123, "day": 19875}'
    assert read(engines, of, [record], "d", "at", "day") == [("-26672.12", f"{NOON}.123", "2024-06-01", None)]


def test_a_number_in_a_text_may_be_a_decimal_in_base64(engines: Engines) -> None:
    """Debezium writes no other number as a text."""
    of_mode = {
        "": "for certain: set decimal.handling.mode in OPTIONS to that of the connector",
        ", 'decimal.handling.mode' 'precise'": "in a text: declare it DECIMAL",
    }
    rows: list[dict[str, Any]] = [{"n": "1000"}, {"x": "1000"}, {"x": "AA=="}, {"n": 5, "x": 1.5}, {"x": "NaN"}]
    records = [(b'{"id":1}', created({"id": 1, **row})) for row in rows]
    for mode, why in of_mode.items():
        of = source("id BIGINT PRIMARY KEY, n BIGINT, x DOUBLE", DEBEZIUM + mode)
        wrong = {name: f"a field has the wrong type: {name} is no {kind} {why}" for name, kind in COLUMNS}
        assert read(engines, of, records, "n", "x") == [
            (None, None, wrong["n"]),
            (None, None, wrong["x"]),
            (None, None, wrong["x"]),
            ("5", "1.5", None),
            (None, "NaN", None),
        ]
    of = source("id BIGINT PRIMARY KEY, n BIGINT, x DOUBLE", f"{DEBEZIUM}, 'decimal.handling.mode' 'string'")
    assert read(engines, of, records[:2], "n", "x") == [("1000", None, None), (None, "1000.0", None)]


COLUMNS = [("n", "BIGINT"), ("x", "DOUBLE")]


def test_a_document_of_mongodb_is_a_text_in_json(engines: Engines) -> None:
    of = source("id STRING PRIMARY KEY, status STRING, items ARRAY<STRUCT<sku: STRING>>", DEBEZIUM)
    key = json.dumps({"id": '{"$oid": "a"}'}).encode()
    document = json.dumps({"_id": {"$oid": "a"}, "status": "new", "items": [{"sku": "x"}]})
    event = {"op": "c", "after": document, "before": None, "source": {"ts_ms": 1}}
    records: list[Record] = [
        (key, json.dumps(event).encode()),
        (key, json.dumps({**event, "op": "d", "after": None}).encode()),
        (key, None),
    ]
    rows = read(engines, of, records, "id", "kafka_deleted", "status", "items")
    gone = ('{"$oid": "a"}', "true", None, None, None)
    assert rows == [('{"$oid": "a"}', "false", "new", "[{x}]", None), gone, gone]


def test_a_record_may_carry_its_schema(engines: Engines) -> None:
    """Kafka Connect writes the schema by default. Some records may lack it."""
    columns = "id INT PRIMARY KEY, d DECIMAL(12, 2), made TIMESTAMP, day DATE, x BINARY, __deleted STRING"
    connect = "format 'json', key_format 'json', 'schemas.enable' 'true'"
    of = source(columns, connect, "'field.made' = 'at'")
    fields = [
        of_type("id", "int32"),
        of_type("d", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"),
        of_type("at", "int64", "org.apache.kafka.connect.data.Timestamp"),
        of_type("day", "int32", "org.apache.kafka.connect.data.Date"),
        of_type("x", "bytes"),
        of_type("__deleted", "string"),
    ]

    def beside(payload: object, fields: Sequence[object]) -> bytes:
        return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()

    row = {"id": 1, "d": "1000", "at": -1, "day": -1, "x": "AQI=", "__deleted": "false"}
    plain = {"id": 1, "d": "9.90", "at": "2024-06-01T12:00:00Z", "payload": {"id": 2}}
    key = beside({"id": 1}, [of_type("id", "int32")])
    records: list[Record] = [
        (key, beside(row, fields)),
        (key, beside({**row, "__deleted": "true"}, fields)),
        (key, None),
        (b'{"id": 1}', json.dumps(plain).encode()),
        (key, beside(None, fields)),
        (key, b"{"),
        (key, beside({"n": 1}, fields).replace(b'"n": 1', b'"id": 1, "id": 2')),
    ]
    rows = read(engines, of, records, "kafka_deleted", "id", "d", "made", "day", "hex(x)")
    gone = ("true", "1", None, None, None, None, None)
    null = "the JSON value null, not an object: a deletion is a record without a value"
    assert rows == [
        ("false", "1", "-26672.12", "1969-12-31 23:59:59.999", "1969-12-31", "0102", None),
        gone,
        gone,
        ("false", "1", "9.90", NOON, None, None, None),
        ("false", "1", None, None, None, None, null),
        ("false", "1", None, None, None, None, "not JSON, or nested too deep"),
        ("false", "1", None, None, None, None, "an object has a field twice"),
    ]
    undeclared = source("id INT PRIMARY KEY", "format 'json', key_format 'json'")
    way_out = "the record is beside its schema, as Kafka Connect writes it: set schemas.enable to true in OPTIONS"
    assert read(engines, undeclared, [(key, beside(row, fields))], "id") == [(None, way_out)]


def test_changes_are_a_stream_without_a_primary_key(engines: Engines) -> None:
    row = "STRUCT<id: INT, d: DECIMAL(12, 2), at: TIMESTAMP>"
    columns = f"op STRING, before {row}, after {row}, source STRUCT<ts_ms: TIMESTAMP, lsn: BIGINT>, ts_ms TIMESTAMP"
    of = source(columns, DEBEZIUM, "'event_time' = 'ts_ms'")
    fields = [of_type("id", "int32"), of_type("d", "string"), of_type("at", "int64", "io.debezium.time.Timestamp")]
    values = {"id": 1, "d": "1000", "at": 1717243200123}
    deleted = {
        "op": "d",
        "before": {"id": 1, "d": "1000"},
        "after": None,
        "source": {"ts_ms": 5, "lsn": 3},
        "ts_ms": 1717243200123,
    }
    records: list[Record] = [
        created(values, fields),
        json.dumps(deleted).encode(),
        (b"1", None),
        b'{"op": "t", "ts_ms": 0}',
        b'{"id": 1}',
    ]
    rows = read(engines, of, records, "op", "before", "after", "source", "ts_ms")
    seven = "1970-01-01 00:00:00.007"
    assert rows == [
        ("c", None, f"{{1, 1000.00, {NOON}.123}}", "{1970-01-01 00:00:00.005, null}", seven, None),
        ("d", "{1, -26672.12, null}", None, "{1970-01-01 00:00:00.005, 3}", f"{NOON}.123", None),
        (None, None, None, None, None, ""),
        ("t", None, None, None, "1970-01-01 00:00:00", None),
        (None, None, None, None, None, "no change event of Debezium: it has no op"),
    ]
    assert [row.kafka_error for row in engines.spark.sql(quarantined(of)).collect()] == [
        "no change event of Debezium: it has no op"
    ]


KINDS = {
    "s": "STRING",
    "ss": "ARRAY<STRING>",
    "n": "DECIMAL(38, 10)",
    "ns": "ARRAY<DECIMAL(38, 2)>",
    "i": "BIGINT",
    "st": "STRUCT<s: STRING, n: DECIMAL(3, 2)>",
}
DIGITS_OF_CHANGES = [
    ("s", "0.10", "0.10"),
    ("s", "1.0", "1.0"),
    ("s", "-0.0", "-0.0"),
    ("s", "1e3", "1e3"),
    ("s", '"1.0"', "1.0"),
    ("s", '{"b": 1e3, "a": [0.10, "0.10", 1.0]}', '{"a":[0.10,"0.10",1.0],"b":1e3}'),
    ("s", "9" * 50, "9" * 50),
    ("s", '0.10, "i": 1, "ss": ["\uf8ff0.10"]', "0.10"),
    ("ss", '["\uf8ff0.10", 0.10]', "[\uf8ff0.10, 0.10]"),
    ("ss", "[1.0, 1.50, 7]", "[1.0, 1.50, 7]"),
    ("st", '{"s": 2.0, "n": 0.5}', "{2.0, 0.50}"),
    ("st", f'{{"n": 0.{"1" * 50}}}', "{null, 0.11}"),
    ("n", "12345678901234567890123456.1234567890123", "12345678901234567890123456.1234567890"),
    ("n", "1.2345678901234567890123e5", "123456.7890123457"),
    ("n", "1.5e-3", "0.0015000000"),
    ("n", "1e3", "1000.0000000000"),
    ("n", f"1{'0' * 50}", None),
    ("ns", '[12345678901234567890123456.15, null, "0.5"]', "[12345678901234567890123456.15, null, 0.50]"),
    ("ns", f"[1.{'1' * 50}]", "[1.11]"),
    ("i", "9007199254740993e0", "9007199254740993"),
]


def test_a_number_of_a_change_keeps_every_digit(engines: Engines) -> None:
    mode = f"{DEBEZIUM}, 'decimal.handling.mode' 'string'"
    table = source(f"id INT PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in KINDS.items())}", mode)
    row = f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in KINDS.items())}>"
    stream = source(f"op STRING, before {row}, after {row}", mode)
    events = {
        op: [
            f'{{"op": "{op}", "{part}": {{"id": 1, "{name}": {value}}}}}'.encode()
            for name, value, _ in DIGITS_OF_CHANGES
        ]
        for op, part in (("c", "after"), ("d", "before"))
    }
    of_table = read(engines, table, [(b'{"id": 1}', event) for event in events["c"]], *KINDS)
    of_changes = {
        op: read(engines, stream, change_event, *(f"coalesce(after, before).{name}" for name in KINDS))
        for op, change_event in events.items()
    }
    for actual in (of_table, *of_changes.values()):
        for shown, (name, value, wanted) in zip(actual, DIGITS_OF_CHANGES, strict=True):
            assert (value, shown[list(KINDS).index(name)], shown[-1] is None) == (value, wanted, wanted is not None)


def test_a_document_and_a_payload_keep_every_digit(engines: Engines) -> None:
    document = json.dumps({"op": "c", "after": '{"id": 1, "s": 0.10, "n": 1.2345678901234567890123e5}'}).encode()
    of = source("id INT PRIMARY KEY, s STRING, n DECIMAL(38, 10)", DEBEZIUM)
    assert read(engines, of, [(b'{"id": 1}', document)], "s", "n") == [("0.10", "123456.7890123457", None)]
    of = source("s STRING, ss ARRAY<STRING>", "format 'json', 'schemas.enable' 'true'")
    alone = '{"s": 0.10, "ss": [1.0, 1e3]}'
    beside = f'{{"schema": {{"type": "struct", "fields": []}}, "payload": {alone}}}'
    shown = ("0.10", "[1.0, 1e3]", None)
    more = "more text follows the object"
    rows = read(engines, of, [text.encode() for text in (beside, alone, beside * 2, beside + " x")], "s", "ss")
    assert rows[:2] == [shown] * 2
    assert [row[-1] for row in rows[2:]] == [more] * 2


def test_the_key_that_a_change_leaves_keeps_every_digit(engines: Engines) -> None:
    of = source("id STRING PRIMARY KEY, n INT", f"{DEBEZIUM}, 'key_format' 'none'")
    events = [
        f'{{"op": "u", "before": {{"id": {before}}}, "after": {{"id": {after}}}}}'.encode()
        for before, after in (("0.10", "0.10"), ("1.0", "1.00"))
    ]
    assert read(engines, of, events, "id", "kafka_moved_from") == [("0.10", None, None), ("1.00", "{1.0}", None)]
    of = source("id DECIMAL(38, 2) PRIMARY KEY", f"{DEBEZIUM}, 'key_format' 'none', 'decimal.handling.mode' 'double'")
    number = "12345678901234567890123456.123456789012"
    event = f'{{"op": "u", "before": {{"id": {number}}}, "after": {{"id": {number}}}}}'.encode()
    assert read(engines, of, [event], "id", "kafka_moved_from") == [(number[:29], None, None)]


def test_a_change_is_one_object_and_nothing_follows_it(engines: Engines) -> None:
    more, twice, broken = "more text follows the object", "an object has a field twice", "not JSON, or nested too deep"
    one, two = (json.dumps({"op": "c", "after": {"id": id}, "source": {"ts_ms": 1}}) for id in (1, 2))
    cases = {
        f" {one}\r\n": None,
        **{one + rest: more for rest in (two, f"\n{two}", f", {two}", ", null", " trailing", "] trailing", "}", "\0")},
        '{"op": "c", "op": "d", "after": {"id": 1}}': twice,
        '{"op": "c", "after": {"id": 1, "id": 1}}': twice,
        one[:-1]: broken,
        one.replace('"', "'"): broken,
        one[:-1] + ",}": "not JSON: a comma stands before } or ]",
        '{"id": 1}': "no change event of Debezium: it has no op",
        f"[{one}]": "no change event of Debezium: it has no op",
    }
    for columns in ("id INT PRIMARY KEY", "op STRING, after STRUCT<id: INT>"):
        rows = read(engines, source(columns, DEBEZIUM), [(b'{"id":1}', written.encode()) for written in cases])
        assert {case: error for case, (error,) in zip(cases, rows, strict=True)} == cases


CHANGED = """
CREATE TABLE changes (
  op STRING, before STRUCT<id: INT, amount: DECIMAL(12, 2)>, after STRUCT<id: INT, amount: DECIMAL(12, 2)>,
  ts_ms TIMESTAMP
) USING kafka OPTIONS (topic 'orders', format 'debezium-json') TBLPROPERTIES ('event_time' = 'ts_ms');
CREATE TABLE orders (id INT PRIMARY KEY, amount DECIMAL(12, 2))
USING kafka OPTIONS (topic 'orders', format 'debezium-json');
CREATE TABLE flat (id INT PRIMARY KEY, amount DECIMAL(12, 2), at TIMESTAMP, __deleted STRING)
USING kafka OPTIONS (topic 'flat', format 'json', 'decimal.handling.mode' 'precise') TBLPROPERTIES ('epoch' = 'us');
CREATE VIEW by_op AS
SELECT op, count(*) AS n, sum(after.amount) AS amount, last(before.id) AS last FROM changes GROUP BY op;
CREATE VIEW each AS SELECT op, after.id, ts_ms FROM changes;
"""


def test_changes_are_counted_and_tables_over_them_are_right(engines: Engines) -> None:
    catalog = compile_catalog({"changes.sql": CHANGED})

    def row(id: int, amount: int) -> dict[str, Any]:
        return {"id": id, "amount": unscaled(amount)}

    def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Record:
        key = before or after or {}
        event = {"op": op, "before": before, "after": after, "source": {"ts_ms": 5}, "ts_ms": 1717243200123}
        return json.dumps({"id": key["id"]}).encode(), json.dumps(event).encode()

    changes: list[Record] = [
        change("c", None, row(1, 1000)),
        change("c", None, row(2, -1)),
        change("u", row(1, 1000), row(1, 2550)),
        change("d", row(2, -1), None),
        (b'{"id":2}', None),
    ]
    flat: list[Record] = [
        (b'{"id":1}', json.dumps({**row(1, 1000), "at": 1717243200123456, "__deleted": "false"}).encode()),
        (b'{"id":2}', json.dumps({**row(2, 7), "at": 9223372036825200000, "__deleted": "false"}).encode()),
        (b'{"id":3}', json.dumps({**row(3, 7), "at": 5, "__deleted": "false"}).encode()),
        (b'{"id":3}', json.dumps({**row(3, 7), "at": 5, "__deleted": "true"}).encode()),
        (b'{"id":3}', None),
    ]
    batches = {
        "changes": [changes[:3], changes[3:]],
        "orders": [[change] for change in changes],
        "flat": [[change] for change in flat],
    }
    assert engines.differing(catalog, batches) == {}
    shown = {
        name: [tuple(map(str, row)) for row in engines.actual(catalog.views[name])]
        for name in ("by_op", "orders", "flat")
    }
    assert shown["by_op"] == [("c", "2", "9.99", "None"), ("d", "1", "None", "2"), ("u", "1", "25.50", "1")]
    assert shown["orders"] == [("1", "25.50")]
    assert shown["flat"] == [
        ("1", "10.00", f"{NOON}.123456", "false"),
        ("2", "0.07", "None", "false"),
    ]
