r"""Reads JSON a second time, field by field, if Spark's reader cannot read a field or changes its digits.

Spark's reader refuses `17.0` and `"17"` for an INT, and gives a STRING the digits of a double: `0.10` becomes `0.1`.
The second reading reads every field as a text, and then reads that text. Before that, each number in the JSON becomes a
text with a mark, which keeps its digits and distinguishes it from a text: `{"a": 0.10}` becomes `{"a": "\uf8ff0.10"}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from view_algebra.language.calendar_bounds import TIME_ALONE
from view_algebra.language.encodings import PLAIN, Encodings
from view_algebra.language.long_numbers import permissive
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import CALENDAR, STRING, Type
from view_algebra.record_columns import NULLED
from view_algebra.records.decoding import (
    CORRUPT,
    DIGITS_ALONE,
    EMPTY,
    WRONG,
    Columns,
    FieldOptions,
    digits_alone,
    without_unit,
)

MARK = "\uf8ff"
"""The mark before a number that is read as a text."""
_IN_TEXT = "t"
"""The letter after the mark of a text that looks like an object or a list."""

# Tokens of JSON, as Spark's reader accepts it. No quantifier gives characters back, so a long text takes linear time.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
"""A text in double quotes."""
_QUOTED = r"'(?:[^'\\]++|\\.)*+'"
"""A text in single quotes."""
_LITERAL = "[+-]?(?:NaN|INF|Infinity)"
"""A number without digits."""
_NUMBER = rf"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|{_LITERAL})(?=[ \t\r\n,\]}}])"
"""A number that ends its value."""

# Places for marks. `\G` begins where the previous match ended.
_NUMBERS = rf"""\G((?:[^"'0-9NI+-]++|{_STRING}|{_QUOTED}|[+-](?![0-9NI]))*+)({_NUMBER})"""
"""The JSON up to the next number, and the number."""
_OBJECTS_IN_TEXTS = (
    rf"""\G((?:[^"']++|{_QUOTED}|{_STRING}(?=[ \t\r\n]*+:)|(?!"[ \t\r\n]*+[\[{{]){_STRING})*+)"((?:[^"\\]++|\\.)*+)\""""
)
"""The JSON up to the next text that begins like an object or a list, and this text. Names of fields are skipped."""
_OWN_MARKS = rf"(?<!\\)((?:\\\\)*+)(?:\\u[fF]8[fF][fF]|{MARK})"
"""A mark that the producer wrote, perhaps as an escape, after the escaped backslashes before it."""

_MARKS = (
    rf'^{MARK}(?=-?[0-9])|(?:^|(?<=")){MARK}(?={_LITERAL}(?:"|$))'
    rf'|"{MARK}(-?[0-9][^"]*+)"|{MARK}(?:{_IN_TEXT}|({MARK}))'
)
"""A mark to remove: of a number alone, of a number in JSON with its quotes, of a text, or one of two."""

_ZERO = r"-0[ \t\r\n,\]}]"
"""The number -0, which loses its sign in a STRING."""

FRACTION = rf"[:\[,][ \t\r\n]*+(?:-?[0-9]++[.eE]|{_ZERO}|{_LITERAL})"
"""Text that may be a JSON number whose digits Spark's reader changes in a STRING."""

REWRITTEN = r"""^(?:0$|-?[0-9]++\.[0-9]++(?:E-?[0-9]++)?$|"(?:NaN|-?Infinity)"$|[{\[])"""
"""A STRING that Spark's reader may have made from such a number, or from an object or list with one."""

MAY_BE_DOUBLE = rf"[:\[,][ \t\r\n]*+(?:-?[0-9]++[.eE]|-?[0-9]{{39}}|{_ZERO}|{_LITERAL})"
"""Text that may be a JSON number whose digits a variant changes in a STRING."""

WHOLE_IN_VARIANT = r"^-?[0-9]++$"
"""A STRING that a variant may have made from `1.0`."""

LONG_DOUBLE = r"[:\[,][ \t\r\n]*+-?(?:[0-9.]{39}|[0-9.]{16,}+[eE])"
"""Text that may be a JSON number that a variant turns into a double with fewer digits."""

_SPACE = r"[\x00-\x20]*+"
"""The characters that Spark's CAST strips from both ends of a text."""

# Texts of numbers and booleans, as Spark's reader and CAST accept them.
_WHOLE = (
    rf"^{MARK}?{_SPACE}([+-]?[0-9]{{1,20}}(?=\.0*+{_SPACE}$|{_SPACE}$)"
    rf"|[+-]?[0-9]{{1,18}}(?:\.[0-9]{{1,9}})?[eE](?:\+?[0-9]{{1,2}}|-[0-9])(?={_SPACE}$))"
)
"""The text of a whole number, also with zeros after a point or with an exponent."""
_IS_WHOLE = r"^(-?[0-9]++)(?:\.0++|(?<=^0)E-18)$"
"""The text of a DECIMAL(38, 18) that is a whole number."""
THOUSANDS = r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})++\.[0-9]*+|(?:,[0-9]{3}){2,}+)"
"""A number whose commas can only separate thousands: a point follows them, or there are at least two."""

_DIGITS = r"(?:\p{Nd}++\.?\p{Nd}*+|\.\p{Nd}++)(?:[eE][+-]?\p{Nd}{1,3})?"
"""A decimal without a sign, in the digits of any script."""
_DECIMAL = rf"^{MARK}?(?!.{{1001}}){_SPACE}([+-]?{_DIGITS}|{THOUSANDS}){_SPACE}$"
"""The text of a decimal, of at most 1,000 characters, also with commas between thousands."""
_DOUBLE = (
    rf'^{MARK}?"?{_SPACE}([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{{1,5}})?'
    rf'|(?i:NaN|[+-]?Inf(?:inity)?)){_SPACE}"?$'
)
"""The text of a double, also in the quotes that it has in JSON."""
_TRUE, _FALSE = (rf"(?i)^{MARK}?{_SPACE}(?:{word}){_SPACE}$" for word in ("true|1", "false|0"))
"""The texts of true, and those of false."""

# Texts to which CAST or Spark's reader would give another meaning.
_NO_TIME = rf"^{MARK}|{TIME_ALONE}|{DIGITS_ALONE}"
"""A text that is not a time: a number, a time of day without the day, or digits alone."""
_WITHOUT_ZONE = rf"^{_SPACE}[+-]?[0-9]++(?:-[0-9]++)*+(?:[T ][0-9:.]*+)?{_SPACE}$"
"""A time without a zone."""
_NOTHING = rf"^\[[ \t\r\n]*+\]$|{EMPTY}"
"""`[]` or an empty text, which may mean that there is no object."""
_NO_BASE64 = rf"^{MARK}|^(?i:NaN|[+-]?Inf(?:inity)?)$"
"""A value that is certainly not base64: a number, NaN or an infinity."""
_IS_NUMBER, _IS_NESTED = rf"^{MARK}-?[0-9]", r"^[{\[]"
"""A marked number, and the JSON of an object or a list."""

PATTERNS = (
    *(FRACTION, REWRITTEN, _NUMBERS, _OBJECTS_IN_TEXTS, _OWN_MARKS, _MARKS, _WHOLE, _IS_WHOLE, _DECIMAL, _DOUBLE),
    *(MAY_BE_DOUBLE, WHOLE_IN_VARIANT, LONG_DOUBLE),
    *(_TRUE, _FALSE, _NO_TIME, _WITHOUT_ZONE, EMPTY, _NOTHING, _IS_NUMBER, _IS_NESTED, _NO_BASE64),
)
"""Every regular expression that the second reading passes to Spark."""


def json_read(text: str, columns: Columns, options: FieldOptions, modes: str = "") -> str:
    """Spark SQL that reads JSON as a struct of columns. Case matters in field names, but not in column names."""
    schema = spark_text(schema_text([(options.name(name), kind) for name, kind in columns]))
    read = f"from_json({text}, {schema}{', ' + modes if modes else ''})"
    if not any(name in options.names for name, _ in columns):
        return read
    return f"CAST({read} AS STRUCT<{', '.join(f'{spark_name(name)}: {kind.spark}' for name, kind in columns)}>)"


def schema_text(columns: Columns) -> str:
    """The columns as a schema for from_json()."""
    return ", ".join(f"{spark_name(name)} {kind.spark}" for name, kind in columns)


def loses_digits(columns: Columns, read: str, text: str) -> str:
    """The condition that a STRING may have lost digits, its cheap part first, or an empty text without a STRING."""
    return _lost(columns, read, lambda value, kind: _is_rewritten(value) if kind == STRING else "", text, FRACTION)


def loses_digits_in_variant(columns: Columns, read: str, text: str) -> str:
    """`loses_digits` if `read` comes from a variant's JSON. text: the JSON from which the variant was parsed."""

    def may_lose(value: str, kind: Type) -> str:
        whole = f"{value} RLIKE {spark_text(WHOLE_IN_VARIANT)} AND contains({text}, concat({value}, '.0'))"
        return f"({_is_rewritten(value)} OR {value} < ':' AND {whole})" if kind == STRING else ""

    return _lost(columns, read, may_lose, text, MAY_BE_DOUBLE)


def decimals_lose_digits(columns: Columns, read: str, text: str, encodings: Encodings) -> str:
    """The condition that a DECIMAL read as a VARIANT may have lost digits, or an empty text without one."""

    def is_double(value: str, kind: Type) -> str:
        decoded = kind.name == "DECIMAL" and encodings.decodes(kind)
        return f"schema_of_variant({value}) = 'DOUBLE'" if decoded else ""

    return _lost(columns, read, is_double, text, LONG_DOUBLE)


def _lost(columns: Columns, read: str, condition: Callable[[str, Type], str], text: str, pattern: str) -> str:
    """The condition that a scalar of the struct `read` meets a condition, and the text a pattern, or an empty text."""
    values = ((".".join([read, *map(spark_name, path)]), kind) for path, kind in leaves(columns))
    conditions = [scalar for value, kind in values if (scalar := any_scalar(value, kind, condition, "s"))]
    return f"(({' OR '.join(conditions)}) AND {text} RLIKE {spark_text(pattern)})" if conditions else ""


def any_scalar(value: str, kind: Type, condition: Callable[[str, Type], str], prefix: str, depth: int = 0) -> str:
    """The condition that `condition` holds for a scalar inside a value. Empty if it never does.

    prefix: the beginning of the names of variables for elements
    """
    if kind.name == "STRUCT":
        fields = ((f"{value}.{spark_name(name)}", part) for name, part in kind.fields)
        conditions = [part for field, of in fields if (part := any_scalar(field, of, condition, prefix, depth))]
        return f"({' OR '.join(conditions)})" if conditions else ""
    if kind.element is None:
        return condition(value, kind)
    element = f"{prefix}{depth}"
    inner = any_scalar(element, kind.element, condition, prefix, depth + 1)
    listed = f"map_values({value})" if kind.name == "MAP" else value
    return f"exists({listed}, {element} -> {inner})" if inner else ""


def _is_rewritten(value: str) -> str:
    """The condition that Spark's reader may have made a text from a number or an object, its cheap part first."""
    begins = " OR ".join([f"{value} < ':'", f"{value} BETWEEN '[' AND '\\\\'", f"{value} BETWEEN '{{' AND '|'"])
    return f"(({begins}) AND {value} RLIKE {spark_text(REWRITTEN)})"


def leaves(columns: Columns, within: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Type]]:
    """Every column that is not a struct, including those inside structs, with its path."""
    for name, kind in columns:
        if kind.name == "STRUCT":
            yield from leaves(kind.fields, (*within, name))
        else:
            yield (*within, name), kind


def marked(text: str) -> str:
    """Spark SQL of JSON with marked texts for its numbers, and a mark in every text that looks like an object."""
    escape, own = spark_text(r"\u"), spark_text(_OWN_MARKS)
    may_have = f"contains({text}, {spark_text(MARK)}) OR contains({text}, {escape})"
    doubled = f"regexp_replace({text}, {own}, {spark_text(f'$1{MARK}{MARK}')})"
    text = f"CASE WHEN {may_have} THEN {doubled} ELSE {text} END"
    number, in_text = spark_text(f'$1"{MARK}$2"'), spark_text(f'$1"{MARK}{_IN_TEXT}$2"')
    text = f"regexp_replace({text}, {spark_text(_NUMBERS)}, {number})"
    return f"regexp_replace({text}, {spark_text(_OBJECTS_IN_TEXTS)}, {in_text})"


def unmarked(text: str) -> str:
    """Spark SQL of a text without marks."""
    return f"regexp_replace({text}, {spark_text(_MARKS)}, '$1$2')"


@dataclass(frozen=True)
class SecondReading:
    """The second reading of a text that Spark's reader has read as the struct `first`.

    text: JSON with marked numbers
    as_read: the function from a type to the type that Spark's reader reads it as
    needed: the columns without which a record is bad
    """

    first: str
    text: str
    columns: Columns
    options: FieldOptions
    as_read: Callable[[Type], Type]
    needed: Sequence[str]

    def struct(self) -> str:
        """Spark SQL of a struct of the columns."""
        return self._read(json_read(self.text, self._texts, self.options), "")

    def record(self, why_not: str) -> str:
        """`struct` with a last field CORRUPT: the reason if a field is bad, `why_not` if the text is not a record."""
        raw = json_read(self.text, [*self._texts, (CORRUPT, STRING)], self.options, permissive(CORRUPT))
        reason = f"CASE WHEN raw.{CORRUPT} IS NOT NULL THEN {why_not} ELSE {self._reason()} END"
        return self._read(raw, f", '{CORRUPT}', {reason}")

    @property
    def _texts(self) -> Columns:
        return [(name, STRING) for name, _ in self.columns]

    def _read(self, raw: str, more: str) -> str:
        """Spark SQL of the second reading, inside of `transform`.

        Spark interprets the lambda of `transform`, and keeps it out of the code that it generates for every record,
        which would otherwise be too long for the JVM to compile.
        """
        read, fields = [], []
        for name, kind in self.columns:
            path, column = self.options.name(name), spark_name(name)
            value = _value(path, f"raw.{column}", f"{self.first}.{column}", kind, self.options)
            read.append(f"{spark_text(name)}, {value}")
            value = f"v.{column}{'.v' if _is_nested(kind) else ''}"
            as_read = self.as_read(kind)
            fields.append(f"{spark_text(name)}, {value if as_read == kind else f'CAST({value} AS {as_read.spark})'}")
        return f"""element_at(transform(
        array({raw}),
        raw -> element_at(transform(
          array(named_struct({", ".join(read)})),
          v -> named_struct({", ".join(fields)}{more})
        ), 1)
      ), 1)"""

    def _reason(self) -> str:
        """Spark SQL of the reason a record is bad, or of the fields it counts without. NULL if all are read."""
        bad: list[str] = []
        nulled: list[str] = []
        for name, kind in self.columns:
            path, text, value = self.options.name(name), f"raw.{spark_name(name)}", f"v.{spark_name(name)}"
            if self.options.encodings.decodes(kind) or (kind == STRING and not self.options.nulls):
                continue  # fits any value
            why = f"{value}.why" if _is_nested(kind) else _why(path, text, value, kind, self.options)
            (nulled if self.options.nulls and name not in self.needed else bad).append(why)
        reasons = [_listed(WRONG, bad), _listed(NULLED, nulled), "CAST(NULL AS STRING)"]
        return f"coalesce({', '.join(filter(None, reasons))})"


def _listed(begins: str, reasons: Sequence[str]) -> str:
    """Spark SQL of the reasons after a prefix, or NULL if all are NULL. Empty without reasons."""
    return f"{spark_text(begins)} || nullif(concat_ws(', ', {', '.join(reasons)}), '')" if reasons else ""


def _is_nested(kind: Type) -> bool:
    return kind.name in ("STRUCT", "ARRAY", "MAP")


def _why(path: str, text: str, value: str, kind: Type, options: FieldOptions) -> str:
    """Spark SQL of the reason a field is bad, or NULL if it is not."""
    if options.encodings.decodes(kind):
        return "CAST(NULL AS STRING)"
    empty = f" AND NOT {text} RLIKE {spark_text(EMPTY)}" if options.empty and kind != STRING else ""
    reason = _wrong_type(path, kind)
    if kind.numeric and _may_be_base64(options):
        mode = options.encodings.decimals
        unsure = "for certain: set decimal.handling.mode in OPTIONS to that of the connector"
        reason = spark_text(f"{path} is no {kind.spark} {unsure if mode is None else 'in a text: declare it DECIMAL'}")
    if kind.name in CALENDAR and options.nulls:
        number, digits = (spark_text(form) for form in (_IS_NUMBER, DIGITS_ALONE))
        name = spark_text(path)
        reason = (
            f"CASE WHEN {text} RLIKE {number} THEN {without_unit(name, PLAIN)}"
            f" WHEN {text} RLIKE {digits} THEN {digits_alone(name)} ELSE {reason} END"
        )
    return f"CASE WHEN {text} IS NOT NULL AND {value} IS NULL{empty} THEN {reason} END"


def _wrong_type(path: str, kind: Type) -> str:
    """The reason that a field has another type. `WRONG` says why its words stay."""
    return spark_text(f"{path} is no {kind.spark}")


def _value(path: str, text: str, first: str | None, kind: Type, options: FieldOptions, depth: int = 0) -> str:
    """Spark SQL of a value from its text, for a nested one a struct of the value `v` and the reason `why`."""
    if _is_nested(kind):
        nested = _struct if kind.name == "STRUCT" else _listing
        return nested(path, text, first, kind, options, depth)
    if options.encodings.decodes(kind):
        readings = [
            *([_exact(text, kind)] if kind.name == "DECIMAL" else []),
            *([first] if first else []),
            _variant(text),
        ]
        return f"coalesce({', '.join(readings)})" if len(readings) > 1 else readings[0]
    if kind == STRING:
        value = unmarked(text)
        return f"CASE WHEN NOT contains({text}, '\\u0000') THEN {value} END" if options.nulls else value
    if kind.name == "DECIMAL":
        return _decimal(text, kind)
    if kind.name == "BINARY":
        assert first is not None  # bytes are never in a list. As a text, `true` would be base64
        return first
    if kind.name in CALENDAR:
        return _time(text, first, kind, options)
    value = _scalar(text, kind)
    if kind.numeric and _may_be_base64(options):
        return f"CASE WHEN {text} RLIKE {spark_text(_NO_BASE64)} THEN {value} END"
    return value


def _may_be_base64(options: FieldOptions) -> bool:
    """True if a number in a text may be a decimal in base64: Debezium writes other numbers as numbers."""
    return options.encodings.of_connector and options.encodings.decimals != "string"


def _decimal(text: str, kind: Type) -> str:
    return f"try_cast(replace(regexp_extract({text}, {spark_text(_DECIMAL)}, 1), ',', '') AS {kind.spark})"


def _exact(text: str, kind: Type) -> str:
    """A number as a VARIANT with all digits of a DECIMAL, or NULL if it is not a number or does not fit."""
    return f"CASE WHEN {text} RLIKE {spark_text(_IS_NUMBER)} THEN CAST({_decimal(text, kind)} AS VARIANT) END"


def _variant(text: str) -> str:
    """The JSON value as a VARIANT: a number, an object, a list, or else a text."""
    number, nested = (spark_text(form) for form in (_IS_NUMBER, _IS_NESTED))
    return (
        f"CASE WHEN {text} RLIKE {number} THEN try_parse_json(substring({text}, 2))"
        f" WHEN {text} RLIKE {nested} THEN try_parse_json({unmarked(text)})"
        f" ELSE CAST({unmarked(text)} AS VARIANT) END"
    )


def _scalar(text: str, kind: Type) -> str:
    """Spark SQL of a boolean, a double or a whole number from its text."""
    if kind.name == "BOOLEAN":
        true, false = (spark_text(form) for form in (_TRUE, _FALSE))
        return f"CASE WHEN {text} RLIKE {true} THEN true WHEN {text} RLIKE {false} THEN false END"
    if kind.name in ("DOUBLE", "FLOAT"):
        return f"try_cast(regexp_extract({text}, {spark_text(_DOUBLE)}, 1) AS {kind.spark})"
    exact = f"try_cast(regexp_extract({text}, {spark_text(_WHOLE)}, 1) AS DECIMAL(38, 18))"
    return f"try_cast(regexp_extract(CAST({exact} AS STRING), {spark_text(_IS_WHOLE)}, 1) AS {kind.spark})"


def _time(text: str, first: str | None, kind: Type, options: FieldOptions) -> str:
    """Spark SQL of a time from its text, or as Spark's reader read it first."""
    local = text
    if kind.name == "TIMESTAMP_NTZ":  # a cast would ignore the zone
        local = f"CASE WHEN {text} RLIKE {spark_text(_WITHOUT_ZONE)} THEN {text} END"
    readings = [*([first] if first else []), f"try_cast({local} AS {kind.spark})"]
    value = f"CASE WHEN NOT {text} RLIKE {spark_text(_NO_TIME)} THEN coalesce({', '.join(readings)}) END"
    begin, end = CALENDAR[kind.name]
    return f"element_at(filter(array({value}), t -> t BETWEEN {begin} AND {end}), 1)" if options.nulls else value


def _struct(path: str, text: str, first: str | None, kind: Type, options: FieldOptions, depth: int) -> str:
    """Spark SQL of a struct, field by field. An unreadable field is NULL."""
    raw, value = f"r{depth}", f"w{depth}"
    read, fields, reasons = [], [], []
    for name, part in kind.fields:
        column, inner_path = spark_name(name), f"{path}.{name}"
        inner_first = f"{first}.{column}" if first else None
        part_value = _value(inner_path, f"{raw}.{column}", inner_first, part, options, depth + 1)
        read.append(f"{spark_text(name)}, {part_value}")
        inner = f"{value}.{column}"
        fields.append(f"{spark_text(name)}, {inner}{'.v' if _is_nested(part) else ''}")
        why = _why(inner_path, f"{raw}.{column}", inner, part, options)
        reasons.append(f"{inner}.why" if _is_nested(part) else why)
    schema = spark_text(schema_text([(name, STRING) for name, _ in kind.fields]))
    return f"""element_at(transform(
          array(from_json(CASE WHEN startswith({text}, '{{') THEN {text} END, {schema})),
          {raw} -> element_at(transform(array(named_struct({", ".join(read)})), {value} -> named_struct(
            'v', CASE WHEN {raw} IS NOT NULL THEN named_struct({", ".join(fields)}) END,
            'why', CASE
              WHEN {raw} IS NOT NULL THEN nullif(concat_ws(', ', {", ".join(reasons)}), '')
              WHEN {_is_there(text, options)} THEN {_wrong_type(path, kind)}
            END
          )), 1)
        ), 1)"""


def _listing(path: str, text: str, _: str | None, kind: Type, options: FieldOptions, depth: int) -> str:
    """Spark SQL of a list or a map, element by element. An unreadable element is NULL."""
    raw, value, part, e = f"r{depth}", f"w{depth}", kind.element, f"e{depth}"
    assert part is not None
    is_map = kind.name == "MAP"
    begins, schema = ("{", "MAP<STRING, STRING>") if is_map else ("[", "ARRAY<STRING>")
    inner = _value(path, e, None, part, options, depth + 1)
    in_each = "transform_values({}, (k, {}) -> {})" if is_map else "transform({}, {} -> {})"
    parts = "map_values({})" if is_map else "{}"
    raws, values = parts.format(raw), parts.format(value)
    if _is_nested(part):
        whole, wrong = in_each.format(value, e, f"{e}.v"), f"exists({values}, {e} -> {e}.why IS NOT NULL)"
    elif options.encodings.decodes(part):
        whole, wrong = value, "false"
    else:
        there = f"{e} IS NOT NULL"
        if options.empty and part != STRING:
            there += f" AND NOT {e} RLIKE {spark_text(EMPTY)}"
        whole = value
        wrong = f"size(filter({raws}, {e} -> {there})) > size(filter({values}, {e} -> {e} IS NOT NULL))"
    return f"""element_at(transform(
          array(from_json(CASE WHEN startswith({text}, '{begins}') THEN {text} END, '{schema}')),
          {raw} -> element_at(transform(array({in_each.format(raw, e, inner)}), {value} -> named_struct(
            'v', {whole},
            'why', CASE
              WHEN {raw} IS NOT NULL AND {wrong} OR {raw} IS NULL AND {_is_there(text, options, is_object=is_map)}
              THEN {_wrong_type(path, kind)}
            END
          )), 1)
        ), 1)"""


def _is_there(text: str, options: FieldOptions, *, is_object: bool = True) -> str:
    """The condition that a field that should be an object or a list has a value. `[]` and '' may mean NULL."""
    if not options.empty:
        return f"{text} IS NOT NULL"
    return f"NOT {text} RLIKE {spark_text(_NOTHING if is_object else EMPTY)}"
