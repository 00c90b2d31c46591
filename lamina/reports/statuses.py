"""The output of `lamina status`, as a table or as JSON."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.operations.deployment import Deployment
from lamina.services.background import SpeedProcess
from lamina.terminal.render import Output
from master_log.offsets import Offsets, brief
from serving_layer.catalog.deployed import JsonFields, json_fields, sources
from serving_layer.change.previews import PreviewedView
from serving_layer.monitoring import delays
from serving_layer.monitoring.alarms import alarms
from serving_layer.monitoring.query_alarms import Thresholds, TopicState
from serving_layer.monitoring.status import QueryStatus, Status, status
from serving_layer.narration import age, size
from serving_layer.promise import progress
from serving_layer.promise.rebuilds import STEPS
from serving_layer.readers.rights import unguarded
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from interchange.undeclared import Undeclared
    from master_log.kafka import Brokers, Retention, Undecided

T = TypeVar("T")

SAMPLE = 100
"""Newest records of each source that are sampled for undeclared fields."""

LITTLE_ROOM = 2_000_000_000
"""Bytes of free disk below which an alarm is raised. Kafka's log grows by files of up to 1 GB."""

SHOWN_FIELDS = 5
"""Undeclared fields on a line. `--json` has all of them."""


def read(opened: Deployment) -> Status:
    """The status. Lag and other facts from the brokers are missing if these do not answer."""
    topics = _topics(opened)
    with opened.database.snapshot() as connection:
        current = status(connection, topics, _thresholds(opened))
    return replace(current, alarms=[*current.alarms, *full_disks(opened)])


def _topics(opened: Deployment) -> dict[str, TopicState]:
    """Each query's topic, as far as the brokers answer."""
    with opened.database.begin() as connection:
        names = {name: query.topic for name, query in progress.queries(connection).items()}
    by_topic = held(opened.brokers, list(dict.fromkeys(names.values())))
    return {name: by_topic[topic] for name, topic in names.items() if topic in by_topic}


def held(brokers: Brokers, topics: Sequence[str]) -> dict[str, TopicState]:
    """Topics by name as the brokers hold them, in one request. If the brokers refuse it, in one request per topic."""
    from master_log.client import KafkaAway

    with suppress(LaminaError):
        return _described(brokers, list(brokers.topic_ids(*topics)))
    by_name: dict[str, TopicState] = {}
    for topic in topics if brokers.listening() else ():
        try:
            by_name |= _described(brokers, [topic])
        except KafkaAway:
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
    undecided: list[Undecided] = []
    with suppress(LaminaError):
        undecided = brokers.undecided(ends)
    retentions = _retentions(brokers, topics)
    topics_by_name = {}
    for topic in topics:
        of_topic = [transaction for transaction in undecided if transaction.at.topic == topic]
        kept = retentions.get(topic)
        topics_by_name[topic] = TopicState(
            Offsets.of(topic, ends.on(topic)), Offsets.of(topic, earliest.on(topic)), kept, of_topic
        )
    return topics_by_name


def _retentions(brokers: Brokers, topics: Sequence[str]) -> dict[str, Retention]:
    """The retention of each topic that we may describe."""
    with suppress(LaminaError):
        return brokers.retentions(topics)
    return {}


def _thresholds(opened: Deployment) -> Thresholds:
    settings = opened.settings
    return Thresholds(settings.alarm_after, settings.alarm_no_rebuild, settings.alarm_bad_records)


def behind(opened: Deployment, lags: Mapping[str, int | None]) -> list[str]:
    """A line for each query whose records nobody is about to count, with the reason."""
    running = opened.settings.embedded and SpeedProcess(opened.settings.home).find() is not None
    lines = []
    with opened.database.begin() as connection:
        for name, lag in lags.items():
            waits_for = delays.waits_for(connection, name, starting=running) if lag else None
            if waits_for:
                lines.append(f"{name} is {lag:,} {'record' if lag == 1 else 'records'} behind: {waits_for}")
    return lines


def behind_of(opened: Deployment, query: str) -> list[str]:
    """The lines of `behind` for the sources of a SELECT. Asks the brokers only if one of these is not keeping up."""
    with opened.database.begin() as connection:
        waiting = [
            name
            for name in delays.sources_of(connection, tables_of(query))
            if delays.waits_for(connection, name, starting=False)
        ]
        reached = {
            name: (query.topic, progress.read(connection, [name]))
            for name, query in progress.queries(connection).items()
        }
    lags = {}
    for name in waiting if opened.brokers.listening() else ():
        topic, below = reached[name]
        lags[name] = delays.lag(opened.brokers.latest(topic), below)
    return behind(opened, lags)


def tables_of(query: str) -> set[str]:
    """The views that a SELECT of Postgres may name: no CTEs, and no relations outside the schema `analytics`.

    Empty if the SELECT cannot be parsed.

    >>> sorted(tables_of('WITH a AS (SELECT * FROM Sales) SELECT * FROM a, analytics.visits, nextweek.carts'))
    ['sales', 'visits']
    >>> tables_of('SELECT * FROM generate_series(1, 3)')
    set()
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(query, read="postgres")
        own = {cte.alias for cte in parsed.find_all(sqlglot.exp.CTE)}
        tables = [table for table in parsed.find_all(sqlglot.exp.Table) if table.db in ("", "analytics")]
        named = [
            table.this for table in tables if isinstance(table.this, sqlglot.exp.Identifier)
        ]  # the others are functions
        return {identifier.name if identifier.quoted else identifier.name.lower() for identifier in named} - own
    except (SqlglotError, RecursionError):  # Postgres may understand more
        return set()


def undeclared(opened: Deployment, of: Collection[str] | None = None) -> dict[str, list[Undeclared]]:
    """The undeclared fields of each source among its newest records, as far as the brokers answer.

    A field that another source of the topic declares is left out, unless it may be a mistyped column of this source.
    Sampling happens when somebody looks, so it costs the speed layer nothing. `of` limits the sources, None means all.
    """
    opened.require_installed()
    with opened.database.begin() as connection:
        declared = json_fields(connection)
    asked = {name: fields for name, fields in declared.items() if of is None or name in of}
    if not asked:
        return {}
    with suppress(LaminaError):
        newest = opened.brokers.newest(list({fields.topic for fields in asked.values()}), SAMPLE)
        if all(_is_declared(fields, newest[fields.topic]) for fields in asked.values()):
            return {}
        return _in_samples(opened, declared, {name: newest[fields.topic] for name, fields in asked.items()})
    return {}


def _is_declared(fields: JsonFields, values: Iterable[bytes | None]) -> bool:
    """True if, by their top-level names, the records have no field that the source does not declare.

    Nested fields would take the compiler's types, and loading these a quarter of the command's start.
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
    opened: Deployment, declared: Mapping[str, JsonFields], samples: Mapping[str, Sequence[bytes | None]]
) -> dict[str, list[Undeclared]]:
    """The undeclared fields in samples. A field that another source of the topic declares is left out, unless it may be
    a mistyped column.
    """
    from interchange.json_values import columns
    from interchange.undeclared import in_sample

    of_topic: dict[str, set[str]] = {}
    for fields in declared.values():
        of_topic.setdefault(fields.topic, set()).update(fields.names)
    with opened.database.begin() as connection:
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


def _meanwhile(what: Callable[[], T]) -> Callable[[], T]:
    """Runs `what` in a thread that no exit waits for. The returned function waits for the value, or raises the thread's
    error.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(what())
        except BaseException as error:  # noqa: BLE001 (raised again by the returned function)
            future.set_exception(error)

    threading.Thread(target=run, name="meanwhile", daemon=True).start()
    return future.result


def read_alarms(opened: Deployment) -> list[str]:
    """All alarms. Nothing is counted, so its cost does not grow with the views."""
    topics = _topics(opened)
    with opened.database.snapshot() as connection:
        raised = alarms(connection, topics, _thresholds(opened))
    return [*raised, *full_disks(opened)]


def full_disks(opened: Deployment) -> list[str]:
    """Alarms for the disks of this machine that are nearly full."""
    return [
        f"the disk of {folder} has {size(free)} left: make room before writing fails"
        for folder, free in free_bytes(opened).items()
        if free < LITTLE_ROOM
    ]


def free_bytes(opened: Deployment) -> dict[str, int]:
    """Free bytes for LAMINA_HOME and for the warehouse, as far as these are folders of this machine."""
    folders = {str(opened.settings.home), opened.settings.warehouse}
    return {folder: shutil.disk_usage(folder).free for folder in sorted(folders) if Path(folder).is_dir()}


def show_alarms(output: Output, opened: Deployment) -> None:
    """Prints the alarms, and exits 1 if there are any."""
    raised = read_alarms(opened)
    if output.as_json:
        output.record({"alarms": raised})
    _alarm(output, raised)


def show(output: Output, opened: Deployment) -> None:
    """Prints the status, and exits 1 if there are alarms."""
    _ = opened.brokers  # from here on, two threads share it
    sampled = _meanwhile(lambda: undeclared(opened))
    current = read(opened)
    strange = sampled()
    if output.as_json:
        listed = [{"source": name, **asdict(fields)} for name, several in strange.items() for fields in several]
        output.record({**asdict(current), "undeclared": listed})
    else:
        output.table(
            ("view", "kind", "rows", "freshness", "generation", "provisional", "last proof"),
            [
                (v.view, v.kind, v.rows, _freshness(v.freshness, v.fresh_within), v.generation, v.provisional, v.proof)
                for v in current.views
            ],
        )
        output.text("")
        output.table(
            ("query", "topic", "progress", "lag", "quarantined", "skipped", "duplicates", "writer"),
            [
                (q.query, q.topic, brief(q.progress), q.lag, _bad(q), q.skipped, _copies(q), q.writer)
                for q in current.queries
            ],
        )
        output.text("")
        output.table(
            ("generation", "view", "state", "published"),
            [(g["generation"], g["view"], g["state"], "yes" if g["published"] else "") for g in current.generations],
        )
        if current.previews:
            output.text("")
        for line in previews(current.previews):
            output.text(line)
        if current.rebuild:
            output.text("")
            output.text(_rebuild(current.rebuild))
        if current.standby is not None:
            output.text("")
            output.text(
                f"This Postgres is a standby, {seconds(current.standby)} behind its primary: views are read here only."
            )
    for name, fields in strange.items():
        output.tell(f"{name}: among the newest records, {'; '.join(map(str, fields[:SHOWN_FIELDS]))}")
    for query in current.queries:
        if query.begins:
            output.tell(f"{query.query} begins at {brief(query.begins)}: earlier records are not part of it")
    for line in behind(opened, {query.query: query.lag for query in current.queries if not query.problem}):
        output.tell(line)
    with opened.database.begin() as connection:
        for gap in unguarded(connection):
            output.tell(f"{gap}: a superuser changes that with serving_layer/readers/superuser.sql")
    _alarm(output, current.alarms)


def _alarm(output: Output, alarms: Sequence[str]) -> None:
    for alarm in alarms:
        output.alarm(alarm)
    if alarms:
        sys.exit(1)


def previews(previewed: Sequence[PreviewedView]) -> list[str]:
    """A line for each preview.

    >>> from datetime import datetime
    >>> made = datetime(2024, 3, 1, 9, 30)
    >>> previews([PreviewedView("dev", "sums", "9f3a", "own", made), PreviewedView("dev", "total", "", "none", made)])
    ['preview dev, made at 2024-03-01 09:30: 2 views, cells of its own for sums']
    """
    lines = []
    for name, group in groupby(previewed, key=lambda view: view.preview):
        views = list(group)
        line = f"preview {name}, made at {views[0].made_at:%Y-%m-%d %H:%M}: {len(views)} views"
        for cells, says in (("own", "cells of its own for"), ("retired", "not served (make it again):")):
            if of := [view.view for view in views if view.cells == cells]:
                line += f", {says} {', '.join(of)}"
        lines.append(line)
    return lines


def seconds(value: float | None) -> str:
    """An age that a person can compare at a glance.

    >>> seconds(0.734), seconds(75), seconds(90_000), seconds(None)
    ('0.7 s', '1 min', '25 h', '')
    """
    if value is None:
        return ""
    if value < 60:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{value // 60:.0f} min"
    return f"{value // 3600:.0f} h"


def _freshness(behind: float | None, within: float | None) -> str:
    """Seconds behind, with the number of seconds that the view allows.

    >>> _freshness(0.734, None), _freshness(7.0, 5.0)
    ('0.7 s', '7.0 s, wanted 5 s')
    """
    return seconds(behind) + ("" if within is None else f", wanted {age(within)}")


def _bad(query: QueryStatus) -> str:
    more = f" ({query.bad_fields:,} more count without a field)" if query.bad_fields else ""
    return f"{query.quarantined}{more}"


def _copies(query: QueryStatus) -> str:
    conflicts = f", {query.conflicts:,} in conflict" if query.conflicts else ""
    return f"{query.duplicates:,}{conflicts}"


def _rebuild(last: Mapping[str, Any]) -> str:
    """The last rebuild, with the seconds of its steps.

    >>> seconds = {"seal": 0.2, "compute totals": 7.0, "compute hourly": 5.1, "retire": 0.3}
    >>> _rebuild({"id": 3, "state": "done", "step": "hand-over", "error": None, "seconds": seconds})
    'rebuild 3: done, last step hand-over (seal 0.2 s, compute 12.1 s, retire 0.3 s)'
    """
    by_step: dict[str, float] = {}
    for step, took in last["seconds"].items():
        by_step[step.partition(" ")[0]] = by_step.get(step.partition(" ")[0], 0.0) + took
    ordered = sorted(by_step.items(), key=lambda entry: STEPS.index(entry[0]))
    times = ", ".join(f"{step} {seconds(took)}" for step, took in ordered)
    reason = f": {last['error']}" if last["error"] else ""
    return f"rebuild {last['id']}: {last['state']}, last step {last['step']}{reason}" + (f" ({times})" if times else "")
