"""The output of `lamina status`, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from lamina.operations.daemon_threads import in_daemon_thread
from lamina.operations.deployment import Deployment
from lamina.reports.lag_lines import lag_line
from lamina.reports.statuses import read_alarms, read_status, undeclared_fields
from lamina.terminal.render import Output, seconds
from master_log.offsets import brief
from serving_layer.change.previews import CellsOrigin, PreviewedView
from serving_layer.monitoring.status import QueryStatus, Status, ViewStatus
from serving_layer.monitoring.view_states import ViewState
from serving_layer.narration import age, amount
from serving_layer.promise.rebuilds import STEPS

SHOWN_FIELDS = 5
"""Undeclared fields on a line. `--json` has all of them."""


def show_alarms(output: Output, deployment: Deployment) -> bool:
    """Prints the alarms. Returns True if there are any."""
    raised = read_alarms(deployment)
    if output.as_json:
        output.record({"alarms": raised})
    return _print_alarms(output, raised)


def show(output: Output, deployment: Deployment) -> bool:
    """Prints the status. Returns True if there are alarms."""
    _ = deployment.brokers  # from here on, two threads share it
    sampled = in_daemon_thread("meanwhile", lambda: undeclared_fields(deployment))
    current = read_status(deployment)
    strange = sampled.result()
    if output.as_json:
        listed = [{"source": name, **asdict(fields)} for name, several in strange.items() for fields in several]
        views = [_view_record(view) for view in current.views]
        output.record({**asdict(current), "views": views, "undeclared": listed})
    else:
        _show_tables(output, current)
    for name, fields in strange.items():
        output.tell(f"{name}: among the newest records, {'; '.join(map(str, fields[:SHOWN_FIELDS]))}")
    for query in current.queries:
        if query.begins:
            output.tell(f"{query.query} begins at {brief(query.begins)}: earlier records are not part of it")
    for query in current.queries:
        if query.waits_for:
            output.tell(lag_line(query.query, query.lag or 0, query.waits_for))
    for gap in current.unguarded:
        output.tell(f"{gap}: a superuser changes that with serving_layer/readers/superuser.sql")
    return _print_alarms(output, current.alarms)


def _show_tables(output: Output, current: Status) -> None:
    output.table(
        ("view", "kind", "rows", "freshness", "generation", "provisional", "last proof"),
        [
            (v.state.name, v.state.kind, v.rows, _freshness(v), v.state.generation, v.provisional, _proof(v.state))
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
        [(g.generation, g.view, g.state, "yes" if g.published else "") for g in current.generations],
    )
    paragraphs = [
        preview_lines(current.previews),
        [_rebuild(current.rebuild)] if current.rebuild else [],
        [f"This Postgres is a standby, {seconds(current.standby)} behind its primary: here, views can only be read."]
        if current.standby is not None
        else [],
    ]
    for lines in filter(None, paragraphs):
        output.text("")
        for line in lines:
            output.text(line)


def _print_alarms(output: Output, alarms: Sequence[str]) -> bool:
    """Prints the alarms. Returns True if there are any."""
    for alarm in alarms:
        output.alarm(alarm)
    return bool(alarms)


_ORIGINS = {CellsOrigin.OWN: "cells of its own for", CellsOrigin.RETIRED: "not served (make it again):"}


def preview_lines(previewed: Sequence[PreviewedView]) -> list[str]:
    """A line for each preview.

    >>> from datetime import datetime
    >>> made = datetime(2024, 3, 1, 9, 30)
    >>> sums = PreviewedView("dev", "sums", "9f3a", CellsOrigin.OWN, made)
    >>> preview_lines([sums, PreviewedView("dev", "total", "", CellsOrigin.NONE, made)])
    ['preview dev, made at 2024-03-01 09:30: 2 views, cells of its own for sums']
    """
    lines = []
    for name, group in groupby(previewed, key=lambda view: view.preview):
        views = list(group)
        line = f"preview {name}, made at {views[0].made_at:%Y-%m-%d %H:%M}: {amount(len(views), 'view')}"
        for origin, words in _ORIGINS.items():
            if of_origin := [view.view for view in views if view.cells is origin]:
                line += f", {words} {', '.join(of_origin)}"
        lines.append(line)
    return lines


def _view_record(view: ViewStatus) -> dict[str, Any]:
    """A view in the JSON."""
    return {
        "view": view.state.name,
        "kind": view.state.kind,
        "rows": view.rows,
        "generation": view.state.generation,
        "freshness": view.freshness,
        "provisional": view.provisional,
        "proof": _proof(view.state),
        "fresh_within": view.state.fresh_within,
    }


def _freshness(view: ViewStatus) -> str:
    """Seconds behind, with the number of seconds that the view allows: `7.0 s, wanted 5 s`."""
    within = view.state.fresh_within
    return seconds(view.freshness) + ("" if within is None else f", wanted {age(within)}")


def _proof(view: ViewState) -> str | None:
    """The newest proof of a view that is read, in words."""
    if view.proof is None or view.generation is None:
        return None
    return f"{view.proof.compared:,} cells compared, {view.proof.differing:,} differ"


def _bad(query: QueryStatus) -> str:
    more = f" ({query.bad_fields:,} more count without a field)" if query.bad_fields else ""
    return f"{query.quarantined:,}{more}"


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
