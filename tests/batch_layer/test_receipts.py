"""A receipt records the rows of a view, and the master log shows later if they were true."""

from __future__ import annotations

import json
from typing import Any

import psycopg2
import pytest
from kafka import KafkaAdminClient, TopicPartition

from batch_layer.check import check
from lamina.operations import applying
from lamina.reports.receipt_lines import show
from lamina.terminal.render import Output
from serving_layer.readers.receipts import Receipt
from tests.batch_layer.receipts import receipt, verified
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one
from view_algebra.errors import LaminaError

DOUBLES = """
    CREATE VIEW ratios (country, total, spread, exact, one, low) AS
    SELECT country, sum(ratio), stddev(ratio), max(n), CAST(sum(ratio) AS FLOAT), struct(min(ratio) AS low)
    FROM events GROUP BY country;
"""
NESTED = """
    CREATE VIEW nested AS
    SELECT kind, max_by(payload, ts) AS payload, collect_set(country) AS countries, struct(sum(price) AS price) AS sums,
           concat(repeat('long', 800), coalesce(country, '')) AS long, max(ts) - min(ts) AS spread,
           max(to_date(ts)) - DATE '2024-03-01' AS days
    FROM events GROUP BY kind, concat(repeat('long', 800), coalesce(country, ''));
"""
LATELY = """
    CREATE VIEW lately AS
    SELECT kind, count(*) AS n, now() AS read_at, now() - max(ts) AS age, current_date() AS day
    FROM events WHERE ts > now() - INTERVAL 100 YEARS GROUP BY kind HAVING max(ts) < current_timestamp();
"""
AGES = "CREATE VIEW ages AS SELECT n, now() - ts AS age, localtimestamp() AS clock FROM events WHERE ts < now();"
LARGEST = TOTALS.replace("FROM events", ", max(n) AS largest FROM events")
UNIQUE = """
    CREATE TABLE orders (id STRING, n BIGINT, UNIQUE (id)) USING kafka OPTIONS (topic '{topics}_orders', format 'json');
"""
OF_ORDERS = "CREATE VIEW of_orders AS SELECT count(*) AS orders, sum(n) AS n FROM orders;"


def forged(line: str, **changed: Any) -> str:
    return json.dumps({**json.loads(line), **changed})


def test_a_receipt_is_verified_after_records_rebuilds_and_a_rollback(deployed: Deployed) -> None:
    counting_bad_fields = EVENTS.replace("TBLPROPERTIES (", "TBLPROPERTIES ('on_bad_field' = 'null', ")
    deployed.apply(**{**CATALOG, "events": counting_bad_fields}, nested=NESTED)
    deployed.send("events", *(event(n) for n in range(120)), {**event(0), "n": "none"})
    deployed.catch_up()
    first = {view: receipt(deployed, view) for view in ("hourly", "totals", "users", "clicks", "places", "nested")}
    deployed.send("events", *(event(n) for n in range(120, 200)))
    deployed.catch_up()
    deployed.deployment.batch.rebuild()
    deployed.send("events", *(event(n) for n in range(200, 210)))
    deployed.catch_up()
    second = receipt(deployed, "hourly")
    applying.roll_back(deployed.deployment, "hourly")
    third = receipt(deployed, "hourly")
    for line in (*first.values(), second, third):
        result = verified(deployed, line)
        assert result.equal, result
        assert result.recomputed.digest == result.receipt.digest.digest
    assert json.loads(second)["digest"] == json.loads(third)["digest"] != json.loads(first["hourly"])["digest"]
    assert json.loads(second)["generation"] != json.loads(third)["generation"]
    assert json.loads(first["totals"])["rows"] == 1
    assert json.loads(first["places"])["made_of"].keys() == {"hourly"}


def test_a_view_that_reads_the_clock_is_checked_and_verified_at_its_snapshots_time(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, lately=LATELY, ages=AGES)
    deployed.send("events", *(event(n) for n in range(60)))
    deployed.catch_up()
    lines = [receipt(deployed, view) for view in ("lately", "ages")]
    opened = deployed.deployment
    for result in check(opened.database, lambda: (opened.spark(), opened.log()), opened.brokers):
        assert result.equal, result
    opened.batch.rebuild()
    for line in lines:
        found_again = verified(deployed, line)
        assert json.loads(line)["rows"] > 0
        assert found_again.equal, found_again
    assert not verified(deployed, forged(lines[0], clock="2130-01-01T00:00:00+00:00")).equal


def test_a_forged_receipt_differs(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, ratios=DOUBLES, clicks=CLICKS)
    deployed.send("events", *(event(n) for n in range(60)))
    deployed.catch_up()
    line = receipt(deployed, "ratios")
    issued = json.loads(line)
    assert verified(deployed, line).equal
    assert issued["left_out"] == ["low"]
    assert verified(deployed, forged(line, rows=5)).differing == ["the number of rows: 5 and 4"]
    columns = {**issued["columns"], "exact": issued["columns"]["exact"][::-1]}
    assert verified(deployed, forged(line, columns=columns)).differing == ["the values of exact"]
    total, size = issued["doubles"]["total"].split()
    near = {**issued["doubles"], "total": f"{float(total) * (1 + 1e-12)!r} {size}"}
    assert verified(deployed, forged(line, doubles=near)).equal
    far = {**issued["doubles"], "total": f"{float(total) * (1 + 1e-7)!r} {size}"}
    assert verified(deployed, forged(line, doubles=far)).differing == ["the values of total"]
    [difference] = verified(deployed, forged(line, digest=issued["digest"][::-1])).differing
    assert difference.startswith("the values that share a row")
    [partition] = [p for p, end in issued["sources"]["events"]["below"].items() if end][:1]
    sources = json.loads(json.dumps(issued["sources"]))
    sources["events"]["below"][partition] -= 1
    assert not verified(deployed, forged(line, sources=sources)).equal
    with pytest.raises(LaminaError, match="This is not a receipt"):
        Receipt.read(line[:-2])


def test_a_receipt_over_records_that_the_log_lacks_is_refused_and_not_called_wrong(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(10)), partition=0)
    deployed.catch_up()
    counted, opened = receipt(deployed, "totals"), deployed.deployment
    source = opened.deployed().sources["events"]
    kafka_admin.delete_records({TopicPartition(source.topic, 0): 4})
    opened.batch.logs.archive(source, opened.brokers.latest(source.topic), accept_loss=True)
    with pytest.raises(LaminaError, match="the log lacks records that it may count") as raised:
        verified(deployed, counted)
    assert f"from {source.topic} 0:0 to {source.topic} 0:4" in str(raised.value)
    deployed.deployment.batch.rebuild()
    assert verified(deployed, receipt(deployed, "totals")).equal


def test_verify_reports_rows_that_were_shown_in_error(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, ratios=DOUBLES, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    with deployed.deployment.database.begin() as connection:
        for (place,) in connection.exec_driver_sql("SELECT place FROM lamina.generation_cells").all():
            [column] = connection.exec_driver_sql(
                "SELECT attname FROM pg_attribute WHERE attrelid = '" + place + "'::regclass AND attnum > 0"
                " AND atttypid = 'numeric'::regtype LIMIT 1"
            ).scalars().all() or [None]
            if column:
                connection.exec_driver_sql(f'UPDATE {place} SET "{column}" = "{column}" + 1')
    [difference] = verified(deployed, receipt(deployed, "totals")).differing
    assert difference.startswith("the values of ")


def test_a_receipt_outlives_the_version_the_name_and_the_view(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    deployed.send("events", *(event(n) for n in range(30)))
    deployed.catch_up()
    first = receipt(deployed, "totals")
    assert deployed.deployment.settings.analyst is not None
    reader = psycopg2.connect(deployed.deployment.settings.analyst)
    reader.set_session(isolation_level="REPEATABLE READ")
    with reader.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT count(*) FROM analytics.clicks")
        deployed.apply(totals=LARGEST)
        deployed.send("events", *(event(n) for n in range(30, 40)))
        deployed.catch_up()
        cursor.execute("SELECT lamina.receipt('totals')")
        [(held,)] = cursor.fetchall()
    reader.close()
    second = receipt(deployed, "totals")
    assert json.loads(second)["columns"].keys() == {"events", "n", "price", "largest"}
    when = {"read_at": None, "clock": None}
    assert {**json.loads(held), **when} == {**json.loads(first), **when}, "an older snapshot"
    applying.roll_back(deployed.deployment, "totals")
    third = receipt(deployed, "totals")
    named = TOTALS.replace("totals", "sums TBLPROPERTIES ('renamed_from' = 'totals')")
    deployed.apply_break(totals=named)
    renamed = receipt(deployed, "sums")
    assert json.loads(renamed)["digest"] == json.loads(third)["digest"]
    del deployed.files["totals.sql"]
    deployed.apply()
    for line in (first, held, second, third, renamed):
        assert verified(deployed, line).equal
    unknown = forged(first, definition="0" * 16)
    with pytest.raises(LaminaError, match="was never deployed here"):
        verified(deployed, unknown)


def test_a_receipt_of_a_stream_that_counts_each_event_once_is_verified(deployed: Deployed) -> None:
    deployed.apply(orders=UNIQUE, of_orders=OF_ORDERS)
    deployed.send("orders", *({"id": str(n % 10), "n": n % 10} for n in range(25)))
    deployed.catch_up()
    line = receipt(deployed, "of_orders")
    deployed.send("orders", *({"id": str(n % 15), "n": n % 15} for n in range(25)))
    deployed.catch_up()
    deployed.deployment.batch.rebuild()
    assert one(deployed.rows("SELECT orders FROM of_orders")) == (15,)
    assert verified(deployed, line).equal


def test_the_command_line_issues_and_verifies_a_receipt(
    deployed: Deployed, quick_lamina: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    printed = quick_lamina("receipt", "totals").out
    assert printed.count("\n") == 1
    show(Output(as_json=True), verified(deployed, printed))
    assert json.loads(capsys.readouterr().out)["result"] == "equal"
    ended = quick_lamina("verify", "-", stdin=forged(printed, rows=2), code=3)
    assert "totals: the receipt and the log differ in the number of rows: 2 and 1" in ended.err
    assert "so does Spark" not in ended.err
    by_another = json.loads(printed)["made_of"]
    assert by_another["totals"]["spark"] == deployed.deployment.spark().version
    by_another["totals"]["spark"] = "3.5.0"
    show(Output(), verified(deployed, forged(printed, rows=2, made_of=by_another)))
    assert "totals: so does Spark: 3.5.0 computed the view" in capsys.readouterr().err
    assert "There is no view named nothing" in quick_lamina("receipt", "nothing", code=1).err


def test_empty_and_retaining_views_have_receipts(deployed: Deployed) -> None:
    recent = """
        CREATE VIEW daily TBLPROPERTIES ('retain' = '3 days') AS
        SELECT date_trunc('DAY', ts) AS day, count(*) AS events FROM events GROUP BY date_trunc('DAY', ts);
    """
    deployed.apply(events=EVENTS, daily=recent, totals=TOTALS)
    assert verified(deployed, receipt(deployed, "daily")).equal
    assert verified(deployed, receipt(deployed, "totals")).equal
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    result = verified(deployed, receipt(deployed, "daily"))
    assert result.equal
    assert result.recomputed.rows == 0, "every group is old"
