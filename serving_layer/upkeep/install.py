"""Installing a serving layer in a Postgres database: schemas, bookkeeping, functions, roles. It can be repeated.

An installation consists of parts. A part runs only if its text differs from the one that ran last, so no view is
replaced under its readers without need. Statements wait only shortly for readers (`Database.retrying`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from serving_layer.postgres.bookkeeping import installed as installed_table
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database, wait_shortly_for_readers
from serving_layer.readers import rights
from serving_layer.readers.analyst_limits import Limits
from serving_layer.readers.views import ANALYST, NOT_PREVIEWED, NOT_PUBLISHED_YET
from view_algebra import SPARK_FUNCTIONS
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from alembic.config import Config

OLDEST_POSTGRES = 180000
"""The first version with full Unicode case mapping of its own, in the form of `server_version_num`."""

WRITER = "lamina_writer"
"""The role that runs the speed layer and the batch layer. It reads and writes rows and creates tables of cells."""

LIMITS = "limits"
"""The part that sets the limits of readers."""

SETTINGS_OF = "settings of the role"
"""The part that runs if readers have changed the settings of their role. It resets them."""

OPERATOR_VIEWS = Path(__file__).with_name("operator_views.sql")

RECEIPTS = Path(__file__).parents[1] / "readers" / "receipts.sql"

COMMENTS = Path(__file__).with_name("comments.sql")

MIGRATIONS = Path(__file__).with_name("migrations")

SCHEMAS = ("lamina", "cells", "realtime", "analytics", "spark")


@dataclass(frozen=True)
class Part:
    """A part of an installation, which runs again if its text or its `cause` changes."""

    name: str
    text: str
    cause: str = ""

    @property
    def fingerprint(self) -> str:
        """The hash by which a changed part is detected."""
        return hashlib.sha256(f"{self.text}{self.cause}".encode()).hexdigest()


def migrations(connection: Connection) -> Config:
    """Alembic's configuration over an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def install(database: Database, *, analyst_password: str | None = None, limits: Limits | None = None) -> list[str]:
    """Brings a database to this version of Lamina, as its owner. Returns the names of the parts that ran.

    `analyst_password` is set if the role of analysts is created now. An existing role keeps its password.
    """
    limits = limits or Limits()
    with database.begin() as connection:
        check_server(connection, database.name)
        if not pending(connection, limits):
            return []
    return database.retrying(lambda connection: _install(connection, analyst_password, limits))


def _install(connection: Connection, analyst_password: str | None, limits: Limits) -> list[str]:
    wait_shortly_for_readers(connection)
    if _revision(connection) is not None:  # one at a time (a first install is alone by creating its schema)
        run(connection, "LOCK TABLE lamina.alembic_version IN SHARE UPDATE EXCLUSIVE MODE")
    todo = pending(connection, limits)
    for schema in SCHEMAS:
        run(connection, f"CREATE SCHEMA IF NOT EXISTS {schema}")
    if _revision(connection) != newest_revision():
        from alembic import command

        command.upgrade(migrations(connection), "head")
        wait_shortly_for_readers(connection)
    _make_roles(connection, analyst_password)
    all_parts = parts(connection, limits)
    for part in all_parts:
        if part.name in todo:
            run(connection, part.text)
            values = {"part": part.name, "fingerprint": part.fingerprint}
            statement = upsert(installed_table).values(values)
            connection.execute(statement.on_conflict_do_update(index_elements=["part"], set_=values))
    rights.reset_settings(connection, ANALYST, rights.foreign_settings(connection, ANALYST))
    current = [part.name for part in all_parts]
    connection.execute(delete(installed_table).where(installed_table.c.part.not_in(current)))
    return todo


def is_installed(connection: Connection) -> bool:
    """True if `install` has run in the database of this connection."""
    return bool(connection.execute(text("SELECT to_regclass('lamina.query') IS NOT NULL")).scalar_one())


def pending(connection: Connection, limits: Limits) -> list[str]:
    """The names of the parts that `install` would run. Raises if a newer Lamina has installed this database."""
    revision = known_revision(connection)
    ran = {}
    if revision is not None and connection.execute(text("SELECT to_regclass('lamina.installed')")).scalar_one():
        ran = {row.part: row.fingerprint for row in connection.execute(select(installed_table))}
    todo = [] if revision == newest_revision() else ["bookkeeping"]
    todo += [part.name for part in parts(connection, limits) if ran.get(part.name) != part.fingerprint]
    if LIMITS not in todo and (settings := rights.foreign_settings(connection, ANALYST)):
        todo.append(f"{SETTINGS_OF} {ANALYST} ({', '.join(setting.name for setting in settings)})")
    return todo


def known_revision(connection: Connection) -> str | None:
    """The revision of the bookkeeping, or None if nothing is installed. Raises if it belongs to a newer Lamina."""
    revision = _revision(connection)
    if revision is not None and revision not in _revisions():
        raise LaminaError(
            "This database belongs to a newer Lamina",
            evidence=f"its bookkeeping is at revision {revision}, this Lamina knows those up to {newest_revision()}",
            way_out="Run the Lamina that upgraded it, or a later one.",
        )
    return revision


def newest_revision() -> str:
    """The revision of this Lamina's bookkeeping."""
    return max(_revisions())


def _revisions() -> list[str]:
    return [path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")]


def _revision(connection: Connection) -> str | None:
    """The revision of the database, or None if nothing is installed."""
    if not connection.execute(text("SELECT to_regclass('lamina.alembic_version') IS NOT NULL")).scalar_one():
        return None
    revision: str | None = connection.execute(text("SELECT max(version_num) FROM lamina.alembic_version")).scalar_one()
    return revision


def parts(connection: Connection, limits: Limits) -> list[Part]:
    """The parts that run after the bookkeeping is migrated, in this order."""
    here, id, owner = connection.execute(
        text("SELECT datname, oid, current_user FROM pg_database WHERE datname = current_database()")
    ).one()
    # A dump lacks roles and the database's settings. A restored database has another id, so these parts run again.
    may_limit_files = rights.may_limit_files(connection)
    settings = rights.settings(here, owner, ANALYST, limits, files=may_limit_files)
    all_parts = [
        Part("functions", SPARK_FUNCTIONS),
        Part("views", NOT_PUBLISHED_YET),
        Part("previews", NOT_PREVIEWED),
        Part("rights", rights.rights(here, ANALYST, WRITER), cause=f"database {id}"),
        Part(LIMITS, settings, cause=f"database {id}"),
    ]
    all_parts += [Part(_first_words(statement), statement) for statement in _statements(OPERATOR_VIEWS.read_text())]
    return [*all_parts, Part("receipts", RECEIPTS.read_text()), Part("comments", COMMENTS.read_text())]


def _statements(script: str) -> list[str]:
    return [statement.strip() for statement in re.split(r";[ \t]*\n", script) if statement.strip()]


def _first_words(statement: str) -> str:
    """The first words of a statement, such as `GRANT USAGE ON SCHEMA lamina` or `VIEW lamina.freshness`."""
    line = next(line for line in statement.splitlines() if not line.startswith("--") and line.strip())
    created = re.match(r"CREATE OR REPLACE ((?:VIEW|FUNCTION) [^\s(]+)", line)
    return created[1] if created else line[:60]


def check_server(connection: Connection, name: str) -> None:
    """Raises if the server or the database cannot hold a serving layer."""
    version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if version < OLDEST_POSTGRES:
        raise LaminaError(
            "This Postgres is too old",
            evidence=f"found version {version // 10000} at {name}, wanted 18 or newer",
            way_out="lower() and upper() need its collation pg_unicode_fast: serve from Postgres 18 or newer.",
        )
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise LaminaError(
            "This database cannot hold every text",
            evidence=f"its encoding is {encoding} at {name}, wanted UTF8",
            way_out="Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
        )


def _make_roles(connection: Connection, analyst_password: str | None) -> None:
    for role, option in ((ANALYST, "LOGIN"), (WRITER, "NOLOGIN")):
        existing = connection.execute(text("SELECT FROM pg_roles WHERE rolname = :role"), {"role": role}).one_or_none()
        if existing is None:
            run(connection, f"CREATE ROLE {role} {option}")
            if role == ANALYST and analyst_password is not None:
                rights.set_password(connection, ANALYST, analyst_password)
