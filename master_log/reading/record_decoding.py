"""Decodes values and keys that Spark SQL cannot read to the JSON that they encode.

A decoder (`view_algebra/formats`) is a function of bytes and of the known schemas. It runs in Spark's Python workers
or, for a small micro-batch whose records are in memory, in our own process. Its result is a column of the raw records,
which `kafka_reader.parsed` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from view_algebra.compiled import Source
from view_algebra.formats import FORMATS, Answers, Decoding, Schemas, decodings, frames
from view_algebra.formats.frames import HEADER, KEY_HEADER
from view_algebra.formats.interface import DIRECT, KEY_TEXT, NO_KEY_TEXT, NO_TEXT, TEXT, NoText
from view_algebra.language.quoting import spark_name
from view_algebra.records.decoding import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT_FIELDS = (TEXT, NO_TEXT, KEY_TEXT, NO_KEY_TEXT)


def decoded_fields(by: Decoding) -> str:
    """The fields of the decoded column, in Spark SQL."""
    texts = [f"{name}: STRING" for name in _TEXT_FIELDS]
    return ", ".join([*texts, f"{DIRECT}: {_direct_type(by)}"] if by.columns else texts)


def _direct_type(by: Decoding) -> str:
    """The struct type that `from_json` returns."""
    columns = [f"{spark_name(column.name)}: {column.type}" for column in by.columns]
    return f"STRUCT<{', '.join([*columns, f'{CORRUPT}: STRING'])}>"


def decoded(raw: DataFrame, sources: Iterable[Source], answers: Answers) -> DataFrame:
    """Raw records with the decoded column of each source whose format needs one."""
    from pyspark.sql.functions import expr

    for decoding in decodings(sources):
        value_columns = ("value", _header(HEADER)) if decoding.values else (_NOTHING, _NOTHING)
        key_columns = ("key", _header(KEY_HEADER)) if decoding.keys else (_NOTHING, _NOTHING)
        raw = raw.withColumn(
            decoding.column, _in_spark(decoding, decoding.schemas(answers))(*map(expr, (*value_columns, *key_columns)))
        )
    return raw


def _in_spark(by: Decoding, schemas: Schemas) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    def decode(*columns: pa.Array) -> pa.Array:
        return _decoded(by, [column.to_pylist() for column in columns], schemas)

    udf: Any = arrow_udf  # its stub has no form for a function of four arrays
    return udf(decode, f"STRUCT<{decoded_fields(by)}>")


def as_decoded_json(raw: DataFrame, source: Source) -> DataFrame:
    """Raw records that already hold JSON, such as those of a test, in the form of decoded records."""
    by = Decoding.of(source)
    if by is None or not by.needs_registry:
        return raw
    texts = [f"CAST({part} AS STRING)" for part in ("value", "key")]
    fields = [f"{texts[0]} AS {TEXT}", f"CAST(NULL AS STRING) AS {NO_TEXT}"]
    fields += [f"{texts[1]} AS {KEY_TEXT}", f"CAST(NULL AS STRING) AS {NO_KEY_TEXT}"]
    fields += [f"CAST(NULL AS {_direct_type(by)}) AS {DIRECT}"] if by.columns else []
    return raw.selectExpr("*", f"struct({', '.join(fields)}) AS {by.column}")


_NOTHING = "CAST(NULL AS BINARY)"


def _header(name: str) -> str:
    return f"element_at(filter(headers, header -> header.key = '{name}'), -1).value"


def named_schemas(raw: DataFrame, by: Decoding) -> set[str]:
    """The ids of the schemas that raw records name, in their first bytes or in their headers."""
    from pyspark.sql.functions import expr

    parts = [("value", HEADER)] if by.values_name_schemas else []
    parts += [("key", KEY_HEADER)] if by.keys else []
    ids: set[str] = set()
    for part, header in parts:
        start = f"CASE WHEN startswith({part}, X'00') THEN substring({part}, 1, 5) END AS start"
        named = raw.select(expr(f"{_header(header)} AS header"), expr(start))
        for row in named.where("header IS NOT NULL OR start IS NOT NULL").distinct().collect():
            with suppress(NoText):
                ids.add(frames.unframed(bytes(row.start or b""), row.header and bytes(row.header))[0])
    return ids


def decoded_in_memory(records: pa.Table, sources: Iterable[Source], answers: Answers) -> pa.Table:
    """`decoded` for records in memory, in the columns of a raw record."""
    for decoding in decodings(sources):
        headers = [[_newest(of_record, name) for of_record in records["headers"].to_pylist()] for name in _NAMES]
        columns = [records["value"].to_pylist(), headers[0], records["key"].to_pylist(), headers[1]]
        records = records.append_column(decoding.column, _decoded(decoding, columns, decoding.schemas(answers)))
    return records


_NAMES = (HEADER, KEY_HEADER)


def _newest(headers: Any, name: str) -> bytes | None:
    return next((header["value"] for header in reversed(headers or ()) if header["key"] == name), None)


_Columns = Sequence[list[bytes | None]]
"""Values, their headers, keys and their headers."""


def _decoded(by: Decoding, columns: _Columns, schemas: Schemas) -> pa.StructArray:
    """The structs of decoded records.

    The result depends only on a record's bytes, its schema and `by`, so both layers read a record alike.
    """
    direct = _directly(by, columns, schemas) if by.columns else {}
    arrays = _texts(by, columns, schemas) | direct  # `_directly` has taken its values out
    return pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays))


def _texts(by: Decoding, columns: _Columns, schemas: Schemas) -> dict[str, pa.Array]:
    """The JSON texts of values and of keys, with the reason for each missing text."""
    values, headers, keys, key_headers = columns
    read = [_read(by.values, dict(by.options), schemas, values, headers)]
    read.append(_read(by.keys, {}, schemas, keys, key_headers))
    arrays = [pa.array(column, pa.string()) for texts_and_reasons in read for column in texts_and_reasons]
    return dict(zip(_TEXT_FIELDS, arrays, strict=True))


def _directly(by: Decoding, columns: _Columns, schemas: Schemas) -> dict[str, pa.Array]:
    """The columns of the values that need no JSON. Takes these values out of `columns`."""
    values, headers, *_ = columns
    read = FORMATS[str(by.values)].directly
    assert read is not None, f"{by.values} has no columns"
    direct = read(by.columns, dict(by.options), schemas, values, headers)
    places: list[int | None] = [None] * len(values)
    for place, number in enumerate(direct.numbers):
        places[number], values[number] = place, None
    arrays = {
        column.name: array.take(pa.array(places, pa.int64()))
        for column, array in zip(by.columns, direct.arrays, strict=True)
    }
    arrays[CORRUPT] = pa.nulls(len(values), pa.string())
    mask = pa.array([place is None for place in places], pa.bool_())
    return {DIRECT: pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays), mask=mask)}


def _read(
    format: str | None,
    options: dict[str, str],
    schemas: Schemas,
    values: list[bytes | None],
    headers: list[bytes | None],
) -> tuple[list[str | None], list[str | None]]:
    """The texts that values encode, with the reason for each value that encodes none."""
    texts: list[str | None] = [None] * len(values)
    reasons: list[str | None] = [None] * len(values)
    make = None if format is None else FORMATS[format].decoder
    if make is None:
        return texts, reasons
    decode = make(options, schemas)
    for number, (value, header) in enumerate(zip(values, headers, strict=True)):
        if value is not None:
            try:
                texts[number] = decode(value, header)
            except NoText as reason:
                reasons[number] = str(reason)
    return texts, reasons
