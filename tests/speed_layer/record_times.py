"""Records whose producers choose their times."""

from __future__ import annotations

from contextlib import suppress

from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import InvalidTimestampError

from tests.fix_lamina import Deployed


def accept_any_time(kafka_admin: KafkaAdminClient, topic: str) -> None:
    """Lets a topic accept times far from now, as other people's brokers may."""
    limits = dict.fromkeys(("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"), str(2**63 - 1))
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, limits)])


def send_at(deployed: Deployed, topic: str, value: bytes, milliseconds: int, partition: int = 0) -> None:
    """Sends a record with that time, once the broker has learned that the topic accepts it."""
    # An idempotent producer is unusable after a refused record.
    producer = KafkaProducer(bootstrap_servers=deployed.deployment.settings.kafka, enable_idempotence=False)

    def accepted() -> bool:
        with suppress(InvalidTimestampError):
            producer.send(topic, value, partition=partition, timestamp_ms=milliseconds).get(30)
            return True
        return False

    deployed.until(accepted, f"{topic} accepts a record of {milliseconds}")
    producer.close()
