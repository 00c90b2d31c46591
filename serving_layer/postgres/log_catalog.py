"""The master log's catalog, which Iceberg keeps in Postgres: the files of metadata that it names."""

from __future__ import annotations

import psycopg2
from psycopg2 import errors
from sqlalchemy import Connection, text

from serving_layer.postgres import connecting
from serving_layer.postgres.database import CONNECTION, first_line, no_connection
from view_algebra.errors import LaminaError

SCHEMA = "iceberg"
"""The schema of Iceberg's two tables."""

_METADATA_FILES = """
    SELECT metadata_location, previous_metadata_location FROM iceberg.iceberg_tables
    WHERE table_namespace = 'log' AND table_name = :topic
"""
_STEP_BACK = """
    UPDATE iceberg.iceberg_tables SET metadata_location = :before, previous_metadata_location = NULL
    WHERE table_namespace = 'log' AND table_name = :topic AND metadata_location = :torn
"""


def metadata_files(connection: Connection, topic: str) -> tuple[str, str | None] | None:
    """The metadata files that the catalog names for a topic's log: the present one and the previous one."""
    if connection.execute(text("SELECT to_regclass('iceberg.iceberg_tables')")).scalar_one() is None:
        return None
    row = connection.execute(text(_METADATA_FILES), {"topic": topic}).one_or_none()
    return None if row is None else (str(row[0]), row[1])


def step_back(connection: Connection, topic: str, *, torn: str, before: str) -> None:
    """Makes the catalog name the previous metadata again, unless it no longer names the torn file."""
    connection.execute(text(_STEP_BACK), {"topic": topic, "before": before, "torn": torn})


def ensure_schema(postgres: str) -> None:
    """Creates the schema of Iceberg's tables if it is missing. An existing schema needs no right."""
    try:
        connection = psycopg2.connect(postgres, **CONNECTION)
    except psycopg2.OperationalError as error:
        code = connecting.refusal(postgres, **CONNECTION)
        raise no_connection(code, first_line(error), "LAMINA_POSTGRES") from error
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regnamespace(%s) IS NULL", [SCHEMA])
            if cursor.fetchone() == (True,):
                cursor.execute(f"CREATE SCHEMA {SCHEMA}")
    except (errors.DuplicateSchema, errors.UniqueViolation):
        pass  # another session has created it
    except errors.InsufficientPrivilege as error:
        raise LaminaError(
            f"The schema `{SCHEMA}` of the master log's catalog is missing, and this login may not create it",
            evidence=str(error).strip(),
            way_out=f"As the owner of the database: CREATE SCHEMA {SCHEMA}, owned by Lamina's writing role.",
        ) from error
    finally:
        connection.close()
