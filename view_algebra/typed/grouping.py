"""GROUP BY: its keys, the windows of time among them, and its grouping sets.

A block with several groupings is read as one grouping after the other. `SELECT a, b, grouping(b), sum(x) FROM s
GROUP BY ROLLUP(a, b)` is

    SELECT a, b, no_b, sum_x FROM (
      SELECT a, b, 0 AS no_b, sum(x) AS sum_x FROM s GROUP BY a, b
      UNION ALL
      SELECT a, NULL, 1, sum(x) FROM s GROUP BY a
      UNION ALL
      SELECT NULL, NULL, 1, sum(x) FROM s HAVING count(*) > 0)

and every grouping over a stream merges the cells of (a, b).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.language.expressions import (
    VARIABLE,
    Aggregate,
    Call,
    Constant,
    Exploded,
    Expr,
    Field,
    Generator,
    Keeping,
    Nested,
    Output,
    Select,
    member,
    ungrouped,
)
from view_algebra.language.structs import scalars
from view_algebra.language.time_windows import TIME_WINDOWS, bounds, is_session, window_key
from view_algebra.language.types import BIGINT, BOOLEAN, TINYINT, WINDOW, Type
from view_algebra.language.walks import above_group, rewritten, union_all, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.aggregation.calls import refuse_aggregates
from view_algebra.typed.names import meant_by
from view_algebra.typed.nested_keys import in_spark, is_key, is_list_key, json_of
from view_algebra.typed.order.ties import position
from view_algebra.typed.scopes import Scope, Sets, resolved
from view_algebra.typed.spark_refuses import OVERLAPPING


def groups_of(node: exp.Group, scope: Scope, outputs: Sequence[Output]) -> tuple[tuple[Expr, ...], Sets | None]:
    """The columns of GROUP BY, and its groupings if it has several."""
    every = node.args.get("all")
    if every is False or (every and node.expressions):
        raise Wrong(span(node), "GROUP BY does not take DISTINCT, or ALL next to columns", "Write GROUP BY a, b.")
    key = partial(_key, scope=scope, outputs=outputs)
    sets = sets_of(node, key)
    nested = None if sets is None else next((k for k in every_key(node, key) if _is_nested_key(k.type)), None)
    if nested is not None:
        way_out = "Group by its fields." if is_key(nested.type) else "Group by to_json(…) of it."
        raise Wrong(nested.place or span(node), f"several groupings do not take {nested.type}", way_out)
    return (_group(node, scope, outputs) if sets is None else every_key(node, key)), sets


def _group(node: exp.Group, scope: Scope, outputs: Sequence[Output]) -> tuple[Expr, ...]:
    """The columns of a GROUP BY with one grouping, also of GROUP BY ALL."""
    if node.args.get("all"):
        if any(name.lower() == "all" for columns in scope.relations.values() for name, _ in columns):
            raise Wrong(
                span(node), "GROUP BY ALL is ambiguous: a column is named all", "Write GROUP BY `all`, or name them."
            )
        every = [
            window_key(o.expression) for o in outputs if not any(isinstance(e, Aggregate) for e in walk(o.expression))
        ]
        return tuple(dict.fromkeys(every))
    keys = [key for item in node.expressions if (key := _key(item, scope, outputs)) is not None]
    return tuple(dict.fromkeys(keys))


def _key(item: exp.Expr, scope: Scope, outputs: Sequence[Output]) -> Expr | None:
    """A column of GROUP BY, or None if it is the same for every row."""
    if (number := position(item)) is not None:
        if not 1 <= number <= len(outputs):
            raise Wrong(span(item), f"GROUP BY {number}: there are {len(outputs)} columns", "Count from 1.")
        key = window_key(outputs[number - 1].expression)
    elif isinstance(item, exp.Tuple):
        raise _no_column(item)
    else:
        key = window_key(resolved(item, scope))
    if key.type == WINDOW and isinstance(key, Field) and not scope.above:
        key = member(key, "start", key.place)
    refuse_aggregates(key, "GROUP BY", "Aggregate in a subquery, and group its result.")
    if key.type.nested and not _is_nested_key(key.type) and not (key.type == WINDOW and scope.above):
        way_out = "Group by its fields, or by to_json(…)." if key.type.fields else "Group by to_json(…) of it."
        raise Wrong(span(item), f"a group key cannot be of type {key.type}", way_out)
    if key.type.session:
        raise Wrong(span(item), "GROUP BY does not take the sessions of a subquery", OVERLAPPING)
    if key.type.name == "BINARY":
        raise Wrong(
            span(item), "a group key cannot be of type BINARY", "Group by hex(…), or by decode(…, 'UTF-8') of a text."
        )
    return None if isinstance(key, Constant) else key


def _is_nested_key(kind: Type) -> bool:
    return is_key(kind) or is_list_key(kind)


def key_texts(node: exp.Select, scope: Scope, outputs: Sequence[Output]) -> dict[Expr, str]:
    """The columns of GROUP BY, each with the text that Spark SQL has for it elsewhere in the block."""
    texts: dict[Expr, str] = {}
    for item in key_nodes(static_cast(exp.Group, node.args["group"])):
        key, meant = _key(item, scope, outputs), meant_by(item, node)
        if key is not None and (window := _time_window(meant)) is not None:
            texts[bounds(key)[0] if is_session(key) else key] = f"{window.name.lower()}.start"
        elif isinstance(key, Field) and is_key(key.type) and meant is not None:
            texts |= {part: in_spark(part, key, scope.edited_sql(meant)) for part in scalars(key)}
        elif key is not None and is_list_key(key.type) and meant is not None and not scope.above:
            texts[json_of(key)] = f"to_json({scope.edited_sql(meant)})"
        elif key is not None and meant is not None:
            texts[key] = scope.edited_sql(meant)
    return texts


def windows_of(node: exp.Select, scope: Scope) -> dict[str, Expr]:
    """The window in GROUP BY that `window.start` means elsewhere in the block."""
    group = node.args.get("group")
    items = [] if group is None else [*group.expressions, *group.find_all(exp.Anonymous)]
    windows = [window for item in items if (window := _time_window(meant_by(item, node))) is not None]
    calls = {resolved(window, scope): window for window in windows}
    if len(calls) > 1:
        raise Wrong(span([*calls.values()][-1]), "GROUP BY has two windows", "Group by one of them.")
    return {window.name.lower(): key for key, window in calls.items()}


def _no_column(item: exp.Tuple) -> Wrong:
    """The refusal of GROUP BY (a, b), or of no columns."""
    if item.expressions:
        return Wrong(span(item), "GROUP BY does not take columns in parentheses", "Write them without: GROUP BY a, b.")
    alone = len(static_cast(exp.Group, item.find_ancestor(exp.Group)).expressions) == 1
    place = span(item.find_ancestor(exp.Select) or item)
    return Wrong(place, "GROUP BY () is not served", "Leave GROUP BY out." if alone else "Leave () out.")


def _time_window(node: exp.Expr | None) -> exp.Anonymous | None:
    """The call of window() or session_window() that an expression is, or takes a bound of."""
    call_ = node.this if isinstance(node, exp.Dot) else node
    return call_ if isinstance(call_, exp.Anonymous) and call_.name.lower() in TIME_WINDOWS else None


_GROUPED = "grouped"
"""The alias of the united groupings."""

_UNITED = "Leave it out, or write each grouping as a SELECT of a UNION ALL."

MOST_SETS = 64
"""Most groupings of one query: a cube of six columns."""

HAS_ROWS = Call(">", (Aggregate("count", (), None, False, BIGINT), Constant("0", BIGINT)), BOOLEAN)
"""True if there are records: without any, a grouping by nothing has no row, like a grouping by a constant."""

Key = Callable[[exp.Expr], Expr | None]
"""A function that resolves a column of GROUP BY, or None for a constant."""


def sets_of(node: exp.Group, key: Key) -> Sets | None:
    """The groupings of GROUP BY, or None if there is one."""
    plain = [item for item in node.expressions if not _nests(item)]
    lists = [item for item in node.expressions if _nests(item)]
    trailing = _trailing(node)
    if not lists and not trailing:
        return None
    if trailing:  # GROUP BY a, b WITH ROLLUP, and GROUP BY a, b GROUPING SETS (…)
        clause = trailing[0]
        groupings = _sets(clause, key) if clause.expressions else _sets(type(clause)(expressions=plain), key)
    else:
        fixed = _columns(plain, key)
        groupings = tuple(
            tuple(dict.fromkeys([*fixed, *(k for part in parts for k in part)]))
            for parts in product(*(_sets(item, key) for item in lists))
        )
    if len(groupings) > MOST_SETS:
        raise Wrong(span(node), f"there are {len(groupings)} groupings", f"Name up to {MOST_SETS} with GROUPING SETS.")
    return groupings


def _sets(node: exp.Expr, key: Key) -> Sets:
    """The groupings of ROLLUP, CUBE or GROUPING SETS."""
    if not isinstance(node, exp.GroupingSets) and any(
        isinstance(i, exp.Tuple) and not i.expressions for i in node.expressions
    ):
        raise Wrong(
            span(node),
            f"{node.key.upper()} does not take ()",
            f"Leave it out. {node.key.upper()} already has a group of all rows.",
        )
    items = [_columns_of_a_set(item, key) for item in node.expressions if not _nests(item)]
    match node:
        case exp.Rollup():
            chosen = [items[:count] for count in range(len(items), -1, -1)]
        case exp.Cube():
            chosen = [list(some) for count in range(len(items), -1, -1) for some in combinations(items, count)]
        case _:
            inner = [grouping for item in node.expressions if _nests(item) for grouping in _sets(item, key)]
            return (*(tuple(item) for item in items), *inner)
    return tuple(tuple(dict.fromkeys(k for item in some for k in item)) for some in chosen)


def every_key(node: exp.Group, key: Key) -> tuple[Expr, ...]:
    """All columns of GROUP BY as written, which is the order of grouping_id()'s bits."""
    return tuple(dict.fromkeys(k for k in map(key, key_nodes(node)) if k is not None))


def key_nodes(node: exp.Group) -> list[exp.Expr]:
    """The columns of GROUP BY as written, including those inside its groupings."""

    def leaves(item: exp.Expr) -> list[exp.Expr]:
        if _nests(item) or isinstance(item, exp.Tuple):
            return [leaf for inner in item.expressions for leaf in leaves(inner)]
        return [item.this if isinstance(item, exp.Paren) else item]

    return [leaf for item in (*node.expressions, *_trailing(node)) for leaf in leaves(item)]


def _trailing(node: exp.Group) -> list[exp.Expr]:
    """The clauses after the columns, such as WITH ROLLUP."""
    return [clause for name in ("rollup", "cube", "grouping_sets") for clause in node.args.get(name) or []]


def _nests(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))


def _columns(items: Sequence[exp.Expr], key: Key) -> list[Expr]:
    """The columns of GROUP BY without constants."""
    resolved_keys = (key(item.this if isinstance(item, exp.Paren) else item) for item in items)
    return [k for k in resolved_keys if k is not None]


def _columns_of_a_set(item: exp.Expr, key: Key) -> list[Expr]:
    """The columns of one grouping. Spark makes a constant NULL in the other groupings, wherever it stands."""
    columns = []
    for node in item.expressions if isinstance(item, exp.Tuple) else [item]:
        if not (column := _columns([node], key)):
            raise Wrong(span(node), "several groupings do not take a constant", _UNITED)
        columns += column
    return columns


def over_sets(block: Select, sets: Sets) -> Select:
    """A block over each of its groupings, one after the other. `block` is grouped by all of their columns."""
    keys = tuple(block.group or ())
    shown = {of_key: key for key in keys for of_key in (bounds(key) if is_session(key) else (key,))}
    names = {of_key: f"key_{n}" for n, of_key in enumerate(shown)}
    every_part = [e for x in above_group(block) for e in walk(x)]
    aggregates = {
        a: f"aggregate_{n}" for n, a in enumerate(dict.fromkeys(e for e in every_part if isinstance(e, Aggregate)))
    }
    left_out = {key: f"without_{n}" for n, key in enumerate(keys)}

    def branch(grouping: tuple[Expr, ...]) -> Select:
        outputs = [
            Output(names[of_key], of_key if key in grouping else Constant(None, of_key.type))
            for of_key, key in shown.items()
        ]
        outputs += [Output(name, Constant(str(int(key not in grouping)), TINYINT)) for key, name in left_out.items()]
        outputs += [Output(name, a) for a, name in aggregates.items()]
        having = None if grouping else HAS_ROWS
        keeping = Keeping(finest=keys)
        return Select(tuple(outputs), block.relation, block.where, grouping, having, place=block.place, keeping=keeping)

    def read(expression: Expr, name: str) -> Field:
        return Field(_GROUPED, (name,), expression.type, place=expression.place)

    def change(expression: Expr) -> Expr | None:
        if expression in names:
            return read(expression, names[expression])
        if isinstance(expression, Aggregate):
            return read(expression, aggregates[expression])
        if isinstance(expression, Call) and expression.function in ("grouping", "grouping_id"):
            return _bits(expression, left_out)
        if isinstance(expression, Field) and expression.relation != VARIABLE:
            raise ungrouped(expression)
        return None

    below = Nested(union_all([branch(grouping) for grouping in sets]), _GROUPED, block.place)
    above = rewritten(replace(block, relation=None, where=block.having, group=None, having=None), change)
    return replace(above, relation=below)


def _bits(call: Call, left_out: dict[Expr, str]) -> Expr:
    """A bit per column: 1 if the row is not grouped by it. The last column's bit is the lowest."""
    wanted = call.arguments or tuple(left_out)
    if call.function == "grouping_id" and wanted != tuple(left_out):
        raise Wrong(call.place, "grouping_id() takes the columns of GROUP BY, in their order", "Write grouping_id().")
    result: Expr | None = None
    for column in wanted:
        if column not in left_out:
            raise Wrong(
                column.place or call.place,
                f"{call.function}() names a column that is not in GROUP BY",
                "Name one that is.",
            )
        bit: Expr = Field(_GROUPED, (left_out[column],), TINYINT, bound=1)
        if call.function == "grouping_id":
            bit = Call("cast", (bit,), BIGINT)
        doubled = None if result is None else Call("*", (result, Constant("2", BIGINT)), BIGINT)
        result = bit if doubled is None else Call("+", (doubled, bit), BIGINT)
    assert result is not None
    return result


def exploded_groups(block: Select, exploding: Generator) -> Select:
    """`SELECT k, explode(collect_set(x)) AS y FROM s GROUP BY k`: a block that explodes the groups of a subquery."""
    of_groups = block.group or any(isinstance(e, Aggregate) for e in walk(exploding.argument))
    if not of_groups or any(_is_generated(e, exploding) for key in block.group or () for e in walk(key)):
        way_out = "Write FROM … LATERAL VIEW explode(tags) t AS tag, and GROUP BY tag."
        raise Wrong(exploding.place, "explode() of records cannot stand among columns of groups", way_out)
    if block.having is not None:
        way_out = "Group in a subquery in FROM, and explode its columns outside."
        raise Wrong(exploding.place, "Spark refuses explode() among columns next to HAVING", way_out)
    own = (o.expression for o in block.outputs if not _is_generated(o.expression, exploding))
    names = {e: f"column_{n}" for n, e in enumerate(dict.fromkeys([*own, exploding.argument]))}
    outputs = tuple(Output(name, e) for e, name in names.items())
    groups = replace(block, outputs=outputs, distinct=False, order=(), limit=None, offset=None, syntax=None)

    def read(part: Expr) -> Expr | None:
        if part in names:
            return Field(_GROUPED, (names[part],), part.type, place=part.place)
        if isinstance(part, (Aggregate, Field)) and not _is_generated(part, exploding):
            way_out = "Group in a subquery in FROM, and order outside."
            raise Wrong(part.place or block.place, "ORDER BY takes only columns next to explode()", way_out)
        return None

    rows = rewritten(replace(block, relation=None, where=None, group=None, having=None), read)
    generator = replace(exploding, argument=Field(_GROUPED, (names[exploding.argument],), exploding.argument.type))
    return replace(rows, relation=Exploded(Nested(groups, _GROUPED, block.place), (generator,), exploding.place))


def _is_generated(part: Expr, generator: Generator) -> bool:
    return isinstance(part, Field) and part.relation == generator.alias
