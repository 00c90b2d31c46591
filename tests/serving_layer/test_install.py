"""A database becomes a serving layer, and an upgrade keeps its contents."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg2
import psycopg2.errors
import pytest
from alembic import command
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from lamina.configuration.settings import Settings
from lamina.operations import applying, installation
from lamina.operations.deployment import Deployment
from serving_layer.postgres import database as database_module
from serving_layer.postgres.database import Database
from serving_layer.postgres.states import RebuildKind, Stop, WriterKind
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.rebuilds import Purpose
from serving_layer.readers.analyst_limits import Limits
from serving_layer.readers.rights import Holder, in_the_way
from serving_layer.upkeep.install import install, is_installed, migrations, pending
from tests.fix_services import Services
from tests.serving_layer.world import FILES, World
from view_algebra.errors import LaminaError


def test_the_migrations_make_the_tables_that_the_code_declares(database: str) -> None:
    serving = Database(database)
    install(serving)
    with serving.begin() as connection:
        command.check(migrations(connection))
    serving.close()


def test_installing_again_changes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    assert install(world.database) == []


WRITERS = {
    "read": ("process 7 (1f) on (leap)s", WriterKind.SPEED_LAYER),
    "leapt": ("rebuild 7 (leap)", WriterKind.LEAP),
    "skipped": ("skip of orders 0:7", WriterKind.SKIP),
    "unread": (None, None),
}
"""Queries by name: the writer as revision 0029 stored it, and its kind."""

REBUILDS = [
    ("apply", "it was interrupted", rebuilds.APPLY, Stop.INTERRUPTED),
    ("apply --preview dev", "it was given up", Purpose(RebuildKind.PREVIEW, "dev"), Stop.GIVEN_UP),
    ("nightly", "no memory", rebuilds.RECOMPUTE, None),
    (None, None, rebuilds.RECOMPUTE, None),
]
"""Rebuilds in the order of their ids: key and error as revision 0029 stored them, then their meaning."""


def test_a_database_of_the_first_version_is_upgraded(database: str) -> None:
    opened = Database(database)
    with opened.begin() as connection:
        connection.execute(text("CREATE SCHEMA lamina"))
        command.upgrade(migrations(connection), "0001")
        bad = 'INSERT INTO lamina.quarantine (topic, partition, "offset", error, value)'
        connection.execute(text(f"{bad} VALUES ('t', 0, 1, 'not JSON', 'ab'), ('t', 1, 1, 'not JSON', NULL)"))
        command.upgrade(migrations(connection), "0020")
        heard = "INSERT INTO lamina.query (name, topic, topic_id, heard_at) VALUES"
        connection.execute(text(f"{heard} ('a', 't', 'x', '2026-01-01T00:00:00Z'), ('b', 't', 'x', NULL)"))
        command.upgrade(migrations(connection), "0029")
        add = "INSERT INTO lamina.query (name, topic, topic_id, writer) VALUES (:name, 't', 'x', :writer)"
        for name, (writer, _) in WRITERS.items():
            connection.execute(text(add), {"name": name, "writer": writer})
        add = (
            "INSERT INTO lamina.rebuild (views, step, state, key, error) VALUES ('{}', 'seal', 'failed', :key, :error)"
        )
        for key, error, *_ in REBUILDS:
            connection.execute(text(add), {"key": key, "error": error})
    with opened.begin() as connection:
        assert "bookkeeping" in pending(connection, Limits())
    install(opened)
    with opened.begin() as connection:
        assert pending(connection, Limits()) == []
        command.check(migrations(connection))
        assert connection.execute(text("SELECT records FROM lamina.bad_records")).all() == [(2,)]
        heard = "SELECT query FROM lamina.heartbeat WHERE heard_at = '2026-01-01T00:00:00Z'"
        assert connection.execute(text(heard)).scalars().all() == ["a"], "the last heartbeat is kept"
        assert connection.execute(text("SELECT sum(value_bytes), sum(size) FROM lamina.quarantine")).all() == [(2, 218)]
        kinds = {name: query.writer_kind for name, query in progress.queries(connection).items() if name in WRITERS}
        assert kinds == {name: kind for name, (_, kind) in WRITERS.items()}
        for id, (_, error, purpose, stopped) in enumerate(REBUILDS, 1):
            upgraded = rebuilds.get(connection, id)
            assert (upgraded.error, upgraded.purpose, upgraded.stopped) == (error, purpose, stopped)
    opened.close()


@contextmanager
def read_only(settings: Settings, services: Services) -> Iterator[Deployment]:
    """A deployment whose connections cannot write."""
    name = settings.postgres.rpartition("/")[2]
    superuser = psycopg2.connect(services.database_url(name, "postgres"))
    superuser.autocommit = True
    with superuser.cursor() as cursor:
        cursor.execute(f"ALTER ROLE lamina IN DATABASE {name} SET default_transaction_read_only = on")
        opened = Deployment(settings)
        yield opened
        opened.close()
        cursor.execute(f"ALTER ROLE lamina IN DATABASE {name} RESET default_transaction_read_only")
    superuser.close()


def test_a_plan_writes_nothing(settings: Settings, services: Services) -> None:
    with read_only(settings, services) as nothing_there:
        changes = applying.plan(nothing_there, FILES)
        assert {change.action for change in changes} == {"create"}
        assert [change.kind for change in changes[:2]] == ["database", "source"]
    world = World(Database(settings.postgres))
    install(world.database)
    world.deploy()
    other = replace(settings, limits=Limits(connections=7))
    with read_only(other, services) as deployed:
        [first, *rest] = applying.plan(deployed, FILES)
        assert (first.kind, first.action) == ("database", "update")
        assert "limits" in first.effect
        assert {change.action for change in rest} == {"nothing"}
    world.database.close()


def test_a_refused_install_creates_nothing(settings: Settings) -> None:
    opened = Deployment(settings)
    with pytest.raises(LaminaError):
        applying.apply(opened, {"wrong.sql": "CREATE VIEW v AS SELECT nothing FROM nowhere"})
    with opened.database.begin() as connection:
        assert not is_installed(connection)
    installation.install(opened)
    with opened.database.begin() as connection:
        connection.execute(text("UPDATE lamina.alembic_version SET version_num = '9999'"))
    with pytest.raises(LaminaError, match="newer Lamina"):
        installation.install(opened)
    opened.close()


def test_installing_never_changes_a_password_that_exists(settings: Settings, services: Services) -> None:
    assert settings.analyst is not None
    wrong = replace(settings, analyst=settings.analyst.replace("analyst:", "analyst:not"))
    opened = Deployment(wrong)
    installation.install(opened)
    psycopg2.connect(settings.analyst).close()
    opened.close()
    superuser = psycopg2.connect(services.database_url("postgres", "postgres"))
    superuser.autocommit = True
    with superuser.cursor() as cursor:
        cursor.execute("ALTER ROLE analyst PASSWORD 'changed by somebody who has it'")
    superuser.close()
    opened = Deployment(settings)
    assert installation.set_password(opened) == "analyst"
    opened.close()
    psycopg2.connect(settings.analyst).close()


def test_a_reader_with_a_forgotten_transaction_blocks_nobody(
    world: World, settings: Settings, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PATIENCE_SECONDS", 1.0)
    name = settings.postgres.rpartition("/")[2]
    forgetful = psycopg2.connect(services.database_url(name, "analyst"))
    opened = Deployment(settings)
    with forgetful.cursor() as cursor:
        cursor.execute("SELECT * FROM lamina.freshness, lamina.offsets, sums")
        installation.install(opened)  # nothing has changed
        assert applying.plan(opened, FILES)
        with world.database.begin() as connection:  # as if another version had installed the view
            connection.execute(
                text("UPDATE lamina.installed SET fingerprint = '' WHERE part = 'VIEW lamina.freshness'")
            )
        other = psycopg2.connect(services.database_url(name, "analyst"), options="-c lock_timeout=150ms")
        with reading(other, "lamina.freshness"), pytest.raises(LaminaError, match="while a reader holds") as raised:
            installation.install(opened)
        assert "analyst" in str(raised.value)
        forgetful.rollback()
        installation.install(opened)
        other.close()
    opened.close()
    forgetful.close()


def test_a_reader_whose_select_runs_is_named(world: World, services: Services) -> None:
    reader = psycopg2.connect(services.database_url(str(world.database.url.database), "analyst"))
    with ThreadPoolExecutor(1) as thread, reader.cursor() as cursor:
        runs = thread.submit(cursor.execute, "SELECT count(*), pg_sleep(60) FROM sums")
        holders: list[Holder] = []
        while not holders and not runs.done():
            with world.database.begin() as connection:
                holders = in_the_way(connection)
        reader.cancel()
        with pytest.raises(psycopg2.errors.QueryCanceled):
            runs.result()
    reader.close()
    [holder] = holders
    assert holder.reads
    assert "has been running a SELECT for " in str(holder)


def test_a_view_held_by_a_reader_is_renewed_once_it_is_free_and_nobody_waits(
    world: World, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "PATIENCE_SECONDS", 0.5)
    url = services.database_url(str(world.database.url.database), "analyst")
    holder, other = psycopg2.connect(url), psycopg2.connect(url, options="-c lock_timeout=150ms")
    world.files["sums.sql"] = world.files["sums.sql"].replace("VIEW sums AS", "VIEW sums COMMENT 'renewed' AS")
    with holder.cursor() as cursor:
        cursor.execute("SELECT * FROM sums")
        with reading(other, "sums"), pytest.raises(OperationalError, match="lock timeout"):
            world.database.retrying(world.apply)
        with world.database.begin() as connection:
            assert len(in_the_way(connection)) == 1
        holder.rollback()
        world.database.retrying(world.apply)
        cursor.execute("SELECT obj_description('analytics.sums'::regclass)")
        assert cursor.fetchall() == [("renewed",)]
    holder.close()
    other.close()


@contextmanager
def reading(connection: psycopg2.extensions.connection, view: str) -> Iterator[None]:
    """Reads a view in a loop during the block. Fails if two reads wait as long as their session waits for a lock.

    One may, on a machine that stands still for a moment.
    """
    stop, failed = threading.Event(), []

    def run() -> None:
        while not stop.is_set():
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute(f"SELECT * FROM {view}")
            except psycopg2.Error as error:
                failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert len(failed) < 2, failed


def test_the_analyst_reads_the_views_and_nothing_else(world: World, services: Services) -> None:
    name = world.database.url.database
    assert name is not None
    connection = psycopg2.connect(services.database_url(name, "analyst"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")  # anybody may
        cursor.execute("SELECT * FROM sums")
        cursor.execute("SELECT view, seconds_behind FROM lamina.freshness")
        cursor.execute("SELECT topic, error, records FROM lamina.bad_records")
        cursor.execute("SELECT obj_description('analytics'::regnamespace, 'pg_namespace')")
        assert "idle_in_transaction_session_timeout" in cursor.fetchall()[0][0]
        cursor.execute("""SELECT relname FROM pg_class WHERE relnamespace = 'lamina'::regnamespace AND relkind = 'v'
                          AND has_table_privilege(oid, 'SELECT') AND obj_description(oid, 'pg_class') IS NULL""")
        assert cursor.fetchall() == [], "each view that readers may read says what it shows"
        for refused in (
            "SELECT * FROM lamina.query",
            "SELECT * FROM lamina.quarantine",
            "SELECT * FROM lamina.bad_values",
            "DELETE FROM sums",
            "CREATE TABLE analytics.t (x int)",
            "CREATE TABLE public.t (x int)",
            "CREATE TEMPORARY TABLE t (x int)",
        ):
            with pytest.raises(psycopg2.Error, match=r"permission denied|cannot delete"):
                cursor.execute(refused)
    connection.close()


def test_a_database_of_another_encoding_is_refused(services: Services, serving: Database) -> None:
    with serving.autocommit() as connection:
        connection.execute(text("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
    latin = Database(services.database_url("latin"))
    with pytest.raises(LaminaError, match="cannot hold every text"):
        install(latin)
    latin.close()


def test_a_wrong_password_raises_an_error_with_the_way_out(serving: Database) -> None:
    wrong = Database(serving.url.set(password="wrong").render_as_string(hide_password=False))
    with pytest.raises(LaminaError, match="Postgres refuses the login") as caught, wrong.begin():
        pass
    assert "wrong" not in str(caught.value).replace("password", "")
    wrong.close()
