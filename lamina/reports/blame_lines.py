"""The output of `lamina blame`: a line per event, the newest last, then the view's current rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from batch_layer.blame import Blame, Event, RowChange, Turn
from lamina.terminal.render import Output, cell
from master_log.offsets import OffsetRange, Offsets


def show(output: Output, view: str, history: Blame) -> None:
    """Shows the events that moved the rows of a key, and the rows that the view shows now."""
    if output.as_json:
        for event in history.events:
            output.record(_record(view, event))
        now = {"at": history.read_at, "what": "now", "offsets": _offsets(history.below), "rows": history.shown}
        output.record({**now, "selected": history.selected, "known_since": history.known_since})
    else:
        lines = [line for event in history.events for line in _lines(view, event)]
        shown = [
            (history.read_at, "now", "below " + "; ".join(map(str, history.below.values())), text)
            for text in [_values(row) for row in history.shown] or ["no row"]
        ]
        output.table(("time", "what", "offsets", "values"), [*lines, *shown])
    _tell(output, view, history)


def _tell(output: Output, view: str, history: Blame) -> None:
    if history.known_since is not None:
        output.tell(f"events before {cell(history.known_since)} are not kept, so the list lacks them")
    if not history.events:
        output.tell("no event within that time has changed this row")
    if history.selected is not None:
        selected = "; ".join(_values(row) for row in history.selected) or "no row"
        output.tell(f"{view} differs from its SELECT, which gives: {selected}")
        output.tell(f"`lamina check {view}` compares every row, `lamina rebuild {view}` corrects them.")


def _lines(view: str, event: Event) -> Iterator[tuple[Any, ...]]:
    what, offsets = _what(view, event), ", ".join(f"{name} {_range(range)}" for name, range in event.ranges.items())
    for number, text in enumerate(_texts(event)):
        yield (event.at, what, offsets, text) if number == 0 else (None, None, None, text)


def _what(view: str, event: Event) -> str:
    """An event in words.

    >>> from datetime import datetime, UTC
    >>> of_two = {"events": OffsetRange(Offsets.of("e", {0: 1}), Offsets.of("e", {0: 4}))}
    >>> _what("hourly", Event(datetime(2026, 1, 1, tzinfo=UTC), 2, of_two, [], []))
    '2 micro-batches of events'
    """
    parts = []
    if event.micro_batches:
        count = "micro-batch" if event.micro_batches == 1 else f"{event.micro_batches:,} micro-batches"
        parts.append(f"{count} of {', '.join(event.ranges)}")
    return ", ".join([*parts, *(_turn(view, turn) for turn in event.turns)])


def _turn(view: str, turn: Turn) -> str:
    how = _how(turn)
    return how if turn.view == view else f"{turn.view}: {how}"


def _how(turn: Turn) -> str:
    old, new, before, after = turn.old, turn.new, turn.before, turn.after
    by = "apply" if new is None or new.rebuild is None else f"rebuild {new.rebuild}" + (" (leap)" if new.leap else "")
    if before is None:
        return f"first shown, by {by}"
    if before.generation == after.generation:
        return (
            "apply: another SELECT over the same cells"
            if before.definition
            else "apply: its SELECT is kept from then on"
        )
    back = (after.generation or 0) < (before.generation or 0)
    if old is not None and new is not None and old.version != new.version:
        way = "rollback, or apply of an earlier catalog" if back else f"apply, {by}"
        return f"version {old.version} → {new.version} ({way})"
    proof = "no proof kept"
    if turn.compared is not None:
        proof = f"{turn.compared.differing:,} of {turn.compared.cells:,} cells differed"
    return f"{f'rollback to generation {after.generation}' if back else by}: {proof}"


def _texts(event: Event) -> list[str]:
    if event.changes is None:
        return ["not known: another SELECT, or one that has no such columns"]
    if event.changes:
        return [_change(change) for change in event.changes]
    if all(turn.before is None for turn in event.turns):
        return ["no row"]
    if not any(_may_have_corrected(turn) for turn in event.turns):
        return ["unchanged"]
    return ["its SELECT gives the same; whether this row was corrected is not known"]


def _may_have_corrected(turn: Turn) -> bool:
    """True if readers read other cells after the turn, and no proof says that they are equal."""
    same = turn.before is not None and turn.before.generation == turn.after.generation
    return not same and (turn.compared is None or turn.compared.differing > 0)


def _change(change: RowChange) -> str:
    """A row before and after, in words.

    >>> _change(RowChange({"country": "DE", "events": 3}, {"country": "DE", "events": 4}))
    'events 3 → 4'
    >>> _change(RowChange(None, {"country": "DE", "events": 1}))
    'new: country DE, events 1'
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return f"new: {_values(after)}" if after is not None else f"gone: {_values(before or {})}"
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return ", ".join(f"{name} {_value(before.get(name))} → {_value(after.get(name))}" for name in names)


def _values(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in row.items())


def _value(value: object) -> str:
    return "NULL" if value is None else cell(value)


def _range(range: OffsetRange) -> str:
    """The offsets of a range, including the last ones.

    >>> _range(OffsetRange(Offsets.of("e", {0: 1, 1: 7}), Offsets.of("e", {0: 4, 1: 8})))
    '0:1-3 1:7'
    """
    parts = [(at.partition, range.start[at], end - 1) for at, end in range.end.items()]
    return " ".join(f"{p}:{first}" + ("" if first == last else f"-{last}") for p, first, last in parts)


def _record(view: str, event: Event) -> dict[str, Any]:
    ranges = {
        name: {at.partition: [range.start[at], end] for at, end in range.end.items()}
        for name, range in event.ranges.items()
    }
    return {
        "at": event.at,
        "what": _what(view, event),
        "micro_batches": event.micro_batches,
        "offsets": ranges,
        "turns": [_turn_record(turn) for turn in event.turns],
        "changes": None if event.changes is None else [asdict(change) for change in event.changes],
    }


def _turn_record(turn: Turn) -> dict[str, Any]:
    before, new = turn.before, turn.new
    return {
        "view": turn.view,
        "what": _how(turn),
        "rebuild": None if new is None else new.rebuild,
        "generation": turn.after.generation,
        "before": None if before is None else before.generation,
        "cells": None if turn.compared is None else turn.compared.cells,
        "differing": None if turn.compared is None else turn.compared.differing,
    }


def _offsets(below: Mapping[str, Offsets]) -> dict[str, dict[int, int]]:
    return {name: {at.partition: offset for at, offset in offsets.items()} for name, offsets in below.items()}
