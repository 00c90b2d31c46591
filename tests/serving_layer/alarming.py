"""The alarms of a serving layer whose topics and thresholds a test chooses."""

from __future__ import annotations

from sqlalchemy import text

from master_log.kafka.brokers import Retention
from master_log.offsets import Offsets
from serving_layer.monitoring.alarms import alarms
from serving_layer.monitoring.query_alarms import Thresholds, TopicState
from tests.serving_layer.world import World

WEEK = Retention(milliseconds=7 * 86_400_000, bytes=None, compacted=False, record_bytes=1_000_000)

COMPACTED = Retention(milliseconds=None, bytes=None, compacted=True, record_bytes=1_000_000)

THRESHOLDS = Thresholds()

AGO = "clock_timestamp() - interval"

LONG_AGO = f"created_at = {AGO} '1 day', committed_at = {AGO} '90 s', caught_up_at = {AGO} '80 s'"


def alarms_of_a(
    world: World,
    *,
    behind: int = 0,
    retention: Retention = WEEK,
    thresholds: Thresholds = THRESHOLDS,
    earliest: int = 0,
) -> list[str]:
    """The alarms of query a, whose topic ends so many records after progress, and of rebuilds."""
    reached = world.progress("a")
    end = Offsets({at: offset + (behind if at.partition == 0 else 0) for at, offset in reached.items()})
    topic = TopicState(end, Offsets({at: 0 if at.partition else earliest for at in end}), retention)
    with world.database.snapshot() as connection:
        return [alarm for alarm in alarms(connection, {"a": topic}, thresholds) if not alarm.startswith("b: ")]


def sql(world: World, statement: str) -> None:
    with world.database.begin() as connection:
        connection.execute(text(statement))
