"""`csv`: a line of separated fields without a header, in the order of the declared columns.

A field is quoted if it holds a delimiter, a quote or a line break; a quote in it is written twice. An empty field
without quotes is NULL, and so is the text that the option `null` names. A field that is a number, a boolean, or
JSON for a nested column, stands in the object as it is; any other becomes a text, which is read as texts in JSON are.
"""

from __future__ import annotations

import json
import re

from view_algebra.formats.interface import HAS_ZERO, NOT_UTF8, TEXT, Declared, Mistake, Read
from view_algebra.language.quoting import spark_text
from view_algebra.language.types import CALENDAR, Type

OPTIONS = {
    "delimiter": "of `csv`: the character between two fields (default: `,`)",
    "quote": 'of `csv`: the character around a field (default: `"`)',
    "null": "of `csv`: the text of a field that is NULL, as an empty field without quotes is",
}

NUMBER = r"^-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+$"

END = r"\r?\n\z"
"""The line break behind a line."""

EMPTY = r"'\0'"
"""What an empty field without quotes is to Spark's reader, in Spark SQL: it could not be told from `""` otherwise.

No text that counts holds the character.
"""


def read(declared: Declared) -> Read:
    """The fields of a line as a JSON object; a value that is not one line of so many fields has none."""
    delimiter, quote = (_character(declared, *each) for each in (("delimiter", ","), ("quote", '"')))
    if delimiter == quote:
        raise Mistake("delimiter and quote are the same character", "Write two characters.", "quote")
    count = len(declared.columns)
    line = spark_text(well_formed(count, delimiter, quote))
    return Read(
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


def well_formed(count: int, delimiter: str, quote: str) -> str:
    r"""The regular expression, as Java writes them, of a line with so many fields.

    >>> print(well_formed(1, ",", "'"))
    ^(?:'(?:[^']++|'')*+'|(?!')[^,\r\n]*+)(?:,(?:'(?:[^']++|'')*+'|(?!')[^,\r\n]*+)){0}(?:\r?\n\z)?+\z
    """
    d, q = re.escape(delimiter), re.escape(quote)
    each = rf"(?:{q}(?:[^{q}]++|{q}{q})*+{q}|(?!{q})[^{d}\r\n]*+)"
    return rf"^{each}(?:{d}{each}){{{count - 1}}}(?:{END})?+\z"


def _split(count: int, delimiter: str, quote: str) -> str:
    """The fields as texts, by Spark's reader of CSV."""
    schema = ", ".join(f"c{number} STRING" for number in range(count))
    options = {"sep": delimiter, "quote": quote, "escape": quote, "maxCharsPerColumn": "-1"}
    given = ", ".join(f"{spark_text(key)}, {spark_text(value)}" for key, value in options.items())
    given += f", 'nullValue', {EMPTY}"
    return f"from_csv(regexp_replace(text, {spark_text(END)}, ''), {spark_text(schema)}, map({given}))"


def _object(declared: Declared) -> str:
    """The fields as a JSON object: numbers by themselves, then what is a text."""
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


def _stands_in_json(value: str, kind: Type, declared: Declared) -> str | None:
    """The condition that a field is JSON as it stands; None if every value is a text there.

    A list, a map or a struct is JSON if it is one value between brackets. What follows a value in an object, such as
    `1, "other": 2`, is none there.
    """
    if kind.nested:
        return f"json_array_length(concat('[', {value}, ']')) = 1"
    if kind.name == "BOOLEAN":
        return f"{value} IN ('true', 'false')"
    is_number = kind.numeric or (kind.name in CALENDAR and declared.numbers_are_times)
    return f"{value} RLIKE {spark_text(NUMBER)}" if is_number else None


def _character(declared: Declared, option: str, default: str) -> str:
    value = declared.options.get(option, default)
    if len(value) != 1 or value.isalnum() or value in "\r\n" or not (value == "\t" or " " <= value <= "~"):
        raise Mistake(
            f"{option} {value!r} is not a separating character",
            f"Write one ASCII character that is no letter, digit or line break, for example {option} '{default}'.",
            option,
        )
    return value
