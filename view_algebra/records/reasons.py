"""The reasons a record goes to quarantine, in order: the first condition that holds gives the reason.

Spark's reader misses some mistakes in fields, so `field_mistakes` looks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from view_algebra.formats import frames
from view_algebra.formats.interface import HAS_ZERO, NO_KEY_TEXT
from view_algebra.language.calendar_bounds import TIME_ALONE
from view_algebra.language.long_numbers import TOO_LONG, decimals_alone, decimals_as_text, has_decimals, may_be_long
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import STRING, TIMESTAMP, Type, rewritten_type
from view_algebra.record_columns import LEFT_OUT, NULLED
from view_algebra.records import debezium
from view_algebra.records.decoding import CORRUPT, UNDECODED, WRONG, Columns, FieldOptions
from view_algebra.records.fields import THOUSANDS, json_read, leaves, schema_text
from view_algebra.records.keys import in_key, key_value
from view_algebra.records.record import FRAMED, SPACE, VALUE_TEXT, PrimaryKey, Record, declared_column, out_of_bounds
from view_algebra.records.time_units import number_conditions

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

_NO_FRAME = "no frame of a schema registry stands before the value"
_NO_HEADER = f"exists(kafka_headers, header -> header.key = '{frames.HEADER}') IS NOT TRUE"
_MORE = "'more text follows the object'"


def errors(columns: Columns, record: Record) -> str:
    """The branches of the CASE of a record's error. The first one that holds gives the reason."""
    key, text, options = record.key, record.text, record.options
    is_bad = f"parsed.{CORRUPT} IS NOT NULL"
    if options.nulls:
        is_bad += f" AND NOT startswith(parsed.{CORRUPT}, {spark_text(NULLED)})"
    no_change = _no_change(columns, record)
    unread = f"{debezium.OP} IS NULL" if no_change else None
    if record.encodings.schemas:  # and the payload next to the schema was not found
        unread = f"{debezium.EVENT} = {VALUE_TEXT} AND {_IS_NEXT_TO_SCHEMA % VALUE_TEXT}"
    plain = record.plain(columns)
    units = [] if options.nulls else number_conditions(plain, text, options)
    unframed = [(f"NOT startswith({FRAMED}, X'00') AND {_NO_HEADER}", spark_text(_NO_FRAME))]
    branches = [
        *([(f"{NO_KEY_TEXT} IS NOT NULL", f"'{frames.KEY_PREFIX}' || {NO_KEY_TEXT}")] if record.decodes_key else ()),
        *(unframed if record.encodings.framed else ()),
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
        branches += field_mistakes(columns, record, "parsed")[1:]
    if key is not None:
        if not record.encodings.has_schema and record.values is None:
            branches.append(_next_to_schema(columns, key, text))
        branches += _wrong_keys(columns, key)
    return "\n".join(f"    WHEN {when} THEN {reason}" for when, reason in branches)


def _why_nothing(columns: Columns, text: str) -> str:
    """Spark SQL of the reason nothing was read from a text."""
    empty = "'the value is empty'"
    if not any(has_decimals(kind) for _, kind in columns):
        return empty
    return f"CASE WHEN {may_be_long(text)} THEN {spark_text(TOO_LONG)} ELSE {empty} END"


def _more_follows(record: Record) -> Iterator[tuple[str, str]]:
    """Conditions that more text follows the object, which Spark's reader ignores."""
    if record.values is not None:
        return
    yield f"NOT endswith({VALUE_TEXT}, '}}') AND NOT endswith(rtrim({SPACE}, {VALUE_TEXT}), '}}')", _MORE
    if not record.encodings.changes:
        several = f"coalesce(json_array_length(concat('[', {record.text}, ']')), 0) <> 1"
        yield f"{record.text} RLIKE {spark_text(BEGINS_AGAIN)} AND {several}", _MORE


def _undecoded(columns: Columns, record: Record) -> Sequence[tuple[str, str]]:
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
    reason = f"{spark_text(WRONG)} || {UNDECODED}"
    return ((f"{UNDECODED} IS NOT NULL AND ({' OR '.join(missing)})", reason),) if missing else ()


def _has_zero(text: str, struct: str) -> str:
    """The condition that a text in a struct holds U+0000, its cheap part first."""
    return f"contains({text}, '\\\\u0000') AND contains(CAST({struct} AS STRING), '\\u0000')"


def field_mistakes(columns: Columns, record: Record, struct: str) -> list[tuple[str, str]]:
    """Conditions and reasons for mistakes in fields that Spark's reader misses."""
    plain, text, options = record.plain(columns), record.text, record.options
    branches = [(_has_zero(text, struct), "''")]
    if comma := _decimal_comma(plain, text, options):
        branches.append((comma, "'a decimal has a comma: Spark would read 12,50 as 1250'"))
    for name, kind in plain:
        if wrapped := out_of_bounds(f"{struct}.{spark_name(name)}", kind, _TINY):
            branches.append((wrapped, spark_text(f"{WRONG}{options.name(name)} is no {kind.spark}")))
    for path, kind in leaves(plain):
        if outside := out_of_bounds(_field(struct, path), kind):
            name = ".".join([options.name(path[0]), *path[1:]])
            branches.append((outside, spark_text(f"{name} is outside the years 0001 to 9999")))
    if alone := _time_alone(plain, text, struct, options):
        branches.append((alone, "'a field holds a time of day without the day'"))
    return branches


_TINY = {"TINYINT": ("-128", "127")}
_IS_JSON = "try_parse_json(%s) IS NOT NULL"
_IS_NEXT_TO_SCHEMA = "startswith(%s, '{\"schema\":')"


def _without_value(columns: Columns, record: Record) -> str:
    """The reason a record without a value is bad, or NULL if it deletes a row."""
    if record.key is not None:
        return _not_deleting(columns, record.key)
    return spark_text(LEFT_OUT if record.encodings.changes else "the value is null")


def _no_change(columns: Columns, record: Record) -> Sequence[tuple[str, str]]:
    """Conditions and reasons for change events that do not change a row."""
    if not record.encodings.changes:
        return ()
    return debezium.errors(_not_deleting(columns, record.key)) if record.key is not None else debezium.STREAM_ERRORS


def _not_deleting(columns: Columns, key: PrimaryKey) -> str:
    """The reason a record without a value does not name the row that it deletes, or NULL if it does."""
    if key.format == "none":
        return spark_text("a deletion, and Kafka's key is not read: declare key_format")
    missing = " OR ".join(f"{in_key(name, kind)} IS NULL" for name, kind in key.within(columns))
    return f"CASE WHEN {missing} THEN {spark_text(f'a deletion, and its key is no {_described(columns, key)}')} END"


def _wrong_keys(columns: Columns, key: PrimaryKey) -> Iterator[tuple[str, str]]:
    """Conditions and reasons for a PRIMARY KEY that is NULL, or that differs from Kafka's key."""
    for name, kind in columns:
        if name not in key.columns:
            continue
        yield f"{key_value(name, kind, key)} IS NULL", spark_text(f"the primary key is null: {name}")
        if key.format == "none":
            continue
        yield (
            f"{declared_column(name, kind)} <> {in_key(name, kind)}",
            spark_text(f"the primary key differs from Kafka's key: {name}"),
        )


def _next_to_schema(columns: Columns, key: PrimaryKey, text: str) -> tuple[str, str]:
    """The condition and reason for a table's record that is a payload next to its schema."""
    missing = " AND ".join(f"{key_value(name, kind, key)} IS NULL" for name, kind in key.within(columns))
    reason = "the record is beside its schema, as Kafka Connect writes it: set schemas.enable to true in OPTIONS"
    return f"{_IS_NEXT_TO_SCHEMA % text} AND {missing}", spark_text(reason)


def _described(columns: Columns, key: PrimaryKey) -> str:
    """The format and the types of a key, for a reason."""
    kinds = ", ".join(f"{name} {kind.spark}" for name, kind in key.within(columns))
    return f"{_FORMATS.get(key.format, key.format)} of {kinds}"


_FORMATS = {"json": "JSON", "string": "text", "avro": "Avro", "protobuf": "Protobuf"}


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
            certain.append(f"{_field('texts', path)} RLIKE {spark_text(TIME_ALONE)}")
        elif rewritten_type(kind, _times_as_text) != kind:
            near.append("true")
            certain.append(f"to_json({_field('texts', path)}) RLIKE {spark_text(MAY_BE_TIME_ALONE)}")
    if not near:
        return ""
    return (
        f"({' OR '.join(near)}) AND {text} RLIKE {spark_text(MAY_BE_TIME_ALONE)}"
        f" AND exists(array({_as_texts(columns, text, options)}), texts -> {' OR '.join(certain)})"
    )


def _times_as_text(kind: Type) -> Type:
    return STRING if kind.name == "TIMESTAMP" else kind


def _as_texts(columns: Columns, text: str, options: FieldOptions) -> str:
    """Reads a record again, with its times and decimals as texts."""
    return json_read(
        text, [(n, decimals_as_text(rewritten_type(kind, _times_as_text))) for n, kind in columns], options
    )


def _decimal_comma(columns: Columns, text: str, options: FieldOptions) -> str:
    """The condition that a DECIMAL was written as '12,50', with a cheap look at the whole text first."""
    decimals = decimals_alone(Type("STRUCT", fields=tuple((options.name(name), kind) for name, kind in columns)))
    if decimals is None:
        return ""
    schema = spark_text(schema_text(decimals_as_text(decimals).fields))
    has = f"exists(array(to_json(from_json({text}, {schema}))), texts -> texts RLIKE {spark_text(HAS_COMMA)})"
    return f"{text} RLIKE {spark_text(MAY_HAVE_COMMA)} AND {has}"


def _before_json() -> list[tuple[str, str]]:
    """Conditions and reasons for bytes before a record's text, or bytes that are not text."""
    frame = (
        "the frame of a schema registry stands before the value: declare it by frame 'registry' in OPTIONS; schema id "
    )
    two_bytes = "substring(kafka_value, {}, 1) = X'00' AND substring(kafka_value, {}, 1) IN (X'7B', X'5B')"
    marks = " OR ".join(f"startswith(kafka_value, X'{mark}')" for mark in ("EFBBBF", "FEFF", "FFFE"))
    schema_id = "conv(hex(substring(kafka_value, 2, 4)), 16, 10)"
    return [
        (f"({marks})", spark_text(BYTE_ORDER_MARK)),
        ("startswith(kafka_value, X'1F8B')", "'gzip, not JSON: set compression.type of the producer instead'"),
        (f"{two_bytes.format(1, 2)} OR {two_bytes.format(2, 1)}", "'UTF-16, not JSON: let the producer write UTF-8'"),
        ("startswith(kafka_value, X'00') AND length(kafka_value) > 5", f"concat({spark_text(frame)}, {schema_id})"),
    ]


def _no_event() -> list[tuple[str, str]]:
    """Conditions and reasons for a value without an op, which is not a change event."""
    rewritten = f"get_json_object({VALUE_TEXT}, '$')"  # accepts repeated fields and single quotes
    reasons = [
        (f"try_parse_json({VALUE_TEXT}) IS NOT NULL", _MORE),
        (f"{rewritten} IS NOT NULL AND try_parse_json({rewritten}) IS NULL", "'an object has a field twice'"),
    ]
    branches = " ".join(f"WHEN {when} THEN {reason}" for when, reason in [*reasons, *_no_object(VALUE_TEXT)])
    is_object = f"startswith(trim({SPACE}, {VALUE_TEXT}), '{{')"
    return [*_before_json(), (f"{is_object} AND {debezium.is_not_one_value(VALUE_TEXT)}", f"CASE {branches} END")]


def _no_object(text: str) -> list[tuple[str, str]]:
    """Conditions and reasons for a text that begins like an object and is not JSON."""
    begins = f"startswith(trim({SPACE}, {text}), '{{')"
    corrected = f"try_parse_json(regexp_replace({text}, {spark_text(COMMA_BEFORE_END)}, '$1'))"
    escaped = f"try_parse_json(regexp_replace({text}, {spark_text(CONTROL)}, ' '))"
    return [
        (f"{begins} AND {corrected} IS NOT NULL", "'not JSON: a comma stands before } or ]'"),
        (
            f"{begins} AND {escaped} IS NOT NULL",
            "'not JSON: a line break or another control character in a text is not escaped'",
        ),
        (begins, "'not JSON, or nested too deep'"),
    ]


def why_no_record(text: str) -> str:
    """Spark SQL of the reason a text is not a record: another JSON value than an object, or not JSON."""
    trimmed = f"trim({SPACE}, {text})"
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
