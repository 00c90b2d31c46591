"""The catalog of the master log, which Iceberg keeps in Postgres: the metadata that it names."""

from __future__ import annotations

from sqlalchemy import Connection, text

_NAMED = """
    SELECT metadata_location, previous_metadata_location FROM iceberg.iceberg_tables
    WHERE table_namespace = 'log' AND table_name = :topic
"""
_BACK = """
    UPDATE iceberg.iceberg_tables SET metadata_location = :before, previous_metadata_location = NULL
    WHERE table_namespace = 'log' AND table_name = :topic AND metadata_location = :torn
"""


def named(connection: Connection, topic: str) -> tuple[str, str | None] | None:
    """The files of metadata of the log of a topic that the catalog names: the present one and the one before."""
    if connection.execute(text("SELECT to_regclass('iceberg.iceberg_tables')")).scalar_one() is None:
        return None
    found = connection.execute(text(_NAMED), {"topic": topic}).one_or_none()
    return None if found is None else (str(found[0]), found[1])


def step_back(connection: Connection, topic: str, *, torn: str, before: str) -> None:
    """Names the metadata before again, unless the catalog names others than the torn ones by now."""
    connection.execute(text(_BACK), {"topic": topic, "before": before, "torn": torn})
