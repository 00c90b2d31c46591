"""The newest record of a key: by the log, by the source of a change event, or by event time.

Each case has its own key. There are two micro-batches: the first records of all cases, then the second ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import zip_longest
from typing import Any

import pytest

from tests.laws.engines import Engines, Record, Row, Sent, difference, same
from view_algebra import Catalog, Refused, compile_catalog


@cache
def catalog() -> Catalog:
    """All the tables and views of this file, compiled by the first test that needs them."""
    return compile_catalog(
        {
            "tables.sql": """
CREATE TABLE prices (sku STRING PRIMARY KEY, price DECIMAL(10, 2), updated_at TIMESTAMP)
USING kafka OPTIONS (topic 'prices', format 'json', key_format 'json') TBLPROPERTIES ('event_time' = 'updated_at');
CREATE TABLE timeless (sku STRING PRIMARY KEY, price DECIMAL(10, 2))
USING kafka OPTIONS (topic 'timeless', format 'json', key_format 'json');
CREATE TABLE by_time (sku STRING PRIMARY KEY, price DECIMAL(10, 2), updated_at TIMESTAMP)
USING kafka OPTIONS (topic 'by_time', format 'json', key_format 'json')
TBLPROPERTIES ('event_time' = 'updated_at', 'newest_by' = 'event_time');
CREATE TABLE documents (id BIGINT PRIMARY KEY, title STRING, body STRING, tags ARRAY<STRING>)
USING kafka OPTIONS (topic 'documents', format 'debezium-json') TBLPROPERTIES ('event_time' = 'source.ts_ms');
CREATE TABLE files (
  id BIGINT PRIMARY KEY, n INT, raw BINARY, ints ARRAY<INT>, numbers ARRAY<DOUBLE>, ids ARRAY<STRING>,
  labels MAP<STRING, STRING>, place STRUCT<wkb: STRING, srid: INT>, pairs STRING
) USING kafka OPTIONS (topic 'files', format 'debezium-json', 'binary.handling.mode' 'hex');
CREATE TABLE flattened (id BIGINT PRIMARY KEY, name STRING, bio STRING, gone STRING, changed_at TIMESTAMP)
USING kafka OPTIONS (topic 'flattened', format 'json', key_format 'json', 'unavailable.value.placeholder' 'as before')
TBLPROPERTIES (
  'field.gone' = '__deleted', 'field.changed_at' = '__source_ts_ms', 'event_time' = 'changed_at',
  'newest_by' = 'event_time', 'epoch' = 'us'
);
CREATE TABLE facts (id BIGINT PRIMARY KEY, s STRING, t STRING, n INT, j STRING, tags ARRAY<STRING>,
  at STRUCT<name: STRING, place: STRUCT<day: STRING>>)
USING kafka OPTIONS (topic 'facts', format 'debezium-json');
CREATE TABLE orders (id INT, sku STRING, doc BIGINT, at TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'at');

CREATE VIEW priced AS SELECT o.sku, o.id, p.price FROM orders o
LEFT JOIN prices FOR SYSTEM_TIME AS OF o.at AS p ON p.sku = o.sku;
CREATE VIEW priced_by_kafka AS SELECT o.sku, o.id, p.price FROM orders o
LEFT JOIN timeless FOR SYSTEM_TIME AS OF o.at AS p ON p.sku = o.sku;
CREATE VIEW written AS SELECT o.doc, o.id, d.title, d.body FROM orders o
JOIN documents FOR SYSTEM_TIME AS OF o.at AS d ON d.id = o.doc;
CREATE VIEW shouted AS SELECT id, initcap(body) AS body, concat(title, '!') AS title, size(tags) AS tags FROM documents;
CREATE VIEW days AS SELECT count(*) AS facts, to_date(s) AS day FROM facts GROUP BY to_date(s);
CREATE VIEW computed AS SELECT id, to_date(s) AS d, initcap(t) AS i, from_json(j, 'a INT').a AS f,
  get_json_object(j, '$.a') AS g, date_format(CAST(s AS TIMESTAMP), 'yyyy') AS y, upper(t) AS u,
  initcap(tags[0]) AS tag, initcap(concat(t, id)) AS with_key, concat(to_date(s), n) AS beside_another,
  concat(initcap(t), to_date(s)) AS of_two,
  CASE WHEN n > 1 THEN initcap(t) END AS chosen, coalesce(to_date(s), DATE '2000-01-01') AS or_else,
  initcap(coalesce(t, 'none')) AS of_null, initcap(concat(coalesce(t, 'key '), id)) AS of_null_with_key FROM facts;
CREATE VIEW computed_next_to AS SELECT o.doc, o.id, initcap(f.t) AS t, to_date(f.s) AS s
FROM orders o LEFT JOIN facts f ON f.id = o.doc;
CREATE VIEW compared AS SELECT count(*) AS facts, to_date(s) AS day FROM facts
WHERE to_date(s) > DATE '2024-05-01' AND timestamp_micros(n) < to_timestamp(s) GROUP BY to_date(s);
CREATE VIEW of_struct AS SELECT id, to_date(at.place.day) AS day, initcap(at.name) AS name FROM facts;
CREATE VIEW of_point AS SELECT id, initcap(place.wkb) AS point, initcap(coalesce(place.wkb, 'none')) AS or_none
FROM files;
CREATE VIEW latest AS
SELECT sku, last(id) AS id, first(id) AS first_id, collect_list(id) AS ids FROM orders GROUP BY sku;
"""
        }
    )


DAY = datetime(2024, 3, 2, tzinfo=UTC)
UNAVAILABLE = "__debezium_unavailable_value"
LONG = "long " * 50

Shown = Callable[[str, object], list[Row]]
"""The rows of a view that have a value in their first column, without this column."""


def at(seconds: float) -> datetime:
    return DAY + timedelta(seconds=seconds)


def sent(key: Mapping[str, Any], value: Mapping[str, Any] | None, seconds: float, partition: int = 0) -> Record:
    text = None if value is None else json.dumps(value).encode()
    return Sent(json.dumps(key).encode(), text, partition, at(seconds))


def price(
    sku: str, value: str | None, seconds: float, updated_at: str = "2024-01-05T10:00:00Z", partition: int = 0
) -> Record:
    """A row with a price, or its deletion, sent some seconds after midnight."""
    row = {"sku": sku, "price": value, "updated_at": updated_at}
    return sent({"sku": sku}, None if value is None else row, seconds, partition)


def document(op: str, id: int, title: str, source: float, kafka: float, partition: int = 0, **more: object) -> Record:
    """A change event that the source committed, and Kafka got, some seconds after midnight."""
    row = {"id": id, "title": title, **more}
    before, after = (row, None) if op == "d" else (None, row)
    ts_ms = int(at(source).timestamp() * 1000)
    event = {"before": before, "after": after, "source": {"ts_ms": ts_ms}, "op": op, "ts_ms": ts_ms}
    return sent({"id": id}, event, kafka, partition)


def flattened(id: int, name: str, bio: str, source: float, kafka: float, deleted: str = "false") -> Record:
    """A change whose envelope a connector has removed."""
    row = {
        "id": id,
        "name": name,
        "bio": bio,
        "__deleted": deleted,
        "__source_ts_ms": int(at(source).timestamp() * 1000),
    }
    return sent({"id": id}, row, kafka)


def fact(op: str, id: int, second: int, **row: object) -> Record:
    """A change event of a row."""
    ts_ms = int(at(second).timestamp() * 1000)
    event = {"before": None, "after": {"id": id, **row}, "source": {"ts_ms": ts_ms}, "op": op}
    return sent({"id": id}, event, second)


def order(sku: str, id: int, time: str | None, doc: int = 0) -> Record:
    return json.dumps({"id": id, "sku": sku, "doc": doc, "at": time}).encode()


PRICES = [
    # a row that is deleted and written again
    [price("again", "9.90", -1_000_000), price("again", None, 7200), price("again", "9.90", 7200.01)],
    # a deletion of a row whose time lies in the future
    [price("gone", "9.90", 0, "2024-03-02T02:00:05Z"), price("gone", None, 2)],
    # a producer's clock that was ahead
    [price("ahead", "1.00", 10_000_000), price("ahead", "2.00", 1), price("ahead", None, 2), price("ahead", "3.00", 3)],
    # a key that moves to a new partition, in which times fall
    [
        price("moved", "1.00", 50, partition=2),
        price("moved", "2.00", 10, partition=2),
        price("moved", "3.00", 60, partition=3),
        price("moved", "4.00", 55, partition=3),
    ],
    # the same, read in another order
    [
        price("moved back", "3.00", 60, partition=3),
        price("moved back", "4.00", 55, partition=3),
        price("moved back", "1.00", 50, partition=2),
        price("moved back", "2.00", 10, partition=2),
    ],
    # a version that comes late
    [
        price("late", "1.00", 1, "2024-01-01T00:00:00Z"),
        price("late", "3.00", 2, "2024-01-03T00:00:00Z"),
        price("late", "2.00", 3, "2024-01-02T00:00:00Z"),
    ],
]
TIMELESS = [
    sent({"sku": "t"}, {"sku": "t", "price": "1.00"}, 10),
    sent({"sku": "t"}, None, 20),
    sent({"sku": "t"}, {"sku": "t", "price": "3.00"}, 30),
]
ORDERS = [
    *(order("again", day, f"2024-0{day}-20T00:00:00Z") for day in (1, 2, 3)),
    order("again", 0, "2024-01-01T00:00:00Z"),
    *(order("gone", second, f"2024-03-02T02:00:0{second}Z") for second in (1, 6)),
    *(order("late", day, f"2024-01-0{day}T12:00:00Z") for day in (1, 2, 3)),
    *(order("t", n, f"2024-03-02T00:00:{10 * n - 5:02}Z") for n in (1, 2, 3, 4)),
    *(order("doc", n, f"2024-03-02T00:00:0{n}.500Z", doc) for doc in (1, 2) for n in (1, 2, 3)),
    *(order("doc", n, f"2024-03-02T00:0{n}:00Z", doc) for doc in (11, 12) for n in (0, 1)),
    order("null", 1, "2024-01-02T00:00:00Z"),
    order("null", 2, None),
    order("null", 3, "2024-01-01T00:00:00Z"),
    order("null", 4, None),
]
DOCUMENTS = [
    # values that a change left unchanged, the oldest change last
    [
        document("u", 1, "c", 3, 10, body=UNAVAILABLE, tags=[UNAVAILABLE]),
        document("u", 1, "b", 2, 11, body=UNAVAILABLE, tags=[UNAVAILABLE]),
        document("c", 1, "a", 1, 12, body=LONG, tags=["x"]),
    ],
    # the same after one was set to NULL
    [
        document("c", 2, "d", 1, 13, body=LONG, tags=None),
        document("u", 2, "e", 2, 14, body=None, tags=[UNAVAILABLE]),
        document("u", 2, "f", 3, 15, body=UNAVAILABLE, tags=[UNAVAILABLE]),
    ],
    [document("u", 3, "never told", 1, 16, body=UNAVAILABLE, tags=[UNAVAILABLE])],
    # rows of a snapshot that come after changes that they are older than
    [document("u", 4, "new", 20, 21), document("r", 4, "old", 10, 22)],
    [document("d", 5, "gone", 20, 24), document("r", 5, "gone", 10, 25)],
    [document("u", 6, "first of a transaction", 30, 31), document("u", 6, "last of it", 30, 31)],
    # a deletion with its tombstone, and a row that is written again
    [
        document("c", 7, "again", 1, 2),
        document("d", 7, "again", 3, 5),
        sent({"id": 7}, None, 5),
        document("c", 7, "again", 4, 6),
    ],
    [document("c", 8, "gone", 1, 2), document("d", 8, "gone", 3, 5), sent({"id": 8}, None, 5)],
    [document("c", 9, "compacted", 1, 2), sent({"id": 9}, None, 5)],
    # changes that a connector sends again
    [
        document("c", 10, "again", 1, 2),
        document("d", 10, "again", 3, 5),
        sent({"id": 10}, None, 5),
        document("c", 10, "again", 4, 6),
        document("d", 10, "again", 3, 15),
        sent({"id": 10}, None, 15),
        document("c", 10, "again", 4, 16),
    ],
    # changes that were committed while a snapshot was read, and are not in its rows
    [document("r", 11, "read", 50, 51, body=LONG), document("u", 11, "changed", 20, 60, body=UNAVAILABLE)],
    [document("r", 12, "read", 50, 51), document("d", 12, "read", 20, 60), sent({"id": 12}, None, 60)],
    [document("r", 13, "read", 50, 51), document("u", 13, "changed", 20, 51)],
    # a newer row of a snapshot, and a change that left its values unchanged
    [document("u", 14, "changed", 20, 21, body="short"), document("r", 14, "read again", 50, 51, body=LONG)],
    [
        document("c", 15, "changed", 20, 21, body="short"),
        document("r", 15, "read again", 50, 51, body=LONG),
        document("u", 15, "changed again", 40, 60, body=UNAVAILABLE),
    ],
]

BYTES = list(UNAVAILABLE.encode())
FILE = {
    "raw": "0102",
    "ints": [1],
    "numbers": [1.5],
    "ids": ["a"],
    "labels": {"k": "v"},
    "place": {"wkb": "AQEAAAA=", "srid": 4326},
    "pairs": '{"a":"b"}',
}
LEFT = {
    "raw": UNAVAILABLE,
    "ints": BYTES,
    "numbers": BYTES,
    "ids": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    "labels": {UNAVAILABLE: UNAVAILABLE},
    "place": {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326},
    "pairs": json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":")),
}
FILES = [
    [
        sent({"id": id}, {"op": op, "after": {"id": id, **row}, "source": {"ts_ms": n}}, n)
        for n, (op, row) in enumerate(rows)
    ]
    for id, rows in enumerate([[("c", {"n": 1, **FILE}), ("u", {"n": 2, **LEFT})], [("u", {"n": 1, **LEFT})]])
]
FLATTENED = [
    [flattened(1, "a", LONG, 1, 2), flattened(1, "b", "as before", 3, 4)],
    # a deletion that Kafka got late, and a row that was written again before that
    [flattened(2, "a", "x", 1, 2), flattened(2, "a", "x", 5, 9, "true"), flattened(2, "again", "y", 6, 9)],
    [flattened(3, "a", "x", 1, 2), flattened(3, "a", "x", 5, 9, "true"), flattened(3, "late", "x", 4, 12)],
]

OLD_TOWN = {"name": "old town", "place": {"day": "2024-05-03"}}
FACTS = [
    # values that a change left unchanged, and values that come from different changes
    [
        fact("c", 1, 1, s="2024-05-01", t="long text", j='{"a": 1}', tags=["one tag"], n=1),
        fact("u", 1, 2, s=UNAVAILABLE, t=UNAVAILABLE, j=UNAVAILABLE, tags=[UNAVAILABLE], n=2, at=OLD_TOWN),
    ],
    [
        fact("c", 2, 1, s="2024-05-02", t="old", j='{"a": 2}', tags=["old"], n=1),
        fact("u", 2, 2, s=UNAVAILABLE, t="new", j=UNAVAILABLE, tags=["new"], n=2),
        fact("u", 2, 3, s="2024-05-03", t=UNAVAILABLE, j='{"a": 3}', tags=[UNAVAILABLE], n=3),
    ],
    # values that no earlier change has
    [fact("u", 3, 1, s=UNAVAILABLE, t=UNAVAILABLE, j=UNAVAILABLE, tags=[UNAVAILABLE], n=3)],
    [
        fact("c", 4, 1, s="2024-05-04", t="gone", j='{"a": 4}', tags=["gone"], n=4),
        fact("u", 4, 2, s=None, t=None, j=None, tags=None, n=4),
        fact("u", 4, 3, s=UNAVAILABLE, t=UNAVAILABLE, j=UNAVAILABLE, tags=[UNAVAILABLE], n=5),
    ],
]


def in_turn(cases: Sequence[Sequence[Record]]) -> list[list[Record]]:
    """Micro-batches, each with the next record of every case."""
    return [[change for change in some if change is not None] for some in zip_longest(*cases)]


def play(engines: Engines, batches: Mapping[str, Sequence[Sequence[Record]]]) -> Shown:
    """The rows of every view, which equal its SELECT."""
    engines.deploy(catalog())
    engines.feed(catalog(), batches)
    engines.oracle(catalog(), batches)
    rows = {view.name: engines.actual(view) for view in catalog().views.values()}
    wrong = [
        difference(view, expected, rows[view.name])
        for view, expected in engines.all_expected(catalog())
        if not same(expected, rows[view.name])
    ]
    assert not wrong
    return lambda view, first: [row[1:] for row in rows[view] if row[0] == first]


@pytest.fixture(scope="module")
def shown(engines: Engines) -> Shown:
    """All cases but those of truncations, in one run."""
    by_time = [price("new", "2.00", 1, "2024-01-02T00:00:00Z"), price("new", "1.00", 2, "2024-01-01T00:00:00Z")]
    return play(
        engines,
        {
            "prices": in_turn(PRICES),
            "timeless": in_turn([TIMELESS]),
            "by_time": in_turn([by_time]),
            "documents": in_turn(DOCUMENTS),
            "files": in_turn(FILES),
            "flattened": in_turn(FLATTENED),
            "facts": in_turn(FACTS),
            "orders": [ORDERS],
        },
    )


def prices(rows: Sequence[Row]) -> list[str | None]:
    """The prices of rows, as texts."""
    return [None if row[-1] is None else str(row[-1]) for row in rows]


def test_a_row_that_is_deleted_and_written_again_is_shown(shown: Shown) -> None:
    """A deletion has Kafka's time, whatever time the row gives."""
    assert [str(row[0]) for row in shown("prices", "again")] == ["9.90"]
    assert prices(shown("priced", "again")) == [None, "9.90", "9.90", "9.90"]


def test_a_deletion_removes_a_row_with_a_future_time(shown: Shown) -> None:
    assert shown("prices", "gone") == []
    assert prices(shown("priced", "gone")) == [None, None]


def test_a_key_still_changes_after_a_clock_was_ahead(shown: Shown) -> None:
    assert [str(row[0]) for row in shown("prices", "ahead")] == ["3.00"]


@pytest.mark.parametrize("sku", ["moved", "moved back"])
def test_a_key_in_two_partitions_goes_by_the_log_time(shown: Shown, sku: str) -> None:
    """Log times never fall, so the last record of the new partition is newer than the last one of the old."""
    assert [str(row[0]) for row in shown("prices", sku)] == ["4.00"]


def test_a_version_that_comes_late_holds_until_the_next_one(shown: Shown) -> None:
    assert prices(shown("priced", "late")) == ["1.00", "2.00", "3.00"]
    assert [str(row[0]) for row in shown("prices", "late")] == ["2.00"]


def test_a_table_without_event_time_is_joined_as_of_kafkas_time(shown: Shown) -> None:
    assert prices(shown("priced_by_kafka", "t")) == [None, "1.00", None, "3.00"]


def test_a_table_may_go_by_event_time(shown: Shown) -> None:
    assert [str(row[0]) for row in shown("by_time", "new")] == ["2.00"]


def test_a_row_of_a_snapshot_is_older_than_a_change_that_came_before_it(shown: Shown) -> None:
    assert [row[0] for row in shown("documents", 4)] == ["new"]
    assert shown("documents", 5) == []
    assert [row[0] for row in shown("documents", 6)] == ["last of it"]


def test_a_change_that_follows_a_row_of_a_snapshot_is_newer(shown: Shown) -> None:
    """A snapshot takes long. Its rows have the time at which they were read, which may be later than the change's."""
    assert shown("documents", 11) == [("changed", LONG, None)]
    assert shown("documents", 12) == []
    assert shown("documents", 13) == [("changed", None, None)]
    assert shown("documents", 14) == [("read again", LONG, None)]
    assert shown("written", 11) == [(1, "changed", LONG)]
    assert shown("written", 12) == []
    assert shown("documents", 15) == [("changed again", LONG, None)]


def test_a_deletion_and_its_tombstone_are_older_than_the_row_that_follows(shown: Shown) -> None:
    """A tombstone has Kafka's time, which is later than the source's time of the row that follows."""
    assert [row[0] for row in shown("documents", 7)] == ["again"]
    assert shown("documents", 8) == []


def test_a_tombstone_deletes_even_if_kafka_has_compacted_the_deletion(shown: Shown) -> None:
    assert shown("documents", 9) == []


def test_changes_that_a_connector_sends_again_change_nothing(shown: Shown) -> None:
    assert [row[0] for row in shown("documents", 10)] == ["again"]


def test_an_unchanged_value_stays(shown: Shown) -> None:
    """The placeholder of an unchanged value is replaced whatever the order of arrival."""
    assert shown("documents", 1) == [("c", LONG, ["x"])]
    assert shown("documents", 2) == [("f", None, None)]
    assert shown("documents", 3) == [("never told", None, None)]
    assert shown("shouted", 1) == [(" ".join(LONG.split()).title() + " ", "c!", 1)]
    assert shown("written", 1) == [(1, "a", LONG), (2, "b", LONG), (3, "c", LONG)]
    assert shown("written", 2) == [(1, "d", LONG), (2, "e", None), (3, "f", None)]


def test_an_unchanged_value_of_any_type_stays(shown: Shown) -> None:
    assert shown("files", 0) == [(2, *FILE.values())]
    assert shown("files", 1) == [(1, *[None] * len(FILE))]


def test_a_flattened_change_has_a_time_even_if_it_deletes(shown: Shown) -> None:
    """The unit in the name of a field of times overrides the source's unit."""
    assert [row[:2] for row in shown("flattened", 1)] == [("b", LONG)]
    assert shown("flattened", 2) == [("again", "y", "false", "2024-03-02 00:00:06.000000")]
    assert shown("flattened", 3) == []


def test_a_function_of_a_row_reads_the_values_that_the_row_shows(shown: Shown) -> None:
    """It also reads a value that a later change left unchanged."""
    first, third = (f"2024-05-0{day} 00:00:00.000000" for day in (1, 3))
    assert sorted(day for row in shown("days", 1) for day in row) == [first, third]
    assert shown("days", 2) == [(None,)]
    of_json = (1, "1", "2024", "LONG TEXT", "One Tag", "Long Text1")
    of_two = ("2024-05-012", "Long Text2024-05-01", "Long Text", first, "Long Text", "Long Text1")
    assert shown("computed", 1) == [(first, "Long Text", *of_json, *of_two)]
    of_json = (3, "3", "2024", "NEW", "New", "New2")
    of_two = ("2024-05-033", "New2024-05-03", "New", third, "New", "New2")
    assert shown("computed", 2) == [(third, "New", *of_json, *of_two)]
    for id in (3, 4):
        assert shown("computed", id) == [(*[None] * 11, "2000-01-01 00:00:00.000000", "None", f"Key {id}")]
    assert shown("compared", 1) == [(third,)]
    assert shown("of_struct", 1) == [(third, "Old Town")]
    assert shown("of_struct", 2) == [(None, None)]
    assert [shown("of_point", id) for id in (0, 1)] == [[("Aqeaaaa=", "Aqeaaaa=")], [(None, "None")]]
    assert shown("computed_next_to", 1) == [(n, "Long Text", first) for n in (1, 2, 3)]


def test_a_function_of_columns_that_no_event_has_together_is_refused() -> None:
    table = """CREATE TABLE facts (id BIGINT PRIMARY KEY, s STRING, n INT)
USING kafka OPTIONS (topic 'facts', format 'debezium-json');"""
    view = "CREATE VIEW v AS SELECT id, to_date(concat(s, n)) AS day FROM facts;"
    with pytest.raises(Refused, match="above the aggregation"):
        compile_catalog({"facts.sql": table + view})
    assert "v" in compile_catalog({"facts.sql": (table + view).replace("debezium-json", "json")}).views


def test_a_record_without_event_time_is_older_than_those_with_one(shown: Shown) -> None:
    assert shown("latest", "null") == [(1, 2, [2, 4, 3, 1])]


def test_a_truncation_removes_the_rows_before_it(engines: Engines) -> None:
    """It leaves rows of its own transaction and later rows. A snapshot's row that comes late is older, so it goes."""
    source = {"ts_ms": int(at(5).timestamp() * 1000)}
    truncation = json.dumps({"before": None, "after": None, "source": source, "op": "t"}).encode()
    cases = [
        [document("r", 1, "gone", 1, 2), Sent(b"", truncation, 0, at(6)), document("c", 1, "its own", 5, 6)],
        [document("r", 2, "gone", 1, 2, partition=1), document("r", 4, "read before it", 4, 9)],
        [document("c", 2, "its own", 5, 6, partition=1), document("c", 3, "later", 7, 8)],
        [document("c", 5, "gone", 1, 2)],
    ]
    asked = [order("", second, f"2024-03-02T00:00:{second:02}Z", doc) for doc in (1, 4, 5) for second in (4, 8)]
    titles = play(engines, {"documents": in_turn(cases), "orders": [asked]})
    assert [titles("documents", id) for id in (1, 2, 3, 4, 5)] == [
        [("its own", None, None)],
        [("its own", None, None)],
        [("later", None, None)],
        [],
        [],
    ]
    assert [titles("written", doc) for doc in (1, 4, 5)] == [
        [(4, "gone", None), (8, "its own", None)],
        [(4, "read before it", None)],
        [(4, "gone", None)],
    ]
