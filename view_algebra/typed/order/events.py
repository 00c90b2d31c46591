"""The order of events: it orders the records that a block reads if Spark leaves their order open.

A subquery of records passes on the time and the log position of each record, though its author did not select them.
Without them the block above it has no order of events for `last(x)` and for ties. Spark gets the same edit when it runs
the author's SELECT. `*` still means the columns that the author selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from view_algebra.compiled import changes_name, source_name
from view_algebra.language.aggregates import BY_EVENT_ORDER, EVENT_ORDER
from view_algebra.language.expressions import (
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Joined,
    NeedsRecords,
    Nested,
    Output,
    Place,
    Query,
    Read,
    Relation,
    Select,
    Stream,
)
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import CALENDAR, INT
from view_algebra.language.walks import (
    expressions_of,
    has_joins,
    is_of_plain_rows,
    is_of_rows,
    nested_in,
    over_nested,
    relations_in,
    relations_named,
    walk_all,
)
from view_algebra.record_columns import LOG_TIME
from view_algebra.refusals import Wrong
from view_algebra.typed.names import find
from view_algebra.typed.order.keys import RowKeys, relation_keys, sides_of_union, sorting
from view_algebra.typed.scopes import Context, Scope
from view_algebra.written.tables import first_known


def event_order(
    scope: Scope, place: Place, function: str = "", of: Sequence[Expr] = ()
) -> tuple[str, tuple[Expr, ...]]:
    """The order of the records that a block reads, as Spark SQL and as expressions.

    function: the aggregate, if this order alone decides it
    of: the values to put in order
    """
    one = BY_EVENT_ORDER.get(function, "max_by")
    if function and scope.rows.records is not None and sorting(scope.rows.records, scope.context.sortings):
        way_out = f"Leave its ORDER BY out, or write {one}(x, t), or listagg(x) WITHIN GROUP (ORDER BY t)."
        raise Wrong(place, f"{function}() cannot go by the order of a subquery", way_out)
    way_out = f"Write {one}(x, t), listagg(x) WITHIN GROUP (ORDER BY x) or sort_array(collect_list(x))."
    if isinstance(scope.rows.relation, Joined):
        of_join = _join_order(scope.rows.relation, scope.context, place)
        if of_join is None:
            return _missing("the rows of this join have no order of events", way_out, place)
        _, (texts, columns) = of_join
        return ", ".join(texts), columns
    if (
        isinstance(scope.rows.relation, Exploded)
        and (order := _exploded_order(scope.rows.relation, of, scope, place)) is not None
    ):
        return ", ".join(order[0]), order[1]
    records = scope.rows.records if len(scope.relations) == 1 else None
    if records is not None and (extended := with_order_columns(records, scope.context)) is not None:
        (alias,) = scope.relations
        return ", ".join(order_columns(extended)), _columns(alias, extended, place)
    if not scope.streams or (len(scope.relations) != 1 and not reads_changes(scope)):
        if isinstance(scope.rows.relation, Exploded):
            way_out = "Write max(struct(t, x)).x for the last x by t, or min(struct(t, x)).x for the first."
        elif not scope.above and scope.rows.records is None:
            way_out = "Name the source alone in FROM."
        elif not scope.above:
            way_out = "Give kafka_offset, and columns like it, another name in the subquery: it has to pass them on."
        return _missing("these rows have no order of events", way_out, place)
    ((alias, source),) = scope.streams.items()
    texts, columns = of_events(Stream(source, alias, place), scope.context)
    return ", ".join(texts), columns


def _missing(reason: str, way_out: str, place: Place) -> tuple[str, tuple[Expr, ...]]:
    """An order of events that the rows read do not give. The placement finds it in the tree."""
    return "NULL", (NeedsRecords(reason, way_out, place=place),)


def _exploded_order(relation: Exploded, values: Sequence[Expr], scope: Scope, place: Place) -> OrderKeys | None:
    """The order of the exploded records, for values of these records: all rows of one record share it."""
    below = relation.relation
    if not isinstance(below, (Stream, Nested)) or any(relations_named(value) - {below.alias} for value in values):
        return None
    if isinstance(below, Stream):
        return of_events(below, scope.context)
    extended = _ordered_subqueries(below, scope.context).get(below.alias)
    if extended is None:
        return None
    texts = tuple(f"{spark_name(below.alias)}.{name}" for name in order_columns(extended))
    return texts, _columns(below.alias, extended, place)


def _join_order(join: Joined, context: Context, place: Place) -> tuple[Relation, OrderKeys] | None:
    """The order of events on one side of a join, then on the next, then the other columns that tell its rows apart.

    A side that decides no row is left out: in a join of orders and their users, the users. None if no side has events.
    The subqueries in the join pass on the columns of the order.
    """
    subqueries = _ordered_subqueries(join, context)
    relation = _over_subqueries(join, subqueries)
    sides = [side for side in relations_in(join) if isinstance(side, (Stream, Read, Nested, Constants))]
    orders: list[OrderKeys] = []
    others: list[Field] = []
    keys = relation_keys(relation, context.keys)
    for side, own in _deciding(sides, keys, lambda side: isinstance(side, Stream) or side.alias in subqueries):
        if isinstance(side, Stream):
            orders.append(of_events(side, context))
        elif side.alias in subqueries:
            names = order_columns(subqueries[side.alias])
            texts = tuple(f"{spark_name(side.alias)}.{name}" for name in names)
            orders.append((texts, _columns(side.alias, subqueries[side.alias], place)))
        else:
            others += own
    if not orders or any(part.type.nested or part.type.name == "BINARY" for part in others):
        return None
    orders.append((tuple(f"{spark_name(part.relation)}.{spark_name(part.path[0])}" for part in others), tuple(others)))
    order = tuple(chain.from_iterable(t for t, _ in orders)), tuple(chain.from_iterable(c for _, c in orders))
    return relation, order


Side = Stream | Read | Nested | Constants


def _deciding(
    sides: Sequence[Side], keys: RowKeys, with_events: Callable[[Side], bool]
) -> Iterator[tuple[Side, list[Field]]]:
    """The fewest sides of a join that tell its rows apart, those with events first, each with its key columns."""
    candidates: list[list[list[Field]]] = []
    for key in keys:
        parts = sorted((part for part in key if isinstance(part, Field)), key=lambda part: part.path)
        own = [[part for part in parts if part.relation == side.alias] for side in sides]
        if sum(map(len, own)) == len(key):
            candidates.append(own)

    def preferred(own: list[list[Field]]) -> tuple[bool, int, list[bool]]:
        named = [bool(columns) for columns in own]
        eventless = not any(named_ and with_events(side) for side, named_ in zip(sides, named, strict=True))
        return eventless, sum(named), [not has_own for has_own in named]

    few = min(candidates, key=preferred, default=[])
    return ((side, own) for side, own in zip(sides, few, strict=False) if own)


def _columns(alias: str, query: Query, place: Place) -> tuple[Expr, ...]:
    kinds = dict(query.columns)
    return tuple(Field(alias, (name,), kinds[name], place=place) for name in order_columns(query))


def source_with_order(scope: Scope) -> Nested | None:
    """The subquery that a block reads, passing on the order of events, or None if its rows are in no such order."""
    rows, context = scope.rows, scope.context
    below = None if rows.in_order is None else with_order_columns(rows.in_order, context)
    return replace(rows.relation, query=below) if isinstance(rows.relation, Nested) and below is not None else None


def with_ordered_subqueries(block: Select, scope: Scope) -> Select:
    """The block. The subqueries in its FROM pass on the order of events, if the block names columns of it."""
    columns = {nested.alias: dict(nested.query.columns) for nested in nested_in(block.relation)}
    expressions = [*expressions_of(block), *(generator.argument for generator in scope.generators)]
    fields = (part for part in walk_all(expressions, None) if isinstance(part, Field) and not part.outer)
    lacking = any(field.path[0] not in columns.get(field.relation, field.path) for field in fields)
    if not lacking or block.relation is None:
        return block
    return replace(block, relation=_over_subqueries(block.relation, _ordered_subqueries(block.relation, scope.context)))


def _ordered_subqueries(relation: Relation, context: Context) -> dict[str, Query]:
    """The subqueries in a FROM whose rows are in the order of events, by alias, passing on that order."""
    ordered = [nested for nested in nested_in(relation) if is_in_order(nested.query, windows=False)]
    extended = ((nested.alias, with_order_columns(nested.query, context)) for nested in ordered)
    return {alias: below for alias, below in extended if below is not None}


def _over_subqueries(relation: Relation, subqueries: Mapping[str, Query]) -> Relation:
    return over_nested(relation, lambda nested: replace(nested, query=subqueries.get(nested.alias, nested.query)))


def _order_of(relation: Relation, context: Context) -> tuple[Relation, OrderKeys] | None:
    """The order of events of a relation, and the same relation, passing on the columns of that order."""
    if isinstance(relation, Stream):
        return relation, of_events(relation, context)
    assert isinstance(relation, Joined)
    return _join_order(relation, context, relation.place)


def of_events(stream: Stream, context: Context) -> OrderKeys:
    """The time, the partition and the offset of a stream's records, as Spark SQL and as expressions.

    A record without an event time is older than every record that has one, as NULL is in Spark.
    """
    return _ordered(stream, context.orders[stream.source], context)


def reads_changes(scope: Scope) -> bool:
    """True if a block reads only a table's changes, as the table itself does."""
    return [changes_name(source_name(source)) == source for source in scope.streams.values()] == [True]


def in_the_log(scope: Scope, place: Place) -> OrderKeys:
    """The order of a table's records in the log."""
    ((alias, source),) = scope.streams.items()
    return _ordered(Stream(source, alias, place), (LOG_TIME,), scope.context)


def _ordered(stream: Stream, times: Sequence[str], context: Context) -> OrderKeys:
    relations = {stream.alias: context.streams[stream.source]}
    alias = spark_name(stream.alias)
    columns: list[Expr] = [find([stream.alias, name], relations, stream.place) for name in times]
    texts = [f"{alias}.{spark_name(name)}" for name in times]
    if not times[-1].startswith("kafka_"):  # a declared time may be NULL
        least = CALENDAR[columns[-1].type.name][0]
        columns.append(Constant(least.partition("'")[2].rstrip("'"), columns[-1].type))
        texts.append(least)
    time = columns[0] if len(columns) == 1 else call("coalesce", columns, stream.place)
    where = [find([stream.alias, name], relations, stream.place) for name in EVENT_ORDER[1:]]
    text = texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"
    return (text, *(f"{alias}.{name}" for name in EVENT_ORDER[1:])), (time, *where)


ORDER_COLUMNS = ("kafka_time", "kafka_partition", "kafka_offset")
"""The columns passed on. No declared column's name begins like these, and `*` leaves them out."""

_MORE = "kafka_order_"
"""The prefix of further columns that the rows of a join pass on."""

OrderKeys = tuple[tuple[str, ...], tuple[Expr, ...]]
"""Keys, as Spark SQL and as expressions."""


def order_columns(query: Query) -> tuple[str, ...]:
    """The names of the columns that a subquery passes on, in their sort order."""
    names = {name.lower(): name for name, _ in query.columns}
    more = (name for name, _ in query.columns if name.startswith(_MORE))
    return (*(names[name] for name in ORDER_COLUMNS if name in names), *more)


def order_columns_of_table(order: Sequence[str]) -> dict[str, str]:
    """The columns that a table's row passes on: the time and the log position of its newest record."""
    return dict(zip(ORDER_COLUMNS, (first_known(order), *EVENT_ORDER[1:]), strict=True))


def has_order_columns(query: Query) -> bool:
    """True if the query is a table that passes on the log positions of its records."""
    named = set(ORDER_COLUMNS) <= {name for name, _ in query.columns}
    return named and isinstance(query, Select) and any(map(_is_of_changes, relations_in(query.relation)))


def _is_of_changes(relation: Relation) -> bool:
    return isinstance(relation, Stream) and changes_name(source_name(relation.source)) == relation.source


def is_in_order(query: Query, *, windows: bool = True) -> bool:
    """True if each row is a record, a table's newest row for a key, or a row of a join, also in a UNION ALL.

    It is false for GROUP BY and DISTINCT, and unless `windows`, for window functions. A join may still lack an order of
    events.
    """
    if has_order_columns(query):
        return True
    if isinstance(query, Combined):
        plain = query.operator == "UNION ALL" and query.limit is None and query.offset is None
        return plain and is_in_order(query.left, windows=windows) and is_in_order(query.right, windows=windows)
    from_rows = is_of_rows if windows else is_of_plain_rows
    below = query.relation if from_rows(query) else None
    return isinstance(below, (Stream, Joined)) or (
        isinstance(below, Nested) and is_in_order(below.query, windows=windows)
    )


def with_order_columns(query: Query, context: Context) -> Query | None:
    """A query of ordered rows, extended by their order for Spark too, or None if it cannot be extended."""
    if isinstance(query, Combined):
        sides = sides_of_union(query)
        return _united(query, [_numbered(side, str(number), context) for number, side in enumerate(sides)])
    if has_order_columns(query):
        return query
    names = {output.name.lower() for output in query.outputs}
    if query.syntax is None:
        return None
    if context.edits.of(query.syntax).outputs and set(ORDER_COLUMNS) <= names:
        return query
    relation = query.relation
    if isinstance(relation, Nested):
        below = with_order_columns(relation.query, context)
        if below is None:
            return None
        relation, shown = replace(relation, query=below), order_columns(below)
        kinds = dict(below.columns)
        texts, columns = shown, tuple[Expr, ...](Field(relation.alias, (name,), kinds[name]) for name in shown)
    else:
        assert relation is not None
        ordered = _order_of(relation, context)
        if ordered is None:
            return None
        relation, (texts, columns) = ordered
    shown = (*ORDER_COLUMNS, *(f"{_MORE}{number}" for number in range(len(texts) - len(ORDER_COLUMNS))))
    own = {output.name.lower(): output.expression for output in query.outputs}
    if any(name in own and own[name] != e for name, e in zip(shown, columns, strict=True)):
        return None  # the author's own column of this name
    more = [column for column in zip(shown, texts, columns, strict=True) if column[0] not in own]
    for name, text, _ in more:
        context.edits.append_output(query.syntax, text, name)
    return replace(query, relation=relation, outputs=(*query.outputs, *(Output(name, e) for name, _, e in more)))


def _numbered(side: Query, number: str, context: Context) -> Select | None:
    """A side of a UNION ALL, with its number: records of two streams may share time and offset."""
    extended = with_order_columns(side, context)
    if (
        not isinstance(extended, Select)
        or extended.syntax is None
        or len(order_columns(extended)) != len(ORDER_COLUMNS)
    ):
        return None
    context.edits.append_output(extended.syntax, number, f"{_MORE}0")
    return replace(extended, outputs=(*extended.outputs, Output(f"{_MORE}0", Constant(number, INT))))


def _united(query: Query, sides: Sequence[Query | None]) -> Query | None:
    """A UNION ALL of these sides, or None if their columns differ."""
    if not isinstance(query, Combined):
        return sides[0]
    middle = len(sides_of_union(query.left))
    left, right = _united(query.left, sides[:middle]), _united(query.right, sides[middle:])
    if left is None or right is None or [kind for _, kind in left.columns] != [kind for _, kind in right.columns]:
        return None
    if _places(left) != _places(right):  # one side shows them among other columns
        return None
    return replace(query, left=left, right=right, columns=left.columns)


def _places(query: Query) -> list[int]:
    names = [name for name, _ in query.columns]
    return [names.index(name) for name in order_columns(query)]


def reads_records(relation: Relation | None) -> bool:
    """True if each row comes from one record: no join, aggregation, window function or LIMIT stands between."""
    return not has_joins(relation) and any(
        isinstance(below, Stream) or (isinstance(below, Nested) and _gives_records(below.query))
        for below in relations_in(relation)
    )


def _gives_records(query: Query) -> bool:
    return is_of_plain_rows(query) and reads_records(query.relation)
