"""Where an order leaves ties, the rest of a key breaks them, so that one SELECT has one answer.

`ORDER BY n DESC LIMIT 10` leaves open which of two equal rows is the tenth, and Spark shows either. Here an order that
decides something goes on with what tells the rows of its block apart: the columns of GROUP BY, those of a key of what
is read, of records their position in the log. Spark is told the same where it runs the author's SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.aggregates import EVENT_ORDER
from view_algebra.language.expressions import (
    Call,
    Combined,
    Expr,
    Field,
    Nested,
    Order,
    Query,
    Read,
    Relation,
    Select,
    Windowed,
)
from view_algebra.language.quoting import spark_name
from view_algebra.language.time_windows import bounds, is_session
from view_algebra.language.types import TINYINT, WINDOW
from view_algebra.language.walks import outer_fields, rewritten
from view_algebra.refusals import Wrong
from view_algebra.typed.calls import VALUE_BOUND
from view_algebra.typed.determinism import (
    RowKeys,
    lacking_in_limit,
    lacking_in_window,
    relation_keys,
    tells_peers_apart,
)
from view_algebra.typed.groupings import Sets
from view_algebra.typed.passing import has_windows
from view_algebra.typed.rows import Keys, Sorting, SortKey
from view_algebra.written.oracle import break_ties, inherit_order, keys_as_columns, whole_conditions


def settled(
    block: Select,
    node: exp.Select,
    windows: Iterable[tuple[Windowed, exp.Window]],
    grouped: Mapping[Expr, str],
    views: Mapping[str, Keys],
    sets: Sets | None,
) -> Select:
    """A block whose orders go on until they are total, where they can; its syntax is changed alike.

    windows: the window functions in it. grouped: how Spark SQL has the columns of GROUP BY. views: the keys of those
    that may be read. sets: its groupings, of which two may have a group of the same columns.
    """
    keys = _keys_of(block, views)
    if sets is not None:
        left_out = [key for key in block.group or () if key in grouped and not all(key in each for each in sets)]
        of_each: dict[Expr, str] = {Call("grouping", (key,), TINYINT): f"grouping({grouped[key]})" for key in left_out}
        keys, grouped = frozenset(key | set(of_each) for key in keys), {**grouped, **of_each}
    texts = {**grouped, **_columns(keys)}
    changed: dict[Expr, Expr] = {}
    for call, window in windows:
        one_column = VALUE_BOUND.search(call.frame)  # is all that Spark takes there
        if not call.order or one_column or tells_peers_apart(call):
            continue
        if more := _more(lacking_in_window(call, keys), call.order, texts):
            break_ties(window, [text for _, text in more])
            changed[call] = replace(call, order=(*call.order, *(order for order, _ in more)))
    block = rewritten(block, changed.get) if changed else block
    shown = {output.expression: str(place) for place, output in reversed([*enumerate(block.outputs, 1)])}
    lacking = lacking_in_limit(block, keys if sets is None else frozenset())
    more = _more(lacking, block.order, {**texts, **shown})
    break_ties(node, [text for _, text in more])
    block = replace(block, order=(*block.order, *(order for order, _ in more)))
    if (block.limit is not None or block.offset) and any(True for _ in outer_fields(block)):
        whole_conditions(node)
    if _hides_keys(block) and any(True for _ in outer_fields(block)):
        keys_as_columns(node)
    return block


def inherited(relation: Relation | None, node: exp.Select, views: Mapping[str, Sorting]) -> tuple[Order, ...]:
    """The order of the subquery or view that a block reads, by which LIMIT goes in Spark, too; its syntax says it."""
    sorting = _sorting_of(relation, views)
    if not isinstance(relation, Nested | Read) or not sorting:
        return ()
    columns = relation.query.columns if isinstance(relation, Nested) else relation.columns
    order, texts = [], []
    for key in sorting:
        if key.column is None:
            way_out = "Write ORDER BY beside LIMIT, by columns that it gives."
            raise Wrong(relation.place, "LIMIT by the order of a subquery or view that does not show it", way_out)
        ways = f"{'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        texts.append(f"{spark_name(relation.alias)}.{spark_name(key.column)} {ways}")
        column = Field(relation.alias, (key.column,), dict(columns)[key.column])
        order.append(Order(column, key.descending, key.nulls_first))
    inherit_order(node, texts)
    return tuple(order)


def sorting(query: Query, views: Mapping[str, Sorting]) -> Sorting:
    """How the rows of a query are sorted; nothing where they come in any order."""
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
    return tuple(replace(key, column=names.get(key.column or "")) for key in _sorting_of(query.relation, views))


def _sorting_of(relation: Relation | None, views: Mapping[str, Sorting]) -> Sorting:
    if isinstance(relation, Read):
        return views.get(relation.view, ())
    return sorting(relation.query, views) if isinstance(relation, Nested) else ()


def _hides_keys(block: Select) -> bool:
    """Do its rows go by what is none of its columns? Those of DISTINCT never do."""
    shown = {output.expression for output in block.outputs}
    return not block.distinct and any(order.expression not in shown for order in block.order)


def settled_set(query: Combined, node: exp.Expr) -> Combined:
    """A set operation, and its syntax, of whose rows LIMIT picks some: by all of their columns."""
    if (query.limit is None and query.offset is None) or any(kind.nested for _, kind in query.columns):
        return query
    ordered = {order.expression for order in query.order}
    missing = [f for name, kind in query.columns if (f := Field("", (name,), kind)) not in ordered]
    break_ties(node, [spark_name(field.path[0]) for field in missing])
    return replace(query, order=(*query.order, *(Order(f, descending=False, nulls_first=True) for f in missing)))


def _keys_of(block: Select, views: Mapping[str, Keys]) -> RowKeys:
    if block.group is None:
        return relation_keys(block.relation, views)
    return frozenset({frozenset(bounds(key)[0] if is_session(key) else key for key in block.group)})


def _columns(keys: RowKeys) -> dict[Expr, str]:
    """How Spark SQL has the columns of what a block reads: with the name of their relation."""
    return {
        column: f"{spark_name(column.relation)}.{spark_name(column.path[0])}"
        for key in keys
        for column in key
        if isinstance(column, Field) and len(column.path) == 1
    }


def _more(missing: Sequence[Expr], order: Sequence[Order], texts: Mapping[Expr, str]) -> list[tuple[Order, str]]:
    """What an order goes on with, as an expression and in Spark SQL; nothing where some of it cannot be written."""
    if any(e not in texts or (e.type.nested and e.type != WINDOW) for e in missing):
        return []
    # Of two records at one time, an order that begins with the last has the later one first.
    records = {e.path[-1] for e in missing if isinstance(e, Field)} <= {*EVENT_ORDER[1:]}
    descending = records and bool(order) and order[-1].descending
    word = " DESC" if descending else ""
    return [(Order(e, descending, nulls_first=not descending, tie=True), texts[e] + word) for e in missing]
