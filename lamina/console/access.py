"""The token of a console that other machines can reach."""

from __future__ import annotations

import ipaddress
import os
import secrets
from contextlib import suppress
from pathlib import Path

TOKEN = "console.token"  # noqa: S105 (the name of its file)


def token_for(host: str, home: Path) -> str | None:
    """The token of a console at this host: kept in LAMINA_HOME, for its owner alone; None if only this machine has it.

    >>> token_for("localhost", Path("/nowhere")), token_for("127.0.0.1", Path("/nowhere"))
    (None, None)
    """
    if host.lower() == "localhost":
        return None
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return None
    file = home / TOKEN
    with suppress(FileExistsError):
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w") as written:
            written.write(secrets.token_urlsafe(24))
    return file.read_text(encoding="utf-8")
