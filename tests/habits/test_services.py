"""The embedded services come back after anything, and leave nothing behind."""

from __future__ import annotations

from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.spark import KAFKA_READER
from tests.fix_services import Topic


def test_spark_reads_what_a_producer_sent(
    spark: SparkSession, kafka: str, topic: Topic, producer: KafkaProducer
) -> None:
    name = topic(partitions=2)
    for number in range(10):
        producer.send(name, str(number).encode(), partition=number % 2)
    producer.flush()
    reader = spark.read.format("kafka").options(**KAFKA_READER).option("kafka.bootstrap.servers", kafka)
    records = reader.option("subscribe", name).load()
    assert sorted(int(row.value) for row in records.collect()) == list(range(10))


def test_each_test_has_a_master_log_of_its_own_1(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE lamina.log")
    spark.sql("CREATE TABLE lamina.log.t (a INT) USING iceberg")
    assert spark.sql("SELECT count(*) FROM lamina.log.t").collect()[0][0] == 0


def test_each_test_has_a_master_log_of_its_own_2(spark: SparkSession) -> None:
    test_each_test_has_a_master_log_of_its_own_1(spark)
