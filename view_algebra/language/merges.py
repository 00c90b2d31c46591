"""The merges of two partials of one group, a row each, as data.

For disjoint sets of records A and B, `merge(partial(A), partial(B)) = partial(A ∪ B)`, in any order and any grouping. A
row implements it four times: in Spark over records, in the upsert of one cell into another, above over the cells of
finer groups, and in a micro-batch's slots. `tests/laws/test_merges.py` merges in Postgres in every order.
`test_laws.py` compares all four through the aggregates that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from view_algebra.compiled import Merge
from view_algebra.language.types import Type

Columns = Sequence[str]
"""The columns of one cell: those of `TypedPartial.by`, by which the partial merges, and then its own."""


@dataclass(frozen=True)
class MergeRow:
    """One merge.

    spark: the aggregate over a group's records, of the values that `slot` names (of one value if it is empty)
    slot: the fields of the struct that holds a partial of several values in a micro-batch's slot
    slot_gives: the Spark type of a merged slot, by the type of the slot
    upsert: Postgres' expression that merges the columns of a fresh cell into those of the existing cell, for the
        partial's type. The last argument is True for a count, which is never NULL
    above: Postgres' aggregate over cells, or None if it is the aggregate of the same name over plain rows
    noise: Postgres' expression over a cell for the size of the numbers whose rounding may make up the partial, from its
        columns and, for each, the column of the squared deviations from it. None if the partial is of that size
    """

    name: Merge
    spark: Callable[..., str]
    upsert: Callable[[Columns, Columns, Type, bool], str]
    slot: tuple[str, ...] = ()
    slot_gives: Callable[[str], str] = lambda kind: kind
    above: Callable[[Columns], str] | None = None
    noise: Callable[[Columns, Columns], str] | None = None


# sums


def _added(cell: Columns, fresh: Columns, kind: Type, counts: bool) -> str:
    """Adds sums: NULL, the sum of no values, changes nothing, and a sum beyond its type wraps as in Spark."""
    old, new = cell[-1], fresh[-1]
    if counts:
        return f"{old} + {new}"
    digits = f", {kind.precision - kind.scale}" if kind.name == "DECIMAL" else ""
    return f"coalesce(spark.plus({old}, {new}{digits}), {old}, {new})"


def _sum_of_slot(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        precision, scale = (int(n) for n in kind[8:-1].split(","))
        return f"DECIMAL({min(38, precision + 10)},{scale})"
    return "DOUBLE" if kind == "FLOAT" else kind


# the least and the greatest, bits


def _extreme(function: str, cell: Columns, fresh: Columns, _: Type, __: bool) -> str:
    return f"{function}({cell[-1]}, {fresh[-1]})"


def _bits(operator: str, cell: Columns, fresh: Columns, _: Type, __: bool) -> str:
    old, new = cell[-1], fresh[-1]
    return f"coalesce({old} {operator} {new}, {old}, {new})"


# the first and the last by an order


def _first_or_last(wins: str, cell: Columns, fresh: Columns, _: Type, __: bool) -> str:
    """Keeps the value of the winning order. The NULL order of no records never wins."""
    *old_order, old = cell
    *new_order, new = fresh
    better = f"({', '.join(new_order)}) {wins} ({', '.join(old_order)})"
    return f"CASE WHEN {old_order[-1]} IS NULL OR {better} THEN {new} ELSE {old} END"


def _first_or_last_above(direction: str, columns: Columns) -> str:
    *order, value = columns
    keys = ", ".join(f"{key}{direction}" for key in order)
    return f"(array_agg({value} ORDER BY {keys}) FILTER (WHERE {order[-1]} IS NOT NULL))[1]"


def _value_of_slot(kind: str) -> str:
    return kind.removeprefix("STRUCT<v: ").partition(", o: STRUCT<")[0]


# deviations from means: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm", 1979


def _mean_in_spark(value: str) -> str:
    """Spark SQL of a mean that is exact for equal numbers, so that their deviations are exactly 0."""
    return f"CASE WHEN min({value}) = max({value}) THEN min({value}) ELSE avg({value}) END"


def _comoment_in_spark(x: str, y: str) -> str:
    """Spark SQL of a comoment that is exactly 0 if one side is constant, which Spark's rounded means would miss."""
    equal = f"min({x}) = max({x}) OR min({y}) = max({y})"
    return f"CASE WHEN {equal} THEN 0D * min({x}) * max({x}) * min({y}) * max({y}) ELSE regr_sxy({y}, {x}) END"


def _powers_in_spark(of_deviations: str, x: str) -> str:
    """Spark SQL of a sum of powers of deviations, exactly 0 for equal numbers."""
    powers = of_deviations.format(x=x)
    return f"CASE WHEN min({x}) = max({x}) THEN 0D * min({x}) ELSE coalesce({powers} * count({x}), 0D) END"


def _noise_of_mean(columns: Columns, spreads: Columns) -> str:
    """The size of the numbers behind a mean, whose rounding may be all of it."""
    return f"spark.sqrt({spreads[-1]} / nullif({columns[0]}, 0))"


def _noise_of_comoment(columns: Columns, spreads: Columns) -> str:
    """The size of the numbers behind deviations: that of the means."""
    count, x, y, _ = columns
    means = f"spark.times(spark.times({count}::double precision, abs({x})), abs({y}))"
    return f"spark.plus({means}, spark.sqrt(spark.times({spreads[1]}, {spreads[2]})))"


def _noise_of_powers(power: int, columns: Columns, _: Columns) -> str:
    count, mean, squares = columns[:3]
    size = f"spark.plus(abs({mean}), spark.sqrt(spark.divide({squares}, {count}::double precision)))"
    return f"spark.times({count}::double precision, spark.power({size}, {power}::double precision))"


def _deviations_row(name: Merge, spark: Callable[..., str], noise: Callable[[Columns, Columns], str]) -> MergeRow:
    """The row of a merge by a function of both cells' counts and lower deviations, which precede the partial."""
    return MergeRow(
        name,
        spark,
        upsert=lambda cell, fresh, _, __: f"spark.{name}({', '.join([*cell, *fresh])})",
        above=lambda columns: f"spark.{name}({', '.join(columns)})",
        noise=noise,
    )


def _by_order(name: Merge, spark: str, wins: str, direction: str) -> MergeRow:
    return MergeRow(
        name,
        spark=lambda value, order: f"{spark}({value}, {order})",
        upsert=partial(_first_or_last, wins),
        slot=("v", "o"),
        slot_gives=_value_of_slot,
        above=partial(_first_or_last_above, direction),
    )


def _plain(name: Merge, upsert: Callable[[Columns, Columns, Type, bool], str]) -> MergeRow:
    return MergeRow(name, spark=lambda value: f"{name}({value})", upsert=upsert)


def _never(*_: object) -> str:
    raise AssertionError("rows never meet an equal key")


_SKEWNESS_SUM = "skewness({x}) * pow(var_pop({x}), 1.5D)"
_KURTOSIS_SUM = "(kurtosis({x}) + 3D) * pow(var_pop({x}), 2D)"

_ROWS = (
    MergeRow("sum", spark=lambda value: f"sum({value})", upsert=_added, slot_gives=_sum_of_slot),
    _plain("min", partial(_extreme, "least")),
    _plain("max", partial(_extreme, "greatest")),
    _plain("bit_and", partial(_bits, "&")),
    _plain("bit_or", partial(_bits, "|")),
    _plain("bit_xor", partial(_bits, "#")),
    _by_order("first", "min_by", "<", ""),
    _by_order("last", "max_by", ">", " DESC"),
    _deviations_row("mean", _mean_in_spark, _noise_of_mean),
    replace(
        _deviations_row("comoment", _comoment_in_spark, _noise_of_comoment),
        slot=("x", "y"),
        slot_gives=lambda _: "DOUBLE",
    ),
    _deviations_row("third", partial(_powers_in_spark, _SKEWNESS_SUM), partial(_noise_of_powers, 3)),
    _deviations_row("fourth", partial(_powers_in_spark, _KURTOSIS_SUM), partial(_noise_of_powers, 4)),
    MergeRow("keep", spark=_never, upsert=_never),
)

MERGES: dict[Merge, MergeRow] = {row.name: row for row in _ROWS}
"""Every merge by name."""
