"""Rows of constants: VALUES, SELECT without FROM, and the elements of an array of literals.

Above the aggregation they stay as they are. A join of records with them becomes an explode: `FROM events JOIN names
ON events.country = names.code` is

    FROM events LATERAL VIEW inline(filter(array(named_struct('code', 'NL'), …), n -> country = n.code)) names AS code

and a LEFT JOIN is LATERAL VIEW OUTER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from view_algebra.language.expressions import (
    NULL,
    VARIABLE,
    Aggregate,
    Call,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Generator,
    Joined,
    Named,
    Nested,
    Place,
    Relation,
    Stream,
    Subquery,
    Windowed,
)
from view_algebra.language.literals import computed_literal
from view_algebra.language.meeting import cast
from view_algebra.language.times import MOST_ELEMENTS
from view_algebra.language.types import BOOLEAN, CALENDAR, INT, STRING, VOID, Type, common
from view_algebra.language.walks import is_projection, rewrite, walk
from view_algebra.refusals import Wrong
from view_algebra.typed.order.literal_rows import columns_read, rows_read
from view_algebra.typed.relations.aliases import refuse_other_number


def table(rows: Sequence[Sequence[Expr]], names: Sequence[str], alias: str, place: Place) -> Constants:
    """VALUES. Each column has the common type of its values."""
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise Wrong(place, f"the rows have {widths[0]} and {widths[-1]} columns", "Give every row the same columns.")
    names = names or [f"col{number}" for number in range(1, widths[0] + 1)]
    refuse_other_number(names, widths[0], place)
    for value in (value for row in rows for value in row):
        if any(isinstance(part, (Aggregate, Windowed, Subquery)) for part in walk(value)):
            raise Wrong(value.place or place, "VALUES takes constants", "Put it into a subquery of its own in FROM.")
        if value.type.nested or value.type.length or value.type.name == "BINARY":
            raise Wrong(
                value.place or place, f"VALUES does not take {value.type}", "Put each of its parts into a column."
            )
    kinds = [_meeting(column, place) for column in zip(*rows, strict=True)]
    typed = tuple(tuple(cast(v, kind, implicit=True) for v, kind in zip(row, kinds, strict=True)) for row in rows)
    return Constants(typed, alias, tuple(zip(names, kinds, strict=True)), place)


def _meeting(column: Sequence[Expr], place: Place) -> Type:
    """The common type of the values of a column."""

    def wider(kind: Type, value: Expr) -> Type:
        if (met := common(kind, value.type)) is None:
            raise Wrong(value.place or place, f"VALUES mixes {kind} with {value.type}", "Cast one of them.")
        return met

    kind = reduce(wider, column, VOID)
    return STRING if kind == VOID else kind


def elements(array: Expr, place: Place) -> list[Expr]:
    """The elements of `array(1, 2)` or `sequence(0, 23)`. Raises Wrong unless they are literals."""
    name, arguments = (array.function, array.arguments) if isinstance(array, Call) else ("", ())
    if name == "array" and arguments and all(isinstance(e, Constant) for e in arguments):
        return [*arguments]
    bounds = [computed_literal(argument) for argument in arguments]
    numbers = [
        int(bound.value) for bound in bounds if isinstance(bound, Constant) and bound.type == INT and bound.value
    ]
    if name == "sequence" and len(numbers) == len(bounds):
        first, last, *steps = numbers
        step = steps[0] if steps else 1 if last >= first else -1
        if 0 <= (last - first) // step < MOST_ELEMENTS:
            return [Constant(str(number), INT) for number in range(first, last + (1 if step > 0 else -1), step)]
    way_out = (
        "Write VALUES (1), (2). To explode an array of each row, write CROSS JOIN LATERAL explode(tags) AS t(tag)."
    )
    if name == "sequence" and any(bound.type.name in CALENDAR for bound in bounds):
        way_out = (
            "Write two literals as its ends, such as DATE '2024-01-01' and DATE '2034-12-31', and filter the rows of"
            " the view: WHERE day <= current_date(). Or take the ends from groups: SELECT min(day), max(day)."
        )
    raise Wrong(place, "explode() without a source in FROM takes literals", way_out)


_SEEN_FROM_RIGHT = {"LEFT": "RIGHT", "RIGHT": "LEFT"}


def join_of(join: Joined) -> Relation:
    """The join, or records exploded by constants: one row per row of constants for which the condition holds."""
    records, other, kind = join.left, join.right, str(join.kind)
    if _gives_records(other):
        records, other, kind = other, records, _SEEN_FROM_RIGHT.get(kind, kind)
    if not _gives_records(records) or not isinstance(other, (Constants, Nested)):
        return join
    rows = rows_read(other)
    if rows is None:
        return join
    if kind in ("RIGHT", "FULL"):
        what = f"a {join.kind} JOIN of records cannot keep constants that match no record"
        way_out = (
            "Aggregate the records in a subquery with GROUP BY, and join that:"
            " … JOIN (SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM s GROUP BY 1) AS r ON r.day = days.day."
        )
        raise Wrong(join.place, what, way_out)
    names = [name for name, _ in columns_read(other)]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise Wrong(other.place, "constants need column names of their own", "Write … AS names(code, name).")
    element = Type("STRUCT", fields=columns_read(other))
    argument: Expr = Call("array", tuple(_struct(names, row, element) for row in rows), Type("ARRAY", element=element))
    if join.condition is not None:
        argument = Call("filter", (argument, _lambda(join.condition, other, element)), argument.type)
    generator = Generator(argument, columns_read(other), False, kind == "LEFT", other.alias, join.place, fields=True)
    if isinstance(records, Exploded):
        return replace(records, generators=(*records.generators, generator))
    return Exploded(records, (generator,), join.place)


def _gives_records(relation: Relation) -> bool:
    """True for a stream, a projection of one, or records that are exploded already."""
    projection = isinstance(relation, Nested) and is_projection(relation.query)
    return (
        projection
        or isinstance(relation, Stream)
        or (isinstance(relation, Exploded) and _gives_records(relation.relation))
    )


def with_explicit_type(value: Expr) -> Expr:
    """A value whose type Spark sees wherever it stands: NULL is cast, and no cast is implicit."""
    if isinstance(value, Constant) and value.value is None:
        return Call("cast", (NULL,), value.type)
    return replace(value, implicit=False) if isinstance(value, Call) else value


def _struct(names: Sequence[str], row: Mapping[Expr, Expr], kind: Type) -> Expr:
    pairs = zip(names, map(with_explicit_type, row.values()), strict=True)
    return Call("named_struct", tuple(part for name, value in pairs for part in (Constant(name, STRING), value)), kind)


def _lambda(condition: Expr, of: Named, kind: Type) -> Expr:
    """The condition of a join as a lambda over a row of constants."""
    variable = f"{of.alias} 0"

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Field) and part.relation == of.alias:
            return replace(part, relation=VARIABLE, path=(variable, *part.path))
        return None

    return Call("lambda", (Field(VARIABLE, (variable,), kind), rewrite(condition, change)), BOOLEAN)
