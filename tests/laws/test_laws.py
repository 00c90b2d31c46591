"""The laws of all aggregates, generated from their table: a new row needs no new test."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from functools import cache

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.laws.engines import Engines, difference, in_order, same
from view_algebra import Catalog, compile_catalog
from view_algebra.language.aggregates import AGGREGATES, MOMENTS, AggregateFunction
from view_algebra.language.expressions import Field
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
)

Record = dict[str, object]
VALUES: dict[str, tuple[Type, st.SearchStrategy[object]]] = {
    "x_tiny": (TINYINT, st.sampled_from([0, 1, -128, 127])),
    "x_int": (INT, st.one_of(st.integers(-5, 5), st.sampled_from([2**31 - 1, -(2**31)]))),
    # avg() adds doubles in any order, and the sum of these loses no digit.
    "x_big": (BIGINT, st.sampled_from([2**63 - 1, -(2**63), 2**62, 0, *(n << 20 for n in range(-5, 6))])),
    "x_float": (FLOAT, st.sampled_from([0.0, 1.5, -2.25, 16777216.0, "NaN", "Infinity"])),
    "x_double": (DOUBLE, st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e308, "NaN", "Infinity", "-Infinity", 5e-324, 3.0])),
    "x_money": (decimal(10, 2), st.decimals(-99999999, 99999999, places=2).map(str)),
    "x_wide": (decimal(38, 6), st.sampled_from(["0", "1.000001", "12345678901234567890.123456", "9" * 31 + ".999999"])),
    "x_fraction": (decimal(38, 38), st.sampled_from(["0." + "9" * 38, "0." + "0" * 37 + "1", "0.5"])),
    "x_bool": (BOOLEAN, st.booleans()),
    "x_text": (STRING, st.sampled_from(["", "a", "B", "b", "ä", "é", "zz", "😀", "a b"])),
    "x_day": (DATE, st.sampled_from(["0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31"])),
    "x_time": (
        TIMESTAMP,
        st.sampled_from(["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2024-01-01T00:00:00Z"]),
    ),
}
FILTERS = ("", " FILTER (WHERE pick > 1)", " FILTER (WHERE pick > 9)")


def calls() -> list[tuple[str, str]]:
    """Every aggregate over the types that it takes, as (column, call).

    One with several partials is tried over FEW types. Moments have a law of their own.
    """
    aggregates = [("count", "count(*)")]
    for row in AGGREGATES.values():
        for column, (kind, _) in VALUES.items():
            if (
                row.name not in (*MOMENTS, "regr_avgx", "regr_avgy")
                and row.accepts(kind)
                and (_is_simple(row) or column in FEW)
            ):
                aggregates += [(column, call) for call in _calls(row, column)]
    return aggregates


FILTERED = ("count", "sum", "min", "max", "avg", "count_if", "bool_or", "bit_xor", "max_by")
"""The aggregates that a FILTER is tried with. For the others, FILTER is the same condition on each partial."""

FEW = ("x_big", "x_double", "x_money", "x_text")
"""The columns for aggregates with several partials, or with a cell for each value."""

ANY = (Field("", ("x",), STRING), Field("", ("y",), STRING))


def _is_filtered(call: str) -> bool:
    return call.partition("(")[0] in FILTERED


def _is_simple(row: AggregateFunction) -> bool:
    return row.name == "avg" or len(row.partials(ANY, None)) == 1


def _calls(row: AggregateFunction, column: str) -> list[str]:
    if row.name == "percentile_disc":
        return [f"percentile_disc(0.3) WITHIN GROUP (ORDER BY {column})"]
    if row.arguments[0] < 2:
        return [f"{row.name}({column})"]
    if row.by_value is not None:
        return [f"{row.name}({column}, 0.3)"]
    texts = [f"{row.name}(x_text, {column})"] if row.accepts(STRING) else []
    return [f"{row.name}({column}, x_int)", *texts]


@cache
def catalog() -> Catalog:
    """A view per type, grouped and not, with every aggregate of it, filtered and not."""
    columns = ", ".join(f"{name} {kind.spark}" for name, (kind, _) in VALUES.items())
    text = f"CREATE TABLE s (k INT, pick INT, {columns}) USING kafka OPTIONS (topic 's', format 'json');\n"
    for column in dict.fromkeys(column for column, _ in calls()):
        of_column = [call for name, call in calls() if name == column]
        filtered = [
            call + condition for call in of_column for condition in FILTERS if not condition or _is_filtered(call)
        ]
        outputs = ", ".join(f"{call} AS a{n}" for n, call in enumerate(filtered))
        text += f"CREATE VIEW g_{column} AS SELECT k, {outputs} FROM s GROUP BY k;\n"
        text += f"CREATE VIEW all_{column} AS SELECT {outputs} FROM s WHERE k <> 0;\n"
    return compile_catalog({"laws.sql": text})


def record(draw: st.DrawFn, case: int) -> bytes:
    values: Record = {"k": case if case % 5 else None, "pick": draw(st.sampled_from([0, 1, 2, None]))}
    for name, (_, strategy) in VALUES.items():
        values[name] = draw(st.one_of(st.none(), strategy))
    return json.dumps(values).encode()


class Sets(list[list[bytes]]):
    """Disjoint sets of records. A failure prints their sizes."""

    def __repr__(self) -> str:
        return f"Sets of {', '.join(str(len(part)) for part in self)} records"


@st.composite
def three_sets(draw: st.DrawFn) -> Sets:
    """Three disjoint sets of records. A group may be in any of them, and a set may be empty.

    Hypothesis begins with the smallest example, so the first choices are of sets with records.
    """
    sets = Sets([[], [], []])
    for case in range(draw(st.integers(4, 12))):
        for part in sets:
            for _ in range(draw(st.sampled_from([1, 2, 0, 4]))):
                part.append(record(draw, case))
    return sets


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a smaller example is not worth minutes of Spark
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(sets=three_sets())
def test_partials_merge_in_any_order_to_the_select_over_all_records(engines: Engines, sets: Sets) -> None:
    laws = catalog()
    engines.deploy(laws, generations=9)
    offset, interpreted = 0, replace(engines, compiling=False)
    for generation, part in ((5, sets[0]), (6, sets[1]), (7, sets[2]), (9, [])):
        (engines if generation == 5 else interpreted).feed(laws, {"s": [part]}, generation, offset)
        offset += len(part)
    tables = [table for view in laws.views.values() for table in view.cell_tables]
    orders = {
        1: [5, 6, 7],  # final(merge(partial(A), …)) is read from this one
        2: [7, 6, 5],  # commutative
        3: [5, 8],  # associative: A + (B + C)
        4: [9, 5, 9, 6, 7, 9],  # the cells of no records change nothing
    }
    for table in tables:
        for come_from in (6, 7):
            engines.merge_cells(table, 8, come_from)
        for into, sources in orders.items():
            for come_from in sources:
                engines.merge_cells(table, into, come_from)
        first = engines.cells(table, 1)
        for other in (2, 3, 4):
            assert same(first, engines.cells(table, other)), table.merge
    engines.oracle(laws, {"s": sets})
    for view in in_order(laws):
        expected, actual = engines.expected(view), engines.actual(view)
        assert same(expected, actual), difference(view, expected, actual)


def test_a_sum_that_leaves_its_type_wraps_or_is_null_as_in_spark(engines: Engines) -> None:
    text = """CREATE TABLE s (n BIGINT, w DECIMAL(38, 2), d DOUBLE) USING kafka OPTIONS (topic 's', format 'json');
    CREATE VIEW v AS SELECT sum(n) AS n, sum(w) AS w, sum(d) AS d, avg(n) AS a, avg(w) AS aw FROM s;"""
    compiled = compile_catalog({"c.sql": text})
    values = [json.dumps({"n": 2**63 - 1, "w": "9" * 36 + ".99", "d": 1.7e308}).encode()] * 3
    engines.deploy(compiled)
    engines.feed(compiled, {"s": [[v] for v in values]})
    engines.oracle(compiled, {"s": [values]})
    view = compiled.views["v"]
    expected, actual = engines.expected(view), engines.actual(view)
    assert same(expected, actual)
    assert actual[0][:3] == (2**63 - 3, None, math.inf)
    assert isinstance(actual[0][3], float)


MOMENTS_OF = """CREATE TABLE s (k INT, x DOUBLE, y DOUBLE, n BIGINT, d DECIMAL(12, 3)) USING kafka
  OPTIONS (topic 's', format 'json');
CREATE VIEW v AS SELECT k, {calls} FROM s GROUP BY k;
CREATE VIEW w AS SELECT {calls} FROM s WHERE k > 2;
"""


def test_moments_merge_in_any_order_to_those_of_all_records(engines: Engines) -> None:
    """The groups differ in mean and deviation, or hold equal numbers, one number, no number, NaN or Infinity."""
    dice = random.Random(5)
    calls = [f"{name}({a})" for name in sorted(MOMENTS) for a in ("x", "n", "d") if _takes_one(name)]
    pairs = [*sorted(MOMENTS), "regr_avgx", "regr_avgy"]  # doubles that cancel out depend on their order
    calls += [f"{name}({a})" for name in pairs for a in ("x, y", "d, n") if not _takes_one(name)]
    calls += [f"{call} FILTER (WHERE n > 0)" for call in calls[::5]]
    outputs = ", ".join(f"{call} AS a{number}" for number, call in enumerate(calls))
    compiled = compile_catalog({"moments.sql": MOMENTS_OF.format(calls=outputs)})
    numbers = []
    for _ in range(120):
        k = dice.randrange(7)
        x: object = {0: 0.1, 1: "NaN", 2: dice.choice([1.5, "Infinity"])}.get(k, dice.gauss(1000, 3))
        y: object = 7.25 if k == 3 else dice.choice([None, dice.gauss(-5, 100)])
        n = dice.choice([-(10**12), 3, 4, None]) if k != 4 else 5
        numbers.append(json.dumps({"k": k, "x": x, "y": y, "n": n, "d": round(dice.gauss(1e6, 10), 3)}).encode())
    numbers.append(json.dumps({"k": 9, "x": 1.0, "y": 2.0, "n": 3, "d": 4}).encode())
    numbers.append(json.dumps({"k": 10}).encode())
    parts = [numbers[:1], numbers[1:50], numbers[50:51], numbers[51:]]
    engines.deploy(compiled, generations=2)
    engines.feed(compiled, {"s": parts})
    engines.feed(compiled, {"s": parts[::-1]}, generation=2)
    engines.oracle(compiled, {"s": parts})
    for view in in_order(compiled):
        expected, actual = engines.expected(view), engines.actual(view)
        assert same(expected, actual, 1e-13), difference(view, expected, actual)
        for table in view.cell_tables:
            assert same(engines.cells(table, 1), engines.cells(table, 2), 1e-7), table.merge


def _takes_one(name: str) -> bool:
    return not name.startswith(("co", "regr"))
