"""Spark SQL that decodes values without a type in JSON: times from numbers, decimals and bytes from base64.

A field is first read as a VARIANT, which keeps its type in JSON, and whose lost digits `fields.py` restores. It is then
decoded by the schema in the record, or else by the declaration. A value that fits neither is NULL, with a reason for
quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from view_algebra.language.calendar_bounds import TIME_ALONE
from view_algebra.language.encodings import DAY, DECIMAL, PLAIN, SEMANTIC, UNITS, Encodings, as_json
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import CALENDAR, Type, inside, rewritten_type

DIGITS_ALONE = r"^[\x00-\x20]*+[+-]?+(?:[0-9]{1,3}|[0-9]{5,})[\x00-\x20]*+$"
"""A text of digits, which may be a number in any unit. Four digits are a year of ISO 8601."""

INFINITY = r"^(?:[+-]?infinity|[+-][0-9]{6,}-[0-9:tz.-]++)$"
"""Debezium's forms of Postgres' `infinity` in lower case: the word, or a year far beyond the calendar."""

WITHOUT_ZONE = r"^[\x00-\x20]*+[+-]?[0-9]{4,6}(?:-[0-9]{1,2}(?:-[0-9]{1,2}(?:[T ][0-9:.]*+)?)?)?[\x00-\x20]*+$"
"""A time without an offset from UTC."""

EMPTY = r"^[\x00-\x20]*+$"
"""A text without a visible character."""

PLAIN_DECIMAL = r"^[+-]?[0-9]{1,100}(?:\.[0-9]{0,100})?(?:[eE][+-]?[0-9]{1,3})?$"
"""A decimal in a text. Longer ones fit no DECIMAL, and Java would write out their zeros."""

NOT_BASE64 = r"[.-]"
"""Characters in the text of a decimal with a fraction or sign, but never in base64."""

WHOLE = r"^[0-9]+$"
"""A whole number without a sign, which may be base64 as well."""

BASE64_OF_DECIMAL = r"^[A-Za-z0-9+/]{2,22}={0,2}$"
"""Base64 of the at most 16 bytes of a DECIMAL."""

_SCALES = "BETWEEN -1000 AND 1000"
"""Scales of a number that Java can shift without writing out millions of zeros."""

FIELDS = "kafka_fields"
"""The column with the fields of a record's own schema, by name."""

CORRUPT = "kafka_corrupt"
"""The field that `from_json` fills with a text that it cannot read."""

FIELD_TYPE = "STRUCT<type: STRING, name: STRING, scale: INT>"

DOTTED = "kafka_dotted"
"""The column that is true if a decimal of the record cannot be base64."""

UNDECODED = "kafka_undecoded"
"""The column with the reason a record could not be decoded."""

Columns = Sequence[tuple[str, Type]]

Group = Choice["times", "decimals", "bytes"]
GROUPS: tuple[Group, ...] = ("times", "decimals", "bytes")
"""Kinds of values that share an expression: Spark takes long to plan an expression for each column."""


@dataclass(frozen=True)
class _Leaf:
    """A scalar to decode: the expression of its VARIANT, its type, and its path in the record.

    declared: the type of the list or map that it is an element of
    """

    value: str
    kind: Type
    path: tuple[str, ...]
    declared: Type | None = None

    @property
    def name(self) -> str:
        """The path with dots, without the elements of lists and maps."""
        return ".".join(part for part in self.path if part)

    @property
    def group(self) -> Group:
        """The kind of value, which decides how it is decoded."""
        return {"DECIMAL": "decimals", "BINARY": "bytes"}.get(self.kind.name, "times")  # type: ignore[return-value]


@dataclass(frozen=True)
class _SharedColumns:
    """The scalars of one struct outside of lists and maps, decoded together in columns with a prefix."""

    prefix: str
    leaves: dict[Group, list[_Leaf]] = field(default_factory=lambda: {group: [] for group in GROUPS})

    def add(self, leaf: _Leaf) -> str:
        """Adds a scalar. Returns Spark SQL of its decoded value with the reason."""
        leaves = self.leaves[leaf.group]
        leaves.append(leaf)
        return f"get({self.prefix}_{leaf.group}, {len(leaves) - 1})"


@dataclass(frozen=True)
class FieldOptions:
    """A source's options for reading fields.

    nulls: an unreadable field is NULL, and the record counts
    empty: an empty text means NULL for a number or a time, and `[]` means NULL for an object
    names: the JSON fields of columns whose names differ
    encodings: the types that are read as a VARIANT and decoded afterwards
    """

    nulls: bool = False
    empty: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    encodings: Encodings = PLAIN

    def name(self, column: str) -> str:
        """The field that a column is read from."""
        return self.names.get(column, column)


@dataclass(frozen=True)
class ColumnDecoding:
    """Decodes the columns of one source."""

    options: FieldOptions

    @property
    def encodings(self) -> Encodings:
        """The types that are read as a VARIANT, and their encodings."""
        return self.options.encodings

    def decodes_any(self, columns: Columns) -> bool:
        """True if a column has to be decoded."""
        return any(self.encodings.decodes_in(kind) for _, kind in columns)

    def as_read(self, kind: Type) -> Type:
        """The type that `from_json` reads a column as."""
        return rewritten_type(kind, lambda part: as_json(part) if self.encodings.decodes(part) else part)

    def plain_part(self, kind: Type) -> Type | None:
        """The type without its decoded parts, or None if nothing remains."""
        if self.encodings.decodes(kind):
            return None
        if kind.name == "STRUCT":
            parts = [(name, self.plain_part(part)) for name, part in kind.fields]
            fields = tuple((name, part) for name, part in parts if part is not None)
            return replace(kind, fields=fields) if fields else None
        if kind.element is None:
            return kind
        element = self.plain_part(kind.element)
        return replace(kind, element=element) if element is not None else None

    def around(self, inner: str, columns: Columns, others: Mapping[str, Columns]) -> str:
        """Spark SQL that decodes the structs `parsed` and `others` of `from_json`, and adds `UNDECODED`."""
        read = {"parsed": columns, **{name: other for name, other in others.items() if self.decodes_any(other)}}
        slots = {name: _SharedColumns(f"kafka_{name}") for name in read}
        structs = {
            name: self._struct(name, fields, slots[name], (CORRUPT,) if name == "parsed" else ())
            for name, fields in read.items()
        }
        together = [
            f"{self._together(group, leaves)} AS {several.prefix}_{group}"
            for several in slots.values()
            for group, leaves in several.leaves.items()
            if leaves
        ]
        if any(map(self._guesses, (part for _, kind in columns for part in inside(kind)))):
            dotted = self._dotted([leaf for leaf in slots["parsed"].leaves["decimals"] if self._guesses(leaf.kind)])
            inner = f"""
  SELECT *, {dotted} AS {DOTTED} FROM ({inner}
  )"""
        kept = ", ".join(f"{name} AS {name}_as_json" for name in read)
        decoded = ",\n    ".join(f"{struct} AS {name}" for name, struct in structs.items())
        return f"""
  SELECT *, {self._undecoded(columns, slots["parsed"])} AS {UNDECODED} FROM (
  SELECT * EXCEPT ({", ".join(read)}), {kept},
    {decoded}
  FROM (
  SELECT *{"".join(f", {column}" for column in together)}
  FROM ({inner}
  )
  )
  )"""

    def _struct(self, struct: str, columns: Columns, slots: _SharedColumns, also: Sequence[str]) -> str:
        """The struct with its columns decoded. `also`: unchanged fields."""
        fields = [
            f"{spark_text(name)}, {self._value(_Leaf(f'{struct}.{spark_name(name)}', kind, (name,)), slots)}"
            for name, kind in columns
        ]
        fields += [f"{spark_text(name)}, {struct}.{name}" for name in also]
        return f"CASE WHEN {struct} IS NOT NULL THEN named_struct({', '.join(fields)}) END"

    def _value(self, outer: _Leaf, slots: _SharedColumns | None) -> str:
        """Spark SQL of a decoded value, inside a list or a map by its own expression."""
        value, kind = outer.value, outer.kind
        if not self.encodings.decodes_in(kind):
            return value
        if self.encodings.decodes(kind):
            return _typed(slots.add(outer) if slots is not None else self._alone(outer), kind)
        if kind.name == "STRUCT":
            fields = (f"{spark_text(leaf.path[-1])}, {self._value(leaf, slots)}" for leaf in _fields(outer))
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
        element = _element_of(outer)
        if kind.name == "MAP":
            return f"transform_values({value}, (k, {element.value}) -> {self._value(element, None)})"
        return f"transform({value}, {element.value} -> {self._value(element, None)})"

    def _undecoded(self, columns: Columns, slots: _SharedColumns) -> str:
        """Spark SQL of the reason a column could not be decoded, or NULL if all could."""
        first = "get(filter({0}, f -> f.why IS NOT NULL), 0).why"
        reasons = [first.format(f"{slots.prefix}_{group}") for group, leaves in slots.leaves.items() if leaves]
        for place, leaf in enumerate(slots.leaves["decimals"]):
            reasons.append(self._too_large(leaf, f"get({slots.prefix}_decimals, {place})"))
        for name, kind in columns:
            reasons += self._why_nested(_Leaf(f"parsed_as_json.{spark_name(name)}", kind, (name,)))
        return f"coalesce({', '.join(reasons)}, NULL)"

    def _why_nested(self, outer: _Leaf) -> list[str]:
        """Expressions of the reason a value in a list or a map could not be decoded, or NULL if it could."""
        if not self.encodings.decodes_in(outer.kind) or self.encodings.decodes(outer.kind):
            return []
        if outer.kind.name == "STRUCT":
            return [reason for leaf in _fields(outer) for reason in self._why_nested(leaf)]
        element = _element_of(outer)
        values = f"map_values({outer.value})" if outer.kind.name == "MAP" else outer.value
        why = f"coalesce({', '.join(self._why(element))}, NULL)"
        return [f"get(filter(transform({values}, {element.value} -> {why}), r -> r IS NOT NULL), 0)"]

    def _why(self, outer: _Leaf) -> list[str]:
        """Expressions of the reason an element could not be decoded, or NULL if it could."""
        if self.encodings.decodes(outer.kind):
            alone = self._alone(outer)
            return [f"{alone}.why", *([self._too_large(outer, alone)] if outer.group == "decimals" else [])]
        if outer.kind.name == "STRUCT":
            return [reason for leaf in _fields(outer) for reason in self._why(leaf)]
        return self._why_nested(outer)

    def _too_large(self, leaf: _Leaf, decoded: str) -> str:
        """Spark SQL of the reason that a decoded decimal does not fit its type, or NULL if it fits."""
        missing = f"{decoded}.value IS NOT NULL AND {_typed(decoded, leaf.kind)} IS NULL"
        return f"CASE WHEN {missing} THEN {spark_text(self._wrong(leaf))} END"

    def _guesses(self, kind: Type) -> bool:
        """True for a decimal if no option says whether its texts are base64."""
        return kind.name == "DECIMAL" and self.encodings.decodes(kind) and self.encodings.decimals is None

    def _dotted(self, leaves: Sequence[_Leaf]) -> str:
        """The condition that a decimal of the record is a text but not base64: a record's decimals are all alike."""
        text = "CASE WHEN schema_of_variant({0}) = 'STRING' THEN try_variant_get({0}, '$', 'STRING') END"
        texts = (text.format(leaf.value) for leaf in leaves)
        return f"exists(array({', '.join(texts)}), t -> t RLIKE {spark_text(NOT_BASE64)})" if leaves else "false"

    def _alone(self, leaf: _Leaf) -> str:
        """Spark SQL of the decoded value of one scalar, with the reason."""
        return f"get({self._together(leaf.group, [leaf])}, 0)"

    def _together(self, group: Group, leaves: Sequence[_Leaf]) -> str:
        """An array of structs with each leaf's `value` (NULL if there is none) and `why`.

        Spark interprets a lambda, and keeps it out of the code that it generates for every record.
        """
        steps = {"times": self._times, "decimals": self._decimals, "bytes": self._bytes}[group]
        array = f"array({', '.join(map(self._leaf, leaves))})"
        for step in steps():
            array = f"transform({array},\n      f -> {step})"
        return array

    def _leaf(self, leaf: _Leaf) -> str:
        """Spark SQL of the struct that the steps begin with: the value, and what decoding it needs."""
        name, value = spark_text(leaf.name), leaf.value
        if self.options.empty and leaf.group != "bytes":  # an empty text is zero bytes
            is_empty = f"try_variant_get({value}, '$', 'STRING') RLIKE {spark_text(EMPTY)}"
            value = f"CASE WHEN NOT coalesce({is_empty}, false) THEN {value} END"
        parts = [f"'v', {value}, 'name', {name}, 'schema', {self._schema(leaf)}"]
        if leaf.group == "times":
            unit = self._declared_unit(leaf)
            parts.append(f"'kind', '{leaf.kind.name}', 'unit', CAST({unit} AS DECIMAL(14, 3))")
        parts.append(f"'wrong', {spark_text(self._wrong(leaf))}")
        if leaf.group == "decimals":
            parts.append(f"'scale', {leaf.kind.scale}")
        return f"named_struct({', '.join(parts)})"

    def _schema(self, leaf: _Leaf) -> str:
        """The field's entry in the record's schema, or NULL without a schema, or for a nested field."""
        within = (("before",), ("after",)) if self.encodings.envelope else ((),)
        if self.encodings.has_schema and leaf.path[:-1] in within:
            name = leaf.path[-1] if self.encodings.envelope else self.options.name(leaf.path[-1])
            return f"{FIELDS}[{spark_text(name)}]"
        return f"CAST(NULL AS {FIELD_TYPE})"

    def _declared_unit(self, leaf: _Leaf) -> str:
        """Microseconds of a unit in the declaration, or NULL."""
        if leaf.path in _ENVELOPE and self.encodings.envelope:
            return f"{UNITS[leaf.path[-1].removeprefix('ts_')]}BD"
        if unit := _CHANGE_TIME.match(self.options.name(leaf.path[0])):
            return f"{UNITS[unit[1]]}BD"
        micros = self.encodings.microseconds(leaf.kind)
        return f"{micros}BD" if micros else "NULL"

    def _wrong(self, leaf: _Leaf) -> str:
        """The reason that a value could not be decoded."""
        reason = f"{'' if self.options.nulls else WRONG}{leaf.name} is no {(leaf.declared or leaf.kind).spark}"
        if leaf.group == "times":
            return reason
        mode = "decimal.handling.mode" if leaf.group == "decimals" else "binary.handling.mode"
        setting = self.encodings.decimals if leaf.group == "decimals" else self.encodings.binaries
        if setting is None:
            return f"{reason} for certain: set {mode} in OPTIONS to that of the connector"
        return f"{reason} as Debezium writes one with {mode} '{setting}'"

    # times

    def _times(self) -> Sequence[str]:
        """Steps for a number in the unit of its schema or its column, or for a text."""
        named = " ".join(f"WHEN '{name}' THEN {factor}BD" for name, factor in SEMANTIC.items())
        schema_unit = f"CASE f.schema.name {named} END"
        typed = _step("v name kind wrong schema unit", told=_VARIANT_TYPE)
        written = _step(
            "v name kind wrong told",
            text="CASE WHEN f.told = 'STRING' THEN try_variant_get(f.v, '$', 'STRING') END",
            # Only for a number: failing at a text would cost a Java exception for every record.
            number="CASE WHEN f.told = 'NUMBER' THEN try_variant_get(f.v, '$', 'DECIMAL(28, 9)') END",
            unit=f"CASE WHEN f.schema.name IS NULL THEN f.unit ELSE {schema_unit} END",
        )
        read = _step(
            "name wrong told text number unit",
            v="f.v",
            at=f"CASE f.told WHEN 'NUMBER' THEN {self._number_as_time()} WHEN 'STRING' THEN {self._text_as_time()} END",
        )
        return typed, written, read, f"named_struct('value', {_within('f.at')}, 'why', {self._why_no_time()})"

    def _number_as_time(self) -> str:
        """Spark SQL of the time of a number, truncated to microseconds."""
        micros = "floor(f.number * f.unit)"
        first, last = (f"unix_micros({bound})" for bound in CALENDAR["TIMESTAMP"])
        within = f"{micros} BETWEEN {first} AND {last} AND NOT {_INFINITE_NUMBER}"
        return f"CASE WHEN {within} THEN timestamp_micros(CAST({micros} AS BIGINT)) END"

    def _text_as_time(self) -> str:
        """Spark SQL of the time of a text, or NULL for digits alone and for a time of day without the day."""
        day = local = "f.text"
        if self.encodings.of_connector:  # writes `2024-05-01Z`, and local times with Z in mode isostring
            local = "rtrim('Z', f.text)"
            day = f"CASE WHEN length(f.text) <= 11 THEN {local} ELSE f.text END"
        local = f"CASE WHEN {local} RLIKE {spark_text(WITHOUT_ZONE)} THEN CAST({local} AS TIMESTAMP_NTZ) END"
        read = (
            f"CASE f.kind WHEN 'TIMESTAMP' THEN CAST(f.text AS TIMESTAMP)"
            f" WHEN 'DATE' THEN {_midnight(f'CAST({day} AS DATE)')} ELSE CAST({local} AS TIMESTAMP) END"
        )
        refused = " OR ".join(f"f.text RLIKE {spark_text(pattern)}" for pattern in (DIGITS_ALONE, TIME_ALONE))
        return f"CASE WHEN NOT ({refused}) THEN {read} END"

    def _why_no_time(self) -> str:
        """Spark SQL of the reason a value is missing, or NULL for a value, for JSON's null, and for an infinity."""
        outside = "concat(f.name, ' is outside the years 0001 to 9999')"
        branches = [
            (f"f.v IS NULL OR f.told = 'VOID' OR {_within('f.at')} IS NOT NULL", "NULL"),
            ("f.told = 'NUMBER' AND f.unit IS NULL", without_unit("f.name", self.encodings)),
            (f"f.told = 'NUMBER' AND {_INFINITE_NUMBER}", "NULL"),
            ("f.told = 'NUMBER'", outside),
            ("f.told <> 'STRING'", "f.wrong"),
            (f"f.text RLIKE {spark_text(DIGITS_ALONE)}", digits_alone("f.name")),
            (f"f.text RLIKE {spark_text(TIME_ALONE)}", spark_text(TIME_OF_DAY)),
            ("f.at IS NOT NULL", outside),
        ]
        if self.encodings.of_connector:
            branches.insert(5, (f"lower(f.text) RLIKE {spark_text(INFINITY)}", "NULL"))
        return f"CASE {' '.join(f'WHEN {when} THEN {why}' for when, why in branches)} ELSE f.wrong END"

    # decimals

    def _decimals(self) -> Sequence[str]:
        """Steps for a number, a text, base64 with a scale of schema or column, or an object of base64 and scale."""
        scale = (
            f"CASE WHEN f.told = 'OBJECT' THEN try_variant_get(f.v, '$.scale', 'INT')"
            f" WHEN f.schema.name = '{DECIMAL}' THEN f.schema.scale ELSE f.scale END"
        )
        whole_text, part = (f"try_variant_get(f.v, '{path}', 'STRING')" for path in ("$", "$.value"))
        text = f"CASE WHEN f.told = 'OBJECT' THEN {part} ELSE {whole_text} END"
        typed = _step("v wrong schema scale", told=_VARIANT_TYPE)
        field_ = _step("v wrong told", text=text, scale=scale, schema="f.schema", places="f.scale")
        written = _step("v wrong told text scale", written=self._written())
        is_base64 = f"f.text RLIKE {spark_text(BASE64_OF_DECIMAL)} AND length(f.text) % 4 = 0 AND f.scale {_SCALES}"
        bytes_ = f"CASE WHEN f.written = 'base64' AND {is_base64} THEN hex(try_to_binary(f.text, 'base64')) END"
        signed = "lpad(f.hex, 32, CASE WHEN f.hex >= '8' THEN 'F' ELSE '0' END)"
        read = _step("v wrong told text scale written", hex=bytes_)
        extended = _step("v wrong told text scale written", hex=signed)
        high = f"CAST(conv(left(f.hex, 16), 16, -10) AS DECIMAL(19, 0)) * {2**64}BD"
        whole = f"{high} + CAST(conv(right(f.hex, 16), 16, 10) AS DECIMAL(20, 0))"
        value = (
            f"CASE f.written WHEN 'number' THEN f.text"
            f" WHEN 'text' THEN CASE WHEN f.text RLIKE {spark_text(PLAIN_DECIMAL)} THEN f.text END"
            f" WHEN 'base64' THEN concat(CAST({whole} AS STRING), 'E', CAST(-f.scale AS STRING)) END"
        )
        valued = _step("v wrong told", value=value)
        return typed, field_, written, read, extended, valued, _VALUE_OR_WRONG

    def _written(self) -> str:
        """Spark SQL of a decimal's form: number, text or base64, or NULL if it is uncertain."""
        branches = [
            "f.told = 'NUMBER' THEN 'number'",
            "f.told = 'OBJECT' THEN 'base64'",
            "f.told <> 'STRING' THEN NULL",
            f"f.schema.name = '{DECIMAL}' THEN 'base64'",
            "f.schema.type = 'string' THEN 'text'",
            "f.schema.type IS NOT NULL THEN NULL",
        ]
        stated = {"string": "'text'", "precise": "'base64'", "double": "NULL"}.get(self.encodings.decimals or "")
        if stated is None:
            branches += [f"{DOTTED} THEN 'text'", f"f.places = 0 AND f.text RLIKE {spark_text(WHOLE)} THEN NULL"]
        return f"CASE {' '.join(f'WHEN {branch}' for branch in branches)} ELSE {stated or _BASE64} END"

    # bytes

    def _bytes(self) -> Sequence[str]:
        """Steps for a text in the connector's encoding, in which a placeholder may stand unencoded."""
        stated = self.encodings.binaries
        base64 = "CASE WHEN length(f.text) % 4 = 0 THEN try_to_binary(f.text, 'base64') END"
        safe = "translate(f.text, '-_', '+/')"
        read = {
            "hex": "CASE WHEN length(f.text) % 2 = 0 THEN try_to_binary(f.text, 'hex') END",
            "base64-url-safe": f"try_to_binary(rpad({safe}, length({safe}) + pmod(-length({safe}), 4), '='), 'base64')",
        }.get(stated or "", base64)
        if (placeholder := self.encodings.placeholder) is not None:  # some modes do not encode it
            is_it, bytes_ = f"f.text = {spark_text(placeholder)}", "CAST(f.text AS BINARY)"
            read, base64 = (f"CASE WHEN {is_it} THEN {bytes_} ELSE {expression} END" for expression in (read, base64))
        typed = _step("v wrong schema", told=_VARIANT_TYPE, text="try_variant_get(f.v, '$', 'STRING')")
        as_text = "NULL" if stated is None else read
        decoded = f"CASE f.schema.type WHEN 'bytes' THEN {base64} WHEN 'string' THEN {as_text} ELSE {read} END"
        valued = _step("v wrong told", value=f"CASE WHEN f.told = 'STRING' THEN {decoded} END")
        return typed, valued, _VALUE_OR_WRONG


def _step(kept: str, **computed: str) -> str:
    """The struct of the next step: unchanged fields of the struct `f`, and computed fields."""
    fields = {**{name: f"f.{name}" for name in kept.split()}, **computed}
    listed = ", ".join(f"'{name}', {value}" for name, value in fields.items())
    return f"named_struct({listed})"


def _typed(decoded: str, kind: Type) -> str:
    """A decoded value with its declared type."""
    return f"{decoded}.value" if kind.name in ("TIMESTAMP", "BINARY") else f"CAST({decoded}.value AS {kind.spark})"


def _midnight(day: str) -> str:
    """The instant at which a day begins. Spark would raise for days of the year 300,000."""
    first, last = CALENDAR["DATE"]
    outside = "timestamp_micros(253402300800000000)"
    in_calendar = f"WHEN {day} BETWEEN {first} AND {last} THEN CAST({day} AS TIMESTAMP)"
    return f"CASE {in_calendar} WHEN {day} IS NOT NULL THEN {outside} END"


def _within(time: str) -> str:
    """A time, or NULL outside the calendar."""
    first, last = CALENDAR["TIMESTAMP"]
    return f"CASE WHEN {time} BETWEEN {first} AND {last} THEN {time} END"


def _fields(outer: _Leaf) -> Sequence[_Leaf]:
    """The fields of a struct."""
    return [_Leaf(f"{outer.value}.{spark_name(name)}", kind, (*outer.path, name)) for name, kind in outer.kind.fields]


def _element_of(outer: _Leaf) -> _Leaf:
    """An element of a list or a value of a map, as a variable that no enclosing lambda uses."""
    assert outer.kind.element is not None
    return _Leaf(f"v{len(outer.path)}", outer.kind.element, (*outer.path, ""), outer.declared or outer.kind)


_VARIANT_TYPE = (
    "CASE WHEN left(schema_of_variant(f.v), 3) IN ('BIG', 'DEC', 'DOU') THEN 'NUMBER'"
    " WHEN startswith(schema_of_variant(f.v), 'OBJECT') THEN 'OBJECT' ELSE schema_of_variant(f.v) END"
)
"""The type of a variant: NUMBER, STRING, OBJECT, or another Spark type."""

_INFINITE_NUMBER = f"""CASE
        WHEN f.unit <= 1 THEN abs(f.number) BETWEEN 9223372036825200000 AND 9223372036854775808BD
        WHEN f.unit = 1000 THEN abs(f.number) BETWEEN 9223372036825200 AND 9223372036854776
        WHEN f.unit = {DAY} THEN abs(f.number) BETWEEN 2100000000 AND 2147483648
        ELSE false
      END"""
"""True if Debezium writes the number for Postgres' infinity."""

_VALUE_OR_WRONG = (
    "named_struct('value', f.value,"
    " 'why', CASE WHEN f.v IS NOT NULL AND f.told <> 'VOID' AND f.value IS NULL THEN f.wrong END)"
)
"""The last step for decimals and bytes: the value, or the reason that there is none."""

_BASE64 = "'base64'"

_ENVELOPE = {(*within, f"ts_{unit}") for within in ((), ("source",)) for unit in ("ms", "us", "ns")}
"""Times of the envelope itself, whose names end in their unit."""

_CHANGE_TIME = re.compile(r"__(?:source_)?ts_(ms|us|ns)$")
"""Times of the change in a flattened event, whose names end in their unit."""

WRONG = "a field has the wrong type: "
"""Prefix of the reason if a record is bad because of its fields.

The words of this module's, `fields.py`'s, `reasons.py`'s and `debezium.py`'s reasons are part of a source's `parse`
text, so of the fingerprints of all its views. Better words would make a new version of every view, so clipped ones such
as "i is no INT" stay.
"""

TIME_OF_DAY = "a field holds a time of day without the day"


def without_unit(name: str, encodings: Encodings) -> str:
    """Spark SQL of the reason for a number that is a time in an unknown unit."""
    units = "set 'epoch' to 's', 'ms', 'us' or 'ns' in TBLPROPERTIES"
    if encodings.of_connector and encodings.times is None:
        units = f"set time.precision.mode in OPTIONS, or {units}"
    return f"concat({name}, {spark_text(f' is a number without a unit: {units}')})"


def digits_alone(name: str) -> str:
    """Spark SQL of the reason for a text that may be a number in any unit."""
    return f"concat({name}, ' is a text of digits: send a number, or declare it STRING and cast it')"
