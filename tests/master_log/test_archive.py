"""An archive run appends every record of a topic to the log once, or changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from pyspark.sql import DataFrame, SparkSession

from lamina.configuration.settings import Settings
from master_log.archive_runs import ArchiveRun
from master_log.iceberg import Table
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.log_table import HELD, LOST, START
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.kafka_reader import kafka_range, parsed
from tests.fix_sources import NewSource, add_partitions, delete_topic
from tests.master_log.conftest import Transaction
from tests.master_log.logs import GOOD, fill, ids, opened, table_name
from view_algebra.errors import LaminaError


class MeddlingBrokers(Brokers):
    """Brokers that run a function after the records were written and before the log moves.

    The archive asks for the topic's id first, and again as the last thing before it publishes.
    """

    def __init__(self, kafka: str, meddle: Callable[[], object]) -> None:
        super().__init__(kafka)
        self._meddle = meddle
        self._asked = 0

    def topic_id(self, topic: str) -> str | None:
        self._asked += 1
        if self._asked == 2:
            self._meddle()
        return super().topic_id(topic)


class Killed(BaseException):
    """Kills the process at this point."""


def rows(records: DataFrame) -> list[Any]:
    return sorted(map(tuple, records.collect()), key=lambda row: row[:2])


def test_an_archive_holds_every_record_as_kafka_sent_it(
    spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(2, **{"max.message.bytes": "2000000"}), brokers)
    producer.send(source.topic, GOOD % 1, key=b"k\xff", headers=[("trace", b"\x00\x01")], partition=0)
    producer.send(source.topic, b"no JSON", partition=0)
    producer.send(source.topic, b"[1, 2]", partition=1)
    producer.send(source.topic, b"", partition=1)
    producer.send(source.topic, None, key=b"deleted", partition=1)
    producer.send(source.topic, b'{"id": 2, "kind": "%s"}' % (b"x" * 1_000_000), partition=1)
    producer.flush()
    end = brokers.latest(source.topic)
    archived = ArchiveRun(log, source, brokers).archive(end)
    assert (archived.records, archived.held, archived.lost.empty) == (6, end, True)
    assert log.held(source) == end
    kept = log.records_below(source, end)
    whole = OffsetRange(brokers.earliest(source.topic), end)
    in_kafka = parsed(kafka_range(spark, brokers, source, whole), source)
    assert kept.dtypes == in_kafka.dtypes
    assert rows(kept) == rows(in_kafka)
    assert [row.kafka_error is None for row in kept.orderBy("kafka_partition", "kafka_offset").collect()] == [
        True,
        False,
        False,
        False,
        False,
        True,
    ]


def test_repeating_an_archive_run_after_a_crash_changes_nothing(
    kafka: str, spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(10))
    end = brokers.latest(source.topic)

    def die() -> None:
        raise Killed

    with pytest.raises(Killed), MeddlingBrokers(kafka, die) as dying:
        ArchiveRun(log, source, dying).archive(end)
    assert log.held(source) == Offsets.of(source.topic, {0: 0})
    assert ArchiveRun(log, source, brokers).archive(end).records == 10
    again = ArchiveRun(log, source, brokers).archive(end)
    assert (again.records, again.held) == (0, end)
    assert ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 3})).held == end
    assert ids(log.records_below(source, end)) == list(range(10))
    branches = [row.name for row in spark.sql(f"SELECT name FROM {table_name(source)}.refs").collect()]
    assert len(branches) == 2, "main, and the last run's: what crashed runs left is gone"


def test_files_are_on_disk_before_the_log_names_them(
    kafka: str,
    settings: Settings,
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(10))
    synced: set[str] = set()
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    (folder,) = Path(settings.warehouse, "log").resolve().glob(f"{source.topic}-*")
    before: dict[str, bool] = {}

    def look() -> None:
        before.update({str(path): str(path) in synced for path in folder.rglob("*.parquet")})

    with MeddlingBrokers(kafka, look) as brokers_that_look:
        ArchiveRun(log, source, brokers_that_look).archive(brokers.latest(source.topic))
    assert before
    assert all(before.values()), "its records, before the log moves"
    assert {str(path) for path in folder.rglob("*.avro")} <= synced, "what lists them"
    newest = max(folder.rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    assert {str(newest), str(newest.parent), str(folder / "data")} <= synced, "what names these, and their folders"


def test_one_of_two_concurrent_archive_runs_is_refused(
    kafka: str, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(10))
    end = brokers.latest(source.topic)
    slow = MeddlingBrokers(kafka, lambda: ArchiveRun(log, source, brokers).archive(end))
    with slow, pytest.raises(LaminaError, match="its log changed while records were archived"):
        ArchiveRun(log, source, slow).archive(end)
    assert ids(log.records_below(source, end)) == list(range(10))


def test_only_one_of_several_branches_from_a_snapshot_is_published(
    spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(1))
    ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic))
    table = Table(spark, table_name(source))
    start = next(table.lineage())
    *racing, late = (f"racing{number}_x" for number in range(4))
    for branch in (*racing, late):
        table.append(spark.table(table_name(source)), start.id, branch, {})
    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(table.publish, racing)) == 1
    assert not table.publish(late)
    assert spark.table(table_name(source)).count() == 2


def test_aborted_transactions_are_never_archived(
    log: MasterLog, brokers: Brokers, new_source: NewSource, transaction: Transaction
) -> None:
    source = opened(log, new_source(), brokers)
    transaction(source.topic, [GOOD % 1, GOOD % 2])
    transaction(source.topic, [GOOD % 3], commit=False)
    transaction(source.topic, [GOOD % 4])
    end = brokers.latest(source.topic)
    assert end == Offsets.of(source.topic, {0: 7}), "four records and a marker per transaction"
    assert ArchiveRun(log, source, brokers).archive(end).records == 3
    assert ids(log.records_below(source, end)) == [1, 2, 4]
    assert log.held(source) == end, "although the greatest offset in it is 5"


def test_held_moves_past_a_range_that_holds_only_transaction_markers(
    log: MasterLog, brokers: Brokers, new_source: NewSource, transaction: Transaction
) -> None:
    source = opened(log, new_source(), brokers)
    transaction(source.topic, [GOOD % 1])
    ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 1}))
    transaction(source.topic, [GOOD % 2], commit=False)
    end = brokers.latest(source.topic)
    archived = ArchiveRun(log, source, brokers).archive(end)
    assert (archived.records, log.held(source)) == (0, end)
    assert ids(log.records_below(source, end)) == [1]


def test_a_recreated_topic_is_refused_until_its_source_is_declared_again(
    spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(3))
    end = brokers.latest(source.topic)
    ArchiveRun(log, source, brokers).archive(end)
    delete_topic(brokers, source.topic)
    with pytest.raises(LaminaError, match="is not the one whose records its log holds"):
        ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 5}))
    brokers.create(source.topic, 1)
    fill(producer, source, range(10, 20))
    later = brokers.latest(source.topic)
    for attempt in (
        lambda: ArchiveRun(log, source, brokers).archive(later),
        lambda: log.records(source, later, brokers),
    ):
        with pytest.raises(LaminaError, match="is not the one whose records its log holds") as raised:
            attempt()
        assert "another name" in raised.value.way_out
    assert ids(log.records_below(source, end)) == [0, 1, 2]
    before = spark.sql(f"SHOW TBLPROPERTIES {table_name(source)} ('lamina.topic-id')").collect()[0].value
    opened(log, source, brokers)
    assert ArchiveRun(log, source, brokers).archive(later).records == 10
    assert ids(log.records_below(source, later)) == list(range(10, 20))
    assert spark.table(f"lamina.log.`{source.topic}-{before}`").count() == 3, "the old log is set aside"


def test_records_lost_to_retention_refuse_the_run_unless_the_loss_is_accepted_and_recorded(
    spark: SparkSession,
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    kafka_admin: KafkaAdminClient,
) -> None:
    source = opened(log, new_source(2), brokers)
    fill(producer, source, range(20), partitions=2)
    ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 2, 1: 0}))
    kafka_admin.delete_records({KafkaTopicPartition(source.topic, 0): 5})
    end = brokers.latest(source.topic)
    with pytest.raises(LaminaError, match="removed by retention before they were archived") as raised:
        ArchiveRun(log, source, brokers).archive(end)
    assert "Partition 0: the offsets from 2 up to 5" in raised.value.evidence
    with pytest.raises(LaminaError, match="removed by retention"):
        log.records(source, end, brokers)
    archived = ArchiveRun(log, source, brokers, accept_loss=True).archive(end)
    assert (archived.lost.start, archived.lost.end) == (
        Offsets.of(source.topic, {0: 2}),
        Offsets.of(source.topic, {0: 5}),
    )
    assert archived.records == 15
    summary = next(Table(spark, table_name(source)).lineage()).summary
    assert summary[LOST] == f'{{"{source.topic}": {{"0": [2, 5]}}}}'
    assert Offsets.parse(summary[HELD]) == end
    assert ids(log.records_below(source, end)) == [0, 1, 2, 3, 5, 7, 9, *range(10, 20)]


def test_a_partition_added_later_is_archived_from_its_first_record(
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    kafka_admin: KafkaAdminClient,
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(4))
    ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic))
    add_partitions(kafka_admin, brokers, source.topic, 2)
    with brokers.producer() as fresh:  # the fixture's producer does not know the partition yet
        for number in range(10, 13):
            fresh.send(source.topic, GOOD % number, partition=1)
    end = brokers.latest(source.topic)
    assert ids(log.records(source, end, brokers)) == [0, 1, 2, 3, 10, 11, 12]
    assert ArchiveRun(log, source, brokers).archive(end).records == 3
    assert log.held(source) == end == Offsets.of(source.topic, {0: 4, 1: 3})
    assert log.start(source) == Offsets.of(source.topic, {0: 0})


def test_a_log_begins_at_the_offsets_it_was_created_at(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer, kafka_admin: KafkaAdminClient
) -> None:
    source = new_source()
    fill(producer, source, range(6))
    kafka_admin.delete_records({KafkaTopicPartition(source.topic, 0): 2})
    opened(log, source, brokers)
    assert log.held(source) == log.start(source) == Offsets.of(source.topic, {0: 2})
    assert log.records_below(source, Offsets.of(source.topic, {0: 2})).dtypes[7:9] == [
        ("id", "bigint"),
        ("kind", "string"),
    ]
    end = brokers.latest(source.topic)
    assert ids(log.records(source, end, brokers)) == [2, 3, 4, 5]
    assert ArchiveRun(log, source, brokers).archive(end).records == 4


def test_a_log_reaches_back_to_a_lower_start_in_one_step(
    kafka: str, spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = new_source()
    fill(producer, source, range(6))
    topic_id = str(brokers.topic_id(source.topic))
    at = {offset: Offsets.of(source.topic, {0: offset}) for offset in range(7)}
    log.create(source, topic_id, at[4])
    log.create(source, topic_id, at[3])
    assert log.start(source) == at[3], "nothing is held, so nothing lies between"
    assert ArchiveRun(log, source, brokers).archive(at[5]).records == 2
    log.create(source, topic_id, at[1])
    assert log.start(source) == at[3]
    assert ids(log.records(source, at[6], brokers, since=at[1])) == [1, 2, 3, 4, 5]
    assert ids(log.records(source, at[2], brokers, since=at[1])) == [1]
    with pytest.raises(LaminaError, match="does not hold the first records"):
        log.records_below(source, at[5], since=at[1])

    def die() -> None:
        raise Killed

    with pytest.raises(Killed), MeddlingBrokers(kafka, die) as dying:
        ArchiveRun(log, source, dying).reach_back(at[1])
    assert (log.start(source), log.held(source)) == (at[3], at[5])
    assert ArchiveRun(log, source, brokers).reach_back(at[1]) == 2
    assert (log.start(source), log.held(source)) == (at[1], at[5])
    Table(spark, table_name(source)).set_properties({START: at[3].json()})  # as if it had died before the last step
    assert ArchiveRun(log, source, brokers).reach_back(at[1]) == 2
    assert ArchiveRun(log, source, brokers).reach_back(at[1]) == 0
    assert ids(log.records_below(source, at[5], since=at[1])) == [1, 2, 3, 4]
    assert ArchiveRun(log, source, brokers).archive(at[6]).records == 1


def test_a_warehouse_that_cannot_be_written_changes_nothing(
    tmp_path: Path,
    settings: Settings,
    spark: SparkSession,
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    spark.conf.set("spark.sql.catalog.lamina.warehouse", str(tmp_path / "a_file" / "warehouse"))
    (tmp_path / "a_file").write_text("")
    source = new_source()
    with pytest.raises(LaminaError, match="the warehouse cannot be written") as raised:
        opened(log, source, brokers)
    assert "LAMINA_WAREHOUSE" in raised.value.way_out
    assert "\n" not in raised.value.evidence
    (tmp_path / "a_file").unlink()
    opened(log, source, brokers)
    fill(producer, source, range(3))
    end = brokers.latest(source.topic)
    (data,) = (tmp_path / "a_file" / "warehouse" / "log").iterdir()
    (data / "data").write_text("")
    with pytest.raises(LaminaError, match="its records were not archived: the warehouse cannot be written"):
        ArchiveRun(log, source, brokers).archive(end)
    (data / "data").unlink()
    assert log.held(source) == Offsets.of(source.topic, {0: 0})
    assert ArchiveRun(log, source, brokers).archive(end).records == 3


def test_a_log_that_claims_offsets_beyond_kafka_is_refused(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    """Imitates a log of an older Lamina, which recorded no tails."""
    source = opened(log, new_source(1), brokers)
    fill(producer, source, range(5))
    latest = brokers.latest(source.topic)
    ArchiveRun(log, source, brokers).archive(latest)
    beyond = Offsets.of(source.topic, {0: 9})
    log.table(source).append_nothing({HELD: beyond.json()})
    with pytest.raises(LaminaError, match="Kafka has lost records") as refused:
        ArchiveRun(log, source, brokers).archive(latest)
    assert "found the end of the topic at 5" in refused.value.evidence
    assert ArchiveRun(log, source, brokers, accept_loss=True).archive(latest).records == 0
    assert log.held(source) == latest
    assert ids(log.records_below(source, latest)) == list(range(5))
