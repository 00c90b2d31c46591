"""Java's regular expressions in Postgres' words, None where the two might not find the same.

Java tries the ways through an expression one after the other; Postgres takes the longest match. On whether there is one
they agree. On what is found they agree where no two places of an expression compete for a character (it is strongly
one-unambiguous: Brüggemann-Klein and Wood, One-Unambiguous Regular Languages, 1998): a text then has one way through
it, and Java, which repeats before it goes on, ends where the longest match ends.

Source: docs.oracle.com, java.util.regex.Pattern; postgresql.org, POSIX Regular Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise

_MOST = 255
"""Times that Postgres repeats at most."""
_PLACES = 300
"""Places that an expression has at most, its repetitions written out."""
_UNICODE = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]
"""Code points, from and to, in order and apart."""


@dataclass(frozen=True)
class _Letter:
    """One character of some."""

    ranges: Ranges


@dataclass(frozen=True)
class _Edge:
    """The beginning or the end of the text."""

    postgres: str


@dataclass(frozen=True)
class _Repeated:
    part: _Part
    least: int
    most: int | None


@dataclass(frozen=True)
class _Group:
    options: tuple[tuple[_Part, ...], ...]
    captures: bool


_Part = _Letter | _Edge | _Repeated | _Group


class _UntoldError(Exception):
    """The expression has what is not translated."""


@dataclass(frozen=True)
class _Expression:
    whole: _Group
    lazy: bool
    """Does it anywhere repeat as little as it can?"""


def decides(java: str) -> str | None:
    r"""The expression in Postgres' words, if both find something in the same texts.

    >>> decides("(?i)^a|b+?c"), decides(r"\bword")
    ('^[Aa]|[Bb]+[Cc]', None)
    """
    read = _read(java)
    return None if read is None else _options(read.whole)


def finds(java: str) -> str | None:
    r"""The expression in Postgres' words, if both find the same matches, and the same groups in them.

    >>> finds("https?://([^/]+)"), finds("(.*)-(.*)")
    ('https?\\:\\/\\/([^\\/]+)', None)
    """
    read = _read(java)
    return None if read is None or read.lazy or not _one_way(read.whole) else _options(read.whole)


def one_way(java: str) -> bool:
    r"""Has every text one way through the expression at most? False, too, where it has what is not read.

    >>> one_way("([^,]*,){9}"), one_way("(.*,){9}")
    (True, False)
    """
    read = _read(java)
    return read is not None and _one_way(read.whole)


def replacement(java: str) -> str:
    r"""What takes the place of a match, `$1` in Java's words.

    >>> replacement("<$1>$0")
    '<\\1>\\&'
    """
    return re.sub(r"\$(\d)", lambda match: "\\&" if match[1] == "0" else f"\\{match[1]}", java)


# How Java's expression is read


@cache
def _read(java: str) -> _Expression | None:
    folded = java.startswith("(?i)")
    reader = _Reader(java, 4 if folded else 0, folded)
    try:
        whole = _Group(reader.options(), captures=False)
    except _UntoldError:
        return None
    return _Expression(whole, reader.lazy) if reader.at == len(java) and _places(whole) <= _PLACES else None


_SIGN = re.compile(r"\(\?:|\(\?<[a-zA-Z][a-zA-Z0-9]*>|\\.|.", re.DOTALL)
_COUNT = re.compile(r"\{(\d{1,3})(,(\d{1,3})?)?\}|[*+?]", re.ASCII)
_OFTEN = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass
class _Reader:
    text: str
    at: int
    folded: bool
    """Are small letters and capitals of ASCII alike?"""
    lazy: bool = False

    def options(self) -> tuple[tuple[_Part, ...], ...]:
        """What stands between | up to the end of a group."""
        found: list[tuple[_Part, ...]] = []
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                found, parts = [*found, tuple(parts)], []
            else:
                parts.append(self._repeated(self._part()))
        return (*found, tuple(parts))

    def _sign(self) -> str:
        match = _SIGN.match(self.text, self.at)
        if match is None:
            raise _UntoldError
        self.at = match.end()
        return match[0]

    def _part(self) -> _Part:
        sign = self._sign()
        if sign[0] == "(":
            if sign == "(" and self.text.startswith("?", self.at):
                raise _UntoldError
            group = _Group(self.options(), captures=sign != "(?:")
            self._expect(")")
            return group
        if sign in "*+?{":
            raise _UntoldError
        if sign in _EDGES:
            return _Edge(_EDGES[sign])
        return _Letter(self._class() if sign == "[" else _NAMED.get(sign) or self._folded(_letter(sign)))

    def _expect(self, letter: str) -> None:
        if not self.text.startswith(letter, self.at):
            raise _UntoldError
        self.at += 1

    def _repeated(self, part: _Part) -> _Part:
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return part
        self.at = match.end()
        least, most = _OFTEN.get(match[0]) or (int(match[1]), int(match[3] or _MOST) if match[2] else int(match[1]))
        if match[2] == ",":
            most = None
        if isinstance(part, _Edge) or least > _MOST or (most is not None and not least <= most <= _MOST):
            raise _UntoldError
        after = self.text[self.at : self.at + 1]
        if after == "?":
            self.lazy, self.at = True, self.at + 1
        elif after and after in "+*{":
            raise _UntoldError
        return _Repeated(part, least, most)

    def _class(self) -> Ranges:
        """Between [ and ]."""
        negated = self.text.startswith("^", self.at)
        self.at += negated
        found: list[tuple[int, int]] = []
        while not (self.text.startswith("]", self.at) and found):
            sign = self._sign()
            if sign[0] in "[]" or self.text.startswith("&&", self.at - 1) or len(sign) > 2:
                raise _UntoldError
            named = _NAMED.get(sign) if sign != "." else None
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                self.at += 1
                last = self._sign()
                if named or last in _NAMED or last in "[]" or _letter(last) < _letter(sign):
                    raise _UntoldError
                found += self._folded(_letter(sign), _letter(last))
            else:
                found += named or self._folded(_letter(sign))
        self.at += 1
        ranges = _others(_together(found)) if negated else _together(found)
        if not ranges:
            raise _UntoldError
        return ranges

    def _folded(self, first: int, last: int | None = None) -> Ranges:
        last = first if last is None else last
        pairs = [(first, last)]
        for one, other in (((65, 90), 32), ((97, 122), -32)) if self.folded else ():
            if max(first, one[0]) <= min(last, one[1]):
                pairs.append((max(first, one[0]) + other, min(last, one[1]) + other))
        return _together(pairs)


def _letter(sign: str) -> int:
    """The character that a sign stands for."""
    if len(sign) == 1:
        return ord(sign)
    if sign[0] != "\\" or (sign[1].isalnum() and sign not in _CONTROLS):
        raise _UntoldError
    return ord(_CONTROLS.get(sign, sign[1]))


_CONTROLS = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\f": "\f"}


def _together(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, put together where they touch."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    """The characters outside of some."""
    edges = [(-1, -1), *ranges, (_UNICODE + 1, _UNICODE + 1)]
    return tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(edges) if a[1] + 1 < b[0])


_LINES = "\n\r\u0085\u2028\u2029"
_DIGITS = ((48, 57),)
_WORDS = _together([*_DIGITS, (65, 90), (95, 95), (97, 122)])
_SPACES = ((9, 13), (32, 32))
_NAMED: dict[str, Ranges] = {
    r"\d": _DIGITS,
    r"\D": _others(_DIGITS),
    r"\w": _WORDS,
    r"\W": _others(_WORDS),
    r"\s": _SPACES,
    r"\S": _others(_SPACES),
    ".": _others(_together((ord(line), ord(line)) for line in _LINES)),
}

_START = "^"
_END = r"(?:$|(?=[\r\u0085\u2028\u2029]$|\r\n$)|(?<!\r)(?=\n$))"
"""Java's $ is before a line's end, too, if nothing follows that."""
_EDGES = {"^": _START, "$": _END}


# How Postgres writes it


def _options(group: _Group) -> str:
    return "|".join("".join(map(_written, parts)) for parts in group.options)


def _written(part: _Part) -> str:
    if isinstance(part, _Letter):
        return _of(part.ranges)
    if isinstance(part, _Edge):
        return part.postgres
    if isinstance(part, _Group):
        return f"({_options(part)})" if part.captures else f"(?:{_options(part)})"
    often = {value: sign for sign, value in _OFTEN.items()}.get((part.least, part.most))
    upper = "" if part.most == part.least else f",{'' if part.most is None else part.most}"
    return _written(part.part) + (often or f"{{{part.least}{upper}}}")


def _of(ranges: Ranges) -> str:
    """One character of some."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _escaped(ranges[0][0])
    outside = _others(ranges)
    if not outside:
        return "."
    negated = ranges[-1][1] == _UNICODE
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


# Whether a text has one way through it


def _places(part: _Part) -> int:
    """How many characters stand in an expression, its repetitions written out."""
    if isinstance(part, _Letter):
        return 1
    if isinstance(part, _Repeated):
        return _places(part.part) * max(part.least, part.most or 1)
    return sum(map(_places, chain.from_iterable(part.options))) if isinstance(part, _Group) else 0


@dataclass(frozen=True)
class _Ways:
    """The ways through a part: may it be empty, and at which places does it begin and end?"""

    empty: bool
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


def _one_way(whole: _Group) -> bool:
    """Has every text one way through the expression at most? An empty one is found at the beginning only."""
    automaton = _Automaton()
    try:
        ways = automaton.ways(_within_edges(whole))
    except _UntoldError:
        return False
    begins = all(parts[:1] == (_Edge(_START),) for parts in whole.options)
    return (begins or not ways.empty) and all(map(automaton.apart, (ways.first, *automaton.follow)))


def _within_edges(whole: _Group) -> _Group:
    """The expression without ^ at its beginning and $ at its end."""
    if len(whole.options) > 1:
        return whole
    parts = whole.options[0]
    parts = parts[1:] if parts[:1] == (_Edge(_START),) else parts
    return _Group((parts[:-1] if parts[-1:] == (_Edge(_END),) else parts,), captures=False)


class _Automaton:
    """The places of an expression, and which may follow which (Glushkov's automaton)."""

    def __init__(self) -> None:
        self.letters: list[Ranges] = []
        self.follow: list[tuple[int, ...]] = []

    def apart(self, places: tuple[int, ...]) -> bool:
        """Do no two of these places take the same character?"""
        return all(
            a[1] < b[0] or b[1] < a[0]
            for one, other in combinations(places, 2)
            for a in self.letters[one]
            for b in self.letters[other]
        )

    def ways(self, part: _Part) -> _Ways:
        """The ways through a part, whose places are added."""
        if isinstance(part, _Letter):
            self.letters.append(part.ranges)
            self.follow.append(())
            place = (len(self.letters) - 1,)
            return _Ways(empty=False, first=place, last=place)
        if isinstance(part, _Edge):
            raise _UntoldError
        if isinstance(part, _Repeated):
            return self._repeated(part)
        found = [self._in_turn(map(self.ways, parts)) for parts in part.options]
        return _Ways(
            any(ways.empty for ways in found),
            tuple(place for ways in found for place in ways.first),
            tuple(place for ways in found for place in ways.last),
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
        for place in before:
            self.follow[place] += after

    def _repeated(self, node: _Repeated) -> _Ways:
        """x{2,4} as xx(x(x)?)?, and x{2,} as xx+."""
        if node.most != 1 and (_captures_inside(node.part) or self._may_be_empty(node.part)):
            raise _UntoldError
        if node.most is None:
            return self._in_turn([*(self.ways(node.part) for _ in range(node.least - 1)), self._again(node)])
        rest = _Ways(empty=True)
        for _ in range(node.most - node.least):
            rest = self._in_turn([self.ways(node.part), rest])
            rest = _Ways(True, rest.first, rest.last)
        return self._in_turn([*(self.ways(node.part) for _ in range(node.least)), rest])

    def _again(self, node: _Repeated) -> _Ways:
        """x*, or x+."""
        ways = self.ways(node.part)
        self._join(ways.last, ways.first)
        return _Ways(node.least == 0, ways.first, ways.last)

    @staticmethod
    def _may_be_empty(part: _Part) -> bool:
        return _Automaton().ways(part).empty


def _captures_inside(part: _Part) -> bool:
    """Is there a group in what is repeated, other than the whole of it? It may be of an earlier round, to Java."""
    if isinstance(part, _Repeated):
        return _captures(part.part)
    return isinstance(part, _Group) and any(map(_captures, chain.from_iterable(part.options)))


def _captures(part: _Part) -> bool:
    if isinstance(part, _Repeated):
        return _captures(part.part)
    return isinstance(part, _Group) and (part.captures or _captures_inside(part))
