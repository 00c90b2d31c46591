"""Sessions of rows that are no records: of a join, a UNION, a table, groups. Those of records are made of panes.

`SELECT k, session_window(t, '5 minutes').start, sum(x) FROM r GROUP BY k, session_window(t, '5 minutes')` is read as

    SELECT k, session, sum(x) FROM (
      SELECT *, max(begins) OVER (PARTITION BY k ORDER BY t) AS session FROM (
        SELECT *, CASE WHEN t <= max(t) OVER (PARTITION BY k ORDER BY t, of the rows before) + INTERVAL 5 MINUTES
                       THEN NULL ELSE t END AS begins FROM r WHERE t IS NOT NULL))
    GROUP BY k, session
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Constant,
    Expr,
    Field,
    Nested,
    Order,
    Output,
    Select,
    Subquery,
    Windowed,
)
from view_algebra.language.meeting import compare
from view_algebra.language.operators import case
from view_algebra.language.time_windows import SESSION_END, SESSION_START, is_session
from view_algebra.language.types import TIMESTAMP
from view_algebra.language.walks import above_group, rewrite, rewritten, walk
from view_algebra.typed.passing import reads_records

_ROWS, _BEGINS, _TOLD, _SESSION = "rows", "begins", "in sessions", "session"
"""The rows, and the time of each that begins a session; the rows again, each with when its session begins."""

_BEFORE = "RANGE BETWEEN UNBOUNDED PRECEDING AND interval '0.000001 seconds' PRECEDING"
"""The rows of an earlier time: those of one time are in one session."""


def in_sessions(block: Select) -> Select:
    """A block that groups rows by the sessions that they are in; one that groups records stays what it is."""
    sessions = [key for key in block.group or () if is_session(key)]
    if len(sessions) != 1 or block.relation is None or reads_records(block.relation):
        return block
    (session,) = sessions
    assert isinstance(session, Call)
    time, gap = session.arguments
    every = [part for e in (*above_group(block), *(block.group or ())) for part in walk(e)]
    if not isinstance(gap, Constant) or any(isinstance(part, Subquery) for part in every):
        return block
    fields = dict.fromkeys(part for part in every if isinstance(part, Field) and part.relation and not part.outer)
    names: dict[Expr, str] = {part: f"value {number}" for number, part in enumerate(fields)}
    within = tuple(key for key in block.group or () if key != session)

    before = Windowed("max", (time,), within, (Order(time, False, True),), _BEFORE, TIMESTAMP)
    goes_on = compare("<=", time, Call("window_end", (before, gap), TIMESTAMP), block.place)
    begins = case([(goes_on, Constant(None, TIMESTAMP))], time)
    values = tuple(Output(name, part) for part, name in names.items())
    rows = Select((*values, Output(_BEGINS, begins)), block.relation, where=block.where, place=block.place)

    row = _columns(names, _ROWS)
    keys, order = tuple(rewrite(key, row) for key in within), (Order(rewrite(time, row), False, True),)
    so_far = Windowed("max", (Field(_ROWS, (_BEGINS,), TIMESTAMP),), keys, order, "", TIMESTAMP)
    values = tuple(Output(name, Field(_ROWS, (name,), part.type)) for part, name in names.items())
    told = Select((*values, Output(_SESSION, so_far)), Nested(rows, _ROWS, block.place), place=block.place)

    column = _columns(names, _TOLD)
    last = Aggregate("max", (rewrite(time, column),), None, False, TIMESTAMP)

    def bound(part: Expr) -> Expr | None:
        if part in (session, Call(SESSION_START, (session,), TIMESTAMP)):
            return Field(_TOLD, (_SESSION,), TIMESTAMP, place=part.place)
        if part == Call(SESSION_END, (session,), TIMESTAMP):
            return Call("window_end", (replace(last, place=part.place), gap), TIMESTAMP, place=part.place)
        return column(part)

    grouped = rewritten(replace(block, where=None, relation=None), bound)
    return replace(grouped, relation=Nested(told, _TOLD, block.place))


def _columns(names: Mapping[Expr, str], alias: str) -> Callable[[Expr], Expr | None]:
    """Finds columns, under these names, in a subquery of this alias."""

    def column(part: Expr) -> Expr | None:
        name = names.get(part)
        return None if name is None else Field(alias, (name,), part.type, place=part.place)

    return column
