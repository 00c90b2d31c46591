"""Turns the statements of a catalog into declarations, and checks names, columns, types and properties."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import cast, get_args

from sqlglot import exp

from view_algebra.compiled import DEBEZIUM, KeyFormat
from view_algebra.formats import ValueSql
from view_algebra.language.encodings import Encodings
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME, spark_text, words
from view_algebra.language.starts import start_of
from view_algebra.language.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
    not_in_json,
    read,
    rewritten_type,
    unknown,
)
from view_algebra.record_columns import LOG_TIME, SOURCE_TIME
from view_algebra.refusals import File, Span, Wrong, span, suggestion
from view_algebra.written.declarations.declared_encodings import encodings_of, report_outside_envelope
from view_algebra.written.declarations.properties import (
    OF_FIELD,
    OPTIONS,
    SOURCE_PROPERTIES,
    VIEW_PROPERTIES,
    Options,
    Report,
    asked_again,
    clauses_of,
    format_of,
    instead_of_option,
    of_format,
    report_malformed,
    values_of,
)
from view_algebra.written.dialect import Statement, readable
from view_algebra.written.rewrites.named_windows import write_windows_out
from view_algebra.written.ways_out.replacements import computed_in_view

ICEBERG_COLUMNS = words("_file _pos _deleted _spec_id _partition _row_id _last_updated_sequence_number")
"""Metadata columns of every Iceberg table. A declared column with such a name could not be read back."""

LONGEST_SOURCE = 36
"""Most bytes of a source's name. The names of its tables in Postgres are longer."""


@dataclass(frozen=True)
class SourceDeclaration:
    """A declared source."""

    name: str
    file: File
    place: Span | None
    kind: Choice["stream", "table"]
    topic: str
    columns: tuple[tuple[str, Type], ...]
    comments: Mapping[str, str]
    event_time: str | None
    newest_by: Choice["log", "source", "event_time"]
    unique: tuple[str, ...]
    comment: str | None
    properties: Mapping[str, str]
    topic_place: Span | None
    format: str
    key_format: KeyFormat
    encodings: Encodings
    values: ValueSql | None
    sql: str

    @property
    def of_changes(self) -> bool:
        """True if its records are change events: an operation, with the row before and after it."""
        return self.kind == "table" and self.format in DEBEZIUM

    @property
    def order(self) -> tuple[str, ...]:
        """The columns whose first known time orders a record, before its partition and its offset."""
        if self.kind == "stream":
            return (self.event_time or "kafka_timestamp",)
        if self.newest_by == "event_time":
            return (str(self.event_time), "kafka_timestamp")
        return (SOURCE_TIME, LOG_TIME) if self.newest_by == "source" else (LOG_TIME,)

    @property
    def valid_from(self) -> tuple[str, ...]:
        """The columns whose first known time is the beginning of a row version's validity."""
        declared = () if self.event_time in (None, SOURCE_TIME) else (str(self.event_time),)
        of_change = (SOURCE_TIME,) if self.of_changes and self.event_time is not None else ()
        return (*declared, *of_change, "kafka_timestamp")


@dataclass(frozen=True)
class ViewDeclaration:
    """A declared view. `columns` is its list of names, empty without one."""

    name: str
    file: File
    place: Span | None
    select: exp.Expr
    select_text: str
    sql: str
    columns: tuple[tuple[str, Span | None], ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def declaration(file: File, written: Statement, report: Report) -> SourceDeclaration | ViewDeclaration:
    """The declaration in a statement. Reports mistakes that leave it readable, and raises for others."""
    statement = written.tree
    if not isinstance(statement, exp.Create) or statement.kind not in ("TABLE", "VIEW"):
        raise Wrong(
            span(statement),
            f"{statement.key.upper()} is not a declaration",
            "A catalog holds CREATE TABLE … USING kafka, CREATE VIEW … AS SELECT, ALTER VIEW … ADD CONSTRAINT and"
            " CREATE FUNCTION … RETURN.",
        )
    for option, word in {"replace": "OR REPLACE", "exists": "IF NOT EXISTS", "temporary": "TEMPORARY"}.items():
        if statement.args.get(option):
            report(Wrong(span(statement.this), f"CREATE … {word} is not served", f"Leave {word} out."))
    if statement.kind == "TABLE":
        return _source(file, statement, written, report)
    return _view(file, statement, written, report)


def _source(file: File, statement: exp.Create, written: Statement, report: Report) -> SourceDeclaration:
    schema = statement.this
    if not isinstance(schema, exp.Schema):
        raise Wrong(
            span(statement), "the source has no columns", "Write CREATE TABLE name (column TYPE, …) USING kafka …."
        )
    name = _name(schema.this, LONGEST_SOURCE, report)
    clauses = clauses_of(statement, SOURCE_PROPERTIES, report)
    properties, options, using = clauses.properties, clauses.options, clauses.using
    if using is None or using.lower() != "kafka":
        what = f"{'no USING' if using is None else f'USING {using}'}: a source is a Kafka topic"
        report(Wrong(span(schema.this), what, "Write USING kafka OPTIONS (topic '…', format 'json')."))
    listed = _columns(schema, report)
    columns, primary = listed.types, listed.primary
    topic, topic_place = _topic(name, schema, options, report)
    _report_keys(listed, report, span(schema))
    format_ = format_of(options, report)
    changes = format_ in DEBEZIUM
    if changes and not primary:
        report_outside_envelope(format_, columns, report, options["format"][1])
    by_default = format_.removeprefix("debezium-") if changes and primary else "none"
    key_format = _key_format(primary, options, cast("KeyFormat", by_default), report)
    event_time = _event_time(properties, columns, report, of_changes=bool(primary) and changes)
    newest_by = _newest_by(properties, primary, event_time, format_, report)
    _report_without_key(properties, listed, report)
    report_malformed(properties, report)
    properties, start = _fields(properties, columns, report), _start(options, report)
    encodings = encodings_of(columns, primary, format_, properties, options, report)
    again = asked_again(format_, key_format, options, report)
    declared = properties | of_format(format_, options) | start | again
    return SourceDeclaration(
        name=name,
        file=file,
        place=span(schema.this),
        kind="table" if primary else "stream",
        topic=topic,
        columns=tuple(columns.items()),
        comments=listed.comments,
        event_time=event_time,
        newest_by=newest_by,
        unique=listed.unique or primary,
        comment=clauses.comment,
        properties={key: value for key, (value, _) in sorted(declared.items())},
        topic_place=topic_place,
        format=format_,
        key_format=key_format,
        encodings=encodings,
        values=values_of(format_, columns, primary, properties, options, encodings, report),
        sql=written.sql,
    )


def _report_without_key(properties: Options, listed: _Columns, report: Report) -> None:
    """Reports properties that need a key which the source does not declare."""
    if "dedupe_within" in properties and not listed.unique:
        way_out = "Declare what tells an event apart: UNIQUE (id). Or leave dedupe_within out."
        report(Wrong(properties["dedupe_within"][1], "dedupe_within needs UNIQUE", way_out))
    if "index" in properties and not listed.primary:
        report(Wrong(properties["index"][1], "a stream has no index", "Declare it on a view of the stream."))


def _report_keys(listed: _Columns, report: Report, place: Span | None) -> None:
    """Reports key columns whose values cannot identify a table's rows or a stream's events."""
    if listed.primary and listed.unique:
        way_out = (
            "Leave UNIQUE out: of a table, the newest record of each key counts. Or declare a stream of its topic."
        )
        report(Wrong(place, "UNIQUE does not go with a PRIMARY KEY", way_out))
    for what, names in (("PRIMARY KEY", listed.primary), ("UNIQUE", listed.unique)):
        for kind in (listed.types[name] for name in names if name in listed.types):
            if kind.nested or kind.name == "BINARY":
                report(
                    Wrong(
                        place, f"a {what} cannot be of type {kind}", "Take a column that is a number, a text or a time."
                    )
                )


def _key_format(primary: tuple[str, ...], options: Options, default: KeyFormat, report: Report) -> KeyFormat:
    """The format of Kafka's key of a table's record."""
    if "key_format" not in options:
        return default
    value, place = options["key_format"]
    if not primary:
        report(Wrong(place, "a stream has no key_format", "Leave it out, or declare a PRIMARY KEY."))
    key_format = value.lower()
    if key_format not in get_args(KeyFormat):
        *formats, last = map(repr, get_args(KeyFormat))
        report(Wrong(place, f"key_format cannot be {value!r}", f"Write {', '.join(formats)} or {last}."))
    elif len(primary) != 1 and key_format not in ("json", "avro", "protobuf", "none"):
        report(Wrong(place, f"key_format '{key_format}' does not take several columns", "Write key_format 'json'."))
    else:
        return cast("KeyFormat", key_format)
    return "none"


@dataclass(frozen=True)
class _Columns:
    """The columns of a source with their types and comments, and the names in UNIQUE and in PRIMARY KEY."""

    types: Mapping[str, Type]
    comments: Mapping[str, str]
    unique: tuple[str, ...]
    primary: tuple[str, ...]


def _columns(schema: exp.Schema, report: Report) -> _Columns:
    """The columns in a declaration. Reports items that are not columns or keys."""
    columns: dict[str, Type] = {}
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            try:
                _column(item, columns, _names(schema))
            except Wrong as wrong:
                report(wrong)
        elif isinstance(item, exp.Identifier):
            way_out = f"Write {item.name} STRING, or the type that it has."
            report(Wrong(span(item), f"column {item.name} has no type", way_out))
        elif _constraint(item) is None:
            way_out = "Write columns, PRIMARY KEY (…) or UNIQUE (…)."
            report(Wrong(span(item), f"the columns cannot contain {readable(item)}", way_out))
    if not schema.expressions:
        report(Wrong(span(schema), "the source has no columns", "Declare the fields that views use."))
    unique, primary = (_key(word, schema, columns, report) for word in ("UNIQUE", "PRIMARY KEY"))
    return _Columns(columns, _comments(schema.expressions), unique, primary)


def _key(word: str, schema: exp.Schema, columns: Mapping[str, Type], report: Report) -> tuple[str, ...]:
    """The columns of UNIQUE or PRIMARY KEY, or none without it. Reports a second one, and columns that do not exist."""
    declared = {name.lower(): name for name in columns}
    key: tuple[str, ...] = ()
    for item in schema.expressions:
        kind, names = _constraint(item) or ("", ())
        if kind != word:
            continue
        place = span(item) or span(schema.this)
        if not names:
            report(Wrong(place, f"{word} names no column", f"Name the columns: {word} (a, b)."))
        if key:
            report(Wrong(place, f"the source has a second {word}", f"Write one: {word} (a, b)."))
        for name in names:
            if name.lower() not in declared:
                way_out = suggestion(name, columns)
                if name.lower() == "kafka_key":
                    way_out = (
                        "Declare a column for Kafka's key: id STRING PRIMARY KEY, and OPTIONS (…, key_format 'string')."
                    )
                report(Wrong(place, f"there is no column {name}", way_out))
        key = tuple(declared.get(name.lower(), name) for name in names)
    return key


def _fields(properties: Options, columns: Mapping[str, Type], report: Report) -> Options:
    """The properties, with the declared case of column names in those that name a column's field."""
    declared = {name.lower(): name for name in columns}
    fields: Options = {}
    for key, (in_json, place) in properties.items():
        if not key.startswith(OF_FIELD):
            continue
        column = key.removeprefix(OF_FIELD)
        if (name := declared.get(column.lower())) is None:
            report(Wrong(place, f"{key}: there is no column {column}", suggestion(column, columns)))
        elif not in_json:
            report(Wrong(place, f"{key} is empty", f"Write the name of the field in JSON: '{key}' = '{column}'."))
        else:
            fields[f"{OF_FIELD}{name}"] = in_json, place
    comes_from: dict[str, str] = {}
    for name in columns:
        in_json, place = fields.get(f"{OF_FIELD}{name}", (name, None))
        if (other := comes_from.setdefault(in_json, name)) != name:
            place = place or fields[f"{OF_FIELD}{other}"][1]
            way_out = f"Leave one out. A view may show {other} under two names."
            report(Wrong(place, f"columns {other} and {name} come from one field, {in_json}", way_out))
    return {key: value for key, value in properties.items() if not key.startswith(OF_FIELD)} | fields


def _constraint(item: exp.Expr) -> tuple[str, tuple[str, ...]] | None:
    """UNIQUE or PRIMARY KEY, of the source or of one column, with the names in it."""
    if isinstance(item, exp.PrimaryKey):
        return "PRIMARY KEY", tuple(e.name for e in item.expressions)
    if isinstance(item, exp.PrimaryKeyColumnConstraint):
        return "PRIMARY KEY", ()
    if isinstance(item, exp.UniqueColumnConstraint):
        return "UNIQUE", tuple(e.name for e in item.this.expressions) if item.this is not None else ()
    for kind in _constraints_of(item):
        if isinstance(kind, exp.UniqueColumnConstraint):
            return "UNIQUE", (item.name,)
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            return "PRIMARY KEY", (item.name,)
    return None


def _topic(name: str, schema: exp.Schema, options: Options, report: Report) -> tuple[str, Span | None]:
    for option in options:
        if option not in OPTIONS:
            value, place = options[option]
            report(Wrong(place, f"the option {option} is unknown", instead_of_option(option, value)))
    if "topic" not in options:
        way_out = f"Write USING kafka OPTIONS (topic '{name}', format 'json')."
        report(Wrong(span(schema.this), "the source has no topic", way_out))
    topic, place = options.get("topic", (name, None))
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
        way_out = "Use letters, digits, dots, underscores and hyphens."
        if re.search(r"[*,]", topic):
            way_out = "Declare a source for each topic, and a view over all: SELECT * FROM a UNION ALL SELECT * FROM b."
        report(Wrong(place, f"{topic!r} cannot be the name of a Kafka topic", way_out))
    return topic, place


def _start(options: Options, report: Report) -> Options:
    """The option with the start of the source, if it is set."""
    start = {name: options[name] for name in ("start",) if name in options}
    for value, place in start.values():
        try:
            start_of(value)
        except ValueError as error:
            report(Wrong(place, f"start cannot be {value!r}", str(error)))
    return start


_OF_LIST = re.compile("(?i:position|element|key|value) [0-9]+")
"""Names of columns of generators (`split/blocks.py`)."""


def _names(schema: exp.Schema) -> set[str]:
    return {item.name.lower() for item in schema.expressions if isinstance(item, exp.ColumnDef)}


def _refuse_name(item: exp.ColumnDef, columns: Mapping[str, Type], taken: Collection[str]) -> None:
    """Refuses a column whose name is not allowed. Its field may be read into a column of another name."""
    name = item.name

    def way_out(wanted: str) -> str:
        kind = item.args["kind"].sql("spark") if item.args.get("kind") is not None else "STRING"
        numbered = (f"{wanted}_{number}" for number in itertools.count(2))
        free = next(new for new in (wanted, *itertools.islice(numbered, len(taken) + 1)) if new not in taken)
        way_out = f"Write {free} {kind}, and TBLPROPERTIES ('{OF_FIELD}{free}' = {spark_text(name)})"
        return f"{way_out}: that column comes from the field {name}."

    if name.lower().startswith("kafka_"):
        what = f"{name} begins with kafka_, as Lamina's own columns do"
        raise Wrong(span(item), what, way_out(name.lower().removeprefix("kafka_") or "field"))
    if _OF_LIST.fullmatch(name):
        what = f"{name} is a name that Lamina gives to the elements of a list"
        raise Wrong(span(item), what, way_out(name.lower().replace(" ", "_")))
    if name in ICEBERG_COLUMNS:
        what = f"{name} is a column of Iceberg, which stores the master log"
        raise Wrong(span(item), what, way_out(name.strip("_")))
    other = next((column for column in columns if column.lower() == name.lower()), None)
    if other == name:
        raise Wrong(span(item), f"column {name} is declared twice", "Leave one out.")
    if other is not None:
        what = f"columns {other} and {name} differ only in case, which SQL ignores"
        raise Wrong(span(item), what, way_out(name.lower()))


def _column(item: exp.ColumnDef, columns: dict[str, Type], taken: Collection[str]) -> None:
    name, kind = item.name, read(item.args.get("kind"))
    _refuse_name(item, columns, taken)
    _refuse_computed(item)
    if item.args.get("kind") is None:
        raise Wrong(span(item), f"column {name} has no type", f"Write {name} STRING, or the type that it has.")
    if kind is None:
        word, way_out = unknown(item.args["kind"])
        raise Wrong(span(item), f"column {name} has a type that Lamina does not know: {word}", f"Write {way_out}.")
    if (as_map := _without_twins(kind)) != kind:
        what = f"column {name} has two fields whose names differ only in case, which SQL ignores"
        way_out = f"Write {name} {as_map.spark}: the keys of a map may differ only in case."
        raise Wrong(span(item), what, way_out)
    if kind != BINARY and (why := not_in_json(kind)) is not None:
        way_out = "Declare it STRING and take it apart with get_json_object() or unbase64(), or leave it out."
        if (by_text := _with_keys_of_text(kind)) != kind and not_in_json(by_text) is None:
            way_out = f"Write {name} {by_text.spark}: the keys of an object are texts."
        raise Wrong(span(item), f"column {name} has {why}, which JSON does not have", way_out)
    for constraint in item.find_all(exp.ColumnConstraint):
        if isinstance(constraint.kind, exp.CollateColumnConstraint):
            way_out = "Leave it out: texts are compared by their bytes. Compare lower(x) to ignore case."
            raise Wrong(span(item), f"column {name} cannot have a collation", way_out)
        if not isinstance(constraint.kind, _CONSTRAINTS):
            way_out = "Leave it out: a field that a record lacks is NULL."
            raise Wrong(span(item), f"column {name} cannot have a constraint", way_out)
    columns[name] = kind


def _comments(columns: Sequence[exp.Expr]) -> dict[str, str]:
    """The comments of columns by the columns' names."""
    constraints = ((column.name, kind) for column in columns for kind in _constraints_of(column))
    return {name: kind.this.name for name, kind in constraints if isinstance(kind, exp.CommentColumnConstraint)}


def _constraints_of(column: exp.Expr) -> list[exp.Expr]:
    """The constraints after a column's type."""
    return [one.kind for one in column.args.get("constraints") or [] if isinstance(one, exp.ColumnConstraint)]


def _refuse_computed(item: exp.ColumnDef) -> None:
    """Refuses a column computed from others, which no record has."""
    for constraint in item.find_all(exp.ComputedColumnConstraint):
        if constraint.this is None:
            raise Wrong(span(item), f"column {item.name}: AS has nothing after it", "Write the type of the column.")
        way_out = (
            f"Leave it out, and write a view: {computed_in_view(item, constraint)}. If it is to be the event time,"
            " declare the number itself TIMESTAMP, with TBLPROPERTIES ('epoch' = 'ms')."
        )
        raise Wrong(span(item), f"column {item.name} is computed, but records do not hold it", way_out)


def _without_twins(kind: Type) -> Type:
    """The type with maps in place of structs with fields whose names only differ in case."""

    def as_map(part: Type) -> Type:
        names = {name.lower() for name, _ in part.fields}
        return Type("MAP", key=STRING, element=STRING) if len(names) < len(part.fields) else part

    return rewritten_type(kind, as_map)


def _with_keys_of_text(kind: Type) -> Type:
    """The type with STRING as the key of every map."""
    return rewritten_type(kind, lambda part: replace(part, key=STRING) if part.name == "MAP" else part)


_CONSTRAINTS = (exp.CommentColumnConstraint, exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint)


def _event_time(
    properties: Mapping[str, tuple[str, Span | None]], columns: Mapping[str, Type], report: Report, *, of_changes: bool
) -> str | None:
    if "event_time" not in properties:
        return None
    wanted, place = properties["event_time"]
    if of_changes and wanted.lower() == "source.ts_ms":
        return SOURCE_TIME
    name = next((c for c in columns if c.lower() == wanted.lower()), None)
    if name is None:
        near = suggestion(wanted, columns)
        if of_changes:
            near = f"Write 'source.ts_ms', when the source committed the change, or name a column. {near}"
        way_out = f"Name a column of type TIMESTAMP. {_OF_NUMBERS}" if "(" in wanted else near
        if wanted.lower() == "kafka_timestamp":
            way_out = "Leave event_time out: an event without one happened at its Kafka timestamp."
        elif "." in wanted and wanted.split(".")[0].lower() in {column.lower() for column in columns}:
            way_out = f"Only a column can be the event time. Order by the field in a view: max_by(x, {wanted})."
        report(Wrong(place, f"event_time: there is no column {wanted}", way_out))
    elif columns[name] not in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        more = _OF_CHANGES if of_changes else _OF_NUMBERS
        way_out = f"Declare it TIMESTAMP. {more}" if columns[name].numeric else "Declare it TIMESTAMP."
        report(Wrong(place, f"event_time: {wanted} is {columns[name]}", way_out))
    return name


def _newest_by(
    properties: Options, primary: tuple[str, ...], event_time: str | None, format_: str, report: Report
) -> Choice["log", "source", "event_time"]:
    """The column or rule that decides which record of a key is the newest."""
    default: Choice["log", "source"] = "source" if format_ in DEBEZIUM else "log"
    if "newest_by" not in properties:
        return default
    value, place = properties["newest_by"]
    if not primary:
        report(
            Wrong(place, "a stream has no newest_by", "Leave it out: it says which record of a PRIMARY KEY is newest.")
        )
    match value:
        case "log":
            return "log"
        case "source" if format_ in DEBEZIUM:
            return "source"
        case "source":
            way_out = "Write 'newest_by' = 'log' or 'event_time': only change events have the time of their source."
            report(Wrong(place, f"format {format_!r} does not take newest_by 'source'", way_out))
        case "event_time" if event_time is not None:
            return "event_time"
        case "event_time":
            way_out = "Name the column as well: 'event_time' = 'updated_at'."
            report(Wrong(place, "newest_by 'event_time' needs an event_time", way_out))
        case _:
            pass  # `report_malformed` reports it
    return default


_OF_CHANGES = (
    "If the events come without a schema, say how the connector writes times:"
    " OPTIONS (…, 'time.precision.mode' 'connect'), or TBLPROPERTIES ('epoch' = 'us') for its default."
)
_OF_NUMBERS = "If it is a number in JSON, add its unit: TBLPROPERTIES ('epoch' = 'ms'), or 's', 'us' or 'ns'."


def _view(file: File, statement: exp.Create, written: Statement, report: Report) -> ViewDeclaration:
    target, schema = statement.this, None
    if isinstance(target, exp.Schema):
        target, schema = target.this, target
    name = _name(target, LONGEST_POSTGRES_NAME, report)
    clauses = clauses_of(statement, VIEW_PROPERTIES, report)
    if clauses.using is not None or clauses.options:
        report(Wrong(span(target), "a view has no USING or OPTIONS", "Leave it out."))
    listed = schema.expressions if schema is not None else []
    for item in listed:
        if isinstance(item, exp.ColumnDef) and item.args.get("kind") is not None:
            way_out = "Leave the type out, or CAST in the SELECT."
            report(Wrong(span(item), f"column {item.name} of a view has a type", way_out))
    report_malformed(clauses.properties, report)
    if statement.expression is None:
        raise Wrong(span(target), "the view has no SELECT", "Write CREATE VIEW name AS SELECT ….")
    write_windows_out(statement.expression)
    return ViewDeclaration(
        name=name,
        file=file,
        place=span(target),
        columns=tuple((item.name, span(item)) for item in listed),
        comments=_comments(listed),
        comment=clauses.comment,
        properties={key: value for key, (value, _) in sorted(clauses.properties.items())},
        select=statement.expression,
        select_text=written.select,
        sql=written.sql,
    )


def _name(node: exp.Expr, longest: int, report: Report) -> str:
    name = node.name
    if node.args.get("db"):
        report(Wrong(span(node), f"{node.sql('spark')} has a schema", f"Write the name alone: {name}."))
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name) or len(name) > longest:
        report(
            Wrong(
                span(node),
                f"{name!r} cannot be a name in Spark, Kafka and Postgres alike",
                f"Use small letters, digits and underscores, at most {longest}, not beginning with a digit.",
            )
        )
    if name in ("raw_records", "good_records"):
        report(Wrong(span(node), f"{name} is what Lamina calls records of every source", "Choose another name."))
    return name
