"""Catching up with a stream with UNIQUE, against the same stream that counts every record.

Three views are filled in Postgres, with both sides in turns over the same topic. Every id is new, so none of them saves
any work. One warm-up turn of each side does not count.
"""

from __future__ import annotations

import threading
from functools import partial

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark, in_turns, median_ratio
from benchmarks.running import MAX_RECORDS, another_database, catch_up, deployment
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output

AT_LEAST = 0.65
"""Least share of the rate without UNIQUE."""

SIDES = {
    "every record": events.SOURCE,
    "each event once": events.SOURCE.replace("ts TIMESTAMP\n", "ts TIMESTAMP, UNIQUE (seq)\n"),
}


@click.command()
@click.option("--records", default=3_000_000, show_default=True)
@click.option("--turns", default=3, show_default=True, help="Turns of each side, after a warm-up turn.")
@benchmark
def main(output: Output, records: int, turns: int) -> list[Figure]:
    """Catching up with UNIQUE: records per second, against the same without."""
    records -= records % events.PARTITIONS
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS))
        opened.speed(threading.Event(), max_records=MAX_RECORDS)  # Spark starts as it does for the speed layer
        events.send_a_day(opened, records)
        output.tell(f"{records:,} records are in Kafka")
        bytes_per_id = 0.0

        def side(number: int, source: str, turn: int) -> float:
            nonlocal bytes_per_id
            with another_database(opened, f"turn_{turn}_{number}") as fresh:
                applying.apply(fresh, {**events.catalog(**events.VIEWS), "events.sql": source})
                seconds = catch_up(fresh)
                bytes_per_id = max(bytes_per_id, _bytes_of_ids(fresh) / records)
            return seconds

        sides = {name: partial(side, number, source) for number, (name, source) in enumerate(SIDES.items())}
        took = in_turns(output, sides, turns)
    return [
        *(Figure(f"{name}, best turn", records / min(seconds), "records/s") for name, seconds in took.items()),
        Figure("share of the rate without UNIQUE, median", median_ratio(*took.values()), "", at_least=AT_LEAST),
        Figure("kept of an id in Postgres, with its index", bytes_per_id, "bytes"),
    ]


def _bytes_of_ids(opened: Deployment) -> int:
    sizes = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
        " WHERE relnamespace = 'realtime'::regnamespace AND relkind = 'r' AND relname ~ '^ids_'"
    )
    with opened.database.begin() as connection:
        return int(connection.exec_driver_sql(sizes).scalar_one())


if __name__ == "__main__":
    main()
