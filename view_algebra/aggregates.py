"""The aggregates: one row each, as data. A row says which mergeable partials it keeps and how they give the result.

For disjoint sets of records A and B: `final(merge(partial(A), partial(B))) = SELECT(A ∪ B)`. Adding an aggregate adds a
row; the laws are tested for every row there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from view_algebra.compiled import Merge
from view_algebra.expressions import TRUE, Aggregate, Call, Case, Constant, Expr, both
from view_algebra.operators import calculate, cast
from view_algebra.types import BIGINT, BOOLEAN, DOUBLE, Type, decimal, words

WIDE = 28
"""Digits up to which ten thousand million decimals add up without leaving DECIMAL(38): Spark adds ten digits."""

HALF = 19
"""Digits of the lower of two decimals that a wide one is split into, so that neither sum overflows."""


@dataclass(frozen=True)
class Part:
    """A mergeable column of cells: `merge` over `input` in Spark, the same merge again in Postgres.

    counts: `input` is a condition, and the part is the number of records for which it holds (never NULL).
    type: of the column, in Spark. about: what the column is named after.
    """

    name: str
    merge: Merge
    input: Expr
    type: Type
    counts: bool = False
    about: Expr | None = field(default=None, compare=False)


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate.

    accepts: the types of argument it takes, as a predicate; arguments: fewest and most.
    parts: what it keeps, given its arguments and its FILTER.
    final: its result over the merged parts, by their names.
    gives: the type of the result.
    above: Postgres' expression over plain rows, for aggregates of aggregates; `@` stands where FILTER and OVER go.
    once: a value that comes twice changes nothing, and so DISTINCT does not.
    """

    name: str
    arguments: tuple[int, int]
    accepts: Callable[[Type], bool]
    gives: Callable[[Sequence[Type]], Type]
    parts: Callable[[Sequence[Expr], Expr | None], tuple[Part, ...]]
    final: Callable[[Mapping[str, Expr], Type], Expr]
    above: Callable[[Sequence[Type]], str]
    once: bool = False


def only(when: Expr | None, value: Expr) -> Expr:
    """The value where the FILTER holds, NULL elsewhere: what sum, min and max leave out."""
    return value if when is None else Case(((when, value),), None, value.type)


def known(arguments: Sequence[Expr]) -> Expr | None:
    """The condition that none of them is NULL; None where that always holds."""
    condition: Expr | None = None
    for argument in arguments:
        if not isinstance(argument, Constant):
            condition = both(condition, Call("is not null", (argument,), BOOLEAN))
        elif argument.value is None:
            condition = Constant("false", BOOLEAN)
    return condition


def _count(arguments: Sequence[Expr], when: Expr | None) -> tuple[Part, ...]:
    return (Part("count", "sum", both(when, known(arguments)) or TRUE, BIGINT, counts=True),)


def _summed(kind: Type) -> Type:
    """The type of sum(x)."""
    if kind.name == "DECIMAL":
        return decimal(kind.precision + 10, kind.scale)
    return BIGINT if kind.integral else DOUBLE


def _averaged(kind: Type) -> Type:
    """The type of avg(x)."""
    return decimal(kind.precision + 4, kind.scale + 4) if kind.name == "DECIMAL" else DOUBLE


def _sum(arguments: Sequence[Expr], when: Expr | None) -> tuple[Part, ...]:
    value = arguments[0]
    if value.type.name == "DECIMAL" and value.type.precision > WIDE:
        return _wide(value, when)
    return (Part("sum", "sum", only(when, value), _summed(value.type)),)


def _wide(value: Expr, when: Expr | None) -> tuple[Part, ...]:
    """A wide decimal as a multiple of a unit and the rest, each with room for all sums."""
    scale = value.type.scale
    unit = wide_unit(scale)
    low = cast(calculate("%", value, unit), decimal(max(HALF, scale), scale))
    high = cast(calculate("/", calculate("-", value, low), unit), decimal(38 - HALF + 1, 0))
    return (
        Part("high", "sum", only(when, high), decimal(38 - HALF + 11, 0), about=only(when, value)),
        Part("low", "sum", only(when, low), _summed(low.type), about=only(when, value)),
    )


def wide_unit(scale: int) -> Constant:
    """The unit in which the upper part of a wide decimal counts."""
    digits = "0." + "0" * (scale - HALF - 1) + "1" if scale > HALF else "1" + "0" * (HALF - scale)
    return Constant(
        digits, decimal(max(1, scale - HALF), scale - HALF) if scale > HALF else decimal(HALF - scale + 1, 0)
    )


def _sum_final(parts: Mapping[str, Expr], kind: Type) -> Expr:
    if "high" not in parts:
        return parts["sum"]
    unit = wide_unit(parts["low"].type.scale)
    return Call("wide sum", (parts["high"], parts["low"], unit), kind)


def _avg(arguments: Sequence[Expr], when: Expr | None) -> tuple[Part, ...]:
    value = arguments[0]
    if not value.type.integral:
        return (*_sum(arguments, when), *_count(arguments, when))
    total = Part("total", "sum", only(when, cast(value, DOUBLE)), DOUBLE, about=only(when, value))
    return (total, *_count(arguments, when))


def _avg_final(parts: Mapping[str, Expr], kind: Type) -> Expr:
    if "total" in parts:  # of whole numbers, so that the quotient cannot underflow
        return Call("average", (parts["total"], parts["count"]), kind)
    if kind == DOUBLE:
        return calculate("/", parts["sum"], parts["count"])
    scale = parts["low"].type.scale if "low" in parts else 0
    return Call("average", (_sum_final(parts, decimal(38, scale)), parts["count"]), kind)


def _extreme(name: Choice["min", "max"]) -> AggregateFunction:
    return AggregateFunction(
        name,
        (1, 1),
        accepts=lambda kind: not kind.nested and kind.name not in ("BINARY", "INTERVAL"),
        gives=lambda types: types[0],
        parts=lambda arguments, when: (Part(name, name, only(when, arguments[0]), arguments[0].type),),
        final=lambda parts, _: parts[name],
        above=lambda types: {
            "BOOLEAN": ("bool_and" if name == "min" else "bool_or") + "({0})@",
            "STRING": name + '({0} COLLATE "C")@',
        }.get(types[0].name, name + "({0})@"),
        once=True,
    )


def _of_booleans(name: str, extreme: Choice["min", "max"]) -> AggregateFunction:
    """True is the greater of the two."""
    return replace(_extreme(extreme), name=name, accepts=lambda kind: kind == BOOLEAN)


def _of_bits(name: Choice["bit_and", "bit_or", "bit_xor"]) -> AggregateFunction:
    return AggregateFunction(
        name,
        (1, 1),
        accepts=lambda kind: kind.integral,
        gives=lambda types: types[0],
        parts=lambda arguments, when: (Part(name, name, only(when, arguments[0]), arguments[0].type),),
        final=lambda parts, _: parts[name],
        above=lambda _: name + "({0})@",
        once=name != "bit_xor",
    )


def _sum_above(types: Sequence[Type]) -> str:
    kind = types[0]
    if kind.name == "BIGINT":
        return "spark.wrap_bigint(sum({0})@)"
    if kind.name == "DECIMAL":
        return f"spark.decimal(sum({{0}})@, {_summed(kind).precision}, {kind.scale})"
    return "sum({0}::double precision)@" if kind.name == "FLOAT" else "sum({0})@"


def _avg_above(types: Sequence[Type]) -> str:
    kind = types[0]
    if kind.name == "DECIMAL":
        result = _averaged(kind)
        return f"spark.divide(sum({{0}})@, count({{0}})@, {result.precision}, {result.scale})"
    return "sum({0})@::double precision / nullif(count({0})@, 0)" if kind.integral else "avg({0})@"


_TABLE = (
    AggregateFunction(
        "count",
        (0, 9),
        accepts=lambda _: True,
        gives=lambda _: BIGINT,
        parts=_count,
        final=lambda parts, _: parts["count"],
        above=lambda types: "count({0})@" if types else "count(*)@",
    ),
    AggregateFunction(
        "sum",
        (1, 1),
        accepts=lambda kind: kind.numeric,
        gives=lambda types: _summed(types[0]),
        parts=_sum,
        final=_sum_final,
        above=_sum_above,
    ),
    _extreme("min"),
    _extreme("max"),
    AggregateFunction(
        "avg",
        (1, 1),
        accepts=lambda kind: kind.numeric,
        gives=lambda types: _averaged(types[0]),
        parts=_avg,
        final=_avg_final,
        above=_avg_above,
    ),
    AggregateFunction(
        "count_if",
        (1, 1),
        accepts=lambda kind: kind == BOOLEAN,
        gives=lambda _: BIGINT,
        parts=lambda arguments, when: _count((), both(when, arguments[0])),
        final=lambda parts, _: parts["count"],
        above=lambda _: "count(CASE WHEN {0} THEN 1 END)@",
    ),
    _of_booleans("bool_or", "max"),
    _of_booleans("bool_and", "min"),
    _of_bits("bit_and"),
    _of_bits("bit_or"),
    _of_bits("bit_xor"),
)

AGGREGATES: dict[str, AggregateFunction] = {row.name: row for row in _TABLE}
"""Every aggregate by name."""

SYNONYMS = {"mean": "avg", "any": "bool_or", "some": "bool_or", "every": "bool_and"}

_LATER = words(
    "var_pop var_samp variance std stddev stddev_pop stddev_samp"
    " covar_pop covar_samp corr regr_slope regr_intercept regr_r2 regr_count regr_avgx regr_avgy first last"
    " first_value last_value any_value min_by max_by collect_list collect_set"
    " array_agg listagg string_agg mode median percentile percentile_approx approx_percentile percentile_cont"
    " percentile_disc approx_count_distinct histogram_numeric skewness kurtosis product"
    " approx_top_k count_min_sketch hll_sketch_agg try_sum try_avg max_min"
)
"""Spark's other aggregates: named, so that their refusal says what they are."""

REWRITES = {
    "mode": "Group by the value too, with count(*), and rank when reading.",
    "median": "Group by the value too, with count(*), and pick the middle when reading.",
    "collect_set": "Group by the value too; its rows are the set.",
    "approx_count_distinct": "Write count(DISTINCT …), which is exact and keeps a cell per value.",
}
NO_PARTIAL = "Use count, sum, min, max or avg, or declare a row view and aggregate it in a view of its own."


def known_aggregate(name: str) -> bool:
    """Is it an aggregate in Spark, served here or not?"""
    return name in AGGREGATES or name in SYNONYMS or name in _LATER


def merged(part: Part, value: Expr) -> Aggregate:
    """A part of a coarser group, of the same part of finer ones."""
    return Aggregate(part.merge, (value,), None, False, part.type)


def parts_of(aggregate: Aggregate) -> tuple[Part, ...]:
    """What an aggregate keeps per group."""
    return AGGREGATES[aggregate.function].parts(aggregate.arguments, aggregate.condition)


def final_of(aggregate: Aggregate, merged: Mapping[str, Expr]) -> Expr:
    """The result of an aggregate over its merged parts, by their names."""
    return AGGREGATES[aggregate.function].final(merged, aggregate.type)
