"""Readers on a physical standby see rows that are true below the standby's own offsets, or get an error."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection

from lamina.configuration.settings import Settings
from lamina.console.server import Console
from lamina.operations import installation
from lamina.operations.deployment import Deployment
from lamina.reports import statuses
from lamina.reports.receipt_lines import line_of
from lamina.services import postgres
from lamina.services.own_processes import RunningProcess, free_port, spawn
from lamina.terminal.failures import as_lamina_error
from serving_layer.monitoring import alarms, deployment_alarms
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.postgres.database import Database, PostgresError
from serving_layer.readers.analyst import select
from serving_layer.readers.receipts import Receipt
from serving_layer.upkeep import dropping
from serving_layer.upkeep.install import install
from tests.fix_services import Services, new_home, remove_home
from tests.serving_layer.world import World, assert_invariant, shown
from view_algebra.errors import LaminaError

PATIENCE = 60.0
"""Seconds."""

DELAY = 1.0
"""Seconds for which the standby lets a reader delay its replay. The default is 30."""


@dataclass
class Pair:
    """A primary with a world on it, and a standby."""

    home: Path
    kafka: str
    primary: int
    standby: int = field(default_factory=free_port)
    process: RunningProcess | None = None

    @property
    def settings(self) -> Settings:
        """Settings of a reader of the standby. The brokers have none of the topics."""
        owner, analyst = (postgres.url(self.home, self.standby, role=role) for role in ("lamina", "analyst"))
        return Settings(owner, analyst, self.kafka, str(self.home / "warehouse"), "local[2]", self.home, False)

    @property
    def log(self) -> Path:
        """The standby's log."""
        return self.home / "logs" / "standby.log"

    def copy(self) -> None:
        """Makes the standby's data folder of the primary's, with a slot that keeps its log."""
        folder, owner = self.home / "standby", postgres.admit(self.home)
        folder.mkdir(mode=0o700)
        if owner is not None:
            shutil.chown(folder, owner.uid, owner.gid)
        words = ["--checkpoint=fast", "--write-recovery-conf", "--create-slot", "--slot=readers", f"--pgdata={folder}"]
        superuser = postgres.url(self.home, self.primary, role="postgres")
        subprocess.run(
            [postgres._programs() / "pg_basebackup", *words, "--dbname", superuser],
            check=True,
            cwd="/",
            **(owner.arguments() if owner else {}),
        )

    def start(self, **settings: str) -> None:
        """Starts the standby. Returns once it has replayed everything the primary has committed."""
        options = {"wal_receiver_status_interval": "1s", "max_standby_streaming_delay": f"{DELAY}s", **settings}
        command = [str(postgres._programs() / "postgres"), "-D", str(self.home / "standby")]
        for name, value in {**postgres.SETTINGS, "port": str(self.standby), **options}.items():
            command += ["-c", f"{name}={value}"]
        marker = str(self.home / "standby")
        self.process, _ = spawn(command, log=self.log, marker=marker, cwd=Path("/"), owner=postgres.admit(self.home))
        until(lambda: postgres.answers(self.home, self.standby))
        self.replayed()

    def stop(self) -> None:
        if self.process is not None:
            postgres.stop(self.process)
            self.process = None

    def replayed(self) -> None:
        """Returns when the standby shows everything that is committed now."""
        [[end]] = self.ask(self.primary, "SELECT pg_current_wal_insert_lsn()")
        until(lambda: self.ask(self.standby, f"SELECT pg_last_wal_replay_lsn() >= '{end}'") == [(True,)])

    def ask(self, port: int, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a superuser's statement."""
        with closing(psycopg2.connect(postgres.url(self.home, port, role="postgres"))) as superuser:
            superuser.autocommit = True
            with superuser.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not so after {PATIENCE:.0f} s"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def pair(services: Services) -> Iterator[Pair]:
    home = new_home("standby")
    primary = postgres.start(home, port=None)
    pair = Pair(home, services.addresses.kafka, primary.port)
    try:
        database = Database(postgres.url(home, primary.port))
        install(database)
        database.close()
        pair.copy()
        yield pair
    finally:
        pair.stop()
        postgres.stop(primary.process)
        remove_home(home)


@pytest.fixture
def world(pair: Pair) -> Iterator[World]:
    """Views with two records on the primary, independent of earlier tests."""
    database = Database(postgres.url(pair.home, pair.primary))
    with database.begin() as opened:
        opened.exec_driver_sql("DROP SCHEMA IF EXISTS analytics, cells, realtime, lamina, spark CASCADE")
    install(database)
    primary_world = World(database)
    primary_world.deploy()
    primary_world.append("a", 0, ("x", 1), ("y", 2))
    primary_world.advance("a")
    yield primary_world
    assert_invariant(primary_world)
    pair.stop()
    database.close()


@contextmanager
def standby_of(pair: Pair) -> Iterator[Database]:
    database = Database(pair.settings.postgres)
    yield database
    database.close()


def test_a_standby_shows_what_its_primary_showed_and_nothing_writes_there(pair: Pair, world: World) -> None:
    pair.start()
    with standby_of(pair) as database:
        there = replace(world, database=database)
        for number in range(20):
            world.append("a", number % 2, ("x", number), (None, number))
            world.advance("a")
            assert_invariant(there)  # below the progress that has arrived there, whichever that is
        pair.replayed()
        assert shown(there, "sums") == shown(world, "sums")
    settings = pair.settings
    here, of_primary = (
        Receipt.read(line_of(url, "sums"))
        for url in (settings.reader(), postgres.url(pair.home, pair.primary, role="analyst"))
    )
    assert (here.digest, here.sources) == (of_primary.digest, of_primary.sources)
    assert select(settings.reader(), "SELECT sum(next_offset) FROM lamina.offsets WHERE view = 'sums'")[1] == [(42,)]
    assert len(select(settings.reader(), "SELECT * FROM lamina.freshness")[1]) == 3
    deployment = Deployment(settings)
    status = statuses.read_status(deployment)
    assert status.standby is not None
    assert status.standby < PATIENCE
    assert [view.state.name for view in status.views] == ["both", "counts", "sums"]
    with pytest.raises(PostgresError) as refused:
        installation.set_password(deployment)
    assert as_lamina_error(refused.value).what == "This Postgres is a standby, which accepts no writes"
    console = Console(deployment, "127.0.0.1", 0)
    thread = threading.Thread(target=console.run)
    thread.start()
    try:
        for path in ("/", "/view/sums", "/view/sums/receipt", "/view/sums/cost", "/source/a", "/metrics"):
            assert asked(console.port, path).status == 200, path
        assert b"42" in asked(console.port, "/sql", "query=SELECT+c+FROM+counts").read()
    finally:
        console.stop()
        thread.join()
        deployment.close()


def asked(port: int, path: str, form: str | None = None) -> http.client.HTTPResponse:
    browser = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
    browser.request("POST" if form else "GET", path, form, headers)
    return browser.getresponse()


def test_a_lagging_standby_and_an_unused_slot_raise_alarms_on_both_servers(pair: Pair, world: World) -> None:
    def told_by(database: Database) -> list[str]:
        with database.snapshot() as opened:
            return alarms.alarms(opened, {}, Thresholds(after=0.5))

    pair.start()
    with standby_of(pair) as database:
        pair.ask(pair.standby, "SELECT pg_wal_replay_pause()")
        world.append("a", 0, ("x", 3))
        world.advance("a")
        lags = re.compile(r"this server is a standby and \d+ s behind its primary: a long SELECT here may hold it")
        until(lambda: any(map(lags.match, told_by(database))))
        until(lambda: any(alarm.startswith("standby walreceiver at 127.0.0.1") for alarm in told_by(world.database)))
        pair.ask(pair.standby, "SELECT pg_wal_replay_resume()")
        pair.replayed()
        with database.snapshot() as opened:
            assert deployment_alarms.late_standbys(opened, Thresholds(after=60)) == []
    pair.stop()
    until(
        lambda: any(
            alarm.startswith("replication slot readers has had no standby") for alarm in told_by(world.database)
        )
    )


def reader(pair: Pair) -> connection:
    """A session on the standby in a snapshot that has read nothing yet of a view."""
    opened = psycopg2.connect(pair.settings.reader(), options="-c search_path=analytics")
    opened.set_session(isolation_level="REPEATABLE READ", readonly=True)
    read(opened, "SELECT 1 FROM lamina.offsets")
    return opened


def read(session: connection, query: str) -> list[tuple[Any, ...]]:
    with session.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


SUMS = "SELECT * FROM sums ORDER BY k"


@pytest.mark.parametrize("feedback", ["off", "on"])
def test_a_hand_over_ends_a_long_snapshot_on_a_standby_unless_it_gives_feedback(
    pair: Pair, world: World, feedback: str
) -> None:
    pair.start(hot_standby_feedback=feedback)
    with closing(reader(pair)) as long:
        before = read(long, SUMS)
        [[xmin]] = read(long, "SELECT pg_snapshot_xmin(pg_current_snapshot())")
        if feedback == "on":  # the primary knows of the snapshot
            held = f"SELECT true FROM pg_replication_slots WHERE xmin::text::bigint <= {xmin}"
            until(lambda: pair.ask(pair.primary, held) == [(True,)])
        world.append("a", 0, ("x", 10), ("z", 1))
        world.advance("a")
        id = world.open("sums")
        world.load(id)
        world.go_live(id)
        world.hand_over("sums", id)
        for _ in range(2):  # an update leaves what a vacuum may remove
            world.append("a", 0, ("x", 1))
            world.advance("a")
        for (place,) in pair.ask(pair.primary, "SELECT place FROM lamina.generation_cells"):
            pair.ask(pair.primary, f"VACUUM {place}")
        pair.replayed()
        if feedback == "on":
            assert read(long, SUMS) == before == [("x", 1, 1), ("y", 1, 2)]
        else:
            with pytest.raises(psycopg2.OperationalError):
                read(long, SUMS)
            assert "terminating connection due to conflict with recovery" in pair.log.read_text()
    assert select(pair.settings.reader(), SUMS)[1] == shown(world, "sums")


def test_a_change_of_version_ends_readers_of_its_old_cells_and_shows_them_no_wrong_row(
    pair: Pair, world: World
) -> None:
    pair.start(hot_standby_feedback="on")
    refused: list[LaminaError] = []

    def ask() -> None:
        try:
            select(pair.settings.reader(), "SELECT pg_sleep(60) FROM counts")
        except LaminaError as error:
            refused.append(error)

    asking = threading.Thread(target=ask)
    with closing(reader(pair)) as long, closing(reader(pair)) as late:
        read(long, "SELECT * FROM counts")
        asking.start()
        until(lambda: bool(pair.ask(pair.standby, "SELECT true FROM pg_stat_activity WHERE wait_event = 'PgSleep'")))
        for newer in ("min", "max"):  # the version before the newest is kept, for a rollback
            world.change(counts=f"CREATE VIEW counts AS SELECT count(*) AS c, {newer}(n) AS s FROM a;")
        until(lambda: bool(dropping.drop_unused(world.database)))
        pair.replayed()
        asking.join()
        with pytest.raises(psycopg2.OperationalError):
            read(long, "SELECT * FROM counts")
        with pytest.raises(psycopg2.Error, match="counts was published after this transaction began to read"):
            read(late, "SELECT * FROM counts")
    [error] = refused
    assert "conflict with recovery" in error.what
    assert "max_standby_streaming_delay" in (error.way_out or "")
    assert select(pair.settings.reader(), "SELECT * FROM counts")[1] == shown(world, "counts")
