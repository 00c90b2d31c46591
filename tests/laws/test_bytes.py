"""Bytes as columns, and as texts that are group keys."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime, timedelta
from functools import cache

from tests.laws.engines import Engines, Record, Sent
from view_algebra import Catalog, compile_catalog


@cache
def catalog() -> Catalog:
    """A stream and a table of bytes, and views of them."""
    return compile_catalog(
        {
            "bytes.sql": """
CREATE TABLE m (id BIGINT, payload BINARY, text STRING, ratio DOUBLE, exact DECIMAL(30, 9))
USING kafka OPTIONS (topic 'm', format 'json');
CREATE TABLE t (id BIGINT PRIMARY KEY, payload BINARY, text STRING)
USING kafka OPTIONS (topic 't', format 'json', key_format 'json');

CREATE VIEW by_key AS
SELECT CAST(kafka_key AS STRING) AS device, count(*) AS n FROM m GROUP BY CAST(kafka_key AS STRING);
CREATE VIEW decoded AS SELECT decode(kafka_key, 'UTF-8') AS device, max(id) AS id FROM m GROUP BY 1;
CREATE VIEW by_number AS SELECT CAST(CAST(kafka_key AS STRING) AS BIGINT) AS device, count(*) AS n FROM m GROUP BY 1;
CREATE VIEW devices AS
SELECT count(DISTINCT decode(kafka_key, 'utf-8')) AS n, min(CAST(payload AS STRING)) AS t FROM m;
CREATE VIEW rows AS
SELECT id, kafka_key, payload, unbase64(text) AS read, unhex(text) AS h, encode(text, 'UTF-8') AS e FROM m;
CREATE VIEW of_rows AS
SELECT id, last(read) AS read FROM (SELECT id, unbase64(text) AS read FROM m) GROUP BY id HAVING count(*) > 9;
CREATE VIEW shown AS SELECT id, payload FROM rows WHERE id > 1;
CREATE VIEW newest AS
SELECT text, last(payload) AS payload, first(payload) AS oldest, max_by(payload, id) AS m FROM m GROUP BY text;
CREATE VIEW functions AS
SELECT hex(payload) AS a, base64(payload) AS b, hex(unbase64(text)) AS c, base64(unhex(text)) AS d,
  hex(encode(text, 'UTF-8')) AS e, decode(unbase64(text), 'UTF-8') AS f, decode(payload, 'UTF-8') AS g
FROM m;
CREATE VIEW over_table AS SELECT id, hex(payload) AS h, unbase64(text) AS b, decode(payload, 'UTF-8') AS t FROM t;
CREATE VIEW joined AS SELECT m.id, t.payload FROM m JOIN t ON t.id = m.id;
CREATE VIEW headers AS
SELECT id, kafka_headers, size(kafka_headers) AS n, kafka_headers[0].key AS first,
  exists(kafka_headers, h -> h.value IS NULL) AS empty,
  try_element_at(filter(kafka_headers, h -> h.key = 'x'), -1).value AS x
FROM m WHERE NOT coalesce(exists(kafka_headers, h -> h.key LIKE 'a%'), false);
CREATE VIEW by_header AS
SELECT decode(try_element_at(filter(kafka_headers, h -> h.key = 'x'), -1).value, 'UTF-8') AS x, count(*) AS n,
  count(DISTINCT kafka_headers[0].key) AS keys, max_by(kafka_headers[1].key, id) AS newest
FROM m GROUP BY 1;
CREATE VIEW exploded AS
SELECT h.key, count(*) AS n, count(h.value) AS filled FROM m LATERAL VIEW explode(kafka_headers) AS h GROUP BY h.key;
CREATE VIEW seconds AS
SELECT timestamp_seconds(ratio) AS at, timestamp_seconds(exact) AS exact, timestamp_seconds(id) AS whole FROM m;
"""
        }
    )


TEXTS = ["bGFtaW5h", "AA==", "/+8=", "A", "AA", "=", "00ff", "c3", "é", "a b", "", None]
BYTES = [b"", b"a", b"a\x00b", b"\xff\xfe", b"\xc3", "é".encode(), bytes(range(40)), b"__debezium_unavailable_value"]
HEADERS: list[list[tuple[str, bytes | None]] | None] = [
    None,
    [],
    [("x", b"1")],
    [("x", b"\xff"), ("x", None)],
    [("", b"y"), ("a\0b", b"\0")],
    [("x", b""), ("ü", b"z")],
]
KEYS = [b"1", b"2", b"a\xff", b"a\xfe", b"\x00", "ü".encode(), b""]
SECONDS = [None, 0.5, 1470840303.636, -1.25, 1e300, "NaN", -62135596800, 253402300799.9]
EXACT = [
    None,
    "0.5",
    "1470840303.636123789",
    "-1.000000001",
    "253402300799.9999999",
    "253402300800",
    "999999999999999999999",
]


def test_bytes_equal_sparks(engines: Engines) -> None:
    dice = random.Random(4)

    def record() -> Sent:
        value = {
            "id": dice.randrange(4),
            "payload": dice.choice([None, *(base64.b64encode(content).decode() for content in BYTES)]),
            "text": dice.choice(TEXTS),
            "ratio": dice.choice(SECONDS),
            "exact": dice.choice(EXACT),
        }
        number, at = dice.randrange(2), datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(9))
        return Sent(dice.choice(KEYS), json.dumps(value).encode(), number, at, dice.choice(HEADERS))

    def row() -> Record:
        value = record().value
        assert value is not None
        return str(json.loads(value)["id"]).encode(), dice.choice([None, value, value])

    batches = {name: [[make() for _ in range(25)] for _ in range(3)] for name, make in {"m": record, "t": row}.items()}
    assert engines.differing(catalog(), batches) == {}
