"""The declared encodings of a source's values, and the columns of Debezium's envelope."""

from __future__ import annotations

from collections.abc import Mapping

from view_algebra.compiled import DEBEZIUM
from view_algebra.language.encodings import PLACEHOLDER, TIME_MODES, UNITS, Encodings
from view_algebra.language.quoting import words
from view_algebra.language.types import CALENDAR, Type, inside
from view_algebra.refusals import Span, Wrong
from view_algebra.written.declarations.properties import MODES, OF_FIELD, UNAVAILABLE, Options, Report


def encodings_of(
    columns: Mapping[str, Type],
    primary: tuple[str, ...],
    format_: str,
    properties: Options,
    options: Options,
    report: Report,
) -> Encodings:
    """The declared encodings of times, decimals and bytes."""
    settings: dict[str, str] = {}
    for name in [mode for mode in MODES if mode in options]:
        value, place = options[name]
        if value in MODES[name]:
            settings[name] = value
        else:
            listed = ", ".join(f"'{value}'" for value in MODES[name])
            says = "" if name == "frame" else "what the connector's configuration says: "
            report(Wrong(place, f"{name} cannot be {value!r}", f"Write {says}{listed}."))
    epoch, place = properties.get("epoch", (None, None))
    times = settings.get("time.precision.mode")
    if epoch and not any(part.name in CALENDAR for kind in columns.values() for part in inside(kind)):
        report(Wrong(place, "epoch needs a column of times", "Declare the column TIMESTAMP, or leave epoch out."))
    if epoch and times and TIME_MODES[times] not in (None, epoch):
        way_out = "Leave epoch out, or the mode if it is not the connector's."
        report(
            Wrong(
                place,
                f"epoch {epoch!r} contradicts time.precision.mode {times!r}, which is {TIME_MODES[times]}",
                way_out,
            )
        )
    changes = format_ in DEBEZIUM
    schemas = settings.pop("schemas.enable", None) == "true"
    framed = "frame" in settings and settings.pop("frame") == "registry"
    flattened = _flattened(columns, properties) or bool(settings)
    return Encodings(
        changes=changes,
        envelope=changes and not primary,
        epoch=epoch if epoch in UNITS else None,
        times=times,
        decimals=settings.get("decimal.handling.mode"),
        binaries=settings.get("binary.handling.mode"),
        schemas=schemas and not changes,
        framed=framed,
        placeholder=_placeholder(primary, options, report, of_connector=changes or flattened),
    )


def _flattened(columns: Mapping[str, Type], properties: Options) -> bool:
    """True if records are changes that Debezium's ExtractNewRecordState has flattened."""
    fields = {properties.get(f"{OF_FIELD}{name}", (name, None))[0] for name in columns}
    return not fields.isdisjoint(("__deleted", "__op"))


def _placeholder(primary: tuple[str, ...], options: Options, report: Report, *, of_connector: bool) -> str | None:
    """The placeholder of a value that a change left unchanged: the declared one, or Debezium's default."""
    if UNAVAILABLE not in options:
        return PLACEHOLDER if primary and of_connector else None
    value, place = options[UNAVAILABLE]
    if not primary:
        report(Wrong(place, f"a stream has no {UNAVAILABLE}", "Leave it out: a stream shows changes as they are."))
    if not value or value.startswith("hex:"):
        way_out = "Write the text that the records have, as the connector's configuration says it."
        report(Wrong(place, f"{UNAVAILABLE} cannot be {value!r}", way_out))
    return value


def report_outside_envelope(format_: str, columns: Mapping[str, Type], report: Report, place: Span | None) -> None:
    """Reports columns outside of the envelope: a change's row columns are inside `before` and `after`."""
    if others := [name for name in columns if name not in EVENT_FIELDS]:
        if others == ["payload"]:
            way_out = "Declare the fields of payload as the columns: op STRING, after STRUCT<…>, ts_ms TIMESTAMP."
            report(Wrong(place, f"format '{format_}' reads payload, which holds the columns of the event", way_out))
            return
        row = ", ".join(f"{name}: {columns[name]}" for name in others)
        way_out = (
            f"Declare the key of the rows that they change: PRIMARY KEY (…). Or a stream of the changes:"
            f" CREATE TABLE … (op STRING, after STRUCT<{row}>, ts_ms TIMESTAMP)."
        )
        report(Wrong(place, f"format '{format_}' without a PRIMARY KEY has no column {others[0]}", way_out))


EVENT_FIELDS = words("op before after source transaction ts_ms ts_us ts_ns message updateDescription")
"""Fields of Debezium's change events."""
