"""The planned change of one declaration, and the words for its differences."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Action = Literal["create", "update", "reprocess", "drop", "keep", "refuse", "nothing"]
"""`update`: at once, nothing is recomputed. `reprocess`: new cells are computed from all records, next to the old ones.
`keep`: this Lamina would compile the same declaration differently, and keeps the deployed texts."""


@dataclass(frozen=True)
class PlannedChange:
    """The effect of applying a catalog on one declaration or on the database.

    diff: of the SQL, as lines of `diff -u`
    breaks: columns or names that readers use and would lose
    dependents: our views and other roles' relations that read it
    records: offsets below progress that would be read again
    seconds: how long that takes, if a rebuild was large enough to predict it
    bytes: size of the present cells in Postgres. New ones are stored next to them
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


def other_settings(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """The properties that differ, in words. Empty if none do.

    >>> other_settings({"retain": "9 days", "comment": "x"}, {"retain": "1 day", "comment": "x", "keep_versions": "2"})
    'retain is 1 day and was 9 days, keep_versions is 2'
    """
    words = [f"{name} is {new[name]} and was {old[name]}" for name in new if name in old and new[name] != old[name]]
    words += [f"{name} is {new[name]}" for name in new if name not in old]
    words += [f"{name} is no longer set, and was {old[name]}" for name in old if name not in new]
    return ", ".join(words)


def sql_diff(old: str, new: str) -> str:
    """The difference as lines of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "deployed", "catalog", lineterm="")
    return "\n".join(lines)
