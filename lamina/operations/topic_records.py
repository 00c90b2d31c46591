"""Records of a source's topic: waiting until they are counted, and skipping one."""

from __future__ import annotations

import time

from lamina.operations.deployment import Deployment
from master_log.offsets import Offsets, TopicPartition
from serving_layer.promise import progress, skipping
from serving_layer.promise.quarantine import BadRecord
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

AGAIN_SECONDS = 0.1
"""Seconds between two looks at progress: a fraction of a micro-batch."""

SILENT_SECONDS = 120.0
"""Seconds without any speed layer after which waiting ends. A JVM on two busy cores starts within one minute."""


def wait_until_counted(deployment: Deployment, source: Source, end: Offsets, patience: float = SILENT_SECONDS) -> None:
    """Returns when the progress of the source has reached `end`: every view shows the records below it.

    Raises LaminaError if the source's query has stopped, or if no speed layer runs for `patience` seconds.
    """
    heard = time.monotonic()
    while True:
        with deployment.database.begin() as connection:
            reached = progress.read(connection, [source.name])
            if reached.reaches(end):
                return
            query, is_read = progress.queries(connection)[source.name], progress.are_read(connection)
        if query.stopped:
            raise LaminaError(
                f"{source.name} has stopped: the records were sent but are not counted",
                evidence=query.stopped,
                way_out="`lamina status` says more.",
            )
        heard = time.monotonic() if is_read else heard
        if time.monotonic() - heard > patience:
            raise LaminaError(
                f"No speed layer runs: the records were sent to {source.topic} but are not counted",
                evidence=f"progress is at {reached}, and the topic ends at {end}",
                way_out="Start one with `lamina up` or `lamina speed`. It counts them. Do not send them again.",
            )
        time.sleep(AGAIN_SECONDS)


def skip(deployment: Deployment, source: Source, partition: int, offset: int, reason: str) -> bool:
    """Quarantines a record by name. After that, nothing reads it. Returns False if it was skipped already."""
    at = TopicPartition(source.topic, partition)
    brokers = deployment.brokers
    first, end = (ends.get(at) for ends in (brokers.earliest(source.topic), brokers.latest(source.topic)))
    if first is None or end is None or not first <= offset < end:
        raise LaminaError(
            f"{source.topic} has no record at partition {partition}, offset {offset}",
            evidence=f"partition {partition} holds offsets from {first} up to {end} (not including it)"
            if first is not None
            else f"its partitions are {', '.join(map(str, brokers.partitions(source.topic)))}",
            way_out="`lamina status` names the record that stops a query.",
        )
    key, value = brokers.record(source.topic, partition, offset) or (None, None)
    tail = brokers.tails(Offsets({at: offset + 1})).get(at)
    bad = BadRecord(source.topic, partition, offset, None, skipping.SKIPPED, key, value)
    return deployment.database.retrying(lambda connection: skipping.skip(connection, source.name, bad, tail, reason))
