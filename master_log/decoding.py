"""Values that Spark SQL cannot read become the JSON that they stand for, by the decoder of their format.

A decoder (`view_algebra/formats`) is a function of a value and of the schemas that are known. It runs in Spark's Python
workers or, of a small micro-batch, whose records are at hand, in our own process. What it gives is a column of the raw
records, from which `reading.parsed` goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from view_algebra.compiled import Source
from view_algebra.formats import FORMATS, Decoder, Schemas
from view_algebra.formats.frames import HEADER
from view_algebra.formats.interface import NO_TEXT, TEXT, NoText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DDL = f"{TEXT} STRING, {NO_TEXT} STRING"
_HEADER = f"element_at(filter(headers, header -> header.key = '{HEADER}'), -1).value"

DECODED = f"STRUCT<{TEXT}: STRING, {NO_TEXT}: STRING>"
"""The type of a column of decoded values, in Spark SQL."""


def decoded_as(source: Source) -> str | None:
    """The column that holds the decoded values of a source; None if Spark SQL reads them as they are.

    Sources have one column together if they decode alike: an older version of a source may not.
    """
    if source.format not in FORMATS or FORMATS[source.format].decoder is None:
        return None
    options = {name: source.properties.get(name) for name in FORMATS[source.format].options}
    said = json.dumps([source.format, options], sort_keys=True)
    return f"kafka_decoded_{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def decoded(raw: DataFrame, sources: Iterable[Source], schemas: Schemas) -> DataFrame:
    """Raw records with the column `decoded_as` of each source: the JSON text of a value, or why there is none."""
    from pyspark.sql.functions import expr

    for column, source in _columns(sources).items():
        raw = raw.withColumn(column, _in_spark(source, schemas)(expr("value"), expr(_HEADER)))
    return raw


def decoded_few(few: pa.Table, sources: Iterable[Source], schemas: Schemas) -> pa.Table:
    """The same of records at hand, in the columns of a raw record."""
    for column, source in _columns(sources).items():
        headers = pa.array([_newest(each) for each in few["headers"].to_pylist()], pa.binary())
        values = few["value"].combine_chunks()
        few = few.append_column(column, _decoded(source.format, source.properties, schemas, values, headers))
    return few


def _columns(sources: Iterable[Source]) -> dict[str, Source]:
    return {column: source for source in sources if (column := decoded_as(source)) is not None}


def _in_spark(source: Source, schemas: Schemas) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    format, options, known = source.format, dict(source.properties), dict(schemas)

    def decode(values: pa.Array, headers: pa.Array) -> pa.Array:
        return _decoded(format, options, known, values, headers)

    made: Any = arrow_udf  # whose stub knows no function of two arrays without a number for it
    return made(decode, _DDL)


def _decoded(format: str, options: Any, schemas: Schemas, values: pa.Array, headers: pa.Array) -> pa.StructArray:
    make = FORMATS[format].decoder
    assert make is not None, format
    found = list(_each(make(options, schemas), values.to_pylist(), headers.to_pylist()))
    texts, reasons = zip(*found, strict=True) if found else ((), ())
    columns = [pa.array(each, pa.string()) for each in (texts, reasons)]
    return pa.StructArray.from_arrays(columns, names=[TEXT, NO_TEXT])


def _each(
    decode: Decoder, values: Iterable[bytes | None], headers: Iterable[bytes | None]
) -> Iterator[tuple[str | None, str | None]]:
    for value, header in zip(values, headers, strict=True):
        try:
            yield (None, None) if value is None else (decode(value, header), None)
        except NoText as reason:
            yield None, str(reason)


def _newest(headers: Any) -> bytes | None:
    return next((each["value"] for each in reversed(headers or ()) if each["key"] == HEADER), None)
