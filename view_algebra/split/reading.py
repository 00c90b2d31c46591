"""Rewrites a block to read its aggregates and columns from its cell table, and windows from panes.

A pane holds each record once. A hopping window consists of tumbling panes of gcd(size, slide):
`window(ts, '1 hour', '5 seconds')` keeps a cell per 5 seconds, not 720 per record. A separate cell table lists the
windows, so that a reader finds a window and its panes by index.

For a value that is either present or not, as in count(DISTINCT), a cell per pane would be wasteful. It gets one cell
per block of as many panes as a window has, with a bit for each pane. A window is then read from two blocks.

A session consists of panes as long as its gap: two records of one pane are never further apart, so a pane is never in
two sessions. A pane keeps the times of its first and last record. Panes whose records are at most the gap apart
form one session, even if a late record closes a gap between two. If every record has its own gap, a pane is an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from view_algebra.language.aggregates import TypedPartial, final_of, merged, partials_of
from view_algebra.language.expressions import (
    NULL,
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Generator,
    Hopped,
    Nested,
    Output,
    Query,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
    Subquery,
    both,
    member,
    ungrouped,
)
from view_algebra.language.time_windows import (
    BEYOND,
    CELL,
    HOP,
    HOP_END,
    PANE,
    SESSION_END,
    SESSION_START,
    Hops,
    assembled_window,
    beyond,
    bounds,
    by_bounds,
    ends,
    hops,
    hops_of,
    is_session,
    seen,
)
from view_algebra.language.types import BIGINT, BOOLEAN, FIRST_TIME, LAST_TIME, TIMESTAMP, WINDOW
from view_algebra.language.walks import (
    above_group,
    columns_under,
    is_asked,
    kept_by,
    nested_in,
    over_inputs,
    relations_in,
    rewrite,
    rewritten,
    rewritten_in,
    walk,
    with_nested,
)
from view_algebra.refusals import Wrong
from view_algebra.split.leaves import Leaf, is_aggregated, pane_key


def by_end(block: Select) -> Select:
    """Groups by the ends of hopping windows if the block only shows these, so that readers find them by index."""
    window = assembled_window(kept_by(block))
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
    bound_columns: dict[tuple[str, str], Output] = {}

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.of != WINDOW or len(part.path) != 2 or part.outer:
            return None
        window_, bound = part.path
        below = _column_expression(relation, part.relation, window_)
        if below is None or Field(part.relation, (window_,), WINDOW) in whole:
            return None
        name = f"{bound} of {window_}"
        bound_columns[part.relation, name] = Output(name, member(below, bound, part.place))
        return replace(part, path=(name,), of=None)

    query = rewritten(replace(query, order=by_bounds(query.order)), change)

    def more(nested: Nested) -> Nested:
        below = nested.query
        if isinstance(below, Select):
            bounds_ = tuple(output for (alias, _), output in bound_columns.items() if alias == nested.alias)
            below = replace(below, outputs=(*below.outputs, *bounds_))
        return replace(nested, query=with_bounds(below))

    return with_nested(query, more)


def _column_expression(relation: Relation | None, alias: str, column: str) -> Expr | None:
    """The expression of a column of a subquery in FROM, or None if the subquery is not a SELECT."""
    below = next((nested.query for nested in nested_in(relation) if nested.alias == alias), None)
    outputs = below.outputs if isinstance(below, Select) else ()
    return next((o.expression for o in outputs if o.name.lower() == column.lower()), None)


def hopped(
    panes: Cells,
    windows: Cells,
    keys: Sequence[str],
    start: str,
    window: Call,
    partials: PartialColumns,
    where: Expr | None,
) -> Query:
    """Merges panes to hopping windows. `start`: the column with the start of a pane or of a block.

    A window partly outside of the calendar has NULL for its start or end, and the column BEYOND identifies it. Such
    windows are separate rows, so that the others are found by index.
    """
    types, bits = dict(panes.columns), tuple(seen(window))
    outputs = [Output(windows.keys[0], Field(HOP, windows.keys, TIMESTAMP))]
    outputs += [Output(name, Field(PANE, (name,), types[name])) for name in keys if name != start]
    words = tuple(name for bit in bits for name, partial in partials if partial == bit)
    merging = [(name, partial) for name, partial in partials if partial not in bits]
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


def sessions(
    panes: Cells, keys: Sequence[str], within: Sequence[str], session: Call, partials: PartialColumns
) -> Select:
    """Merges panes to sessions. `within`: the keys whose groups have separate sessions, a part of all keys."""
    types = dict(panes.columns)
    first, last = (next(name for name, partial in partials if partial == end) for end in ends(session))
    gap = session.arguments[1]
    length = int(gap.value or 0) if isinstance(gap, Constant) else 0
    grouped = [Output(name, Field(PANE, (name,), types[name])) for name in keys]
    grouped.append(Output(SESSION_START, Field(PANE, (SESSION_START,), TIMESTAMP)))
    merged_ = _merged(grouped, partials, Sessions(panes, tuple(within), first, last, length), PANE)
    until = Aggregate("max", (Field(PANE, (last,), TIMESTAMP),), None, False, TIMESTAMP)
    end = Output(SESSION_END, Call("window_end", (until, Constant(str(length), BIGINT)), TIMESTAMP))
    return replace(merged_, outputs=(*merged_.outputs, end))


def _merged(keys: Sequence[Output], partials: PartialColumns, relation: Relation, alias: str) -> Select:
    columns: dict[TypedPartial, Expr] = {partial: Field(alias, (name,), partial.type) for name, partial in partials}
    outputs = (Output(name, merged(partial, columns)) for name, partial in partials)
    return Select((*keys, *outputs), relation, group=tuple(o.expression for o in keys))


PartialColumns = Sequence[tuple[str, TypedPartial]]
"""Columns of cells with their partials."""


MOST_RECORDS = 2**48
"""Upper bound of any count of records: 281 million million."""


def cell_relation(leaf: Leaf, table: int) -> Cells:
    """A leaf's cell table as a relation."""
    columns = tuple((name, e.type) for name, e in leaf.keys) + tuple(
        (k.name, k.partial.type if k.partial else k.expression.type) for k in leaf.kept
    )
    never_empty = leaf.kind == "aggregate" and not leaf.keys
    return Cells(table, CELL, columns, tuple(name for name, _ in leaf.keys), never_empty)


def over_cells(block: Select, leaf: Leaf, cells: Cells, windows: Cells | None) -> Select:
    """The block over the cells of its leaf. `windows`: the table that lists its hopping windows."""
    relation, window = _assembled(block, leaf, cells, windows)
    several = block.undecided is not None or block.keeping.join is not None
    # keys that only undecided conditions, joins or subqueries in GROUP BY name are merged away
    merged_away = is_aggregated(block) and (several or any(map(is_asked, block.group or ())))
    named = [(name, e) for name, e in leaf.keys if not merged_away or e in (block.group or ())]
    keys: dict[Expr, Expr] = {e: Field(CELL, (name,), e.type) for name, e in named} | window
    counting = _Counting(
        at_most=MOST_RECORDS if block.keeping.join is None else None,  # a join may repeat a cell any number of times
        zero_without_cells=cells.never_empty or (several and block.group == ()),
    )
    change = _read_from_cells(leaf, keys, counting)
    asked = block.having if is_aggregated(block) else block.undecided
    return Select(
        outputs=tuple(Output(o.name, rewrite(o.expression, change)) for o in block.outputs),
        relation=relation,
        where=None if asked is None else rewrite(asked, change),
        distinct=block.distinct,
        order=tuple(replace(o, expression=rewrite(o.expression, change)) for o in block.order),
        limit=block.limit,
        offset=block.offset,
        place=block.place,
        limit_place=block.limit_place,
    )


@dataclass(frozen=True)
class _Counting:
    """The reading of counts of records from merged cells.

    at_most: the upper bound of a count, or None
    zero_without_cells: the count is 0 if the only group has no cell yet
    """

    at_most: int | None
    zero_without_cells: bool

    def read(self, count: Field) -> Expr:
        """The count in a column of merged cells."""
        count = replace(count, bound=self.at_most)
        return Call("coalesce", (count, Constant("0", count.type)), count.type) if self.zero_without_cells else count


def _read_from_cells(leaf: Leaf, keys: Mapping[Expr, Expr], counting: _Counting) -> Callable[[Expr], Expr | None]:
    """Returns the rewriting of expressions to columns of cells."""
    merged: dict[TypedPartial | Expr, Field] = {
        (k.partial or k.expression): Field(CELL, (k.name,), k.partial.type if k.partial else k.expression.type)
        for k in leaf.kept
    }

    def change(expression: Expr) -> Expr | None:
        if expression in keys:
            return replace(keys[expression], place=expression.place)
        if leaf.kind == "row":
            return replace(merged[expression], place=expression.place) if expression in merged else None
        if isinstance(expression, Aggregate):
            columns = ((partial, merged[partial]) for partial in partials_of(expression))
            return final_of(
                expression, {p.name: counting.read(column) if p.counts else column for p, column in columns}
            )
        if isinstance(expression, Field) and expression.relation == "" and not expression.outer:
            raise ungrouped(expression)
        return None

    return change


def _assembled(
    block: Select, leaf: Leaf, cells: Cells, windows: Cells | None
) -> tuple[Cells | Nested, dict[Expr, Expr]]:
    """The cells of a block's groups, and the columns that replace its window."""
    group, window = tuple(dict.fromkeys(block.group or ())), assembled_window(kept_by(block))
    undecided = block.undecided is not None or block.keeping.join is not None
    if not is_aggregated(block) or (window is None and not undecided and group == kept_by(block)):
        return cells, {}
    names = {e: name for name, e in leaf.keys}
    partials = [(k.name, k.partial) for k in leaf.kept if k.partial is not None]
    if window is None:
        return _in_groups(block, group, cells, names, partials)
    _refuse_in_windows(block, group, window)
    start = names[pane_key(window, block)]
    keys = [start if key == window else names[key] for key in group]
    if windows is not None:
        held = None if block.undecided is None else _on_cells(block.undecided, names, PANE)
        key: dict[Expr, Expr] = {
            window: Field(CELL, windows.keys, TIMESTAMP),
            beyond(window): Field(CELL, (BEYOND,), TIMESTAMP),
        }
        return Nested(hopped(cells, windows, keys, start, window, partials, held), CELL), key
    others, of = [name for name in keys if name != start], block.keeping.sessions_of
    within = others if of is None else [names[key] for key in of if key != window]
    put = Nested(sessions(cells, others, within, window, partials), CELL)
    return put, {bound: Field(CELL, (bound.function,), TIMESTAMP) for bound in bounds(window)}


def _in_groups(
    block: Select,
    group: Sequence[Expr],
    cells: Cells,
    names: Mapping[Expr, str],
    partials: Sequence[tuple[str, TypedPartial]],
) -> tuple[Nested, dict[Expr, Expr]]:
    """Cells of finer keys merged to groups, and the columns that replace subqueries in GROUP BY.

    If the cells are joined, a cell is merged once for each row that it joins.
    """
    join = block.keeping.join
    asked = {key: f"asked_{n}" for n, key in enumerate(key for key in group if key not in names)}
    over = [Output(asked.get(key) or names[key], _on_cells(key, names, CELL)) for key in group]
    condition = block.undecided if join is None else join.where
    where = None if condition is None else _on_cells(condition, names, CELL)
    relation = cells if join is None else _joined_cells(join.relation, cells, names)
    answers: dict[Expr, Expr] = {key: Field(CELL, (name,), key.type) for key, name in asked.items()}
    return Nested(replace(_merged(over, partials, relation, CELL), where=where), CELL), answers


def _refuse_in_windows(block: Select, group: Sequence[Expr], window: Call) -> None:
    """Raises `Wrong` for subqueries and conditions that cells of windows cannot answer."""
    asked = next(filter(is_asked, group), None)
    if asked is not None:
        way_out = "Group by the columns that it names in a subquery in FROM, and write it in the outer query."
        raise Wrong(asked.place or block.place, "GROUP BY has a subquery next to a window", way_out)
    if window not in group:
        way_out = "Put the window before GROUPING SETS, ROLLUP or CUBE."
        raise Wrong(window.place, "a grouping lacks its window", way_out)
    if block.undecided is None:
        return
    if is_session(window):
        way_out = "Put conditions on the records alone there, or filter the sessions in a view over this one."
        raise Wrong(block.place, "WHERE of sessions has a subquery, or the clock", way_out)
    for part in walk(block.undecided):
        if hops(part) or (isinstance(part, Subquery) and part.correlated):
            what = "a subquery in WHERE cannot be correlated with hopping windows, or the records in them"
            raise Wrong(part.place or block.place, what, "Write it as k IN (SELECT k …).")


def _joined_cells(relation: Relation, cells: Cells, names: Mapping[Expr, str]) -> Relation:
    """The relations that a block's cells are joined with, with the cells in place of their source."""
    for joined in relations_in(relation):
        named = joined.generators if isinstance(joined, Exploded) else (joined,)
        for other in named:
            if isinstance(other, (Read, Constants, Nested, Generator)) and other.alias == CELL:
                what = "a relation is named cell, like the cells that it is joined with"
                raise Wrong(other.place, what, "Give it another alias: … AS c.")

    def with_cells(below: Relation) -> Relation:
        return cells if isinstance(below, Stream) else over_inputs(below, with_cells)

    return with_cells(rewritten_in(relation, columns_under(names, CELL)))


def _on_cells(expression: Expr, names: Mapping[Expr, str], alias: str) -> Expr:
    """An expression over records, rewritten over the columns of their cells."""
    return rewrite(expression, columns_under(names, alias))
