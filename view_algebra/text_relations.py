"""The relations that the compiler's texts for Postgres read, replaced by others."""

from __future__ import annotations

import re
from collections.abc import Callable, Container


def reading(text: str, schema: str, other: Callable[[str], str | None], aliased: Container[str] = ()) -> str:
    """A text that the compiler wrote for Postgres, reading `other(name)` instead of a schema's relations.

    A relation stays if `other` returns None for its name. `final` reads `cells` and `analytics`, a check's `failing`
    reads `analytics` and `published`. Texts, and aliases with the name of a schema, stay. A relation in `aliased` keeps
    its name as an alias, unless the text gives it another.

    >>> reading("SELECT 'analytics.v' FROM analytics.v JOIN analytics.w", "analytics", {"v": "dev.v"}.get)
    "SELECT 'analytics.v' FROM dev.v JOIN analytics.w"
    >>> reading("SELECT published.a, 'FROM published.b' FROM (published.c AS published)", "published", str.upper)
    "SELECT published.a, 'FROM published.b' FROM (C AS published)"
    >>> reading("SELECT v.a FROM analytics.v JOIN analytics.v AS w", "analytics", {"v": "analytics.z"}.get, ["v"])
    'SELECT v.a FROM analytics.z AS v JOIN analytics.z AS w'
    """

    def change(match: re.Match[str]) -> str:
        name = match["name"] or (match["quoted"] or "").replace('""', '"')
        replacement = other(name) if match["schema"] == schema else None
        if replacement is None:
            return match[0]
        bare = name in aliased and not text.startswith(" AS ", match.end())
        alias = f" AS {text[match.end('schema') + 1 : match.end()]}" if bare else ""
        return f"{match['before']}{replacement}{alias}"

    return _READS.sub(change, text)


_READS = re.compile(
    r"""
      '(?:[^']|'')*'
    | (?i:\b(?:extract|substring|trim)\(+\w+\s+FROM\b | \bDISTINCT\s+FROM\b)
    | (?P<before>\b(?:FROM|JOIN)\b[\s(]*)(?P<schema>cells|analytics|published)
      \.(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<name>\w+))
    | "(?:[^"]|"")*"
    """,
    re.VERBOSE,
)
"""A relation that a text reads, or what may look like one: a text, a quoted name, or FROM in front of a value."""
