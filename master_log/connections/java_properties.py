"""Java's properties format, in which Kafka's clients and Spark are configured."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_PAIR = re.compile(r"((?:[^\\ \t\f:=]|\\.)*)[ \t\f]*(?:[:=][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(text: str) -> dict[str, str]:
    r"""The keys and values as `java.util.Properties` reads them. The last value of a repeated key wins.

    >>> properties("# ours\nsasl.mechanism=PLAIN\nspark.driver.memory  4g\na: b=c\n")
    {'sasl.mechanism': 'PLAIN', 'spark.driver.memory': '4g', 'a': 'b=c'}
    >>> properties("list = one,\\\n   two\nbare\npath=C:\\\\x\\u00e9")
    {'list': 'one,two', 'bare': '', 'path': 'C:\\xé'}
    """
    pairs = (_PAIR.match(line) for line in _lines(text) if line)
    return {_unescaped(pair[1]): _unescaped(pair[2]) for pair in pairs if pair}


def _lines(text: str) -> Iterator[str]:
    """Lines without comments. A line that ends in a backslash continues on the next."""
    whole = ""
    continues = False
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(_BLANK)
        if not continues and stripped.startswith(("#", "!")):
            continue
        continues = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        whole += stripped[:-1] if continues else stripped
        if not continues:
            yield whole
            whole = ""
    yield whole


def _unescaped(text: str) -> str:
    def letter(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else _LETTERS.get(escape[2], escape[2])

    return _ESCAPE.sub(letter, text)
