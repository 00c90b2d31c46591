"""Metrics for a monitoring system, as a table of data: name (with unit), help, labels and SQL of each.

`read` runs all of them as one statement over the bookkeeping. It takes some milliseconds, because it counts no rows of
views and none of the quarantine.
The lag needs the brokers, so `lamina/reports/metrics.py` adds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, text

from serving_layer.catalog.lookup import HELD
from serving_layer.monitoring.delays import GONE_AFTER
from serving_layer.monitoring.deployment_alarms import SNAPSHOT_SECONDS
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.postgres.cells import ESTIMATED
from serving_layer.postgres.database import FOREIGN_SNAPSHOT
from serving_layer.postgres.phases import PHASES
from serving_layer.promise.proof import NEWEST_PROOFS
from serving_layer.promise.rebuilds import FAILED_REBUILDS, LAST_SUCCESS
from view_algebra.record_columns import NULLED


@dataclass(frozen=True)
class Alert:
    """An alert: its condition in PromQL, and the way out.

    lasts: the time that the condition must last
    summary: what has happened, if the metric's meaning does not say it
    """

    name: str
    when: str
    way_out: str
    lasts: str = "0m"
    summary: str = ""


@dataclass(frozen=True)
class Metric:
    """A number per set of labels.

    sql: a SELECT of the labels and the value, empty if the brokers provide it
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    sql: str = ""
    kind: Literal["gauge", "counter"] = "gauge"
    alert: Alert | None = None


@dataclass(frozen=True)
class MetricSample:
    """The value of a metric for one set of labels."""

    metric: str
    labels: tuple[str, ...]
    value: float


_SHOWN_PLACES = """
SELECT p.view, c.place
FROM lamina.publication AS p JOIN lamina.generation_cells AS c ON c.generation = p.generation"""

_OFFSETS = "SELECT query, sum(next_offset - start_offset) AS offsets FROM lamina.progress GROUP BY query"

_BAD = f"""
SELECT source, records, starts_with(error, '{NULLED}') AS counts FROM lamina.bad_count"""

_SKIPPED = """
SELECT q.name AS source, count(s.topic_id) AS records
FROM lamina.query AS q LEFT JOIN lamina.skipped AS s ON s.topic_id = q.topic_id GROUP BY q.name"""

_DEPLOYED = {
    "source": "SELECT name FROM lamina.compiled WHERE kind = 'source'",
    "view": "SELECT name FROM lamina.view",
}
"""SELECTs of the names that a label may have. Dropped sources, whose progress the bookkeeping keeps, are left out."""

METRICS: tuple[Metric, ...] = (
    Metric(
        "lamina_view_seconds_behind",
        "Seconds for which a view may lack a record.",
        ("view",),
        "SELECT view, seconds_behind FROM lamina.freshness WHERE seconds_behind IS NOT NULL",
        alert=Alert(
            "LaminaViewBehind",
            "lamina_view_seconds_behind > 60",
            "Look at the lag and the speed layer of its sources: `lamina status` says what is wrong.",
            lasts="2m",
        ),
    ),
    Metric(
        "lamina_view_fresh_within_seconds",
        "Seconds that a view may be behind: its `fresh_within`.",
        ("view",),
        "SELECT view, fresh_within FROM lamina.freshness WHERE fresh_within IS NOT NULL",
        alert=Alert(
            "LaminaViewMissesTarget",
            "lamina_view_seconds_behind > lamina_view_fresh_within_seconds"
            " or lamina_view_fresh_within_seconds unless lamina_view_seconds_behind",
            "Look at the lag and the speed layer of its sources: `lamina status` says what is wrong.",
            lasts="1m",
        ),
    ),
    Metric(
        "lamina_view_fresh_ratio",
        "Share of the minutes of the last hour and day in which a view met its `fresh_within`. A minute without "
        "a speed layer is a miss.",
        ("view", "span"),
        "SELECT view, span, met FROM lamina.freshness_met",
    ),
    Metric(
        "lamina_view_cells",
        "Cells of the published generation, as Postgres estimates them.",
        ("view",),
        f"""
SELECT s.view, {ESTIMATED}
FROM ({_SHOWN_PLACES}) AS s JOIN pg_class AS t ON t.oid = to_regclass(s.place) GROUP BY s.view""",
    ),
    Metric(
        "lamina_view_bytes",
        "Bytes of the published generation, with its indexes.",
        ("view",),
        f"SELECT view, sum(pg_total_relation_size(to_regclass(place))) FROM ({_SHOWN_PLACES}) AS s GROUP BY view",
    ),
    Metric(
        "lamina_view_generation_age_seconds",
        "Seconds since the published generation was handed over.",
        ("view",),
        "SELECT view, extract(epoch FROM clock_timestamp() - handed_over_at) FROM lamina.publication",
    ),
    Metric(
        "lamina_view_held",
        "1 if a new generation is held back from readers by a check or a proof.",
        ("view",),
        f"""
SELECT name, (name IN (SELECT view FROM ({HELD}) AS held))::int FROM lamina.view WHERE kind <> 'derived'""",
        alert=Alert(
            "LaminaViewHeld",
            "lamina_view_held == 1",
            "`lamina status` names the check and both ways out.",
        ),
    ),
    Metric(
        "lamina_proof_compared_cells",
        "Cells that the newest proof of a view compared.",
        ("view",),
        f"SELECT view, cells FROM ({NEWEST_PROOFS}) AS p",
    ),
    Metric(
        "lamina_proof_differing_cells",
        "Cells that differed in the newest proof of a view: realtime result against batch result.",
        ("view",),
        f"SELECT view, differing FROM ({NEWEST_PROOFS}) AS p",
        alert=Alert(
            "LaminaProofDiffers",
            "lamina_proof_differing_cells > 0",
            "`lamina check VIEW` compares what is served with the SELECT; docs/operations.md lists the causes.",
        ),
    ),
    Metric(
        "lamina_check_failing",
        "Rows, keys or views that fail a declared check, by its last result on what readers read.",
        ("view", "check"),
        "SELECT view, name, failing FROM lamina.checked WHERE rebuild IS NULL",
        alert=Alert(
            "LaminaCheckFails",
            "lamina_check_failing > 0",
            "`lamina check --live VIEW` lists rows that fail.",
        ),
    ),
    Metric(
        "lamina_source_records_total",
        "Records of a source below its progress, by outcome. `counted` is an upper bound: markers of transactions also "
        "take offsets. `bad_field`: counted, with NULL for a field that could not be read.",
        ("source", "outcome"),
        f"""
SELECT q.name, o.outcome, o.records
FROM lamina.query AS q
LEFT JOIN ({_OFFSETS}) AS p ON p.query = q.name
LEFT JOIN ({_SKIPPED}) AS s ON s.source = q.name
CROSS JOIN LATERAL (SELECT coalesce(sum(b.records) FILTER (WHERE NOT b.counts), 0) AS bad,
                           coalesce(sum(b.records) FILTER (WHERE b.counts), 0) AS fields
                    FROM ({_BAD}) AS b WHERE b.source = q.name) AS b
CROSS JOIN LATERAL (VALUES ('counted', greatest(0, coalesce(p.offsets, 0) - b.bad - q.duplicates)),
                           ('bad', b.bad), ('bad_field', b.fields), ('duplicate', q.duplicates),
                           ('skipped', s.records)) AS o (outcome, records)""",
        "counter",
        alert=Alert(
            "LaminaBadRecords",
            f'increase(lamina_source_records_total{{outcome="bad"}}[1h]) > {Thresholds.bad_an_hour}',
            "`SELECT * FROM lamina.bad_records` says why. Correct the producer, or correct the declaration "
            "and run `lamina apply`, which then counts them.",
        ),
    ),
    Metric(
        "lamina_source_next_offset",
        "The offset below which every record of a partition is counted.",
        ("source", "partition"),
        "SELECT query, partition::text, next_offset FROM lamina.progress",
    ),
    Metric(
        "lamina_source_lag_offsets",
        "Offsets between a source's progress and the end of its topic.",
        ("source", "partition"),
        alert=Alert(
            "LaminaLagGrows",
            "sum by (source) (lamina_source_lag_offsets) > 0 "
            "and deriv((sum by (source) (lamina_source_lag_offsets))[15m:1m]) > 0",
            "The speed layer is slower than the producers: more cores, fewer views, or `lamina rebuild --leap SOURCE`.",
            lasts="15m",
        ),
    ),
    Metric(
        "lamina_micro_batch_seconds",
        "Seconds that a micro-batch of a source takes, by phase: the mean of its newest minute, of the last five.",
        ("source", "phase"),
        f"""
SELECT m.query, p.phase, p.seconds / m.micro_batches
FROM (SELECT DISTINCT ON (query) * FROM lamina.micro_batch_seconds
      WHERE minute > clock_timestamp() - interval '5 minutes' ORDER BY query, minute DESC) AS m
CROSS JOIN LATERAL (VALUES {", ".join(f"('{phase}', m.{phase})" for phase in PHASES)}) AS p (phase, seconds)""",
    ),
    Metric(
        "lamina_source_heard_age_seconds",
        "Seconds since the last heartbeat of a source's speed layer, unless a leap holds the source.",
        ("source",),
        """
SELECT a.source, a.heard_age FROM lamina.ages AS a JOIN lamina.query AS q ON q.name = a.source
WHERE a.heard_age IS NOT NULL AND q.writer_kind IS DISTINCT FROM 'leap'""",
        alert=Alert(
            "LaminaSpeedLayerGone",
            f"lamina_source_heard_age_seconds > {GONE_AFTER:.0f}",
            "Start the speed layer again: `lamina up`, or `lamina speed`.",
        ),
    ),
    Metric(
        "lamina_source_stopped",
        "1 if a source has stopped. `lamina status` prints the reason.",
        ("source",),
        "SELECT name, (stopped IS NOT NULL)::int FROM lamina.query",
        alert=Alert(
            "LaminaSourceStopped",
            "lamina_source_stopped == 1",
            "`lamina status` prints the reason and the way out.",
        ),
    ),
    Metric(
        "lamina_archive_lag_offsets",
        "Offsets that are counted and not archived yet.",
        ("source", "partition"),
        """
SELECT p.query, p.partition::text, p.next_offset - coalesce(a.held, p.start_offset)
FROM lamina.progress AS p LEFT JOIN lamina.archived AS a USING (query, topic, partition)""",
    ),
    Metric(
        "lamina_archive_headroom_offsets",
        "Archived offsets that Kafka still holds. Below 0, retention has removed records before they were archived.",
        ("source", "partition"),
        alert=Alert(
            "LaminaArchiveOvertaken",
            "lamina_archive_headroom_offsets < 0",
            "Run `lamina archive`, and see why its schedule does not. `lamina status` names the lost records.",
        ),
    ),
    Metric(
        "lamina_archive_age_seconds",
        "Seconds since the last archive run of a source.",
        ("source",),
        "SELECT query, extract(epoch FROM clock_timestamp() - min(archived_at)) FROM lamina.archived GROUP BY query",
    ),
    Metric(
        "lamina_rebuild_seconds",
        "Seconds that the newest finished rebuild took.",
        (),
        """
SELECT extract(epoch FROM ended_at - started_at) FROM lamina.rebuild
WHERE state = 'done' ORDER BY id DESC LIMIT 1""",
    ),
    Metric(
        "lamina_rebuild_step_seconds",
        "Seconds that each step of the newest finished rebuild took, since the previous step ended. `view`: for "
        "`compute`, and for `prove` if a scheduler proves views one by one.",
        ("step", "view"),
        """
SELECT split_part(s.key, ' ', 1), substr(s.key, strpos(s.key || ' ', ' ') + 1), s.value::float8
FROM (SELECT seconds FROM lamina.rebuild WHERE state = 'done' ORDER BY id DESC LIMIT 1) AS r
CROSS JOIN jsonb_each_text(r.seconds) AS s""",
    ),
    Metric(
        "lamina_rebuild_age_seconds",
        "Seconds since the newest rebuild of deployed views ended well.",
        (),
        f"SELECT extract(epoch FROM clock_timestamp() - ({LAST_SUCCESS}))",
        alert=Alert(
            "LaminaRebuildOverdue",
            "lamina_rebuild_age_seconds > 2 * 86400",
            "Run `lamina rebuild`, and see why its schedule does not.",
        ),
    ),
    Metric(
        "lamina_rebuild_failed",
        "1 if a rebuild or apply failed by itself, and a view of it was not computed since.",
        (),
        f"SELECT (EXISTS ({FAILED_REBUILDS}))::int",
        alert=Alert(
            "LaminaRebuildFailed",
            "lamina_rebuild_failed == 1",
            "`lamina status` names the step and the error. `lamina rebuild` begins again.",
        ),
    ),
    Metric(
        "lamina_oldest_snapshot_seconds",
        "Age of the oldest transaction of a reader that holds a snapshot: while it lasts, no vacuum removes rows.",
        (),
        f"""
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) FROM pg_stat_activity
WHERE {FOREIGN_SNAPSHOT}""",
        alert=Alert(
            "LaminaSlowReader",
            f"lamina_oldest_snapshot_seconds > {SNAPSHOT_SECONDS:.0f}",
            "Find it in pg_stat_activity by the age of xact_start, and end it: `SELECT pg_terminate_backend(pid)`.",
        ),
    ),
)


def read(connection: Connection) -> Iterator[MetricSample]:
    """The samples of every metric that Postgres knows, in one snapshot."""
    for metric, labels, value in connection.execute(text(_STATEMENT)):
        if value is not None:
            yield MetricSample(metric, tuple(labels), float(value))


def _branch(metric: Metric) -> str:
    names = [f"l{number}" for number, _ in enumerate(metric.labels)]
    labels = f"ARRAY[{', '.join(names)}]::text[]"
    columns = ", ".join([*names, "value"])
    deployed_names = _DEPLOYED.get(metric.labels[0]) if metric.labels else None
    deployed = f" WHERE l0 IN ({deployed_names})" if deployed_names else ""
    return f"SELECT '{metric.name}', {labels}, value::float8 FROM ({metric.sql}) AS m ({columns}){deployed}"


_STATEMENT = "\nUNION ALL\n".join(_branch(metric) for metric in METRICS if metric.sql)
