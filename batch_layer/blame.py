"""`lamina blame`: the events that changed the rows of one key, with the values before and after.

The history has progress after each micro-batch, and what the view showed. The values are the oracle's: Spark runs the
author's SELECT over every record below such a state. Few states are asked for: both sides of each hand-over, both sides
of the micro-batches whose own records give a row of the key, and states between two different answers, until the
micro-batch that changed the rows is known. Micro-batches that remain between two answers are reported as one event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from batch_layer.check import Row, compare, exact, shown_columns
from batch_layer.oracle import Oracle, State
from batch_layer.stalls import Watching, Work, unwatched
from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Offsets
from serving_layer.catalog import definitions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import history, progress
from serving_layer.promise.history import Compared, History, Moved, Origin, Shown
from serving_layer.readers import row_keys, views
from serving_layer.readers.row_keys import Key
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError, Unknown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.log import MasterLog

SLICES = 32
"""Questions to Spark in one job."""

ROUNDS = 4
"""Times that the states between two different answers are divided, each time by SLICES if there is one such pair."""


@dataclass(frozen=True)
class Turn:
    """A view began to show another generation or definition. old, new: its generations. compared: their proof."""

    view: str
    before: Shown | None
    after: Shown
    old: Origin | None
    new: Origin | None
    compared: Compared | None


@dataclass(frozen=True)
class Change:
    """A row before and after, by column; None if there was no row."""

    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True)
class Event:
    """A change of the rows of the key, by one or several micro-batches, or by what the view began to show.

    changes: None if the values before or after it are not known.
    """

    at: datetime
    micro_batches: int
    ranges: Mapping[str, OffsetRange]
    turns: Sequence[Turn]
    changes: Sequence[Change] | None


@dataclass(frozen=True)
class Blame:
    """The events, oldest first, and the rows that the view shows now.

    below: progress. selected: the rows of the author's SELECT below it, if they differ. known_since: the beginning of
    the history, if it is later than the time that was asked for.
    """

    events: Sequence[Event]
    read_at: datetime
    below: Mapping[str, Offsets]
    shown: Sequence[Mapping[str, object]]
    selected: Sequence[Mapping[str, object]] | None
    known_since: datetime | None


@dataclass(frozen=True)
class _Snapshot:
    """The rows and the history as of one snapshot. work: the computation of the answer, to be watched."""

    catalog: Catalog
    work: Work
    history: History
    below: Mapping[str, Offsets]
    made: Mapping[int, Origin]
    compared: Mapping[tuple[int, int], Compared]
    rows: list[Row]
    read_at: datetime


@dataclass(frozen=True)
class _Step:
    """The step from one state to the next: a micro-batch, or everything that a hand-over or a leap did at once."""

    at: datetime
    moved: tuple[Moved, ...]
    turns: tuple[Turn, ...]

    @property
    def micro_batch(self) -> bool:
        return not self.turns and all(each.leapt is None for each in self.moved)


def blame(
    database: Database,
    spark: Callable[[], SparkSession],
    log: Callable[[], MasterLog],
    brokers: Brokers,
    name: str,
    words: Sequence[str],
    *,
    since: str,
    limit: int,
    watching: Watching = unwatched,
) -> Blame:
    """The events that changed the rows of a view that these words name. Spark starts once the words are valid."""
    with database.begin() as connection:
        catalog = deployed(connection)
    if name not in catalog.views:
        raise Unknown("view", name, catalog.views, way_out="`lamina status` lists the views.")
    key = row_keys.read(database, catalog.views[name], words)
    began = row_keys.time(database, since)
    with database.snapshot() as connection:
        snapshot = _read(connection, name, key, began)
    states, steps = _states(snapshot, name)
    with (
        watching(snapshot.work),
        closing(Oracle(database, spark(), log(), brokers, name, key, states, snapshot.read_at)) as oracle,
    ):
        rows = _Answers(oracle, states, steps, limit).all()
    view = snapshot.catalog.views[name]
    if not snapshot.rows and not any(rows.values()):
        raise LaminaError(
            f"{name} has no such row, and had none since {began:%Y-%m-%d %H:%M:%S %Z}",
            evidence=f"asked for {key.spark(view)}",
            way_out="Give the group columns' values in order, or some as column=value; look further back with --since.",
        )
    return _blame(snapshot, view, steps, rows, oracle)


def _read(connection: Connection, name: str, key: Key, since: datetime) -> _Snapshot:
    row_keys.in_utc(connection)
    catalog = deployed(connection)
    view = catalog.views[name]
    if name not in views.served_views(connection):
        raise LaminaError(
            f"{name} is not served",
            evidence="no generation of it is live",
            way_out=f"`lamina rebuild {name}` computes it.",
        )
    under = list(definitions.of(catalog, name).views)
    past = history.read(connection, view.sources, under, since)
    changed = [each for each in past.steps if isinstance(each, Shown)]
    ids = {each.generation for each in (*changed, *past.shown.values()) if each.generation is not None}
    made = history.origins(connection, ids)
    below = {source: progress.read(connection, [source]) for source in view.sources}
    reads = {
        source: (catalog.sources[source], OffsetRange.since(progress.starts(connection, [source]), counted))
        for source, counted in below.items()
    }
    return _Snapshot(
        catalog,
        Work(name, reads, [table for each in under for table in catalog.views[each].cell_tables]),
        past,
        below,
        made,
        history.proofs(connection, ids),
        views.rows(connection, name, shown_columns(view), key.postgres(view)),
        history.now(connection),
    )


def _states(snapshot: _Snapshot, name: str) -> tuple[list[State], list[_Step]]:
    """The states before the first step and after each step, and the steps."""
    below, shown = dict(snapshot.history.begins), dict(snapshot.history.shown)
    states, steps = [_state(snapshot, name, below, shown)], list[_Step]()
    for group in _groups(snapshot.history.steps):
        turns = []
        for each in group:
            if isinstance(each, Moved):
                below[each.query] = below[each.query].updated(each.range.end)
            else:
                turns.append(_turn(snapshot, shown.get(each.view), each))
                shown[each.view] = each
        moved = tuple(each for each in group if isinstance(each, Moved))
        steps.append(_Step(group[-1].at, moved, tuple(turns)))
        states.append(_state(snapshot, name, below, shown))
    return states, steps


def _groups(steps: Iterable[Moved | Shown]) -> list[list[Moved | Shown]]:
    """The steps in groups: a micro-batch is a group, and so is everything that one hand-over or leap did."""
    groups: list[list[Moved | Shown]] = []
    for each in steps:
        together = isinstance(each, Shown) or each.leapt is not None
        if together and groups and groups[-1][-1].at == each.at:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _state(snapshot: _Snapshot, name: str, below: Mapping[str, Offsets], shown: Mapping[str, Shown]) -> State:
    since = {view: snapshot.made[each.generation].since for view, each in shown.items() if each.generation is not None}
    now = shown.get(name)
    return State(dict(below), now is not None, None if now is None else now.definition, since)


def _turn(snapshot: _Snapshot, before: Shown | None, after: Shown) -> Turn:
    old = None if before is None or before.generation is None else snapshot.made[before.generation]
    new = None if after.generation is None else snapshot.made[after.generation]
    pair = {each.generation for each in (before, after) if each is not None and each.generation is not None}
    compared = snapshot.compared.get((max(pair), min(pair))) if pair else None
    return Turn(after.view, before, after, old, new, compared)


class _Answers:
    """The oracle's answers at the few states that show how each step changed the rows."""

    def __init__(self, oracle: Oracle, states: Sequence[State], steps: Sequence[_Step], limit: int) -> None:
        self._oracle, self._states, self._steps, self._limit = oracle, states, steps, limit
        self._rows: dict[int, list[Row] | None] = {}

    def all(self) -> dict[int, list[Row] | None]:
        """The rows of the key by state. The steps between two neighbouring states here are not told apart."""
        points = {0, len(self._steps)}
        turns = [at for at, step in enumerate(self._steps) if not step.micro_batch][-self._limit :]
        points |= {at + side for at in turns for side in (0, 1)}
        holding, floor = self._holding()
        points |= {at + side for at in holding for side in (0, 1)}
        self._ask(points)
        for _ in range(ROUNDS):
            unclear = [
                (a, b) for a, b in pairwise(sorted(self._rows)) if a >= floor and b - a > 1 and self._differ(a, b)
            ]
            if not unclear:
                break
            newest = unclear[-self._limit :]
            self._ask({at for a, b in newest for at in _divided(a, b, max(2, SLICES // len(newest)))})
        return self._rows

    def _holding(self) -> tuple[list[int], int]:
        """The newest micro-batches whose own records give a row of the key, and the step from which these are complete.

        Only runs whose own records give such a row are searched: if the key does not exist, that is one question.
        """
        newest: list[int] = []
        runs = self._runs()
        holding = [run for run, holds in zip(runs, self._hold(runs), strict=True) if holds]
        for first, end in reversed(holding):
            spans = [(first, end)]
            while any(b - a > 1 for a, b in spans):
                parts = max(2, SLICES // len(spans))
                divided = [part for a, b in spans for part in pairwise([a, *_divided(a, b, parts), b])]
                holds = self._oracle.hold(divided)
                spans = [part for part, has in zip(divided, holds, strict=True) if has]
                spans = spans[-(self._limit - len(newest)) :]
            newest = [a for a, _ in spans] + newest
            if len(newest) >= self._limit:
                return newest, newest[0]
        return newest, 0

    def _hold(self, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """The oracle's `hold` for any number of spans."""
        return [each for at in range(0, len(spans), SLICES) for each in self._oracle.hold(spans[at : at + SLICES])]

    def _runs(self) -> list[tuple[int, int]]:
        """The longest runs of micro-batches with no hand-over between them."""
        others = [-1, *(at for at, step in enumerate(self._steps) if not step.micro_batch), len(self._steps)]
        return [(a + 1, b) for a, b in pairwise(others) if b > a + 1]

    def _ask(self, points: Iterable[int]) -> None:
        new = sorted(set(points) - self._rows.keys())
        for start in range(0, len(new), SLICES):
            some = new[start : start + SLICES]
            self._rows |= zip(some, self._oracle.rows(some), strict=True)

    def _differ(self, a: int, b: int) -> bool:
        """True if the rows of two states differ and one SELECT gives both."""
        one = self._states[a].definition == self._states[b].definition
        return one and bool(
            _changes(self._oracle.view_at(a), self._rows[a], self._oracle.view_at(b), self._rows[b], ())
        )


def _divided(a: int, b: int, parts: int) -> list[int]:
    """States that divide the steps between two states into parts.

    >>> _divided(0, 10, 4), _divided(3, 5, 4), _divided(3, 4, 4)
    ([2, 5, 7], [4], [])
    """
    return sorted({a + (b - a) * part // parts for part in range(1, parts)} - {a, b})


def _blame(
    snapshot: _Snapshot, view: View, steps: Sequence[_Step], rows: Mapping[int, list[Row] | None], oracle: Oracle
) -> Blame:
    events = []
    for a, b in pairwise(sorted(rows)):
        between = steps[a:b]
        turns = [turn for step in between for turn in step.turns]
        changes = _changes(oracle.view_at(a), rows[a], oracle.view_at(b), rows[b], row_keys.group_columns(view))
        if changes or turns or changes is None:
            moved = [each for step in between for each in step.moved]
            count = sum(step.micro_batch for step in between)
            events.append(Event(between[-1].at, count, _ranges(moved), turns, changes))
    selected = rows[len(steps)]
    same = selected is not None and compare(view, selected, snapshot.rows, Offsets({})).equal
    return Blame(
        events,
        snapshot.read_at,
        snapshot.below,
        [_named(view, row) for row in snapshot.rows],
        None if same or selected is None else [_named(view, row) for row in selected],
        snapshot.history.known_since,
    )


def _ranges(moved: Iterable[Moved]) -> dict[str, OffsetRange]:
    """The range that these steps cover together, by source."""
    starts: dict[str, Offsets] = {}
    ends: dict[str, Offsets] = {}
    for each in moved:
        starts[each.query] = each.range.start.updated(starts.get(each.query, {}))
        ends[each.query] = ends.get(each.query, Offsets({})).updated(each.range.end)
    return {name: OffsetRange(starts[name], end) for name, end in ends.items()}


def _changes(
    old: View | None,
    before: Sequence[Row] | None,
    new: View | None,
    after: Sequence[Row] | None,
    groups: Sequence[str],
) -> list[Change] | None:
    """The rows that changed, came or went; None if the rows before or after are not known."""
    if before is None or after is None:
        return None
    gone, come = list(before), list(after)
    if old is not None and new is not None and old.columns == new.columns:
        compared = compare(new, come, gone, Offsets({}))
        originals = {exact(row): row for row in (*gone, *come)}
        come, gone = ([originals[row] for row in side] for side in (compared.missing, compared.surplus))
    left, right = [_named(old, row) for row in gone], [_named(new, row) for row in come]
    left, right = [row for row in left if row not in right], [row for row in right if row not in left]
    changes = []
    for row in left:
        same = [other for other in right if all(other.get(name) == row.get(name) for name in groups)]
        changes.append(Change(row, same[0] if len(same) == 1 else None))
        right = [other for other in right if not (len(same) == 1 and other is same[0])]
    return changes + [Change(None, row) for row in right]


def _named(view: View | None, row: Row) -> dict[str, object]:
    assert view is not None, "a view that was not there has no rows"
    return dict(zip([column.name for column in view.columns], row, strict=True))
