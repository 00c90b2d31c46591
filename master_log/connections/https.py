"""HTTP requests that follow no redirect, which would send a login to another host."""

from __future__ import annotations

from ssl import SSLContext
from typing import Any
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, build_opener

LONGEST = 10 * 1024 * 1024
"""Most bytes read from an answer."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def opener(trusted: SSLContext) -> OpenerDirector:
    """An opener for requests over TLS to servers that `trusted` accepts."""
    return build_opener(HTTPSHandler(context=trusted), _NoRedirect())
