"""Changes of a view's version, and what readers and Postgres see of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg2
import psycopg2.errors
from sqlalchemy import Connection, text

from serving_layer.catalog import lookup
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from serving_layer.postgres.database import session_of
from tests.fix_services import is_waited_for
from tests.serving_layer.world import World

BY_KEY = "CREATE VIEW counts AS SELECT count(*) AS c, sum(n) AS s, k FROM a GROUP BY k;"

TOTAL = "CREATE VIEW total AS SELECT sum(c) AS c, sum(s) AS s FROM counts;"

LARGEST = "CREATE VIEW total AS SELECT sum(c) AS c, sum(s) AS s, max(k) AS k, count(*) AS groups FROM counts;"


@contextmanager
def reading(database: str) -> Iterator[Any]:
    """A cursor in a new snapshot."""
    connection = psycopg2.connect(database)
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lamina.publication")
        yield cursor
    connection.close()


def rows(cursor: Any, select: str) -> list[tuple[Any, ...]]:
    cursor.execute(select)
    return sorted((tuple(row) for row in cursor.fetchall()), key=repr)


def body(world: World, view: str) -> str:
    with world.database.begin() as connection:
        definition = connection.execute(text(f"SELECT pg_get_viewdef('analytics.{view}'::regclass)"))
        return str(definition.scalar_one())


def left(world: World) -> dict[str, int]:
    """The counts of everything that a version may leave behind."""
    countable = {
        "tables": "pg_class WHERE relkind = 'r' AND relnamespace IN ('cells'::regnamespace, 'realtime'::regnamespace)",
        "cell tables": "lamina.cell_table",
        "versions": "lamina.version",
        "sides": "lamina.view WHERE before <> '[]'",
        "compiled": "lamina.compiled",
    }
    with world.database.begin() as connection:
        return {
            name: connection.execute(text(f"SELECT count(*) FROM {of}")).scalar_one() for name, of in countable.items()
        }


def published(world: World) -> int:
    """The published generation of `counts`."""
    with world.database.begin() as connection:
        return lookup.published(connection)["counts"]


def move(world: World, connection: Any, ready: dict[str, int]) -> None:
    deploying.apply(connection, Target(world.files, world.catalog, {}, allow_break=True), ready)


def until_blocked(world: World, sessions: Sequence[int]) -> None:
    """Returns when the session that a thread puts into the list waits for a lock."""
    deadline = time.monotonic() + 30
    while not (sessions and world.database.is_blocked(sessions[0])):
        assert time.monotonic() < deadline, "nothing waits for a lock"
        time.sleep(0.01)


def until_waited_for(world: World, connection: Connection) -> None:
    """Returns when another session waits for a lock that this one holds."""
    deadline = time.monotonic() + 30
    while not is_waited_for(world.database, session_of(connection)):
        assert time.monotonic() < deadline, "nothing waits for it"
        time.sleep(0.01)


MANY = "CREATE VIEW many AS SELECT k, count(*) AS c, sum(n) AS s FROM b GROUP BY k HAVING count(*) > 1;"

OF_MANY = (
    "CREATE VIEW amounts AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE k IN (SELECT k FROM many) GROUP BY k;"
)

OF_ALL = "CREATE VIEW amounts AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE n > 0 GROUP BY k;"


def of_many(world: World) -> None:
    """Deploys a view that read another one before."""
    for name in "ab":
        world.append(name, 0, ("x", 1), ("x", 2), ("y", 3))
        world.advance(name)
    world.change(many=MANY, amounts=OF_MANY)
    world.change(amounts=OF_ALL)
