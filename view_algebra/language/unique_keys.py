"""Removes duplicate keys from maps: Spark's JSON reader keeps both entries of a repeated key.

jsonb, like every other reader of the topic, keeps the last entry.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import Type, inside


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
