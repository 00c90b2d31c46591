"""Catching up: three views into Postgres, against plain Spark that computes the same and writes nowhere.

Both read the same topic in micro-batches of at most 500,000 records with the same options of Kafka's client. Plain
Spark is written in two ways: three jobs over the persisted micro-batch, as most people would write it, and one job with
GROUPING SETS. The faster one counts. The start of Spark's JVM and one warm-up turn of each side are not counted.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from time import monotonic

import click
from pyspark.sql import DataFrame

from benchmarks import events
from benchmarks.figures import Figure, benchmark, in_turns, median_ratio
from benchmarks.running import MAX_RECORDS, another_database, catch_up, deployment, nowhere
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output
from master_log.offsets import Offsets
from master_log.reading.kafka_reader import stream

AT_LEAST = 0.6

LAMINA, THREE_JOBS, ONE_JOB = "Lamina into Postgres", "plain Spark, three jobs", "plain Spark, grouping sets"

GROUPING_SETS = """
SELECT date_trunc('HOUR', ts) AS hour, to_date(ts) AS day, country, city, user_id, product_id,
       count(*), count(*) FILTER (WHERE kind = 'buy'), sum(quantity), sum(price * quantity), max(ts),
       min(price), max(price), avg(price)
FROM events
GROUP BY GROUPING SETS (
  (date_trunc('HOUR', ts), country, city), (to_date(ts), user_id), (date_trunc('HOUR', ts), product_id)
)"""


def plain(opened: Deployment, compute: Callable[[DataFrame], None]) -> float:
    """Reads the topic in micro-batches, parses them and computes. Returns the seconds it took."""
    source = opened.deployed().sources["events"]
    raw = stream(opened.spark(), opened.brokers, [source.topic], Offsets({}), max_records_per_micro_batch=MAX_RECORDS)

    def micro_batch(records: DataFrame, _id: int) -> None:
        compute(
            records.selectExpr(f"from_json(CAST(value AS STRING), '{events.COLUMNS}') AS parsed").select("parsed.*")
        )

    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=opened.settings.home)
    began = monotonic()
    writer = raw.writeStream.foreachBatch(micro_batch).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    took = monotonic() - began
    shutil.rmtree(checkpoint)
    return took


def three_jobs(parsed: DataFrame) -> None:
    """Computes the three views one after another, over a micro-batch in memory."""
    parsed.persist()
    parsed.createOrReplaceTempView("events")
    for sql in events.VIEWS.values():
        nowhere(parsed.sparkSession.sql(sql))
    parsed.unpersist()


def one_job(parsed: DataFrame) -> None:
    """Computes the three views in one statement."""
    parsed.createOrReplaceTempView("events")
    nowhere(parsed.sparkSession.sql(GROUPING_SETS))


@click.command()
@click.option("--records", default=3_000_000, show_default=True)
@click.option("--turns", default=3, show_default=True, help="Turns of each side, after a warm-up turn.")
@benchmark
def main(output: Output, records: int, turns: int) -> list[Figure]:
    """Catching up: records per second, against plain Spark that writes nowhere."""
    records -= records % events.PARTITIONS
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS))
        opened.speed(threading.Event(), max_records=MAX_RECORDS)  # Spark starts as it does for the speed layer
        events.send_a_day(opened, records)
        output.tell(f"{records:,} records are in Kafka")

        def lamina(turn: int) -> float:
            with another_database(opened, f"turn_{turn}") as fresh:
                applying.apply(fresh, events.catalog(**events.VIEWS))
                return catch_up(fresh)

        sides: dict[str, Callable[[int], float]] = {
            LAMINA: lamina,
            THREE_JOBS: lambda turn: plain(opened, three_jobs),
            ONE_JOB: lambda turn: plain(opened, one_job),
        }
        took = in_turns(output, sides, turns)
    fastest = [min(pair) for pair in zip(took[THREE_JOBS], took[ONE_JOB], strict=True)]
    return [
        *(Figure(f"{name}, best turn", records / min(seconds), "records/s") for name, seconds in took.items()),
        Figure("share of plain Spark's rate, median", median_ratio(fastest, took[LAMINA]), "", at_least=AT_LEAST),
    ]


if __name__ == "__main__":
    main()
