"""Aggregates over DISTINCT values: a finer table of cells keeps each value of a group once, as a further key.

`SELECT k, count(DISTINCT x), sum(y) FROM s GROUP BY k` is kept, and read, as

    SELECT k, count(x), max(sum_y) FROM (
      SELECT k, sum(y) AS sum_y, NULL AS x FROM s GROUP BY k
      UNION ALL
      SELECT k, NULL, x FROM s GROUP BY k, x)
    GROUP BY k

so that what merges is a set of keys, which is a union, and no number that could not be added up.
"""

from __future__ import annotations

from dataclasses import replace

from view_algebra.aggregates import known, only
from view_algebra.expressions import (
    Aggregate,
    Combined,
    Constant,
    Expr,
    Field,
    Nested,
    Output,
    Query,
    Select,
    above_group,
    rewritten,
    walk,
)
from view_algebra.refusals import Wrong
from view_algebra.windows import is_session

_FINER = "finer"
"""Alias of what is read in the place of the stream."""


def over_values(block: Select) -> Select:
    """A block over a stream, with its aggregates over DISTINCT values taken from finer groups; others as they are."""
    found = [e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate)]
    if block.group is None or not any(a.distinct for a in found):
        return block
    if any(is_session(key) for key in block.group):  # the sessions of a value are not those of its group
        place = next(a.place for a in found if a.distinct)
        raise Wrong(place, "DISTINCT in a session", "Leave DISTINCT out, or group by window(ts, …).")
    keys = {key: f"key_{n}" for n, key in enumerate(dict.fromkeys(block.group))}
    plain = {a: f"plain_{n}" for n, a in enumerate(dict.fromkeys(a for a in found if not a.distinct))}
    finer = dict.fromkeys(_values(a) for a in found if a.distinct)
    named = {values: [f"value_{n}_{i}" for i in range(len(values))] for n, values in enumerate(finer)}
    columns = [*keys.items(), *plain.items()]
    columns += [(value, name) for values, names in named.items() for value, name in zip(values, names, strict=True)]

    def branch(given: dict[str, Expr], group: tuple[Expr, ...]) -> Select:
        outputs = tuple(Output(name, given.get(name, Constant(None, e.type))) for e, name in columns)
        finest = None if block.finest is None else tuple(dict.fromkeys((*block.finest, *group)))
        return Select(outputs, block.relation, block.where, group, place=block.place, finest=finest)

    coarse = {name: key for key, name in keys.items()}
    branches = [branch(coarse | {name: a for a, name in plain.items()}, tuple(keys))] if plain else []
    branches += [
        branch(coarse | dict(zip(names, values, strict=True)), tuple(dict.fromkeys((*keys, *values))))
        for values, names in named.items()
    ]

    def read(expression: Expr, name: str) -> Field:
        return Field(_FINER, (name,), expression.type, place=expression.place)

    def change(expression: Expr) -> Expr | None:
        if expression in keys:
            return read(expression, keys[expression])
        if isinstance(expression, Aggregate) and expression.distinct:
            values = _values(expression)
            fields = tuple(read(v, name) for v, name in zip(values, named[values], strict=True))
            if len(fields) > 1:
                return replace(expression, arguments=(), condition=known(fields), distinct=False)
            return replace(expression, arguments=fields, condition=None, distinct=False)
        if isinstance(expression, Aggregate):
            return Aggregate("max", (read(expression, plain[expression]),), None, False, expression.type)
        if isinstance(expression, Field) and expression.relation == "":
            raise neither(expression)
        return None

    above = replace(block, relation=Nested(_union(branches), _FINER, block.place), where=None, group=None, finest=None)
    return replace(rewritten(above, change), group=tuple(read(key, name) for key, name in keys.items()))


def neither(column: Field) -> Wrong:
    """The refusal of a column that a group does not decide."""
    return Wrong(
        column.place,
        f"{'.'.join(column.path)} is neither grouped nor aggregated",
        f"Add it to GROUP BY, or aggregate it, as max({column.path[-1]}).",
    )


def _values(aggregate: Aggregate) -> tuple[Expr, ...]:
    """What must be distinct: its arguments where its FILTER holds, and NULL, which no aggregate counts, elsewhere."""
    return tuple(only(aggregate.condition, e) for e in aggregate.arguments)


def _union(branches: list[Select]) -> Query:
    union: Query = branches[0]
    for branch in branches[1:]:
        union = Combined("UNION ALL", union, branch, branches[0].columns)
    return union
