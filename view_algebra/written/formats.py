"""The format of a source's values, and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from view_algebra.compiled import ASK_AGAIN, DEBEZIUM, KeyFormat
from view_algebra.formats import DECODED_KEYS, FORMATS, Declared, Mistake, Read
from view_algebra.language.encodings import Encodings
from view_algebra.language.types import Type
from view_algebra.refusals import Wrong
from view_algebra.written.properties import MODES, OF_FIELD, OPTIONS_OF_FORMATS, Found, Report


def format_of(options: Found, report: Report) -> str:
    """The format of a record's value. Reports an unknown one."""
    value, place = options.get("format", ("json", None))
    formats = list(dict.fromkeys(["json", *DEBEZIUM, *FORMATS]))
    if value.lower() in formats:
        return value.lower()
    listed = ", ".join(f"'{name}'" for name in formats[:-1])
    report(Wrong(place, f"format {value!r}", f"Write {listed} or '{formats[-1]}'."))
    return "json"


def of_format(format_: str, options: Found) -> Found:
    """The options of the format."""
    own = FORMATS[format_].options if format_ in FORMATS else {}
    return {name: options[name] for name in own if name in options}


def asked_again(format_: str, key_format: KeyFormat, options: Found, report: Report) -> Found:
    """The option that requests missing schemas from the registry again, if it is set."""
    if ASK_AGAIN not in options:
        return {}
    value, place = options[ASK_AGAIN]
    names_schemas = key_format in DECODED_KEYS or (_is_decoded(format_) and "schema" not in options)
    if not names_schemas:
        report(Wrong(place, f"{ASK_AGAIN} needs records that name schemas of a registry", "Leave it out."))
    elif not re.fullmatch("[1-9][0-9]{0,5}", value):
        report(Wrong(place, f"{ASK_AGAIN} {value!r} is not a whole number from 1", f"Write it as {ASK_AGAIN} '1'."))
    else:
        return {ASK_AGAIN: options[ASK_AGAIN]}
    return {}


def _is_decoded(format_: str) -> bool:
    return format_ in FORMATS and FORMATS[format_].decoder is not None


def values_of(
    format_: str,
    columns: Mapping[str, Type],
    primary: tuple[str, ...],
    properties: Found,
    options: Found,
    encodings: Encodings,
    report: Report,
) -> Read | None:
    """The reading of values as JSON; None if they are JSON."""
    own = of_format(format_, options)
    for name in [option for option in (*OPTIONS_OF_FORMATS, *MODES) if option in options and option not in own]:
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
