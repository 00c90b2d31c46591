"""`python -m benchmarks.chaos`: the certificate of a release, or minutes of it while something is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import psutil

import benchmarks.chaos.faults  # noqa: F401 (fills the table)
from benchmarks.chaos.parcels import Registry
from benchmarks.chaos.report import page
from benchmarks.chaos.stage import Stage, environment
from benchmarks.chaos.storm import Storm, storm
from benchmarks.chaos.table import FAULTS
from benchmarks.chaos.world import World
from benchmarks.common import REPOSITORY, Figure, benchmark, shown
from lamina.render import Output
from lamina.services.embedded import Embedded
from lamina.settings import Settings
from view_algebra.errors import LaminaError

DISKS = {"warehouse": "1536m", "checkpoints": "48m"}
"""Folders that get a disk of their own, and how large: small enough to be filled."""

LEAST_FAULTS, LEAST_KINDS, LEAST_MALFORMED = 300, 15, 10_000
"""What a certificate needs at the least."""

CERTIFICATE_MINUTES = 60
"""From so many minutes on, these are asked of a run."""


@contextmanager
def staged(output: Output, seed: int, *, store: bool) -> Iterator[Stage]:
    """Services of the run's own, in a folder that is kept where something was found."""
    home = Path(tempfile.mkdtemp(prefix="lamina-chaos-"))
    home.chmod(0o755)  # Postgres runs as another user where we are root
    (home / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
    embedded = Embedded(home)
    kept = home.with_name(f"{home.name}-found")
    with ExitStack() as last:
        last.callback(shutil.rmtree, home, ignore_errors=True)
        folders = {name: home / ("s3" if store and name == "warehouse" else name) for name in DISKS}
        disks = {name: folders[name] for name in DISKS if last.enter_context(_disk(folders[name], DISKS[name]))}
        embedded.start(store=store)
        last.callback(embedded.stop)
        registry = Registry.begun(home)
        last.callback(registry.stop)
        given = {
            "LAMINA_HOME": str(home),
            "LAMINA_SPARK_MASTER": "local[2]",
            "LAMINA_SCHEMA_REGISTRY": registry.url,
        }
        settings, world = Settings.read(home, given), World("chaos", seed, versions=1)
        kept.mkdir()
        stage = Stage(settings, world, kept, environment(settings), embedded, registry, disks, tell=output.tell)
        last.callback(stage.close)
        yield stage


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[bool]:
    """A small disk in memory at a folder, where we may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


@click.command()
@click.option("--minutes", default=5.0, show_default=True, help="75 for a certificate.")
@click.option("--faults", default=0, help="Goes on until so many have struck, twice the minutes at most.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(sorted(FAULTS)), help="This kind alone (repeatable).")
@click.option("--s3", "store", is_flag=True, help="The master log is in an object storage, which fails as well.")
@click.option("--write", type=click.Path(path_type=Path), help="Where the page is written, as docs/certificate.md.")
@benchmark
def main(
    output: Output, minutes: float, faults: int, seed: int, only: Sequence[str], store: bool, write: Path | None
) -> list[Figure]:
    """Faults of many kinds, while readers compare every view with DuckDB over exactly the offsets that they read."""
    began = datetime.now(UTC)
    with staged(output, seed, store=store) as stage:
        found = storm(stage, seed, minutes, only, faults=faults)
        figures = [*measured(found, whole=minutes >= CERTIFICATE_MINUTES), *proven(stage), *left(stage)]
        for each in stage.careless:
            output.tell(f"ended with a traceback: {each}")
        if write is not None:
            rows = [(f.name, f"{shown(f.value)} {f.unit}".strip(), f.target) for f in figures]
            write.write_text(page(found, rows, began, seed))
        if not any(figure.missed for figure in figures):
            shutil.rmtree(stage.folder)
        else:
            output.tell(f"what was found is kept in {stage.folder}")
    return figures


def measured(found: Storm, *, whole: bool) -> list[Figure]:
    """What happened, and what a certificate asks of it."""
    good, bad = found.stage.oracle.counts()
    kinds = {each.kind for each in found.struck}
    return [
        Figure("faults", len(found.struck), "", at_least=LEAST_FAULTS if whole else None),
        Figure("kinds of faults", len(kinds), "", at_least=LEAST_KINDS if whole else None),
        Figure("faults from which views did not recover", len(found.failures), "", at_most=0),
        Figure("what ended the run early", len(found.broken), "", at_most=0),
        Figure("snapshots", found.readers.snapshots, "", at_least=1),
        Figure("views compared", found.readers.compared, "", at_least=1),
        Figure("snapshots that differ", len(found.readers.wrong), "", at_most=0),
        Figure("good records", good, ""),
        Figure("malformed records, each counted once", bad, "", at_least=LEAST_MALFORMED if whole else None),
        Figure("alarms raised", len({alarm for each in found.struck for alarm in each.alarms}), ""),
        Figure("commands that ended with a traceback", len(found.stage.careless), ""),
    ]


def proven(stage: Stage) -> list[Figure]:
    """A rebuild with its proof, then every row of every view against its SELECT."""
    return [
        Figure("exit code of the last rebuild, with its proof", _code(stage, "rebuild"), "", at_most=0),
        Figure("exit code of the last check", _code(stage, "check"), "", at_most=0),
    ]


def _code(stage: Stage, command: str) -> int:
    try:
        return stage.lamina(command)
    except LaminaError as error:  # it hung
        stage.tell(str(error))
        return -1


def left(stage: Stage) -> list[Figure]:
    """What killed processes have left running: a JVM ends soon after its Python has."""
    deadline = time.monotonic() + 60
    while (running := _ours(stage)) and time.monotonic() < deadline:
        time.sleep(0.5)
    for each in running:
        each.kill()
    return [Figure("processes left", len(running), "", at_most=0)]


def _ours(stage: Stage) -> list[psutil.Process]:
    home, found = str(stage.settings.home), []
    for each in psutil.process_iter():
        try:
            arguments = " ".join(each.cmdline())
        except psutil.Error:
            continue
        if "SparkSubmit" in arguments and home in arguments and each.status() != psutil.STATUS_ZOMBIE:
            found.append(each)
    return found


if __name__ == "__main__":
    sys.exit(main())
