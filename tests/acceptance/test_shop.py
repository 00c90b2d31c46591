"""A shop that asks about several sources: live, with rebuilds between, every view is its SELECT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lamina.catalogs import catalog_files
from tests.fix_lamina import CommandLine, Deployed

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shop"

SHOWN = {
    "local_buyers_now": "SELECT to_char(hour, 'HH24'), buyers FROM local_buyers_now",
    "local_buyers_then": "SELECT to_char(hour, 'HH24'), buyers FROM local_buyers_then",
    "paid_in_time": "SELECT order_id, to_char(paid_at, 'HH24:MI') FROM paid_in_time",
    "in_euro": "SELECT currency, orders, amount::float8 FROM in_euro",
    "twice_within_a_minute": "SELECT * FROM twice_within_a_minute",
    "by_city": "SELECT * FROM by_city",
    "baskets": "SELECT city, to_char(began, 'HH24:MI'), orders::text FROM baskets",
}

Told = dict[str, list[tuple[Any, ...]]]

BEFORE_CUSTOMERS: Told = {
    "local_buyers_now": [],
    "local_buyers_then": [],
    "paid_in_time": [(1, "01:10"), (2, None), (3, "01:16"), (4, None), (5, "02:20")],
    "in_euro": [("SEK", 2, 13.5), ("USD", 3, 29.0)],
    "twice_within_a_minute": [],
    "by_city": [],
    "baskets": [],
}
"""An inner join shows nothing without a customer. Counted by hand from examples/shop/data, as what follows."""

WITH_CUSTOMERS: Told = BEFORE_CUSTOMERS | {
    "local_buyers_now": [("01", 1), ("02", 1)],  # customer 1 moved from Ulm to Bonn, and bought of both
    "local_buyers_then": [("01", 2), ("02", 1)],
    "by_city": [("Bonn", 1), ("Kiel", 1), ("Trier", 1)],
    "baskets": [
        ("Bonn", "01:05", "[1, 2]"),
        ("Bonn", "02:11", "[5]"),
        ("Kiel", "01:16", "[3]"),
        ("Trier", "02:10", "[4]"),
    ],
}

AFTER_CHANGES: Told = {
    "local_buyers_now": [("01", 1)],
    "local_buyers_then": [("01", 2)],
    "paid_in_time": [(1, "01:10"), (2, "01:20"), (3, "01:16"), (4, None), (5, "02:20"), (6, None)],
    "in_euro": [("SEK", 3, 14.4), ("USD", 3, 34.0)],
    "twice_within_a_minute": [(3, 6)],
    "by_city": [("Kiel", 1), ("Trier", 1)],
    "baskets": [("Kiel", "01:16", "[3, 6]"), ("Trier", "02:10", "[4]")],
}


def told(deployed: Deployed) -> Told:
    return {view: sorted(deployed.rows(query), key=str) for view, query in SHOWN.items()}


def test_what_is_asked_of_several_sources_holds_at_every_instant(
    deployed: Deployed, lamina: CommandLine, tmp_path: Path
) -> None:
    catalog = deployed.copied(EXAMPLE, tmp_path / "catalog")
    deployed.deployment.apply(catalog_files(catalog))
    for source in ("orders", "payments", "rates", "goods"):
        lamina("ingest", source, str(EXAMPLE / "data" / f"{source}.jsonl"))
    deployed.catch_up()
    assert told(deployed) == BEFORE_CUSTOMERS
    lamina("ingest", "customers", str(EXAMPLE / "data" / "customers.jsonl"))
    deployed.catch_up()
    assert told(deployed) == WITH_CUSTOMERS
    deployed.check()

    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert told(deployed) == WITH_CUSTOMERS
    # Customer 1 is deleted, an old address of customer 2 comes late, a rate is corrected, piano making leaves Bonn.
    older = {"id": 2, "city": "Ulm", "moved_at": "2026-02-01T00:00:00Z"}
    deployed.send("customers", (b'{"id": 1}', None), (b'{"id": 2}', older))
    deployed.send("rates", (b"USD", {"rate": "1", "since": "2026-03-01T01:15:00Z"}))
    deployed.send("goods", (b'{"id": 3}', {"name": "piano", "origin": "Brunswick"}))
    deployed.send("payments", {"order_id": 2, "ts": "2026-03-01T01:20:00Z"})
    late = {"id": 6, "customer_id": 2, "good_id": 2, "currency": "SEK", "amount": "10.00", "ts": "2026-03-01T01:16:30Z"}
    deployed.send("orders", late)
    deployed.catch_up()
    assert told(deployed) == AFTER_CHANGES
    deployed.check()
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert told(deployed) == AFTER_CHANGES


TABLES = """
CREATE TABLE users (id INT PRIMARY KEY COMMENT 'never used twice', city STRING)
USING kafka OPTIONS (topic '{topics}_users', format 'json', key_format 'json') COMMENT 'where users live';
CREATE TABLE goods (id INT PRIMARY KEY, origin STRING)
USING kafka OPTIONS (topic '{topics}_goods', format 'debezium-json') TBLPROPERTIES ('partitions' = '1');
"""


def test_a_table_has_its_comments_and_may_be_a_compacted_topic_or_one_of_debezium(deployed: Deployed) -> None:
    topic = f"{deployed.prefix}_users"
    deployed.deployment.brokers.create(topic, 1, {"cleanup.policy": "compact"})
    deployed.apply(sources=TABLES)
    assert deployed.owner("SELECT obj_description('analytics.users'::regclass)") == [("where users live",)]
    assert deployed.owner("SELECT col_description('analytics.users'::regclass, 1)") == [("never used twice",)]
    one, six, seven = b'{"id": 1}', b'{"id": 6}', b'{"id": 7}'
    deployed.send("users", (one, {"id": 1}), (one, {"id": 2}), (b"x", None), (one, {"city": "Bonn"}))
    row = {"id": 7, "origin": "Ulm"}
    deployed.send("goods", (six, {"op": "r", "after": {"id": 6}}), (seven, {"op": "c", "after": row}))
    deployed.send("goods", (seven, {"op": "d", "before": row}), (seven, None))
    deployed.catch_up()
    assert deployed.rows("SELECT id, city FROM users") == [(1, "Bonn")]
    assert deployed.rows("SELECT id, origin FROM goods") == [(6, None)]
    assert sorted(deployed.rows("SELECT error, records FROM lamina.bad_records")) == [
        ("a deletion, and its key is no JSON of id INT", 1),
        ("the primary key differs from Kafka's key: id", 1),
    ]
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert deployed.rows("SELECT id, origin FROM goods") == [(6, None)]
    deployed.check()
