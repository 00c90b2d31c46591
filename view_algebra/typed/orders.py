"""ORDER BY: its keys, each a column's number, an output's name, or an expression. LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from view_algebra.language.expressions import Expr, Field, Order, Output
from view_algebra.language.types import WINDOW
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Columns, Scope, resolved
from view_algebra.written.oracle import spell


def sort_keys(node: exp.Expr, scope: Scope, columns: Columns, outputs: Sequence[Output] = ()) -> list[Order]:
    """The keys of ORDER BY: a column's number, an output's name, or an expression."""
    order = node.args.get("order")
    result: list[Order] = []
    if order is not None:
        _number_all(order, scope, len(columns))
    for item in order.expressions if order is not None else []:
        expression = item.this
        in_window = isinstance(node, exp.Window)  # where a number is a value
        if not in_window and (number := position(expression)) is not None:
            if not 1 <= number <= len(columns):
                raise Wrong(span(item), f"ORDER BY {number}: there are {len(columns)} columns", "Count from 1.")
            name, kind = columns[number - 1]
            if not outputs and (not name or [n.lower() for n, _ in columns].count(name.lower()) > 1):
                what = f"ORDER BY {number}, a column without a name of its own"
                raise Wrong(span(item), what, "Write … AS name in the first SELECT.")
            key: Expr = outputs[number - 1].expression if outputs else Field("", (name,), kind)
        else:
            named = {o.name.lower(): o.expression for o in outputs}
            with scope.preferring(named):
                key = resolved(expression, scope)
            _spell_as_number(expression, key, outputs)
        result.append(_ordered(key, item))
    return result


def _number_all(order: exp.Order, scope: Scope, count: int) -> None:
    """Writes ORDER BY ALL as the numbers of all columns."""
    first = order.expressions[0]
    if not isinstance(first.this, exp.Var):
        return
    if any(name.lower() == "all" for columns in scope.relations.values() for name, _ in columns):
        place = span(order.parent or order)
        raise Wrong(place, "ORDER BY ALL, where a column is named all", "Order by their numbers: ORDER BY 1, 2.")
    every = [first.copy() for _ in range(count)]
    for number, item in enumerate(every, 1):
        item.set("this", exp.Literal.number(number))
    order.set("expressions", every)


def _spell_as_number(node: exp.Expr, key: Expr, outputs: Sequence[Output]) -> None:
    """Notes which output a key of ORDER BY is: beside HAVING, DISTINCT or windows Spark finds it by no other name."""
    names = [output.name.lower() for output in outputs]
    if not (isinstance(node, exp.Column) and node.name.lower() in names):
        number = next((n for n, output in enumerate(outputs, 1) if output.expression == key), None)
        if number is not None:
            spell(node, str(number))


def _ordered(key: Expr, item: exp.Expr) -> Order:
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    if key.type.nested and key.type != WINDOW:
        raise Wrong(span(item), f"ORDER BY {key.type}", "Order by its fields.")
    return Order(key, descending, bool(nulls_first) if nulls_first is not None else not descending)


def position(item: exp.Expr) -> int | None:
    """The number of a column, where GROUP BY or ORDER BY names it so."""
    literal = item.this if isinstance(item, exp.Neg) else item
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdigit():
        return None
    return -int(literal.name) if literal is not item else int(literal.name)


def limit_of(node: exp.Expr) -> tuple[int | None, int | None]:
    """LIMIT and OFFSET: whole numbers, or what makes one; None where there is none."""
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
    """The whole number that is written as one, or as what makes one; None for anything else."""
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    if type(node) in _COMPUTED:
        left, right = _whole(node.this), _whole(node.expression)
        return None if left is None or right is None else _COMPUTED[type(node)](left, right)
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


def refuse_windows_in_order(order: Sequence[Order], node: exp.Expr) -> None:
    """Where ORDER BY can name outputs alone, a window has no bounds to go by: above it is a value of JSON."""
    if any(o.expression.type == WINDOW for o in order):
        way_out = "Put the query into a subquery in FROM, and order around it."
        raise Wrong(span(node.args["order"]), "ORDER BY a window after DISTINCT or a set operation", way_out)
