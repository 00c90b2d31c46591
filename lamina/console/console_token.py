"""The token of a console that other machines can reach."""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from view_algebra.errors import LaminaError

TOKEN = "console.token"  # noqa: S105 (the name of its file)


def token_for(host: str, names: Collection[str], home: Path) -> str | None:
    """The token of a console at this host, kept in LAMINA_HOME for its owner alone. None at a loopback address.

    A console with other names is behind a proxy, through which others reach even a loopback address. Raises LaminaError
    if the token's file is empty.

    >>> token_for("localhost", [], Path("/nowhere")), token_for("127.0.0.1", [], Path("/nowhere"))
    (None, None)
    """
    if not names and is_loopback(host):
        return None
    home.mkdir(parents=True, exist_ok=True)
    file, draft = home / TOKEN, home / f"{TOKEN}.{os.getpid()}"
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(24), encoding="utf-8")
    with suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise LaminaError(
            "The console's token is empty", evidence=str(file), way_out="Delete the file, and repeat the command."
        )
    return token


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("LocalHost"), is_loopback("db.example.org")
    (True, True, True, False)
    """
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"
