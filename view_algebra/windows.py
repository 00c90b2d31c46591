"""Windows that are put together when they are read, of panes that hold each record once.

A hopping window is made of tumbling panes, gcd(size, slide) long: `window(ts, '1 hour', '5 seconds')` keeps a cell per
5 seconds, not 720 for each record. Which windows there are is a table of cells of its own, so that a reader who wants
one finds it, and its panes, by index.

Of a value that is only to be there or not, as those of count(DISTINCT), a cell per pane would say little: it keeps one
for a block of panes, as many as a window has, with a bit for each that it came in. A window is then read of two blocks.

A session is made of panes as long as its gap: two records of one pane are never further apart than that, so a pane is
never in two sessions. A pane keeps the times of its first and its last record; panes whose records are no further apart
than the gap are one session, also where a late record comes between two. Where every record says how long the gap after
it is, a pane is an instant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from view_algebra.aggregates import Part, merged
from view_algebra.expressions import (
    NULL,
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Exploded,
    Expr,
    Field,
    Hopped,
    Joined,
    Nested,
    Order,
    Output,
    Query,
    Relation,
    Select,
    Sessions,
    above_group,
    rewrite,
    rewritten,
    walk,
)
from view_algebra.names import member
from view_algebra.refusals import Wrong
from view_algebra.types import BIGINT, TIMESTAMP, WINDOW

PANE, HOP, BLOCK = "pane", "hop", "block"
"""Aliases of the panes, of the windows that hop over them, and of the blocks of panes that a window lies in."""

HOP_END = "hop_end"
"""The group key of hopping windows that are listed by their ends."""

SESSION_START, SESSION_END, BEGINS = "session_start", "session_end", "begins"
"""Columns that panes get when they are put together to sessions."""


Parts = Sequence[tuple[str, Part]]
"""Columns of cells, with what they keep."""


@dataclass(frozen=True)
class Hops:
    """Windows `size` long, one every `slide`, one of them `offset` after the epoch; all in microseconds.

    by_end: are they listed by when they end?
    """

    size: int
    slide: int
    offset: int
    by_end: bool

    @property
    def pane(self) -> int:
        """How long a pane is."""
        return math.gcd(self.size, self.slide)

    @property
    def panes(self) -> int:
        """How many panes a block has."""
        return min(self.size // self.pane, BLOCK_PANES)

    @property
    def words(self) -> int:
        """How many columns keep the bits of a block."""
        return -(-self.panes // WORD)


WORD = 64
"""Bits of a BIGINT."""

BLOCK_PANES = 16 * WORD
"""Panes of a block, at most."""


def hops(key: Expr) -> Hops | None:
    """The hopping windows that a group key is the start, or the end, of; None for any other key."""
    if isinstance(key, Call) and key.function in ("window_start", HOP_END) and len(key.arguments) > 3:
        size, offset, slide = (int(getattr(a, "value", 0)) for a in key.arguments[1:])
        return Hops(size, slide, offset, key.function == HOP_END)
    return None


def by_end(block: Select) -> Select:
    """A block whose hopping windows are shown by their ends alone groups by these: what is shown is found by index."""
    window = put_together(block.kept_by)
    if window is None or hops(window) is None:
        return block
    end, shown = Call("window_end", (window, window.arguments[1]), TIMESTAMP), above_group(block)
    without = [rewrite(e, lambda part: NULL if part == end else None) for e in shown]
    if shown == without or any(window in walk(e) for e in without):
        return block
    key = replace(window, function=HOP_END)
    return rewritten(block, lambda part: replace(key, place=part.place) if part in (end, window) else None)


def is_session(key: Expr) -> bool:
    """Is a group key a session?"""
    return isinstance(key, Call) and key.function == "session"


def bounds(session: Expr) -> tuple[Call, Call]:
    """The start and the end of a session that is a group key."""
    start, end = (Call(name, (session,), TIMESTAMP, place=session.place) for name in (SESSION_START, SESSION_END))
    return start, end


def pane(key: Expr) -> Expr:
    """What is kept of a group key: for a window that is put together, the start of a pane; any other as it is."""
    window = hops(key)
    if window is not None:
        assert isinstance(key, Call)
        return _tumbling(key, window.pane, window.offset)
    if isinstance(key, Call) and key.function == "session":
        time, gap = key.arguments
        return _tumbling(key, int(gap.value or 0), 0) if isinstance(gap, Constant) else time
    return key


def block_of(key: Call) -> Expr:
    """What is kept of a hopping window where the groups are all that matters: the start of a block of panes."""
    window = hops_of(key)
    return _tumbling(key, window.pane * window.panes, window.offset)


def cells_per_window(key: Call, kept: Expr) -> int:
    """How many of the cells that are kept by panes, or by blocks of them, a window may be read of; 1 for a session."""
    window = hops(key)
    if window is None:
        return 1
    return window.size // window.pane if kept == pane(key) else -(-window.size // (window.pane * window.panes)) + 1


def seen(key: Call) -> Iterator[Part]:
    """Beside it, in which of the block's panes the group has a record: a bit each."""
    window = hops_of(key)
    numbers = (window.pane, window.offset % (window.pane * window.panes), window.panes)
    for word in range(window.words):
        literals = tuple(Constant(str(number), BIGINT) for number in (*numbers, word))
        bits = Call("pane_bits", (key.arguments[0], *literals), BIGINT)
        yield Part(f"seen_{word:02}", "bit_or", bits, BIGINT)


def hops_of(key: Call) -> Hops:
    """The hopping windows of a group key that is known to be of some."""
    window = hops(key)
    assert window is not None
    return window


def put_together(group: Sequence[Expr]) -> Call | None:
    """The group key that is a hopping window or a session, if one is."""
    found = [key for key in group if pane(key) != key]
    if found and (len(found) > 1 or pane(found[0]) in group):
        raise Wrong(found[0].place, "two windows in one GROUP BY", "Group by one of them.")
    assert not found or isinstance(found[0], Call)
    return found[0] if found else None  # type: ignore[return-value]


def ends(session: Call) -> tuple[Part, Part]:
    """What a pane of a session keeps beside its aggregates: its first record's time, and the end that its last sets."""
    time, gap = session.arguments
    return (
        Part("min", "min", time, TIMESTAMP),
        Part(
            "max",
            "max",
            time if isinstance(gap, Constant) else Call("session_until", (time, gap), TIMESTAMP),
            TIMESTAMP,
        ),
    )


def by_bounds(orders: Sequence[Order]) -> tuple[Order, ...]:
    """Keys of ORDER BY, a window as its start and its end: jsonb has an order of its own."""

    def keys(key: Expr) -> Sequence[Expr]:
        return [member(key, name, None) for name, _ in WINDOW.fields] if key.type == WINDOW else [key]

    return tuple(replace(order, expression=key) for order in orders for key in keys(order.expression))


def with_bounds(query: Query) -> Query:
    """The query, where a bound of a window that a subquery gives is a column of the subquery: it is found by index.

    `SELECT w.start FROM (SELECT window AS w, …)` reads a start, and no start of a value that was made of one.
    """
    if isinstance(query, Combined):
        return replace(query, left=with_bounds(query.left), right=with_bounds(query.right))
    relation, whole = query.relation, set(query.group or ())
    found: dict[tuple[str, str], Output] = {}

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.of != WINDOW or len(part.path) != 2 or part.outer:
            return None
        given, bound = part.path
        below = _given_by(relation, part.relation, given)
        if below is None or Field(part.relation, (given,), WINDOW) in whole:
            return None
        name = f"{bound} of {given}"
        found[part.relation, name] = Output(name, member(below, bound, part.place))
        return replace(part, path=(name,), of=None)

    query = rewritten(replace(query, order=by_bounds(query.order)), change)

    def more(relation: Relation | None) -> Relation | None:
        match relation:
            case Nested(query=Select() as below):
                bounds_ = tuple(output for (alias, _), output in found.items() if alias == relation.alias)
                return replace(relation, query=with_bounds(replace(below, outputs=(*below.outputs, *bounds_))))
            case Nested():
                return replace(relation, query=with_bounds(relation.query))
            case Exploded():
                return replace(relation, relation=more(relation.relation))  # type: ignore[arg-type]
            case Joined():
                return replace(relation, left=more(relation.left), right=more(relation.right))  # type: ignore[arg-type]
        return relation

    return replace(query, relation=more(query.relation))


def _given_by(relation: Relation | None, alias: str, column: str) -> Expr | None:
    """What a column of a subquery in FROM is; None where that is no SELECT."""
    match relation:
        case Nested(query=Select() as query) if relation.alias == alias:
            return next((o.expression for o in query.outputs if o.name.lower() == column.lower()), None)
        case Exploded():
            return _given_by(relation.relation, alias, column)
        case Joined():
            return _given_by(relation.left, alias, column) or _given_by(relation.right, alias, column)
    return None


def coarser(cells: Cells, keys: Sequence[str], parts: Parts, where: Expr | None = None) -> Select:
    """The cells of groups of fewer keys, of those of finer ones."""
    types = dict(cells.columns)
    grouped = [Output(name, Field(cells.alias, (name,), types[name])) for name in keys]
    return replace(_merged(grouped, parts, cells, cells.alias), where=where)


def hopped(
    panes: Cells,
    windows: Cells,
    keys: Sequence[str],
    start: str,
    window: Call,
    parts: Parts,
    where: Expr | None = None,
) -> Select:
    """The cells of hopping windows, of those of their panes; `start` is the column of when these, or a block, begin."""
    types, bits = dict(panes.columns), tuple(seen(window))
    outputs = [Output(windows.keys[0], Field(HOP, windows.keys, TIMESTAMP))]
    outputs += [Output(name, Field(PANE, (name,), types[name])) for name in keys if name != start]
    words = tuple(name for bit in bits for name, part in parts if part == bit)
    merging = [(name, part) for name, part in parts if part not in bits]
    return replace(_merged(outputs, merging, Hopped(panes, windows, start, window, words), PANE), where=where)


def sessions(panes: Cells, keys: Sequence[str], within: Sequence[str], session: Call, parts: Parts) -> Select:
    """The cells of sessions, of those of their panes; a group's sessions are those of `within`, which is some of it."""
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


def _tumbling(key: Call, size: int, offset: int) -> Call:
    lengths = (Constant(str(size), BIGINT), Constant(str(offset % size), BIGINT))
    return Call("window_start", (key.arguments[0], *lengths), TIMESTAMP, place=key.place)
