"""The frame of a schema registry, which names a value's schema in front of the value.

Confluent's serializers and compatible ones write a zero byte and the schema's id in four bytes before the value. Newer
ones write the id or a UUID into a header of the record instead.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Iterable

from view_algebra.compiled import ASK_AGAIN
from view_algebra.formats.interface import Decoder, NoText, Schema, Schemas

HEADER, KEY_HEADER = "__value_schema_id", "__key_schema_id"
"""The headers with the schema ids of a record's value and key."""

_ID, _UUID = 0, 1
"""The first byte of a frame, by the kind of id that follows."""

_LENGTHS = {_ID: 5, _UUID: 17}

_GLUE = 3
"""The first byte of AWS Glue's frames, which are 18 bytes long."""

KEY_PREFIX = "the key: "
"""Prefix of the reason a record's key has no JSON."""

_UNKNOWN = "the schema {} is not known yet"
_IS_UNKNOWN = re.compile(f"(?:{KEY_PREFIX})?{_UNKNOWN.format('([0-9a-f-]+)')}")

ABOVE = "above"
"""An entry in place of a schema's id: no id above the number in its text is requested from the registry."""

_LACKED = "the registry had no schema {}"
_NOT_ASKED = "the registry lacked too many schemas to be asked for one above {}"
_IS_LACKED = re.compile(f"(?:{KEY_PREFIX})?(?:{_LACKED.format('([0-9a-f-]+)')}|{_NOT_ASKED.format('[0-9]+')}): .*")

IS_UNKNOWN = f"%s RLIKE '^{_IS_UNKNOWN.pattern}$'"
"""The condition, in Spark SQL over the reason a record is bad, that its schema has to be requested."""


def unframed(value: bytes, header: bytes | None) -> tuple[str, bytes, bytes]:
    r"""The id of a value's or key's schema, the bytes after the id in the frame, and the value without a frame.

    Raises `NoText` if there is no frame.

    >>> unframed(b"\0\0\0\0\x11rest", None), unframed(b"value", b"\0\0\0\0\x11\0")
    (('17', b'rest', b'rest'), ('17', b'\x00', b'value'))
    """
    frame = value if header is None else header
    # Only a header holds a UUID: an unframed value may begin with any byte, so also with this one.
    length = _LENGTHS.get(frame[0], 0) if frame and (header is not None or frame[0] == _ID) else 0
    if not length or len(frame) < length:
        raise NoText(f"no frame of a schema registry: {_instead(frame, length)}")
    id, behind = frame[1:length], frame[length:]
    name = str(int.from_bytes(id, "big")) if frame[0] == _ID else str(uuid.UUID(bytes=id))
    return name, behind, behind if header is None else value


def decoder(kind: str, schemas: Schemas, decode: Callable[[Schema, bytes, bytes], str]) -> Decoder:
    """Returns the decoder of framed values of a kind.

    decode: decodes a value by its schema, from the bytes after the id in the frame, and the value without a frame
    """

    def framed(value: bytes, header: bytes | None) -> str:
        id, behind, datum = unframed(value, header)
        schema = find_schema(id, schemas, kind)
        try:
            return decode(schema, behind, datum)
        except NoText as reason:
            raise NoText(f"{reason} (schema {id})") from None

    return framed


def _instead(frame: bytes, length: int) -> str:
    if length:
        return f"{len(frame)} bytes are too short for one"
    if not frame:
        return "it is empty"
    if frame[0] == _GLUE and len(frame) >= 18:
        return "it is one of AWS Glue, which Lamina does not read"
    return f"it begins with the byte 0x{frame[0]:02x}"


def find_schema(id: str, schemas: Schemas, kind: str) -> Schema:
    """The schema with an id. Raises `NoText` if it is not known, or not of this kind."""
    if id not in schemas:
        is_asked = missing([id], schemas)
        raise NoText(_UNKNOWN.format(id) if is_asked else f"{_NOT_ASKED.format(_bound(schemas))}: {_WAY_OUT}")
    schema = schemas[id]
    if schema is None:
        raise NoText(f"{_LACKED.format(id)}: {_WAY_OUT}")
    if schema.kind != kind:
        raise NoText(f"the schema {id} is {schema.kind}, not {kind}")
    return schema


_WAY_OUT = f"if it has by now, raise {ASK_AGAIN} in OPTIONS and apply"


def missing(ids: Iterable[str], schemas: Schemas) -> set[str]:
    """The ids to request from the registry.

    >>> missing(["7", "8", "900"], {"7": None, ABOVE: Schema("ABOVE", "100")})
    {'8'}
    """
    bound = _bound(schemas)
    return {id for id in ids if id not in schemas and not (id.isdigit() and int(id) > bound)}


def _bound(schemas: Schemas) -> float:
    bound = schemas.get(ABOVE)
    return math.inf if bound is None else int(bound.text)


def unknown(reasons: Iterable[str]) -> set[str]:
    """The ids of schemas to request, taken from the reasons values have no JSON.

    >>> sorted(unknown(["the schema 17 is not known yet", "the key: the schema 5 is not known yet", "not Avro: …"]))
    ['17', '5']
    """
    return {match[1] for reason in reasons if (match := _IS_UNKNOWN.fullmatch(reason))}


def lacked(reason: str) -> str | None:
    """The id of the schema that the registry lacked, or ABOVE, taken from the reason, or None for other reasons.

    >>> lacked("the registry had no schema 17: if it has by now, …"), lacked("not Avro: …")
    ('17', None)
    """
    match = _IS_LACKED.fullmatch(reason)
    return None if match is None else match[1] or ABOVE
