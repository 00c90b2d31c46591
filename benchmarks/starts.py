"""The seconds that a person waits for commands, from the start of their process.

The demo runs in a fresh clone, with packages from the cache and the jars of this folder. The other commands run over a
deployment of examples/shop, whose records are counted, with a running speed layer. Each runs once as a warm-up of the
system's caches, which does not count. Most are measured to their end, but rebuild, check and archive until Spark takes
their work. CPU seconds are those of the command and its own child processes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

import click

from benchmarks.figures import Figure, benchmark
from benchmarks.running import REPOSITORY, deployment, environment, environment_for, speed_layer
from lamina.authoring.catalog_files import catalog_files
from lamina.operations import applying
from lamina.reports.lag_lines import lag_lines_of_select
from lamina.terminal.render import Output

SHOP = REPOSITORY / "examples" / "shop"

AT_ONCE, ONE_TEST, SPARK_WORKS = 0.7, 8.0, 4.0
"""Seconds."""

FIRST_ROW, WHOLE_DEMO = 60.0, 150.0
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

WITH_SPARK = ("archive", "check", "rebuild")

TELLS = """
import os

from lamina.spark import spark_session

start = spark_session.session

def session(*words, **options):
    started = start(*words, **options)
    os.write({file}, b".")
    return started

spark_session.session = session

from lamina.cli import main

main()
"""
"""The command line, which writes a byte to a file once its Spark has started."""

DEMO = "demo"


@click.command()
@click.option("--turns", default=5, show_default=True)
@click.argument("commands", nargs=-1, type=click.Choice([DEMO, *COMMANDS, *WITH_SPARK]))
@benchmark
def main(output: Output, turns: int, commands: Sequence[str]) -> list[Figure]:
    """Commands from their start, in seconds and CPU seconds."""
    asked = commands or (DEMO, *COMMANDS, *WITH_SPARK)
    figures = _demo() if DEMO in asked else []
    if set(asked) == {DEMO}:
        return figures
    with deployment(output) as opened:
        applying.apply(opened, catalog_files(SHOP))
        environment_of_ours = environment_for(opened) | {
            "PYTHONDONTWRITEBYTECODE": ""
        }  # an installed Lamina is compiled once
        for path in sorted((SHOP / "data").glob("*.jsonl")):
            _seconds(("ingest", path.stem, str(path)), environment_of_ours)
        _seconds(("speed", "--until-caught-up"), environment_of_ours)
        with speed_layer(opened):
            while lag_lines_of_select(opened, COMMANDS["sql"][1]):  # a query says so while the speed layer starts
                sleep(1)
            for name in filter(COMMANDS.__contains__, asked):
                took = [_seconds(COMMANDS[name], environment_of_ours) for _ in range(turns + 1)][1:]
                wall, cpu = (statistics.median(values) for values in zip(*took, strict=True))
                output.tell(f"{name}: {', '.join(f'{seconds:.2f}' for seconds, _ in took)} s")
                figures.append(Figure(f"{name}, median", wall, "s", at_most=BOUNDS[name]))
                figures.append(Figure(f"{name}, CPU", cpu, "s"))
            for name in filter(asked.__contains__, WITH_SPARK):
                waits = [_until_spark(name, environment_of_ours) for _ in range(turns + 1)][1:]
                output.tell(f"{name}: {', '.join(f'{seconds:.2f}' for seconds in waits)} s")
                wait = statistics.median(waits)
                figures.append(Figure(f"{name} until Spark works, median", wait, "s", at_most=SPARK_WORKS))
    return figures


def _demo() -> list[Figure]:
    """Seconds from `make demo` to the first row of a view, and to its end, by its output on stderr."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-clone-") as folder:
        clone = Path(folder) / "lamina"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        (clone / ".lamina").mkdir(exist_ok=True)
        (clone / ".lamina" / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
        began, first, lines = perf_counter(), None, []
        demo = ["make", "demo", "ONCE=1"]
        with _started(demo, clone, environment()) as process:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line)
                if line.startswith("The first rows are there"):
                    first = perf_counter() - began
        whole = perf_counter() - began
    if process.returncode != os.EX_OK or first is None:
        raise click.ClickException(f"make demo: {''.join(lines)}")
    return [
        Figure("demo in a fresh clone, first row", first, "s", at_most=FIRST_ROW),
        Figure("demo in a fresh clone, to its end", whole, "s", at_most=WHOLE_DEMO),
    ]


@contextmanager
def _started(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A process with readable stderr. It is ended if the block fails."""
    with subprocess.Popen(
        words,
        cwd=folder,
        env=dict(environment),
        pass_fds=pass_fds,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.terminate()
            raise


def _until_spark(command: str, environment: Mapping[str, str]) -> float:
    """Seconds from the start of a command until its Spark has started. The command must end with exit code 0."""
    read, write = os.pipe()
    began = perf_counter()
    words = [sys.executable, "-c", TELLS.format(file=write), command]
    with _started(words, REPOSITORY, environment, pass_fds=[write]) as process:
        os.close(write)
        started = os.read(read, 1)
        seconds = perf_counter() - began
        _, output = process.communicate()
    os.close(read)
    if process.returncode != os.EX_OK or not started:
        raise click.ClickException(f"lamina {command}: {output}")
    return seconds


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a command, which must end with exit code 0."""
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
