"""SELECT: a block's outputs, `*` and explode() spelled out, each under the name that Spark gives it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast as typed

from sqlglot import exp

from view_algebra.language.expressions import Constant, Expr, Field, Output
from view_algebra.language.fields import member
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.meeting import cast
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import STRING, VOID, WINDOW, inside
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.generators import generated, makes_rows
from view_algebra.typed.names import Scope, find, given_once, is_kafkas, parts_of, refuse_alike
from view_algebra.typed.natural_names import natural_name
from view_algebra.typed.nested import is_empty
from view_algebra.typed.scalars import expression
from view_algebra.typed.spark_refuses import OVERLAPPING
from view_algebra.written.oracle import spell_columns
from view_algebra.written.ways_out import one_row_each


def outputs_of(node: exp.Select, scope: Scope) -> list[Output]:
    """The outputs of a SELECT; their names, and what makes rows among them, are known in the scope from then on."""
    outputs: list[Output] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else None
        qualifier = ""
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            star, qualifier = item.this, item.table.lower()
        if star is not None and qualifier and qualifier not in scope.relations:
            outputs += _fields(typed(exp.Column, item), scope)
            continue
        if star is not None:
            outputs += _star(star, qualifier, scope)
            continue
        inner = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
        if makes_rows(inner):
            outputs += _exploded(inner, item, scope)
            continue
        given = expression(inner, scope)
        name = item.alias if isinstance(item, exp.Alias) else natural_name(item, scope)
        if any(kind.length for kind in inside(given.type)) and given.type not in LENGTHS:
            way_out = "A difference of two times is a column of its own: ts - before AS waited."
            raise Wrong(span(item), f"a column of type {given.type}", way_out)
        if given.type == VOID:
            given = cast(given, STRING, implicit=True)
        elif VOID in inside(given.type) and any(map(is_empty, walk(given))):
            way_out = "Write it beside others, for example coalesce(tags, array())."
            raise Wrong(given.place or span(item), f"{given.type}, of nothing whose type is known", way_out)
        outputs.append(Output(name, given))
        if isinstance(item, exp.Alias):
            scope.unclear |= {name.lower()} & scope.aliases.keys()
            scope.aliases.setdefault(name.lower(), given)
    scope.unclear |= _unclear(outputs)
    return outputs


def _exploded(node: exp.Expr, item: exp.Expr, scope: Scope) -> list[Output]:
    """The columns of `SELECT explode(x) AS element`."""
    place = span(node)
    if scope.generators:
        way_out = "Write LATERAL VIEW explode(tags) t AS tag."
        raise Wrong(place, f"{node.name.lower()}() among columns, beside another", way_out)
    names = [each.name for each in item.args["expressions"]] if isinstance(item, exp.Aliases) else []
    names = [item.alias] if isinstance(item, exp.Alias) else names
    made = generated(node, names, f"q{len(scope.relations) + 1}", scope)
    scope.generators.append(made)
    found = [Output(name, Field(made.alias, (name,), kind, place=place)) for name, kind in made.columns]
    for output in found if names else ():
        scope.aliases.setdefault(output.name.lower(), output.expression)
    return found


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[Output]:
    if not scope.relations:
        raise Wrong(span(star), "* of nothing", "Name a source or a view in FROM.")
    left_out = _left_out(star, {name.lower() for columns in scope.relations.values() for name, _ in columns})
    for alias, columns in scope.relations.items():
        if not qualifier or alias == qualifier:
            refuse_alike(columns, span(star))
    found = [
        Field(alias, (name,), kind, place=span(star))
        for alias, columns in scope.relations.items()
        if not qualifier or alias == qualifier
        for name, kind in columns
        if not is_kafkas(alias, name, scope) and name.lower() not in left_out
    ]
    names = () if qualifier else [name for name in scope.using if name not in left_out]
    shared = {name: e for name in names if (e := given_once(name, scope, span(star))) is not None}
    if not qualifier:
        found = [field for field in found if (field.relation, field.path[0].lower()) not in scope.merged]
    own = [f"{spark_name(field.relation)}.{spark_name(field.path[0])}" for field in found]
    spell_columns(star, [*map(spark_name, shared), *own])
    once = [Output(next(f.path[0] for f in walk(e) if isinstance(f, Field)), e) for e in shared.values()]
    nulls = Constant(None, STRING, span(star))
    return [*once, *(Output(f.path[0], nulls if f.type == VOID else f) for f in found)]


def _unclear(outputs: Sequence[Output]) -> set[str]:
    """The names of several outputs that are not one column of that name, written twice."""
    meant: dict[str, Expr] = {}
    found: set[str] = set()
    for name, given in ((output.name.lower(), output.expression) for output in outputs):
        own = isinstance(given, Field) and [part.lower() for part in given.path] == [name]
        if name in meant and not (own and meant[name] == given):
            found.add(name)
        meant.setdefault(name, given)
    return found


def refuse_outer(outputs: Sequence[Output]) -> None:
    """Refuses columns of what stands before LATERAL among the outputs of records or groups."""
    for part in (part for output in outputs for part in walk(output.expression)):
        if isinstance(part, Field) and part.outer:
            way_out = f"Compute with it outside: SELECT {part.relation}.{part.path[0]} + l.x FROM …, LATERAL (…) AS l."
            raise Wrong(part.place, "a column of what stands before LATERAL, of each record or group", way_out)


def _left_out(star: exp.Star, columns: Collection[str]) -> set[str]:
    """The columns that `* EXCEPT (…)` leaves out."""
    found: set[str] = set()
    for column in star.args.get("except_") or star.args.get("except") or []:
        name = ".".join(parts_of(column)).lower() if isinstance(column, (exp.Column, exp.Dot)) else column.name.lower()
        if name not in columns or name in found:
            raise Wrong(span(column), f"EXCEPT ({name}): no column of this name", suggestion(name, [*columns]))
        found.add(name)
    return found


def _fields(item: exp.Column, scope: Scope) -> list[Output]:
    """The fields of the struct, or the bounds of the window, of `column.*`."""
    names, place = [part.name for part in item.parts[:-1]], span(item.parts[-2])
    if names[0].lower() in scope.windows:
        raise Wrong(place, f"{names[0]}.*, which Spark does not know", "Write window.start, window.end.")
    known = {name.lower() for columns in scope.relations.values() for name, _ in columns}
    known |= {relation.lower() for relation in scope.relations} if len(names) > 1 else set()
    if names[0].lower() not in known:
        raise Wrong(place, f"no relation {names[0]}", suggestion(names[0], scope.relations))
    struct = find(names, scope.relations, place)
    if not struct.type.fields or item.this.args.get("except_") or item.this.args.get("except"):
        raise Wrong(place, f"{'.'.join(names)}.* of {struct.type}", "Name the fields.")
    return [Output(name, member(struct, name, place)) for name, _ in struct.type.fields]


def is_distinct(node: exp.Select, outputs: Sequence[Output]) -> bool:
    """Does it say DISTINCT? Refused where its outputs have no equality that both engines share."""
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Wrong(span(distinct.args["on"]) or span(node), "DISTINCT ON", f"Write {one_row_each(node)}.")
    kinds = {o.expression: o.expression.type for o in outputs}
    nested = next((e for e, kind in kinds.items() if kind.nested and kind != WINDOW), None)
    if distinct is not None and nested is not None:
        way_out = "Leave it out, or take to_json(…) of it."
        raise Wrong(nested.place or span(node), f"SELECT DISTINCT of a column of type {nested.type}", way_out)
    session = next((e for e, kind in kinds.items() if kind.session), None)
    if distinct is not None and session is not None:
        way_out = OVERLAPPING
        if node.args.get("group") is None:
            way_out = "Write GROUP BY session_window(…), and select session_window.start and session_window.end."
        raise Wrong(session.place or span(node), "SELECT DISTINCT of sessions", way_out)
    return distinct is not None
