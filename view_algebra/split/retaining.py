"""`retain`: of which records of a stream cells are kept, where groups of long ago leave.

A view that retains equals `SELECT * FROM (its SELECT) WHERE time >= since`. So each row of it must be kept or left out
as a whole, by a time that every row has of one stream:

    SELECT date_trunc('day', o.ts) AS day, … FROM orders o LEFT JOIN payments p
    ON p.order_id = o.id AND p.ts >= o.ts - INTERVAL 15 MINUTES GROUP BY 1

Of `orders` those are kept whose day is not before `since`. A payment that is met by one of them is at most 15 minutes
older than it, so of `payments` those are kept that are not before `since` minus 15 minutes. What no condition bounds so
is kept whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from view_algebra.language.expressions import (
    Call,
    Constant,
    Exploded,
    Expr,
    Field,
    Joined,
    Place,
    Query,
    Relation,
    Retained,
    Select,
    Stream,
    Subquery,
    Windowed,
    conjuncts,
)
from view_algebra.language.lengths import MICROSECONDS
from view_algebra.language.relations import aliases_in, over_inputs, relations_in
from view_algebra.language.time_windows import hops, pane
from view_algebra.language.times import microseconds
from view_algebra.language.types import CALENDAR, TIMESTAMP
from view_algebra.language.walks import parts, relations_named, walk
from view_algebra.refusals import Wrong
from view_algebra.split.joins import MATCHED_LEFT, MATCHED_RIGHT, NULLABLE_LEFT, NULLABLE_RIGHT
from view_algebra.split.unbounded import gives_records

LONGEST = 36_500 * MICROSECONDS["day"]
"""A bound that is longer is none: `since` minus it would leave the calendar."""


def retaining(query: Query, place: Place) -> tuple[str, Query]:
    """The output by which rows of long ago leave, and the query with what its streams retain; `place`: of the view."""
    found = _time(query) if isinstance(query, Select) else None
    if found is None:
        way_out = (
            "Select one, and GROUP BY it, for example date_trunc('day', ts) or window(ts, '1 hour').start; or leave it"
            " out."
        )
        raise Wrong(place, "retain without one time to go by, of a stream that has a record in every row", way_out)
    assert isinstance(query, Select)
    shown, time, alias = found
    _refuse_other_rows(query, time, place)
    return shown, _with_retained(query, time, alias)


def _time(query: Select) -> tuple[str, Expr, str] | None:
    """The one time that a query groups by and shows, or of rows shows, if every row has it of one stream: under which
    name it is shown, the time, and the alias of the stream.
    """
    shown = {output.expression: output.name for output in query.outputs}
    candidates = shown if query.group is None else dict.fromkeys(query.group)
    of_times = (each for each in candidates if each.type.name in CALENDAR and pane(each) == each)
    times = [(each, alias) for each in of_times if (alias := _stream_of(query, each)) is not None]
    if len(times) != 1 or times[0][0] not in shown:
        return None
    [(time, alias)] = times
    return shown[time], time, alias


def _stream_of(query: Select, time: Expr) -> str | None:
    """The alias of the stream of whose columns a time is, if every row has a record of it."""
    relation = query.relation.relation if isinstance(query.relation, Exploded) else query.relation
    named = relations_named(time)
    if relation is None or not named:
        return None
    if isinstance(relation, Stream):
        return relation.alias
    alias, *others = named
    return alias if not others and _is_always_there(alias, relation) else None


def _is_always_there(alias: str, relation: Relation) -> bool:
    match relation:
        case Stream():
            return relation.alias == alias and gives_records(relation)
        case Joined(left=left, right=right, kind=kind):
            of_left = kind not in NULLABLE_LEFT and _is_always_there(alias, left)
            return of_left or (kind not in NULLABLE_RIGHT and _is_always_there(alias, right))
        case _:
            return False


def _refuse_other_rows(query: Select, time: Expr, place: Place) -> None:
    """What a row shows must not be decided by rows of long ago, which are not there."""
    hopping = next((key for key in query.group or () if hops(key)), None)
    if hopping is not None:  # which windows there are is a table of its own
        raise Wrong(
            hopping.place,
            "retain beside a hopping window",
            "Take one that tumbles, for example window(ts, '5 minutes').",
        )
    every = (*parts(query), *(part for key in query.group or () for part in walk(key)))
    asked = next((part for part in every if isinstance(part, Subquery)), None)
    if asked is not None:
        raise Wrong(asked.place, "retain beside a subquery", "Put the subquery into a view over this one.")
    over = next((part for part in every if isinstance(part, Windowed) and time not in part.partition), None)
    if over is not None:
        way_out = "Put it into a view over this one, or add the time to PARTITION BY."
        raise Wrong(over.place, "retain beside a window function over groups of other times", way_out)
    if query.limit is not None or query.offset is not None:
        raise Wrong(query.limit_place or place, "retain beside LIMIT", "Put LIMIT into a view over this one.")


def _with_retained(query: Select, time: Expr, alias: str) -> Select:
    """The query, whose streams say what they retain: the one of this alias by the time."""
    begins = _not_before(time)
    kept = ({} if begins is None else _bounded(query, begins)) | {alias: Retained(time, 0)}

    def retained(relation: Relation) -> Relation:
        if not isinstance(relation, Stream):
            return over_inputs(relation, retained)
        return replace(relation, retained=kept.get(relation.alias)) if gives_records(relation) else relation

    assert query.relation is not None
    return replace(query, relation=retained(query.relation))


def _bounded(query: Select, begins: Field) -> dict[str, Retained]:
    """The streams that conditions bound by a column of another, each by the narrowest bound."""
    bounds: dict[str, Retained] = {}
    for condition, aliases in _met(query.relation, query.where):
        for column, longer in _bounds(condition, begins):
            known = bounds.get(column.relation)
            if column.relation in aliases and (known is None or longer < known.longer):
                bounds[column.relation] = Retained(column, longer)
    return bounds


def _not_before(time: Expr) -> Field | None:
    """The column of whose value a time is the beginning of the day, of the hour, or is itself; None of any other."""
    match time:
        case Field():
            return time if time.type == TIMESTAMP else None
        case (
            Call(function="date_trunc", arguments=(_, of))
            | Call(function="cast" | "to_date", arguments=(of,))
            | Call(function="trunc" | "window_start", arguments=(of, *_))
        ):
            return _not_before(of) if of.type.name in CALENDAR else None
        case _:
            return None


def _met(relation: Relation | None, where: Expr | None) -> Iterator[tuple[Expr, set[str]]]:
    """Conditions, and the aliases of the relations of which no row is of any use that does not meet them.

    Each is a comparison, which no row of NULLs meets that stands in the place of a partner.
    """
    if relation is None:
        return
    yield from ((condition, aliases_in(relation)) for condition in conjuncts(where))
    for joined in relations_in(relation):
        if isinstance(joined, Joined):
            matched = aliases_in(joined.left) if joined.kind in MATCHED_LEFT else set()
            matched |= aliases_in(joined.right) if joined.kind in MATCHED_RIGHT else set()
            yield from ((condition, matched) for condition in conjuncts(joined.condition))


def _bounds(condition: Expr, begins: Field) -> Iterator[tuple[Field, int]]:
    """The columns of other relations that are at most so many microseconds before one, where a condition is met.

    `p.ts >= o.ts - INTERVAL 15 MINUTES` says so of `p.ts`, and so does `o.ts <= p.ts + INTERVAL 15 MINUTES`.
    """
    if not isinstance(condition, Call) or condition.function not in (">=", ">", "<=", "<", "="):
        return
    left, right = map(_shifted, condition.arguments)
    pairs = [(left, right)] if condition.function[0] in ">=" else []
    pairs += [(right, left)] if condition.function[0] in "<=" else []
    for later, earlier in pairs:
        if later and earlier and earlier[0] == begins and later[0].relation != begins.relation:
            longer = max(0, later[1] - earlier[1])
            if longer <= LONGEST:
                yield later[0], longer


def _shifted(side: Expr) -> tuple[Field, int] | None:
    """A column, and how many microseconds are added to it."""
    match side:
        case Field(type=kind) if kind == TIMESTAMP:
            return side, 0
        case Call(function="+ interval" | "- interval", arguments=(Field(type=kind) as column, Constant() as length)):
            unit = str(length.value).split()[-1].rstrip("s")
            if kind != TIMESTAMP or unit not in MICROSECONDS:
                return None
            shift = microseconds(length, side.place)
            return column, shift if side.function == "+ interval" else -shift
        case _:
            return None
