"""Faults of topics: they grow, lose their oldest records, are recreated, or wait for a transaction."""

from __future__ import annotations

import random
from collections.abc import Mapping

from kafka import TopicPartition

from benchmarks.chaos.stage import Stage
from benchmarks.chaos.table import fault

MOST_PARTITIONS = 8


@fault(3)
def partition_added(stage: Stage, dice: random.Random) -> None:
    """A topic gets another partition."""
    topic = stage.world.sources[dice.choice(("orders", "visits"))].topic

    def add_partition() -> bool:
        with stage.admin() as admin:
            [(_, count)] = _partitions(admin, topic)
            if count < MOST_PARTITIONS:
                admin.create_partitions({topic: count + 1})
        return True

    stage.until(add_partition, f"{topic} has another partition")


@fault(2, alone=True)
def topic_recreated(stage: Stage, _: random.Random) -> None:
    """A topic is deleted and created again, and its source is declared again under another name."""
    name = f"spare_{stage.world.spare}"
    topic = stage.world.sources[name].topic
    with stage.silence(), stage.admin() as admin:  # what Lamina counts of the old topic is known here
        stage.oracle.forget(name)
        admin.delete_topics([topic])
        stage.until(lambda: topic not in admin.list_topics(), f"{topic} is gone")
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    await_refusal(stage, name)
    stage.world.spare += 1
    stage.insist("apply", "--prune", "--catalog", str(stage.write_catalog()))


@fault(2, alone=True)
def records_removed_before_they_were_read(stage: Stage, dice: random.Random) -> None:
    """Retention removes records that were archived but not read, and a leap continues from the log."""
    stage.hold()
    stage.producer.burst(stage.producer.good(500, dice), dice)
    ends = {source: stage.brokers.latest(stage.world.sources[source].topic) for source in ("orders", "visits")}
    stage.insist("archive")
    source = dice.choice(("orders", "visits"))
    _remove(stage, {at.partition: end for at, end in ends[source].items()}, source)
    stage.go()
    await_refusal(stage, source)
    stage.insist("rebuild", "--leap")


@fault(3)
def records_removed_after_they_were_archived(stage: Stage, _: random.Random) -> None:
    """Retention removes records that were archived and read."""
    held = stage.query(
        "SELECT query, partition, least(held, next_offset) FROM lamina.archived JOIN lamina.progress"
        " USING (query, topic, partition) WHERE query IN ('orders', 'visits')"
    )
    for source in ("orders", "visits"):
        _remove(stage, {int(str(p)): int(str(end)) for name, p, end in held if name == source}, source)


@fault(5)
def transaction_left_open(stage: Stage, dice: random.Random) -> None:
    """A producer leaves a transaction open, for which all readers wait, and then ends it, rarely with success."""
    producer = stage.producer.connect(transactional_id=f"chaos-{stage.world.number()}", transaction_timeout_ms=30_000)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for source, record in stage.producer.good(100, dice):
            stage.producer.send(producer, source, record, dice)
        producer.flush(timeout=30)
        stage.wait(dice.uniform(1, 6))
        if dice.random() < 0.3:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    finally:
        producer.close(timeout=10)


def _partitions(admin: object, *topics: str) -> list[tuple[str, int]]:
    described = admin.describe_topics(list(topics))  # type: ignore[attr-defined]
    return [(topic["name"], len(topic["partitions"])) for topic in described]


def _remove(stage: Stage, below: Mapping[int, int], source: str) -> None:
    """Removes records as retention does, once our own reader has read them."""
    topic = stage.world.sources[source].topic
    stage.oracle.await_reached({(source, partition): (0, end) for partition, end in below.items()})
    with stage.admin() as admin:
        admin.delete_records({TopicPartition(topic, partition): end for partition, end in below.items() if end})


def await_refusal(stage: Stage, source: str) -> None:
    """Returns once the query reports why it has stopped, which is an alarm."""
    asked = "SELECT stopped FROM lamina.query WHERE name = %s"
    stage.until(lambda: any(why for (why,) in stage.query(asked, source)), f"{source} is refused")
