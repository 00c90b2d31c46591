"""Unique keys and orders: column sets that no two rows of a relation share, and the order in which rows come.

An order that decides a result must be total. Otherwise two reads of the same rows could give two results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from view_algebra.compiled import source_name
from view_algebra.language.above import Obstacle
from view_algebra.language.aggregates import COLLECTED_ONCE, EVENT_ORDER, RECORD_KEYS
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Hopped,
    Joined,
    Nested,
    OverValues,
    Place,
    Query,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
    Subquery,
    Windowed,
    bare_value,
    conjuncts,
)
from view_algebra.language.time_windows import window_key
from view_algebra.language.types import Type
from view_algebra.language.walks import (
    aliases_in,
    every_relation,
    has_windows,
    nested_in,
    relations_in,
    relations_named,
    renamed,
    walk,
    walk_all,
)
from view_algebra.typed.order.literal_rows import distinct_columns, rows_of, unique_together
from view_algebra.typed.scopes import Keys, Sorting, SortKey
from view_algebra.written.tables import HOLDS

_ROW_BY_ROW = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value")
"""Window functions that give equal rows different results. Others do so only if the frame counts rows."""


_MOST_KEYS = 8
"""Most keys kept per relation, so that joins of many relations compile quickly."""


def unique_keys(query: Query, views: Mapping[str, Keys]) -> Keys:
    """The unique keys of a query's rows that the compiler can prove."""
    if (rows := rows_of(query)) is not None:
        return frozenset(frozenset({query.columns[number][0]}) for number in distinct_columns(rows))
    if isinstance(query, Combined):
        every = frozenset({frozenset(n for n, _ in query.columns)})
        if query.operator == "UNION ALL":
            return _united_keys(query, views)
        return frozenset() if query.operator.endswith("ALL") else every
    return _outer_keys(query, _block_keys(query, views))


def _united_keys(query: Combined, views: Mapping[str, Keys]) -> Keys:
    """The keys of a UNION ALL whose sides are told apart by a literal column of their own."""
    if _is_hopped(query.left) and _is_hopped(query.right):
        return unique_keys(query.left, views)  # both sides have the same windows: in the calendar, and before it
    names = [name for name, _ in query.columns]
    sides = [renamed(side, names) for side in (*sides_of_union(query.left), *sides_of_union(query.right))]
    literals = tuple(tuple(o.expression for o in side.outputs) for side in sides if isinstance(side, Select))
    smallest = [min(unique_keys(side, views), key=lambda key: (len(key), sorted(key)), default=None) for side in sides]
    if len(literals) < len(sides) or None in smallest or len(set(names)) < len(names):
        return frozenset()
    inside = {name for key in smallest for name in key or ()}
    return frozenset(frozenset({*(names[n] for n in numbers), *inside}) for numbers in unique_together(literals))


def _is_hopped(query: Query) -> bool:
    return isinstance(query, Select) and isinstance(query.relation, Hopped)


def sides_of_union(query: Query) -> list[Query]:
    """The queries between which a UNION ALL stands, or the query itself."""
    if isinstance(query, Combined) and query.operator == "UNION ALL" and query.limit is None and query.offset is None:
        return [*sides_of_union(query.left), *sides_of_union(query.right)]
    return [query]


def _block_keys(query: Select, views: Mapping[str, Keys]) -> RowKeys:
    """The unique keys of the rows, or of the groups, that a block computes its outputs from."""
    keys = relation_keys(query.relation, views) if query.group is None else frozenset({frozenset(query.group)})
    for fixed in _fixed(query.where):
        keys = frozenset(key - {fixed} for key in keys)
    return keys


def incomplete_orders(query: Query, views: Mapping[str, Keys]) -> Iterator[Obstacle]:
    """The orders that decide a result and are not total."""
    if isinstance(query, Combined):
        yield from incomplete_orders(query.left, views)
        yield from incomplete_orders(query.right, views)
        names, ordered = dict(query.columns), {e.path[0] for o in query.order if isinstance(e := o.expression, Field)}
        if (query.limit is not None or query.offset is not None) and ordered != set(names):
            yield _incomplete(
                query.limit_place or query.place, "LIMIT picks rows by", [n for n in names if n not in ordered]
            )
        return
    for nested in nested_in(query.relation):
        yield from incomplete_orders(nested.query, views)
    keys = _block_keys(query, views)
    for part in walk_all(_in_order_of_report(query), None):
        if isinstance(part, Subquery):
            yield from incomplete_orders(part.query, views)
        if isinstance(part, Windowed):
            missing = lacking_in_window(part, keys)
            if missing or (by_rows(part) and not keys):
                yield _incomplete(part.place, f"{part.function}() OVER (…) depends on", [_label(e) for e in missing])
    if missing := lacking_in_limit(query, keys):
        yield _incomplete(query.limit_place or query.place, "LIMIT picks rows by", [_label(e) for e in missing])


RowKeys = frozenset[frozenset[Expr]]
"""The unique keys of the relation that a block reads, as sets of expressions."""


def relation_keys(relation: Relation | None, views: Mapping[str, Keys]) -> RowKeys:
    """The unique keys of a relation's rows that the compiler can prove."""
    match relation:
        case Stream():
            return frozenset({frozenset(Field(relation.alias, (name,), kind) for name, kind in RECORD_KEYS)})
        case Exploded():
            rows = relation.relation
            numbered = [g for g in relation.generators if g.positions or (not g.fields and _differ(g.argument, rows))]
            positions = [Field(g.alias, g.columns[0][:1], g.columns[0][1]) for g in numbered]
            keys_of_rows = relation_keys(rows, views) if len(positions) == len(relation.generators) else ()
            return frozenset(key | set(positions) for key in keys_of_rows)
        case Cells():
            types = dict(relation.columns)
            return frozenset({frozenset(Field(relation.alias, (k,), types[k]) for k in relation.keys)})
        case Read():
            return _named(views.get(relation.view, frozenset()), relation.alias, dict(relation.columns))
        case Nested():
            keys = _keys_of_versions(relation.query, views) or unique_keys(relation.query, views)
            return _named(keys, relation.alias, dict(relation.query.columns))
        case Constants(rows=rows, columns=columns, alias=alias):
            return frozenset(frozenset({Field(alias, columns[n][:1], columns[n][1])}) for n in distinct_columns(rows))
        case None:
            return frozenset({frozenset()})
        case Joined():
            return _joined(relation, views)
        case Hopped() | Sessions():
            return frozenset()
        case _:
            assert_never(relation)


def _keys_of_versions(query: Query, views: Mapping[str, Keys]) -> Keys:
    """The unique keys of a table's row versions that hold at one time. Empty for any other query."""
    if not set(HOLDS) <= {name for name, _ in query.columns}:
        return frozenset()
    tables = {source_name(stream.source) for stream in every_relation(query) if isinstance(stream, Stream)}
    return views.get(tables.pop(), frozenset()) if len(tables) == 1 else frozenset()


def _differ(array: Expr, relation: Relation) -> bool:
    """True if no two elements of the array can be equal."""
    if isinstance(array, Field) and isinstance(relation, Nested) and isinstance(below := relation.query, Select):
        sources = (o.expression for o in below.outputs if (o.name,) == array.path and relation.alias == array.relation)
        return any(below.relation is not None and _differ(source, below.relation) for source in sources)
    return isinstance(array, (Call, Aggregate, OverValues)) and array.function in _OF_DIFFERENT


_OF_DIFFERENT = ("sequence", "array_distinct", "array_union", "array_intersect", "array_except", COLLECTED_ONCE)
"""Functions whose result has no two equal elements."""


def _named(keys: Keys, alias: str, types: Mapping[str, Type]) -> RowKeys:
    return frozenset(frozenset(Field(alias, (name,), types[name]) for name in key) for key in keys)


def _joined(join: Joined, views: Mapping[str, Keys]) -> RowKeys:
    left, right = relation_keys(join.left, views), relation_keys(join.right, views)
    keys = {a | b for a in left for b in right}
    if join.kind in ("INNER", "LEFT") and any(key <= _bound(join.right, join.condition) for key in right):
        keys |= left  # each row on the left meets one row on the right
    if join.kind in ("INNER", "RIGHT") and any(key <= _bound(join.left, join.condition) for key in left):
        keys |= right
    return frozenset(sorted(keys, key=lambda key: (len(key), sorted(map(_sort_key, key))))[:_MOST_KEYS])


def _bound(side: Relation, condition: Expr | None) -> set[Expr]:
    """The columns that the condition equates with an expression that reads nothing of this side of the join."""
    own = aliases_in(side) | {
        generator.alias
        for relation in relations_in(side)
        if isinstance(relation, Exploded)
        for generator in relation.generators
    }
    return {column for column, other in _equated(condition) if own.isdisjoint(relations_named(other))}


def _fixed(condition: Expr | None) -> Iterable[Expr]:
    """The columns that a condition holds at one value, or in a query about an outer row, at one value per outer row."""
    return (_uncast(column) for column, other in _equated(condition) if _is_given(other))


def _equated(condition: Expr | None) -> Iterator[tuple[Expr, ...]]:
    """Each side of the equalities that a condition demands, with the other side."""
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            yield from (part.arguments, part.arguments[::-1])


def _is_given(value: Expr) -> bool:
    """True if a value is built from literals and columns of the outer row only."""
    return all(isinstance(part, (Constant, Call)) or (isinstance(part, Field) and part.outer) for part in walk(value))


def _uncast(column: Expr) -> Expr:
    """A column without a cast that widens an integer, which keeps unequal values unequal."""
    inner = bare_value(column)
    return inner if inner.type.integral and column.type.integral else column


def _in_order_of_report(query: Select) -> list[Expr]:
    """The expressions of a block in the order in which their mistakes are reported."""
    single = [e for e in (query.where, query.having) if e is not None]
    listed = [o.expression for o in query.outputs] + [o.expression for o in query.order]
    return [*listed, *(query.group or ()), *single]


def lacking_in_window(call: Windowed, keys: RowKeys) -> list[Expr]:
    """The columns that a window's order lacks to be total, if its results depend on them. Empty without a key."""
    decided = {*call.partition, *(o.expression for o in call.order)}
    return _missing(keys, decided) if by_rows(call) and not _is_of_peers(call, decided) else []


def _is_of_peers(call: Windowed, decided: Collection[Expr]) -> bool:
    """True if the call takes one of these values from the row itself or a peer, so that peers get the same value."""
    if call.function not in _OF_ONE_ROW or call.arguments[0] not in decided:
        return False
    if not call.frame.startswith("ROWS"):
        return True
    begins, ends = call.frame.removeprefix("ROWS BETWEEN ").split(" AND ")
    if call.function == "first_value":
        return begins in ("UNBOUNDED PRECEDING", "CURRENT ROW") and not ends.endswith("PRECEDING")
    if call.function == "last_value":
        return ends in ("CURRENT ROW", "UNBOUNDED FOLLOWING") and not begins.endswith("FOLLOWING")
    return call.frame == _WHOLE


def lacking_in_limit(query: Select, keys: RowKeys) -> list[Expr]:
    """The columns that ORDER BY lacks for a deterministic LIMIT: those of a key, or all if there is no key."""
    if query.limit is None and query.offset is None:
        return []
    decided = {o.expression for o in query.order}
    outputs = dict.fromkeys(o.expression for o in query.outputs)
    missing: list[Expr] = [e for e in outputs if e not in decided and not isinstance(e, Constant)]
    return missing if not missing or query.distinct or not keys else _missing(keys, decided)


def tells_peers_apart(call: Windowed) -> bool:
    """True if one more column in a window's order could change which rows its frame holds.

    A RANGE ends with the peers, the rows of equal order. The first row of the partition stays the first.
    """
    if call.function not in _OF_ONE_ROW or call.frame.startswith("ROWS") or call.frame.endswith("UNBOUNDED FOLLOWING"):
        return call.frame.startswith("RANGE BETWEEN CURRENT ROW")
    begins = not call.frame or call.frame.startswith("RANGE BETWEEN UNBOUNDED PRECEDING")
    return not (begins and call.function == "first_value" and not call.ignore_nulls)


_OF_ONE_ROW = ("first_value", "last_value", "nth_value")
"""Window functions that return the value of one row of the frame."""

_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def by_rows(call: Windowed) -> bool:
    """True if a window function may give equal rows different results."""
    return call.function in _ROW_BY_ROW or (call.frame.startswith("ROWS") and call.frame != _WHOLE)


def _missing(keys: RowKeys, decided: set[Expr]) -> list[Expr]:
    """The missing columns of the key that lacks the fewest, in a fixed order, because the order of a set varies."""
    lacking = [sorted(key - decided, key=_sort_key) for key in keys]
    return min(lacking, key=lambda columns: (len(columns), [_sort_key(c) for c in columns]), default=[])


def _sort_key(column: Expr) -> tuple[bool, str, str]:
    """The sort key of a column: partition before offset, other columns by name."""
    relation = column.relation if isinstance(column, Field) else repr(column)
    return _label(column) != EVENT_ORDER[1], relation, _label(column)


def _label(expression: Expr) -> str:
    if isinstance(expression, Field):
        return expression.path[-1]
    if isinstance(expression, (Call, Aggregate, Windowed)):
        return f"{expression.function}(…)"
    return "…"


_SHARED = (
    "Order by columns that no two rows share: of groups those of GROUP BY (and grouping(…) of each), "
    "of records kafka_partition and kafka_offset."
)


def _incomplete(place: Place, what: str, missing: Sequence[str]) -> Obstacle:
    way_out = f"Add to its ORDER BY: {', '.join(missing)}." if missing else _SHARED
    if missing and all(m == "…" or m.endswith("(…)") for m in missing):
        way_out = "Order by all of the group's columns."
    if any(re.fullmatch(r"position[ _]\d+", m) for m in missing):  # an element's position, unknown to explode()
        way_out = "Write posexplode(…), and add to its ORDER BY: kafka_partition, kafka_offset, and the position."
    return Obstacle(place, f"{what} an order that leaves ties", way_out)


def _outer_keys(query: Select, inner: RowKeys) -> Keys:
    shown = [output.name for output in query.outputs]
    named = [output for output in query.outputs if output.name and shown.count(output.name) == 1]
    names: dict[Expr, str] = {}
    for output in named:
        names.setdefault(output.expression, output.name)
        names.setdefault(window_key(output.expression), output.name)
    keys = {frozenset(names[e] for e in key) for key in inner if all(e in names for e in key)}
    if query.distinct and len(named) == len(shown):
        keys.add(frozenset(shown))
    if query.limit == 1:
        keys.add(frozenset())
    return frozenset(keys)


def sorting(query: Query, views: Mapping[str, Sorting]) -> Sorting:
    """The order of a query's rows. Empty if they come in any order."""
    if isinstance(query, Combined):
        shown: dict[Expr, str] = {Field("", (name,), kind): name for name, kind in query.columns}
    else:
        shown = {output.expression: output.name for output in reversed(query.outputs)}
    if query.order:
        keys = (key for key in query.order if not key.tie)
        return tuple(SortKey(shown.get(key.expression), key.descending, key.nulls_first) for key in keys)
    if isinstance(query, Combined) or query.group is not None or query.distinct or has_windows(query):
        return ()
    names = {e.path[0]: name for e, name in shown.items() if isinstance(e, Field) and len(e.path) == 1}
    return tuple(replace(key, column=names.get(key.column or "")) for key in sorting_of(query.relation, views))


def sorting_of(relation: Relation | None, views: Mapping[str, Sorting]) -> Sorting:
    """The order in which the rows of a relation come. Empty if they come in any order."""
    if isinstance(relation, Read):
        return views.get(relation.view, ())
    return sorting(relation.query, views) if isinstance(relation, Nested) else ()
