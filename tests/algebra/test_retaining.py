"""A view with a retention keeps every record of a joined stream that may meet a record of the view."""

from __future__ import annotations

import pytest

from view_algebra import compile_catalog

STREAMS = """
    CREATE TABLE a (id BIGINT, ts TIMESTAMP, due TIMESTAMP) USING kafka OPTIONS (topic 'a', format 'json');
    CREATE TABLE b (id BIGINT, ts TIMESTAMP) USING kafka OPTIONS (topic 'b', format 'json');
    CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP) USING kafka OPTIONS (topic 't', format 'json');
    CREATE VIEW v TBLPROPERTIES ('retain' = '3 days') AS SELECT {select};
"""
MINUTE = 60_000_000
WITHIN = "b.id = a.id AND b.ts BETWEEN a.ts - INTERVAL 15 MINUTES AND a.ts + INTERVAL 15 MINUTES"

KEPT: dict[str, dict[str, int | None]] = {
    f"a.id, a.ts FROM a JOIN b ON {WITHIN}": {"a": 0, "b": 15 * MINUTE},
    f"a.id, a.ts, b.ts AS met FROM a LEFT JOIN b ON {WITHIN}": {"a": 0, "b": 15 * MINUTE},
    f"a.id, a.ts FROM a JOIN b ON b.id = a.id WHERE {WITHIN}": {"a": 0, "b": 15 * MINUTE},
    f"a.id, a.ts FROM b RIGHT JOIN a ON {WITHIN}": {"a": 0, "b": 15 * MINUTE},
    f"b.id, b.ts FROM a JOIN b ON {WITHIN}": {"a": 15 * MINUTE, "b": 0},
    f"date_trunc('DAY', a.ts) AS day, count(*) AS n FROM a JOIN b ON {WITHIN} GROUP BY 1": {"a": 0, "b": 15 * MINUTE},
    f"CAST(a.ts AS DATE) AS day, count(*) AS n FROM a JOIN b ON {WITHIN} GROUP BY 1": {"a": 0, "b": 15 * MINUTE},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND a.ts < b.ts + INTERVAL 1 HOUR": {"a": 0, "b": 60 * MINUTE},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts - INTERVAL 1 MINUTE > a.ts": {"a": 0, "b": 0},
    # A stream is kept whole if nothing bounds it, or only something that does not select the kept records.
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts < a.ts": {"a": 0, "b": None},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts > a.due": {"a": 0, "b": None},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts > a.ts - INTERVAL 1 MONTH": {"a": 0, "b": None},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts > a.ts - INTERVAL 1000000 DAYS": {"a": 0, "b": None},
    "a.id, a.ts FROM a JOIN b ON b.id = a.id AND (b.ts > a.ts OR b.id = 1)": {"a": 0, "b": None},
    "a.id, a.ts FROM a JOIN t ON t.id = a.id AND t.ts > a.ts": {"a": 0},
    f"to_date(CAST(a.ts AS STRING), 'yyyy-dd-MM HH:mm:ss') AS x FROM a JOIN b ON {WITHIN}": {"a": 0, "b": None},
    f"CAST(CAST(a.ts AS FLOAT) AS TIMESTAMP) AS x FROM a JOIN b ON {WITHIN}": {"a": 0, "b": None},
    f"window(a.ts, '1 hour').end AS x, count(*) AS n FROM a JOIN b ON {WITHIN} GROUP BY 1": {"a": 0, "b": None},
}


@pytest.mark.parametrize("select", KEPT)
def test_a_stream_is_kept_as_long_as_a_kept_record_may_join_it(select: str) -> None:
    tables = compile_catalog({"v.sql": STREAMS.format(select=select)}).views["v"].cell_tables
    assert {table.source: table.longer if table.retained else None for table in tables} == KEPT[select]


def test_two_sides_of_one_stream_are_kept_for_as_long_as_each_is_needed() -> None:
    select = "x.id, x.ts FROM a x JOIN a y ON y.id = x.id AND y.ts BETWEEN x.ts - INTERVAL 1 DAY AND x.ts"
    tables = compile_catalog({"v.sql": STREAMS.format(select=select)}).views["v"].cell_tables
    assert [(table.source, table.retained, table.longer) for table in tables] == [
        ("a", "ts", 0),
        ("a", "ts", 24 * 60 * MINUTE),
    ]


def test_a_longer_bound_is_another_version() -> None:
    def version(minutes: int) -> str:
        select = f"a.id, a.ts FROM a JOIN b ON b.id = a.id AND b.ts >= a.ts - INTERVAL {minutes} MINUTES"
        return compile_catalog({"v.sql": STREAMS.format(select=select)}).views["v"].version

    assert version(15) == version(15)
    assert version(15) != version(20)
