"""No value stops a stream, or ends a check: every function takes the least, the greatest and the oddest values."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence

import psycopg2

from master_log.causes import SPARK_ERRORS, cause
from tests.laws.accepting import accepted
from tests.laws.engines import Engines
from tests.laws.function_columns import ARGUMENTS, ROWS, SECOND
from view_algebra import Refused, compile_catalog
from view_algebra.language.functions import Function

INFINITY, MINUS_INFINITY = 9223372036825200000, -9223372036832400000
"""The numbers that Debezium writes for Postgres' infinite times, in every unit."""

WHOLE = [0, 1, -1, 2**31 - 1, -(2**31), 719_163, -719_163, 2_932_897, 10**6, 2**20, 55296, 1114112]
LONG = [
    *(2**63 - 1, -(2**63), INFINITY, MINUS_INFINITY, 2**53, -1, 0, 1, 86_400),
    *(n * unit + more for n in (-62135596800, 253402300800) for unit in (1, 1000, 10**6) for more in (-1, 0, 1)),
]
DOUBLES = [0.0, -0.0, 1.5, 1e308, -1e308, 5e-324, "NaN", "Infinity", "-Infinity", 59.9999999, 60.0, 9.3e18]
TEXTS = [
    *("", "a", "\u0001", "%", "\\", "[", "$1", "{", "[1", '{"a":', "x" * 10_000, "😀" * 50),
    *("infinity", "-infinity", "+294247-01-10 04:00:54.775807", "-290308-12-21", "292278994-08-16T23:00:00Z"),
    *(
        "99999",
        "294248",
        "+300000",
        "0000",
        "-0001",
        "9" * 40,
        "1e400",
        "-1e400",
        "00",
        "zz",
        "%00",
        "%ff",
        "%zz",
        "\\u0000",
    ),
    *('{"A":1,"A":2,"B":["\\u0000"],"a":"\\u0000"}', '{"A":1e400}', "http://[", "Mo", "24:00:00", "9999-12-31 24:00"),
]
TIMES = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2024-02-29T12:00:00Z"]
VALUES: dict[str, tuple[str, Sequence[object]]] = {
    "b": ("BOOLEAN", [True, False]),
    "ti": ("TINYINT", [0, -128, 127]),
    "si": ("SMALLINT", [7, -32768, 32767]),
    "i": ("INT", WHOLE),
    "l": ("BIGINT", LONG),
    "m": ("BIGINT", LONG[::-1]),
    "d": ("DOUBLE", DOUBLES),
    "e": ("DOUBLE", DOUBLES[::-1]),
    "c": ("DECIMAL(12,3)", [0, "999999999.999", "-999999999.999", "0.001"]),
    "w": ("DECIMAL(38,10)", ["9" * 28 + "." + "9" * 10, "-" + "9" * 28 + "." + "9" * 10, 0]),
    "s": ("STRING", TEXTS),
    "t": ("STRING", TEXTS[::-1]),
    "day": ("DATE", [time[:10] for time in TIMES]),
    "day2": ("DATE", [time[:10] for time in TIMES[::-1]]),
    "ts": ("TIMESTAMP", TIMES),
    "ts2": ("TIMESTAMP", TIMES[::-1]),
    "ntz": ("TIMESTAMP_NTZ", [time[:-1] for time in TIMES]),
    "arr": ("ARRAY<STRING>", [["a", None], [], TEXTS]),
    "sts": ("ARRAY<STRUCT<x: INT, y: STRING>>", [[{"x": 1, "y": "q"}, None, {}], [{"y": "r"}, {"y": "r"}], []]),
    "arrs": ("ARRAY<ARRAY<STRING>>", [[["a", None], []], [], [None]]),
    "st": ("STRUCT<x: INT, y: STRING>", [{"x": 1, "y": "q"}, {}]),
    "map": ("MAP<STRING, INT>", [{"a": 1}, {}]),
    "texts": ("ARRAY<STRING>", [["b", "", None], []]),
    "ds": ("ARRAY<DOUBLE>", [DOUBLES, []]),
    "tss": ("ARRAY<TIMESTAMP>", [[*TIMES, None], []]),
}
SECONDS = SECOND | {"ts": "ts2", "day": "day2", "i": "ti"}


def records(count: int = 150) -> list[bytes]:
    dice = random.Random(11)
    rows = [{name: dice.choice([*values, None]) for name, (_, values) in VALUES.items()} for _ in range(count)]
    return [json.dumps(row).encode() for row in rows]


def calls(row: Function) -> Iterator[str]:
    """Calls of a function, without and with its optional arguments, with equal and different arguments of one type."""
    needed = [kind for kind in row.takes if kind[-1] not in "*?"]
    for more in (0, 1) if len(needed) < len(row.takes) else (0,):
        kinds = [*needed, *(kind.rstrip("*?") for kind in row.takes[len(needed) :][:more])]
        arguments = [ARGUMENTS[kind] for kind in kinds]
        told_apart = [SECONDS.get(a, a) if a in arguments[:n] else a for n, a in enumerate(arguments)]
        for taken in dict.fromkeys((tuple(arguments), tuple(told_apart))):
            yield f"{row.name}({', '.join(taken)})"


MORE = [
    *(f"{time} {sign} INTERVAL {length}" for time in ("ts", "ntz", "day") for sign in "+-"
      for length in ("9999 YEARS", "3649635 DAYS", "1 MICROSECOND", "119988 MONTHS")),
    *(f"CAST({a} AS {kind})" for a in ("l", "d", "w", "s", "c") for kind in ("TIMESTAMP", "DATE", "INT")),
    "ts + (ts2 - ts)", "ts - (ts - ts2)", "day + i", "day - i", "day - day2", "ts - ts2",
    "timestampadd(MONTH, 119988, ts)", "timestampdiff(MONTH, ts, ts2)", "timestampdiff(MICROSECOND, ts, ts2)",
    "ts AT TIME ZONE 'America/St_Johns'", "ntz AT TIME ZONE 'America/St_Johns'",
    "to_timestamp(s, 'yyyy')", "to_date(s, 'yyyy')", "unix_timestamp(s, 'yyyy')", "date_format(ts, 'yyyy')",
    "make_timestamp(i, 1, 1, 0, 0, d)", "make_timestamp(i, 12, 31, 23, 59, 60)",
    "make_date(i, ti, ti)", "l div m", "l % m", "-l", "abs(l)", "arr[i]",
    "s LIKE t", "s NOT LIKE t", "s ILIKE ANY (t, 'x')", "s NOT LIKE ALL (t, s)", "chr(l)",
    "repeat(s, 3)", "CAST(CAST(s AS BINARY) AS STRING)",
    "from_json(s, 'A INT, B ARRAY<STRING>')", "from_json(s, 'MAP<STRING, STRING>')", "from_json(s, 'A DECIMAL(38,2)')",
    "map_from_entries(array(struct(s AS k, 1 AS v), struct(t AS k, 2 AS v)))",
    "transform(sequence(1, 3), n -> date_add(day, i))",
]  # fmt: skip


def failing(answer: Callable[[Sequence[str]], object], some: Sequence[str]) -> dict[str, str]:
    """The expressions that raise, each with its error."""
    try:
        answer(some)
    except (*SPARK_ERRORS, psycopg2.Error, Refused) as error:  # some compile alone, but not next to each other
        if len(some) == 1:
            return {some[0]: cause(str(error))}
        half = len(some) // 2
        return failing(answer, some[:half]) | failing(answer, some[half:])
    return {}


def test_no_value_stops_a_stream_or_ends_a_check(engines: Engines) -> None:
    source = f"CREATE TABLE s ({', '.join(f'{name} {kind}' for name, (kind, _) in VALUES.items())})"
    source += " USING kafka OPTIONS (topic 's', format 'json');\n"
    rows = f"CREATE VIEW r AS SELECT kafka_offset AS id, {', '.join(VALUES)} FROM s;\n"

    def text(some: Sequence[str], of: str, *, check: bool) -> str:
        columns = ", ".join(f"{expression} AS c{n}" for n, expression in enumerate(some))
        catalog = compile_catalog({"x.sql": source + rows + f"CREATE VIEW v AS SELECT {columns} FROM {of};"})
        return catalog.views["v"].spelled if check else catalog.views["v"].cell_tables[0].partial

    def read_above(some: Sequence[str]) -> None:
        columns = ", ".join(f"{expression} AS c{n}" for n, expression in enumerate(some))
        view = compile_catalog({"x.sql": source + rows + f"CREATE VIEW v AS SELECT {columns} FROM r;"}).views["v"]
        if not view.cell_tables:  # otherwise Spark computes the expressions, not Postgres
            with engines.connection.cursor() as cursor:
                cursor.execute(f"SELECT v::text FROM ({view.final}) AS v")
                cursor.fetchall()

    catalog = compile_catalog({"x.sql": source + rows})
    engines.deploy(catalog)
    engines.feed(catalog, {"s": [records()]})
    engines.oracle(catalog, {"s": [records()]})
    engines.spark.table("s").persist()
    wrong: dict[str, str] = {}
    for of in ("s", "r"):
        rows_of_it = [row for row in ROWS if row.above or of == "s"]
        expressions = dict.fromkeys([*(call for row in rows_of_it for call in calls(row)), *MORE])
        taken = list(accepted(source + rows, expressions, of))
        assert len(taken) > 300
        for start in range(0, len(taken), 60) if of == "r" else ():
            wrong |= {f"{call}, read": why for call, why in failing(read_above, taken[start : start + 60]).items()}
        for check in (False, True) if of == "s" else (True,):

            def answer(some: Sequence[str], *, of: str = of, check: bool = check) -> None:
                engines.spark.sql(text(some, of, check=check)).write.format("noop").mode("overwrite").save()

            for start in range(0, len(taken), 60):
                failures = failing(answer, taken[start : start + 60])
                wrong |= {f"{call} of {of}{', checked' if check else ''}": why for call, why in failures.items()}
    assert wrong == {}
