"""`retain`: keeps cells only for the records that the view's recent groups need.

A view that retains equals `SELECT * FROM (its SELECT) WHERE time >= since`. So every row must be kept or dropped as a
whole, by a time of one stream that every row has:

    SELECT date_trunc('day', o.ts) AS day, … FROM orders o LEFT JOIN payments p
    ON p.order_id = o.id AND p.ts >= o.ts - INTERVAL 15 MINUTES GROUP BY 1

Orders are kept if their day is not before `since`. A payment that joins one of them is at most 15 minutes older, so
payments are kept from `since` minus 15 minutes on. A stream without such a bound is kept completely.
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
from view_algebra.language.time_windows import hops, pane
from view_algebra.language.times import microseconds
from view_algebra.language.types import CALENDAR, TIMESTAMP
from view_algebra.language.walks import aliases_in, over_inputs, parts, relations_in, relations_named, walk
from view_algebra.refusals import Wrong
from view_algebra.split.equalities import gives_records
from view_algebra.split.joins import MATCHED_LEFT, MATCHED_RIGHT, NULLABLE_LEFT, NULLABLE_RIGHT

LONGEST = 36_500 * MICROSECONDS["day"]
"""Longest bound in microseconds: `since` minus a longer one would leave the calendar."""


def retaining(query: Query, place: Place) -> tuple[str, Query]:
    """The output by which old rows leave, and the query with the retention of its streams. `place`: the view's."""
    by = _time(query) if isinstance(query, Select) else None
    if by is None:
        way_out = (
            "Select one, and GROUP BY it, for example date_trunc('day', ts) or window(ts, '1 hour').start."
            " Or leave it out."
        )
        raise Wrong(place, "retain needs one time to go by, of a stream that has a record in every row", way_out)
    assert isinstance(query, Select)
    shown, time, alias = by
    _refuse_other_rows(query, time, place)
    return shown, _with_retained(query, time, alias)


def _time(query: Select) -> tuple[str, Expr, str] | None:
    """The output's name, the time and the stream's alias of the only time that a query groups by and shows.

    Without GROUP BY, showing it is enough. Every row must have it from one stream, otherwise the result is None.
    """
    shown = {output.expression: output.name for output in query.outputs}
    candidates = shown if query.group is None else dict.fromkeys(query.group)
    calendar_times = (time for time in candidates if time.type.name in CALENDAR and pane(time) == time)
    times = [(time, alias) for time in calendar_times if (alias := _alias_in_every_row(query, time)) is not None]
    if len(times) != 1 or times[0][0] not in shown:
        return None
    [(time, alias)] = times
    return shown[time], time, alias


def _alias_in_every_row(query: Select, time: Expr) -> str | None:
    """The alias of the stream of a time's columns, if every row has a record of this stream."""
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
            in_left = kind not in NULLABLE_LEFT and _is_always_there(alias, left)
            return in_left or (kind not in NULLABLE_RIGHT and _is_always_there(alias, right))
        case _:
            return False


def _refuse_other_rows(query: Select, time: Expr, place: Place) -> None:
    """Raises `Wrong` if old rows, which have left, could decide the values of a row."""
    hopping = next((key for key in query.group or () if hops(key)), None)
    if hopping is not None:  # a separate table lists the windows
        raise Wrong(
            hopping.place,
            "retain does not allow a hopping window",
            "Take one that tumbles, for example window(ts, '5 minutes').",
        )
    every = (*parts(query), *(part for key in query.group or () for part in walk(key)))
    asked = next((part for part in every if isinstance(part, Subquery)), None)
    if asked is not None:
        raise Wrong(asked.place, "retain does not allow a subquery", "Put the subquery into a view over this one.")
    over = next((part for part in every if isinstance(part, Windowed) and time not in part.partition), None)
    if over is not None:
        way_out = "Put it into a view over this one, or add the time to PARTITION BY."
        raise Wrong(over.place, "retain does not allow a window function over groups of other times", way_out)
    if query.limit is not None or query.offset is not None:
        raise Wrong(query.limit_place or place, "retain does not allow LIMIT", "Put LIMIT into a view over this one.")


def _with_retained(query: Select, time: Expr, alias: str) -> Select:
    """The query with the retention of its streams. The stream with this alias retains by the time."""
    begins = _not_before(time)
    kept = ({} if begins is None else _bounded(query, begins)) | {alias: Retained(time, 0)}

    def retained(relation: Relation) -> Relation:
        if not isinstance(relation, Stream):
            return over_inputs(relation, retained)
        return replace(relation, retained=kept.get(relation.alias)) if gives_records(relation) else relation

    assert query.relation is not None
    return replace(query, relation=retained(query.relation))


def _bounded(query: Select, begins: Field) -> dict[str, Retained]:
    """The retention of streams that conditions bound by another stream's column, each with its narrowest bound."""
    bounds: dict[str, Retained] = {}
    for condition, aliases in _met(query.relation, query.where):
        for column, longer in _bounds(condition, begins):
            narrowest = bounds.get(column.relation)
            if column.relation in aliases and (narrowest is None or longer < narrowest.longer):
                bounds[column.relation] = Retained(column, longer)
    return bounds


def _not_before(time: Expr) -> Field | None:
    """The column that a time is, or truncates to the beginning of a day, hour or window, or None for other times."""
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
    """Conditions, each with the aliases of the relations whose rows are useless unless they meet it.

    A condition is a comparison, so a row of NULLs in place of a missing partner never meets it.
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
    """Columns of other relations, with the most microseconds that they precede `begins` under a condition.

    `p.ts >= o.ts - INTERVAL 15 MINUTES` and `o.ts <= p.ts + INTERVAL 15 MINUTES` both bound `p.ts`.
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
    """A column and the microseconds added to it."""
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
