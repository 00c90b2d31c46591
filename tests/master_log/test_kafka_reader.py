"""The stream of a source's records, as the speed layer reads it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.kafka_reader import RAW, kafka_range, parsed, stream
from tests.fix_sources import NewSource, add_partitions
from tests.master_log.conftest import Transaction
from view_algebra.compiled import Source

Batches = list[list[int]]


def run(
    spark: SparkSession, brokers: Brokers, source: Source, start: Offsets, checkpoint: Path, limit: int | None = None
) -> tuple[StreamingQuery, Batches]:
    """The running query, and the ids of each micro-batch in order."""
    batches: Batches = []

    def take(batch: DataFrame, _: int) -> None:
        batches.append(sorted(row.id for row in parsed(batch, source).select("id").collect()))
        assert not batch.sparkSession.catalog.listTables(), "a micro-batch leaves no view behind"

    records = stream(spark, brokers, [source.topic], start, max_records_per_micro_batch=limit)
    assert tuple(records.columns) == RAW
    query = records.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
    return query, batches


def send(producer: KafkaProducer, source: Source, numbers: range, partition: int = 0) -> None:
    for number in numbers:
        producer.send(source.topic, b'{"id": %d}' % number, partition=partition)
    producer.flush()


def test_a_stream_begins_at_the_named_offsets_and_reads_new_partitions_from_their_first_record(
    spark: SparkSession,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    kafka_admin: KafkaAdminClient,
    tmp_path: Path,
) -> None:
    source = new_source(2)
    send(producer, source, range(10), 0)
    send(producer, source, range(10, 13), 1)
    query, batches = run(spark, brokers, source, Offsets.of(source.topic, {0: 6}), tmp_path, limit=4)
    query.processAllAvailable()
    assert sorted(chain(*batches)) == [6, 7, 8, 9, 10, 11, 12], "partition 1 is not named and begins at 0"
    assert max(map(len, batches)) <= 4
    add_partitions(kafka_admin, brokers, source.topic, 3)
    with brokers.producer() as fresh:
        fresh.send(source.topic, b'{"id": 20}', partition=2)
    query.processAllAvailable()
    assert batches[-1] == [20]
    query.stop()


def test_a_stream_reads_no_record_of_an_aborted_transaction(
    spark: SparkSession, brokers: Brokers, new_source: NewSource, transaction: Transaction, tmp_path: Path
) -> None:
    source = new_source()
    transaction(source.topic, [b'{"id": 1}'])
    transaction(source.topic, [b'{"id": 2}'], commit=False)
    transaction(source.topic, [b'{"id": 3}'])
    query, batches = run(spark, brokers, source, Offsets({}), tmp_path)
    query.processAllAvailable()
    assert list(chain(*batches)) == [1, 3]
    query.stop()


def test_a_stream_stops_at_removed_records_and_skips_nothing(
    spark: SparkSession,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    kafka_admin: KafkaAdminClient,
    tmp_path: Path,
) -> None:
    source = new_source()
    send(producer, source, range(10))
    kafka_admin.delete_records({KafkaTopicPartition(source.topic, 0): 5})
    query, batches = run(spark, brokers, source, Offsets.of(source.topic, {0: 3}), tmp_path)
    with pytest.raises(StreamingQueryException, match="OffsetOutOfRangeException"):
        query.processAllAvailable()
    assert not list(chain(*batches))


def test_a_range_holds_its_records_and_no_others(
    spark: SparkSession, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = new_source(3)
    for partition in range(3):
        send(producer, source, range(partition * 10, partition * 10 + 10), partition)
    some = OffsetRange(Offsets.of(source.topic, {0: 2, 1: 9}), Offsets.of(source.topic, {0: 4, 1: 3}))
    rows = parsed(kafka_range(spark, brokers, source, some), source).collect()
    assert sorted(row.id for row in rows) == [2, 3], "partition 1 ends before it starts, partition 2 is not named"
