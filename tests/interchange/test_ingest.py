"""A good file is sent whole. A bad one is refused unless its bad lines may go to quarantine."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from interchange.csv_forms import CsvForms
from interchange.files import BadLine
from interchange.ingest import Interrupted, Options, ingest
from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange
from master_log.reading.kafka_reader import kafka_range, parsed
from tests.fix_services import Topic
from tests.fix_sources import COLUMNS, Contents, NewSource
from view_algebra import compile_catalog
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.language.types import Type
from view_algebra.records.quarantined import quarantined

JSON = [
    b'{"id": 1, "kind": "show", "ts": "2024-01-02T03:04:05Z"}',
    b'{"id": 2, "price": 1.25, "kind": null}',
    b'{"id": 3}',
]


def sent(contents: list[tuple[bytes | None, bytes | None]]) -> list[bytes | None]:
    return sorted((value for _, value in contents), key=lambda value: value or b"")


def written(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def zstandard(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


ENDINGS: dict[Callable[[bytes], bytes], str] = {bytes: "", gzip.compress: ".gz", zstandard: ".zst"}


@pytest.mark.parametrize("pack", ENDINGS)
def test_json_lines_arrive_unchanged(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents, pack: Callable[[bytes], bytes]
) -> None:
    source = new_source(3)
    content = b"\xef\xbb\xbf" + JSON[0] + b"\r\n\n" + JSON[1] + b"\n" + JSON[2]
    name = f"records.jsonl{ENDINGS[pack]}"
    calls: list[tuple[int, int | None]] = []
    done = ingest(
        source,
        written(tmp_path, name, pack(content)),
        brokers,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert (done.sent, done.bad, done.first_bad) == (3, 0, [])
    assert sent(contents(source.topic)) == sorted(JSON)
    assert set(brokers.latest(source.topic).values()) == {1}, "dealt to the partitions in turn"
    assert calls[-1] == (3, 3)


ORDERS = "id BIGINT, TOWN STRING, buyer STRUCT<name: STRING, tags: ARRAY<STRUCT<word: STRING>>>, props MAP<STRING, INT>"


@pytest.mark.parametrize("on_bad", ["refuse", "quarantine"])
def test_an_undeclared_field_refuses_the_file_unless_unknown_fields_are_ignored(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents, on_bad: Literal["refuse", "quarantine"]
) -> None:
    source = new_source(columns=ORDERS)
    lines = [
        b'{"id": 1, "Town": "Delft"}',
        b'{"id": 2, "Town": "Gouda", "buyer": {"Name": "x", "tags": [{"word": "a"}, {"wort": "b"}]}, "extra": 1}',
        b'{"id": 3, "TOWN": "Breda", "props": {"anything": 1}}',
    ]
    path = written(tmp_path, "orders.jsonl", b"\n".join(lines))
    with pytest.raises(LaminaError, match=r"4 fields are not declared by source events; nothing was sent") as raised:
        ingest(source, path, brokers, Options(on_bad=on_bad))
    assert raised.value.evidence.splitlines() == [
        "Town is not declared, in 2 of 3 records; did you mean TOWN?",
        "buyer.Name is not declared, in 1 of 3 records; did you mean buyer.name?",
        "buyer.tags.wort is not declared, in 1 of 3 records; did you mean buyer.tags.word?",
        "extra is not declared, in 1 of 3 records",
    ]
    assert "--ignore-unknown" in raised.value.way_out
    header = written(tmp_path, "orders.csv", b"id,Twon,TOWN\n1,Delft,\n")
    with pytest.raises(LaminaError, match="1 field is not declared") as raised:
        ingest(source, header, brokers, Options(on_bad=on_bad))
    assert raised.value.evidence == "Twon is not declared, in 1 of 1 records; did you mean TOWN?"
    assert contents(source.topic) == []
    assert ingest(source, path, brokers, Options(on_bad=on_bad, ignore_unknown=True)).sent == 3
    assert [value for _, value in contents(source.topic)] == lines, "as they are"


def test_an_interrupted_ingest_resumes_after_the_records_sent(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source(3)
    lines = [b'{"id": %d}' % number for number in range(2_000)]
    path = written(tmp_path, "records.jsonl", b"\n".join(lines))

    def stop(done: int, _: int | None) -> None:
        if done == 1_000:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted) as interrupted:
        ingest(source, path, brokers, on_progress=stop)
    assert interrupted.value.sent == 1_000
    assert sent(contents(source.topic)) == sorted(lines[:1_000]), "what was handed over has arrived"
    rest = ingest(source, path, brokers, Options(skip=interrupted.value.sent))
    assert (rest.sent, rest.skipped) == (1_000, 1_000)
    assert sent(contents(source.topic)) == sorted(lines)
    with pytest.raises(LaminaError, match=r"fewer records \(2,000\) than were to be skipped \(2,001\)"):
        ingest(source, path, brokers, Options(skip=2_001))
    with pytest.raises(LaminaError, match=r"fewer records \(2,000\) than were to be skipped \(2,001\)"):
        ingest(source, path, brokers, Options(skip=2_001, on_bad="quarantine", ignore_unknown=True))
    assert len(contents(source.topic)) == 2_000


def test_an_ingest_interrupted_before_sending_reports_that_nothing_was_sent(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    class InterruptedForms(CsvForms):
        def value(self, kind: Type, text: str) -> Any:
            signal.raise_signal(signal.SIGINT)

    source = new_source()
    with pytest.raises(Interrupted, match=r"^0 records of the file were sent"):
        ingest(source, written(tmp_path, "records.csv", b"id\n1\n"), brokers, Options(forms=InterruptedForms()))
    assert contents(source.topic) == []


def test_one_bad_line_refuses_the_whole_file(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    bad = [b"no JSON", b"[1]", b'{"id": "x"}', b'{"small": 70000}', b'{"kind": "\xff"}', b"[" * 5000]
    path = written(tmp_path, "records.jsonl", b"\n".join(JSON + bad) + b"\n")
    with pytest.raises(LaminaError, match="6 of 9 lines are bad; nothing was sent") as raised:
        ingest(source, path, brokers)
    assert raised.value.evidence.splitlines()[1:] == [
        "line 5: a JSON array, not an object: send each element as a record",
        'line 6: id is "x", not BIGINT',
        "line 7: small is 70000, not SMALLINT",
        "line 8: not UTF-8",
        "line 9: nested too deep",
    ]
    assert "--on-bad quarantine" in raised.value.way_out
    assert contents(source.topic) == []


def test_bad_lines_for_quarantine_are_sent_unchanged_and_counted(
    spark: SparkSession, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    lines = [JSON[0], b"no JSON", JSON[1], b'{"id": "x"}', *[b"[]"] * 20]
    content = io.BytesIO(b"\n".join(lines))
    done = ingest(source, "-", brokers, Options(file_format="jsonl", on_bad="quarantine"), stdin=content)
    assert (done.sent, done.bad, len(done.first_bad)) == (24, 22, 10)
    assert done.first_bad[1] == BadLine(4, 'id is "x", not BIGINT')
    assert [value for _, value in contents(source.topic)] == lines, "one partition keeps the file's order"
    whole = OffsetRange(brokers.earliest(source.topic), brokers.latest(source.topic))
    parsed(kafka_range(spark, brokers, source, whole), source).createOrReplaceTempView("records")
    kept = {row.kafka_offset: row.kafka_error for row in spark.sql(quarantined(source)).collect()}
    assert len(kept) == done.bad
    assert kept[3] == "a field has the wrong type: id is no BIGINT", (
        "a line of JSON is the record: one reason for all values"
    )


def test_the_quarantine_reason_of_a_csv_row_names_no_line(
    spark: SparkSession, brokers: Brokers, new_source: NewSource
) -> None:
    source = new_source()
    content = io.BytesIO(b"id,small\n1,2\n1,x\n2,3\n3,x\n")
    assert ingest(source, "-", brokers, Options(file_format="csv", on_bad="quarantine"), stdin=content).bad == 2
    whole = OffsetRange(brokers.earliest(source.topic), brokers.latest(source.topic))
    parsed(kafka_range(spark, brokers, source, whole), source).createOrReplaceTempView("records")
    reasons = {row.kafka_error for row in spark.sql(quarantined(source)).collect()}
    assert reasons == {'lamina ingest: small is "x", not SMALLINT'}


def test_a_line_that_counts_with_null_for_a_field_is_sent(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    columns = f"{COLUMNS}, x INT, at STRUCT<n: INT>, UNIQUE (id)"
    properties = "TBLPROPERTIES ('field.x' = '_x', 'on_bad_field' = 'null', 'empty_as_null' = 'true', 'epoch' = 'ms')"
    source = new_source(columns=columns, properties=properties)
    lines = [
        b'{"id": 1, "small": "", "price": " ", "ts": "", "_x": "", "at": []}',
        b'{"id": 2, "ts": 1700000000000}',
        b'{"id": 3, "_x": "x", "at": {"n": 1e5000}, "price": 1e-5000}',
        b'{"id": 4, "small": 70000}',
    ]
    done = ingest(source, written(tmp_path, "records.jsonl", b"\n".join(lines)), brokers)
    assert (done.sent, done.bad, done.with_null) == (4, 0, 2)
    reason = 'price is 1e-5000, not DECIMAL(12,2), _x is "x", not INT, at.n is 1e5000, not INT'
    assert done.first_with_null == BadLine(3, reason)
    assert sent(contents(source.topic)) == sorted(lines)
    for line, why in (
        (b'{"id": "x"}', 'id is "x", not BIGINT'),
        (b"[]", "a JSON array, not an object: send each element as a record"),
    ):
        with pytest.raises(LaminaError, match="1 of 5 lines are bad; nothing was sent") as raised:
            ingest(source, written(tmp_path, "records.jsonl", b"\n".join([*lines, line])), brokers)
        assert raised.value.evidence == f"line 5: {why}"
    path = written(tmp_path, "records.csv", b"id,small,_x\n5, ,x\n6,7,8\n")
    assert ingest(source, path, brokers).first_with_null == BadLine(2, '_x is "x", not INT')


def test_the_reason_for_a_line_that_is_not_an_object_names_its_kind(
    tmp_path: Path, brokers: Brokers, new_source: NewSource
) -> None:
    reasons = {
        b"17": "a JSON number, not an object",
        b"true": "a JSON boolean, not an object",
        b"null": "the JSON value null, not an object: a deletion is a record without a value",
        b'"{"': "a JSON text, not an object",
        rb'"{\"id\": 1}"': "a JSON text that holds an object (JSON encoded twice): send the object itself",
        b'\xef\xbb\xbf{"id": 1}': "a byte order mark stands before the object: let the producer leave it out",
    }
    path = written(tmp_path, "records.jsonl", b"\n".join([b'{"id": 1}', *reasons]))
    with pytest.raises(LaminaError, match="6 of 7 lines are bad") as raised:
        ingest(new_source(), path, brokers)
    assert raised.value.evidence.splitlines() == [f"line {n}: {why}" for n, why in enumerate(reasons.values(), 2)]


def test_a_reason_shows_a_number_as_it_is_written(tmp_path: Path, brokers: Brokers, new_source: NewSource) -> None:
    lines = [
        b'{"id": 1e5000}',
        b'{"small": 1.50}',
        b'{"small": -%s}' % (b"9" * 5000),
        b'{"id": [1e400]}',
    ]
    with pytest.raises(LaminaError, match="4 of 4 lines are bad") as raised:
        ingest(
            new_source(columns="id BIGINT, small SMALLINT"),
            written(tmp_path, "records.jsonl", b"\n".join(lines)),
            brokers,
        )
    assert raised.value.evidence.splitlines() == [
        "line 1: id is 1e5000, not BIGINT",
        "line 2: small is 1.50, not SMALLINT",
        f"line 3: small is -{'9' * 36}…, not SMALLINT",
        "line 4: id is [1e400], not BIGINT",
    ]


def test_a_line_that_spark_reads_is_not_bad(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    lines = [b'{"id": 1}}', b"{'id': 2}", b'{"id": 3, "kind": "caf\xe9"}', b'{"id": 4}]']
    path = written(tmp_path, "records.jsonl", b"\n".join(lines))
    with pytest.raises(LaminaError, match="2 of 4 lines are bad") as raised:
        ingest(source, path, brokers)
    assert raised.value.evidence == "line 3: not UTF-8\nline 4: not JSON at character 10"
    done = ingest(source, path, brokers, Options(on_bad="quarantine"))
    assert (done.sent, done.bad, done.not_utf8) == (4, 1, 1)
    assert [value for _, value in contents(source.topic)] == lines


def test_an_empty_key_is_null_in_a_table(tmp_path: Path, brokers: Brokers, new_source: NewSource) -> None:
    source = new_source(
        columns="id BIGINT, n INT, PRIMARY KEY (id)", properties="TBLPROPERTIES ('empty_as_null' = 'true')"
    )
    path = written(tmp_path, "records.jsonl", b'{"id": ""}\n{"n": 1}\n{"id": 1}')
    with pytest.raises(LaminaError, match="2 of 3 lines are bad") as raised:
        ingest(source, path, brokers)
    assert raised.value.evidence == "line 1: the primary key is null: id\nline 2: the primary key is null: id"


def test_csv_becomes_the_declared_types(
    spark: SparkSession, tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    path = written(
        tmp_path,
        "records.csv",
        'ID,kind,small,price,ts,note\n1,show,7,1.250,02/01/2024 03:04,"two\nlines"\n\n2,"a ""b"", ä",NA,,,\n'.encode(),
    )
    with pytest.raises(LaminaError, match="2 of 2 lines are bad"):
        ingest(source, path, brokers, Options(ignore_unknown=True))
    as_written = CsvForms(["NA"], ["%d/%m/%Y %H:%M"])
    assert ingest(source, path, brokers, Options(forms=as_written, ignore_unknown=True)).sent == 2
    assert [json.loads(value or b"") for _, value in contents(source.topic)] == [
        {"id": 1, "kind": "show", "small": 7, "price": 1.25, "ts": "2024-01-02 03:04:00", "note": "two\nlines"},
        {"id": 2, "kind": 'a "b", ä', "small": None, "price": None, "ts": None, "note": None},
    ]
    whole = OffsetRange(brokers.earliest(source.topic), brokers.latest(source.topic))
    rows = parsed(kafka_range(spark, brokers, source, whole), source).orderBy("id").collect()
    assert [(row.kafka_error, row.price) for row in rows] == [(None, Decimal("1.25")), (None, None)]


def test_a_bad_csv_record_is_named_by_its_first_line(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    content = b'id,kind\n1,"a\nb"\nx,c\n2\n3,d,e\n4,\xff\n"5"6,f\n7,g\n8,"never closed\n'
    path = written(tmp_path, "records.csv", content)
    done = ingest(source, path, brokers, Options(on_bad="quarantine"))
    assert [(bad.number, bad.problem.partition(":")[0]) for bad in done.first_bad] == [
        (4, 'id is "x", not BIGINT'),
        (5, "1 fields, and the header names 2"),
        (6, "3 fields, and the header names 2"),
        (7, "not UTF-8"),
        (8, "not CSV"),
        (10, "not CSV"),
    ]
    assert [value for _, value in contents(source.topic)] == [
        b'{"id":1,"kind":"a\\nb"}',
        b"x,c",
        b"2",
        b"3,d,e",
        b"4,\xff",
        b'"5"6,f',
        b'{"id":7,"kind":"g"}',
        b'8,"never closed',
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"1,show\n2,click\n", "the first line does not name the columns"),
        (b"id,kind,ID\n1,a,2\n", "the first line does not name the columns"),
        (b"", "the first line does not name the columns"),
        ("id,Größe\n1,2\n".encode("cp1252"), "the first line is not a header"),
        (b'"id"x,kind\n1,a\n', "the first line is not a header"),
    ],
)
def test_a_csv_header_without_columns_or_with_a_repeated_one_is_refused(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, content: bytes, what: str
) -> None:
    with pytest.raises(LaminaError, match=what):
        ingest(new_source(), written(tmp_path, "records.csv", content), brokers)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("records.tsv", b"id\tkind\n1\tx,y\n"),
        ("records.csv", b"id;kind\n1;x,y\n"),
        ("records.csv", b"|id|kind\n0|1|x,y\n"),
    ],
)
def test_the_header_decides_the_separator_and_unnamed_columns_are_ignored(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents, name: str, content: bytes
) -> None:
    source = new_source()
    assert ingest(source, written(tmp_path, name, content), brokers).sent == 1
    assert contents(source.topic) == [(None, b'{"id":1,"kind":"x,y"}')]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard])
def test_the_error_for_a_damaged_file_counts_the_records_sent(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents, pack: Callable[[bytes], bytes]
) -> None:
    source = new_source()
    lines = [b'{"id": %d}' % number for number in range(60_000)]
    path = written(tmp_path, f"records.jsonl{ENDINGS[pack]}", pack(b"\n".join(lines))[:-2000])
    with pytest.raises(LaminaError, match="the compressed file is damaged") as refused:
        ingest(source, path, brokers, Options(on_bad="quarantine", ignore_unknown=True))
    values = [value for _, value in contents(source.topic)]
    assert values == lines[: len(values)] != []
    assert f"Records of the file that were sent: {len(values):,}." in refused.value.evidence
    assert f"--skip {len(values)}" in refused.value.way_out


def test_half_a_surrogate_pair_is_a_valid_key(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = new_source()
    path = written(tmp_path, "records.jsonl", b'{"kind": "\\ud83d"}\n')
    assert ingest(source, path, brokers, Options(key_by=["kind"])).sent == 1
    assert contents(source.topic) == [(b"?", b'{"kind": "\\ud83d"}')]
    nested = new_source(columns="id BIGINT, props MAP<STRING, STRING>")
    path = written(tmp_path, "records.csv", b'id,props\n1,"{""a"": ""\\ud83d""}"\n')
    assert ingest(nested, path, brokers).sent == 1
    assert [value for _, value in contents(nested.topic)] == [b'{"id":1,"props":{"a":"?"}}']


def test_a_time_beyond_python_s_years_is_one_error(tmp_path: Path, brokers: Brokers, new_source: NewSource) -> None:
    table = pa.table({"id": [1], "ts": pa.array([2**62], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "records.parquet")
    with pytest.raises(LaminaError, match="beyond the years 1 to 9999"):
        ingest(new_source(), str(tmp_path / "records.parquet"), brokers)


DAYS = pa.map_(pa.date32(), pa.struct({"of": pa.map_(pa.string(), pa.int32())}))
"""A map in a struct in a map, with keys that JSON has no form for."""


@pytest.mark.parametrize("name", ["records.parquet", "records.parquet.gz", "records.parquet.zst", "-"])
def test_parquet_keeps_its_values(
    spark: SparkSession, tmp_path: Path, brokers: Brokers, new_source: NewSource, contents: Contents, name: str
) -> None:
    source = new_source()
    table = pa.table(
        {
            "id": pa.array([1, None], pa.int32()),
            "price": pa.array([Decimal("1.25"), Decimal("-0.25")], pa.decimal128(10, 2)),
            "ts": pa.array([1704164645123456789, None], pa.timestamp("ns", "UTC")),
            "kind": pa.array(["ä", None]),
            "ratio": pa.array([0.1, float("nan")]),
            "long": pa.array([Decimal("1.234567890123456789012345"), None], pa.decimal128(30, 24)),
            "counts": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int32())),
            "days": pa.array([[(date(2024, 1, 2), {"of": [("x", 1)]})], None], DAYS),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    packed = next((pack for pack, ending in ENDINGS.items() if ending and name.endswith(ending)), bytes)(
        buffer.getvalue()
    )
    file = name if name == "-" else written(tmp_path, name, packed)
    stated = "parquet" if name == "-" else None
    done = ingest(source, file, brokers, Options(file_format=stated, ignore_unknown=True), stdin=io.BytesIO(packed))
    assert (done.sent, done.bad) == (2, 0)
    assert [value for _, value in contents(source.topic)] == [
        '{"id":1,"price":1.25,"ts":"2024-01-02T03:04:05.123456+00:00","kind":"ä","ratio":0.1,'
        '"long":1.234567890123456789012345,"counts":{"a":1,"b":null},"days":{"2024-01-02":{"of":{"x":1}}}}'.encode(),
        b'{"id":null,"price":-0.25,"ts":null,"kind":null,"ratio":"NaN","long":null,"counts":null,"days":null}',
    ]


def test_a_parquet_column_of_another_type_makes_its_rows_bad(
    tmp_path: Path, brokers: Brokers, new_source: NewSource
) -> None:
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"id": ["x", None], "small": pa.array([1, 40000], pa.int64())}), path)
    with pytest.raises(LaminaError, match="2 of 2 lines are bad") as raised:
        ingest(new_source(), str(path), brokers)
    assert raised.value.evidence == 'line 1: id is "x", not BIGINT\nline 2: small is 40000, not SMALLINT'


def test_records_are_keyed_by_the_unique_columns_or_by_named_ones(
    brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    source = replace(new_source(3), unique=("id",))
    content = (
        b"".join(b'{"id": %d, "kind": "%d"}\n' % (number % 5, number) for number in range(50)) + b'{"kind": "x"}\n'
    )
    ingest(source, "-", brokers, Options(file_format="jsonl"), stdin=io.BytesIO(content))
    pairs = contents(source.topic)
    assert {key for key, _ in pairs} == {b"0", b"1", b"2", b"3", b"4", None}
    for key in range(5):
        kinds = [json.loads(value or b"")["kind"] for sent, value in pairs if sent == b"%d" % key]
        assert kinds == [str(number) for number in range(key, 50, 5)]
    two = new_source()
    ingest(two, "-", brokers, Options(file_format="jsonl", key_by=("id", "kind")), stdin=io.BytesIO(JSON[0]))
    assert contents(two.topic)[0][0] == b'[1, "show"]'
    with pytest.raises(LaminaError, match="no column nothing"):
        ingest(two, "-", brokers, Options(file_format="jsonl", key_by=("nothing",)), stdin=io.BytesIO(JSON[0]))


def keyed(topic: str, kind: str, key_format: str) -> Source:
    """A table whose key of this type is also Kafka's key."""
    options = f"OPTIONS (topic '{topic}', format 'json', key_format '{key_format}')"
    statement = f"CREATE TABLE events (id {kind} PRIMARY KEY, n INT) USING kafka {options};"
    return compile_catalog({"sources/events.sql": statement}).sources["events"]


@pytest.mark.parametrize("key_format", ["json", "string"])
@pytest.mark.parametrize("kind", ["DECIMAL(38, 20)", "STRING"])
def test_a_key_is_read_as_it_was_sent(
    spark: SparkSession, tmp_path: Path, brokers: Brokers, topic: Topic, kind: str, key_format: str
) -> None:
    ids = ["0.12345678901234567890", "0.12345678901234567899", "7.0", "1e3"]
    source = keyed(topic(1, "events"), kind, key_format)
    path = written(tmp_path, "records.jsonl", "\n".join(f'{{"id": {id}}}' for id in ids).encode())
    assert ingest(source, path, brokers).sent == 4
    whole = OffsetRange(brokers.earliest(source.topic), brokers.latest(source.topic))
    rows = parsed(kafka_range(spark, brokers, source, whole), source).orderBy("kafka_offset").collect()
    expected = list(map(Decimal, ids)) if kind != "STRING" else ids
    assert [(row.kafka_error, row.id) for row in rows] == [(None, id) for id in expected]


def test_a_key_that_its_format_cannot_hold_refuses_the_whole_file(
    tmp_path: Path, brokers: Brokers, topic: Topic, contents: Contents
) -> None:
    source = keyed(topic(1, "events"), "BIGINT", "int")
    path = written(tmp_path, "records.jsonl", b'{"id": 7.0}\n{"id": 9999999999}\n{"id": 1e3}\n')
    with pytest.raises(LaminaError, match="1 of 3 lines are bad; nothing was sent") as raised:
        ingest(source, path, brokers)
    assert raised.value.evidence == "line 2: events: id is 9999999999, and its key_format is 'int'"
    assert contents(source.topic) == []
    with pytest.raises(LaminaError, match="line 2: events: id is 9999999999") as raised:
        ingest(source, path, brokers, Options(on_bad="quarantine"))
    assert raised.value.evidence == "Records of the file that were sent: 1."
    assert "--skip 1" in raised.value.way_out
    assert ingest(source, path, brokers, Options(on_bad="quarantine", skip=2)).sent == 1
    assert [key for key, _ in contents(source.topic)] == [b"\0\0\0\7", b"\0\0\3\xe8"]


def test_the_topic_s_limit_decides_if_a_record_of_a_megabyte_is_sent(
    brokers: Brokers, new_source: NewSource, contents: Contents
) -> None:
    large = b'{"kind": "%s"}' % (b"x" * 1_000_000)
    wide = new_source(**{"max.message.bytes": "2000000"})
    assert ingest(wide, "-", brokers, Options(file_format="jsonl"), stdin=io.BytesIO(large)).sent == 1
    assert sent(contents(wide.topic)) == [large]
    narrow = new_source(**{"max.message.bytes": "500000"})
    for options, what in (
        (Options(file_format="jsonl"), "1 of 2 lines are bad"),
        (Options(file_format="jsonl", on_bad="quarantine"), "line 2 is too large for topic"),
    ):
        with pytest.raises(LaminaError, match=what) as raised:
            ingest(narrow, "-", brokers, options, stdin=io.BytesIO(JSON[0] + b"\n" + large))
        assert "1,000,012 bytes, and the topic takes" in raised.value.evidence


def test_records_are_sent_at_the_given_rate(brokers: Brokers, new_source: NewSource) -> None:
    began = time.monotonic()
    content = io.BytesIO(b'{"id": 1}\n' * 100)
    assert ingest(new_source(), "-", brokers, Options(file_format="jsonl", rate=200), stdin=content).sent == 100
    assert time.monotonic() - began > 0.45


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("missing.csv", None, "the file cannot be read"),
        ("records.txt", b"", "the format is not known"),
        ("records.parquet", b"no Parquet", "this is not a Parquet file"),
        ("records.jsonl.gz", gzip.compress(b'{"id": 1}\n' * 1000, mtime=0)[:-20], "the compressed file is damaged"),
        (".", None, "the format is not known"),
        ("missing", None, "the file cannot be read"),
        ("/dev/zero", None, "/dev/zero is a device"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(
    tmp_path: Path, brokers: Brokers, new_source: NewSource, name: str, content: bytes | None, what: str
) -> None:
    path = str(tmp_path / name) if content is None else written(tmp_path, name, content)
    source = new_source()
    with pytest.raises(LaminaError, match=what) as raised:
        ingest(source, path, brokers)
    assert raised.value.way_out
    assert set(brokers.latest(source.topic).values()) == {0}
