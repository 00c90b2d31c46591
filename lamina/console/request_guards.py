"""Protection against other sites and people: the headers of every answer, refused requests, and the token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.services.own_processes import is_loopback
from view_algebra.errors import LaminaError

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, a form would not send its origin
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer. A page runs and shows only this server's contents, and no other page may frame it."""

COOKIE = "lamina_console_{port}"
"""Name of the cookie. A browser sends a host's cookies to all of its ports, so each console has its own name."""

COOKIE_SECONDS = 30 * 24 * 3600
"""Seconds for which a browser keeps the token."""

TOKEN = "console.token"  # noqa: S105 (a file)
"""The file of the token in LAMINA_HOME."""


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


@dataclass(frozen=True)
class RequestGuard:
    """Refuses foreign names of this host, loads and forms of other sites' pages, and requests without the token.

    `names` are the console's names in lower case. `token` is None if everybody who reaches it may read it.

    A name that another site points here (DNS rebinding) is refused: Host must be an address, `localhost`, the name of
    this machine or one of `names`. A POST must come from a page of the same origin. A page of another site may link
    here, but may not load anything. The token comes once in the address, and is then kept as a cookie. A program sends
    it as `Authorization: Bearer TOKEN`.
    """

    app: ASGIApp
    names: frozenset[str]
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses the request, or answers with the headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        instead = PlainTextResponse(refusal, 403) if refusal else self._without_token(Request(scope))
        await (instead or self.app)(scope, receive, with_headers)

    def _without_token(self, request: Request) -> Response | None:
        """The refusal of a request without the token, or None. A token in the address becomes a cookie."""
        if self.token is None or request.url.path.startswith("/static/"):
            return None
        cookie = COOKIE.format(port=request.scope["server"][1])
        if self._is_token(request.query_params.get("token", "")):
            kept = RedirectResponse(request.url.path, 303)
            kept.set_cookie(cookie, self.token, httponly=True, samesite="lax", max_age=COOKIE_SECONDS)
            return kept
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_token(request.cookies.get(cookie, "")) or self._is_token(bearer):
            return None
        return PlainTextResponse("Open the console by the address that `lamina console` prints, token included.\n", 401)

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), (self.token or "").encode())

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return f"This console is not called {host!r}. Open it by the address that `lamina console` prints.\n"
        if method not in ("GET", "HEAD") and urlsplit(headers.get("origin", "")).netloc != host:
            return "This form is another site's. Send it from the console's own page.\n"
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "Another site's page asked for this. Open the console's own page.\n"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""  # in lower case
            return name in {"localhost", socket.gethostname().lower(), *self.names} or bool(ipaddress.ip_address(name))
        except ValueError:
            return False
