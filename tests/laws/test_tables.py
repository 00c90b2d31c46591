"""Tables hold the newest record of every key, whichever came first, and remember deletions."""

from __future__ import annotations

import json
import random
from functools import cache

from tests.laws.engines import Engines, Record
from view_algebra import Catalog, compile_catalog

WRONG = "a field has the wrong type: "
MODE = "set decimal.handling.mode in OPTIONS to that of the connector"


@cache
def catalog() -> Catalog:
    """Tables of every format, and views of them."""
    return compile_catalog(
        {
            "tables.sql": """
CREATE TABLE users (
  id BIGINT PRIMARY KEY COMMENT 'never used twice', name STRING, country STRING, tags ARRAY<STRING>,
  address STRUCT<city: STRING, zips: ARRAY<INT>>, scores MAP<STRING, DOUBLE>, changed TIMESTAMP
) USING kafka OPTIONS (topic 'users', format 'json', key_format 'json')
TBLPROPERTIES ('event_time' = 'changed', 'newest_by' = 'event_time') COMMENT 'who there is';

CREATE TABLE rates (currency STRING, day DATE, rate DECIMAL(12,6), PRIMARY KEY (currency, day))
USING kafka OPTIONS (topic 'rates', format 'json');

CREATE TABLE flags (name STRING PRIMARY KEY, is_on BOOLEAN)
USING kafka OPTIONS (topic 'flags', format 'json', key_format 'string');

CREATE TABLE shop (id INT PRIMARY KEY, name STRING, price DECIMAL(38,18), big BIGINT, tags ARRAY<STRING>)
USING kafka OPTIONS (topic 'shop', format 'debezium-json');

CREATE VIEW by_country AS SELECT country, count(*) AS n, max(changed) AS newest FROM users GROUP BY country;
CREATE VIEW tagged AS SELECT t.tag, count(*) AS n FROM users LATERAL VIEW explode(tags) t AS tag GROUP BY t.tag;
CREATE VIEW cities AS SELECT DISTINCT address.city AS city, size(address.zips) AS zips FROM users;
CREATE VIEW hours AS
SELECT window(changed, '1 hour').start AS h, count(*) AS n, avg(scores['a']) AS a FROM users
GROUP BY window(changed, '1 hour');
CREATE VIEW in_turn AS
SELECT country, last_value(name) AS newest, last(name, true) AS named, first(id) AS oldest, collect_list(id) AS ids
FROM users GROUP BY country;
CREATE VIEW in_turn_of_some AS
SELECT s.n, last(s.id) AS newest, listagg(CAST(s.id AS STRING), ',') AS ids, collect_list(struct(s.id, s.n)) AS both
FROM (SELECT id, name AS n FROM shop WHERE big > 1) s GROUP BY s.n;
CREATE VIEW in_turn_by_other_names AS
SELECT f.b, last_value(f.a) AS newest FROM flags AS f(a, b) GROUP BY f.b;
CREATE VIEW newest_rates AS
SELECT r.currency, r.rate FROM rates r JOIN (SELECT currency, max(day) AS day FROM rates GROUP BY currency) AS d
  ON d.currency = r.currency AND d.day = r.day;
CREATE VIEW read_as_times AS
SELECT id, to_date(concat('2024-01-0', id)) AS d, CAST(country AS TIMESTAMP) AS t, initcap(name) AS n,
  split(name, 'n') AS parts, timestamp_millis(id * 1000) AS at,
  get_json_object(concat('{"a": "', name, '"}'), '$.a') AS j, hash(id, name) AS h
FROM users WHERE md5(country) <> 'x' OR country IS NULL;
CREATE VIEW by_day AS
SELECT date_trunc('month', to_timestamp(concat('2024-0', id + 1, '-03'))) AS m, initcap(country) AS c, count(*) AS n,
  max(timestamp_millis(id)) AS latest
FROM users GROUP BY date_trunc('month', to_timestamp(concat('2024-0', id + 1, '-03'))), initcap(country);
CREATE VIEW of_shop AS
SELECT initcap(s.name) AS name, timestamp_micros(s.id) AS at, s.price, u.changed, regexp_extract(u.name, '(.)n', 1) AS n
FROM shop s LEFT JOIN users u ON u.id = s.id AND md5(u.country) <> 'x';
CREATE VIEW letters AS
SELECT t.letter, count(*) AS n FROM users u LATERAL VIEW explode(split(u.name, '')) t AS letter GROUP BY t.letter;
CREATE VIEW named AS
SELECT u.id, f.is_on, row_number() OVER (ORDER BY u.name DESC, u.id) AS place FROM users u
LEFT JOIN flags f ON f.name = u.name;
"""
        }
    )


def user(dice: random.Random) -> Record:
    id = dice.randrange(8)
    key = dice.choice([str(id), json.dumps({"id": id}), json.dumps({"id": id, "more": 1})])
    if dice.random() < 0.2:
        return key.encode(), None
    value = {
        "id": dice.choice([id, id, None]),
        "name": dice.choice(["ann", "bob", None]),
        "country": dice.choice(["DE", "FR"]),
        "tags": dice.choice([None, [], ["a"], ["b", None, "a"]]),
        "address": dice.choice([None, {"city": "Ulm", "zips": [1, 2]}, {"city": "Köln"}]),
        "scores": dice.choice([None, {}, {"a": 1.5}, {"a": None, "b": 2.0}]),
        "changed": dice.choice([None, f"2026-01-01T{dice.randrange(4):02}:00:00Z"]),
    }
    return key.encode(), json.dumps({name: field for name, field in value.items() if field is not None}).encode()


def rate(dice: random.Random) -> Record:
    day = f"2026-01-0{dice.randrange(1, 4)}"
    return json.dumps({"currency": dice.choice("AB"), "day": day, "rate": str(dice.randrange(9))}).encode()


def flag(dice: random.Random) -> Record:
    name = dice.choice(["ann", "bob", 'a "quoted" name'])
    return name.encode(), dice.choice([None, json.dumps({"is_on": dice.random() < 0.5}).encode()])


def change(dice: random.Random) -> Record:
    id, op = dice.randrange(6), dice.choice("cuuurd")
    key: dict[str, object] = {"id": id}
    if dice.random() < 0.1:
        return json.dumps(key).encode(), None
    price = dice.choice(["1.000000000000000001", "12345678901234567890.5", "null"])
    row = f'{{"id": {id}, "name": "n{dice.randrange(3)}", "price": {price}, "big": {2**63 - 1}, "tags": ["a"]}}'
    before, after = (row, "null") if op == "d" else (dice.choice(["null", row]), row)
    if op == "u" and dice.random() < 0.5:
        before = row.replace(f'"id": {id}', f'"id": {dice.randrange(6)}')  # its key may have changed since
    if op == "d" and dice.random() < 0.3:
        before = "null"  # the key alone tells the row
    event = f'{{"before": {before}, "after": {after}, "source": {{"db": "s"}}, "op": "{op}", "ts_ms": 1}}'
    if dice.random() < 0.5:
        key, event = {"schema": {"type": "struct"}, "payload": key}, f'{{"schema": {{}}, "payload": {event}}}'
    return json.dumps(key).encode(), event.encode()


def test_a_table_shows_the_newest_record_of_every_key(engines: Engines) -> None:
    dice = random.Random(3)
    assert catalog().views["read_as_times"].reads == (), "it has cells of its own"
    makers = {"users": user, "rates": rate, "flags": flag, "shop": change}
    batches = {name: [[make(dice) for _ in range(12)] for _ in range(4)] for name, make in makers.items()}
    assert engines.differing(catalog(), batches) == {}


def shown(engines: Engines, name: str, records: list[Record]) -> list[tuple[object, ...]]:
    """A table after its records came one by one."""
    engines.deploy(catalog())
    engines.feed(catalog(), {name: [[record] for record in records]})
    return [row[:2] for row in engines.actual(catalog().views[name])]


def changed(id: int, name: str, hour: int) -> Record:
    return json.dumps({"id": id, "name": name, "changed": f"2023-01-01T{hour:02}:00:00Z"}).encode()


def test_an_older_record_that_comes_later_changes_nothing(engines: Engines) -> None:
    assert shown(engines, "users", [changed(1, "new", 9), changed(1, "old", 8)]) == [(1, "new")]


def test_a_deletion_is_remembered(engines: Engines) -> None:
    """The deletion has Kafka's time, which is later than those in the records."""
    assert shown(engines, "users", [changed(1, "new", 9), (b"1", None), changed(1, "late", 8)]) == []
    late = json.dumps({"id": 1, "name": "again", "changed": "2025-01-01T00:00:00Z"}).encode()
    assert shown(engines, "users", [changed(1, "new", 9), (b"1", None), late]) == [(1, "again")]


@cache
def moves() -> Catalog:
    """A table whose rows move from key to key, and a join as of the event."""
    return compile_catalog(
        {
            "moves.sql": """
CREATE TABLE seats (hall STRING, seat SMALLINT, guest STRING, at TIMESTAMP, PRIMARY KEY (hall, seat))
USING kafka OPTIONS (topic 'seats', format 'debezium-json')
TBLPROPERTIES ('event_time' = 'at', 'newest_by' = 'event_time');
CREATE TABLE looks (hall STRING, seat SMALLINT, ts TIMESTAMP) USING kafka OPTIONS (topic 'looks', format 'json');
CREATE VIEW seen AS SELECT l.ts, l.seat, s.guest FROM looks l
LEFT JOIN seats FOR SYSTEM_TIME AS OF l.ts AS s ON s.hall = l.hall AND s.seat = l.seat;
"""
        }
    )


def taken(op: str, hour: int, guest: str, *, before: tuple[str, int] | None = None, after: tuple[str, int]) -> Record:
    """A change of the guest in a seat."""
    row = {"hall": after[0], "seat": after[1], "guest": guest, "at": f"2023-01-01T{hour:02}:00:00Z"}
    old = None if before is None else {"hall": before[0], "seat": before[1]}
    return json.dumps({"op": op, "before": old, "after": row}).encode()


def looked(seat: int, hour: int) -> Record:
    return json.dumps({"hall": "A", "seat": seat, "ts": f"2023-01-01T{hour:02}:30:00Z"}).encode()


def test_an_update_of_the_key_moves_the_row_from_the_old_key(engines: Engines) -> None:
    """A late record changes only rows that it is newer than: not seat 1, which ann had already left."""
    seats = [
        taken("c", 1, "ann", after=("A", 1)),
        taken("u", 3, "ann", before=("A", 1), after=("A", 2)),
        taken("u", 2, "anne", before=("A", 1), after=("A", 1)),
        taken("c", 1, "bob", after=("A", 3)),
        taken("u", 4, "bob", before=("B", 9), after=("A", 3)),
    ]
    looks = [looked(seat, hour) for hour in (1, 2, 3) for seat in (1, 2)]
    assert engines.differing(moves(), {"seats": [[record] for record in seats], "looks": [looks]}) == {}
    assert [row[1:3] for row in engines.actual(moves().views["seats"])] == [(2, "ann"), (3, "bob")]
    assert [row[1:] for row in engines.actual(moves().views["seen"])] == [
        (1, "ann"),
        (2, None),
        (1, "anne"),
        (2, None),
        (1, None),
        (2, "ann"),
    ]


def test_a_deletion_does_not_have_the_time_of_the_deleted_row(engines: Engines) -> None:
    """The deletion has Kafka's time, in 2024. The row holds until then."""
    gone = {"op": "d", "before": json.loads(taken("c", 1, "ann", after=("A", 1)))["after"], "after": None}  # type: ignore[arg-type]
    seats = [taken("c", 1, "ann", after=("A", 1)), json.dumps(gone).encode()]
    late = json.dumps({"hall": "A", "seat": 1, "ts": "2024-01-01T00:00:01Z"}).encode()
    assert (
        engines.differing(
            moves(), {"seats": [seats, [taken("c", 1, "b", after=("A", 9))]], "looks": [[looked(1, 2), late]]}
        )
        == {}
    )
    assert [row[2] for row in engines.actual(moves().views["seats"])] == ["b"]
    assert [row[2] for row in engines.actual(moves().views["seen"])] == ["ann", None]


def test_a_record_without_a_key_is_bad(engines: Engines) -> None:
    bad: dict[str, list[Record]] = {
        "users": [
            (b"x", None),
            (b"{}", None),
            (b'{"id": null}', None),
            (b"null", b'{"id": null}'),
            (b"2", b'{"id": 1}'),
            (b"x", b'{"name": "a"}'),
            (b"\xff", None),
        ],
        "rates": [(b"k", None), b'{"currency": "A"}'],
        "shop": [
            b"{",
            b'{"id": 1}',
            b'{"op": "m", "message": {}}',
            b'{"op": "u", "before": {"id": 1}, "after": null}',
            (b"x", b'{"op": "d", "before": null}'),
            (b'{"id": 1}', b'{"op": "c", "after": {"id": 1, "price": "x"}}'),
        ],
        "flags": [(b"a\x00b", None), (b"a", b'{"name": "b"}')],
    }
    reasons = {
        "users": [
            "a deletion, and its key is no JSON of id BIGINT",
            "a deletion, and its key is no JSON of id BIGINT",
            "a deletion, and its key is no JSON of id BIGINT",
            "the primary key is null: id",
            "the primary key differs from Kafka's key: id",
            "the primary key is null: id",
            "a deletion, and its key is no JSON of id BIGINT",
        ],
        "rates": ["a deletion, and Kafka's key is not read: declare key_format", "the primary key is null: day"],
        "shop": [
            "not JSON, or nested too deep",
            "no change event of Debezium: it has no op",
            "no change of a row: op m",
            "the change has no row: after is missing",
            "a deletion, and its key is no JSON of id INT",
            f"{WRONG}price is no DECIMAL(38,18) for certain: {MODE}",
        ],
        "flags": [
            "a deletion, and its key is no text of name STRING",
            "the primary key differs from Kafka's key: name",
        ],
    }
    for name, records in bad.items():
        engines.records(catalog().sources[name], records)
        errors = engines.spark.sql("SELECT kafka_error FROM records ORDER BY kafka_offset").collect()
        assert [row.kafka_error for row in errors] == reasons[name]
