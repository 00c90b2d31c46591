"""Fields that a source does not declare. Nothing reads them, so a mistyped name silently leaves its column NULL.

Spark distinguishes fields by case: `Town` is not `TOWN`.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from view_algebra.language.quoting import words
from view_algebra.language.types import Type

MOST = 1_000
"""Most fields that are counted one by one: records whose keys are data may name any number."""


ENVELOPE = words("schema payload op before after source transaction ts_ms ts_us ts_ns")
"""Fields of a Debezium change event. A stream of changes declares only those that it reads."""

_OF_EVENTS = words("op source")
"""Fields that every change event has."""


@dataclass(frozen=True)
class UndeclaredField:
    """An undeclared field, in `records` of the `of` sampled records, and the column that it may mean."""

    field: str
    records: int
    of: int
    meant: str | None

    def __str__(self) -> str:
        near = f"; did you mean {self.meant}?" if self.meant else ""
        return f"{self.field} is not declared, in {self.records:,} of {self.of:,} records{near}"


class UndeclaredCounter:
    """Counts the undeclared fields of records."""

    def __init__(self, declared: Mapping[str, Type]) -> None:
        self._declared = dict(declared)
        self._nested = {name: kind for name, kind in declared.items() if _has_fields(kind)}
        self._counted: Counter[str] = Counter()
        self._always_with: dict[str, set[str]] = {}  # by field: the columns that all of its records have
        self._records = 0

    def __bool__(self) -> bool:
        return bool(self._counted)

    def note(self, value: Mapping[str, Any]) -> None:
        """Counts the undeclared fields of one record."""
        self._records += 1
        if value.keys() >= _OF_EVENTS:
            value = {name: part for name, part in value.items() if name in self._declared or name not in ENVELOPE}
        if value.keys() <= self._declared.keys() and not self._nested:
            return
        present = {name for name, part in value.items() if part is not None}
        for field in dict.fromkeys(_undeclared(self._declared, value)):
            if field in self._counted or len(self._counted) < MOST:
                self._counted[field] += 1
                self._always_with[field] = self._always_with.get(field, set(self._declared)) & present

    def fields(self) -> list[UndeclaredField]:
        """The undeclared fields, the most frequent first."""
        paths = list(_paths(self._declared))
        fields = []
        for field, count in self._counted.most_common():
            meant = _meant(field, (path for path in paths if path not in self._always_with[field]))
            fields.append(UndeclaredField(field, count, self._records, meant))
        return fields


def in_sample(declared: Mapping[str, Type], values: Iterable[bytes | None]) -> list[UndeclaredField]:
    """The undeclared fields of raw records. A record that is not a JSON object has none."""
    undeclared = UndeclaredCounter(declared)
    for raw in values:
        with suppress(ValueError, RecursionError):
            value = json.loads(raw or b"")
            if isinstance(value, dict):
                undeclared.note(value)
    return undeclared.fields()


def _has_fields(kind: Type) -> bool:
    return bool(kind.fields) or (kind.element is not None and _has_fields(kind.element))


def _undeclared(declared: Mapping[str, Type], value: Mapping[str, Any], within: str = "") -> Iterator[str]:
    for name, part in value.items():
        kind = declared.get(name)
        if kind is None:
            yield within + name
        elif part and _has_fields(kind):
            yield from _inside(kind, part, f"{within}{name}.")


def _inside(kind: Type, value: Any, within: str) -> Iterator[str]:
    """The undeclared fields of a struct, or of the structs in a list or in a map's values."""
    if kind.fields:
        if isinstance(value, Mapping):
            yield from _undeclared(dict(kind.fields), value, within)
    elif kind.element is not None:
        several = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        for element in several:
            yield from _inside(kind.element, element, within)


def _paths(declared: Mapping[str, Type], within: str = "") -> Iterator[str]:
    for name, kind in declared.items():
        yield within + name
        while kind.element is not None:
            kind = kind.element  # noqa: PLW2901
        yield from _paths(dict(kind.fields), f"{within}{name}.")


def _meant(field: str, declared: Iterable[str]) -> str | None:
    by_case = {path.lower(): path for path in declared}
    near = difflib.get_close_matches(field.lower(), by_case, n=1, cutoff=0.7)
    return by_case[near[0]] if near else None
