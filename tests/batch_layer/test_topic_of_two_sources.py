"""One topic, declared as a stream and as a table: each counts what it can read, and both have one log."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from lamina.operations import applying, topic_records
from master_log.offsets import Offsets
from tests.batch_layer.receipts import receipt, verified
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


BEGUN = """
    CREATE TABLE {name} (name STRING, amount BIGINT{key}) USING kafka
    OPTIONS (topic '{{topics}}_amounts', format 'json', start '{start}');
    CREATE VIEW of_{name} AS SELECT name, sum(amount) AS total, count(*) AS n FROM {name} GROUP BY name;
"""


def begun(name: str, start: str, key: str = "") -> dict[str, str]:
    return {name: BEGUN.format(name=name, start=start, key=key)}


def totals(deployed: Deployed, name: str) -> dict[object, object]:
    return {row[0]: row[1] for row in deployed.rows(f"SELECT * FROM of_{name}")}


def refuse_offsets_beyond_the_topic(deployed: Deployed) -> None:
    """A beginning that the topic does not have is refused by `plan` and by `apply`."""
    for start, why in (
        ('{"0": 6}', "offset 6 of partition 0"),
        ('{"2": 0}', "partition 2"),
        ("2999-01-01T00:00:00Z", "in the future"),
    ):
        with pytest.raises(LaminaError, match=why):
            deployed.apply(**begun("wrong", start))
        with pytest.raises(LaminaError, match=why):
            applying.plan(deployed.deployment, deployed.files)


def refuse_to_move_a_beginning(deployed: Deployed) -> None:
    """A source that counts already cannot begin elsewhere."""
    [change] = [
        change
        for change in applying.plan(
            deployed.deployment,
            {**deployed.files, "some.sql": deployed.files["some.sql"].replace('{"0": 2}', '{"0": 4}')},
        )
        if change.name == "some"
    ]
    assert change.action == "refuse"
    assert "and began at" in change.effect


def test_sources_begin_at_their_declared_offsets_and_the_log_at_the_lowest(deployed: Deployed) -> None:
    brokers, topic = deployed.deployment.brokers, f"{deployed.prefix}_amounts"
    brokers.create(topic, 2)

    def sent(partition: int, *amounts: int | None, at: int) -> None:
        for amount in amounts:
            value = b"no JSON" if amount is None else b'{"name": "p%d", "amount": %d}' % (partition, amount)
            deployed.producer.send(topic, value, partition=partition, timestamp_ms=at)
        deployed.producer.flush()

    new_year = 1_767_225_600_000
    sent(0, None, 1, 10, 100, at=new_year - 1)
    sent(1, None, None, 1, at=new_year - 1)
    sent(0, 1_000, at=new_year)
    sent(1, 10, at=new_year + 5)
    refuse_offsets_beyond_the_topic(deployed)
    deployed.files.clear()
    deployed.apply(**begun("newest", "latest"))
    sent(0, 10_000, at=new_year + 9)
    deployed.catch_up()
    assert totals(deployed, "newest") == {"p0": 10_000}
    deployed.deployment.batch.rebuild()
    first = receipt(deployed, "of_newest")

    deployed.apply(
        **begun("all_of_it", "earliest"),
        **begun("some", '{"0": 2}'),
        **begun("timed", "2026-01-01T01:00:00+01:00"),
        **begun("rows", '{"0": 3, "1": 3}', ", PRIMARY KEY (name)"),
    )
    sent(1, 100_000, at=new_year + 9)
    deployed.catch_up()
    shown = {
        "newest": {"p0": 10_000, "p1": 100_000},
        "all_of_it": {"p0": 11_111, "p1": 100_011},
        "some": {"p0": 11_110, "p1": 100_011},
        "timed": {"p0": 11_000, "p1": 100_010},
    }
    begins = {"newest": (5, 4), "all_of_it": (0, 0), "some": (2, 0), "timed": (4, 3), "rows": (3, 3)}

    def holds() -> None:
        assert {name: totals(deployed, name) for name in shown} == shown
        assert deployed.rows("SELECT * FROM rows ORDER BY name") == [("p0", 10_000), ("p1", 100_000)]
        listed = "array_agg(first_offset ORDER BY partition)"
        offsets = f"SELECT source, {listed} FROM lamina.offsets WHERE starts_with(view, 'of_') GROUP BY 1"
        assert {name: tuple(at) for name, at in deployed.rows(offsets)} == begins
        assert {(of, n) for of, why, n in bad_records(deployed) if why == "not JSON"} == {("all_of_it", 3), ("some", 2)}
        assert {n: at for result in deployed.check() for n, at in result.begins.items()}.keys() == begins.keys() - {
            "all_of_it"
        }
        assert verified(deployed, receipt(deployed, "of_timed")).equal

    holds()
    deployed.deployment.batch.rebuild()  # the log reaches back to the first record
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    holds()
    source = deployed.deployment.deployed().sources["newest"]
    assert deployed.deployment.log().start(source) == Offsets.of(topic, {0: 0, 1: 0})
    assert deployed.deployment.log().records_below(source, brokers.latest(topic)).count() == 11
    assert verified(deployed, first).equal
    refuse_to_move_a_beginning(deployed)
    moved = begun("later", '{"0": 3, "1": 3}')["later"].replace("of_later", "of_some")
    deployed.apply(some=moved)  # its view reads it instead of the other source
    shown["some"] = {"p0": 11_100, "p1": 100_010}
    begins |= {"later": (3, 3)}
    del begins["some"]
    assert totals(deployed, "some") == shown["some"]
    sent(0, 1_000_000, at=new_year - 1)
    deployed.deployment.batch.rebuild(leap=True)
    assert totals(deployed, "some") == {"p0": 1_011_100, "p1": 100_010}
    deployed.check()
    assert verified(deployed, receipt(deployed, "of_some")).equal
