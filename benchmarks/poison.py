"""A backlog that no micro-batch can hold: thousands of malformed records of a megabyte, and good records between them.

The speed layer halves its micro-batches until they fit, gets past the backlog, and counts every record exactly once.
"""

from __future__ import annotations

import resource
import threading
from time import monotonic

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark
from benchmarks.running import MAX_RECORDS, deployment
from lamina.operations import applying
from lamina.terminal.render import Output

GOOD = 10
"""Good records for each bad one."""


@click.command()
@click.option("--bad", default=2_000, show_default=True, help="Malformed records.")
@click.option("--megabytes", default=1, show_default=True, help="Size of a record.")
@benchmark
def main(output: Output, bad: int, megabytes: int) -> list[Figure]:
    """A poisoned backlog: the time to get past it, and whether every record is counted once."""
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(totals="SELECT count(*) AS records FROM events"))
        topic = opened.deployed().sources["events"].topic
        long = b"{" + b"x" * (megabytes * 1024 * 1024 - 100)
        with opened.brokers.producer() as producer:
            for _ in range(bad):
                producer.send(topic, long)
                for _ in range(GOOD):
                    producer.send(topic, b"{}")
        output.tell(f"{bad:,} malformed records of {megabytes} MB are in Kafka")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = monotonic()
        opened.speed(threading.Event(), max_records=MAX_RECORDS).run(until_caught_up=True)
        seconds = monotonic() - began
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        with opened.database.snapshot() as reading:
            counted = int(reading.exec_driver_sql("SELECT sum(records) FROM lamina.bad_records").scalar_one())
            good = int(reading.exec_driver_sql("SELECT records FROM analytics.totals").scalar_one())
            kept = float(reading.exec_driver_sql("SELECT sum(size) / 1048576.0 FROM lamina.quarantine").scalar_one())
    return [
        Figure("caught up", seconds, "s"),
        Figure("bad records counted, of those sent", counted - bad, "off", at_least=0, at_most=0),
        Figure("good records counted, of those sent", good - GOOD * bad, "off", at_least=0, at_most=0),
        Figure("kept in quarantine", kept, "MB", at_most=1100),
        Figure("memory that Python took for it", grown, "MB"),
    ]


if __name__ == "__main__":
    main()
