"""Reads Java's regular expressions and translates them to Postgres.

Java tries the paths through an expression one after the other. Postgres takes the longest match. They agree on whether
there is a match. They agree on the match itself if no two positions of an expression compete for a character, by
Glushkov's automaton of its positions. The expression is then strongly one-unambiguous (Brüggemann-Klein and Wood,
One-Unambiguous Regular Languages, 1998): a text has only one path through it, and Java, which repeats before it
continues, ends where the longest match ends. An expression whose matches might differ has no translation, and neither
has one with a look-around or a reference to a group.

Sources: docs.oracle.com, java.util.regex.Pattern. OpenJDK 17 and 21, the same class. postgresql.org, POSIX Regular
Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise

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
    """A part repeated from `least` to `most` times. None means no limit."""

    part: Part
    least: int
    most: int | None


@dataclass(frozen=True)
class Group:
    """A group of options between |. `captures`: a replacement may refer to it."""

    options: tuple[tuple[Part, ...], ...]
    captures: bool


Part = Letter | Edge | Repeated | Group


class Untranslated(Exception):
    """The expression has a part without a translation."""


@dataclass(frozen=True)
class Expression:
    """A whole expression. `lazy`: it has a lazy repetition."""

    whole: Group
    lazy: bool


@cache
def read_java(java: str) -> Expression | None:
    r"""The parts of an expression, or None if one of them has no translation.

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
_COUNT = re.compile(r"\{\d{1,3}(,\d{0,3})?\}|[*+?]", re.ASCII)
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def rounds(quantifier: str) -> tuple[int, int | None]:
    """The fewest and the most rounds of a quantifier. None means no limit.

    >>> rounds("?"), rounds("{3}"), rounds("{2,}"), rounds("{2,4}")
    ((0, 1), (3, 3), (2, None), (2, 4))
    """
    if quantifier in _QUANTIFIERS:
        return _QUANTIFIERS[quantifier]
    least, comma, most = quantifier.strip("{}").partition(",")
    return int(least), int(most) if most else None if comma else int(least)


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
        least, most = rounds(match[0])
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
    r"""The expression for Postgres, if both engines match the same texts, or None.

    >>> decides("(?i)^a|b+?c"), decides(r"\bword")
    ('^[Aa]|[Bb]+[Cc]', None)
    """
    read = read_java(java)
    return None if read is None else _options(read.whole)


def finds(java: str) -> str | None:
    r"""The expression for Postgres, if both engines find the same matches and groups, or None.

    >>> finds("https?://([^/]+)"), finds("(.*)-(.*)")
    ('https?\\:\\/\\/([^\\/]+)', None)
    """
    read = read_java(java)
    return None if read is None or read.lazy or not has_one_way(read.whole) else _options(read.whole)


def one_way(java: str) -> bool:
    r"""True if every text has at most one path through the expression. False for one that cannot be read.

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


# The text for Postgres


def _options(group: Group) -> str:
    return "|".join("".join(map(_written, parts)) for parts in group.options)


def _written(part: Part) -> str:
    if isinstance(part, Letter):
        return _of(part.ranges)
    if isinstance(part, Edge):
        return part.postgres
    if isinstance(part, Group):
        return f"({_options(part)})" if part.captures else f"(?:{_options(part)})"
    often = {value: sign for sign, value in _QUANTIFIERS.items()}.get((part.least, part.most))
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
