"""Fills the templates of the table of functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from view_algebra.engines.postgres.nested import inside
from view_algebra.engines.postgres.writing import ATOM, CAST, Reading, as_text, by_bytes
from view_algebra.language.expressions import Call, Constant
from view_algebra.language.literals import pattern
from view_algebra.language.overloads import overload
from view_algebra.language.regexes import decides, finds, replacement
from view_algebra.language.types import STRING, VOID

_SPELLED: dict[str, Callable[[str], str | None]] = {
    "pattern": pattern,
    "translated": decides,
    "unambiguous": finds,
    "replacement": replacement,
}
"""Kinds of literals that Postgres writes differently."""

_SLOT = re.compile(r"(?P<before>\(|, )?\{(?P<name>[a-z0-9]+)(?::(?P<default>[^}]*))?\}(?=(?P<after>[,)])?)")


def filled(template: str, call: Call, reading: Reading) -> tuple[str, int]:
    """The template of the function table, filled with the call's arguments."""
    arguments = call.arguments
    collated = call.function in ("greatest", "least") and call.type == STRING

    def slot(match: re.Match[str]) -> str:
        name, before = match["name"], match["before"] or ""
        if name in ("all", "rest"):
            texts = [reading.text(a) for a in arguments[1 if name == "rest" else 0 :]]
            if collated:
                texts[0] = by_bytes(arguments[0], reading.text(arguments[0], CAST))
            return before + ", ".join(texts)
        if name == "element":
            return before + (arguments[0].type.element or STRING).postgres
        if name == "inside":
            return before + ", ".join(inside(a, reading) for a in arguments)
        if name == "pipes":
            return before + " || ".join(as_text(a, reading) for a in arguments)
        if int(name) >= len(arguments):
            return before + (match["default"] or "")
        argument = arguments[int(name)]
        if isinstance(argument, Constant) and (spelled := _SPELLED.get(_kind_of(call, int(name)))):
            argument = replace(argument, value=spelled(argument.value or ""))
        enclosed = bool(before) and bool(match["after"])
        if isinstance(argument, Constant) and argument.value is None and argument.type != VOID:
            null = f"NULL::{argument.type.postgres}"
            return before + (null if enclosed else f"({null})")
        return before + reading.text(argument, 0 if enclosed else ATOM)

    text = _SLOT.sub(slot, template)
    whole = re.fullmatch(r"[a-z_.]+\(.*\)", text) is not None and _balanced(text)
    return text, ATOM if whole or template == "{0}" else 0


def _kind_of(call: Call, position: int) -> str:
    """The kind of the argument at this position in the table of functions."""
    row = overload(call)
    return row.takes[position].rstrip("?") if row is not None and position < len(row.takes) else ""


def _balanced(text: str) -> bool:
    """True if the first parenthesis closes at the very end."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return position == len(text) - 1
    return False
