"""Debezium's placeholders for long values that a change in Postgres left unchanged, which are not logged again.

A placeholder is a text. Other types have its bytes, numbers from its bytes, or a fixed value.
"""

from __future__ import annotations

import json
import uuid
from hashlib import md5

from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import Type

_GEOMETRIES = ("AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==")
"""`wkb` of the placeholders of a geometry and a geography, in base64."""


def is_there(column: str, kind: Type, placeholder: str | None) -> str | None:
    """The condition that a change has a column's value, not a placeholder; None if it always does.

    >>> from view_algebra.language.types import BINARY, INT
    >>> is_there("photo", BINARY, "unavailable"), is_there("n", INT, "unavailable")
    ("hex(photo) IS DISTINCT FROM hex('unavailable')", None)
    """
    if placeholder is None:
        return None
    own, text = spark_name(column), spark_text(placeholder)
    fields = dict(kind.fields)
    if kind.name == "STRING":
        return f"NOT coalesce({own} IN ({text}, {spark_text(_as_json(placeholder))}), false)"
    if kind.name == "BINARY":
        return f"hex({own}) IS DISTINCT FROM hex({text})"
    if kind.name == "MAP" and kind.key is not None and kind.key.name == "STRING":
        return f"{own}[{text}] IS NULL"
    if kind.name == "STRUCT" and "wkb" in fields and fields["wkb"].name == "STRING":
        return f"NOT coalesce({own}.wkb IN ({', '.join(map(spark_text, _GEOMETRIES))}), false)"
    if kind.name != "ARRAY" or kind.element is None:
        return None
    if kind.element.name == "STRING":
        return f"NOT coalesce({own}[0] IN ({text}, {spark_text(_as_uuid(placeholder))}), false)"
    if kind.element.numeric:
        numbers = ", ".join(f"CAST({byte} AS {kind.element.spark})" for byte in placeholder.encode())
        return f"NOT ({own} <=> array({numbers}))"
    return None


def _as_json(placeholder: str) -> str:
    """The placeholder of an hstore, which is JSON in a text."""
    return json.dumps({placeholder: placeholder}, separators=(",", ":"))


def _as_uuid(placeholder: str) -> str:
    """The UUID of the placeholder's bytes, as in Java's `nameUUIDFromBytes`."""
    return str(uuid.UUID(bytes=md5(placeholder.encode(), usedforsecurity=False).digest(), version=3))
