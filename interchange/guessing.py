"""Types for the fields of undeclared records, guessed from values.

A guess loses no information: a whole number that may grow is a BIGINT, a field of several types is a STRING, and digits
that are not a number (`01067`) stay text. Values are added one by one (`Statistics.note`), and only their statistics
are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Any, Literal

from interchange.column_types.nested_types import WIDEST, map_type, struct_or_map
from interchange.json_text import Number, as_text
from interchange.json_values import fits
from view_algebra.language.encodings import UNITS
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    Type,
)

CATEGORIES = 50
"""Most distinct values of a category, and thus most that are counted."""

HEADROOM = 100
"""Factor by which the largest value may grow and still fit an INT. Otherwise the field is a BIGINT."""

PRECISION = 18
"""Digits of a DECIMAL whose values need no more: a processor computes them in one word."""

CENTS = 2
"""Least digits after the point of a DECIMAL. Fractions of at most this many digits count as amounts."""

LONGEST_SCALE = 4
"""Fractions that all have the same number of digits count as amounts up to this many (rates have 4)."""

DOUBLE_DIGITS, MOST_DOUBLE_DIGITS = 15, 17
"""A DOUBLE holds any number of 15 digits. The shortest text of a DOUBLE has at most 17."""

_LONG_NUMBERS = Context(prec=1_000)

ENOUGH = 20
"""Values from which an equal number of digits cannot be a coincidence."""

DEEPEST = 8
"""Levels of nested objects that get types of their own. Deeper ones stay JSON text."""

SHARE = 3
"""An object is a MAP if its values have, on average, less than 1 in 3 of all its keys: the keys are then data."""

FEW = 8
"""Keys that any STRUCT may have, however rare they are."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of `'epoch'`, by their number in a second."""

PLAUSIBLE = (946_684_800, 2_208_988_800)
"""Seconds since 1970 of the years 2000 to 2039: a number between them may be a time."""

_TIME_NAME = re.compile(
    r"(?i:time|stamp|epoch|when|created|updated|changed|modified|(^|[_.\- ])(date|at|ts|t|on)$)|[a-z](At|Date)$"
)
_OTHER_NAME = re.compile(r"(?i)id$|key|phone|mobile|fax|tel|number|num$|nr$|code|ean|isbn|account|serial|amount|count")
"""Names of fields that hold times, and of fields whose long numbers are not times."""

ID_NAME = re.compile(r"(?i:(^|[_.\- ])(uu)?id$|(^|[_.\- ])(key|no|nr|number|uuid)$)|[a-z0-9](Id|ID|No|Key)$")
"""Names of fields that may identify records."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?( ?(?:Z|[+-]\d{2}(?::?\d{2})?))?")
_LIKE_A_TIME = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T,]+\d{1,2}:\d{2}.*)?|\d{1,2}[ /][A-Z][a-z]{2}[ /]\d{4}.*"
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+|\+\d+")
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,999})")
_FRACTION = re.compile(r"-?(?:(?:0|[1-9]\d*)\.\d*|\.\d+)")
_EXPONENT = re.compile(r"-?\d+(?:\.\d*[eE][+-]?|[eE][+-])\d{1,3}|NaN|-?Infinity")


ValueKind = Literal["boolean", "whole", "fraction", "text", "empty", "object", "list"]
"""Kinds of values. A text is `empty` if it has no characters but blanks."""

TextForm = Literal["date", "instant", "leading zero", "number", "like a time", "other"]
"""Forms of texts. One that is `like a time` is not in ISO 8601."""


def typed(text: str) -> Any:
    """The JSON value of a CSV field, or its text if it is neither a number nor a boolean.

    >>> [typed(text) for text in ("7", "01067", "12.50", "true", "", "1,5")]
    [7, '01067', Decimal('12.50'), True, None, '1,5']
    """
    if text == "":
        return None
    stripped = text.strip()
    if _WHOLE.fullmatch(stripped):
        return int(stripped)
    if _FRACTION.fullmatch(stripped):
        return Decimal(stripped)
    if _EXPONENT.fullmatch(stripped):
        return Number(stripped)
    return {"true": True, "false": False}.get(stripped.lower(), text)


@dataclass
class Statistics:
    """Statistics of one field's values.

    different: the count of each distinct value, up to `CATEGORIES` values
    many: there are more
    hashes: the hashes of all values, to learn if all are distinct. None once two are equal, or if nobody needs it
    inexact: a number is written with an exponent, or is too large for a DECIMAL
    is_beyond_double: a number has digits that a DOUBLE does not hold
    is_padded: a number in a text ends in a zero, such as 1.10, which a number would lose
    """

    nulls: int = 0
    kinds: Counter[ValueKind] = field(default_factory=Counter)
    lowest: Decimal | None = None
    highest: Decimal | None = None
    earliest: str = ""
    latest: str = ""
    whole_digits: int = 0
    scales: tuple[int, int] | None = None
    inexact: bool = False
    is_beyond_double: bool = False
    is_padded: bool = False
    has_cents: bool = False
    zoneless: int = 0
    different: Counter[str] = field(default_factory=Counter)
    many: bool = False
    texts: Counter[TextForm] = field(default_factory=Counter)
    fields: dict[str, Statistics] = field(default_factory=dict)
    element: Statistics | None = None
    hashes: set[int] | None = None

    @property
    def values(self) -> int:
        """The number of values that are not null."""
        return self.kinds.total()

    @property
    def is_unique(self) -> bool:
        """True if all values are known to be distinct."""
        return bool(self.hashes)

    def note(self, value: Any, depth: int = 0) -> None:
        """Adds one value, or None for a field that the record lacks."""
        match value:
            case None:
                self.nulls += 1
                return
            case bool():
                self.kinds["boolean"] += 1
            case int():
                self._number(value, Decimal(value) if abs(value) < 10**MAX_PRECISION else None)
            case float() | Decimal():
                self._number(value, _exact(value))
            case str():
                self._text(value)
            case dict():
                self._object(value, depth)
            case list():
                self._list(value, depth)
            case _:  # a time or bytes of Parquet
                self._text(as_text(value))
        self._tell_apart(value)

    def _number(self, value: Any, exact: Decimal | None) -> None:
        whole = isinstance(value, int)
        self.kinds["whole" if whole else "fraction"] += 1
        self.is_beyond_double = self.is_beyond_double or not _is_held(value)
        if exact is None:
            self.inexact = True
            return
        self.lowest = exact if self.lowest is None else min(self.lowest, exact)
        self.highest = exact if self.highest is None else max(self.highest, exact)
        self.whole_digits = max(self.whole_digits, len(str(abs(int(exact)))))
        if not whole:
            scale = max(0, -int(exact.as_tuple().exponent))
            least, most = self.scales or (scale, scale)
            self.scales = (min(least, scale), max(most, scale))
            self.has_cents = self.has_cents or exact != int(exact)
            self.is_padded = self.is_padded or (isinstance(value, Decimal) and scale > 1 and str(value).endswith("0"))

    def _text(self, text: str) -> None:
        if not text.strip():
            self.kinds["empty"] += 1
            return
        self.kinds["text"] += 1
        form, has_zone = _form(text.strip())
        self.texts[form] += 1
        self.zoneless += form == "instant" and not has_zone
        if form in ("date", "instant"):
            self.earliest = min(self.earliest or text, text)
            self.latest = max(self.latest, text)

    def _object(self, value: Mapping[str, Any], depth: int) -> None:
        self.kinds["object"] += 1
        if depth < DEEPEST:
            for name, part in value.items():
                if name in self.fields or len(self.fields) <= WIDEST:
                    self.fields.setdefault(name, Statistics()).note(part, depth + 1)

    def _list(self, value: list[Any], depth: int) -> None:
        self.kinds["list"] += 1
        if depth < DEEPEST:
            self.element = self.element or Statistics()
            for part in value:
                self.element.note(part, depth + 1)

    def _tell_apart(self, value: Any) -> None:
        if isinstance(value, (dict, list)):
            self.hashes = None
            return
        text = json.dumps(value) if isinstance(value, bool) else str(value)
        if self.hashes is not None:
            before = len(self.hashes)
            self.hashes.add(hash(text))
            self.hashes = self.hashes if len(self.hashes) > before else None
        if self.many:
            return
        self.different[text] += 1
        if len(self.different) > CATEGORIES:
            self.many, self.different = True, Counter()


def _is_held(value: Any) -> bool:
    """True if a DOUBLE holds all digits of a number's text.

    >>> _is_held(Decimal("0.1234567890123456")), _is_held(Decimal("0.12345678901234567890")), _is_held(2**53 + 1)
    (True, False, False)
    """
    text = value.text if isinstance(value, Number) else str(value)
    if len(text) <= DOUBLE_DIGITS or text.strip("+-") in ("NaN", "Infinity"):
        return True
    written = Decimal(text)
    digits = len(written.normalize(_LONG_NUMBERS).as_tuple().digits)
    if digits > MOST_DOUBLE_DIGITS:
        return False
    with suppress(OverflowError):
        return Decimal(format(float(value), f".{digits}g")) == written
    return False


def _exact(value: Any) -> Decimal | None:
    """A fraction with all digits of its text, or None if only a DOUBLE can hold it."""
    if isinstance(value, Decimal):
        return value
    text = value.text if isinstance(value, Number) else repr(value)
    return Decimal(text) if math.isfinite(value) and "e" not in text.lower() else None


def _form(text: str) -> tuple[TextForm, bool]:
    """The form of a text, and True if the text is a time with a zone."""
    if _DATE.fullmatch(text) and fits(DATE, text):
        return "date", False
    if (match := _INSTANT.fullmatch(text)) and fits(TIMESTAMP, text):
        return "instant", bool(match[1])
    if _LEADING_ZERO.fullmatch(text):
        return "leading zero", False
    if _WHOLE.fullmatch(text) or _FRACTION.fullmatch(text):
        return "number", False
    return ("like a time" if _LIKE_A_TIME.fullmatch(text) else "other"), False


def guess(seen: Statistics, depth: int = 0) -> Type:
    """The type that takes every value. Values of several kinds are a STRING, which takes any value."""
    match sorted(kind for kind in seen.kinds if kind != "empty"):
        case ["boolean"]:
            return BOOLEAN
        case ["whole"]:
            return _whole(seen)
        case ["fraction"] | ["fraction", "whole"]:
            return _fraction(seen)
        case ["text"] if set(seen.texts) == {"date"}:
            return DATE
        case ["text"] if set(seen.texts) <= {"date", "instant"}:
            return TIMESTAMP
        case ["object"] if depth < DEEPEST:
            return _object_type(seen, depth)
        case ["list"] if depth < DEEPEST:
            return Type("ARRAY", element=guess(seen.element or Statistics(), depth + 1))
    return STRING


def _whole(seen: Statistics) -> Type:
    if seen.inexact or seen.lowest is None or seen.highest is None:
        return STRING
    largest = max(abs(seen.lowest), abs(seen.highest))
    if largest * HEADROOM < 1 << 31:
        return INT
    return BIGINT if largest < 1 << 63 else Type("DECIMAL", MAX_PRECISION, 0)


def _fraction(seen: Statistics) -> Type:
    least, most = seen.scales or (0, 0)
    amounts = most <= CENTS or (most <= LONGEST_SCALE and least == most and seen.kinds["fraction"] >= ENOUGH)
    number = STRING if seen.is_beyond_double else DOUBLE
    if seen.is_padded and least < most:
        return STRING
    if seen.inexact or not ((seen.has_cents and amounts) or seen.is_beyond_double):
        return number
    scale = max(CENTS, most)
    if seen.whole_digits + scale < PRECISION:
        return Type("DECIMAL", PRECISION, scale)
    return Type("DECIMAL", MAX_PRECISION, scale) if seen.whole_digits + scale < MAX_PRECISION else number


def _object_type(seen: Statistics, depth: int) -> Type:
    """A STRUCT if the objects share a few fields, or a MAP if their keys are data."""
    parts = {name: guess(part, depth + 1) for name, part in seen.fields.items()}
    many = len(parts) > FEW and sum(part.values + part.nulls for part in seen.fields.values()) * SHARE < (
        len(parts) * seen.kinds["object"]
    )
    return map_type(parts) if many else struct_or_map(parts)


def unit_of(name: str, seen: Statistics) -> str | None:
    """The unit of a field whose numbers may be times since 1970, or None.

    >>> seen = Statistics()
    >>> seen.note(1_700_000_000_123)
    >>> unit_of("at", seen), unit_of("user_id", seen)
    ('ms', None)
    """
    named = bool(_TIME_NAME.search(name))
    numbers = {"whole", "fraction"} >= {kind for kind in seen.kinds if kind != "empty"}
    if (
        not numbers
        or seen.inexact
        or seen.lowest is None
        or seen.highest is None
        or (not named and _OTHER_NAME.search(name))
    ):
        return None
    for unit, parts in PER_SECOND.items():
        first, last = (second * parts for second in PLAUSIBLE)
        if first <= seen.lowest and seen.highest < last:
            whole = "fraction" not in seen.kinds or unit in ("s", "ms")
            return unit if whole and (named or unit == "ms") else None
    return None


def since_1970(unit: str) -> Type:
    """A TIMESTAMP written as a number in this unit."""
    return replace(TIMESTAMP, unit=UNITS[unit])


def has_empty(seen: Statistics, kind: Type) -> bool:
    """True if an empty text occurs that the type cannot hold, so that it has to be NULL."""
    if kind != STRING and seen.kinds["empty"]:
        return True
    if kind.element is not None:
        parts = [seen.element] if seen.element else list(seen.fields.values())
        return any(has_empty(part, kind.element) for part in parts)
    return any(has_empty(seen.fields[name], part) for name, part in kind.fields if name in seen.fields)
