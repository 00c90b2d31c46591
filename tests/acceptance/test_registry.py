"""Topics in Avro and Protobuf: a record is read by the schema that wrote it, also when the registry is gone."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from lamina.services.processes import free_port
from master_log.login import Address
from tests.fix_lamina import CommandLine, Deployed
from tests.fix_registry import framed, in_frame, started
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import message_of

CATALOG = """
CREATE TABLE orders (id BIGINT, country STRING, amount DECIMAL(12,2), placed_at TIMESTAMP)
USING kafka OPTIONS (topic '{topics}_orders', format 'avro') TBLPROPERTIES ('event_time' = 'placed_at');
CREATE VIEW by_country AS
SELECT country, count(*) AS orders, sum(amount) AS amount, max(placed_at) AS newest FROM orders GROUP BY country;
CREATE TABLE visits (id BIGINT, country STRING) USING kafka OPTIONS (topic '{topics}_visits', format 'protobuf');
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING)
USING kafka OPTIONS (topic '{topics}_customers', format 'debezium-avro');
CREATE VIEW visitors AS SELECT country, count(*) AS visits, sum(id) AS ids FROM visits GROUP BY country;
"""
ROWS = "SELECT country, orders, amount, to_char(newest, 'HH24:MI:SS.MS') FROM by_country ORDER BY country"


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "order", "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


FIRST = schema(id="int", amount={"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2})
SECOND = schema(
    country=["null", "string"],
    placed_at={"type": "long", "logicalType": "timestamp-millis"},
    id="long",
    amount="double",
)
THIRD = schema(id="string", country="string")
VISIT = 'syntax = "proto3"; package shop; message Page {} message Visit { int64 id = 1; optional string country = 2; }'
ORDER = {"id": 2**40, "amount": 1.5, "country": "NL", "placed_at": 1_767_323_045_678}


KEY = schema(id="long")
CUSTOMER = schema(id="long", name="string")
CHANGE = schema(before=["null", CUSTOMER | {"name": "row"}], after=["null", "row"], op="string")


VISITORS = "SELECT * FROM visitors ORDER BY country"
VISITED = [("NL", 1, 2**40), (None, 5, 10)]


def visit(by: int, **fields: Any) -> bytes:
    """A message as serializers of a registry write it."""
    written = message_of(Schema("PROTOBUF", VISIT), "shop.Visit")(**fields)
    return in_frame(by, b"\2\2" + bytes(written.SerializeToString()))


def test_records_are_read_by_the_schema_that_wrote_them_also_when_the_registry_is_gone(
    deployed: Deployed, lamina: CommandLine, tmp_path: Path
) -> None:
    port = free_port()
    registry = started(deployed.deployment.settings.home, port)
    addresses = (Address(registry.url),)
    deployed.deployment.settings = replace(deployed.deployment.settings, schema_registry=addresses)
    deployed.apply(catalog=CATALOG)
    orders = f"{deployed.topic('orders')}-value"
    one, two = registry.add(orders, FIRST), registry.add("another", SECOND)
    visits = registry.add("visits", VISIT)
    key, change = registry.add("key", KEY), registry.add("change", CHANGE)
    with deployed.speed():
        for row in ({"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}):
            event = framed(change, CHANGE, {"op": "c", "before": None, "after": row})
            deployed.send("customers", (framed(key, KEY, {"id": row["id"]}), event))
        deployed.send("customers", (framed(key, KEY, {"id": 2}), None))
        deployed.send("visits", b"\0\0\0\0\x03\4", framed(one, FIRST, {"id": 1, "amount": Decimal(1)}))
        deployed.send("visits", *(visit(visits, id=n) for n in range(5)), visit(visits, id=2**40, country="NL"))
        deployed.send("orders", *(framed(one, FIRST, {"id": n, "amount": Decimal("0.10")}) for n in range(50)))
        deployed.wait_for("orders")
        assert deployed.rows("SELECT * FROM by_country") == [(None, 50, Decimal("5.00"), None)]
        deployed.send("orders", framed(one, FIRST, {"id": 50, "amount": Decimal("0.10")}))
        deployed.send("orders", framed(two, SECOND, ORDER), framed(two, SECOND, ORDER | {"country": None}))
        deployed.send("orders", framed(4711, SECOND, ORDER), b'{"id": 1}')
        # What a sender says of a bad record decides nothing about schemas.
        spoof = [("lamina-problem", b"the schema 2 is not known yet")]
        deployed.producer.send(deployed.topic("orders"), b"\0\0\0\0\3", headers=spoof).get()
        deployed.wait_for("orders")
        rows: list[tuple[Any, ...]] = [
            ("NL", 1, Decimal("1.50"), "03:04:05.678"),
            (None, 52, Decimal("6.60"), "03:04:05.678"),
        ]
        assert deployed.rows(ROWS) == rows
        deployed.wait_for("visits")
        deployed.wait_for("customers")
        assert deployed.rows("SELECT id, name FROM customers") == [(1, "Ada")]
        assert deployed.rows(VISITORS) == VISITED

        three = 4  # as the next registry numbers it
        registry.stop()
        reached = deployed.progress("orders")
        deployed.send("orders", framed(three, THIRD, {"id": "7", "country": "BE"}))
        waits = "SELECT stopped FROM lamina.query WHERE stopped LIKE 'it waits for the schema registry: %'"
        deployed.until(lambda: deployed.owner(waits) != [], "the source says that it waits")
        assert deployed.progress("orders") == reached
        registry = started(deployed.deployment.settings.home, port)
        of_visits = f"{deployed.topic('visits')}-value"
        subjects: list[tuple[str, Any]] = [(orders, FIRST), (orders, SECOND), (of_visits, VISIT), (orders, THIRD)]
        assert [registry.add(subject, each) for subject, each in subjects][-1] == three
        deployed.wait_for("orders")
        rows = [("BE", 1, None, None), *rows]
        assert deployed.rows(ROWS) == rows
    assert sorted(deployed.rows("SELECT error, records FROM lamina.bad_records")) == [
        ("no frame of a schema registry: it begins with the byte 0x7b", 1),
        (f"not Protobuf: no message indexes follow the frame (schema {visits})", 1),
        ("the registry has no schema 4711", 1),
        ("the schema 1 is AVRO, not PROTOBUF", 1),
        ("the schema 3 is PROTOBUF, not AVRO", 1),
    ]
    environment = {**lamina.environment, "LAMINA_SCHEMA_REGISTRY": registry.url}
    _commands_know_the_schemas(deployed, replace(lamina, environment=environment), tmp_path)

    registry.stop()
    rows = [("BE", 2, None, None), *rows[1:]]
    deployed.catch_up()
    assert deployed.rows(ROWS) == rows
    deployed.check()
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert deployed.rows(ROWS) == rows
    # Read anew from the raw values of the log: the declaration is another.
    deployed.apply(catalog=CATALOG.replace("(id BIGINT", "(id BIGINT, note STRING"))
    deployed.catch_up()
    assert deployed.rows(ROWS) == rows
    assert deployed.rows(VISITORS) == VISITED
    deployed.check()


def _commands_know_the_schemas(deployed: Deployed, lamina: CommandLine, folder: Path) -> None:
    (folder / "orders.jsonl").write_text(json.dumps({"id": "8", "country": "BE"}))
    assert "1 record sent" in lamina("ingest", "orders", "orders.jsonl").out
    [made] = lamina("init", "--topic", deployed.topic("orders"), "--catalog", "other", "--json").lines()
    types = {each["field"]: each["type"] for each in made["columns"]}
    assert (types["id"], types["country"], types["placed_at"]) == ("STRING", "STRING", "TIMESTAMP")
    assert "format 'avro'" in (folder / made["files"][0]).read_text()
    [made] = lamina("init", "--topic", deployed.topic("visits"), "--catalog", "third", "--json").lines()
    assert [(each["field"], each["type"]) for each in made["columns"]] == [("id", "BIGINT"), ("country", "STRING")]
    assert "format 'protobuf'" in (folder / made["files"][0]).read_text()
    catalog = folder / "catalog"
    catalog.mkdir()
    (catalog / "orders.sql").write_text(CATALOG.replace("{topics}", deployed.prefix))
    told = lamina("plan", "--catalog", str(catalog)).err
    assert "the newest schema of topic" in told
    assert "has no field amount: the column is NULL for its records" in told
    assert "has id as STRING, and it is declared BIGINT: such records may be bad" in told
