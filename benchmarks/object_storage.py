"""Archive runs and rebuilds with the master log in object storage, against a folder of the same machine.

Both sides run in turns in one process, over the same records and the same database. Each drops the log, archives
everything again and rebuilds the three views from it. The store is the embedded one, over loopback, so the figure
includes Iceberg's client and more requests, but no network.
"""

from __future__ import annotations

from dataclasses import replace

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark, median_ratio, spread
from benchmarks.rebuild_rate import archive, rebuild
from benchmarks.running import catch_up, deployment
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output
from tests.lent_spark import sibling

SHARE = 0.7
"""Least share of the rate over a folder."""


@click.command()
@click.option("--records", default=2_000_000, show_default=True)
@click.option("--turns", default=3, show_default=True, help="Turns of each side, after a warm-up turn.")
@benchmark
def main(output: Output, records: int, turns: int) -> list[Figure]:
    """Archive runs and rebuilds from object storage, against a folder."""
    took: dict[str, list[float]] = {f"{act}, {side}": [] for act in ("archive", "rebuild") for side in ("folder", "S3")}
    with deployment(output, store=True) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS))
        events.send_a_day(opened, records)
        catch_up(opened)
        folder = replace(opened.settings, warehouse=str(opened.settings.home / "warehouse"))
        sides = {
            name: Deployment(settings, tell=lambda _: None, lent=sibling(opened.spark(), settings))
            for name, settings in (("folder", folder), ("S3", opened.settings))
        }
        for turn in range(turns + 1):
            for name, side in sides.items():
                side.spark().sql("DROP TABLE IF EXISTS lamina.log.events")
                seconds = archive(side), rebuild(side)[0]
                output.tell(f"turn {turn}, {name}: archive {seconds[0]:.1f} s, rebuild {seconds[1]:.1f} s")
                if turn:  # the first turn is a warm-up
                    took[f"archive, {name}"].append(seconds[0])
                    took[f"rebuild, {name}"].append(seconds[1])
        output.tell(spread(took))
        for side in sides.values():
            side.close()
    return [
        Figure(
            f"share of the {act}'s rate over a folder, median",
            median_ratio(took[f"{act}, folder"], took[f"{act}, S3"]),
            "",
            at_least=SHARE,
        )
        for act in ("archive", "rebuild")
    ]


if __name__ == "__main__":
    main()
