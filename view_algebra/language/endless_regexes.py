"""Finds the repetitions in Java's regular expressions that some text makes endless.

Java recurses once for every round of a group that it may have to match differently, so a long text overflows a stack of
any size. If a group can match the same text in several ways, Java tries them all, which takes exponential time. A
possessive repetition (`*+`) does neither, nor does a character class. The remaining cost is polynomial in the text's
length: `.*a.*b` may look at every pair of positions of a text.

Sources: docs.oracle.com, java.util.regex.Pattern. OpenJDK 17 and 21, the same class (Loop, GroupCurly,
CharPropertyGreedy).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from view_algebra.language.regexes import one_way, rounds

_MOST_ROUNDS = 1_000
"""Most rounds of a group in which Java may recurse: they take a twentieth of a thread's stack."""
_MOST_PATHS = 1_000_000
"""Most paths through the rounds of a group that may be tried at one position of a text."""
_LONG = 1_000
"""Rounds that represent any number of them when paths are counted."""


@dataclass(frozen=True)
class _Character:
    """One character, or a position between two. The flag is True if every such character is one unit of UTF-16."""

    plain: bool


@dataclass(frozen=True)
class _Repeated:
    part: _Part
    least: int
    most: int | None
    possessive: bool
    text: str
    count: str


@dataclass(frozen=True)
class _Group:
    options: tuple[tuple[_Part, ...], ...]
    atomic: bool
    """True if it never backtracks after it has matched."""


_Part = _Character | _Repeated | _Group


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
    >>> endless(r"([\ud83d\ude00a])*")
    EndlessRepetition(text='([\\ud83d\\ude00a])*', instead='([\\ud83d\\ude00a])*+')
    >>> endless(r"([0-9]{1,3}\.){3}[0-9]+"), endless(r"(?:\w+\s?)*+\."), endless(r"[ab]*")
    (None, None, None)
    """
    return _endless_in_options(_Skeleton(java).options())


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
    if repeated.possessive or repeated.most in (0, 1) or isinstance(repeated.part, _Character):
        return True
    if repeated.most is None:
        return _is_plain(repeated.part)
    return _rounds(repeated) <= _MOST_ROUNDS and (_most_paths(repeated) <= _MOST_PATHS or one_way(repeated.text))


def _is_plain(part: _Part) -> bool:
    """True if it has one width and one path."""
    match part:
        case _Character():
            return part.plain
        case _Repeated():
            return part.least == part.most and _is_plain(part.part)
    return len(part.options) == 1 and all(map(_is_plain, part.options[0]))


def _rounds(part: _Part) -> int:
    """Java's approximate depth of recursion in a part. A character does not count."""
    match part:
        case _Group():
            return max((sum(map(_rounds, parts)) for parts in part.options), default=0)
        case _Repeated() if not isinstance(part.part, _Character):
            return 0 if part.most is None else part.most * (1 + _rounds(part.part))
    return 0


def _most_paths(part: _Part) -> int:
    """An approximate upper bound of the paths through a part."""
    match part:
        case _Group():
            return 1 if part.atomic else sum(prod(map(_most_paths, parts)) for parts in part.options)
        case _Repeated():
            rounds = _LONG if part.most is None else part.most
            inside = 1 if part.possessive else min(_most_paths(part.part), 2 * _MOST_PATHS)
            lengths = 1 if part.possessive else rounds - part.least + 1
            return lengths * (min(inside**rounds, 2 * _MOST_PATHS) if inside > 1 else 1)
    return 1


def _instead(repeated: _Repeated) -> str:
    """The repetition with a character class, or made possessive."""
    bare = repeated.text.removesuffix(repeated.count)
    if letters := _ONE_OF.fullmatch(bare):
        return f"[{''.join(letter.strip('[]') for letter in letters[1].split('|'))}]{repeated.count}"
    return bare + repeated.count.rstrip("?") + "+"


_OPTION = r"(?:[\w ,;:/@#%&=~<>\"'!-]|\\[dws.tnrf\\|(){}*+?$^-]|\[[^\]\[^\\&][^\]\[\\&|]*\])"
_ONE_OF = re.compile(rf"\((?:\?:)?({_OPTION}(?:\|{_OPTION})*)\)")
"""A group of options that are all one character or a character class."""

_OPENS = re.compile(r"\((?:\?(?:<?[=!]|>|<[a-zA-Z][a-zA-Z0-9]*>|[a-zA-Z-]*:))?")
_SWITCH = re.compile(r"\(\?[a-zA-Z-]+\)")
_REPETITION = re.compile(r"(\{\d+(?:,\d*)?\}|[*+?])([?+]?)", re.ASCII)
_WIDE = frozenset([".", r"\D", r"\S", r"\W", r"\N", r"\ud", r"\uD"])
"""Signs whose characters take one or two units of UTF-16. A surrogate in a class stands for half a character."""


class _Skeleton:
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
            return _Character(plain=True)
        if opens := _OPENS.match(self.text, self.at):
            self.at = opens.end()
            options = self.options()
            self.at += 1
            return _Group(options, atomic=opens[0] in ("(?>", "(?=", "(?!", "(?<=", "(?<!"))
        if self.text[self.at] == "[":
            return self._class()
        sign = self.text[self.at : self.at + (2 if self.text[self.at] == "\\" else 1)]
        self.at += len(sign)
        return _Character(plain=sign not in _WIDE and max(sign) < "\U00010000")

    def _class(self) -> _Character:
        """Reads a class. A nested class, which only Java knows, ends it as in Python."""
        start = self.at
        self.at += 2 if self.text.startswith("[^", self.at) else 1
        self.at += self.text.startswith("]", self.at)
        while self.at < len(self.text) and self.text[self.at] != "]":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1
        inside = self.text[start + 1 : self.at - 1]
        wide = any(sign in inside for sign in _WIDE if sign != ".") or max(inside, default="") > "\uffff"
        return _Character(plain=not wide and not inside.startswith("^"))

    def _repeated(self, part: _Part, start: int) -> _Part:
        match = _REPETITION.match(self.text, self.at)
        if match is None:
            return part
        self.at = match.end()
        least, most = rounds(match[1])
        return _Repeated(part, least, most, match[2] == "+", self.text[start : self.at], match[0])
