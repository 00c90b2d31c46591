"""Formats without a schema: `csv`, `text` and `bytes`.

A value of `csv` is a line of separated fields without a header, in the order of the declared columns. A field is quoted
if it holds a delimiter, a quote or a line break. A quote inside is doubled. An empty field without quotes is NULL, and
so is the text of the option `null`. A number, a boolean, or JSON for a nested column enters the JSON object unchanged.
Any other field becomes a JSON text, which is read by the rules for texts.

A value of `text` or `bytes` is read unchanged into the one column outside of the key.
"""

from __future__ import annotations

import json
import re

from view_algebra.formats.interface import HAS_ZERO, NOT_UTF8, TEXT, DeclaredColumns, FormatMistake, ValueSql
from view_algebra.language.quoting import spark_text
from view_algebra.language.types import BINARY, CALENDAR, STRING, Type

CSV_OPTIONS = {
    "delimiter": "of `csv`: the character between two fields (default: `,`)",
    "quote": 'of `csv`: the character around a field (default: `"`)',
    "null": "of `csv`: the text of a field that is NULL, as an empty field without quotes is",
}

NUMBER = r"^-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+$"

END = r"\r?\n\z"
"""The line break at the end of a line."""

EMPTY = r"'\0'"
"""The value, in Spark SQL, of an empty field without quotes, to distinguish it from `""` in Spark's reader.

No text of a good record holds this character.
"""


def read_csv(declared: DeclaredColumns) -> ValueSql:
    """The SQL of a line as a JSON object, or NULL if the value is not one line with the declared fields."""
    delimiter, quote = (_character(declared, *option) for option in (("delimiter", ","), ("quote", '"')))
    if delimiter == quote:
        raise FormatMistake("delimiter and quote are the same character", "Write two characters.", "quote")
    count = len(declared.columns)
    line = spark_text(line_pattern(count, delimiter, quote))
    return ValueSql(
        f"""(
    SELECT *, {_object(declared)} AS {TEXT}
    FROM (
      SELECT *, CASE WHEN text RLIKE {line} THEN {_split(count, delimiter, quote)} END AS split
      FROM (SELECT *, CAST(value AS STRING) AS text FROM raw_records)
    )
  )""",
        [
            NOT_UTF8,
            HAS_ZERO,
            (f"{TEXT} IS NULL", f"'not CSV: one line of {count} field{'s' if count > 1 else ''} is expected'"),
        ],
    )


def line_pattern(count: int, delimiter: str, quote: str) -> str:
    r"""Java's regular expression for a line of `count` fields.

    >>> print(line_pattern(1, ",", "'"))
    ^(?:'(?:[^']++|'')*+'|(?!')[^,\r\n]*+)(?:,(?:'(?:[^']++|'')*+'|(?!')[^,\r\n]*+)){0}(?:\r?\n\z)?+\z
    """
    d, q = re.escape(delimiter), re.escape(quote)
    field = rf"(?:{q}(?:[^{q}]++|{q}{q})*+{q}|(?!{q})[^{d}\r\n]*+)"
    return rf"^{field}(?:{d}{field}){{{count - 1}}}(?:{END})?+\z"


def _split(count: int, delimiter: str, quote: str) -> str:
    """The fields as texts, read by Spark's CSV reader."""
    schema = ", ".join(f"c{number} STRING" for number in range(count))
    options = {"sep": delimiter, "quote": quote, "escape": quote, "maxCharsPerColumn": "-1"}
    options_sql = ", ".join(f"{spark_text(key)}, {spark_text(value)}" for key, value in options.items())
    options_sql += f", 'nullValue', {EMPTY}"
    return f"from_csv(regexp_replace(text, {spark_text(END)}, ''), {spark_text(schema)}, map({options_sql}))"


def _object(declared: DeclaredColumns) -> str:
    """The fields as a JSON object, first the bare values, then the texts."""
    bare, texts = [], []
    for number, (name, kind, _) in enumerate(declared.columns):
        value = f"split.c{number}"
        if "null" in declared.options:
            value = f"nullif({value}, {spark_text(declared.options['null'])})"
        if (is_bare := _stands_in_json(value, kind, declared)) is not None:
            bare.append(f"CASE WHEN {is_bare} THEN concat({spark_text(json.dumps(name))}, ':', {value}) END")
            value = f"CASE WHEN NOT coalesce({is_bare}, false) THEN {value} END"
        texts.append(f"{spark_text(name)}, {value}")
    quoted = f"to_json(named_struct({', '.join(texts)}))"
    inner = f"nullif(substring({quoted}, 2, length({quoted}) - 2), '')"
    return f"CASE WHEN split IS NOT NULL THEN concat('{{', concat_ws(',', {', '.join([*bare, inner])}), '}}') END"


def _stands_in_json(value: str, kind: Type, declared: DeclaredColumns) -> str | None:
    """The condition that a field is JSON by itself, or None if every value of its type is a text.

    A list, a map or a struct is JSON if it is the only value between brackets, which excludes `1, "other": 2`.
    """
    if kind.nested:
        return f"json_array_length(concat('[', {value}, ']')) = 1"
    if kind.name == "BOOLEAN":
        return f"{value} IN ('true', 'false')"
    is_number = kind.numeric or (kind.name in CALENDAR and declared.numbers_are_times)
    return f"{value} RLIKE {spark_text(NUMBER)}" if is_number else None


def _character(declared: DeclaredColumns, option: str, default: str) -> str:
    value = declared.options.get(option, default)
    if len(value) != 1 or value.isalnum() or value in "\r\n" or not (value == "\t" or " " <= value <= "~"):
        raise FormatMistake(
            f"{option} {value!r} is not a separating character",
            f"Write one ASCII character that is not a letter, digit or line break, for example {option} '{default}'.",
            option,
        )
    return value


def read_text(declared: DeclaredColumns) -> ValueSql:
    """The SQL of a whole value as a STRING."""
    return ValueSql(_one_field(_only(declared, "text", STRING), "CAST(value AS STRING)"), [NOT_UTF8])


def read_bytes(declared: DeclaredColumns) -> ValueSql:
    """The SQL of a whole value as a BINARY, in base64 for JSON."""
    return ValueSql(_one_field(_only(declared, "bytes", BINARY), "base64(value)"), [])


def _one_field(name: str, value: str) -> str:
    return f"(SELECT *, to_json(named_struct({spark_text(name)}, {value})) AS {TEXT} FROM raw_records)"


def _only(declared: DeclaredColumns, format: str, kind: Type) -> str:
    columns = [(name, kind) for name, kind, in_key in declared.columns if not in_key]
    if [declared_kind for _, declared_kind in columns] != [kind]:
        raise FormatMistake(
            f"format '{format}' takes one column of type {kind}, and no others",
            f"Declare the value as one column of type {kind}, and besides only a PRIMARY KEY, which Kafka's key holds.",
        )
    return columns[0][0]
