"""Translates Java's regular expressions to Postgres, or to None if their matches might differ.

Java tries the paths through an expression one after the other; Postgres takes the longest match. They agree on whether
there is a match. They agree on the match itself if no two positions of an expression compete for a character (it is
strongly one-unambiguous: Brüggemann-Klein and Wood, One-Unambiguous Regular Languages, 1998). A text then has only one
path through the expression, and Java, which repeats before it continues, ends where the longest match ends.

Source: docs.oracle.com, java.util.regex.Pattern; postgresql.org, POSIX Regular Expressions.
"""

from __future__ import annotations

import re

from view_algebra.language.automata import has_one_way
from view_algebra.language.java_regexes import COUNTS, LAST_POINT, Edge, Group, Letter, Part, Ranges, all_but, read_java


def decides(java: str) -> str | None:
    r"""The expression for Postgres, if both engines match the same texts; None otherwise.

    >>> decides("(?i)^a|b+?c"), decides(r"\bword")
    ('^[Aa]|[Bb]+[Cc]', None)
    """
    read = read_java(java)
    return None if read is None else _options(read.whole)


def finds(java: str) -> str | None:
    r"""The expression for Postgres, if both engines find the same matches and groups; None otherwise.

    >>> finds("https?://([^/]+)"), finds("(.*)-(.*)")
    ('https?\\:\\/\\/([^\\/]+)', None)
    """
    read = read_java(java)
    return None if read is None or read.lazy or not has_one_way(read.whole) else _options(read.whole)


def one_way(java: str) -> bool:
    r"""True if every text has at most one path through the expression; False for one that cannot be read.

    >>> one_way("([^,]*,){9}"), one_way("(.*,){9}")
    (True, False)
    """
    read = read_java(java)
    return read is not None and has_one_way(read.whole)


def replacement(java: str) -> str:
    r"""Postgres' replacement for a match, from Java's, which writes `$1`.

    >>> replacement("<$1>$0")
    '<\\1>\\&'
    """
    return re.sub(r"\$(\d)", lambda match: "\\&" if match[1] == "0" else f"\\{match[1]}", java)


# How Postgres writes it


def _options(group: Group) -> str:
    return "|".join("".join(map(_written, parts)) for parts in group.options)


def _written(part: Part) -> str:
    if isinstance(part, Letter):
        return _of(part.ranges)
    if isinstance(part, Edge):
        return part.postgres
    if isinstance(part, Group):
        return f"({_options(part)})" if part.captures else f"(?:{_options(part)})"
    often = {value: sign for sign, value in COUNTS.items()}.get((part.least, part.most))
    upper = "" if part.most == part.least else f",{'' if part.most is None else part.most}"
    return _written(part.part) + (often or f"{{{part.least}{upper}}}")


def _of(ranges: Ranges) -> str:
    """Postgres' class of these characters."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _escaped(ranges[0][0])
    outside = all_but(ranges)
    if not outside:
        return "."
    negated = ranges[-1][1] == LAST_POINT
    letters = "".join(
        _escaped(first) if first == last else f"{_escaped(first)}{'-' if last > first + 1 else ''}{_escaped(last)}"
        for first, last in (outside if negated else ranges)
    )
    return f"[{'^' if negated else ''}{letters}]"


def _escaped(point: int) -> str:
    letter = chr(point)
    if letter.isalnum():
        return letter
    if 32 <= point < 127:
        return f"\\{letter}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
