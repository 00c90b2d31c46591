"""GROUPING SETS, ROLLUP and CUBE: one grouping after the other, over the same cells.

`SELECT a, b, grouping(b), sum(x) FROM s GROUP BY ROLLUP(a, b)` is kept, and read, as

    SELECT a, b, no_b, sum_x FROM (
      SELECT a, b, 0 AS no_b, sum(x) AS sum_x FROM s GROUP BY a, b
      UNION ALL
      SELECT a, NULL, 1, sum(x) FROM s GROUP BY a
      UNION ALL
      SELECT NULL, NULL, 1, sum(x) FROM s HAVING count(*) > 0)

where every grouping over a stream reads the cells of (a, b), and merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product

from sqlglot import exp

from view_algebra.language.blocks import union_all
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Constant,
    Exploded,
    Expr,
    Field,
    Generator,
    Keeping,
    Nested,
    Output,
    Select,
)
from view_algebra.language.fields import VARIABLE
from view_algebra.language.time_windows import bounds, is_session
from view_algebra.language.types import BIGINT, BOOLEAN, TINYINT
from view_algebra.language.walks import above_group, rewritten, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import neither

_GROUPED = "grouped"
"""Alias of the groupings together."""

_UNITED = "Leave it out, or write each grouping as a SELECT of a UNION ALL."

MOST_SETS = 64
"""Groupings of one query: a cube of six columns."""

SOME = Call(">", (Aggregate("count", (), None, False, BIGINT), Constant("0", BIGINT)), BOOLEAN)
"""The condition that there are records at all: of none, a grouping by nothing gives no row, as one by a constant."""

Key = Callable[[exp.Expr], Expr | None]
"""Resolves a column of GROUP BY; None for what is constant."""

Sets = list[tuple[Expr, ...]]


def sets_of(node: exp.Group, key: Key) -> Sets | None:
    """The groupings that GROUP BY asks for; None where it has a single one."""
    plain = [item for item in node.expressions if not _nests(item)]
    lists = [item for item in node.expressions if _nests(item)]
    trailing = _trailing(node)
    if not lists and not trailing:
        return None
    if trailing:  # GROUP BY a, b WITH ROLLUP, and GROUP BY a, b GROUPING SETS (…)
        clause = trailing[0]
        groupings = _sets(clause, key) if clause.expressions else _sets(type(clause)(expressions=plain), key)
    else:
        fixed = _columns(plain, key)
        groupings = [
            tuple(dict.fromkeys([*fixed, *(k for part in parts for k in part)]))
            for parts in product(*(_sets(item, key) for item in lists))
        ]
    if len(groupings) > MOST_SETS:
        raise Wrong(span(node), f"{len(groupings)} groupings", f"Name up to {MOST_SETS} of them with GROUPING SETS.")
    return groupings


def _sets(node: exp.Expr, key: Key) -> Sets:
    if not isinstance(node, exp.GroupingSets) and any(
        isinstance(i, exp.Tuple) and not i.expressions for i in node.expressions
    ):
        raise Wrong(span(node), f"() in {node.key.upper()}", "Leave it out: one of its groupings is by nothing anyhow.")
    items = [
        _columns(i.expressions if isinstance(i, exp.Tuple) else [i], key, in_sets=True)
        for i in node.expressions
        if not _nests(i)
    ]
    match node:
        case exp.Rollup():
            chosen = [items[:count] for count in range(len(items), -1, -1)]
        case exp.Cube():
            chosen = [list(some) for count in range(len(items), -1, -1) for some in combinations(items, count)]
        case _:
            inner = [grouping for item in node.expressions if _nests(item) for grouping in _sets(item, key)]
            return [*(tuple(item) for item in items), *inner]
    return [tuple(dict.fromkeys(k for item in some for k in item)) for some in chosen]


def keys_of(node: exp.Group, key: Key) -> tuple[Expr, ...]:
    """All columns of GROUP BY, in the order in which they are written: that of the bits of grouping_id()."""
    return tuple(dict.fromkeys(k for k in map(key, leaves_of(node)) if k is not None))


def leaves_of(node: exp.Group) -> list[exp.Expr]:
    """The columns of GROUP BY as they are written, those of its groupings among them."""

    def leaves(item: exp.Expr) -> list[exp.Expr]:
        if _nests(item) or isinstance(item, exp.Tuple):
            return [leaf for inner in item.expressions for leaf in leaves(inner)]
        return [item.this if isinstance(item, exp.Paren) else item]

    return [leaf for item in (*node.expressions, *_trailing(node)) for leaf in leaves(item)]


def _trailing(node: exp.Group) -> list[exp.Expr]:
    """The clauses behind the columns, as WITH ROLLUP."""
    return [clause for name in ("rollup", "cube", "grouping_sets") for clause in node.args.get(name) or []]


def _nests(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))


def _columns(items: Sequence[exp.Expr], key: Key, in_sets: bool = False) -> list[Expr]:
    found = [key(item.this if isinstance(item, exp.Paren) else item) for item in items]
    if in_sets and None in found:  # to Spark its own value, wherever it stands, is NULL in the other groupings
        raise Wrong(span(items[found.index(None)]), "a constant among groupings", _UNITED)
    return [k for k in found if k is not None]


def over_sets(block: Select, sets: Sets) -> Select:
    """A block over each of its groupings, one after the other; `block` is grouped by all of their columns."""
    keys = tuple(block.group or ())
    shown = {of_key: key for key in keys for of_key in (bounds(key) if is_session(key) else (key,))}
    names = {of_key: f"key_{n}" for n, of_key in enumerate(shown)}
    found = [e for x in above_group(block) for e in walk(x)]
    aggregates = {
        a: f"aggregate_{n}" for n, a in enumerate(dict.fromkeys(e for e in found if isinstance(e, Aggregate)))
    }
    left_out = {key: f"without_{n}" for n, key in enumerate(keys)}

    def branch(grouping: tuple[Expr, ...]) -> Select:
        outputs = [
            Output(names[of_key], of_key if key in grouping else Constant(None, of_key.type))
            for of_key, key in shown.items()
        ]
        outputs += [Output(name, Constant(str(int(key not in grouping)), TINYINT)) for key, name in left_out.items()]
        outputs += [Output(name, a) for a, name in aggregates.items()]
        having = None if grouping else SOME
        keeping = Keeping(finest=keys)
        return Select(tuple(outputs), block.relation, block.where, grouping, having, place=block.place, keeping=keeping)

    def read(expression: Expr, name: str) -> Field:
        return Field(_GROUPED, (name,), expression.type, place=expression.place)

    def change(expression: Expr) -> Expr | None:
        if expression in names:
            return read(expression, names[expression])
        if isinstance(expression, Aggregate):
            return read(expression, aggregates[expression])
        if isinstance(expression, Call) and expression.function in ("grouping", "grouping_id"):
            return _bits(expression, left_out)
        if isinstance(expression, Field) and expression.relation != VARIABLE:
            raise neither(expression)
        return None

    below = Nested(union_all([branch(grouping) for grouping in sets]), _GROUPED, block.place)
    above = rewritten(replace(block, relation=None, where=block.having, group=None, having=None), change)
    return replace(above, relation=below)


def _bits(call: Call, left_out: dict[Expr, str]) -> Expr:
    """Which of the columns a row is not grouped by: a bit for each, the last column's the lowest."""
    wanted = call.arguments or tuple(left_out)
    if call.function == "grouping_id" and wanted != tuple(left_out):
        raise Wrong(call.place, "grouping_id() of other columns than those of GROUP BY", "Write grouping_id().")
    result: Expr | None = None
    for column in wanted:
        if column not in left_out:
            raise Wrong(
                column.place or call.place,
                f"{call.function}() of a column that is not in GROUP BY",
                "Name one that is.",
            )
        bit: Expr = Field(_GROUPED, (left_out[column],), TINYINT, bound=1)
        if call.function == "grouping_id":
            bit = Call("cast", (bit,), BIGINT)
        doubled = None if result is None else Call("*", (result, Constant("2", BIGINT)), BIGINT)
        result = bit if doubled is None else Call("+", (doubled, bit), BIGINT)
    assert result is not None
    return result


def exploded_groups(block: Select, made: Generator) -> Select:
    """`SELECT k, explode(collect_set(x)) AS y FROM s GROUP BY k` makes rows of the groups, which are made before."""
    of_groups = block.group or any(isinstance(e, Aggregate) for e in walk(made.argument))
    if not of_groups or any(_is_made(e, made) for key in block.group or () for e in walk(key)):
        way_out = "Write FROM … LATERAL VIEW explode(tags) t AS tag, and GROUP BY tag."
        raise Wrong(made.place, "explode() of records among columns of groups", way_out)
    if block.having is not None:
        way_out = "Group in a subquery in FROM, and explode around it."
        raise Wrong(made.place, "explode() among columns beside HAVING, which Spark refuses", way_out)
    own = (o.expression for o in block.outputs if not _is_made(o.expression, made))
    names = {e: f"column_{n}" for n, e in enumerate(dict.fromkeys([*own, made.argument]))}
    outputs = tuple(Output(name, e) for e, name in names.items())
    groups = replace(block, outputs=outputs, distinct=False, order=(), limit=None, offset=None, syntax=None)

    def read(part: Expr) -> Expr | None:
        if part in names:
            return Field(_GROUPED, (names[part],), part.type, place=part.place)
        if isinstance(part, (Aggregate, Field)) and not _is_made(part, made):
            way_out = "Group in a subquery in FROM, and order around it."
            raise Wrong(part.place or block.place, "ORDER BY something that is not a column, beside explode()", way_out)
        return None

    rows = rewritten(replace(block, relation=None, where=None, group=None, having=None), read)
    generator = replace(made, argument=Field(_GROUPED, (names[made.argument],), made.argument.type))
    return replace(rows, relation=Exploded(Nested(groups, _GROUPED, block.place), (generator,), made.place))


def _is_made(part: Expr, made: Generator) -> bool:
    return isinstance(part, Field) and part.relation == made.alias
