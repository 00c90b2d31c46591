"""Records whose schema the registry lacked count after the source raises `ask_again`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from master_log.connections.login import RegistryAddress
from tests.fix_lamina import CommandLine, Deployed
from tests.fix_registry import framed, started

AGAIN = """
CREATE TABLE orders (id BIGINT, country STRING)
USING kafka OPTIONS (topic '{topics}_orders', format 'avro'{again});
CREATE VIEW by_country AS SELECT country, count(*) AS orders, sum(id) AS ids FROM orders GROUP BY country;
"""
BY_COUNTRY = "SELECT * FROM by_country ORDER BY country"


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "order", "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


def test_records_whose_schema_was_missing_count_after_the_registry_is_asked_again(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession, tmp_path: Path
) -> None:
    registry = started(deployed.deployment.settings.home)
    addresses = (RegistryAddress(registry.url),)
    deployed.deployment.settings = replace(deployed.deployment.settings, schema_registry=addresses)
    deployed.apply(catalog=AGAIN.replace("{again}", ""))
    orders = f"{deployed.topic('orders')}-value"
    fields = schema(id="long", country="string")
    one, two = registry.add(orders, fields), 2  # the registry numbers the next schema so
    lacked = f"the registry had no schema {two}: if it has by now, raise ask_again in OPTIONS and apply"
    with deployed.speed():
        deployed.send("orders", framed(one, fields, {"id": 1, "country": "NL"}))
        deployed.send("orders", framed(two, fields, {"id": 10, "country": "NL"}))
        deployed.wait_for("orders")
        assert registry.add(orders, schema(id="long", country="string", note=["null", "string"])) == two
        noted = schema(id="long", country="string", note=["null", "string"])
        deployed.send("orders", framed(two, noted, {"id": 100, "country": "NL", "note": None}))
        deployed.wait_for("orders")
        assert deployed.rows(BY_COUNTRY) == [("NL", 1, 1)]
        assert deployed.rows("SELECT error, records FROM lamina.bad_records") == [(lacked, 2)]
        (tmp_path / "before").write_text(lamina("receipt", "by_country").out)
        assert [(line["id"], line["bad_records"]) for line in lamina("schemas", "--json").lines()] == [
            (str(one), 0),
            (str(two), 2),
        ]
        deployed.apply(catalog=AGAIN.replace("{again}", ", ask_again '1'"))
        deployed.send("orders", framed(two, noted, {"id": 1000, "country": "NL", "note": None}))
        deployed.wait_for("orders")
        # The first record lacks a note, so it does not match the schema that has its id now.
        assert deployed.rows(BY_COUNTRY) == [("NL", 3, 1101)]
        (tmp_path / "after").write_text(lamina("receipt", "by_country").out)
    deployed.check()
    registry.stop()
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert deployed.rows(BY_COUNTRY) == [("NL", 3, 1101)]
    for receipt in ("before", "after"):
        assert "equal" in lamina.over(spark)("verify", receipt).out
    # Without ask_again, the earlier answers of the registry count again.
    deployed.apply(catalog=AGAIN.replace("{again}", ""))
    assert deployed.rows(BY_COUNTRY) == [("NL", 1, 1)]
    deployed.check()
