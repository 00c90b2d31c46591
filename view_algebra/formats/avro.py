"""`avro`: each value is one Avro datum, of the registry's schema for it or of the schema in OPTIONS.

A datum becomes JSON by its writer's schema: decimals with all their digits, bytes and fixed in base64, enums and uuids
as texts, times in ISO 8601, a union's value by its own branch. The declared columns are then read from the JSON by its
rules, so a number may be of a wider type, and a field that the writer lacks is NULL.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from view_algebra.formats import as_json, frames
from view_algebra.formats.interface import (
    DECODED,
    DeclaredColumns,
    Decoder,
    FormatMistake,
    NoText,
    Schema,
    Schemas,
    ValueSql,
    refusing,
)
from view_algebra.language.encodings import DATE_SCHEMAS, SEMANTIC

OPTIONS = {"schema": "of `avro`: the schema of all records, as JSON; they then have no frame of a schema registry"}

KIND = "AVRO"

MOST_WITHOUT_A_BYTE = 1_000
"""Most values of a record that takes no byte: nested records can double them level by level."""

MOST_LEVELS = 100
"""Most levels of nested types, since the functions that read a record call each other level by level."""

MOST_DIGITS = 300
"""Most digits after the point of a decimal: all of them are written out."""


def read(declared: DeclaredColumns) -> ValueSql:
    """The SQL of decoded values. Raises `FormatMistake` for a wrong schema."""
    if "schema" in declared.options:
        try:
            if (
                not isinstance(record := parsed(Schema(KIND, declared.options["schema"])), dict)
                or "fields" not in record
            ):
                raise NoText("the schema is not one of a record")
        except NoText as mistake:
            way_out = 'Write the text of the .avsc file: {"type": "record", "name": "…", "fields": […]}.'
            raise FormatMistake(str(mistake), way_out, "schema") from None
    return DECODED


def decoder(options: Mapping[str, str], schemas: Schemas) -> Decoder:
    """Returns the decoder of values whose schemas are among these."""
    if "schema" in options:
        only = Schema(KIND, options["schema"])
        return lambda value, header: _schema_decoder(only)(value)
    return frames.decoder(KIND, schemas, lambda schema, _, datum: _schema_decoder(schema)(datum))


@lru_cache(maxsize=1_000)
def _schema_decoder(schema: Schema) -> Callable[[bytes], str]:
    """Returns the decoder of a schema's data, which raises `NoText` unless a value is exactly one datum."""
    try:
        whole = parsed(schema)
        is_alone = not (isinstance(whole, dict) and "fields" in whole)
        read = datum_reader(replace(schema, text=_in_record(schema.text)) if is_alone else schema)
    except NoText as reason:
        return refusing(str(reason))
    names = names_length(schema)

    def decode(datum: bytes) -> str:
        value = read(datum)
        try:
            return as_json.text(value[_ALONE] if is_alone else value, datum, names)
        except _MISTAKES as error:
            raise _no_datum(error) from None

    return decode


def names_length(schema: Schema) -> int:
    """The total length of a schema's names and of the longest symbol of each enum."""
    texts = [schema.text, *(text for _, text in schema.references)]
    return sum(_names_length(json.loads(text)) for text in texts)


def _names_length(schema: Any) -> int:
    match schema:
        case list():
            return sum(map(_names_length, schema))
        case {"type": "enum", "symbols": symbols}:
            return max(map(len, symbols), default=0)
        case dict():
            inner = [schema.get(part) for part in ("type", "fields", "items", "values")]
            return len(schema.get("name", "")) + sum(map(_names_length, inner))
    return 0


_MISTAKES = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, AttributeError)
"""Exceptions, besides EOFError, from reading a value that is not a datum."""


def _no_datum(error: Exception) -> NoText:
    return NoText(f"not Avro: {str(error) or type(error).__name__}")


def parsed(schema: Schema, named: dict[str, Any] | None = None, *, bare: bool = False) -> Any:
    """The schema in fastavro's form. Raises `NoText` for a wrong schema, or for one whose values could have no end.

    named: receives the named types
    bare: leaves out logical types, so that fastavro returns bare numbers and bytes, not values for JSON
    """
    import fastavro
    from fastavro.schema import SchemaParseException

    named = {} if named is None else named
    try:
        for text in [text for _, text in schema.references] + [schema.text]:
            read = fastavro.parse_schema(_marked(json.loads(text), {} if bare else _IN_JSON), named)
        _check(read, named)
    except RecursionError:
        raise NoText(_TOO_DEEP) from None
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoText(f"the schema is not one of Avro: {type(error).__name__}: {error}") from None
    return read


def datum_reader(schema: Schema, *, bare: bool = False) -> Callable[[bytes], Any]:
    """The reader of a schema's data. `bare` as in `parsed`, whose exceptions it raises.

    The reader returns the value of a datum. It raises `NoText` for bytes that no writer writes, or after the datum.
    """
    import fastavro

    named: dict[str, Any] = {}
    writer = parsed(schema, named, bare=bare)
    for kind in (writer, *named.values()):
        _strict(kind)
    _teach_fastavro()

    def read(datum: bytes) -> Any:
        stream = io.BytesIO(datum)
        try:
            value = fastavro.schemaless_reader(stream, writer, None)
        except EOFError:
            raise NoText("not Avro: the value ends too early") from None
        except _MISTAKES as error:
            raise _no_datum(error) from None
        if stream.tell() != len(datum):
            raise NoText(f"not Avro: {len(datum) - stream.tell()} bytes follow the datum")
        return value

    return read


_ALONE = "datum"


def _in_record(text: str) -> str:
    """The schema of a record with the value as its only field: fastavro would parse a bare union or name every time."""
    return f'{{"type": "record", "name": "lamina_{_ALONE}", "fields": [{{"name": "{_ALONE}", "type": {text}}}]}}'


class _Branches(list[Any]):
    """The types of a union. fastavro asks for their number only to resolve an index below 0."""

    def __len__(self) -> int:
        raise LookupError("a union has no branch below 0")


class _Symbols(dict[int, str]):
    """The symbols of an enum by their indexes: a list would also accept indexes below 0."""

    def __missing__(self, index: int) -> str:
        raise LookupError(f"an enum has no symbol {index}")


def _strict(schema: Any) -> Any:
    """Changes the schema in place to reject values that fastavro accepts but no writer writes, and returns it."""
    match schema:
        case "boolean" | {"type": "boolean"}:
            return {"type": "fixed", "name": "boolean", "size": 1, "logicalType": _BOOLEAN}
        case list():
            return _Branches(map(_strict, schema))
        case {"type": "enum", "symbols": list(symbols)}:
            schema["symbols"] = _Symbols(enumerate(symbols))
        case {"type": "record" | "error", "fields": fields}:
            for field in fields:
                field["type"] = _strict(field["type"])
        case {"type": "array"}:
            schema["items"] = _strict(schema["items"])
        case {"type": "map"}:
            schema["values"] = _strict(schema["values"])
        case {"type": dict() | list()}:
            schema["type"] = _strict(schema["type"])
    return schema


def _check(schema: Any, named: Mapping[str, Any]) -> None:
    """Raises `NoText` for a schema whose values could have no end, or a long text from a few bytes."""
    _levels(schema, named, (), {})
    without_a_byte: dict[str, int] = {}
    for kind in (schema, *named.values()):
        _check_sizes(kind, named, without_a_byte)


def _levels(schema: Any, named: Mapping[str, Any], within: tuple[str, ...], counted: dict[str, int]) -> int:
    """The number of nested levels. Raises `NoText` for a record that contains itself, or for too many levels.

    within: the enclosing records
    counted: the levels of the named types so far
    """
    kind = schema["type"] if isinstance(schema, dict) else schema
    is_record = kind in ("record", "error")
    name: str | None = schema["name"] if is_record else kind if isinstance(kind, str) else None
    if name in within:
        raise NoText(f"the schema is recursive: {name} contains itself")
    if name in counted:
        return counted[name]
    around = (*within, str(name)) if is_record else within
    if len(around) > MOST_LEVELS:
        raise NoText(_TOO_DEEP)
    levels = 1 + max((_levels(inner, named, around, counted) for inner in inner_types(schema, named)), default=0)
    if levels > MOST_LEVELS:
        raise NoText(_TOO_DEEP)
    if name is not None:
        counted[name] = levels
    return levels


_TOO_DEEP = f"the schema has more than {MOST_LEVELS} types within each other"


def inner_types(schema: Any, named: Mapping[str, Any]) -> Sequence[Any]:
    """The types that a type consists of."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case dict():
            return [kind]
        case list():
            return kind
        case "record" | "error":
            return [field["type"] for field in schema["fields"]]
        case "array":
            return [schema["items"]]
        case "map":
            return [schema["values"]]
    return [named[kind]] if kind in named else []


def _check_sizes(schema: Any, named: Mapping[str, Any], sizes: dict[str, int]) -> None:
    """Raises `NoText` for a type, or one defined inside it, with too many values. sizes: as in `_without_a_byte`."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "array" and _without_a_byte(schema["items"], named, sizes):
        raise NoText("the schema has an array of values that take no byte, which may have no end")
    if kind in ("record", "error") and _without_a_byte(schema, named, sizes) > MOST_WITHOUT_A_BYTE:
        raise NoText(f"the schema has a record of more than {MOST_WITHOUT_A_BYTE:,} values that take no byte")
    if isinstance(schema, dict) and schema.get("logicalType") == f"{OWN}decimal":
        scale = schema.get("scale", 0)
        if type(scale) is not int or not 0 <= scale <= MOST_DIGITS:
            raise NoText(f"the schema has a decimal of scale {scale!r}, and not from 0 to {MOST_DIGITS:,}")
    for inner in inner_types(schema, {}):
        if not (isinstance(inner, dict) and inner.get("name") in named):  # named types are checked by themselves
            _check_sizes(inner, named, sizes)


def _without_a_byte(schema: Any, named: Mapping[str, Any], sizes: dict[str, int]) -> int:
    """The number of values in a value that takes no byte, or 0 if it takes any byte.

    sizes: the results for named types so far, which other types may contain many times.
    """
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "null":
            return 1
        case "fixed":
            return int(schema["size"] == 0)
        case "record" | "error":
            if schema["name"] not in sizes:
                parts = [_without_a_byte(field["type"], named, sizes) for field in schema["fields"]]
                sizes[schema["name"]] = 1 + sum(parts) if all(parts) else 0
            return sizes[schema["name"]]
        case dict():
            return _without_a_byte(kind, named, sizes)
    return _without_a_byte(named[kind], named, sizes) if isinstance(kind, str) and kind in named else 0


def _marked(schema: Any, in_json: Container[str]) -> Any:
    """The schema with a logical type of our own wherever a value is converted to JSON, and without other ones."""
    if isinstance(schema, list):
        return [_marked(branch, in_json) for branch in schema]
    if not isinstance(schema, dict):
        own = f"{schema}-{_PLAIN}"
        return {"type": schema, "logicalType": _PLAIN} if own in in_json else schema
    kind = schema["type"]
    kept = {name: value for name, value in schema.items() if name not in ("default", "logicalType")}
    match kind:
        case "record" | "error":
            fields = [{"name": field["name"], "type": _marked(field["type"], in_json)} for field in schema["fields"]]
            return kept | {"fields": fields}
        case "array":
            return kept | {"items": _marked(schema["items"], in_json)}
        case "map":
            return kept | {"values": _marked(schema["values"], in_json)}
        case dict() | list():
            return _marked(kind, in_json)
    for own in (OWN + str(schema.get(named)) for named in ("connect.name", "logicalType")):
        if f"{kind}-{own}" in in_json:
            return kept | {"logicalType": own}
    return kept | {"logicalType": _PLAIN} if f"{kind}-{_PLAIN}" in in_json else kept


OWN = "lamina-"
"""Prefix of our own logical types, by which fastavro calls the functions in `_IN_JSON`."""

_PLAIN = f"{OWN}plain"
"""Our logical type for a value without a logical type."""


_BOOLEAN = f"{OWN}boolean"
"""Our logical type for a boolean: fastavro takes any byte except 0 as true."""


def _boolean(byte: bytes, _: Any, __: Any) -> bool:
    if byte not in (b"\0", b"\1"):
        raise ValueError(f"a boolean is the byte 0x{byte.hex()}")
    return byte == b"\1"


def _alone(in_json: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Wraps a function of a value for fastavro, which also passes the writer's and the reader's schema."""
    return lambda value, writer, reader: in_json(value)


def _decimal(unscaled: bytes, schema: Any, _: Any) -> Any:
    return as_json.decimal(int.from_bytes(unscaled, "big", signed=True), schema.get("scale", 0))


_PER_SECOND = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_IN_JSON: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"{kind}-{_PLAIN}": _alone(as_json.number) for kind in ("float", "double")},
    **{f"{kind}-{_PLAIN}": _alone(as_json.in_base64) for kind in ("bytes", "fixed")},
    **{f"{kind}-{OWN}decimal": _decimal for kind in ("bytes", "fixed")},
    f"fixed-{_BOOLEAN}": _boolean,
    f"fixed-{OWN}uuid": _alone(lambda value: str(uuid.UUID(bytes=value))),
    f"int-{OWN}date": _alone(as_json.day),
    f"int-{OWN}time-millis": _alone(as_json.time_of_day(10**3)),
    f"long-{OWN}time-micros": _alone(as_json.time_of_day(10**6)),
    **{f"long-{OWN}timestamp-{unit}": _alone(as_json.instant(many, "Z")) for unit, many in _PER_SECOND.items()},
    **{f"long-{OWN}local-timestamp-{unit}": _alone(as_json.instant(many, "")) for unit, many in _PER_SECOND.items()},
    **{
        f"long-{OWN}{name}": _alone(as_json.instant(int(10**6 / float(micros)), "Z"))
        for name, micros in SEMANTIC.items()
        if name not in DATE_SCHEMAS
    },
    **{f"int-{OWN}{name}": _alone(as_json.day) for name in DATE_SCHEMAS},
}
"""Conversions to JSON by type and logical type (or Kafka Connect's name)."""


@cache
def _teach_fastavro() -> None:
    """Registers our own logical types with fastavro."""
    from fastavro.read import LOGICAL_READERS

    LOGICAL_READERS.update(_IN_JSON)
