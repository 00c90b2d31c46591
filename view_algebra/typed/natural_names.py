"""The name that Spark gives a column without an alias: `count(*) + 1` is `(count(1) + 1)`.

Spark prints the expression as it understood it. If this module cannot print an expression exactly so, the column has no
name and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from view_algebra.language.aggregates import BY_EVENT_ORDER, aggregate_named
from view_algebra.language.functions import FUNCTIONS
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME, words
from view_algebra.language.time_windows import TIME_WINDOWS
from view_algebra.language.types import Type
from view_algebra.typed.expressions.scalars import BINARY
from view_algebra.typed.names import names_an_output
from view_algebra.typed.scopes import Scope

Printed = str | None
"""An expression as Spark prints it, or None if unknown."""


def natural_name(item: exp.Expr, scope: Scope) -> str:
    """The name that Spark gives a column. Empty if this module cannot print it."""
    if isinstance(item, (exp.Column, exp.Identifier)):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    if isinstance(item, exp.Anonymous) and item.name.lower() in TIME_WINDOWS:
        return str(item.name.lower())
    if isinstance(item, exp.Cast) and isinstance(item.this, exp.Column):
        return str(item.this.name) if len(item.this.parts) == 1 else ""
    printed = "" if names_an_output(item, scope.edits) else _printed(item.unnest(), scope) or ""
    # a column's name cannot look like a format's placeholder
    return "" if set("{}%") & {*printed} or len(printed.encode()) > LONGEST_POSTGRES_NAME else printed


def _printed(node: exp.Expr, scope: Scope) -> Printed:
    if node.args.get("negate"):
        return None
    printer = _PRINTERS.get(type(node))
    operator = _OPERATORS.get(type(node))
    if printer is not None:
        return printer(node, scope)
    return None if operator is None else _filled(f"({{}} {operator} {{}})", (node.this, node.expression), scope)


def _filled(text: str, parts: Sequence[exp.Expr], scope: Scope) -> Printed:
    """The text with its parts in place of `{}`, or all of them in place of `{all}`."""
    printed = [_printed(part, scope) for part in parts]
    texts = [text for text in printed if text is not None]
    if len(texts) < len(printed):
        return None
    return text.replace("{all}", ", ".join(texts)) if "{all}" in text else text.format(*texts)


def _column(node: exp.Column, scope: Scope) -> Printed:
    """A column without its relation, with its fields, or None for a map's entry, which Spark prints differently."""
    names = [part.name for part in node.parts]
    first = names[0].lower()
    kinds = [kind for columns in scope.relations.values() for name, kind in columns if name.lower() == first]
    qualified = first in scope.relations and len(names) > 1
    if first in scope.windows or bool(kinds) == qualified:
        return None
    if len(names) > 1 + qualified and any("MAP<" in kind.spark for kind in kinds or _kinds(first, names[1], scope)):
        return None
    return ".".join(names[1:] if qualified else names)


def _kinds(relation: str, column: str, scope: Scope) -> list[Type]:
    return [kind for name, kind in scope.relations[relation] if name.lower() == column.lower()]


def _literal(node: exp.Literal, _: Scope) -> Printed:
    """A literal as written. Spark rounds a fraction that is compared with a whole number."""
    if node.is_string:
        return None if set("'\"\\") & set(node.name) else node.name
    around = node.parent
    while isinstance(around, (exp.Paren, exp.Neg)):
        around = around.parent
    kept = "." not in node.name or not isinstance(around, (exp.Predicate, exp.In, exp.Between, exp.Case))
    return node.name if kept and re.fullmatch(r"(0|[1-9]\d{0,17})(\.\d+)?", node.name) else None


def _negative(node: exp.Neg, scope: Scope) -> Printed:
    return _filled("-{}" if isinstance(node.this, exp.Literal) else "(- {})", (node.this,), scope)


def _logical(node: exp.Connector, scope: Scope) -> Printed:
    """AND and OR. Spark rebuilds four or more operands as a tree of its own."""
    if isinstance(node.this, type(node)) and isinstance(node.this.this, type(node)):
        return None
    return _filled(f"({{}} {node.key.upper()} {{}})", (node.this, node.expression), scope)


def _is(node: exp.Is, scope: Scope) -> Printed:
    return _filled("({} IS NULL)", (node.this,), scope) if isinstance(node.expression, exp.Null) else None


def _not(node: exp.Not, scope: Scope) -> Printed:
    null = isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null)
    return _filled("({} IS NOT NULL)", (node.this.this,), scope) if null else _filled("(NOT {})", (node.this,), scope)


def _in(node: exp.In, scope: Scope) -> Printed:
    values = ", ".join(["{}"] * len(node.expressions))
    return _filled(f"({{}} IN ({values}))", (node.this, *node.expressions), scope) if values else None


def _case(node: exp.Case, scope: Scope) -> Printed:
    of = node.this
    whens = [
        branch.this if of is None else exp.EQ(this=of.copy(), expression=branch.this.copy())
        for branch in node.args["ifs"]
    ]
    parts = [part for when, branch in zip(whens, node.args["ifs"], strict=True) for part in (when, branch.args["true"])]
    default = node.args.get("default")
    text = "CASE" + " WHEN {} THEN {}" * len(node.args["ifs"]) + (" ELSE {}" if default is not None else "") + " END"
    return _filled(text, parts if default is None else [*parts, default], scope)


def _cast(node: exp.Cast, scope: Scope) -> Printed:
    kind, word = node.to.sql(dialect="spark"), "TRY_CAST" if node.args.get("safe") else "CAST"
    plain = re.fullmatch(r"[A-Z]+", kind) and not isinstance(node.this, exp.Literal)
    return _filled(f"{word}({{}} AS {kind})", (node.this,), scope) if plain else None


def _bracket(node: exp.Bracket, scope: Scope) -> Printed:
    return _filled("{}[{}]", (node.this, *node.expressions), scope)


def _substring(node: exp.Substring, scope: Scope) -> Printed:
    arguments = [node.this, node.args.get("start"), node.args.get("length")]
    return None if None in arguments else _filled("substring({all})", arguments, scope)


def _trim(node: exp.Trim, scope: Scope) -> Printed:
    plain = node.expression is None and not node.args.get("position")
    return _filled("trim({})", (node.this,), scope) if plain else None


def _call(node: exp.Anonymous, scope: Scope) -> Printed:
    name, nodes = node.name.lower(), node.expressions
    row = aggregate_named(name)
    exists = name in FUNCTIONS or row is not None or (name in BY_EVENT_ORDER and len(nodes) == 1)
    if not exists or name in OTHERWISE or any(isinstance(value, (exp.Alias, exp.PropertyEQ)) for value in nodes):
        return None
    distinct = bool(nodes) and isinstance(nodes[0], exp.Distinct)
    arguments = nodes[0].expressions if distinct else nodes
    omitted = row.syntax.default if row is not None and len(arguments) == row.arguments[0] else ""
    text = BY_COUNT.get((name, len(arguments))) or SPELLED.get(name, f"{name}({{all}}{omitted})")
    return _filled(text.replace("({all}", "(DISTINCT {all}") if distinct else text, arguments, scope)


def _filtered(node: exp.Filter, scope: Scope) -> Printed:
    return _filled("{} FILTER (WHERE {})", (node.this, node.expression.this), scope)


_OPERATORS = {kind: sign for kind, sign in BINARY.items() if kind is not exp.NEQ}
"""Spark writes `a <> b` as NOT (a = b)."""

_PRINTERS: dict[type[exp.Expr], Callable[[Any, Scope], Printed]] = {
    exp.Paren: lambda node, scope: _printed(node.this, scope),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _: str(node.this).lower(),
    exp.Null: lambda _, __: "NULL",
    exp.Star: lambda _, __: "1",
    exp.Neg: _negative,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Is: _is,
    exp.Not: _not,
    exp.NEQ: lambda node, scope: _filled("(NOT ({} = {}))", (node.this, node.expression), scope),
    exp.In: _in,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.NullSafeNEQ: lambda node, scope: _filled("(NOT ({} <=> {}))", (node.this, node.expression), scope),
    exp.Between: lambda n, scope: _filled("between({all})", (n.this, n.args["low"], n.args["high"]), scope),
    exp.Like: lambda node, scope: _filled("{} LIKE {}", (node.this, node.expression), scope),
    exp.Bracket: _bracket,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.BitwiseNot: lambda node, scope: _filled("~{}", (node.this,), scope),
    exp.DPipe: lambda node, scope: _filled("concat({}, {})", (node.this, node.expression), scope),
    exp.Anonymous: _call,
    exp.Filter: _filtered,
}

SPELLED = {
    **{
        name: f"{name.upper()}({{all}})"
        for name in words(
            "acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees exp expm1 hypot log10 log1p log2"
            " power radians regexp regexp_like rlike sec signum sin sinh sqrt tan tanh"
        )
    },
    "array_agg": "collect_list({all})",
    "if": "(IF({all}))",
    "isnotnull": "({all} IS NOT NULL)",
    "isnull": "({all} IS NULL)",
}
"""Spark's text of a call that it prints differently than its author wrote it."""

BY_COUNT = {
    ("bround", 1): "bround({all}, 0)",
    ("ceil", 1): "CEIL({all})",
    ("floor", 1): "FLOOR({all})",
    ("locate", 2): "locate({all}, 1)",
    ("regexp_extract", 2): "regexp_extract({all}, 1)",
    ("regexp_extract_all", 2): "regexp_extract_all({all}, 1)",
    ("regexp_replace", 3): "regexp_replace({all}, 1)",
    ("round", 1): "round({all}, 0)",
    ("sort_array", 1): "sort_array({all}, true)",
    ("split", 2): "split({all}, -1)",
}
"""The names whose text depends on the number of arguments: Spark adds those left out."""

OTHERWISE = words(
    "array_sort dateadd e from_json from_unixtime log lpad ltrim mask months_between pi positive regexp_instr replace"
    " rpad rtrim to_unix_timestamp unix_timestamp"
)
"""Functions that Spark prints in other ways."""
