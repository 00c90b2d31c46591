"""Change events as Debezium writes them, with the schemas of their fields."""

from __future__ import annotations

import json
from typing import Any

SECONDS = 1_700_000_000
"""A time in November 2023, in seconds."""

SCHEMAS: list[dict[str, Any]] = [
    {"field": "id", "type": "int32"},
    {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
     "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"field": "total", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    {"field": "opens", "type": "int64", "name": "io.debezium.time.MicroTime"},
    {"field": "photo", "type": "bytes"},
    {"field": "tags", "type": "array", "items": {"type": "string"}},
    {"field": "note", "type": "string"},
]  # fmt: skip

AFTER = {
    "id": 7, "price": "AfQ=", "total": {"scale": 3, "value": "AfQ="}, "day": 20_000, "at": SECONDS * 1_000_000,
    "zoned": "2024-01-02T03:04:05Z", "opens": 1, "photo": "AA==", "tags": ["a"], "note": "__debezium_unavailable_value",
}  # fmt: skip


def change(after: dict[str, Any] | None, schemas: list[dict[str, Any]] | None = None, op: str = "c") -> bytes:
    event = {"before": None, "after": after, "source": {"ts_ms": 1}, "op": op, "ts_ms": 1}
    if schemas is None:
        return json.dumps(event).encode()
    fields = [{"field": "after", "type": "struct", "fields": schemas}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": event}).encode()
