"""A Postgres server that runs as long as something is tried out, with a database for each try."""

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
"""The database that all others are copies of."""


@dataclass(frozen=True)
class Scratch:
    """A server on which Lamina is installed."""

    home: Path
    port: int
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @contextlib.contextmanager
    def database(self) -> Iterator[tuple[Database, str]]:
        """A database in which nothing is deployed, and its URL; dropped at the end."""
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
        """How its owner reaches a database."""
        return postgres.url(self.home, self.port, database=database)

    def _maintain(self, statement: str) -> None:
        database = Database(self.url())
        with contextlib.closing(database), database.autocommit() as connection:
            run(connection, statement)


def admitted(home: Path) -> Path:
    """The folder of the server below a LAMINA_HOME that others cannot read; the user it runs as can reach it.

    Spark makes a home private, too. It may do so while the server starts, but not while that user is let through.
    """
    keep_private(home)
    own = folders.of_this_process(home / "scratch")
    postgres.admit(own)
    return own


@contextlib.contextmanager
def scratch(home: Path) -> Iterator[Scratch]:
    """A server in a folder below a LAMINA_HOME; both are gone at the end, or at the next start if we are killed."""
    own = admitted(home)
    server = postgres.start(own, port=None, durable=False)
    try:
        made = Scratch(own, server.port)
        # The server is not anybody's yet; a process that starts it again finds what it made before.
        made._maintain(f"DROP DATABASE IF EXISTS {TEMPLATE}")  # noqa: SLF001
        made._maintain(f"CREATE DATABASE {TEMPLATE}")  # noqa: SLF001
        database = Database(made.url(TEMPLATE))
        with contextlib.closing(database):
            install.install(database)
        yield made
    finally:
        postgres.stop(server.process)
