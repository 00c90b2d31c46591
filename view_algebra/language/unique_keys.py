"""Maps that Spark's JSON reader makes, with each key once: of a key that a text has twice it keeps both entries.

jsonb, and every other reader of the topic, keeps the last.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import Type, inside


def with_unique_keys(text: str, kind: Type, depth: int = 0) -> str:
    """Spark SQL of a value that was read from JSON, each key of its maps once, with its last entry.

    A type without a map costs nothing. Spark's builder of maps does it (`spark.sql.mapKeyDedupPolicy`).

    >>> from view_algebra.language.types import INT, STRING
    >>> with_unique_keys("tags", Type("MAP", key=STRING, element=INT))
    'map_from_entries(map_entries(tags))'
    >>> with_unique_keys("tags", Type("ARRAY", element=INT))
    'tags'
    """
    if not _has_maps(kind):
        return text
    each = f"v{depth}"
    if kind.name == "MAP" and kind.element is not None:
        entries = f"map_entries({text})"
        if _has_maps(kind.element):
            value = with_unique_keys(f"{each}.value", kind.element, depth + 1)
            entries = f"transform({entries}, {each} -> named_struct('key', {each}.key, 'value', {value}))"
        return f"map_from_entries({entries})"
    if kind.name == "ARRAY" and kind.element is not None:
        return f"transform({text}, {each} -> {with_unique_keys(each, kind.element, depth + 1)})"
    fields = (
        f"{spark_text(name)}, {with_unique_keys(f'{text}.{spark_name(name)}', field, depth)}"
        for name, field in kind.fields
    )
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(fields)}) END"


def _has_maps(kind: Type) -> bool:
    return any(each.name == "MAP" for each in inside(kind))
