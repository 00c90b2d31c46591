"""The connection to Postgres: sessions, transactions, and waiting while the server is down."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg2
import psycopg2.errors
import sqlalchemy
from psycopg2.extensions import TRANSACTION_STATUS_ACTIVE
from sqlalchemy import Engine, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from serving_layer.postgres import connecting
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.serving")

Connection = sqlalchemy.Connection
"""A connection in a transaction. Other packages pass it on."""

PostgresError = DBAPIError
"""Raised when Postgres refuses a statement."""

REFUSALS = (DBAPIError, psycopg2.Error)
"""Refusals by Postgres, through SQLAlchemy or from the driver."""

T = TypeVar("T")

_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_SERVER_KEEPALIVES = " ".join(f"-c tcp_{name}={value}" for name, value in _KEEPALIVES.items())

FROZEN_MS = 60_000
"""A process that sends nothing for so long within a transaction is frozen (stopped, swapped out). Postgres ends its
session and frees its locks. A commit never pauses so long by itself."""

CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "lamina",
    # Seconds and milliseconds: a vanished server counts as down within half a minute, not hours. The server detects a
    # vanished client as fast, and frees its locks.
    **_KEEPALIVES,
    "tcp_user_timeout": 25_000,
    # Timestamps are instants. The session's zone decides how they are written, so it must be known. The database's
    # limits for readers do not apply to us.
    "options": "-c timezone=UTC -c statement_timeout=0 -c lock_timeout=0 -c transaction_timeout=0"
    f" -c idle_in_transaction_session_timeout={FROZEN_MS} {_SERVER_KEEPALIVES}",
}
"""Options of the driver for every connection that writes."""

RETRIES = 20
"""Repetitions of a transaction that Postgres ended to resolve a deadlock."""

FOREIGN_SNAPSHOT = """datname = current_database() AND backend_type = 'client backend'
    AND application_name <> 'lamina' AND backend_xmin IS NOT NULL"""
"""The condition on pg_stat_activity that a session holds a snapshot and is not Lamina's own, which ends by itself."""

READER_PATIENCE_MS = 20
"""Milliseconds that our statement waits for a reader's lock. Meanwhile, other readers wait behind it."""

PATIENCE_SECONDS = 10.0
"""Seconds for which a transaction is repeated while readers hold a lock that it needs."""

PAUSE_SECONDS = 0.1
"""Seconds between two such attempts, in which the readers that wait proceed."""


def login_of(url: str | None) -> tuple[str | None, str | None]:
    """The role and the password in a database's URL.

    >>> login_of("postgresql://analyst:secret@localhost/lamina"), login_of(None)
    (('analyst', 'secret'), (None, None))
    """
    address = make_url(url) if url else None
    return (None, None) if address is None else (address.username, address.password)


def with_login(url: str, role: str, password: str) -> str:
    """The URL of the same database for another role.

    >>> with_login("postgresql://analyst:secret@db:5432/lamina?sslmode=require", "ann", "p@ss")
    'postgresql://ann:p%40ss@db:5432/lamina?sslmode=require'
    >>> with_login("postgresql://analyst:secret@db/lamina", "Ann B", "a b")
    'postgresql://Ann%20B:a%20b@db/lamina'
    """
    parts = urlsplit(url)
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(role, safe='')}:{quote(password, safe='')}@{address}"))


class Database:
    """A Postgres database with a serving layer. Transactions are READ COMMITTED unless they request otherwise."""

    def __init__(self, url: str) -> None:
        """`url` has SQLAlchemy's form, such as `postgresql://owner:password@host:port/database`."""
        try:
            self.url = make_url(url).set(drivername="postgresql+psycopg2")
        except ArgumentError as error:
            raise LaminaError(
                "The address of Postgres is not a URL",
                evidence=f"found {url!r}, wanted postgresql://user:password@host:port/database",
                way_out="Correct LAMINA_POSTGRES, or `postgres` in lamina.toml.",
            ) from error
        self.engine = _engine(self.url.render_as_string(hide_password=False))

    @property
    def name(self) -> str:
        """The address without its password, for messages."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

    @contextlib.contextmanager
    def begin(self, *, isolation: str = "READ COMMITTED") -> Iterator[Connection]:
        """A transaction: committed at the end of the block, rolled back by an exception."""
        with self._connected() as connection:
            connection.execution_options(isolation_level=isolation)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A read-only transaction in which every statement sees the same snapshot."""
        with self.begin(isolation="REPEATABLE READ") as connection:
            connection.execute(text("SET TRANSACTION READ ONLY"))
            yield connection

    @contextlib.contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection for the statements that Postgres refuses inside a transaction."""
        with self._connected() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def retrying(self, what: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """Runs `what` in a transaction of its own and returns its value, again if Postgres reports a deadlock.

        If `what` sets a `lock_timeout` and a reader holds a lock too long, it is repeated for `patience` seconds
        (default: PATIENCE_SECONDS), and waiting readers proceed in between.
        """
        deadline = time.monotonic() + (PATIENCE_SECONDS if patience is None else patience)
        attempt = 0
        while True:
            try:
                with self.begin() as connection:
                    return what(connection)
            except DBAPIError as error:
                if is_lock_timeout(error) and time.monotonic() < deadline:
                    time.sleep(PAUSE_SECONDS)
                elif is_deadlock(error) and attempt < RETRIES - 1:
                    attempt += 1
                    time.sleep(0.01 * attempt)
                else:
                    raise

    def waiting(
        self, what: Callable[[], T], *, give_up: Callable[[], bool] = lambda: False, lost_at_most: float = math.inf
    ) -> T:
        """Calls `what` until Postgres answers, and returns its value. Logs one line per outage.

        Raises SessionLost if Postgres is up but has ended more than `lost_at_most` sessions within this call.
        """
        delay, away_since, lost = 0.1, None, 0
        while True:
            try:
                value = what()
            except (DBAPIError, psycopg2.Error, LaminaError) as error:
                if not is_unavailable(error) or give_up():
                    raise
                lost += not isinstance(error, PostgresUnavailable)
                if lost > lost_at_most:
                    raise SessionLost(
                        "Postgres keeps ending the session in the middle of a transaction",
                        evidence=first_line(error),
                        way_out="Its log says why: it may lack memory for what the transaction does.",
                    ) from error
                if away_since is None:
                    away_since = time.monotonic()
                    log.warning("Postgres is away (%s); waiting for it", first_line(error))
                self.engine.dispose()
                time.sleep(delay)
                delay = min(2 * delay, 2.0)
            else:
                if away_since is not None:
                    log.warning("Postgres is back after %.1f s", time.monotonic() - away_since)
                return value

    def is_blocked(self, session: int) -> bool:
        """True if a session waits for another session's lock. False while Postgres is down."""
        try:
            with self.begin() as connection:
                blocking = select(func.cardinality(func.pg_blocking_pids(session)))
                return bool(connection.execute(blocking).scalar_one())
        except (DBAPIError, psycopg2.Error, LaminaError) as error:
            if not is_unavailable(error):
                raise
            return False

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            connection = self.engine.connect()
        except OperationalError as error:
            code = connecting.refusal(self.url, **CONNECTION)
            raise no_connection(code, first_line(error), "LAMINA_POSTGRES", at=f" at {self.name}") from error
        with connection:
            yield connection

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


_opened: weakref.WeakSet[Any] = weakref.WeakSet()
"""The driver's open connections of this process."""

_opening = threading.Lock()


def register(connection: Any) -> None:
    """Registers a connection of the driver, so that `cancel` reaches it."""
    with _opening:
        _opened.add(connection)


def cancel() -> None:
    """Cancels the statements that Postgres is running for this process. They fail, and nothing else does.

    Any thread may call this. The thread that waits for Postgres is inside the driver's C code and sees no signal.
    """
    with _opening:
        opened = list(_opened)
    # Only the statements of this moment: one that begins during this loop may be cleaning up after them.
    for connection in [open for open in opened if open.info.transaction_status == TRANSACTION_STATUS_ACTIVE]:
        with contextlib.suppress(psycopg2.Error):
            connection.cancel()


def session_of(connection: Connection) -> int:
    """The process id of a connection's session in Postgres."""
    number: int = connection.connection.driver_connection.get_backend_pid()  # type: ignore[union-attr]
    return number


class SessionLost(LaminaError):
    """Postgres is up, and ends the session whenever the transaction is tried."""


class PostgresUnavailable(LaminaError):
    """Postgres refused the connection, with this SQLSTATE, or did not answer."""

    def __init__(self, what: str, *, evidence: str = "", way_out: str = "", code: str = "") -> None:
        """The code is empty if there was no answer."""
        super().__init__(what, evidence=evidence, way_out=way_out)
        self.code = code

    @property
    def refuses_login(self) -> bool:
        """True if waiting does not help: no such login, password or database, or no right to connect."""
        return self.code.startswith(("28", "3D", "42"))


def no_connection(
    code: str, message: str, settings: str, *, at: str = "", start: str = "Start it"
) -> PostgresUnavailable:
    """The error of a connection that failed with this SQLSTATE (`connecting.refusal`).

    The server may be down, be full, or refuse the login. One that refuses the login need not be started.
    """
    if code == connecting.TOO_MANY_CONNECTIONS:
        return PostgresUnavailable(
            f"Postgres has no free connection{at}",
            code=code,
            evidence=message,
            way_out="Repeat the command when other sessions have ended, end idle ones, or raise the limit:"
            " connections=… in LAMINA_ANALYST_LIMITS, ALTER ROLE … CONNECTION LIMIT, or max_connections of the server.",
        )
    settings_in_words = f"{settings} (user, password, host, port, database)."
    way_out = f"{start}, or correct {settings_in_words}"
    away = PostgresUnavailable(f"Postgres does not answer{at}", evidence=message, way_out=way_out, code=code)
    if not away.refuses_login:
        return away
    way_out = f"Correct {settings_in_words}"
    if "LAMINA_ANALYST" in settings:
        way_out += " `lamina password` gives `analyst` the password in LAMINA_ANALYST again,"
        way_out += " `lamina login NAME` makes a login."
    return PostgresUnavailable(f"Postgres refuses the login{at}", evidence=message, way_out=way_out, code=code)


def is_unavailable(error: BaseException) -> bool:
    """True if the error means that Postgres is down and may come back."""
    if isinstance(error, PostgresUnavailable):
        return not error.refuses_login
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or is_unavailable(error.orig) if error.orig else False
    code = getattr(error, "pgcode", None) or ""
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
        # 57P01..03 and 08xxx come from a server that shuts down. An error without a code is a broken connection.
        return not code or code.startswith(("08", "57P"))
    return False


def unreadable_time(error: ValueError | OverflowError) -> LaminaError:
    """The error for a time outside the years 1 to 9999, which Python cannot hold. Raises any other error."""
    if "out of range" not in str(error):
        raise error
    way_out = "Cast it to a text in the SELECT: CAST(ts AS text)."
    return LaminaError("A time is beyond the years 1 to 9999", evidence=str(error), way_out=way_out)


def is_deadlock(error: DBAPIError) -> bool:
    """True if Postgres ended the transaction to resolve a deadlock."""
    return isinstance(error.orig, psycopg2.errors.DeadlockDetected)


def lacks_rights(error: Exception) -> bool:
    """True if the login lacks a right."""
    return isinstance(getattr(error, "orig", error), psycopg2.errors.InsufficientPrivilege)


def is_read_only(error: Exception) -> bool:
    """True if the server is a standby, which writes nothing."""
    return isinstance(getattr(error, "orig", error), psycopg2.errors.ReadOnlySqlTransaction)


def is_lock_timeout(error: DBAPIError) -> bool:
    """True if a lock was not granted within `lock_timeout`."""
    return isinstance(error.orig, psycopg2.errors.LockNotAvailable)


def is_other_shape(error: DBAPIError) -> bool:
    """True if a view cannot be replaced because a column would go, move or change."""
    return isinstance(error.orig, psycopg2.errors.InvalidTableDefinition)


def has_readers(error: DBAPIError) -> bool:
    """True if a DROP failed because another object in the database depends on the relation."""
    return isinstance(error.orig, psycopg2.errors.DependentObjectsStillExist)


def wait_shortly_for_readers(connection: Connection) -> None:
    """Limits how long a statement of this transaction waits for a reader.

    The execution option `reader_patience_ms` sets another limit.
    """
    milliseconds = connection.get_execution_options().get("reader_patience_ms", READER_PATIENCE_MS)
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")


def first_line(error: BaseException) -> str:
    """The first line of the driver's message, without SQLAlchemy's additions."""
    original = getattr(error, "orig", None) or error
    return str(original).strip().splitlines()[0] if str(original).strip() else type(original).__name__


SESSION_SECONDS = 3_600
"""Age at which a session is replaced: its temporary tables keep Postgres from advancing its transaction horizon."""


def _engine(url: str) -> Engine:
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_use_lifo=True,  # few sessions do most of the work, and they keep their temporary tables of cells
        pool_recycle=SESSION_SECONDS,
        max_overflow=-1,  # a connection that waits for a lock must not keep others from connecting
        connect_args=CONNECTION,
    )
    event.listen(engine, "connect", lambda connection, _: register(connection))
    return engine
