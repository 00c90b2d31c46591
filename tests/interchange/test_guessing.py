"""Types are guessed so that no record of the sample goes to quarantine."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer

from interchange.change_events import changed_row
from interchange.compression import unpacked
from interchange.csv_forms import CsvForms
from interchange.files import Line, format_of, lines
from interchange.guessing import Statistics
from interchange.judgements import Rules
from interchange.opening import seekable
from interchange.sampling import LARGEST, GuessedField, Sample, accepted, file_sample
from interchange.topic_sampling import topic_sample
from interchange.undeclared import UndeclaredCounter
from lamina.authoring.first_catalog import Proposal, proposal
from master_log.kafka.brokers import Brokers
from tests.fix_services import Topic
from tests.interchange.change_events import AFTER, SCHEMAS, SECONDS, change
from view_algebra import compile_catalog
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.language.types import INT, STRING, Type


def guessed(folder: Path, records: Sequence[Any], name: str = "name") -> dict[str, str]:
    """The guessed types of the fields of records, or of the field `name` for plain values."""
    objects = [field if isinstance(field, dict) else {name: field} for field in records]
    path = folder / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, objects)))
    return types(path)


def types(path: Path, most: int = 10_000) -> dict[str, str]:
    return {field.name: field.kind.spark for field in file_sample(str(path), None, most).fields}


def declared(path: Path, **options: Any) -> tuple[Proposal, Source]:
    """The declarations proposed for a file, and its compiled source."""
    proposed = proposal(file_sample(str(path), None), "records", str(path), **options)
    return proposed, compile_catalog(proposed.files).sources["records"]


def problems(path: Path, source: Source) -> list[str | None]:
    """The source's reason for each bad record of a file."""
    with seekable(str(path), io.BytesIO()) as content:
        result = lines(content, str(path), format_of(str(path), None), Rules.of(source), LARGEST)
        undeclared, errors = UndeclaredCounter(Rules.of(source).columns), []
        for line in result:
            errors.append(line.judgement.problem)
            if line.judgement.problem is None:
                undeclared.note({name: value for name, value in line.judgement.value.items() if name})
        assert not undeclared.fields()
        return errors


MILLIS = 1_700_000_000_123


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, -3], "INT"),
        ([1, 2_000_000_000], "BIGINT"),
        ([1, 2**63 - 1], "BIGINT"),
        ([1, 2**63], "DECIMAL(38,0)"),
        ([10**40], "STRING"),
        ([1, 12.5, 3.25], "DECIMAL(18,2)"),
        ([1, 12.512345], "DOUBLE"),
        ([1, 2.512], "DOUBLE"),
        ([1.0823] * 30, "DECIMAL(18,4)"),
        ([1.0, 2.0], "DOUBLE"),
        ([1e30, 1.5], "DOUBLE"),
        ([True, False, None], "BOOLEAN"),
        ([True, 1], "STRING"),
        ([1, "n/a"], "STRING"),
        (["1", "2"], "STRING"),
        (["01067"], "STRING"),
        (["2024-01-02", "2024-02-29"], "DATE"),
        (["2023-02-29"], "STRING"),
        (["2024-01-02T03:04:05Z", "2024-01-02 03:04:05.123"], "TIMESTAMP"),
        (["2024-01-02T03:04:05+02:00", "2024-01-02"], "TIMESTAMP"),
        (["2024"], "STRING"),
        (["03:04"], "STRING"),
        (["2024-01-02", "unknown"], "STRING"),
        ([""], "STRING"),
        ([None], "STRING"),
        ([[1, 2], [3000000000]], "ARRAY<BIGINT>"),
        ([[], None], "ARRAY<STRING>"),
        ([[1], ["a"]], "ARRAY<STRING>"),
        ([[1], 1], "STRING"),
        ([{"name": {"a": 1, "b": "x"}}, {"name": {"a": 2}}], "STRUCT<a: INT, b: STRING>"),
        ([{"name": {"a": 1, "A": 2}}], "MAP<STRING, INT>"),
        ([{"name": {"unit price": 1}}], "MAP<STRING, INT>"),
        ([{"name": {f"user_{number}": number}} for number in range(30)], "MAP<STRING, INT>"),
        ([{"name": {}}], "MAP<STRING, STRING>"),
        (
            [{"name": {"day": "2024-01-02", "in": [{"n": 1.5}]}}],
            "STRUCT<day: DATE, `in`: ARRAY<STRUCT<n: DECIMAL(18,2)>>>",
        ),
    ],
)
def test_a_guessed_type_fits_every_sampled_value(tmp_path: Path, values: list[Any], kind: str) -> None:
    result = guessed(tmp_path, values)
    assert result == {"name": kind}
    assert set(problems(tmp_path / "records.jsonl", declared(tmp_path / "records.jsonl")[1])) == {None}


@pytest.mark.parametrize(
    ("name", "values", "kind", "epoch"),
    [
        ("ts", [SECONDS, SECONDS + 1], "TIMESTAMP", "s"),
        ("ts", [SECONDS + 0.25, SECONDS], "TIMESTAMP", "s"),
        ("createdAt", [MILLIS], "TIMESTAMP", "ms"),
        ("seen", [MILLIS], "TIMESTAMP", "ms"),
        ("time", [MILLIS * 1000], "TIMESTAMP", "us"),
        ("time", [MILLIS * 1_000_000], "TIMESTAMP", "ns"),
        ("tweet", [MILLIS * 1_000_000], "BIGINT", None),
        ("user_id", [SECONDS], "BIGINT", None),
        ("phone", [2_025_550_123], "BIGINT", None),
        ("ts", [SECONDS, 5], "BIGINT", None),
    ],
)
def test_numbers_are_times_if_all_are_plausible_times(
    tmp_path: Path, name: str, values: list[Any], kind: str, epoch: str | None
) -> None:
    assert guessed(tmp_path, values, name) == {name: kind}
    proposed, source = declared(tmp_path / "records.jsonl")
    assert source.properties.get("epoch") == epoch
    assert proposed.event_time == (name if epoch else None)
    assert set(problems(tmp_path / "records.jsonl", source)) == {None}


def test_one_unit_is_declared_and_numbers_of_another_stay_numbers(tmp_path: Path) -> None:
    result = guessed(tmp_path, [{"sent_at": MILLIS, "seen_at": MILLIS, "read_at": SECONDS}])
    assert result == {"sent_at": "TIMESTAMP", "seen_at": "TIMESTAMP", "read_at": "BIGINT"}


def test_an_empty_text_among_numbers_is_null(tmp_path: Path) -> None:
    assert guessed(tmp_path, [{"n": 1, "o": {"day": ""}}, {"n": "", "o": {"day": "2024-01-02"}}]) == {
        "n": "INT",
        "o": "STRUCT<day: DATE>",
    }
    source = declared(tmp_path / "records.jsonl")[1]
    assert source.properties["empty_as_null"] == "true"
    assert problems(tmp_path / "records.jsonl", source) == [None, None]


def test_options_name_the_null_texts_and_time_formats_of_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("n,day,at,late\n1,31/12/2025,01/02/2026 08:05,02/03/2026\nNA,NA,NA,2026-03-02\n\\N,,,n/a\n")
    forms = CsvForms(("NA", "\\N"), ("%d/%m/%Y", "%d/%m/%Y %H:%M"))
    sample = file_sample(str(path), None, forms=forms)
    assert {field.name: field.kind.spark for field in sample.fields} == {
        "n": "INT",
        "day": "DATE",
        "at": "TIMESTAMP",
        "late": "STRING",
    }
    source = compile_catalog(proposal(sample, "records", str(path)).files).sources["records"]
    with path.open("rb") as file:
        result = list(lines(file, str(path), "csv", Rules.of(source), LARGEST, forms))
        assert [line.judgement.value for line in result] == [
            {"n": 1, "day": "2025-12-31", "at": "2026-02-01 08:05:00", "late": "02/03/2026"},
            {"n": None, "day": None, "at": None, "late": "2026-03-02"},
            {"n": None, "day": None, "at": None, "late": "n/a"},
        ]
        [first, *_] = lines(file, str(path), "csv", Rules.of(source), LARGEST, CsvForms((), ["%Y-%m-%d"]))
    assert first.judgement.problem == "day is '31/12/2025', not written as %Y-%m-%d"
    for wrong in ("dd/MM/yyyy", "%d/%m", "%Y-%m-%Q", "%Y-%m-%d %Z", "%d.%m.%Y %H:%M:%M", ""):
        with pytest.raises(LaminaError, match="is not a format of times"):
            CsvForms((), [wrong])
    with pytest.raises(LaminaError, match="are for CSV and TSV"):
        forms.check("a.jsonl", "jsonl")


CSV = """,Order ID,country,zip,Amount,placed_at,ok,note,born
0,1001,NL,01067,12.50,2024-01-02 03:04:05,true,hi,1990-01-01
1,1002,DE,1234,7.00,2024-01-02 03:05:05,false,,
2,1003,NL,99999,100.25,2024-01-02 05:05:05,FALSE,5,1991-12-31
"""


def test_a_csv_file_gets_this_source_and_this_view(tmp_path: Path) -> None:
    path = tmp_path / "My Orders.csv"
    path.write_text(CSV)
    proposed, source = declared(path)
    assert proposed.files == {
        "sources/records.sql": f"""\
-- Types were guessed from all 3 records of {path}. Correct them where you know better.
-- No two records had the same order_id: UNIQUE (order_id) counts an event once if sent twice.
-- PRIMARY KEY (order_id) makes this a table of the newest record of each: lamina init --table.
CREATE TABLE records (
  order_id BIGINT COMMENT 'seen 3 times, 1,001 to 1,003',
  country STRING COMMENT 'seen 3 times, e.g. NL, DE',
  zip STRING COMMENT 'seen 3 times, leading zeros kept',
  Amount DECIMAL(18,2) COMMENT 'seen 3 times, 7.00 to 100.25, rounded to 2 decimal places',
  placed_at TIMESTAMP COMMENT 'seen 3 times, 2024-01-02 03:04:05 to 2024-01-02 05:05:05, no time zone, read as UTC',
  ok BOOLEAN COMMENT 'seen 3 times, e.g. false, true',
  note STRING COMMENT 'seen 2 times, 1 null, a text 1 time and a whole number 1 time',
  born DATE COMMENT 'seen 2 times, 1 null, 1990-01-01 to 1991-12-31'
)
USING kafka OPTIONS (topic 'records', format 'json')
TBLPROPERTIES (
  'event_time' = 'placed_at',
  'field.order_id' = 'Order ID'
);
""",
        "views/records_per_hour_country.sql": """\
CREATE VIEW records_per_hour_country (hour, country, records) AS
SELECT window(placed_at, '1 hour').start, country, count(*)
FROM records
GROUP BY window(placed_at, '1 hour'), country;
""",
    }
    assert problems(path, source) == [None] * 3


def test_digits_that_a_double_does_not_keep_make_a_decimal(tmp_path: Path) -> None:
    for values, kind in (
        (("123456789012345678.25", "1.5"), "DECIMAL(38,2)"),
        (("0.123456789012345678", "1"), "DECIMAL(38,18)"),
        (("0.1234567890123456", "1"), "DOUBLE"),
        (("9007199254740993.0", "1"), "DECIMAL(38,2)"),
        (("0.30000000000000004", "0.1"), "DOUBLE"),
        (("1.234567890123456789e-5", "1.5"), "STRING"),
        (("0." + "1" * 50, "1.5"), "STRING"),
        (("1e+300", "1.5"), "DOUBLE"),
    ):
        (tmp_path / "records.csv").write_text("\n".join(("n", *values)))
        (tmp_path / "records.jsonl").write_text("\n".join(f'{{"n": {field}}}' for field in values))
        for name in ("records.csv", "records.jsonl"):
            assert types(tmp_path / name) == {"n": kind}, (name, values)
            assert set(problems(tmp_path / name, declared(tmp_path / name)[1])) == {None}


def test_different_texts_of_one_number_stay_different_in_csv_and_in_keys(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("version,price,n,The Rate\n1.1,1.50,1.0,1.5\n1.10,2.00,2.25,2.5\n")
    numbers = dict.fromkeys(("price", "n", "The Rate"), "DECIMAL(18,2)")
    assert types(path) == {"version": "STRING", **numbers}
    for key in ("The Rate", "the_rate"):  # the name of the field, and of its column
        proposed, source = declared(path, as_table=True, key=[key])
        assert source.unique == ("the_rate",)
        assert {column.name: column.kind.spark for column in proposed.columns}["the_rate"] == "STRING"
    assert "version STRING COMMENT 'seen 2 times, digits kept as written'" in proposed.files["sources/records.sql"]
    (tmp_path / "records.jsonl").write_text('{"version": 1.1}\n{"version": 1.10}\n')
    assert types(tmp_path / "records.jsonl") == {"version": "DECIMAL(18,2)"}, "one number, as JSON says"


def test_a_table_has_the_key_that_was_seen_or_named(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(CSV)
    assert declared(path, as_table=True)[1].unique == ("order_id",)
    source = declared(path, as_table=True, key=["country", "zip"])[1]
    assert (source.kind, source.unique, source.key_format) == ("table", ("country", "zip"), "json")
    with pytest.raises(LaminaError, match="note cannot be a PRIMARY KEY: it has no value in 1 of 3 records"):
        declared(path, as_table=True, key=["note"])
    with pytest.raises(LaminaError, match="There is no column nothing"):
        declared(path, key=["nothing"])
    path.write_text("a,b\n1,2\n1,2\n")
    with pytest.raises(LaminaError, match="no column identifies a row"):
        declared(path, as_table=True)


def test_a_field_that_sql_cannot_name_becomes_a_column(tmp_path: Path) -> None:
    fields = [
        "it's", 'a "b"', "kafka_key", "_pos", "Userid", "userID", "a\nb", "größe", "order", "x" * 80, "日本", "a`b",
        "element 1", "position", "\\", "1st", "a b", "a-b", "select", "glob", "%", "{}", "--", "/*", ";",
    ]  # fmt: skip
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({name: number for number, name in enumerate(fields)} | {"": 1}))
    proposed, source = declared(path)
    assert [source.field(column.name) for column in proposed.columns] == fields
    assert problems(path, source) == [None]
    assert file_sample(str(path), None).has_unnamed


def test_a_larger_sample_finds_rare_values(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("n\n" + "1\n" * 100 + "x\n")
    assert types(path, 100) == {"n": "INT"}
    assert file_sample(str(path), None, 100).part == "the first 100 records"
    assert types(path, 101) == {"n": "STRING"}
    assert file_sample(str(path), None, 101).part == "all 101 records"


@pytest.mark.parametrize(
    ("name", "content", "what", "way_out"),
    [
        ("a.csv", b"", "holds no records", "at least one record"),
        ("a.jsonl", b"\n \n", "holds no records", "at least one record"),
        ("a.csv", b"a,b\n", "holds no records", "at least one record"),
        ("a.csv", b"a,b,a\n1,2,3\n", "the first line does not name the columns", "Name every column once"),
        (
            "a.csv",
            b"1,2024-01-01\n2,2024-01-02\n",
            "the first line does not name the columns",
            "Name every column once",
        ),
        ("a.csv", b"\x00\x01,b\n1,2\n", "the first line is not a header", "--format"),
        ("a.csv", "größe\n1\n".encode("latin1"), "the first line is not a header", "UTF-8"),
        ("a.csv", "name\nJosé\n".encode("latin1"), "holds no record that can be read", "iconv"),
        ("a.jsonl", b"\x89PNG\r\n\x1a\n\x00\xff", "can be read", "JSON objects"),
        ("a.json", b'[{"a": 1}, {"a": 2}]', "holds no record that can be read", "jq -c '.[]'"),
        ("a.json", b'{\n  "a": 1\n}\n', "holds no record that can be read", "jq -c ."),
        ("a.jsonl", b'{"a": "' + b"x" * 10_000_000 + b'"}', "holds no record that can be read", "JSON objects"),
        ("a.jsonl", b'{"a": "\\u0000"}', "holds no record that can be read", "JSON objects"),
        ("a.parquet", b"PAR1 and no more", "not a Parquet file", "--format"),
        ("a.csv.gz", gzip.compress(b"a\n1\n", mtime=0)[:-5], "the compressed file is damaged", "Fetch it again"),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd" + b"x" * 40, "the compressed file is damaged", "Fetch it again"),
        ("a.xlsx", b"PK", "the format is not known", "--format"),
    ],
)
def test_a_file_without_records_is_refused_with_a_way_out(
    tmp_path: Path, name: str, content: bytes, what: str, way_out: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LaminaError) as raised:
        file_sample(str(tmp_path / name), None)
    assert what in raised.value.what
    assert way_out in raised.value.way_out


def test_unreadable_records_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a": 1}\nno\n{"a": 2}\n{"a": "' + b"x" * 2_000_000 + b'"}\n{"a": 3, "b": "\\u0000"}\n')
    result = file_sample(str(path), None)
    assert (result.records, result.bad) == (5, 3)
    assert [bad.number for bad in result.first_bad] == [2, 4, 5]
    assert {field.name: field.kind.spark for field in result.fields} == {"a": "INT", "b": "STRING"}


def test_a_thousand_columns_are_one_source(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(",".join(f"{before}{number}" for number in range(1_000)) for before in ("c", "", "")))
    assert problems(path, declared(path)[1]) == [None, None]
    path.write_text(",".join(f"c{number}" for number in range(2_000)) + "\n" + ",".join("1" * 2_000))
    with pytest.raises(LaminaError, match="more than 1,500 fields"):
        file_sample(str(path), None)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_header_of_a_csv_file_decides_its_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "records.csv"
    path.write_text(
        f'id{separator}"a;b"\n1{separator}x,y\n' if separator == ";" else f"id{separator}ab\n1{separator}x;y\n"
    )
    assert list(types(path)) == (["id", "a;b"] if separator == ";" else ["id", "ab"])
    (tmp_path / "records.tsv").write_text("id,x\tb\n1\t2\n")
    assert list(types(tmp_path / "records.tsv")) == ["id,x", "b"]


def test_the_types_of_parquet_are_kept(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "small": pa.array([1, None], pa.int16()),
            "huge": pa.array([1, 2**64 - 1], pa.uint64()),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 4)),
            "ratio": pa.array([0.5, float("nan")], pa.float32()),
            "at": pa.array([datetime(2024, 1, 2, tzinfo=UTC), None], pa.timestamp("ns", "UTC")),
            "day": pa.array([date(2024, 1, 2), None]),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "raw": pa.array([b"\x00\xff", b""]),
            "tags": pa.array([["a"], []], pa.list_(pa.string())),
            "buyer": pa.array([{"n": 1}, {"n": None}], pa.struct({"n": pa.int32()})),
            "odd": pa.array([{"n n": 1}, None], pa.struct({"n n": pa.int32()})),
            "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
            "none": pa.nulls(2),
        }
    )
    path = tmp_path / "records.parquet"
    pq.write_table(table, path)
    assert types(path) == {
        "id": "BIGINT",
        "small": "INT",
        "huge": "DECIMAL(20,0)",
        "price": "DECIMAL(9,4)",
        "ratio": "DOUBLE",
        "at": "TIMESTAMP",
        "day": "DATE",
        "word": "STRING",
        "raw": "BINARY",
        "tags": "ARRAY<STRING>",
        "buyer": "STRUCT<n: INT>",
        "odd": "MAP<STRING, INT>",
        "map": "MAP<STRING, BIGINT>",
        "none": "STRING",
    }
    assert problems(path, declared(path)[1]) == [None, None]
    (tmp_path / "records.parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert types(tmp_path / "records.parquet.gz") == types(path)


def test_comments_contain_no_personal_values(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("name,phone,email,born,word\n" + "Ada,612345678,ada@example.org,1990-01-02,x\n" * 2)
    text = declared(path)[0].files["sources/records.sql"]
    assert "word STRING COMMENT 'seen 2 times, e.g. x'" in text
    assert not [value for value in ("Ada", "612,345,678", "ada@") if value in text]


Records = list[tuple[bytes | None, bytes | None]]
AS_OBJECT = [(b'{"shop": 1}', b'{"shop": 1, "n": 2}'), (b'{"shop": 1}', b'{"shop": 1, "n": 3}'), (b'{"shop": 2}', None)]


@pytest.mark.parametrize(
    ("records", "key", "key_format"),
    [
        (AS_OBJECT, ["shop"], "json"),
        ([(b"1", b'{"n": 5, "shop": 1}'), (b"x", b'{"n": 6, "shop": "x"}')], ["shop"], "string"),
        ([(b"7", b'{"n": 5, "id": 7.0}'), (b"0.5", b'{"n": 6, "id": 0.50}')], ["id"], "string"),
        ([(b"1", b'{"n": 1}'), (b"9", b'{"n": 2}')], [], None),
        ([(b"x", b'{"n": 5, "id": 6}'), (b"y", b'{"n": 5, "id": 7}')], ["id"], "none"),
    ],
)
def test_the_keys_of_a_topic_decide_the_key_of_its_table(
    brokers: Brokers, topic: Topic, producer: KafkaProducer, records: Records, key: list[str], key_format: str | None
) -> None:
    name = topic(2, "rows", **{"cleanup.policy": "compact"})
    for of_record, value in records:
        producer.send(name, value, key=of_record)
    producer.flush()
    sample = topic_sample(name, brokers)
    assert (sample.records, sample.topic.deletions, sample.is_all) == (2, len(records) - 2, True)
    with pytest.raises(LaminaError, match="is compacted") as refused:
        proposal(sample, "rows", "topic", topic=name)
    assert "--table" in refused.value.way_out
    if not key:
        with pytest.raises(LaminaError, match="no column identifies a row"):
            proposal(sample, "rows", "topic", topic=name, as_table=True)
        return
    proposed = proposal(sample, "rows", "topic", topic=name, as_table=True)
    source = compile_catalog(proposed.files).sources["rows"]
    assert (list(source.unique), source.key_format, source.topic) == (key, key_format, name)


def test_a_topic_whose_records_are_not_rows_is_refused(brokers: Brokers, topic: Topic, producer: KafkaProducer) -> None:
    name = topic(1, "rows")
    with pytest.raises(LaminaError, match="holds no records"):
        topic_sample(name, brokers)
    with pytest.raises(LaminaError, match=f"There is no topic {name}_none"):
        topic_sample(f"{name}_none", brokers)
    producer.send(name, b'{"op": "d", "source": {}, "after": null, "before": {"id": 1}, "ts_ms": 1}')
    producer.flush()
    with pytest.raises(LaminaError, match="change events without rows") as refused:
        topic_sample(name, brokers)
    assert "debezium-json" in refused.value.way_out


@pytest.mark.parametrize("price", ["²", "AfQ"])
def test_a_decimal_that_is_not_base64_is_null(price: str) -> None:
    changed = changed_row(json.loads(change(AFTER | {"price": price}, SCHEMAS)))
    assert changed is not None
    assert changed.values["price"] is None


def test_change_events_become_a_table_with_the_types_of_their_schemas(
    brokers: Brokers, topic: Topic, producer: KafkaProducer
) -> None:
    name = topic(1, "changes")
    key = b'{"schema": {"type": "struct"}, "payload": {"id": 7}}'
    for value in (change(AFTER, SCHEMAS), change(AFTER | {"at": 2**63 - 1}, SCHEMAS, "u"), change(None, op="d"), None):
        producer.send(name, value, key=key)
    producer.flush()
    proposed = proposal(topic_sample(name, brokers), "rows", "topic", topic=name)
    assert {field.name: field.kind.spark for field in proposed.columns} == {
        "id": "INT", "price": "DECIMAL(10,2)", "total": "DECIMAL(38,10)", "day": "DATE", "at": "TIMESTAMP",
        "zoned": "TIMESTAMP", "opens": "BIGINT", "photo": "BINARY", "tags": "ARRAY<STRING>", "note": "STRING",
    }  # fmt: skip
    source = compile_catalog(proposed.files).sources["rows"]
    assert (source.kind, source.format, list(source.unique)) == ("table", "debezium-json", ["id"])

    name = topic(1, "changes")
    plain = {"id": 7, "price": 12.5, "at": MILLIS, "name": "x"}
    producer.send(name, change(plain), key=b'{"id": 7}')
    producer.flush()
    proposed = proposal(topic_sample(name, brokers), "rows", "topic", topic=name)
    source = compile_catalog(proposed.files).sources["rows"]
    assert (list(source.unique), source.properties["epoch"]) == (["id"], "ms")
    assert source.properties["event_time"] == "source.ts_ms", "a row holds from its commit, whatever `at` says"
    assert "-- The events have no schemas" in proposed.files["sources/rows.sql"]


def test_a_field_with_a_refused_value_becomes_a_string() -> None:
    records = [b'{"n": 1, "m": {"a": 1}}', b'{"n": 2.5, "m": {"a": "x"}}', b"no record"]

    def read(rules: Rules) -> Iterator[Line]:
        for number, raw in enumerate(records, 1):
            yield Line(number, raw, raw, rules.judged(raw))

    as_map = Type("MAP", key=STRING, element=INT)
    guess = (
        GuessedField("n", INT, Statistics()),
        GuessedField("m", as_map, Statistics()),
        GuessedField("o", INT, Statistics()),
    )
    result = accepted(Sample(guess, records=3, is_all=True), read)
    assert [(field.kind, field.was) for field in result.fields] == [(STRING, INT), (STRING, as_map), (INT, None)]
    assert [bad.number for bad in result.first_bad] == [3]


TEXTS = st.sampled_from(["", " ", "x", "1", "007", "true", "2024-01-02", "2024-01-02T03:04:05Z", "1,5", "NaN", "1e400"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([SECONDS, MILLIS])
    | st.floats()
    | st.decimals(-1000, 1000, places=2).map(float)
    | TEXTS
    | st.text(max_size=3).filter(lambda text: "\0" not in text)
)
KEYS = st.sampled_from(["a", "A", "b", "at", "user id", "größe", "kafka_key", "id"])
VALUES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=3), max_leaves=5
)


@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_record_of_a_sample_is_bad(tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("guess") / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    sample = file_sample(str(path), None)
    assert sample.bad == 0
    assert set(problems(path, declared(path)[1])) == {None}


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_no_record_of_a_csv_file_is_bad(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("guess") / "records.csv"
    path.write_text("id,at\n" + "\n".join(",".join(f'"{field}"' for field in row) for row in rows))
    assert set(problems(path, declared(path)[1])) == {None}


def test_a_zstandard_file_is_decompressed_while_it_is_read(tmp_path: Path) -> None:
    lines_ = b"".join(b'{"id": %d, "name": "abcdefghijklmnop"}\n' % number for number in range(200_000))
    path = tmp_path / "records.jsonl.zst"
    half = len(lines_) // 2
    path.write_bytes(b"".join(pa.compress(part, "zstd", asbytes=True) for part in (lines_[:half], lines_[half:])))
    tracemalloc.start()
    try:
        with path.open("rb") as file, unpacked(file) as content:
            assert sum(1 for _ in content) == 200_000
            content.seek(0)
            assert content.readline() == lines_[: lines_.index(b"\n") + 1]
            assert tracemalloc.get_traced_memory()[1] < len(lines_) / 2, "not the whole file"
    finally:
        tracemalloc.stop()
    assert types(path) == {"id": "BIGINT", "name": "STRING"}
