"""Judges lines of JSON as their source will read them: good, bad, or counted with NULL for some fields.

The rules are those of `view_algebra/records/reasons.py`, without Spark. `tests/interchange/test_json_values.py`
compares both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from interchange.json_text import Number, as_written
from interchange.json_values import BLANK, columns, fits, rule
from view_algebra.compiled import Source
from view_algebra.language.long_numbers import BARE_AND_LONG, TOO_LONG, has_decimals
from view_algebra.language.types import STRING, Type
from view_algebra.records.reasons import BEGINS_AGAIN, BYTE_ORDER_MARK

DEEPEST = 1000
"""Most levels of nesting that Spark reads (Jackson's own limit)."""

NOT_UTF8 = "not UTF-8"
ZERO = "a text holds the character U+0000, which Postgres cannot store"

SHOWN = 40
"""Most characters of a value in a reason."""


@dataclass(frozen=True)
class Judgement:
    """The judgement of a line, as its source will read it.

    problem: the reason it is not a record of the source
    with_null: the fields that are NULL because they cannot be read, with the reasons, if the record counts
    is_utf8: False if the source reads replacement characters for some of its bytes
    """

    value: dict[str, Any]
    problem: str | None = None
    with_null: str | None = None
    is_utf8: bool = True


@dataclass(frozen=True)
class Rules:
    """The rules by which a source judges a record.

    columns: the type of each declared field
    nulls: a record with a bad field counts, with NULL for it
    empty_as_null: an empty text is NULL
    needed: fields that make the record bad if they are bad
    primary: fields that must have a value
    """

    columns: Mapping[str, Type]
    nulls: bool = False
    empty_as_null: bool = False
    needed: frozenset[str] = frozenset()
    primary: tuple[str, ...] = ()

    @cached_property
    def _checks(self) -> Sequence[tuple[str, Type, Callable[[Type, Any], bool]]]:
        """Each column with its rule, looked up once because every line needs them."""
        return [(name, kind, rule(kind)) for name, kind in self.columns.items()]

    @cached_property
    def _has_decimals(self) -> bool:
        return any(map(has_decimals, self.columns.values()))

    @classmethod
    def of(cls, source: Source) -> Rules:
        """The rules of a source's declaration."""
        newest = source.properties.get("newest_by") == "event_time"
        needed = (*source.unique, *([source.event_time] if newest and source.event_time else []))
        return cls(
            columns(source),
            nulls=source.counts_bad_fields,
            empty_as_null=source.properties.get("empty_as_null") == "true",
            needed=frozenset(map(source.field, needed)),
            primary=tuple(map(source.field, source.unique)) if source.kind == "table" else (),
        )

    def judged(self, line: bytes) -> Judgement:
        """Judges a line of JSON."""
        if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
            return Judgement({}, "nested too deep")
        try:
            text, is_utf8 = line.decode(), True
        except UnicodeDecodeError:
            text, is_utf8 = line.decode(errors="replace"), False
        value, problem = _object(text)
        if problem is not None:
            return Judgement({}, problem if is_utf8 else NOT_UTF8)
        has_exponent = _EXPONENT.search(text) is not None
        if has_exponent and self._has_decimals and not self.nulls and _BARE_AND_LONG.match(text):
            return Judgement(value, TOO_LONG)
        judgement = self.judged_value(value)
        if has_exponent or judgement.problem or judgement.with_null:  # the reason shows the text of a number
            judgement = self.judged_value(with_written_numbers(text))
        return judgement if is_utf8 else replace(judgement, is_utf8=False)

    def judged_value(self, value: dict[str, Any]) -> Judgement:
        """Judges a record's fields."""
        with_null: list[str] = []
        for name, kind, check in self._checks:
            part = value.get(name)
            if part is None or check(kind, part):
                continue
            if _has_zero_in_key(part):
                return Judgement(value, ZERO)
            wrong = list(self._mistakes(kind, part, name))
            if wrong and (not self.nulls or name in self.needed):
                return Judgement(value, wrong[0])
            with_null += wrong
        for name in self.primary:
            if value.get(name) is None or self._is_null(self.columns.get(name, STRING), value[name]):
                return Judgement(value, f"the primary key is null: {name}")
        return Judgement(value, with_null=", ".join(with_null) or None)

    def _mistakes(self, kind: Type, value: Any, path: str) -> Iterator[str]:
        """The unreadable parts of a value, in words. A list or a map is one part."""
        if fits(kind, value) or self._is_null(kind, value):
            return
        if kind.name == "STRUCT" and isinstance(value, dict):
            for name, part in kind.fields:
                yield from self._mistakes(part, value.get(name), f"{path}.{name}")
        elif kind.element is None or not self._reads_parts(kind, value, path):
            yield f"{path} is {_short(value)}, not {kind.spark}"

    def _reads_parts(self, kind: Type, value: Any, path: str) -> bool:
        """True if every element of a list or value of a map can be read."""
        part = kind.element or STRING
        if kind.name == "MAP" and isinstance(value, dict):
            value = list(value.values())
        elif kind.name == "MAP" or not isinstance(value, list):
            return False
        return not any(next(self._mistakes(part, element, path), None) for element in value)

    def _is_null(self, kind: Type, value: Any) -> bool:
        """True if the value is empty and therefore NULL."""
        if not self.empty_as_null or kind == STRING:
            return False
        return (kind.name in ("STRUCT", "MAP") and value == []) or (isinstance(value, str) and not value.strip(BLANK))


def _has_zero_in_key(value: Any) -> bool:
    """True if a key holds U+0000, since no field can be NULL in place of a key."""
    if isinstance(value, dict):
        return any("\0" in key or _has_zero_in_key(element) for key, element in value.items())
    return isinstance(value, list) and any(map(_has_zero_in_key, value))


def _object(text: str) -> tuple[dict[str, Any], str | None]:
    try:
        value = json.loads(text)
    except RecursionError:
        return {}, "nested too deep"
    except json.JSONDecodeError as error:
        value = _as_spark(text)
        if value is None:
            return {}, BYTE_ORDER_MARK if text.startswith("\ufeff") else f"not JSON at character {error.pos + 1}"
    except ValueError:  # a number with more digits than Python reads
        value = with_written_numbers(text)
    return (value, None) if isinstance(value, dict) else ({}, _other_than_object(value))


def _other_than_object(value: Any) -> str:
    """The reason a JSON value is not a record, in the speed layer's words."""
    match value:
        case list():
            return "a JSON array, not an object: send each element as a record"
        case str() if _object(value)[1] is None:
            return "a JSON text that holds an object (JSON encoded twice): send the object itself"
        case str():
            return "a JSON text, not an object"
        case None:
            return "the JSON value null, not an object: a deletion is a record without a value"
        case bool():
            return "a JSON boolean, not an object"
        case _:
            return "a JSON number, not an object"


def _as_spark(text: str) -> dict[str, Any] | None:
    """The object of a text that only Spark reads as JSON: with single quotes, `INF`, or a `}` after the object."""
    as_json = _TOKENS.sub(_in_json, text).lstrip(_SPACE)
    try:
        value, end = _DECODER.raw_decode(as_json)
    except (ValueError, RecursionError):
        return None
    more = as_json[end:].strip(_SPACE)
    if more and (not text.rstrip(_SPACE).endswith("}") or _BEGINS_AGAIN.search(text)):
        return None
    return value if isinstance(value, dict) else None


def _in_json(token: re.Match[str]) -> str:
    double, single, word = token.groups()
    if word is not None:
        return "-Infinity" if word.startswith("-") else "Infinity"
    return f'"{_IN_TEXT.sub(_escaped, single if double is None else double)}"'


def _escaped(part: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(part[0], part[0])


def with_written_numbers(text: str) -> Any:
    """The value of a JSON text, with numbers that keep their texts."""
    try:
        return json.loads(text, parse_float=Number, parse_int=_whole)
    except json.JSONDecodeError:
        return _as_spark(text)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else Number(digits)


_SPACE = " \t\r\n"
_DIGITS = 1_000
_IN_TEXT = re.compile(r"""\\.|\"""", re.DOTALL)
_TOKENS = re.compile(
    r""""((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)|'((?:[^'\\]++|\\.)*+)(?:'|\\?\Z)"""
    r"""|(?<![\w+-])(\+Infinity|[+-]?INF)(?=[\s,\]}])""",
    re.DOTALL,
)
"""A text in either kind of quotes, or a word for infinity. An unterminated text is one token: no line is read twice."""

_BEGINS_AGAIN = re.compile(BEGINS_AGAIN)
_EXPONENT = re.compile(r"[0-9.][eE][+-]?[0-9]{4}")
_BARE_AND_LONG = re.compile(BARE_AND_LONG)
_DECODER = json.JSONDecoder(parse_float=Number, parse_int=_whole)


def _depth(line: bytes) -> int:
    """The depth of nested brackets, including those in strings: no real record has a thousand of them in strings."""
    depth = deepest = 0
    for byte in line:
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    return deepest


def _short(value: Any) -> str:
    text = as_written(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}…"
