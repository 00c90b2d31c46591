"""The SELECT that an error prints has the rows that DuckDB computes for the refused one."""

# ruff: noqa: E501 — a SELECT stands on one line

from __future__ import annotations

import json
import random
import re
from datetime import UTC, date, datetime, timedelta

import duckdb
import pytest

from tests.laws.engines import Engines, ordered, same
from view_algebra import Refused, compile_catalog

SOURCE = """CREATE TABLE visits (n INT, day DATE, ts TIMESTAMP, user STRING, kind STRING, amount BIGINT)
USING kafka OPTIONS (topic 'visits', format 'json');
"""

REFUSED = {
    "seven days": "SELECT DISTINCT day, count(DISTINCT user) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS v FROM visits",
    "two hours of each kind": "SELECT DISTINCT kind, ts, count(DISTINCT user) OVER (PARTITION BY kind ORDER BY ts RANGE BETWEEN INTERVAL 2 HOURS PRECEDING AND CURRENT ROW) AS v FROM visits WHERE amount > 0",
    "the days before": "SELECT DISTINCT day, count(DISTINCT user) OVER (ORDER BY day RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND INTERVAL 1 DAY PRECEDING) AS v FROM visits",
    "downwards": "SELECT DISTINCT amount, sum(DISTINCT n) OVER (ORDER BY amount DESC RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS v FROM visits",
    "from the first": "SELECT DISTINCT day, count(DISTINCT user) OVER (ORDER BY day RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS v FROM visits",
    "to the last": "SELECT DISTINCT amount, count(DISTINCT user) OVER (ORDER BY amount RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS v FROM visits",
    "so far": "SELECT DISTINCT kind, day, count(DISTINCT user) OVER (PARTITION BY kind ORDER BY day, user DESC) AS v, user FROM visits",
    "of a partition": "SELECT DISTINCT kind, sum(DISTINCT amount) OVER (PARTITION BY kind) AS v FROM visits",
    "of everything": "SELECT DISTINCT avg(DISTINCT amount) OVER () AS v FROM visits",
    "one row of each user": "SELECT DISTINCT ON (user) user, n, kind AS v FROM visits WHERE amount > 0 ORDER BY user, n DESC",
    "one row of each user and kind, the first": "SELECT DISTINCT ON (user, kind) user, kind, amount AS v FROM visits ORDER BY user, kind, n",
    "of some rows": "SELECT kind, n, count(DISTINCT user) OVER (PARTITION BY kind ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS v FROM visits",
}


def written_instead(select: str) -> str:
    with pytest.raises(Refused) as caught:
        compile_catalog({"v.sql": f"{SOURCE}CREATE VIEW v AS {select};"})
    match = re.search(r"\n\nWrite ((?:SELECT|WITH) .*?)(?:\. [A-Z].*)?\.$", str(caught.value), re.DOTALL)
    assert match is not None, str(caught.value)
    return match[1]


def in_duckdb(select: str, columns: str, records: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """The rows of the refused SELECT: NULL is before every value, as in Spark."""
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.execute('CREATE TABLE visits (n INT, day DATE, ts TIMESTAMP, "user" TEXT, kind TEXT, amount BIGINT)')
        connection.executemany(
            "INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", [[*map(_naive, row.values())] for row in records]
        )
        quoted = re.sub(r"\buser\b", '"user"', select)
        rows = connection.execute(f"SELECT DISTINCT {columns} FROM ({quoted})").fetchall()
        return [tuple(f"{x:%Y-%m-%d %H:%M:%S.%f}" if isinstance(x, date) else x for x in row) for row in rows]


def test_the_last_but_one_known_value_is_found_in_two_steps() -> None:
    """The refusal of `lag(x, 2) IGNORE NULLS` prints the two steps. They lose no row."""
    dice = random.Random(7)
    for name in ("lag", "lead"):
        refused = f"{name}(x, 2 IGNORE NULLS) OVER (ORDER BY n)"
        step = f"CASE WHEN x IS NOT NULL THEN {name}(x IGNORE NULLS) OVER (ORDER BY n) END AS y"
        served = f"SELECT n, {name}(y IGNORE NULLS) OVER (ORDER BY n) FROM (SELECT n, {step} FROM t)"
        for _ in range(20):
            rows = [(n, dice.choice([None, None, n, -n])) for n in range(dice.randrange(1, 12))]
            with duckdb.connect() as connection:
                connection.execute("CREATE TABLE t (n INT, x INT)")
                connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
                wanted = connection.execute(f"SELECT n, {refused} FROM t ORDER BY n").fetchall()
                assert connection.execute(f"{served} ORDER BY n").fetchall() == wanted


def _naive(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def records(count: int, seed: int) -> list[dict[str, object]]:
    choose = random.Random(seed).choice
    days = [None, *(date(2024, 2, 26) + timedelta(days=days) for days in (0, 1, 2, 5, 6, 7, 9, 20))]
    times = [None, *(datetime(2024, 3, 1, tzinfo=UTC) + timedelta(minutes=40 * n) for n in range(8))]
    return [
        {
            "n": number,
            "day": choose(days),
            "ts": choose(times),
            "user": choose(["a", "b", "c", "ü", None]),
            "kind": choose(["x", "y", None]),
            "amount": choose([-1, 1, 2, 3, 5, None]),
        }
        for number in range(count)
    ]


def test_the_select_printed_for_distinct_values_over_rows_gives_the_refused_selects_rows(
    engines: Engines,
) -> None:
    values = records(60, 3)
    instead = {name: written_instead(select) for name, select in REFUSED.items()}
    views = {f"v{number}": name for number, name in enumerate(REFUSED)}
    text = "".join(f"CREATE VIEW {view} AS {instead[name]};" for view, name in views.items())
    catalog = compile_catalog({"v.sql": SOURCE + text})
    batches = {"visits": [[json.dumps(row, default=str).encode() for row in values]]}
    engines.deploy(catalog)
    engines.feed(catalog, batches)
    engines.oracle(catalog, batches)
    for view, name in views.items():
        columns = [c.name for c in catalog.views[view].columns]
        kept = [
            at for at, column in enumerate(columns) if column in re.findall(r"\w+", REFUSED[name].split(" FROM ")[0])
        ]
        actual = {tuple(row[at] for at in kept) for row in engines.actual(catalog.views[view])}
        expected = in_duckdb(REFUSED[name], ", ".join(f'"{columns[at]}"' for at in kept), values)
        assert same(ordered(expected), ordered([*actual])), (name, instead[name])
        assert same(ordered(engines.expected(catalog.views[view])), ordered(engines.actual(catalog.views[view]))), name
