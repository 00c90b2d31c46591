"""`python -m benchmarks.chaos`: the certificate of a release, or some minutes of it during development."""

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
from benchmarks.chaos.parcels import RegistryServer
from benchmarks.chaos.report import page
from benchmarks.chaos.stage import Stage, environment
from benchmarks.chaos.storm import Storm, storm
from benchmarks.chaos.table import FAULTS
from benchmarks.chaos.world import World
from benchmarks.figures import Figure, benchmark, shown
from benchmarks.running import REPOSITORY
from lamina.configuration.settings import Settings
from lamina.services.embedded import EmbeddedServices
from lamina.terminal.render import Output
from view_algebra.errors import LaminaError

DISKS = {"warehouse": "1536m", "checkpoints": "48m"}
"""Folders that get their own disk, with its size: small enough to be filled."""

LEAST_FAULTS, LEAST_KINDS, LEAST_MALFORMED = 300, 15, 10_000
"""Minimums for a certificate."""

CERTIFICATE_MINUTES = 60
"""Minutes from which on a run must reach these minimums."""


@contextmanager
def new_stage(output: Output, seed: int, *, store: bool) -> Iterator[Stage]:
    """Services of this run only, in a folder that is kept if something was found."""
    home = Path(tempfile.mkdtemp(prefix="lamina-chaos-"))
    home.chmod(0o755)  # Postgres runs as another user if we are root
    (home / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
    embedded = EmbeddedServices(home)
    kept = home.with_name(f"{home.name}-found")
    with ExitStack() as last:
        last.callback(shutil.rmtree, home, ignore_errors=True)
        folders = {name: home / ("s3" if store and name == "warehouse" else name) for name in DISKS}
        disks = {name: folders[name] for name in DISKS if last.enter_context(_disk(folders[name], DISKS[name]))}
        embedded.start(store=store)
        last.callback(embedded.stop)
        registry = RegistryServer.new(home)
        last.callback(registry.stop)
        variables = {
            "LAMINA_HOME": str(home),
            "LAMINA_SPARK_MASTER": "local[2]",
            "LAMINA_SCHEMA_REGISTRY": registry.url,
        }
        settings, world = Settings.read(home, variables), World("chaos", seed, versions=1)
        kept.mkdir()
        stage = Stage(settings, world, kept, environment(settings), embedded, registry, disks, tell=output.tell)
        last.callback(stage.close)
        yield stage


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[bool]:
    """Mounts a small disk in memory at a folder. Yields False if we may not mount one."""
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
@click.option("--faults", default=0, help="Continue until this many have struck, for at most twice the minutes.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(sorted(FAULTS)), help="Only this kind (repeatable).")
@click.option("--s3", "store", is_flag=True, help="Keep the master log in an object storage, which fails as well.")
@click.option("--write", type=click.Path(path_type=Path), help="File for the page, such as docs/certificate.md.")
@benchmark
def main(
    output: Output, minutes: float, faults: int, seed: int, only: Sequence[str], store: bool, write: Path | None
) -> list[Figure]:
    """Faults of many kinds, while readers compare every view with DuckDB over exactly the offsets that they read."""
    began = datetime.now(UTC)
    with new_stage(output, seed, store=store) as stage:
        run = storm(stage, seed, minutes, only, faults=faults)
        figures = [
            *figures_of_run(run, whole=minutes >= CERTIFICATE_MINUTES),
            *last_rebuild_and_check(stage),
            *end_left_processes(stage),
        ]
        for careless_log in stage.careless:
            output.tell(f"ended with a traceback: {careless_log}")
        if write is not None:
            rows = [(f.name, f"{shown(f.value)} {f.unit}".strip(), f.target) for f in figures]
            write.write_text(page(run, rows, began, seed))
        if not any(figure.missed for figure in figures):
            shutil.rmtree(stage.folder)
        else:
            output.tell(f"what was found is kept in {stage.folder}")
    return figures


def figures_of_run(run: Storm, *, whole: bool) -> list[Figure]:
    """Counts of the run, with the minimums of a certificate."""
    good, bad = run.stage.oracle.counts()
    kinds = {struck.kind for struck in run.struck}
    return [
        Figure("faults", len(run.struck), "", at_least=LEAST_FAULTS if whole else None),
        Figure("kinds of faults", len(kinds), "", at_least=LEAST_KINDS if whole else None),
        Figure("faults from which views did not recover", len(run.failures), "", at_most=0),
        Figure("what ended the run early", len(run.broken), "", at_most=0),
        Figure("snapshots", run.readers.snapshots, "", at_least=1),
        Figure("views compared", run.readers.compared, "", at_least=1),
        Figure("snapshots that differ", len(run.readers.wrong), "", at_most=0),
        Figure("good records", good, ""),
        Figure("malformed records, each counted once", bad, "", at_least=LEAST_MALFORMED if whole else None),
        Figure("alarms raised", len({alarm for struck in run.struck for alarm in struck.alarms}), ""),
        Figure("commands that ended with a traceback", len(run.stage.careless), "", at_most=0),
    ]


def last_rebuild_and_check(stage: Stage) -> list[Figure]:
    """Runs a rebuild with its proof, and then compares every row of every view with its SELECT."""
    return [
        Figure("exit code of the last rebuild, with its proof", _exit_code(stage, "rebuild"), "", at_most=0),
        Figure("exit code of the last check", _exit_code(stage, "check"), "", at_most=0),
    ]


def _exit_code(stage: Stage, command: str) -> int:
    """0 if the command succeeded, else a positive number."""
    try:
        return abs(stage.lamina(command))  # a command that dies of a signal has a negative exit code
    except LaminaError as error:  # the command hung
        stage.tell(str(error))
        return 1


def end_left_processes(stage: Stage) -> list[Figure]:
    """Counts and ends the processes that killed ones have left running. A JVM ends soon after its Python."""
    deadline = time.monotonic() + 60
    while (running := _ours(stage)) and time.monotonic() < deadline:
        time.sleep(0.5)
    for process in running:
        process.kill()
    return [Figure("processes left", len(running), "", at_most=0)]


def _ours(stage: Stage) -> list[psutil.Process]:
    home, processes = str(stage.settings.home), []
    for process in psutil.process_iter():
        try:
            arguments = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "SparkSubmit" in arguments and home in arguments and process.status() != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes


if __name__ == "__main__":
    sys.exit(main())
