"""A failed connection is judged by the server's SQLSTATE, whatever language its messages are in."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL

from serving_layer.postgres import log_catalog
from serving_layer.postgres.connecting import refusal
from serving_layer.postgres.database import PostgresUnavailable, is_unavailable, no_connection
from tests.serving_layer.world import World

DENIED = "NOLOGIN PASSWORD 'x'"
CROWDED = "LOGIN PASSWORD 'x' CONNECTION LIMIT 0"


@contextmanager
def role(world: World, options: str) -> Iterator[URL]:
    """The address of the world's database for a new role."""
    with world.database.autocommit() as connection:
        connection.exec_driver_sql(f"CREATE ROLE of_a_test {options}")
        try:
            yield world.database.url.set(username="of_a_test", password="x")
        finally:
            connection.exec_driver_sql("DROP ROLE of_a_test")


def code(url: URL, **options: str) -> str:
    return refusal(url.set(drivername="postgresql").render_as_string(hide_password=False), **options)


def test_a_refused_connection_has_the_code_of_its_reason(world: World) -> None:
    url = world.database.url
    assert code(url) == ""
    assert code(url.set(password="wrong")) == "28P01"
    assert code(url.set(database="nothing_there")) == "3D000"
    assert code(url, sslmode="require") == "28000", "libpq itself declines: the server speaks no TLS"
    assert code(url.set(port=1)) == "", "nothing listens there"
    assert code(url, target_session_attrs="standby") == "", "a standby that is not there may come back"
    several = {"host": [f"{url.host}:{url.port}", f"{url.host}:{url.port}"]}
    assert code(url.set(host=None, port=None, query=several, password="wrong")) == "28P01"
    with role(world, DENIED) as denied:
        assert code(denied) == "28000"
    with role(world, CROWDED) as crowded:
        assert code(crowded) == "53300"


def test_a_process_with_many_open_files_learns_the_code_too(world: World) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    with ExitStack() as many:
        many.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1_100):
            many.enter_context(Path(os.devnull).open())
        assert code(world.database.url.set(password="wrong")) == "28P01"
        assert code(world.database.url.set(port=1)) == ""


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"S"])
def test_a_server_that_is_not_postgres_counts_as_unavailable(world: World, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        pool.submit(_answer, server, answer)
        url = world.database.url.set(host="127.0.0.1", port=server.getsockname()[1])
        assert code(url) == ""


def _answer(server: socket.socket, answer: bytes) -> None:
    client, _ = server.accept()
    with client:
        client.recv(64)
        client.sendall(answer)


def test_the_catalog_of_the_log_waits_for_a_server_that_is_down(world: World) -> None:
    url = world.database.url.set(drivername="postgresql")
    for wrong, away in ((url.set(port=1), True), (url.set(password="wrong"), False)):
        with pytest.raises(PostgresUnavailable) as refused:
            log_catalog.ensure_schema(wrong.render_as_string(hide_password=False))
        assert is_unavailable(refused.value) == away


@pytest.mark.parametrize(
    ("code", "message", "what", "away"),
    [
        ("28P01", "Passwort-Authentifizierung für Benutzer »lamina« fehlgeschlagen", "refuses the login", False),
        ("3D000", "la base de données « lamina » n'existe pas", "refuses the login", False),
        ("42501", "permiso denegado a la base de datos «lamina»", "refuses the login", False),
        ("53300", "tut mir leid, schon zu viele Verbindungen", "has no free connection", True),
        ("57P03", "データベースシステムは起動しています", "does not answer", True),
        ("", "Verbindungsaufbau abgelehnt", "does not answer", True),
    ],
)
def test_a_refused_connection_is_judged_by_its_code_in_any_language(
    code: str, message: str, what: str, away: bool
) -> None:
    error = no_connection(code, message, "LAMINA_POSTGRES")
    assert error.what == f"Postgres {what}"
    assert error.evidence == message
    assert is_unavailable(error) == away
