"""Progress in Kafka's consumer groups, from which Kafka's own tools compute lag. Lamina never reads it back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka import TopicPartition
from kafka.errors import BrokerResponseError, KafkaError, NoError, RetriableError
from kafka.structs import OffsetAndMetadata

from master_log.connections.client import Client
from master_log.offsets import Offsets

log = logging.getLogger("lamina.kafka")

PREFIX = "lamina."
"""A source's group is called `lamina.<source>`."""

RENEWED_EVERY = 3600.0
"""Seconds after which unchanged offsets are committed again: Kafka forgets an idle group after a week."""

RETRIED_EVERY = 10.0
"""Seconds after which a refused commit is tried again, for example if a topic is gone."""


@dataclass
class Groups:
    """Consumer groups without members.

    client: a connection of its own, so that no request waits for a slow commit
    """

    client: Client
    clock: Callable[[], float] = time.monotonic
    _tried: dict[str, tuple[Offsets, float]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def commit(self, progress: Mapping[str, Offsets]) -> None:
        """Commits the offsets that have advanced, and every hour those that have not.

        A retriable refusal is repeated after `RETRIED_EVERY`. After any other, the group is given up for the life of
        this process, and the first one is logged. Does nothing if no broker listens. Raises LaminaError if the brokers
        do not answer.
        """
        moved = {source: offsets for source, offsets in progress.items() if self._is_due(source, offsets)}
        if not moved or not self.client.listening():
            return
        for source, offsets in moved.items():
            refusal = self.client.ask(partial(_commit, group=PREFIX + source, offsets=offsets))
            if refusal is None or issubclass(refusal, RetriableError):
                self._tried[source] = offsets, self.clock() + (RENEWED_EVERY if refusal is None else RETRIED_EVERY)
            else:
                self._refuse(source, refusal)
            if refusal is not None:
                self.client.close()  # it may remember a coordinator that has stepped down

    def _is_due(self, source: str, offsets: Offsets) -> bool:
        before, again_at = self._tried.get(source, (None, 0.0))
        return source not in self._refused and (before != offsets or self.clock() >= again_at)

    def close(self) -> None:
        """Closes the connection."""
        self.client.close()

    def _refuse(self, source: str, refusal: type[KafkaError]) -> None:
        if not self._refused:
            log.warning(
                "Kafka's tools do not show the lag of %s: the brokers refuse offsets for the consumer group %s (%s). "
                "Views are as fresh without them. To see the lag there, allow READ on groups that begin with %s",
                source,
                PREFIX + source,
                refusal.__name__.removesuffix("Error"),
                PREFIX,
            )
        self._refused.add(source)


def _commit(admin: Any, group: str, offsets: Offsets) -> type[KafkaError] | None:
    """Commits offsets to a group. Returns the first error of the brokers, if any."""
    wanted = {TopicPartition(*at): OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()}
    try:
        answers: dict[TopicPartition, type[KafkaError]] = admin.alter_group_offsets(group, wanted)
    except BrokerResponseError as error:
        return type(error)
    return next((answer for answer in answers.values() if answer is not NoError), None)
