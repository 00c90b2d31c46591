"""The topics of a catalog's sources: new ones keep every record, and existing ones are checked."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from lamina.operations import source_topics
from master_log.kafka.brokers import Brokers
from tests.fix_services import Topic
from view_algebra import Catalog, compile_catalog
from view_algebra.errors import LaminaError


def declared(topic: str, *partitions: str | None) -> Catalog:
    """Sources a, b, … over one topic: the first is a stream, the others are tables."""
    key = ("", *[" PRIMARY KEY"] * len(partitions))
    return compile_catalog(
        {
            f"{name}.sql": f"CREATE TABLE {name} (id INT{key[n]}) USING kafka OPTIONS (topic '{topic}', format 'json')"
            + (f" TBLPROPERTIES ('partitions' = '{number}');" if number else ";")
            for n, (name, number) in enumerate(zip("abc", partitions, strict=False))
        }
    )


def settings_of(kafka_admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """The settings of the topic itself, without the brokers' defaults."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
    settings = kafka_admin.describe_configs(asked, config_filter="all")["topic"][topic]
    return {
        name: setting["value"]
        for name, setting in settings.items()
        if setting["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    }


def test_a_topic_that_apply_creates_keeps_records_of_any_age(
    brokers: Brokers, kafka_admin: KafkaAdminClient, topic: Topic
) -> None:
    name = f"{topic()}_new"
    notes: list[str] = []
    catalog = declared(name, None)
    source_topics.ensure_topic(brokers, catalog.sources["a"], catalog, notes.append)
    assert notes == [f"a: topic {name} created with 4 partitions"]
    assert settings_of(kafka_admin, name) == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }


def test_the_partitions_that_one_source_of_a_topic_declares_are_created(brokers: Brokers, topic: Topic) -> None:
    name = f"{topic()}_shared"
    catalog = declared(name, None, "2")
    source_topics.ensure_topic(brokers, catalog.sources["a"], catalog, print)
    assert brokers.partitions(name) == (0, 1)
    alone = f"{topic()}_alone"
    notes: list[str] = []
    catalog = declared(alone, "1")
    source_topics.ensure_topic(brokers, catalog.sources["a"], catalog, notes.append)
    assert notes == [f"a: topic {alone} created with 1 partition"]


def test_sources_that_declare_different_partitions_of_a_topic_are_refused(brokers: Brokers, topic: Topic) -> None:
    name = f"{topic()}_both"
    catalog = declared(name, "4", "2")
    with pytest.raises(LaminaError, match="do not agree on its partitions") as refused:
        source_topics.ensure_topic(brokers, catalog.sources["a"], catalog, print)
    assert refused.value.evidence == "a declares 4, b declares 2"
    assert brokers.topic_id(name) is None


def test_partitions_that_an_existing_topic_does_not_have_are_reported(brokers: Brokers, topic: Topic) -> None:
    name = topic(3)
    catalog = declared(name, "3", "2")
    [notes] = source_topics.notes_on_existing(brokers, [catalog.sources["b"]])
    assert notes == (
        f"b: topic {name} exists with 3 partitions and keeps them: 'partitions' = '2' only counts if `lamina apply`"
        " creates the topic"
    )
    assert list(source_topics.notes_on_existing(brokers, [catalog.sources["a"]])) == []


def test_plan_reports_a_topic_that_apply_would_create(brokers: Brokers, topic: Topic) -> None:
    name = topic()
    there, missing = declared(name, None).sources, declared(f"{name}_misspelt", None).sources
    assert source_topics.notes_on_new(brokers, there.values()) == []
    [notes] = source_topics.notes_on_new(brokers, missing.values())
    assert notes == f"a: there is no topic {name}_misspelt; `lamina apply` creates it"


WEEK = {"retention.ms": "604800000"}

MAY_LOSE = [
    # (the settings of a topic, whether plan says that it may lose records)
    ({}, False),
    (WEEK, True),
    (WEEK | {"cleanup.policy": "compact,delete"}, True),
    (WEEK | {"cleanup.policy": "compact"}, False),
    (WEEK | {"message.timestamp.type": "LogAppendTime"}, False),
    ({"retention.bytes": "1000000000"}, True),
    ({"retention.bytes": "1000000000", "cleanup.policy": "compact"}, False),
]


def test_a_topic_that_may_lose_old_records_before_they_are_counted_is_reported(brokers: Brokers, topic: Topic) -> None:
    for settings, may_lose in MAY_LOSE:
        name = topic(**settings)
        notes = list(source_topics.notes_on_existing(brokers, [declared(name, None, None).sources["b"]]))
        assert len(notes) == may_lose, notes
    name = topic(**WEEK)
    [note] = source_topics.notes_on_existing(brokers, declared(name, None).sources.values())
    assert note == (
        f"a: Kafka removes records from topic {name} once their own timestamp is 7 d old: records that are sent with"
        " older timestamps may be gone before they are counted or archived (set the topic's retention.ms to -1, or its"
        " message.timestamp.type to LogAppendTime)"
    )


def test_a_topic_that_does_not_exist_yet_is_not_reported(brokers: Brokers, topic: Topic) -> None:
    assert list(source_topics.notes_on_existing(brokers, declared(f"{topic()}_later", "2").sources.values())) == []
