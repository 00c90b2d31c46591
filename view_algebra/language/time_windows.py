"""Tumbling, hopping and session windows as group keys, and the panes that their cells are kept by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from view_algebra.language.aggregates import TypedPartial
from view_algebra.language.expressions import Call, Constant, Expr, Order, member, whole_number
from view_algebra.language.types import BIGINT, FIRST_MICROSECOND, TIMESTAMP, WINDOW
from view_algebra.refusals import Wrong

CELL, PANE, HOP, BLOCK = "cell", "pane", "hop", "block"
"""Aliases of cells, of panes, of the windows that hop over them, and of the blocks of panes that contain a window."""

HOP_END = "hop_end"
"""The group key of hopping windows that are listed by their ends."""

BEYOND = "beyond"
"""The column that identifies hopping windows without a visible bound, or NULL for other windows."""

SESSION_START, SESSION_END, BEGINS = "session_start", "session_end", "begins"
"""Columns that panes get when they are assembled to sessions."""


@dataclass(frozen=True)
class Hops:
    """Windows `size` long, one every `slide`, one of them `offset` after the epoch. All are in microseconds.

    by_end: True if they are listed by their ends
    """

    size: int
    slide: int
    offset: int
    by_end: bool

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return math.gcd(self.size, self.slide)

    @property
    def panes(self) -> int:
        """The number of panes in a block."""
        return min(self.size // self.pane, BLOCK_PANES)

    @property
    def words(self) -> int:
        """The number of columns for the bits of a block."""
        return -(-self.panes // WORD)


WORD = 64
"""Bits of a BIGINT."""

BLOCK_PANES = 16 * WORD
"""Most panes of a block."""


def hops(key: Expr) -> Hops | None:
    """The hopping windows whose start or end is the group key, or None for any other key."""
    if isinstance(key, Call) and key.function in ("window_start", HOP_END) and len(key.arguments) > 3:
        size, offset, slide = (whole_number(a) for a in key.arguments[1:])
        return Hops(size, slide, offset, key.function == HOP_END)
    return None


def beyond(window: Expr) -> Call:
    """The group key of a hopping window in addition to its visible bound."""
    return Call("hop_beyond", (window,), TIMESTAMP, place=window.place)


def is_session(key: Expr) -> bool:
    """True if the group key is a session."""
    return isinstance(key, Call) and key.function == "session"


def bounds(session: Expr) -> tuple[Call, Call]:
    """The start and the end of a session that is a group key."""
    start, end = (Call(name, (session,), TIMESTAMP, place=session.place) for name in (SESSION_START, SESSION_END))
    return start, end


def pane(key: Expr) -> Expr:
    """The key in cells for a group key: the start of a pane for an assembled window, any other key unchanged."""
    window = hops(key)
    if window is not None:
        assert isinstance(key, Call)
        return _tumbling(key, window.pane, window.offset)
    if isinstance(key, Call) and key.function == "session":
        time, gap = key.arguments
        return _tumbling(key, int(gap.value or 0), 0) if isinstance(gap, Constant) else time
    return key


def block_of(key: Call) -> Expr:
    """The key in cells for a hopping window if only the groups matter: the start of a block of panes."""
    window = hops_of(key)
    return _tumbling(key, window.pane * window.panes, window.offset)


def cells_per_window(key: Call, kept: Expr) -> int:
    """Most cells, by panes or blocks of panes, from which a window is read, or 1 for a session."""
    window = hops(key)
    if window is None:
        return 1
    return window.size // window.pane if kept == pane(key) else -(-window.size // (window.pane * window.panes)) + 1


def seen(key: Call) -> Iterator[TypedPartial]:
    """The partials with a bit for each pane of a block in which the group has a record."""
    window = hops_of(key)
    numbers = (window.pane, window.offset % (window.pane * window.panes), window.panes)
    for word in range(window.words):
        literals = tuple(Constant(str(number), BIGINT) for number in (*numbers, word))
        bits = Call("pane_bits", (key.arguments[0], *literals), BIGINT)
        yield TypedPartial(f"seen_{word:02}", "bit_or", bits, BIGINT)


def hops_of(key: Call) -> Hops:
    """The hopping windows of a group key, which must have some."""
    window = hops(key)
    assert window is not None
    return window


def assembled_window(group: Sequence[Expr]) -> Call | None:
    """The group key that is a hopping window or a session, or None."""
    windows = [key for key in group if pane(key) != key]
    if windows and (len(windows) > 1 or pane(windows[0]) in group):
        raise Wrong(windows[0].place, "GROUP BY has two windows", "Group by one of them.")
    assert not windows or isinstance(windows[0], Call)
    return windows[0] if windows else None  # type: ignore[return-value]


def ends(session: Call) -> tuple[TypedPartial, TypedPartial]:
    """The further partials of a session's pane: its first record's time, and the end set by its last record."""
    time, gap = session.arguments
    until = time if isinstance(gap, Constant) else Call("session_until", (time, gap), TIMESTAMP)
    return TypedPartial("min", "min", time, TIMESTAMP), TypedPartial("max", "max", until, TIMESTAMP)


def by_bounds(orders: Sequence[Order]) -> tuple[Order, ...]:
    """Keys of ORDER BY, with a window's start and end in place of the window, because jsonb has another order."""

    def keys(key: Expr) -> Sequence[Expr]:
        return [member(key, name, None) for name, _ in WINDOW.fields] if key.type == WINDOW else [key]

    return tuple(replace(order, expression=key) for order in orders for key in keys(order.expression))


def _tumbling(key: Call, size: int, offset: int) -> Call:
    """The start of a pane, but not before the calendar.

    >>> from view_algebra.language.expressions import Field
    >>> week = Call("window_start", (Field("s", ("ts",), TIMESTAMP),), TIMESTAMP)
    >>> [_tumbling(week, days * 86_400_000_000, 0).function for days in (1, 7)]
    ['window_start', 'pane_start']
    """
    lengths = (Constant(str(size), BIGINT), Constant(str(offset % size), BIGINT))
    straddles = (FIRST_MICROSECOND - offset) % size
    return Call("pane_start" if straddles else "window_start", (key.arguments[0], *lengths), TIMESTAMP, place=key.place)


def window_key(key: Expr) -> Expr:
    """The group key of a window: its start, or a session itself, whose start no record knows. Other keys stay the same.

    >>> from view_algebra.language.expressions import Field
    >>> from view_algebra.language.types import TIMESTAMP, WINDOW
    >>> start, end = (Field("", (name,), TIMESTAMP) for name in ("s", "e"))
    >>> window_key(Call("window", (start, end), WINDOW)) == start, window_key(end) == end
    (True, True)
    """
    if not (isinstance(key, Call) and key.function == "window"):
        return key
    start = key.arguments[0]
    of_session = isinstance(start, Call) and start.function == "session_start"
    return replace(start.arguments[0] if of_session else start, place=key.place)  # type: ignore[union-attr]


TIME_WINDOWS = ("window", "session_window")
"""Functions that put records into windows, with the names of the windows in the block that groups by one."""
