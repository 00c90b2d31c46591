"""Calls that make rows: explode() and its like, beside what FROM reads and among columns."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Constants, Exploded, Expr, Generator, Place, Relation
from view_algebra.language.functions import GENERATORS
from view_algebra.language.guards import clean_json
from view_algebra.language.types import INT
from view_algebra.refusals import Wrong, span
from view_algebra.typed.constants import elements, table
from view_algebra.typed.names import Scope
from view_algebra.typed.nested import is_empty, json_fields, stacked
from view_algebra.typed.scalars import expression
from view_algebra.written.oracle import spell, written


def generated(node: exp.Expr, names: list[str], alias: str, scope: Scope) -> Generator:
    """What a call makes rows of, and the columns that it gives."""
    place, given = span(node), [expression(each, scope) for each in node.expressions]
    if node.name.lower() == "stack":
        given = [stacked(given, place)]
    if node.name.lower() == "json_tuple":
        given = [json_fields(given, place)]
        spell(node.expressions[0], clean_json(written(node.expressions[0])))
    if len(given) != 1:
        raise Wrong(place, f"{node.name}() with {len(given)} arguments", f"Write {node.name}(tags).")
    if is_empty(given[0]):
        raise Wrong(place, f"{node.name}() of nothing", "Name what it may hold: explode(coalesce(tags, array())).")
    return _generator(node.name, given[0], names, alias, place)


def makes_rows(node: exp.Expr) -> bool:
    """Is it a call that gives several rows for one?"""
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


def with_generator(relation: Relation | None, made: Generator) -> Exploded | Constants:
    """A relation with the rows that a generator makes of each of its own; of none, the elements of a literal."""
    if relation is None:
        rows = [[element] for element in elements(made.argument, made.place)]
        return table(rows, [name for name, _ in made.columns], made.alias, made.place)
    if isinstance(relation, Exploded):
        return replace(relation, generators=(*relation.generators, made))
    return Exploded(relation, (made,), made.place)


def _generator(function: str, argument: Expr, names: list[str], alias: str, place: Place) -> Generator:
    """explode(array) names its element, explode(map) its key and value, posexplode the position before, and inline the
    fields of its elements, as do stack and json_tuple.
    """
    name = function.lower()
    kind, positions, fields = argument.type, name.startswith("pos"), name.startswith(("inline", "stack", "json"))
    if kind.name not in ("ARRAY", "MAP") or kind.element is None:
        raise Wrong(argument.place or place, f"{name}() of {kind}", "It takes an array or a map: split(line, ' ').")
    if fields and not kind.element.fields:
        raise Wrong(argument.place or place, f"{name}() of {kind}", "It takes an array of structs.")
    types = [INT] * positions + ([kind.key] if kind.key is not None else []) + [kind.element]
    known = [*["pos"] * positions, *(["key", "value"] if kind.name == "MAP" else ["col"])]
    if fields:
        known, types = [name for name, _ in kind.element.fields], [of for _, of in kind.element.fields]
    given = names or known
    if len(given) != len(types):
        raise Wrong(
            place, f"{len(given)} names for the {len(types)} columns of {name}()", "Name each of them after AS."
        )
    columns = tuple(zip(given, types, strict=True))
    return Generator(argument, columns, positions, name.endswith("_outer"), alias, place, fields=fields)
