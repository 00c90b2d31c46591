"""OAuth 2 tokens that identify a client to Kafka's brokers (OAUTHBEARER), fetched with the client's credentials.

Java's client fetches tokens of its own from the same endpoint.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request

from master_log.connections.certificates import check_authorities
from master_log.connections.https import LONGEST, opener
from master_log.connections.unavailable import KafkaUnavailable
from view_algebra.errors import LaminaError

ANSWER_SECONDS = 5.0
"""Seconds an endpoint may take: a connection to a broker waits for it."""

RENEWED_AT = 0.8
"""Share of a token's life after which it is renewed, as in Java's client."""


@dataclass(frozen=True)
class TokenEndpoint:
    """The endpoint that issues a client's tokens (RFC 6749, 4.4).

    ca_file: PEM of the endpoint's authority
    Raises LaminaError unless `url` is an http or https URL.
    """

    url: str
    client: str
    secret: str = field(repr=False)
    scope: str = ""
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            raise LaminaError(
                "The token endpoint is not an http or https URL",
                evidence=f"Found {self.url!r}.",
                way_out="It looks like https://id.example.org/realms/x/protocol/openid-connect/token.",
            )

    def fetch(self) -> tuple[str, float]:
        """Fetches a token, and returns it with the seconds for which it is valid.

        Raises KafkaUnavailable if the endpoint does not answer, and LaminaError if it refuses or issues no token.
        """
        login = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        request = Request(self.url, urlencode(form).encode(), headers)  # noqa: S310 (TokenEndpoint allows http and https)
        if self.ca_file:
            check_authorities(self.ca_file, "token_ca_file")
        context = ssl.create_default_context(cafile=self.ca_file)
        try:
            with opener(context).open(request, timeout=ANSWER_SECONDS) as answer:
                return self._token(answer.read(LONGEST))
        except HTTPError as error:
            with error:
                if error.code >= 500:
                    raise self._unavailable(str(error)) from error
                raise LaminaError(
                    f"The token endpoint {self.url} refuses the client {self.client!r}",
                    evidence=f"HTTP {error.code} {_reason(error.read())}".strip(),
                    way_out="Correct the client's id and secret, scope and token_url.",
                ) from error
        except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError for a name such as `a..b`
            raise self._unavailable(str(error)) from error

    def _unavailable(self, evidence: str) -> LaminaError:
        return KafkaUnavailable(
            f"The token endpoint {self.url} does not answer",
            evidence=evidence,
            way_out="Start it, or correct token_url (and token_ca_file, if your own authority signed its certificate).",
        )

    def _token(self, body: bytes) -> tuple[str, float]:
        try:
            answer = json.loads(body)
            token, seconds = answer["access_token"], float(answer.get("expires_in", 0))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LaminaError(
                f"The token endpoint {self.url} does not answer with a token",
                evidence=f"Found {_without_values(body)}, wanted JSON with access_token.",
                way_out="Correct token_url: it often ends in /token.",
            ) from error
        if str(token).count(".") != 2:
            raise LaminaError(
                f"The token endpoint {self.url} issues tokens that are not JWTs",
                evidence="Kafka's Java client reads no other tokens.",
                way_out="Configure the endpoint to issue JWTs to this client.",
            )
        return str(token), seconds


def _without_values(body: bytes) -> str:
    """An answer in words, without any JSON value, which may be a token."""
    try:
        answer = json.loads(body)
    except ValueError:
        return repr(body[:80].decode(errors="replace"))
    return (
        f"an object with {', '.join(answer) or 'nothing'}" if isinstance(answer, dict) else "JSON that is not an object"
    )


class Tokens:
    """The tokens of one endpoint. A token is used for most of its life. Threads may share this object."""

    def __init__(self, endpoint: TokenEndpoint, clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoint, self._clock = endpoint, clock
        self._token, self._renewed_at, self._valid_until = "", 0.0, 0.0
        self._fetching = threading.Lock()

    def token(self) -> str:
        """A valid token: the current one stays in use while the endpoint fails to renew it. Raises as `fetch` does."""
        with self._fetching:
            now = self._clock()
            if now >= self._renewed_at:
                try:
                    self._token, seconds = self._endpoint.fetch()
                    self._renewed_at, self._valid_until = now + RENEWED_AT * seconds, now + seconds
                except LaminaError:
                    if now >= self._valid_until:
                        raise
            return self._token


@cache
def provider(endpoint: TokenEndpoint) -> Any:
    """The tokens of an endpoint for kafka-python: its connections share them."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(Tokens, AbstractTokenProvider):  # type: ignore[misc]
        pass

    return Provider(endpoint)


def _reason(body: bytes) -> str:
    """The words of an OAuth error (RFC 6749, 5.2). Empty for any other answer, which may hold a secret."""
    try:
        answer = json.loads(body)
        return ": ".join(str(answer[name]) for name in ("error", "error_description") if name in answer)
    except (ValueError, TypeError):
        return ""
