"""Finds the SQLSTATE of a failed connection, because the server's messages may be in any language (`lc_messages`).

A failed connection has no code in psycopg2, only the server's words. libpq can write the code in place of
the words, but psycopg2 has no setting for that, so the same connection is tried again with the setting made in libpq.
"""

from __future__ import annotations

import ctypes
import re
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2 import _psycopg
from psycopg2.extensions import POLL_OK, POLL_READ

if TYPE_CHECKING:
    from sqlalchemy import URL

INVALID_PASSWORD, NO_LOGIN, TOO_MANY_CONNECTIONS = "28P01", "28000", "53300"

ANSWERS_WITHIN = 5.0
"""Seconds for the second try: a server that has refused a connection once does so again at once."""

_ONLY_CODES = 3
"""PQERRORS_SQLSTATE in libpq-fe.h."""


def refusal(url: URL | str, **options: Any) -> str:
    """The SQLSTATE of a refused connection. Empty if the server accepts it, or does not answer.

    `NO_LOGIN` if libpq gives up before the server refuses, because it has no password, or the server has no TLS. A
    failed attempt costs a second one. It takes at most `ANSWERS_WITHIN` seconds, after names are resolved.
    """
    connection: Any = None
    deadline = time.monotonic() + ANSWERS_WITHIN
    address = _address(url)
    try:
        connection = psycopg2.connect(**{**address, **options}, async_=True)
        with suppress(OSError, AttributeError):  # a libpq without this symbol gives its words, and no code
            ctypes.CDLL(_psycopg.__file__).PQsetErrorVerbosity(ctypes.c_void_p(connection.pgconn_ptr), _ONLY_CODES)
        while (state := connection.poll()) != POLL_OK and time.monotonic() < deadline:
            ready = select.poll()  # unlike `select.select`, for descriptors above 1,023 too
            ready.register(connection, select.POLLIN if state == POLL_READ else select.POLLOUT)
            ready.poll(1000 * max(0.0, deadline - time.monotonic()))
        connection.close()
    except psycopg2.OperationalError as error:
        message = str(error).strip()
        code = re.search(r"\b[0-9A-Z]{5}$", message)
        if code is not None:
            return code[0]
        declined = connection is not None and (connection.info.needs_password or _NO_TLS in message)
        return NO_LOGIN if declined else ""
    return ""


def _address(url: URL | str) -> dict[str, Any]:
    """The arguments that SQLAlchemy gives psycopg2 for an address, which may name several hosts."""
    from sqlalchemy import make_url
    from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2

    dialect: Any = PGDialect_psycopg2()  # type: ignore[no-untyped-call]
    arguments: dict[str, Any] = dialect.create_connect_args(make_url(url))[1]
    return arguments


_NO_TLS = "server does not support SSL"
"""libpq's own sentence, which the server's `lc_messages` does not translate."""
