"""Records are read from the log below a cut, and from Kafka above it, as their source declares them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from pyspark.sql import SparkSession

from master_log.archive_runs import ArchiveRun
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.kafka_reader import UnreadableRecord, unreadable
from tests.fix_registry import framed
from tests.fix_sources import NewSource, declared
from tests.master_log.logs import fill, ids, opened, table_name
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError
from view_algebra.formats.interface import Answers, Schema, Schemas


class LearnedSchemas:
    """The schemas of a registry, none of them learned at first."""

    def __init__(self, schemas: Schemas) -> None:
        self.has, self.learned = schemas, dict[str, Schema | None]()

    def of(self, topic: str) -> Answers:
        return {0: self.learned}

    def learn(self, topic: str, ask_again: int, ids: Collection[str], *, patient: bool = True) -> Answers:
        assert ask_again == 0
        self.learned |= {id: self.has.get(id) for id in ids}
        return {0: self.learned}


def test_records_of_an_earlier_declaration_are_read_by_the_schemas_they_were_written_with(
    spark: SparkSession, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    schemas_of_registry = LearnedSchemas({"7": Schema("AVRO", json.dumps(schema))})
    log = MasterLog(spark, schemas=schemas_of_registry)
    as_json = opened(log, new_source(), brokers)
    for value in (framed(7, schema, {"id": 1}), framed(8, schema, {"id": 2}), b"no frame"):
        producer.send(as_json.topic, value, headers=[("x", b"y")])
    in_header = framed(7, schema, {"id": 3})[5:]
    producer.send(as_json.topic, in_header, headers=[("__value_schema_id", b"\0\0\0\0\7")])
    producer.flush()
    end = brokers.latest(as_json.topic)
    ArchiveRun(log, as_json, brokers).archive(end)
    assert schemas_of_registry.learned == {}
    sql = f"CREATE TABLE events (id BIGINT) USING kafka OPTIONS (topic '{as_json.topic}', format 'avro');"
    as_avro = compile_catalog({"events.sql": sql}).sources["events"]
    read = log.records_below(as_avro, end).orderBy("kafka_offset").select("id", "kafka_error").collect()
    assert [row.id or row.kafka_error for row in read] == [
        1,
        "the registry had no schema 8: if it has by now, raise ask_again in OPTIONS and apply",
        "no frame of a schema registry: it begins with the byte 0x6e",
        3,
    ]
    assert schemas_of_registry.learned.keys() == {"7", "8"}


def test_a_record_removed_by_retention_is_not_reported_as_unreadable(
    spark: SparkSession,
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    kafka_admin: KafkaAdminClient,
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(6))
    kafka_admin.delete_records({KafkaTopicPartition(source.topic, 0): 5})
    whole = OffsetRange(Offsets.of(source.topic, {0: 0}), Offsets.of(source.topic, {0: 6}))
    assert unreadable(spark, brokers, source, whole, frozenset()) is None


def test_reading_below_a_cut_opens_no_file_above_it(
    spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(2), brokers)
    for end in (10, 20):
        fill(producer, source, range(end - 10, end), partitions=2)
        ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic))
    cut = Offsets.of(source.topic, {0: 5, 1: 7})
    above = spark.sql(
        f"SELECT file_path FROM {table_name(source)}.files "
        "WHERE partition.kafka_partition = 0 AND readable_metrics.kafka_offset.lower_bound >= 5"
    ).collect()
    assert len(above) == 1
    Path(above[0].file_path.removeprefix("file:")).unlink()
    assert ids(log.records_below(source, cut)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13]
    assert ids(log.records_below(source, Offsets.of(source.topic, {1: 1}))) == [1]


def test_records_come_from_the_log_and_then_from_kafka(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(2), brokers)
    fill(producer, source, range(10), partitions=2)
    ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 5, 1: 2}))
    fill(producer, source, range(10, 20), partitions=2)
    assert ids(log.records(source, Offsets.of(source.topic, {0: 3, 1: 10}), brokers)) == [
        0,
        1,
        2,
        3,
        4,
        *range(5, 20, 2),
    ]


def test_a_cut_above_the_held_or_committed_offsets_is_refused(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = new_source()
    with pytest.raises(LaminaError, match="there is no log of topic"):
        log.held(source)
    opened(log, source, brokers)
    fill(producer, source, range(3))
    with pytest.raises(LaminaError, match="does not reach the cut"):
        log.records_below(source, Offsets.of(source.topic, {0: 3}))
    with pytest.raises(LaminaError, match="ends before the requested records"):
        ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 4}))


def test_rows_archived_under_another_declaration_are_parsed_again(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    before = opened(log, new_source(), brokers)
    fill(producer, before, range(2))
    ArchiveRun(log, before, brokers).archive(brokers.latest(before.topic))
    after = declared(before.topic, "kind STRING, price DOUBLE, id BIGINT")
    fill(producer, after, range(2, 4))
    end = brokers.latest(after.topic)
    ArchiveRun(log, after, brokers).archive(end)
    for source in (after, before):
        kept = log.records_below(source, end)
        assert kept.columns[7:] == [column.name for column in source.columns]
        assert [(row.id, float(row.price)) for row in kept.orderBy("id").collect()] == [(n, 1.25) for n in range(4)]


class UntrustedBrokers(Brokers):
    """Brokers that only Spark's consumers cannot reach, as if Java did not trust their certificate."""

    def for_spark(self) -> dict[str, str]:
        return {**super().for_spark(), "kafka.security.protocol": "SASL_SSL"}


def test_an_error_that_affects_all_records_blames_no_single_record(
    log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(1), brokers)
    fill(producer, source, range(5))
    end = brokers.latest(source.topic)
    with (
        UntrustedBrokers(brokers.bootstrap_servers) as untrusted,
        pytest.raises(Exception, match=r"SASL|JAAS|jaas") as refused,
    ):
        ArchiveRun(log, source, untrusted).archive(end)
    assert not isinstance(refused.value, UnreadableRecord)
    assert "lamina skip" not in str(refused.value)
    assert ArchiveRun(log, source, brokers).archive(end).records == 5
