"""What every question over HTTP has in common: no redirection, which would take a login to another host."""

from __future__ import annotations

from ssl import SSLContext
from typing import Any
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, build_opener

LONGEST = 10 * 1024 * 1024
"""Bytes of an answer that are read, at the most."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def opener(trusted: SSLContext) -> OpenerDirector:
    """What asks a question."""
    return build_opener(HTTPSHandler(context=trusted), _NoRedirect())
