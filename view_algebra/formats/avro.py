"""`avro`: each value is one datum of Avro, of the schema that a registry has for it, or of the one in OPTIONS.

A datum becomes the JSON that its writer's schema says: decimals with all their digits, bytes and fixed in base64,
enums and uuids as texts, times in ISO 8601, a value of a union as what it is. The declared columns are then read from
it by the rules for JSON, so a number may be of a wider type, and a field that the writer lacks is NULL.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from view_algebra.formats import as_json, frames
from view_algebra.formats.interface import DECODED, Declared, Decoder, Mistake, NoText, Read, Schema, Schemas
from view_algebra.language.encodings import DAYS, SEMANTIC

OPTIONS = {"schema": "of `avro`: the schema of all records, as JSON; they then have no frame of a schema registry"}

KIND = "AVRO"

MOST_WITHOUT_A_BYTE = 1_000
"""Values that a record may consist of without a byte: records in records double them, level by level."""

MOST_LEVELS = 100
"""Types within each other. A record is read by functions that call each other level by level."""

MOST_DIGITS = 300
"""Digits behind the point of a decimal, each of which is written out."""


def read(declared: Declared) -> Read:
    """Values as the decoder gives them."""
    if "schema" in declared.options:
        try:
            if not isinstance(found := parsed(Schema(KIND, declared.options["schema"])), dict) or "fields" not in found:
                raise NoText("the schema is not one of a record")
        except NoText as mistake:
            way_out = 'Write the text of the .avsc file: {"type": "record", "name": "…", "fields": […]}.'
            raise Mistake(str(mistake), way_out, "schema") from None
    return DECODED


def decoder(options: Mapping[str, str], schemas: Schemas) -> Decoder:
    """Reads values whose schemas are among these."""
    if "schema" in options:
        only = Schema(KIND, options["schema"])
        return lambda value, header: _of_schema(only)(value)

    def framed(value: bytes, header: bytes | None) -> str:
        id, _, datum = frames.unframed(value, header)
        schema = frames.schema_of(id, schemas, KIND)
        try:
            return _of_schema(schema)(datum)
        except NoText as reason:
            raise NoText(f"{reason} (schema {id})") from None

    return framed


@lru_cache(maxsize=1_000)
def _of_schema(schema: Schema) -> Callable[[bytes], str]:
    """Reads a datum of a schema; raises `NoText` if it is none, or has more than one."""
    try:
        whole = parsed(schema)
        is_alone = not (isinstance(whole, dict) and "fields" in whole)
        read = reader_of(replace(schema, text=_in_record(schema.text)) if is_alone else schema)
    except NoText as reason:
        return _never(str(reason))
    names = length_of_names(schema)

    def decode(datum: bytes) -> str:
        value = read(datum)
        try:
            return as_json.text(value[_ALONE] if is_alone else value, datum, names)
        except _MISTAKES as error:
            raise _no_datum(error) from None

    return decode


def length_of_names(schema: Schema) -> int:
    """The length of all names that a schema has, and of the longest symbol of each of its enums."""
    texts = [schema.text, *(text for _, text in schema.references)]
    return sum(_length_of_names(json.loads(text)) for text in texts)


def _length_of_names(schema: Any) -> int:
    match schema:
        case list():
            return sum(map(_length_of_names, schema))
        case {"type": "enum", "symbols": symbols}:
            return max(map(len, symbols), default=0)
        case dict():
            inner = [schema.get(part) for part in ("type", "fields", "items", "values")]
            return len(schema.get("name", "")) + sum(map(_length_of_names, inner))
    return 0


def _never(mistake: str) -> Callable[[bytes], str]:
    """Reads no datum, for a mistake in the schema."""

    def decode(_: bytes) -> str:
        raise NoText(mistake)

    return decode


_MISTAKES = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, AttributeError)
"""What reading a value that is no datum raises, besides EOFError."""


def _no_datum(error: Exception) -> NoText:
    return NoText(f"not Avro: {str(error) or type(error).__name__}")


def parsed(schema: Schema, named: dict[str, Any] | None = None, as_read: Callable[[Any], Any] | None = None) -> Any:
    """The schema as fastavro reads by it; raises `NoText` if it is none, and if a value could have no end.

    named: takes the types that have a name. as_read: gives the schema to read by; by default the one by which fastavro
    gives JSON.
    """
    import fastavro
    from fastavro.schema import SchemaParseException

    named = {} if named is None else named
    try:
        for text in [text for _, text in schema.references] + [schema.text]:
            found = fastavro.parse_schema((as_read or _marked)(json.loads(text)), named)
        _check(found, named)
    except RecursionError:
        raise NoText(_TOO_DEEP) from None
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoText(f"the schema is not one of Avro: {type(error).__name__}: {error}") from None
    return found


def reader_of(schema: Schema, as_read: Callable[[Any], Any] | None = None) -> Callable[[bytes], Any]:
    """The reader of a schema's data; raises what `parsed` raises, which says what `as_read` is.

    It gives the value of a datum. It raises `NoText` for what no writer writes, and if more follows the datum.
    """
    import fastavro

    named: dict[str, Any] = {}
    writer = parsed(schema, named, as_read)
    for each in (writer, *named.values()):
        _strict(each)
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
    """The schema of a record with a value as its only field: fastavro parses a union or a name by itself each time."""
    return f'{{"type": "record", "name": "lamina_{_ALONE}", "fields": [{{"name": "{_ALONE}", "type": {text}}}]}}'


class _Branches(list[Any]):
    """The types of a union. fastavro asks how many there are only to count from the end, for an index below 0."""

    def __len__(self) -> int:
        raise LookupError("a union has no branch below 0")


class _Symbols(dict[int, str]):
    """The symbols of an enum by their indexes: a list would have some below 0, too."""

    def __missing__(self, index: int) -> str:
        raise LookupError(f"an enum has no symbol {index}")


def _strict(schema: Any) -> Any:
    """The schema, changed in place, without the values that fastavro takes though no writer writes them."""
    match schema:
        case "boolean" | {"type": "boolean"}:
            return {"type": "fixed", "name": "boolean", "size": 1, "logicalType": _BOOLEAN}
        case list():
            return _Branches(map(_strict, schema))
        case {"type": "enum", "symbols": list(symbols)}:
            schema["symbols"] = _Symbols(enumerate(symbols))
        case {"type": "record" | "error", "fields": fields}:
            for each in fields:
                each["type"] = _strict(each["type"])
        case {"type": "array"}:
            schema["items"] = _strict(schema["items"])
        case {"type": "map"}:
            schema["values"] = _strict(schema["values"])
        case {"type": dict() | list()}:
            schema["type"] = _strict(schema["type"])
    return schema


def _check(schema: Any, named: Mapping[str, Any]) -> None:
    """Raises `NoText` for a schema whose values could have no end, or could be a long text of a few bytes."""
    _levels(schema, named, (), {})
    without_a_byte: dict[str, int] = {}
    for each in (schema, *named.values()):
        _check_sizes(each, named, without_a_byte)


def _levels(schema: Any, named: Mapping[str, Any], within: tuple[str, ...], known: dict[str, int]) -> int:
    """The number of types within each other; raises `NoText` if a record contains itself, or if they are too many.

    within: the records around it. known: what has been found of types with a name.
    """
    kind = schema["type"] if isinstance(schema, dict) else schema
    is_record = kind in ("record", "error")
    name: str | None = schema["name"] if is_record else kind if isinstance(kind, str) else None
    if name in within:
        raise NoText(f"the schema is recursive: {name} contains itself")
    if name in known:
        return known[name]
    around = (*within, str(name)) if is_record else within
    if len(around) > MOST_LEVELS:
        raise NoText(_TOO_DEEP)
    levels = 1 + max((_levels(each, named, around, known) for each in _inner(schema, named)), default=0)
    if levels > MOST_LEVELS:
        raise NoText(_TOO_DEEP)
    if name is not None:
        known[name] = levels
    return levels


_TOO_DEEP = f"the schema has more than {MOST_LEVELS} types within each other"


def _inner(schema: Any, named: Mapping[str, Any]) -> Sequence[Any]:
    """The types that a type is made of."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case dict():
            return [kind]
        case list():
            return kind
        case "record" | "error":
            return [each["type"] for each in schema["fields"]]
        case "array":
            return [schema["items"]]
        case "map":
            return [schema["values"]]
    return [named[kind]] if kind in named else []


def _check_sizes(schema: Any, named: Mapping[str, Any], known: dict[str, int]) -> None:
    """Looks at a type and at what is written in place in it. known: see `_without_a_byte`."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "array" and _without_a_byte(schema["items"], named, known):
        raise NoText("the schema has an array of values that take no byte, which may have no end")
    if kind in ("record", "error") and _without_a_byte(schema, named, known) > MOST_WITHOUT_A_BYTE:
        raise NoText(f"the schema has a record of more than {MOST_WITHOUT_A_BYTE:,} values that take no byte")
    if isinstance(schema, dict) and schema.get("logicalType") == f"{OWN}decimal":
        scale = schema.get("scale", 0)
        if type(scale) is not int or not 0 <= scale <= MOST_DIGITS:
            raise NoText(f"the schema has a decimal of scale {scale!r}, and not from 0 to {MOST_DIGITS:,}")
    for each in _inner(schema, {}):
        if not (isinstance(each, dict) and each.get("name") in named):  # which has its own turn
            _check_sizes(each, named, known)


def _without_a_byte(schema: Any, named: Mapping[str, Any], known: dict[str, int]) -> int:
    """How many values a value of a type consists of that takes no byte; 0 if it takes any.

    known: what has been found of types with a name, which others may have many times.
    """
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "null":
            return 1
        case "fixed":
            return int(schema["size"] == 0)
        case "record" | "error":
            if schema["name"] not in known:
                parts = [_without_a_byte(each["type"], named, known) for each in schema["fields"]]
                known[schema["name"]] = 1 + sum(parts) if all(parts) else 0
            return known[schema["name"]]
        case dict():
            return _without_a_byte(kind, named, known)
    return _without_a_byte(named[kind], named, known) if isinstance(kind, str) and kind in named else 0


def _marked(schema: Any) -> Any:
    """The schema with a logical type of our own wherever JSON has another value than fastavro gives."""
    if isinstance(schema, list):
        return [_marked(each) for each in schema]
    if not isinstance(schema, dict):
        own = f"{schema}-{_PLAIN}"
        return {"type": schema, "logicalType": _PLAIN} if own in _IN_JSON else schema
    kind = schema["type"]
    given = {name: value for name, value in schema.items() if name not in ("default", "logicalType")}
    match kind:
        case "record" | "error":
            fields = [{"name": each["name"], "type": _marked(each["type"])} for each in schema["fields"]]
            return given | {"fields": fields}
        case "array":
            return given | {"items": _marked(schema["items"])}
        case "map":
            return given | {"values": _marked(schema["values"])}
        case dict() | list():
            return _marked(kind)
    for own in (OWN + str(schema.get(named)) for named in ("connect.name", "logicalType")):
        if f"{kind}-{own}" in _IN_JSON:
            return given | {"logicalType": own}
    return given | {"logicalType": _PLAIN} if f"{kind}-{_PLAIN}" in _IN_JSON else given


OWN = "lamina-"
"""Begins the names of our own logical types, by which fastavro calls what is in `_IN_JSON`."""

_PLAIN = f"{OWN}plain"
"""The logical type of a value that has none."""


_BOOLEAN = f"{OWN}boolean"
"""The logical type of a byte that is a boolean: fastavro takes any byte but 0 for true."""


def _boolean(byte: bytes, _: Any, __: Any) -> bool:
    if byte not in (b"\0", b"\1"):
        raise ValueError(f"a boolean is the byte 0x{byte.hex()}")
    return byte == b"\1"


def _alone(in_json: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """A function of a value, as fastavro calls it: with the schemas of its writer and its reader."""
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
        if name not in DAYS
    },
    **{f"int-{OWN}{name}": _alone(as_json.day) for name in DAYS},
}
"""What a value is in JSON, by its type and its logical type (or the name that Kafka Connect gives it)."""


@cache
def _teach_fastavro() -> None:
    """Has fastavro read our own logical types."""
    from fastavro.read import LOGICAL_READERS

    LOGICAL_READERS.update(_IN_JSON)
