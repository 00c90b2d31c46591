"""Is the result the same each time it is read? An order that decides something must be total.

Tracked per relation: its unique keys, each a set of columns that no two rows share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from view_algebra.aggregates import EVENT_ORDER
from view_algebra.expressions import (
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Expr,
    Field,
    Joined,
    Nested,
    Query,
    Read,
    Relation,
    Select,
    Stream,
    Subquery,
    Windowed,
    conjuncts,
    walk,
)
from view_algebra.refusals import Span, Wrong
from view_algebra.types import BIGINT, INT

Keys = frozenset[frozenset[str]]
"""Unique keys as sets of output names; the empty set is the key of a relation of one row."""

_ROW_BY_ROW = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value")
"""Window functions that give equal rows different results; others do where the frame counts rows."""

_MOST_KEYS = 8
"""More keys than this are forgotten, so that joins of many relations stay quick."""


def unique_keys(query: Query, views: Mapping[str, Keys]) -> Keys:
    """The unique keys of what a query gives; refuses what is not the same each time."""
    if isinstance(query, Combined):
        unique_keys(query.left, views)
        unique_keys(query.right, views)
        names = [name for name, _ in query.columns]
        keys = frozenset() if query.operator.endswith("ALL") else frozenset({frozenset(names)})
        if query.limit is not None or query.offset is not None:
            ordered = {e.path[0] for o in query.order if isinstance(e := o.expression, Field)}
            if ordered != set(names) and not any(key <= ordered for key in keys):
                _refuse(query.limit_place or query.place, "LIMIT", [n for n in names if n not in ordered])
        return keys
    inner = relation_keys(query.relation, views)
    for expression in _expressions(query):
        for part in walk(expression):
            if isinstance(part, Subquery):
                unique_keys(part.query, views)
    if query.group is not None:
        inner = frozenset({frozenset(query.group)})
    for fixed in _fixed(query.where):
        inner = frozenset(key - {fixed} for key in inner)
    for expression in _expressions(query):
        for part in walk(expression):
            if isinstance(part, Windowed):
                _check_window(part, inner)
    _check_limit(query, inner)
    return _outer_keys(query, inner)


RowKeys = frozenset[frozenset[Expr]]
"""Unique keys of what a block reads, as sets of expressions."""


def relation_keys(relation: Relation | None, views: Mapping[str, Keys]) -> RowKeys:
    """What tells the rows of a relation apart, as far as it is known."""
    match relation:
        case Stream():
            place = (("kafka_partition", INT), ("kafka_offset", BIGINT))
            return frozenset({frozenset(Field(relation.alias, (name,), kind) for name, kind in place)})
        case Cells():
            types = dict(relation.columns)
            return frozenset({frozenset(Field(relation.alias, (k,), types[k]) for k in relation.keys)})
        case Read():
            return _named(views.get(relation.view, frozenset()), relation.alias, dict(relation.columns))
        case Nested():
            return _named(unique_keys(relation.query, views), relation.alias, dict(relation.query.columns))
        case Joined():
            return _joined(relation, views)
    return frozenset()


def _named(keys: Keys, alias: str, types: Mapping[str, object]) -> RowKeys:
    from view_algebra.types import Type

    return frozenset(
        frozenset(Field(alias, (name,), kind) for name in key if isinstance(kind := types[name], Type)) for key in keys
    )


def _joined(join: Joined, views: Mapping[str, Keys]) -> RowKeys:
    left, right = relation_keys(join.left, views), relation_keys(join.right, views)
    keys = {a | b for a in left for b in right}
    equal = set(_equalities(join.condition))
    if join.kind in ("INNER", "LEFT") and any(key <= equal for key in right):
        keys |= left  # each row on the left meets one row on the right
    if join.kind in ("INNER", "RIGHT") and any(key <= equal for key in left):
        keys |= right
    return frozenset(sorted(keys, key=len)[:_MOST_KEYS])


def _equalities(condition: Expr | None) -> Iterable[Expr]:
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            yield from part.arguments


def _fixed(condition: Expr | None) -> Iterable[Expr]:
    """Columns that a condition holds at one value."""
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            a, b = part.arguments
            if isinstance(b, Constant):
                yield a
            elif isinstance(a, Constant):
                yield b


def _expressions(query: Select) -> list[Expr]:
    single = [e for e in (query.where, query.having) if e is not None]
    return (
        [o.expression for o in query.outputs] + [o.expression for o in query.order] + list(query.group or ()) + single
    )


def lacking_in_window(call: Windowed, keys: RowKeys) -> list[Expr]:
    """The columns that the order of a window function lacks to be total, where that matters; none without a key."""
    return _missing(keys, {*call.partition, *(o.expression for o in call.order)}) if _by_rows(call) else []


def lacking_in_limit(query: Select, keys: RowKeys) -> list[Expr]:
    """The columns that ORDER BY lacks for LIMIT to pick the same rows each time: those of a key, else all."""
    if query.limit is None and query.offset is None:
        return []
    given = {o.expression for o in query.order}
    outputs = dict.fromkeys(o.expression for o in query.outputs)
    missing: list[Expr] = [e for e in outputs if e not in given and not isinstance(e, Constant)]
    return missing if not missing or query.distinct or not keys else _missing(keys, given)


def _by_rows(call: Windowed) -> bool:
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return call.function in _ROW_BY_ROW or (call.frame.startswith("ROWS") and call.frame != whole)


def _check_window(call: Windowed, keys: RowKeys) -> None:
    missing = lacking_in_window(call, keys)
    if missing or (_by_rows(call) and not keys):
        _refuse(call.place, f"{call.function}() OVER (…)", [_label(e) for e in missing], of_window=True)


def _check_limit(query: Select, inner: RowKeys) -> None:
    missing = lacking_in_limit(query, inner)
    if missing:
        _refuse(query.limit_place or query.place, "LIMIT", [_label(e) for e in missing])


def _missing(keys: RowKeys, given: set[Expr]) -> list[Expr]:
    """What the key lacks that lacks fewest."""
    return min((sorted(key - given, key=_in_event_order) for key in keys), key=len, default=[])


def _in_event_order(expression: Expr) -> tuple[bool, str]:
    return _label(expression) != EVENT_ORDER[1], _label(expression)


def _label(expression: Expr) -> str:
    if isinstance(expression, Field):
        return expression.path[-1]
    if isinstance(expression, (Call, Aggregate, Windowed)):
        return f"{expression.function}(…)"
    return "…"


def _refuse(place: Span | None, what: str, missing: Sequence[str], of_window: bool = False) -> None:
    where = f"{what} picks rows by" if not of_window else f"{what} depends on"
    way_out = f"Add to its ORDER BY: {', '.join(missing)}." if missing else "Order by columns that no two rows share."
    if missing and all(m == "…" or m.endswith("(…)") for m in missing):
        way_out = "Order by all of the group's columns."
    raise Wrong(place, f"{where} an order that leaves ties", way_out)


def _outer_keys(query: Select, inner: RowKeys) -> Keys:
    names: dict[Expr, str] = {}
    for output in query.outputs:
        names.setdefault(output.expression, output.name)
    keys = {frozenset(names[e] for e in key) for key in inner if all(e in names for e in key)}
    if query.distinct:
        keys.add(frozenset(o.name for o in query.outputs))
    if query.limit == 1:
        keys.add(frozenset())
    return frozenset(keys)
