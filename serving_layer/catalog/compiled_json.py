"""Compiled sources, views and catalogs as the JSON that the database stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def to_json(compiled: object) -> Any:
    """A source, a view or a catalog as JSON."""
    return _adapter(type(compiled)).dump_python(compiled, mode="json")


def from_json(kind: type[T], json: object) -> T:
    """The source, view or catalog that `to_json` turned into this JSON."""
    validated: T = _adapter(kind).validate_python(json)
    return validated


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The adapter of a type, created on first use. That takes 20 ms, and most commands need none."""
    if kind not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
