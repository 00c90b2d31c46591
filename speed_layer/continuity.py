"""Checks that a topic still holds the records that a query reads next, and those that it has counted."""

from __future__ import annotations

import time
from collections.abc import Mapping

from master_log.kafka.brokers import Brokers
from master_log.kafka.tails import Tails
from master_log.offsets import Offsets
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

MISSING_SECONDS = 10.0
"""Seconds for which the brokers may not know a topic before it counts as deleted."""


class CannotContinue(LaminaError):
    """Raised if a topic no longer holds the next records: reading on would skip records, or read others."""


def in_doubt(brokers: Brokers, expected: Mapping[str, tuple[str, Offsets, Tails]]) -> list[str]:
    """The topics that `check_topic` has to check one by one. One question about all shows that the others are sound.

    expected: the id of each topic, the offsets reached in it, and the tails below them
    """
    ids = brokers.topic_ids(*expected)
    existing = {topic: state for topic, state in expected.items() if ids.get(topic) == state[0]}
    if not existing:
        return list(expected)
    earliest = brokers.earliest(*existing)
    tails = brokers.tails(
        Offsets({at: offset for _, reached, _ in existing.values() for at, offset in reached.items()})
    )
    sound = {
        topic
        for topic, (_, reached, stored) in existing.items()
        if all(tails.get(at) == tail for at, tail in stored.items())
        and all(first <= reached.get(at, 0) for at, first in earliest.items() if at.topic == topic)
    }
    return [topic for topic in expected if topic not in sound]


def check_topic(
    brokers: Brokers,
    source: Source,
    topic_id: str,
    reached: Offsets,
    tails: Tails,
    *,
    absent_for: float = MISSING_SECONDS,
) -> None:
    """Raises unless the topic is the one that was deployed, and holds every record from `reached` on.

    Below `reached` it must hold the records that were counted, which `tails` proves.
    """
    check_id(brokers, source, topic_id, absent_for=absent_for)
    check_tails(brokers, source, reached, tails)
    removed = brokers.removed(reached)
    if removed.end:
        raise CannotContinue(
            f"Records of {source.topic} were removed by retention before they were read",
            evidence=f"progress is {removed.start}, the first records the brokers still hold are {removed.end}",
            way_out=(
                "If `lamina archive` took them into the master log in time, `lamina rebuild --leap"
                f" {source.name}` continues from there. Otherwise, it reports that they are missing."
            ),
        )


def check_tails(brokers: Brokers, source: Source, reached: Offsets, tails: Tails) -> None:
    """Raises if Kafka has lost records below `reached`, even if it has given their offsets to others since."""
    differing = brokers.differing(reached, tails)
    if differing:
        raise CannotContinue(
            f"Kafka has lost records of {source.topic} that were counted",
            evidence="\n".join(map(str, differing)),
            way_out=(
                "A broker lost them before they were on disk, or a leader was elected that lacked them. `lamina rebuild"
                f" --leap {source.name}` recomputes the views from what the master log and Kafka hold now, and"
                " continues from there."
            ),
        )


def check_id(brokers: Brokers, source: Source, topic_id: str, *, absent_for: float = MISSING_SECONDS) -> None:
    """Raises unless the topic is the one that was deployed. A missing topic is waited for.

    absent_for: seconds after which it counts as deleted
    """
    deadline = time.monotonic() + absent_for
    while (id_now := brokers.topic_id(source.topic)) is None and time.monotonic() < deadline:
        time.sleep(0.5)  # a starting broker may not know its topics yet
    if id_now != topic_id:
        raise CannotContinue(
            f"The topic {source.topic} was {'deleted' if id_now is None else 'deleted and created again'}",
            evidence=f"{source.name} was deployed on the topic with id {topic_id}, the brokers now hold {id_now}",
            way_out=(
                "Its offsets mean other records now, so nothing was read from it. Give the new topic another name, and"
                " declare it as a source with another name. The views of the old source stay."
            ),
        )
