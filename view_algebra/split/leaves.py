"""Leaves: the cell tables of blocks over a source, and the names of their columns.

Blocks with cells of the same records share a leaf. A block is one SELECT over one stream. With aggregates it keeps a
cell per group, without aggregates a cell per record.

A column is named by its content, so an author may rename an output without changing cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal as Choice

from view_algebra.compiled import ONLY, PLAIN, Cost, source_name
from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import RECORD_KEYS, TypedPartial, partials_of
from view_algebra.language.expressions import (
    TRUE,
    Aggregate,
    Call,
    Case,
    Expr,
    Field,
    Generator,
    Retained,
    Select,
    Stream,
    conjuncts,
)
from view_algebra.language.time_windows import (
    BEGINS,
    BEYOND,
    HOP_END,
    SESSION_END,
    SESSION_START,
    Hops,
    assembled_window,
    block_of,
    cells_per_window,
    ends,
    hops,
    is_session,
    pane,
    seen,
)
from view_algebra.language.types import BIGINT, INT, SYSTEM_COLUMNS
from view_algebra.language.walks import above_group, decided, is_asked, kept_by, walk
from view_algebra.refusals import Wrong
from view_algebra.split.distinct import most_values
from view_algebra.split.joins import MOST_KEYS


class Names:
    """The names in use, including those of the columns that every cell table has."""

    def __init__(self) -> None:
        self._taken = {"touched", ONLY, SESSION_START, SESSION_END, BEGINS, BEYOND, *SYSTEM_COLUMNS}

    def give(self, wanted: str) -> str:
        """Reserves the wanted name, with a number if it is in use, and returns it."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def slug(expression: Expr) -> str:
    """A readable name for an expression.

    >>> from view_algebra.language.expressions import Constant, Field
    >>> from view_algebra.language.types import STRING
    >>> slug(Call("date_trunc", (Constant("hour", STRING), Field("", ("ts",), STRING)), STRING))
    'date_trunc_hour_ts'
    >>> slug(Field("", ("window_end",), STRING))
    'column_window_end'
    """
    if isinstance(expression, Call) and expression.function in ("window_start", "pane_start", "window_end", HOP_END):
        return "window_end" if expression.function == HOP_END else expression.function
    if isinstance(expression, Call) and expression.function == "cast":
        return slug(expression.arguments[0])
    if isinstance(expression, Case) and len(expression.branches) == 1 and expression.otherwise is None:
        when, then = expression.branches[0]
        return _cut(f"{slug(then)}_{slug(when)}")
    words = re.sub(r"[^a-z0-9]+", "_", spark(expression).lower()).strip("_")
    if words == "window_end":  # must differ from the end of a hopping window
        return "column_window_end"
    return _cut(words) or "value"


def _cut(name: str) -> str:
    name = name[:40].strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def partial_name(partial: TypedPartial) -> str:
    """A readable name for a partial: `count_city`, `sum_amount`."""
    if partial.counts:
        names = [slug(e) for e in _conditions(partial.input)]
        return _cut("_".join(["count", *names]))
    if isinstance(partial.input, Call) and partial.input.function == "pane_bits":
        return partial.name
    return _cut(f"{partial.name}_{slug(partial.about or partial.input)}")


def _conditions(expression: Expr) -> Iterator[Expr]:
    """The conditions of a count, with `x` in place of `x IS NOT NULL`."""
    for condition in conjuncts(expression):
        if isinstance(condition, Call) and condition.function == "is not null":
            yield condition.arguments[0]
        elif condition != TRUE:
            yield condition


@dataclass(frozen=True)
class Kept:
    """A column of cells other than a key, with its expression. `partial` is None for a column of a row view."""

    name: str
    expression: Expr
    partial: TypedPartial | None


@dataclass(frozen=True)
class Leaf:
    """A cell table in the making: its records of one stream, its keys and its columns.

    retained: the column by which old cells leave, and the microseconds by which they leave later than others
    """

    source: str
    generators: tuple[Generator, ...]
    kind: Choice["aggregate", "row"]
    where: Expr | None
    keys: tuple[tuple[str, Expr], ...]
    kept: tuple[Kept, ...]
    cost: Cost = PLAIN
    retained: tuple[str, int] | None = None

    @property
    def hops(self) -> Hops | None:
        """The hopping windows that this table lists if they hold a record, or None for any other table."""
        return hops(self.keys[0][1]) if self.keys else None


Identity = tuple[Stream, Choice["aggregate", "row"], Expr | None, tuple[Expr, ...]]
"""Blocks with the same stream, kind, WHERE and keys share a table of cells."""


def is_aggregated(block: Select) -> bool:
    """True if a block keeps a cell per group, not one per record."""
    return block.group is not None


def cell_identity(block: Select) -> Identity:
    """The identity of the cell table that a block over a stream reads."""
    assert isinstance(block.relation, Stream)
    where = block.where
    if is_aggregated(block):
        keys = kept_by(block)
        asked = next((key for key in keys if key.type.nested and key not in (block.group or ())), None)
        if asked is not None:
            what = f"a subquery next to groups does not take a value of type {asked.type}"
            raise Wrong(asked.place or block.place, what, "Write the subquery in a view of rows, and group that view.")
        window = assembled_window(keys)
        if window is not None:  # panes are looked up by their window, sessions by their group
            others, kept = tuple(key for key in keys if key != window), pane_key(window, block)
            keys = (*others, kept) if is_session(window) else (kept, *others)
        return block.relation, "aggregate", where, keys
    return block.relation, "row", where, ()


def _only_groups(block: Select) -> bool:
    """True if a block only needs the existence of its groups."""
    return not any(isinstance(e, Aggregate) for x in above_group(block) for e in walk(x))


def pane_key(window: Call, block: Select) -> Expr:
    """The key of a window in cells: its panes, or blocks of panes if the block only needs the groups."""
    return block_of(window) if hops(window) and _only_groups(block) else pane(window)


def hopping_identity(block: Select) -> Identity | None:
    """The identity of the table that lists a block's hopping windows, or None."""
    window = assembled_window(kept_by(block))
    if window is None or hops(window) is None:
        return None
    stream, kind, where, _ = cell_identity(block)
    return stream, kind, where, (window,)


def kept_values(block: Select) -> Iterator[Expr | TypedPartial]:
    """The partials of a block's aggregates, or the values that it keeps of every record."""
    window = assembled_window(kept_by(block))
    if window is not None and is_session(window):
        yield from ends(window)
    elif window is not None and _only_groups(block):
        yield from seen(window)
    if block.undecided is not None and block.group == ():  # one row needs at least one partial to merge
        yield from partials_of(Aggregate("count", (), None, False, BIGINT))
    for expression in above_group(block):
        if is_aggregated(block):
            for part in walk(expression):
                if isinstance(part, Aggregate):
                    yield from partials_of(part)
        else:
            yield from decided(expression)
    if not is_aggregated(block) and block.undecided is not None:
        yield from decided(block.undecided)


def shared_leaf(identity: Identity, kept: Sequence[Expr | TypedPartial]) -> Leaf:
    """The cell table of several blocks, which keeps the columns of all of them."""
    stream, kind, where, group = identity
    if kind == "row":
        leaf = _record_leaf(stream, where, [e for e in kept if not isinstance(e, TypedPartial)])
    else:
        leaf = _group_leaf(stream, where, group, [p for p in kept if isinstance(p, TypedPartial)])
    return leaf if stream.retained is None else replace(leaf, retained=_by_column(leaf, stream.retained))


def _by_column(leaf: Leaf, retained: Retained) -> tuple[str, int]:
    columns = {e: name for name, e in leaf.keys} | {k.expression: k.name for k in leaf.kept if k.partial is None}
    if retained.time not in columns:
        way_out = "Show and name it as it is, for example o.ts or date_trunc('day', o.ts), or leave retain out."
        raise Wrong(retained.time.place, "retain needs a time that is a column of the cells", way_out)
    return columns[retained.time], retained.longer


def _record_leaf(stream: Stream, where: Expr | None, kept: Sequence[Expr]) -> Leaf:
    names, generators = Names(), tuple(map(_with_position, stream.generators))
    keys: tuple[tuple[str, Expr], ...] = tuple(
        (names.give(name), Field("", (name,), type_)) for name, type_ in RECORD_KEYS
    )
    keys += tuple((names.give(slug(p)), p) for p in (Field("", (g.columns[0][0],), INT) for g in generators))
    values = [e for e in kept if e not in dict(keys).values()]
    values.sort(key=spark)
    columns = tuple(Kept(names.give(slug(e)), e, None) for e in values)
    return Leaf(source_name(stream.source), generators, "row", where, keys, columns)


def _group_leaf(stream: Stream, where: Expr | None, group: tuple[Expr, ...], kept: Sequence[TypedPartial]) -> Leaf:
    if len(group) > MOST_KEYS:
        raise Wrong(
            group[MOST_KEYS].place,
            f"a view can group by at most {MOST_KEYS} columns, which is what Postgres can index",
            "Leave out the columns that others decide, and take them with max(…).",
        )
    for key in group:
        if key.type.nested:
            raise Wrong(key.place, f"DISTINCT does not take values of type {key.type}", "Take to_json(…) of them.")
        if key.type.name == "BINARY":
            raise Wrong(key.place, "a key cannot be BINARY", "Take hex(…) of it.")
    names = Names()
    keys = tuple((names.give(slug(e)), e) for e in group)
    columns = tuple(Kept(names.give(partial_name(p)), p.input, p) for p in sorted(kept, key=_sort_key))
    return Leaf(source_name(stream.source), stream.generators, "aggregate", where, keys, columns)


def priced(leaf: Leaf, readers: Sequence[Select]) -> Leaf:
    """A leaf with its cost. A key that a block groups by is not a sub-key."""
    sub_keys = [(n, e) for n, e in leaf.keys if all(e in _sub_keys(block) for block in readers)]
    sizes = [n for _, e in sub_keys if (n := most_values(e)) is not None]
    windows = [window for block in readers if (window := assembled_window(kept_by(block))) is not None]
    panes = max((cells_per_window(w, leaf.keys[0][1]) for w in windows), default=1)
    at_most = math.prod(sizes) if sizes and len(sizes) == len(sub_keys) else None
    return replace(leaf, cost=Cost(tuple(n for n, _ in sub_keys), at_most, panes))


def _sub_keys(block: Select) -> set[Expr]:
    asked = [*filter(is_asked, block.group or ()), *([] if block.undecided is None else [block.undecided])]
    undecided = (part for expression in asked for part in decided(expression))
    return {*block.keeping.sub_keys, *undecided} - set(block.group or ()).difference(block.keeping.sub_keys)


def _sort_key(partial: TypedPartial) -> tuple[str, ...]:
    """The sort key of a partial among the columns: its text, because versions depend on their order."""
    return (
        partial.name,
        *(spark(e) for e in (partial.input, *partial.order, partial.other, partial.when) if e is not None),
    )


def _with_position(generator: Generator) -> Generator:
    """The generator with positions: in a row view, the record and the element's position identify a row."""
    if generator.positions:
        return generator
    name = "position " + generator.columns[0][0].split(" ")[-1]
    return replace(generator, columns=((name, INT), *generator.columns), positions=True)
