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

`as printed` stands if the error prints SQL: the declarations that compile have it where they differ from the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
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
"""Placeholders for the author's own SQL, such as x in `percentile(x, 0.9)`."""
_SQL = re.compile(r"[A-Z][A-Z_]+|\w*_\w*|['`\d].*|[(.<>=\[]")
_CLAUSES = {"FROM", "WHERE", "HAVING", "FILTER", "QUALIFY", "LIMIT", "RANGE", "PRECEDING", "ROLLUP"}
"""Words that name a clause. Alone, they are not SQL that could replace anything."""
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
    "out",
    "is",
    "while",
    "to",
    "the",
    "first",
    "itself",
}
"""Words and signs of a sentence, between which a piece of SQL stands."""
_WORD = re.compile(r"(?:Did you mean|alone:|ORDER BY:) (?!FROM)(\w+)|Write ((?=\S*[\\*])\S+?)\.?(?= |$)")
"""A name or a regular expression, which is a piece of its own."""

_LONGEST = 40
"""Most tokens that a hole stands for."""


def printed_sql(way_out: str, refused: str, instead: str) -> str:
    """The longest piece of SQL in a way out that is in `instead`, where this differs from what was refused.

    The piece is there letter by letter, apart from its holes. Empty if there is none.

    >>> printed_sql("Write percentile(x, 0.9), which is exact.", "SELECT p9(n)", "SELECT percentile(n + 1, 0.9)")
    'percentile ( x , 0.9 )'
    >>> printed_sql("Write percentile(x, 0.9), which is exact.", "SELECT p9(n)", "SELECT percentile(n + 1, 0.5)")
    ''
    >>> printed_sql("Did you mean country?", "SELECT county FROM s", "SELECT country FROM s")
    'country'
    >>> printed_sql("Write country.", "SELECT country FROM t JOIN s", "SELECT country FROM s")
    ''
    """
    words, tokens = _TOKEN.findall(way_out), _TOKEN.findall(instead)
    changed = _changed(_TOKEN.findall(refused), tokens)
    if (suggested := _WORD.search(way_out)) and (word := suggested[1] or suggested[2]) in instead:
        new = word not in refused or any(word in tokens[place] for place in changed if place < len(tokens))
        return word if new else ""
    pieces: list[list[str]] = [
        words[first:last]
        for first in range(len(words))
        if first == 0 or words[first - 1] in _BEFORE
        for last in _ends(words, first, tokens, changed)
        if (last == len(words) or words[last] in _BEHIND) and _is_sql(words[first:last])
    ]
    return max((" ".join(piece) for piece in pieces), key=len, default="")


def _changed(refused: Sequence[str], instead: Sequence[str]) -> set[int]:
    """The places of the tokens that are new, and of the neighbours of those that are gone."""
    changed = set[int]()
    for edit, _, _, first, last in SequenceMatcher(None, refused, instead, autojunk=False).get_opcodes():
        if edit != "equal":
            changed |= set(range(first, last)) or {first - 1, first}
    return changed


def _is_sql(piece: Sequence[str]) -> bool:
    """True if every bracket is closed and some word is one of SQL, which is not the name of a clause alone."""
    if len(piece) == 1 and piece[0] in _CLAUSES:
        return False
    opened = sum(word in "([{" for word in piece)
    return opened == sum(word in ")]}" for word in piece) and any(map(_SQL.fullmatch, piece))


def _ends(words: Sequence[str], first: int, tokens: Sequence[str], changed: set[int]) -> set[int]:
    """The ends of all pieces that begin at `first` and occur in `tokens` over one that is changed."""
    ahead = [(first, start, start) for start in range(len(tokens))]
    reached = set(ahead)
    while ahead:
        word, token, start = ahead.pop()
        if word < len(words) and token < len(tokens):
            new = {(word + 1, behind, start) for behind in _matches(words[word], tokens, token)} - reached
            reached |= new
            ahead += new
    return {word for word, end, start in reached if not changed.isdisjoint(range(start, end))}


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
