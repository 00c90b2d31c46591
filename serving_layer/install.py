"""Makes a Postgres database a serving layer: schemas, bookkeeping, functions, roles. Again, it changes nothing."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from serving_layer.cells import run
from serving_layer.database import Database
from serving_layer.views import ANALYST, quoted
from view_algebra import SPARK_FUNCTIONS
from view_algebra.errors import LaminaError

OLDEST_POSTGRES = 180000
"""The first version with Unicode's full case mapping of its own, as `server_version_num` gives it."""

WRITER = "lamina_writer"
"""The role that runs the speed layer and the batch layer: reads and writes rows, makes tables of cells."""

OPERATOR_VIEWS = Path(__file__).with_name("operator_views.sql")

INSTALL_LOCK = 0x6C616D6B


def migrations(connection: Connection) -> Config:
    """Alembic's configuration over an open connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def install(database: Database, *, analyst_password: str | None = None) -> None:
    """Brings a database to this version of Lamina: to be run before anything else, as its owner."""
    with database.begin() as connection:
        version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
        if version < OLDEST_POSTGRES:
            raise LaminaError(
                "This Postgres is too old",
                evidence=f"found version {version // 10000} at {database.name}, wanted 18 or newer",
                way_out="lower() and upper() need its collation pg_unicode_fast: serve from Postgres 18 or newer.",
            )
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        if encoding != "UTF8":
            raise LaminaError(
                "This database cannot hold every text",
                evidence=f"its encoding is {encoding} at {database.name}, wanted UTF8",
                way_out="Make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
            )
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": INSTALL_LOCK})
        for schema in ("lamina", "cells", "realtime", "analytics", "spark"):
            run(connection, f"CREATE SCHEMA IF NOT EXISTS {schema}")
        command.upgrade(migrations(connection), "head")
        run(connection, SPARK_FUNCTIONS)
        _roles(connection, analyst_password)
        run(connection, OPERATOR_VIEWS.read_text())


def installed(database: Database) -> bool:
    """True when `install` has run here."""
    with database.begin() as connection:
        return bool(connection.execute(text("SELECT to_regclass('lamina.query') IS NOT NULL")).scalar_one())


def _roles(connection: Connection, analyst_password: str | None) -> None:
    for role, option in ((ANALYST, "LOGIN"), (WRITER, "NOLOGIN")):
        known = connection.execute(text("SELECT FROM pg_roles WHERE rolname = :role"), {"role": role}).one_or_none()
        if known is None:
            run(connection, f"CREATE ROLE {role} {option}")
    if analyst_password is not None:
        password = connection.execute(text("SELECT quote_literal(:p)"), {"p": analyst_password}).scalar_one()
        run(connection, f"ALTER ROLE {ANALYST} LOGIN PASSWORD {password}")
    here = quoted(connection.execute(text("SELECT current_database()")).scalar_one())
    run(
        connection,
        f"""
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        GRANT USAGE ON SCHEMA analytics, spark TO {ANALYST};
        GRANT CONNECT, TEMPORARY ON DATABASE {here} TO {WRITER};
        GRANT USAGE ON SCHEMA analytics, spark, lamina TO {WRITER};
        GRANT USAGE, CREATE ON SCHEMA cells, realtime TO {WRITER};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lamina, cells, realtime TO {WRITER};
        ALTER DEFAULT PRIVILEGES IN SCHEMA lamina, cells, realtime
            GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {WRITER};
        ALTER DATABASE {here} SET search_path = analytics, public;
        """,
    )
