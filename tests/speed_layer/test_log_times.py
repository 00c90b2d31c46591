"""The log times of a table are the same in both layers, for any division into micro-batches."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master_log.offsets import TopicPartition
from master_log.reading.log_times import RAW_LOG_TIME, later, with_log_times_in_memory
from serving_layer.monitoring.delays import waits_for
from speed_layer.records import FEW
from speed_layer.statements import Statements
from tests.fix_lamina import Deployed
from view_algebra import compile_catalog

TABLE = """
    CREATE TABLE prices (sku STRING PRIMARY KEY, price INT)
    USING kafka OPTIONS (topic '{topics}_prices', format 'json', key_format 'string')
    TBLPROPERTIES ('partitions' = '2');
    CREATE VIEW total AS SELECT count(*) AS skus, sum(price) AS price FROM prices;
"""
MIDNIGHT = int(datetime(2024, 3, 2, tzinfo=UTC).timestamp() * 1000)


def send(deployed: Deployed, sku: str, price: int, second: int, partition: int) -> None:
    """Sends a record whose timestamp is this many seconds after midnight."""
    deployed.producer.send(
        deployed.topic("prices"),
        json.dumps({"sku": sku, "price": price}).encode(),
        key=sku.encode(),
        partition=partition,
        timestamp_ms=MIDNIGHT + 1000 * second,
    )


def counted(deployed: Deployed, *records: tuple[str, int, int, int]) -> list[tuple[object, ...]]:
    """The rows of `a` after these records, in one micro-batch."""
    for record in records:
        send(deployed, *record)
    deployed.producer.flush()
    deployed.catch_up()
    return deployed.rows("SELECT * FROM prices WHERE sku = 'a'")


def waited_for(deployed: Deployed, source: str) -> str | None:
    with deployed.deployment.database.begin() as connection:
        return waits_for(connection, source, starting=True)


def test_the_newest_record_of_a_key_in_two_partitions_is_the_same_live_and_rebuilt(deployed: Deployed) -> None:
    """Timestamps fall in partition 0: its second record has the log time of the first, read in another micro-batch."""
    deployed.apply(table=TABLE)
    assert counted(deployed, ("a", 1, 50, 0)) == [("a", 1)]
    assert counted(deployed, ("a", 2, 10, 0)) == [("a", 2)]
    assert counted(deployed, ("a", 3, 40, 1)) == [("a", 2)]
    many = [
        (f"k{number}", number, 10, number % 2) for number in range(FEW + 500)
    ]  # too many for kept plans, so Spark plans them
    assert counted(deployed, *many, ("a", 4, 45, 1)) == [("a", 2)]
    deployed.deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    deployed.owner("UPDATE lamina.progress SET log_time = NULL")  # as a Lamina without log times leaves it
    assert counted(deployed, ("a", 5, 20, 0)) == [("a", 5)]
    assert counted(deployed, ("a", 6, 49, 1)) == [("a", 5)]
    assert counted(deployed, ("a", 7, 51, 1)) == [("a", 7)]
    deployed.check()


def test_a_table_that_waits_for_log_times_delays_no_other_source(deployed: Deployed) -> None:
    clicks = """
        CREATE TABLE clicks (n INT) USING kafka OPTIONS (topic '{topics}_clicks', format 'json');
        CREATE VIEW clicked AS SELECT sum(n) AS n FROM clicks;
    """
    deployed.apply(table=TABLE, clicks=clicks)
    assert counted(deployed, ("a", 1, 50, 0)) == [("a", 1)]
    deployed.owner("UPDATE lamina.progress SET log_time = NULL")
    asked, answer = threading.Event(), threading.Event()

    def at(place: str) -> None:
        if place == "before the log is asked":
            asked.set()
            assert answer.wait(300)

    deployed.deployment.at = at
    try:
        with deployed.speed():
            assert asked.wait(300)
            send(deployed, "a", 2, 10, 0)
            deployed.send("clicks", {"n": 1})
            deployed.wait_for("clicks")
            assert deployed.rows("SELECT n FROM clicked") == [(1,)]
            assert deployed.rows("SELECT * FROM prices") == [("a", 1)]
            assert (
                waited_for(deployed, "prices") == "the speed layer reads the log once, for log times of older records"
            )
            answer.set()
            deployed.wait_for("prices")
            assert deployed.rows("SELECT * FROM prices") == [("a", 2)]
            assert "log times" not in (waited_for(deployed, "prices") or "")
    finally:
        answer.set()


def test_log_times_are_needed_only_if_a_text_reads_them() -> None:
    stream_too = "CREATE TABLE s (log_time INT) USING kafka OPTIONS (topic 's', format 'json');"
    sources = compile_catalog({"c.sql": TABLE.replace("{topics}_", "") + stream_too}).sources
    table, stream = sources["prices"], sources["s"]
    before = replace(table, parse=table.parse.replace(RAW_LOG_TIME, "timestamp"))
    assert Statements.of(table, []).reads_log_times
    assert not Statements.of(before, []).reads_log_times
    assert Statements.of_all([(before, []), (table, [])]).reads_log_times, "the other version reads them"
    assert not Statements.of(stream, []).reads_log_times, "its column of that name is not a log time"


@pytest.mark.parametrize("reached", [{}, {0: 3}])
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=1, max_size=12), st.integers(0, 12))
def test_log_times_do_not_depend_on_micro_batches(
    reached: dict[int, int], records: list[tuple[int, int]], cut: int
) -> None:
    """Two micro-batches in a row have the log times of both together."""
    before = {TopicPartition("t", partition): time for partition, time in reached.items()}
    rows = [(partition, offset, time) for offset, (partition, time) in enumerate(records)]
    whole, _ = _log_times(rows, before)
    first, between = _log_times(rows[:cut], before)
    second, _ = _log_times(rows[cut:], between)
    assert first + second == whole
    assert all(log_time >= time for log_time, (_, _, time) in zip(whole, rows, strict=True))


def _log_times(
    rows: list[tuple[int, int, int]], before: dict[TopicPartition, int]
) -> tuple[list[int], dict[TopicPartition, int]]:
    """The log times of records, and the log times reached after them."""
    if not rows:
        return [], before
    partitions, offsets, times = zip(*rows, strict=True)
    columns = {"partition": pa.array(partitions, pa.int32()), "offset": pa.array(offsets, pa.int64())}
    few = with_log_times_in_memory(
        pa.table({**columns, "timestamp": pa.array(times, pa.timestamp("us", "UTC"))}), before
    )
    times = few[RAW_LOG_TIME].cast(pa.int64()).to_pylist()
    newest = {TopicPartition("t", p): max(time for q, _, time in rows if q == p) for p in set(partitions)}
    return times, later(before, newest)
