"""`lamina up` and `lamina down`, repeated, and with a speed layer that hangs."""

from __future__ import annotations

import os
import shlex
import signal
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from pyspark.sql import SparkSession

from lamina.configuration.settings import Settings
from lamina.interrupts import INTERRUPTED
from lamina.local.demo import how_to_connect
from lamina.services.background import ConsoleProcess, SpeedProcess
from lamina.services.postgres import person
from lamina.terminal.render import Output
from serving_layer.postgres.database import Database
from serving_layer.promise import progress
from tests.fix_catalogs import EVENTS, TOTALS
from tests.fix_lamina import CommandLine


def taken_over(database: Database) -> bool:
    with database.begin() as connection:
        return all(query.writer is not None for query in progress.queries(connection).values())


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def database_of(here: CommandLine) -> Database:
    """The database of a home in which Postgres runs."""
    home = here.environment["LAMINA_HOME"]
    return Database(Settings.read(Path(home), {"LAMINA_HOME": home}).postgres)


def new_home(lamina: CommandLine, home: Path) -> CommandLine:
    """`lamina` over a home in which nothing runs yet. It has the jars of the repository."""
    home.mkdir(mode=0o700)
    jars = Path(lamina.environment["LAMINA_HOME"]) / "jars"
    (home / "jars").symlink_to(jars.resolve())
    own = dict.fromkeys(("LAMINA_POSTGRES", "LAMINA_KAFKA", "LAMINA_ANALYST", "LAMINA_WAREHOUSE"), "")
    return CommandLine({**lamina.environment, **own, "LAMINA_HOME": str(home)}, home.parent)


def test_up_starts_every_process_and_replaces_a_hanging_speed_layer(
    lamina: CommandLine, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, catalog = tmp_path / "home", tmp_path / "catalog"
    here = new_home(lamina, home)
    catalog.mkdir()
    (catalog / "all.sql").write_text(f"{EVENTS}\n{TOTALS}".replace("{topics}", "up"))
    speed = SpeedProcess(home)
    try:
        started = here("up", "--s3", "--json")
        assert "the speed layer is starting" in started.err
        where = {line["what"]: line["where"] for line in started.lines()}
        here("apply", "--catalog", str(catalog))
        _an_interrupted_up_leaves_the_services_running_and_says_so(here)
        how_to_connect(Output(), home, speed, where["console"])
        _a_newcomer_can_paste_the_last_line(capsys.readouterr().out, home)
        _a_second_up_replaces_only_a_hanging_speed_layer(here, speed)
        with urllib.request.urlopen(where["console"]) as page:
            assert "totals" in page.read().decode()
        _a_record_is_counted_and_archived_in_the_object_storage(here, spark, home)
        _a_person_reads_with_a_login_of_their_own(where["views (SQLAlchemy)"])
    finally:
        stopped = here("down")
    assert "Kafka and Postgres have stopped" in stopped.err
    assert speed.background.find() is None
    assert ConsoleProcess(home).background.find() is None
    assert where["console"] == f"http://127.0.0.1:{(home / 'console.port').read_text()}/", "the next start has its port"
    assert here("down").err == f"nothing was running in {home}\n"


def _a_newcomer_can_paste_the_last_line(shown: str, home: Path) -> None:
    assert f"postgresql://{person()}:" in shown
    there, command, *_ = shlex.split(shown.splitlines()[-1])
    assert (there, os.access(command, os.X_OK)) == (f"LAMINA_HOME={home}", True)


def _an_interrupted_up_leaves_the_services_running_and_says_so(here: CommandLine) -> None:
    with closing(database_of(here)) as database, database.begin() as holder:
        holder.exec_driver_sql("LOCK TABLE lamina.heartbeat")  # up waits for it to learn if the speed layer hangs
        process = here.start("up")
        assert process.stderr is not None
        narrated = iter(process.stderr.readline, "")  # a slow start narrates its waits first
        assert any(line.startswith("Kafka and Postgres are up") for line in narrated)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, stderr
    says = "Kafka and Postgres keep running. `lamina up` continues, and `lamina down` stops them."
    assert stderr.endswith(f"{says}\n\ninterrupted\n")


def _a_second_up_replaces_only_a_hanging_speed_layer(here: CommandLine, speed: SpeedProcess) -> None:
    first = speed.background.find()
    assert first is not None
    assert "the speed layer runs" in here("up").err
    assert speed.background.find() == first
    with closing(database_of(here)) as database:
        until(lambda: taken_over(database), "the speed layer has begun")
        os.kill(first.pid, signal.SIGSTOP)
        with database.begin() as connection:
            connection.exec_driver_sql("UPDATE lamina.heartbeat SET heard_at = now() - interval '10 minutes'")
    again = here("up")
    assert "has been silent for" in again.err
    assert "the speed layer is starting" in again.err
    assert not first.alive()


def _a_record_is_counted_and_archived_in_the_object_storage(here: CommandLine, spark: SparkSession, home: Path) -> None:
    file = home.parent / "events.jsonl"
    file.write_text('{"kind": "click", "n": 7}\n')
    here("ingest", "events", str(file))
    counted = '{"events": 1, "n": 7, "price": null}'
    until(lambda: here("sql", "SELECT * FROM totals", "--json").out.strip() == counted, "the new speed layer counts")
    here.over(spark)("archive")
    assert list((home / "s3" / "data" / "lamina" / "warehouse").rglob("*.parquet"))


def _a_person_reads_with_a_login_of_their_own(url: str) -> None:
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT events, current_user <> 'analyst', pg_has_role('analyst', 'SET') FROM totals")
        assert cursor.fetchall() == [(1, True, False)]
