"""Every view compiles or is refused. No other error is raised, and every column of cells has a type."""

from __future__ import annotations

import random

import pytest

from view_algebra import Refused, compile_catalog
from view_algebra.language.aggregates import AGGREGATES
from view_algebra.language.functions import FUNCTIONS, GENERATORS

CATALOG = """CREATE TABLE e (
  id STRING, n BIGINT, d DECIMAL(10,2), x DOUBLE, b BOOLEAN, day DATE, ts TIMESTAMP, tags ARRAY<STRING>,
  m MAP<STRING, INT>, p STRUCT<a: INT, t: TIMESTAMP>, ps ARRAY<STRUCT<a: INT>>
) USING kafka OPTIONS (topic 'e', format 'json');
CREATE VIEW r AS SELECT id, n, d, x, b, day, ts, tags, m, p, ps FROM e;
"""

OPERANDS = (
    *("id", "n", "d", "x", "b", "day", "ts", "tags", "m", "p", "ps", "p.a", "ps.a", "p.*", "*", "tags[0]", "m['a']"),
    *("NULL", "1", "-1", "1.5", "1e3", "2L", "true", "'a'", "''", "X'00'", "9223372036854775808", "CAST(NULL AS INT)"),
    *("INTERVAL 1 DAY", "INTERVAL 2 MONTHS", "DATE '2020-01-01'", "ts - TIMESTAMP '2020-01-01 00:00:00'"),
    *("day - DATE '2020-01-01'", "array()", "array(NULL)", "map()", "struct(1 AS a)", "unhex(id)", "x -> x", "(id, n)"),
    *("(SELECT 1)", "(SELECT max(n) FROM r)", "EXISTS (SELECT 1)", "n IN (1, 2)", "CASE WHEN b THEN 1 END"),
    *("DISTINCT n", "count(*)", "sum(n) OVER ()", "rank() OVER (ORDER BY n)", "window(ts, '1 hour')", "explode(tags)"),
)

OPERATORS = (
    *("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "{} = {}", "{} <=> {}", "{} < {}", "{} || {}", "{} & {}"),
    *("{} AND {}", "{} LIKE {}", "{} RLIKE {}", "{} IN ({})", "{} BETWEEN {} AND 1", "NOT {}", "-{}", "~{}", "{}[{}]"),
    *("{} IS NULL", "{} IS DISTINCT FROM {}", "CAST({} AS INT)", "CAST({} AS STRING)", "CAST({} AS TIMESTAMP)"),
    *("CAST({} AS DECIMAL(5, 2))", "TRY_CAST({} AS INT)", "{}::BIGINT", "{}.a", "{} COLLATE x", "EXTRACT(DAY FROM {})"),
    *("CASE WHEN {} THEN {} END", "CASE {} WHEN {} THEN 1 END", "{} IN (SELECT n FROM r)", "{} AT TIME ZONE 'UTC'"),
    *("TRIM({} FROM {})", "SUBSTRING({} FROM 1 FOR 2)", "POSITION({} IN {})", "{} IGNORE NULLS", "ANY ({})"),
)

SELECTS = (
    "SELECT {a} AS q, id FROM {f}",
    "SELECT {a} AS q, count(*) AS c FROM {f} GROUP BY {a}",
    "SELECT id, max({a}) AS q, count(DISTINCT {b}) AS c FROM {f} GROUP BY id",
    "SELECT id, sum({a}) FILTER (WHERE {b}) AS q FROM {f} GROUP BY 1",
    "SELECT id FROM {f} WHERE {a}",
    "SELECT id, count(*) AS c FROM {f} GROUP BY id HAVING {a}",
    "SELECT id FROM {f} ORDER BY {a} LIMIT 2",
    "SELECT id, {a} OVER (PARTITION BY {b} ORDER BY n) AS q FROM {f}",
    "SELECT id, q FROM {f} LATERAL VIEW explode({a}) t AS q",
    "SELECT f.id, g.n FROM {f} f JOIN r g ON {b}",
    "SELECT id, (SELECT {a} FROM r s WHERE s.id = f.id ORDER BY {b} LIMIT 1) AS q FROM {f} f",
    "SELECT DISTINCT {a} AS q FROM (SELECT *, {b} AS z FROM {f})",
    "SELECT {a} AS q FROM {f} GROUP BY ROLLUP({b})",
    "SELECT q FROM (SELECT {a} AS q FROM {f}) UNION ALL SELECT {b} FROM r",
)

FUNCTIONS_AND_MORE = (
    *(*FUNCTIONS, *AGGREGATES, *GENERATORS),
    *("coalesce", "if", "array", "map", "struct", "named_struct", "transform", "filter", "aggregate", "window"),
    *("session_window", "first", "lag", "ntile"),
)


def expression(dice: random.Random, depth: int = 2) -> str:
    if depth and dice.random() < 0.3:
        operator = dice.choice(OPERATORS)
        return operator.format(*(expression(dice, depth - 1) for _ in range(operator.count("{}"))))
    if depth and dice.random() < 0.4:
        arguments = [expression(dice, depth - 1) for _ in range(dice.choice([0, 1, 1, 2, 2, 3]))]
        return f"{dice.choice(FUNCTIONS_AND_MORE)}({', '.join(arguments)})"
    return dice.choice(OPERANDS)


def test_nonsense_is_compiled_or_refused() -> None:
    dice, compiled = random.Random(11), 0
    for _ in range(1500):
        select = dice.choice(SELECTS).format(a=expression(dice), b=expression(dice), f=dice.choice("er"))
        try:
            view = compile_catalog({"c.sql": f"{CATALOG}CREATE VIEW q AS {select};"}).views["q"]
        except Refused:
            continue
        except Exception as error:
            raise AssertionError(select) from error
        compiled += 1
        inputs = (column for table in view.cell_tables for column in (*table.key_inputs, *table.partial_inputs))
        assert not any(column.type == "VOID" or column.type.startswith("INTERVAL") for column in inputs), select
    assert compiled > 100


def test_a_view_that_would_take_minutes_to_compile_is_refused_at_once() -> None:
    ctes = ", ".join(f"c{n} AS (SELECT a.id, a.n FROM c{n - 1} a JOIN c{n - 1} b ON a.id = b.id)" for n in range(1, 23))
    grown = f"WITH c0 AS (SELECT id, n FROM e), {ctes} SELECT id, n FROM c22"
    with pytest.raises(Refused, match="c9 reads 512 relations"):
        compile_catalog({"c.sql": f"{CATALOG}CREATE VIEW v AS {grown};"})
    with pytest.raises(Refused, match="more than 2,000 expressions within each other"):
        compile_catalog({"c.sql": f"{CATALOG}CREATE VIEW v AS SELECT id, n{' + 1' * 20_000} AS m FROM e;"})


def test_a_sum_of_a_thousand_terms_and_a_chain_of_ctes_compile() -> None:
    ctes = ", ".join(f"c{n} AS (SELECT id, n + 1 AS n FROM c{n - 1})" for n in range(1, 50))
    chained = f"WITH c0 AS (SELECT id, n FROM e), {ctes} SELECT id, n FROM c49"
    text = f"{CATALOG}CREATE VIEW v AS SELECT id, n{' + 1' * 1_000} AS m FROM e; CREATE VIEW w AS {chained};"
    assert compile_catalog({"c.sql": text}).views.keys() >= {"v", "w"}
