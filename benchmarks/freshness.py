"""Freshness: the time from an event's due instant until the analyst's view shows it, at 2,000 events a second.

The speed layer runs as in `lamina up` and maintains four views: the three of the catch-up figure, and one that shows
which events can be read. A micro-batch becomes visible in all of them at once. The views hold a million records
already. Every event is measured, except those of the first minute after the speed layer's start, which is a warm-up.
"""

from __future__ import annotations

import os
import time

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import catch_up, deployment, speed_layer
from benchmarks.traffic import Watcher, traffic
from lamina.operations import applying
from lamina.terminal.render import Output

RATE = 2_000
P50, P99 = 0.8, 2.0


@click.command()
@click.option("--seconds", default=300, show_default=True, help="Seconds of measured traffic.")
@click.option("--warm-up", default=60, show_default=True, help="Seconds of traffic before the measurement.")
@click.option("--records", default=1_000_000, show_default=True, help="Records in the views before the traffic begins.")
@benchmark
def main(output: Output, seconds: int, warm_up: int, records: int) -> list[Figure]:
    """Freshness at 2,000 events a second, as the analyst's view shows it."""
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS, lanes=events.LANES))
        events.send_a_day(opened, records)
        output.tell(f"{records:,} records are in Kafka")
        catch_up(opened)
        opened.spark().stop()  # frees its memory and its threads for the speed layer
        watcher = Watcher(opened)
        with speed_layer(opened), watcher.watching(), traffic(opened, rate=RATE, first=records) as sending:
            watcher.wait_for(sending)
            output.tell(f"warming for {warm_up} s, then measuring for {seconds} s")
            time.sleep(warm_up)
            begin = time.monotonic()
            time.sleep(seconds)
            end, sent = time.monotonic(), sending.sent.value
            busy = os.getloadavg()[1]
            time.sleep(5)  # the last events become visible
    ages = watcher.freshness(sending, begin, end)
    for number in range(-(-seconds // 30)):
        part = watcher.freshness(sending, begin + 30 * number, min(end, begin + 30 * (number + 1)))
        output.tell(f"from {30 * number} s: p50 {percentile(part, 0.5):.2f} s, p99 {percentile(part, 0.99):.2f} s")
    gaps = sorted(watcher.gaps(begin, end))
    return [
        Figure("events measured", len(ages), ""),
        Figure("events never seen", max(0, int((end - begin) * RATE) - len(ages)), "", at_most=0),
        Figure("p50", percentile(ages, 0.5), "s", at_most=P50),
        Figure("p95", percentile(ages, 0.95), "s"),
        Figure("p99", percentile(ages, 0.99), "s", at_most=P99),
        Figure("max", ages[-1], "s"),
        Figure("between two commits, p50", percentile(gaps, 0.5), "s"),
        Figure("between two commits, max", gaps[-1], "s"),
        Figure("rate that was sent", sent / (end - sending.started), "events/s", at_least=0.99 * RATE),
        Figure("sender behind its schedule, max", sending.latest.value, "s"),
        Figure("load average while measuring", busy, ""),
    ]


if __name__ == "__main__":
    main()
