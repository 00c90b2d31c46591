"""The format of a source's values, and what OPTIONS say of it."""

from __future__ import annotations

from collections.abc import Mapping

from view_algebra.compiled import DEBEZIUM
from view_algebra.formats import FORMATS, Declared, Mistake, Read
from view_algebra.language.encodings import Encodings
from view_algebra.language.types import Type
from view_algebra.refusals import Wrong
from view_algebra.written.properties import MODES, OF_FIELD, OPTIONS_OF_FORMATS, Found, Report


def format_of(options: Found, report: Report) -> str:
    """What a record's value is: a JSON object, a change of a row, or of another format."""
    value, place = options.get("format", ("json", None))
    known = list(dict.fromkeys(["json", *DEBEZIUM, *FORMATS]))
    if value.lower() in known:
        return value.lower()
    listed = ", ".join(f"'{each}'" for each in known[:-1])
    report(Wrong(place, f"format {value!r}", f"Write {listed} or '{known[-1]}'."))
    return "json"


def of_format(format_: str, options: Found) -> Found:
    """What OPTIONS say of the format alone."""
    own = FORMATS[format_].options if format_ in FORMATS else {}
    return {name: options[name] for name in own if name in options}


def values_of(
    format_: str,
    columns: Mapping[str, Type],
    primary: tuple[str, ...],
    properties: Found,
    options: Found,
    encodings: Encodings,
    report: Report,
) -> Read | None:
    """How values become JSON; None if they are JSON."""
    own = of_format(format_, options)
    for name in [each for each in (*OPTIONS_OF_FORMATS, *MODES) if each in options and each not in own]:
        if format_ in FORMATS or name in OPTIONS_OF_FORMATS:
            report(Wrong(options[name][1], f"{name} is no option of format '{format_}'", "Leave it out."))
    if format_ not in FORMATS:
        return None
    fields = {name: properties.get(f"{OF_FIELD}{name}", (name, None))[0] for name in columns}
    declared = Declared(
        [(fields[name], kind, name in primary) for name, kind in columns.items()],
        encodings.unit is not None,
        {name: value for name, (value, _) in own.items()},
    )
    try:
        return FORMATS[format_].read(declared)
    except Mistake as mistake:
        _, place = options.get(mistake.option, options["format"])
        report(Wrong(place, mistake.what, mistake.way_out))
        return None
