"""The frame of a schema registry: which schema a value is written with, and where the value begins.

Confluent's serializers, and those that do as they do, write a zero byte and the schema's id in four bytes before the
value; newer ones write its id or its UUID into a header of the record instead.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable

from view_algebra.compiled import ASK_AGAIN
from view_algebra.formats.interface import NoText, Schema, Schemas

HEADER, HEADER_OF_KEY = "__value_schema_id", "__key_schema_id"
"""The headers of a record with the ids of the schemas of its value and of its key."""

_ID, _UUID = 0, 1
"""The first byte of a frame: what follows it."""

_LENGTHS = {_ID: 5, _UUID: 17}

_GLUE = 3
"""The first byte of a frame of AWS Glue's registry, which is 18 bytes long."""

OF_KEY = "the key: "
"""Begins the reason why a record's key stands for no JSON."""

_UNKNOWN = "the schema {} is not known yet"
_IS_UNKNOWN = re.compile(f"(?:{OF_KEY})?{_UNKNOWN.format('([0-9a-f-]+)')}")

ABOVE = "above"
"""In place of the id of a schema: the registry is not asked for numbers above the schema's text."""

_LACKED = "the registry had no schema {}"
_NOT_ASKED = "the registry lacked too many schemas to be asked for one above {}"
_IS_LACKED = re.compile(f"(?:{OF_KEY})?(?:{_LACKED.format('([0-9a-f-]+)')}|{_NOT_ASKED.format('[0-9]+')}): .*")

IS_UNKNOWN = f"%s RLIKE '^{_IS_UNKNOWN.pattern}$'"
"""The condition, in Spark SQL over the reason why a record is bad, that it names a schema that is to be asked for."""


def unframed(value: bytes, header: bytes | None) -> tuple[str, bytes, bytes]:
    r"""The id of the schema of a value or a key; what follows it in the frame; and the value without a frame.

    Raises `NoText` if there is no frame.

    >>> unframed(b"\0\0\0\0\x11rest", None), unframed(b"value", b"\0\0\0\0\x11\0")
    (('17', b'rest', b'rest'), ('17', b'\x00', b'value'))
    """
    frame = value if header is None else header
    # A UUID stands in headers alone: a value may begin with any byte, and one with this is none of a registry.
    length = _LENGTHS.get(frame[0], 0) if frame and (header is not None or frame[0] == _ID) else 0
    if not length or len(frame) < length:
        raise NoText(f"no frame of a schema registry: {_instead(frame, length)}")
    id, behind = frame[1:length], frame[length:]
    name = str(int.from_bytes(id, "big")) if frame[0] == _ID else str(uuid.UUID(bytes=id))
    return name, behind, behind if header is None else value


def _instead(frame: bytes, length: int) -> str:
    if length:
        return f"{len(frame)} bytes are too short for one"
    if not frame:
        return "it is empty"
    if frame[0] == _GLUE and len(frame) >= 18:
        return "it is one of AWS Glue, which Lamina does not read"
    return f"it begins with the byte 0x{frame[0]:02x}"


def schema_of(id: str, schemas: Schemas, kind: str) -> Schema:
    """The schema with an id, which must be of this kind; raises `NoText` if it is not known, or of another kind."""
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
    """The ids for which the registry is to be asked.

    >>> missing(["7", "8", "900"], {"7": None, ABOVE: Schema("ABOVE", "100")})
    {'8'}
    """
    bound = _bound(schemas)
    return {id for id in ids if id not in schemas and not (id.isdigit() and int(id) > bound)}


def _bound(schemas: Schemas) -> float:
    bound = schemas.get(ABOVE)
    return math.inf if bound is None else int(bound.text)


def unknown(reasons: Iterable[str]) -> set[str]:
    """The ids of schemas that are to be asked for, by the reasons why values stand for no JSON.

    >>> sorted(unknown(["the schema 17 is not known yet", "the key: the schema 5 is not known yet", "not Avro: …"]))
    ['17', '5']
    """
    return {found[1] for reason in reasons if (found := _IS_UNKNOWN.fullmatch(reason))}


def lacked(reason: str) -> str | None:
    """The id of the schema that the registry lacked, or ABOVE, by the reason why a record is bad; None for others.

    >>> lacked("the registry had no schema 17: if it has by now, …"), lacked("not Avro: …")
    ('17', None)
    """
    found = _IS_LACKED.fullmatch(reason)
    return None if found is None else found[1] or ABOVE
