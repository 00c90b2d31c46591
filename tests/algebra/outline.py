"""A typed query and its split as lines, for tests and for the examples in `passes.py`.

No engine reads them. Types are shown where SQL hides them, keys of ORDER BY that break ties are marked, and the values
that a block keeps in its cells have a line of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from view_algebra.language.expressions import (
    PLAINLY,
    Aggregate,
    Call,
    Case,
    Cells,
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Generator,
    Hopped,
    Joined,
    Merged,
    NeedsRecords,
    Nested,
    Order,
    OverValues,
    Query,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
    Subquery,
    Windowed,
)
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import STRING
from view_algebra.split.leaves import Leaf

_INFIX = ("=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "div", "and", "or", "in", "like")


def outline(query: Query) -> str:
    """A query with one clause per line. Nested queries are indented."""
    return "\n".join(_query(query))


def leaf_outline(leaf: Leaf) -> str:
    """A table of cells: the records that it reads, its keys, and its values."""
    lines = [f"a cell per {'record' if leaf.kind == 'row' else 'group'} of {leaf.source}"]
    lines += [f"  {line}" for line in map(_generator, leaf.generators)]
    lines += [f"  WHERE {_text(leaf.where)}"] if leaf.where is not None else []
    lines += [f"  key {_as(name, e)}" for name, e in leaf.keys]
    for kept in leaf.kept:
        kind, how = (
            (kept.expression.type, "")
            if kept.partial is None
            else (kept.partial.type, f" merged by {kept.partial.merge}")
        )
        lines.append(f"  keeps {_text(kept.expression)} AS {spark_name(kept.name)}: {kind}{how}")
    return "\n".join(lines)


def _query(query: Query) -> Iterator[str]:
    if isinstance(query, Combined):
        yield from _query(query.left)
        yield query.operator
        yield from _query(query.right)
    else:
        yield from _block(query)
    if query.order:
        yield f"ORDER BY {', '.join(map(_key, query.order))}"
    for word, number in (("LIMIT", query.limit), ("OFFSET", query.offset)):
        if number is not None:
            yield f"{word} {number}"


def _block(block: Select) -> Iterator[str]:
    yield "SELECT DISTINCT" if block.distinct else "SELECT"
    yield from (f"  {_as(output.name, output.expression)}" for output in block.outputs)
    if block.relation is not None:
        first, *more = _relation(block.relation)
        yield f"FROM {first}"
        yield from more
    if block.where is not None:
        yield f"WHERE {_text(block.where)}"
    if block.group is not None:
        yield f"GROUP BY {_list(block.group) or 'nothing'}"
    if block.having is not None:
        yield f"HAVING {_text(block.having)}"
    if block.keeping is not PLAINLY and block.keeping.finest is not None:
        yield f"KEPT BY {_list(block.keeping.finest)}"


def _relation(relation: Relation) -> Iterator[str]:
    match relation:
        case Stream():
            yield f"stream {spark_name(relation.source)} AS {spark_name(relation.alias)}"
            yield from map(_generator, relation.generators)
        case Read():
            yield f"view {spark_name(relation.view)} AS {spark_name(relation.alias)}"
        case Constants():
            yield f"{len(relation.rows)} constants AS {relation.alias}"
        case Cells():
            yield f"cells {relation.table} AS {relation.alias}{' (one at least)' if relation.never_empty else ''}"
        case Nested():
            yield f"{'LATERAL ' if relation.lateral else ''}("
            yield from (f"  {line}" for line in _query(relation.query))
            yield f") AS {relation.alias}"
        case Exploded():
            yield from _relation(relation.relation)
            yield from map(_generator, relation.generators)
        case Joined():
            yield from _relation(relation.left)
            first, *more = _relation(relation.right)
            yield f"{relation.kind} JOIN {first}"
            yield from more
            if relation.condition is not None:
                yield f"ON {_text(relation.condition)}"
        case Hopped():
            yield f"windows of cells {relation.windows.table}, each of its panes of cells {relation.panes.table}"
        case Sessions():
            yield f"sessions of cells {relation.panes.table} by ({', '.join(relation.within)})"
        case _:
            assert_never(relation)


def _generator(generator: Generator) -> str:
    columns = ", ".join(name for name, _ in generator.columns)
    alias = generator.alias or "it"
    return f"{'OUTER ' if generator.outer else ''}EXPLODE {_text(generator.argument)} AS {alias}({columns})"


def _as(name: str, expression: Expr) -> str:
    return f"{_text(expression)} AS {spark_name(name)}: {expression.type}"


def _key(order: Order) -> str:
    nulls = "" if order.nulls_first != order.descending else f" NULLS {'FIRST' if order.nulls_first else 'LAST'}"
    tie = " (tie)" if order.tie else ""
    return f"{_text(order.expression)}{' DESC' if order.descending else ''}{nulls}{tie}"


def _list(expressions: Sequence[Expr]) -> str:
    return ", ".join(map(_text, expressions))


def _text(expression: Expr) -> str:
    match expression:
        case Constant():
            text = "NULL" if expression.value is None else expression.value
            return repr(text) if expression.type == STRING and expression.value is not None else text
        case Field():
            path = ".".join((*map(spark_name, filter(None, [expression.relation])), *map(spark_name, expression.path)))
            return f"outer {path}" if expression.outer else path
        case Case():
            whens = " ".join(f"WHEN {_text(when)} THEN {_text(then)}" for when, then in expression.branches)
            return f"CASE {whens}{'' if expression.otherwise is None else ' ELSE ' + _text(expression.otherwise)} END"
        case Call():
            return _call(expression)
        case Aggregate():
            arguments = ("DISTINCT " if expression.distinct else "") + (_list(expression.arguments) or "*")
            where = "" if expression.condition is None else f" FILTER (WHERE {_text(expression.condition)})"
            return f"{expression.function}({arguments}){where}"
        case Windowed():
            parts = [f"PARTITION BY {_list(expression.partition)}"] if expression.partition else []
            parts += [f"ORDER BY {', '.join(map(_key, expression.order))}"] if expression.order else []
            over = " ".join([*parts, expression.frame] if expression.frame else parts)
            return f"{expression.function}({_list(expression.arguments)}) OVER ({over})"
        case Subquery():
            operand = "" if expression.operand is None else f"{_text(expression.operand)} "
            word = {"scalar": "", "exists": "EXISTS ", "in": "IN "}[expression.kind]
            return f"{operand}{word}({' '.join(line.strip() for line in _query(expression.query))})"
        case OverValues():
            return f"{expression.function} of values ({_text(expression.value)}), each {_text(expression.times)} times"
        case NeedsRecords():
            return f"needs records: {expression.reason}"
        case Merged():
            return f"merged by {expression.merge} ({_list(expression.columns)})"
        case _:
            assert_never(expression)


def _call(call: Call) -> str:
    if call.function in ("cast", "try_cast"):
        inside = _text(call.arguments[0])
        return f"{inside}::{call.type}" if call.implicit else f"{call.function}({inside} AS {call.type})"
    if call.function in _INFIX and len(call.arguments) == 2:
        return f"({_text(call.arguments[0])} {call.function} {_text(call.arguments[1])})"
    return f"{call.function.replace(' ', '_')}({_list(call.arguments)})"
