"""`avro`: one datum of Avro in each value, of the record schema that OPTIONS give.

Spark decodes the datum by that schema, and its JSON is read into the declared columns: decimals with all their digits,
bytes and fixed in base64, enums and uuids as texts, times in ISO 8601, a union of a type and null as the type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from view_algebra.compiled import JSON_TIMES
from view_algebra.formats.interface import TEXT, Declared, Mistake, Read
from view_algebra.language.quoting import spark_text

OPTIONS = {"schema": "of `avro`: the schema of the records, as JSON"}

DECODED = "kafka_decoded"
"""The field that the reader's schema adds, with a default: it is there if the datum was decoded, and only then."""


def read(declared: Declared) -> Read:
    """The datum as a JSON object; a value that is none of the schema has none."""
    if "schema" not in declared.options:
        raise Mistake("format 'avro' without a schema", 'Write OPTIONS (…, schema \'{"type": "record", …}\').')
    schema = _schema(declared.options["schema"])
    marked = schema | {"fields": [*schema["fields"], {"name": DECODED, "type": "boolean", "default": True}]}
    options = {"mode": "PERMISSIVE", "avroSchema": json.dumps(marked)}
    datum = f"from_avro(value, {spark_text(json.dumps(schema))}, {_map(options)})"
    is_whole = f"datum.{DECODED}"
    if not any(each in ("array", "map") for each in _types(schema)):
        # Whatever stands behind a datum would be ignored. Lists may be written in several ways, of different lengths.
        encoded = f"to_avro(datum, {spark_text(json.dumps(marked))})"
        is_whole = f"CASE WHEN {is_whole} THEN length({encoded}) = length(value) + 1 END"
    return Read(
        f"""(
    SELECT *, CASE WHEN {is_whole} THEN to_json(datum, {_map(JSON_TIMES)}) END AS {TEXT}
    FROM (SELECT *, {datum} AS datum FROM raw_records)
  )""",
        [(f"{TEXT} IS NULL", "'not Avro of the declared schema'")],
    )


def _map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(f'{spark_text(key)}, {spark_text(value)}' for key, value in options.items())})"


def _schema(text: str) -> dict[str, Any]:
    """The schema of a record; raises Mistake for any other, and for one that contains itself."""
    import fastavro
    from fastavro.schema import SchemaParseException, expand_schema

    try:
        schema = json.loads(text)
    except ValueError as error:
        raise Mistake(f"the schema is not JSON: {error}", "Write the text of the .avsc file.", "schema") from None
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        way_out = 'Write {"type": "record", "name": "…", "fields": […]}.'
        raise Mistake("the schema is not a record schema", way_out, "schema")
    named: dict[str, Any] = {}
    try:
        fastavro.parse_schema(schema, named)
    except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"the schema is not one of Avro: {type(error).__name__}: {error}"
        raise Mistake(what, "Write the text of the .avsc file.", "schema") from None
    # In place of a type's name stands the type itself, but where a record contains itself.
    if name := next((each for each in _types(expand_schema(schema)) if each in named), None):
        way_out = "Leave the field of that type out of the records, or send them as JSON."
        raise Mistake(f"the schema is recursive: {name} contains itself", way_out, "schema")
    return schema


def _types(schema: Any) -> Iterator[str]:
    """The names of all types in a schema."""
    match schema:
        case str():
            yield schema
        case list():
            for each in schema:
                yield from _types(each)
        case dict():
            yield from _types(schema.get("type"))
            for part in ("items", "values"):
                if part in schema:
                    yield from _types(schema[part])
            for field in schema.get("fields", ()):
                yield from _types(field["type"])
