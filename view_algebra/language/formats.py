"""Checks formats of printf() and format_string(): Java raises at a format that does not fit its arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from view_algebra.language.expressions import Constant, Expr, Place
from view_algebra.language.types import STRING, Type
from view_algebra.refusals import Wrong

_CONVERSION = re.compile(r"%(?P<how>[^a-zA-Z%]*)(?P<letter>[a-zA-Z%]?)")

_WIDTH = r"(0?[1-9]\d{0,2}|-[1-9]\d{0,2})?"
_HOW = {
    "s": r"(-?[1-9]\d{0,2})?(\.\d{1,3})?",
    "d": rf"[,+]?{_WIDTH}",
    "x": _WIDTH,
    "f": rf"[,+]?{_WIDTH}(\.\d{{1,2}})?",
    "e": rf"\+?{_WIDTH}(\.\d{{1,2}})?",
    "%": "",
}
"""The characters allowed between % and the letter of a conversion."""


def _takes(letter: str, kind: Type) -> bool:
    """True if Java accepts the value that Spark passes; it does not know Spark's DECIMAL."""
    if letter == "s":
        return kind.integral or kind.name in ("STRING", "BOOLEAN", "DOUBLE", "FLOAT", "VOID")
    return kind.integral if letter in "dx" else kind.name in ("DOUBLE", "FLOAT")


def refuse_format(name: str, arguments: Sequence[Expr], place: Place) -> None:
    """Raises `Wrong` for a format that could raise, because no record may stop a stream."""
    text = arguments[0].value or "" if isinstance(arguments[0], Constant) else ""
    place, values = arguments[0].place or place, list(arguments[1:])
    for conversion in _CONVERSION.finditer(text):
        letter = conversion["letter"]
        if letter not in _HOW or re.fullmatch(_HOW[letter], conversion["how"]) is None:
            way_out = "There are %s, %d, %x, %f and %e, as in '%05d' and '%.2f', and %% for %."
            raise Wrong(place, f"{name}() with {conversion[0]!r}", way_out)
        if letter == "%":
            continue
        if not values:
            raise Wrong(
                place, f"{name}() with {conversion[0]!r} and no value for it", "Give as many values as it has signs."
            )
        value = values.pop(0)
        if not _takes(letter, value.type):
            wanted = {"s": STRING, "d": "BIGINT", "x": "BIGINT"}.get(letter, "DOUBLE")
            raise Wrong(
                value.place or place, f"{name}() with {conversion[0]!r} of {value.type}", f"Write CAST(… AS {wanted})."
            )
