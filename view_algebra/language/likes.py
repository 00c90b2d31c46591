r"""LIKE in Spark, in time that is proportional to the text.

Spark makes `.*a.*b.*` of `%a%b%` and tries every pair of positions in a text: a megabyte of `a` takes minutes, and a
pattern from a column with thirty `%` for ever. Here each part of a pattern is searched for once, from where the one
before it was found, and is then kept (`(?>.*?a)`): what follows `%` can be found from a later position as well as from
an earlier one. Only the last part, which ends the text, is searched from the end.
"""

from __future__ import annotations

import re

_SIGN = re.compile(r"\\.|.", re.DOTALL)
_BEGINS = r"(?s)^(?>"
_ENDS = r")\z"
_NEXT = ")(?>.*?"
_LAST = ")(?:.*"


def regular(pattern: str) -> str | None:
    r"""The regular expression of a pattern; None where Spark's own way is as quick: with one `%`, or as in `%a%`.

    Spark 4.1 finds no character beyond U+FFFF by LIKE, so a pattern that has one is always given.

    >>> regular("%a_%b%c"), regular("%a%"), regular("a%b")
    ('(?s)^(?>)(?>.*?a.)(?>.*?b)(?:.*c)\\z', None, None)
    >>> regular("😀_")
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
            _written(sign) if sign != "%" else "" if n not in positions else _LAST if n == positions[-1] else _NEXT
            for n, sign in enumerate(signs)
        )
        + _ENDS
    )


def _written(sign: str) -> str:
    """A character of the text as a regular expression has it."""
    return "." if sign == "_" else re.escape(sign[-1])


def regular_in_spark(pattern: str) -> str:
    r"""Spark SQL of the same, of a pattern that a record holds.

    Signs of regular expressions are escaped first, so that a backslash stands before every character that is itself;
    `\G` then goes from one `_`, or run of `%`, to the next.
    """
    escaped = rf"regexp_replace({pattern}, '[\\[\\](){{}}.*+?^$|#&~-]', '\\\\$0')"
    single = rf"regexp_replace({escaped}, '(?s)\\G((?:[^\\\\_]|\\\\.)*+)_', '$1.')"
    part = r"(?s)\\G((?:[^\\\\%]|\\\\.)*+)%++"
    more = rf"regexp_replace({single}, '{part}(?=(?:[^\\\\%]|\\\\.)*+%)', '$1{_NEXT}')"
    last = rf"regexp_replace({more}, '{part}', '$1{_LAST}')"
    return rf"concat('{_BEGINS}', {last}, '){chr(92)}{chr(92)}z')"
