"""STRUCTs and MAPs for objects with known fields."""

from __future__ import annotations

import re
from collections.abc import Mapping

from view_algebra.language.types import STRING, Type

WIDEST = 100
"""Most fields of a STRUCT. An object with more is a MAP."""

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Field names of a STRUCT, which SQL may need in backticks."""


def struct_or_map(parts: Mapping[str, Type]) -> Type:
    """A STRUCT of these fields, or a MAP if there are none or their names do not fit a STRUCT."""
    has_twins = len({name.lower() for name in parts}) < len(parts)
    if not parts or has_twins or len(parts) > WIDEST or not all(map(_FIELD.fullmatch, parts)):
        return map_type(parts)
    return Type("STRUCT", fields=tuple(parts.items()))


def map_type(parts: Mapping[str, Type]) -> Type:
    """A MAP of the parts' type, or of STRING if they have several."""
    kinds = set(parts.values())
    return Type("MAP", key=STRING, element=kinds.pop() if len(kinds) == 1 else STRING)
