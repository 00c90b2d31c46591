"""Compiles a catalog: sources and tables, then each view after those that it reads, and checks.

`passes.py` compiles one view, and `checks_of_views.py` a check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from view_algebra.checks_of_views import compile_check, with_checks
from view_algebra.compiled import Catalog, Column, Source, View, renamed_fields, source_name
from view_algebra.declared import Declared, Mistakes, declarations
from view_algebra.errors import Refused
from view_algebra.formats import Decoding
from view_algebra.formats.interface import DirectColumn
from view_algebra.language.above import GROUP_BELOW, Obstacle
from view_algebra.passes import Placed, Symbols, compile_view
from view_algebra.records.decoding import FieldOptions
from view_algebra.records.duplicates import counted_text, ids_text
from view_algebra.records.parsing import parse_text
from view_algebra.records.record import PrimaryKey, Record
from view_algebra.refusals import HasObstacle, Wrong, refuse_all, span, suggestion
from view_algebra.typed.order.events import order_columns_of_table
from view_algebra.written.clauses import refuse_large, refuse_unread
from view_algebra.written.declarations.sources_and_views import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import room_for_nesting
from view_algebra.written.naming import names_a_cte, names_in, tables_named
from view_algebra.written.tables import as_view, changing
from view_algebra.written.ways_out.replacements import below


def compile_catalog(files: Mapping[str, str], deployed: Mapping[str, Source] | None = None) -> Catalog:
    """All declarations of a catalog, compiled. `files` holds each `.sql` file's text by its path.

    deployed: sources that another version of Lamina may have compiled. A stream with UNIQUE keeps its deployed reading

    Raises Refused with every mistake: file, line, the author's line with a caret, the reason, the way out.

    >>> catalog = compile_catalog({"c.sql": '''
    ...   CREATE TABLE clicks (user_id BIGINT) USING kafka OPTIONS (topic 'clicks', format 'json');
    ...   CREATE VIEW by_user AS SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id'''})
    >>> print(catalog.views["by_user"].cell_tables[0].partial)
    SELECT
      user_id,
      count(*) AS count
    FROM clicks
    GROUP BY 1
    """
    with room_for_nesting():
        symbols = _compiled(files, deployed or {})
    return Catalog(sources=dict(symbols.sources), views=dict(symbols.views))


def _compiled(files: Mapping[str, str], deployed: Mapping[str, Source] = MappingProxyType({})) -> Symbols:
    """Sources, then tables, then views, each after those that it reads, then checks of views."""
    mistakes = Mistakes()
    declared = declarations(files, mistakes)
    sources = {name: _as_deployed(_source(d), deployed.get(name)) for name, d in sorted(declared.sources.items())}
    symbols = Symbols(declared.sources, sources)
    for table in _tables(declared):
        if not mistakes.has(table.name):
            with mistakes.of(table.file, table.name):
                symbols = _with_table(table, symbols)
    for d in _in_reading_order(declared.views, mistakes):
        if not _broken(tables_named(d.select), declared, symbols):
            with mistakes.of(d.file, d.name, d.place):
                symbols = _with_view(d, declared, symbols)
    checks = {}
    for key, check in declared.checks.items():
        if not _broken([check.view, *tables_named(check.select)], declared, symbols):
            with mistakes.of(check.file, check.view, check.place):
                checks[key] = compile_check(check, symbols)
    if mistakes.noted:
        raise refuse_all(mistakes.noted)
    return replace(symbols, views=with_checks(symbols.views, checks))


def _tables(declared: Declared) -> list[SourceDeclaration]:
    return [source for source in declared.sources.values() if source.kind == "table"]


def _broken(names: Iterable[str], declared: Declared, symbols: Symbols) -> frozenset[str]:
    """Declared names that are not compiled. What reads them shows its own mistakes once they are right."""
    streams = {source.name for source in declared.sources.values() if source.kind == "stream"}
    return (declared.names & {*names}) - symbols.types.keys() - streams


def _in_reading_order(views: Mapping[str, ViewDeclaration], mistakes: Mistakes) -> list[ViewDeclaration]:
    """The views, each after those that it reads. Views that read each other in a circle are a mistake."""
    ordered: dict[str, ViewDeclaration] = {}
    circular: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        d = views[name]
        if name in ordered or name in circular:
            return
        if name in above:
            circular.update(above)
            circle = " reads ".join([*above[above.index(name) :], name])
            wrong = Wrong(d.place, f"views read each other in a circle: {circle}", "Break the circle.")
            mistakes.add(d.file, name, wrong)
            return
        for other in tables_named(d.select):
            if other in views:
                visit(other, (*above, name))
        ordered[name] = d

    for name in sorted(views):
        visit(name, ())
    return list(ordered.values())


def _with_table(d: SourceDeclaration, symbols: Symbols) -> Symbols:
    try:
        return compile_view(as_view(d), symbols)
    except Wrong as wrong:  # its place is in the text of the view that the compiler wrote
        raise Wrong(d.place, wrong.reason, wrong.way_out) from wrong


def _with_view(d: ViewDeclaration, declared: Declared, symbols: Symbols) -> Symbols:
    """Compiles a view over the rows of other views or, if these leave an obstacle, over their records.

    For a table, the last reading also has the log positions of its newest records. A view that retains is not read
    through, because it does not hold every row.
    """
    refuse_large(d.select)
    refuse_unread(d.select)
    _refuse_changes(d.select, declared)
    whole = {name: view for name, view in declared.views.items() if "retain" not in view.properties}
    readings = (
        {**whole, **{t.name: as_view(t, order_columns_of_table(t.order) if in_log else {}) for t in _tables(declared)}}
        for in_log in (False, True)
    )
    try:
        return compile_view(d, symbols, readings)
    except HasObstacle as over_rows:
        raise _with_rewrite(d, over_rows, symbols) from None


def _refuse_changes(select: exp.Expr, declared: Declared) -> None:
    """Refuses the internal name of a table's changes, which only the table itself reads."""
    for table in select.find_all(exp.Table):
        name = table.name.lower()
        if source_name(name) != name and not names_a_cte(table):
            way_out = suggestion(name, [*declared.sources, *declared.views])
            raise Wrong(span(table), f"there is no source or view {table.name}", way_out)


def _with_rewrite(d: ViewDeclaration, wrong: HasObstacle, symbols: Symbols) -> Wrong:
    """A refusal of an expression above the cells, with a rewrite for Spark as the way out if there is one."""
    rewrite = below(d.select, wrong.span) if wrong.way_out == GROUP_BELOW else None
    if rewrite is None:
        return wrong
    text, select = rewrite
    try:
        compile_view(replace(d, select=select), symbols)
    except Wrong:
        return wrong
    return Wrong(wrong.span, wrong.reason, f"Write {text}.")


def _as_deployed(new: Source, old: Source | None) -> Source:
    """A stream with UNIQUE, read as deployed unless its declaration requires another reading.

    The ids of its events are known for the records that were good when they came. Another parse could find other
    records good, whose ids are unknown.
    """
    if old is None or not old.ids or (today := recompiled(old)) is None:
        return new
    return replace(new, parse=old.parse, counted=old.counted, ids=old.ids) if new.reads_as(today) else new


def recompiled(source: Source) -> Source | None:
    """A deployed source, compiled by this version of Lamina, or None if it refuses the declaration."""
    try:
        return compile_catalog({"": source.sql}).sources[source.name]
    except Refused:
        return None


def _source(d: SourceDeclaration) -> Source:
    by = Decoding.declared(d.format, d.key_format, d.properties, _read_directly(d))
    told_apart = [(name, kind) for name, kind in d.columns if name in d.unique and d.kind == "stream"]
    record = Record(
        key=PrimaryKey(d.unique, d.key_format) if d.kind == "table" else None,
        options=FieldOptions(
            nulls=d.properties.get("on_bad_field") == "null",
            empty=d.properties.get("empty_as_null") == "true",
            names=renamed_fields(d.properties),
            encodings=d.encodings,
        ),
        identifying=d.unique if d.kind == "stream" else d.order[:1] if d.newest_by == "event_time" else (),
        values=d.values,
    )
    return Source(
        name=d.name,
        kind=d.kind,
        topic=d.topic,
        columns=tuple(Column(n, t.spark, t.postgres, d.comments.get(n)) for n, t in d.columns),
        event_time=d.event_time,
        unique=d.unique,
        comment=d.comment,
        properties=d.properties,
        sql=d.sql,
        format=d.format,
        key_format=d.key_format,
        changing=tuple(Column(n, t.spark, t.postgres) for n, t in changing(d)) if d.kind == "table" else (),
        parse=(by.comment if by is not None else "")
        + parse_text(d.columns, record, direct=by is not None and bool(by.columns)),
        ids=ids_text(told_apart) if told_apart else "",
        counted=counted_text(told_apart) if told_apart else "",
    )


def _read_directly(d: SourceDeclaration) -> Sequence[DirectColumn]:
    """The columns for a decoder that reads them without JSON, or none if a column is encoded in the records."""
    if any(d.encodings.decodes_in(kind) for _, kind in d.columns):
        return ()
    fields = renamed_fields(d.properties)
    return [DirectColumn(name, fields.get(name, name), kind.spark) for name, kind in d.columns]


def stages(files: Mapping[str, str]) -> Mapping[str, Placed]:
    """The views of a catalog before their texts are put together: their meaning, split and placement."""
    with room_for_nesting():
        return _compiled(files).placed


def avoided(catalog: Catalog, view: str) -> Obstacle | None:
    """The obstacle that makes a view read records below the views in its FROM, or None if it reads their rows.

    Also None if this version of Lamina refuses the declarations, which another version may have deployed.
    """
    declared: dict[str, str] = {}
    wanted = [view]
    while wanted:
        name = wanted.pop()
        written = catalog.views.get(name) or catalog.sources.get(name)
        if written is None or name in declared:
            continue
        declared[name] = written.sql
        if isinstance(written, View):
            wanted += names_in(written)
    try:
        return stages(declared)[view].avoided
    except Refused:
        return None
