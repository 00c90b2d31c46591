"""map_from_entries(): counts of values as one map, and whatever else is listed with a text as its name."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from view_algebra.language.expressions import Call, Expr
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import STRING, Type, not_in_json
from view_algebra.refusals import Wrong, span
from view_algebra.typed.collected import sorted_list
from view_algebra.typed.names import Scope
from view_algebra.written.oracle import spell, written


def map_from_entries(node: exp.Anonymous, scope: Scope, read: Callable[[exp.Expr, Scope], Expr]) -> Expr:
    """`map_from_entries(collect_list(struct(kind, n)))`: of two entries of one name the last one counts.

    Spark fails at an entry without a name. Such entries are left out, in the author's SELECT, too.
    """
    place = span(node)
    if len(node.expressions) != 1:
        raise Wrong(place, f"map_from_entries() with {len(node.expressions)} arguments", "Give it one list of structs.")
    (given,) = node.expressions
    of_groups = sorted_list([given], scope) if scope.above else None  # which have no order of events
    listed = read(given, scope) if of_groups is None else of_groups
    fields = () if listed.type.element is None else listed.type.element.fields
    if len(fields) != 2 or fields[0][1] != STRING or not_in_json(fields[1][1]) is not None:
        way_out = "Write map_from_entries(collect_list(struct(name, x))), where the name is a STRING."
        raise Wrong(place, f"map_from_entries() of {listed.type}", way_out)
    name = spark_name(fields[0][0])
    text = written(given) if of_groups is None else f"sort_array({written(given)})"
    spell(node, f"map_from_entries(filter({text}, e -> e.{name} IS NOT NULL))")
    return Call("map_from_entries", (listed,), Type("MAP", key=STRING, element=fields[1][1]), place=place)
