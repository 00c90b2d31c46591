"""Hopping windows and sessions without panes.

Groups of records are made of panes. Records without GROUP BY, and rows of a join, UNION, table or groups, have none:
each row stands once for every hopping window that it is in, and a session is found by a window function. `SELECT k,
session_window(t, '5 minutes').start, sum(x) FROM r GROUP BY k, session_window(t, '5 minutes')` is

    SELECT k, session, sum(x) FROM (
      SELECT *, max(begins) OVER (PARTITION BY k ORDER BY t) AS session FROM (
        SELECT *, CASE WHEN t <= max(t) OVER (PARTITION BY k ORDER BY t, of the rows before) + INTERVAL 5 MINUTES
                       THEN NULL ELSE t END AS begins FROM r WHERE t IS NOT NULL))
    GROUP BY k, session
"""

from __future__ import annotations

from dataclasses import replace

from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Constant,
    Expr,
    Field,
    Generator,
    Nested,
    Order,
    Output,
    Select,
    Subquery,
    Windowed,
)
from view_algebra.language.meeting import compare
from view_algebra.language.operators import case
from view_algebra.language.time_windows import SESSION_END, SESSION_START, hops, is_session
from view_algebra.language.types import TIMESTAMP, Type
from view_algebra.language.walks import above_group, columns_under, rewrite, rewritten, walk
from view_algebra.refusals import Wrong
from view_algebra.typed.order.events import reads_records
from view_algebra.typed.relations.generators import with_generator

_ROWS, _BEGINS, _WITH_SESSIONS, _SESSION = "rows", "begins", "in sessions", "session"
"""Names: the rows, the time of a row that begins a session, the rows with their session, the session's start."""

_BEFORE = "RANGE BETWEEN UNBOUNDED PRECEDING AND interval '0.000001 seconds' PRECEDING"
"""The rows of an earlier time. Rows of one time are in one session."""

_EVERY_WINDOW = "every window"
"""An alias that no author can write."""


def in_sessions(block: Select) -> Select:
    """A block that groups rows by their sessions. A block that groups records stays as it is."""
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
    continues = compare("<=", time, Call("window_end", (before, gap), TIMESTAMP), block.place)
    begins = case([(continues, Constant(None, TIMESTAMP))], time)
    values = tuple(Output(name, part) for part, name in names.items())
    rows = Select((*values, Output(_BEGINS, begins)), block.relation, where=block.where, place=block.place)

    row = columns_under(names, _ROWS)
    keys, order = tuple(rewrite(key, row) for key in within), (Order(rewrite(time, row), False, True),)
    so_far = Windowed("max", (Field(_ROWS, (_BEGINS,), TIMESTAMP),), keys, order, "", TIMESTAMP)
    values = tuple(Output(name, Field(_ROWS, (name,), part.type)) for part, name in names.items())
    with_sessions = Select((*values, Output(_SESSION, so_far)), Nested(rows, _ROWS, block.place), place=block.place)

    column = columns_under(names, _WITH_SESSIONS)
    last = Aggregate("max", (rewrite(time, column),), None, False, TIMESTAMP)

    def bound(part: Expr) -> Expr | None:
        if part in (session, Call(SESSION_START, (session,), TIMESTAMP)):
            return Field(_WITH_SESSIONS, (_SESSION,), TIMESTAMP, place=part.place)
        if part == Call(SESSION_END, (session,), TIMESTAMP):
            return Call("window_end", (replace(last, place=part.place), gap), TIMESTAMP, place=part.place)
        return column(part)

    grouped = rewritten(replace(block, where=None, relation=None), bound)
    return replace(grouped, relation=Nested(with_sessions, _WITH_SESSIONS, block.place))


def in_every_window(block: Select) -> Select:
    """A relation with each row once per hopping window that holds it, unless a block groups records."""
    expressions = (*above_group(block), *(block.group or ()))
    hopping = dict.fromkeys(e for x in expressions for e in walk(x) if isinstance(e, Call) and hops(e))
    grouped = block.group is not None or block.distinct
    if not hopping or block.relation is None or (grouped and reads_records(block.relation)):
        return block
    window, *more = hopping
    if more:
        raise Wrong(more[0].place, "SELECT has two hopping windows of one record", "Select one of them.")
    starts = Call("hops", window.arguments, Type("ARRAY", element=TIMESTAMP), place=window.place)
    generator = Generator(starts, (("start", TIMESTAMP),), False, False, _EVERY_WINDOW, window.place)

    def start(expression: Expr) -> Expr | None:
        return Field(_EVERY_WINDOW, ("start",), TIMESTAMP, place=expression.place) if expression == window else None

    return replace(
        rewritten(replace(block, where=None), start),
        relation=with_generator(block.relation, generator),
        where=block.where,
    )
