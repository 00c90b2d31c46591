"""Patterns of LIKE as regular expressions that take linear time.

Spark's LIKE turns `%a%b%` into `.*a.*b.*` and tries every pair of positions in a text: a megabyte of `a` takes minutes,
and a pattern from a column with thirty `%` never ends. Here LIKE takes linear time. Each part of a pattern is searched
for once, from the end of the part before it, and never again (`(?>.*?a)`): the first match of a part leaves the most
text for the parts after it. Only the last part, which ends the text, is searched from the end.
"""

from __future__ import annotations

import re

from view_algebra.language.quoting import spark_text

_SIGN = re.compile(r"\\.|.", re.DOTALL)
_BEGINS = r"(?s)^(?>"
_ENDS = r")\z"
_NEXT = ")(?>.*?"
_LAST = ")(?:.*"


def like_as_regex(pattern: str) -> str | None:
    r"""The regular expression of a pattern, or None if Spark's own is as quick: with one `%`, or in the form `%a%`.

    Spark 4.1's LIKE never matches characters beyond U+FFFF, so a pattern with one always gets an expression.

    >>> like_as_regex("%a_%b%c"), like_as_regex("%a%"), like_as_regex("a%b")
    ('(?s)^(?>)(?>.*?a.)(?>.*?b)(?:.*c)\\z', None, None)
    >>> like_as_regex("😀_")
    '(?s)^(?>😀.)\\z'
    """
    signs = _SIGN.findall(pattern)
    positions = [n for n, sign in enumerate(signs) if sign == "%" and signs[n - 1 : n] != ["%"]]
    is_quick = len(positions) < 2 or (len(positions) == 2 and signs[0] == signs[-1] == "%")
    if is_quick and max(pattern, default="") <= "\uffff":
        return None
    return (
        _BEGINS
        + "".join(
            _as_regex(sign) if sign != "%" else "" if n not in positions else _LAST if n == positions[-1] else _NEXT
            for n, sign in enumerate(signs)
        )
        + _ENDS
    )


def _as_regex(sign: str) -> str:
    """A literal character in a regular expression."""
    return "." if sign == "_" else re.escape(sign[-1])


def like_as_regex_in_spark(pattern: str) -> str:
    r"""Spark SQL of `like_as_regex` for a pattern from a record.

    Signs of regular expressions are escaped first, so that a backslash precedes every literal character. `\G` then
    moves from one `_`, or run of `%`, to the next.
    """
    escaped = rf"regexp_replace({pattern}, '[\\[\\](){{}}.*+?^$|#&~-]', '\\\\$0')"
    single = rf"regexp_replace({escaped}, '(?s)\\G((?:[^\\\\_]|\\\\.)*+)_', '$1.')"
    part = r"(?s)\\G((?:[^\\\\%]|\\\\.)*+)%++"
    more = rf"regexp_replace({single}, '{part}(?=(?:[^\\\\%]|\\\\.)*+%)', '$1{_NEXT}')"
    last = rf"regexp_replace({more}, '{part}', '$1{_LAST}')"
    return rf"concat('{_BEGINS}', {last}, '){chr(92)}{chr(92)}z')"


LONGEST_PATTERN = 10_000
"""Most characters of a LIKE pattern from a record: Java recurses for each `%`."""

ESCAPES_NOTHING = r"(?<!\\)(\\\\)*\\(?![%_\\])"
"""A part of a LIKE pattern at which Spark fails: a backslash before a character that needs none, or at the end."""


def refuses_pattern(pattern: str) -> str:
    """The condition, in Spark SQL, that Spark fails at a pattern of LIKE."""
    escapes = f"({pattern}) RLIKE {spark_text(ESCAPES_NOTHING)}"
    return f"char_length({pattern}) > {LONGEST_PATTERN} OR {escapes}"
