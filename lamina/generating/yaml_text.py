"""YAML of plain values, in blocks that a person reads and edits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_(),./-]+)*")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def yaml(value: Mapping[str, Any]) -> str:
    """A mapping as YAML. None is null; texts that might be read as something else are quoted.

    >>> print(yaml({"name": "by city", "tests": ["unique", {"is": "no"}], "tags": [], "at": {"count": 1}}))
    name: by city
    tests:
      - unique
      - is: "no"
    tags: []
    at:
      count: 1
    <BLANKLINE>
    """
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            name = _scalar(key)
            if isinstance(each, Mapping | list | tuple) and each:
                yield f"{name}:"
                yield from (f"  {line}" for line in _lines(each))
            else:
                yield f"{name}: {_scalar(each)}"
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for each in value:
            first, *rest = _lines(each)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    """One value on a line. A text in JSON's quotes is one in YAML's double quotes."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff]", _escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
