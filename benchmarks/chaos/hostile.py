"""Hostile records by kind, each with its expected outcome: a row or quarantine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from benchmarks.chaos.world import Row, SentRecord

MEGABYTE = 1_000_000

NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
"""The present. Spark would read a time of day alone as today's, so texts near the present are checked for one."""


@dataclass(frozen=True)
class Hostile:
    """A kind of record. `value` makes its value from a unique number. `row` is the expected row, or None for
    quarantine.

    `few` marks large records, only some of which are sent at a time.
    """

    source: str
    value: Callable[[int], bytes | None]
    row: Callable[[int], Row] | None = None
    timestamp_ms: int | None = None
    few: bool = False

    def record(self, number: int) -> SentRecord:
        """The record with this number."""
        row = None if self.row is None else self.row(number)
        return SentRecord(self.value(number), row, self.timestamp_ms)


def _at(*parts: int) -> datetime:
    """An instant, as UTC's wall clock shows it."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[misc,arg-type]


def _same(value: bytes | None) -> Callable[[int], bytes | None]:
    return lambda number: value


def _says(text: str) -> Callable[[int], bytes]:
    """The value with the record's number in place of `#`."""
    return lambda number: text.replace("#", str(number)).encode()


def _is(**row: Any) -> Callable[[int], Row]:
    """The expected row. In texts, `#` stands for the record's number, and `...` is the number itself."""

    def of(number: int) -> Row:
        filled = {name: v.replace("#", str(number)) if isinstance(v, str) else v for name, v in row.items()}
        return {name: number if value is Ellipsis else value for name, value in filled.items()}

    return of


HOSTILE: Mapping[str, Hostile] = {
    # These must go to quarantine.
    "no value": Hostile("orders", _same(None)),
    "an empty value": Hostile("visits", _same(b"")),
    "white space alone": Hostile("orders", _same(b" \n\t")),
    "a text that is not JSON": Hostile("visits", _says("hello #")),
    "half an object": Hostile("orders", _says('{"id": #, "kind": "re')),
    "a comma too many": Hostile("orders", _says('{"id": #,}')),
    "an array of objects": Hostile("orders", _says('[{"id": #}]')),
    "a number": Hostile("visits", _says("#")),
    "a JSON text": Hostile("visits", _says('"#"')),
    "JSON's null": Hostile("orders", _same(b"null")),
    "text after the object": Hostile("orders", _says('{"id": #} x')),
    "two objects": Hostile("orders", _says('{"id": #}{"id": 1}')),
    "two lines": Hostile("visits", _says('{"ms": #}\n{"ms": 1}')),
    "a text for a number": Hostile("orders", _says('{"id": "no #", "kind": "refund"}')),
    "a fraction for a whole number": Hostile("orders", _says('{"id": #.5}')),
    "a number larger than its type": Hostile("orders", _says('{"n": 9999999999#}')),
    "a decimal that does not fit": Hostile("orders", _says('{"amount": 1234567890123.5, "id": #}')),
    "a time of day alone": Hostile("visits", _says('{"ts": "03:04:05", "ms": #}')),
    "a text that is not a time": Hostile("visits", _says('{"ts": "soon", "ms": #}')),
    "a time in milliseconds": Hostile("visits", _says('{"ts": 1700000000123, "ms": #}')),
    "a time in seconds": Hostile("visits", _says('{"ts": 1700000000, "ms": #}')),
    "the year 0": Hostile("orders", _says('{"ts": "0000-01-01T00:00:00Z", "id": #}')),
    "the year 12024": Hostile("orders", _says('{"ts": "+12024-01-01T00:00:00Z", "id": #}')),
    "U+0000": Hostile("orders", _says('{"customer": "a\\u0000#"}')),
    "a scalar for a record": Hostile("orders", _says('{"payload": 5, "id": #}')),
    "a wrong field deep inside": Hostile("orders", _says('{"payload": {"device": [1]}, "id": #}')),
    "five thousand levels": Hostile("orders", _same(b'{"z":' + b"[" * 5000 + b"]" * 5000 + b"}")),
    "bytes at random": Hostile("visits", lambda number: bytes((number * k * k) % 251 for k in range(3, 60))),
    "UTF-16": Hostile("orders", lambda number: f'{{"id": {number}}}'.encode("utf-16")),
    "a byte order mark": Hostile("orders", _says('\ufeff{"id": #}')),
    "true for a number": Hostile("visits", _says('{"ms": true, "who": "#"}')),
    "a control character": Hostile("visits", _says('{"who": "a\x01#"}')),
    "NaN for a whole number": Hostile("orders", _says('{"id": NaN, "customer": "#"}')),
    "a day that does not exist": Hostile("visits", _says('{"ts": "2024-02-30T00:00:00Z", "ms": #}')),
    "an exponent of a hundred million": Hostile("orders", _says('{"amount": 1e100000000, "id": #}')),
    "a small exponent in a text": Hostile("orders", _says('{"amount": "1e-100000000", "id": #}')),
    "a megabyte of digits": Hostile("orders", lambda number: b'{"amount": "' + b"9" * MEGABYTE + b'"}', few=True),
    "a megabyte that is not JSON": Hostile("visits", lambda number: b"x" * MEGABYTE, few=True),
    # These must be counted.
    "an empty object": Hostile("orders", _same(b"{}"), _is()),
    "white space around": Hostile("orders", _says(' \n{"id": #}\r\n '), _is(id=...)),
    "undeclared fields": Hostile("orders", _says('{"id": #, "more": {"a": []}}'), _is(id=...)),
    "a name in another case": Hostile("orders", _says('{"ID": 1, "Country": "FR", "n": 3}'), _is(n=3)),
    "a field twice": Hostile("orders", _says('{"id": 1, "id": #}'), _is(id=...)),
    "the greatest whole number": Hostile("orders", _says('{"id": 9223372036854775807}'), _is(id=2**63 - 1)),
    "a decimal of more digits": Hostile(
        "orders", _says('{"amount": 1.239, "id": #}'), _is(amount=Decimal("1.24"), id=...)
    ),
    "NaN": Hostile("visits", _says('{"ratio": "NaN", "page": "/nan"}'), _is(ratio=math.nan, page="/nan")),
    "a double beyond doubles": Hostile(
        "visits", _says('{"ratio": 1e400, "page": "/inf"}'), _is(ratio=math.inf, page="/inf")
    ),
    "U+0000 spelled out": Hostile(
        "orders", _says('{"customer": "\\\\u0000", "id": #}'), _is(customer="\\u0000", id=...)
    ),
    "five hundred levels": Hostile(
        "orders", lambda number: b'{"z":' + b"[" * 500 + b"]" * 500 + b', "id": %d}' % number, _is(id=...)
    ),
    "an object for a text": Hostile("orders", _says('{"customer": {"a": #}}'), _is(customer='{"a":#}')),
    "the year 9000": Hostile(
        "orders", _says('{"ts": "9000-12-31T10:00:00Z", "n": 1}'), _is(ts=_at(9000, 12, 31, 10), n=1)
    ),
    "the last hour of 9999": Hostile(
        "orders", _says('{"ts": "9999-12-31T23:30:00Z", "n": 2}'), _is(ts=_at(9999, 12, 31, 23, 30), n=2)
    ),
    "the year 2": Hostile(
        "visits", _says('{"ts": "0002-01-02T10:05:00Z", "ms": 1}'), _is(ts=_at(2, 1, 2, 10, 5), ms=1)
    ),
    "an exponent in a whole number": Hostile("orders", _says('{"n": 1e3, "id": #}'), _is(n=1000, id=...)),
    "a number in a text": Hostile("orders", _says('{"id": "#", "n": "7"}'), _is(id=..., n=7)),
    "a number of 1,200 digits": Hostile("visits", _says('{"ratio": ' + "9" * 1200 + "}"), _is(ratio=math.inf)),
    "braces in a text": Hostile("orders", _says('{"customer": "}{#"}'), _is(customer="}{#")),
    "bytes that are not UTF-8": Hostile(
        "orders", lambda n: b'{"kind": "\xff\xfe", "id": %d}' % n, _is(kind="\ufffd\ufffd", id=...)
    ),
    "half a surrogate pair": Hostile("orders", _says('{"kind": "\\ud800", "id": #}'), _is(kind="?", id=...)),
    "single quotes": Hostile("orders", _says("{'id': #}"), _is(id=...)),
    "a time zone of fourteen hours": Hostile(
        "visits", _says('{"ts": "2024-01-01T00:00:00+14:00"}'), _is(ts=_at(2023, 12, 31, 10))
    ),
    "six thousand spaces next to today": Hostile(
        "orders",
        lambda number: f'{{"ts": "{NOW.isoformat()}Z", "customer": "{" " * 6000}", "id": {number}}}'.encode(),
        _is(ts=NOW, customer=" " * 6000, id=...),
    ),
    "a megabyte of spaces next to today": Hostile(
        "orders",
        lambda number: f'{{"ts": "{NOW.isoformat()}Z", "customer": "{" " * MEGABYTE}"}}'.encode(),
        _is(ts=NOW, customer=" " * MEGABYTE),
        few=True,
    ),
    "a megabyte in a text": Hostile(
        "orders",
        lambda number: b'{"kind": "refund", "customer": "' + b"x" * MEGABYTE + b'"}',
        lambda number: {"kind": "refund", "customer": "x" * MEGABYTE},
        few=True,
    ),
    "a producer's clock at 1970": Hostile("orders", _says('{"id": #}'), _is(id=...), timestamp_ms=0),
    "a producer's clock before the year 1": Hostile(
        "orders", _says('{"id": #}'), _is(id=...), timestamp_ms=-62_150_000_000_000
    ),
    "a producer's clock at 9999": Hostile("orders", _says('{"id": #}'), _is(id=...), timestamp_ms=253_370_764_800_000),
}
"""Kinds by name. Records that only differ by an escape or by a reader's limit cost other systems a night."""
