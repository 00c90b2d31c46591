"""The SQL that Spark refuses, though it would have a meaning here.

Spark runs every view as a SELECT too: `lamina check` compares the two results. So this module refuses SQL that Spark
refuses, reads differently or answers by chance: in a whole block as its author wrote it (`spark_refuses`), in a block
with several groupings (`spark_refuses_of_groupings`), and in a clause when it is read.

Other modules refuse the rest: `written/dialect.py` the tokens that Spark's parser cannot read, `language/meeting.py`
the casts (a table of types), `language/functions.py` the arguments of functions (another table). A rule that is known
only while one clause or operator is typed stands with that clause or operator (`Wrong(…, "Spark …")`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from sqlglot import exp

from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Expr,
    Field,
    Joined,
    Order,
    Place,
    Relation,
    Select,
    Subquery,
    Windowed,
)
from view_algebra.language.functions import WINDOW_FUNCTIONS
from view_algebra.language.time_windows import TIME_WINDOWS
from view_algebra.language.walks import (
    above_group,
    children,
    nested_in,
    outer_fields,
    parts,
    relations_in,
    rewrite,
    walk,
    walk_all,
)
from view_algebra.oracle import Edits
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import meant_by, names_an_output
from view_algebra.typed.scopes import Scope
from view_algebra.written.dialect import readable


def spark_refuses(block: Select) -> None:
    """Raises for the clauses of a block, as its author wrote it, that Spark does not accept, the first mistake first.

    Broken ties and separate groupings come later: a key of ORDER BY could be ours then.
    """
    refuse_windows_together(block)
    refuse_ungrouped(block)
    refuse_inside_groups(block)
    refuse_unsorted(block)


def spark_refuses_of_groupings(block: Select) -> None:
    """Raises for the parts of a block, grouped by the keys of several groupings, that Spark refuses.

    Its ties are broken before: Spark gets the keys that break them, and must find these too.
    """
    refuse_groupings(block)
    refuse_windowed_keys(block)
    refuse_alike_keys(block)
    refuse_unselected(block)


# rules of a block
def refuse_windows_together(block: Select) -> None:
    """Refuses two different time windows: Spark allows one in GROUP BY and SELECT, and one in WHERE."""
    _refuse_windows([*(block.group or ()), *(o.expression for o in block.outputs)], "two windows of time of one row", 1)
    _refuse_windows([] if block.where is None else [block.where], "two windows of time of one row", 1)


def _refuse_windows(expressions: Sequence[Expr], what: str, most: int) -> None:
    """Refuses more time windows than `most` in these expressions together."""
    every = (part for expression in expressions for part in walk(expression) if isinstance(part, Call))
    windows = list(dict.fromkeys(part for part in every if part.function in ("window_start", "session")))
    if len(windows) > most:
        raise Wrong(windows[most].place, f"Spark does not run {what}", "Compute it in a subquery in FROM.")


def refuse_ungrouped(block: Select) -> None:
    """Refuses a correlated scalar subquery in a grouped SELECT that is neither grouped nor aggregated.

    SELECT must also have each of those in GROUP BY.
    """

    def grouped(part: Expr) -> Expr | None:
        if isinstance(part, Subquery) and part.correlated and part.kind == "scalar" and part not in (block.group or ()):
            way_out = "Group in a subquery in FROM, and use its columns outside."
            raise Wrong(part.place, "a correlated subquery is neither grouped nor aggregated", way_out)
        return part if isinstance(part, Aggregate) or part in (block.group or ()) else None

    for output in block.outputs if block.group is not None else ():
        rewrite(output.expression, grouped)
    keys = [key for key in block.group or () if isinstance(key, Subquery) and key.correlated and key.kind == "scalar"]
    for key in keys:
        if all(part != key for output in block.outputs for part in walk(output.expression)):
            way_out = "Select it as well. Or compute it in a subquery in FROM, and group its rows."
            raise Wrong(key.place, "GROUP BY has a correlated subquery that SELECT lacks", way_out)


def refuse_inside_groups(block: Select) -> None:
    """Refuses grouping() in conditions on rows, GROUP BY and aggregates: only a group has a value of it."""
    aggregates = [e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate)]
    inside = [part for aggregate in aggregates for part in walk(aggregate)]
    for part in (*inside, *walk_all(block.group or (), block.where)):
        if isinstance(part, Call) and part.function in ("grouping", "grouping_id"):
            way_out = "Select it in a subquery that groups, and use it outside."
            raise Wrong(part.place, f"{part.function}() is known only for groups, not for rows", way_out)


def refuse_unsorted(block: Select) -> None:
    """Refuses in ORDER BY what Spark computes only in SELECT: it fails, or shows one more column."""
    shown = [output.expression for output in block.outputs]
    order = None if block.syntax is None else block.syntax.args.get("order")
    for key, item in zip(block.order, order.expressions if order is not None else (), strict=False):
        about_a_row = any(isinstance(part, Subquery) and part.correlated for part in walk(key.expression))
        if key.expression in shown and not about_a_row:
            continue
        present = {
            "a correlated subquery": about_a_row and item.find(exp.Select) is not None,
            "a function OVER (…)": item.find(exp.Window) is not None,
            "EXISTS (…)": item.find(exp.Exists) is not None,
            "IN (SELECT …)": any(test.args.get("query") for test in item.find_all(exp.In)),
            "window()": block.group is None
            and any(c.name.lower() in TIME_WINDOWS for c in item.find_all(exp.Anonymous)),
        }
        if what := next((name for name, is_there in present.items() if is_there), None):
            way_out = "Put it among the columns of a subquery in FROM, and order by its name."
            raise Wrong(span(item), f"Spark does not accept {what} in ORDER BY", way_out)


# rules of a block with several groupings
def refuse_groupings(block: Select) -> None:
    """Refuses correlated subqueries next to GROUPING SETS, ROLLUP and CUBE, which Spark does not answer."""
    about = [part.place for part in parts(block) if isinstance(part, Subquery) and part.correlated]
    if about or any(outer_fields(block)):
        way_out = "Group in a subquery in FROM, and use its columns outside."
        raise Wrong(about[0] if about else block.place, "several groupings do not take a correlated subquery", way_out)


def refuse_windowed_keys(block: Select) -> None:
    """Refuses a GROUP BY column inside an aggregate OVER (…): Spark does not find it over groupings."""

    def look(part: Expr) -> None:
        if isinstance(part, Aggregate) or (isinstance(part, Call) and part.function == "grouping"):
            return
        if part in (block.group or ()):
            what = "Spark refuses a column of GROUP BY in an aggregate OVER (…) over groupings"
            raise Wrong(part.place, what, "Group in a subquery in FROM, and aggregate its rows.")
        for child in children(part):
            look(child)

    for part in (part for expression in above_group(block) for part in walk(expression)):
        if isinstance(part, Windowed) and part.function not in _RANKING:
            for argument in part.arguments:
                look(argument)


_RANKING = {*WINDOW_FUNCTIONS} - {"first_value", "last_value"}
"""Window functions that Spark does not treat as aggregates."""


def refuse_alike_keys(block: Select) -> None:
    """Refuses `a + b` next to `b + a`: Spark takes both for one column.

    The order of the parts is never compared, so `a - b` next to `b - a` is refused as well.
    """
    seen: list[Counter[Expr | str]] = []
    for key in block.group or ():
        made_of: Counter[Expr | str] = Counter(e.function if isinstance(e, Call) else e for e in walk(key))
        if made_of in seen:
            way_out = "Write both keys alike, or group by one of them."
            raise Wrong(key.place, "Spark takes two keys of GROUP BY for one", way_out)
        seen.append(made_of)


def refuse_unselected(block: Select) -> None:
    """Refuses unselected GROUP BY columns in HAVING and ORDER BY: Spark does not find them over groupings."""
    selected = {output.expression for output in block.outputs}
    named = {o.expression for o in block.outputs if isinstance(e := o.expression, Field) and o.name == e.path[-1]}

    def look(part: Expr, visible: set[Expr]) -> None:
        if part in visible or isinstance(part, (Aggregate, Windowed)):
            return
        if isinstance(part, Field) and part in (block.group or ()):
            what = f"HAVING and ORDER BY over groupings need {part.path[-1]} in SELECT, by its name"
            raise Wrong(part.place, what, "Select it.")
        for child in children(part) if part not in (block.group or ()) else ():
            look(child, named if isinstance(part, Call) and part.function == "grouping" else visible)

    for part in (*(order.expression for order in block.order), *([] if block.having is None else [block.having])):
        look(part, selected)


# rules of a clause
def refuse_in_outer_joins(relation: Relation | None, place: Place) -> None:
    """Refuses an outer query's column on a side of a join that may lack rows."""
    for join in (below for below in relations_in(relation) if isinstance(below, Joined)):
        optional = {"LEFT": (join.right,), "RIGHT": (join.left,), "FULL": (join.left, join.right)}.get(join.kind, ())
        for nested in (nested for side in optional for nested in nested_in(side)):
            if not nested.lateral and any(outer_fields(nested.query)):
                what = "the optional side of a join cannot read a column of the outer query"
                raise Wrong(place, what, "Make it an inner join, or compute with the column outside.")


def refuse_in_join(on: Expr, left: Container[str]) -> None:
    """Refuses subqueries in ON, except those correlated with one side. Spark allows no values or time windows there."""
    refuse_windows_in_join(on)
    for part in (part for part in walk(on) if isinstance(part, Subquery) and part.correlated):
        sides = {column.relation in left for column in outer_fields(part.query)}
        if part.kind == "scalar" or len(sides) > 1:
            way_out = "Put it into WHERE, or compute it in a subquery in FROM, and compare its column."
            scalar = part.kind == "scalar"
            what = "ON has a correlated scalar subquery" if scalar else "ON has a subquery correlated with both sides"
            raise Wrong(part.place, what, way_out)


def refuse_joins_behind(lateral: exp.Expr, node: exp.Select) -> None:
    """Refuses a join after LATERAL VIEW: Spark reads the view last."""
    place = span(lateral)
    for join in node.args.get("joins") or []:
        if place is not None and (other := span(join)) is not None and other.start > place.start:
            alias = lateral.args.get("alias")
            columns = [] if alias is None else [column.name for column in alias.args.get("columns") or []]
            named = " AS " + ((alias and alias.name) or "t") + (f"({', '.join(columns)})" if columns else "")
            kind, on = ("LEFT", " ON true") if lateral.args.get("outer") else ("CROSS", "")
            way_out = f"Write {kind} JOIN LATERAL {readable(lateral.this)}{named}{on} in its place."
            raise Wrong(place, "Spark rejects LATERAL VIEW before a JOIN", way_out)


def refuse_windows_in_join(on: Expr) -> None:
    """Refuses time windows in ON, which Spark does not compute."""
    _refuse_windows([on], "a window of time in ON", 0)


def refuse_names_of_names(node: exp.Select, edits: Edits) -> None:
    """Refuses GROUP BY an output that names another output: Spark does not find it."""
    group = node.args.get("group")
    items = [] if group is None else [meant_by(item, node) for item in group.expressions]
    for item in node.expressions if group is not None and group.args.get("all") else items:
        if item is not None and names_an_output(item, edits):
            what = "a column of GROUP BY, or next to GROUP BY ALL, names another one"
            raise Wrong(span(item), what, "Write out what the name stands for, or put it into a subquery.")


OVERLAPPING = "Spark would make those that overlap one. Take their start and end, session.start and session.end."
"""The way out for sessions compared as values."""


def refuse_frame(name: str, rows: str, order: Sequence[Order], place: Place, *, of_all: bool) -> None:
    """Refuses a frame on a function that has its own, and an order on a function of all rows."""
    own = WINDOW_FUNCTIONS[name].frame if name in WINDOW_FUNCTIONS else None
    if rows and own not in (None, rows):
        raise Wrong(place, f"Spark refuses {name}() over a frame", "Leave the frame out.")
    if of_all and (order or rows):
        way_out = "Leave ORDER BY out, or write percentile(x, 0.5) OVER (…)."
        raise Wrong(place, f"Spark refuses {name}() over an order", way_out)


def refuse_bounds(spec: exp.WindowSpec, kind: str, place: Place, *, ordered: bool) -> None:
    """Refuses RANGE without an order or with bounds of two kinds, and ROWS beyond an INT."""
    sides = [spec.args.get("start"), spec.args.get("end")]
    if kind == "RANGE" and not ordered and sides != ["UNBOUNDED", "UNBOUNDED"]:
        raise Wrong(place, "a RANGE needs ORDER BY", "Write ORDER BY in it, or leave the frame out.")
    if kind == "ROWS" and any(isinstance(side, exp.Literal) and int(side.name) > _LAST_ROW for side in sides):
        raise Wrong(place, f"a frame cannot have more than {_LAST_ROW} rows", "Write UNBOUNDED.")
    if len({type(side) for side in sides if isinstance(side, exp.Expr) and side.name != "0"}) > 1:
        raise Wrong(place, "a RANGE cannot mix a number with an INTERVAL", "Write both alike.")


_LAST_ROW = 2**31 - 1
"""The greatest distance of ROWS in Spark, in rows."""


def refuse_partition_by_maps(partition: Sequence[Expr], place: Place) -> None:
    """Refuses PARTITION BY a map: Spark sorts by it, and cannot sort maps."""
    if (by := next((key for key in partition if key.type.name == "MAP"), None)) is not None:
        raise Wrong(by.place or place, "Spark cannot sort a map in PARTITION BY", "Write to_json(…) of it.")


# rules of an operator
def refuse_order_of_operators(node: exp.Expr) -> None:
    """Refuses operators that Spark's parser binds differently than standard SQL."""
    sides = zip(
        (node.args.get("this"), node.args.get("expression")), _BOUND_OTHERWISE.get(type(node), ()), strict=False
    )
    if any(isinstance(side, kinds) for side, kinds in sides):
        raise Wrong(span(node), "Spark reads these operators in another order", "Put one of them into parentheses.")


_PREDICATES = (exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Between, exp.Not)
_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_BITS = (exp.BitwiseAnd, exp.BitwiseXor, exp.BitwiseOr)
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)
_BOUND_OTHERWISE: dict[type[exp.Expr], tuple[tuple[type[exp.Expr], ...], ...]] = {
    exp.DPipe: ((*_BITS, *_SHIFTS), (exp.Add, exp.Sub)),
    **dict.fromkeys(_SHIFTS, (_BITS, ())),
    exp.BitwiseAnd: ((exp.BitwiseXor, exp.BitwiseOr), ()),
    exp.BitwiseXor: ((exp.BitwiseOr,), ()),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.NullSafeEQ), (_PREDICATES, (*_ORDERED, *_PREDICATES))),
    **dict.fromkeys(_ORDERED, (_PREDICATES, _PREDICATES)),
    **dict.fromkeys((exp.Is, exp.In, exp.Like, exp.ILike), (_PREDICATES, ())),
}
"""Left and right sides that Spark does not read as the operator's.

To Spark, `a || b + 1` is `(a || b) + 1`, `a | b & c` is `a | (b & c)`, and `a = b IN (c)` is `(a = b) IN (c)`. Spark
cannot parse `a IS NULL = b`.
"""


def refuse_quantified(node: exp.SubqueryPredicate, _: Scope) -> Expr:
    """Refuses ANY (SELECT …) and ALL (SELECT …), which Spark cannot parse."""
    way_out = "Compare with (SELECT max(x) FROM …) or (SELECT min(x) FROM …), or write IN (SELECT …)."
    raise Wrong(span(node), f"Spark rejects {node.key.upper()} (…)", way_out)
