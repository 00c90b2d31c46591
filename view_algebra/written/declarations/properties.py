"""OPTIONS and TBLPROPERTIES of a declaration: the allowed names, the values in a statement, and the format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from view_algebra.compiled import ASK_AGAIN, KeyFormat
from view_algebra.formats import DECODED_KEYS, FORMATS, DeclaredColumns, FormatMistake, ValueSql
from view_algebra.language.encodings import BINARY_MODES, DECIMAL_MODES, FRAMES, SCHEMAS, TIME_MODES, UNITS, Encodings
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME
from view_algebra.language.types import Type
from view_algebra.refusals import Span, Wrong, span, suggestion


def format_of(options: Options, report: Report) -> str:
    """The format of a record's value. Reports an unknown one."""
    value, place = options.get("format", ("json", None))
    if value.lower() in FORMATS:
        return value.lower()
    *formats, last = map(repr, FORMATS)
    report(Wrong(place, f"format cannot be {value!r}", f"Write {', '.join(formats)} or {last}."))
    return "json"


def of_format(format_: str, options: Options) -> Options:
    """The options of the format."""
    return {name: options[name] for name in FORMATS[format_].options if name in options}


def asked_again(format_: str, key_format: KeyFormat, options: Options, report: Report) -> Options:
    """The option that requests missing schemas from the registry again, if it is set."""
    if ASK_AGAIN not in options:
        return {}
    value, place = options[ASK_AGAIN]
    names_schemas = key_format in DECODED_KEYS or (FORMATS[format_].decoder is not None and "schema" not in options)
    if not names_schemas:
        report(Wrong(place, f"{ASK_AGAIN} needs records that name schemas of a registry", "Leave it out."))
    elif not re.fullmatch("[1-9][0-9]{0,5}", value):
        report(Wrong(place, f"{ASK_AGAIN} {value!r} is not a whole number from 1", f"Write it as {ASK_AGAIN} '1'."))
    else:
        return {ASK_AGAIN: options[ASK_AGAIN]}
    return {}


def values_of(
    format_: str,
    columns: Mapping[str, Type],
    primary: tuple[str, ...],
    properties: Options,
    options: Options,
    encodings: Encodings,
    report: Report,
) -> ValueSql | None:
    """The SQL of values as JSON, or None if they are JSON."""
    own, read = of_format(format_, options), FORMATS[format_].read
    for name in [option for option in (*OPTIONS_OF_FORMATS, *MODES) if option in options and option not in own]:
        if read is not None or name in OPTIONS_OF_FORMATS:
            report(Wrong(options[name][1], f"{name} is not an option of format '{format_}'", "Leave it out."))
    if read is None:
        return None
    fields = {name: properties.get(f"{OF_FIELD}{name}", (name, None))[0] for name in columns}
    declared = DeclaredColumns(
        [(fields[name], kind, name in primary) for name, kind in columns.items()],
        encodings.unit is not None,
        {name: value for name, (value, _) in own.items()},
    )
    try:
        return read(declared)
    except FormatMistake as mistake:
        _, place = options.get(mistake.option, options["format"])
        report(Wrong(place, mistake.what, mistake.way_out))
        return None


_INDEX = "columns that readers filter by, e.g. `country, placed_at`: each gets an index"

SOURCE_PROPERTIES = {
    "event_time": "the column that says when an event happened",
    "newest_by": "which record of a PRIMARY KEY is the newest: the last by `log` (default), by `source` (default of"
    " the Debezium formats) or by `event_time` ([how](decisions/13-tables.md))",
    "epoch": "the unit of numbers in columns of times, since 1970: `s`, `ms`, `us` or `ns` (default: they are bad)",
    "partitions": "how many partitions a topic gets if `lamina apply` creates it (default: 4)",
    "quarantine_bytes": "how many bad records are kept, by size; the oldest go first (default: `1 GB`)",
    "quarantine_age": "how long bad records are kept; counts stay as long as their source (default: `90 days`)",
    "on_bad_field": "what a field does that cannot be read: `quarantine` its record (default), or be `null` in it",
    "empty_as_null": "`true`: an empty text is NULL for a number or a time, `[]` is NULL for an object",
    "field.COLUMN": "the field in JSON that a column comes from, e.g. `'field.deleted' = '_deleted'`",
    "index": f"of a table: {_INDEX}",
    "dedupe_within": "how long after an event its copies are recognised, e.g. `1 hour` (default: forever)",
}
"""Properties that TBLPROPERTIES of a source may set."""

MODES: dict[str, tuple[str, ...]] = {
    "time.precision.mode": tuple(TIME_MODES),
    "decimal.handling.mode": DECIMAL_MODES,
    "binary.handling.mode": BINARY_MODES,
    "schemas.enable": SCHEMAS,
    "frame": FRAMES,
}
"""Options for the encodings in JSON, with their values: Kafka Connect's and Debezium's settings, except for `frame`."""

UNAVAILABLE = "unavailable.value.placeholder"
"""Debezium's setting for the placeholder of a value that a change left unchanged."""

OPTIONS_OF_FORMATS = {
    name: "; ".join(row.options[name] for row in FORMATS.values() if name in row.options)
    for name in dict.fromkeys(name for row in FORMATS.values() for name in row.options)
}
"""Options of single formats, with their meanings."""

OPTIONS = ("topic", "start", "format", "key_format", *MODES, UNAVAILABLE, *OPTIONS_OF_FORMATS, ASK_AGAIN)
"""All OPTIONS of a source."""

OF_FIELD = "field."
"""Prefix of the properties that name a column's field in JSON."""

VIEW_PROPERTIES = {
    "fresh_within": "how far the view may be behind, e.g. `5 seconds`: an alarm says if it is further",
    "index": _INDEX,
    "keep_generations": "how many older generations stay current, to roll back to (default: 1)",
    "on_failure": "what happens when a check of the view fails: `block` (default) or `warn`",
    "keep_versions": "how many older versions stay current, to return to, when its cells change (default: 1)",
    "on_difference": "what happens when a proof finds a difference: `publish` (default) or `hold`",
    "rebuild_every": "the least age at which a nightly rebuild includes the view, e.g. `7 days` (default: every night)",
    "renamed_from": "the name that the view had: its cells stay. It has no effect once applied",
    "retain": "for example `90 days`: older groups or rows leave at a hand-over ([how](decisions/10-retain.md))",
}
"""Properties that TBLPROPERTIES of a view may set."""

_AGE = r"[1-9]\d{0,4} (day|week|month|year)s?"
_TIME = r"[1-9]\d{0,4} (minute|hour|day|week)s?"

_SPAN = r"[1-9]\d{0,4} (second|minute|hour)s?"

_FORMS = {
    "newest_by": (r"log|source|event_time", "Write 'log', 'source' or 'event_time'."),
    "epoch": ("|".join(UNITS), "Write 's', 'ms', 'us' or 'ns'."),
    "partitions": (r"[1-9]\d{0,5}", "Write a whole number from 1, for example 'partitions' = '4'."),
    "quarantine_bytes": (r"[1-9]\d{0,5} (kB|MB|GB|TB)", "Write 'quarantine_bytes' = '1 GB'."),
    "quarantine_age": (_AGE, "Write 'quarantine_age' = '90 days'."),
    "dedupe_within": (_TIME, "Write 'dedupe_within' = '1 hour'."),
    "on_bad_field": (r"quarantine|null", "Write 'quarantine' or 'null'."),
    "empty_as_null": (r"true|false", "Write 'true' or 'false'."),
    "on_failure": (r"block|warn", "Write 'block' or 'warn'."),
    "on_difference": (r"publish|hold", "Write 'publish' or 'hold'."),
    "keep_generations": (r"\d{1,3}", "Write a whole number, for example '1'."),
    "keep_versions": (r"\d{1,3}", "Write a whole number, for example '1'."),
    "fresh_within": (_SPAN, "Write 'fresh_within' = '5 seconds'."),
    "rebuild_every": (_AGE, "Write 'rebuild_every' = '7 days'."),
    "renamed_from": (rf"\w{{1,{LONGEST_POSTGRES_NAME}}}", "Write the name that the view had, for example 'old_name'."),
    "retain": (_AGE, "Write 'retain' = '90 days'."),
}
"""Forms of properties' values, with the way to write one."""

Report = Callable[[Wrong], None]
"""Reports a mistake that leaves the statement readable."""

Options = dict[str, tuple[str, Span | None]]
"""Values of options or properties by name, with their places."""


@dataclass(frozen=True)
class CreateClauses:
    """The clauses of a CREATE: TBLPROPERTIES, OPTIONS, the comment, and the word after USING."""

    properties: Options
    options: Options
    comment: str | None
    using: str | None


def clauses_of(statement: exp.Create, allowed: Collection[str], report: Report) -> CreateClauses:
    """The clauses of a CREATE. Reports other clauses, and properties that are not allowed."""
    properties: Options = {}
    options: Options = {}
    comment: str | None = None
    using: str | None = None
    clause = statement.args.get("properties")
    for item in clause.expressions if clause is not None else []:
        if isinstance(item, exp.OptionsProperty):
            for option in item.expressions:
                options[_key(option.this).lower()] = (option.args["value"].name, span(option))
        elif isinstance(item, exp.SchemaCommentProperty):
            comment = item.this.name
        elif isinstance(item, exp.FileFormatProperty):
            using = item.text("this") or None
        elif type(item) is exp.Property:
            name = item.this.name
            if name not in allowed and not (name.startswith(OF_FIELD) and allowed is SOURCE_PROPERTIES):
                report(Wrong(span(item), f"the property {name!r} is unknown", _instead_of_property(item, allowed)))
            properties[name] = (item.args["value"].name, span(item))
        else:
            word = _CLAUSES.get(type(item)) or item.key.upper().removesuffix("PROPERTY")
            report(Wrong(span(item) or span(statement.this), f"{word} is not served", _LEFT_OUT.get(word, _OUT)))
    return CreateClauses(properties, options, comment, using)


_CLAUSES: dict[type[exp.Expr], str] = {
    exp.PartitionedByProperty: "PARTITIONED BY",
    exp.ClusteredByProperty: "CLUSTERED BY",
    exp.ClusterProperty: "CLUSTER BY",
    exp.LocationProperty: "LOCATION",
}
"""Names of other clauses of CREATE."""

_OUT = "Leave it out."
_LEFT_OUT = {"MATERIALIZED": "Leave it out: every view is kept up to date as records come."}


def _instead_of_property(item: exp.Property, allowed: Collection[str]) -> str:
    """The way out for an unknown property, which may be an option or another system's."""
    name, value = item.this.name, item.args["value"].name
    if allowed is SOURCE_PROPERTIES and (name in OPTIONS or name in _OF_OPTIONS):
        return f"Write it in OPTIONS: {_OF_OPTIONS.get(name, name)} '{value.lower() if 'format' in name else value}'."
    return suggestion(name, allowed)


def instead_of_option(name: str, value: str) -> str:
    """The way out for an unknown option, which may be a property or another system's."""
    if name in SOURCE_PROPERTIES or name.startswith(OF_FIELD):
        return f"Write it in TBLPROPERTIES: '{name}' = '{value}'."
    return f"Write {_OF_OPTIONS[name]} '{value}'." if name in _OF_OPTIONS else suggestion(name, OPTIONS)


_OF_OPTIONS = {
    **dict.fromkeys(("kafka_topic", "subscribe", "topics"), "topic"),
    **dict.fromkeys(("value_format", "value.format"), "format"),
    "key.format": "key_format",
    **dict.fromkeys(("startingoffsets", "auto.offset.reset", "scan.startup.mode"), "start"),
}
"""Options of other systems, with their equivalents here."""


def _key(node: exp.Expr) -> str:
    """The name of an option, which may have dots and quotes in Spark."""
    return node.sql("spark").replace("`", "") if isinstance(node, exp.Dot) else node.name


def report_malformed(properties: Options, report: Report) -> None:
    """Reports values that do not have the form of their property."""
    for name, (pattern, way_out) in _FORMS.items():
        if name in properties and not re.fullmatch(pattern, properties[name][0]):
            value, place = properties[name]
            report(Wrong(place, f"{name} cannot be {value!r}", way_out))
