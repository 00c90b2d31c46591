"""Translates Java's regular expressions to Postgres, or to None if their matches might differ.

Java tries the paths through an expression one after the other; Postgres takes the longest match. They agree on whether
there is a match. They agree on the match itself if no two positions of an expression compete for a character (it is
strongly one-unambiguous: Brüggemann-Klein and Wood, One-Unambiguous Regular Languages, 1998). A text then has only one
path through the expression, and Java, which repeats before it continues, ends where the longest match ends.

Source: docs.oracle.com, java.util.regex.Pattern; postgresql.org, POSIX Regular Expressions.

Tests if every text has at most one path through a regular expression, by Glushkov's automaton of its positions.

This holds if no two positions compete for a character: the expression is then strongly one-unambiguous
(Brüggemann-Klein and Wood, One-Unambiguous Regular Languages, 1998).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, combinations

from view_algebra.language.java_regexes import (
    COUNTS,
    END,
    LAST_POINT,
    START,
    Edge,
    Group,
    Letter,
    Part,
    Ranges,
    Repeated,
    Untranslated,
    all_but,
    read_java,
)


@dataclass(frozen=True)
class _Ways:
    """The paths through a part: True if it may be empty, and the positions at which it may begin and end."""

    empty: bool
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


def has_one_way(whole: Group) -> bool:
    """True if every text has at most one path through the expression. An empty match occurs only at the beginning."""
    automaton = _Automaton()
    try:
        ways = automaton.ways(_within_edges(whole))
    except Untranslated:
        return False
    begins = all(parts[:1] == (Edge(START),) for parts in whole.options)
    return (begins or not ways.empty) and all(map(automaton.apart, (ways.first, *automaton.follow)))


def _within_edges(whole: Group) -> Group:
    """The expression without ^ at its beginning and $ at its end."""
    if len(whole.options) > 1:
        return whole
    parts = whole.options[0]
    parts = parts[1:] if parts[:1] == (Edge(START),) else parts
    return Group((parts[:-1] if parts[-1:] == (Edge(END),) else parts,), captures=False)


class _Automaton:
    """Glushkov's automaton: the positions of an expression, and the positions that may follow each of them."""

    def __init__(self) -> None:
        self.letters: list[Ranges] = []
        self.follow: list[tuple[int, ...]] = []

    def apart(self, positions: tuple[int, ...]) -> bool:
        """True if no two of these positions accept the same character."""
        return all(
            a[1] < b[0] or b[1] < a[0]
            for one, other in combinations(positions, 2)
            for a in self.letters[one]
            for b in self.letters[other]
        )

    def ways(self, part: Part) -> _Ways:
        """Adds the positions of a part and returns the paths through it."""
        if isinstance(part, Letter):
            self.letters.append(part.ranges)
            self.follow.append(())
            position = (len(self.letters) - 1,)
            return _Ways(empty=False, first=position, last=position)
        if isinstance(part, Edge):
            raise Untranslated
        if isinstance(part, Repeated):
            return self._repeated(part)
        options = [self._in_turn(map(self.ways, parts)) for parts in part.options]
        return _Ways(
            any(ways.empty for ways in options),
            tuple(position for ways in options for position in ways.first),
            tuple(position for ways in options for position in ways.last),
        )

    def _in_turn(self, parts: Iterable[_Ways]) -> _Ways:
        whole = _Ways(empty=True)
        for part in parts:
            self._join(whole.last, part.first)
            first = whole.first + part.first if whole.empty else whole.first
            last = part.last + whole.last if part.empty else part.last
            whole = _Ways(whole.empty and part.empty, first, last)
        return whole

    def _join(self, before: Iterable[int], after: tuple[int, ...]) -> None:
        for position in before:
            self.follow[position] += after

    def _repeated(self, node: Repeated) -> _Ways:
        """Expands a counted repetition: x{2,} becomes xx+. Optional rounds nest, as in xx(x(x)?)? for x{2,4}."""
        if node.most != 1 and (_captures_inside(node.part) or self._may_be_empty(node.part)):
            raise Untranslated
        if node.most is None:
            return self._in_turn([*(self.ways(node.part) for _ in range(node.least - 1)), self._again(node)])
        rest = _Ways(empty=True)
        for _ in range(node.most - node.least):
            rest = self._in_turn([self.ways(node.part), rest])
            rest = _Ways(True, rest.first, rest.last)
        return self._in_turn([*(self.ways(node.part) for _ in range(node.least)), rest])

    def _again(self, node: Repeated) -> _Ways:
        """Adds the positions of x* or x+."""
        ways = self.ways(node.part)
        self._join(ways.last, ways.first)
        return _Ways(node.least == 0, ways.first, ways.last)

    @staticmethod
    def _may_be_empty(part: Part) -> bool:
        return _Automaton().ways(part).empty


def _captures_inside(part: Part) -> bool:
    """True if the repeated part contains a group other than itself, which Java may keep from an earlier round."""
    if isinstance(part, Repeated):
        return _captures(part.part)
    return isinstance(part, Group) and any(map(_captures, chain.from_iterable(part.options)))


def _captures(part: Part) -> bool:
    if isinstance(part, Repeated):
        return _captures(part.part)
    return isinstance(part, Group) and (part.captures or _captures_inside(part))


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
