"""Values and keys that Spark SQL cannot read become the JSON that they stand for, by the decoder of their format.

A decoder (`view_algebra/formats`) is a function of bytes and of the schemas that are known. It runs in Spark's Python
workers or, of a small micro-batch, whose records are at hand, in our own process. What it gives is a column of the raw
records, from which `reading.parsed` goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from view_algebra.compiled import Source
from view_algebra.formats import FORMATS, Answers, Decoding, Schemas, decodings, frames
from view_algebra.formats.frames import HEADER, HEADER_OF_KEY
from view_algebra.formats.interface import DIRECT, KEY_TEXT, NO_KEY_TEXT, NO_TEXT, TEXT, NoText
from view_algebra.language.quoting import spark_name
from view_algebra.texts.decoding import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GIVEN = (TEXT, NO_TEXT, KEY_TEXT, NO_KEY_TEXT)


def decoded_fields(by: Decoding) -> str:
    """The fields of a column of decoded records, in Spark SQL."""
    texts = [f"{name}: STRING" for name in _GIVEN]
    return ", ".join([*texts, f"{DIRECT}: {_direct_type(by)}"] if by.columns else texts)


def _direct_type(by: Decoding) -> str:
    """The struct that `from_json` gives."""
    columns = [f"{spark_name(each.name)}: {each.type}" for each in by.columns]
    return f"STRUCT<{', '.join([*columns, f'{CORRUPT}: STRING'])}>"


def decoded(raw: DataFrame, sources: Iterable[Source], answers: Answers) -> DataFrame:
    """Raw records with the decoded column of each source that has one."""
    from pyspark.sql.functions import expr

    for each in decodings(sources):
        of_values = ("value", _header(HEADER)) if each.values else (_NOTHING, _NOTHING)
        of_keys = ("key", _header(HEADER_OF_KEY)) if each.keys else (_NOTHING, _NOTHING)
        raw = raw.withColumn(each.column, _in_spark(each, each.schemas(answers))(*map(expr, (*of_values, *of_keys))))
    return raw


def _in_spark(by: Decoding, schemas: Schemas) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    def decode(*columns: pa.Array) -> pa.Array:
        return _decoded(by, [column.to_pylist() for column in columns], schemas)

    made: Any = arrow_udf  # whose stub knows no function of four arrays without a number for it
    return made(decode, f"STRUCT<{decoded_fields(by)}>")


def given_as_json(raw: DataFrame, source: Source) -> DataFrame:
    """Raw records that hold the JSON of what a registry's schemas would say, as those of a test: they are decoded."""
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
    """The ids of the schemas that raw records name: a look at the beginning of each, and at its headers."""
    from pyspark.sql.functions import expr

    parts = [("value", HEADER)] if by.values_name_schemas else []
    parts += [("key", HEADER_OF_KEY)] if by.keys else []
    found: set[str] = set()
    for part, header in parts:
        start = f"CASE WHEN startswith({part}, X'00') THEN substring({part}, 1, 5) END AS start"
        named = raw.select(expr(f"{_header(header)} AS header"), expr(start))
        for each in named.where("header IS NOT NULL OR start IS NOT NULL").distinct().collect():
            with suppress(NoText):
                found.add(frames.unframed(bytes(each.start or b""), each.header and bytes(each.header))[0])
    return found


def decoded_few(few: pa.Table, sources: Iterable[Source], answers: Answers) -> pa.Table:
    """The same of records at hand, in the columns of a raw record."""
    for each in decodings(sources):
        headers = [[_newest(all, name) for all in few["headers"].to_pylist()] for name in _NAMES]
        given = [few["value"].to_pylist(), headers[0], few["key"].to_pylist(), headers[1]]
        few = few.append_column(each.column, _decoded(each, given, each.schemas(answers)))
    return few


_NAMES = (HEADER, HEADER_OF_KEY)


def _newest(headers: Any, name: str) -> bytes | None:
    return next((each["value"] for each in reversed(headers or ()) if each["key"] == name), None)


_Given = Sequence[list[bytes | None]]
"""Values, their headers, keys and their headers."""


def _decoded(by: Decoding, given: _Given, schemas: Schemas) -> pa.StructArray:
    """The structs of decoded records.

    How a record is read depends on nothing but its bytes, its schema and `by`, so that both layers read it alike.
    """
    direct = _directly(by, given, schemas) if by.columns else {}
    arrays = _texts(by, given, schemas) | direct  # the values that were read directly are no longer given
    return pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays))


def _texts(by: Decoding, given: _Given, schemas: Schemas) -> dict[str, pa.Array]:
    """The JSON texts of values and of keys, and the reasons why some have none."""
    values, headers, keys, headers_of_keys = given
    read = [_read(by.values, dict(by.options), schemas, values, headers)]
    read.append(_read(by.keys, {}, schemas, keys, headers_of_keys))
    arrays = [pa.array(each, pa.string()) for texts_and_reasons in read for each in texts_and_reasons]
    return dict(zip(_GIVEN, arrays, strict=True))


def _directly(by: Decoding, given: _Given, schemas: Schemas) -> dict[str, pa.Array]:
    """The columns of the values that need no JSON, which are taken out of those given."""
    values, headers, *_ = given
    read = FORMATS[str(by.values)].directly
    assert read is not None, f"{by.values} has no columns"
    found = read(by.columns, dict(by.options), schemas, values, headers)
    places: list[int | None] = [None] * len(values)
    for place, number in enumerate(found.numbers):
        places[number], values[number] = place, None
    arrays = {
        each.name: array.take(pa.array(places, pa.int64()))
        for each, array in zip(by.columns, found.arrays, strict=True)
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
    """The texts that values stand for, and the reasons why some stand for none."""
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
