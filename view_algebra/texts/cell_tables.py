"""A leaf's cell table: Postgres' DDL, the upsert that merges cells into cells, and Spark's partial.

It also writes the indexes that a view requests (`'index' = 'country, placed_at'`), on the columns of its cells.

Each column has its own index, and Postgres combines them. A long text does not fit into a B-tree, so a text that is not
a key gets a radix tree (SP-GiST). A hash index would scan all rows with the same text for every new row. The first key
needs no index, because it leads the unique index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from view_algebra.compiled import ONLY, CellTable, Column, Input, Partial
from view_algebra.engines.spark import hop_bounds, shortened, spark, storable
from view_algebra.language.aggregates import RECORD_KEYS, TypedPartial
from view_algebra.language.expressions import TRUE, Call, Cells, Combined, Field, Joined, Nested, Query, Relation
from view_algebra.language.merges import MERGES
from view_algebra.language.quoting import postgres_name, spark_name
from view_algebra.language.time_windows import Hops, pane
from view_algebra.language.types import BIGINT, STRING, Type
from view_algebra.refusals import Span, Wrong, suggestion
from view_algebra.split.leaves import Kept, Leaf


def indexes(
    asked: str, query: Query, cell_tables: Sequence[CellTable], place: Span | None
) -> dict[str, tuple[str, ...]]:
    """The text after USING in CREATE INDEX, by cell table. `query`: the query over the cells.

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
        cell_columns = list(_in_query(query, name))
        if not cell_columns:
            way_out = "Name a column that is kept as it is. A column of another view is indexed there."
            raise Wrong(place, f"'index' names {name}, which is computed when the view is read", way_out)
        for number, column in cell_columns:
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


INDEXED_BYTES = 2_600
"""Most bytes of a cell's keys: Postgres limits an index entry to 2,704 bytes."""

OTHER_KEY_BYTES = 32
"""Bytes reserved per key: enough for a key that is not a text, and for a text's overhead."""


def longest_text(leaves: Sequence[Leaf]) -> int:
    """Bytes of a text key that fit every table of a view, so that all of them shorten a text alike."""
    room = [
        (INDEXED_BYTES - OTHER_KEY_BYTES * len(leaf.keys)) // max(1, sum(e.type == STRING for _, e in leaf.keys))
        for leaf in leaves
    ]
    return min(room, default=INDEXED_BYTES)


def cell_table(leaf: Leaf, name: str, longest: int) -> CellTable:
    """A leaf's cell table with its three texts. Its name gets the version once all tables of the view are known.

    Text keys of more than `longest` bytes are shortened.
    """
    keys = tuple(_column(key, e.type) for key, e in leaf.keys)
    columns = {kept.partial: postgres_name(kept.name) for kept in leaf.kept if kept.partial is not None}
    partials = tuple(_partial(kept, columns) for kept in leaf.kept)
    since, longer = leaf.retained or ("", 0)
    return CellTable(
        name=name,
        source=leaf.source,
        kind=leaf.kind,
        keys=keys,
        partials=partials,
        partial=_partial_text(leaf, longest),
        cells=_cells_text(leaf, keys, partials),
        merge=_merge_text(leaf, keys, partials),
        where=spark(leaf.where) if leaf.where is not None else "",
        key_inputs=tuple(
            Input(text, e.type.spark) for text, (_, e) in zip(_keys(leaf, longest), leaf.keys, strict=True)
        ),
        partial_inputs=tuple(_input(kept) for kept in leaf.kept),
        generators="\n".join(_lateral_views(leaf)),
        retained=since,
        longer=longer,
        cost=leaf.cost,
        spread="" if leaf.hops is None else _spread(leaf.hops, postgres_name(leaf.keys[0][0])),
    )


def fingerprint(tables: tuple[CellTable, ...], parses: tuple[str, ...]) -> str:
    """The fingerprint of everything that decides the cells: the reading of records, and the three texts.

    >>> fingerprint((), ()) == fingerprint((), ()), len(fingerprint((), ("SELECT 1",)))
    (True, 8)
    """
    texts = [*parses, *(text for t in tables for text in (t.source, t.kind, t.partial, t.cells, t.merge))]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]


def _column(name: str, kind: Type) -> Column:
    return Column(name, kind.staged, kind.postgres)


def _partial(kept: Kept, columns: Mapping[TypedPartial, str]) -> Partial:
    if kept.partial is None:
        return Partial(_column(kept.name, kept.expression.type), "keep")
    return Partial(_column(kept.name, kept.partial.type), kept.partial.merge, _noise(kept.partial, columns))


def _noise(partial: TypedPartial, columns: Mapping[TypedPartial, str]) -> str:
    """SQL of the size of the numbers whose rounding may make up a partial, or an empty text if that is its size."""
    noise = MERGES[partial.merge].noise
    if noise is None:
        return ""

    def spread(mean: TypedPartial) -> str:
        """The column of the squared deviations from a mean."""
        return next((columns[other] for other in columns if other.merged_with[1:] == (mean, mean)), "0")

    merged = (*partial.by, partial)
    return noise([columns[mean] for mean in merged], [spread(mean) for mean in merged])


def _input(kept: Kept) -> Input:
    partial = kept.partial
    if partial is None:
        kind = kept.expression.type
        return Input(storable(kept.expression), kind.staged)
    if partial.counts:
        return Input(
            "1L" if partial.input == TRUE else f"CASE WHEN {spark(partial.input)} THEN 1L ELSE 0L END", "BIGINT"
        )
    if partial.order:
        return _ordered_input(partial)
    if partial.other is not None:
        pair = f"named_struct('x', {spark(partial.input)}, 'y', {spark(partial.other)})"
        return Input(_if_counted(pair, partial), partial.type.spark, "STRUCT<x: DOUBLE, y: DOUBLE>")
    return Input(storable(partial.input), partial.input.type.staged)


def _ordered_input(partial: TypedPartial) -> Input:
    value, kind = storable(partial.input), partial.type.staged
    if partial.type.integral:
        value, kind = f"CAST({value} AS BIGINT)", BIGINT.spark
    order, types = _order(partial), ", ".join(f"o{n}: {e.type.spark}" for n, e in enumerate(partial.order))
    text = _if_counted(f"named_struct('v', {value}, 'o', {order})", partial)
    return Input(text, kind, f"STRUCT<v: {kind}, o: STRUCT<{types}>>")


def _if_counted(text: str, partial: TypedPartial) -> str:
    """The text, or NULL for a record that the partial does not count."""
    return text if partial.when is None else f"CASE WHEN {spark(partial.when)} THEN {text} END"


def _order(partial: TypedPartial) -> str:
    fields = ", ".join(f"'o{n}', {storable(e)}" for n, e in enumerate(partial.order))
    return f"named_struct({fields})"


def _partial_text(leaf: Leaf, longest: int) -> str:
    named = [(text, key) for text, (key, _) in zip(_keys(leaf, longest), leaf.keys, strict=True)]
    named += [(_merged(kept.partial) if kept.partial else storable(kept.expression), kept.name) for kept in leaf.kept]
    columns = ",\n".join("  " + (text if text == spark_name(n) else f"{text} AS {spark_name(n)}") for text, n in named)
    lines = [f"SELECT\n{columns}" if columns else "SELECT 1 AS one", f"FROM {spark_name(leaf.source)}"]
    lines += _lateral_views(leaf)
    if leaf.where is not None:
        lines.append(f"WHERE {spark(leaf.where)}")
    if leaf.kind == "aggregate" and leaf.keys:
        lines.append("GROUP BY " + ", ".join(str(place) for place in range(1, len(leaf.keys) + 1)))
    text = "\n".join(lines)
    return text if leaf.hops is None else _spread_in_spark(text, leaf.hops, spark_name(leaf.keys[0][0]))


def _lateral_views(leaf: Leaf) -> list[str]:
    lines = []
    for number, generator in enumerate(leaf.generators, 1):
        names = ", ".join(spark_name(name) for name, _ in generator.columns)
        argument = generator.argument
        if isinstance(argument, Call) and argument.function == "json_tuple":
            lines.append(f"LATERAL VIEW {spark(argument)} j{number} AS {', '.join(_json_columns(argument, number))}")
            fields = ", ".join(f"'c{n}', {name}" for n, name in enumerate(_json_columns(argument, number)))
            text = f"array(named_struct({fields}))"
        else:
            text = spark(argument)
        function = "posexplode" if generator.positions else "explode"
        view = "LATERAL VIEW OUTER" if generator.outer else "LATERAL VIEW"
        lines.append(f"{view} {function}({text}) g{number} AS {names}")
    return lines


def _json_columns(call: Call, number: int) -> list[str]:
    """The columns of json_tuple(). It is not an expression, so a row of its columns is exploded."""
    return [spark_name(f"json {number} {n}") for n in range(len(call.arguments) - 1)]


def _keys(leaf: Leaf, longest: int) -> list[str]:
    """The keys over a record, with texts shortened that are too long for the index on them."""
    return [
        shortened(text, longest) if e.type == STRING else text for _, e in leaf.keys for text in [storable(pane(e))]
    ]


_LISTED = """\
SELECT {window} AS {key} FROM (
  SELECT {series} AS {key} FROM (
    SELECT coalesce(greatest(first, lag(last) OVER (ORDER BY last, first) + {slide}), first) AS first, last FROM (
      SELECT {first} AS first, {last} AS last FROM (
{panes}
      ) AS panes
    ) AS reach
  ) AS fresh
) AS windows"""
"""The windows that contain panes. A pane adds its windows after the last one of the pane before, up to its own last."""


def _spread(window: Hops, key: str) -> str:
    slide, size = (f"interval '{length} microseconds'" for length in (window.slide, window.size))
    origin = f"timestamptz '1970-01-01 00:00:00+00' + interval '{window.offset} microseconds'"
    return _LISTED.format(
        window=f"{key} + {size}" if window.by_end else key,
        series=f"generate_series(first, last, {slide})",
        slide=slide,
        first=f"date_bin({slide}, {key} - {size}, {origin}) + {slide}",
        last=f"date_bin({slide}, {key}, {origin})",
        panes="{panes}",
        key=key,
    )


def _spread_in_spark(panes: str, window: Hops, key: str) -> str:
    first, last = hop_bounds(key, f"{window.size}L", f"{window.offset}L", f"{window.slide}L")
    return _LISTED.format(
        window=f"timestamp_micros({key} + {window.size}L)" if window.by_end else f"timestamp_micros({key})",
        series=f"explode(CASE WHEN first <= last THEN sequence(first, last, {window.slide}L) ELSE array() END)",
        slide=f"{window.slide}L",
        first=first,
        last=last,
        panes="\n".join(f"        {line}" for line in panes.split("\n")),
        key=key,
    )


def _merged(partial: TypedPartial) -> str:
    """Spark SQL of a partial over the records of a group."""
    if partial.counts:
        return "count(*)" if partial.input == TRUE else f"count_if({spark(partial.input)})"
    return MERGES[partial.merge].spark(*_values(partial))


def _values(partial: TypedPartial) -> list[str]:
    """The inputs of a partial: a value, a value and its order, or two values."""
    if partial.order:
        return [storable(partial.input), _if_counted(_order(partial), partial)]
    if partial.other is not None:
        return [_if_counted(spark(value), partial) for value in (partial.input, partial.other)]
    return [storable(partial.input)]


def _cells_text(leaf: Leaf, keys: tuple[Column, ...], partials: tuple[Partial, ...]) -> str:
    columns = ["touched integer NOT NULL DEFAULT 0"]
    if not keys:
        columns.append(f"{ONLY} boolean NOT NULL DEFAULT true")
    for key, (_, expression) in zip(keys, leaf.keys, strict=True):
        never_null = " NOT NULL" if (key.name, expression.type) in RECORD_KEYS else ""
        columns.append(f"{postgres_name(key.name)} {expression.type.stored}{never_null}")
    for partial, kept in zip(partials, leaf.kept, strict=True):
        kind = kept.partial.type if kept.partial else kept.expression.type
        never_null = " NOT NULL" if kept.partial and kept.partial.counts else ""
        columns.append(f"{postgres_name(partial.column.name)} {kind.stored}{never_null}")
    unique = ", ".join(postgres_name(k.name) for k in keys) or ONLY
    columns.append(f"UNIQUE NULLS NOT DISTINCT ({unique})")
    return "CREATE TABLE {table} (\n" + ",\n".join(f"  {c}" for c in columns) + "\n)"


def _merge_text(leaf: Leaf, keys: tuple[Column, ...], partials: tuple[Partial, ...]) -> str:
    names = [postgres_name(k.name) for k in keys]
    kept = [postgres_name(p.column.name) for p in partials]
    lines = [
        "INSERT INTO {into} AS cell (" + ", ".join(["touched", *names, *kept]) + ")",
        "SELECT " + ", ".join(["{generation}", *names, *kept]),
        "FROM {cells} AS fresh",
    ]
    if leaf.retained is not None:
        column, longer = leaf.retained
        earlier = f"::timestamptz - interval '{longer} microseconds'" if longer else ""
        lines.append(f"WHERE {postgres_name(column)} >= '{{since}}'{earlier}")
    if names:
        lines.append("ORDER BY " + ", ".join(names))
    lines.append(f"ON CONFLICT ({', '.join(names) or ONLY}) DO")
    if leaf.kind == "row" or not kept:
        lines[-1] += " NOTHING"
        return "\n".join(lines)
    lines[-1] += " UPDATE SET"
    columns = {k.partial: name for k, name in zip(leaf.kept, kept, strict=True) if k.partial is not None}
    sets = [
        "touched = excluded.touched",
        *(f"{name} = {_folded(partial, columns)}" for partial, name in columns.items()),
    ]
    lines.append(",\n".join(f"  {s}" for s in sets))
    return "\n".join(lines)


def _folded(partial: TypedPartial, columns: Mapping[TypedPartial, str]) -> str:
    """SQL that merges two partials of a group. NULL, the partial of no values, changes nothing."""
    cell, fresh = ([f"{side}.{columns[other]}" for other in (*partial.by, partial)] for side in ("cell", "excluded"))
    return MERGES[partial.merge].upsert(cell, fresh, partial.type, partial.counts)
