"""A record counts without the fields that cannot be read, live, after a rebuild and after a leap."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from lamina.reports.statuses import read_status
from tests.fix_lamina import Deployed
from tests.laws.bad_fields import LINES
from view_algebra.errors import LaminaError
from view_algebra.record_columns import NULLED

ORDER_LINES = """
    CREATE TABLE order_lines (order_id BIGINT, qty INT, price DECIMAL(10, 2), shipped_at TIMESTAMP, note STRING)
    USING kafka OPTIONS (topic '{topics}_order_lines', format 'json')
    TBLPROPERTIES ('on_bad_field' = 'null', 'partitions' = '1');
    CREATE VIEW lines AS SELECT order_id, qty, price, CAST(shipped_at AS STRING) AS shipped_at, note FROM order_lines;
    CREATE VIEW totals AS
    SELECT count(*) AS n, count(shipped_at) AS shipped, sum(qty * price) AS amount FROM order_lines;
"""

PRODUCTS = """
    CREATE TABLE products (id STRING, stock INT, deleted BOOLEAN, PRIMARY KEY (id))
    USING kafka OPTIONS (topic '{topics}_products', format 'json', key_format 'json')
    TBLPROPERTIES ('field.id' = '_id', 'field.deleted' = '_deleted', 'on_bad_field' = 'null', 'partitions' = '1');
"""

EVENTS = """
    CREATE TABLE taps (id INT, n INT, userId STRING, lower_id STRING, UNIQUE (id))
    USING kafka OPTIONS (topic '{topics}_taps', format 'json')
    TBLPROPERTIES ('field.lower_id' = 'userid', 'on_bad_field' = 'null', 'partitions' = '1');
    CREATE VIEW users AS SELECT coalesce(userId, lower_id) AS uid, count(*) AS n, sum(n) AS total FROM taps GROUP BY 1;
"""

SHOWN = [
    (1, 2, Decimal("9.90"), "2024-03-01 12:00:00", ""),
    (2, None, Decimal("5.00"), None, None),
    (3, 3, None, None, None),
    (4, None, Decimal("1000.50"), "2024-03-01 13:00:00.123456", None),
    (5, 1, Decimal("7.00"), None, None),
    (6, 4, None, "2024-03-01 10:00:00", None),
    (7, 5, Decimal("2.50"), "2024-03-01 10:00:00", None),
    (8, None, None, "0001-01-01 00:00:00", None),
]


def bad(deployed: Deployed) -> list[tuple[object, ...]]:
    return deployed.rows("SELECT source, records, counted, error FROM lamina.bad_records ORDER BY source, error")


def counts(deployed: Deployed) -> dict[str, tuple[int, int]]:
    return {query.query: (query.quarantined, query.bad_fields) for query in read_status(deployed.deployment).queries}


def test_bad_fields_are_null_and_counted_live_rebuilt_and_after_a_leap(deployed: Deployed) -> None:
    deployed.apply(order_lines=ORDER_LINES, products=PRODUCTS, events=EVENTS)
    deployed.send("order_lines", *(line.encode() for line in LINES[:8]), b"[]")
    for key, value in (
        ('{"_id": 0.10}', '{"_id": 0.10, "stock": 1.0, "_deleted": 0}'),
        ('{"_id": "b"}', '{"stock": "many", "_deleted": true}'),
        ('{"_id": "c"}', '{"_id": [], "stock": 2}'),
    ):
        deployed.producer.send(deployed.topic("products"), key=key.encode(), value=value.encode())
    taps = [{"id": 1, "n": "x", "userId": "A"}, {"id": 1, "n": "x", "userId": "A"}, {"id": 2, "n": 5, "userid": "a"}]
    deployed.send("taps", *taps, {"id": "z", "n": 1})
    deployed.producer.flush()

    def is_right() -> None:
        assert deployed.rows("SELECT * FROM lines ORDER BY order_id") == SHOWN
        assert deployed.rows("SELECT n, shipped, amount FROM totals") == [(8, 5, Decimal("39.30"))]
        assert deployed.rows("SELECT * FROM products ORDER BY id") == [("0.10", 1, False), ("b", None, True)]
        assert deployed.rows("SELECT * FROM users ORDER BY uid") == [("A", 1, None), ("a", 1, 5)]
        assert counts(deployed) == {"order_lines": (1, 5), "products": (1, 1), "taps": (1, 2)}
        deployed.check()

    deployed.catch_up()
    is_right()
    deployed.deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    is_right()
    kept = "SELECT \"offset\", error, value FROM lamina.quarantine WHERE source = 'order_lines' ORDER BY 1"
    rows = [(offset, error, bytes(value).decode()) for offset, error, value in deployed.owner(kept)]
    assert rows[0] == (1, f"{NULLED}qty is no INT, shipped_at is no TIMESTAMP", LINES[1])
    assert [offset for offset, *_ in rows] == [1, 2, 4, 5, 7, 8]
    assert [row[2] for row in bad(deployed) if row[0] == "order_lines"] == [False, *[True] * 5]
    deployed.send("taps", {"id": 3, "n": {}, "userId": "A"}, b"{")
    deployed.send("order_lines", json.loads(LINES[0]) | {"order_id": 9, "qty": "no"})
    deployed.deployment.batch.rebuild(leap=True)
    assert counts(deployed) == {"order_lines": (1, 6), "products": (1, 1), "taps": (2, 3)}
    deployed.check()
    with pytest.raises(LaminaError, match="records that were bad would be good now"):
        deployed.apply(events=EVENTS.replace("'field.lower_id' = 'userid', ", ""))
