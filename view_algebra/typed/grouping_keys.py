"""GROUP BY: its keys, and the window of time among them."""

from __future__ import annotations

from functools import partial
from typing import cast as typed

from sqlglot import exp

from view_algebra.language.expressions import Aggregate, Constant, Expr, Field, Output
from view_algebra.language.fields import member
from view_algebra.language.structs import scalars
from view_algebra.language.time_windows import TIME_WINDOWS, bounds, is_session, window_key
from view_algebra.language.types import WINDOW, Type
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.calls import refuse_aggregates
from view_algebra.typed.groupings import Sets, keys_of, leaves_of, sets_of
from view_algebra.typed.names import Scope
from view_algebra.typed.nested_keys import in_spark, is_key, is_list_key, text_of
from view_algebra.typed.orders import position
from view_algebra.typed.output_names import meant_by
from view_algebra.typed.scalars import expression
from view_algebra.typed.spark_refuses import OVERLAPPING
from view_algebra.written.oracle import written


def groups_of(node: exp.Group, scope: Scope, outputs: list[Output]) -> tuple[tuple[Expr, ...], Sets | None]:
    """The columns of GROUP BY, and its groupings where it has several."""
    every = node.args.get("all")
    if every is False or (every and node.expressions):
        raise Wrong(span(node), "GROUP BY DISTINCT, or ALL beside columns", "Write GROUP BY a, b.")
    key = partial(_key, scope=scope, outputs=outputs)
    sets = sets_of(node, key)
    nested = None if sets is None else next((k for k in keys_of(node, key) if _is_nested_key(k.type)), None)
    if nested is not None:
        way_out = "Group by its fields." if is_key(nested.type) else "Group by to_json(…) of it."
        raise Wrong(nested.place or span(node), f"{nested.type} among several groupings", way_out)
    return (_group(node, scope, outputs) if sets is None else keys_of(node, key)), sets


def _group(node: exp.Group, scope: Scope, outputs: list[Output]) -> tuple[Expr, ...]:
    if node.args.get("all"):
        if any(name.lower() == "all" for columns in scope.relations.values() for name, _ in columns):
            raise Wrong(span(node), "GROUP BY ALL, where a column is named all", "Write GROUP BY `all`, or name them.")
        every = [
            window_key(o.expression) for o in outputs if not any(isinstance(e, Aggregate) for e in walk(o.expression))
        ]
        return tuple(dict.fromkeys(every))
    keys = [key for item in node.expressions if (key := _key(item, scope, outputs)) is not None]
    return tuple(dict.fromkeys(keys))


def _key(item: exp.Expr, scope: Scope, outputs: list[Output]) -> Expr | None:
    """A column of GROUP BY; None for one that is the same for every row."""
    if (number := position(item)) is not None:
        if not 1 <= number <= len(outputs):
            raise Wrong(span(item), f"GROUP BY {number}: there are {len(outputs)} columns", "Count from 1.")
        key = window_key(outputs[number - 1].expression)
    elif isinstance(item, exp.Tuple):
        raise _no_column(item)
    else:
        key = window_key(expression(item, scope))
    if key.type == WINDOW and isinstance(key, Field) and not scope.above:
        key = member(key, "start", key.place)
    refuse_aggregates(key, "GROUP BY", "Aggregate in a subquery, and group its result.")
    if key.type.nested and not _is_nested_key(key.type) and not (key.type == WINDOW and scope.above):
        way_out = "Group by its fields, or by to_json(…)." if key.type.fields else "Group by to_json(…) of it."
        raise Wrong(span(item), f"a group key of type {key.type}", way_out)
    if key.type.session:
        raise Wrong(span(item), "GROUP BY the sessions of a subquery", OVERLAPPING)
    if key.type.name == "BINARY":
        raise Wrong(span(item), "a group key of type BINARY", "Group by hex(…), or by decode(…, 'UTF-8') of a text.")
    return None if isinstance(key, Constant) else key


def _is_nested_key(kind: Type) -> bool:
    return is_key(kind) or is_list_key(kind)


def written_keys(node: exp.Select, scope: Scope, outputs: list[Output]) -> dict[Expr, str]:
    """How Spark SQL has the columns of GROUP BY elsewhere in the block."""
    found: dict[Expr, str] = {}
    for item in leaves_of(typed(exp.Group, node.args["group"])):
        key, meant = _key(item, scope, outputs), meant_by(item, node)
        if key is not None and (window := _time_window(meant)) is not None:
            found[bounds(key)[0] if is_session(key) else key] = f"{window.name.lower()}.start"
        elif isinstance(key, Field) and is_key(key.type) and meant is not None:
            found |= {part: in_spark(part, key, written(meant)) for part in scalars(key)}
        elif key is not None and is_list_key(key.type) and meant is not None and not scope.above:
            found[text_of(key)] = f"to_json({written(meant)})"
        elif key is not None and meant is not None:
            found[key] = written(meant)
    return found


def windows_of(node: exp.Select, scope: Scope) -> dict[str, Expr]:
    """The window that GROUP BY names, which `window.start` means in the same block."""
    group = node.args.get("group")
    items = [] if group is None else [*group.expressions, *group.find_all(exp.Anonymous)]
    windows = [window for item in items if (window := _time_window(meant_by(item, node))) is not None]
    found = {expression(window, scope): window for window in windows}
    if len(found) > 1:
        raise Wrong(span([*found.values()][-1]), "two windows in one GROUP BY", "Group by one of them.")
    return {window.name.lower(): key for key, window in found.items()}


def _no_column(item: exp.Tuple) -> Wrong:
    """The refusal of columns of GROUP BY in parentheses, or of none."""
    if item.expressions:
        return Wrong(span(item), "columns of GROUP BY in parentheses", "Write them without: GROUP BY a, b.")
    alone = len(typed(exp.Group, item.find_ancestor(exp.Group)).expressions) == 1
    place = span(item.find_ancestor(exp.Select) or item)
    return Wrong(place, "GROUP BY ()", "Leave GROUP BY out." if alone else "Leave () out.")


def _time_window(node: exp.Expr | None) -> exp.Anonymous | None:
    """The call of window() or session_window() that an expression is, or is a bound of."""
    call_ = node.this if isinstance(node, exp.Dot) else node
    return call_ if isinstance(call_, exp.Anonymous) and call_.name.lower() in TIME_WINDOWS else None
