"""Compiles a catalog: sources and tables, then each view after those that it reads, and checks.

`passes.py` compiles one view. A check compiles like a derived view, so that its condition means what it means to Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from sqlglot import exp

from view_algebra.compiled import Catalog, Check, Column, Source, View, reading, renamed_fields, source_name
from view_algebra.declared import Declared, Mistakes, declarations
from view_algebra.errors import Refused
from view_algebra.formats import Decoding
from view_algebra.formats.interface import DirectColumn
from view_algebra.language.above import GROUP_BELOW, Obstacle
from view_algebra.language.quoting import postgres_name, spark_name, spark_path
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.passes import Placed, Symbols, compile_view, final_text, placed, views_read
from view_algebra.records.decoding import FieldOptions
from view_algebra.records.duplicates import counted_text, ids_text
from view_algebra.records.parsing import PrimaryKey, parse_text
from view_algebra.refusals import File, HasObstacle, Mistake, Wrong, refuse_all, span, suggestion
from view_algebra.typed.events import passed_by_table
from view_algebra.written.checks import CLOCK, PUBLISHED, CheckDeclaration, published
from view_algebra.written.clauses import refuse_large, refuse_unread
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import parse
from view_algebra.written.tables import as_view, changing
from view_algebra.written.ways_out import below

T = TypeVar("T")


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
    with _room_for_nesting():
        symbols = _compiled(files, deployed or {})
    return Catalog(sources=dict(symbols.sources), views=dict(symbols.views))


@contextmanager
def _room_for_nesting() -> Iterator[None]:
    """A higher recursion limit: each pair of parentheses takes some twenty nested calls."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


CALLS = 8_000
"""The recursion limit, in nested Python calls: enough for 400 nested parentheses. Spark and Postgres accept more."""


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
        if not _broken(_tables_named(d.select), declared, symbols):
            with mistakes.of(d.file, d.name, d.place):
                symbols = _with_view(d, declared, symbols)
    checks = {}
    for key, check in declared.checks.items():
        if not _broken([check.view, *_tables_named(check.select)], declared, symbols):
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
        for other in _tables_named(d.select):
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
        {**whole, **{t.name: as_view(t, passed_by_table(t.order) if in_log else {}) for t in _tables(declared)}}
        for in_log in (False, True)
    )
    try:
        return compile_view(d, symbols, readings)
    except HasObstacle as over_rows:
        raise _put_below(d, over_rows, symbols) from None


def _refuse_changes(select: exp.Expr, declared: Declared) -> None:
    """Refuses the internal name of a table's changes, which only the table itself reads."""
    for table in select.find_all(exp.Table):
        name = table.name.lower()
        if source_name(name) != name and not _names_a_cte(table):
            way_out = suggestion(name, [*declared.sources, *declared.views])
            raise Wrong(span(table), f"there is no source or view {table.name}", way_out)


def _put_below(d: ViewDeclaration, wrong: HasObstacle, symbols: Symbols) -> Wrong:
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


def _tables_named(select: exp.Expr) -> list[str]:
    """The names in FROM that are not CTEs in reach."""
    return [table.name.lower() for table in select.find_all(exp.Table) if not _names_a_cte(table)]


def _names_a_cte(table: exp.Table) -> bool:
    """True if the name is a CTE of an enclosing query. A CTE sees the CTEs before it, not itself."""
    node: exp.Expr = table
    while (around := node.parent) is not None:
        with_ = around.args.get("with_") if not isinstance(around, exp.With) else None
        ctes = with_.expressions if with_ is not None and node is not with_ else []
        if isinstance(around, exp.With):
            ctes = around.expressions[: around.expressions.index(node)]
        if any(cte.alias.lower() == table.name.lower() for cte in ctes):
            return True
        node = around
    return False


def with_checks(views: Mapping[str, View], checks: Mapping[tuple[str, str], Check]) -> dict[str, View]:
    """The views with their checks, sorted by name. `checks` holds them by view and name."""
    return {
        name: replace(view, checks=tuple(checks[key] for key in sorted(checks) if key[0] == name))
        for name, view in views.items()
    }


def compile_check(d: CheckDeclaration, symbols: Symbols) -> Check:
    """The compiled texts of a check of a compiled view."""
    if d.view not in symbols.views:
        raise Wrong(d.place, f"{d.view} is not a view", _no_view(d.view, symbols.sources, symbols.views))
    view, around = symbols.views[d.view], _with_published(symbols)
    refuse_unread(d.select)
    declared = ViewDeclaration(d.view, d.file, d.place, (), {}, None, {}, d.select, "", d.sql)
    whole = placed(declared, around)
    if whole.cell_tables:
        source = whole.split.leaves[0].source
        raise Wrong(d.place, f"the check reads records of {source}", "Declare a view over them, and read that.")
    read = views_read(whole.split.above)
    now = {published(name): f"{PUBLISHED}.{postgres_name(name)}" for name in symbols.types}
    return Check(
        name=d.name,
        sql=d.sql,
        counts=d.counts,
        blocks=d.enforced and view.properties.get("on_failure", "block") == "block",
        failing=reading(final_text(whole), "analytics", {**now, CLOCK: _NOW}.get),
        reads=tuple(sorted(read & symbols.views.keys())),
    )


def _with_published(symbols: Symbols) -> Symbols:
    """The relations that a check may read: the views, the same views as readers see them now, and the clock."""

    def also(views: Mapping[str, T]) -> dict[str, T]:
        return {**views, **{published(name): fact for name, fact in views.items()}}

    types = also(symbols.types) | {CLOCK: (("now", TIMESTAMP), ("today", DATE))}
    return replace(symbols, types=types, keys=also(symbols.keys), sortings=also(symbols.sortings))


_NOW = "(SELECT now() AS now, CAST(now() AT TIME ZONE 'UTC' AS date) AS today)"


def _no_view(name: str, sources: Collection[str], views: Collection[str]) -> str:
    return "Declare a view over it, and check that." if name in sources else suggestion(name, views)


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
    by = Decoding.declared(d, _read_directly(d))
    told_apart = [(name, kind) for name, kind in d.columns if name in d.unique and d.kind == "stream"]
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
        + parse_text(
            d.columns,
            PrimaryKey(d.unique, d.key_format) if d.kind == "table" else None,
            FieldOptions(
                nulls=d.properties.get("on_bad_field") == "null",
                empty=d.properties.get("empty_as_null") == "true",
                names=renamed_fields(d.properties),
                encodings=d.encodings,
            ),
            d.unique if d.kind == "stream" else d.order[:1] if d.newest_by == "event_time" else (),
            d.values,
            direct=by is not None and bool(by.columns),
        ),
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
    with _room_for_nesting():
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


def names_in(declared: Source | View) -> frozenset[str]:
    """The sources and views that a declaration names, also views whose records are read in place of their rows.

    >>> from view_algebra.passes import EXAMPLE
    >>> names_in(compile_catalog({"c.sql": EXAMPLE}).views["top"])
    frozenset({'clicks'})
    """
    return _names_in(declared.sql) - {declared.name}


@lru_cache(maxsize=1024)
def _names_in(sql: str) -> frozenset[str]:
    return frozenset(_tables_named(_statement(sql)))


def _statement(sql: str) -> exp.Expr:
    """The syntax of one declaration. Raises Refused if this version of Lamina cannot read it."""
    file = File("", sql)
    try:
        with _room_for_nesting():
            [statement] = parse(file)
    except Wrong as wrong:
        raise refuse_all([Mistake(file, wrong.span, "", wrong.reason, wrong.way_out)]) from wrong
    return statement.tree


def under_another_name(sql: str, name: str) -> str:
    """The declaration of a view under another name.

    >>> under_another_name("CREATE VIEW v (a) AS SELECT view.a FROM view", "select")
    'CREATE VIEW `select` (a) AS SELECT view.a FROM view'
    """
    target = next(_statement(sql).find_all(exp.Table)).this
    place = span(target)
    assert place is not None, "the parser keeps the place of a name"
    return f"{sql[: place.start]}{(spark_path if target.quoted else spark_name)(name)}{sql[place.end :]}"
