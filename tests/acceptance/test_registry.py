"""A topic in Avro with a registry: a record is read by the schema that wrote it, also when the registry is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from lamina.settings import Settings
from master_log.login import Address
from tests.fix_lamina import Deployed
from tests.fix_registry import SchemaRegistry, framed, started

CATALOG = """
CREATE TABLE orders (id BIGINT, country STRING, amount DECIMAL(12,2), placed_at TIMESTAMP)
USING kafka OPTIONS (topic '{topics}_orders', format 'avro') TBLPROPERTIES ('event_time' = 'placed_at');
CREATE VIEW by_country AS
SELECT country, count(*) AS orders, sum(amount) AS amount, max(placed_at) AS newest FROM orders GROUP BY country;
"""


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "order", "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


FIRST = schema(id="int", amount={"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2})
SECOND = schema(
    country=["null", "string"],
    placed_at={"type": "long", "logicalType": "timestamp-millis"},
    id="long",
    amount="double",
)


@pytest.fixture
def registry(settings: Settings) -> Iterator[SchemaRegistry]:
    """A registry of the test's own, which it may end."""
    running = started(settings.home)
    yield running
    running.stop()


def with_registry(deployed: Deployed, registry: SchemaRegistry) -> None:
    """The deployment with this registry."""
    deployed.deployment.settings = replace(deployed.deployment.settings, schema_registry=(Address(registry.url),))
    vars(deployed.deployment).pop("schemas", None)


def test_records_are_read_by_the_schema_that_wrote_them_also_when_the_registry_is_gone(
    deployed: Deployed, registry: SchemaRegistry
) -> None:
    with_registry(deployed, registry)
    deployed.apply(catalog=CATALOG)
    subject = f"{deployed.topic('orders')}-value"
    one = registry.add(subject, FIRST)
    deployed.send("orders", *(framed(one, FIRST, {"id": n, "amount": Decimal("0.10")}) for n in range(50)))
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM by_country") == [(None, 50, Decimal("5.00"), None)]
    two = registry.add(f"{subject}-2", SECOND)
    with deployed.speed():
        deployed.send("orders", framed(one, FIRST, {"id": 50, "amount": Decimal("0.10")}))
        deployed.wait_for("orders")
        second = {"id": 2**40, "amount": 1.5, "country": "NL", "placed_at": 1_767_323_045_678}
        deployed.send("orders", framed(two, SECOND, second), framed(two, SECOND, second | {"country": None}))
        deployed.send("orders", framed(4711, SECOND, second), b'{"id": 1}')
        deployed.wait_for("orders")
    rows = "SELECT country, orders, amount, to_char(newest, 'HH24:MI:SS.MS') FROM by_country ORDER BY country"
    expected = [("NL", 1, Decimal("1.50"), "03:04:05.678"), (None, 52, Decimal("6.60"), "03:04:05.678")]
    assert deployed.rows(rows) == expected
    assert sorted(deployed.rows("SELECT error, records FROM lamina.bad_records")) == [
        ("no frame of a schema registry: it begins with the byte 0x7b", 1),
        ("the registry has no schema 4711", 1),
    ]

    registry.stop()
    deployed.check()
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert deployed.rows(rows) == expected
    # Read anew from the raw values of the log: the declaration is another.
    deployed.apply(catalog=CATALOG.replace("id BIGINT", "id BIGINT, note STRING"))
    deployed.catch_up()
    assert deployed.rows(rows) == expected
    deployed.check()
