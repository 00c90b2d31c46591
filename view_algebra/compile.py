"""From the texts of a catalog to its compiled sources, views and checks: its declarations, and their order.

`passes.py` compiles one view. A check compiles like a derived view, so that its condition means what it means to Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from sqlglot import exp

from view_algebra.compiled import Catalog, Check, Column, Source, View, reading, renamed_fields, source_name
from view_algebra.errors import Refused
from view_algebra.formats import Decoding
from view_algebra.formats.interface import DirectColumn
from view_algebra.language.above import GROUP_BELOW, Obstacle
from view_algebra.language.quoting import postgres_name, spark_name, spark_path
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.passes import Known, Placed, compile_view, final_text, placed, type_of_function, views_read
from view_algebra.records.duplicates import counted_text, ids_text
from view_algebra.records.fields import FieldOptions
from view_algebra.records.parsing import PrimaryKey, parse_text
from view_algebra.refusals import File, HasObstacle, Mistake, Span, Wrong, refuse_all, span, suggestion
from view_algebra.typed.events import passed_by_table
from view_algebra.typed.scalars import WITH_RULES_OF_THEIR_OWN
from view_algebra.written.catalog_functions import (
    FunctionDeclaration,
    calls_of,
    expanded,
    function_declaration,
    is_function,
    written_out,
)
from view_algebra.written.checks import CLOCK, PUBLISHED, CheckDeclaration, check_declaration, published
from view_algebra.written.clauses import refuse_large, refuse_unread
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration, declaration
from view_algebra.written.dialect import Statement, parse
from view_algebra.written.tables import as_view, changing
from view_algebra.written.ways_out import below

T = TypeVar("T")

_NOW = "(SELECT now() AS now, CAST(now() AT TIME ZONE 'UTC' AS date) AS today)"


def compile_check(d: CheckDeclaration, known: Known) -> Check:
    """The compiled texts of a check of a compiled view."""
    view, around = known.views[d.view], _with_published(known)
    refuse_unread(d.select)
    declared = ViewDeclaration(d.view, d.file, d.place, (), {}, None, {}, d.select, "", d.sql)
    whole = placed(declared, around)
    if whole.cell_tables:
        source = whole.split.leaves[0].source
        raise Wrong(d.place, f"the check reads records of {source}", "Declare a view over them, and read that.")
    read = views_read(whole.split.above)
    now = {published(name): f"{PUBLISHED}.{postgres_name(name)}" for name in known.types}
    return Check(
        name=d.name,
        sql=d.sql,
        counts=d.counts,
        blocks=d.enforced and view.properties.get("on_failure", "block") == "block",
        failing=reading(final_text(whole), "analytics", {**now, CLOCK: _NOW}.get),
        reads=tuple(sorted(read & known.views.keys())),
    )


def with_checks(views: Mapping[str, View], checks: Mapping[tuple[str, str], Check]) -> dict[str, View]:
    """The views with their checks, sorted by name. `checks` holds them by view and name."""
    return {
        name: replace(view, checks=tuple(checks[key] for key in sorted(checks) if key[0] == name))
        for name, view in views.items()
    }


def _with_published(known: Known) -> Known:
    """The relations that a check may read: the views, the same views as readers see them now, and the clock."""

    def also(views: Mapping[str, T]) -> dict[str, T]:
        return {**views, **{published(name): fact for name, fact in views.items()}}

    types = also(known.types) | {CLOCK: (("now", TIMESTAMP), ("today", DATE))}
    return replace(known, types=types, keys=also(known.keys), sortings=also(known.sortings))


def compile_catalog(files: Mapping[str, str], deployed: Mapping[str, Source] | None = None) -> Catalog:
    """All declarations of a catalog, compiled. `files` holds each `.sql` file's text by its path.

    deployed: sources that another Lamina may have compiled. A stream with UNIQUE keeps its deployed reading

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
        known = _compiled(files, deployed or {})
    return Catalog(sources=dict(known.sources), views=dict(known.views))


def of_today(source: Source) -> Source | None:
    """A deployed source, compiled by this Lamina, or None if it refuses the declaration."""
    try:
        return compile_catalog({"": source.sql}).sources[source.name]
    except Refused:
        return None


def stages(files: Mapping[str, str]) -> Mapping[str, Placed]:
    """The views of a catalog before their texts are put together: their meaning, split and placement."""
    with _room_for_nesting():
        return _compiled(files).placed


def avoided(catalog: Catalog, view: str) -> Obstacle | None:
    """The obstacle that makes a view read records below the views in its FROM, or None if it reads their rows.

    None too if this Lamina refuses the declarations, which another one may have deployed.
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
    """The sources and views that a declaration names. A view computed from records reads only the sources below.

    >>> from view_algebra.passes import EXAMPLE
    >>> names_in(compile_catalog({"c.sql": EXAMPLE}).views["top"])
    frozenset({'clicks'})
    """
    return _names_in(declared.sql) - {declared.name}


@lru_cache(maxsize=1024)
def _names_in(sql: str) -> frozenset[str]:
    return frozenset(_tables_named(_statement(sql)))


def _statement(sql: str) -> exp.Expr:
    """The syntax of one declaration. Raises Refused if this Lamina cannot read it."""
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
"""The recursion limit, in nested Python calls. Spark and Postgres accept deeper nesting than that."""


def _too_deep(place: Span | None) -> Wrong:
    way_out = "Compute parts of it in subqueries, and write many comparisons with OR as IN (…)."
    return Wrong(place, "nested too deeply", way_out)


def _compiled(files: Mapping[str, str], deployed: Mapping[str, Source] = MappingProxyType({})) -> Known:
    work = _Work()
    written = [(file, work.parsed(file)) for file in (File(path, files[path]) for path in sorted(files))]
    for file, statements in written:
        work.read_functions(file, statements)
    work.check_functions()
    for file, statements in written:
        work.read(file, statements)
    work.check_names()
    sources = {name: _as_deployed(_source(d), deployed.get(name)) for name, d in sorted(work.sources.items())}
    work.compile_views(sources)
    known = replace(work.known, views=with_checks(work.known.views, work.compile_checks()))
    if work.mistakes:
        raise refuse_all(work.mistakes)
    return known


def _as_deployed(new: Source, old: Source | None) -> Source:
    """A stream with UNIQUE, read as deployed unless its declaration requires another reading.

    The ids of its events are known for the records that were good when they came. Another parse could find other
    records good, whose ids are unknown.
    """
    if old is None or not old.ids or (today := of_today(old)) is None:
        return new
    return replace(new, parse=old.parse, counted=old.counted, ids=old.ids) if new.reads_as(today) else new


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


_Declared = SourceDeclaration | ViewDeclaration | CheckDeclaration | FunctionDeclaration


@dataclass
class _Work:
    """The declarations of a catalog and their mistakes. A declaration in `broken` is not compiled."""

    sources: dict[str, SourceDeclaration] = field(default_factory=dict)
    views: dict[str, ViewDeclaration] = field(default_factory=dict)
    checks: dict[tuple[str, str], CheckDeclaration] = field(default_factory=dict)
    functions: dict[str, FunctionDeclaration] = field(default_factory=dict)
    wrong_functions: set[str] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    known: Known = field(default_factory=lambda: Known({}, {}))

    def wrong(self, file: File, subject: str, wrong: Wrong) -> None:
        self.mistakes.append(Mistake(file, wrong.span, subject, wrong.reason, wrong.way_out))

    def _declared_twice(self, file: File, subject: str, place: Span | None, first: _Declared, what: str = "") -> None:
        """Refuses a second declaration of one name."""
        line = first.file.line(first.place.start) if first.place else 1
        reason = f"{what}declared already in {first.file.path}:{line}"
        self.wrong(file, subject, Wrong(place, reason, "Give one of them another name."))

    # pass 1: declarations

    def parsed(self, file: File) -> list[Statement]:
        try:
            return parse(file)
        except Wrong as wrong:
            self.wrong(file, "", wrong)
        except RecursionError:
            self.wrong(file, "", _too_deep(None))
        return []

    def read_functions(self, file: File, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if not is_function(statement.tree):
                continue
            try:
                function = function_declaration(file, statement, WITH_RULES_OF_THEIR_OWN)
            except Wrong as wrong:
                self.wrong(file, _name_of(statement.tree), wrong)
                continue
            first = self.functions.setdefault(function.name, function)
            if first is not function:
                self._declared_twice(file, function.name, function.place, first)

    def check_functions(self) -> None:
        """Types each function by itself, so that a mistake is reported at the function, not at each call."""
        left, wrong = dict(self.functions), set[str]()
        while left:
            ready = [d for d in left.values() if not calls_of(d.body, left) - {d.name}]
            for d in ready or list(left.values()):  # all that are left call each other in a circle
                del left[d.name]
                if calls_of(d.body, self.functions) & wrong:
                    wrong.add(d.name)
                    continue
                try:
                    type_of_function(written_out(d, self.functions), d.name, d.takes)
                except Wrong as mistake:
                    wrong.add(d.name)
                    self.wrong(d.file, d.name, mistake)
        self.wrong_functions = wrong

    def _written_out(self, file: File, statement: Statement) -> Statement | None:
        """A statement with the catalog's functions expanded, or None if one of them is wrong."""
        if calls_of(statement.tree, self.functions) & self.wrong_functions:
            self.broken.add(_name_of(statement.tree))
            return None
        try:
            return expanded(statement, self.functions)
        except Wrong as wrong:
            name = _name_of(statement.tree)
            self.wrong(file, name, wrong)
            self.broken.add(name)
            return None

    def read(self, file: File, statements: Iterable[Statement]) -> None:
        others = (self._written_out(file, statement) for statement in statements if not is_function(statement.tree))
        for statement in filter(None, others):
            if isinstance(statement.tree, exp.Alter):
                self._read_check(file, statement)
                continue
            name = _name_of(statement.tree)
            before = len(self.mistakes)
            try:
                declared = declaration(file, statement, lambda w, n=name: self.wrong(file, n, w))  # type: ignore[misc]
            except Wrong as wrong:
                self.wrong(file, name, wrong)
                self.broken.add(name)
                continue
            if len(self.mistakes) > before and isinstance(declared, SourceDeclaration) and not declared.columns:
                self.broken.add(name)
            first = self.sources.get(declared.name) or self.views.get(declared.name)
            if first is not None:
                self._declared_twice(file, declared.name, declared.place, first)
            elif isinstance(declared, SourceDeclaration):
                self.sources[declared.name] = declared
            else:
                self.views[declared.name] = declared

    def _read_check(self, file: File, statement: Statement) -> None:
        try:
            check = check_declaration(file, statement)
        except Wrong as wrong:
            self.wrong(file, statement.tree.this.name if statement.tree.this else "", wrong)
            return
        first = self.checks.setdefault((check.view, check.name), check)
        if first is not check:
            self._declared_twice(file, check.view, check.place, first, f"a check {check.name} is ")

    def check_names(self) -> None:
        topics: dict[tuple[str, str, str], SourceDeclaration] = {}
        for source in self.sources.values():
            start = source.properties.get("start", "earliest")
            other = topics.setdefault((source.topic, source.kind, start), source)
            if other is not source:
                self.wrong(
                    source.file,
                    source.name,
                    Wrong(
                        source.topic_place,
                        f"the topic {source.topic!r} is the {source.kind} {other.name} already",
                        f"Read {other.name} in views, or name another topic.",
                    ),
                )

    # pass 2: views, each after those that it reads

    def compile_views(self, sources: Mapping[str, Source]) -> None:
        self.known = Known(self.sources, sources)
        for table in (source for source in self.sources.values() if source.kind == "table"):
            if any(mistake.subject == table.name for mistake in self.mistakes):
                self.broken.add(table.name)
            else:
                self._table(table)
        for name in sorted(self.views):
            self._view(name, ())

    def _table(self, d: SourceDeclaration) -> None:
        try:
            self.known = compile_view(as_view(d), self.known)
        except Wrong as wrong:
            self.broken.add(d.name)
            self.wrong(d.file, d.name, Wrong(d.place, wrong.reason, wrong.way_out))

    def _view(self, name: str, above: tuple[str, ...]) -> None:
        if name in self.known.views or name in self.broken:
            return
        d = self.views[name]
        if name in above:
            cycle = " reads ".join([*above[above.index(name) :], name])
            self.broken |= set(above)
            self.wrong(d.file, name, Wrong(d.place, f"views read each other in a circle: {cycle}", "Break the circle."))
            return
        for other in _tables_named(d.select):
            if other in self.views:
                self._view(other, (*above, name))
        if name in self.broken:
            return
        if any(other in self.broken for other in _tables_named(d.select)):
            self.broken.add(name)  # its own mistakes show only once the views that it reads are right
            return
        try:
            self._compile(d)
        except Wrong as wrong:
            self.broken.add(name)
            self.wrong(d.file, name, Wrong(wrong.span or d.place, wrong.reason, wrong.way_out))
        except RecursionError:
            self.broken.add(name)
            self.wrong(d.file, name, _too_deep(d.place))

    def _compile(self, d: ViewDeclaration) -> None:
        """Compiles a view over the rows of other views or, if these leave an obstacle, over their records.

        For a table, the last reading also has the log positions of its newest records. A view that retains is not read
        through, because it does not hold every row.
        """
        refuse_large(d.select)
        refuse_unread(d.select)
        self._refuse_changes(d.select)
        whole = {name: view for name, view in self.views.items() if "retain" not in view.properties}
        readings = ({**whole, **self._tables(in_order=in_order)} for in_order in (False, True))
        try:
            self.known = compile_view(d, self.known, readings)
        except HasObstacle as over_rows:
            raise _put_below(d, over_rows, self.known) from None

    def _refuse_changes(self, select: exp.Expr) -> None:
        """Refuses the internal name of a table's changes, which only the table itself reads."""
        for table in select.find_all(exp.Table):
            name = table.name.lower()
            if source_name(name) != name and not _names_a_cte(table):
                way_out = suggestion(name, [*self.sources, *self.views])
                raise Wrong(span(table), f"no source or view {table.name}", way_out)

    def _tables(self, *, in_order: bool) -> dict[str, ViewDeclaration]:
        """The tables as views of their records, with the records' log positions if `in_order`."""
        tables = [source for source in self.sources.values() if source.kind == "table"]
        return {table.name: as_view(table, passed_by_table(table.order) if in_order else {}) for table in tables}

    # pass 3: checks of views

    def compile_checks(self) -> dict[tuple[str, str], Check]:
        """The checks by view and name. A broken view's checks are skipped until it is fixed."""
        compiled = {}
        for key, check in self.checks.items():
            if {check.view, *_tables_named(check.select)} & self.broken:
                continue
            try:
                if check.view not in self.known.views:
                    raise Wrong(
                        check.place, f"{check.view} is not a view", _no_view(check.view, self.sources, self.known.views)
                    )
                compiled[key] = compile_check(check, self.known)
            except Wrong as wrong:
                self.wrong(check.file, check.view, Wrong(wrong.span or check.place, wrong.reason, wrong.way_out))
        return compiled


def _put_below(d: ViewDeclaration, wrong: HasObstacle, known: Known) -> Wrong:
    """A refusal of an expression above the cells, with a rewrite for Spark as the way out if there is one."""
    rewrite = below(d.select, wrong.span) if wrong.way_out == GROUP_BELOW else None
    if rewrite is None:
        return wrong
    text, select = rewrite
    try:
        compile_view(replace(d, select=select), known)
    except Wrong:
        return wrong
    return Wrong(wrong.span, wrong.reason, f"Write {text}.")


def _no_view(name: str, sources: Collection[str], views: Collection[str]) -> str:
    return "Declare a view over it, and check that." if name in sources else suggestion(name, views)


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


def _name_of(statement: exp.Expr) -> str:
    table = statement.this.find(exp.Table) if isinstance(statement, exp.Create) and statement.this else None
    return table.name if table is not None else ""
