"""The rate of a rebuild, against plain Spark SQL on the same Parquet files.

Plain Spark reads the files of the Iceberg log, runs the SELECTs of the three views one after another, and writes
nowhere. A rebuild computes the same, loads the cells into Postgres, goes live, proves every cell and hands over.
"""

from __future__ import annotations

import statistics
from time import monotonic

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark, median_ratio, spread
from benchmarks.rebuild import Steps
from benchmarks.running import catch_up, deployment, nowhere
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output

LAMINA, COMPUTE, PLAIN = "rebuild, all steps", "rebuild, its compute steps", "plain Spark SQL on the log's files"


def archive(opened: Deployment) -> float:
    """Archives all records in Kafka. Returns the seconds it took."""
    source = opened.deployed().sources["events"]
    began = monotonic()
    opened.batch.logs.archive(source, opened.brokers.latest(source.topic))
    return monotonic() - began


def plain(opened: Deployment) -> float:
    """Runs the views' SELECTs over the log's Parquet files, and writes nowhere. Returns the seconds it took."""
    listed = opened.spark().sql("SELECT file_path FROM lamina.log.events.files").collect()
    began = monotonic()
    opened.spark().read.parquet(*(row.file_path for row in listed)).createOrReplaceTempView("events")
    for sql in events.VIEWS.values():
        nowhere(opened.spark().sql(sql))
    return monotonic() - began


def rebuild(opened: Deployment) -> tuple[float, float]:
    """Runs a whole rebuild. Returns the seconds that it took, and those of its compute steps."""
    steps = Steps(began=monotonic())
    opened.at = steps.note
    opened.batch.rebuild()
    took = monotonic() - steps.began
    computing = [steps.span(f"compute {name}") for name in events.VIEWS]
    return took, sum(end - begin for begin, end in computing)


@click.command()
@click.option("--records", default=3_000_000, show_default=True)
@click.option("--turns", default=3, show_default=True, help="Turns of each side, after a warm-up turn.")
@benchmark
def main(output: Output, records: int, turns: int) -> list[Figure]:
    """The rate of a rebuild of three views, against plain Spark SQL on the same files."""
    took: dict[str, list[float]] = {LAMINA: [], COMPUTE: [], PLAIN: []}
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS))
        events.send_a_day(opened, records)
        catch_up(opened)
        archived = archive(opened)
        for turn in range(turns + 1):
            whole, computing = rebuild(opened)
            alone = plain(opened)
            output.tell(f"turn {turn}: rebuild {whole:.1f} s (computing {computing:.1f} s), plain {alone:.1f} s")
            if turn:  # the first turn is a warm-up
                for name, seconds in ((LAMINA, whole), (COMPUTE, computing), (PLAIN, alone)):
                    took[name].append(seconds)
        output.tell(spread(took))
    return [
        Figure("archive, cold", records / archived, "records/s"),
        *(
            Figure(f"{name}, median", records / statistics.median(seconds), "records/s")
            for name, seconds in took.items()
        ),
        Figure("share of plain Spark's rate, compute steps, median", median_ratio(took[PLAIN], took[COMPUTE]), ""),
        Figure("share of plain Spark's rate, all steps, median", median_ratio(took[PLAIN], took[LAMINA]), ""),
    ]


if __name__ == "__main__":
    main()
