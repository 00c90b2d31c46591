"""Ctrl-C at random moments of a command: how many commands did not end as promised, and the longest that one took.

A command promises to end soon after Ctrl-C with exit code 130 and `interrupted` as its last line. One that was done
before the signal ends with 0. After all of them, every view equals its SELECT.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter, sleep

import click

from benchmarks.figures import Figure, benchmark
from benchmarks.running import REPOSITORY, deployment, environment_for, folder_of, speed_layer
from lamina.authoring.catalog_files import catalog_files
from lamina.interrupts import INTERRUPTED
from lamina.operations import applying
from lamina.terminal.render import Output

WEB_ACCESS = REPOSITORY / "examples" / "web_access"
DATA = str(WEB_ACCESS / "data" / "web_access.jsonl.gz")

CHANGED = (
    "CREATE VIEW changed AS SELECT status, count(*) AS requests FROM requests WHERE bytes <> {turn} GROUP BY status;"
)
"""A view whose cells are computed again by each turn's apply."""

PYTHON_STARTS = 0.1
"""Seconds within which a signal may still reach Python before it reaches Lamina."""

QUICKLY, AT_ONCE, KILLED_AFTER = 10.0, 1.0, 60.0
"""Seconds from Ctrl-C to the end: those that it may take, those of a command that was done already, and those after
which it is killed.
"""


@click.command()
@click.option("--turns", default=20, show_default=True, help="Interrupts of each command.")
@click.option("--within", default=12.0, show_default=True, help="Seconds of a command in which Ctrl-C may arrive.")
@click.option("--seed", default=1, show_default=True)
@click.argument("commands", nargs=-1)
@benchmark
def main(output: Output, turns: int, within: float, seed: int, commands: Sequence[str]) -> list[Figure]:
    """Interrupts commands (by default rebuild, check, apply and ingest) over a deployment of examples/web_access."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, with its children
    dice, figures = random.Random(seed), []
    with deployment(output) as opened:
        files = {Path(name).name: sql for name, sql in catalog_files(WEB_ACCESS).items()}
        applying.apply(opened, files)
        variables = environment_for(opened)
        with speed_layer(opened), folder_of(files) as catalog:
            _run("ingest", "requests", DATA, "--wait", environment=variables).communicate()
            for name in commands or ("rebuild", "check", "apply", "ingest"):
                ends = []
                for turn in range(turns):
                    words = _words(name, turn, catalog)
                    ends.append(_interrupted(words, dice.uniform(PYTHON_STARTS, within), variables, output))
                wrong = sum(not as_promised for as_promised, _ in ends)
                figures.append(Figure(f"{name}: not as promised", wrong, f"of {turns}", at_most=0))
                figures.append(Figure(f"{name}: longest end", max(took for _, took in ends), "s", at_most=QUICKLY))
            _run("ingest", "requests", DATA, "--wait", environment=variables).communicate()
            check = _run("check", environment=variables)
            output.tell(check.communicate()[1])
            figures.append(Figure("check afterwards: exit code", check.returncode, "", at_most=0))
    return figures


def _words(name: str, turn: int, catalog: Path) -> list[str]:
    """The command line of a turn. Each apply deploys another version of a view."""
    if name == "apply":
        (catalog / "changed.sql").write_text(CHANGED.format(turn=turn))
        return ["apply", "--catalog", str(catalog)]
    return ["ingest", "requests", DATA] if name == "ingest" else [name]


def _interrupted(
    words: Sequence[str], after: float, variables: Mapping[str, str], output: Output
) -> tuple[bool, float]:
    """Interrupts a command after some seconds. Returns True if it ended as promised, and the seconds that it took."""
    process = _run(*words, environment=variables)
    sleep(after)
    began = perf_counter()
    process.send_signal(signal.SIGINT)
    try:
        _, stderr = process.communicate(timeout=KILLED_AFTER)
    except subprocess.TimeoutExpired:
        process.kill()
        _, stderr = process.communicate()
    took = perf_counter() - began
    interrupted = process.returncode == INTERRUPTED and stderr.strip().splitlines()[-1:] == ["interrupted"]
    was_done = process.returncode == os.EX_OK and took < AT_ONCE
    as_promised = (interrupted or was_done) and "Traceback" not in stderr
    output.tell(f"{words[0]}: Ctrl-C after {after:.2f} s, ended with {process.returncode} within {took:.1f} s")
    if not as_promised:
        output.tell(stderr)
    return as_promised, took


def _run(*words: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lamina", *words],
        cwd=REPOSITORY,
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    main()
