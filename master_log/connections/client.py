"""The shared connection for requests to Kafka's brokers: opened on demand and reopened after a failure."""

from __future__ import annotations

import logging
import re
import socket
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    BrokerResponseError,
    Cancelled,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationFailedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from master_log.connections.login import Login
from master_log.connections.unavailable import KafkaUnavailable, unreachable
from view_algebra.errors import LaminaError

_T = TypeVar("_T")

PATIENCE_MS = 5_000
"""Milliseconds one request may take before it fails. A broker on a loaded laptop answers in under 1 s."""

_CONNECTION_LOST = (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, KafkaTimeoutError, Cancelled)
_ERROR_MESSAGE = re.compile(r"""error_message=(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)')""")
_REASON = re.compile(r"failed: (?P<reason>.+?) \(backoff")


class _FailureReasons(logging.Handler):
    """Reasons of the latest failures: kafka-python only logs them, and raises that bootstrapping took too long."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reasons: deque[str] = deque(maxlen=20)

    def emit(self, record: logging.LogRecord) -> None:
        if match := _REASON.search(record.getMessage()):
            self.reasons.append(match["reason"])


_failures = _FailureReasons()
# Failures that matter are raised. Without this, a loop that waits for a broker would print a line per attempt.
logging.getLogger("kafka").addHandler(_failures)
logging.getLogger("kafka").propagate = False


class Client:
    """A connection to a Kafka cluster. The first request opens it, and the next one reopens a lost connection.

    Threads may share it. Every request ends within seconds (`PATIENCE_MS` per attempt), with an answer or an error.
    """

    def __init__(self, bootstrap_servers: str, login: Login | None = None) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.login = login
        self._admin: Any = None
        self._waiting: Counter[Any] = Counter()
        self._opening = threading.Lock()

    @property
    def options(self) -> dict[str, Any]:
        """The options with which kafka-python reaches the brokers."""
        return {
            "bootstrap_servers": [server.strip() for server in self.bootstrap_servers.split(",")],
            **(self.login.for_client() if self.login else {}),
        }

    def close(self) -> None:
        """Closes the connection once no thread waits for an answer on it. The next request opens another."""
        with self._opening:
            admin, self._admin = self._admin, None
            unused = self._unused(admin)
        if unused:
            admin.close()

    def listening(self) -> bool:
        """True if a broker accepts a connection within half a second."""
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=0.5):
                return True
        return False

    def ask(self, question: Callable[[Any], _T]) -> _T:
        """Sends a request, and repeats it once on a new connection if the connection was lost (brokers may restart)."""
        again = False
        while True:
            admin = self._connected()
            try:
                return self._answer(question, admin)
            except _CONNECTION_LOST as error:
                if admin is not self._admin:  # another thread that lost it has already closed it
                    continue
                self.close()
                if again:
                    raise unreachable(self.bootstrap_servers, [str(error)]) from error
                again = True
            except (AuthorizationError, SaslAuthenticationFailedError) as error:
                raise self._not_allowed(str(error)) from error
            except (TopicAlreadyExistsError, UnknownTopicOrPartitionError):
                raise
            except RetriableError as error:  # after a restart, until partitions have leaders again
                raise unreachable(self.bootstrap_servers, [str(error)]) from error
            except KafkaError as error:
                if not isinstance(error, BrokerResponseError):  # the client's own error: no broker has answered
                    raise unreachable(self.bootstrap_servers, [str(error)]) from error
                match = _ERROR_MESSAGE.search(str(error))
                raise LaminaError(
                    f"The brokers at {self.bootstrap_servers} refused the request",
                    evidence=match["double"] or match["single"] if match else str(error),
                    way_out="Correct the topic's name and settings, or do it with Kafka's own tools.",
                ) from error

    def _connected(self) -> Any:
        """The connection, kept open until `_answer` releases it."""
        with self._opening:
            if self._admin is None:
                self._admin = self._open()
            self._waiting[self._admin] += 1
            return self._admin

    def _answer(self, question: Callable[[Any], _T], admin: Any) -> _T:
        try:
            return question(admin)
        finally:
            with self._opening:
                self._waiting -= Counter([admin])
                unused = self._unused(admin)
            if unused:
                admin.close()

    def _unused(self, admin: Any) -> bool:
        """True if the connection is closed and its last answer has arrived. The caller holds the lock."""
        return admin not in (None, self._admin) and not self._waiting[admin]

    def _open(self) -> Any:
        connections: list[Any] = []

        def remember(**options: Any) -> Any:
            connections.append(KafkaNetClient(**options))
            return connections[-1]

        _failures.reasons.clear()
        try:
            return KafkaAdminClient(
                **self.options,
                client_id=f"lamina-{uuid.uuid4().hex[:8]}",
                request_timeout_ms=PATIENCE_MS,
                bootstrap_timeout_ms=PATIENCE_MS,
                reconnect_backoff_max_ms=1_000,
                kafka_client=remember,
            )
        except (KafkaError, ValueError, OSError) as error:
            for connection in connections:  # a failed constructor leaves its thread and sockets behind
                connection.close()
            reasons = list(dict.fromkeys(_failures.reasons)) or [str(error)]
            refusals = [reason for reason in reasons if "Sasl" in reason or "Authorization" in reason]
            if refusals:
                raise self._not_allowed(refusals[-1]) from error
            if tls_failures := [reason for reason in reasons if "SSL" in reason]:
                raise self._not_trusted(tls_failures[-1]) from error
            raise unreachable(self.bootstrap_servers, reasons) from error

    def _not_allowed(self, reason: str) -> LaminaError:
        what = self.login.shown if self.login else "a connection without a login"
        return LaminaError(
            f"The brokers at {self.bootstrap_servers} refuse {what}",
            evidence=reason,
            way_out="Correct user, password, mechanism and protocol to what the listener at that port expects.",
        )

    def _not_trusted(self, reason: str) -> KafkaUnavailable:
        """The error if one side does not trust the other's certificate, or the listener does not use TLS."""
        is_their_certificate = "CERTIFICATE_VERIFY_FAILED" in reason
        return KafkaUnavailable(
            f"TLS with the brokers at {self.bootstrap_servers} fails",
            evidence=reason,
            way_out=(
                "Name the authority of the brokers' certificate in ca_file, or renew the certificate if it has expired."
                if is_their_certificate
                else "Name the client certificate that the brokers ask for in cert_file, or correct the port."
            ),
        )
