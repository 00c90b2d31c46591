"""Values that Spark and Postgres print or compute differently, in rebuilds, checks and receipts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from batch_layer.verify import verify
from serving_layer.catalog import lookup
from serving_layer.readers.receipts import Receipt
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one


def test_floats_are_checked_by_value_and_not_by_text(deployed: Deployed) -> None:
    floats = (
        "CREATE VIEW floats AS SELECT n % 20 AS part, max(CAST(ratio AS FLOAT)) AS largest,"
        " CAST(sum(ratio) AS FLOAT) AS total, max(CAST(ratio * 1e37 AS FLOAT)) AS huge, max(CAST(n AS FLOAT)) AS whole,"
        " array(max(CAST(ratio * 1e-44 AS FLOAT))) AS least,"
        " struct(max(ratio * 1e38) AS big, array(max(n * 1e23)) AS bigs) AS doubles,"
        " struct(max(CAST(n AS FLOAT)) AS f, map('x', array("
        "min(CAST(ratio * 1e37 AS FLOAT)))) AS m) AS parts FROM events GROUP BY n % 20;"
    )
    deployed.apply(events=EVENTS, floats=floats)
    deployed.send("events", *(event(n) for n in range(100)))
    deployed.catch_up()
    deployed.check()
    with deployed.deployment.database.begin() as connection:
        [place] = lookup.find(connection)[0].places.values()
        floats = f"SELECT attname FROM pg_attribute WHERE attrelid = '{place}'::regclass AND atttypid = 'real'::regtype"
        column = connection.exec_driver_sql(floats).scalars().first()
        connection.exec_driver_sql(f"UPDATE {place} SET {column} = {column} * 1.000001")
    with pytest.raises(AssertionError, match="floats below"):
        deployed.check()


def test_a_total_of_no_records_is_proven(deployed: Deployed) -> None:
    nobody = "CREATE VIEW nobody AS SELECT count(*) AS n, max(ts) AS last FROM events WHERE country = 'nowhere';"
    deployed.apply(events=EVENTS, nobody=nobody)
    deployed.deployment.batch.rebuild()
    deployed.send("events", event(1))
    deployed.catch_up()
    assert deployed.rows("SELECT n, last FROM nobody") == [(0, None)]
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0]
    deployed.send("events", event(2))
    deployed.catch_up()
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0]
    deployed.check()


def test_a_total_without_a_matching_record_is_proven(deployed: Deployed) -> None:
    none = (
        "SELECT sum(n) AS s, avg(n) AS mean, min(n) AS least, count(n) AS c, count(1) AS n FROM events WHERE n > 9999"
    )
    sums = ", ".join(f"sum(n + {more}) AS plus_{more}" for more in range(60))
    views = f"CREATE VIEW nothing AS {none}; CREATE VIEW wide AS SELECT country, {sums} FROM events GROUP BY country;"
    deployed.apply(events=EVENTS, views=views, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM nothing") == [(None, None, None, 0, 0)]
    assert deployed.rows("SELECT plus_59 - plus_0 FROM wide") == [(59,)]
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0, 0, 0]


def test_a_view_that_spark_cannot_compute_is_named_and_the_others_are_checked(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    half = "CREATE VIEW half AS SELECT country, sum(n) AS n FROM events GROUP BY country;"
    halves = "CREATE VIEW halves AS SELECT sum(n) AS n FROM half;"
    deployed.apply(events=EVENTS, totals=TOTALS, half=half, halves=halves)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    before = deployed.rows("SELECT * FROM half ORDER BY 1")
    receipt = str(one(deployed.rows("SELECT lamina.receipt('half')"))[0])
    for table, name in (("compiled", "name"), ("version", "view"), ("definition", "view")):
        failing = "replace(texts::text, 'sum(n)', 'sum(n + CAST(raise_error(''no luck'') AS INT))')::jsonb"
        deployed.owner(f"UPDATE lamina.{table} SET texts = {failing} WHERE {name} = 'half'")

    checked = quick_lamina("check", "--json", code=1)
    results = {line["view"]: line for line in checked.lines()}
    assert {name: line["result"] for name, line in results.items()} == {
        "totals": "equal", "half": "FAILED", "halves": "FAILED",
    }  # fmt: skip
    assert results["totals"]["error"] is None
    assert "no luck" in results["half"]["error"]
    assert "no luck" in results["halves"]["error"]
    assert json.loads(checked.err.splitlines()[-1])["evidence"] == "half, halves"
    assert "Fix what the error names" in quick_lamina("check", "half", code=1).err
    assert "half: Spark failed" in quick_lamina("verify", "-", stdin=receipt, code=1).err

    published = dict(deployed.owner("SELECT view, generation FROM lamina.publication"))
    ended = quick_lamina("rebuild", code=1)
    assert "Spark could not compute half" in ended.err
    assert "half: [USER_RAISED_EXCEPTION] no luck" in ended.err.replace("\\n", " ")
    after = dict(deployed.owner("SELECT view, generation FROM lamina.publication"))
    assert after["half"] == published["half"]
    assert after["totals"] > published["totals"], "a view that can be computed is handed over"
    assert deployed.rows("SELECT * FROM half ORDER BY 1") == before
    assert one(deployed.owner("SELECT state, error FROM lamina.rebuild ORDER BY id DESC LIMIT 1")) == (
        "failed",
        "Spark could not compute half",
    )

    with deployed.deployment.database.begin() as connection:
        [place] = lookup.get(connection, after["totals"]).places.values()
        connection.exec_driver_sql(f"DELETE FROM {place}")
    assert quick_lamina("check", "totals", code=3).out.count("DIFFERENT") == 1
    assert "half: Spark failed" in quick_lamina("check", code=3).err, "a difference outweighs an unknown result"


def test_an_infinity_is_after_every_time_in_cells_rebuilds_receipts_and_checks(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    times = """
        CREATE VIEW valid AS SELECT kind, timestamp_micros(n) AS until, ts < timestamp_micros(n) AS holds FROM events;
        CREATE VIEW longest AS
        SELECT kind, max(timestamp_micros(n)) > max(ts) AS endless, count(timestamp_micros(n)) AS n,
               max(timestamp_micros(n)) AS last, min(CAST(timestamp_micros(n) AS DATE)) AS first
        FROM events GROUP BY kind;
        CREATE VIEW untils AS SELECT timestamp_micros(n) AS until, count(*) AS n, max(chr(n)) AS c FROM events
          GROUP BY timestamp_micros(n);
    """
    numbers = (9223372036825200000, -9223372036832400000, 1_700_000_000_000_000, 253_402_300_800_000_000)
    deployed.apply(events=EVENTS, times=times)
    deployed.send("events", *(event(n) | {"kind": "abcd"[n % 4], "n": numbers[n % 4]} for n in range(24)))
    deployed.catch_up()
    rows: list[tuple[Any, ...]] = [("a", True, 6, None, None), ("b", False, 6, None, None)]
    rows += [("c", False, 6, "2023-11-14", "2023-11-14"), ("d", None, 0, None, None)]
    for _ in ("live", "rebuilt"):
        shown = deployed.rows("SELECT kind, endless, n, last::date::text, first::text FROM longest ORDER BY kind")
        assert shown == rows
        assert deployed.rows(
            "SELECT kind, holds, count(*) FROM valid WHERE until IS NULL GROUP BY 1, 2 ORDER BY 1"
        ) == [
            ("a", True, 6),
            ("b", False, 6),
            ("d", None, 6),
        ]
        assert deployed.rows("SELECT n FROM untils") == [(6,)] * 4
        deployed.check()
        for view in ("valid", "longest", "untils"):
            receipt = Receipt.read(str(one(deployed.rows(f"SELECT lamina.receipt('{view}')"))[0]))
            opened = deployed.deployment
            assert verify(opened.database, opened.spark(), opened.log(), opened.brokers, receipt).equal
        assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0, 0, 0]
    asked = "SELECT timestamptz '-infinity' AS a, date 'infinity' AS b, timestamp '2024-01-01' AS c"
    assert quick_lamina("sql", asked, "--json").lines() == [
        {"a": "-infinity", "b": "infinity", "c": "2024-01-01T00:00:00"}
    ]
    shown = one(deployed.owner("SELECT pg_get_viewdef('analytics.valid')"))[0].rstrip(";")
    past = f"SELECT kind, until - interval '3000 years' AS until, holds FROM ({shown}) AS valid"
    deployed.owner(f"CREATE OR REPLACE VIEW analytics.valid AS {past}")
    checked = {line["view"]: line for line in quick_lamina("check", "--json", code=1).lines()}
    assert {view: line["result"] for view, line in checked.items()} == {
        "valid": "FAILED",
        "longest": "equal",
        "untils": "equal",
    }
    assert checked["valid"]["error"].startswith("A time is beyond the years 1 to 9999")
