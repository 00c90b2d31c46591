"""A reader cannot delay, change or see anything beyond the views."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from lamina.services import postgres
from serving_layer.catalog import lookup
from serving_layer.monitoring.deployment_alarms import changed_settings
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.postgres import work_locks
from serving_layer.postgres.database import Database, is_unavailable, with_login
from serving_layer.promise import generations, overwriting, progress, rebuilds
from serving_layer.promise.micro_batch import Outcome
from serving_layer.readers import rights, views
from serving_layer.readers.analyst import select, selected
from serving_layer.readers.analyst_limits import Limits
from serving_layer.upkeep import dropping
from serving_layer.upkeep.install import install, pending
from tests.fix_services import Services
from tests.serving_layer.world import World
from view_algebra.errors import LaminaError

GOLDEN = Path(__file__).with_name("what_everybody_may_do.txt")

EVERYBODY = """
SELECT what FROM (
  SELECT 'execute ' || proname FROM pg_proc
  WHERE provolatile = 'v' AND has_function_privilege('analyst', oid, 'EXECUTE')
    AND proname !~ '^(pg_stat_get|binary_upgrade|pg_import|pg_.*_size$|random|uuidv|currtid|brin|gin)'
    AND prorettype NOT IN (
      'trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype, 'language_handler'::regtype,
      'index_am_handler'::regtype, 'table_am_handler'::regtype, 'fdw_handler'::regtype)
  UNION SELECT 'connect ' || CASE datname WHEN current_database() THEN 'here' ELSE datname END FROM pg_database
    WHERE has_database_privilege('analyst', oid, 'CONNECT')
    AND datallowconn AND (datname = current_database() OR datname !~ 'test_|latin')
  UNION SELECT 'make temporary tables' WHERE has_database_privilege('analyst', current_database(), 'TEMPORARY')
  UNION SELECT 'create schemas' WHERE has_database_privilege('analyst', current_database(), 'CREATE')
  UNION SELECT 'create in ' || nspname FROM pg_namespace WHERE has_schema_privilege('analyst', oid, 'CREATE')
  UNION SELECT 'use schema ' || nspname FROM pg_namespace WHERE has_schema_privilege('analyst', oid, 'USAGE')
  UNION SELECT 'write functions and DO blocks in ' || lanname FROM pg_language
    WHERE lanpltrusted AND has_language_privilege('analyst', oid, 'USAGE')
  UNION SELECT 'create in tablespace ' || spcname FROM pg_tablespace
    WHERE has_tablespace_privilege('analyst', oid, 'CREATE') AND spcname <> 'pg_default'
  UNION SELECT 'write ' || oid::regclass FROM pg_class
    WHERE relkind IN ('r', 'v', 'm', 'p', 'f')
    AND has_table_privilege('analyst', oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
  UNION SELECT 'read ' || oid::regclass FROM pg_class
    WHERE relkind IN ('r', 'v', 'm', 'p', 'f', 'S') AND relnamespace::regnamespace::text !~ '^(pg_|information_)'
    AND CASE relkind WHEN 'S' THEN has_sequence_privilege('analyst', oid, 'SELECT, USAGE, UPDATE')
      ELSE has_table_privilege('analyst', oid, 'SELECT') END
  UNION SELECT 'use server ' || srvname FROM pg_foreign_server WHERE has_server_privilege('analyst', oid, 'USAGE')
  UNION SELECT 'set parameter ' || parname FROM pg_parameter_acl
    WHERE has_parameter_privilege('analyst', parname, 'SET')
) AS all_of_it (what) ORDER BY what COLLATE "C"
"""
"""Every right and function with an effect that the role `analyst` has."""


def test_an_analyst_has_exactly_the_listed_rights(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    as_superuser = Database(services.database_url(name, "postgres"))
    with as_superuser.begin() as connection:
        savepoint = connection.begin_nested()
        connection.execute(text("REVOKE pg_monitor, pg_read_all_stats FROM lamina; SET LOCAL ROLE lamina"))
        assert [clause.partition(",")[0] for clause in rights.unguarded(connection)] == [
            "readers may take advisory locks and make large objects",
            "Lamina does not see the sessions of other roles",
        ]
        savepoint.rollback()
    as_superuser.close()
    postgres.guard(services.database_url(name, "postgres"))
    with world.database.begin() as connection:
        assert rights.unguarded(connection) == []
    with psycopg2.connect(services.database_url(name, "postgres")) as superuser, superuser.cursor() as cursor:
        cursor.execute(EVERYBODY)
        allowed = "".join(f"{what}\n" for (what,) in cursor.fetchall())
    superuser.close()
    assert allowed == GOLDEN.read_text(), "review the new lines, and revoke the right or add it to the list"


def test_limits_hold_for_every_login_and_not_for_the_owner(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    postgres.guard(services.database_url(name, "postgres"))
    install(world.database, limits=Limits.read("statement_timeout=200ms, temp_file_limit=1MB"))
    superuser = psycopg2.connect(services.database_url(name, "postgres"))
    superuser.autocommit = True
    ann = services.database_url(name, "analyst").replace("//analyst:", "//ann:")
    password = ann.partition("//ann:")[2].partition("@")[0]
    with superuser.cursor() as cursor:
        cursor.execute(f"CREATE ROLE ann LOGIN PASSWORD '{password}' IN ROLE analyst")
        try:
            for login in (ann, services.database_url(name, "analyst")):
                reader = psycopg2.connect(login)
                with reader.cursor() as reads:
                    with pytest.raises(psycopg2.errors.QueryCanceled, match="statement timeout"):
                        reads.execute("SELECT pg_sleep(10)")
                    reader.rollback()
                    reads.execute("SET statement_timeout = 0")  # every login may, unlike the next statement
                    with pytest.raises(psycopg2.errors.ConfigurationLimitExceeded, match="temp_file_limit"):
                        reads.execute(
                            "SET work_mem = '64kB'; SELECT i FROM generate_series(1, 1000000) AS i ORDER BY -i"
                        )
                reader.close()
        finally:
            cursor.execute("DROP ROLE ann")
            cursor.execute("SELECT pg_sleep(0.21)")  # the superuser is also exempt
    superuser.close()
    owner = psycopg2.connect(services.database_url(name))
    with owner.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.21)")
    owner.close()


AGAINST_THE_OTHERS = [
    "SET default_transaction_read_only = off",
    "ALTER ROLE analyst SET search_path = 'pg_temp'",
    "ALTER ROLE analyst SET timezone = 'Asia/Tokyo'",
    "ALTER ROLE analyst IN DATABASE {here} SET statement_timeout = 0",
    "ALTER ROLE analyst IN DATABASE {here} SET default_transaction_read_only = off",
]
"""Statements that Postgres allows to anybody who logs in as `analyst`."""


def test_settings_that_a_reader_gave_the_shared_login_are_an_alarm_and_reset(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    with world.database.begin() as connection:
        assert changed_settings(connection, Thresholds()) == []
    superuser = psycopg2.connect(services.database_url(name, "postgres"))
    superuser.autocommit = True
    superuser.cursor().execute("ALTER ROLE analyst SET log_min_duration_statement = '1s'")  # refused to readers
    reader = psycopg2.connect(services.database_url(name, "analyst"))
    reader.autocommit = True
    try:
        for statement in AGAINST_THE_OTHERS:
            reader.cursor().execute(statement.format(here=name))
        with world.database.begin() as connection:
            [alarm] = changed_settings(connection, Thresholds())
            [part] = pending(connection, Limits())
        changed = "TimeZone, search_path, default_transaction_read_only, statement_timeout"
        assert part == f"settings of the role analyst ({changed})"
        assert alarm.startswith(
            "the role analyst has settings that Lamina did not set, and each of its sessions begins with them:"
            " TimeZone = Asia/Tokyo, search_path = pg_temp, default_transaction_read_only = off, statement_timeout = 0"
            " (`lamina apply` resets them;"
        )
        install(world.database)
        with world.database.begin() as connection:
            assert (changed_settings(connection, Thresholds()), pending(connection, Limits())) == ([], [])
        other = psycopg2.connect(services.database_url(name, "analyst"))
        with other.cursor() as cursor:
            cursor.execute("SHOW search_path")
            assert cursor.fetchall() == [("analytics, public",)]
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchall() == [("10min",)]
            with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
                cursor.execute("CREATE TABLE public.t (n INT)")
        other.close()
        reader.cursor().execute(f"ALTER ROLE analyst IN DATABASE {name} RESET ALL")
        with world.database.begin() as connection:
            [alarm] = changed_settings(connection, Thresholds())
        assert "default_transaction_read_only = the default" in alarm
        install(world.database)
    finally:
        superuser.cursor().execute("ALTER ROLE analyst RESET ALL")
    reader.close()
    superuser.close()


def test_the_login_of_a_person_reads_views_and_cannot_change_the_shared_role(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    try:
        for password, new in (("first", True), ("second", False)):
            with world.database.begin() as connection:
                assert rights.make_login(connection, "Ann O'Neill", "analyst", password) is new
            url = with_login(services.database_url(name), "Ann O'Neill", password)
            login = psycopg2.connect(url)
            login.autocommit = True
            with login.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM sums")
                assert cursor.fetchall() == [(1,)]
                for forbidden in (
                    "SET ROLE analyst",
                    "ALTER ROLE analyst SET search_path = 'pg_temp'",
                    "ALTER ROLE analyst PASSWORD 'mine'",
                    "INSERT INTO public.t VALUES (1)",
                ):
                    with pytest.raises(psycopg2.errors.Error, match=r"permission denied|does not exist"):
                        cursor.execute(forbidden)
            login.close()
        granted = f"""GRANT CREATE, TEMPORARY ON DATABASE {name} TO "Ann O'Neill" """
        with world.database.begin() as connection:
            connection.execute(text(granted))
        login = psycopg2.connect(url)
        with login, login.cursor() as cursor:  # as dbt does for an incremental model: docs/reading.md
            cursor.execute("CREATE SCHEMA marts; CREATE TABLE marts.sums AS SELECT * FROM sums")
            cursor.execute("CREATE TEMPORARY TABLE newer AS SELECT * FROM sums; INSERT INTO marts.sums TABLE newer")
            # A session that has ended may keep its temporary tables for a moment, and with them its role.
            cursor.execute("DROP TABLE newer; DROP SCHEMA marts CASCADE")
        login.close()
        for taken in ("analyst", "lamina", "lamina_writer", "postgres", "pg_monitor", "x" * 64):
            with (
                pytest.raises(LaminaError, match="cannot be the login of a reader"),
                world.database.begin() as connection,
            ):
                rights.make_login(connection, taken, "analyst", "mine")
    finally:
        with world.database.begin() as connection:
            if connection.execute(text("""SELECT to_regrole('"Ann O''Neill"') IS NOT NULL""")).scalar_one():
                connection.execute(text(f"""REVOKE ALL ON DATABASE {name} FROM "Ann O'Neill" """))
                connection.execute(text("""DROP ROLE "Ann O'Neill" """))


def test_a_reader_without_a_free_connection_gets_a_clear_error(world: World, services: Services) -> None:
    """The error does not advise starting services that run."""
    url = services.database_url(str(world.database.url.database), "analyst")
    install(world.database, limits=Limits(connections=1))
    only = psycopg2.connect(url)
    try:
        with pytest.raises(LaminaError, match="Postgres has no free connection") as refused, selected(url, "SELECT 1"):
            pass
        assert 'too many connections for role "analyst"' in refused.value.evidence
        assert "connections=" in refused.value.way_out
        assert "Start" not in refused.value.way_out
        assert is_unavailable(refused.value), "a caller that can wait tries again"
    finally:
        only.close()
        install(world.database)
    other = services.database_url("postgres", "analyst")
    with pytest.raises(LaminaError, match="Postgres refuses the login") as refused, selected(other, "SELECT 1"):
        pass
    assert "permission denied for database" in refused.value.evidence
    assert refused.value.way_out.startswith("Correct LAMINA_ANALYST")
    assert "`lamina password` gives" in refused.value.way_out


def test_invalid_limits_are_refused() -> None:
    other_units = ("connections=5min", "statement_timeout=5GB", "temp_file_limit=3min")
    for words in ("statement_timeout", "statement_timeout=soon", "patience=1s", *other_units):
        with pytest.raises(LaminaError, match="not a list of limits"):
            Limits.read(words)


def tables(connection: psycopg2.extensions.connection, like: str) -> list[str]:
    """The names of the existing tables of cells."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname LIKE %s"
            " AND relnamespace IN ('lamina'::regnamespace, 'cells'::regnamespace, 'realtime'::regnamespace)",
            [like],
        )
        return [name for (name,) in cursor.fetchall()]


def test_no_step_that_locks_a_query_waits_for_a_reader_of_every_table(world: World, services: Services) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    new = world.open("sums")
    world.append("a", 0, ("x", 2))
    world.advance("a")
    world.load(new)
    dump = psycopg2.connect(services.database_url(str(world.database.url.database), "postgres"))

    def dumped() -> None:  # as pg_dump does
        with dump.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {', '.join(tables(dump, '%'))} IN ACCESS SHARE MODE")

    dumped()
    with world.database.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
        generations.go_live(connection, [new])
    with world.database.begin() as connection:
        now = lookup.get(connection, lookup.published(connection)["sums"])
        overwriting.note(connection, lookup.get(connection, new), now)
    dumped()
    with world.database.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
        generations.hand_over(connection, {"sums": new})
    dropping.drop_unused(world.database)
    assert len(tables(dump, "sums%_g%_0") + tables(dump, "differing%")) == 3, "they are read"
    dump.rollback()
    dropping.drop_unused(world.database)
    assert tables(dump, "sums%_g%_0") + tables(dump, "differing%") == []
    dump.close()


def test_a_reader_cannot_take_the_locks_of_a_rebuild_and_of_the_archive(world: World, services: Services) -> None:
    name = str(world.database.url.database)
    reader = psycopg2.connect(services.database_url(name, "analyst"))
    reader.set_session(readonly=False, autocommit=True)
    with reader.cursor() as cursor:
        for lock in ("lamina.rebuilding", "lamina.archiving", "lamina.rebuild"):
            for mode in ("ACCESS SHARE", "SHARE UPDATE EXCLUSIVE", "EXCLUSIVE"):
                with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                    cursor.execute(f"BEGIN; LOCK TABLE {lock} IN {mode} MODE")
                cursor.execute("ROLLBACK")
    reader.close()
    with rebuilds.in_one_process(world.database), work_locks.archiving(world.database):
        with world.database.begin() as connection:
            assert rebuilds.is_run_by_a_process(connection)
            kept = text(
                "SELECT count(*), count(backend_xid), count(backend_xmin) FROM pg_stat_activity"
                " WHERE state = 'idle in transaction' AND datname = current_database()"
            )
            assert connection.execute(kept).one() == (2, 0, 0), "the lock's transaction does not hold back vacuum"
        with pytest.raises(LaminaError, match="Another rebuild"), rebuilds.in_one_process(world.database):
            pass
    with world.database.begin() as connection:
        assert not rebuilds.is_run_by_a_process(connection)
        assert not connection.execute(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")).scalar_one()


def test_an_interrupt_during_the_statement_that_takes_a_lock_leaves_no_lock(world: World) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for holding in (work_locks.archiving, rebuilds.in_one_process):
        event.listen(world.database.engine, "after_cursor_execute", interrupt)
        try:
            with pytest.raises(KeyboardInterrupt), holding(world.database):
                pytest.fail("it was interrupted before the block")
        finally:
            event.remove(world.database.engine, "after_cursor_execute", interrupt)
        with holding(world.database):
            pass


def test_a_process_that_freezes_in_a_commit_loses_its_lock(world: World) -> None:
    world.append("a", 0, ("x", 1))
    other = Database(world.database.url.render_as_string(hide_password=False))

    def commit() -> None:
        with other.begin() as frozen:
            assert frozen.execute(text("SHOW idle_in_transaction_session_timeout")).scalar_one() == "1min"
            frozen.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
            progress.lock(frozen, ["a"])
            assert world.advance("a") is Outcome.APPLIED  # waits for the lock
            frozen.execute(text("SELECT 1"))

    with pytest.raises(OperationalError) as raised:
        commit()
    assert is_unavailable(raised.value), "the writer begins again at progress"
    other.close()


def test_a_process_that_freezes_while_sending_cells_holds_no_lock(world: World) -> None:
    world.append("a", 0, ("x", 1))
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    gated = [replace(staged, ddl=f"{staged.ddl}; LOCK TABLE lamina.archiving") for staged in batch.staged]
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(world.commit(replace(batch, staged=gated))))
    with world.database.begin() as gate:
        gate.execute(text("LOCK TABLE lamina.archiving"))
        thread.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'lamina.archiving'::regclass")
        while not gate.execute(waiting).scalar_one():
            pass
        assert world.advance("a") is Outcome.APPLIED
    thread.join()
    assert outcomes == [Outcome.ALREADY_COUNTED]


def test_a_snapshot_from_before_the_first_publication_never_shows_part_of_a_view(
    world: World, services: Services
) -> None:
    world.append("a", 0, *((f"k{n}", n) for n in range(10)))
    world.advance("a")
    ready = world.begin_change(fresh="CREATE VIEW fresh AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;")
    world.load(ready["fresh"])
    reader = psycopg2.connect(services.database_url(str(world.database.url.database), "analyst"))
    reader.set_session(isolation_level="REPEATABLE READ")
    with reader.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sums")
        world.append("a", 0, ("k1", 1), ("new", 1))
        world.advance("a")
        world.go_live(ready["fresh"])
        world.end_change(ready)
        with pytest.raises(psycopg2.Error, match="fresh was published after this transaction began"):
            cursor.execute("SELECT * FROM fresh")
        reader.rollback()
        cursor.execute("SELECT count(*) FROM fresh")
        assert cursor.fetchall() == [(11,)]
    reader.close()


HOSTILE = {
    "extra_float_digits": "-15",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "America/St_Johns",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "transform_null_equals": "on",
    "search_path": "pg_temp",
}
"""Settings that any reader may set, and that some drivers set."""

EVALUATED = """
SELECT array_agg(encode(float8send(spark.round(x, 2)), 'hex')),
  array_agg(encode(float8send(spark.bround(x, 1)), 'hex')),
  array_agg(spark.decimal(x, 38, 17)::text), array_agg(spark.format_number(spark.digits(x), 3)),
  array_agg(encode(float8send(spark.power(-x, 3)), 'hex')), array_agg(spark.to_text(at)), array_agg(spark.json(at)),
  array_agg(spark.whole(' 12.9' || E'\\t', 1000)), array_agg(encode(float8send(spark.to_double('0x1.8p1 ')), 'hex')),
  array_agg(encode(float8send(spark.to_double('1a5')), 'hex')), array_agg(spark.to_boolean(E'\\tyes ')),
  array_agg(spark.sha2(x::numeric::text, 256)), array_agg(spark.days(at::date, at::date + 2)::text),
  array_agg(spark.make_date(2024, 2, 29) - date '2000-01-01'),
  array_agg(encode(float8send(spark.months_between(at, '2000-01-31')), 'hex'))
FROM unnest(ARRAY[0.1 + 0.2, 2.675, 1e15 / 3, 123456789.123456789, 5e-324, 1.7976931348623157e308]::float8[]) AS x,
  (VALUES (timestamp '2024-03-04 05:06:07.8')) AS given (at)
"""


def test_the_rows_of_a_view_do_not_depend_on_the_settings_of_its_reader(world: World, services: Services) -> None:
    reader = psycopg2.connect(services.database_url(str(world.database.url.database), "analyst"))
    with reader.cursor() as cursor:
        cursor.execute(EVALUATED)
        expected = cursor.fetchall()
        for name, value in HOSTILE.items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
            cursor.execute(EVALUATED)
            assert cursor.fetchall() == expected, name
    reader.close()


def test_a_reader_does_not_wait_behind_a_change_that_waits_for_another_reader(world: World, services: Services) -> None:
    """One reader keeps a transaction open after reading a view, and `apply` replaces that view. Another reads it."""
    name = str(world.database.url.database)
    world.database.retrying(views.serve)
    with world.database.begin() as connection:
        connection.execute(text("UPDATE lamina.view SET served = '' WHERE name = 'sums'"))
    holding = psycopg2.connect(services.database_url(name, "analyst"))
    holding.cursor().execute("SELECT * FROM analytics.sums")
    other = psycopg2.connect(services.database_url(name, "analyst"), options="-c lock_timeout=500ms")
    other.autocommit = True
    with ThreadPoolExecutor(1) as pool:
        renewed = pool.submit(world.database.retrying, views.serve)
        waits, end = 0, time.monotonic() + 2
        with other.cursor() as cursor:
            while time.monotonic() < end:
                try:
                    cursor.execute("SELECT * FROM analytics.sums")
                except psycopg2.errors.LockNotAvailable:
                    waits += 1
        assert not renewed.done(), "the change is tried repeatedly"
        holding.rollback()
        assert renewed.result(timeout=30) == ["sums"]
    assert waits < 2, "a reader waits only if the machine stands still for a moment"
    holding.close()
    other.close()


def test_a_reader_that_locks_the_catalog_is_named(world: World, services: Services) -> None:
    reader = psycopg2.connect(services.database_url(str(world.database.url.database), "analyst"))
    with reader.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ WRITE")
        cursor.execute("DROP OWNED BY CURRENT_USER")  # revokes nothing, since another role granted it
    with world.database.begin() as connection:
        [holder] = rights.in_the_way(connection)
    assert (holder.role, holder.reads) == ("analyst", False)
    reader.rollback()
    reader.close()


def test_a_prepared_statement_that_names_its_columns_outlives_a_change_of_the_view(
    world: World, services: Services
) -> None:
    """In Postgres, a prepared statement cannot change its columns (docs/reading.md)."""
    world.append("a", 0, ("x", 1))
    world.advance("a")
    reader = psycopg2.connect(services.database_url(str(world.database.url.database), "analyst"))
    reader.autocommit = True
    with reader.cursor() as cursor:
        for name, columns in (("all_of_it", "*"), ("named", "k, c")):
            cursor.execute(f"PREPARE {name} AS SELECT {columns} FROM sums WHERE k = $1")
            for _ in range(6):  # from the sixth on, Postgres may keep one plan for all values
                cursor.execute(f"EXECUTE {name} ('x')")
        both = {"all_of_it": ("x", 1, 1), "named": ("x", 1)}

        def assert_read() -> None:
            for name, row in both.items():
                cursor.execute(f"EXECUTE {name} ('x')")
                assert cursor.fetchall() == [row], name

        world.change(sums="CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE n < 9 GROUP BY k;")
        assert_read()
        id = world.open("sums")
        world.load(id)
        world.go_live(id)
        world.hand_over("sums", id)
        assert_read()
        wider = (
            "CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s, sum(n) + 1 AS t FROM a WHERE n < 9 GROUP BY k;"
        )
        world.change(sums=wider)
        with pytest.raises(psycopg2.errors.FeatureNotSupported, match="cached plan must not change result type"):
            cursor.execute("EXECUTE all_of_it ('x')")
        del both["all_of_it"]
        assert_read()
    reader.close()


def test_a_cursor_that_pauses_in_a_transaction_is_ended_and_one_that_is_held_is_not(
    world: World, services: Services
) -> None:
    """docs/reading.md describes both."""
    install(world.database, limits=Limits(idle_in_transaction_session_timeout="500ms"))
    url = services.database_url(str(world.database.url.database), "analyst")
    series = "SELECT i FROM generate_series(1, 3) AS i"
    pausing, held = psycopg2.connect(url), psycopg2.connect(url)
    held.autocommit = True
    open_cursor, kept = pausing.cursor(name="chunks"), held.cursor(name="chunks", withhold=True)
    for cursor in (open_cursor, kept):
        cursor.itersize = 1
        cursor.execute(series)
        assert cursor.fetchone() == (1,)
    with world.database.begin() as connection:
        there = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
        while connection.execute(there, {"pid": pausing.get_backend_pid()}).scalar_one():
            connection.execute(text("SELECT pg_stat_clear_snapshot()"))
    with pytest.raises(psycopg2.OperationalError, match=r"idle-in-transaction|closed the connection"):
        open_cursor.fetchone()
    assert kept.fetchall() == [(2,), (3,)]
    _, [(ours,)] = select(url, "SELECT current_setting('idle_in_transaction_session_timeout')")
    assert ours == "15min", "an export may wait for brokers between two fetches"
    held.close()
    pausing.close()
    install(world.database)
