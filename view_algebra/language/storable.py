"""Spark SQL of values that Postgres can store.

A text has U+FFFD in place of U+0000 and of invalid UTF-8. A map keeps the last entry of a repeated key, as jsonb and
every other reader of the topic do. Spark's JSON reader keeps both. The texts of views (`engines/spark.py`) and the
SELECT of `lamina check` (`typed/expressions/guards.py`) share these guards.
"""

from __future__ import annotations

from view_algebra.language.expressions import Call
from view_algebra.language.long_numbers import bounded
from view_algebra.language.quoting import spark_name, spark_text, words
from view_algebra.language.types import STRING, Type, inside

ZERO = r"(?<!\\)((?:\\\\)*)\\u0000"
"""U+0000 in JSON, which Postgres cannot store, after any escaped backslashes."""

_REPLACED = r"$1\\ufffd"

_MAKES_CHARACTERS = words("chr char get_json_object try_url_decode")


def makes_any_text(call: Call) -> bool:
    """True if a call can return a text with U+0000 or invalid UTF-8 for valid texts.

    A cast of bytes uses `text_of_bytes` instead.
    """
    return call.type == STRING and call.function in _MAKES_CHARACTERS


def text_of_bytes(value: str) -> str:
    """Spark SQL of bytes as a text that Postgres can store: U+FFFD replaces invalid UTF-8 and U+0000."""
    return f"replace(make_valid_utf8(CAST({value} AS STRING)), chr(0), '\ufffd')"


def as_text(text: str) -> str:
    """Spark SQL of a text without U+0000, in valid UTF-8."""
    return f"replace(make_valid_utf8({text}), '\\u0000', '\\ufffd')"


def with_unique_keys(text: str, kind: Type, depth: int = 0) -> str:
    """Spark SQL of a value read from JSON, with only the last entry of each key in its maps.

    A type without a map costs nothing. Spark's map builder does the work (`spark.sql.mapKeyDedupPolicy`).

    >>> from view_algebra.language.types import INT, STRING
    >>> with_unique_keys("tags", Type("MAP", key=STRING, element=INT))
    'map_from_entries(map_entries(tags))'
    >>> with_unique_keys("tags", Type("ARRAY", element=INT))
    'tags'
    """
    if not _has_maps(kind):
        return text
    variable = f"v{depth}"
    if kind.name == "MAP" and kind.element is not None:
        entries = f"map_entries({text})"
        if _has_maps(kind.element):
            value = with_unique_keys(f"{variable}.value", kind.element, depth + 1)
            entries = f"transform({entries}, {variable} -> named_struct('key', {variable}.key, 'value', {value}))"
        return f"map_from_entries({entries})"
    if kind.name == "ARRAY" and kind.element is not None:
        return f"transform({text}, {variable} -> {with_unique_keys(variable, kind.element, depth + 1)})"
    fields = (
        f"{spark_text(name)}, {with_unique_keys(f'{text}.{spark_name(name)}', field, depth)}"
        for name, field in kind.fields
    )
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(fields)}) END"


def _has_maps(kind: Type) -> bool:
    return any(part.name == "MAP" for part in inside(kind))


def read_json(text: str, schema: str, kind: Type) -> str:
    """Spark SQL of from_json() with a result that Postgres can store."""
    return with_unique_keys(f"from_json({bounded(clean_json(text), kind)}, {schema})", kind)


def clean_json(text: str) -> str:
    """Spark SQL of a JSON text with U+FFFD in place of U+0000, which JSON can only escape."""
    return f"regexp_replace({text}, {spark_text(ZERO)}, {spark_text(_REPLACED)})"
