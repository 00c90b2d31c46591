"""Keeps other sites out: the headers of every answer, and the requests that are refused."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, a form would send no origin either
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer: a page runs and shows only what this server gives it, and no other page may frame it."""


@dataclass(frozen=True)
class Guarded:
    """Refuses foreign names of this host, and what pages of other sites load or send.

    host: the name or address that it listens on.

    A name that another site lets point here (DNS rebinding) is refused: Host must be an address, `localhost`, the name
    of this machine or `host`. A POST must come from a page of the same origin. A page of another site may link here,
    and load nothing from here.
    """

    app: ASGIApp
    host: str

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
        await (PlainTextResponse(refusal, 403) if refusal else self.app)(scope, receive, with_headers)

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
            name = urlsplit(f"//{host}").hostname or ""
            return name in ("localhost", self.host, socket.gethostname().lower()) or bool(ipaddress.ip_address(name))
        except ValueError:
            return False
