r"""Which regular expressions Java could run for ever, or recurse in until its stack ends.

Java recurses once for every round of a group that it may have to leave in another way, so that a long enough text ends
the stack of any size; and where a group can match the same text in several ways, it tries them all. A round that gives
nothing back (`*+`, possessive) does neither, nor does a class of characters.

What remains is a power of the text's length: `.*a.*b` may look at every pair of positions of a text.

Source: OpenJDK 17 and 21, java.util.regex.Pattern (Loop, GroupCurly, CharPropertyGreedy).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from view_algebra.language.regexes import one_way

_ROUNDS = 1_000
"""Rounds of a group up to which Java may recurse: they take a twentieth of a thread's stack."""
_WAYS = 1_000_000
"""Ways through the rounds of a group that may be tried at one position of a text."""
_LONG = 1_000
"""Rounds that stand for any number of them, where ways are counted."""


@dataclass(frozen=True)
class _Letter:
    """One character, or a position between two. Is it in one unit of UTF-16, whatever it is?"""

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
    """Does it give nothing back once it is left?"""


_Part = _Letter | _Repeated | _Group


@dataclass(frozen=True)
class Endless:
    """A repetition that is refused, and what to write in its place."""

    text: str
    instead: str


def endless(java: str) -> Endless | None:
    r"""The first repetition in a regular expression that some text makes endless; None where there is none.

    >>> endless(r"^(a|b)*$")
    Endless(text='(a|b)*', instead='[ab]*')
    >>> endless(r"(\w+\s?)*\.")
    Endless(text='(\\w+\\s?)*', instead='(\\w+\\s?)*+')
    >>> endless(r"([0-9]{1,3}\.){3}[0-9]+"), endless(r"(?:\w+\s?)*+\."), endless(r"[ab]*")
    (None, None, None)
    """
    return _of_options(_Reader(java).options())


def _of_options(options: tuple[tuple[_Part, ...], ...]) -> Endless | None:
    return next((found for parts in options for part in parts if (found := _of_part(part))), None)


def _of_part(part: _Part) -> Endless | None:
    match part:
        case _Group():
            return _of_options(part.options)
        case _Repeated():
            return _of_part(part.part) or (None if _ends(part) else Endless(part.text, _instead(part)))
    return None


def _ends(repeated: _Repeated) -> bool:
    """Does Java go through all rounds in a loop, or recurse and try ways within bounds?"""
    if repeated.possessive or repeated.most in (0, 1) or isinstance(repeated.part, _Letter):
        return True
    if repeated.most is None:
        return _is_plain(repeated.part)
    return _rounds(repeated) <= _ROUNDS and (_ways(repeated) <= _WAYS or one_way(repeated.text))


def _is_plain(part: _Part) -> bool:
    """Is it of one width, with one way through it?"""
    match part:
        case _Letter():
            return part.plain
        case _Repeated():
            return part.least == part.most and _is_plain(part.part)
    return len(part.options) == 1 and all(map(_is_plain, part.options[0]))


def _rounds(part: _Part) -> int:
    """How deep Java recurses in it, about: a character is no round."""
    match part:
        case _Group():
            return max((sum(map(_rounds, parts)) for parts in part.options), default=0)
        case _Repeated() if not isinstance(part.part, _Letter):
            return 0 if part.most is None else part.most * (1 + _rounds(part.part))
    return 0


def _ways(part: _Part) -> int:
    """In how many ways it may match, about and at most."""
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
    """The same with a class of characters, or giving nothing back."""
    bare = repeated.text.removesuffix(repeated.sign)
    if letters := _ONE_OF.fullmatch(bare):
        return f"[{''.join(each.strip('[]') for each in letters[1].split('|'))}]{repeated.sign}"
    return bare + repeated.sign.rstrip("?") + "+"


_OPTION = r"(?:[\w ,;:/@#%&=~<>\"'!-]|\\[dws.tnrf\\|(){}*+?$^-]|\[[^\]\[^\\&][^\]\[\\&|]*\])"
_ONE_OF = re.compile(rf"\((?:\?:)?({_OPTION}(?:\|{_OPTION})*)\)")
"""A group of options, each of which is one character, or a class of them."""

_OPENS = re.compile(r"\((?:\?(?:<?[=!]|>|<[a-zA-Z][a-zA-Z0-9]*>|[a-zA-Z-]*:))?")
_SWITCH = re.compile(r"\(\?[a-zA-Z-]+\)")
_COUNT = re.compile(r"(?:\{(\d+)(,(\d*))?\}|([*+?]))([?+]?)", re.ASCII)
_OFTEN: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_WIDE = frozenset(r".") | {rf"\{sign}" for sign in "DSWHVNPRXX"}
"""Signs for characters that UTF-16 has in one unit, or in two."""


class _Reader:
    """Reads the structure of an expression that Java and Python take; what stands between its signs is left alone."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def options(self) -> tuple[tuple[_Part, ...], ...]:
        """What stands between | up to the end of a group."""
        found: list[tuple[_Part, ...]] = []
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                found, parts = [*found, tuple(parts)], []
            else:
                start = self.at
                parts.append(self._repeated(self._part(), start))
        return (*found, tuple(parts))

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
        """A class; one in it, which Java reads, ends it as Python does."""
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
        count = _COUNT.match(self.text, self.at)
        if count is None:
            return part
        self.at = count.end()
        if count[4]:
            least, most = _OFTEN[count[4]]
        else:
            least = int(count[1])
            most = least if count[2] is None else (int(count[3]) if count[3] else None)
        return _Repeated(part, least, most, count[5] == "+", self.text[start : self.at], count[0])
