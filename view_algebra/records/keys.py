"""Reads the columns of a PRIMARY KEY from Kafka's key, and the previous key of a change event.

A numeric key, the big-endian bytes of Kafka's serializers, becomes JSON first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from view_algebra.formats import DECODED_KEYS
from view_algebra.formats.interface import KEY_TEXT
from view_algebra.language.long_numbers import bounded
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import CALENDAR, STRING, Type
from view_algebra.records import debezium
from view_algebra.records.decoding import Columns
from view_algebra.records.fields import json_read, marked
from view_algebra.records.record import SPACE, PrimaryKey, Record, declared_column, out_of_bounds


def parsed_keys(columns: Columns, key_columns: Columns, record: Record) -> str:
    """The columns read from Kafka's key, and the previous key in a change event."""
    read = ""
    if record.key is not None and key_columns:
        text = _key_text(key_columns, record.key, record)
        loses = record.loses(key_columns, "key_read", "key_text", from_variant=False)
        read += f",\n    {_read_key(text, marked('key_text'), loses, key_columns, record)} AS key_parsed"
    if record.key is not None and record.changes_table:
        before = record.key.within(columns)
        marked_before = debezium.marked_part(debezium.BEFORE, record.whole)
        loses = record.loses(before, "key_read", record.whole, from_variant=True)
        read += f",\n    {_read_key(debezium.BEFORE, marked_before, loses, before, record)} AS before_parsed"
    return read


def _key_text(columns: Columns, key: PrimaryKey, record: Record) -> str:
    """Spark SQL of Kafka's key as a JSON object of the columns. The key of one column may be its bare value."""
    text = _KEYS.get(key.format, "make_valid_utf8(CAST(kafka_key AS STRING))")
    if record.encodings.has_schema and not record.decodes_key:
        text = f"coalesce(get_json_object({text}, '$.payload'), {text})"
    if len(columns) > 1:
        return text
    ((name, kind),) = columns
    name = record.options.name(name)
    field = f"concat('{{', {spark_text(json.dumps(name, ensure_ascii=False))}, ':', %s, '}}')"
    if key.format == "string":
        return f"to_json(named_struct({spark_text(name)}, {text}))" if _is_quoted(kind) else field % text
    return f"CASE WHEN startswith(ltrim({SPACE}, {text}), '{{') THEN {text} ELSE {field % text} END"


_AS_LONG = "CAST(conv(hex(kafka_key), 16, -10) AS BIGINT)"
"""The bits of a key."""


def _fraction(length: int, digits: int, bias: int) -> str:
    """Spark SQL of an IEEE 754 number from its bits, exact because it only multiplies by powers of two.

    digits: bits of the fraction
    bias: the exponent's bias
    """
    exponents = 2 * bias + 1
    exponent = f"(shiftright({_AS_LONG}, {digits}) & {exponents})"
    fraction = f"({_AS_LONG} & {2**digits - 1})"
    sign = f"(1D - 2D * (shiftright({_AS_LONG}, {8 * length - 1}) & 1))"
    return f"""CASE
        WHEN length(kafka_key) <> {length} THEN NULL
        WHEN {exponent} = {exponents} AND {fraction} <> 0 THEN '"NaN"'
        WHEN {exponent} = {exponents} AND {sign} > 0 THEN '"Infinity"'
        WHEN {exponent} = {exponents} THEN '"-Infinity"'
        WHEN {exponent} = 0 THEN CAST({sign} * {fraction} * power(2D, {1 - bias - digits}) AS STRING)
        ELSE CAST({sign} * (1 + {fraction} / {2**digits}D) * power(2D, {exponent} - {bias}) AS STRING)
      END"""


def _whole(length: int) -> str:
    """Spark SQL of a whole number of `length` bytes, which shifts its sign to a BIGINT's and back."""
    above = 64 - 8 * length
    number = f"shiftright(shiftleft(CAST(conv(hex(kafka_key), 16, 10) AS BIGINT), {above}), {above})"
    return f"CASE WHEN length(kafka_key) = {length} THEN CAST({number} AS STRING) END"


_KEYS: Mapping[str, str] = {
    **dict.fromkeys(map(str, DECODED_KEYS), KEY_TEXT),
    "short": _whole(2),
    "int": _whole(4),
    "long": "CASE WHEN length(kafka_key) = 8 THEN conv(hex(kafka_key), 16, -10) END",
    "float": _fraction(4, 23, 127),
    "double": _fraction(8, 52, 1023),
}
"""The JSON of keys that are not text in Spark SQL, by their format, or NULL for a number of another length."""


def _read_key(text: str, as_marked: str, loses: Sequence[str], columns: Columns, record: Record) -> str:
    """Reads a key's columns from JSON, a second time if one of them is NULL or may have lost digits.

    as_marked: the text with marked numbers
    loses: conditions that digits are lost
    """
    read_as = record.read_as(columns)
    first = json_read(bounded("key_text", Type("STRUCT", fields=tuple(read_as))), read_as, record.options)
    is_null = [f"key_read.{spark_name(name)} IS NULL" for name, _ in columns]
    again = record.second_reading("key_read", as_marked, columns).struct()
    mistaken = " OR ".join([*is_null, *loses])
    read_again = f"key_text <> 'null' AND ({mistaken})"
    return f"""element_at(transform(
      array({text}),
      key_text -> element_at(transform(
        array({first}),
        key_read -> CASE WHEN {read_again} THEN {again} ELSE key_read END
      ), 1)
    ), 1)"""


def _is_quoted(kind: Type) -> bool:
    """True if a value of the type is a text in JSON."""
    return kind == STRING or kind.name in CALENDAR


def moved_from(columns: Columns, key: PrimaryKey) -> str:
    """The key under which an update deletes the row, or NULL if the key is unchanged or unknown."""
    key_columns = key.within(columns)
    before = [in_key(name, kind, "before_parsed") for name, kind in key_columns]
    is_complete = " AND ".join(f"{value} IS NOT NULL" for value in before)
    same = " AND ".join(f"{v} <=> {key_value(n, kind, key)}" for v, (n, kind) in zip(before, key_columns, strict=True))
    values = ", ".join(f"{spark_text(name)}, {value}" for value, (name, _) in zip(before, key_columns, strict=True))
    return f"CASE WHEN {debezium.OP} = 'u' AND {is_complete} AND NOT ({same}) THEN named_struct({values}) END"


def key_value(name: str, kind: Type, key: PrimaryKey) -> str:
    """A column of the PRIMARY KEY, from the value alone if Kafka's key is not read."""
    return declared_column(name, kind) if key.format == "none" else value_or_key(name, kind)


def value_or_key(name: str, kind: Type) -> str:
    """A column of a PRIMARY KEY, from the value or else from Kafka's key."""
    return f"coalesce({declared_column(name, kind)}, {in_key(name, kind)})"


def in_key(name: str, kind: Type, struct: str = "key_parsed") -> str:
    """A column from Kafka's key, or NULL if Postgres could not store it."""
    value = declared_column(name, kind, struct)
    if kind == STRING:
        return f"CASE WHEN NOT contains({value}, '\\u0000') THEN {value} END"
    outside = out_of_bounds(value, kind)
    return f"CASE WHEN NOT {outside} THEN {value} END" if outside else value
