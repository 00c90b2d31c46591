"""Computes a block's expressions over a table's rows from the table's records.

Postgres cannot compute some of these expressions. `to_date(s)` of a key's newest record is the newest record's
`to_date(s)`, so the table's SELECT in the block gets a further column for each such expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from view_algebra.compiled import changes_name, source_name
from view_algebra.language.expressions import (
    NULL,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Joined,
    Nested,
    Output,
    Place,
    Relation,
    Select,
    Stream,
    member,
)
from view_algebra.language.quoting import words
from view_algebra.language.types import BIGINT, BINARY, BOOLEAN, STRING, not_in_json
from view_algebra.language.walks import children, inputs_of, relations_in, rewrite, rewritten, walk, with_nested
from view_algebra.split.joins import NULLABLE_LEFT, NULLABLE_RIGHT, is_decided_by_row


@dataclass
class _Table:
    """A table in a block, as the SELECT of its newest records, and the further columns for it to compute."""

    nested: Nested
    block: Select
    nullable: bool
    columns: dict[Expr, str] = field(default_factory=dict)

    def column(self, value: Expr) -> Field:
        """A value computed from a row, as a column of the table."""
        name = self.columns.setdefault(value, f"computed {len(self.columns)}")
        return Field(self.alias, (name,), value.type, place=value.place)

    def with_columns(self) -> Nested:
        """The SELECT with the further columns."""
        more = tuple(Output(name, self._newest(value)) for value, name in self.columns.items())
        return replace(self.nested, query=replace(self.block, outputs=(*self.block.outputs, *more), syntax=None))

    def _newest(self, value: Expr) -> Expr:
        """The value for the newest record that has its columns, or the value for NULLs if none has them."""
        deletion = _from_newest(_ANY, self._deletion)
        choice = next(iter(self._choices(value)), deletion)
        newest = _from_newest(rewrite(value, self._in_record), choice, value.place)
        if choice == deletion or all(map(_is_strict, walk(value))):
            return newest
        present = reduce(lambda one, other: Call("or", (one, other), BOOLEAN), map(_has_records, _each_newest(choice)))
        for_nulls = _from_newest(rewrite(value, self._in_lacking_record), deletion, value.place)
        return Case(((present, newest),), for_nulls, value.type, place=value.place)

    def _in_record(self, part: Expr) -> Expr | None:
        """A column of the table in a single record."""
        if not isinstance(part, Field) or part.relation != self.alias:
            return None
        column = self._outputs[part.path[0].lower()]
        single = next((aggregate.arguments[0] for aggregate in _each_newest(column)), column)
        return reduce(lambda of, name: member(of, name, part.place), part.path[1:], replace(single, place=part.place))

    def _in_lacking_record(self, part: Expr) -> Expr | None:
        """A column of the table in records that lack it."""
        if self._choices(part) and isinstance(part, Field):
            return Call("cast", (NULL,), part.type, place=part.place)
        return self._in_record(part)

    @property
    def _outputs(self) -> dict[str, Expr]:
        """The expressions of the columns, by their names in lower case."""
        return {o.name.lower(): _whole(o.expression) for o in self.block.outputs}

    @property
    def _deletion(self) -> Expr:
        """The aggregate that says if the newest record deletes the row, which every record states."""
        assert self.block.having is not None
        return next(part for part in walk(self.block.having) if any(_each_newest(part)))

    def _choices(self, value: Expr) -> set[Expr]:
        """The choices of the newest record for the columns in a value, except keys: some records lack columns."""
        named = {e.path[0].lower() for e in walk(value) if isinstance(e, Field) and e.relation == self.alias}
        chosen = (self._outputs[name] for name in named)
        return {_from_newest(_ANY, column) for column in chosen if any(_each_newest(column))}

    def decides(self, part: Expr) -> bool:
        """True if one row of the table decides the expression, and cells can store its value."""
        if not is_decided_by_row(part, {self.alias}) or len(self._choices(part)) > 1:
            return False
        if self.nullable and not all(map(_is_strict, walk(part))):
            return False
        whole = part.type == BINARY or (part.type.name != "VOID" and not_in_json(part.type) is None)
        return whole and not part.type.length

    @property
    def alias(self) -> str:
        """The table's alias in the block."""
        return self.nested.alias


_ANY = Constant("", STRING)
"""A placeholder for a record's value."""


def _whole(column: Expr) -> Expr:
    """A column in its declared form: a struct as one aggregate, not as the aggregates of its fields.

    The first of these says if the struct is present (`by` in `language/structs.py`).
    """
    if not isinstance(column, Case) or column.type.name != "STRUCT":
        return column
    if column.otherwise is not None:
        branches = tuple((when, _whole(value)) for when, value in column.branches)
        return replace(column, branches=branches, otherwise=_whole(column.otherwise))
    first = next(part for part in walk(column) if isinstance(part, Aggregate) and part.arguments)
    is_there, *order = first.arguments
    return replace(first, arguments=(*children(is_there), *order), type=column.type)


def _each_newest(column: Expr) -> Iterator[Aggregate]:
    """The aggregates of a table's column, whose CASE selects one of them. A column of the key has none."""
    if isinstance(column, Aggregate):
        yield column
    elif isinstance(column, Case):
        for value in (*(value for _, value in column.branches), column.otherwise):
            if value is not None:
                yield from _each_newest(value)


def _has_records(by: Aggregate) -> Expr:
    """The condition that an aggregate has at least one record."""
    count = Aggregate("count", (), by.condition, distinct=False, type=BIGINT)
    return Call(">", (count, Constant("0", BIGINT)), BOOLEAN)


def _from_newest(value: Expr, column: Expr, place: Place = None) -> Expr:
    """A value of the record that provides one of the table's columns."""
    if isinstance(column, Case):
        branches = tuple((when, _from_newest(value, inner, place)) for when, inner in column.branches)
        otherwise = None if column.otherwise is None else _from_newest(value, column.otherwise, place)
        return replace(column, branches=branches, otherwise=otherwise, type=value.type, place=place)
    assert isinstance(column, Aggregate)
    return replace(column, arguments=(value, *column.arguments[1:]), type=value.type, place=place)


def _is_strict(part: Expr) -> bool:
    """True if it is NULL whenever an argument is, so also in an outer join's row of NULLs."""
    return isinstance(part, (Field, Constant)) or (isinstance(part, Call) and part.function in _STRICT)


_STRICT = words(
    "cast try_cast to_date to_timestamp timestamp_millis timestamp_micros timestamp_seconds from_unixtime"
    " unix_timestamp date_format date_trunc trunc from_utc_timestamp to_utc_timestamp get_json_object from_json . []"
    " hex unhex base64 unbase64 crc32 soundex parse_url url_decode json_array_length"
    " concat initcap lower upper split split_part regexp_extract regexp_replace rlike like md5 sha1 sha2"
    " + - * / % = <> < <= > >="
)


def with_computed_columns(block: Select) -> Select:
    """The block with columns of tables in place of its expressions over their rows."""
    if block.relation is None:
        return block
    tables = {table.alias: table for table in _tables(block.relation, nullable=False)}
    if not tables:
        return block

    def column(part: Expr) -> Expr | None:
        if not isinstance(part, (Call, Case)) or (isinstance(part, Call) and part.implicit):
            return None
        of = next((table for table in tables.values() if table.decides(part)), None)
        return None if of is None else of.column(part)

    block = rewritten(block, column)
    return with_nested(block, lambda nested: tables[nested.alias].with_columns() if nested.alias in tables else nested)


def _tables(relation: Relation, *, nullable: bool) -> Iterator[_Table]:
    """The tables in a FROM, as the SELECTs of their newest records."""
    if isinstance(relation, Joined):
        yield from _tables(relation.left, nullable=nullable or relation.kind in NULLABLE_LEFT)
        yield from _tables(relation.right, nullable=nullable or relation.kind in NULLABLE_RIGHT)
        return
    if isinstance(relation, Nested) and isinstance(relation.query, Select) and relation.query.having is not None:
        streams = [stream for stream in relations_in(relation.query.relation) if isinstance(stream, Stream)]
        if any(stream.source == changes_name(source_name(stream.source)) for stream in streams):
            yield _Table(relation, relation.query, nullable)
        return
    for inner in inputs_of(relation):
        yield from _tables(inner, nullable=nullable)
