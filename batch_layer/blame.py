"""`lamina blame`: the events that changed the rows of one key, with the values before and after.

The history has progress after each micro-batch, and the version that the view showed. The values come from `PastRows`:
Spark runs the author's SELECT over every record below such a state. It computes few states: both sides of each
hand-over, both sides of the micro-batches whose own records give a row of the key, and states between two different
answers, until the micro-batch that changed the rows is found. Micro-batches between two answers are one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from batch_layer.comparison import Row, compare, exact, shown_columns
from batch_layer.selects import PastRows, PastState, Services, not_served, work_of
from batch_layer.stalls import Watching, Work, unwatched
from master_log.offsets import OffsetRange, Offsets
from serving_layer.catalog import definitions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.database import Connection
from serving_layer.promise import history, progress
from serving_layer.promise.history import History, Origin, ProgressMove, ProofCounts, ViewTurn
from serving_layer.readers import row_keys, views
from serving_layer.readers.row_keys import RowKey
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError, Unknown

SLICES = 32
"""Questions to Spark in one job."""

ROUNDS = 4
"""Times that the states between two different answers are divided: by SLICES if there is one such pair."""


@dataclass(frozen=True)
class Turn:
    """A view began to show another generation or definition.

    old, new: the origins of its generations
    compared: their proof
    """

    view: str
    before: ViewTurn | None
    after: ViewTurn
    old: Origin | None
    new: Origin | None
    compared: ProofCounts | None


@dataclass(frozen=True)
class RowChange:
    """A row before and after, by column. None if there was no row."""

    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True)
class Event:
    """A change of the rows of the key, by one or several micro-batches, or by turns of views.

    changes: None if the values before or after it are unknown
    """

    at: datetime
    micro_batches: int
    ranges: Mapping[str, OffsetRange]
    turns: Sequence[Turn]
    changes: Sequence[RowChange] | None


@dataclass(frozen=True)
class Blame:
    """The events, oldest first, and the rows that the view shows now.

    below: progress
    selected: the rows of the author's SELECT below it, if they differ
    known_since: the beginning of the history, if it is later than the requested time
    """

    events: Sequence[Event]
    read_at: datetime
    below: Mapping[str, Offsets]
    shown: Sequence[Mapping[str, object]]
    selected: Sequence[Mapping[str, object]] | None
    known_since: datetime | None


@dataclass(frozen=True)
class _Snapshot:
    """The rows and the history as of one snapshot.

    work: the computation of the answer, to be watched
    origins: by generation
    """

    catalog: Catalog
    work: Work
    history: History
    below: Mapping[str, Offsets]
    origins: Mapping[int, Origin]
    compared: Mapping[tuple[int, int], ProofCounts]
    rows: list[Row]
    read_at: datetime


@dataclass(frozen=True)
class _StateChange:
    """The step from one state to the next: a micro-batch, or all effects of a hand-over or a leap."""

    at: datetime
    moved: tuple[ProgressMove, ...]
    turns: tuple[Turn, ...]

    @property
    def micro_batch(self) -> bool:
        return not self.turns and all(move.leapt is None for move in self.moved)


def blame(
    services: Services, name: str, words: Sequence[str], *, since: str, limit: int, watching: Watching = unwatched
) -> Blame:
    """The events that changed the rows with the key in these words. Spark starts once the words are valid."""
    database = services.database
    with database.begin() as connection:
        catalog = deployed(connection)
    if name not in catalog.views:
        raise Unknown("view", name, catalog.views, way_out="`lamina status` lists the views.")
    key = row_keys.read(database, catalog.views[name], words)
    began = row_keys.time(database, since)
    with database.snapshot() as connection:
        snapshot = _read(connection, name, key, began)
    states, steps = _states(snapshot, name)
    with watching(snapshot.work), closing(PastRows(services, name, key, states, snapshot.read_at)) as past_rows:
        rows = _Bisection(past_rows, states, steps, limit).all()
    view = snapshot.catalog.views[name]
    if not snapshot.rows and not any(rows.values()):
        raise LaminaError(
            f"{name} has no such row, and had none since {began:%Y-%m-%d %H:%M:%S %Z}",
            evidence=f"its key is {key.spark(view)}",
            way_out="Give the group columns' values in order, or some as column=value. Look further back with --since.",
        )
    return _blame(snapshot, view, steps, rows, past_rows)


def _read(connection: Connection, name: str, key: RowKey, since: datetime) -> _Snapshot:
    row_keys.in_utc(connection)
    catalog = deployed(connection)
    view = catalog.views[name]
    if name not in views.served_views(connection):
        raise not_served(name, "no generation of it is live")
    under = list(definitions.of(catalog, name).views)
    past = history.read(connection, view.sources, under, since)
    turns = [step for step in past.steps if isinstance(step, ViewTurn)]
    ids = {shown.generation for shown in (*turns, *past.shown.values()) if shown.generation is not None}
    below = {source: progress.read(connection, [source]) for source in view.sources}
    starts = {source: progress.starts(connection, [source]) for source in view.sources}
    return _Snapshot(
        catalog=catalog,
        work=work_of(catalog, name, starts, below),
        history=past,
        below=below,
        origins=history.origins(connection, ids),
        compared=history.proofs(connection, ids),
        rows=views.rows(connection, name, shown_columns(view), key.postgres(view)),
        read_at=history.snapshot_time(connection),
    )


def _states(snapshot: _Snapshot, name: str) -> tuple[list[PastState], list[_StateChange]]:
    """The states before the first step and after each step, and the steps."""
    below, shown = dict(snapshot.history.begins), dict(snapshot.history.shown)
    states, steps = [_state(snapshot, name, below, shown)], list[_StateChange]()
    for group in _groups(snapshot.history.steps):
        turns = []
        for step in group:
            if isinstance(step, ProgressMove):
                below[step.query] = below[step.query].updated(step.range.end)
            else:
                turns.append(_turn(snapshot, shown.get(step.view), step))
                shown[step.view] = step
        moved = tuple(step for step in group if isinstance(step, ProgressMove))
        steps.append(_StateChange(group[-1].at, moved, tuple(turns)))
        states.append(_state(snapshot, name, below, shown))
    return states, steps


def _groups(steps: Iterable[ProgressMove | ViewTurn]) -> list[list[ProgressMove | ViewTurn]]:
    """The steps in groups: one for each micro-batch, and one for all effects of a hand-over or a leap."""
    groups: list[list[ProgressMove | ViewTurn]] = []
    for step in steps:
        together = isinstance(step, ViewTurn) or step.leapt is not None
        if together and groups and groups[-1][-1].at == step.at:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _state(snapshot: _Snapshot, name: str, below: Mapping[str, Offsets], shown: Mapping[str, ViewTurn]) -> PastState:
    generations = {view: turn.generation for view, turn in shown.items() if turn.generation is not None}
    since = {view: snapshot.origins[id].since for view, id in generations.items()}
    now = shown.get(name)
    return PastState(dict(below), now is not None, None if now is None else now.definition, since)


def _turn(snapshot: _Snapshot, before: ViewTurn | None, after: ViewTurn) -> Turn:
    old = None if before is None or before.generation is None else snapshot.origins[before.generation]
    new = None if after.generation is None else snapshot.origins[after.generation]
    pair = {shown.generation for shown in (before, after) if shown is not None and shown.generation is not None}
    compared = snapshot.compared.get((max(pair), min(pair))) if pair else None
    return Turn(after.view, before, after, old, new, compared)


class _Bisection:
    """Searches for the few states whose rows show how each step changed them, and asks for these."""

    def __init__(
        self, past_rows: PastRows, states: Sequence[PastState], steps: Sequence[_StateChange], limit: int
    ) -> None:
        self._past_rows, self._states, self._steps, self._limit = past_rows, states, steps, limit
        self._rows: dict[int, list[Row] | None] = {}

    def all(self) -> dict[int, list[Row] | None]:
        """The rows of the key by state. The steps between two neighbours among these states form one event."""
        points = {0, len(self._steps)}
        turns = [at for at, step in enumerate(self._steps) if not step.micro_batch][-self._limit :]
        points |= {at + side for at in turns for side in (0, 1)}
        touching, floor = self._micro_batches_touching_key()
        points |= {at + side for at in touching for side in (0, 1)}
        self._ask(points)
        for _ in range(ROUNDS):
            unclear = [
                (a, b) for a, b in pairwise(sorted(self._rows)) if a >= floor and b - a > 1 and self._differ(a, b)
            ]
            if not unclear:
                break
            newest = unclear[-self._limit :]
            self._ask({at for a, b in newest for at in _divisions(a, b, max(2, SLICES // len(newest)))})
        return self._rows

    def _micro_batches_touching_key(self) -> tuple[list[int], int]:
        """The newest micro-batches whose own records give a row of the key, and the step from which they are complete.

        It searches only runs whose own records give such a row. If the key does not exist, that is one question.
        """
        newest: list[int] = []
        runs = self._runs()
        touching = [run for run, touches in zip(runs, self._touch_key(runs), strict=True) if touches]
        for first, end in reversed(touching):
            spans = [(first, end)]
            while any(b - a > 1 for a, b in spans):
                parts = max(2, SLICES // len(spans))
                smaller = [span for a, b in spans for span in pairwise([a, *_divisions(a, b, parts), b])]
                touches = self._past_rows.records_touch_key(smaller)
                spans = [span for span, touched in zip(smaller, touches, strict=True) if touched]
                spans = spans[-(self._limit - len(newest)) :]
            newest = [a for a, _ in spans] + newest
            if len(newest) >= self._limit:
                return newest, newest[0]
        return newest, 0

    def _touch_key(self, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """`PastRows.records_touch_key` for any number of spans."""
        slices = [spans[at : at + SLICES] for at in range(0, len(spans), SLICES)]
        return [touches for some in slices for touches in self._past_rows.records_touch_key(some)]

    def _runs(self) -> list[tuple[int, int]]:
        """The longest runs of micro-batches with no hand-over between them."""
        others = [-1, *(at for at, step in enumerate(self._steps) if not step.micro_batch), len(self._steps)]
        return [(a + 1, b) for a, b in pairwise(others) if b > a + 1]

    def _ask(self, points: Iterable[int]) -> None:
        new = sorted(set(points) - self._rows.keys())
        for start in range(0, len(new), SLICES):
            some = new[start : start + SLICES]
            self._rows |= zip(some, self._past_rows.rows(some), strict=True)

    def _differ(self, a: int, b: int) -> bool:
        """True if the rows of two states differ and one SELECT gives both."""
        one = self._states[a].definition == self._states[b].definition
        return one and bool(
            _changes(self._past_rows.view_at(a), self._rows[a], self._past_rows.view_at(b), self._rows[b], ())
        )


def _divisions(a: int, b: int, parts: int) -> list[int]:
    """States that divide the steps between two states into parts.

    >>> _divisions(0, 10, 4), _divisions(3, 5, 4), _divisions(3, 4, 4)
    ([2, 5, 7], [4], [])
    """
    return sorted({a + (b - a) * part // parts for part in range(1, parts)} - {a, b})


def _blame(
    snapshot: _Snapshot,
    view: View,
    steps: Sequence[_StateChange],
    rows: Mapping[int, list[Row] | None],
    past_rows: PastRows,
) -> Blame:
    events = []
    for a, b in pairwise(sorted(rows)):
        between = steps[a:b]
        turns = [turn for step in between for turn in step.turns]
        changes = _changes(past_rows.view_at(a), rows[a], past_rows.view_at(b), rows[b], row_keys.group_columns(view))
        if changes or turns or changes is None:
            moved = [move for step in between for move in step.moved]
            count = sum(step.micro_batch for step in between)
            events.append(Event(between[-1].at, count, _ranges(moved), turns, changes))
    selected = rows[len(steps)]
    differ = selected is not None and bool(compare(view, selected, snapshot.rows))
    return Blame(
        events=events,
        read_at=snapshot.read_at,
        below=snapshot.below,
        shown=[_by_column(view, row) for row in snapshot.rows],
        selected=[_by_column(view, row) for row in selected] if selected is not None and differ else None,
        known_since=snapshot.history.known_since,
    )


def _ranges(moved: Iterable[ProgressMove]) -> dict[str, OffsetRange]:
    """The range that these steps cover together, by source."""
    starts: dict[str, Offsets] = {}
    ends: dict[str, Offsets] = {}
    for move in moved:
        starts[move.query] = move.range.start.updated(starts.get(move.query, {}))
        ends[move.query] = ends.get(move.query, Offsets({})).updated(move.range.end)
    return {name: OffsetRange(starts[name], end) for name, end in ends.items()}


def _changes(
    old: View | None,
    before: Sequence[Row] | None,
    new: View | None,
    after: Sequence[Row] | None,
    groups: Sequence[str],
) -> list[RowChange] | None:
    """The rows that changed, came or went, or None if the rows before or after are unknown."""
    if before is None or after is None:
        return None
    gone, come = list(before), list(after)
    if old is not None and new is not None and old.columns == new.columns:
        compared = compare(new, come, gone)
        originals = {exact(row): row for row in (*gone, *come)}
        come, gone = ([originals[row] for row in side] for side in (compared.missing, compared.surplus))
    left, right = [_by_column(old, row) for row in gone], [_by_column(new, row) for row in come]
    left, right = [row for row in left if row not in right], [row for row in right if row not in left]
    changes = []
    for row in left:
        same = [other for other in right if all(other.get(name) == row.get(name) for name in groups)]
        changes.append(RowChange(row, same[0] if len(same) == 1 else None))
        right = [other for other in right if not (len(same) == 1 and other is same[0])]
    return changes + [RowChange(None, row) for row in right]


def _by_column(view: View | None, row: Row) -> dict[str, object]:
    assert view is not None, "a view that did not exist has no rows"
    return dict(zip([column.name for column in view.columns], row, strict=True))
