"""From the texts of a catalog to the SQL texts of its sources and views: the compiler, one visible chain of passes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from view_algebra.aggregates import MOMENTS
from view_algebra.cells import cell_table, longest_text, version_of
from view_algebra.clauses import refuse_unread
from view_algebra.compiled import Catalog, CellTable, Column, Source, View
from view_algebra.declarations import SourceDeclaration, ViewDeclaration, declaration
from view_algebra.determinism import Keys, refuse_ties, unique_keys
from view_algebra.dialect import parse, span, spelled
from view_algebra.expressions import (
    Combined,
    Exploded,
    Joined,
    Nested,
    Query,
    Read,
    Relation,
    Select,
    Stream,
    Subquery,
    parts,
    renamed,
    walk,
)
from view_algebra.leaves import Leaf, split
from view_algebra.lengths import as_numbers
from view_algebra.lineage import lineage
from view_algebra.names import Columns
from view_algebra.postgres import Reading
from view_algebra.postgres import query as postgres_query
from view_algebra.records import PSEUDO_COLUMNS, QUARANTINED, parse_text
from view_algebra.refusals import File, Mistake, Span, Wrong, refuse_all
from view_algebra.resolve import Resolver
from view_algebra.ties import Sorting, sorting
from view_algebra.types import DATE, SYSTEM_COLUMNS, TIMESTAMP, TIMESTAMP_NTZ, Type
from view_algebra.windows import pane, with_bounds


def compile_catalog(files: Mapping[str, str]) -> Catalog:
    """All declarations of a catalog, compiled; `files` gives each `.sql` file's text by its path.

    Raises Refused with every mistake there is: file, line, the author's line with a caret, the reason, the way out.

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
    work = _Work()
    for path in sorted(files):
        work.read(File(path, files[path]))
    work.check_names()
    sources = {name: _source(d) for name, d in sorted(work.sources.items())}
    views = work.compile_views(sources)
    if work.mistakes:
        raise refuse_all(work.mistakes)
    return Catalog(sources=sources, views=views)


def _source(d: SourceDeclaration) -> Source:
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
        parse=parse_text(d.columns),
        quarantined=QUARANTINED,
    )


@dataclass
class _Work:
    """What is known while a catalog is compiled."""

    sources: dict[str, SourceDeclaration] = field(default_factory=dict)
    views: dict[str, ViewDeclaration] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    compiled: dict[str, View] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    sortings: dict[str, Sorting] = field(default_factory=dict)
    types: dict[str, Columns] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def wrong(self, file: File, subject: str, wrong: Wrong) -> None:
        self.mistakes.append(Mistake(file, wrong.span, subject, wrong.reason, wrong.way_out))

    # pass 1: declarations

    def read(self, file: File) -> None:
        try:
            statements = parse(file)
        except Wrong as wrong:
            self.wrong(file, "", wrong)
            return
        for statement in statements:
            name = _name_of(statement.tree)
            before = len(self.mistakes)
            try:
                found = declaration(file, statement, lambda w, n=name: self.wrong(file, n, w))  # type: ignore[misc]
            except Wrong as wrong:
                self.wrong(file, name, wrong)
                self.broken.add(name)
                continue
            if len(self.mistakes) > before and isinstance(found, SourceDeclaration) and not found.columns:
                self.broken.add(name)
            known = self.sources.get(found.name) or self.views.get(found.name)
            if known is not None:
                line = known.file.line(known.place.start) if known.place else 1
                self.wrong(
                    file,
                    found.name,
                    Wrong(
                        found.place, f"declared already in {known.file.path}:{line}", "Give one of them another name."
                    ),
                )
            elif isinstance(found, SourceDeclaration):
                self.sources[found.name] = found
            else:
                self.views[found.name] = found

    def check_names(self) -> None:
        topics: dict[str, SourceDeclaration] = {}
        for source in self.sources.values():
            other = topics.setdefault(source.topic, source)
            if other is not source:
                self.wrong(
                    source.file,
                    source.name,
                    Wrong(
                        source.topic_place,
                        f"the topic {source.topic!r} is the source {other.name} already",
                        f"Read {other.name} in views, or name another topic.",
                    ),
                )

    # pass 2: views, each after those that it reads

    def compile_views(self, sources: Mapping[str, Source]) -> dict[str, View]:
        for name in sorted(self.views):
            self._view(name, sources, ())
        return dict(self.compiled)

    def _view(self, name: str, sources: Mapping[str, Source], above: tuple[str, ...]) -> None:
        if name in self.compiled or name in self.broken:
            return
        d = self.views[name]
        if name in above:
            cycle = " reads ".join([*above[above.index(name) :], name])
            self.broken |= set(above)
            self.wrong(d.file, name, Wrong(d.place, f"views read each other in a circle: {cycle}", "Break the circle."))
            return
        for other in _tables_named(d.select):
            if other in self.views:
                self._view(other, sources, (*above, name))
        if name in self.broken:
            return
        if any(other in self.broken for other in _tables_named(d.select)):
            self.broken.add(name)  # its own mistakes can only be seen when what it reads is right
            return
        try:
            self._compile(d, sources)
        except Wrong as wrong:
            self.broken.add(name)
            self.wrong(d.file, name, Wrong(wrong.span or d.place, wrong.reason, wrong.way_out))

    def _compile(self, d: ViewDeclaration, sources: Mapping[str, Source]) -> None:
        """Compiles a view over the rows of others or, where Postgres cannot compute with them, over their records."""
        refuse_unread(d.select)
        try:
            self._compile_over(d, sources, {})
        except Wrong:
            if not any(other in self.views for other in _tables_named(d.select)):
                raise
            with suppress(Wrong):
                self._compile_over(d, sources, self.views)
                return
            raise

    def _compile_over(
        self, d: ViewDeclaration, sources: Mapping[str, Source], read_through: Mapping[str, ViewDeclaration]
    ) -> None:
        streams: dict[str, Columns] = {
            n: (*PSEUDO_COLUMNS, *s.columns) for n, s in self.sources.items() if s.kind == "stream"
        }
        tables = frozenset(n for n, s in self.sources.items() if s.kind == "table")
        times = {n: s.event_time for n, s in self.sources.items() if s.kind == "stream"}
        select = d.select.copy()
        resolved = Resolver(streams, self.types, self.keys, self.sortings, tables, times, read_through).query(select)
        named = as_numbers(_with_names(resolved, d))
        above, leaves = split(named)
        if not leaves and not views_read(above):
            raise Wrong(span(d.select), "the SELECT reads nothing", "Name a source or a view in FROM.")
        refuse_ties(above, self.keys)
        retained, since = _retained(d, named) if "retain" in d.properties else ("", None)
        cell_tables, version = _cell_tables(d.name, leaves, sources, since)
        final = postgres_query(with_bounds(above), Reading([t.name for t in cell_tables]))
        reads = tuple(sorted(views_read(above)))
        own = {leaf.source for leaf in leaves}
        through = {s for view in reads for s in self.compiled[view].sources}
        self.keys[d.name] = unique_keys(above, self.keys)
        self.sortings[d.name] = sorting(named, self.sortings)
        self.types[d.name] = named.columns
        self.compiled[d.name] = View(
            name=d.name,
            kind=_kind(leaves),
            columns=tuple(_column(n, t, d.comments.get(n)) for n, t in named.columns),
            comment=d.comment,
            properties=d.properties,
            sql=d.sql,
            select=d.select_text,
            spelled=spelled(select) or d.select_text,
            lineage=lineage(named),
            rounded=any(node.name.lower() in MOMENTS for node in d.select.find_all(exp.Anonymous))
            or any(self.compiled[view].rounded for view in reads),
            version=version,
            cell_tables=cell_tables,
            final=final,
            reads=reads,
            sources=tuple(sorted(own | through)),
            retained=retained,
        )


def _retained(d: ViewDeclaration, query: Query) -> tuple[str, int]:
    """The output, and the place among the group's keys, of the one time that a view over a source groups by."""
    relation = query.relation if isinstance(query, Select) else None
    below = relation.relation if isinstance(relation, Exploded) else relation
    if isinstance(query, Select) and query.group and isinstance(below, Stream):
        every = (*parts(query), *(part for key in query.group for part in walk(key)))
        asked = next((part for part in every if isinstance(part, Subquery)), None)
        if asked is not None:  # what it answers may be of long ago
            raise Wrong(asked.place, "retain beside a subquery", "Put the subquery into a view over this one.")
        shown = {output.expression: output.name for output in query.outputs}
        keys = list(dict.fromkeys(query.group))
        times = [n for n, key in enumerate(keys) if key.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and pane(key) == key]
        if len(times) == 1 and keys[times[0]] in shown:
            return shown[keys[times[0]]], times[0]
    way_out = "Select and GROUP BY one, as date_trunc('day', ts) or window(ts, '1 hour').start, or leave retain out."
    raise Wrong(d.place, "retain without one time that the view groups a source's records by, and shows", way_out)


def _kind(leaves: tuple[Leaf, ...]) -> Literal["aggregate", "row", "derived"]:
    if not leaves:
        return "derived"
    return "aggregate" if any(leaf.kind == "aggregate" for leaf in leaves) else "row"


def _column(name: str, kind: Type, comment: str | None) -> Column:
    return Column(name, kind.spark, kind.postgres, comment)


def _cell_tables(
    view: str, leaves: tuple[Leaf, ...], sources: Mapping[str, Source], since: int | None
) -> tuple[tuple[CellTable, ...], str]:
    """The tables of cells of a view, their names ending in its version."""
    if not leaves:
        return (), ""
    longest = longest_text(leaves)
    tables = tuple(cell_table(leaf, "", longest, since) for leaf in leaves)
    parses = tuple(sources[s].parse for s in sorted({leaf.source for leaf in leaves}))
    version = version_of(tables, parses)
    names = [f"{_stem(view)}_{version}" + (f"_{number}" if number > 1 else "") for number in range(1, len(tables) + 1)]
    return tuple(replace(t, name=name) for t, name in zip(tables, names, strict=True)), version


def _stem(view: str) -> str:
    """What the names of a view's tables begin with, so that they fit Postgres' 63 bytes: its own, shortened if need be.

    >>> _stem("revenue"), _stem("revenue_of_each_customer_by_country_and_month")
    ('revenue', 'revenue_of_each_customer_by_fe211e6e')
    """
    digest = hashlib.sha256(view.encode()).hexdigest()[:8]
    return view if len(view) <= LONGEST_STEM else f"{view[: LONGEST_STEM - len(digest) - 1]}_{digest}"


LONGEST_STEM = 36
"""Bytes; after them come a version, and the numbers of a table, a generation and a micro-batch."""


def _with_names(query: Query, d: ViewDeclaration) -> Query:
    """The query with the output names that the view declares; every column has a name of its own."""
    names = [name for name, _ in query.columns]
    places: list[Span | None] = [d.place] * len(names)
    if d.columns:
        if len(d.columns) != len(names):
            raise Wrong(
                d.columns[-1][1],
                f"the view names {len(d.columns)} columns, its SELECT gives {len(names)}",
                "Name every column, in order, or leave the list out.",
            )
        names, places = [n for n, _ in d.columns], [p for _, p in d.columns]
    elif isinstance(query, Select):
        places = [o.expression.place for o in query.outputs]
    seen: set[str] = set()
    kinds = [kind for _, kind in query.columns]
    for number, (name, place, kind) in enumerate(zip(names, places, kinds, strict=True), 1):
        if not name:
            raise Wrong(
                place,
                f"column {number} has no name",
                "Write … AS name, or name the columns: CREATE VIEW v (a, b) AS ….",
            )
        if name.lower() in seen:
            raise Wrong(place, f"two columns are named {name}", "Write … AS another_name.")
        if kind.length:
            way_out = "Write timestampdiff(SECOND, b, a), datediff(a, b), or CAST(a - b AS BIGINT)."
            raise Wrong(place, f"{name} is an {kind}, a length of time", way_out)
        if name in SYSTEM_COLUMNS:
            raise Wrong(place, f"Postgres has a column {name} of its own in every table", "Write … AS another_name.")
        if len(name.encode()) > 63:
            raise Wrong(place, f"{name} is longer than 63 bytes", "Choose a shorter name.")
        seen.add(name.lower())
    return renamed(query, names)


def views_read(query: Query) -> set[str]:
    """The names of the views that a query reads."""
    if isinstance(query, Combined):
        return views_read(query.left) | views_read(query.right)
    inner = {view for part in parts(query) if isinstance(part, Subquery) for view in views_read(part.query)}
    return inner | _relations_read(query.relation)


def _relations_read(relation: Relation | None) -> set[str]:
    match relation:
        case Read():
            return {relation.view}
        case Nested():
            return views_read(relation.query)
        case Joined():
            on = () if relation.condition is None else walk(relation.condition)
            asked = {view for part in on if isinstance(part, Subquery) for view in views_read(part.query)}
            return asked | _relations_read(relation.left) | _relations_read(relation.right)
        case Exploded():
            of = (part for each in relation.generators for part in walk(each.argument))
            asked = {view for part in of if isinstance(part, Subquery) for view in views_read(part.query)}
            return asked | _relations_read(relation.relation)
    return set()


def _tables_named(select: exp.Expr) -> list[str]:
    return [t.name.lower() for t in select.find_all(exp.Table)]


def _name_of(statement: exp.Expr) -> str:
    table = statement.this.find(exp.Table) if isinstance(statement, exp.Create) and statement.this else None
    return table.name if table is not None else ""
