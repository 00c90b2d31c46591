"""Rewrites PIVOT and UNPIVOT as a SELECT.

    FROM sales PIVOT (sum(amount) FOR quarter IN ('q1', 'q2' AS second))

groups by every column that it does not name, and has a column for each value (Spark's rule: NULL where no row has it):

    SELECT city, CASE WHEN count_if(quarter <=> 'q1') > 0 THEN sum(amount) FILTER (WHERE quarter <=> 'q1') END AS q1, …
    FROM sales GROUP BY city
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from sqlglot import exp

from view_algebra.language.aggregates import COUNTS, is_aggregate
from view_algebra.language.expressions import Query
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type
from view_algebra.refusals import Span, Wrong, moved_to, span
from view_algebra.written.dialect import parsed, text_of

_NO_ALIAS = "Write … AS name."


def pivoted(pivot: exp.Pivot, source: exp.Expr, columns: Mapping[str, Type]) -> exp.Expr:
    """The query for a PIVOT or UNPIVOT. `columns`: the columns of its source, with their types."""
    place = span(pivot)
    if len(pivot.args.get("fields") or []) != 1 or not isinstance(chosen := pivot.args["fields"][0], exp.In):
        raise Wrong(place, "PIVOT takes one column", "Pivot one column, for example FOR kind IN ('a', 'b').")
    by = chosen.this.expressions if isinstance(chosen.this, exp.Tuple) else [chosen.this]
    if not all(isinstance(column, (exp.Column, exp.Identifier)) for column in by) or not chosen.expressions:
        raise Wrong(place, "PIVOT takes a column", "Compute it in a subquery.")
    values = [(v.this, v.alias) if isinstance(v, exp.PivotAlias) else (v, "") for v in chosen.expressions]
    if pivot.args.get("unpivot"):
        return _unpivoted(pivot, source, columns, chosen.this.name, values)
    return _grouped(pivot, source, columns, by, values)


_Values = Sequence[tuple[exp.Expr, str]]
"""The values after IN with their aliases, which may be empty."""


def _grouped(
    pivot: exp.Pivot, source: exp.Expr, columns: Mapping[str, Type], by: Sequence[exp.Expr], values: _Values
) -> exp.Select:
    inside = [column for aggregate in pivot.expressions for column in aggregate.find_all(exp.Column)]
    read = {column.name.lower() for column in (*by, *inside)}
    group = [spark_name(name) for name in columns if name.lower() not in read]
    outputs = list(group)
    for value, alias in values:
        name = alias or _name(value, span(pivot))
        here = _here(by, value, columns)
        for aggregate in pivot.expressions:
            call = aggregate.this if isinstance(aggregate, exp.Alias) else aggregate
            if not isinstance(call, exp.Anonymous) or not is_aggregate(call.name.lower()):
                raise Wrong(span(aggregate), "PIVOT takes an aggregate", "Write PIVOT (sum(x) FOR k IN ('a')).")
            if len(pivot.expressions) > 1 and not isinstance(aggregate, exp.Alias):
                raise Wrong(span(aggregate), "one of several aggregates of PIVOT has no name", _NO_ALIAS)
            whole = f"{name}_{aggregate.alias}" if len(pivot.expressions) > 1 else name
            cell = f"CASE WHEN count_if({here}) > 0 THEN {text_of(call)} FILTER (WHERE {here}) END"
            outputs.append(f"{cell} AS {spark_name(whole)}")
    grouping = f" GROUP BY {', '.join(group)}" if group else ""
    return _over(source, f"SELECT {', '.join(outputs)} FROM s{grouping}", span(pivot))


def _here(by: Sequence[exp.Expr], value: exp.Expr, columns: Mapping[str, Type]) -> str:
    """The condition that a row belongs to a value, or to a tuple of values for several columns.

    As in Spark, a value is cast to its column's type: 1.5 is 1 for a column of whole numbers.
    """
    wanted = value.expressions if isinstance(value, exp.Tuple) and len(by) > 1 else [value]
    if len(wanted) != len(by):
        raise Wrong(span(value), f"PIVOT gives {len(wanted)} values to {len(by)} columns", "Write ('a', 1) AS name.")
    kinds = {name.lower(): kind for name, kind in columns.items()}
    casts = [_cast(item, kinds.get(column.name.lower())) for column, item in zip(by, wanted, strict=True)]
    return " AND ".join(f"{text_of(column)} <=> {item}" for column, item in zip(by, casts, strict=True))


def _cast(value: exp.Expr, kind: Type | None) -> str:
    castable = kind is not None and (kind.numeric or kind in (STRING, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ))
    return f"CAST({text_of(value)} AS {kind.spark})" if kind is not None and castable else text_of(value)


def _unpivoted(pivot: exp.Pivot, source: exp.Expr, columns: Mapping[str, Type], key: str, values: _Values) -> exp.Expr:
    if len(pivot.expressions) != 1 or not all(isinstance(value, exp.Column) for value, _ in values):
        raise Wrong(span(pivot), "UNPIVOT takes one column at once", "Write UNPIVOT (v FOR k IN (a, b)).")
    read, into = {value.name.lower() for value, _ in values}, spark_name(pivot.expressions[0].name)
    texts = {kind == STRING for name, kind in columns.items() if name.lower() in read}
    if len(texts) > 1:
        raise Wrong(span(pivot), "UNPIVOT mixes texts with other values", "CAST them to STRING in a subquery.")
    kept = [spark_name(name) for name in columns if name.lower() not in read]
    branches: list[exp.Expr] = []
    for value, alias in values:
        name = exp.Literal.string(alias or value.name)
        outputs = [*kept, f"{text_of(name)} AS {spark_name(key)}", f"{text_of(value)} AS {into}"]
        where = "" if pivot.args.get("include_nulls") else f" WHERE {text_of(value)} IS NOT NULL"
        branches.append(_over(source.copy(), f"SELECT {', '.join(outputs)} FROM s{where}", span(pivot)))
    return reduce(lambda one, other: exp.Union(this=one, expression=other, distinct=False), branches)


def _over(source: exp.Expr, text: str, place: Span | None) -> exp.Select:
    select = moved_to(parsed(text), place)
    assert isinstance(select, exp.Select)
    select.args["from_"].set("this", source)
    return select


def _name(value: exp.Expr, around: Span | None) -> str:
    """Spark's name for the column of a value."""
    if isinstance(value, exp.Literal) and (value.is_string or value.name.isdigit()):
        return value.name
    if isinstance(value, (exp.Boolean, exp.Null)):
        return text_of(value).lower()
    if isinstance(value, (exp.Query, exp.PivotAny, exp.Column)):
        what = "PIVOT takes literal values, because records must not decide the columns of a view"
        raise Wrong(span(value) or around, what, "Write the values out: IN ('a', 'b').")
    raise Wrong(span(value) or around, "a value of PIVOT has no name", _NO_ALIAS)


def refuse_counts(pivot: exp.Pivot, query: Query) -> None:
    """Refuses counts whose value for no rows differs in Spark: NULL, but 0 next to a non-numeric aggregate."""
    counts = any(call.name.lower() in COUNTS for call in pivot.find_all(exp.Anonymous))
    if counts and not all(kind.numeric or kind == BOOLEAN for _, kind in query.columns[-len(pivot.expressions) :]):
        way_out = "Aggregate with FILTER: count(*) FILTER (WHERE k = 'a')."
        raise Wrong(span(pivot), "PIVOT mixes a count with an aggregate that is not a number", way_out)
