"""Typed expressions and queries: the author's SQL with every name resolved and every type known.

Two expressions are equal if they mean the same over the same columns. Their places in the file do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Choice

from sqlglot import exp

from view_algebra.compiled import Merge
from view_algebra.language.types import BIGINT, BOOLEAN, STRING, VOID, Type
from view_algebra.refusals import Span, Wrong, suggestion

Place = Span | None


@dataclass(frozen=True)
class Constant:
    """A literal. `value` is its text, None is NULL. `suffixed`: the author states its type, as in `2L`."""

    value: str | None
    type: Type
    place: Place = field(default=None, compare=False)
    suffixed: bool = False


@dataclass(frozen=True)
class Field:
    """A column of a relation in FROM, or a field inside a nested column of it.

    bound: the greatest absolute value that it can take, if known. A count of records stays far below 2^63
    outer: it is a column of the block that encloses its subquery
    of: the type that has it as a field
    """

    relation: str
    path: tuple[str, ...]
    type: Type
    bound: int | None = field(default=None, compare=False)
    place: Place = field(default=None, compare=False)
    outer: bool = False
    of: Type | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Call:
    """A scalar function or operator over typed arguments. The type of a `cast` is its target.

    implicit: Spark inserts this cast itself, so the Spark text does not need it
    """

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    implicit: bool = False
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN value … ELSE otherwise END."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows of a group. `condition` is its FILTER. `count(*)` has no arguments."""

    function: str
    arguments: tuple[Expr, ...]
    condition: Expr | None
    distinct: bool
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Order:
    """A key of ORDER BY, with its default spelled out. `tie`: it breaks the ties of the author's keys."""

    expression: Expr
    descending: bool
    nulls_first: bool
    tie: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Windowed:
    """A function over a window of rows.

    ignore_nulls: true for IGNORE NULLS
    syntax: the OVER that it was read from
    """

    function: str
    arguments: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Order, ...]
    frame: str
    type: Type
    place: Place = field(default=None, compare=False)
    ignore_nulls: bool = False
    syntax: exp.Window | None = field(default=None, compare=False, repr=False)

    @property
    def reaches_values(self) -> bool:
        """True if a bound of the frame is at a distance from the row's value."""
        return re.search(r"^RANGE .*(\d|interval)", self.frame) is not None


@dataclass(frozen=True)
class Subquery:
    """A query used as a value, or in EXISTS or IN.

    correlated: it names columns of the enclosing block, which are parts of the expression to that block
    """

    kind: Choice["scalar", "exists", "in"]
    query: Query
    operand: Expr | None
    type: Type
    place: Place = field(default=None, compare=False)
    correlated: bool = False


@dataclass(frozen=True)
class OverValues:
    """An aggregate over the values of a group that cells keep one by one.

    times: the count of each value
    order: their sort keys, if these are not the value itself
    literals: the further arguments
    """

    function: str
    value: Expr
    times: Expr
    order: tuple[Expr, ...]
    literals: tuple[Constant, ...]
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Merged:
    """The merge of several cells' partials, over the columns that they merge by and, last, their own."""

    merge: Merge
    columns: tuple[Expr, ...]
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class NeedsRecords:
    """A value, or an order, that the rows in FROM do not give. The records below those rows may."""

    reason: str
    way_out: str
    type: Type = VOID
    place: Place = field(default=None, compare=False)


Expr = Constant | Field | Call | Case | Aggregate | Windowed | Subquery | OverValues | Merged | NeedsRecords


@dataclass(frozen=True)
class Output:
    """A column in the result of a query."""

    name: str
    expression: Expr


@dataclass(frozen=True)
class Generator:
    """LATERAL VIEW [OUTER] explode(…): a row for each element of an array or entry of a map.

    columns: the position, if `positions`, then the element, or key and value
    fields: the columns are the fields of its elements, as in inline()
    """

    argument: Expr
    columns: tuple[tuple[str, Type], ...]
    positions: bool
    outer: bool
    alias: str
    place: Place = field(default=None, compare=False)
    fields: bool = False


@dataclass(frozen=True)
class Retained:
    """The retention of a stream in a view that retains: records whose `time` is not before a certain time keep cells.

    longer: the microseconds for which they are kept beyond that
    """

    time: Expr
    longer: int


@dataclass(frozen=True)
class Stream:
    """The records of a source, repeated by the generators. `retained`: None if all of them keep cells."""

    source: str
    alias: str
    place: Place = field(default=None, compare=False)
    generators: tuple[Generator, ...] = ()
    retained: Retained | None = None


@dataclass(frozen=True)
class Read:
    """The rows of another view."""

    view: str
    alias: str
    columns: tuple[tuple[str, Type], ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Constants:
    """VALUES: rows with a value for each column, of the column's type."""

    rows: tuple[tuple[Expr, ...], ...]
    alias: str
    columns: tuple[tuple[str, Type], ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Nested:
    """A subquery or a CTE in FROM. `lateral`: it may name columns of earlier relations."""

    query: Query
    alias: str
    place: Place = field(default=None, compare=False)
    lateral: bool = False


@dataclass(frozen=True)
class Cells:
    """A cell table, in place of the block whose cells it holds. `never_empty`: it has one row at least."""

    table: int
    alias: str
    columns: tuple[tuple[str, Type], ...]
    keys: tuple[str, ...]
    never_empty: bool = False


@dataclass(frozen=True)
class Exploded:
    """The rows of a relation, repeated by the generators."""

    relation: Relation
    generators: tuple[Generator, ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Joined:
    """Two joined relations. `kind` is SQL's word for the join."""

    left: Relation
    right: Relation
    kind: Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    condition: Expr | None
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Hopped:
    """Panes, once for every window that contains them. `pane` is the column of their start.

    words: for cells of blocks, the columns with bits for the panes in which a group has records
    """

    panes: Cells
    windows: Cells
    pane: str
    window: Call
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sessions:
    """Panes with the start of their session.

    within: the columns of the group
    first: the column with the time of a pane's first record
    last: the column with the time of its last record, or of the end that this record sets
    gap: microseconds from `last` to the end
    """

    panes: Cells
    within: tuple[str, ...]
    first: str
    last: str
    gap: int


Named = Stream | Read | Constants | Nested | Cells


AboveCells = Read | Constants | Nested | Cells | Exploded | Joined | Hopped | Sessions
"""The relations of a query that is split: cells are in place of every stream."""


Relation = Stream | AboveCells


@dataclass(frozen=True)
class CellJoin:
    """The join of a block's cells when they are read, before they are merged to its groups.

    relation: the join, including the source
    where: the condition on the joined rows
    """

    relation: Relation
    where: Expr | None


@dataclass(frozen=True)
class Keeping:
    """The split's decisions about the cells of a block over a source, besides its GROUP BY.

    finest: the keys of its cells, if they are finer than its groups
    sessions_of: the keys that have separate sessions, if the block groups by more keys
    sub_keys: the keys that distinguish finer groups within a group
    undecided: the conditions of its WHERE that a record alone does not decide
    join: its join
    """

    finest: tuple[Expr, ...] | None = None
    sessions_of: tuple[Expr, ...] | None = None
    sub_keys: tuple[Expr, ...] = ()
    undecided: Expr | None = None
    join: CellJoin | None = None


PLAINLY = Keeping()
"""The default: a cell per group."""


@dataclass(frozen=True)
class Select:
    """One SELECT block. `group` is None for a block without groups, and () for one group of all rows.

    relation: the FROM, or None without one, which makes one row
    keeping: the decisions about its cells, if it is a block over a source
    syntax: the syntax tree that it was read from
    """

    outputs: tuple[Output, ...]
    relation: Relation | None
    where: Expr | None = None
    group: tuple[Expr, ...] | None = None
    having: Expr | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    place: Place = field(default=None, compare=False)
    limit_place: Place = field(default=None, compare=False)
    keeping: Keeping = field(default_factory=lambda: PLAINLY)
    syntax: exp.Select | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """Names and types of the result's columns."""
        return tuple((o.name, o.expression.type) for o in self.outputs)

    @property
    def undecided(self) -> Expr | None:
        """The conditions of its WHERE that a record alone does not decide. None until the split looks for them."""
        return self.keeping.undecided


@dataclass(frozen=True)
class Combined:
    """UNION [ALL], INTERSECT or EXCEPT of two queries."""

    operator: str
    left: Query
    right: Query
    columns: tuple[tuple[str, Type], ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    place: Place = field(default=None, compare=False)
    limit_place: Place = field(default=None, compare=False)


Query = Select | Combined


TRUE = Constant("true", BOOLEAN)


NULL = Constant(None, VOID)


ONE = Constant("1", BIGINT)


NOW = "now"
"""The call for the current time, which is the time of the reader's transaction."""


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    """The conjunction of two conditions, or the other one if one is None."""
    if left is None or right is None:
        return left if right is None else right
    return Call("and", (left, right), BOOLEAN)


VARIABLE = "->"
"""The relation of a lambda's variable."""


def literal_text(value: Expr) -> str:
    """The text of a literal that is not NULL."""
    assert isinstance(value, Constant)
    assert value.value is not None
    return value.value


def whole_number(value: Expr) -> int:
    """The whole number of a literal that is not NULL."""
    return int(literal_text(value))


def bare_value(value: Expr) -> Expr:
    """The value inside implicit casts."""
    while isinstance(value, Call) and value.implicit:
        value = value.arguments[0]
    return value


def member(value: Expr, name: str, place: Place) -> Expr:
    """A field of a struct or of all structs in an array, or a bound of a window."""
    fields = dict(value.type.fields)
    if value.type.key == STRING and value.type.element is not None:
        fields = {name: value.type.element}
    exact = next((f for f in fields if f.lower() == name.lower()), None)
    if exact is None and value.type.name == "ARRAY" and value.type.element is not None and value.type.element.fields:
        element = Field(VARIABLE, ("each 0",), value.type.element, place=place)
        inner = member(element, name, place)
        function = Call("lambda", (element, inner), inner.type)
        return Call("transform", (value, function), Type("ARRAY", element=inner.type), place=place)
    if exact is None:
        way_out = suggestion(name, fields)
        if value.type == STRING:
            of = ".".join(value.path) if isinstance(value, Field) else "x"
            way_out = f"Write get_json_object({of}, '$.{name}')."
        raise Wrong(place, f"there is no field {name} in {value.type}", way_out)
    if isinstance(value, Call) and value.function in ("window", "named_struct"):
        values = value.arguments if value.function == "window" else value.arguments[1::2]
        return values[list(fields).index(exact)]
    if isinstance(value, Case) and len(value.branches) == 1 and value.otherwise is None:
        ((when, then),) = value.branches
        return Case(((when, member(then, name, place)),), None, fields[exact], place)
    if isinstance(value, Field):
        return Field(value.relation, (*value.path, exact), fields[exact], place=place, of=value.type)
    return Call(".", (value, Constant(exact, STRING)), fields[exact], place=place)


def ungrouped(column: Field) -> Wrong:
    """The refusal of a column that is neither grouped by nor aggregated."""
    way_out = f"Add it to GROUP BY, or aggregate it, for example max({column.path[-1]})."
    return Wrong(column.place, f"{'.'.join(column.path)} is neither grouped nor aggregated", way_out)
