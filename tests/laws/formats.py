"""Sources of any format, and the columns that are read from their records."""

from __future__ import annotations

import io
from typing import Any

import fastavro

from tests.laws.engines import Engines
from view_algebra import compile_catalog


def declared(columns: str, options: str) -> str:
    """The declaration of a source `s`."""
    return f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', {options});"


def columns_read(engines: Engines, sql: str, values: list[Any]) -> list[Any]:
    """The columns of each record, or the reason that it is bad. NaN becomes a text, so that it equals itself."""
    source = compile_catalog({"s.sql": sql}).sources["s"]
    engines.records(source, values)
    names = [f"`{column.name}`" for column in source.columns]
    rows = engines.spark.sql(f"SELECT kafka_error, {', '.join(names)} FROM records ORDER BY kafka_offset").collect()
    return [row[0] or tuple("NaN" if value != value else value for value in row[1:]) for row in rows]


def avro(schema: dict[str, Any], fields: dict[str, Any]) -> bytes:
    """The datum of these fields."""
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(schema), fields)
    return datum.getvalue()
