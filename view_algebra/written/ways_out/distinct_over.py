"""The way out for aggregates of DISTINCT values OVER rows, which neither engine computes.

The refusal prints the SELECT that gives the same numbers: it joins each row with the rows of its frame and counts each
of their values once. DISTINCT rows in a subquery would be wrong, because a user who came on two days of a week is two
rows there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, COLLECTED_ONCE, AggregateFunction
from view_algebra.refusals import Wrong, span
from view_algebra.written.dialect import readable

_NTH = "nth"
"""The column of row numbers, if a frame counts rows."""


def distinct_over(name: str, node: exp.Anonymous) -> Wrong:
    """The refusal of `f(DISTINCT x) OVER (…)`, with the SELECT that gives its values."""
    window = node.find_ancestor(exp.Window)
    block = None if window is None else window.parent_select
    values = node.expressions[0].expressions
    what = f"Spark does not run {name}(DISTINCT …) OVER (…)"
    if window is None or block is None or block.args.get("group") is not None:
        return Wrong(span(node), what, "Group in a subquery in FROM, and use its columns outside.")
    row = AGGREGATES[name]
    if row.arguments[0] > 1 or (row.by_value is not None and not row.collects):
        return Wrong(span(node), what, "Group DISTINCT rows in a subquery in FROM, and join its groups.")
    if row.once and row.by_value is None:
        plain = window.copy()
        plain.set("this", exp.Anonymous(this=name, expressions=[value.copy() for value in values]))
        return Wrong(span(node), what, f"Write {readable(plain)}.")
    select, keys = _select_of_frames(row, values, window, block)
    joined = f" It gives a row per {keys}: join it by that." if keys else ""
    return Wrong(span(node), what, f"Write {select}.{joined}")


@dataclass(frozen=True)
class _Column:
    """A column of the joined rows: its expression, and its name there."""

    text: str
    name: str

    def __str__(self) -> str:
        return self.text if self.text == self.name else f"{self.text} AS {self.name}"


def _select_of_frames(
    row: AggregateFunction, values: Sequence[exp.Expr], window: exp.Window, block: exp.Select
) -> tuple[str, str]:
    """The SELECT of the values of each frame, and the columns that tell its rows apart."""
    name, once = (COLLECTED_ONCE, f"{COLLECTED_ONCE}(") if row.collects else (row.name, f"{row.name}(DISTINCT ")
    taken: set[str] = set()
    groups = [_column(node, f"k{number}", block, taken) for number, node in enumerate(_partition(window), 1)]
    order = window.args.get("order")
    keys = [_column(item.this, f"t{number}", block, taken) for number, item in enumerate(_items(order), 1)]
    inputs = [_column(value, f"x{number}", block, taken) for number, value in enumerate(values, 1)]
    shown = _alias(window) or f"{name}_distinct"
    frame = _Frame.of(window)
    if order is None or frame.whole:
        columns, of = ", ".join(map(str, groups)), ", ".join(column.text for column in inputs)
        with_ = f"WITH {_ctes(block)[:-2]} " if _ctes(block) else ""
        select = f"{with_}SELECT {columns}{', ' if groups else ''}{once}{of}) AS {shown} {_from(block)}"
        grouped = ", ".join(column.text for column in groups)
        return select + (f" GROUP BY {grouped}" if groups else ""), ", ".join(column.name for column in groups)
    numbered = [] if frame.by_values else [_Column(f"{frame.number}() OVER ({_over(window)})", _NTH)]
    rows = ", ".join(map(str, [*groups, *keys, *inputs, *numbered]))
    apart = [*groups, *keys, *numbered]
    named = ", ".join(column.name for column in apart)
    own = ", ".join(f"w.{column.name}" for column in apart)
    of = ", ".join(f"r.{column.name}" for column in inputs)
    meets = [f"r.{column.name} <=> w.{column.name}" for column in groups]
    meets.append(frame.condition(keys[0].name) if frame.by_values else frame.bounds(_NTH))
    return (
        f"WITH {_ctes(block)}s AS (SELECT {rows} {_from(block)}) SELECT {own}, {once}{of}) AS {shown}"
        f" FROM (SELECT DISTINCT {named} FROM s) AS w LEFT JOIN (SELECT DISTINCT * FROM s) AS r"
        f" ON {' AND '.join(meets)} GROUP BY {own}"
    ), ", ".join(column.name for column in apart)


def _column(node: exp.Expr, otherwise: str, block: exp.Select, taken: set[str]) -> _Column:
    """An expression as a column: under its own name, the name of an equal output, or a new name."""
    alias = next((o.alias for o in block.expressions if isinstance(o, exp.Alias) and o.this == node), "")
    name = node.name if isinstance(node, exp.Column) else alias or otherwise
    name = otherwise if name.lower() in (*taken, _NTH) else name
    taken.add(name.lower())
    return _Column(readable(node), readable(exp.to_identifier(name)))


def _partition(window: exp.Window) -> Sequence[exp.Expr]:
    return window.args.get("partition_by") or []


def _items(order: exp.Expr | None) -> Sequence[exp.Expr]:
    return [] if order is None else order.expressions


def _alias(window: exp.Window) -> str:
    return readable(exp.to_identifier(window.parent.alias)) if isinstance(window.parent, exp.Alias) else ""


def _from(block: exp.Select) -> str:
    """The clauses from FROM to WHERE of a block, as Spark SQL."""
    clauses = block.copy().args
    read = {clause: clauses.get(clause) for clause in ("from_", "joins", "laterals", "where")}
    return readable(exp.Select(expressions=[exp.Star()], **read)).removeprefix("SELECT * ")


def _ctes(block: exp.Select) -> str:
    """The CTEs of a block, each followed by a comma."""
    with_ = block.args.get("with_")
    return "".join(f"{readable(cte)}, " for cte in with_.expressions) if with_ is not None else ""


def _over(window: exp.Window) -> str:
    parts = [f"PARTITION BY {', '.join(map(readable, _partition(window)))}"] if _partition(window) else []
    return " ".join([*parts, readable(window.args["order"]).strip()])


@dataclass(frozen=True)
class _Frame:
    """A frame of rows.

    start, end: signed distance from the row, as Spark SQL, or None if unbounded
    by_values: true for a RANGE of a number or a time
    descending, nulls_first: the direction of its order
    """

    start: str | None
    end: str | None
    by_values: bool
    number: str
    descending: bool
    nulls_first: bool

    @classmethod
    def of(cls, window: exp.Window) -> _Frame:
        spec, items = window.args.get("spec"), _items(window.args.get("order"))
        kind = "RANGE" if spec is None else str(spec.args.get("kind") or "ROWS").upper()
        ends = (None, "") if spec is None else (_bound(spec, "start"), _bound(spec, "end"))
        descending = bool(items and items[0].args.get("desc"))
        nulls_first = items[0].args.get("nulls_first") if items else None
        return cls(
            *ends,
            by_values=kind == "RANGE" and any(ends),
            number="row_number" if kind == "ROWS" else "rank",
            descending=descending,
            nulls_first=not descending if nulls_first is None else bool(nulls_first),
        )

    @property
    def whole(self) -> bool:
        """True if the frame is the whole partition."""
        return self.start is None and self.end is None

    def bounds(self, key: str) -> str:
        """The condition on the numbers or values of the order that holds from the first to the last row of a frame."""
        first, last = (self.end, self.start) if self.descending and self.by_values else (self.start, self.end)
        if self.descending and self.by_values:
            first, last = _turned(first), _turned(last)
        if first is None or last is None:
            return f"r.{key} <= w.{key}{last or ''}" if first is None else f"r.{key} >= w.{key}{first}"
        return f"r.{key} BETWEEN w.{key}{first} AND w.{key}{last}"

    def condition(self, key: str) -> str:
        """The same condition on values. Rows without a value are peers of each other."""
        terms = [f"(r.{key} IS NULL AND w.{key} IS NULL)", self.bounds(key)]
        if (self.start if self.nulls_first else self.end) is None:
            terms.append(f"r.{key} IS NULL")
        if (self.end if self.nulls_first else self.start) is None:
            terms.append(f"w.{key} IS NULL")
        return f"({' OR '.join(terms)})"


def _bound(spec: exp.Expr, side: str) -> str | None:
    value, direction = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if value is None or (isinstance(value, str) and value.upper() == "CURRENT ROW"):
        return ""
    if isinstance(value, str):
        return None
    return f" {'-' if direction == 'PRECEDING' else '+'} {readable(value)}"


def _turned(bound: str | None) -> str | None:
    """The same distance in the other direction."""
    return bound and f" {'+' if bound[1] == '-' else '-'}{bound[2:]}"
