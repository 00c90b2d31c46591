"""The error for brokers, or for a token endpoint, that do not answer now."""

from __future__ import annotations

from collections.abc import Iterable

from view_algebra.errors import LaminaError

_LONGEST_REASON = 300
"""Most characters shown of a reason: the client lists every partition of a topic in it."""


class KafkaUnavailable(LaminaError):
    """The brokers do not answer now. A later request may succeed."""


def _cut(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def unreachable(bootstrap_servers: str, reasons: Iterable[str]) -> KafkaUnavailable:
    """The error for brokers that do not answer, with the reasons."""
    return KafkaUnavailable(
        f"Kafka does not answer at {bootstrap_servers}",
        evidence="\n".join(map(_cut, reasons)),
        way_out="Start the brokers, or correct the address and the login in LAMINA_KAFKA (host:port).",
    )
