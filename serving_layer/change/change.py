"""A change of one declaration, and what has to be known of a database to say what changes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Action = Literal["create", "update", "reprocess", "drop", "keep", "refuse", "nothing"]
"""`update`: at once, nothing is recomputed. `reprocess`: new cells are computed from all records, beside the old ones.
`keep`: this Lamina would compile the same declaration otherwise, and goes on with what was deployed."""

COMPARABLE = 20
"""A rebuild tells how long up to so many times its own records take. Of more it says nothing: a small one mostly
waits for Spark to start."""


@dataclass(frozen=True)
class Change:
    """What applying a catalog would do to one declaration, or to the database, and what that means.

    diff: of the SQL, as lines of `diff -u`. breaks: what readers use and would lose. dependents: the views that read
    it, and the relations of others in Postgres. records: offsets below progress that are read anew; seconds: how long
    that takes, if a rebuild was large enough to tell. bytes: what the cells there are take in Postgres,
    beside which new ones are kept.
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
    """A rebuild that has ended: how many offsets it read, and for how many seconds it ran."""

    rebuild: int
    offsets: int
    seconds: float

    def seconds_for(self, records: int) -> float | None:
        """About how long so many records take; None if the rebuild was too small to tell.

        >>> Measured(3, offsets=1_000, seconds=20.0).seconds_for(2_000)
        40.0
        >>> Measured(3, offsets=5, seconds=20.0).seconds_for(2_000) is None
        True
        """
        return self.seconds * records / self.offsets if records <= COMPARABLE * self.offsets else None


@dataclass(frozen=True)
class Known:
    """What is known of a database beside its catalog.

    counted: per query, how many offsets lie below its progress. kept: the versions of views that are live and not
    published, each with its newest generation: to return to, or for a preview. measured: what a rebuild has read.
    sizes: bytes of the cells that each view is read from. others: per view, the relations in Postgres that read it,
    directly or through views of ours, are not ours, and hold back what would drop them; giving_way: those that do not.
    previewed: per view, the previews that have one of that name; reading: per source, the previews of which it feeds a
    view. sparks: per view, the version of Spark that computed it.
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
        """The queries that have counted records: a view that is new to them lacks what they have read."""
        return {name for name, offsets in self.counted.items() if offsets}


def other_settings(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Which properties are others, in words; empty where none is.

    >>> other_settings({"retain": "9 days", "comment": "x"}, {"retain": "1 day", "comment": "x", "keep_versions": "2"})
    'retain is 1 day and was 9 days, keep_versions is 2'
    """
    said = [f"{name} is {new[name]} and was {old[name]}" for name in new if name in old and new[name] != old[name]]
    said += [f"{name} is {new[name]}" for name in new if name not in old]
    said += [f"{name} is no longer set, and was {old[name]}" for name in old if name not in new]
    return ", ".join(said)


def sql_diff(old: str, new: str) -> str:
    """As lines of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "deployed", "catalog", lineterm="")
    return "\n".join(lines)
