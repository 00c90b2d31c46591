"""A view from its SELECT to its texts: the passes, in order, each from one value to the next.

Written    the author's SELECT
Typed      its meaning: names resolved, types known, every order that decides a result total    typed/
Split      its innermost blocks over sources, and the query over their cells                    split/
Placed     a Split whose upper query Postgres computes as Spark would, over rows or records     placement.py
View       the texts that run                                                                   engines/, texts/
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from view_algebra.compiled import CellTable, Column, Source, View, changes_name, stem
from view_algebra.engines.postgres.query_texts import postgres
from view_algebra.engines.postgres.value_texts import with_lengths
from view_algebra.language.above import Obstacle
from view_algebra.language.aggregates import ADDITIVE, COUNTS, MOMENTS
from view_algebra.language.calendar_bounds import without_infinities
from view_algebra.language.expressions import Aggregate, Call, Query, Read, Select, Stream
from view_algebra.language.lengths import as_numbers
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME
from view_algebra.language.time_windows import hops
from view_algebra.language.types import SYSTEM_COLUMNS, Type, read
from view_algebra.language.walks import every_relation, renamed, walk
from view_algebra.lineage import copied, lineage
from view_algebra.oracle import Edits
from view_algebra.placement import first_obstacle, records_needed
from view_algebra.records.parsing import PSEUDO_COLUMNS, TABLE_COLUMNS
from view_algebra.refusals import HasObstacle, Span, Wrong, span
from view_algebra.split.blocks import split as split_query
from view_algebra.split.leaves import Leaf
from view_algebra.split.reading import with_bounds
from view_algebra.split.retaining import retaining
from view_algebra.texts import calendars
from view_algebra.texts.cell_tables import cell_table, fingerprint, indexes, longest_text
from view_algebra.typed.expressions.scalars import expression
from view_algebra.typed.order.keys import sorting, unique_keys
from view_algebra.typed.queries import query
from view_algebra.typed.scopes import Columns, Context, Keys, Outside, Scope, Sorting
from view_algebra.written.declarations.sources_and_views import SourceDeclaration, ViewDeclaration
from view_algebra.written.tables import changing


@dataclass(frozen=True)
class Symbols:
    """The symbol table: the sources of a catalog, and its views compiled so far, by name.

    declared: the declarations of sources
    sources: the compiled sources
    views: the compiled views
    placed: the compiled views before the texts of their engines were put together
    keys: the unique keys of each view
    sortings: the order of each view's rows
    types: the columns of each view
    """

    declared: Mapping[str, SourceDeclaration]
    sources: Mapping[str, Source]
    views: Mapping[str, View] = field(default_factory=dict)
    placed: Mapping[str, Placed] = field(default_factory=dict)
    keys: Mapping[str, Keys] = field(default_factory=dict)
    sortings: Mapping[str, Sorting] = field(default_factory=dict)
    types: Mapping[str, Columns] = field(default_factory=dict)


ThroughViews = Mapping[str, ViewDeclaration]
"""The views, by name, that are read as the records below their rows instead of as their rows."""


@dataclass(frozen=True)
class Written:
    """A view as its author wrote it, and the reading of the views in its FROM."""

    declaration: ViewDeclaration
    through: ThroughViews = field(default_factory=dict)


@dataclass(frozen=True)
class Typed:
    """The view's meaning: a query under the view's own column names, and the edits of its syntax for the oracle."""

    declaration: ViewDeclaration
    query: Query
    edits: Edits


@dataclass(frozen=True)
class Split:
    """The cells that a view keeps, and the query that reads them.

    typed: the view before
    leaves: the blocks over sources that become cells
    above: the query over their cells
    expires_by: the output that says when old rows leave, empty if all stay
    """

    typed: Typed
    leaves: tuple[Leaf, ...]
    above: Query
    expires_by: str


@dataclass(frozen=True)
class Placed:
    """A split whose leaves Spark computes, and whose query above the cells Postgres computes as Spark does.

    cell_tables: the tables of the leaves' cells, whose names end in the version
    version: the fingerprint of these tables, empty without cells
    avoided: the obstacle that made the view read records below the views in FROM, or None if it reads their rows
    """

    split: Split
    cell_tables: tuple[CellTable, ...]
    version: str
    avoided: Obstacle | None = None


def compile_view(d: ViewDeclaration, symbols: Symbols, readings: Iterable[ThroughViews] = ()) -> Symbols:
    """All passes: the same catalog with one more view compiled.

    with_meaning: Written -> Typed
    into_blocks: Typed -> Split
    placed: the Placed of the first reading that leaves no obstacle
    as_texts: Placed -> View
    """
    whole = placed(d, symbols, readings)
    typed, keys = whole.split.typed, unique_keys(whole.split.above, symbols.keys)
    view = replace(
        as_texts(whole, symbols),
        unique=_sorted_keys(keys),
        never_null=tuple(_aggregates(typed.query, COUNTS)),
        additive=tuple(_additive(typed.query)),
    )
    columns = tuple((name, without_infinities(kind)) for name, kind in typed.query.columns)
    return replace(
        symbols,
        views={**symbols.views, view.name: view},
        placed={**symbols.placed, view.name: whole},
        keys={**symbols.keys, view.name: keys},
        sortings={**symbols.sortings, view.name: sorting(typed.query, symbols.sortings)},
        types={**symbols.types, view.name: columns},
    )


def placed(d: ViewDeclaration, symbols: Symbols, readings: Iterable[ThroughViews] = ()) -> Placed:
    """The view over the rows of other views or, if they leave an obstacle, over records.

    The first reading without an obstacle counts. If there is none, raises Wrong for the obstacle that the rows leave,
    in the author's words.
    """
    over_rows = _placed_over(Written(d), symbols)
    if isinstance(over_rows, Placed):
        return over_rows
    for reading in readings:
        with suppress(Wrong):  # a refusal of records; its place may be in the text of another view
            over_records = _placed_over(Written(d, reading), symbols)
            if isinstance(over_records, Placed):
                return replace(over_records, avoided=over_rows)
    raise HasObstacle(over_rows.place, over_rows.reason, over_rows.way_out)


def _placed_over(written: Written, symbols: Symbols) -> Placed | Obstacle:
    typed = with_meaning(written, symbols)
    if (missing := next(records_needed(typed.query), None)) is not None:
        return missing
    split = into_blocks(typed)
    if (obstacle := first_obstacle(split.above, symbols.keys)) is not None:
        return obstacle
    return Placed(split, *_cell_tables(written.declaration.name, split.leaves, symbols.sources))


def _sorted_keys(keys: Keys) -> tuple[tuple[str, ...], ...]:
    """The keys in a fixed order, those with the fewest columns first."""
    return tuple(sorted((tuple(sorted(key)) for key in keys), key=lambda key: (len(key), key)))


def _aggregates(query: Query, functions: Collection[str]) -> Iterator[str]:
    """The names of outputs that are exactly one of these aggregates."""
    for output in query.outputs if isinstance(query, Select) else ():
        if isinstance(call := output.expression, Aggregate) and call.function in functions:
            yield output.name


def _additive(query: Query) -> Iterator[str]:
    """The outputs that are counts or sums of one source's records, each of which is in one group.

    A record can be in several hopping windows. It can also be in several rows of a join, a UNION ALL or another view.
    SELECT DISTINCT shows equal counts of several groups once.
    """
    if not isinstance(query, Select) or query.distinct:
        return
    if not isinstance(query.relation, Stream) or query.relation.generators:
        return
    if any(isinstance(part, Call) and hops(part) for key in query.group or () for part in walk(key)):
        return
    different = {o.name for o in query.outputs if isinstance(o.expression, Aggregate) and o.expression.distinct}
    yield from (name for name in _aggregates(query, ADDITIVE) if name not in different)


def type_of_function(body: exp.Expr, name: str, takes: Sequence[tuple[str, exp.DataType]]) -> Type:
    """The type of a catalog function. Raises Wrong for a mistake in its expression."""
    parameters = tuple((parameter, kind) for parameter, written in takes if (kind := read(written)) is not None)
    return expression(body, Scope(Outside(_context(Symbols({}, {}), {})), {name: parameters})).type


def _context(symbols: Symbols, through: Mapping[str, ViewDeclaration]) -> Context:
    """The sources and views that a view may read."""
    streams = {name: source for name, source in symbols.declared.items() if source.kind == "stream"}
    tables = {changes_name(name): source for name, source in symbols.declared.items() if source.kind == "table"}
    return Context(
        streams={name: (*PSEUDO_COLUMNS, *source.columns) for name, source in streams.items()}
        | {name: (*PSEUDO_COLUMNS, *TABLE_COLUMNS, *changing(d), *d.columns) for name, d in tables.items()},
        views=symbols.types,
        keys=symbols.keys,
        sortings=symbols.sortings,
        orders={name: source.order for name, source in (streams | tables).items()},
        tables={name: source for name, source in symbols.declared.items() if source.kind == "table"},
        read_through=through,
        expression=expression,
        query=query,
    )


# Written -> Typed: names, types, orders


def with_meaning(written: Written, symbols: Symbols) -> Typed:
    """The view with every name and type resolved, and with its ties broken.

    >>> from view_algebra.compile import stages
    >>> from tests.algebra.outline import outline
    >>> print(outline(stages({"example.sql": EXAMPLE})["top"].split.typed.query))
    SELECT
      clicks.country AS country: STRING
      count(DISTINCT clicks.user_id) AS users: BIGINT
    FROM stream clicks AS clicks
    GROUP BY clicks.country
    ORDER BY count(DISTINCT clicks.user_id) DESC, clicks.country (tie)
    LIMIT 3
    """
    d, context = written.declaration, _context(symbols, written.through)
    return Typed(d, _with_names(query(d.select, Outside(context)), d), context.edits)


def _with_names(query: Query, d: ViewDeclaration) -> Query:
    """The query under the output names that the view declares. No two columns share a name."""
    names = [name for name, _ in query.columns]
    places: list[Span | None] = [d.place] * len(names)
    if d.columns:
        if len(d.columns) != len(names):
            raise Wrong(
                d.columns[-1][1],
                f"the view names {len(d.columns)} columns, but its SELECT has {len(names)}",
                "Name every column, in order, or leave the list out.",
            )
        names, places = [n for n, _ in d.columns], [p for _, p in d.columns]
    elif isinstance(query, Select):
        places = [o.expression.place for o in query.outputs]
    seen: set[str] = set()
    for number, (name, place) in enumerate(zip(names, places, strict=True), 1):
        if not name:
            raise Wrong(
                place,
                f"column {number} has no name",
                "Write … AS name, or name the columns: CREATE VIEW v (a, b) AS ….",
            )
        if name.lower() in seen:
            way_out = f"Write … AS another_name, or leave it out: t.* EXCEPT ({name})."
            raise Wrong(place, f"two columns are named {name}", way_out)
        if name in SYSTEM_COLUMNS:
            raise Wrong(place, f"Postgres has a column {name} of its own in every table", "Write … AS another_name.")
        if len(name.encode()) > LONGEST_POSTGRES_NAME:
            raise Wrong(place, f"{name} is longer than {LONGEST_POSTGRES_NAME} bytes", "Choose a shorter name.")
        seen.add(name.lower())
    return renamed(query, names)


# Typed -> Split: blocks over sources, and the query over their cells


def into_blocks(typed: Typed) -> Split:
    """The query, split where records become cells.

    >>> from view_algebra.compile import stages
    >>> from tests.algebra.outline import outline, leaf_outline
    >>> split = stages({"example.sql": EXAMPLE})["top"].split
    >>> print(leaf_outline(split.leaves[0]))
    a cell per group of clicks
      key country AS country: STRING
      key user_id AS user_id: BIGINT
    >>> print(outline(split.above))
    SELECT
      finer.key_0 AS country: STRING
      count(finer.value_0_0) AS users: BIGINT
    FROM (
      SELECT
        cell.country AS key_0: STRING
        cell.user_id AS value_0_0: BIGINT
      FROM cells 0 AS cell
    ) AS finer
    GROUP BY finer.key_0
    ORDER BY count(finer.value_0_0) DESC, finer.key_0 (tie)
    LIMIT 3
    """
    d = typed.declaration
    expires_by, rows = retaining(typed.query, d.place) if "retain" in d.properties else ("", typed.query)
    above, leaves = split_query(as_numbers(rows))
    if not leaves and not views_read(above):
        raise Wrong(span(d.select), "the SELECT reads nothing", "Name a source or a view in FROM.")
    return Split(typed, leaves, above, expires_by)


def views_read(query: Query) -> set[str]:
    """The names of the views that a query reads."""
    return {relation.view for relation in every_relation(query) if isinstance(relation, Read)}


# Placed -> View: the texts that run


def as_texts(whole: Placed, symbols: Symbols) -> View:
    """The view with every text in the SQL of its engine.

    >>> from view_algebra.compile import compile_catalog
    >>> print(compile_catalog({"example.sql": EXAMPLE}).views["top"].final)
    SELECT
      key_0 AS country,
      count(value_0_0) AS users
    FROM (
      SELECT
        country AS key_0,
        user_id AS value_0_0
      FROM cells.top_cbaf5323
    ) AS finer
    GROUP BY key_0
    ORDER BY users DESC NULLS LAST, country NULLS FIRST
    LIMIT 3
    """
    split, typed, d = whole.split, whole.split.typed, whole.split.typed.declaration
    reads = tuple(sorted(views_read(split.above)))
    own = {leaf.source for leaf in split.leaves}
    through = {source for view in reads for source in symbols.views[view].sources}
    moments = any(node.name.lower() in MOMENTS for node in d.select.find_all(exp.Anonymous))
    return View(
        name=d.name,
        kind=_kind(split.leaves),
        columns=tuple(
            Column(name, kind.spark, kind.postgres, d.comments.get(name) or _inherited(name, typed.query, symbols))
            for name, kind in typed.query.columns
        ),
        comment=d.comment,
        properties=d.properties,
        sql=d.sql,
        select=d.select_text,
        spelled=calendars.in_spark(typed.edits.text(d.select, d.select_text), typed.query),
        lineage=lineage(typed.query),
        rounded=moments or any(symbols.views[view].rounded for view in reads),
        version=whole.version,
        cell_tables=whole.cell_tables,
        final=final_text(whole),
        reads=reads,
        sources=tuple(sorted(own | through)),
        retained=split.expires_by,
        indexes=indexes(d.properties["index"], split.above, whole.cell_tables, d.place)
        if "index" in d.properties
        else {},
    )


def final_text(whole: Placed) -> str:
    """The query over cells and views, in Postgres' SQL."""
    split = whole.split
    final = postgres(with_bounds(split.above), [table.name for table in whole.cell_tables])
    keys = {name for leaf in split.leaves if leaf.kind == "aggregate" for name, _ in leaf.keys}
    shown = calendars.in_postgres(final, split.above, split.typed.query, keys)
    return with_lengths(shown, split.typed.query.columns)


def _kind(leaves: tuple[Leaf, ...]) -> Literal["aggregate", "row", "derived"]:
    if not leaves:
        return "derived"
    return "aggregate" if any(leaf.kind == "aggregate" for leaf in leaves) else "row"


def _inherited(name: str, query: Query, symbols: Symbols) -> str | None:
    """The comment of the source's or view's column that an output copies, or None if the output is computed."""
    if (origin := copied(query, name)) is None:
        return None
    of, column = origin
    columns = (symbols.views.get(of) or symbols.sources[of]).columns
    return next((shown.comment for shown in columns if shown.name.lower() == column), None)


def _cell_tables(
    view: str, leaves: tuple[Leaf, ...], sources: Mapping[str, Source]
) -> tuple[tuple[CellTable, ...], str]:
    """A view's tables of cells, whose names end in its version, and the version."""
    if not leaves:
        return (), ""
    longest = longest_text(leaves)
    tables = tuple(cell_table(leaf, "", longest) for leaf in leaves)
    read = [sources[s] for s in sorted({leaf.source for leaf in leaves})]
    parses = tuple(text for source in read for text in (source.parse, source.counted) if text)
    version = fingerprint(tables, parses)
    names = [f"{stem(view)}_{version}" + (f"_{number}" if number > 1 else "") for number in range(1, len(tables) + 1)]
    return tuple(replace(t, name=name) for t, name in zip(tables, names, strict=True)), version


EXAMPLE = """
CREATE TABLE clicks (user_id BIGINT, country STRING) USING kafka OPTIONS (topic 'clicks', format 'json');
CREATE VIEW top AS
SELECT country, count(DISTINCT user_id) AS users FROM clicks GROUP BY country ORDER BY users DESC LIMIT 3;
"""
"""The catalog in the passes' doctests."""
