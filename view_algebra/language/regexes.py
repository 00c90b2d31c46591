"""Reads Java's regular expressions, translates them to Postgres, and finds the slow ones.

Java tries the paths through an expression one after the other. Postgres takes the longest match. They agree on whether
there is a match. They agree on the match itself if no two positions of an expression compete for a character, by
Glushkov's automaton of its positions. The expression is then strongly one-unambiguous (Brüggemann-Klein and Wood,
One-Unambiguous Regular Languages, 1998): a text has only one path through it, and Java, which repeats before it
continues, ends where the longest match ends. An expression whose matches might differ has no translation, and neither
has one with a look-around or a reference to a group.

Java recurses once for every round of a group that it may have to match differently, so a long text overflows a stack of
any size. If a group can match the same text in several ways, Java tries them all, which takes exponential time. A
possessive repetition (`*+`) does neither, nor does a character class. The remaining cost is polynomial in the text's
length: `.*a.*b` may look at every pair of positions of a text.

Sources: docs.oracle.com, java.util.regex.Pattern. OpenJDK 17 and 21, the same class (Loop, GroupCurly,
CharPropertyGreedy). postgresql.org, POSIX Regular Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise
from math import prod

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


_ROUNDS = 1_000
"""Most rounds of a group in which Java may recurse: they take a twentieth of a thread's stack."""
_WAYS = 1_000_000
"""Most paths through the rounds of a group that may be tried at one position of a text."""
_LONG = 1_000
"""Rounds that represent any number of them when paths are counted."""


@dataclass(frozen=True)
class _Letter:
    """One character, or a position between two. The flag is True if every such character is one unit of UTF-16."""

    plain: bool


@dataclass(frozen=True)
class _Repeated:
    part: _Part
    least: int
    most: int | None
    possessive: bool
    text: str
    sign: str


@dataclass(frozen=True)
class _Group:
    options: tuple[tuple[_Part, ...], ...]
    atomic: bool
    """True if it never backtracks after it has matched."""


_Part = _Letter | _Repeated | _Group


@dataclass(frozen=True)
class EndlessRepetition:
    """A refused repetition, and its replacement."""

    text: str
    instead: str


def endless(java: str) -> EndlessRepetition | None:
    r"""The first repetition that some text makes endless, or None if there is none.

    >>> endless(r"^(a|b)*$")
    EndlessRepetition(text='(a|b)*', instead='[ab]*')
    >>> endless(r"(\w+\s?)*\.")
    EndlessRepetition(text='(\\w+\\s?)*', instead='(\\w+\\s?)*+')
    >>> endless(r"([0-9]{1,3}\.){3}[0-9]+"), endless(r"(?:\w+\s?)*+\."), endless(r"[ab]*")
    (None, None, None)
    """
    return _endless_in_options(_Structure(java).options())


def _endless_in_options(options: tuple[tuple[_Part, ...], ...]) -> EndlessRepetition | None:
    return next((first for parts in options for part in parts if (first := _endless_in(part))), None)


def _endless_in(part: _Part) -> EndlessRepetition | None:
    match part:
        case _Group():
            return _endless_in_options(part.options)
        case _Repeated():
            return _endless_in(part.part) or (None if _ends(part) else EndlessRepetition(part.text, _instead(part)))
    return None


def _ends(repeated: _Repeated) -> bool:
    """True if Java runs all rounds in a loop, or recurses and backtracks within bounds."""
    if repeated.possessive or repeated.most in (0, 1) or isinstance(repeated.part, _Letter):
        return True
    if repeated.most is None:
        return _is_plain(repeated.part)
    return _rounds(repeated) <= _ROUNDS and (_ways(repeated) <= _WAYS or one_way(repeated.text))


def _is_plain(part: _Part) -> bool:
    """True if it has one width and one path."""
    match part:
        case _Letter():
            return part.plain
        case _Repeated():
            return part.least == part.most and _is_plain(part.part)
    return len(part.options) == 1 and all(map(_is_plain, part.options[0]))


def _rounds(part: _Part) -> int:
    """Java's approximate depth of recursion in a part. A character does not count."""
    match part:
        case _Group():
            return max((sum(map(_rounds, parts)) for parts in part.options), default=0)
        case _Repeated() if not isinstance(part.part, _Letter):
            return 0 if part.most is None else part.most * (1 + _rounds(part.part))
    return 0


def _ways(part: _Part) -> int:
    """An approximate upper bound of the paths through a part."""
    match part:
        case _Group():
            return 1 if part.atomic else sum(prod(map(_ways, parts)) for parts in part.options)
        case _Repeated():
            rounds = _LONG if part.most is None else part.most
            inside = 1 if part.possessive else min(_ways(part.part), 2 * _WAYS)
            lengths = 1 if part.possessive else rounds - part.least + 1
            return lengths * (min(inside**rounds, 2 * _WAYS) if inside > 1 else 1)
    return 1


def _instead(repeated: _Repeated) -> str:
    """The repetition with a character class, or made possessive."""
    bare = repeated.text.removesuffix(repeated.sign)
    if letters := _ONE_OF.fullmatch(bare):
        return f"[{''.join(letter.strip('[]') for letter in letters[1].split('|'))}]{repeated.sign}"
    return bare + repeated.sign.rstrip("?") + "+"


_OPTION = r"(?:[\w ,;:/@#%&=~<>\"'!-]|\\[dws.tnrf\\|(){}*+?$^-]|\[[^\]\[^\\&][^\]\[\\&|]*\])"
_ONE_OF = re.compile(rf"\((?:\?:)?({_OPTION}(?:\|{_OPTION})*)\)")
"""A group of options that are all one character or a character class."""

_OPENS = re.compile(r"\((?:\?(?:<?[=!]|>|<[a-zA-Z][a-zA-Z0-9]*>|[a-zA-Z-]*:))?")
_SWITCH = re.compile(r"\(\?[a-zA-Z-]+\)")
_REPETITION = re.compile(r"(?:\{(\d+)(,(\d*))?\}|([*+?]))([?+]?)", re.ASCII)
_OFTEN: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_WIDE = frozenset(r".") | {rf"\{sign}" for sign in "DSWHVNPRXX"}
"""Signs whose characters take one or two units of UTF-16."""


class _Structure:
    """Reads the structure of an expression that Java and Python accept, and ignores everything else in it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def options(self) -> tuple[tuple[_Part, ...], ...]:
        """Reads the options between | up to the end of a group."""
        options: list[tuple[_Part, ...]] = []
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                options, parts = [*options, tuple(parts)], []
            else:
                start = self.at
                parts.append(self._repeated(self._part(), start))
        return (*options, tuple(parts))

    def _part(self) -> _Part:
        if switch := _SWITCH.match(self.text, self.at):
            self.at = switch.end()
            return _Letter(plain=True)
        if opens := _OPENS.match(self.text, self.at):
            self.at = opens.end()
            options = self.options()
            self.at += 1
            return _Group(options, atomic=opens[0] in ("(?>", "(?=", "(?!", "(?<=", "(?<!"))
        if self.text[self.at] == "[":
            return self._class()
        sign = self.text[self.at : self.at + (2 if self.text[self.at] == "\\" else 1)]
        self.at += len(sign)
        return _Letter(plain=sign not in _WIDE and max(sign) < "\U00010000")

    def _class(self) -> _Letter:
        """Reads a class. A nested class, which only Java knows, ends it as in Python."""
        start = self.at
        self.at += 2 if self.text.startswith("[^", self.at) else 1
        self.at += self.text.startswith("]", self.at)
        while self.at < len(self.text) and self.text[self.at] != "]":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1
        inside = self.text[start + 1 : self.at - 1]
        wide = any(sign in inside for sign in _WIDE if sign != ".") or max(inside, default="") > "\uffff"
        return _Letter(plain=not wide and not inside.startswith("^"))

    def _repeated(self, part: _Part, start: int) -> _Part:
        count = _REPETITION.match(self.text, self.at)
        if count is None:
            return part
        self.at = count.end()
        if count[4]:
            least, most = _OFTEN[count[4]]
        else:
            least = int(count[1])
            most = least if count[2] is None else (int(count[3]) if count[3] else None)
        return _Repeated(part, least, most, count[5] == "+", self.text[start : self.at], count[0])
