"""YAML of plain values, in blocks that a person can read and edit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_(),./-]+)*")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def yaml(value: Mapping[str, Any]) -> str:
    """A mapping as YAML. None is null. Texts that YAML might read as another type are quoted.

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
        for key, item in value.items():
            name = _scalar(key)
            if isinstance(item, Mapping | list | tuple) and item:
                yield f"{name}:"
                yield from (f"  {line}" for line in _lines(item))
            else:
                yield f"{name}: {_scalar(item)}"
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    """One value on a line. Texts are quoted as in JSON, which YAML reads as double quotes."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff]", _escaped, json.dumps(value, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
