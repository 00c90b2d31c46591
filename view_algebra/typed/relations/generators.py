"""Calls that turn one row into several: explode(), inline(), stack(), json_tuple()."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Call, Constant, Constants, Exploded, Expr, Generator, Place, Relation
from view_algebra.language.functions import GENERATORS
from view_algebra.language.meeting import cast
from view_algebra.language.storable import clean_json
from view_algebra.language.types import INT, STRING, VOID, Type
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.relations.constants import elements, table, with_explicit_type
from view_algebra.typed.scopes import Scope, resolved


def generated(node: exp.Expr, names: Sequence[str], alias: str, scope: Scope) -> Generator:
    """The generator of a call that makes rows, with its columns."""
    place, arguments = span(node), [resolved(argument, scope) for argument in node.expressions]
    if node.name.lower() == "stack":
        arguments = [_stacked(arguments, place)]
    if node.name.lower() == "json_tuple":
        arguments = [_json_fields(arguments, place)]
        scope.edits.spell(node.expressions[0], clean_json(scope.edited_sql(node.expressions[0])))
    if len(arguments) != 1:
        raise Wrong(place, not_taken(node.name, len(arguments)), f"Write {node.name}(tags).")
    if is_empty(arguments[0]):
        raise Wrong(
            place,
            f"{node.name}() does not take an empty array",
            "Name what it may hold: explode(coalesce(tags, array())).",
        )
    return _generator(node.name, arguments[0], names, alias, place)


def with_generator(relation: Relation | None, generator: Generator) -> Exploded | Constants:
    """A relation exploded by a generator. Without a relation, the rows are the elements of a literal."""
    if relation is None:
        rows = [[element] for element in elements(generator.argument, generator.place)]
        return table(rows, [name for name, _ in generator.columns], generator.alias, generator.place)
    if isinstance(relation, Exploded):
        return replace(relation, generators=(*relation.generators, generator))
    return Exploded(relation, (generator,), generator.place)


def makes_rows(node: exp.Expr) -> bool:
    """True for a call that returns several rows per row."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


def is_empty(part: Expr) -> bool:
    """True for array() and map()."""
    return isinstance(part, Call) and part.function in ("array", "map") and not part.arguments


def _generator(function: str, argument: Expr, names: Sequence[str], alias: str, place: Place) -> Generator:
    """The generator of a function, with its columns.

    explode(array) names its element, explode(map) its key and value. posexplode puts the position in front. inline,
    stack and json_tuple name the fields of their elements.
    """
    name = function.lower()
    kind, positions, fields = argument.type, name.startswith("pos"), name.startswith(("inline", "stack", "json"))
    if kind.name not in ("ARRAY", "MAP") or kind.element is None:
        raise Wrong(
            argument.place or place, f"{name}() does not take {kind}", "It takes an array or a map: split(line, ' ')."
        )
    if fields and not kind.element.fields:
        raise Wrong(argument.place or place, f"{name}() does not take {kind}", "It takes an array of structs.")
    types = [INT] * positions + ([kind.key] if kind.key is not None else []) + [kind.element]
    defaults = [*["pos"] * positions, *(["key", "value"] if kind.name == "MAP" else ["col"])]
    if fields:
        defaults, types = [name for name, _ in kind.element.fields], [of for _, of in kind.element.fields]
    chosen_names = names or defaults
    if len(chosen_names) != len(types):
        reason = f"there are {len(chosen_names)} column names, but {name}() has {len(types)}"
        raise Wrong(place, reason, "Name each column after AS.")
    columns = tuple(zip(chosen_names, types, strict=True))
    return Generator(argument, columns, positions, name.endswith("_outer"), alias, place, fields=fields)


def _stacked(arguments: Sequence[Expr], place: Place) -> Expr:
    """The array of structs for which inline() equals stack(2, a, b, c, d): a and b, then c and d."""
    count = arguments[0] if arguments else None
    rows = int(count.value or 0) if isinstance(count, Constant) and count.type == INT else 0
    if rows < 1 or len(arguments) == 1 or (len(arguments) - 1) % rows:
        raise Wrong(place, "the rows of stack() differ in length", "Write stack(2, 'a', a, 'b', b).")
    width = (len(arguments) - 1) // rows
    columns = [_column(arguments[1 + n :: width], place) for n in range(width)]
    kind = Type("STRUCT", fields=tuple((f"col{n}", column[0].type) for n, column in enumerate(columns)))
    names = [Constant(name, STRING) for name, _ in kind.fields]
    structs = [
        Call("named_struct", tuple(part for pair in zip(names, row, strict=True) for part in pair), kind, place=place)
        for row in zip(*columns, strict=True)
    ]
    return Call("array", tuple(structs), Type("ARRAY", element=kind), place=place)


def _json_fields(arguments: Sequence[Expr], place: Place) -> Expr:
    """The array with the one struct that json_tuple(text, 'a', 'b') returns. Spark gets a LATERAL VIEW of its own."""
    names = [e for e in arguments[1:] if isinstance(e, Constant) and e.type == STRING and e.value is not None]
    if len(arguments) < 2 or len(names) < len(arguments) - 1 or arguments[0].type != STRING:
        computed = "For a computed name, write get_json_object(x, concat('$.', name))"
        way_out = f"Write LATERAL VIEW json_tuple(x, 'a', 'b') t AS a, b. {computed}."
        raise Wrong(place, "json_tuple() takes a text and literal names", way_out)
    kind = Type("STRUCT", fields=tuple((f"c{n}", STRING) for n in range(len(names))))
    return Call("json_tuple", tuple(arguments), Type("ARRAY", element=kind), place=place)


def _column(values: Sequence[Expr], place: Place) -> list[Expr]:
    """Values of one type, cast explicitly because Spark requires it there."""
    kinds = list(dict.fromkeys(v.type for v in values if v.type != VOID)) or [STRING]
    if len(kinds) > 1:
        raise Wrong(place, f"stack() mixes {kinds[0]} with {kinds[1]}", f"Write CAST(… AS {kinds[0]}).")
    return [with_explicit_type(cast(v, kinds[0], implicit=True)) for v in values]
