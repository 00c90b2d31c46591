"""The last hour every five seconds, at 2,000 events a second: the time to read the window that ends now.

An hour of traffic is counted already: 7.2 million events of 50,000 visitors, each with 144 events. The view counts all
page views and the different visitors, exactly. The first minute after the speed layer's start is a warm-up, and is not
measured.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Any

import click
import psycopg2.extensions

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import analyst, catch_up, deployment, speed_layer
from benchmarks.traffic import traffic
from lamina.operations import applying
from lamina.terminal.render import Output

RATE = 2_000
LONGEST = 100.0
"""Milliseconds."""

LAST_HOUR = """
SELECT window.end AS until, count(*) AS page_views, count(DISTINCT user_id) AS visitors
FROM events GROUP BY window(ts, '1 hour', '5 seconds')"""

NOW = """
SELECT page_views, visitors FROM analytics.last_hour
WHERE until = date_bin('5 seconds', now(), timestamptz 'epoch') + interval '5 seconds'"""
"""The window whose last five seconds are not over: the first that holds an event of this instant."""

SIZE = """
SELECT sum(pg_total_relation_size(c.oid)) / 1048576.0
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'cells' AND c.relkind = 'r'"""


@click.command()
@click.option("--seconds", default=60, show_default=True, help="Seconds of reading, once a second.")
@click.option("--records", default=3600 * RATE, show_default=True, help="Events of the hour before.")
@click.option("--warm-up", default=60, show_default=True, help="Seconds of traffic before the measurement.")
@benchmark
def main(output: Output, seconds: int, records: int, warm_up: int) -> list[Figure]:
    """Reading the last hour, every five seconds, for now."""
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(last_hour=LAST_HOUR))
        events.send_an_hour(opened, records, until=datetime.now(UTC))
        output.tell(f"{records:,} records are in Kafka")
        caught_up = catch_up(opened)
        output.tell(f"caught up in {caught_up:.0f} s")
        opened.spark().stop()
        taken: list[float] = []
        with speed_layer(opened), traffic(opened, rate=RATE, first=records, event=events.one_now):
            connection = analyst(opened)
            with connection.cursor() as cursor:
                while not _read(cursor):  # until the speed layer has started
                    time.sleep(1)
                output.tell(f"warming for {warm_up} s, then reading for {seconds} s")
                time.sleep(warm_up)
                for _ in range(seconds):
                    time.sleep(1)
                    began = time.monotonic()
                    rows = _read(cursor)
                    taken.append(1000 * (time.monotonic() - began))
                    assert rows, "the window that lasts until now is not there"
                views, visitors = rows[0]
            busy = os.getloadavg()[0]
            connection.close()
        with opened.database.snapshot() as reading:
            megabytes = float(reading.exec_driver_sql(SIZE).scalar_one())
    taken.sort()
    return [
        Figure("read for now, p50", percentile(taken, 0.5), "ms", at_most=LONGEST),
        Figure("read for now, max", taken[-1], "ms", at_most=LONGEST),
        Figure("page views in it", views, ""),
        Figure("visitors in it", visitors, ""),
        Figure("caught up with the hour", records / caught_up, "records/s"),
        Figure("cells", megabytes, "MB"),
        Figure("load average while measuring", busy, ""),
    ]


def _read(cursor: psycopg2.extensions.cursor) -> list[tuple[Any, ...]]:
    cursor.execute(NOW)
    return cursor.fetchall()


if __name__ == "__main__":
    main()
