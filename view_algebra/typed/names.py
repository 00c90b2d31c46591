"""Names: the columns that a block of SQL can see, and the fields inside them.

A dotted name is a column and the fields inside it, an output, a variable of a lambda, or a column of the block around.
A name in double quotes is a text to Spark, and is refused if it is the name of a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.language import times as clock
from view_algebra.language.aggregates import is_aggregate
from view_algebra.language.expressions import Call, Expr, Field, Place, member
from view_algebra.language.functions import COLUMNS, NON_DETERMINISTIC
from view_algebra.language.overloads import call
from view_algebra.language.time_windows import CELL
from view_algebra.oracle import Edits
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.scopes import Columns, Scope, resolved
from view_algebra.written.dialect import in_double_quotes, readable


def name_parts(node: exp.Expr) -> list[str]:
    """The parts of a dotted name."""
    if isinstance(node, exp.Dot):
        return [*name_parts(node.this), node.expression.name]
    if isinstance(node, exp.Identifier):  # sqlglot's node for a lambda's variable
        return [node.name]
    return [part.name for part in static_cast(exp.Column, node).parts]


def find(names: Sequence[str], relations: Mapping[str, Columns], place: Place) -> Expr:
    """The column of this name, or of this relation and name, and then the fields inside it."""
    if len(names) > 1 and names[0].lower() in relations:
        column = _column(names[0].lower(), names[1:], relations[names[0].lower()], place)
        if column is not None:
            return column
        candidates = [name for name, _ in relations[names[0].lower()]]
        raise Wrong(place, f"there is no column {'.'.join(names)}", suggestion(names[1], candidates))
    every = {alias: _column(alias, names, columns, place) for alias, columns in relations.items()}
    hits = {alias: column for alias, column in every.items() if column is not None}
    if len(hits) > 1:
        either = " or ".join(f"{alias}.{names[0]}" for alias in hits)
        raise Wrong(place, f"{names[0]} is ambiguous: {either}", f"Write {either}.")
    if not hits:
        candidates = [name for columns in relations.values() for name, _ in columns]
        other = COLUMNS.get(names[0].lower())
        if names[0].lower() in _OF_KAFKA and relations:
            way_out = (
                f"Select {names[0]} in the subquery as well. An order does not need it: ties are broken without it."
            )
            raise Wrong(place, f"there is no column {names[0]}", way_out)
        other = other or _under_another_alias(names, relations)
        raise Wrong(
            place,
            f"there is no column {'.'.join(names)}",
            f"Write {other}." if other else suggestion(names[0], candidates),
        )
    return next(iter(hits.values()))


def _under_another_alias(names: Sequence[str], relations: Mapping[str, Columns]) -> str | None:
    """The column under the alias that its relation has here, if it differs from the author's."""
    if len(names) == 1:
        return None
    of = [alias for alias, columns in relations.items() if names[1].lower() in {name.lower() for name, _ in columns}]
    return " or ".join(f"{alias}.{'.'.join(names[1:])}" for alias in of) or None


_OF_KAFKA = ("kafka_partition", "kafka_offset", "kafka_timestamp", "kafka_key", "kafka_headers")
"""Columns that every source has, and a subquery only if it selects them."""


def is_column(names: Sequence[str], block: Scope) -> bool:
    """True if the name means at least one column of the relations that the block reads."""
    first, *inner = (name.lower() for name in names)
    if inner and first in block.relations:
        return inner[0] in {name.lower() for name, _ in block.relations[first]}
    return any(first == name.lower() for columns in block.relations.values() for name, _ in columns)


def refuse_unreachable(names: Sequence[str], scope: Scope, place: Place) -> None:
    """Raises for a column of an outer query that cannot be named here."""
    if is_column(names, scope) or not any(is_column(names, block) for block in scope.outside.blocks):
        return
    way_out = (
        "Only WHERE and HAVING of a direct subquery can name it. Move the condition from ON to WHERE, or compute with"
        " the column in the outer query."
    )
    raise Wrong(place, f"{'.'.join(names)} is a column of an outer query", way_out)


def merged_column(name: str, scope: Scope, place: Place) -> Expr | None:
    """The merged column of JOIN … USING (name), or None."""
    key = name.lower()
    others = [
        alias
        for alias, columns in scope.relations.items()
        if (alias, key) not in scope.merged and any(column.lower() == key for column, _ in columns)
    ]
    if key in scope.using and others:
        either = " or ".join(
            f"{alias}.{name}" for alias in (*(a for a, k in sorted(scope.merged) if k == key), *others)
        )
        raise Wrong(place, f"{name} is ambiguous: {either}", f"Write {either}.")
    return scope.using.get(key)


def find_outside(names: Sequence[str], scope: Scope, place: Place) -> Field:
    """A column of the block around a subquery."""
    assert scope.outer is not None
    column = find(names, scope.outer.relations, place)
    if not isinstance(column, Field):
        raise Wrong(place, f"{'.'.join(names)} is made of a column of the outer query", "Compute it there.")
    taken = [alias for alias in (*scope.relations, column.relation) if alias.rstrip("_0123456789") in OWN_ALIASES]
    if taken or column.relation in scope.relations:
        way_out = f"Give one of them another alias than {(*taken, column.relation)[0]}."
        raise Wrong(place, f"{'.'.join(names)} is a column of the outer query", way_out)
    return replace(column, outer=True)


OWN_ALIASES = ("pane", "hop", "block", CELL, "finer", "apart", "grouped", "one")
"""Aliases of compiled queries. A subquery's own aliases are numbered."""


def _column(alias: str, names: Sequence[str], columns: Columns, place: Place) -> Expr | None:
    """The column of a relation and the fields inside it, or None if it has no such column."""
    named = tuple((name, kind) for name, kind in columns if name.lower() == names[0].lower())
    if not named:
        return None
    refuse_alike(named, place)
    column: Expr = Field(alias, (named[0][0],), named[0][1], place=place)
    return _part(column, names[1:], place)


def _part(value: Expr, path: Sequence[str], place: Place) -> Expr:
    """The part of a value at a path of fields."""
    return reduce(lambda whole, name: member(whole, name, place), path, value)


def refuse_alike(columns: Columns, place: Place) -> None:
    """Refuses a subquery with unnamed columns, or with two columns of one name."""
    lower = [column.lower() for column, _ in columns]
    for column in lower:
        if not column:
            raise Wrong(place, "a column has no name", "Write … AS name in the subquery.")
        if lower.count(column) > 1:
            way_out = "Give the subquery's columns different names."
            raise Wrong(place, f"{column} is ambiguous: several columns have this name", way_out)


def refuse_unclear(name: str, scope: Scope, place: Place) -> None:
    """Refuses a name that several outputs share."""
    if name in scope.unclear:
        raise Wrong(
            place, f"{name} is ambiguous: several columns of this SELECT have this name", "Give them different names."
        )


def column_named(node: exp.Expr, scope: Scope) -> Expr:
    """The expression that a dotted name means: a lambda's variable before an output (if allowed) before a column."""
    root = node
    while isinstance(root, exp.Dot):
        root = root.this
    if isinstance(node, exp.Dot) and not isinstance(root, exp.Column):
        return member(resolved(node.this, scope), node.expression.name, span(node.expression))
    names = name_parts(node)
    place = span(node)
    first = names[0].lower()
    preferred = first in scope.preferred and (first not in scope.relations or len(names) == 1)
    if preferred and first not in scope.variables:
        refuse_unclear(first, scope, place)
    if first in scope.variables or preferred:
        meaning: Expr = scope.variables[first] if first in scope.variables else scope.preferred[first]
        return _part(meaning, names[1:], place)
    if first in scope.windows and len(names) <= 2:
        window = replace(static_cast(Call, scope.windows[first]), place=place)
        return member(window, names[1], place) if len(names) == 2 else window
    once = merged_column(names[0], scope, place) if len(names) == 1 else None
    if once is not None:
        return once
    try:
        return find(names, scope.relations, place)
    except Wrong as wrong:
        return _elsewhere(names, node, scope, wrong)


def _elsewhere(names: Sequence[str], node: exp.Expr, scope: Scope, wrong: Wrong) -> Expr:
    """The meaning of a name that FROM lacks: an output, a function without parentheses, or an outer column."""
    place, alias = span(node), scope.aliases.get(names[0].lower())
    if alias is None and names[0].lower() in NON_DETERMINISTIC:
        _refuse_function(names[0], scope, place)
        return call(names[0], [], place)
    if alias is None and len(names) == 1 and names[0].lower() in _WITHOUT_PARENTHESES:
        scope.edits.spell(node, clock.in_spark(names[0]))
        return clock.clock_call(names[0], place)
    hidden = len(names) > 1 and is_column(names[:1], scope)  # by a column with the relation's name
    if alias is None and scope.outer is not None and is_column(names, scope.outer) and not hidden:
        return find_outside(names, scope, place)
    if alias is None:
        refuse_unreachable(names, scope, place)
        _refuse_output(names, node)
        raise wrong
    refuse_unclear(names[0].lower(), scope, place)
    _spell_in_window(node, scope)
    return _part(alias, names[1:], place)


def _refuse_function(name: str, scope: Scope, place: Place) -> None:
    """Refuses an outer column whose name Spark reads as a function."""
    for alias, columns in scope.outer.relations.items() if scope.outer is not None else ():
        if name.lower() in {column.lower() for column, _ in columns}:
            raise Wrong(place, f"Spark reads {name} as a function here", f"Write {alias}.{name}.")


def _refuse_output(names: Sequence[str], node: exp.Expr) -> None:
    """Refuses an output's name in WHERE and ON, which are evaluated before the outputs."""
    block, condition = node.find_ancestor(exp.Select), node.find_ancestor(exp.Select, exp.Where, exp.Join)
    outputs = block.expressions if block is not None and block is not condition and len(names) == 1 else []
    output = next((o for o in outputs if isinstance(o, exp.Alias) and o.alias.lower() == names[0].lower()), None)
    if output is None:
        return
    meant = output.this
    way_out = f"Write {readable(meant if isinstance(meant, (exp.Column, exp.Anonymous)) else exp.Paren(this=meant))}."
    if meant.find(exp.Window) is not None:
        way_out = "Write the condition in QUALIFY, which follows WHERE, GROUP BY and HAVING."
    elif any(isinstance(part, exp.Anonymous) and is_aggregate(part.name.lower()) for part in meant.walk()):
        way_out = "Write the condition in HAVING, which follows GROUP BY."
    raise Wrong(span(node), f"WHERE and ON cannot name {names[0]}, an output of this SELECT", way_out)


_WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "localtimestamp")
"""Functions of the clock that need no parentheses, unless a column has their name."""


def refuse_quoted_column(node: exp.Literal, scope: Scope) -> None:
    """Refuses a text in double quotes that is the name of a column and would be useless as a text."""
    if not in_double_quotes(node) or not _in_the_place_of_a_column(node):
        return
    by_name = {name.lower(): name for columns in scope.relations.values() for name, _ in columns}
    if (name := by_name.get(node.name.lower())) is not None:
        what = f'"{node.name}" is a text to Spark, but a column has this name'
        raise Wrong(span(node), what, f"Write `{name}` for the column, or '{node.name}' for the text.")


def _in_the_place_of_a_column(node: exp.Expr) -> bool:
    item = node.parent if isinstance(node.parent, (exp.Alias, exp.Paren)) else node
    around = item.parent
    if isinstance(around, (exp.Group, exp.Ordered, exp.Cast, *_ARITHMETIC)):
        return True
    if isinstance(around, exp.Select):
        return item.arg_key == "expressions"
    if isinstance(around, exp.Window):
        return item.arg_key == "partition_by"
    if isinstance(around, exp.Anonymous):
        return is_aggregate(around.name.lower()) and len(around.expressions) == 1
    return isinstance(around, _CONDITIONS) and item.arg_key == "this" and not _names_a_column(around)


def _names_a_column(condition: exp.Expr) -> bool:
    return condition.find(exp.Column, exp.Query) is not None


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_CONDITIONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.In, exp.Between, exp.Is)


def _spell_in_window(node: exp.Expr, scope: Scope) -> None:
    """Notes the expression behind an output's name in OVER (…) and in aggregates, where Spark lacks such names."""
    block = node.parent_select
    for item in block.expressions if block is not None else ():
        if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            scope.edits.name_output(node, item.this)
            within = node.find_ancestor(exp.Window, exp.Anonymous)
            while isinstance(within, exp.Anonymous) and not is_aggregate(within.name.lower()):
                within = within.find_ancestor(exp.Window, exp.Anonymous)
            if within is not None:
                scope.edits.spell(node, scope.edited_sql(_without_names(node, scope.edits)))


def names_an_output(node: exp.Expr, edits: Edits) -> bool:
    """True if an output names another output outside of OVER (…)."""
    return any(edits.output_named(part) is not None and part.find_ancestor(exp.Window) is None for part in node.walk())


def _without_names(node: exp.Expr, edits: Edits) -> exp.Expr:
    """A copy of an expression with the expressions of other outputs instead of their names."""
    if (meant := edits.output_named(node)) is not None:
        return exp.Paren(this=_without_names(meant, edits))

    def change(part: exp.Expr) -> exp.Expr:
        return part if edits.output_named(part) is None else _without_names(part, edits)

    return edits.copy(node).transform(change, copy=False)


def meant_by(item: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """The expression behind a GROUP BY column that is a number or an alias, or None if `*` hides it."""
    named = {output.alias.lower(): output.this for output in node.expressions if isinstance(output, exp.Alias)}
    if isinstance(item, exp.Literal):
        columns = [] if any(output.is_star for output in node.expressions) else node.expressions
        return next((output.unalias() for n, output in enumerate(columns, 1) if item.name == str(n)), None)
    simple = isinstance(item, exp.Column) and not item.table
    return named.get(item.name.lower(), item) if simple else item
