"""Approximate aggregates: estimates of distinct values and of percentiles, the same in both engines.

Spark's own estimates depend on the order of rows. The SELECT that Spark runs for `lamina check` spells ours out, as the
registers of HyperLogLog, or as the buckets of a sketch for percentiles.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.aggregates import ACCURACY
from view_algebra.language.expressions import Aggregate, Constant, Expr, NeedsRecords
from view_algebra.language.meeting import cast
from view_algebra.language.types import FLOAT, INT, Type
from view_algebra.refusals import Wrong, span
from view_algebra.typed.aggregation.calls import aggregate, is_array, percentile_list, refuse_aggregates
from view_algebra.typed.aggregation.spelling import filter_clause, with_filter
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.written.dialect import parsed


def approximate_percentile(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr:
    """percentile_approx(x, 0.9), of the values' type, as in Spark. The third argument bounds its relative error."""
    place, nodes = span(node), node.expressions
    if not 2 <= len(nodes) <= 3 or isinstance(nodes[0], exp.Distinct):
        raise Wrong(place, f"{name}() takes a value and a share", f"Write {name}(x, 0.9).")
    accuracy = resolved(nodes[2], scope) if len(nodes) > 2 else Constant(str(ACCURACY), INT)
    if not (isinstance(accuracy, Constant) and accuracy.type == INT and 10 <= int(accuracy.value or 0) <= 10_000):
        raise Wrong(place, f"{name}() takes an accuracy from 10 to 10000", f"Write {name}(x, 0.9, 100).")
    value = resolved(nodes[0], scope)
    refuse_aggregates(value, f"{name}()", "Aggregate in a subquery first.")
    kind = value.type
    if scope.above:
        way_out = "Write percentile(x, 0.9), which is exact."
        needed = NeedsRecords(f"{name}() cannot be computed above the aggregation", way_out, kind, place)
        lacking = Aggregate("max", (needed,), when, False, kind, place)
        return percentile_list([lacking], place) if is_array(nodes[1]) else lacking
    if not kind.numeric or kind == FLOAT:
        raise Wrong(place, f"{name}() does not take {kind}", f"Write {name}(CAST(… AS DOUBLE), 0.9).")
    bucket = bucketed(f"({scope.edited_sql(nodes[0])})", kind, 1 / int(accuracy.value or ACCURACY))
    where = filter_clause(scope, node)
    texts, values = [], []
    for share in map(scope.edits.copy, nodes[1].expressions if is_array(nodes[1]) else [nodes[1]]):
        disc = exp.Anonymous(this="percentile_disc", expressions=[parsed(bucket), share])
        exact = aggregate("percentile_disc", disc, scope, when)
        values.append(cast(replace(exact, place=place), kind))
        disc_text = f"percentile_disc({scope.edited_sql(share)}) WITHIN GROUP (ORDER BY {bucket}){where}"
        texts.append(f"CAST({disc_text} AS {kind.spark})")
    several = f"CASE WHEN {texts[0]} IS NOT NULL THEN array({', '.join(texts)}) END"
    scope.edits.spell(with_filter(node), several if is_array(nodes[1]) else texts[0])
    return percentile_list(values, place) if is_array(nodes[1]) else values[0]


def bucketed(value: str, kind: Type, error: float) -> str:
    """The value that represents a bucket. No value in the bucket differs from it by more than `error`, relatively.

    Bucket bounds grow by a constant factor from 0 on (DDSketch: Masson, Rim, Lee, 2019). A greater value is never in a
    smaller bucket, so the percentile of the representatives represents the percentile of the values.
    """
    growth = (1 + error) / (1 - error)
    x = f"CAST({value} AS DOUBLE)"
    bucket = f"pow({growth!r}D, ceil(ln(abs({x})) / {math.log(growth)!r}D))"
    stands = f"sign({x}) * {2 / (1 + growth)!r}D * {bucket}"
    if not (kind.integral or kind.name == "DECIMAL"):
        own = f"isnan({x}) OR abs({x}) = CAST('Infinity' AS DOUBLE)"
        return f"CASE WHEN {x} = 0 THEN 0D WHEN {own} THEN {x} ELSE {stands} END"
    rounded = f"CAST(round({stands}, {kind.scale if kind.name == 'DECIMAL' else 0}) AS {kind.spark})"
    return f"CASE WHEN {x} = 0 THEN {value} ELSE coalesce({rounded}, {value}) END"


def estimate(value: str, counts: str, registers: int) -> str:
    """The number of distinct values for which `counts` holds, estimated from this many registers, as Spark SQL.

    The hash's remainder picks the register. A register keeps the greatest position of a highest bit among its values:
    sorted, the greatest comes last and replaces those before it. If most registers are empty, the number of empty ones
    gives the estimate (Flajolet, Fusy, Gandouet, Meunier, 2007).
    """
    bits = registers.bit_length() - 1
    hashed = f"xxhash64({value})"
    position = f"{65 - bits} - length(bin(shiftrightunsigned({hashed}, {bits})))"
    kept = f"array_sort(collect_set(CASE WHEN {counts} THEN pmod({hashed}, {registers}L) * 64 + {position} END))"
    same, gone = "e DIV 64 = a.last DIV 64", "pow(2D, -(a.last % 64))"
    added = (
        f"(a, e) -> named_struct('z', a.z + pow(2D, -(e % 64)) - CASE WHEN {same} THEN {gone} ELSE 0D END,"
        f" 'n', a.n + CASE WHEN {same} THEN 0 ELSE 1 END, 'last', e)"
    )
    raw = f"{_alpha(registers) * registers * registers!r}D / (a.z + {registers} - a.n)"
    few = f"a.n < {registers} AND {raw} <= {2.5 * registers!r}D"
    linear = f"{registers}D * ln({registers}D / ({registers} - a.n))"
    rounded = f"a -> CAST(floor(CASE WHEN {few} THEN {linear} ELSE {raw} END + 0.5D) AS BIGINT)"
    return f"aggregate({kept}, named_struct('z', 0D, 'n', 0, 'last', -64L), {added}, {rounded})"


def _alpha(registers: int) -> float:
    """The constant that corrects the bias of an estimate from this many registers, 128 or more."""
    return 0.7213 / (1 + 1.079 / registers)
