"""Every function of the table has the table's type and value in Spark, and above the aggregation in Postgres."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.laws.accepting import accepted
from tests.laws.engines import Engines, same
from tests.laws.function_columns import ARGUMENTS, ROWS, SECOND, VALUES, source
from view_algebra import compile_catalog
from view_algebra.language.functions import Function
from view_algebra.language.types import VOID
from view_algebra.typed.expressions.scalars import expression
from view_algebra.typed.natural_names import natural_name
from view_algebra.typed.queries import query
from view_algebra.typed.scopes import Context, Outside, Scope
from view_algebra.written.dialect import parsed

SPECIAL = {
    "make_date": "make_date(2000 + ti, 2, 3)",
    "make_timestamp": "make_timestamp(2000, 2, 3, 4, 5, d)",
    "next_day": "next_day(day2, 'MO')",
    "timestamp_seconds": "timestamp_seconds(i)",
    "timestamp_millis": "timestamp_millis(i)",
    "timestamp_micros": "timestamp_micros(i)",
    "split_part": "split_part(s, ',', 1)",
    "sha2": "sha2(s, 256)",
    "chr": "chr(nullif(ti, 0))",  # of 0 it is U+0000, which Postgres has not
    "char": "char(200 + nullif(ti, 56))",
    "parse_url": "parse_url(concat('http://x/', t), 'PATH')",
    "try_url_decode": "try_url_decode(t)",
    "date_add": "date_add(day2, ti)",
    "dateadd": "dateadd(day2, ti)",
    "date_sub": "date_sub(day2, ti)",
    "add_months": "add_months(day2, 2)",
    "last_day": "last_day(day2)",
    "date_from_unix_date": "date_from_unix_date(ti)",
    "regexp_extract_all": "regexp_extract_all(s, 'a(b)?', 0)",
    "date_format": "date_format(ts, 'yyyy/MM/dd HH')",
    "from_unixtime": "from_unixtime(i, 'yyyy')",
    "to_date": "to_date(s)",
    "to_timestamp": "to_timestamp(s)",
    "regexp_extract": "regexp_extract(s, 'a(b)?', 1)",
    "array_join": "array_join(arr, ',')",
    "element_at": "element_at(map, 'a')",
    "try_element_at": "try_element_at(map, 'a')",
    "map_values": "size(map_values(map))",
    "map_entries": "size(map_entries(map))",
    "map_keys": "size(map_keys(map))",
    "unhex": "hex(unhex(s))",
    "split": "size(split(s, 'a'))",
    "array_max": "array_max(arr)",
    "sequence": "sequence(2, 2)",
}
DAYS = {
    "date_from_unix_date",
    "next_day",
    "timestamp_seconds",
    "timestamp_micros",
    "date_add",
    "dateadd",
    "date_sub",
    "add_months",
    "last_day",
    "date_format",
}
"""Functions whose result must stay within the calendar of both engines."""
SHORT = {
    "array()": "coalesce(arr, array())",
    "map()": "coalesce(map, map())",
    "sequence(day, day2)": "sequence(day2, date_add(day2, ti % 3))",
    "sequence(day, day2, 2)": "sequence(day2, date_add(day2, 5), INTERVAL 2 DAYS)",
    "sequence(ts, ts, 2)": "sequence(TIMESTAMP(day2), TIMESTAMP(day2) + INTERVAL 9 HOURS, INTERVAL 2 HOURS)",
    "sequence(i, ti)": "sequence(CAST(ti AS INT), ti + 3)",
    "sequence(l, m)": "sequence(CAST(ti AS BIGINT), CAST(ti - 3 AS BIGINT))",
    "sequence(i, ti, -1)": "sequence(CAST(ti AS INT), ti - 3, -2)",
    **{
        f"{name}_utc_timestamp(ts, {zone})": f"{name}_utc_timestamp(CAST(day2 AS TIMESTAMP), {zone})"
        for name in ("from", "to")
        for zone in ("'America/New_York'", "concat('Europe/', CASE WHEN ti = 0 THEN 'Paris' ELSE t END)")
    },
    "sequence(l, m, -1)": "sequence(CAST(ti AS BIGINT), CAST(ti + 3 AS BIGINT), 2)",
}
"""Replacements for calls that would make long lists of extreme values, or that need another form."""


def calls(row: Function) -> Iterator[str]:
    """Calls of a function, without and with its optional arguments."""
    if row.name in SPECIAL and not row.above:
        yield SPECIAL[row.name]
        return
    needed = [k for k in row.takes if k[-1] not in "*?"]
    for extra in (0, 1) if len(needed) < len(row.takes) else (0,):
        used: set[str] = set()
        arguments = []
        for kind in [*needed, *(k.rstrip("*?") for k in row.takes[len(needed) :][:extra])]:
            argument = ARGUMENTS[kind]
            if argument in used:
                argument = SECOND.get(argument, argument)
            used.add(argument)
            arguments.append(argument)
        special = SPECIAL.get(row.name) if row.name in DAYS else None
        call = f"{row.name}({', '.join(arguments)})"
        yield special or SHORT.get(call, call)


NARROWER = {"d": ("c", "w", "i", "ti"), "l": ("i", "ti"), "i": ("ti", "si"), "ts": ("day", "ntz"), "day": ("ts", "ntz")}
"""Columns of other types that a parameter accepts, by the column of its own type."""


def narrower() -> list[str]:
    """Accepted calls in which one argument has another type than the row's."""
    candidates = dict.fromkeys(
        f"{row.name}({', '.join([*own[:at], other, *own[at + 1 :]])})"
        for row in ROWS
        if row.above and row.name not in SPECIAL
        for own in [[ARGUMENTS[kind.rstrip("*")] for kind in row.takes if kind[-1] != "?"]]
        for at, name in enumerate(own)
        for other in NARROWER.get(name, ())
    )
    return list(accepted(f"{source()}CREATE VIEW r AS {OF_S};", candidates, of="r"))


def texts_made(*, above: bool) -> list[str]:
    """Accepted calls with another value in place of a text, or with a text in place of a number or a time."""
    candidates = dict.fromkeys(
        f"{row.name}({', '.join([*own[:at], other, *own[at + 1 :]])})"
        for row in ROWS
        if (row.above if above else not row.above_only) and row.name not in SPECIAL
        for own in [[ARGUMENTS[kind.rstrip("*?")] for kind in row.takes]]
        for at, name in enumerate(own)
        for kind in [row.takes[at].rstrip("*?")]
        for other in (
            ("i", "c", "b", "day", "ts", "ntz", *(() if above else ("d",)))
            if name in ("s", "t") and kind in ("string", "text", "texts")
            else ("read",) * (kind in ("double", "date"))
        )
    )
    return list(accepted(f"{source()}CREATE VIEW r AS {OF_S};", candidates, of="r" if above else "s"))


def functions() -> list[str]:
    """Calls of every function that Postgres computes above the aggregation."""
    return [call for row in ROWS if row.above for call in calls(row)]


OF_S = f"SELECT kafka_offset AS id, {', '.join(VALUES)} FROM s"
EXPRESSIONS = {
    "arithmetic": [
        f"{a} {op} {b}"
        for (a, b), op in itertools.product(
            [
                ("i", "ti"),
                ("l", "m"),
                ("d", "e"),
                ("c", "c"),
                ("c", "w"),
                ("w", "w"),
                ("l", "c"),
                ("i", "i"),
                ("si", "ti"),
                ("c", "2"),
            ],
            ["+", "-", "*", "/", "%"],
        )
        if (a, op) != ("d", "%")
    ]
    + ["l div m", "c div c", "-l", "-i", "-c", "-d", "i div ti"],
    "comparison": [
        f"{a} {op} {b}"
        for (a, b), op in itertools.product(
            [("i", "l"), ("d", "e"), ("s", "t"), ("c", "d"), ("c", "l"), ("day", "ts"), ("b", "b")],
            ["=", "<>", "<", ">=", "<=>"],
        )
    ]
    + [
        "s IN ('a', '10')",
        "s = 10",
        "l < s",
        "s IN (10, 2.5)",
        "c IN ('1.005', 'x')",
        "ts - ntz < INTERVAL 1 HOUR",
        "day - day2 > INTERVAL 3 DAYS",
        "s LIKE t",
        "l IN (0, 10, NULL)",
        "l NOT IN (0, 10)",
        "s LIKE 'a%'",
        "s LIKE '%\\\\_%'",
        "l BETWEEN 0 AND 10",
        "s IS NULL",
        "b IS TRUE",
        "NOT b",
        "b AND l > 0",
        "b OR l > 0",
        "ts > '2000-01-01'",
        "day >= '2000-01-01'",
    ],
    "casts": [
        f"CAST({a} AS {kind})"
        for a, kinds in {
            "i": ["BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "STRING", "DECIMAL(12,2)", "DECIMAL(5,2)", "BOOLEAN"],
            "l": ["INT", "SMALLINT", "DOUBLE", "STRING", "DECIMAL(20,0)", "DECIMAL(10,2)"],
            "d": ["INT", "BIGINT", "DECIMAL(10,2)"],
            "c": ["INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL(5,1)", "DECIMAL(20,6)"],
            "w": ["BIGINT", "INT", "DECIMAL(20,2)"],
            "b": ["INT", "BIGINT", "STRING", "SMALLINT", "TINYINT", "DOUBLE", "DECIMAL(5,2)"],
            "s": ["TINYINT", "INT", "BIGINT", "BOOLEAN", "DOUBLE"],
            "day": ["TIMESTAMP", "TIMESTAMP_NTZ", "STRING"],
            "ts": ["DATE", "STRING", "BIGINT", "DOUBLE", "TIMESTAMP_NTZ"],
            "ntz": ["DATE", "STRING", "TIMESTAMP"],
        }.items()
        for kind in kinds
    ],
    "time": [
        "ts + INTERVAL 1 HOUR",
        "ntz - INTERVAL 90 SECONDS",
        "ts + INTERVAL 1 DAY",
        "ts + INTERVAL 1 MONTH",
        "day2 + INTERVAL 1 MONTH",
        "day2 - INTERVAL 3 DAYS",
        "day2 + INTERVAL 2 HOURS",
        "ntz + INTERVAL 1 DAY",
        "day2 + 3",
        "EXTRACT(YEAR FROM ts)",
        *(
            f"date_format(ts, '{form}')"
            for form in ("EEEE, d MMMM y", "EEE dd-MMM-yy h:mm a", "Q D DDD H m s S SSS SSSSSS")
        ),
        *(f"next_day(day2, '{day}')" for day in ("MO", "tue", "Wednesday", "th", "FRI", "sa", "SUN")),
        "date_add(ts, 1) > day",
        "add_months(day2, ti)",
        "add_months(day2, -13)",
        *(f"months_between({a}, {b})" for a, b in itertools.product(("ts", "day", "day2"), repeat=2)),
        *(f"make_date({parts})" for parts in ("2000 + ti, 2, 29", "2023, ti, 31", "2024, 2, si")),
        "last_day(ts)",
        *(f"date_trunc('{unit}', ts)" for unit in ("year", "quarter", "month", "week", "day", "minute", "second")),
    ],
    "rounding": [
        f"{function}({number}, {places})"
        for function in ("round", "bround")
        for number, places in itertools.product(("d", "c", "w", "i", "l"), (-2, 0, 2))
    ]
    + [
        f"format_number({number}, {places})"
        for number, places in itertools.product(("c", "w", "i", "l"), (-1, 0, 1, 20))
    ]
    + ["round(l, -19)", "round(w, -30)", "bround(w, 9)", "round(i, -10)", "round(d, -300)", "round(c / 7, 5)"]
    + ["try_add(l, m)", "try_subtract(l, m)", "try_multiply(l, m)", "try_add(i, ti)", "try_multiply(si, ti)"]
    + [
        "try_multiply(c, w)",
        "try_add(ti, ti)",
        "pmod(i, ti)",
        "pmod(i, i)",
        "pmod(l, m)",
        "factorial(ti)",
        "positive(c)",
    ],
    "nested": [
        *(
            f"{call.format(of)}"
            for of in ("texts", "nums", "days")
            for call in (
                "sort_array({})",
                "sort_array({}, false)",
                "array_sort({})",
                "array_min({})",
                "array_max({})",
                "array_distinct({})",
                "size({})",
                "reverse({})",
                "concat({0}, {0})",
                "slice({}, 2, 3)",
                "element_at({}, 2)",
                "element_at({}, -2)",
                "{}[0]",
                "{}[9]",
                "get({}, 1)",
            )
        ),
        *(
            call.format(of)
            for of in ("ds", "fs", "tss", "ntzs")
            for call in ("sort_array({}, false)", "array_sort({})", "array_min({})", "array_max({})", "{}[1]")
        ),
        *(
            call.format(of, other, element)
            for of, other, element in (("texts", "arr", "t"), ("longs", "array(3L, m, m)", "m"))
            for call in (
                "array_union({0}, {1})",
                "array_intersect({0}, {1})",
                "array_except({0}, {1})",
                "arrays_overlap({0}, {1})",
                "array_append({0}, {2})",
                "array_prepend({0}, {2})",
                "array_remove({0}, {2})",
                "array_compact({0})",
                "array_contains({0}, {2})",
                "slice({0}, -2, 2)",
                "slice({0}, -9, 8)",
                "slice({0}, 2, 0)",
            )
        ),
        "array_remove(nums, CAST(2.5 AS DECIMAL(12,3)))",
        "array_union(nums, array(CAST(2.5 AS DECIMAL(12,3)), CAST(7 AS DECIMAL(12,3))))",
        "array_except(days, array(day))",
        "arrays_overlap(days, array(day, day2))",
        "transform(sts, s -> s.y)",
        "sts[0].x",
        "array_join(texts, '-', '?')",
        "concat_ws(',', texts)",
        "concat_ws(',', days)",
        "array_contains(texts, 'b')",
        "array_contains(texts, t)",
        "array_contains(longs, 3)",
        "array_position(longs, i)",
        "array_join(longs, '')",
        "longs[1] + 1",
        "array_contains(nums, CAST(2.5 AS DECIMAL(12,3)))",
        "array_contains(days, day)",
        "array_position(texts, t)",
        "array_position(days, DATE '0001-01-01')",
        "deep.a.b",
        "deep.a.at",
        "deep.a.x",
        "deep.c[0][0]",
        "size(deep.c)",
        "size(deep.c[0])",
        "deep.c[0] IS NULL",
        "deep.a IS NULL",
        "array_max(deep.c[1])",
        "deep.`d e`['A']",
        "deep.`d e`.`a b` IS NULL",
        "named_struct('n', l, 'at', ts, 'on', day, 'x', nullif(e, 1e300), 'm', c, 'none', CAST(NULL AS STRING))",
        "struct(s, l AS big, struct(ntz, b) AS inner, arr, map('k', t) AS m)",
        "struct(s, i + 1 AS j).j",
        "struct(s, ts).ts",
        "map('a', l, 'b', i)",
        "map('a', c, 'b', w)['b']",
        "array(l, i, 3)",
        "array(c, w, 1)",
        "array(ts, CAST(day AS TIMESTAMP))",
        "array(nullif(e, 1e300), 1.5D)",
        "array_max(array(s, t, 'ü'))",
        "sort_array(array(c, 2.5))[0]",
        "array(arr, texts)",
        "map.a + 1",
        "map['a'] = 1",
        "st.y || '!'",
        "deep",
        "deep.a",
        "deep.c",
    ],
    "conditional": [
        "CASE WHEN l > 0 THEN 'p' WHEN l < 0 THEN 'n' END",
        "CASE l WHEN 0 THEN c ELSE l END",
        "CASE WHEN b THEN i ELSE l END",
        "coalesce(s, 'none')",
        "coalesce(c, l, 0)",
        "coalesce(i, d)",
        "greatest(s, t)",
        "least(d, e)",
        "if(b, 1, 2.5)",
        "nullif(s, '')",
        "s || t || 'x'",
        "concat(s, l, b)",
        "trim(BOTH FROM s)",
        "substring(s FROM 2)",
        "position('b' IN s)",
        "round(c, 1) + 1",
        "round(w, 3)",
        "floor(w)",
    ],
}


def records(count: int = 90) -> list[bytes]:
    """Records that together have every value of every column, in changing combinations."""
    generated = []
    for number in range(count):
        picked = {name: values[(number + number // len(values)) % len(values)] for name, (_, values) in VALUES.items()}
        generated.append(json.dumps(picked).encode())
    return generated


def compare(engines: Engines, views: dict[str, str]) -> list[str]:
    """The differences between the engines, by view."""
    text = source() + "\n".join(f"CREATE VIEW {name} AS {select};" for name, select in views.items())
    catalog = compile_catalog({"functions.sql": text})
    batches = {"s": [records()]}
    engines.deploy(catalog)
    engines.feed(catalog, batches)
    engines.oracle(catalog, batches)
    wrong = []
    for view in catalog.views.values():
        declared = [c.spark.replace(" ", "").replace("`", "").upper() for c in view.columns]
        types = [kind.replace(" ", "").replace("`", "").upper() for kind in engines.types_of(view)]
        wrong += [f"{view.select}: typed {a}, Spark says {b}" for a, b in zip(declared, types, strict=True) if a != b]
        expected, actual = engines.expected(view), engines.actual(view)
        if not same(expected, actual):
            pairs = [(a, b) for a, b in zip(expected, actual, strict=False) if not same([a], [b])]
            wrong.append(
                f"{view.select}: Spark {len(expected)} rows, Postgres {len(actual)}; {pairs[:3]}\n{view.final}"
            )
    return wrong


def test_a_function_below_the_aggregation_has_the_type_and_value_that_spark_gives_it(engines: Engines) -> None:
    below = [
        *(call for row in ROWS if not row.above_only for call in calls(row)),
        "map.a",
        "map.A",
        "map['a']",
        "st.X",
        "map('b', t).b",
    ]
    columns = [f"{call} AS c{n}" for n, call in enumerate(below)]
    views = {
        f"v{n}": f"SELECT kafka_offset, {', '.join(columns[n : n + 60])} FROM s" for n in range(0, len(columns), 60)
    }
    assert compare(engines, views) == []


def test_a_value_that_is_not_a_text_is_read_as_spark_writes_it_below_the_aggregation(engines: Engines) -> None:
    columns = [f"{call} AS c{n}" for n, call in enumerate(texts_made(above=False))]
    views = {
        f"v{n}": f"SELECT kafka_offset, {', '.join(columns[n : n + 60])} FROM s" for n in range(0, len(columns), 60)
    }
    assert len(columns) > 300
    assert compare(engines, views) == []


@pytest.mark.parametrize("kind", ["functions", "narrower", "texts made", *EXPRESSIONS])
def test_an_expression_above_the_aggregation_has_the_type_and_value_that_spark_gives_it(
    engines: Engines, kind: str
) -> None:
    generated: dict[str, Callable[[], list[str]]] = {
        "functions": functions,
        "narrower": narrower,
        "texts made": partial(texts_made, above=True),
    }
    above = generated[kind]() if kind in generated else EXPRESSIONS[kind]
    views = {"rows_of_s": OF_S}
    for start in range(0, len(above), 40):
        columns = [f"{call} AS c{n}" for n, call in enumerate(above[start : start + 40])]
        views[f"w{start}"] = f"SELECT id, {', '.join(columns)} FROM rows_of_s"
    assert compare(engines, views) == []


def test_spark_accepts_every_cast_that_the_compiler_accepts(engines: Engines) -> None:
    """Spark would refuse the whole micro-batch, and stop the stream."""
    columns = [*VALUES, "CAST(s AS BINARY)"]
    kinds = ("TINYINT", "BIGINT", "DOUBLE", "DECIMAL(9,2)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")
    casts = [f"CAST({column} AS {kind})" for column in columns for kind in kinds]
    casts += [f"hex(CAST({column} AS BINARY))" for column in columns]
    taken = accepted(source(), casts, of="s")
    engines.oracle(compile_catalog({"functions.sql": source()}), {})
    assert len(taken) > 150
    assert engines.spark.sql(f"SELECT {', '.join(taken)} FROM s").columns


def test_every_character_has_the_same_case_in_both_engines(engines: Engines) -> None:
    """Every character is tried alone. A sigma, whose case depends on its neighbours, is also tried inside words."""
    points = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    texts = [" ".join(map(chr, points[start : start + 500])) for start in range(0, len(points), 500)]
    texts += [
        "ΑΣ",
        "ΑΣΑ",
        "Σ",
        "ΣΑ",
        "Α.Σ",
        "ΑΣ.",
        "ΑΣ1",
        "1Σ",
        "ΑΣ\u0301",
        "Α\u0301Σ",
        "ΑΣ ΑΣ",
        "aΣ",
        "ΑΣ'Α",
        "ΑΣ-",
        "I\u0307",
    ]
    engines.spark.createDataFrame(list(enumerate(texts)), "n INT, t STRING").createOrReplaceTempView("texts")
    rows = engines.spark.sql("SELECT lower(t) AS l, upper(t) AS u FROM texts ORDER BY n").collect()
    with engines.connection.cursor() as cursor:
        cursor.execute(
            "SELECT spark.lower(t), spark.upper(t) FROM unnest(%s) WITH ORDINALITY AS u (t, n) ORDER BY n", (texts,)
        )
        results = cursor.fetchall()
    differs = [
        (f"U+{ord(x):04X}", a, b)
        for text, row, pair in zip(texts, rows, results, strict=True)
        for side, other in zip(row, pair, strict=True)
        if side != other
        for x, a, b in zip(text.split(" "), side.split(" "), other.split(" "), strict=False)
        if a != b and len(x) == 1
    ]
    assert differs == []
    assert [tuple(row) for row in rows] == results


def test_a_call_without_an_alias_has_sparks_name(engines: Engines) -> None:
    engines.spark.createDataFrame(
        [], ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    ).createOrReplaceTempView("s")
    nowhere = Outside(Context({}, {}, {}, {}, {}, {}, {}, expression, query))
    here = Scope(nowhere, relations={"s": tuple((name, VOID) for name in VALUES)})
    named = {call: name for row in ROWS for call in calls(row) if (name := natural_name(parsed(call), here))}
    assert len(named) > 300
    assert engines.spark.sql(f"SELECT {', '.join(named)} FROM s").columns == [*named.values()]
