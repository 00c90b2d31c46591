"""One topic, declared as a stream and as a table: each counts what it can read, and both have one log."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from lamina.operations import topic_records
from tests.fix_lamina import Deployed
from view_algebra.errors import LaminaError

_TOPIC = "USING kafka OPTIONS (topic '{topics}_amounts', format 'json') TBLPROPERTIES ('partitions' = '1')"

STREAM = f"""
    CREATE TABLE amounts (name STRING, amount BIGINT) {_TOPIC};
    CREATE VIEW sums AS SELECT name, sum(amount) AS total FROM amounts GROUP BY name;
"""

TABLE = f"CREATE TABLE newest (name STRING PRIMARY KEY, amount BIGINT) {_TOPIC};"

BOTH = """
    CREATE VIEW compared AS
    SELECT a.name, sum(a.amount) AS total, max(n.amount) AS newest
    FROM amounts a LEFT JOIN newest n ON n.name = a.name GROUP BY a.name;
"""

SUMS = [("Jack", 4), ("Lily", 7), ("Mike", 4)]
NEWEST = [("Jack", 3), ("Lily", 5), ("Mike", 4)]
NO_KEY = "the primary key is null: name"


def send(deployed: Deployed, *pairs: tuple[str | None, int]) -> None:
    deployed.send("amounts", *({"name": name, "amount": amount} for name, amount in pairs))


def seen(deployed: Deployed) -> tuple[list[tuple[object, ...]], ...]:
    names = "SELECT * FROM {} WHERE name IS NOT NULL ORDER BY name".format
    return deployed.rows(names("sums")), deployed.rows(names("newest"))


def bad_records(deployed: Deployed) -> list[tuple[object, ...]]:
    return deployed.rows("SELECT source, error, records FROM lamina.bad_records ORDER BY source, error")


def test_a_topic_is_a_stream_and_a_table_live_after_a_rebuild_and_after_a_leap(deployed: Deployed) -> None:
    deployed.apply(stream=STREAM, table=TABLE, both=BOTH)
    send(deployed, ("Jack", 1), ("Lily", 2), ("Mike", 4), (None, 9), ("Jack", 3), ("Lily", 5))
    deployed.catch_up()
    no_key = ("newest", NO_KEY, 1)
    deployed.check()
    assert (*seen(deployed), bad_records(deployed)) == (SUMS, NEWEST, [no_key])
    deployed.deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    assert (*seen(deployed), bad_records(deployed)) == (SUMS, NEWEST, [no_key])
    send(deployed, ("Mike", 0), ("Mike", 4))
    deployed.deployment.batch.rebuild(leap=True)
    assert (*seen(deployed), bad_records(deployed)) == ([*SUMS[:2], ("Mike", 8)], NEWEST, [no_key])
    later = {"value": b'{"name": "Mike", "amount": 9}', "timestamp_ms": 1_600_000_000_000}  # from a clock that is slow
    deployed.producer.send(deployed.topic("amounts"), partition=0, **later)
    deployed.producer.flush()
    deployed.catch_up()
    assert seen(deployed) == ([*SUMS[:2], ("Mike", 17)], [*NEWEST[:2], ("Mike", 9)])
    deployed.check()


def test_a_record_is_bad_for_a_source_and_forgotten_with_it(deployed: Deployed) -> None:
    deployed.apply(stream=STREAM, table=TABLE)
    send(deployed, (None, 9))
    deployed.send("newest", b"neither can read it")
    deployed.catch_up()
    of_stream, of_table = ("amounts", "not JSON", 1), [("newest", "not JSON", 1), ("newest", NO_KEY, 1)]
    assert bad_records(deployed) == [of_stream, *of_table]
    deployed.apply(table="")
    assert bad_records(deployed) == [of_stream]
    deployed.apply(table=TABLE)  # the source begins at the first record again
    assert bad_records(deployed) == [of_stream]
    deployed.catch_up()
    assert bad_records(deployed) == [of_stream, *of_table]


def test_a_table_added_to_an_old_topic_begins_at_kafkas_first_record_and_the_stream_keeps_its_own(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(stream=STREAM)
    send(deployed, ("Jack", 1), ("Lily", 2), ("Mike", 4))
    deployed.catch_up()
    deployment, topic = deployed.deployment, deployed.topic("amounts")
    stream = deployment.deployed().sources["amounts"]
    deployment.batch.logs.archive(stream, deployment.brokers.latest(topic))
    kafka_admin.delete_records({TopicPartition(topic, 0): 2})
    deployed.apply(table=TABLE)
    send(deployed, ("Jack", 3), ("Lily", 5))
    deployed.catch_up()
    for name in ("newest", "amounts"):  # for either order of archive runs
        deployment.batch.logs.archive(deployment.deployed().sources[name], deployment.brokers.latest(topic))
    assert seen(deployed) == (SUMS, NEWEST)
    assert deployed.rows("SELECT DISTINCT source, first_offset FROM lamina.offsets ORDER BY 1") == [
        ("amounts", 0),
        ("newest", 2),
    ]
    deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    deployed.check()


def test_a_table_that_begins_later_makes_its_stream_give_up_no_unarchived_record(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(stream=STREAM)
    send(deployed, ("Jack", 1), ("Lily", 2), ("Mike", 4))
    deployed.catch_up()
    deployment, topic = deployed.deployment, deployed.topic("amounts")
    kafka_admin.delete_records({TopicPartition(topic, 0): 2})
    deployed.apply(table=TABLE)
    sources = deployment.deployed().sources
    with pytest.raises(LaminaError, match="removed by retention before they were archived"):
        deployment.batch.logs.archive(sources["newest"], deployment.brokers.latest(topic))
    deployed.apply(stream="")
    deployment.batch.logs.archive(sources["newest"], deployment.brokers.latest(topic))


def test_a_record_is_skipped_for_all_sources_of_its_topic_or_for_none(deployed: Deployed) -> None:
    deployed.apply(stream=STREAM, table=TABLE, both=BOTH)
    send(deployed, ("Jack", 1), ("Lily", 2), ("Mike", 4), ("Jack", 3), ("Lily", 5))
    deployed.catch_up()
    send(deployed, ("Jack", 100), ("Jack", 3))
    sources = deployed.deployment.deployed().sources
    assert topic_records.skip(deployed.deployment, sources["newest"], 0, 5, "a slip of the finger")
    deployed.catch_up()
    for step in ("live", "rebuilt"):
        assert seen(deployed) == ([("Jack", 7), *SUMS[1:]], NEWEST), step
        deployed.deployment.batch.rebuild()
    deployed.check()
    assert bad_records(deployed) == [("amounts", "skipped by name", 1), ("newest", "skipped by name", 1)]
    send(deployed, ("Lily", 1))
    deployed.owner("UPDATE lamina.progress SET next_offset = 8 WHERE query = 'amounts'")
    with pytest.raises(LaminaError, match="was read by amounts already") as raised:
        topic_records.skip(deployed.deployment, sources["newest"], 0, 7, "too late")
    assert "drop amounts first" in raised.value.way_out
