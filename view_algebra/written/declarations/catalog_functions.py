"""Expands calls of the catalog's functions: `CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1`.

A call becomes the function's expression, with its arguments cast to the declared types. So neither the texts of a view
nor the SELECT of `lamina check` contain functions of the catalog.

Names inside lambdas become variables. A variable that would capture another name is renamed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, BY_BUCKETS, BY_EVENT_ORDER, SYNONYMS
from view_algebra.language.functions import FOREIGN, FUNCTIONS, GENERATORS, NON_DETERMINISTIC, WINDOW_FUNCTIONS
from view_algebra.language.times import TIMED
from view_algebra.language.types import read
from view_algebra.refusals import File, Span, Wrong, moved_to, not_taken, span, suggestion
from view_algebra.written.dialect import Statement, text_of


def variable(name: exp.Expr) -> exp.Identifier | None:
    """The variable that a name means, from the innermost lambda that has it, or None for other names.

    >>> from view_algebra.written.dialect import parsed
    >>> body = parsed("transform(a, x -> exists(b, X -> x > y))")
    >>> [(name.name, found and found.name) for name in looked_up(body) if (found := variable(name)) or name.name == "y"]
    [('x', 'X'), ('y', None)]
    """
    around = name.find_ancestor(exp.Lambda)
    while around is not None:
        for parameter in around.expressions:
            if parameter.name.lower() == name.name.lower():
                return parameter if isinstance(parameter, exp.Identifier) else None
        around = around.find_ancestor(exp.Lambda)
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


_OF_ROWS = frozenset((*AGGREGATES, *SYNONYMS, *BY_EVENT_ORDER, *BY_BUCKETS, *GENERATORS, *WINDOW_FUNCTIONS))
_TAKEN = frozenset((*_OF_ROWS, *FUNCTIONS, *NON_DETERMINISTIC)) - FOREIGN.keys()


@dataclass(frozen=True)
class FunctionDeclaration:
    """A declared function. `takes`: its parameters with their types. `gives`: None without RETURNS."""

    name: str
    file: File
    place: Span | None
    takes: tuple[tuple[str, exp.DataType], ...]
    gives: exp.DataType | None
    body: exp.Expr


MOST_PARTS = 5_000
"""Most names, literals and operators in an expanded call. A function that calls another one twice doubles them."""


def is_function(statement: exp.Expr) -> bool:
    """True if a statement declares a function."""
    return isinstance(statement, exp.Create) and statement.kind == "FUNCTION"


def function_declaration(file: File, written: Statement, taken: Collection[str] = ()) -> FunctionDeclaration:
    """The function that a statement declares. `taken`: further names of Spark's functions."""
    statement = written.tree
    assert isinstance(statement, exp.Create)
    head, place = statement.this, span(statement.this)
    name = (head.this if isinstance(head, exp.UserDefinedFunction) else head).name.lower()
    for option, word in {"replace": "OR REPLACE", "exists": "IF NOT EXISTS"}.items():
        if statement.args.get(option):
            raise Wrong(place, f"CREATE … {word} is not served", f"Leave {word} out.")
    if not isinstance(head, exp.UserDefinedFunction) or not isinstance(statement.expression, exp.Return):
        way_out = "Write CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1."
        raise Wrong(place, "the function is not an expression of SQL", way_out)
    if isinstance(head.this, exp.Table) and head.this.args.get("db"):
        raise Wrong(place, f"{head.this.sql('spark')}() has a schema", f"Write the name alone: {name}.")
    if name in _TAKEN or name in taken:
        raise Wrong(place, f"{name}() is a function of Spark's", "Choose another name.")
    gives = _type_of(statement)
    takes = tuple(_parameter(item) for item in head.expressions)
    names = [parameter for parameter, _ in takes]
    if len(set(names)) < len(names):
        raise Wrong(place, f"two parameters of {name}() have one name", "Give each a name of its own.")
    body = statement.expression.this
    for node in body.walk():
        _refuse_in_body(node, name, names)
    return FunctionDeclaration(name, file, place, takes, gives, body)


def _type_of(statement: exp.Create) -> exp.DataType | None:
    """The type after RETURNS. Comments, and characteristics that every function here has, are allowed."""
    gives = None
    properties = statement.args.get("properties")
    for item in properties.expressions if properties is not None else []:
        if isinstance(item, exp.ReturnsProperty) and not item.args.get("is_table"):
            gives = _scalar(item.this, span(statement.this))
        elif not isinstance(item, _ALLOWED):
            word, way_out = item.key.upper().removesuffix("PROPERTY"), "Leave it out."
            if isinstance(item, exp.ReturnsProperty):
                word, way_out = "RETURNS TABLE", "Declare a view, and write WHERE where it is read."
            raise Wrong(span(item) or span(statement.this), f"a function does not take {word}", way_out)
    return gives


_ALLOWED = (exp.SchemaCommentProperty, exp.LanguageProperty, exp.StabilityProperty, exp.SqlReadWriteProperty)
"""A comment, and LANGUAGE SQL, DETERMINISTIC and CONTAINS SQL, which hold for every function of a catalog."""


def _parameter(item: exp.Expr) -> tuple[str, exp.DataType]:
    kind = item.args.get("kind") if isinstance(item, exp.ColumnDef) else None
    if kind is None:
        raise Wrong(span(item), f"parameter {item.name} has no type", f"Write {item.name} STRING, or another type.")
    for constraint in item.args.get("constraints") or []:
        if not isinstance(constraint.kind, exp.CommentColumnConstraint):
            raise Wrong(
                span(item), f"parameter {item.name} has a default", "Leave it out, and give the argument in each call."
            )
    return item.name.lower(), _scalar(kind, span(item))


def _scalar(kind: exp.Expr, place: Span | None) -> exp.DataType:
    scalar = read(kind)
    if scalar is None or scalar.nested or not isinstance(kind, exp.DataType):
        raise Wrong(place, f"a function cannot use {kind.sql('spark')}", "Write a scalar type of docs/sql.md.")
    return kind


def _refuse_in_body(node: exp.Expr, name: str, parameters: Collection[str]) -> None:
    if isinstance(node, exp.Query):
        raise Wrong(span(node), f"{name}() contains a query", "Compute it in the view, and give it to the function.")
    if isinstance(node, (exp.Window, exp.Star)) or (isinstance(node, exp.Anonymous) and node.name.lower() in _OF_ROWS):
        raise Wrong(
            span(node), f"{name}() reads several rows", "Aggregate in the view, and give the result to the function."
        )
    if not isinstance(node, exp.Column) or _is_unit(node) or variable(node.parts[0]) is not None:
        return
    if _parameter_named(node, name) not in parameters:
        raise Wrong(span(node), f"{name}() has no parameter {node.sql('spark')}", suggestion(node.name, parameters))


def _parameter_named(column: exp.Column, function: str) -> str | None:
    """The parameter that a name in a function's body may mean, `x` or `f.x`, or None for a name with more parts."""
    *before, name = [part.name.lower() for part in column.parts]
    return name if before in ([], [function]) else None


def _is_unit(column: exp.Column) -> bool:
    """True for a unit, such as MINUTE in `timestampdiff(MINUTE, a, b)`."""
    call = column.parent
    timed = isinstance(call, exp.Anonymous) and call.name.lower() in TIMED and len(call.expressions) == 3
    return timed and column.index == 0


def expanded(written: Statement, functions: Mapping[str, FunctionDeclaration]) -> Statement:
    """The statement with all calls of the catalog's functions expanded, or the same statement if it has none.

    >>> from view_algebra.written.dialect import parse
    >>> f, v = parse(File("", "CREATE FUNCTION f(x INT) RETURN x + 1; CREATE VIEW v AS SELECT f(a) AS b FROM s"))
    >>> expanded(v, {"f": function_declaration(File("", ""), f)}).select
    'SELECT (CAST(a AS INT) + 1) AS b FROM s'
    """
    if not any(_declared(node, functions) for node in written.tree.walk()):
        return written
    tree = _expanded(written.tree.copy(), functions, ())
    if not written.select:
        return Statement(tree, text_of(tree), "")
    select = text_of(tree.expression)
    return Statement(tree, written.sql[: -len(written.select)] + select, select)


def written_out(function: FunctionDeclaration, functions: Mapping[str, FunctionDeclaration]) -> exp.Expr:
    """A function's expression over its parameters, with all calls of other functions expanded."""
    body: exp.Expr = exp.Paren(this=_expanded(function.body.copy(), functions, (function.name,)))
    return body if function.gives is None else exp.Cast(this=body, to=function.gives.copy())


def calls_of(node: exp.Expr, functions: Mapping[str, FunctionDeclaration]) -> set[str]:
    """The functions of the catalog that the syntax calls."""
    return {declared.name for part in node.walk() if (declared := _declared(part, functions)) is not None}


def _declared(node: exp.Expr, functions: Mapping[str, FunctionDeclaration]) -> FunctionDeclaration | None:
    return functions.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None


def _expanded(node: exp.Expr, functions: Mapping[str, FunctionDeclaration], around: tuple[str, ...]) -> exp.Expr:
    """A node with its calls expanded, inner ones first. `around`: the functions being expanded."""
    for part in reversed([*node.walk()]):
        if (function := _declared(part, functions)) is None:
            continue
        expansion = _call(part, function, functions, around)
        if part is node:
            node = expansion
        else:
            part.replace(expansion)
    return node


def _call(
    call: exp.Expr,
    function: FunctionDeclaration,
    functions: Mapping[str, FunctionDeclaration],
    around: tuple[str, ...],
) -> exp.Expr:
    """The expansion of a call. A mistake in it is reported at the call."""
    name, values = function.name, call.expressions
    if name in around:
        circle = " calls ".join([*around[around.index(name) :], name])
        raise Wrong(span(call), f"functions call each other in a circle: {circle}", "Break the circle.")
    if len(values) != len(function.takes):
        takes = ", ".join(f"{parameter} {kind.sql('spark')}" for parameter, kind in function.takes)
        raise Wrong(span(call), not_taken(name, len(values)), f"It takes ({takes}).")
    arguments = {
        parameter: exp.Cast(this=argument.copy(), to=moved_to(kind, span(call)))
        for (parameter, kind), argument in zip(function.takes, values, strict=True)
    }
    body = with_labels(_expanded(moved_to(function.body, span(call)), functions, (*around, name)))
    # After the expansion of inner calls, whose arguments put names of this function into lambdas of others.
    named = {part.name.lower() for value in values for part in value.find_all(exp.Identifier)}
    body = _with_arguments(with_own_variables(body, named), name, arguments)
    whole = exp.Paren(this=body)
    if sum(1 for _ in whole.walk()) > MOST_PARTS:
        what = f"{name}() stands for more than {MOST_PARTS:,} words"
        raise Wrong(span(call), what, "Compute what it is called with in a subquery, and call it once.")
    return whole if function.gives is None else exp.Cast(this=whole, to=moved_to(function.gives, span(call)))


def _with_arguments(body: exp.Expr, function: str, arguments: Mapping[str, exp.Expr]) -> exp.Expr:
    """A body with arguments in place of its parameters."""
    for part in reversed([*body.walk()]):
        if not isinstance(part, exp.Column) or _is_unit(part) or variable(part.parts[0]) is not None:
            continue
        if (argument := arguments.get(_parameter_named(part, function) or "")) is None:
            continue
        argument = argument.copy()
        body = argument if part is body else body
        part.replace(argument)
    return body
