"""How much of the server one reader may take, as the settings say it: no connection to Postgres is needed for that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from view_algebra.errors import LaminaError

SUPERUSERS = Path(__file__).with_name("superuser.sql")
"""What only a superuser may forbid; run by the embedded Postgres and by the container's first start."""

CONNECTIONS_OF_A_PERSON = 5
"""Sessions that a person's login may have at a time; the role `analyst` has a limit of its own."""


@dataclass(frozen=True)
class Limits:
    """How much one reader may take; as Postgres writes lengths of time and sizes, `0` for no limit.

    statement_timeout: of one SELECT. idle_in_transaction_session_timeout: until a snapshot that nobody uses is given
    up. lock_timeout: of waiting. temp_file_limit: of all temporary files of a session. connections: of the role
    `analyst` at a time.
    """

    statement_timeout: str = "10min"
    idle_in_transaction_session_timeout: str = "1min"
    lock_timeout: str = "30s"
    temp_file_limit: str = "20GB"
    connections: int = 50

    @classmethod
    def read(cls, given: str) -> Limits:
        """From a text as `statement_timeout=1min connections=20`, over the defaults.

        >>> Limits.read("lock_timeout=5s, connections=20").lock_timeout
        '5s'
        """
        limits = cls()
        names = [field.name for field in fields(cls)]
        for word in re.split(r"[\s,]+", given.strip()):
            name, _, value = word.partition("=")
            number = name == "connections"
            if name not in names or not re.fullmatch(r"\d+" if number else r"\d+(us|ms|s|min|h|d|kB|MB|GB|TB)?", value):
                raise LaminaError(
                    "LAMINA_ANALYST_LIMITS is not a list of limits",
                    evidence=f"found {word!r}, known are {', '.join(names)}",
                    way_out="It looks like statement_timeout=5min,lock_timeout=10s,connections=20.",
                )
            limits = replace(limits, **{name: int(value) if number else value})  # type: ignore[arg-type]
        return limits

    @property
    def timeouts(self) -> Mapping[str, str]:
        """Those that are Postgres' settings of any user."""
        names = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
        return {name: getattr(self, name) for name in names}


def superusers_script() -> str:
    """What a superuser is to run in the database, without what only `psql` knows."""
    lines = SUPERUSERS.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("\\"))
