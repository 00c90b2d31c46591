"""Kafka compacts the topic of a table: before its records are read, before they are archived, and after."""

from __future__ import annotations

import json
import time
from decimal import Decimal

from kafka import KafkaConsumer, TopicPartition

from tests.fix_lamina import Deployed

ACCOUNTS = """
CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner STRING, amount DECIMAL(10, 2))
USING kafka OPTIONS (topic '{topics}_accounts', format 'json', key_format 'json');
"""
OWNERS = "CREATE VIEW owners AS SELECT owner, count(*) AS n, sum(amount) AS amount FROM accounts GROUP BY owner;"

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
COMPACTED |= {"delete.retention.ms": "0"}  # Kafka also removes deletions, even unread ones

BEGAN = int(time.time() - 600) * 1_000
"""The timestamp of the first update, in milliseconds."""


def put(deployed: Deployed, numbers: range) -> None:
    """An update of one of seven accounts per number. Every fifth deletes it.

    Timestamps never fall, so that a record's log time is its own, and no record that Kafka removes decides it. They are
    a second apart, which is more than `segment.ms`: each batch begins a segment.
    """
    topic = deployed.topic("accounts")
    for number in numbers:
        timestamp = BEGAN + 1_000 * number
        key = json.dumps({"id": number % 7}).encode()
        value = json.dumps({"owner": "ab"[number % 2], "amount": str(number)}).encode()
        deployed.producer.send(topic, None if number % 5 == 0 else value, key=key, timestamp_ms=timestamp)
    deployed.producer.flush()


def held(topic: str, kafka: str) -> int:
    """The number of records that Kafka holds of a topic with one partition."""
    at = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=kafka)
    consumer.assign([at])
    consumer.seek_to_beginning(at)
    end, records = consumer.end_offsets([at])[at], 0
    while consumer.position(at) < end:
        records += sum(map(len, consumer.poll(1_000).values()))
    consumer.close()
    return records


def compact(deployed: Deployed, kafka: str, number: int) -> None:
    """Returns when Kafka has compacted all but the newest segment, which the update of this number begins."""
    put(deployed, range(number, number + 1))
    deployed.until(lambda: held(deployed.topic("accounts"), kafka) <= 8, "Kafka has compacted the topic")


def test_a_table_equals_its_select_while_kafka_compacts_its_topic(deployed: Deployed, kafka: str) -> None:
    brokers, batch = deployed.deployment.brokers, deployed.deployment.batch
    brokers.create(f"{deployed.prefix}_accounts", 1, COMPACTED)
    deployed.apply(accounts=ACCOUNTS, owners=OWNERS)
    put(deployed, range(1, 300))
    compact(deployed, kafka, 300)  # before any record is read, so offsets have gaps
    deployed.catch_up()
    assert counted(300) == deployed.rows("SELECT * FROM owners ORDER BY owner")
    put(deployed, range(301, 400))
    deployed.catch_up()
    compact(deployed, kafka, 400)  # counted records are gone before they are archived
    deployed.catch_up()
    proofs = batch.rebuild()
    assert {proof.differing for proof in proofs} == {0}
    put(deployed, range(401, 500))
    compact(deployed, kafka, 500)  # archived records are gone
    deployed.catch_up()
    assert counted(500) == deployed.rows("SELECT * FROM owners ORDER BY owner")
    deployed.check()


def counted(last: int) -> list[tuple[str, int, Decimal]]:
    """The rows that the view must show after this update."""
    newest = {number % 7: number for number in range(1, last + 1)}
    left = [number for number in newest.values() if number % 5]
    return [
        (owner, len(own), Decimal(sum(own)).quantize(Decimal("0.01")))
        for owner in "ab"
        if (own := [number for number in left if "ab"[number % 2] == owner])
    ]
