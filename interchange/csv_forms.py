"""The forms of NULL and times in a CSV file. CSV itself defines none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from interchange.json_values import from_text
from view_algebra.errors import LaminaError
from view_algebra.language.types import Type

_TIME_OF_DAY = re.compile("%[HIMSfpXc]")
_DAY = re.compile("%[cx]|(?=.*%[Yy])(?=.*%(?:d.*%[mbB]|[mbB].*%d|j))")
"""Formats with a time of day, and formats with year, month and day."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")


@dataclass(frozen=True)
class CsvForms:
    """The forms of NULL and times in one file.

    nulls: texts that mean NULL, besides the empty one
    times: formats of times and dates, in `strptime`'s directives, or ISO 8601 if there are none. The first format that
        fits a text reads it
    """

    nulls: Sequence[str] = ()
    times: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raises LaminaError for a format without year, month and day."""
        for form in self.times:
            if not _DAY.search(form) or "%Z" in form:  # names of zones depend on the machine
                raise _not_a_format(form)
            try:
                _strptime(datetime.now(UTC).strftime(form), form)
            except (ValueError, re.error) as error:  # a directive that does not exist, or occurs twice
                raise _not_a_format(form) from error

    def check(self, file: str, file_format: str) -> None:
        """Raises LaminaError for options of CSV if the file's format has its own NULL and times."""
        if (self.nulls or self.times) and file_format not in ("csv", "tsv"):
            raise LaminaError(
                f"{file}: --null and --timestamp-format are for CSV and TSV",
                evidence=f"Its format is {file_format}.",
                way_out="Leave them out.",
            )

    def reads(self, kind: Type, text: str) -> bool:
        """True unless the text should be a time and fits no format."""
        is_time = bool(self.times) and kind.name in _TIMES and not kind.unit
        return not is_time or not text or text in self.nulls or self.time(text) is not None

    def value(self, kind: Type, text: str) -> Any:
        """The JSON value of a field.

        >>> forms = CsvForms(["NA"], ["%d/%m/%Y", "%d/%m/%Y %H:%M"])
        >>> [forms.value(Type("TIMESTAMP"), text) for text in ("NA", "31/12/2025", "31/12/2025 08:05")]
        [None, '2025-12-31', '2025-12-31 08:05:00']
        """
        if text in self.nulls:
            return None
        if kind.name in _TIMES and (time := self.time(text)) is not None:
            return time
        return from_text(kind, text)

    def time(self, text: str) -> str | None:
        """The time in ISO 8601, or None for a text that fits no format."""
        for form in self.times:
            with suppress(ValueError):
                moment = _strptime(text.strip(), form)
                return moment.isoformat(" ") if _TIME_OF_DAY.search(form) else moment.date().isoformat()
        return None


def _strptime(text: str, form: str) -> datetime:
    return datetime.strptime(text, form)  # noqa: DTZ007 (a time without a zone is one in UTC to the source)


def _not_a_format(form: str) -> LaminaError:
    return LaminaError(
        f"{form!r} is not a format of times",
        evidence="Wanted: directives of strptime for year, month and day; %z for a zone.",
        way_out="Write it like this: --timestamp-format '%d/%m/%Y %H:%M'.",
    )
