"""`lamina status`, as a person or a program reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from lamina.deployment import Deployment
from lamina.render import Output
from master_log.offsets import Offsets
from serving_layer import progress
from serving_layer.status import Status, alarms, status
from view_algebra.errors import LaminaError


def read(opened: Deployment) -> Status:
    """The status; without lag and retention alarms when the brokers do not answer."""
    ends, earliest = _held(opened)
    with opened.database.snapshot() as connection:
        return status(connection, ends, earliest)


def _held(opened: Deployment) -> tuple[dict[str, Offsets], dict[str, Offsets]]:
    """Where each query's topic ends and begins, as far as the brokers answer."""
    with opened.database.begin() as connection:
        topics = {name: query.topic for name, query in progress.queries(connection).items()}
    ends: dict[str, Offsets] = {}
    earliest: dict[str, Offsets] = {}
    for name, topic in topics.items():
        with suppress(LaminaError):
            ends[name], earliest[name] = opened.brokers.latest(topic), opened.brokers.earliest(topic)
    return ends, earliest


def show_alarms(output: Output, opened: Deployment) -> None:
    """Prints what needs a person, and exits 1 where something does; it counts nothing, however large the views are."""
    _, earliest = _held(opened)
    with opened.database.snapshot() as connection:
        found = alarms(connection, earliest)
    if output.as_json:
        output.record({"alarms": found})
    _alarm(output, found)


def show(output: Output, opened: Deployment) -> None:
    """Prints the status; exits 1 when something needs a person."""
    found = read(opened)
    if output.as_json:
        output.record({**asdict(found), "alarms": found.alarms})
    else:
        output.table(
            ("view", "kind", "rows", "freshness", "generation", "provisional", "last proof"),
            [(v.view, v.kind, v.rows, seconds(v.freshness), v.generation, v.provisional, v.proof) for v in found.views],
        )
        output.text("")
        output.table(
            ("query", "topic", "progress", "lag", "quarantined", "writer"),
            [(q.query, q.topic, q.progress, q.lag, q.quarantined, q.writer) for q in found.queries],
        )
        output.text("")
        output.table(
            ("generation", "view", "state", "published"),
            [(g["generation"], g["view"], g["state"], "yes" if g["published"] else "") for g in found.generations],
        )
        if found.rebuild:
            output.text("")
            output.text(_rebuild(found.rebuild))
    _alarm(output, found.alarms)


def _alarm(output: Output, found: Sequence[str]) -> None:
    for alarm in found:
        output.err.print("alarm: ", style="bold red", end="")
        output.err.print(alarm, markup=False, soft_wrap=True)
    if found:
        sys.exit(1)


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


def _rebuild(last: Mapping[str, object]) -> str:
    return f"rebuild {last['id']}: {last['state']}, last step {last['step']}" + (
        f" ({last['error']})" if last["error"] else ""
    )
