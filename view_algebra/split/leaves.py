"""Where a view is split: the innermost blocks over sources become tables of cells, everything above reads them.

A block is one SELECT over one stream. With aggregates it keeps a cell per group; without, a cell per record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal as Choice

from view_algebra.compiled import PLAIN, Cost, source_of
from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import RECORD_KEYS, Part, final_of, parts_of
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Case,
    Cells,
    Combined,
    Constant,
    Exploded,
    Expr,
    Field,
    Generator,
    Joined,
    Nested,
    Order,
    Output,
    Query,
    Relation,
    Select,
    Stream,
    Subquery,
    both,
    conjuncts,
)
from view_algebra.language.fields import member
from view_algebra.language.limits import prefix
from view_algebra.language.relations import over_inputs, with_nested
from view_algebra.language.time_windows import (
    BEGINS,
    HOP_END,
    PANE,
    SESSION_END,
    SESSION_START,
    Hops,
    block_of,
    bounds,
    cells_per_window,
    ends,
    hops,
    is_session,
    pane,
    put_together,
    seen,
    window_key,
)
from view_algebra.language.types import BIGINT, INT, SYSTEM_COLUMNS, TIMESTAMP
from view_algebra.language.walks import (
    above_group,
    decided,
    is_asked,
    is_made_of_bytes,
    kept_by,
    rewrite,
    rewritten,
    walk,
)
from view_algebra.refusals import Wrong
from view_algebra.split.distinct import most_values, over_values
from view_algebra.split.filters import by_filters
from view_algebra.split.joins import MOST_KEYS, of_rows
from view_algebra.split.panes import by_end, coarser, hopped, sessions
from view_algebra.typed.names import CELL, neither
from view_algebra.typed.passing import has_windows, is_projection

MOST_RECORDS = 2**48
"""No count of records is greater: 281 million million."""


@dataclass(frozen=True)
class Kept:
    """A column of cells that is no key: its name, and what it keeps. `part` is None for a column of a row view."""

    name: str
    expression: Expr
    part: Part | None


@dataclass(frozen=True)
class Leaf:
    """A table of cells to be: what it keeps of which records of one stream."""

    source: str
    generators: tuple[Generator, ...]
    kind: Choice["aggregate", "row"]
    where: Expr | None
    keys: tuple[tuple[str, Expr], ...]
    kept: tuple[Kept, ...]
    cost: Cost = PLAIN

    @property
    def hops(self) -> Hops | None:
        """The hopping windows that this table lists, each that holds a record; None for any other table."""
        return hops(self.keys[0][1]) if self.keys else None


_Change = Callable[[Expr], Expr | None]
_Block = Callable[[Select], Select]
_Identity = tuple[Stream, Choice["aggregate", "row"], Expr | None, tuple[Expr, ...]]
"""Blocks with the same stream, kind, WHERE and keys share a table of cells."""


def split(query: Query) -> tuple[Query, tuple[Leaf, ...]]:
    """The query with tables of cells in place of its innermost blocks, and what those tables keep."""
    query = _flattened(query)
    wanted: dict[_Identity, list[Expr | Part]] = {}
    readers: dict[_Identity, list[Select]] = {}
    for block in _blocks(query):
        readers.setdefault(_identity(block), []).append(block)
        kept = wanted.setdefault(_identity(block), [])
        kept += dict.fromkeys(k for k in _kept(block) if k not in kept)
        if (hopping := _hopping(block)) is not None:
            wanted.setdefault(hopping, [])
    leaves = {identity: _leaf(identity, kept) for identity, kept in wanted.items()}
    leaves |= {identity: _priced(leaves[identity], blocks) for identity, blocks in readers.items()}
    order = {identity: number for number, identity in enumerate(leaves)}

    def above(block: Select) -> Select:
        identity, hopping = _identity(block), _hopping(block)
        leaf = leaves[identity]
        windows = None if hopping is None else _cells(leaves[hopping], order[hopping])
        return _above(block, leaf, _cells(leaf, order[identity]), windows)

    return _mapped(query, above), tuple(leaves.values())


# pass 1: projections over a stream are folded into the block that reads them


def _flattened(query: Query) -> Query:
    if isinstance(query, Combined):
        sides = [query.left, query.right]
        if not query.operator.endswith("ALL"):
            sides = [_once(side) for side in sides]
        return replace(query, left=_flattened(sides[0]), right=_flattened(sides[1]))

    def inner(expression: Expr) -> Expr | None:
        if isinstance(expression, Subquery):
            operand = None if expression.operand is None else rewrite(expression.operand, inner)
            wanted = expression.query if expression.kind == "scalar" else _once(expression.query)
            return replace(expression, query=_flattened(wanted), operand=operand)
        return None

    query = rewritten(query, inner)
    assert isinstance(query, Select)
    query = of_rows(query)
    if query.keeping.beside is not None:
        _refuse_ungrouped(query, query.group or ())
    query = with_nested(query, lambda nested: replace(nested, query=_flattened(nested.query)))
    below: Relation | None = query.relation
    generators: tuple[Generator, ...] = ()
    if isinstance(below, Exploded):
        generators, below = below.generators, below.relation
    if isinstance(below, Nested) and isinstance(below.query, Select) and is_projection(below.query):
        query = _inlined(query, below.alias, below.query, generators)
    elif generators and isinstance(below, Stream):
        query = replace(query, relation=replace(below, generators=(*below.generators, *generators)))
    if isinstance(query.relation, Stream):
        query = by_filters(
            _own_columns(query, query.relation), lambda block: over_values(by_end(_with_undecided(block)))
        )
        if query.distinct and query.group is None and not has_windows(query):
            keys = dict.fromkeys(_row_key(o.expression) for o in query.outputs)
            query = replace(query, distinct=False, group=tuple(keys))
    elif query.group is not None:
        _refuse_ungrouped(query, query.group)
    return query


def _refuse_ungrouped(block: Select, group: Sequence[Expr]) -> None:
    """A column that the groups of a block above the aggregation do not decide, as `neither` has it of a stream's."""
    grouped = {(key.relation, key.path) for key in group if isinstance(key, Field)}

    def known(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if isinstance(part, Field) and not part.outer and (part.relation, part.path[:1]) not in grouped:
            raise neither(part)
        return None

    for expression in above_group(block):
        rewrite(expression, known)


def _row_key(output: Expr) -> Expr:
    """What different rows are told apart by; sessions are put together of groups alone."""
    key = window_key(output)
    return output if is_session(key) else key


def _with_undecided(block: Select) -> Select:
    """A block that asks of its cells what no record alone can answer, as whether a user is one of those of a query."""
    known: list[Expr] = []
    asked: list[Expr] = []
    for part in conjuncts(block.where):
        (asked if is_asked(part) else known).append(part)
    keeping = replace(block.keeping, undecided=reduce(both, asked, None))
    return replace(block, where=reduce(both, known, None), keeping=keeping)


def _once(query: Query) -> Query:
    """A query for which it does not matter how often a row comes: of records it keeps the groups."""
    if not isinstance(query, Select) or query.limit is not None or query.offset is not None:
        return query
    return replace(query, distinct=query.distinct or query.group is None, order=())


def _inlined(query: Select, alias: str, below: Select, generators: tuple[Generator, ...]) -> Select:
    values = {o.name.lower(): o.expression for o in below.outputs}

    def substitute(expression: Expr) -> Expr | None:
        if isinstance(expression, Field) and expression.relation == alias:
            value = values[expression.path[0].lower()]
            if len(expression.path) > 1:
                return reduce(lambda of, name: member(of, name, expression.place), expression.path[1:], value)
            return value
        return None

    query = rewritten(query, substitute)
    assert isinstance(below.relation, Stream)
    more = tuple(replace(each, argument=rewrite(each.argument, substitute)) for each in generators)
    stream = replace(below.relation, generators=(*below.relation.generators, *more))
    return replace(query, relation=stream, where=both(both(below.where, below.undecided), query.where))


def _own_columns(query: Select, stream: Stream) -> Select:
    """Columns of the block's stream and its generators lose the author's aliases, so that equal blocks are equal."""
    own: dict[tuple[str, str], tuple[str, ...]] = {}

    def strip(expression: Expr) -> Expr | None:
        if isinstance(expression, Field):
            path = own.get((expression.relation, expression.path[0]))
            if path is not None:
                return replace(expression, relation="", path=(*path, *expression.path[1:]))
            if expression.relation in (stream.alias, ""):
                return replace(expression, relation="")
        return None

    generators = []
    for number, each in enumerate(stream.generators, 1):
        argument, element = rewrite(each.argument, strip), each.argument.type.element
        given = ("key", "value") if argument.type.name == "MAP" else ("element",)
        names = [f"position {number}"] * each.positions + [f"{prefix(argument)}{name} {number}" for name in given]
        columns = tuple((name, kind) for name, (_, kind) in zip(names, each.columns, strict=False))
        if each.fields and element is not None:
            pairs = zip(each.columns, element.fields, strict=True)
            own |= {(each.alias, name): (names[0], field) for (name, _), (field, _) in pairs}
            columns = ((names[0], element),)
        elif each.alias:
            own |= {(each.alias, old): (new,) for (old, _), new in zip(each.columns, names, strict=True)}
        generators.append(replace(each, argument=argument, columns=columns, alias="", fields=False))
    return replace(rewritten(query, strip), relation=replace(stream, alias=stream.source, generators=tuple(generators)))


# pass 2: what every block keeps


def _mapped(query: Query, block: _Block) -> Query:
    """The query with `block` applied to every block over a stream, wherever it stands."""
    if isinstance(query, Combined):
        return replace(query, left=_mapped(query.left, block), right=_mapped(query.right, block))

    def inner(expression: Expr) -> Expr | None:
        if isinstance(expression, Subquery):
            operand = None if expression.operand is None else rewrite(expression.operand, inner)
            return replace(expression, query=_mapped(expression.query, block), operand=operand)
        return None

    query = with_nested(rewritten(query, inner), lambda nested: replace(nested, query=_mapped(nested.query, block)))
    return block(query) if isinstance(query.relation, Stream) else query


def _blocks(query: Query) -> Iterator[Select]:
    found: list[Select] = []

    def note(block: Select) -> Select:
        found.append(block)
        return block

    _mapped(query, note)
    yield from found


def _aggregated(block: Select) -> bool:
    return block.group is not None


def _identity(block: Select) -> _Identity:
    assert isinstance(block.relation, Stream)
    where = block.where
    if _aggregated(block):
        keys = kept_by(block)
        window = put_together(keys)
        if window is not None:  # panes are looked up by their window, sessions by their group
            others, kept = tuple(key for key in keys if key != window), _kept_of(window, block)
            keys = (*others, kept) if is_session(window) else (kept, *others)
        return block.relation, "aggregate", where, keys
    return block.relation, "row", where, ()


def _only_groups(block: Select) -> bool:
    """Does a block ask which groups there are, and nothing else of them?"""
    return not any(isinstance(e, Aggregate) for x in above_group(block) for e in walk(x))


def _kept_of(window: Call, block: Select) -> Expr:
    return block_of(window) if hops(window) and _only_groups(block) else pane(window)


def _hopping(block: Select) -> _Identity | None:
    """The table that lists the hopping windows of a block."""
    window = put_together(kept_by(block))
    if window is None or hops(window) is None:
        return None
    stream, kind, where, _ = _identity(block)
    return stream, kind, where, (window,)


def _kept(block: Select) -> Iterator[Expr | Part]:
    """The partials of a block's aggregates, or the values that it takes of every record."""
    window = put_together(kept_by(block))
    if window is not None and is_session(window):
        yield from ends(window)
    elif window is not None and _only_groups(block):
        yield from seen(window)
    if block.undecided is not None and block.group == ():  # so that there is something to merge to one row
        yield from parts_of(Aggregate("count", (), None, False, BIGINT))
    for expression in above_group(block):
        if _aggregated(block):
            for part in walk(expression):
                if isinstance(part, Aggregate):
                    yield from parts_of(part)
        else:
            yield from decided(expression)
    if not _aggregated(block) and block.undecided is not None:
        yield from decided(block.undecided)


def _leaf(identity: _Identity, kept: Sequence[Expr | Part]) -> Leaf:
    stream, kind, where, group = identity
    source, generators = source_of(stream.source), stream.generators
    names = _Names()
    if kind == "row":
        keys: tuple[tuple[str, Expr], ...] = tuple(
            (names.give(name), Field("", (name,), type_)) for name, type_ in RECORD_KEYS
        )
        generators = tuple(map(_with_position, generators))
        keys += tuple((names.give(_slug(p)), p) for p in (Field("", (g.columns[0][0],), INT) for g in generators))
        values = [e for e in kept if not isinstance(e, Part) and e not in dict(keys).values()]
        for value in values:
            if value.type.name == "BINARY":
                raise Wrong(value.place, "a column of type BINARY", "Take hex(…) or base64(…) of it.")
        values.sort(key=spark)
        return Leaf(source, generators, "row", where, keys, tuple(Kept(names.give(_slug(e)), e, None) for e in values))
    if len(group) > MOST_KEYS:
        raise Wrong(
            group[MOST_KEYS].place,
            f"a view can group by at most {MOST_KEYS} columns, which is what Postgres can index",
            "Leave out the columns that others decide, and take them with max(…).",
        )
    for key in group:
        if key.type.nested:
            raise Wrong(key.place, f"different values of type {key.type}", "Take to_json(…) of them.")
        if key.type.name == "BINARY" or any(is_made_of_bytes(e) for e in walk(key)):
            raise Wrong(key.place, "a key made of bytes that may be no text", "Take hex(…) of them.")
    keys = tuple((names.give(_slug(e)), e) for e in group)
    parts = sorted((p for p in kept if isinstance(p, Part)), key=_place)
    return Leaf(
        source, generators, "aggregate", where, keys, tuple(Kept(names.give(_part_name(p)), p.input, p) for p in parts)
    )


def _priced(leaf: Leaf, readers: Sequence[Select]) -> Leaf:
    """A leaf with its cost: a sub-key is none for a block that groups by it."""
    sub_keys = [(n, e) for n, e in leaf.keys if all(e in _sub_keys(block) for block in readers)]
    known = [n for _, e in sub_keys if (n := most_values(e)) is not None]
    windows = [window for block in readers if (window := put_together(kept_by(block))) is not None]
    panes = max((cells_per_window(w, leaf.keys[0][1]) for w in windows), default=1)
    at_most = math.prod(known) if known and len(known) == len(sub_keys) else None
    return replace(leaf, cost=Cost(tuple(n for n, _ in sub_keys), at_most, panes))


def _sub_keys(block: Select) -> set[Expr]:
    asked = [
        *filter(is_asked, block.group or ()),
        *([] if block.undecided is None else [block.undecided]),
    ]
    undecided = (part for each in asked for part in decided(each))
    return {*block.keeping.sub_keys, *undecided} - set(block.group or ()).difference(block.keeping.sub_keys)


def _place(part: Part) -> tuple[str, ...]:
    """Where a part stands among the columns: it depends on nothing but what it is."""
    return (part.name, *(spark(e) for e in (part.input, *part.order, part.other, part.when) if e is not None))


def _with_position(generator: Generator) -> Generator:
    """A row view needs the position of an element: together with its record it identifies a row."""
    if generator.positions:
        return generator
    name = "position " + generator.columns[0][0].split(" ")[-1]
    return replace(generator, columns=((name, INT), *generator.columns), positions=True)


class _Names:
    """Readable names, no two alike; made of expressions only, so that renaming a column changes no cells."""

    def __init__(self) -> None:
        self._taken = {"touched", "only_one", SESSION_START, SESSION_END, BEGINS, *SYSTEM_COLUMNS}

    def give(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def _slug(expression: Expr) -> str:
    """A readable name for an expression.

    >>> from view_algebra.language.types import STRING
    >>> _slug(Call("date_trunc", (Constant("hour", STRING), Field("", ("ts",), STRING)), STRING))
    'date_trunc_hour_ts'
    """
    if isinstance(expression, Call) and expression.function in ("window_start", "window_end", HOP_END):
        return "window_end" if expression.function == HOP_END else expression.function
    if isinstance(expression, Call) and expression.function == "cast":
        return _slug(expression.arguments[0])
    if isinstance(expression, Case) and len(expression.branches) == 1 and expression.otherwise is None:
        when, then = expression.branches[0]
        return _cut(f"{_slug(then)}_{_slug(when)}")
    words = re.sub(r"[^a-z0-9]+", "_", spark(expression).lower()).strip("_")
    return _cut(words) or "value"


def _cut(name: str) -> str:
    name = name[:40].strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def _part_name(part: Part) -> str:
    if part.counts:
        names = [_slug(e) for e in _conditions(part.input)]
        return _cut("_".join(["count", *names]))
    if isinstance(part.input, Call) and part.input.function == "pane_bits":
        return part.name
    return _cut(f"{part.name}_{_slug(part.about or part.input)}")


def _conditions(expression: Expr) -> Iterator[Expr]:
    """The conditions that a count counts, `x IS NOT NULL` as x."""
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from _conditions(argument)
    elif isinstance(expression, Call) and expression.function == "is not null":
        yield expression.arguments[0]
    elif not isinstance(expression, Constant) or expression.value != "true":
        yield expression


# pass 3: the block over its cells


def _cells(leaf: Leaf, table: int) -> Cells:
    columns = tuple((name, e.type) for name, e in leaf.keys) + tuple(
        (k.name, k.part.type if k.part else k.expression.type) for k in leaf.kept
    )
    one = leaf.kind == "aggregate" and not leaf.keys
    return Cells(table, CELL, columns, tuple(name for name, _ in leaf.keys), one)


def _above(block: Select, leaf: Leaf, cells: Cells, windows: Cells | None) -> Select:
    relation, window = _put_together(block, leaf, cells, windows)
    several = block.undecided is not None or block.keeping.beside is not None
    one = cells.one or (several and block.group == ())
    # the keys that only its undecided conditions, or a join, name, and what it asks and groups by
    merged_away = _aggregated(block) and (several or any(map(is_asked, block.group or ())))
    named = [(name, e) for name, e in leaf.keys if not merged_away or e in (block.group or ())]
    keys: dict[Expr, Expr] = {e: Field(CELL, (name,), e.type) for name, e in named} | window
    merged: dict[Part | Expr, Field] = {
        (k.part or k.expression): Field(CELL, (k.name,), k.part.type if k.part else k.expression.type)
        for k in leaf.kept
    }

    def change(expression: Expr) -> Expr | None:
        if expression in keys:
            return replace(keys[expression], place=expression.place)
        if leaf.kind == "row":
            return replace(merged[expression], place=expression.place) if expression in merged else None
        if isinstance(expression, Aggregate):
            at_most = MOST_RECORDS if block.keeping.beside is None else None  # a join may repeat a cell at will
            fields = {part.name: _counted(merged[part], part, one, at_most) for part in parts_of(expression)}
            return final_of(expression, fields)
        if isinstance(expression, Field) and expression.relation == "":
            raise neither(expression)
        return None

    def order(item: Order) -> Order:
        return replace(item, expression=rewrite(item.expression, change))

    asked = block.having if _aggregated(block) else block.undecided
    return Select(
        outputs=tuple(Output(o.name, rewrite(o.expression, change)) for o in block.outputs),
        relation=relation,
        where=None if asked is None else rewrite(asked, change),
        distinct=block.distinct,
        order=tuple(order(o) for o in block.order),
        limit=block.limit,
        offset=block.offset,
        place=block.place,
        limit_place=block.limit_place,
    )


def _put_together(
    block: Select, leaf: Leaf, cells: Cells, windows: Cells | None
) -> tuple[Cells | Nested, dict[Expr, Expr]]:
    """The cells of a block's groups, and what its window is among their columns."""
    group, window = tuple(dict.fromkeys(block.group or ())), put_together(kept_by(block))
    beside = block.keeping.beside
    plain = window is None and block.undecided is None and beside is None and group == kept_by(block)
    if not _aggregated(block) or plain:
        return cells, {}
    names = {e: name for name, e in leaf.keys}
    parts = [(k.name, k.part) for k in leaf.kept if k.part is not None]
    held: dict[Expr, Expr] = {} if window is None else {window: _kept_of(window, block)}
    if window is None:
        asked = {key: f"asked_{n}" for n, key in enumerate(key for key in group if key not in names)}
        over = [Output(asked.get(key) or names[key], _over_cells(key, names, CELL)) for key in group]
        condition = block.undecided if beside is None else beside.where
        where = None if condition is None else _over_cells(condition, names, CELL)
        relation = cells if beside is None else _beside_cells(beside.relation, cells, names)
        answers = {key: Field(CELL, (name,), key.type) for key, name in asked.items()}
        return Nested(coarser(relation, CELL, over, parts, where), CELL), {**answers}
    asked_in_group = next(filter(is_asked, group), None)
    if asked_in_group is not None:
        way_out = "Group by the columns that it names in a subquery in FROM, and ask around it."
        raise Wrong(asked_in_group.place or block.place, "a subquery in GROUP BY beside a window", way_out)
    keys = [names[held.get(key, key)] for key in group]
    if window not in group:
        raise Wrong(
            window.place, "a grouping without its window", "Put the window before GROUPING SETS, ROLLUP or CUBE."
        )
    start = names[held[window]]
    if windows is not None:
        key: dict[Expr, Expr] = {window: Field(CELL, windows.keys, TIMESTAMP)}
        for part in () if block.undecided is None else walk(block.undecided):
            if hops(part) or (isinstance(part, Subquery) and part.correlated):
                what = "a subquery in WHERE about hopping windows, or about the records in them"
                raise Wrong(part.place or block.place, what, "Write it as k IN (SELECT k …).")
        undecided = None if block.undecided is None else _over_cells(block.undecided, names, PANE)
        return Nested(hopped(cells, windows, keys, start, window, parts, undecided), CELL), key
    if block.undecided is not None:
        way_out = "Put conditions on the records alone there, or filter the sessions in a view over this one."
        raise Wrong(block.place, "a subquery in WHERE of sessions", way_out)
    others = [name for name in keys if name != start]
    within = (
        others
        if block.keeping.sessions_of is None
        else [names[key] for key in block.keeping.sessions_of if key != window]
    )
    put = Nested(sessions(cells, others, within, window, parts), CELL)
    return put, {bound: Field(CELL, (bound.function,), TIMESTAMP) for bound in bounds(window)}


def _beside_cells(relation: Relation, cells: Cells, names: Mapping[Expr, str]) -> Relation:
    """What a block's cells are joined with, the cells in the place of their source."""
    if isinstance(relation, Stream):
        return cells
    if isinstance(relation, Joined) and relation.condition is not None:
        relation = replace(relation, condition=_over_cells(relation.condition, names, CELL))
    return over_inputs(relation, lambda inner: _beside_cells(inner, cells, names))


def _over_cells(expression: Expr, names: Mapping[Expr, str], alias: str) -> Expr:
    """What is asked of records, over the columns of their cells."""

    def change(part: Expr) -> Expr | None:
        name = names.get(part)
        return None if name is None else Field(alias, (name,), part.type, place=part.place)

    return rewrite(expression, change)


def _counted(field: Field, part: Part, one: bool, at_most: int | None) -> Expr:
    """A merged part; a count over no records at all is 0, where the only group has no cell yet."""
    if part.counts:
        field = replace(field, bound=at_most)
    if part.counts and one:
        return Call("coalesce", (field, Constant("0", field.type)), field.type)
    return field
