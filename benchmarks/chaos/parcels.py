"""Parcels in Avro. Each version of their schema has another order of fields, wider types, and one more field.

So a record that is read with a schema other than the writer's gives another row, or none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lamina.services.own_processes import free_port
from tests.fix_registry import SchemaRegistry, framed, started, url_at

SUBJECT = "chaos_parcels-value"

_FIELDS = (
    {"name": "id", "type": "long"},
    {"name": "city", "type": ["null", "string"], "default": None},
    {"name": "grams", "type": ["null", "int"], "default": None},
    {
        "name": "price",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
        "default": None,
    },
)


@cache
def schema(version: int) -> dict[str, Any]:
    """A version of the schema, from 1."""
    notes = [{"name": f"note_{number}", "type": "string", "default": "none"} for number in range(2, version + 1)]
    fields = [*_FIELDS, *notes]
    turn = version % len(fields)
    text = json.dumps({"type": "record", "name": "Parcel", "fields": fields[turn:] + fields[:turn]})
    parsed: dict[str, Any] = json.loads(text.replace('"int"', '"long"') if version > 1 else text)
    return parsed


def written(version: int, row: dict[str, Any]) -> bytes:
    """A row as a producer writes it. The registry numbers the versions from 1."""
    return framed(version, schema(version), row)


@dataclass
class RegistryServer:
    """The registry of the run. Its address is known even while it is down, and a file keeps its schemas."""

    home: Path
    port: int
    _running: SchemaRegistry

    @classmethod
    def new(cls, home: Path) -> RegistryServer:
        """A registry with the first version."""
        port = free_port()
        registry = cls(home, port, started(home, port, home / "registry"))
        registry.add(1)
        return registry

    @property
    def url(self) -> str:
        """Its address, which is also asked while it is down."""
        return url_at(self.port)

    def add(self, version: int) -> None:
        """Registers a version, as a producer does before it writes with it."""
        number = self._running.add(SUBJECT, schema(version))
        assert number == version, f"the registry calls version {version} {number}"

    def stop(self) -> None:
        """Ends it (kill -9)."""
        self._running.stop()

    def start(self) -> None:
        """Starts it again."""
        self._running = started(self.home, self.port, self.home / "registry")
