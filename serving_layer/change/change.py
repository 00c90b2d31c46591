"""A change of one declaration, and the facts about a database that changes are worked out from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Action = Literal["create", "update", "reprocess", "drop", "keep", "refuse", "nothing"]
"""`update`: at once, nothing is recomputed. `reprocess`: new cells are computed from all records, next to the old ones.
`keep`: this Lamina would compile the same declaration differently, and keeps the deployed texts."""

COMPARABLE = 20
"""A rebuild predicts durations of up to this many times its own records. A smaller one mostly measures Spark's
start."""


@dataclass(frozen=True)
class Change:
    """The effect of applying a catalog on one declaration or on the database.

    diff: of the SQL, as lines of `diff -u`.
    breaks: columns or names that readers use and would lose.
    dependents: our views and other roles' relations that read it.
    records: offsets below progress that would be read again.
    seconds: how long that takes, if a rebuild was large enough to predict it.
    bytes: size of the present cells in Postgres. New ones are stored next to them.
    """

    kind: Literal["database", "source", "view"]
    name: str
    action: Action
    effect: str
    diff: str = ""
    breaks: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    records: int | None = None
    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Measured:
    """The offsets that a finished rebuild read, and the seconds that it ran."""

    rebuild: int
    offsets: int
    seconds: float

    def seconds_for(self, records: int) -> float | None:
        """Predicted seconds for this many records, or None if the rebuild was too small.

        >>> Measured(3, offsets=1_000, seconds=20.0).seconds_for(2_000)
        40.0
        >>> Measured(3, offsets=5, seconds=20.0).seconds_for(2_000) is None
        True
        """
        return self.seconds * records / self.offsets if records <= COMPARABLE * self.offsets else None


@dataclass(frozen=True)
class Known:
    """The facts about a database, besides its catalog, that decide what a new catalog changes.

    counted: per query, the offsets below its progress.
    kept: the live unpublished versions of views, for a return or a preview, each with its newest generation.
    measured: the largest rebuild.
    sizes: bytes of the published cells of each view.
    others: per view, other roles' relations that read it, directly or through our views, and block a drop.
    giving_way: per view, other roles' relations that an apply drops.
    previewed: per view name, the previews with such a view.
    reading: per source, the previews with a view that it feeds.
    sparks: per view, the version of Spark that computed it.
    """

    counted: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[tuple[str, str], int] = field(default_factory=dict)
    measured: Measured | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    giving_way: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    previewed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reading: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sparks: Mapping[str, str] = field(default_factory=dict)

    @property
    def moved(self) -> set[str]:
        """The queries with counted records. A view that is new to them lacks these records."""
        return {name for name, offsets in self.counted.items() if offsets}


def other_settings(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """The properties that differ, in words. Empty if none do.

    >>> other_settings({"retain": "9 days", "comment": "x"}, {"retain": "1 day", "comment": "x", "keep_versions": "2"})
    'retain is 1 day and was 9 days, keep_versions is 2'
    """
    said = [f"{name} is {new[name]} and was {old[name]}" for name in new if name in old and new[name] != old[name]]
    said += [f"{name} is {new[name]}" for name in new if name not in old]
    said += [f"{name} is no longer set, and was {old[name]}" for name in old if name not in new]
    return ", ".join(said)


def sql_diff(old: str, new: str) -> str:
    """The difference as lines of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "deployed", "catalog", lineterm="")
    return "\n".join(lines)
