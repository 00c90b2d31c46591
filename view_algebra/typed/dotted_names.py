"""Dotted names: a column and the fields inside it, an output, a variable of a lambda, a column of the block around."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import cast as typed

from sqlglot import exp

from view_algebra.language import clock
from view_algebra.language.aggregates import is_aggregate
from view_algebra.language.expressions import Call, Expr, Place
from view_algebra.language.fields import member
from view_algebra.language.functions import NON_DETERMINISTIC
from view_algebra.language.overloads import call
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import (
    Scope,
    find,
    find_outside,
    given_once,
    is_column,
    parts_of,
    refuse_far,
    refuse_unclear,
    resolved,
)
from view_algebra.typed.output_names import spell_in_window
from view_algebra.written.dialect import readable
from view_algebra.written.oracle import spell


def column_named(node: exp.Expr, scope: Scope) -> Expr:
    """What a dotted name means: variables of lambdas before outputs, where these may be named, before columns."""
    root = node
    while isinstance(root, exp.Dot):
        root = root.this
    if isinstance(node, exp.Dot) and not isinstance(root, exp.Column):
        return member(resolved(node.this, scope), node.expression.name, span(node.expression))
    names = parts_of(node)
    place = span(node)
    first = names[0].lower()
    preferred = first in scope.preferred and (first not in scope.relations or len(names) == 1)
    if preferred and first not in scope.variables:
        refuse_unclear(first, scope, place)
    if first in scope.variables or preferred:
        found: Expr = scope.variables[first] if first in scope.variables else scope.preferred[first]
        for name in names[1:]:
            found = member(found, name, place)
        return found
    if first in scope.windows and len(names) <= 2:
        window = replace(typed(Call, scope.windows[first]), place=place)
        return member(window, names[1], place) if len(names) == 2 else window
    once = given_once(names[0], scope, place) if len(names) == 1 else None
    if once is not None:
        return once
    try:
        return find(names, scope.relations, place)
    except Wrong as wrong:
        return _elsewhere(names, node, scope, wrong)


def _elsewhere(names: list[str], node: exp.Expr, scope: Scope, wrong: Wrong) -> Expr:
    """What is no column of FROM: an output, a function without parentheses, or a column of the block around."""
    place, alias = span(node), scope.aliases.get(names[0].lower())
    if alias is None and names[0].lower() in NON_DETERMINISTIC:
        _refuse_function(names[0], scope, place)
        return call(names[0], [], place)
    if alias is None and len(names) == 1 and names[0].lower() in _WITHOUT_PARENTHESES:
        spell(node, clock.in_spark(names[0]))
        return clock.told(names[0], place)
    hidden = len(names) > 1 and is_column(names[:1], scope)  # by a column that is called as the relation
    if alias is None and scope.outer is not None and is_column(names, scope.outer) and not hidden:
        return find_outside(names, scope, place)
    if alias is None:
        refuse_far(names, scope, place)
        _refuse_output(names, node)
        raise wrong
    refuse_unclear(names[0].lower(), scope, place)
    spell_in_window(node)
    return reduce(lambda value, name: member(value, name, place), names[1:], alias)


def _refuse_function(name: str, scope: Scope, place: Place) -> None:
    """A column of the query around that has the name of a function, which Spark calls."""
    for alias, columns in scope.outer.relations.items() if scope.outer is not None else ():
        if name.lower() in {column.lower() for column, _ in columns}:
            raise Wrong(place, f"{name} alone, which to Spark is a function here", f"Write {alias}.{name}.")


def _refuse_output(names: list[str], node: exp.Expr) -> None:
    """An output of the SELECT, which WHERE and ON do not know; what is computed of groups or rows is known later."""
    block, condition = node.find_ancestor(exp.Select), node.find_ancestor(exp.Select, exp.Where, exp.Join)
    outputs = block.expressions if block is not None and block is not condition and len(names) == 1 else []
    found = next((o for o in outputs if isinstance(o, exp.Alias) and o.alias.lower() == names[0].lower()), None)
    if found is None:
        return
    meant = found.this
    way_out = f"Write {readable(meant if isinstance(meant, (exp.Column, exp.Anonymous)) else exp.Paren(this=meant))}."
    if meant.find(exp.Window) is not None:
        way_out = "Write the condition in QUALIFY, which stands behind WHERE, GROUP BY and HAVING."
    elif any(isinstance(part, exp.Anonymous) and is_aggregate(part.name.lower()) for part in meant.walk()):
        way_out = "Write the condition in HAVING, which stands behind GROUP BY."
    raise Wrong(span(node), f"{names[0]} is a column that this SELECT makes, which WHERE and ON do not know", way_out)


_WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "localtimestamp")
"""Functions of the clock that may be called by their name alone, where no column has it."""
