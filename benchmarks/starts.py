"""The seconds of commands that a person waits for, from the start of their process to its end.

A deployment of examples/shop is up: its records are counted, and the speed layer runs. Each command runs once to warm
the system's caches, and that turn is not counted. CPU seconds are those of the command and its own child processes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from time import perf_counter, sleep

import click

from benchmarks.common import REPOSITORY, Figure, benchmark, deployment, speed_layer, told_of
from lamina.catalogs import catalog_files
from lamina.render import Output
from lamina.statuses import behind_of

SHOP = REPOSITORY / "examples" / "shop"

AT_ONCE, ONE_TEST = 0.7, 8.0
"""Seconds."""

COMMANDS: Mapping[str, Sequence[str]] = {
    "--version": ("--version",),
    "explain": ("explain", "by_city", "--catalog", str(SHOP)),
    "sql": ("sql", "SELECT * FROM by_city"),
    "receipt": ("receipt", "by_city"),
    "plan": ("plan", "--catalog", str(SHOP)),
    "status": ("status",),
    "test": ("test", "paid_late", "--catalog", str(SHOP)),
}

BOUNDS = dict.fromkeys(COMMANDS, AT_ONCE) | {"test": ONE_TEST}


@click.command()
@click.option("--turns", default=5, show_default=True)
@click.argument("commands", nargs=-1, type=click.Choice(list(COMMANDS)))
@benchmark
def main(output: Output, turns: int, commands: Sequence[str]) -> list[Figure]:
    """Commands from start to end, in seconds and CPU seconds."""
    found = []
    with deployment(output) as opened:
        opened.apply(catalog_files(SHOP))
        environment = told_of(opened) | {"PYTHONDONTWRITEBYTECODE": ""}  # an installed Lamina is compiled once
        for path in sorted((SHOP / "data").glob("*.jsonl")):
            _seconds(("ingest", path.stem, str(path)), environment)
        _seconds(("speed", "--until-caught-up"), environment)
        with speed_layer(opened):
            while behind_of(opened, COMMANDS["sql"][1]):  # a query says so while the speed layer starts
                sleep(1)
            for name in commands or COMMANDS:
                took = [_seconds(COMMANDS[name], environment) for _ in range(turns + 1)][1:]
                wall, cpu = (statistics.median(each) for each in zip(*took, strict=True))
                output.tell(f"{name}: {', '.join(f'{seconds:.2f}' for seconds, _ in took)} s")
                found.append(Figure(f"{name}, median", wall, "s", at_most=BOUNDS[name]))
                found.append(Figure(f"{name}, CPU", cpu, "s"))
    return found


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a command; it must end with exit code 0."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "lamina", *command],
        env=dict(environment),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != os.EX_OK:
        raise click.ClickException(f"lamina {' '.join(command)}: {done.stderr}")
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
