"""`lamina ingest` judges a line exactly as its source reads the record."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from interchange.guessing import since_1970
from interchange.json_values import fits, from_text
from interchange.judgements import Rules
from master_log.reading.kafka_reader import parsed
from tests.fix_sources import declared
from view_algebra.language.types import Type
from view_algebra.record_columns import BAD_FIELDS

COLUMNS = (
    "tiny TINYINT, small SMALLINT, number INT, id BIGINT, ratio DOUBLE, price DECIMAL(6, 2), name STRING, "
    "open BOOLEAN, ts TIMESTAMP, wall TIMESTAMP_NTZ, day DATE, "
    "payload STRUCT<user: STRUCT<id: BIGINT>, tags: ARRAY<STRING>>, counts MAP<STRING, INT>, raw BINARY, "
    "numbers ARRAY<INT>, structs ARRAY<STRUCT<n: INT>>, times ARRAY<TIMESTAMP>, x INT"
)

TIMES = (
    "2024", "2024-1", "2024-01-02", "2024-02-30", "2024-13-01", "2023-02-29", "2024-02-29", "0000-01-01", "0001-01-01",
    "99999-01-01", "10000-01-01", "2024-01-02T", "2024-01-02 3", "2024-01-02 3:4", "2024-01-02T03:04:05",
    "2024-01-02 03:04:05.1234567890", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05+0200",
    "2024-01-02T03:04:05 Europe/Berlin", "2024-01-02T03:04:05 Nowhere/Here", "2024-01-02T03:04:05UTC",
    "2024-01-02T24:00:00", "2024-01-02T03:60:00", "2024-01-02T03:04:60", " 2024-01-02 ", "yesterday", "", "03:04:05",
    "2024-01-02T03:04:05+19:00", "20240102", "2024/01/02", "02.01.2024", "2024-01-02T03:04:05.Z",
)  # fmt: skip

VALUES: dict[str, tuple[object, ...]] = {
    "tiny": (127, -128, 128, -129, 1.0, "1", True, None, {}, []),
    "small": (32767, 32768, 0.5),
    "number": (2**31 - 1, 2**31, -(2**31), "", "12", 1e3),
    "id": (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, False),
    "ratio": (1, 1.5, "NaN", "Infinity", "-Infinity", "INF", "1.5", "", "x", True, 10**400),
    "price": (1, 1.25, 1.255, 9999.99, 9999.994, 9999.995, 10000, "12.5", "x", "", True, 1e-9, [1],
              "12,50", ",5", "1,234.5", " 1", "1 ", "1_0", "1.", ".5", "+1", "1e2", "1E-2", "\u0661", "NaN", "."),
    "name": ("", "ä", 1, 1.5, True, {"a": 1}, [1, "b"], "a\u0000b", {"a": "\u0000"}),
    "open": (True, False, "true", 1, 0, ""),
    "ts": (*TIMES, 1700000000, 1.5, True, 10**17, 1770905537404235, 1789512546948729, 253402300799, 253402300800,
           -62135596800, -62135596801),
    "wall": (*TIMES, 1700000000),
    "day": (*TIMES, 19000),
    "payload": (
        {}, {"user": {}}, {"user": {"id": 1}}, {"user": {"id": "x"}}, {"user": 1}, {"tags": ["a", 1, None]},
        {"tags": "a"}, {"other": 1}, "x", 1, [{}],
    ),
    "raw": ("", "AA==", "AA=", "AA", "A", "A A=", "AAAA", "AAA-", "AAA/", "=AAA", "AAAA=", "\u0663", 5, True),
    "counts": ({}, {"a": 1}, {"a": None}, {"a": "x"}, {"a": 1.5}, [1], "x"),
}  # fmt: skip

TEXTS = (
    b"", b" ", b"{}", b"null", b"1", b'"text"', b"[]", b"[{}]", b"{", b"}", b"nonsense", b'{"id": 1', b'{"id": 1}}',
    b'{"id": 1} {"id": 2}', b'{"id": 1} x', b' {"id": 1} ', b'{"id": 1,}', b"{'id': 1}", b'{"unknown": {"a": [1]}}',
    b'{"ratio": NaN}', b'{"ratio": Infinity}', b'{"ID": "x"}', b'{"id": 01}', b'{"id": 1, "id": 2}',
    b'{"name": "\xff"}',
    b'{"price": 1e-100000000}', b'{"price": "1e-100000000"}', b'{"ratio": 1e5000}', b'{"name": "1e5000"}',
    b'{"name": ' + b"[" * 900 + b"]" * 900 + b"}", b'{"name": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"name": "' + b"x" * 1_000_000 + b'"}', b'{"name": "tab\there"}', b'{"name": "a\\u0000"}',
)  # fmt: skip


HOSTILE = (
    b'\xef\xbb\xbf{"id": 1}', b"\xff\xfe{\x00}\x00", b'\x00{"id": 1}', b'{"id": 1}\x00', b'{"name": "a\x00b"}',
    b'{"other": "\\u0000"}', b'{"counts": {"a\\u0000": 1}}', b'{"name": "\\ud83d"}', b'{"name": "\xed\xa0\xbd"}',
    b'{"name": "caf\xe9"}', b'{"caf\xe9": 1}', b'{"id": "x", "id": 1}', b'{"id": 1, "id": "x"}', b'{"ID": 1}', b"\t",
    b'{"id": 1e5000}', b'{"ratio": 1e400}', b'{"price": 1e-5000}', b'{"name": 1e5000}', b'{"other": 1e5000}',
    b'{"id": ' + b"1" * 1001 + b"}", b'{"name": ' + b"1" * 5000 + b"}", b'{"price": ' + b"1" * 5000 + b"}",
    b'{"name": "' + b"x" * 10_000_000 + b'"}', b'"{\\"id\\": 1}"', b'{"id": 1}\r', b'\t{"id":\t1}\t', b'{"id": 1} }',
    b'{"id": 1} x }', b'{"id": 1}]', b'{"id": 1}, {"id": 2}', b'{"name": "}{"} }', b'{"id": 1 /* c */}', b"{id: 1}",
    b"{'name': 'it\\'s'}", b"{'name': 'say \"hi\"'}", b"{'name': \"it's\"}", b"{'id': 'x'}", b'{"name": "\\\'"}',
    b'{"ratio": INF}', b'{"ratio": +Infinity}', b'{"ratio": -INF}', b'{"other": [INF, "INF"]}', b'{"ratio": nan}',
    b'{"id": NaN}', b'{"open": True}', b'{"name": "\\x41"}', b'{"name": "\\u12"}', b'{"id": +1}', b'{"ratio": .5}',
    b'{"raw": " "}', b'{"_x": "x"}', b'{"x": "x"}', b'{"id": "x", "tiny": 200, "ts": "03:04"}', b"-", b'{"id":}',
    b'{"ts": 9223372036854775807}', b'{"ts": 9223372036854775}', b'{"id": "\\u0031"}', b'{"ratio": "1e99999"}',
    b'{"payload": []}', b'{"payload": " "}', b'{"payload": {"tags": ""}}', b'{"payload": {"tags": {}}}',
    b'{"payload": {"user": []}}', b'{"payload": {"user": {"id": ""}}}', b'{"counts": []}', b'{"counts": [1]}',
    b'{"counts": {"a": ""}}', b'{"numbers": ["", 1]}', b'{"numbers": ["", "x"]}', b'{"numbers": " "}',
    b'{"numbers": {}}',
    b'{"structs": [{"n": ""}, [], null]}', b'{"structs": [{"n": "x"}]}', b'{"times": ["", null]}', b'{"times": ["x"]}',
    b'{"times": ["03:04"]}', b'{"id": " "}', b'{"id": "\\u00a0"}', b'{"open": "\\t"}', b'{"price": ""}',
    b'{"price": " "}', b'{"ratio": " "}', b'{"ts": " "}', b'{"day": ""}', b'{"name": " "}',
)  # fmt: skip
"""Lines at the edges of JSON, which no program writes on purpose but producers and people send."""


def test_a_csv_field_far_beyond_the_calendar_is_not_a_time() -> None:
    kind = since_1970("ms")
    assert fits(kind, from_text(kind, "1e12"))
    assert not fits(kind, from_text(kind, "1e99999999"))


def test_a_csv_field_of_endless_zeros_is_not_a_decimal() -> None:
    for text in ("1e-100000000", "1E100000000", "0." + "0" * 1_000_000 + "1"):
        assert from_text(Type("DECIMAL", 6, 2), text) == text
        assert not fits(Type("DECIMAL", 6, 2), text)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        *({"epoch": unit} for unit in ("s", "ms", "us", "ns")),
        {"on_bad_field": "null"},
        {"empty_as_null": "true"},
        {"on_bad_field": "null", "empty_as_null": "true", "epoch": "ms"},
    ],
    ids=lambda properties: ", ".join(properties.values()) or "plain",
)
def test_a_line_is_judged_as_its_source_reads_it(spark: SparkSession, properties: dict[str, str]) -> None:
    options = ", ".join(f"'{name}' = '{value}'" for name, value in {"field.x": "_x", **properties}.items())
    source = declared("any", COLUMNS, f"TBLPROPERTIES ({options})")
    lines = [json.dumps({name: value}).encode() for name, values in VALUES.items() for value in values]
    lines += [*TEXTS, *HOSTILE]
    rules = Rules.of(source)
    schema = (
        "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    raw = spark.createDataFrame([("any", 0, at, None, None, line, None) for at, line in enumerate(lines)], schema)
    bad_fields = BAD_FIELDS if source.counts_bad_fields else "NULL"
    read = parsed(raw, source).selectExpr("kafka_offset", "kafka_error", f"{bad_fields} AS with_null").collect()
    differ = []
    for row in read:
        line = lines[row.kafka_offset]
        judgement = rules.judged(line)
        if (judgement.problem is None, judgement.with_null is None) != (row.kafka_error is None, row.with_null is None):
            ours, its = judgement.problem or judgement.with_null, row.kafka_error or row.with_null
            differ.append(f"{line[:80]!r}: {ours!r}, and its source says {its!r}")
    assert not differ, "\n" + "\n".join(differ)
