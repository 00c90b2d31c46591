"""Freshness of records in Avro behind a schema registry, and the one-time cost of a new schema.

A record is sent every 50 ms. Every ten seconds the producer registers another schema and writes with it from then on.
The speed layer meets the id in a micro-batch, asks the registry, stores the answer and computes the micro-batch again.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import analyst, deployment, speed_layer, threads
from lamina.operations import applying
from lamina.terminal.render import Output
from tests.fix_registry import SchemaRegistry, framed, started

EVERY, NEW_EVERY = 0.05, 200
"""Seconds from one record to the next, and records from one schema to the next."""

MOST_FOR_A_SCHEMA = 1.0
"""Seconds."""

SQL = """CREATE TABLE readings (n BIGINT, value DOUBLE) USING kafka OPTIONS (topic 'readings', format 'avro');
CREATE VIEW newest AS SELECT max(n) AS n, sum(value) AS value FROM readings;"""


@click.command()
@click.option("--schemas", default=12, show_default=True, help="Number of schemas, one after another.")
@benchmark
def main(output: Output, schemas: int) -> list[Figure]:
    """Freshness in Avro, and of the first record with a new schema."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-registry-") as folder:
        registry = started(Path(folder))
        os.environ["LAMINA_SCHEMA_REGISTRY"] = registry.url  # the speed layer's process inherits it
        try:
            return _measure(output, registry, schemas)
        finally:
            del os.environ["LAMINA_SCHEMA_REGISTRY"]
            registry.stop()


def _measure(output: Output, registry: SchemaRegistry, schemas: int) -> list[Figure]:
    sent: list[float] = []
    seen: list[tuple[float, int]] = []
    stopping = threading.Event()
    with deployment(output) as opened:
        applying.apply(opened, {"catalog.sql": SQL})

        def send(number: int, id: int, schema: dict[str, Any]) -> None:
            sent.append(time.monotonic())
            producer.send("readings", framed(id, schema, {"n": number, "value": 1.0}))
            producer.flush()

        def watch() -> None:
            connection = analyst(opened)
            with connection.cursor() as cursor:
                while not stopping.wait(0.01):
                    cursor.execute("SELECT n FROM analytics.newest")
                    row = cursor.fetchone()
                    if row is not None and row[0] is not None and (not seen or row[0] > seen[-1][1]):
                        seen.append((time.monotonic(), row[0]))
            connection.close()

        with opened.brokers.producer() as producer, speed_layer(opened), threads(stopping, watch):
            output.tell("the first schema is for the start of the speed layer, and is not counted")
            for which in range(schemas + 1):
                schema = _schema(which)
                id = registry.add("readings-value", schema)
                for _ in range(NEW_EVERY):
                    due = time.monotonic() + EVERY
                    send(len(sent), id, schema)
                    time.sleep(max(0.0, due - time.monotonic()))
                if which == 0:
                    _wait_for(seen, len(sent) - 1)
            _wait_for(seen, len(sent) - 1)
    fresh = [_seen_at(seen, number) - at for number, at in enumerate(sent)][NEW_EVERY:]
    first = sorted(fresh[::NEW_EVERY])
    others = sorted(age for number, age in enumerate(fresh) if number % NEW_EVERY >= NEW_EVERY // 2)
    usual = percentile(others, 0.5)
    return [
        Figure("freshness, p50", usual, "s"),
        Figure("freshness, p99", percentile(others, 0.99), "s"),
        Figure("first record of a schema, p50", percentile(first, 0.5), "s"),
        Figure("what a new schema costs, p50", percentile(first, 0.5) - usual, "s", at_most=MOST_FOR_A_SCHEMA),
        Figure("what a new schema costs, max", first[-1] - usual, "s"),
    ]


def _schema(which: int) -> dict[str, Any]:
    """A schema with one more field than the one before."""
    more = [{"name": f"more_{number}", "type": "string", "default": ""} for number in range(which)]
    fields = [{"name": "n", "type": "long"}, {"name": "value", "type": "double"}, *more]
    return {"type": "record", "name": "reading", "fields": fields}


def _wait_for(seen: list[tuple[float, int]], number: int) -> None:
    while not (seen and seen[-1][1] >= number):
        time.sleep(0.1)


def _seen_at(seen: list[tuple[float, int]], number: int) -> float:
    return next(at for at, newest in seen if newest >= number)


if __name__ == "__main__":
    main()
