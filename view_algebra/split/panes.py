"""Assembles windows, when they are read, from panes that hold each record once.

A hopping window consists of tumbling panes of gcd(size, slide): `window(ts, '1 hour', '5 seconds')` keeps a cell per
5 seconds, not 720 per record. A separate cell table lists the windows, so that a reader finds a window and its panes by
index.

For a value that is either present or not, as in count(DISTINCT), a cell per pane would be wasteful. It gets one cell
per block of as many panes as a window has, with a bit for each pane. A window is then read from two blocks.

A session consists of panes as long as its gap: two records of one pane are never further apart, so a pane is never in
two sessions. A pane keeps the times of its first and last record. Panes whose records are no further apart than the gap
form one session, even if a late record closes a gap between two. If every record has its own gap, a pane is an instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from view_algebra.language.aggregates import Part, merged
from view_algebra.language.expressions import (
    NULL,
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Expr,
    Field,
    Hopped,
    Nested,
    Output,
    Query,
    Relation,
    Select,
    Sessions,
    both,
)
from view_algebra.language.fields import member
from view_algebra.language.relations import nested_in, with_nested
from view_algebra.language.time_windows import (
    BEYOND,
    HOP,
    HOP_END,
    PANE,
    SESSION_END,
    SESSION_START,
    Hops,
    by_bounds,
    ends,
    hops,
    hops_of,
    put_together,
    seen,
)
from view_algebra.language.types import BIGINT, BOOLEAN, FIRST_TIME, LAST_TIME, TIMESTAMP, WINDOW
from view_algebra.language.walks import above_group, kept_by, rewrite, rewritten, walk


def by_end(block: Select) -> Select:
    """Groups by the ends of hopping windows if the block only shows these, so that readers find them by index."""
    window = put_together(kept_by(block))
    if window is None or hops(window) is None:
        return block
    end, shown = Call("window_end", (window, window.arguments[1]), TIMESTAMP), above_group(block)
    without = [rewrite(e, lambda part: NULL if part == end else None) for e in shown]
    if shown == without or any(window in walk(e) for e in without):
        return block
    key = replace(window, function=HOP_END)
    return rewritten(block, lambda part: replace(key, place=part.place) if part in (end, window) else None)


def with_bounds(query: Query) -> Query:
    """Makes a bound of a subquery's window a column of the subquery, so that it is found by index.

    `SELECT w.start FROM (SELECT window AS w, …)` then reads the start directly, not from a struct.
    """
    if isinstance(query, Combined):
        return replace(query, left=with_bounds(query.left), right=with_bounds(query.right))
    relation, whole = query.relation, set(query.group or ())
    bounds_of: dict[tuple[str, str], Output] = {}

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.of != WINDOW or len(part.path) != 2 or part.outer:
            return None
        window_, bound = part.path
        below = _expression_of(relation, part.relation, window_)
        if below is None or Field(part.relation, (window_,), WINDOW) in whole:
            return None
        name = f"{bound} of {window_}"
        bounds_of[part.relation, name] = Output(name, member(below, bound, part.place))
        return replace(part, path=(name,), of=None)

    query = rewritten(replace(query, order=by_bounds(query.order)), change)

    def more(nested: Nested) -> Nested:
        below = nested.query
        if isinstance(below, Select):
            bounds_ = tuple(output for (alias, _), output in bounds_of.items() if alias == nested.alias)
            below = replace(below, outputs=(*below.outputs, *bounds_))
        return replace(nested, query=with_bounds(below))

    return with_nested(query, more)


def _expression_of(relation: Relation | None, alias: str, column: str) -> Expr | None:
    """The expression of a column of a subquery in FROM; None if the subquery is not a SELECT."""
    below = next((nested.query for nested in nested_in(relation) if nested.alias == alias), None)
    outputs = below.outputs if isinstance(below, Select) else ()
    return next((o.expression for o in outputs if o.name.lower() == column.lower()), None)


def coarser(relation: Relation, cells: str, keys: Sequence[Output], parts: Parts, where: Expr | None) -> Select:
    """Merges finer cells to groups by fewer keys, or by expressions over the keys.

    cells: the cells' alias in the relation. If this joins them, a cell is merged once for each row that it joins.
    """
    return replace(_merged(keys, parts, relation, cells), where=where)


def hopped(
    panes: Cells,
    windows: Cells,
    keys: Sequence[str],
    start: str,
    window: Call,
    parts: Parts,
    where: Expr | None = None,
) -> Query:
    """Merges panes to hopping windows; `start`: the column with the start of a pane or of a block.

    A window partly outside of the calendar has NULL for its start or end, and the column BEYOND identifies it. Such
    windows are separate rows, so that the others are found by index.
    """
    types, bits = dict(panes.columns), tuple(seen(window))
    outputs = [Output(windows.keys[0], Field(HOP, windows.keys, TIMESTAMP))]
    outputs += [Output(name, Field(PANE, (name,), types[name])) for name in keys if name != start]
    words = tuple(name for bit in bits for name, part in parts if part == bit)
    merging = [(name, part) for name, part in parts if part not in bits]
    merged_ = _merged(outputs, merging, Hopped(panes, windows, start, window, words), PANE)
    listed, rest = merged_.outputs[0].expression, merged_.outputs[1:]
    readable, unknown = _readable(listed, hops_of(window)), Constant(None, TIMESTAMP)
    shown, others = (
        replace(
            merged_, outputs=(Output(windows.keys[0], bound), *rest, Output(BEYOND, other)), where=both(held, where)
        )
        for bound, other, held in ((listed, unknown, readable), (unknown, listed, Call("not", (readable,), BOOLEAN)))
    )
    return Combined("UNION ALL", shown, others, shown.columns)


def _readable(listed: Expr, window: Hops) -> Expr:
    """The condition that the start or end by which a window is listed is within the calendar."""

    def compared(sign: str, time: str) -> Expr:
        return Call(sign, (listed, Constant(time, TIMESTAMP)), BOOLEAN)

    if not window.by_end:
        return compared(">=", FIRST_TIME)
    first = datetime.fromisoformat(FIRST_TIME) + timedelta(microseconds=window.size)
    return Call("and", (compared(">=", first.isoformat(" ")), compared("<=", LAST_TIME)), BOOLEAN)


def sessions(panes: Cells, keys: Sequence[str], within: Sequence[str], session: Call, parts: Parts) -> Select:
    """Merges panes to sessions; `within`: the keys whose groups have separate sessions, a part of all keys."""
    types = dict(panes.columns)
    first, last = (next(name for name, part in parts if part == end) for end in ends(session))
    gap = session.arguments[1]
    length = int(gap.value or 0) if isinstance(gap, Constant) else 0
    grouped = [Output(name, Field(PANE, (name,), types[name])) for name in keys]
    grouped.append(Output(SESSION_START, Field(PANE, (SESSION_START,), TIMESTAMP)))
    merged_ = _merged(grouped, parts, Sessions(panes, tuple(within), first, last, length), PANE)
    until = Aggregate("max", (Field(PANE, (last,), TIMESTAMP),), None, False, TIMESTAMP)
    end = Output(SESSION_END, Call("window_end", (until, Constant(str(length), BIGINT)), TIMESTAMP))
    return replace(merged_, outputs=(*merged_.outputs, end))


def _merged(keys: Sequence[Output], parts: Parts, relation: Relation, alias: str) -> Select:
    columns: dict[Part, Expr] = {part: Field(alias, (name,), part.type) for name, part in parts}
    outputs = (Output(name, merged(part, columns)) for name, part in parts)
    return Select((*keys, *outputs), relation, group=tuple(o.expression for o in keys))


Parts = Sequence[tuple[str, Part]]
"""Columns of cells with their partials."""
