"""Typed expressions and queries: what the author's SQL is once every name is found and every type is known.

Two expressions are equal when they mean the same over the same columns; where they stand in the file does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Choice

from sqlglot import exp

from view_algebra.compiled import Merge
from view_algebra.language.types import BIGINT, BOOLEAN, VOID, Type
from view_algebra.refusals import Span

Place = Span | None


@dataclass(frozen=True)
class Constant:
    """A literal; `value` is its text, None is NULL. `suffixed`: does the author say its type, as in `2L`?"""

    value: str | None
    type: Type
    place: Place = field(default=None, compare=False)
    suffixed: bool = False


@dataclass(frozen=True)
class Field:
    """A column of a relation in FROM, or a field inside a nested column of it.

    bound: the greatest absolute value it can take, where known; a count of records stays far below 2^63.
    outer: is it a column of the block around the subquery that it stands in? of: the type that has it as a field.
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
    """A scalar function or operator over typed arguments; `cast` has its target as type.

    implicit: Spark inserts this cast itself, so that the Spark text need not show it.
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
    """An aggregate over the rows of a group; `condition` is its FILTER. `count(*)` has no arguments."""

    function: str
    arguments: tuple[Expr, ...]
    condition: Expr | None
    distinct: bool
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Order:
    """A key of ORDER BY, its default spelled out; `tie`: it breaks the ties that its author's keys leave."""

    expression: Expr
    descending: bool
    nulls_first: bool
    tie: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Windowed:
    """A function over a window of rows; `ignore_nulls`: as IGNORE NULLS says."""

    function: str
    arguments: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Order, ...]
    frame: str
    type: Type
    place: Place = field(default=None, compare=False)
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Subquery:
    """A query used as a value, or in EXISTS or IN.

    correlated: does it name columns of the block around it? To that block they are parts of the expression.
    """

    kind: Choice["scalar", "exists", "in"]
    query: Query
    operand: Expr | None
    type: Type
    place: Place = field(default=None, compare=False)
    correlated: bool = False


@dataclass(frozen=True)
class OverValues:
    """An aggregate over the values of a group that are kept one by one; `times` says how often each came.

    order: what they are put in order by, where that is not the value itself. literals: the further arguments.
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
    """The partials of several cells as one, of the columns that they are merged by and, last, their own."""

    merge: Merge
    columns: tuple[Expr, ...]
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class NeedsRecords:
    """A value, or an order, that the rows in FROM do not give; the records below those rows may."""

    reason: str
    way_out: str
    type: Type = VOID
    place: Place = field(default=None, compare=False)


Expr = Constant | Field | Call | Case | Aggregate | Windowed | Subquery | OverValues | Merged | NeedsRecords


@dataclass(frozen=True)
class Output:
    """A column that a query gives."""

    name: str
    expression: Expr


@dataclass(frozen=True)
class Generator:
    """LATERAL VIEW [OUTER] explode(…): a row for each element of an array or entry of a map.

    columns: what it gives: the position, if `positions`, then the element, or key and value.
    fields: does it give the fields of its elements, as inline() does?
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
    """Of which records cells are kept, where a view retains: of those whose `time` is not before a certain time.

    longer: for how many microseconds they are kept beyond that.
    """

    time: Expr
    longer: int


@dataclass(frozen=True)
class Stream:
    """The records of a source, each as often as the generators say; `retained`: None where cells of all are kept."""

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
    """VALUES: rows of as many values as there are columns, each of its column's type."""

    rows: tuple[tuple[Expr, ...], ...]
    alias: str
    columns: tuple[tuple[str, Type], ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Nested:
    """A subquery or a CTE in FROM. `lateral`: it may name columns of what stands before it."""

    query: Query
    alias: str
    place: Place = field(default=None, compare=False)
    lateral: bool = False


@dataclass(frozen=True)
class Cells:
    """A table of cells, in the place of the block whose cells it holds. `one`: it gives one row even when empty."""

    table: int
    alias: str
    columns: tuple[tuple[str, Type], ...]
    keys: tuple[str, ...]
    one: bool = False


@dataclass(frozen=True)
class Exploded:
    """The rows of a relation, each as often as the generators say."""

    relation: Relation
    generators: tuple[Generator, ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Joined:
    """Two relations joined; `kind` as SQL writes it."""

    left: Relation
    right: Relation
    kind: Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    condition: Expr | None
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Hopped:
    """Panes, each once for every window that it lies in; `pane` is the column of their start.

    words: the columns that say in which panes of a block a group was seen, where the cells are of blocks.
    """

    panes: Cells
    windows: Cells
    pane: str
    window: Call
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sessions:
    """Panes with the start of the session that each is in.

    within: the columns of the group. first, last: the columns with the times of a pane's first record and of its last,
    or of the end that this sets; `gap`: µs from `last` to the end.
    """

    panes: Cells
    within: tuple[str, ...]
    first: str
    last: str
    gap: int


Named = Stream | Read | Constants | Nested | Cells


Relation = Named | Exploded | Joined | Hopped | Sessions


@dataclass(frozen=True)
class Beside:
    """What the cells of a block over a source are joined with when they are read, before they are merged to its groups.

    relation: the join, with the source in its place. where: the condition on what is joined.
    """

    relation: Relation
    where: Expr | None


@dataclass(frozen=True)
class Keeping:
    """How cells of a block over a source are kept, beside what it groups by; the split decides it.

    finest: the keys of its cells, where they are finer than its groups. sessions_of: of a block by sessions, what these
    are sessions of, where it groups by more. sub_keys: of finer groups, the keys that tell those of one group apart.
    undecided: the conditions of its WHERE that a record alone does not decide. beside: what it joins.
    """

    finest: tuple[Expr, ...] | None = None
    sessions_of: tuple[Expr, ...] | None = None
    sub_keys: tuple[Expr, ...] = ()
    undecided: Expr | None = None
    beside: Beside | None = None


PLAINLY = Keeping()
"""A cell per group."""


@dataclass(frozen=True)
class Select:
    """One SELECT block. `group` is None where nothing is grouped, () for one group of everything.

    relation: what FROM reads; None where there is no FROM, which gives one row.
    keeping: how cells of it are kept, where it is a block over a source.
    syntax: what it was read from.
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
        """Names and types of what it gives."""
        return tuple((o.name, o.expression.type) for o in self.outputs)

    @property
    def undecided(self) -> Expr | None:
        """The conditions of its WHERE that a record alone does not decide; None until the split looks for them."""
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
"""The call of a function that tells the time, which is that of the reader's transaction."""


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    """The conjunction of two conditions, either of which may be missing."""
    if left is None or right is None:
        return left if right is None else right
    return Call("and", (left, right), BOOLEAN)
