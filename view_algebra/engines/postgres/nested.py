"""Structs, maps and lists in Postgres' SQL, which stores them as JSON."""

from __future__ import annotations

from view_algebra.engines.postgres.times import whole_end
from view_algebra.engines.postgres.writing import ATOM, CAST, OTHER, Reading, bare_value, constant
from view_algebra.language.expressions import Call, Constant, Expr, Field
from view_algebra.language.types import COLLATED, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

_ELEMENTS, _ELEMENT, _NTH = '"->"', '"-> element"', '"-> place"'
"""Names that no column of a query has."""


def shares(call: Call, reading: Reading) -> tuple[str, int]:
    """Several percentiles as a list; NULL without values."""
    each = [reading.text(a) for a in call.arguments]
    return f"CASE WHEN {each[0]} IS NOT NULL THEN jsonb_build_array({', '.join(each)}) END", ATOM


def window_as_json(call: Call, reading: Reading) -> tuple[str, int]:
    """A window in Spark's JSON; NULL in a grouping without it."""
    start, end = call.arguments
    # the end of a window may be the first instant after the calendar
    after = whole_end(end, reading) if isinstance(end, Call) and end.function == "window_end" else reading.text(end)
    pairs = f"'start', {inside(start, reading)}, 'end', {in_json(after, end.type)}"
    known = reading.text(call.arguments[0], OTHER)
    return f"CASE WHEN {known} IS NOT NULL THEN jsonb_build_object({pairs}) END", ATOM


def member(of: str, step: str, kind: Type) -> tuple[str, int]:
    """A value inside a nested one, which is stored as JSON."""
    if kind.nested:
        return f"nullif({of} -> {step}, 'null')", ATOM
    if kind == STRING:
        return f"{of} ->> {step}", OTHER
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim({of} ->> {step}, '+')::{kind.postgres}", CAST  # before a year of five digits
    return f"({of} ->> {step})::{kind.postgres}", CAST


def structured(call: Call, reading: Reading) -> tuple[str, int]:
    """Spark's JSON of a struct or a map, which omits NULL fields but keeps NULL entries."""
    pairs = zip(call.arguments[::2], call.arguments[1::2], strict=True)
    built = f"jsonb_build_object({', '.join(f'{reading.text(n)}, {inside(v, reading)}' for n, v in pairs)})"
    return (built if call.function == "map" else f"spark.struct({built})"), ATOM


def inside(value: Expr, reading: Reading) -> str:
    """A value in its form inside a nested one."""
    if value.type.name == "DECIMAL" or (value.type.name in ("DOUBLE", "FLOAT") and bare_value(value) is not value):
        return f"{reading.text(value, CAST)}::{value.type.postgres}"
    return in_json(reading.text(value), value.type)


def nested(call: Call, reading: Reading) -> tuple[str, int]:
    """A field, an element or an entry by a literal."""
    of, step = call.arguments
    assert isinstance(step, Constant)
    return member(reading.text(of, OTHER), constant(step), call.type)


def _elements(array: str) -> str:
    """The elements of a list as rows, with their positions."""
    return f"jsonb_array_elements({array}) WITH ORDINALITY AS {_ELEMENTS} ({_ELEMENT}, {_NTH})"


def from_entries(call: Call, reading: Reading) -> tuple[str, int]:
    """A map of the structs in a list: the last of several with one name wins, and nameless structs are dropped."""
    (listed,) = call.arguments
    assert listed.type.element is not None
    name, value = (constant(Constant(field, STRING)) for field, _ in listed.type.element.fields)
    array = reading.text(listed, OTHER)
    entries = f"jsonb_object_agg({_ELEMENT} ->> {name}, {_ELEMENT} -> {value} ORDER BY {_NTH})"
    entries += f" FILTER (WHERE {_ELEMENT} ->> {name} IS NOT NULL)"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT coalesce({entries}, '{{}}') FROM {_elements(array)}) END", ATOM


def from_texts(call: Call, reading: Reading) -> tuple[str, int]:
    """A list of values from a list of their JSON texts, which every group has."""
    array = reading.text(call.arguments[0], OTHER)
    values = f"coalesce(jsonb_agg(({_ELEMENT} #>> '{{}}')::jsonb ORDER BY {_NTH}), '[]')"
    return f"(SELECT {values} FROM {_elements(array)})", ATOM


OF_ELEMENTS = {
    "transform": f"coalesce(jsonb_agg({{0}} ORDER BY {_NTH}), '[]')",
    "filter": f"coalesce(jsonb_agg({_ELEMENT} ORDER BY {_NTH}) FILTER (WHERE {{0}}), '[]')",
    "exists": "CASE WHEN bool_or({0}) THEN true WHEN bool_or(({0}) IS NULL) THEN NULL ELSE false END",
    "forall": "CASE WHEN bool_or(NOT ({0})) THEN false WHEN bool_or(({0}) IS NULL) THEN NULL ELSE true END",
}
"""Functions of a list's elements in SQL, with the body of their lambda in place of {0}."""


def over_elements(call: Call, reading: Reading) -> tuple[str, int]:
    """A function with a lambda, as a query over the list's elements whose columns are the lambda's variables."""
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
    """The path of the field if the lambda is just `s -> s.kind`; None otherwise."""
    if not (isinstance(body, Field) and isinstance(variable, Field) and body.path[:1] == variable.path):
        return None
    return f"ARRAY[{', '.join(constant(Constant(name, STRING)) for name in body.path[1:])}]::text[]"


def in_json(value: str, kind: Type) -> str:
    """A value as JSON; a time in the form that Spark is configured to write, in any reader's time zone."""
    return f"spark.json({value})" if kind in (TIMESTAMP, TIMESTAMP_NTZ) else value


def from_json(value: str, kind: Type) -> str:
    """A JSON value converted to its type."""
    if kind.nested:
        return f"nullif({value}, 'null')"
    text = f"({value} #>> '{{}}')"
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim{text[:-1]}, '+')::{kind.postgres}"  # before a year of five digits
    return f"{text} {COLLATED}" if kind == STRING else f"{text}::{kind.postgres}"
