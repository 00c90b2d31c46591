"""A deployment's state from Postgres, Kafka and the disks: its status, alarms and undeclared fields."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lamina.operations.deployment import Deployment
from lamina.reports.lag_lines import is_starting
from master_log.offsets import Offsets
from serving_layer.catalog.deployed import JsonFields, json_fields, sources
from serving_layer.monitoring.alarms import alarms
from serving_layer.monitoring.query_alarms import Thresholds, TopicState
from serving_layer.monitoring.status import Status, status
from serving_layer.narration import size
from serving_layer.promise import progress
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from interchange.undeclared import UndeclaredField
    from master_log.kafka.brokers import Brokers, Retention
    from master_log.kafka.transactions import OpenTransaction

SAMPLE = 100
"""Newest records of each source that are sampled for undeclared fields."""

LITTLE_ROOM = 2_000_000_000
"""Bytes of free disk below which an alarm is raised. Kafka's log grows by files of up to 1 GB."""


def read_status(deployment: Deployment) -> Status:
    """The status. Lag and other facts from the brokers are missing if these do not answer."""
    topics, starting = _topics(deployment), is_starting(deployment)
    with deployment.database.snapshot() as connection:
        current = status(connection, topics, _thresholds(deployment), starting=starting)
    return replace(current, alarms=[*current.alarms, *disk_alarms(deployment)])


def _topics(deployment: Deployment) -> dict[str, TopicState]:
    """Each query's topic, as far as the brokers answer."""
    with deployment.database.begin() as connection:
        names = {name: query.topic for name, query in progress.queries(connection).items()}
    by_topic = topic_states(deployment.brokers, list(dict.fromkeys(names.values())))
    return {name: by_topic[topic] for name, topic in names.items() if topic in by_topic}


def topic_states(brokers: Brokers, topics: Sequence[str]) -> dict[str, TopicState]:
    """Topics by name as the brokers hold them, in one request. If the brokers refuse it, in one request per topic."""
    from master_log.connections.unavailable import KafkaUnavailable

    with suppress(LaminaError):
        return _described(brokers, list(brokers.topic_ids(*topics)))
    by_name: dict[str, TopicState] = {}
    for topic in topics if brokers.listening() else ():
        try:
            by_name |= _described(brokers, [topic])
        except KafkaUnavailable:
            if not brokers.listening():
                break  # nor will the brokers answer for the other topics
        except LaminaError:
            continue  # this topic is gone, which its query reports
    return by_name


def _described(brokers: Brokers, topics: Sequence[str]) -> dict[str, TopicState]:
    """Existing topics. Retention and open transactions are missing if this login may not read them."""
    if not topics:
        return {}
    ends, earliest = brokers.latest(*topics), brokers.earliest(*topics)
    undecided: list[OpenTransaction] = []
    with suppress(LaminaError):
        undecided = brokers.open_transactions(ends)
    retentions: dict[str, Retention] = {}
    with suppress(LaminaError):
        retentions = brokers.retentions(topics)
    return {
        topic: TopicState(
            Offsets.of(topic, ends.on(topic)),
            Offsets.of(topic, earliest.on(topic)),
            retentions.get(topic),
            [transaction for transaction in undecided if transaction.at.topic == topic],
        )
        for topic in topics
    }


def _thresholds(deployment: Deployment) -> Thresholds:
    settings = deployment.settings
    return Thresholds(settings.alarm_after, settings.alarm_no_rebuild, settings.alarm_bad_records)


def undeclared_fields(deployment: Deployment, of: Collection[str] | None = None) -> dict[str, list[UndeclaredField]]:
    """The undeclared fields of each source among its newest records, as far as the brokers answer.

    A field that another source of the topic declares is left out, unless it may be a mistyped column of this source.
    Sampling happens when somebody looks, so it costs the speed layer nothing. `of` limits the sources, None means all.
    """
    deployment.require_installed()
    with deployment.database.begin() as connection:
        declared = json_fields(connection)
    asked = {name: fields for name, fields in declared.items() if of is None or name in of}
    if not asked:
        return {}
    with suppress(LaminaError):
        newest = deployment.brokers.newest_records(list({fields.topic for fields in asked.values()}), SAMPLE)
        samples = {name: [value for _, value in newest[fields.topic]] for name, fields in asked.items()}
        if all(_is_declared(fields, samples[name]) for name, fields in asked.items()):
            return {}
        return _in_samples(deployment, declared, samples)
    return {}


def _is_declared(fields: JsonFields, values: Iterable[bytes | None]) -> bool:
    """True if, by their top-level names, the records have no field that the source does not declare.

    Nested fields need the compiler's types, whose loading takes a quarter of the command's time to start.
    """
    if not fields.flat:
        return False
    for value in values:
        with suppress(ValueError, RecursionError):
            record = json.loads(value or b"")
            if isinstance(record, dict) and not record.keys() <= fields.names:
                return False
    return True


def _in_samples(
    deployment: Deployment, declared: Mapping[str, JsonFields], samples: Mapping[str, Sequence[bytes | None]]
) -> dict[str, list[UndeclaredField]]:
    """The undeclared fields in these samples, by source."""
    from interchange.json_values import columns
    from interchange.undeclared import in_sample

    of_topic: dict[str, set[str]] = {}
    for fields in declared.values():
        of_topic.setdefault(fields.topic, set()).update(fields.names)
    with deployment.database.begin() as connection:
        source_of = sources(connection)
    by_source = {
        name: [
            seen
            for seen in in_sample(columns(source_of[name]), sample)
            if seen.meant or seen.field not in of_topic[declared[name].topic]
        ]
        for name, sample in samples.items()
        if name in source_of  # meanwhile, an apply may have dropped it
    }
    return {name: fields for name, fields in by_source.items() if fields}


def read_alarms(deployment: Deployment) -> list[str]:
    """All alarms. No rows of views are counted, so the cost does not grow with them."""
    topics = _topics(deployment)
    with deployment.database.snapshot() as connection:
        raised = alarms(connection, topics, _thresholds(deployment))
    return [*raised, *disk_alarms(deployment)]


def disk_alarms(deployment: Deployment) -> list[str]:
    """Alarms for the disks of this machine that are nearly full."""
    return [
        f"the disk of {folder} has {size(free)} left: make room before writing fails"
        for folder, free in free_bytes(deployment).items()
        if free < LITTLE_ROOM
    ]


def free_bytes(deployment: Deployment) -> dict[str, int]:
    """Free bytes for LAMINA_HOME and for the warehouse, as far as these are folders of this machine."""
    folders = {str(deployment.settings.home), deployment.settings.warehouse}
    return {folder: shutil.disk_usage(folder).free for folder in sorted(folders) if Path(folder).is_dir()}
