"""Limits on what one reader may take of the server, parsed from the settings without a connection to Postgres."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from view_algebra.errors import LaminaError

SUPERUSERS = Path(__file__).with_name("superuser.sql")
"""SQL that needs a superuser. The embedded Postgres and the container's first start run it."""

CONNECTIONS_OF_A_PERSON = 5
"""Concurrent sessions of a person's login. The role `analyst` has a limit of its own."""


_TIME = r"\d+(us|ms|s|min|h|d)?"
_SIZE = r"\d+(kB|MB|GB|TB)?"


@dataclass(frozen=True)
class Limits:
    """Limits of one reader. Times and sizes are written as Postgres writes them, `0` means no limit.

    statement_timeout: time of one SELECT
    idle_in_transaction_session_timeout: time until the session of an idle snapshot ends
    lock_timeout: time of waiting for a lock
    temp_file_limit: size of all temporary files of a session
    connections: concurrent sessions of the role `analyst`
    """

    statement_timeout: str = "10min"
    idle_in_transaction_session_timeout: str = "1min"
    lock_timeout: str = "30s"
    temp_file_limit: str = "20GB"
    connections: int = 50

    @classmethod
    def read(cls, words: str) -> Limits:
        """Limits from a text such as `statement_timeout=1min connections=20`, over the defaults.

        >>> Limits.read("lock_timeout=5s, connections=20").lock_timeout
        '5s'
        """
        limits = cls()
        patterns = {field.name: _TIME for field in fields(cls)} | {"temp_file_limit": _SIZE, "connections": r"\d+"}
        for pair in re.split(r"[\s,]+", words.strip()):
            name, _, value = pair.partition("=")
            if name not in patterns or not re.fullmatch(patterns[name], value):
                raise LaminaError(
                    "LAMINA_ANALYST_LIMITS is not a list of limits",
                    evidence=f"found {pair!r}, known are {', '.join(patterns)}",
                    way_out="It looks like statement_timeout=5min,lock_timeout=10s,connections=20.",
                )
            limits = replace(limits, **{name: int(value) if name == "connections" else value})  # type: ignore[arg-type]
        return limits

    @property
    def timeouts(self) -> Mapping[str, str]:
        """The limits that any Postgres user may set."""
        names = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
        return {name: getattr(self, name) for name in names}


def superusers_script() -> str:
    """The script for a superuser, without the meta-commands of `psql`."""
    lines = SUPERUSERS.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("\\"))
