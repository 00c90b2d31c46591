"""Reads JSON records into the declared columns, or into a reason for quarantine, and never fails.

Spark's `from_json` in PERMISSIVE mode puts a record that it cannot read completely into a separate column. Only such
records are read a second time, field by field (`fields.py`), which also finds the mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from view_algebra.compiled import KeyFormat
from view_algebra.engines.spark import constant
from view_algebra.formats import DECODED_KEYS, ValueSql, frames
from view_algebra.formats.interface import DIRECT, HAS_ZERO, KEY_TEXT, NO_KEY_TEXT, TEXT
from view_algebra.language.encodings import Encodings
from view_algebra.language.expressions import Constant
from view_algebra.language.limits import (
    TIME_ALONE,
    TOO_LONG,
    bounded,
    decimals_alone,
    decimals_as_text,
    has_decimals,
    mapped,
    may_be_long,
    permissive,
    with_unique_keys,
)
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import BIGINT, BINARY, CALENDAR, INT, SMALLINT, STRING, TIMESTAMP, Type
from view_algebra.record_columns import (
    BAD_FIELDS,
    DELETED,
    LEFT_OUT,
    LOG_TIME,
    MOVED_FROM,
    NULLED,
    SNAPSHOT,
    SOURCE_TIME,
    TOMBSTONE,
    TRUNCATES,
)
from view_algebra.records import debezium
from view_algebra.records.decoding import CORRUPT, UNDECODED, WRONG, ColumnDecoding, Columns, FieldOptions
from view_algebra.records.fields import (
    NUMERIC_KEYS,
    THOUSANDS,
    SecondReading,
    decimals_lose_digits,
    json_read,
    leaves,
    loses_digits,
    loses_digits_in_variant,
    marked,
    number_conditions,
    schema_text,
)

PSEUDO_COLUMNS = (
    ("kafka_partition", INT),
    ("kafka_offset", BIGINT),
    ("kafka_timestamp", TIMESTAMP),
    ("kafka_key", BINARY),
    ("kafka_headers", Type("ARRAY", element=Type("STRUCT", fields=(("key", STRING), ("value", BINARY))))),
)
"""Columns that every record has in addition to the declared ones."""

TABLE_COLUMNS = ((LOG_TIME, TIMESTAMP),)
"""Further columns of every record of a table, which depend on the records below it."""

MAY_BE_TIME_ALONE = r"""["'](?:\s|\\[a-z])*+(?:T[0-9]|[0-9]{1,2}:)|\\u00"""
"""A JSON text that begins with a time of day, or may do so because characters are escaped.

The group repeats with the possessive `*+`: with `*`, Java recurses for every space and overflows at about 6,000.
"""

BEGINS_AGAIN = r"\}[ \t\r\n]*+,?[ \t\r\n]*+\{"
"""Text that may separate two top-level objects, or stand in a list or a text."""

BYTE_ORDER_MARK = "a byte order mark stands before the object: let the producer leave it out"
"""The reason a value that begins with the mark is not a record."""

MAY_HAVE_COMMA = r"""["'][+-]?(?:[\p{Nd}.]++,|,++[\p{Nd}.])|\\u00(?:2[bBcCdDeE]|3[0-9])"""
"""A JSON text that may be a number with a comma: Spark drops commas and reads `"12,50"` as 1250."""

HAS_COMMA = rf"""[:\[,]"(?!{THOUSANDS}")[+-]?[\p{{Nd}}.]*+,[^"]*+"(?!:)"""
"""A number whose comma does not separate thousands, in JSON of texts that Spark wrote."""

CONTROL = r"[\x00-\x1f]"
"""A character that a JSON text must escape."""

COMMA_BEFORE_END = r",([ \t\r\n]*+[}\]])"
"""A comma after the last field or element, which JSON forbids."""

_SPACE = "' \\t\\r\\n'"
_TEXT = "CAST(kafka_value AS STRING)"
_NO_FRAME = "no frame of a schema registry stands before the value"
_NO_HEADER = f"exists(kafka_headers, header -> header.key = '{frames.HEADER}') IS NOT TRUE"
_MORE = "'more text follows the object'"
AS_IT_IS = FieldOptions()
"""The options of a source that declares none."""

FRAMED = "kafka_framed"
"""The column with Kafka's unchanged value, if `kafka_value` is the part after a registry's frame."""

_UNFRAMED = f"""WITH raw_records AS (
  SELECT
    * EXCEPT (value),
    value AS {FRAMED},
    CASE WHEN startswith(value, X'00') THEN substring(value, 6) ELSE value END AS value
  FROM raw_records
)
"""

FLATTENED = "__deleted"
"""The field of a flattened change that is true if the row was deleted."""


@dataclass(frozen=True)
class PrimaryKey:
    """The PRIMARY KEY of a table: its columns, and the format of Kafka's key."""

    columns: tuple[str, ...]
    format: KeyFormat

    def within(self, columns: Columns) -> list[tuple[str, Type]]:
        """The key's columns among these, with their types."""
        return [(name, kind) for name, kind in columns if name in self.columns]


def parse_text(
    columns: Columns,
    key: PrimaryKey | None = None,
    options: FieldOptions = AS_IT_IS,
    identifying: Sequence[str] = (),
    values: ValueSql | None = None,
    *,
    direct: bool = False,
) -> str:
    """Spark SQL from `raw_records` to records: the Kafka columns, the error, the declared columns.

    key: a table's PRIMARY KEY
    identifying: for a source with NULL for unreadable fields, the columns besides the key that make a record bad
        because they identify a stream's events or its newest record. Such a source has BAD_FIELDS after the error
    values: the SQL of values in another format
    direct: some values may be read without JSON
    """
    record = _Record(key, options, identifying, values)
    key_columns = [] if key is None or key.format == "none" else key.within(columns)
    parsed = _parsed(columns, key_columns, record, direct=direct)
    if record.decoding.decodes_any(columns):
        others = {"key_parsed": key_columns} if key_columns else {}
        if record.changes_table and key is not None:
            others["before_parsed"] = key.within(columns)
        parsed = record.decoding.around(parsed, columns, others)
    declared = _values(columns, key_columns, record)
    return f"""{_UNFRAMED if record.encodings.framed else ""}SELECT
  kafka_partition,
  kafka_offset,
  kafka_timestamp,{"" if key is None else f"{chr(10)}  {LOG_TIME},"}
  kafka_key,
  kafka_headers,
  {f"{FRAMED} AS kafka_value" if record.encodings.framed else "kafka_value"},
  CASE
{_errors(columns, record)}
  END AS kafka_error{_bad_fields(columns, record)}{_table_columns(columns, record)}{declared}
FROM ({parsed}
)"""


def _parsed(columns: Columns, key_columns: Columns, record: _Record, *, direct: bool) -> str:
    """Spark SQL of the raw records with the struct `parsed`, and those of the key and of the previous row."""
    read_as = _read_as(columns, record.decoding)
    text = bounded(record.raw, Type("STRUCT", fields=tuple(read_as)), CORRUPT)
    log_time = "" if record.key is None else f"\n    {_within_calendar('log_time')} AS {LOG_TIME},"
    raw_records, raw_columns = _raw_records(record, [DIRECT] if direct else [])
    return f"""
  SELECT
    * EXCEPT (kafka_read),
    CASE{f"{chr(10)}      WHEN {DIRECT} IS NOT NULL THEN {DIRECT}" if direct else ""}
      WHEN {_is_read_again(columns, record)}
      THEN {_second_reading(columns, record)}
      ELSE kafka_read
    END AS parsed{_parsed_keys(columns, key_columns, record)}
  FROM (
    SELECT
      partition AS kafka_partition,
      offset AS kafka_offset,
      {_within_calendar("timestamp")} AS kafka_timestamp,{log_time}
      key AS kafka_key,
      headers AS kafka_headers,
      value AS kafka_value,{raw_columns}
      {json_read(text, [*read_as, (CORRUPT, STRING)], record.options, permissive(CORRUPT))} AS kafka_read
    FROM {raw_records}
  )"""


def _raw_records(record: _Record, direct: Sequence[str]) -> tuple[str, str]:
    """The raw records with the JSON of their values, and the columns that they have besides Kafka's."""
    values, encodings = record.values, record.encodings
    names = [*(() if values is None else values.columns), *((KEY_TEXT, NO_KEY_TEXT) if record.decodes_key else ())]
    names += [*direct, *([FRAMED] if encodings.framed else ())]
    listed = "".join(f"\n    {name}," for name in names)
    if encodings.changes:
        value = "CAST(value AS STRING)" if values is None else TEXT
        return debezium.unwrapped(value), debezium.COLUMNS + listed
    if encodings.schemas:
        return debezium.PAYLOADS, debezium.PAYLOAD_COLUMNS + listed
    return ("raw_records" if values is None else values.records), listed


def _read_as(columns: Columns, decoding: ColumnDecoding) -> list[tuple[str, Type]]:
    """The columns with the types that Spark's reader reads them as."""
    return [(name, _as_read(kind, decoding)) for name, kind in columns]


def _plain(columns: Columns, decoding: ColumnDecoding) -> list[tuple[str, Type]]:
    """The columns, or parts of them, that Spark's reader reads with their declared types."""
    return [(name, part) for name, kind in columns if (part := decoding.plain_part(kind)) is not None]


def _is_read_again(columns: Columns, record: _Record) -> str:
    """The condition that Spark's reader read a record incompletely, or changed its digits."""
    conditions = [f"kafka_read.{CORRUPT} IS NOT NULL"]
    conditions += _loses(columns, "kafka_read", record.whole, record, from_variant=record.encodings.has_schema)
    if record.options.nulls:
        plain = _plain(columns, record.decoding)
        conditions += [when for when, _ in number_conditions(plain, record.text, record.options, "kafka_read")]
        conditions += [when for when, _ in _field_mistakes(columns, record, "kafka_read")]
        if any(has_decimals(kind) for _, kind in plain):
            conditions.append(f"kafka_read IS NULL AND {may_be_long(record.text)}")
    return "\n      OR ".join(conditions)


def _loses(columns: Columns, read: str, text: str, record: _Record, *, from_variant: bool) -> list[str]:
    """Conditions that the struct `read` lacks digits of the text. `from_variant`: it comes from a variant's JSON."""
    texts_lose = (loses_digits_in_variant if from_variant else loses_digits)(columns, read, text)
    return [
        condition
        for condition in (texts_lose, decimals_lose_digits(columns, read, text, record.encodings))
        if condition
    ]


def _second_reading(columns: Columns, record: _Record) -> str:
    """Spark SQL of the second reading of a record."""
    again = SecondReading(
        "kafka_read",
        record.marked,
        columns,
        record.options,
        lambda kind: _as_read(kind, record.decoding),
        record.needed,
    )
    return again.record(_why_no_record(record.text))


def _bad_fields(columns: Columns, record: _Record) -> str:
    """The column with the fields that are NULL in a record that counts."""
    if not record.options.nulls:
        return ""
    null_fields = f"CASE WHEN startswith(parsed.{CORRUPT}, {_text(NULLED)}) THEN parsed.{CORRUPT} END"
    if record.decoding.decodes_any(columns):
        both = f"concat_ws(', ', substring({null_fields}, {len(NULLED) + 1}), {UNDECODED})"
        null_fields = f"{_text(NULLED)} || nullif({both}, '')"
    return f",\n  {null_fields} AS {BAD_FIELDS}"


def _within_calendar(time: str) -> str:
    """Kafka's time, which a producer may set to any value, limited to the calendar."""
    first, last = CALENDAR["TIMESTAMP"]
    return f"greatest({first}, least({time}, {last}))"


@dataclass(frozen=True)
class _Record:
    """The record of a source, as Spark SQL reads it.

    key: a table's PRIMARY KEY
    options: the source's options for reading fields
    identifying: the columns besides the key without which a record is bad
    values: the SQL of values in another format
    """

    key: PrimaryKey | None
    options: FieldOptions
    identifying: Sequence[str] = ()
    values: ValueSql | None = None

    @property
    def encodings(self) -> Encodings:
        """The encodings of its values."""
        return self.options.encodings

    @property
    def decoding(self) -> ColumnDecoding:
        """The decoding of its columns."""
        return ColumnDecoding(self.options)

    @property
    def needed(self) -> Sequence[str]:
        """The columns without which a record is bad."""
        return (*(() if self.key is None else self.key.columns), *self.identifying)

    @property
    def changes_table(self) -> bool:
        """True if a record is a change of a table's row in Debezium's envelope."""
        return self.encodings.changes and self.key is not None

    @property
    def decodes_key(self) -> bool:
        """True if Kafka's key is decoded before Spark SQL reads it."""
        return self.key is not None and self.key.format in DECODED_KEYS

    @property
    def raw(self) -> str:
        """The JSON with the fields, as Spark SQL over raw records."""
        return self.text if self.encodings.has_schema or self.values is not None else "CAST(value AS STRING)"

    @property
    def whole(self) -> str:
        """The JSON of the value."""
        return _TEXT if self.values is None else TEXT

    @property
    def text(self) -> str:
        """The JSON with the fields, as Spark SQL over what has been read."""
        if not self.encodings.changes:
            return debezium.EVENT if self.encodings.schemas else self.whole
        return debezium.ROW if self.key is not None else debezium.EVENT

    @property
    def marked(self) -> str:
        """The same JSON with marked numbers, which keep every digit."""
        if self.encodings.changes:
            return debezium.marked_part(self.text, self.whole)
        return debezium.marked_payload(_TEXT) if self.encodings.schemas else marked(self.text)

    def deletes(self, columns: Columns) -> str:
        """The condition that a record deletes its row."""
        if self.encodings.changes:
            return debezium.DELETES
        flattened = self.flattened(columns)
        if flattened is None:
            return "kafka_value IS NULL"
        return f"(kafka_value IS NULL OR lower(CAST(parsed.{spark_name(flattened)} AS STRING)) <=> 'true')"

    def flattened(self, columns: Columns) -> str | None:
        """The column that is true if a flattened change deleted its row, or None for other records."""
        return next((name for name, _ in columns if self.options.name(name) == FLATTENED), None)


def _as_read(kind: Type, decoding: ColumnDecoding) -> Type:
    """The type that Spark's reader reads a column as."""
    return decoding.as_read(mapped(kind, _without_tinyint))


def _table_columns(columns: Columns, record: _Record) -> str:
    """The columns that only a table's records have."""
    if record.key is None:
        return ""
    deleted = f",\n  {record.deletes(columns)} AS {DELETED}"
    if not record.changes_table:
        return deleted
    return (
        f"{deleted},\n  {_moved_from(columns, record.key)} AS {MOVED_FROM}"
        f",\n  {debezium.SOURCE_MS_AS_TIME} AS {SOURCE_TIME}"
        f",\n  kafka_value IS NULL AS {TOMBSTONE},\n  {debezium.IS_TRUNCATION} AS {TRUNCATES}"
        f",\n  {debezium.IS_SNAPSHOT} AS {SNAPSHOT}"
    )


def _values(columns: Columns, key_columns: Columns, record: _Record) -> str:
    """The declared columns."""
    values = [
        (n, _value_or_key(n, kind) if (n, kind) in key_columns else with_unique_keys(_declared(n, kind), kind))
        for n, kind in columns
    ]
    kept = None
    if record.changes_table:  # a deletion's `before` is neither the row nor its time
        kept = f"{debezium.OP} <> 'd'"
    elif record.key is not None and record.flattened(columns) is not None:
        kept = f"NOT {record.deletes(columns)}"
    if kept is not None and record.key is not None:
        metadata = {n for n, _ in columns if record.options.name(n).startswith("__")}
        stay = {*record.key.columns, *(() if record.changes_table else metadata)}
        values = [(n, v if n in stay else f"CASE WHEN {kept} THEN {v} END") for n, v in values]
    return "".join(f",\n  {value} AS {spark_name(name)}" for name, value in values)


def _parsed_keys(columns: Columns, key_columns: Columns, record: _Record) -> str:
    """The columns read from Kafka's key, and the previous key in a change event."""
    read = ""
    if record.key is not None and key_columns:
        text = _key_text(key_columns, record.key, record)
        loses = _loses(key_columns, "key_read", "key_text", record, from_variant=False)
        read += f",\n    {_read_key(text, marked('key_text'), loses, key_columns, record)} AS key_parsed"
    if record.key is not None and record.changes_table:
        before = record.key.within(columns)
        marked_before = debezium.marked_part(debezium.BEFORE, record.whole)
        loses = _loses(before, "key_read", record.whole, record, from_variant=True)
        read += f",\n    {_read_key(debezium.BEFORE, marked_before, loses, before, record)} AS before_parsed"
    return read


def _key_text(columns: Columns, key: PrimaryKey, record: _Record) -> str:
    """Spark SQL of Kafka's key as a JSON object of the columns. The key of one column may be its bare value."""
    text = _KEYS.get(key.format, "make_valid_utf8(CAST(kafka_key AS STRING))")
    if record.encodings.has_schema and not record.decodes_key:
        text = f"coalesce(get_json_object({text}, '$.payload'), {text})"
    if len(columns) > 1:
        return text
    ((name, kind),) = columns
    name = record.options.name(name)
    field = f"concat('{{', {_text(json.dumps(name, ensure_ascii=False))}, ':', %s, '}}')"
    if key.format == "string":
        return f"to_json(named_struct({_text(name)}, {text}))" if _is_quoted(kind) else field % text
    return f"CASE WHEN startswith(ltrim({_SPACE}, {text}), '{{') THEN {text} ELSE {field % text} END"


_KEYS: Mapping[str, str] = {**dict.fromkeys(map(str, DECODED_KEYS), KEY_TEXT), **NUMERIC_KEYS}
"""The JSON of keys that are not text, by their format."""


def _read_key(text: str, as_marked: str, loses: Sequence[str], columns: Columns, record: _Record) -> str:
    """Reads a key's columns from JSON, a second time if one of them is NULL or may have lost digits.

    as_marked: the text with marked numbers
    loses: conditions that digits are lost
    """
    read_as = _read_as(columns, record.decoding)
    first = json_read(bounded("key_text", Type("STRUCT", fields=tuple(read_as))), read_as, record.options)
    is_null = [f"key_read.{spark_name(name)} IS NULL" for name, _ in columns]
    again = SecondReading(
        "key_read", as_marked, columns, record.options, lambda kind: _as_read(kind, record.decoding)
    ).struct()
    mistaken = " OR ".join([*is_null, *loses])
    read_again = f"key_text <> 'null' AND ({mistaken})"
    return f"""element_at(transform(
      array({text}),
      key_text -> element_at(transform(
        array({first}),
        key_read -> CASE WHEN {read_again} THEN {again} ELSE key_read END
      ), 1)
    ), 1)"""


def _moved_from(columns: Columns, key: PrimaryKey) -> str:
    """The key under which an update deletes the row, or NULL if the key is unchanged or unknown."""
    key_columns = key.within(columns)
    before = [_in_key(name, kind, "before_parsed") for name, kind in key_columns]
    is_complete = " AND ".join(f"{value} IS NOT NULL" for value in before)
    same = " AND ".join(f"{v} <=> {_key_value(n, kind, key)}" for v, (n, kind) in zip(before, key_columns, strict=True))
    values = ", ".join(f"{_text(name)}, {value}" for value, (name, _) in zip(before, key_columns, strict=True))
    return f"CASE WHEN {debezium.OP} = 'u' AND {is_complete} AND NOT ({same}) THEN named_struct({values}) END"


def _key_value(name: str, kind: Type, key: PrimaryKey) -> str:
    """A column of the PRIMARY KEY, from the value alone if Kafka's key is not read."""
    return _declared(name, kind) if key.format == "none" else _value_or_key(name, kind)


def _is_quoted(kind: Type) -> bool:
    """True if a value of the type is a text in JSON."""
    return kind == STRING or kind.name in CALENDAR


def _value_or_key(name: str, kind: Type) -> str:
    """A column of a PRIMARY KEY, from the value or else from Kafka's key."""
    return f"coalesce({_declared(name, kind)}, {_in_key(name, kind)})"


def _in_key(name: str, kind: Type, struct: str = "key_parsed") -> str:
    """A column from Kafka's key, or NULL if Postgres could not store it."""
    value = _declared(name, kind, struct)
    if kind == STRING:
        return f"CASE WHEN NOT contains({value}, '\\u0000') THEN {value} END"
    outside = _outside(value, kind)
    return f"CASE WHEN NOT {outside} THEN {value} END" if outside else value


def _why_nothing(columns: Columns, text: str) -> str:
    """Spark SQL of the reason nothing was read from a text."""
    empty = "'the value is empty'"
    if not any(has_decimals(kind) for _, kind in columns):
        return empty
    return f"CASE WHEN {may_be_long(text)} THEN {_text(TOO_LONG)} ELSE {empty} END"


def _text(value: str) -> str:
    return constant(Constant(value, STRING))


def _declared(name: str, kind: Type, struct: str = "parsed") -> str:
    """A column with its declared type, from the result of `from_json`."""
    field = f"{struct}.{spark_name(name)}"
    return field if mapped(kind, _without_tinyint) == kind else f"CAST({field} AS {kind.spark})"


def _without_tinyint(kind: Type) -> Type:
    """SMALLINT for TINYINT: Spark's reader would accept 128 to 255 as a TINYINT and wrap them."""
    return SMALLINT if kind.name == "TINYINT" else kind


def _times_as_text(kind: Type) -> Type:
    return STRING if kind.name == "TIMESTAMP" else kind


def _as_texts(columns: Columns, text: str, options: FieldOptions) -> str:
    """Reads a record again, with its times and decimals as texts."""
    return json_read(text, [(n, decimals_as_text(mapped(kind, _times_as_text))) for n, kind in columns], options)


def _errors(columns: Columns, record: _Record) -> str:
    """The branches of the CASE of a record's error. The first one that holds gives the reason."""
    key, text, options = record.key, record.text, record.options
    is_bad = f"parsed.{CORRUPT} IS NOT NULL"
    if options.nulls:
        is_bad += f" AND NOT startswith(parsed.{CORRUPT}, {_text(NULLED)})"
    no_change = _no_change(columns, record)
    unread = f"{debezium.OP} IS NULL" if no_change else None
    if record.encodings.schemas:  # and the payload next to the schema was not found
        unread = f"{debezium.EVENT} = {_TEXT} AND {_IS_NEXT_TO_SCHEMA % _TEXT}"
    plain = _plain(columns, record.decoding)
    units = [] if options.nulls else number_conditions(plain, text, options)
    branches = [
        *([(f"{NO_KEY_TEXT} IS NOT NULL", f"'{frames.KEY_PREFIX}' || {NO_KEY_TEXT}")] if record.decodes_key else ()),
        *([(f"NOT startswith({FRAMED}, X'00') AND {_NO_HEADER}", _text(_NO_FRAME))] if record.encodings.framed else ()),
        ("kafka_value IS NULL", _without_value(columns, record)),
        *(() if record.values is None else record.values.bad),
        *((f"{unread} AND {condition}", why) for condition, why in (_no_event() if unread else ())),
        *no_change,
        ("parsed IS NULL", _why_nothing(plain, text)),
        *((f"{when} AND (parsed.{CORRUPT} IS NULL OR {_IS_JSON % text})", why) for when, why in units),
        (is_bad, f"parsed.{CORRUPT}"),
        *_undecoded(columns, record),
        # JSON can only write U+0000 as an escape, so only records with the escape pay for the search in every text
        (_has_zero(text, "parsed"), HAS_ZERO[1]),
        *_more_follows(record),
    ]
    if not options.nulls:
        branches += _field_mistakes(columns, record, "parsed")[1:]
    if key is not None:
        if not record.encodings.has_schema and record.values is None:
            branches.append(_next_to_schema(columns, key, text))
        branches += _wrong_keys(columns, key)
    return "\n".join(f"    WHEN {when} THEN {reason}" for when, reason in branches)


def _more_follows(record: _Record) -> Iterator[tuple[str, str]]:
    """Conditions that more text follows the object, which Spark's reader ignores."""
    if record.values is not None:
        return
    yield f"NOT endswith({_TEXT}, '}}') AND NOT endswith(rtrim({_SPACE}, {_TEXT}), '}}')", _MORE
    if not record.encodings.changes:
        several = f"coalesce(json_array_length(concat('[', {record.text}, ']')), 0) <> 1"
        yield f"{record.text} RLIKE {_text(BEGINS_AGAIN)} AND {several}", _MORE


def _undecoded(columns: Columns, record: _Record) -> Sequence[tuple[str, str]]:
    """The condition and reason if decoding failed, of needed columns alone if bad fields are NULL."""
    if not record.decoding.decodes_any(columns):
        return ()
    if not record.options.nulls:
        return ((f"{UNDECODED} IS NOT NULL", UNDECODED),)
    missing = [
        f"parsed.{spark_name(name)} IS NULL AND schema_of_variant(parsed_as_json.{spark_name(name)}) <> 'VOID'"
        for name, kind in columns
        if name in record.needed and record.encodings.decodes(kind)
    ]
    reason = f"{_text(WRONG)} || {UNDECODED}"
    return ((f"{UNDECODED} IS NOT NULL AND ({' OR '.join(missing)})", reason),) if missing else ()


def _has_zero(text: str, struct: str) -> str:
    """The condition that a text in a struct holds U+0000, its cheap part first."""
    return f"contains({text}, '\\\\u0000') AND contains(CAST({struct} AS STRING), '\\u0000')"


def _field_mistakes(columns: Columns, record: _Record, struct: str) -> list[tuple[str, str]]:
    """Conditions and reasons for mistakes in fields that Spark's reader misses."""
    plain, text, options = _plain(columns, record.decoding), record.text, record.options
    branches = [(_has_zero(text, struct), "''")]
    if comma := _decimal_comma(plain, text, options):
        branches.append((comma, "'a decimal has a comma: Spark would read 12,50 as 1250'"))
    for name, kind in plain:
        if wrapped := _outside(f"{struct}.{spark_name(name)}", kind, _TINY):
            branches.append((wrapped, _text(f"{WRONG}{options.name(name)} is no {kind.spark}")))
    for path, kind in leaves(plain):
        if outside := _outside(_field(struct, path), kind):
            name = ".".join([options.name(path[0]), *path[1:]])
            branches.append((outside, _text(f"{name} is outside the years 0001 to 9999")))
    if alone := _time_alone(plain, text, struct, options):
        branches.append((alone, "'a field holds a time of day without the day'"))
    return branches


_TINY = {"TINYINT": ("-128", "127")}
_IS_JSON = "try_parse_json(%s) IS NOT NULL"
_IS_NEXT_TO_SCHEMA = "startswith(%s, '{\"schema\":')"


def _without_value(columns: Columns, record: _Record) -> str:
    """The reason a record without a value is bad, or NULL if it deletes a row."""
    if record.key is not None:
        return _not_deleting(columns, record.key)
    return _text(LEFT_OUT if record.encodings.changes else "the value is null")


def _no_change(columns: Columns, record: _Record) -> Sequence[tuple[str, str]]:
    """Conditions and reasons for change events that do not change a row."""
    if not record.encodings.changes:
        return ()
    return debezium.errors(_not_deleting(columns, record.key)) if record.key is not None else debezium.STREAM_ERRORS


def _not_deleting(columns: Columns, key: PrimaryKey) -> str:
    """The reason a record without a value does not name the row that it deletes, or NULL if it does."""
    if key.format == "none":
        return _text("a deletion, and Kafka's key is not read: declare key_format")
    missing = " OR ".join(f"{_in_key(name, kind)} IS NULL" for name, kind in key.within(columns))
    return f"CASE WHEN {missing} THEN {_text(f'a deletion, and its key is no {_described(columns, key)}')} END"


def _wrong_keys(columns: Columns, key: PrimaryKey) -> Iterator[tuple[str, str]]:
    """Conditions and reasons for a PRIMARY KEY that is NULL, or that differs from Kafka's key."""
    for name, kind in columns:
        if name not in key.columns:
            continue
        if key.format == "none":
            yield f"{_declared(name, kind)} IS NULL", _text(f"the primary key is null: {name}")
            continue
        yield f"{_value_or_key(name, kind)} IS NULL", _text(f"the primary key is null: {name}")
        yield (
            f"{_declared(name, kind)} <> {_in_key(name, kind)}",
            _text(f"the primary key differs from Kafka's key: {name}"),
        )


def _next_to_schema(columns: Columns, key: PrimaryKey, text: str) -> tuple[str, str]:
    """The condition and reason for a table's record that is a payload next to its schema."""
    missing = " AND ".join(
        f"{_value_or_key(n, k) if key.format != 'none' else _declared(n, k)} IS NULL" for n, k in key.within(columns)
    )
    reason = "the record is beside its schema, as Kafka Connect writes it: set schemas.enable to true in OPTIONS"
    return f"{_IS_NEXT_TO_SCHEMA % text} AND {missing}", _text(reason)


def _described(columns: Columns, key: PrimaryKey) -> str:
    """The format and the types of a key, for a reason."""
    kinds = ", ".join(f"{name} {kind.spark}" for name, kind in key.within(columns))
    return f"{_FORMATS.get(key.format, key.format)} of {kinds}"


_FORMATS = {"json": "JSON", "string": "text", "avro": "Avro", "protobuf": "Protobuf"}


def _outside(value: str, kind: Type, bounds: Mapping[str, tuple[str, str]] = CALENDAR, depth: int = 0) -> str:
    """The condition that a time, even a nested one, is outside the years that every client reads.

    Without times, it is an empty text.

    bounds: the first and the last value by type, to check other types than times.
    """
    if kind.name in bounds:
        first, last = bounds[kind.name]
        return f"{value} NOT BETWEEN {first} AND {last}"
    if kind.name == "STRUCT":
        conditions = [_outside(f"{value}.{spark_name(name)}", field, bounds, depth) for name, field in kind.fields]
        return f"({' OR '.join(condition for condition in conditions if condition)})" if any(conditions) else ""
    inside = _outside(f"v{depth}", kind.element, bounds, depth + 1) if kind.element else ""
    values = f"map_values({value})" if kind.name == "MAP" else value
    return f"exists({values}, v{depth} -> {inside})" if inside else ""


def _field(struct: str, path: Sequence[str]) -> str:
    return ".".join([struct, *map(spark_name, path)])


def _time_alone(columns: Columns, text: str, struct: str, options: FieldOptions) -> str:
    """The condition that a TIMESTAMP was written as '03:04', which Spark reads as a time of the current day.

    The cheap conditions come first: the time is near the present, the text contains a similar one, the field's text
    is a time of day.
    """
    near, certain = [], []
    for path, kind in leaves(columns):
        if kind == TIMESTAMP:
            today = "date_sub(current_date(), 1) AND date_add(current_date(), 2)"
            near.append(f"{_field(struct, path)} BETWEEN {today}")
            certain.append(f"{_field('texts', path)} RLIKE {_text(TIME_ALONE)}")
        elif mapped(kind, _times_as_text) != kind:
            near.append("true")
            certain.append(f"to_json({_field('texts', path)}) RLIKE {_text(MAY_BE_TIME_ALONE)}")
    if not near:
        return ""
    return (
        f"({' OR '.join(near)}) AND {text} RLIKE {_text(MAY_BE_TIME_ALONE)}"
        f" AND exists(array({_as_texts(columns, text, options)}), texts -> {' OR '.join(certain)})"
    )


def _decimal_comma(columns: Columns, text: str, options: FieldOptions) -> str:
    """The condition that a DECIMAL was written as '12,50', with a cheap look at the whole text first."""
    decimals = decimals_alone(Type("STRUCT", fields=tuple((options.name(name), kind) for name, kind in columns)))
    if decimals is None:
        return ""
    schema = _text(schema_text(decimals_as_text(decimals).fields))
    has = f"exists(array(to_json(from_json({text}, {schema}))), texts -> texts RLIKE {_text(HAS_COMMA)})"
    return f"{text} RLIKE {_text(MAY_HAVE_COMMA)} AND {has}"


def _before_json() -> list[tuple[str, str]]:
    """Conditions and reasons for bytes before a record's text, or bytes that are not text."""
    frame = (
        "the frame of a schema registry stands before the value: declare it by frame 'registry' in OPTIONS; schema id "
    )
    two_bytes = "substring(kafka_value, {}, 1) = X'00' AND substring(kafka_value, {}, 1) IN (X'7B', X'5B')"
    marks = " OR ".join(f"startswith(kafka_value, X'{mark}')" for mark in ("EFBBBF", "FEFF", "FFFE"))
    schema_id = "conv(hex(substring(kafka_value, 2, 4)), 16, 10)"
    return [
        (f"({marks})", _text(BYTE_ORDER_MARK)),
        ("startswith(kafka_value, X'1F8B')", "'gzip, not JSON: set compression.type of the producer instead'"),
        (f"{two_bytes.format(1, 2)} OR {two_bytes.format(2, 1)}", "'UTF-16, not JSON: let the producer write UTF-8'"),
        ("startswith(kafka_value, X'00') AND length(kafka_value) > 5", f"concat({_text(frame)}, {schema_id})"),
    ]


def _no_event() -> list[tuple[str, str]]:
    """Conditions and reasons for a value without an op, which is not a change event."""
    rewritten = f"get_json_object({_TEXT}, '$')"  # accepts repeated fields and single quotes
    reasons = [
        (f"try_parse_json({_TEXT}) IS NOT NULL", _MORE),
        (f"{rewritten} IS NOT NULL AND try_parse_json({rewritten}) IS NULL", "'an object has a field twice'"),
    ]
    branches = " ".join(f"WHEN {when} THEN {reason}" for when, reason in [*reasons, *_no_object(_TEXT)])
    is_object = f"startswith(trim({_SPACE}, {_TEXT}), '{{')"
    return [*_before_json(), (f"{is_object} AND {debezium.is_not_one_value(_TEXT)}", f"CASE {branches} END")]


def _no_object(text: str) -> list[tuple[str, str]]:
    """Conditions and reasons for a text that begins like an object and is not JSON."""
    begins = f"startswith(trim({_SPACE}, {text}), '{{')"
    corrected = f"try_parse_json(regexp_replace({text}, {_text(COMMA_BEFORE_END)}, '$1'))"
    escaped = f"try_parse_json(regexp_replace({text}, {_text(CONTROL)}, ' '))"
    return [
        (f"{begins} AND {corrected} IS NOT NULL", "'not JSON: a comma stands before } or ]'"),
        (
            f"{begins} AND {escaped} IS NOT NULL",
            "'not JSON: a line break or another control character in a text is not escaped'",
        ),
        (begins, "'not JSON, or nested too deep'"),
    ]


def _why_no_record(text: str) -> str:
    """Spark SQL of the reason a text is not a record: another JSON value than an object, or not JSON."""
    trimmed = f"trim({_SPACE}, {text})"
    is_json = f"try_parse_json({text}) IS NOT NULL"
    inner = f"try_parse_json(try_variant_get(try_parse_json({text}), '$', 'string'))"
    reasons = [
        *_before_json(),
        *_no_object(text),
        (f"NOT {is_json}", "'not JSON'"),
        (f"startswith({trimmed}, '[')", "'a JSON array, not an object: send each element as a record'"),
        (
            f"schema_of_variant({inner}) LIKE 'OBJECT%'",
            "'a JSON text that holds an object (JSON encoded twice): send the object itself'",
        ),
        (f"startswith({trimmed}, '\"')", "'a JSON text, not an object'"),
        (f"{trimmed} = 'null'", "'the JSON value null, not an object: a deletion is a record without a value'"),
        (f"{trimmed} IN ('true', 'false')", "'a JSON boolean, not an object'"),
    ]
    branches = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in reasons)
    return f"CASE {branches} ELSE 'a JSON number, not an object' END"
