"""Reads `refusals/`: declarations that are refused, by subject, and what their error suggests instead.

A file holds cases like these two, with an empty line between them. The errors are next to it, in a file `.txt`:

    -- a percentile of text
    CREATE VIEW v AS
    SELECT percentile_approx(kind, 0.9) AS p FROM events;
    -- instead, as printed
    CREATE VIEW v AS
    SELECT percentile_approx(CAST(kind AS DOUBLE), 0.9) AS p FROM events;

    -- OR REPLACE
    CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM events;
    -- instead
    CREATE VIEW v AS SELECT count(*) AS n FROM events;

`as printed` stands where the error prints SQL: that SQL is in the declarations that compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "refusals"
BASE = (FOLDER / "base.sql").read_text(encoding="utf-8")
"""The catalog to which each case is added."""

SUBJECTS = sorted(path for path in FOLDER.glob("*.sql") if path.stem != "base")

_INSTEAD = re.compile(r"\n-- instead(, as printed)?\n")


@dataclass(frozen=True)
class Refusal:
    """Declarations that are refused, and declarations that work instead (empty: the error suggests none)."""

    name: str
    sql: str
    instead: str
    as_printed: bool


def refusals(subject: Path) -> list[Refusal]:
    """The cases of a file."""
    return [_refusal(case) for case in re.split(r"\n\n(?=-- )", subject.read_text(encoding="utf-8").rstrip("\n"))]


def _refusal(case: str) -> Refusal:
    heading, sql = case.split("\n", 1)
    refused, *instead = _INSTEAD.split(sql)
    printed, declarations = instead or (None, "")
    return Refusal(heading.removeprefix("-- "), refused, declarations, printed is not None)


_TOKEN = re.compile(r"(?<!\w)'(?:[^']|'')*'|`[^`]*`|\w+(?:\.\d+)?|…|<=|>=|<>|!=|->|\|\||\S")
_HOLE = re.compile(r"…|'…'|[a-z]|(another_)?name|list|days|tags|ts")
"""Names for something of the author's, such as x in `percentile(x, 0.9)`."""
_SQL = re.compile(r"[A-Z][A-Z_]+|\w*_\w*|['`\d].*|[(.<>=\[]")
_BEFORE = {
    *"(:;,",
    "Write",
    "write",
    "There",
    "is",
    "mean",
    "example",
    "as",
    "or",
    "and",
    "in",
    "by",
    "with",
    "take",
    "Take",
    "Use",
    "use",
    "it",
    "into",
    "to",
    "written",
}
_BEHIND = {
    *".,;:?)",
    "or",
    "for",
    "of",
    "in",
    "and",
    "as",
    "if",
    "around",
    "with",
    "before",
    "which",
    "where",
    "over",
    "beside",
    "out",
    "is",
    "while",
    "to",
    "the",
    "first",
    "itself",
}
"""Words of a sentence, and signs, between which a piece of SQL stands."""
_WORD = re.compile(r"(?:Did you mean|alone:|ORDER BY:) (\w+)|Write ((?=\S*[\\*])\S+?)\.?(?= |$)")
"""A name, or a regular expression, that is all of a piece."""

_LONGEST = 40
"""Tokens that a hole stands for."""


def printed_sql(way_out: str, sql: str) -> str:
    """The longest piece of SQL in a way out that is in `sql` letter by letter, apart from its holes, or an empty text.

    >>> printed_sql("Write percentile(x, 0.9), which is exact.", "SELECT percentile(n + 1, 0.9) FROM s")
    'percentile ( x , 0.9 )'
    >>> printed_sql("Write percentile(x, 0.9), which is exact.", "SELECT percentile(n + 1, 0.5) FROM s")
    ''
    >>> printed_sql("Did you mean country?", "SELECT country FROM s")
    'country'
    """
    if (suggested := _WORD.search(way_out)) and (word := suggested[1] or suggested[2]) in sql:
        return word
    words, tokens = _TOKEN.findall(way_out), _TOKEN.findall(sql)
    pieces: list[list[str]] = [
        words[first:last]
        for first in range(len(words))
        if first == 0 or words[first - 1] in _BEFORE
        for last in _ends(words, first, tokens)
        if (last == len(words) or words[last] in _BEHIND) and _is_sql(words[first:last])
    ]
    return max((" ".join(piece) for piece in pieces), key=len, default="")


def _is_sql(piece: Sequence[str]) -> bool:
    """True if every bracket is closed and some word is one of SQL."""
    opened = sum(word in "([{" for word in piece)
    return opened == sum(word in ")]}" for word in piece) and any(map(_SQL.fullmatch, piece))


def _ends(words: Sequence[str], first: int, tokens: Sequence[str]) -> set[int]:
    """The ends of all pieces that begin at `first` and occur in `tokens`."""
    ahead = [(first, start) for start in range(len(tokens))]
    reached = set(ahead)
    while ahead:
        word, token = ahead.pop()
        if word < len(words) and token < len(tokens):
            new = {(word + 1, behind) for behind in _matches(words[word], tokens, token)} - reached
            reached |= new
            ahead += new
    return {word for word, _ in reached}


def _matches(word: str, tokens: Sequence[str], first: int) -> Iterator[int]:
    """The ends of the tokens that a word stands for: the same token, or for a hole any tokens in balanced brackets."""
    if word.lower() == tokens[first].lower():
        yield first + 1
    if not _HOLE.fullmatch(word):
        return
    depth = 0
    for last, token in enumerate(tokens[first : first + _LONGEST], first):
        depth += (token in "([{") - (token in ")]}")
        if depth < 0:
            return
        if depth == 0:
            yield last + 1
