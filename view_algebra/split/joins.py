"""Joins of records: every stream of a join keeps cells with the columns that the join needs.

If every aggregate reads one stream, that stream is kept as cells keyed by the join and group columns. The other streams
keep one cell per record.

The join itself runs when the view is read, over everything that has arrived, so no side waits for another or is late.
Conditions and expressions of one side alone are computed from its records, below the join.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import AGGREGATES, RECORD_KEYS
from view_algebra.language.calendar_bounds import leaves_calendar
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Case,
    CellJoin,
    Exploded,
    Expr,
    Field,
    Generator,
    Joined,
    Keeping,
    Nested,
    Output,
    Relation,
    Select,
    Stream,
    Windowed,
    both,
    conjuncts,
)
from view_algebra.language.time_windows import hops, is_session
from view_algebra.language.types import CALENDAR, STRING
from view_algebra.language.walks import (
    above_group,
    children,
    expressions_in,
    expressions_of,
    has_joins,
    inputs_of,
    is_asked,
    is_of_elements,
    is_of_records,
    nested_in,
    outer_fields,
    over_inputs,
    relations_in,
    relations_named,
    rewritten,
    walk,
    with_nested,
)
from view_algebra.refusals import Wrong
from view_algebra.split.equalities import bounded

MOST_KEYS = 32
"""Most columns that Postgres can index together."""


@dataclass
class _Rows:
    """A stream of a join: the condition on its records, and the columns of its rows by expression.

    nullable: the join may show a row of NULLs in its place
    windows: hopping windows, which repeat a record
    """

    stream: Stream
    nullable: bool
    where: Expr | None = None
    windows: tuple[Generator, ...] = ()
    columns: dict[Expr, str] = field(default_factory=dict)

    def column(self, value: Expr) -> Field:
        """A value of a record, as a column of the rows."""
        own = isinstance(value, Field) and value.relation == self.stream.alias
        plain = ".".join(value.path) if isinstance(value, Field) and own else f"computed {len(self.columns)}"
        name = self.columns.setdefault(value, plain)
        return Field(self.stream.alias, (name,), value.type, place=value.place)

    def relation(self) -> Nested:
        """The rows as a subquery for FROM, including the columns that identify their records."""
        alias, place = self.stream.alias, self.stream.place
        for name, kind in RECORD_KEYS:
            self.column(Field(alias, (name,), kind))
        outputs = tuple(Output(name, value) for value, name in self.columns.items())
        records = Exploded(self.stream, self.windows, place) if self.windows else self.stream
        return Nested(Select(outputs, records, self.where, place=place), alias, place)

    def decides(self, expression: Expr) -> bool:
        """True if a record of this stream alone decides the expression."""
        return is_decided_by_row(expression, {self.stream.alias, *(window.alias for window in self.windows)})


def is_decided_by_row(expression: Expr, own: set[str]) -> bool:
    """True if one row of these relations decides the expression."""
    inside = list(walk(expression))
    named = relations_named(expression)
    several = any(isinstance(part, (Aggregate, Windowed)) or hops(part) or is_session(part) for part in inside)
    alone = not several and not is_asked(expression) and not is_of_elements(expression)
    return bool(named) and named <= own and alone


@dataclass
class _Condition:
    """One of several conditions that must all hold. `taken`: a stream's rows already meet it."""

    expression: Expr
    taken: bool = False


def over_rows(block: Select) -> Select:
    """The block with its joined streams as subqueries of their rows. Any other block stays the same."""
    if not has_joins(block.relation):
        return block
    assert block.relation is not None
    block = _pruned(block)
    assert block.relation is not None
    streams = {rows.stream.alias: rows for rows in _streams(block.relation, nullable=False)}
    if not streams:
        return block
    block = bounded(block)
    assert block.relation is not None
    where = list(map(_Condition, conjuncts(block.where)))
    relation = _filtered(_with_windows(block.relation, streams), where, streams)
    block = replace(block, relation=relation, where=_untaken(where))

    groups = set(block.group or ())
    compared = {part for condition in conditions(block) for part in walk(condition)}

    def below(part: Expr) -> Expr | None:
        if part not in groups and not groups.isdisjoint(walk(part)):
            return None  # computed from the group
        rows = _decides(part, streams, compared=part in compared)
        return None if rows is None else rows.column(part)

    for inner in nested_in(relation):
        for column in outer_fields(inner.query) if inner.lateral else ():
            if column.relation in streams:
                if len(column.path) > 1:
                    way_out = "Select it under a name of its own in a subquery in FROM, and join that."
                    raise Wrong(column.place, f"LATERAL cannot read the field {'.'.join(column.path)}", way_out)
                streams[column.relation].column(column)
    block = rewritten(block, below)
    return _with_cells(block, streams) or _with_rows(block, streams)


def _pruned(block: Select) -> Select:
    """Removes unused columns from a block's subqueries of records, since every column would be kept in cells."""
    asked = {
        (part.relation, part.path[0].lower())
        for expression in expressions_of(block)
        for part in walk(expression)
        if isinstance(part, Field)
    }
    nested = list(nested_in(block.relation))
    if any(inner.lateral for inner in nested):
        return block

    def pruned(of: Nested) -> Nested:
        query = of.query
        if not isinstance(query, Select) or not is_of_records(query):
            return of
        outputs = tuple(output for output in query.outputs if (of.alias, output.name.lower()) in asked)
        return replace(of, query=_pruned(replace(query, outputs=outputs or query.outputs[:1], syntax=None)))

    return with_nested(block, pruned)


def _streams(relation: Relation, *, nullable: bool) -> Iterator[_Rows]:
    """The streams that a relation joins."""
    match relation:
        case Stream():
            yield _Rows(relation, nullable)
        case Joined(left=left, right=right, kind=kind):
            yield from _streams(left, nullable=nullable or kind in NULLABLE_LEFT)
            yield from _streams(right, nullable=nullable or kind in NULLABLE_RIGHT)
        case _:
            for inner in inputs_of(relation):
                yield from _streams(inner, nullable=nullable)


def _filtered(relation: Relation, required: Sequence[_Condition], streams: Mapping[str, _Rows]) -> Relation:
    """Moves the conditions that a stream decides alone from a relation to its streams.

    required: conditions that the rows of the relation have to meet, whatever it is joined with.
    """
    match relation:
        case Stream(alias=alias):
            rows = streams[alias]
            for condition in required:
                if rows.decides(condition.expression):
                    condition.taken, rows.where = True, both(rows.where, condition.expression)
            return relation
        case Joined(left=left, right=right, kind=kind):
            own = list(map(_Condition, conjuncts(relation.condition)))
            left_conditions = [*(() if kind in NULLABLE_LEFT else required), *(own if kind in MATCHED_LEFT else ())]
            right_conditions = [*(() if kind in NULLABLE_RIGHT else required), *(own if kind in MATCHED_RIGHT else ())]
            left, right = _filtered(left, left_conditions, streams), _filtered(right, right_conditions, streams)
            rest = _untaken(own)
            kind = "CROSS" if kind == "INNER" and rest is None else kind
            return replace(relation, left=left, right=right, condition=rest, kind=kind)
        case _:
            return over_inputs(relation, lambda below: _filtered(below, required, streams))


MATCHED_LEFT, MATCHED_RIGHT = ("INNER", "CROSS", "RIGHT"), ("INNER", "CROSS", "LEFT")
"""Kinds of joins in which a side's row appears only if it meets the condition."""


NULLABLE_LEFT, NULLABLE_RIGHT = ("RIGHT", "FULL"), ("LEFT", "FULL")
"""Kinds of joins that may show a row of NULLs in place of a side."""


def _untaken(conditions: Sequence[_Condition]) -> Expr | None:
    return reduce(both, (condition.expression for condition in conditions if not condition.taken), None)


def conditions(block: Select) -> Iterator[Expr]:
    """The conditions of WHERE and of the joins."""
    if block.where is not None:
        yield block.where
    for joined in relations_in(block.relation):
        if isinstance(joined, Joined) and joined.condition is not None:
            yield joined.condition


def _decides(part: Expr, streams: Mapping[str, _Rows], *, compared: bool) -> _Rows | None:
    """The stream that provides an expression: its column or, unless rows of NULLs replace it, a computed one."""
    for rows in streams.values():
        computed = isinstance(part, (Call, Case)) and not rows.nullable and _is_kept(part, compared=compared)
        if (computed or (isinstance(part, Field) and not part.outer)) and rows.decides(part):
            return rows
    return None


def _is_kept(part: Expr, *, compared: bool) -> bool:
    """True if the expression can be a column of cells, and is worth one.

    Cells have NULL for a time outside of the calendar, but a comparison needs the time itself.
    """
    if isinstance(part, Call) and part.implicit:
        return False
    times = (inner for inner in walk(part) if not _is_window(inner))
    if compared and part.type.name in CALENDAR and any(map(leaves_calendar, times)):
        return False
    return not (part.type.nested or part.type.length or part.type.name in ("BINARY", "VOID"))


def _is_window(part: Expr) -> bool:
    return isinstance(part, Call) and part.function.startswith("window_")


def _with_windows(relation: Relation, streams: Mapping[str, _Rows]) -> Relation:
    """Moves generators of hopping windows of one stream from a relation to that stream."""
    if not isinstance(relation, Exploded):
        return relation
    rest = []
    for generator in relation.generators:
        of = next((rows for rows in streams.values() if not rows.nullable and rows.decides(generator.argument)), None)
        if of is not None and isinstance(generator.argument, Call) and generator.argument.function == "hops":
            of.windows = (*of.windows, generator)
        else:
            rest.append(generator)
    return replace(relation, generators=tuple(rest)) if rest else relation.relation


def _with_rows(block: Select, streams: Mapping[str, _Rows], but: str = "") -> Select:
    """The block with each stream replaced by its rows, except the stream with alias `but`."""

    def rows(relation: Relation) -> Relation:
        if isinstance(relation, Stream):
            return relation if relation.alias == but else streams[relation.alias].relation()
        return over_inputs(relation, rows)

    assert block.relation is not None
    return replace(block, relation=rows(block.relation))


def _with_cells(block: Select, streams: Mapping[str, _Rows]) -> Select | None:
    """The block with the only stream of its aggregates kept as cells keyed by the join and group columns, or None.

    A cell is merged once for each row that it joins, just as its records would be counted (eager aggregation: Yan and
    Larson, "Eager aggregation and lazy aggregation", VLDB 1995).
    """
    aggregates = dict.fromkeys(e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate))
    by_value = (AGGREGATES[aggregate.function].by_value for aggregate in aggregates)
    repeats = any(row is not None and row.repeated is not None for row in by_value)  # cells hold each value once
    if block.group is None or repeats or any(inner.lateral for inner in nested_in(block.relation)):
        return None
    asked = [part for aggregate in aggregates for part in children(aggregate)]
    wanted = (*(() if block.where is None else (block.where,)), *expressions_in(block.relation))
    searched = set[Expr]().union(*map(_searched, wanted))
    for alias, rows in streams.items():
        named = set().union(*map(relations_named, asked))
        values = {name: value for value, name in rows.columns.items()}
        named_outside = _named_outside(block, aggregates, alias)
        # sorted by text, on which versions depend, so that blocks that show different columns of a join share cells
        keys = tuple(sorted(named_outside, key=lambda key: spark(values[key.path[0]])))
        kept = 0 < len(keys) <= MOST_KEYS and all(_may_be_key(values[key.path[0]]) for key in keys)
        kept = kept and searched.isdisjoint(keys)
        if kept and not rows.nullable and not rows.windows and named <= {alias} and not any(map(is_asked, asked)):
            joined = _with_rows(block, streams, but=alias)
            assert joined.relation is not None
            sub_keys = tuple(key for key in keys if key not in block.group)
            keeping = Keeping(finest=keys, sub_keys=sub_keys, join=CellJoin(joined.relation, block.where))
            return replace(block, relation=rows.relation(), where=None, keeping=keeping)
    return None


def _may_be_key(value: Expr) -> bool:
    """True if it may be a key of cells, so that an expression over the key equals one over the value."""
    return not (value.type.nested or value.type.name in ("BINARY", "FLOAT", "DOUBLE"))  # -0.0 and 0.0 are one key


def _searched(condition: Expr, *, whole: bool = False) -> set[Expr]:
    """The texts that a condition does not just compare for equality: a key only has the beginning of a long text."""
    if isinstance(condition, Field):
        return {condition} if condition.type == STRING and not whole else set()
    whole = isinstance(condition, Call) and condition.function in ("=", "<>", "<=>", "in", "is null", "is not null")
    return set[Expr]().union(*(_searched(child, whole=whole) for child in children(condition)))


def _named_outside(block: Select, aggregates: Container[Expr], alias: str) -> set[Field]:
    """The columns of a relation that a block names outside of its aggregates."""
    fields: set[Field] = set()

    def note(part: Expr) -> Expr | None:
        if part in aggregates:
            return part
        if isinstance(part, Field) and part.relation == alias:
            fields.add(part)
        return None

    rewritten(block, note)
    return fields
