"""Parses Java's regular expressions into letters, edges, groups and repetitions.

An expression with an untranslatable part, such as a look-around or a reference to a group, is not read at all.

Source: docs.oracle.com, java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

MOST_TIMES = 255
"""Most repetitions in Postgres' syntax."""

MOST_POSITIONS = 300
"""Most positions of an expression with its repetitions written out."""

LAST_POINT = 0x10FFFF
"""The last code point of Unicode."""

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points (first, last), in order and disjoint."""


@dataclass(frozen=True)
class Letter:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Edge:
    """The beginning or the end of the text."""

    postgres: str


@dataclass(frozen=True)
class Repeated:
    """A part repeated from `least` to `most` times; None is without limit."""

    part: Part
    least: int
    most: int | None


@dataclass(frozen=True)
class Group:
    """A group of options between |; `captures`: a replacement may refer to it."""

    options: tuple[tuple[Part, ...], ...]
    captures: bool


Part = Letter | Edge | Repeated | Group


class Untranslated(Exception):
    """The expression has a part without a translation."""


@dataclass(frozen=True)
class Expression:
    """A whole expression; `lazy`: it has a lazy repetition."""

    whole: Group
    lazy: bool


@cache
def read_java(java: str) -> Expression | None:
    r"""The parts of an expression; None if one of them has no translation.

    >>> read_java("a").whole.options, read_java(r"\bword")
    (((Letter(ranges=((97, 97),)),),), None)
    """
    folded = java.startswith("(?i)")
    reader = _Reader(java, 4 if folded else 0, folded)
    try:
        whole = Group(reader.options(), captures=False)
    except Untranslated:
        return None
    return Expression(whole, reader.lazy) if reader.at == len(java) and positions_in(whole) <= MOST_POSITIONS else None


_SIGN = re.compile(r"\(\?:|\(\?<[a-zA-Z][a-zA-Z0-9]*>|\\.|.", re.DOTALL)
_COUNT = re.compile(r"\{(\d{1,3})(,(\d{1,3})?)?\}|[*+?]", re.ASCII)
COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass
class _Reader:
    text: str
    at: int
    folded: bool
    """True if the case of ASCII letters does not matter."""
    lazy: bool = False

    def options(self) -> tuple[tuple[Part, ...], ...]:
        """Reads the options between | up to the end of a group."""
        options: list[tuple[Part, ...]] = []
        parts: list[Part] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                options, parts = [*options, tuple(parts)], []
            else:
                parts.append(self._repeated(self._part()))
        return (*options, tuple(parts))

    def _sign(self) -> str:
        match = _SIGN.match(self.text, self.at)
        if match is None:
            raise Untranslated
        self.at = match.end()
        return match[0]

    def _part(self) -> Part:
        sign = self._sign()
        if sign[0] == "(":
            if sign == "(" and self.text.startswith("?", self.at):
                raise Untranslated
            group = Group(self.options(), captures=sign != "(?:")
            self._expect(")")
            return group
        if sign in "*+?{":
            raise Untranslated
        if sign in _EDGES:
            return Edge(_EDGES[sign])
        return Letter(self._class() if sign == "[" else _NAMED.get(sign) or self._folded(_letter(sign)))

    def _expect(self, letter: str) -> None:
        if not self.text.startswith(letter, self.at):
            raise Untranslated
        self.at += 1

    def _repeated(self, part: Part) -> Part:
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return part
        self.at = match.end()
        least, most = COUNTS.get(match[0]) or (
            int(match[1]),
            int(match[3] or MOST_TIMES) if match[2] else int(match[1]),
        )
        if match[2] == ",":
            most = None
        if isinstance(part, Edge) or least > MOST_TIMES or (most is not None and not least <= most <= MOST_TIMES):
            raise Untranslated
        after = self.text[self.at : self.at + 1]
        if after == "?":
            self.lazy, self.at = True, self.at + 1
        elif after and after in "+*{":
            raise Untranslated
        return Repeated(part, least, most)

    def _class(self) -> Ranges:
        """Reads a class between [ and ]."""
        negated = self.text.startswith("^", self.at)
        self.at += negated
        several: list[tuple[int, int]] = []
        while not (self.text.startswith("]", self.at) and several):
            sign = self._sign()
            if sign[0] in "[]" or self.text.startswith("&&", self.at - 1) or len(sign) > 2:
                raise Untranslated
            named = _NAMED.get(sign) if sign != "." else None
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                self.at += 1
                last = self._sign()
                if named or last in _NAMED or last in "[]" or _letter(last) < _letter(sign):
                    raise Untranslated
                several += self._folded(_letter(sign), _letter(last))
            else:
                several += named or self._folded(_letter(sign))
        self.at += 1
        ranges = all_but(_together(several)) if negated else _together(several)
        if not ranges:
            raise Untranslated
        return ranges

    def _folded(self, first: int, last: int | None = None) -> Ranges:
        last = first if last is None else last
        pairs = [(first, last)]
        for one, other in (((65, 90), 32), ((97, 122), -32)) if self.folded else ():
            if max(first, one[0]) <= min(last, one[1]):
                pairs.append((max(first, one[0]) + other, min(last, one[1]) + other))
        return _together(pairs)


def _letter(sign: str) -> int:
    """The code point of a sign or of an escape."""
    if len(sign) == 1:
        return ord(sign)
    if sign[0] != "\\" or (sign[1].isalnum() and sign not in _CONTROLS):
        raise Untranslated
    return ord(_CONTROLS.get(sign, sign[1]))


_CONTROLS = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\f": "\f"}


def _together(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges in order, with adjacent ones merged."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def all_but(ranges: Ranges) -> Ranges:
    """The characters outside of these ranges."""
    edges = [(-1, -1), *ranges, (LAST_POINT + 1, LAST_POINT + 1)]
    return tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(edges) if a[1] + 1 < b[0])


_LINES = "\n\r\u0085\u2028\u2029"
_DIGITS = ((48, 57),)
_WORDS = _together([*_DIGITS, (65, 90), (95, 95), (97, 122)])
_SPACES = ((9, 13), (32, 32))
_NAMED: dict[str, Ranges] = {
    r"\d": _DIGITS,
    r"\D": all_but(_DIGITS),
    r"\w": _WORDS,
    r"\W": all_but(_WORDS),
    r"\s": _SPACES,
    r"\S": all_but(_SPACES),
    ".": all_but(_together((ord(line), ord(line)) for line in _LINES)),
}

START = "^"
END = r"(?:$|(?=[\r\u0085\u2028\u2029]$|\r\n$)|(?<!\r)(?=\n$))"
"""Java's $, which also matches before a final line break."""

_EDGES = {"^": START, "$": END}


def positions_in(part: Part) -> int:
    """The number of positions of an expression with its repetitions written out."""
    if isinstance(part, Letter):
        return 1
    if isinstance(part, Repeated):
        return positions_in(part.part) * max(part.least, part.most or 1)
    return sum(map(positions_in, chain.from_iterable(part.options))) if isinstance(part, Group) else 0
