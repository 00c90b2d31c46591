"""SELECT: its columns with their names, `*`, explode() and DISTINCT.

An output without an alias gets the name that Spark gives it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.language.expressions import (
    NULL,
    Aggregate,
    Constant,
    Expr,
    Field,
    Order,
    Output,
    Subquery,
    Windowed,
    member,
)
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.meeting import cast
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import STRING, VOID, WINDOW, inside
from view_algebra.language.walks import rewrite, walk
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.names import find, merged_column, name_parts, refuse_alike
from view_algebra.typed.natural_names import natural_name
from view_algebra.typed.relations.generators import generated, is_empty, makes_rows
from view_algebra.typed.scopes import Scope, is_kafkas, resolved
from view_algebra.typed.spark_refuses import OVERLAPPING
from view_algebra.written.ways_out.replacements import one_row_each


def outputs_of(node: exp.Select, scope: Scope) -> tuple[list[Output], Scope]:
    """The outputs of a SELECT, and the scope with their names and the calls among them that make rows."""
    outputs: list[Output] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else None
        qualifier = ""
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            star, qualifier = item.this, item.table.lower()
        if star is not None and qualifier and qualifier not in scope.relations:
            outputs += _fields(static_cast(exp.Column, item), scope)
            continue
        if star is not None:
            outputs += _star(star, qualifier, scope)
            continue
        inner = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
        if makes_rows(inner):
            exploded, scope = _exploded(inner, item, scope)
            outputs += exploded
            continue
        value = resolved(inner, scope)
        name = item.alias if isinstance(item, exp.Alias) else natural_name(item, scope)
        if any(kind.length for kind in inside(value.type)) and value.type not in LENGTHS:
            way_out = "A difference of two times is a column of its own: ts - before AS waited."
            raise Wrong(span(item), f"a column cannot be of type {value.type}", way_out)
        if value.type == VOID:
            value = cast(value, STRING, implicit=True)
        elif VOID in inside(value.type) and any(map(is_empty, walk(value))):
            way_out = "Write it next to others, for example coalesce(tags, array())."
            raise Wrong(value.place or span(item), f"an empty {value.type} has no known type", way_out)
        outputs.append(Output(name, value))
        if isinstance(item, exp.Alias):
            unclear = scope.unclear | ({name.lower()} & scope.aliases.keys())
            scope = replace(scope, unclear=unclear, aliases={name.lower(): value, **scope.aliases})
    return outputs, replace(scope, unclear=scope.unclear | _unclear(outputs))


def _exploded(node: exp.Expr, item: exp.Expr, scope: Scope) -> tuple[list[Output], Scope]:
    """The columns of `SELECT explode(x) AS element`, and the scope with their names."""
    place = span(node)
    if scope.generators:
        way_out = "Write LATERAL VIEW explode(tags) t AS tag."
        raise Wrong(place, "SELECT has two generators", way_out)
    names = [column.name for column in item.args["expressions"]] if isinstance(item, exp.Aliases) else []
    names = [item.alias] if isinstance(item, exp.Alias) else names
    generator = generated(node, names, f"q{len(scope.relations) + 1}", scope)
    outputs = [Output(name, Field(generator.alias, (name,), kind, place=place)) for name, kind in generator.columns]
    aliases = {output.name.lower(): output.expression for output in outputs if names}
    return outputs, replace(scope, generators=(generator,), aliases={**aliases, **scope.aliases})


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[Output]:
    """The columns of `*`, those that USING merges first."""
    if not scope.relations:
        raise Wrong(span(star), "SELECT * needs FROM", "Name a source or a view in FROM.")
    left_out = _left_out(star, {name.lower() for columns in scope.relations.values() for name, _ in columns})
    for alias, columns in scope.relations.items():
        if not qualifier or alias == qualifier:
            refuse_alike(columns, span(star))
    starred = [
        Field(alias, (name,), kind, place=span(star))
        for alias, columns in scope.relations.items()
        if not qualifier or alias == qualifier
        for name, kind in columns
        if not is_kafkas(alias, name, scope) and name.lower() not in left_out
    ]
    names = () if qualifier else [name for name in scope.using if name not in left_out]
    shared = {name: e for name in names if (e := merged_column(name, scope, span(star))) is not None}
    if not qualifier:
        starred = [field for field in starred if (field.relation, field.path[0].lower()) not in scope.merged]
    own = [f"{spark_name(field.relation)}.{spark_name(field.path[0])}" for field in starred]
    scope.edits.spell_columns(star, [*map(spark_name, shared), *own])
    once = [Output(next(f.path[0] for f in walk(e) if isinstance(f, Field)), e) for e in shared.values()]
    nulls = Constant(None, STRING, span(star))
    return [*once, *(Output(f.path[0], nulls if f.type == VOID else f) for f in starred)]


def _unclear(outputs: Sequence[Output]) -> set[str]:
    """Names that several outputs share, unless all of them are that one column."""
    meant: dict[str, Expr] = {}
    shared: set[str] = set()
    for name, value in ((output.name.lower(), output.expression) for output in outputs):
        own = isinstance(value, Field) and [part.lower() for part in value.path] == [name]
        if name in meant and not (own and meant[name] == value):
            shared.add(name)
        meant.setdefault(name, value)
    return shared


def refuse_outer(outputs: Sequence[Output]) -> None:
    """Refuses columns of the relations before LATERAL in the outputs of records or groups."""
    for part in (part for output in outputs for part in walk(output.expression)):
        if isinstance(part, Field) and part.outer:
            way_out = f"Compute with it outside: SELECT {part.relation}.{part.path[0]} + l.x FROM …, LATERAL (…) AS l."
            raise Wrong(part.place, "records and groups cannot show a column of a relation before LATERAL", way_out)


def _left_out(star: exp.Star, columns: Collection[str]) -> set[str]:
    """The columns that `* EXCEPT (…)` leaves out."""
    omitted: set[str] = set()
    for column in star.args.get("except_") or []:
        name = (
            ".".join(name_parts(column)).lower() if isinstance(column, (exp.Column, exp.Dot)) else column.name.lower()
        )
        if name not in columns or name in omitted:
            raise Wrong(span(column), f"EXCEPT ({name}) names a column that is missing", suggestion(name, [*columns]))
        omitted.add(name)
    return omitted


def _fields(item: exp.Column, scope: Scope) -> list[Output]:
    """The fields of the struct, or the bounds of the window, of `column.*`."""
    names, place = [part.name for part in item.parts[:-1]], span(item.parts[-2])
    if names[0].lower() in scope.windows:
        raise Wrong(place, f"Spark does not know {names[0]}.*", "Write window.start, window.end.")
    visible = {name.lower() for columns in scope.relations.values() for name, _ in columns}
    visible |= {relation.lower() for relation in scope.relations} if len(names) > 1 else set()
    if names[0].lower() not in visible:
        raise Wrong(place, f"there is no relation {names[0]}", suggestion(names[0], scope.relations))
    struct = find(names, scope.relations, place)
    if not struct.type.fields or item.this.args.get("except_"):
        raise Wrong(place, f"{'.'.join(names)}.* does not take {struct.type}", "Name the fields.")
    return [Output(name, member(struct, name, place)) for name, _ in struct.type.fields]


def is_distinct(node: exp.Select, outputs: Sequence[Output]) -> bool:
    """True for SELECT DISTINCT. Refuses it if the two engines compare its outputs differently."""
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Wrong(
            span(distinct.args["on"]) or span(node), "DISTINCT ON is not served", f"Write {one_row_each(node)}."
        )
    kinds = {o.expression: o.expression.type for o in outputs}
    nested = next((e for e, kind in kinds.items() if kind.nested and kind != WINDOW), None)
    if distinct is not None and nested is not None:
        way_out = "Leave it out, or take to_json(…) of it."
        raise Wrong(nested.place or span(node), f"SELECT DISTINCT does not take {nested.type}", way_out)
    session = next((e for e, kind in kinds.items() if kind.session), None)
    if distinct is not None and session is not None:
        way_out = OVERLAPPING
        if node.args.get("group") is None:
            way_out = "Write GROUP BY session_window(…), and select session_window.start and session_window.end."
        raise Wrong(session.place or span(node), "SELECT DISTINCT does not take sessions", way_out)
    return distinct is not None


def refuse_hidden_order(order: Sequence[Order], outputs: Sequence[Output]) -> None:
    """Refuses ORDER BY of DISTINCT rows by other than their columns."""
    columns = {output.expression: NULL for output in outputs}
    for part in (part for key in order for part in walk(rewrite(key.expression, columns.get))):
        if isinstance(part, (Field, Aggregate, Windowed, Subquery)):
            way_out = "Select it, or leave DISTINCT out."
            raise Wrong(part.place, "ORDER BY reads what SELECT DISTINCT leaves out", way_out)
