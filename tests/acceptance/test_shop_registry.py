"""A shop with topics in Avro and Protobuf shows the rows of the JSON shop, even after its registry is gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from batch_layer.verify import verify
from lamina.authoring.catalog_files import catalog_files
from lamina.operations import applying
from master_log.connections.login import RegistryAddress
from serving_layer.readers.receipts import Receipt
from tests import fix_shop as shop
from tests.fix_lamina import CommandLine, Deployed, one
from tests.fix_registry import SchemaRegistry, framed, in_frame
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import message_class

EXAMPLE = shop.EXAMPLE.with_name("shop_registry")
SCHEMAS = {file.stem: file for file in sorted((EXAMPLE / "schemas").iterdir())}
"""Files of schemas, by subject."""

ORDER = json.loads(SCHEMAS["orders-value"].read_text())
CUSTOMER, CUSTOMER_KEY = (json.loads(SCHEMAS[f"customers-{part}"].read_text()) for part in ("value", "key"))
RATE = json.loads(SCHEMAS["rates-value"].read_text())
GOOD, PAYMENT = (SCHEMAS[f"{source}-value"].read_text() for source in ("goods", "payments"))

WIDER = [field | {"type": "long"} if field["name"].endswith("id") else field for field in ORDER["fields"]]
SECOND_ORDER = ORDER | {"fields": [*WIDER, {"name": "coupon", "type": ["null", "string"], "default": None}]}
THIRD_ORDER = ORDER | {"fields": [{"name": "id", "type": {"type": "map", "values": "int"}}, *WIDER[3:]]}
SECOND_PAYMENT = PAYMENT.replace("  repeated Part", "  string reference = 6;\n  repeated Part")

SUPPLIERS = """
CREATE TABLE suppliers (id BIGINT PRIMARY KEY, name STRING)
USING kafka OPTIONS (topic '{topics}_suppliers', format 'debezium-avro');
"""
ROW = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
ROW_KEY = {"type": "record", "name": "key", "fields": [{"name": "id", "type": "long"}]}
CHANGE = {
    "type": "record",
    "name": "change",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "row"]},
        {"name": "op", "type": "string"},
    ],
}

NESTED = {"stops": "SELECT way, stop, orders FROM stops", "means": "SELECT means, payments, parts, cents FROM means"}
NESTED_BEFORE: shop.RowsByView = {"stops": [("post", "depot", 5)], "means": [("cash", 4, 0, 0)]}
NESTED_AFTER: shop.RowsByView = {
    "stops": [("bike", "Kiel", 1), ("bike", "depot", 1), ("post", "depot", 5)],
    "means": [("cash", 4, 0, 0), ("transfer", 1, 0, 0), ("visa", 1, 2, 1000)],
}


def rows_by_view(deployed: Deployed) -> shop.RowsByView:
    nested = {view: sorted(deployed.rows(query)) for view, query in NESTED.items()}
    return shop.rows_by_view(deployed) | nested


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def message(by: int, schema: str, **fields: Any) -> bytes:
    """A message of its schema's first type, as the serializers of registries write it."""
    written = message_class(Schema("PROTOBUF", schema), (0,))(**fields)
    return in_frame(by, b"\0" + bytes(written.SerializeToString()))


def filled(registry: SchemaRegistry, prefix: str) -> Mapping[str, int]:
    """Registers the schemas of the example and of suppliers. Returns their ids."""
    texts = {subject: file.read_text() for subject, file in SCHEMAS.items()}
    read: dict[str, Any] = {name: json.loads(text) if text.startswith("{") else text for name, text in texts.items()}
    read |= {"suppliers-key": ROW_KEY, "suppliers-value": CHANGE}
    return {subject: registry.add(f"{prefix}_{subject}", schema) for subject, schema in read.items()}


def test_the_shop_in_avro_and_protobuf_equals_the_shop_even_without_its_registry(
    deployed: Deployed, lamina: CommandLine, registry_started: Callable[[], SchemaRegistry], tmp_path: Path
) -> None:
    registry = registry_started()
    settings = replace(deployed.deployment.settings, schema_registry=(RegistryAddress(registry.url),))
    deployed.deployment.settings = settings
    lamina = replace(lamina, environment={**lamina.environment, "LAMINA_SCHEMA_REGISTRY": registry.url})
    ids = filled(registry, deployed.prefix)
    folder = deployed.copied(EXAMPLE, tmp_path / "catalog")
    (folder / "suppliers.sql").write_text(SUPPLIERS.format(topics=deployed.prefix))
    catalog = catalog_files(folder)
    applying.apply(deployed.deployment, catalog)
    with deployed.speed():
        _files_of_the_shop_are_sent_with_its_schemas(deployed, lamina, registry)
        second = registry.add(f"{deployed.topic('orders')}-value", SECOND_ORDER)
        newer = registry.add(f"{deployed.topic('payments')}-value", SECOND_PAYMENT)
        registry.stop()
        _only_records_with_a_new_schema_wait_for_the_registry(deployed, ids, second)
        registry = registry_started()
        by_iban = message(newer, SECOND_PAYMENT, order_id=99, iban="DE02", ts=at("03-01 09:00"), reference="no 99")
        deployed.send("payments", by_iban)
        _send_bad(deployed, ids)
        _wait(deployed)
        assert rows_by_view(deployed) == shop.AFTER_CHANGES | NESTED_AFTER
    _bad_records_name_their_schemas(deployed, ids)
    registry.add(f"{deployed.topic('orders')}-value", THIRD_ORDER)
    _commands_know_the_schemas(deployed, lamina, tmp_path)
    registry.stop()
    _raw_values_of_the_log_are_read_again_without_a_registry(deployed, catalog)


def _files_of_the_shop_are_sent_with_its_schemas(
    deployed: Deployed, lamina: CommandLine, registry: SchemaRegistry
) -> None:
    for source in ("orders", "payments", "rates", "goods"):
        lamina("ingest", source, str(shop.EXAMPLE / "data" / f"{source}.jsonl"))
    _wait(deployed)
    assert rows_by_view(deployed) == shop.BEFORE_CUSTOMERS | NESTED_BEFORE
    lamina("ingest", "customers", str(shop.EXAMPLE / "data" / "customers.jsonl"))
    _send_suppliers(deployed, registry)
    _wait(deployed)
    assert rows_by_view(deployed) == shop.WITH_CUSTOMERS | NESTED_BEFORE
    assert deployed.rows("SELECT id, name FROM suppliers") == [(1, "Ada")]


def _only_records_with_a_new_schema_wait_for_the_registry(
    deployed: Deployed, ids: Mapping[str, int], second: int
) -> None:
    reached = deployed.progress("orders")
    _send_changes(deployed, ids, second)
    waits = "SELECT name FROM lamina.query WHERE stopped LIKE 'it waits for the schema registry: %'"
    deployed.until(lambda: deployed.owner(waits) == [("orders",)], "orders alone waits")
    for source in ("customers", "goods", "payments", "rates"):
        deployed.wait_for(source)
    assert deployed.progress("orders") == reached


def _bad_records_name_their_schemas(deployed: Deployed, ids: Mapping[str, int]) -> None:
    orders, goods, payments = (ids[f"{source}-value"] for source in ("orders", "goods", "payments"))
    assert dict(deployed.rows("SELECT error, records FROM lamina.bad_records")) == {
        "no frame of a schema registry: it begins with the byte 0x7b": 1,
        f"not Protobuf: no message indexes follow the frame (schema {payments})": 1,
        "the registry had no schema 4711: if it has by now, raise ask_again in OPTIONS and apply": 1,
        f"the schema {orders} is AVRO, not PROTOBUF": 1,
        f"the schema {goods} is PROTOBUF, not AVRO": 1,
    }


def _raw_values_of_the_log_are_read_again_without_a_registry(deployed: Deployed, catalog: Mapping[str, str]) -> None:
    """Another declaration of the payments reads all of them again. Earlier receipts can still be verified."""
    receipts = [one(deployed.rows(f"SELECT lamina.receipt('{view}')"))[0] for view in ("in_euro", "means")]
    streams = catalog["sources/streams.sql"].replace("  parts ", "  reference STRING,\n  parts ")
    applying.apply(deployed.deployment, {**catalog, "sources/streams.sql": streams})
    deployed.catch_up()
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert rows_by_view(deployed) == shop.AFTER_CHANGES | NESTED_AFTER
    deployed.check()
    opened = deployed.deployment
    for line in receipts:
        assert verify(opened.database, opened.spark(), opened.log(), opened.brokers, Receipt.read(line)).equal


def _wait(deployed: Deployed) -> None:
    for source in deployed.deployment.deployed().sources:
        deployed.wait_for(source)


def _send_suppliers(deployed: Deployed, registry: SchemaRegistry) -> None:
    """Sends change events, written by Confluent's serializers."""
    client, topic = SchemaRegistryClient({"url": registry.url}), deployed.topic("suppliers")
    key_serializer, value_serializer = (AvroSerializer(client, json.dumps(schema)) for schema in (ROW_KEY, CHANGE))

    def record(id: int, event: dict[str, Any] | None) -> tuple[bytes | None, bytes | None]:
        key = key_serializer({"id": id}, SerializationContext(topic, MessageField.KEY))
        return key, value_serializer(event, SerializationContext(topic, MessageField.VALUE))

    rows: list[dict[str, Any]] = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]
    for row in rows:
        deployed.send("suppliers", record(row["id"], {"op": "c", "before": None, "after": row}))
    deployed.send("suppliers", record(2, None))


def _send_changes(deployed: Deployed, ids: Mapping[str, int], second: int) -> None:
    """Sends the changes of `AFTER_CHANGES`. The order has another schema."""
    one, two = (framed(ids["customers-key"], CUSTOMER_KEY, {"id": id}) for id in (1, 2))
    older = {"id": 2, "city": "Ulm", "moved_at": at("02-01 00:00")}
    deployed.send("customers", (one, None), (two, framed(ids["customers-value"], CUSTOMER, older)))
    corrected = {"currency": "USD", "rate": Decimal(1), "since": at("03-01 01:15")}
    deployed.send("rates", (b"USD", framed(ids["rates-value"], RATE, corrected)))
    piano = message(ids["goods-value"], GOOD, id=3, name="piano", origin="Brunswick")
    deployed.send("goods", ((3).to_bytes(4, "big"), piano))
    card, parts = {"brand": "visa", "digits": "4242"}, [{"cents": 700}, {"cents": 300, "note": "the rest"}]
    paid = message(ids["payments-value"], PAYMENT, order_id=2, ts=at("03-01 01:20"), card=card, parts=parts)
    deployed.send("payments", paid)
    late = {"id": 6, "customer_id": 2, "good_id": 2, "currency": "SEK", "amount": Decimal("10.00")}
    late |= {"ts": at("03-01 01:16:30"), "delivery": {"way": "bike", "stops": ["depot", "Kiel"]}, "coupon": "spring"}
    deployed.send("orders", framed(second, SECOND_ORDER, late))


def _send_bad(deployed: Deployed, ids: Mapping[str, int]) -> None:
    orders, goods, payments = (ids[f"{source}-value"] for source in ("orders", "goods", "payments"))
    deployed.send("orders", in_frame(4711, b"\2"), b'{"id": 1}')
    # A header of a bad record decides nothing about schemas.
    spoof = [("lamina-problem", b"the schema 2 is not known yet")]
    deployed.producer.send(deployed.topic("orders"), in_frame(goods, b""), headers=spoof).get()
    deployed.send("payments", in_frame(payments, b""), in_frame(orders, b"\2"))


def _commands_know_the_schemas(deployed: Deployed, lamina: CommandLine, folder: Path) -> None:
    customers = deployed.topic("customers")
    [guessed] = lamina("init", "--topic", customers, "--table", "--catalog", "other", "--json").lines()
    types = {column["field"]: column["type"] for column in guessed["columns"]}
    assert types == {"id": "INT", "city": "STRING", "moved_at": "TIMESTAMP"}
    assert "format 'avro', key_format 'avro'" in (folder / guessed["files"][0]).read_text()
    [guessed] = lamina("init", "--topic", deployed.topic("payments"), "--catalog", "third", "--json").lines()
    types = {column["field"]: column["type"] for column in guessed["columns"]}
    assert (types["order_id"], types["ts"], types["iban"]) == ("BIGINT", "TIMESTAMP", "STRING")
    assert "format 'protobuf'" in (folder / guessed["files"][0]).read_text()
    warnings = lamina("plan", "--catalog", str(folder / "catalog")).err
    assert "the newest schema of topic" in warnings
    assert "has no field good_id: the column is NULL for its records" in warnings
    assert "has id as MAP<STRING, INT>, but it is declared BIGINT: such records may be bad" in warnings
