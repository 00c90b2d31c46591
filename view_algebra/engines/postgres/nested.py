"""Nested values in Postgres' SQL, where they are JSON: structs, maps, lists, and what is inside them."""

from __future__ import annotations

from view_algebra.engines.postgres.times import whole_end
from view_algebra.engines.postgres.writing import ATOM, CAST, OTHER, Reading, bare_value, constant
from view_algebra.language.expressions import Call, Constant, Expr, Field
from view_algebra.language.types import COLLATED, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

_ELEMENTS, _ELEMENT, _NTH = '"->"', '"-> element"', '"-> place"'
"""Names that no column of a query has."""


def shares(call: Call, reading: Reading) -> tuple[str, int]:
    """Several percentiles as a list; of no values, NULL."""
    each = [reading.text(a) for a in call.arguments]
    return f"CASE WHEN {each[0]} IS NOT NULL THEN jsonb_build_array({', '.join(each)}) END", ATOM


def window_as_json(call: Call, reading: Reading) -> tuple[str, int]:
    """A window as Spark writes it; a grouping that leaves it out has none."""
    start, end = call.arguments
    # a window is whole: its end may be the first instant after the calendar
    after = whole_end(end, reading) if isinstance(end, Call) and end.function == "window_end" else reading.text(end)
    pairs = f"'start', {inside(start, reading)}, 'end', {in_json(after, end.type)}"
    known = reading.text(call.arguments[0], OTHER)
    return f"CASE WHEN {known} IS NOT NULL THEN jsonb_build_object({pairs}) END", ATOM


def member(of: str, step: str, kind: Type) -> tuple[str, int]:
    """A value inside a nested one, which is kept as JSON."""
    if kind.nested:
        return f"nullif({of} -> {step}, 'null')", ATOM
    if kind == STRING:
        return f"{of} ->> {step}", OTHER
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim({of} ->> {step}, '+')::{kind.postgres}", CAST  # before a year of five digits
    return f"({of} ->> {step})::{kind.postgres}", CAST


def structured(call: Call, reading: Reading) -> tuple[str, int]:
    """A struct or a map: the JSON that Spark makes of it, which has no fields that are NULL, but such entries."""
    pairs = zip(call.arguments[::2], call.arguments[1::2], strict=True)
    built = f"jsonb_build_object({', '.join(f'{reading.text(n)}, {inside(v, reading)}' for n, v in pairs)})"
    return (built if call.function == "map" else f"spark.struct({built})"), ATOM


def inside(value: Expr, reading: Reading) -> str:
    """A value as it stands in a nested one."""
    if value.type.name == "DECIMAL" or (value.type.name in ("DOUBLE", "FLOAT") and bare_value(value) is not value):
        return f"{reading.text(value, CAST)}::{value.type.postgres}"
    return in_json(reading.text(value), value.type)


def nested(call: Call, reading: Reading) -> tuple[str, int]:
    """A field, an element or an entry by a literal."""
    of, step = call.arguments
    assert isinstance(step, Constant)
    return member(reading.text(of, OTHER), constant(step), call.type)


def _elements(array: str) -> str:
    """The elements of a list as rows, each with its place."""
    return f"jsonb_array_elements({array}) WITH ORDINALITY AS {_ELEMENTS} ({_ELEMENT}, {_NTH})"


def from_entries(call: Call, reading: Reading) -> tuple[str, int]:
    """A map of the structs in a list; of two of one name the last one counts, and one without a name does not."""
    (listed,) = call.arguments
    assert listed.type.element is not None
    name, value = (constant(Constant(field, STRING)) for field, _ in listed.type.element.fields)
    array = reading.text(listed, OTHER)
    entries = f"jsonb_object_agg({_ELEMENT} ->> {name}, {_ELEMENT} -> {value} ORDER BY {_NTH})"
    entries += f" FILTER (WHERE {_ELEMENT} ->> {name} IS NOT NULL)"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT coalesce({entries}, '{{}}') FROM {_elements(array)}) END", ATOM


def from_texts(call: Call, reading: Reading) -> tuple[str, int]:
    """A list of the values whose JSON is in a list, which there is for each group."""
    array = reading.text(call.arguments[0], OTHER)
    values = f"coalesce(jsonb_agg(({_ELEMENT} #>> '{{}}')::jsonb ORDER BY {_NTH}), '[]')"
    return f"(SELECT {values} FROM {_elements(array)})", ATOM


OF_ELEMENTS = {
    "transform": f"coalesce(jsonb_agg({{0}} ORDER BY {_NTH}), '[]')",
    "filter": f"coalesce(jsonb_agg({_ELEMENT} ORDER BY {_NTH}) FILTER (WHERE {{0}}), '[]')",
    "exists": "CASE WHEN bool_or({0}) THEN true WHEN bool_or(({0}) IS NULL) THEN NULL ELSE false END",
    "forall": "CASE WHEN bool_or(NOT ({0})) THEN false WHEN bool_or(({0}) IS NULL) THEN NULL ELSE true END",
}
"""What a function is of the elements of a list, with the body of its lambda."""


def over_elements(call: Call, reading: Reading) -> tuple[str, int]:
    """A function that takes a lambda: a query of the elements of a list, with the variables as its columns."""
    listed, made = call.arguments
    assert isinstance(made, Call)
    (element, *index), body = made.arguments[:-1], made.arguments[-1]
    if call.function == "transform" and (field_of_each := _field_of_each(element, body)):
        return f"spark.field_of_each({reading.text(listed)}, {field_of_each})", ATOM
    array, of = reading.text(listed, OTHER), listed.type.element or STRING
    columns = [from_json(_ELEMENT, of), *[f"({_NTH} - 1)::integer"] * len(index)]
    named = ", ".join(f"{c} AS {reading.text(v)}" for c, v in zip(columns, (element, *index), strict=True))
    text = inside(body, reading) if call.function == "transform" else reading.text(body)
    found = OF_ELEMENTS[call.function].replace("{0}", text)
    rows = f"(SELECT {_ELEMENT}, {_NTH}, {named} FROM {_elements(array)}) AS {_ELEMENTS}"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT {found} FROM {rows}) END", ATOM


def _field_of_each(variable: Expr, body: Expr) -> str | None:
    """The path to a field, where `s -> s.kind` is all that a lambda says."""
    if not (isinstance(body, Field) and isinstance(variable, Field) and body.path[:1] == variable.path):
        return None
    return f"ARRAY[{', '.join(constant(Constant(name, STRING)) for name in body.path[1:])}]::text[]"


def in_json(value: str, kind: Type) -> str:
    """A value of JSON; a time as Spark is told to write it, whatever a reader's time zone."""
    return f"spark.json({value})" if kind in (TIMESTAMP, TIMESTAMP_NTZ) else value


def from_json(value: str, kind: Type) -> str:
    """A value of JSON as one of its type."""
    if kind.nested:
        return f"nullif({value}, 'null')"
    text = f"({value} #>> '{{}}')"
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim{text[:-1]}, '+')::{kind.postgres}"  # before a year of five digits
    return f"{text} {COLLATED}" if kind == STRING else f"{text}::{kind.postgres}"
