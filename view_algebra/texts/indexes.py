"""The indexes that a view requests (`'index' = 'country, placed_at'`), on the columns of its cells.

Each column has its own index, and Postgres combines them. A long text does not fit into a B-tree, so a text that is not
a key gets a radix tree (SP-GiST). A hash index would scan all rows with the same text for every new row. The first key
needs no index, because it leads the unique index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from view_algebra.compiled import CellTable
from view_algebra.language.expressions import Cells, Combined, Field, Joined, Nested, Query, Relation
from view_algebra.language.quoting import postgres_name
from view_algebra.refusals import Span, Wrong, suggestion


def indexes(
    asked: str, query: Query, cell_tables: Sequence[CellTable], place: Span | None
) -> dict[str, tuple[str, ...]]:
    """The text after USING in CREATE INDEX, by cell table; `query`: the query over the cells.

    >>> from view_algebra.compile import compile_catalog
    >>> catalog = compile_catalog({"c.sql": '''
    ...   CREATE TABLE clicks (id BIGINT, page STRING) USING kafka OPTIONS (topic 'clicks', format 'json');
    ...   CREATE VIEW pages TBLPROPERTIES ('index' = 'page, n') AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
    ...   CREATE VIEW lines TBLPROPERTIES ('index' = 'page, id') AS SELECT id, page FROM clicks'''})
    >>> [index for view in catalog.views.values() for index in view.indexes.values()]
    [('spgist (page)', 'btree (id)'), ('btree (count)',)]
    """
    methods: dict[str, tuple[str, ...]] = {}
    types = dict(query.columns)
    for name in dict.fromkeys(word.strip() for word in asked.split(",")):
        if not name:
            way_out = "Separate columns by commas, as in 'country, placed_at'. Leave 'index' out for no index."
            raise Wrong(place, f"'index' = '{asked}' lacks the name of a column", way_out)
        if name not in types:
            raise Wrong(place, f"'index' names {name}, which is not a column", suggestion(name, types))
        if types[name].nested or types[name].name == "BINARY":
            way_out = "Name columns of numbers, texts, times or BOOLEAN."
            raise Wrong(place, f"'index' names {name}, which is {types[name]}", way_out)
        of_cells = list(_in_query(query, name))
        if not of_cells:
            way_out = "Name a column that is kept as it is. A column of another view is indexed there."
            raise Wrong(place, f"'index' names {name}, which is computed when the view is read", way_out)
        for number, column in of_cells:
            table, keys = cell_tables[number], [key.name for key in cell_tables[number].keys]
            if column not in keys[:1]:  # the first key leads the unique index
                method = "spgist" if types[name].name == "STRING" and column not in keys else "btree"
                methods[table.name] = (*methods.get(table.name, ()), f"{method} ({postgres_name(column)})")
    return {table: tuple(dict.fromkeys(listed)) for table, listed in methods.items()}


def _in_query(query: Query, name: str) -> Iterator[tuple[int, str]]:
    """The cell tables, by number, and their columns, from which a query's column comes unchanged."""
    if isinstance(query, Combined):
        place = [column for column, _ in query.columns].index(name)
        for side in (query.left, query.right):
            yield from _in_query(side, side.columns[place][0])
        return
    column = next(output.expression for output in query.outputs if output.name == name)
    if isinstance(column, Field) and len(column.path) == 1 and query.relation is not None:
        yield from _in_relation(query.relation, column.relation, column.path[0])


def _in_relation(relation: Relation, of: str, name: str) -> Iterator[tuple[int, str]]:
    match relation:
        case Cells(table=table, alias=alias, columns=columns) if alias == of and name in dict(columns):
            yield table, name
        case Nested(query=query, alias=alias) if alias == of and name in dict(query.columns):
            yield from _in_query(query, name)
        case Joined(left=left, right=right):
            yield from _in_relation(left, of, name)
            yield from _in_relation(right, of, name)
        case _:
            return
