"""ORDER BY, LIMIT and OFFSET: the rest of a key breaks ties, so that a SELECT has one answer.

`ORDER BY n DESC LIMIT 10` leaves open which of two equal rows is the tenth, and Spark shows either. So an order that
decides a result is extended by columns that tell the rows of its block apart: those of GROUP BY, those of a key of the
relation, or the position of a record in the log. Spark gets the same edit when it runs the author's SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    Output,
    Read,
    Relation,
    Select,
)
from view_algebra.language.quoting import spark_name
from view_algebra.language.time_windows import bounds, is_session
from view_algebra.language.types import TINYINT, WINDOW
from view_algebra.language.walks import outer_fields, rewritten, windowed
from view_algebra.oracle import Edits
from view_algebra.refusals import Wrong, span
from view_algebra.typed.order.keys import (
    RowKeys,
    lacking_in_limit,
    lacking_in_window,
    relation_keys,
    sorting_of,
    tells_peers_apart,
)
from view_algebra.typed.scopes import Columns, Keys, Scope, Sets, resolved


def in_total_order(
    block: Select,
    node: exp.Select,
    scope: Scope,
    grouped: Mapping[Expr, str],
    sets: Sets | None,
) -> Select:
    """A block whose orders are extended until they are total, if they can be. Spark gets the same edit.

    grouped: the columns of GROUP BY, with their texts in Spark SQL
    sets: its groupings. Two of them may have a group of the same columns
    """
    keys = _keys_of(block, scope.context.keys)
    if sets is not None:
        left_out = [
            key for key in block.group or () if key in grouped and not all(key in grouping for grouping in sets)
        ]
        of_each: dict[Expr, str] = {Call("grouping", (key,), TINYINT): f"grouping({grouped[key]})" for key in left_out}
        keys, grouped = frozenset(key | set(of_each) for key in keys), {**grouped, **of_each}
    texts = {**grouped, **_columns(keys)}
    changed: dict[Expr, Expr] = {}
    for call in windowed(block):
        if call.syntax is None or not call.order or tells_peers_apart(call):
            continue
        if call.reaches_values:  # Spark allows one key there
            continue
        if more := _more(lacking_in_window(call, keys), call.order, texts):
            scope.edits.break_ties(call.syntax, [text for _, text in more])
            changed[call] = replace(call, order=(*call.order, *(order for order, _ in more)))
    block = rewritten(block, changed.get) if changed else block
    shown = {output.expression: str(place) for place, output in reversed([*enumerate(block.outputs, 1)])}
    lacking = lacking_in_limit(block, keys if sets is None else frozenset())
    more = _more(lacking, block.order, {**texts, **shown})
    scope.edits.break_ties(node, [text for _, text in more])
    block = replace(block, order=(*block.order, *(order for order, _ in more)))
    if (block.limit is not None or block.offset) and any(outer_fields(block)):
        scope.edits.whole_conditions(node)
    if _hides_keys(block) and any(outer_fields(block)):
        scope.edits.keys_as_columns(node)
    return block


def inherited(relation: Relation | None, node: exp.Select, scope: Scope) -> tuple[Order, ...]:
    """The order of the subquery or view that a block reads, which LIMIT follows. An edit spells it out for Spark."""
    sorting = sorting_of(relation, scope.context.sortings)
    if not isinstance(relation, Nested | Read) or not sorting:
        return ()
    columns = relation.query.columns if isinstance(relation, Nested) else relation.columns
    order, texts = [], []
    for key in sorting:
        if key.column is None:
            way_out = "Write ORDER BY next to LIMIT, by columns that it gives."
            raise Wrong(relation.place, "LIMIT takes its order from a subquery or view that hides it", way_out)
        ways = f"{'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        texts.append(f"{spark_name(relation.alias)}.{spark_name(key.column)} {ways}")
        column = Field(relation.alias, (key.column,), dict(columns)[key.column])
        order.append(Order(column, key.descending, key.nulls_first))
    scope.edits.inherit_order(node, texts)
    return tuple(order)


def _hides_keys(block: Select) -> bool:
    """True if the rows are sorted by an expression that is not an output. DISTINCT rows never are."""
    shown = {output.expression for output in block.outputs}
    return not block.distinct and any(order.expression not in shown for order in block.order)


def set_in_total_order(query: Combined, node: exp.Expr, edits: Edits) -> Combined:
    """A set operation with LIMIT and its syntax, ordered by all of its columns."""
    if (query.limit is None and query.offset is None) or any(kind.nested for _, kind in query.columns):
        return query
    ordered = {order.expression for order in query.order}
    missing = [f for name, kind in query.columns if (f := Field("", (name,), kind)) not in ordered]
    edits.break_ties(node, [spark_name(field.path[0]) for field in missing])
    return replace(query, order=(*query.order, *(Order(f, descending=False, nulls_first=True) for f in missing)))


def _keys_of(block: Select, views: Mapping[str, Keys]) -> RowKeys:
    """The unique keys of a block's rows, or of its groups."""
    if block.group is None:
        return relation_keys(block.relation, views)
    return frozenset({frozenset(bounds(key)[0] if is_session(key) else key for key in block.group)})


def _columns(keys: RowKeys) -> dict[Expr, str]:
    """The columns of the relation that a block reads, each with its qualified name in Spark SQL."""
    return {
        column: f"{spark_name(column.relation)}.{spark_name(column.path[0])}"
        for key in keys
        for column in key
        if isinstance(column, Field) and len(column.path) == 1
    }


def _more(missing: Sequence[Expr], order: Sequence[Order], texts: Mapping[Expr, str]) -> list[tuple[Order, str]]:
    """The keys that extend an order, with their Spark SQL. Empty if one of them cannot be written."""
    if any(e not in texts or (e.type.nested and e.type != WINDOW) for e in missing):
        return []
    # A descending order also puts the later of two records at one time first.
    records = {e.path[-1] for e in missing if isinstance(e, Field)} <= {*EVENT_ORDER[1:]}
    descending = records and bool(order) and order[-1].descending
    word = " DESC" if descending else ""
    return [(Order(e, descending, nulls_first=not descending, tie=True), texts[e] + word) for e in missing]


def sort_keys(node: exp.Expr, scope: Scope, columns: Columns, outputs: Sequence[Output] = ()) -> list[Order]:
    """The keys of ORDER BY: a column's number, an output's name, or an expression."""
    order = node.args.get("order")
    result: list[Order] = []
    for item in _items(order, scope, len(columns)) if order is not None else []:
        expression = item.this
        in_window = isinstance(node, exp.Window)  # a number is a value there
        if not in_window and (number := position(expression)) is not None:
            if not 1 <= number <= len(columns):
                raise Wrong(span(item), f"ORDER BY {number}: there are {len(columns)} columns", "Count from 1.")
            name, kind = columns[number - 1]
            if not outputs and (not name or [n.lower() for n, _ in columns].count(name.lower()) > 1):
                what = f"ORDER BY {number} names a column without a name of its own"
                raise Wrong(span(item), what, "Write … AS name in the first SELECT.")
            key: Expr = outputs[number - 1].expression if outputs else Field("", (name,), kind)
        else:
            named = {o.name.lower(): o.expression for o in outputs}
            key = resolved(expression, scope.preferring(named))
            _spell_as_number(expression, key, outputs, scope)
        result.append(_ordered(key, item))
    return result


def _items(order: exp.Order, scope: Scope, count: int) -> Sequence[exp.Expr]:
    """The keys of ORDER BY. For ORDER BY ALL, the numbers of all columns."""
    first = order.expressions[0]
    if not isinstance(first.this, exp.Var):
        return [*order.expressions]
    if any(name.lower() == "all" for columns in scope.relations.values() for name, _ in columns):
        place = span(order.parent or order)
        raise Wrong(place, "ORDER BY ALL is ambiguous: a column is named all", "Order by their numbers: ORDER BY 1, 2.")
    every = [first.copy() for _ in range(count)]
    for number, item in enumerate(every, 1):
        item.set("this", exp.Literal.number(number))
    scope.edits.number(order, every)
    return every


def _spell_as_number(node: exp.Expr, key: Expr, outputs: Sequence[Output], scope: Scope) -> None:
    """Notes the output of an ORDER BY key: next to HAVING, DISTINCT or windows, Spark finds only its number."""
    names = [output.name.lower() for output in outputs]
    if not (isinstance(node, exp.Column) and node.name.lower() in names):
        number = next((n for n, output in enumerate(outputs, 1) if output.expression == key), None)
        if number is not None:
            scope.edits.spell(node, str(number))


def _ordered(key: Expr, item: exp.Expr) -> Order:
    """A key with its direction. NULL comes first when ascending, unless the author says otherwise."""
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    if key.type.nested and key.type != WINDOW:
        raise Wrong(span(item), f"ORDER BY does not take {key.type}", "Order by its fields.")
    return Order(key, descending, bool(nulls_first) if nulls_first is not None else not descending)


def position(item: exp.Expr) -> int | None:
    """The column's number, if GROUP BY or ORDER BY names it by one."""
    literal = item.this if isinstance(item, exp.Neg) else item
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        return None
    return -int(literal.name) if literal is not item else int(literal.name)


def limit_of(node: exp.Expr) -> tuple[int | None, int | None]:
    """LIMIT and OFFSET, whole numbers or expressions of literals that compute one, or None if absent."""
    numbers: list[int | None] = []
    for name in ("limit", "offset"):
        clause = node.args.get(name)
        value = clause.expression if clause is not None else None
        if isinstance(value, exp.Var) and value.name.upper() == "ALL" and name == "limit":
            value = None
        number = None if value is None else _whole(value)
        if clause is not None and value is not None and not 0 <= (-1 if number is None else number) < 2**31:
            raise Wrong(span(clause), f"{name.upper()} takes a number", f"Write {name.upper()} 10.")
        numbers.append(number)
    return numbers[0], numbers[1]


_COMPUTED: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: int.__add__,
    exp.Sub: int.__sub__,
    exp.Mul: int.__mul__,
}


def _whole(node: exp.Expr) -> int | None:
    """The whole number that an expression of literals computes, or None for any other expression."""
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    if type(node) in _COMPUTED:
        left, right = _whole(node.this), _whole(node.expression)
        return None if left is None or right is None else _COMPUTED[type(node)](left, right)
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


def refuse_windows_in_order(order: Sequence[Order], node: exp.Expr) -> None:
    """Refuses ORDER BY a window if only outputs can be named: above, a window is JSON without bounds."""
    if any(o.expression.type == WINDOW for o in order):
        way_out = "Put the query into a subquery in FROM, and order outside."
        raise Wrong(
            span(node.args["order"]), "ORDER BY does not take a window after DISTINCT or a set operation", way_out
        )
