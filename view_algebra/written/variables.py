"""Resolves names inside lambdas to variables, and renames variables that would capture other names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

from sqlglot import exp


def variable(name: exp.Expr) -> exp.Identifier | None:
    """The variable that a name means, from the innermost lambda that has it; None for other names.

    >>> from view_algebra.written.dialect import parsed
    >>> body = parsed("transform(a, x -> exists(b, X -> x > y))")
    >>> [(name.name, found and found.name) for name in looked_up(body) if (found := variable(name)) or name.name == "y"]
    [('x', 'X'), ('y', None)]
    """
    around = name.parent
    while around is not None:
        if isinstance(around, exp.Lambda):
            for parameter in around.expressions:
                if parameter.name.lower() == name.name.lower():
                    return parameter if isinstance(parameter, exp.Identifier) else None
        around = around.parent
    return None


def looked_up(node: exp.Expr) -> Iterator[exp.Identifier]:
    """The names in an expression that mean a column or a variable: the first of `a.b.c`, but not labels or fields.

    >>> from view_algebra.written.dialect import parsed
    >>> [name.name for name in looked_up(parsed("transform(a, e -> struct(e.b AS c, d.x))"))]
    ['a', 'd', 'e']
    """
    for name in node.find_all(exp.Identifier):
        parent, place = name.parent, name.arg_key
        if isinstance(parent, exp.Column):
            of_a_value = parent.parts[0] is name
        elif isinstance(parent, (exp.Lambda, exp.Dot)):
            of_a_value = place == "this"
        else:
            label = isinstance(parent, (exp.PropertyEQ, exp.ColumnDef, exp.DataType)) and place == "this"
            called = isinstance(parent, exp.Anonymous) and place == "this"
            of_a_value = not (label or called or place == "alias")
        if of_a_value:
            yield name


def with_own_variables(node: exp.Expr, taken: Collection[str]) -> exp.Expr:
    """An expression with new names for variables whose names, in lower case, are in `taken`.

    A new name does not occur in the expression either.

    >>> from view_algebra.written.dialect import parsed, text_of
    >>> text_of(with_own_variables(parsed("exists(a, y -> exists(b, y_1 -> y_1.y > y))"), {"y"}))
    'EXISTS(a, y_2 -> EXISTS(b, y_1 -> y_1.y > y_2))'
    """
    reserved = {*taken, *(part.name.lower() for part in node.find_all(exp.Identifier))}
    meanings = [(name, variable(name)) for name in looked_up(node)]
    for own in [parameter for function in node.find_all(exp.Lambda) for parameter in function.expressions]:
        old = own.name.lower()
        if old not in taken:
            continue
        new = next(other for number in count(1) if (other := f"{old}_{number}") not in reserved)
        reserved.add(new)
        for name in [name for name, meant in meanings if meant is own]:
            name.set("this", new)
        own.set("this", new)
    return node


def with_labels(node: exp.Expr) -> exp.Expr:
    """An expression whose struct() labels its fields, which are otherwise named after its columns and variables.

    >>> from view_algebra.written.dialect import parsed, text_of
    >>> text_of(with_labels(parsed("to_json(struct(x, (f.y), z AS a, x + 1))")))
    'TO_JSON(STRUCT(x AS x, (f.y) AS y, z AS a, x + 1))'
    """
    for call in [anonymous for anonymous in node.find_all(exp.Anonymous) if anonymous.name.lower() == "struct"]:
        for item in call.expressions:
            value = item.unnest()
            name = value.this if isinstance(value, exp.Column) else value
            if isinstance(name, exp.Identifier):
                item.replace(exp.Alias(this=item.copy(), alias=name.copy()))
    return node
