"""The SQLSTATE of a refused connection, which decides in every language of messages (`lc_messages`).

A failed connection has no code in psycopg2, only the server's words. libpq can write the code in place of
the words, but psycopg2 has no setting for that, so the same connection is tried again with the setting made in libpq.
"""

from __future__ import annotations

import ctypes
import re
import select
import time
from contextlib import suppress
from typing import Any

import psycopg2
from psycopg2 import _psycopg
from psycopg2.extensions import POLL_OK, POLL_READ

INVALID_PASSWORD, NO_LOGIN, TOO_MANY_CONNECTIONS = "28P01", "28000", "53300"

ANSWERS_WITHIN = 5.0
"""Seconds for the second try: a server that has refused a connection once does so again at once."""

_ONLY_CODES = 3
"""PQERRORS_SQLSTATE in libpq-fe.h."""


def refusal(url: str, **options: Any) -> str:
    """The SQLSTATE with which a server refuses a connection; empty if it accepts it, or if none answers.

    `NO_LOGIN` if libpq itself declines a server that answers, because it has no password, or no TLS.
    """
    connection: Any = None
    deadline = time.monotonic() + ANSWERS_WITHIN
    try:
        connection = psycopg2.connect(url, async_=True, **options)
        with suppress(OSError, AttributeError):  # a libpq without this symbol gives its words, and no code
            ctypes.CDLL(_psycopg.__file__).PQsetErrorVerbosity(ctypes.c_void_p(connection.pgconn_ptr), _ONLY_CODES)
        while (state := connection.poll()) != POLL_OK and time.monotonic() < deadline:
            reads, writes = ([connection], []) if state == POLL_READ else ([], [connection])
            select.select(reads, writes, [], max(0.0, deadline - time.monotonic()))
        connection.close()
    except psycopg2.OperationalError as error:
        code = re.search(r"\b[0-9A-Z]{5}$", str(error).strip())
        if code is not None:
            return code[0]
        return NO_LOGIN if connection is not None and connection.info.socket >= 0 else ""
    return ""
