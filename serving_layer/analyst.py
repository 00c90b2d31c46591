"""One SELECT as the analyst: read-only, and with the analyst's rights alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg2
import psycopg2.errors

from serving_layer.views import ANALYST
from view_algebra.errors import LaminaError

CONNECT_TIMEOUT = 10
"""Seconds."""


def select(analyst: str | None, owner: str, query: str, limit: int | None = None) -> tuple[Sequence[str], list[Any]]:
    """Column names and rows of one SELECT, in one snapshot.

    With no URL of the analyst it takes on that role over the owner's connection. A cursor can hold nothing but one
    SELECT, so a text that tries to leave the role or to write is refused by Postgres.
    """
    try:
        connection = psycopg2.connect(
            analyst or owner,
            connect_timeout=CONNECT_TIMEOUT,
            application_name="lamina sql",
            options="-c timezone=UTC -c search_path=analytics",
        )
    except psycopg2.OperationalError as error:
        raise LaminaError(
            "Postgres does not answer",
            evidence=str(error).strip(),
            way_out="Start it (`lamina up`), or correct LAMINA_ANALYST or LAMINA_POSTGRES.",
        ) from error
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if analyst is None:
                cursor.execute(f"SET LOCAL ROLE {ANALYST}")
            cursor.execute(f"DECLARE answer NO SCROLL CURSOR FOR {query.strip().rstrip(';')}")
            cursor.execute("FETCH ALL FROM answer" if limit is None else f"FETCH {int(limit)} FROM answer")
            assert cursor.description is not None
            return [column.name for column in cursor.description], cursor.fetchall()
    except psycopg2.errors.UndefinedTable as error:
        raise _refused(error, "`lamina status` lists the views; one that is not rebuilt yet is not there.") from error
    except psycopg2.Error as error:
        raise _refused(error, "Correct the SELECT: only reading is allowed, one statement at a time.") from error
    finally:
        connection.close()


def _refused(error: psycopg2.Error, way_out: str) -> LaminaError:
    said = str(error).strip().splitlines() or [type(error).__name__]
    return LaminaError(f"Postgres refused: {said[0]}", evidence="\n".join(said[1:]), way_out=way_out)
