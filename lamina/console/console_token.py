"""The token of a console that other machines can reach."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from lamina.services.own_processes import is_loopback
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
