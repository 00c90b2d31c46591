"""Errors that refuse an archive run or a reader of the log."""

from __future__ import annotations

from collections.abc import Sequence

from master_log.kafka.tails import ChangedTail
from master_log.offsets import OffsetRange, Offsets
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError


def no_log(source: Source) -> LaminaError:
    """The error if no record of the source has been archived."""
    return LaminaError(
        f"{source.name}: there is no log of topic {source.topic}",
        way_out="Run `lamina archive`, which opens it.",
    )


def no_held_offsets(source: Source, evidence: str) -> LaminaError:
    """The error if no snapshot of the log records the offsets that it holds."""
    return LaminaError(
        f"{source.name}: its log does not say which offsets it holds",
        evidence=evidence,
        way_out="Make a snapshot of `lamina archive` current (CALL … set_current_snapshot): docs/how-to/backup.md.",
    )


def too_short(source: Source, held: Offsets, wanted: Offsets) -> LaminaError:
    """The error if the log ends below the cut."""
    return LaminaError(
        f"{source.name}: its log does not reach the cut",
        evidence=f"Held: {held or 'nothing'}.\nWanted: {wanted}.",
        way_out="Archive up to the cut first (`lamina archive`).",
    )


def begins_after(source: Source, first: Offsets, wanted: Offsets) -> LaminaError:
    """The error if the log begins above the requested records."""
    return LaminaError(
        f"{source.name}: its log does not hold the first records of the source",
        evidence=f"It begins at {first}.\nWanted: from {wanted}.",
        way_out="Archive them first (`lamina archive`).",
    )


def ends_before(source: Source, latest: Offsets, wanted: Offsets) -> LaminaError:
    """The error if the topic ends below the requested records."""
    return LaminaError(
        f"{source.name}: topic {source.topic} ends before the requested records",
        evidence=f"Found: {latest}.\nWanted: {wanted}.",
        way_out="The brokers lost records, or are not the ones that were read before: correct LAMINA_KAFKA.",
    )


def another_topic(source: Source, topic_id: str | None, wanted: str) -> LaminaError:
    """The error if the topic is not the one that the log was archived from."""
    actual = f"topic id {topic_id}" if topic_id else "no such topic"
    return LaminaError(
        f"{source.name}: topic {source.topic} is not the one whose records its log holds",
        evidence=f"Found: {actual}.\nWanted: topic id {wanted}.",
        way_out="The topic was deleted and created again, or LAMINA_KAFKA names other brokers. Its new offsets "
        "cannot continue this log: declare the source with a topic of another name, or drop"
        " it and its views and declare them again, which begins a new log.",
    )


def changed_meanwhile(source: Source, evidence: str) -> LaminaError:
    """The error if another run has published meanwhile."""
    return LaminaError(
        f"{source.name}: its log changed while records were archived",
        evidence=evidence,
        way_out="Run it again: nothing was changed.",
    )


def kafka_lost_archived_records(source: Source, differing: Sequence[ChangedTail]) -> LaminaError:
    """The error if Kafka may have given the offsets of archived records to other records."""
    return LaminaError(
        f"{source.name}: Kafka has lost records of {source.topic} that the master log holds",
        evidence="\n".join(map(str, differing)),
        way_out="Other records may have their offsets now. "
        f"`lamina archive {source.name} --accept-loss` cuts the log back to where it"
        " agrees with Kafka and keeps what it cuts off under a tag;"
        f" `lamina rebuild --leap {source.name}` makes the views the same.",
    )


def kafka_lost_counted_records(source: Source, differing: Sequence[ChangedTail]) -> LaminaError:
    """The error if Kafka may have given the offsets of counted records to other records."""
    return LaminaError(
        f"{source.name}: Kafka has lost records of {source.topic} that were counted",
        evidence="\n".join(map(str, differing)),
        way_out=f"`lamina rebuild --leap {source.name}` recomputes the views from what the log and Kafka hold now.",
    )


def removed_by_retention(source: Source, lost: OffsetRange) -> LaminaError:
    """The error if Kafka has removed records that were never archived."""
    listed = "\n".join(
        f"Partition {at.partition}: the offsets from {lost.start[at]} up to {end} (not including it)."
        for at, end in lost.end.items()
    )
    return LaminaError(
        f"{source.name}: records of topic {source.topic} were removed by retention before they were archived",
        evidence=listed,
        way_out="Set the topic's retention.ms to -1, or raise it and archive more often: it counts from each record's"
        f" own timestamp. To continue without these records, run `lamina archive {source.name} --accept-loss`, which"
        " records the loss.",
    )
