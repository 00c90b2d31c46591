"""Mistakes in the author's SQL: where, why, and what works instead. All mistakes of a catalog are shown at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from view_algebra.errors import Refused


@dataclass(frozen=True)
class Span:
    """A piece of a file, as half-open character offsets."""

    start: int
    end: int


@dataclass(frozen=True)
class File:
    """A `.sql` file of the catalog."""

    path: str
    text: str

    def line(self, offset: int) -> int:
        """The number of the line, from 1, that holds an offset."""
        return self.text.count("\n", 0, offset) + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a column, from 0, of a line, from 1."""
        lines = self.text.split("\n")
        return sum(len(text) + 1 for text in lines[: line - 1]) + column


class Wrong(Exception):
    """Raised by a pass at a mistake. `compile_catalog` adds the file and the declaration's name, and continues."""

    def __init__(self, span: Span | None, reason: str, way_out: str) -> None:
        super().__init__(reason)
        self.span = span
        self.reason = reason
        self.way_out = way_out


class HasObstacle(Wrong):
    """Raised for a part that Postgres does not compute as Spark does, if no reading of FROM avoids it."""


@dataclass(frozen=True)
class Mistake:
    """A mistake with its place."""

    file: File
    span: Span | None
    subject: str
    reason: str
    way_out: str

    @property
    def what(self) -> str:
        """One sentence with the file, the line, the declaration, and the reason."""
        line = self.file.line(self.span.start) if self.span else 1
        subject = f"{self.subject}: " if self.subject else ""
        return f"{self.file.path}:{line}: {subject}{self.reason}"

    @property
    def evidence(self) -> str:
        """The author's line with a caret under the place."""
        return caret(self.file, self.span) if self.span else ""


def caret(file: File, span: Span) -> str:
    r"""The line of a span, numbered, with a caret under the span.

    >>> print(caret(File("v.sql", "SELECT\n  mode(price)\nFROM s"), Span(9, 13)))
      2 |   mode(price)
            ^^^^

    A long line is cut around the span:

    >>> print(caret(File("v.sql", f"SELECT mode(price), {'a + ' * 99}a FROM s"), Span(7, 11)))
      1 | SELECT mode(price), a + a + a + a + a + a + a + a + a + a + a + a + a + a + a +…
                 ^^^^
    """
    start = min(span.start, max(0, len(file.text) - 1))
    number = file.line(start)
    line = file.text.split("\n")[number - 1]
    column = start - file.offset(number, 0)
    width = max(1, min(span.end - span.start, len(line) - column))
    if len(line) > LONG_LINE:
        first, last = max(0, column - AROUND), column + AROUND
        before, after = "…" * (first > 0), "…" * (last < len(line))
        line, column, width = f"{before}{line[first:last]}{after}", column - first + len(before), min(width, AROUND)
    margin = f"  {number} | "
    return f"{margin}{line}\n{' ' * (len(margin) + column)}{'^' * width}"


LONG_LINE, AROUND = 240, 72
"""Characters: lines longer than the first are cut. The second is kept on either side of the span."""


def refuse_all(mistakes: Iterable[Mistake]) -> Refused:
    """One error that prints every mistake, in the order of files and lines."""
    ordered = sorted(mistakes, key=lambda m: (m.file.path, m.span.start if m.span else 0, m.reason))
    if len(ordered) == 1:
        return Refused(ordered[0].what, evidence=ordered[0].evidence, way_out=ordered[0].way_out)
    messages = [str(Refused(m.what, evidence=m.evidence, way_out=m.way_out)) for m in ordered]
    return Refused(f"{len(ordered)} mistakes in the catalog", evidence="\n\n".join(messages))


def suggestion(name: str, choices: Iterable[str]) -> str:
    """A hint at the nearest of several names, or their list.

    >>> suggestion("contry", ["country", "city"])
    'Did you mean country?'
    >>> suggestion("x", ["country", "city"])
    'There are: city, country.'
    """
    names = sorted(set(choices))
    near = get_close_matches(name.lower(), names, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"There are: {shown}." if names else "There are none."


def not_taken(function: str, count: int) -> str:
    """The refusal of a call with this number of arguments.

    >>> not_taken("grouping", 1)
    'grouping() does not take 1 argument'
    """
    return f"{function}() does not take {count} argument{'' if count == 1 else 's'}"


def span(node: exp.Expr) -> Span | None:
    """The span of a node in its file: its own token, else from its first to its last token."""
    if "start" in node.meta:
        return Span(node.meta["start"], node.meta["end"] + 1)
    inside = [part for part in node.walk(prune=lambda part: _EXTENT in part.meta) if _EXTENT not in part.meta]
    for part in reversed(inside):  # the parts inside a part come before it
        spans = [Span(part.meta["start"], part.meta["end"] + 1)] if "start" in part.meta else []
        spans += [extent for inner in part.iter_expressions() if (extent := inner.meta[_EXTENT]) is not None]
        part.meta[_EXTENT] = Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else None
    whole: Span | None = node.meta[_EXTENT]
    return whole


_EXTENT = "lamina_extent"
"""The key in a node's `meta` of the span of its tokens, so that a long sum is not walked once per term."""


def moved_to(body: exp.Expr, place: Span | None) -> exp.Expr:
    """A copy of a body with the places of the call that it replaces.

    A literal keeps its length, which tells 2L from 2.
    """
    moved = body.copy()
    for part in moved.walk():
        part.meta.pop(_EXTENT, None)
        if "start" in part.meta and place is not None:
            length = part.meta["end"] - part.meta["start"]
            end = place.start + length if isinstance(part, exp.Literal) else place.end - 1
            part.meta.update(start=place.start, end=end)
    return moved
