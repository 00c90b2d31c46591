"""SQL for the ways out of errors about other systems' syntax, with the author's own names.

Rewrites a function of an aggregate as an aggregate of the function, if both are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, BY_EVENT_ORDER
from view_algebra.refusals import Span, span
from view_algebra.written.dialect import readable

_TAKES_ONE_VALUE = (*BY_EVENT_ORDER, *BY_EVENT_ORDER.values())
_BY_ITSELF = {name: f"{name}_by" for name in AGGREGATES if f"{name}_by" in AGGREGATES}
_OF_NULL = ("hash", "xxhash64", "concat_ws", "coalesce", "nvl", "ifnull", "to_json", "struct", "named_struct")
"""Functions that may return a value for NULL, which an aggregate of no values or no previous row returns."""

_OF_ROWS = ("lag", "lead", "first_value", "last_value", "nth_value")


def below(select: exp.Expr, place: Span | None) -> tuple[str, exp.Expr] | None:
    """The replacement for a function that Postgres lacks, and the SELECT with it, or None if there is none.

    An aggregate that takes a value of one record may take the function of this value instead.

    >>> from view_algebra.written.dialect import parse
    >>> from view_algebra.refusals import File
    >>> (v,) = parse(File("", "SELECT k, initcap(max(x)) AS h FROM s GROUP BY k"))
    >>> text, made = below(v.tree, Span(10, 17))
    >>> text, readable(made)
    ('max_by(initcap(x), x)', 'SELECT k, max_by(initcap(x), x) AS h FROM s GROUP BY k')
    """
    whole = select.copy()
    for call in whole.find_all(exp.Anonymous, exp.Cast):
        if span(call) != place or isinstance(call.parent, exp.Window) or call.name.lower() in _OF_NULL:
            continue
        parts = [*_outermost(call)]
        if len(parts) == 1:
            moved = (
                _over(call, parts[0]) if isinstance(parts[0], exp.Window) else _aggregate_of_function(call, parts[0])
            )
            if moved is not None:
                text = readable(moved)
                call.replace(moved)
                return text, whole
    return None


def _outermost(call: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates, windows and columns in a call, without those inside them."""
    for part in call.walk(prune=lambda node: node is not call and _is_leaf(node)):
        if part is not call and _is_leaf(part):
            yield part


def _is_leaf(node: exp.Expr) -> bool:
    taken = isinstance(node, exp.Anonymous) and node.name.lower() in (*_TAKES_ONE_VALUE, *_BY_ITSELF)
    return taken or isinstance(node, (exp.Column, exp.Query, exp.Window, exp.Filter, exp.IgnoreNulls, exp.WithinGroup))


def _over(call: exp.Expr, window: exp.Window) -> exp.Expr | None:
    """f(lag(x) OVER (…)) as lag(f(x)) OVER (…)."""
    picked = window.this
    if not isinstance(picked, exp.Anonymous) or picked.name.lower() not in _OF_ROWS or len(picked.expressions) > 2:
        return None
    value, *others = picked.expressions
    inner = _with(call, window, value)
    moved = window.copy()
    moved.set("this", exp.Anonymous(this=picked.name, expressions=[inner, *(other.copy() for other in others)]))
    return moved


def _with(call: exp.Expr, part: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A call with a value in place of one of its parts."""
    changed = call.copy()
    next(inner for inner in changed.find_all(type(part)) if inner is not changed and inner == part).replace(
        value.copy()
    )
    return changed


def _aggregate_of_function(call: exp.Expr, aggregate: exp.Expr) -> exp.Expr | None:
    if not isinstance(aggregate, exp.Anonymous):
        return None
    value, *others = aggregate.expressions or [exp.Null()]
    if isinstance(value, (exp.Distinct, exp.Star, exp.Null)):
        return None
    name = aggregate.name.lower()
    inner = _with(call, aggregate, value)
    arguments = [inner, value.copy()] if name in _BY_ITSELF else [inner, *(other.copy() for other in others)]
    return exp.Anonymous(this=_BY_ITSELF.get(name, name), expressions=arguments)


def json_field(node: exp.Expr) -> str:
    """`payload -> 'a' ->> 'b'` as get_json_object().

    >>> from view_algebra.written.dialect import parsed
    >>> json_field(parsed("payload -> 'items' -> 0 ->> 'sku'"))
    "get_json_object(payload, '$.items[0].sku')"
    >>> json_field(parsed("payload #>> '{user,id}'"))
    "get_json_object(payload, '$.user.id')"
    """
    keys: list[str] = []
    while isinstance(node, ARROWS):
        keys[:0] = _keys(node.expression)
        node = node.this
    path = "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in keys)
    return f"get_json_object({readable(node)}, '${path}')"


ARROWS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
"""Postgres' operators that extract a field of JSON."""


def _keys(path: exp.Expr) -> Iterator[str]:
    if isinstance(path, exp.JSONPath):
        yield from (str(part.this) for part in path.expressions if isinstance(part, (exp.JSONPathKey, _BY_NUMBER)))
    else:
        yield from (key.strip() for key in path.name.strip("{}").split(","))


_BY_NUMBER = exp.JSONPathSubscript


def unnested(node: exp.Unnest) -> str:
    """A join with UNNEST, as in standard SQL and BigQuery, written with a generator.

    >>> from view_algebra.written.dialect import parsed
    >>> def of(text):
    ...     return unnested(parsed(f"SELECT 1 FROM o {text}").find(exp.Unnest))
    >>> of("CROSS JOIN UNNEST(tags) AS t(tag)")
    'CROSS JOIN LATERAL explode(tags) AS t(tag)'
    >>> of("LEFT JOIN UNNEST(o.items) AS i(sku, qty) ON true")
    'LEFT JOIN LATERAL inline(o.items) AS i(sku, qty) ON true'
    >>> of(", UNNEST(items) AS i")
    'CROSS JOIN LATERAL explode(items) AS t(i)'
    """
    join, alias = node.parent, node.args.get("alias")
    columns = [column.name for column in alias.columns] if alias is not None else []
    relation = alias.this.name if alias is not None and alias.this is not None else "t"
    position = node.args.get("offset")
    name = "inline" if len(columns) > 1 and not position else "explode"
    if position:
        name = "posexplode"
        at = position.name if isinstance(position, exp.Identifier) else (columns.pop() if len(columns) > 1 else "pos")
        columns = [at, *(columns or [relation])]
    if not columns:
        relation, columns = "t" if relation != "t" else "u", [relation if alias is not None else "tag"]
    arguments = ", ".join(readable(argument) for argument in node.expressions)
    generator = f"LATERAL {name}({arguments}) AS {relation}({', '.join(columns)})"
    left = isinstance(join, exp.Join) and join.side == "LEFT"
    return f"LEFT JOIN {generator} ON true" if left else f"CROSS JOIN {generator}"


def one_row_each(block: exp.Select) -> str:
    """SELECT DISTINCT ON (k) … ORDER BY k, t, as QUALIFY.

    >>> from view_algebra.written.dialect import parsed
    >>> one_row_each(parsed("SELECT DISTINCT ON (id) id, status FROM orders ORDER BY id, at DESC"))
    'SELECT id, status FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY at DESC) = 1'
    """
    plain = block.copy()
    on = plain.args["distinct"].args["on"]
    keys = [readable(key) for key in (on.expressions if isinstance(on, exp.Tuple) else [on.unnest()])]
    order = plain.args.get("order")
    sorting = [readable(key) for key in (order.expressions if order is not None else [])]
    sorting = [key for key in sorting if re.sub(r" (ASC|DESC)\b.*", "", key) not in keys] or keys
    for clause in ("distinct", "order"):
        plain.set(clause, None)
    limit, offset = plain.args.pop("limit", None), plain.args.pop("offset", None)
    text = f"{readable(plain)} QUALIFY row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {', '.join(sorting)})"
    behind = "".join(f" {readable(part).strip()}" for part in (limit, offset) if part is not None)
    return f"{text} = 1{behind}"


def filtered_over(window: exp.Window) -> str:
    """f(x) FILTER (WHERE …) OVER (…) with a CASE.

    >>> from view_algebra.written.dialect import parsed
    >>> filtered_over(parsed("count(*) FILTER (WHERE a > 1) OVER (PARTITION BY b)"))
    'count(CASE WHEN a > 1 THEN 1 END) OVER (PARTITION BY b)'
    """
    changed = window.copy()
    filter_ = changed.this
    call, when = filter_.this, filter_.expression.this
    first, *more = call.expressions or [exp.Star()]
    value = exp.Literal.number(1) if isinstance(first, exp.Star) else first.copy()
    call.set("expressions", [exp.Case(ifs=[exp.If(this=when.copy(), true=value)]), *more])
    changed.set("this", call.copy())
    return readable(changed)


def computed_in_view(column: exp.ColumnDef, computed: exp.ComputedColumnConstraint) -> str:
    """The SELECT with a computed column of CREATE TABLE.

    >>> from view_algebra.written.dialect import parsed
    >>> table = parsed("CREATE TABLE t (ms BIGINT, at AS (timestamp_millis(ms)))")
    >>> computed_in_view(table.this.expressions[1], table.find(exp.ComputedColumnConstraint))
    'SELECT *, timestamp_millis(ms) AS at FROM t'
    """
    table = column.find_ancestor(exp.Schema)
    of = table.this.name if table is not None else "t"
    return f"SELECT *, {readable(computed.this.unnest())} AS {column.name} FROM {of}"


def folded_as(call: exp.Anonymous, kind: str) -> str:
    """aggregate(x, start, (a, e) -> …) with one type for start and result.

    >>> from view_algebra.written.dialect import parsed
    >>> folded_as(parsed("aggregate(x, 0, (a, e) -> a + e.price)"), "DECIMAL(38,2)")
    'aggregate(x, CAST(0 AS DECIMAL(38,2)), (a, e) -> CAST(a + e.price AS DECIMAL(38,2)))'
    """
    _, start, merge, *finish = call.expressions
    start = start.this if isinstance(start, exp.Cast) else start
    variables = ", ".join(variable.name for variable in merge.expressions)
    of = f"{call.name}({readable(call.expressions[0])}, CAST({readable(start)} AS {kind})"
    arguments = [of, f"({variables}) -> CAST({readable(merge.this)} AS {kind})", *map(readable, finish)]
    return f"{', '.join(arguments)})"


def replaced(star: exp.Star) -> str:
    """`* REPLACE (x + 1 AS x)` as `* EXCEPT (x), x + 1 AS x`.

    >>> from view_algebra.written.dialect import parsed
    >>> replaced(parsed("SELECT o.* REPLACE (upper(status) AS status) FROM orders AS o").find(exp.Star))
    'o.* EXCEPT (status), upper(status) AS status'
    """
    replacements = star.args.get("replace") or []
    names = ", ".join(replacement.alias for replacement in replacements)
    of = f"{star.parent.table}." if isinstance(star.parent, exp.Column) else ""
    return f"{of}* EXCEPT ({names}), {', '.join(readable(replacement) for replacement in replacements)}"
