"""The aggregates, one row each, as data. A row has the mergeable partials of an aggregate and its result over them.

For disjoint sets of records A and B: `final(merge(partial(A), partial(B))) = SELECT(A ∪ B)`. A new aggregate is a new
row. The laws are tested for every row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from view_algebra.compiled import Merge
from view_algebra.language.expressions import NULL, TRUE, Aggregate, Call, Case, Constant, Expr, Merged, both
from view_algebra.language.meeting import cast
from view_algebra.language.operators import calculate
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    COLLATED,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Type,
    comparable,
    decimal,
    inside,
    not_in_json,
    of_scalars,
)

WIDE = 28
"""Most digits of a decimal whose sums fit DECIMAL(38) for 10^10 values: Spark adds ten digits."""

HALF = 19
"""Digits of the lower part of a wide decimal, which is split in two so that neither sum overflows."""


@dataclass(frozen=True)
class TypedPartial:
    """A mergeable column of cells: `merge` over `input` in Spark, the same merge again in Postgres.

    Partials that differ only in `name` share a column, since the order of `last(offset)` by `offset` keeps the offset.

    type: the column's type in Spark
    counts: `input` is a condition, and the partial is the number of records for which it holds (never NULL)
    about: the expression that names the column
    order: the sort keys of `first` and `last`, different for all records
    when: the condition for a record to count
    merged_with: the partials that moments merge by: `mean` a count, `comoment` a count and two means, `third` and
        `fourth` all lower moments
    other: the second argument
    """

    name: str = field(compare=False)
    merge: Merge
    input: Expr
    type: Type
    counts: bool = False
    about: Expr | None = field(default=None, compare=False)
    order: tuple[Expr, ...] = ()
    when: Expr | None = None
    merged_with: tuple[TypedPartial, ...] = ()
    other: Expr | None = None

    @property
    def by(self) -> tuple[TypedPartial, ...]:
        """The partials that this partial merges by: those of its order, or those in `merged_with`."""
        return self.merged_with or tuple(
            replace(self, name=f"{self.merge}_by", input=e, type=e.type, about=None) for e in self.order
        )


@dataclass(frozen=True)
class ByValue:
    """An aggregate that needs every value of a group, from a cell for each value.

    The expressions are Postgres', over a group's values: `{0}` is the value, `{n}` its count, `{1}` the next argument,
    `{o}` the requested order.

    over: the expression over the values in cells
    repeated: `over` for values that may be repeated by explode(), if `over` itself has no `{n}`
    sub_key: the key in place of a value, and the expression whose maximum is kept in place of the count
    rows: the expression over plain rows, or None if there is none
    """

    over: str
    repeated: str | None = None
    sub_key: Callable[[Sequence[Expr]], tuple[Expr, Expr]] | None = None
    rows: str | None = None


@dataclass(frozen=True)
class Syntax:
    """The ways to write a call of an aggregate, besides f(x).

    parameter: the meaning of its literal arguments. `shares` may also be an array
    within_group: it may be written WITHIN GROUP (ORDER BY x)
    from_the_top: the way out for WITHIN GROUP (ORDER BY x DESC). Empty if a share may count from the top
    whole_partition: OVER takes neither an order nor a frame
    default: the text of its omitted argument in Spark's name of a column
    """

    parameter: Choice["share", "shares", "separator", "error"] | None = None
    within_group: bool = False
    from_the_top: str = ""
    whole_partition: bool = False
    default: str = ""


def _no_partials(_: Sequence[Expr], __: Expr | None) -> tuple[TypedPartial, ...]:
    return ()


def _no_final(_: Mapping[str, Expr], __: Type) -> Expr:
    return NULL


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate. It has either both partials and a final, or an expression by value.

    arguments: the fewest and the most
    accepts: a predicate on argument types
    gives: the type of the result
    partials: its partials, from its arguments and its FILTER
    final: its result over the merged partials, by their names
    by_value: its expressions over a group's values
    above: Postgres' expression over plain rows, for aggregates of aggregates. `@` marks the place of FILTER and OVER.
        None if the aggregate needs an order, which rows that are not records lack
    synonyms: Spark's other names for it
    syntax: the ways to write it
    counts: what its result is a number of, so that it is 0 without records: `records` (all of them as `f(*)`, or those
        with values of any type), `conditions` that hold (so NULL is false), or `values`
    adds: it adds its values up, doubles in two sums over plain rows
    additive: the results over disjoint sets of records add up
    lengths: it also accepts intervals
    once: a repeated value changes nothing, so DISTINCT does not matter
    last: for one that chooses a record's value, even NULL: it is the last by its order, not the first
    settled: typing settles a result that Spark leaves to the order of rows, in this way. A `list` takes the order of
        events as more arguments, and Spark sorts it by lambdas
    exactly: the way out, if it is an estimate
    instead: the way out per type that it does not accept, with its name as {0}
    """

    name: str
    arguments: tuple[int, int]
    accepts: Callable[[Type], bool]
    gives: Callable[[Sequence[Type]], Type]
    partials: Callable[[Sequence[Expr], Expr | None], tuple[TypedPartial, ...]] = _no_partials
    final: Callable[[Mapping[str, Expr], Type], Expr] = _no_final
    by_value: ByValue | None = None
    above: Callable[[Sequence[Type]], str] | None = None
    synonyms: tuple[str, ...] = ()
    syntax: Syntax = Syntax()
    counts: Choice["records", "conditions", "values"] | None = None
    adds: bool = False
    additive: bool = False
    lengths: bool = False
    once: bool = False
    last: bool | None = None
    settled: Choice["estimate", "mode", "set", "list"] | None = None
    exactly: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        has_partials, has_final = self.partials is not _no_partials, self.final is not _no_final
        assert has_partials == has_final == (self.by_value is None), self.name

    @property
    def counts_records(self) -> bool:
        """True if it counts records, all of them as `f(*)`."""
        return self.counts == "records"

    @property
    def collects(self) -> bool:
        """True if the result is a list of the group's values."""
        return self.settled in ("set", "list") and self.gives((DOUBLE,)).name == "ARRAY"

    @property
    def rows(self) -> str | None:
        """Postgres' expression over plain rows for an aggregate by value, or None."""
        return None if self.by_value is None else self.by_value.rows

    @property
    def in_order(self) -> bool:
        """True if it takes the order of events in addition to its own arguments."""
        return self.last is not None or self.settled == "list"

    @property
    def lambdas(self) -> bool:
        """True if Spark computes it with lambdas, which may not contain a subquery."""
        return self.settled in ("estimate", "list")

    def takes(self, arguments: Sequence[Expr], *, star: bool) -> bool:
        """True if a call may have these arguments. Only f(*) has none."""
        fewest, most = self.arguments
        return fewest <= len(arguments) <= most and (star or bool(arguments))


def only(when: Expr | None, value: Expr) -> Expr:
    """The value if the FILTER holds, otherwise NULL, which sum, min and max ignore."""
    return value if when is None else Case(((when, value),), None, value.type)


def not_null(arguments: Sequence[Expr]) -> Expr | None:
    """The condition that no argument is NULL, or None if that always holds."""
    condition: Expr | None = None
    for argument in arguments:
        if not isinstance(argument, Constant):
            condition = both(condition, Call("is not null", (argument,), BOOLEAN))
        elif argument.value is None:
            condition = Constant("false", BOOLEAN)
    return condition


def _count(arguments: Sequence[Expr], when: Expr | None) -> tuple[TypedPartial, ...]:
    return (TypedPartial("count", "sum", both(when, not_null(arguments)) or TRUE, BIGINT, counts=True),)


def _summed(kind: Type) -> Type:
    """The type of sum(x)."""
    if kind.name == "DECIMAL":
        return decimal(kind.precision + 10, kind.scale)
    return BIGINT if kind.integral else DOUBLE


def _averaged(kind: Type) -> Type:
    """The type of avg(x)."""
    return decimal(kind.precision + 4, kind.scale + 4) if kind.name == "DECIMAL" else DOUBLE


def _sum(arguments: Sequence[Expr], when: Expr | None) -> tuple[TypedPartial, ...]:
    value = arguments[0]
    if value.type.name == "DECIMAL" and value.type.precision > WIDE:
        return _wide(value, when)
    return (TypedPartial("sum", "sum", only(when, value), _summed(value.type)),)


def _wide(value: Expr, when: Expr | None) -> tuple[TypedPartial, ...]:
    """The partials of a wide decimal: a multiple of a unit and the rest, both with room for all sums."""
    scale = value.type.scale
    unit = wide_unit(scale)
    low = cast(calculate("%", value, unit), decimal(max(HALF, scale), scale))
    high = cast(calculate("/", calculate("-", value, low), unit), decimal(38 - HALF + 1, 0))
    return (
        TypedPartial("high", "sum", only(when, high), decimal(38 - HALF + 11, 0), about=only(when, value)),
        TypedPartial("low", "sum", only(when, low), _summed(low.type), about=only(when, value)),
    )


def wide_unit(scale: int) -> Constant:
    """The unit of a wide decimal's upper part."""
    digits = "0." + "0" * (scale - HALF - 1) + "1" if scale > HALF else "1" + "0" * (HALF - scale)
    return Constant(
        digits, decimal(max(1, scale - HALF), scale - HALF) if scale > HALF else decimal(HALF - scale + 1, 0)
    )


def _sum_final(partials: Mapping[str, Expr], kind: Type) -> Expr:
    if "high" not in partials:
        return partials["sum"]
    unit = wide_unit(partials["low"].type.scale)
    return Call("wide sum", (partials["high"], partials["low"], unit), kind)


def _avg(arguments: Sequence[Expr], when: Expr | None) -> tuple[TypedPartial, ...]:
    value = arguments[0]
    if not value.type.integral:
        return (*_sum(arguments, when), *_count(arguments, when))
    total = TypedPartial("total", "sum", only(when, cast(value, DOUBLE)), DOUBLE, about=only(when, value))
    return (total, *_count(arguments, when))


def _avg_final(partials: Mapping[str, Expr], kind: Type) -> Expr:
    if "total" in partials:  # a sum of whole numbers, whose quotient cannot underflow
        return Call("average", (partials["total"], partials["count"]), kind)
    if kind == DOUBLE:
        return calculate("/", partials["sum"], partials["count"])
    scale = partials["low"].type.scale if "low" in partials else 0
    return Call("average", (_sum_final(partials, decimal(38, scale)), partials["count"]), kind)


def _is_ordered(kind: Type) -> bool:
    """True if both engines order values of the type alike."""
    return not kind.nested and kind.name not in ("BINARY", "INTERVAL", "VOID")


def _extreme(name: Choice["min", "max"]) -> AggregateFunction:
    return AggregateFunction(
        name,
        (1, 1),
        accepts=lambda kind: _is_ordered(kind) or of_scalars(kind),
        gives=lambda types: types[0],
        partials=lambda arguments, when: (TypedPartial(name, name, only(when, arguments[0]), arguments[0].type),),
        final=lambda partials, _: partials[name],
        above=lambda types: {
            "BOOLEAN": ("bool_and" if name == "min" else "bool_or") + "({0})@",
            "STRING": f"{name}({{0}} {COLLATED})@",
            **dict.fromkeys(("ARRAY", "MAP", "STRUCT"), "any_value({0})@"),  # a single value among NULLs
        }.get(types[0].name, name + "({0})@"),
        once=True,
        instead={"STRUCT": "Take to_json(…) of each list or map in it."},
    )


def _boolean_extreme(name: str, extreme: Choice["min", "max"], *synonyms: str) -> AggregateFunction:
    """The row of an extreme of booleans: true is greater than false."""
    return replace(
        _extreme(extreme),
        name=name,
        accepts=lambda kind: kind == BOOLEAN,
        synonyms=synonyms,
        instead={"ARRAY": "Write array_contains(tags, 'x'), or forall(tags, t -> t = 'x')."},
    )


def _bitwise(name: Choice["bit_and", "bit_or", "bit_xor"]) -> AggregateFunction:
    return AggregateFunction(
        name,
        (1, 1),
        accepts=lambda kind: kind.integral,
        gives=lambda types: types[0],
        partials=lambda arguments, when: (TypedPartial(name, name, only(when, arguments[0]), arguments[0].type),),
        final=lambda partials, _: partials[name],
        above=lambda _: name + "({0})@",
        once=name != "bit_xor",
    )


def _by(name: Choice["min_by", "max_by"], merge: Choice["first", "last"]) -> AggregateFunction:
    def partials(arguments: Sequence[Expr], when: Expr | None) -> tuple[TypedPartial, ...]:
        value, *order = arguments
        partial = TypedPartial(merge, merge, value, value.type, order=tuple(order), when=when)
        return (partial, *partial.by)

    return AggregateFunction(
        name,
        (2, 2),
        accepts=lambda kind: _is_ordered(kind) or of_scalars(kind),
        gives=lambda types: types[0],
        partials=partials,
        final=lambda partials, _: partials[merge],
        once=True,
        last=merge == "last",
    )


def _percentile(
    name: str, arguments: tuple[int, int], syntax: Syntax, *, between: bool, synonyms: tuple[str, ...] = ()
) -> AggregateFunction:
    """The row of a percentile. `between`: it may lie between two values, and OVER computes it too."""
    share = "0.5" if arguments == (1, 1) else "{1}"
    nonnull = "FILTER (WHERE {0} IS NOT NULL)"
    values = f"array_agg({{0}}::double precision ORDER BY {{0}}) {nonnull}, array_agg({{n}} ORDER BY {{0}}) {nonnull}"
    over = f"spark.{'percentile' if between else 'percentile_disc'}({values}, {share})"
    over_window = f"spark.percentile(array_agg({{0}}::double precision) {nonnull}@, {share})"
    return AggregateFunction(
        name,
        arguments,
        accepts=lambda kind: kind.numeric,
        gives=lambda _: DOUBLE,
        by_value=ByValue(over, rows=over),
        above=(lambda _: over_window) if between else None,
        synonyms=synonyms,
        syntax=syntax,
        lengths=between,
    )


def _register(arguments: Sequence[Expr]) -> tuple[Expr, Expr]:
    """HyperLogLog: the register of a value, and the position of the highest bit in the rest of its hash."""
    value, registers = arguments
    assert isinstance(registers, Constant)
    bits = int(registers.value or 0).bit_length() - 1
    hashed = Call("xxhash64", (value,), BIGINT)
    rest = Call("bin", (Call("shiftrightunsigned", (hashed, Constant(str(bits), INT)), BIGINT),), STRING)
    position = Call("-", (Constant(str(65 - bits), INT), Call("length", (rest,), INT)), INT)
    is_there = not_null((value,))
    return only(is_there, Call("pmod", (hashed, registers), BIGINT)), only(is_there, position)


def registers_for(error: float) -> int:
    """The number of HyperLogLog registers for a relative standard error, which is 1.04 / sqrt(registers).

    >>> registers_for(0.033), registers_for(0.01)
    (1024, 16384)
    """
    return int(max(FEWEST_REGISTERS, 2 ** math.ceil(math.log2((1.04 / error) ** 2))))


DEFAULT_REGISTERS = 4096
"""Gives a relative standard error of 1.6 %, or up to 3 % around twice as many values, where the bias is uncorrected."""

FEWEST_REGISTERS, MOST_REGISTERS = 128, 65_536

LEAST_ERROR, GREATEST_ERROR = 1.04 / math.sqrt(MOST_REGISTERS), 0.39
"""Bounds of the relative standard error of approx_count_distinct. The greatest is Spark's."""

_MODE = "(array_agg({0} ORDER BY {n} DESC, {0}) FILTER (WHERE {0} IS NOT NULL))[1]"
_LIST = "coalesce(jsonb_agg({0} ORDER BY {o}) FILTER (WHERE {0} IS NOT NULL), '[]')"
_REPEATED = (
    "coalesce(spark.repeated(jsonb_agg({0} ORDER BY {o}) FILTER (WHERE {0} IS NOT NULL),"
    " array_agg({n} ORDER BY {o}) FILTER (WHERE {0} IS NOT NULL)), '[]')"
)
_AS_VALUES = {
    "ARRAY": "Collect its elements: SELECT k, {0}(e) AS e … LATERAL VIEW explode(x) t AS e GROUP BY k.",
    **dict.fromkeys(("MAP", "STRUCT"), "Write {0}(to_json(…)) over records."),
}
_TEXTS = "string_agg({0} || repeat({1} || {0}, {n}::integer - 1), {1} ORDER BY {o})"


def _in_json(kind: Type) -> bool:
    """True if JSON can hold the value in a list, which excludes bytes."""
    return kind.name not in ("BINARY", "VOID", "INTERVAL") and (not kind.nested or of_scalars(kind))


def _in_a_list(kind: Type) -> bool:
    """True if Spark can sort a list of the values: lists and maps are allowed, but not maps inside them."""
    values = kind.element if kind.name == "MAP" and kind.element is not None else kind
    return _in_json(kind) or (kind.nested and comparable(values) and not_in_json(kind) is None)


def _in_a_set(kind: Type) -> bool:
    """True if equal values have equal JSON, which excludes structs of fractions because of their two zeros."""
    return _in_json(kind) and not (kind.nested and {DOUBLE, FLOAT} & {*inside(kind)})


_POWERS: tuple[Choice["third", "fourth"], ...] = ("third", "fourth")


def _moments(
    name: str,
    final: Callable[[Mapping[str, Expr]], Expr],
    above: str,
    *,
    of_pairs: bool = False,
    power: int = 2,
    synonyms: tuple[str, ...] = (),
) -> AggregateFunction:
    """The row of an aggregate of deviations from means. With `of_pairs`, y comes first, as in `regr_slope(y, x)`.

    power: the highest power of deviations that it sums.
    """
    return AggregateFunction(
        name,
        (2, 2) if of_pairs else (1, 1),
        accepts=lambda kind: kind.numeric,
        gives=lambda _: DOUBLE,
        partials=functools.partial(_deviations, power, of_pairs),
        final=lambda partials, _: final(partials),
        above=lambda _: above,
        synonyms=synonyms,
    )


def _deviations(power: int, of_pairs: bool, arguments: Sequence[Expr], when: Expr | None) -> tuple[TypedPartial, ...]:
    """The count, the means, and the sums of products or powers of the deviations from them."""
    condition = both(when, not_null(arguments))
    y, x = (cast(a, DOUBLE) for a in (arguments[0], arguments[-1]))
    count = TypedPartial("count", "sum", condition or TRUE, BIGINT, counts=True)

    def mean(of: Expr, axis: str) -> TypedPartial:
        return TypedPartial(f"mean_{axis}", "mean", only(condition, of), DOUBLE, about=of, merged_with=(count,))

    x_mean, y_mean = mean(x, "x"), mean(y, "y") if of_pairs else mean(x, "x")

    def comoment(a: Expr, a_mean: TypedPartial, b: Expr, b_mean: TypedPartial, axes: str) -> TypedPartial:
        merged_with = (count, a_mean, b_mean)
        return TypedPartial(
            f"c_{axes}", "comoment", a, DOUBLE, about=a, when=condition, merged_with=merged_with, other=b
        )

    if not of_pairs:
        lower: tuple[TypedPartial, ...] = (count, x_mean, comoment(x, x_mean, x, x_mean, "xx"))
        for merge in _POWERS[: power - 2]:
            lower += (TypedPartial(merge, merge, only(condition, x), DOUBLE, about=x, merged_with=lower),)
        return lower
    every = ((x, x_mean, x, x_mean, "xx"), (x, x_mean, y, y_mean, "xy"), (y, y_mean, y, y_mean, "yy"))
    return (count, x_mean, y_mean, *(comoment(*pair) for pair in every))


def _average_of_pairs(name: str, of: int) -> AggregateFunction:
    return AggregateFunction(
        name,
        (2, 2),
        accepts=lambda kind: kind.numeric,
        gives=lambda types: _averaged(types[of]),
        partials=lambda pair, when: _avg((pair[of],), both(when, not_null(pair))),
        final=_avg_final,
        above=lambda types: _avg_above((types[of],)).replace("{0}", f"CASE WHEN {_PAIRED} THEN {{{of}}} END"),
    )


def _over(partial: str, less: int = 0) -> Callable[[Mapping[str, Expr]], Expr]:
    """A sum of products of deviations, divided by the number of records minus `less`."""

    def final(partials: Mapping[str, Expr]) -> Expr:
        count = partials["count"] if not less else calculate("-", partials["count"], Constant(str(less), BIGINT))
        return calculate("/", partials[partial], cast(count, DOUBLE))

    return final


def _root(final: Callable[[Mapping[str, Expr]], Expr]) -> Callable[[Mapping[str, Expr]], Expr]:
    return lambda partials: Call("sqrt", (final(partials),), DOUBLE)


def _skewness(partials: Mapping[str, Expr]) -> Expr:
    square = calculate("*", partials["c_xx"], partials["c_xx"])
    root = Call("sqrt", (cast(partials["count"], DOUBLE),), DOUBLE)
    scale = Call("sqrt", (calculate("*", square, partials["c_xx"]),), DOUBLE)
    return calculate("/", calculate("*", root, partials["third"]), scale)


def _kurtosis(partials: Mapping[str, Expr]) -> Expr:
    whole = calculate("*", cast(partials["count"], DOUBLE), partials["fourth"])
    square = calculate("*", partials["c_xx"], partials["c_xx"])
    return calculate("-", calculate("/", whole, square), Constant("3", DOUBLE))


def _correlation(partials: Mapping[str, Expr]) -> Expr:
    return calculate("/", partials["c_xy"], Call("sqrt", (calculate("*", partials["c_xx"], partials["c_yy"]),), DOUBLE))


def _slope(partials: Mapping[str, Expr]) -> Expr:
    return calculate("/", partials["c_xy"], partials["c_xx"])


def _intercept(partials: Mapping[str, Expr]) -> Expr:
    return calculate("-", partials["mean_y"], calculate("*", _slope(partials), partials["mean_x"]))


def _determination(partials: Mapping[str, Expr]) -> Expr:
    """NULL if y is constant, 1 if only x is: the rule of Spark since 4.1, and the opposite of SQL's."""
    zero, one = Constant("0", DOUBLE), Constant("1", DOUBLE)
    flat, level = (Call("=", (partials[name], zero), BOOLEAN) for name in ("c_yy", "c_xx"))
    square = calculate("*", _correlation(partials), _correlation(partials))
    return Case(((flat, Constant(None, DOUBLE)), (level, one)), square, DOUBLE)


_X = "{0}::double precision"
_Y = "{1}::double precision"
_COUNT = "count({0})@"
_DEVIATIONS = f"spark.comoment(({{0}} IS NOT NULL)::integer, {_X}, {_X}, 0)@"
"""Deviations over plain rows, as sets of one number. Postgres' own are not exactly 0 for equal numbers."""

_ONE = f"({{0}} IS NOT NULL)::integer, {_X}, 0"
_SQUARE = f"spark.times({_DEVIATIONS}, {_DEVIATIONS})"
_SKEWNESS = (
    f"spark.divide(spark.times(sqrt({_COUNT}::double precision), spark.third({_ONE}, 0)@),"
    f" spark.sqrt(spark.times({_SQUARE}, {_DEVIATIONS})))"
)
_KURTOSIS = (
    f"spark.minus(spark.divide(spark.times({_COUNT}::double precision, spark.fourth({_ONE}, 0, 0)@), {_SQUARE}),"
    " 3::double precision)"
)

_PAIRED = "({0} IS NOT NULL AND {1} IS NOT NULL)"
_PAIRS = f"sum({_PAIRED}::integer)@"


def _products(a: str, b: str) -> str:
    return f"spark.comoment({_PAIRED}::integer, {a}, {b}, 0)@"


def _per(total: str, count: str) -> str:
    return f"spark.divide({total}, ({count})::double precision)"


def _mean_of_pairs(of: str) -> str:
    return _per(f"sum(CASE WHEN {_PAIRED} THEN {of} END)@", _PAIRS)


_SLOPE = f"spark.divide({_products(_X, _Y)}, {_products(_Y, _Y)})"
_INTERCEPT = f"spark.minus({_mean_of_pairs(_X)}, spark.times({_SLOPE}, {_mean_of_pairs(_Y)}))"
_CORRELATION = f"spark.divide({_products(_X, _Y)}, spark.sqrt(spark.times({_products(_X, _X)}, {_products(_Y, _Y)})))"

_DETERMINATION = (
    f"CASE WHEN {_products(_X, _X)} <> 0 THEN CASE WHEN {_products(_Y, _Y)} = 0 THEN 1::double precision"
    f" ELSE spark.times({_CORRELATION}, {_CORRELATION}) END END"
)

EVENT_ORDER = ("time", "kafka_partition", "kafka_offset")
"""The order of a topic's records: the event's time, then the position in Kafka."""


RECORD_KEYS = (("kafka_partition", INT), ("kafka_offset", BIGINT))
"""The identity of a record within its topic, and the keys of a row view's cells."""


def _sum_above(types: Sequence[Type]) -> str:
    kind = types[0]
    if kind.name == "BIGINT":
        return "spark.wrap_bigint(sum({0})@)"
    if kind.name == "DECIMAL":
        return f"spark.decimal(sum({{0}})@, {_summed(kind).precision}, {kind.scale})"
    if kind.name == "FLOAT":
        return _sum_of_doubles("{0}::double precision")
    return _sum_of_doubles("{0}") if kind == DOUBLE else "sum({0})@"


def _sum_of_doubles(value: str) -> str:
    """A sum of doubles that never raises in Postgres: values that could overflow are added separately."""
    large = f"abs({value}) > {_LARGE}"
    small_ones, large_ones = (f"CASE WHEN {which}{large} THEN {value} END" for which in ("NOT ", ""))
    return f"spark.total(sum({small_ones})@, spark.sum({large_ones})@)"


_LARGE = "1e290"
"""Doubles up to this never add up to Infinity in a table of any size. NaN is greater."""


def _avg_above(types: Sequence[Type]) -> str:
    kind = types[0]
    if kind.name == "DECIMAL":
        result = _averaged(kind)
        return f"spark.average(sum({{0}})@, count({{0}})@, {result.precision}, {result.scale})"
    if kind.integral:
        return "sum({0})@::double precision / nullif(count({0})@, 0)"
    return f"{_sum_above(types)} / nullif(count({{0}})@, 0)"


_OF_MOMENTS = (
    _moments("var_pop", _over("c_xx"), _per(_DEVIATIONS, _COUNT)),
    _moments("var_samp", _over("c_xx", 1), _per(_DEVIATIONS, f"{_COUNT} - 1"), synonyms=("variance",)),
    _moments("stddev_pop", _root(_over("c_xx")), f"spark.sqrt({_per(_DEVIATIONS, _COUNT)})"),
    _moments(
        "stddev_samp",
        _root(_over("c_xx", 1)),
        f"spark.sqrt({_per(_DEVIATIONS, f'{_COUNT} - 1')})",
        synonyms=("std", "stddev"),
    ),
    _moments("skewness", _skewness, _SKEWNESS, power=3),
    _moments("kurtosis", _kurtosis, _KURTOSIS, power=4),
    _moments("covar_pop", _over("c_xy"), _per(_products(_X, _Y), _PAIRS), of_pairs=True),
    _moments("covar_samp", _over("c_xy", 1), _per(_products(_X, _Y), f"{_PAIRS} - 1"), of_pairs=True),
    _moments("corr", _correlation, _CORRELATION, of_pairs=True),
    _moments("regr_slope", _slope, _SLOPE, of_pairs=True),
    _moments("regr_intercept", _intercept, _INTERCEPT, of_pairs=True),
    _moments("regr_r2", _determination, _DETERMINATION, of_pairs=True),
    _moments("regr_sxx", lambda partials: partials["c_xx"], _products(_Y, _Y), of_pairs=True),
    _moments("regr_sxy", lambda partials: partials["c_xy"], _products(_X, _Y), of_pairs=True),
    _moments("regr_syy", lambda partials: partials["c_yy"], _products(_X, _X), of_pairs=True),
)

_TABLE = (
    AggregateFunction(
        "count",
        (0, 9),
        accepts=lambda _: True,
        gives=lambda _: BIGINT,
        partials=_count,
        final=lambda partials, _: partials["count"],
        above=lambda types: "count({0})@" if types else "count(*)@",
        counts="records",
        additive=True,
    ),
    AggregateFunction(
        "sum",
        (1, 1),
        accepts=lambda kind: kind.numeric,
        gives=lambda types: _summed(types[0]),
        partials=_sum,
        final=_sum_final,
        above=_sum_above,
        lengths=True,
        adds=True,
        additive=True,
    ),
    _extreme("min"),
    _extreme("max"),
    AggregateFunction(
        "avg",
        (1, 1),
        accepts=lambda kind: kind.numeric,
        gives=lambda types: _averaged(types[0]),
        partials=_avg,
        final=_avg_final,
        above=_avg_above,
        synonyms=("mean",),
        lengths=True,
        adds=True,
    ),
    AggregateFunction(
        "count_if",
        (1, 1),
        accepts=lambda kind: kind == BOOLEAN,
        gives=lambda _: BIGINT,
        partials=lambda arguments, when: _count((), both(when, arguments[0])),
        final=lambda partials, _: partials["count"],
        above=lambda _: "count(CASE WHEN {0} THEN 1 END)@",
        counts="conditions",
        additive=True,
    ),
    _boolean_extreme("bool_or", "max", "any", "some"),
    _boolean_extreme("bool_and", "min", "every"),
    _bitwise("bit_and"),
    _bitwise("bit_or"),
    _bitwise("bit_xor"),
    _by("min_by", "first"),
    _by("max_by", "last"),
    *_OF_MOMENTS,
    AggregateFunction(
        "regr_count",
        (2, 2),
        accepts=lambda kind: kind.numeric,
        gives=lambda _: BIGINT,
        partials=_count,
        final=lambda partials, _: partials["count"],
        above=lambda _: f"coalesce({_PAIRS}, 0)",
        counts="values",
    ),
    _average_of_pairs("regr_avgy", 0),
    _average_of_pairs("regr_avgx", 1),
    AggregateFunction(
        "mode",
        (1, 1),
        accepts=_is_ordered,
        gives=lambda types: types[0],
        by_value=ByValue(_MODE, rows="mode() WITHIN GROUP (ORDER BY {0})"),
        syntax=Syntax(
            within_group=True,
            from_the_top="Count where x IS NOT NULL, GROUP BY x, and take the first by row_number() OVER (ORDER BY n"
            " DESC, x DESC).",
        ),
        settled="mode",
        instead=_AS_VALUES,
    ),
    AggregateFunction(
        "approx_count_distinct",
        (1, 2),
        accepts=lambda kind: not kind.nested and not kind.length,
        gives=lambda _: BIGINT,
        by_value=ByValue("spark.hyperloglog(array_agg({n}) FILTER (WHERE {0} IS NOT NULL), {1})", sub_key=_register),
        syntax=Syntax(parameter="error"),
        counts="values",
        settled="estimate",
        exactly="Write count(DISTINCT x), which is exact.",
    ),
    _percentile("median", (1, 1), Syntax(whole_partition=True), between=True),
    _percentile(
        "percentile",
        (2, 2),
        Syntax(parameter="shares", within_group=True, default=", 1"),
        between=True,
        synonyms=("percentile_cont",),
    ),
    _percentile(
        "percentile_disc",
        (2, 2),
        Syntax(
            parameter="share",
            within_group=True,
            from_the_top="Take max(x) WHERE cume_dist() OVER (ORDER BY x DESC) >= 0.25, of rows with x IS NOT NULL.",
        ),
        between=False,
    ),
    AggregateFunction(
        "collect_set",
        (1, 1),
        accepts=_in_a_set,
        gives=lambda types: Type("ARRAY", element=types[0]),
        by_value=ByValue(_LIST, rows=_LIST.replace("({0}", "(DISTINCT {0}")),
        once=True,
        settled="set",
        instead=_AS_VALUES,
    ),
    AggregateFunction(
        "collect_list",
        (1, 1),
        accepts=_in_a_list,
        gives=lambda types: Type("ARRAY", element=types[0]),
        by_value=ByValue(_LIST, rows=_LIST, repeated=_REPEATED),
        synonyms=("array_agg",),
        settled="list",
        instead=_AS_VALUES,
    ),
    AggregateFunction(
        "listagg",
        (1, 2),
        accepts=lambda kind: kind == STRING,
        gives=lambda _: STRING,
        by_value=ByValue(_TEXTS, rows=_TEXTS),
        synonyms=("string_agg",),
        syntax=Syntax(parameter="separator", within_group=True, default=", NULL"),
        settled="list",
    ),
)

AGGREGATES: dict[str, AggregateFunction] = {row.name: row for row in _TABLE}
"""Every aggregate by name."""


def takes_distinct(call: Aggregate) -> bool:
    """True if Postgres computes an aggregate of DISTINCT values: every use of the argument is that of an aggregate."""
    if _adds_fractions(call):
        return True
    row, types = AGGREGATES[call.function], [argument.type for argument in call.arguments]
    assert row.above is not None
    template = row.above(types[:1] if row.arguments[0] < 2 else types)
    return "({0} IS" not in template and template.count("({0}") == template.count("{0}")


def template_of_distinct(template: str, call: Aggregate) -> str:
    """Postgres' template of an aggregate of DISTINCT values, from the one of all values."""
    if _adds_fractions(call):
        return template.replace("sum(CASE", "sum(DISTINCT CASE").replace("count({0}", "count(DISTINCT {0}")
    return template.replace("({0}", "(DISTINCT {0}")


def _adds_fractions(call: Aggregate) -> bool:
    return AGGREGATES[call.function].adds and call.arguments[0].type in (DOUBLE, FLOAT)


SYNONYMS = {other: row.name for row in _TABLE for other in row.synonyms}
"""Spark's other names for aggregates, and the names of the rows."""

ONLY_WITHIN_GROUP = ("percentile_cont", "percentile_disc")
"""Names that Spark reads only with WITHIN GROUP (ORDER BY x)."""

REWRITES = {
    "try_sum": "Write sum(x). On overflow, a sum of whole numbers wraps, and one of decimals is NULL.",
    "try_avg": "Write avg(x).",
    "approx_top_k": "Rank the groups: row_number() OVER (ORDER BY count(*) DESC, k) <= 10.",
    "hll_sketch_agg": "Write approx_count_distinct(x), which gives the estimate itself.",
    "histogram_numeric": "Group by floor(x / 10), and count.",
    "count_min_sketch": "Group by x, and count.",
}
"""Aggregates of Spark that are not served, with the way out."""

NO_PARTIAL = "docs/sql.md lists the aggregates that are served."
"""The way out for an aggregate without a rewrite."""

MOMENTS = {name for row in _OF_MOMENTS for name in (row.name, *row.synonyms)}
"""Aggregates of deviations, under all their names."""

BY_EVENT_ORDER = {
    "first": "min_by",
    "first_value": "min_by",
    "any_value": "min_by",
    "last": "max_by",
    "last_value": "max_by",
}
"""Aggregates with an order that Spark leaves open. Here it is the order of events."""

BY_BUCKETS = ("percentile_approx", "approx_percentile")
"""Percentiles over buckets in place of values. See `bucketed` in `typed/aggregation/estimates.py`."""

ACCURACY = 100
"""The accuracy if a call gives none. The greatest relative error of a value is 1 / accuracy."""

COLLECTED_ONCE = next(row.name for row in _TABLE if row.collects and row.once)
"""The aggregate that lists the different values of a group."""

ADDITIVE = {row.name for row in _TABLE if row.additive}
"""Aggregates whose results over disjoint sets of records add up."""

COUNTS = {row.name for row in _TABLE if row.counts}
"""Aggregates that are 0 without records. Other aggregates of scalars are NULL."""


def aggregate_named(name: str) -> AggregateFunction | None:
    """The aggregate under any of Spark's names for it, or None."""
    return AGGREGATES.get(SYNONYMS.get(name, name))


def is_aggregate(name: str) -> bool:
    """True if it is an aggregate in Spark, whether or not it is supported here."""
    return any(name in names for names in (AGGREGATES, SYNONYMS, BY_EVENT_ORDER, BY_BUCKETS, REWRITES))


def merged(partial: TypedPartial, columns: Mapping[TypedPartial, Expr]) -> Merged:
    """A partial of a coarser group, merged from the columns of finer ones."""
    return Merged(partial.merge, tuple(columns[column] for column in (*partial.by, partial)), partial.type)


def partials_of(aggregate: Aggregate) -> tuple[TypedPartial, ...]:
    """The partials that an aggregate keeps per group."""
    return AGGREGATES[aggregate.function].partials(aggregate.arguments, aggregate.condition)


def final_of(aggregate: Aggregate, merged: Mapping[str, Expr]) -> Expr:
    """The result of an aggregate over its merged partials, by their names."""
    return AGGREGATES[aggregate.function].final(merged, aggregate.type)
