"""A table of five million keys: rates of loading and updating, bytes per key, and freshness under updates.

The keys are loaded once and then updated at random, both by catching up. Then 2,000 updates a second arrive, while the
speed layer runs as in `lamina up`. Every tenth update of a partition changes a marker key, which shows how far the
partition has been read. The other updates count as seen only when the marker after them is seen.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import catch_up, deployment, speed_layer
from benchmarks.traffic import Watcher, traffic
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output

RATE = 2_000
P99 = 1.0

CATALOG = """
CREATE TABLE users (
  id BIGINT, seq BIGINT, name STRING, country STRING, score DECIMAL(8,2), ts TIMESTAMP, PRIMARY KEY (id)
) USING kafka OPTIONS (topic 'events', {options}) TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '4');
CREATE VIEW lanes AS SELECT -1 - id AS lane, seq AS newest FROM users WHERE id < 0;
"""

OPTIONS = {
    "json": "format 'json'",
    "debezium-json": "format 'debezium-json', 'decimal.handling.mode' 'double', 'time.precision.mode' 'isostring'",
}
"""The OPTIONS of the source, by format."""

CHANGE = '{"before":null,"after":ROW,"source":{"ts_ms":SEQ,"snapshot":"false"},"op":"u","ts_ms":SEQ}'
"""A change of Debezium without its schema. The sequence number is the time of the commit in milliseconds."""

TELLS_EVERY = 10
"""Updates of a partition per update of its marker key."""

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def update(seq: int, *, keys: int, format: str) -> bytes:
    """The update `seq`, a millisecond after the one before, of some key or of its partition's marker."""
    turn, lane = divmod(seq, events.PARTITIONS)
    id = seq * 2_654_435_761 % keys if turn % TELLS_EVERY else -1 - lane
    ts = (BEGAN + timedelta(milliseconds=seq)).isoformat()
    row = f'{{"id":{id},"seq":{seq},"name":"user {id}","country":"C{seq % 40}","score":{seq % 1000}.25,"ts":"{ts}"}}'
    return (row if format == "json" else CHANGE.replace("SEQ", str(seq)).replace("ROW", row)).encode()


def send(opened: Deployment, first: int, records: int, id: str, format: str) -> None:
    """Writes `records` updates with Spark. `id` is the key of the update `seq`, as Spark SQL."""
    row = f"""to_json(named_struct(
          'id', {id}, 'seq', seq, 'name', concat('user ', {id}), 'country', concat('C', seq % 40),
          'score', CAST(seq % 1000 + 0.25 AS DECIMAL(8,2)),
          'ts', timestamp_millis({int(BEGAN.timestamp() * 1000)} + seq)))"""
    change = f"replace(replace('{CHANGE}', 'SEQ', CAST(seq AS STRING)), 'ROW', {row})"
    values = (
        opened.spark()
        .range(first, first + records, 1, events.PARTITIONS)
        .selectExpr("id AS seq")
        .selectExpr(
            f"CAST(seq % {events.PARTITIONS} AS INT) AS partition",
            f"{row if format == 'json' else change} AS value",
        )
    )
    values.write.format("kafka").options(**opened.brokers.for_spark()).option("topic", "events").save()


@click.command()
@click.option("--keys", default=5_000_000, show_default=True)
@click.option("--updates", default=1_000_000, show_default=True, help="Updates of random keys to catch up with.")
@click.option("--warm-up", default=60, show_default=True, help="Seconds of traffic that are not measured.")
@click.option("--seconds", default=120, show_default=True, help="Seconds of measured traffic.")
@click.option("--format", type=click.Choice(list(OPTIONS)), default="json", show_default=True)
@benchmark
def main(output: Output, keys: int, updates: int, warm_up: int, seconds: int, format: str) -> list[Figure]:
    """A table of five million keys: rates, bytes per key, freshness under updates."""
    with deployment(output) as opened:
        applying.apply(opened, {"users.sql": CATALOG.format(options=OPTIONS[format])})
        catch_up(opened)  # Spark has started, and has run the statements once
        send(opened, 0, keys, f"if(seq < {events.PARTITIONS}, -1 - seq, seq)", format)
        output.tell(f"{keys:,} keys are in Kafka")
        loaded = keys / catch_up(opened)
        size = size_of_cells(opened) / keys
        send(opened, keys, updates, f"pmod(xxhash64(seq), {keys})", format)
        updated = updates / catch_up(opened)
        output.tell(f"loaded at {loaded:,.0f} records/s, updated at {updated:,.0f}")
        opened.spark().stop()  # frees its memory and its threads for the speed layer
        watcher, first = Watcher(opened), keys + updates
        sending = traffic(opened, rate=RATE, first=first, event=partial(update, keys=keys, format=format))
        with speed_layer(opened), watcher.watching(), sending as sender:
            watcher.wait_for(sender)
            output.tell(f"warming for {warm_up} s, then measuring for {seconds} s")
            time.sleep(warm_up)
            begin = time.monotonic()
            time.sleep(seconds)
            end, busy = time.monotonic(), os.getloadavg()[1]
            time.sleep(5)  # the last updates become visible
        after = size_of_cells(opened) / keys
    ages = watcher.freshness(sender, begin, end)
    return [
        Figure("loaded", loaded, "records/s"),
        Figure("updated, keys at random", updated, "records/s"),
        Figure("of a key in Postgres, with its index, loaded", size, "bytes"),
        Figure("the same after the updates", after, "bytes"),
        Figure("updates measured", len(ages), ""),
        Figure("updates never seen", max(0, int((end - begin) * RATE) - len(ages)), "", at_most=0),
        Figure("freshness, p50", percentile(ages, 0.5), "s"),
        Figure("freshness, p99", percentile(ages, 0.99), "s", at_most=P99),
        Figure("freshness, max", ages[-1], "s"),
        Figure("sender behind its schedule, max", sender.latest.value, "s"),
        Figure("load average while measuring", busy, ""),
    ]


def size_of_cells(opened: Deployment) -> int:
    """Bytes of all tables of cells, with their indexes."""
    tables = "FROM pg_class WHERE relnamespace = 'cells'::regnamespace AND relkind = 'r'"
    with opened.database.begin() as connection:
        return int(connection.exec_driver_sql(f"SELECT sum(pg_total_relation_size(oid)) {tables}").scalar_one())


if __name__ == "__main__":
    main()
