"""Spark accepts every expression that the compiler accepts, with the type that the compiler declared.

Spark would refuse the whole micro-batch, and stop the streams of every view over the source.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pyspark.errors import AnalysisException

from tests.laws.accepting import accepted
from tests.laws.engines import Engines
from tests.laws.function_columns import ARGUMENTS as USUAL
from tests.laws.function_columns import VALUES, source
from view_algebra import compile_catalog
from view_algebra.language.aggregates import AGGREGATES, SYNONYMS
from view_algebra.language.functions import FUNCTIONS
from view_algebra.typed.expressions.sugar import MAKERS

ARGUMENTS = [*VALUES, "CAST(ti AS FLOAT)", "array(day)", "array(st)", "kafka_key", "1", "-1", "0", "'a'", "2.5", "true"]
OPERATORS = ("+", "-", "*", "/", "%", "div", "&", "|", "^", "=", "<", "<=>", "||")
TRIED = 3
"""The number of tries for each argument of a function. Each operator has forty, and the fuzzer tries the rest."""


def expressions() -> Iterator[str]:
    """Every function with one argument of any type, and aggregates and operators with arguments of any types."""
    choose = random.Random(7).choices
    for row in [row for rows in FUNCTIONS.values() for row in rows]:
        usual = [USUAL[kind.rstrip("*?")] for kind in row.takes]
        for at in range(len(usual)):
            for other in choose(ARGUMENTS, k=TRIED):
                yield f"{row.name}({', '.join([*usual[:at], other, *usual[at + 1 :]])})"
    for name, (count, _) in MAKERS.items():
        yield from (f"{name}({', '.join(choose(ARGUMENTS, k=count))})" for _ in range(TRIED * count))
    for name in (*AGGREGATES, *SYNONYMS):
        yield from (f"{name}({arguments})" for arguments in ARGUMENTS)
        yield from (f"{name}({a}, {b})" for a, b in (choose(ARGUMENTS, k=2) for _ in range(TRIED)))
    for operator in OPERATORS:
        yield from (f"{a} {operator} {b}" for a, b in (choose(ARGUMENTS, k=2) for _ in range(40)))


def wrong(engines: Engines, taken: list[tuple[str, str]]) -> list[str]:
    """The expressions that Spark refuses, or gives another type."""
    columns = ", ".join(f"{expression} AS x{n}" for n, (expression, _) in enumerate(taken))
    try:
        fields = engines.spark.sql(f"SELECT {columns} FROM s").schema.fields
    except AnalysisException as error:
        if len(taken) == 1:
            return [f"{taken[0][0]}: {str(error).splitlines()[0]}"]
        half = len(taken) // 2
        return wrong(engines, taken[:half]) + wrong(engines, taken[half:])
    pairs = [(e, plain(t), plain(f.dataType.simpleString())) for (e, t), f in zip(taken, fields, strict=True)]
    return [f"{expression}: typed {ours}, Spark says {theirs}" for expression, ours, theirs in pairs if ours != theirs]


def plain(kind: str) -> str:
    return kind.replace(" ", "").replace("`", "").upper()


def test_spark_accepts_every_accepted_expression_with_the_same_type(engines: Engines) -> None:
    engines.oracle(compile_catalog({"types.sql": source()}), {})
    views = accepted(source(), expressions(), of="s")
    taken = [(expression, view.columns[0].spark) for expression, view in views.items()]
    assert len(taken) > 700
    problems = [expression for at in range(0, len(taken), 100) for expression in wrong(engines, taken[at : at + 100])]
    assert problems == [], "\n".join(problems)
