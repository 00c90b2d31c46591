"""The rows of a query: what tells them apart, and how they come."""

from __future__ import annotations

from dataclasses import dataclass

Keys = frozenset[frozenset[str]]
"""Unique keys as sets of output names; the empty set is the key of a relation of one row."""


@dataclass(frozen=True)
class SortKey:
    """A key by which rows come, with the column that shows it, if one does."""

    column: str | None
    descending: bool
    nulls_first: bool


Sorting = tuple[SortKey, ...]
