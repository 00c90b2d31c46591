"""Joins of records: of each stream in a join, what the join asks for, kept in cells.

A stream of which all aggregates are is kept in cells by the columns that the join and the groups name; of any other, a
cell per record.

The join itself is asked when the view is read, of all that has come by then: so no side waits for another, and none is
late. What one side decides alone, conditions and expressions, is computed below, of the record.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import RECORD_KEYS
from view_algebra.language.blocks import is_of_records
from view_algebra.language.expressions import (
    Aggregate,
    Beside,
    Call,
    Case,
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
from view_algebra.language.limits import leaves_calendar
from view_algebra.language.relations import has_joins, inputs_of, nested_in, over_inputs, relations_in, with_nested
from view_algebra.language.time_windows import hops, is_session
from view_algebra.language.types import CALENDAR, STRING
from view_algebra.language.walks import (
    above_group,
    children,
    expressions_in,
    expressions_of,
    is_asked,
    is_of_elements,
    outer_fields,
    relations_named,
    rewritten,
    walk,
)
from view_algebra.refusals import Wrong
from view_algebra.split.unbounded import bounded

MOST_KEYS = 32
"""Columns that Postgres can index together."""


@dataclass
class _Rows:
    """A stream of a join: the condition on its records, and the columns of its rows, by what they hold.

    nullable: may the join show a row of NULLs in its place? windows: those that hop, each of which has a record once.
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
        """The rows, as what FROM reads; they tell which records they are."""
        alias, place = self.stream.alias, self.stream.place
        for name, kind in RECORD_KEYS:
            self.column(Field(alias, (name,), kind))
        outputs = tuple(Output(name, value) for value, name in self.columns.items())
        records = Exploded(self.stream, self.windows, place) if self.windows else self.stream
        return Nested(Select(outputs, records, self.where, place=place), alias, place)

    def decides(self, expression: Expr) -> bool:
        """Is an expression one of columns of this stream alone, so that a record answers it?"""
        return of_one_row(expression, {self.stream.alias, *(each.alias for each in self.windows)})


def of_one_row(expression: Expr, own: set[str]) -> bool:
    """Is an expression made of the columns of these relations alone, and of one row of them?"""
    inside = list(walk(expression))
    named = relations_named(expression)
    several = any(isinstance(part, (Aggregate, Windowed)) or hops(part) or is_session(part) for part in inside)
    of_a_row = not several and not is_asked(expression) and not is_of_elements(expression)
    return bool(named) and named <= own and of_a_row


@dataclass
class _Condition:
    """One of the conditions that must all hold; `taken`: the rows of a stream meet it already."""

    expression: Expr
    taken: bool = False


def of_rows(block: Select) -> Select:
    """A block with the streams that it joins as subqueries of their rows; any other block as it is."""
    if not has_joins(block.relation):
        return block
    assert block.relation is not None
    block = _pruned(block)
    assert block.relation is not None
    streams = {each.stream.alias: each for each in _streams(block.relation, nullable=False)}
    if not streams:
        return block
    block = bounded(block)
    assert block.relation is not None
    where = list(map(_Condition, conjuncts(block.where)))
    relation = _filtered(_with_windows(block.relation, streams), where, streams)
    block = replace(block, relation=relation, where=_left(where))

    groups = set(block.group or ())
    compared = {part for condition in conditions(block) for part in walk(condition)}

    def below(part: Expr) -> Expr | None:
        if part not in groups and not groups.isdisjoint(walk(part)):
            return None  # it is computed of the group
        rows = _decides(part, streams, compared=part in compared)
        return None if rows is None else rows.column(part)

    for inner in nested_in(relation):
        for column in outer_fields(inner.query) if inner.lateral else ():
            if column.relation in streams:
                if len(column.path) > 1:
                    way_out = "Select it under a name of its own in a subquery in FROM, and join that."
                    raise Wrong(column.place, f"the field {'.'.join(column.path)} in LATERAL", way_out)
                streams[column.relation].column(column)
    block = rewritten(block, below)
    return _of_cells(block, streams) or _with_rows(block, streams)


def _pruned(block: Select) -> Select:
    """A block whose subqueries of records give no column that it does not ask for: each would be kept."""
    asked = {
        (part.relation, part.path[0].lower())
        for expression in expressions_of(block)
        for part in walk(expression)
        if isinstance(part, Field)
    }
    nested = list(nested_in(block.relation))
    if any(each.lateral for each in nested):
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


def _filtered(relation: Relation, known: Sequence[_Condition], streams: Mapping[str, _Rows]) -> Relation:
    """A relation, each of its streams with those of the conditions that it decides alone.

    known: conditions that the rows of the relation have to meet, whatever it is joined with.
    """
    match relation:
        case Stream(alias=alias):
            rows = streams[alias]
            for condition in known:
                if rows.decides(condition.expression):
                    condition.taken, rows.where = True, both(rows.where, condition.expression)
            return relation
        case Joined(left=left, right=right, kind=kind):
            own = list(map(_Condition, conjuncts(relation.condition)))
            of_left = [*(() if kind in NULLABLE_LEFT else known), *(own if kind in MATCHED_LEFT else ())]
            of_right = [*(() if kind in NULLABLE_RIGHT else known), *(own if kind in MATCHED_RIGHT else ())]
            left, right = _filtered(left, of_left, streams), _filtered(right, of_right, streams)
            rest = _left(own)
            kind = "CROSS" if kind == "INNER" and rest is None else kind
            return replace(relation, left=left, right=right, condition=rest, kind=kind)
        case _:
            return over_inputs(relation, lambda below: _filtered(below, known, streams))


MATCHED_LEFT, MATCHED_RIGHT = ("INNER", "CROSS", "RIGHT"), ("INNER", "CROSS", "LEFT")
"""The joins of which a side shows only rows that meet the condition."""


NULLABLE_LEFT, NULLABLE_RIGHT = ("RIGHT", "FULL"), ("LEFT", "FULL")
"""The joins that show a row of NULLs in the place of a side."""


def _left(conditions: Sequence[_Condition]) -> Expr | None:
    return reduce(both, (each.expression for each in conditions if not each.taken), None)


def conditions(block: Select) -> Iterator[Expr]:
    """What rows have to meet, of each side and of both."""
    if block.where is not None:
        yield block.where
    for each in relations_in(block.relation):
        if isinstance(each, Joined) and each.condition is not None:
            yield each.condition


def _decides(part: Expr, streams: Mapping[str, _Rows], *, compared: bool) -> _Rows | None:
    """The stream whose rows have this as a column: a column of it; of one that is never NULL, what is made of these."""
    for rows in streams.values():
        made = isinstance(part, (Call, Case)) and not rows.nullable and _is_kept(part, compared=compared)
        if (made or (isinstance(part, Field) and not part.outer)) and rows.decides(part):
            return rows
    return None


def _is_kept(part: Expr, *, compared: bool) -> bool:
    """Can it be a column of cells, and is it worth one? A time outside of the calendar is NULL there, as it is shown;
    it is compared as what it is.
    """
    if isinstance(part, Call) and part.implicit:
        return False
    times = (each for each in walk(part) if not _is_window(each))
    if compared and part.type.name in CALENDAR and any(map(leaves_calendar, times)):
        return False
    return not (part.type.nested or part.type.length or part.type.name in ("BINARY", "VOID"))


def _is_window(part: Expr) -> bool:
    return isinstance(part, Call) and part.function.startswith("window_")


def _with_windows(relation: Relation, streams: Mapping[str, _Rows]) -> Relation:
    """A relation without the generators of hopping windows that are of one stream, which are that stream's."""
    if not isinstance(relation, Exploded):
        return relation
    rest = []
    for each in relation.generators:
        of = next((rows for rows in streams.values() if not rows.nullable and rows.decides(each.argument)), None)
        if of is not None and isinstance(each.argument, Call) and each.argument.function == "hops":
            of.windows = (*of.windows, each)
        else:
            rest.append(each)
    return replace(relation, generators=tuple(rest)) if rest else relation.relation


def _with_rows(block: Select, streams: Mapping[str, _Rows], but: str = "") -> Select:
    """A block with each stream's rows in its place, but that of one alias."""

    def rows(relation: Relation) -> Relation:
        if isinstance(relation, Stream):
            return relation if relation.alias == but else streams[relation.alias].relation()
        return over_inputs(relation, rows)

    assert block.relation is not None
    return replace(block, relation=rows(block.relation))


def _of_cells(block: Select, streams: Mapping[str, _Rows]) -> Select | None:
    """A block whose aggregates are all of one stream, kept in cells by the columns that the join and its groups name.

    A cell is merged once for each row that it is joined with, as its records would be counted (eager aggregation: Yan
    and Larson, "Eager aggregation and lazy aggregation", VLDB 1995). None where there is no such stream.
    """
    aggregates = dict.fromkeys(e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate))
    in_a_list = any(each.function == "collect_list" for each in aggregates)  # a cell of values has each once
    if block.group is None or in_a_list or any(each.lateral for each in nested_in(block.relation)):
        return None
    asked = [part for aggregate in aggregates for part in children(aggregate)]
    wanted = (*(() if block.where is None else (block.where,)), *expressions_in(block.relation))
    searched = set[Expr]().union(*map(_searched, wanted))
    for alias, rows in streams.items():
        named = set().union(*map(relations_named, asked))
        values = {name: value for value, name in rows.columns.items()}
        named_beside = _named_beside(block, aggregates, alias)
        # by what they are, so that blocks that differ in what they show of a join share their cells
        keys = tuple(sorted(named_beside, key=lambda key: spark(values[key.path[0]])))
        kept = 0 < len(keys) <= MOST_KEYS and all(_may_be_key(values[key.path[0]]) for key in keys)
        kept = kept and searched.isdisjoint(keys)
        if kept and not rows.nullable and not rows.windows and named <= {alias} and not any(map(is_asked, asked)):
            joined = _with_rows(block, streams, but=alias)
            assert joined.relation is not None
            sub_keys = tuple(key for key in keys if key not in block.group)
            keeping = Keeping(finest=keys, sub_keys=sub_keys, beside=Beside(joined.relation, block.where))
            return replace(block, relation=rows.relation(), where=None, keeping=keeping)
    return None


def _may_be_key(value: Expr) -> bool:
    """Can cells be kept by it, so that what is computed of the key is what is computed of the value?"""
    return not (value.type.nested or value.type.name in ("BINARY", "FLOAT", "DOUBLE"))  # as -0.0, which is 0.0


def _searched(condition: Expr, *, whole: bool = False) -> set[Expr]:
    """The texts of which a condition asks more than whether they are equal: a key has the beginning of a long one."""
    if isinstance(condition, Field):
        return {condition} if condition.type == STRING and not whole else set()
    whole = isinstance(condition, Call) and condition.function in ("=", "<>", "<=>", "in", "is null", "is not null")
    return set[Expr]().union(*(_searched(each, whole=whole) for each in children(condition)))


def _named_beside(block: Select, aggregates: Container[Expr], alias: str) -> set[Field]:
    """The columns of a relation that a block names other than in its aggregates."""
    found: set[Field] = set()

    def note(part: Expr) -> Expr | None:
        if part in aggregates:
            return part
        if isinstance(part, Field) and part.relation == alias:
            found.add(part)
        return None

    rewritten(block, note)
    return found
