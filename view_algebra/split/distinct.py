"""Computes aggregates over DISTINCT values from a finer cell table, which has the value as a further key.

`SELECT k, count(DISTINCT x), sum(y) FROM s GROUP BY k` is kept and read as

    SELECT k, count(x), max(sum_y) FROM (
      SELECT k, sum(y) AS sum_y, NULL AS x FROM s GROUP BY k
      UNION ALL
      SELECT k, NULL, x FROM s GROUP BY k, x)
    GROUP BY k

so that sets of keys merge by union, in place of numbers that could not be added. With a count of each value, the same
table serves aggregates over all values: the median, the mode, a list. A text that is too long for a key is shortened.
If values are shown, the cell keeps the whole long text next to its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from view_algebra.engines.spark import SHORTEST
from view_algebra.language.aggregates import AGGREGATES, not_null, only
from view_algebra.language.expressions import (
    ONE,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Keeping,
    Output,
    OverValues,
    Select,
    Stream,
    ungrouped,
)
from view_algebra.language.structs import is_struct, rebuilt, scalars
from view_algebra.language.time_windows import beyond, bounds, hops, is_session
from view_algebra.language.types import BIGINT, BOOLEAN, INT, STRING
from view_algebra.language.walks import above_group, over_branches, walk

_COUNT = Aggregate("count", (), None, False, BIGINT)

_FINER = "finer"
"""Alias of the subquery in place of the stream."""


def over_values(block: Select) -> Select:
    """A block over a stream whose aggregates over values read finer groups. Any other block stays the same."""
    aggregates = [e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate)]
    if block.group is None or not any(_is_over_values(a) for a in aggregates):
        return block
    repeats = isinstance(block.relation, Stream) and bool(block.relation.generators)
    finer = _Finer.naming(block.group, aggregates, repeats=repeats)
    return over_branches(block, finer.branches(block), _FINER, finer.keys, finer.read)


@dataclass(frozen=True)
class _Finer:
    """Names of the columns of a block's groups and finer groups, by their expressions.

    keys: a session has its start, a hopping window its listed bound and the column for windows without one
    until: the end of a session, which its last record sets, whatever its value
    plain: the aggregates that need no finer group
    values: the columns of each finer group
    companions: the aggregates kept next to the values, with their columns
    repeats: true if a record may occur several times because explode() repeats it
    """

    keys: dict[Expr, str]
    until: dict[Expr, str]
    plain: dict[Aggregate, str]
    values: dict[tuple[Expr, ...], list[str]]
    companions: dict[tuple[Expr, ...], dict[Aggregate, str]]
    repeats: bool

    @staticmethod
    def naming(group: Sequence[Expr], aggregates: Sequence[Aggregate], *, repeats: bool) -> _Finer:
        plain = dict.fromkeys(a for a in aggregates if not _is_over_values(a))
        finer: dict[tuple[Expr, ...], dict[Aggregate, None]] = {}
        for a in filter(_is_over_values, aggregates):
            finer.setdefault(_values(a), {}).update(dict.fromkeys(_companions(a)))
        session = {key: bounds(key) for key in group if is_session(key)}
        keys = [session[key][0] if key in session else key for key in dict.fromkeys(group)]
        keys += [beyond(key) for key in keys if hops(key) is not None]
        return _Finer(
            {key: f"key_{n}" for n, key in enumerate(keys)},
            {end: "until" for _, end in session.values()},
            {a: f"plain_{n}" for n, a in enumerate(plain)},
            {values: [f"value_{n}_{i}" for i in range(len(values))] for n, values in enumerate(finer)},
            {
                values: {a: f"beside_{n}_{i}" for i, a in enumerate(companions)}
                for n, (values, companions) in enumerate(finer.items())
            },
            repeats,
        )

    def branches(self, block: Select) -> list[Select]:
        """The block's groups with the other aggregates, and every finer group, all with the same columns."""
        columns: list[tuple[Expr, str]] = [*self.keys.items(), *self.until.items(), *self.plain.items()]
        columns += [pair for values, names in self.values.items() for pair in zip(values, names, strict=True)]
        columns += [pair for kept in self.companions.values() for pair in kept.items()]
        keys = tuple(block.group or ())
        sessions_of = keys if any(map(is_session, keys)) else None  # a value shares its group's sessions

        def branch(chosen: dict[str, Expr], values: tuple[Expr, ...]) -> Select:
            sub_keys = tuple(dict.fromkeys(v for v in values if v not in keys))
            group = (*dict.fromkeys(keys), *sub_keys)
            outputs = tuple(Output(name, chosen.get(name, Constant(None, e.type))) for e, name in columns)
            finest, join = block.keeping.finest, block.keeping.join
            more = group if join is None else values  # with a join, the keys already name the joined columns
            keeping = Keeping(
                finest=None if finest is None else tuple(dict.fromkeys((*finest, *more))),
                sessions_of=sessions_of,
                sub_keys=sub_keys,
                undecided=block.undecided,
                join=join,
            )
            return Select(outputs, block.relation, block.where, group, place=block.place, keeping=keeping)

        coarse: dict[str, Expr] = {name: key for key, name in (self.keys | self.until).items()}
        branches = [branch(coarse | {name: a for a, name in self.plain.items()}, ())] if self.plain else []
        for values, names in self.values.items():
            companions = {name: kept for kept, name in self.companions[values].items()}
            branches.append(branch(coarse | dict(zip(names, values, strict=True)) | companions, values))
        return branches

    def read(self, expression: Expr) -> Expr | None:
        """The expression of the block over the columns of the branches."""
        if expression in self.keys:
            return _field(expression, self.keys[expression])
        if isinstance(expression, Aggregate) and _is_over_values(expression):
            return self._over(expression)
        if isinstance(expression, Aggregate) or expression in self.until:
            name = self.plain[expression] if isinstance(expression, Aggregate) else self.until[expression]
            return _greatest(_field(expression, name))
        if isinstance(expression, Field) and expression.relation == "":
            raise ungrouped(expression)
        return None

    def _over(self, aggregate: Aggregate) -> Expr:
        values = _values(aggregate)
        fields: tuple[Expr, ...] = tuple(map(_field, values, self.values[values]))
        companions = {kept: _field(kept, name) for kept, name in self.companions[values].items()}
        by_value = AGGREGATES[aggregate.function].by_value
        if by_value is not None:
            counted, wholes = _times(aggregate), _wholes(aggregate)
            often = ONE if counted is None else companions[counted]
            shown = {
                v: _or(companions[wholes[v]], f) if v in wholes else f for v, f in zip(values, fields, strict=True)
            }
            shown |= {value: companions[kept] for value, kept in wholes.items() if value not in shown}
            literals = tuple(a for a in aggregate.arguments[1:] if isinstance(a, Constant))
            if by_value.sub_key is not None:
                return OverValues(aggregate.function, shown[values[0]], often, (), literals, aggregate.type)
            value, *more = _filtered(aggregate)
            order = [shown[part] for e in more if not isinstance(e, Constant) for part in scalars(e)]
            here = rebuilt(value, shown.__getitem__)
            if is_struct(value):  # in rows of other branches, its fields are NULL
                here = only(Call("is not null", (often,), BOOLEAN), here)
            times = often if self.repeats or by_value.repeated is None else ONE
            return OverValues(aggregate.function, here, times, tuple(order), literals, aggregate.type)
        if len(fields) > 1:
            return replace(aggregate, arguments=(), condition=not_null(fields), distinct=False)
        return replace(aggregate, arguments=fields, condition=None, distinct=False)


def _field(expression: Expr, name: str) -> Field:
    return Field(_FINER, (name,), expression.type, place=expression.place)


def most_values(sub_key: Expr) -> int | None:
    """The most values that a sub-key may have, including NULL, or None if they are unbounded."""
    if isinstance(sub_key, Case) and sub_key.otherwise is None and len(sub_key.branches) == 1:
        return most_values(sub_key.branches[0][1])
    if isinstance(sub_key, Call) and sub_key.function == "pmod" and isinstance(sub_key.arguments[1], Constant):
        return int(sub_key.arguments[1].value or 0) + 1
    return 3 if sub_key.type == BOOLEAN else None


def _is_over_values(aggregate: Aggregate) -> bool:
    return aggregate.distinct or AGGREGATES[aggregate.function].by_value is not None


def _companions(aggregate: Aggregate) -> tuple[Aggregate, ...]:
    """The aggregates that are kept next to the values of an aggregate."""
    times = _times(aggregate)
    return (*([] if times is None else [times]), *_wholes(aggregate).values())


def _times(aggregate: Aggregate) -> Aggregate | None:
    """The count of a value, or the aggregate in place of it, if the aggregate needs one."""
    row = AGGREGATES[aggregate.function]
    if row.by_value is None or aggregate.distinct:
        return None
    if row.by_value.sub_key is not None:
        return _greatest(row.by_value.sub_key(_filtered(aggregate))[1])
    return None if row.once and not is_struct(aggregate.arguments[0]) else _COUNT


def _wholes(aggregate: Aggregate) -> dict[Expr, Aggregate]:
    """The parts of a value that its key cannot hold, or holds shortened. Equal keys have equal parts.

    A text may be shortened as a key. A list cannot be a key: the order of events identifies it within its group.
    """
    by_value = AGGREGATES[aggregate.function].by_value
    if aggregate.distinct or by_value is None or by_value.sub_key is not None:
        return {}
    parts = _scalars(aggregate)
    lists = {part: Aggregate("min_by", (part, ONE), None, False, part.type) for part in parts if part.type.nested}
    return {text: _greatest(only(_is_long(text), text)) for text in parts if text.type == STRING} | lists


def _is_long(text: Expr) -> Expr:
    return Call(">=", (Call("octet_length", (text,), INT), Constant(str(SHORTEST), INT)), BOOLEAN)


def _greatest(value: Expr) -> Aggregate:
    return Aggregate("max", (value,), None, False, value.type)


def _or(whole: Expr, key: Expr) -> Expr:
    return Call("coalesce", (whole, key), key.type)


def _values(aggregate: Aggregate) -> tuple[Expr, ...]:
    """The further keys of a finer group: the arguments where FILTER holds, elsewhere NULL, which aggregates ignore."""
    by_value, arguments = AGGREGATES[aggregate.function].by_value, _filtered(aggregate)
    if by_value is None:
        return arguments
    if by_value.sub_key is not None:
        return (by_value.sub_key(arguments)[0],)
    return tuple(part for part in _scalars(aggregate) if not part.type.nested)


def _scalars(aggregate: Aggregate) -> tuple[Expr, ...]:
    """The scalars and lists in an aggregate's value and in its order."""
    value, *more = _filtered(aggregate)
    return tuple(part for e in (value, *(e for e in more if not isinstance(e, Constant))) for part in scalars(e))


def _filtered(aggregate: Aggregate) -> tuple[Expr, ...]:
    value, *more = aggregate.arguments
    others = (e if isinstance(e, Constant) else only(aggregate.condition, e) for e in more)
    return (only(aggregate.condition, value), *others)
