"""Alarms: conditions that need attention, each a sentence that ends in the way out. docs/operations.md lists them.

Nothing is counted row by row here, so a health check may run every few seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, column, exists, func, select, table, text

from master_log.log_times import RAW_LOG_TIME
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import kinds_of_sources, sources
from serving_layer.change import checks
from serving_layer.monitoring import standbys
from serving_layer.narration import amounts
from serving_layer.postgres.bookkeeping import archived, query, view
from serving_layer.postgres.states import RebuildKind, RebuildState, WriterKind
from serving_layer.promise import progress, proof, quarantine, rebuilds
from serving_layer.promise.rebuilds import Rebuild
from serving_layer.readers import rights
from serving_layer.readers.views import ANALYST
from serving_layer.upkeep import indexes

if TYPE_CHECKING:
    from master_log.kafka import Retention, Undecided

_AGES = table("ages", column("source"), column("heard_age"), schema="lamina")

GONE_AFTER = 30.0
"""Seconds without a heartbeat after which a writer is gone. It sends one a second (`speed_layer/layer.py`)."""

BEATS_MISSED = 8.0
"""Seconds without a heartbeat after which `status` mentions it."""

LEFT_AFTER = 3600.0
"""Seconds since the last step of a scheduler's rebuild. No step on any measured data takes that long."""

ARCHIVES_MISSED = 7200.0
"""Seconds without an archive run: an hourly schedule has missed two."""


SNAPSHOT_SECONDS = 3600.0
"""Seconds for which another session may hold a snapshot."""

NEWEST = 100
"""Offsets at the end of each partition that are searched for a majority of bad records."""

FEW_BAD = 10
"""Bad records among the newest that raise no alarm, however few records there are."""


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers hold it now. `retention` is None if they do not report it.

    undecided: the records that open transactions hold back.
    """

    end: Offsets
    earliest: Offsets
    retention: Retention | None = None
    undecided: Sequence[Undecided] = ()


@dataclass(frozen=True)
class Limits:
    """Limits beyond which an alarm is raised.

    after: seconds that records may wait without one being counted.
    rebuild_within: hours between two rebuilds, or None if no rebuild is expected.
    bad_an_hour: records that may go to quarantine in an hour.
    """

    after: float = 60.0
    rebuild_within: float | None = None
    bad_an_hour: int = 1000


def alarms(connection: Connection, topics: Mapping[str, Topic], limits: Limits) -> list[str]:
    """All alarms. `topics` by query, without those that the brokers gave no answer about."""
    return [*listed(by_query(connection, topics, limits)), *of_everything(connection, limits)]


def of_everything(connection: Connection, limits: Limits) -> list[str]:
    """The alarms that concern no single query."""
    return [
        *of_targets(connection),
        *of_rebuilds(connection, limits),
        *of_checks(connection),
        *rights.alarms(connection, ANALYST),
        *of_snapshots(connection),
        *indexes.alarms(connection),
        *standbys.alarms(connection, limits.after),
    ]


def listed(of_queries: Mapping[str, list[str]]) -> list[str]:
    """The alarms of queries, each with the query's name in front."""
    return [f"{name}: {problem}" for name, problems in of_queries.items() for problem in problems]


def by_query(connection: Connection, topics: Mapping[str, Topic], limits: Limits) -> dict[str, list[str]]:
    """The alarms of the query of each deployed source. `apply` itself reports on the sources that it awaits."""
    by_name: dict[str, list[str]] = {}
    kinds = kinds_of_sources(connection)
    late = (standbys.behind(connection) or 0) > limits.after  # then the standby does not know how queries are now
    for name, state in progress.queries(connection).items():
        if name in kinds and (reached := progress.read(connection, [name])):
            topic = topics.get(name)
            problems = [state.stopped or (None if late else _standing(connection, state, reached, topic, limits))]
            if topic is not None:
                problems.append(_undecided(topic, limits))
                held, seconds = _held(connection, name)
                problems += [
                    _lost(state.name, held, reached, topic),
                    _unarchived(held, seconds, topic) or _crowded(held, seconds, topic),
                ]
                problems.append(
                    _deletions(held, seconds, topic) if kinds[name] == "table" else _compacted(state, topic)
                )
            problems.append(_bad(connection, state, limits))
            by_name[name] = [problem for problem in problems if problem]
    return by_name


def _standing(
    connection: Connection, state: progress.Query, reached: Offsets, topic: Topic | None, limits: Limits
) -> str | None:
    """The alarm that the topic is not read, or not read fast enough, with the reason."""
    ages = _ages(connection, state.name)
    if (gone := _silent(state, ages.heard)) is not None:
        return f"its speed layer ({state.writer}) was last heard of {age(gone)} ago: start it again (`lamina up`)"
    if topic is None and ages.moved > limits.after:
        seconds = age(ages.moved)
        return (
            f"Kafka does not answer for its topic, and no record was counted for {seconds}: make sure that its brokers"
            " run"
        )
    behind = lag(topic.end, reached) if topic else 0
    if behind and ages.moved > limits.after:
        return f"{behind:,} records behind, and none was counted for {age(ages.moved)}{_why(connection, state)}"
    if behind and ages.waiting and (ages.waited or 0) > limits.after:
        return (
            f"{behind:,} records behind, and the backlog has not shrunk for {age(ages.waited)}: the speed layer is"
            " slower than the producers (more cores, fewer views of the source, or"
            f" `lamina rebuild --leap {state.name}`)"
        )
    return None


def silent(connection: Connection, state: progress.Query) -> float | None:
    """Seconds since the last heartbeat of a query's writer if it is gone, else None. A leap sends no heartbeats."""
    return _silent(state, _ages(connection, state.name).heard)


def _silent(state: progress.Query, heard: float | None) -> float | None:
    return heard if heard is not None and heard > GONE_AFTER and state.is_read else None


def sources_of(connection: Connection, views: Collection[str]) -> list[str]:
    """The queries that feed these views, directly or through other views."""
    rows = connection.execute(text("SELECT DISTINCT view, source FROM lamina.offsets ORDER BY source"))
    return list(dict.fromkeys(source for view, source in rows if view in views))


def waits_for(connection: Connection, name: str, *, starting: bool) -> str | None:
    """The reason why records of a topic are not counted yet. None if they are about to be, or if an alarm says why.

    `starting`: a speed layer runs but may not have begun to read.
    """
    queries = progress.queries(connection)
    state = queries[name]
    if state.stopped or state.writer_kind is WriterKind.LEAP or name not in kinds_of_sources(connection):
        return None
    reads_on = state.is_read and silent(connection, state) is None
    if (reads_on or starting) and _lacks_log_times(connection, name):
        return "the speed layer reads the log once, for log times of older records"
    if not reads_on:
        return "the speed layer is starting" if starting else "no speed layer runs (`lamina up`, or `lamina speed`)"
    heard = _ages(connection, name).heard
    if heard is not None and heard > BEATS_MISSED:
        return f"the speed layer has said nothing for {heard:.0f} s (`lamina status` names its process)"
    if state.committed_at is None:
        has_begun = any(other.writer == state.writer and other.committed_at for other in queries.values())
        return "the speed layer counts its first records" if has_begun else "the speed layer is starting"
    since_caught_up = func.extract("epoch", func.clock_timestamp() - query.c.caught_up_at)
    late = connection.execute(select(since_caught_up).where(query.c.name == name)).scalar()
    return "the speed layer is catching up" if late is None or late > 2 * progress.WAITS_AFTER else None


def _lacks_log_times(connection: Connection, name: str) -> bool:
    """True if a leap counted a table's records, or a Lamina that stored no log times."""
    return progress.lacks_log_times(connection, name) and RAW_LOG_TIME in sources(connection)[name].parse


def _ages(connection: Connection, name: str) -> Any:
    """Seconds since the writer's last heartbeat, since progress moved or was at the end, since the backlog shrank."""

    def since(*times: Any) -> Any:
        return func.extract("epoch", func.clock_timestamp() - func.greatest(*times))

    return connection.execute(
        select(
            select(_AGES.c.heard_age).where(_AGES.c.source == name).scalar_subquery().label("heard"),
            since(query.c.committed_at, query.c.caught_up_at, query.c.created_at).label("moved"),
            since(query.c.waiting_at).label("waited"),
            query.c.waiting,
        ).where(query.c.name == name)
    ).one()


def _why(connection: Connection, state: progress.Query) -> str:
    if state.writer_kind is WriterKind.LEAP and rebuilds.leaping(connection):
        leap = rebuilds.get(connection)
        return (
            f": rebuild {leap.id}, a leap, holds its progress, and its last step was `{leap.step}` (continue its"
            f" steps, or `lamina step abandon --rebuild {leap.id}`)"
        )
    if not state.is_read:
        return ": no speed layer runs (`lamina up`, or `lamina speed`)"
    return f": the log of its speed layer ({state.writer}) says why"


def _compacted(state: progress.Query, topic: Topic) -> str | None:
    if topic.retention is None or not topic.retention.compacted:
        return None
    return (
        f"topic {state.topic} has been compacted since it was deployed: Kafka drops a record of it when a newer one has"
        " its key, also before it is archived (set its cleanup.policy to delete; `lamina rebuild` says what differs)"
    )


def _held(connection: Connection, name: str) -> tuple[Offsets, float]:
    """The offsets that the log holds of a query, and the seconds since the partition that waits longest was
    archived.
    """
    rows = connection.execute(
        select(archived.c.topic, archived.c.partition, archived.c.held).where(archived.c.query == name)
    ).all()
    since = func.coalesce(
        select(func.min(archived.c.archived_at)).where(archived.c.query == name).scalar_subquery(),
        select(query.c.created_at).where(query.c.name == name).scalar_subquery(),
    )
    seconds = connection.execute(select(func.extract("epoch", func.clock_timestamp() - since))).scalar_one()
    held = {TopicPartition(topic, partition): offset for topic, partition, offset in rows}
    return progress.starts(connection, [name]).updated(held), float(seconds)


def _lost(name: str, held: Offsets, reached: Offsets, topic: Topic) -> str | None:
    """The alarm that records left Kafka before they were archived. A rebuild would lack those that were counted."""
    gone = [(at, held[at], topic.earliest[at]) for at in held if topic.earliest.get(at, 0) > held[at]]
    if not gone:
        return None
    at, archived_to, present = gone[0]
    counted = min(reached.get(at, 0), present)
    if counted <= archived_to:
        effect = "no view counts them, and no rebuild can"
    elif counted < present:
        effect = f"views count those below {counted}, a rebuild could not"
    else:
        effect = "views still count them, a rebuild could not"
    return (
        f"records of {at.topic} partition {at.partition} from {archived_to} to {present} were removed by retention"
        f" before they were archived: {effect} (`lamina archive {name} --accept-loss` records the loss)"
    )


def _unarchived(held: Offsets, seconds: float, topic: Topic) -> str | None:
    """The alarm that the oldest unarchived records may be half as old as Kafka's retention."""
    keeps = topic.retention.milliseconds if topic.retention else None
    if keeps is None or held.reaches(topic.end) or seconds < keeps / 2000:
        return None
    return (
        f"nothing was archived for {age(seconds)}, and Kafka keeps records for {age(keeps / 1000)}:"
        " run `lamina archive`, and see why its schedule does not"
    )


def _undecided(topic: Topic, limits: Limits) -> str | None:
    """The alarm that a producer left a transaction open. Later records are not read, yet nothing lags."""
    transactions = [transaction for transaction in topic.undecided if transaction.seconds > limits.after]
    if not transactions:
        return None
    longest = max(transactions, key=lambda transaction: (not transaction.by_record, transaction.seconds))
    since = "" if longest.by_record else f" for {age(longest.seconds)}"
    untold = "; the brokers do not report since when" if longest.by_record else ""
    return (
        f"a producer has had a transaction open{since} in partition {longest.at.partition}{untold}, and"
        f" nothing from offset {longest.first} on is counted or archived ({longest.offsets:,} offsets by now): see why"
        " it does not end, or abort it (Kafka's `kafka-transactions.sh`)"
    )


def _crowded(held: Offsets, seconds: float, topic: Topic) -> str | None:
    """The alarm that Kafka, which drops the oldest records by size, is halfway to the unarchived ones.

    Not before two runs of the schedule were missed: the archive also lacks a burst that follows a quiet time.
    """
    keeps = topic.retention.bytes if topic.retention else None
    if keeps is None or seconds < ARCHIVES_MISSED:
        return None
    for at, end in topic.end.items():
        earliest = topic.earliest.get(at, 0)
        if earliest and end - held.get(at, 0) > (end - earliest) / 2:
            return (
                f"nothing was archived for {age(seconds)}, and of the records that Kafka keeps of partition"
                f" {at.partition} ({amounts.size(keeps)} at most) more than half are not archived:"
                " run `lamina archive`, and see why its schedule does not"
            )
    return None


def _deletions(held: Offsets, seconds: float, topic: Topic) -> str | None:
    """The alarm that Kafka may drop deletions of a table before they are archived. A rebuild would bring rows back."""
    retention = topic.retention
    if retention is None or not retention.compacted or held.reaches(topic.end) or seconds < retention.deletions / 2000:
        return None
    return (
        f"nothing was archived for {age(seconds)}, and Kafka drops deletions from a compacted topic"
        f" {age(retention.deletions / 1000)} after they came: run `lamina archive`, and see why its schedule does not"
    )


def _bad(connection: Connection, state: progress.Query, limits: Limits) -> str | None:
    lately = connection.execute(
        text(
            "SELECT count(*) FROM (SELECT FROM lamina.quarantine WHERE source = :source"
            " AND quarantined_at > clock_timestamp() - interval '1 hour' LIMIT :limit) AS lately"
        ),
        {"source": state.name, "limit": limits.bad_an_hour + 1},
    ).scalar_one()
    if lately > limits.bad_an_hour:
        many = f"more than {limits.bad_an_hour:,} records"
    elif quarantine.overflows(connection, state.name):
        many = "more records than it keeps"
    elif lately > FEW_BAD and (most := _most_of_the_newest(connection, state)):
        many = most
    else:
        return None
    some = " (or count without a field)" if quarantine.with_bad_fields(connection, state.name) else ""
    return (
        f"{many} went to quarantine{some} within an hour: SELECT * FROM lamina.bad_records"
        " says why (correct the producer; or correct the declaration, and `lamina apply` counts them, too)"
    )


def _most_of_the_newest(connection: Connection, state: progress.Query) -> str | None:
    """The share of bad records among a query's newest, in words, if more than half are bad."""
    bad, newest = connection.execute(
        text("""
            SELECT sum(b.records), sum(least(:newest, p.next_offset - p.start_offset))
            FROM lamina.progress AS p
            CROSS JOIN LATERAL (
                SELECT count(*) AS records FROM lamina.quarantine AS r
                WHERE r.source = p.query AND r.topic = p.topic AND r.partition = p.partition
                    AND r."offset" >= p.next_offset - :newest AND r."offset" < p.next_offset
                    AND r.quarantined_at > clock_timestamp() - interval '1 hour'
            ) AS b
            WHERE p.query = :query
        """),
        {"query": state.name, "newest": NEWEST},
    ).one()
    return f"{bad:,} of its newest {newest:,} records" if bad > FEW_BAD and 2 * bad > newest else None


def of_snapshots(connection: Connection) -> list[str]:
    """The alarm that another session has held a snapshot for long. Our own commands may hold one, and end."""
    rows = connection.execute(
        text("""
            SELECT pid, usename, extract(epoch FROM clock_timestamp() - xact_start)::float8
            FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> 'lamina'
                AND backend_xmin IS NOT NULL AND xact_start < clock_timestamp() - make_interval(secs => :seconds)
            ORDER BY xact_start LIMIT 3
        """),
        {"seconds": SNAPSHOT_SECONDS},
    )
    return [
        f"a session of {login} has held a snapshot for {age(seconds)}: until its transaction ends, no vacuum removes"
        f" rows, and reading becomes slower (`SELECT pg_terminate_backend({pid})` ends it)"
        for pid, login, seconds in rows
    ]


def of_targets(connection: Connection) -> list[str]:
    """The views that exceed their `fresh_within`. A source that was never counted is as far behind as it is old."""
    late = text("""
        SELECT f.view, coalesce(f.seconds_behind, never.seconds), f.fresh_within, never.sources
        FROM lamina.freshness AS f
        CROSS JOIN LATERAL (
            SELECT string_agg(q.name, ', ' ORDER BY q.name) AS sources,
                extract(epoch FROM clock_timestamp() - min(q.created_at))::float8 AS seconds
            FROM (SELECT DISTINCT source FROM lamina.offsets WHERE view = f.view) AS o
            JOIN lamina.query AS q ON q.name = o.source
            WHERE f.seconds_behind IS NULL AND greatest(q.newest, q.caught_up_at) IS NULL
        ) AS never
        WHERE f.fresh_within < coalesce(f.seconds_behind, never.seconds)
        ORDER BY f.view
    """)
    return [
        f"{name}: {age(behind)} behind{f', as {never} was never counted' if never else ''}, and its fresh_within is"
        f" {age(target)}: `lamina status` says whether its sources are read, and how far they lag (a speed layer that"
        " runs and lags needs more cores or fewer views)"
        for name, behind, target, never in connection.execute(late)
    ]


def of_rebuilds(connection: Connection, limits: Limits) -> list[str]:
    """The alarms about failed, abandoned and overdue rebuilds."""
    alarms: list[str] = []
    for failed in _failed(connection):
        again = "the same `lamina apply`" if failed.kind == RebuildKind.APPLY else "`lamina rebuild`"
        alarms.append(f"rebuild {failed.id} failed after step `{failed.step}`: {failed.error} ({again} begins again)")
    newest = rebuilds.newest(connection)
    if newest is not None and newest.state is RebuildState.RUNNING and (abandoned := _left(connection, newest)):
        command = newest.purpose.command
        on = f"repeat the `lamina {command}` that began it" if command else "continue its steps"
        alarms.append(
            f"rebuild {newest.id} {abandoned} after step `{newest.step}`: {on}, or"
            f" `lamina step abandon --rebuild {newest.id}`, which loses nothing"
        )
    if limits.rebuild_within is not None:
        since = func.coalesce(rebuilds.last_success(), select(func.min(query.c.created_at)).scalar_subquery())
        with_cells = exists().where(view.c.kind != "derived")
        overdue = select(func.extract("epoch", func.clock_timestamp() - since)).where(with_cells)
        seconds: Any = connection.execute(overdue).scalar_one_or_none()
        if seconds is not None and seconds > limits.rebuild_within * 3600:
            alarms.append(
                f"no rebuild has ended well for {age(float(seconds))}: run `lamina rebuild`, and see its schedule"
            )
    return alarms


class _Failed(NamedTuple):
    id: int
    step: str
    kind: str
    error: str


def _failed(connection: Connection) -> list[_Failed]:
    """The rebuilds that failed by themselves and have a view that no later rebuild has computed.

    Only the last hundred rebuilds are read. Previews do not count: the person who makes one sees the failure, and no
    deployed view waits for it.
    """
    failed = connection.execute(
        text("""
            WITH lately AS (
                SELECT * FROM lamina.rebuild WHERE kind <> 'preview' ORDER BY id DESC LIMIT 100
            ), tried AS (
                SELECT id, state, step, kind, error, unnest(views) AS view FROM lately
                WHERE NOT (state = 'failed' AND stopped IS NOT NULL)
            ), last AS (
                SELECT DISTINCT ON (view) * FROM tried
                WHERE view IN (SELECT name FROM lamina.view WHERE kind <> 'derived')
                    OR id = (SELECT max(id) FROM lately)
                ORDER BY view, id DESC
            )
            SELECT DISTINCT id, step, kind, error FROM last WHERE state = 'failed' ORDER BY id
        """)
    )
    return [_Failed(*row) for row in failed]


def of_checks(connection: Connection) -> list[str]:
    """The alarms about new generations held back by a proof or a check, and about live views that fail a check."""
    alarms = []
    for id, generations in lookup.held(connection).items():
        alarms += [
            f"{verdict.sentence}: rebuild {id} holds {_them(held)} back (correct what fails, and `lamina rebuild`; or"
            f" let {_them(held)} be read, `lamina step hand-over --anyway {' '.join(held)} --rebuild {id}`)"
            for verdict, held in checks.blocking(connection, id, [generation.view for generation in generations])
        ]
        alarms += [
            f"{name}: its proof found a difference, and rebuild {id} holds it back (`lamina check {name}` says"
            f" which is wrong; `lamina step hand-over --anyway {name} --rebuild {id}` lets the new one be read)"
            for name in proof.held_back(connection, generations)
        ]
    live = [verdict for verdict in checks.results(connection, None) if verdict.blocked]
    return alarms + [
        f"{verdict.sentence}: readers see this now (`lamina check --live` runs it again)" for verdict in live
    ]


def _them(views: Collection[str]) -> str:
    return "it" if len(views) == 1 else "them"


def _left(connection: Connection, newest: Rebuild) -> str | None:
    """The end of the sentence that a running rebuild "died" or "was left"; None if it is alive, or a person stopped it.

    A standby does not see a process' lock, so there a rebuild counts as alive.
    """
    if newest.lease_until is None:
        alive = rebuilds.held_by_a_process(connection) or standbys.behind(connection) is not None
        return None if alive or newest.stopped else "died"
    idle = func.extract("epoch", func.clock_timestamp() - newest.lease_until) + rebuilds.LEASE.total_seconds()
    seconds = float(connection.execute(select(idle)).scalar_one())
    return f"was left {age(seconds)} ago" if seconds > LEFT_AFTER else None


def lag(end: Offsets, reached: Offsets) -> int:
    """An upper bound of the records between progress and the end: offsets, some of which are markers."""
    return sum(max(0, end[at] - reached.get(at, 0)) for at in end)


def age(seconds: float) -> str:
    """A span of time, in the largest unit of which it has at least two.

    >>> age(75), age(7_300), age(9 * 86_400), age(7_000)
    ('75 s', '2 h', '9 d', '116 min')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
