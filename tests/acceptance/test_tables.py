"""Tables over the usual kinds of topics: compacted ones and Debezium's."""

from __future__ import annotations

from tests.fix_lamina import Deployed

TABLES = """
CREATE TABLE users (id INT PRIMARY KEY COMMENT 'never used twice', city STRING)
USING kafka OPTIONS (topic '{topics}_users', format 'json', key_format 'json') COMMENT 'where users live';
CREATE TABLE goods (id INT PRIMARY KEY, origin STRING)
USING kafka OPTIONS (topic '{topics}_goods', format 'debezium-json') TBLPROPERTIES ('partitions' = '1');
"""


def test_tables_over_compacted_and_debezium_topics_keep_rows_and_comments(deployed: Deployed) -> None:
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
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert deployed.rows("SELECT id, origin FROM goods") == [(6, None)]
    deployed.check()
