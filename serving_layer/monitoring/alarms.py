"""Alarms: conditions that need attention, each a sentence that ends in the way out. docs/operations.md lists them.

A new alarm is a function of `query_alarms.py` with a row in `OF_A_QUERY` if it concerns one query, else a function of
`deployment_alarms.py` with a row in `OF_THE_DEPLOYMENT`.
No rows of views are counted, and of the quarantine only the last hour's. So a health check may run every few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from serving_layer.monitoring import deployment_alarms, query_alarms
from serving_layer.monitoring.query_alarms import Thresholds, TopicState, WatchedQuery, watched_queries

OF_A_QUERY: tuple[Callable[[Connection, WatchedQuery], str | None], ...] = (
    query_alarms.stands_still,
    query_alarms.open_transaction,
    query_alarms.lost_records,
    query_alarms.unarchived,
    query_alarms.unarchived_deletions,
    query_alarms.compacted,
    query_alarms.bad_records,
)

OF_THE_DEPLOYMENT: tuple[Callable[[Connection, Thresholds], list[str]], ...] = (
    deployment_alarms.missed_targets,
    deployment_alarms.failed_rebuilds,
    deployment_alarms.abandoned_rebuild,
    deployment_alarms.overdue_rebuild,
    deployment_alarms.failed_checks,
    deployment_alarms.changed_settings,
    deployment_alarms.old_snapshots,
    deployment_alarms.unbuilt_indexes,
    deployment_alarms.late_standbys,
)


def alarms(connection: Connection, topics: Mapping[str, TopicState], thresholds: Thresholds) -> list[str]:
    """All alarms. `topics` by query, without those that the brokers gave no answer about."""
    return [*with_names(of_queries(connection, topics, thresholds)), *of_the_deployment(connection, thresholds)]


def of_queries(
    connection: Connection, topics: Mapping[str, TopicState], thresholds: Thresholds
) -> dict[str, list[str]]:
    """The alarms of the query of each deployed source, by name."""
    return {
        watched.query.name: [alarm for rule in OF_A_QUERY if (alarm := rule(connection, watched))]
        for watched in watched_queries(connection, topics, thresholds)
    }


def of_the_deployment(connection: Connection, thresholds: Thresholds) -> list[str]:
    """The alarms that concern no single query."""
    return [alarm for rule in OF_THE_DEPLOYMENT for alarm in rule(connection, thresholds)]


def with_names(by_query: Mapping[str, list[str]]) -> list[str]:
    """The alarms of queries, each with the query's name in front."""
    return [f"{name}: {alarm}" for name, alarms in by_query.items() for alarm in alarms]
