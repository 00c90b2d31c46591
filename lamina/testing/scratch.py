"""A temporary Postgres server for tests of a catalog, with a database for each trial."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lamina.services import folders, postgres
from lamina.services.access import keep_private
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database
from serving_layer.upkeep import install

TEMPLATE = "installed"
"""The database that every other database is a copy of."""


@dataclass(frozen=True)
class Scratch:
    """A server on which Lamina is installed."""

    home: Path
    port: int
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @contextlib.contextmanager
    def database(self) -> Iterator[tuple[Database, str]]:
        """An empty database and its URL. The database is dropped at the end."""
        name = f"scratch_{next(self._numbers)}"
        self._maintain(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        url = self.url(name)
        database = Database(url)
        try:
            yield database, url
        finally:
            database.close()
            self._maintain(f"DROP DATABASE {name} WITH (FORCE)")

    def url(self, database: str = postgres.DATABASE) -> str:
        """The URL by which the owner reaches a database."""
        return postgres.url(self.home, self.port, database=database)

    def _maintain(self, statement: str) -> None:
        database = Database(self.url())
        with contextlib.closing(database), database.autocommit() as connection:
            run(connection, statement)


def make_folder(home: Path) -> Path:
    """Creates a folder below a private LAMINA_HOME that the server's user can reach.

    Spark also makes a home private. It may do so while the server starts, but not while that user is let through.
    """
    keep_private(home)
    own = folders.own_folder(home / "scratch")
    postgres.admit(own)
    return own


@contextlib.contextmanager
def scratch(home: Path) -> Iterator[Scratch]:
    """Runs a server in a folder below a LAMINA_HOME. Both are removed at the end, or at the next start if we are
    killed.
    """
    own = make_folder(home)
    server = postgres.start(own, port=None, settings=postgres.TEMPORARY)
    try:
        server_of_ours = Scratch(own, server.port)
        # A restarted server may still have these databases.
        server_of_ours._maintain(f"DROP DATABASE IF EXISTS {TEMPLATE}")  # noqa: SLF001
        server_of_ours._maintain(f"CREATE DATABASE {TEMPLATE}")  # noqa: SLF001
        database = Database(server_of_ours.url(TEMPLATE))
        with contextlib.closing(database):
            install.install(database)
        yield server_of_ours
    finally:
        postgres.stop(server.process)
