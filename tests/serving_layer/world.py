"""A serving layer whose records are known: two streams, three views, and the invariant as a function.

Records are numbers. `sums` and `counts` are fed by the stream `a`, `both` by `a` and `b` (a table of cells each). What
their cells must be is computed here from the records themselves, so nothing of the serving layer tests itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from master_log.kafka.tails import Tails
from master_log.offsets import OffsetRange, Offsets, TopicPartition
from serving_layer.catalog import lookup
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from serving_layer.postgres.bookkeeping import generation
from serving_layer.postgres.cells import StagedCells
from serving_layer.postgres.copying import CopyRows
from serving_layer.postgres.database import Database
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import generations, loading, progress, rebuilds
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit
from serving_layer.promise.source_queries import Topic
from view_algebra import compile_catalog
from view_algebra.compiled import CellTable

FILES = {
    "sources.sql": """
        CREATE TABLE a (k STRING, n BIGINT) USING kafka OPTIONS (topic 'a', format 'json');
        CREATE TABLE b (k STRING, n BIGINT) USING kafka OPTIONS (topic 'b', format 'json');
    """,
    "sums.sql": "CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;",
    "counts.sql": "CREATE VIEW counts AS SELECT count(*) AS c, sum(n) AS s FROM a;",
    "both.sql": """
        CREATE VIEW both AS
        SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k
        UNION ALL
        SELECT k, count(*) AS c, sum(n) AS s FROM b GROUP BY k;
    """,
}

PARTITIONS = {"a": 2, "b": 1}

Record = tuple[str | None, int]
Cells = dict[tuple[object, ...], tuple[int, int]]


def fold(records: Iterable[Record], *, keyed: bool) -> Cells:
    """The cells of records: count and sum per key, or of all."""
    count: Counter[tuple[object, ...]] = Counter()
    total: Counter[tuple[object, ...]] = Counter()
    for key, number in records:
        group = (key,) if keyed else ()
        count[group] += 1
        total[group] += number
    return {group: (count[group], total[group]) for group in count}


@dataclass
class World:
    """The log of each topic partition, offset by offset, and a serving layer over it. None is a transaction marker."""

    database: Database
    files: dict[str, str] = field(default_factory=lambda: dict(FILES))
    log: dict[TopicPartition, list[Record | None]] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    tables: dict[str, CellTable] = field(default_factory=dict)

    def deploy(self) -> None:
        """Applies the catalog at offset 0 and takes both queries over."""
        with self.database.begin() as connection:
            self.apply(connection)
            for name in PARTITIONS:
                self.fences[name] = progress.take_over(connection, name, "the test")

    def apply(self, connection: Connection) -> None:
        """Applies the catalog at offset 0."""
        topics = {}
        for name, partitions in PARTITIONS.items():
            topics[name] = empty(f"id-{name}", name, partitions)
            for number in range(partitions):
                self.log.setdefault(TopicPartition(name, number), [])
        self._compile()
        deploying.apply(connection, Target(self.files, self.catalog, topics, prune=True))

    def _compile(self) -> None:
        self.catalog = compile_catalog(self.files)
        self.tables |= {table.name: table for view in self.catalog.views.values() for table in view.cell_tables}

    def begin_change(self, **files: str) -> dict[str, int]:
        """Opens a generation of each new version of a changed catalog. Returns them by view."""
        self.files |= {f"{name}.sql": sql for name, sql in files.items()}
        self._compile()
        with self.database.begin() as connection:
            changes = deploying.plan(connection, self.catalog)
            id = rebuilds.begin(connection, [], purpose=rebuilds.APPLY)
            deploying.open_changed(connection, self.catalog, changes, {}, {}, id)
            return {opened.view: opened.id for opened in lookup.generations_of_rebuild(connection, id)}

    def end_change(self, ready: Mapping[str, int], *, allow_break: bool = False) -> None:
        """Moves the views of a changed catalog to their new versions, which are live."""
        with self.database.begin() as connection:
            deploying.apply(connection, Target(self.files, self.catalog, {}, allow_break=allow_break), ready)
            for name in ready:
                generations.retire(connection, generations.superseded(connection, name))
            if (left := rebuilds.left_by_apply(connection)) is not None:
                rebuilds.end(connection, left, RebuildState.DONE)

    def change(self, *, allow_break: bool = False, **files: str) -> None:
        """Changes the catalog: computes new versions, and moves to them."""
        ready = self.begin_change(**files)
        for id in ready.values():
            self.load(id)
        self.go_live(*ready.values())
        self.end_change(ready, allow_break=allow_break)

    def append(self, topic: str, partition: int, *records: Record | None) -> None:
        """Appends records and markers to a partition."""
        self.log[TopicPartition(topic, partition)].extend(records)

    def end(self, query: str) -> Offsets:
        """The ends of the query's partitions."""
        return Offsets({at: len(log) for at, log in self.log.items() if at.topic == query})

    def progress(self, query: str) -> Offsets:
        """Progress, read from Postgres."""
        with self.database.begin() as connection:
            return progress.read(connection, [query])

    def records(self, query: str, range: OffsetRange) -> list[Record]:
        """The records of a range."""
        return [
            record
            for at in range.end
            for record in self.log[at][range.start.get(at, 0) : range.end[at]]
            if record is not None
        ]

    def micro_batch(self, query: str, start: Offsets, end: Offsets, *, fence: int | None = None) -> MicroBatch:
        """A micro-batch for the tables of cells that are maintained now."""
        range_ = OffsetRange(Offsets({at: start.get(at, 0) for at in end}), end)
        records = self.records(query, range_)
        with self.database.begin() as connection:
            names = maintained(connection, query)
        staged = [self._staged(number, name, records) for number, name in enumerate(sorted(names))]
        token = self.fences[query] if fence is None else fence
        return MicroBatch(query, token, range_, frozenset(names), staged, None, None)

    def commit(self, batch: MicroBatch) -> Outcome:
        """Commits a micro-batch by the real transaction."""
        return self.database.retrying(lambda connection: commit(connection, batch))

    def advance(self, query: str, to: Offsets | None = None) -> Outcome:
        """Commits everything from progress to `to`, or to the end."""
        return self.commit(self.micro_batch(query, self.progress(query), to or self.end(query)))

    def open(self, view: str) -> int:
        """Opens a building generation."""
        with self.database.begin() as connection:
            return generations.open_building(connection, view, rebuild=None).id

    def rebuild(self, *views: str) -> tuple[int, dict[str, int]]:
        """Begins a rebuild, and makes a live generation of each view. Returns its id, and theirs by view."""
        with self.database.begin() as connection:
            id = rebuilds.begin(connection, views)
            opened = {name: generations.open_building(connection, name, rebuild=id).id for name in views}
        for new in opened.values():
            self.load(new)
        self.go_live(*opened.values())
        return id, opened

    def load(self, id: int) -> None:
        """Loads the batch view: the cells of all records below the generation's cut."""
        with self.database.begin() as connection:
            opened = lookup.get(connection, id)
        for name, query in opened.tables.items():
            with self.database.begin() as connection:
                attempt = loading.begin_attempt(connection, id, name)
                cut = lookup.cut_of(connection, id, query)
            records = self.records(query, OffsetRange(Offsets(dict.fromkeys(cut, 0)), cut))
            columns, rows = self._rows(name, records)
            loading.load_part(
                self.database.url.set(drivername="postgresql").render_as_string(hide_password=False),
                generation=id,
                name=name,
                attempt=attempt,
                part=0,
                columns=tuple(columns),
                rows=[f"{row}\n".encode() for row in rows],
            )
            with self.database.begin() as connection:
                loading.complete(connection, id, name, attempt, {0})

    def go_live(self, *ids: int) -> None:
        """Absorbs the realtime table, then goes live."""
        for id in ids:
            generations.absorb(self.database, id)
        self.database.retrying(lambda connection: generations.go_live(connection, ids))

    def hand_over(self, view: str, id: int) -> None:
        """Publishes a generation."""
        with self.database.begin() as connection:
            generations.hand_over(connection, {view: id})

    def cells(self, connection: Connection, name: str, table: str) -> Cells:
        """The rows of the table of cells named `name`."""
        shown = self._table(name)
        columns = ", ".join(f'"{column.name}"' for column in (*shown.keys, *(p.column for p in shown.partials)))
        rows = connection.execute(text(f"SELECT {columns} FROM {table}")).all()
        width = len(shown.keys)
        return {tuple(row[:width]): (int(row[width]), int(row[width + 1])) for row in rows}

    def expected(self, name: str, below: Offsets) -> Cells:
        """The cells of all records below a vector of offsets."""
        shown = self._table(name)
        end = Offsets({at: offset for at, offset in below.items() if at.topic == shown.source})
        records = self.records(shown.source, OffsetRange(Offsets(dict.fromkeys(end, 0)), end))
        return fold(records, keyed=bool(shown.keys))

    def _table(self, name: str):  # type: ignore[no-untyped-def]
        return self.tables[name]

    def _rows(self, name: str, records: list[Record]) -> tuple[list[str], list[str]]:
        shown = self._table(name)
        keyed = bool(shown.keys)
        columns = [column.name for column in shown.keys] + [partial.column.name for partial in shown.partials]
        rows = []
        for group, (count, total) in fold(records, keyed=keyed).items():
            key = ("" if group[0] is None else f'"{group[0]}"') + "," if keyed else ""
            rows.append(f"{key}{count},{total}")
        return columns, rows

    def _staged(self, number: int, name: str, records: list[Record]) -> StagedCells:
        columns, rows = self._rows(name, records)
        types = ", ".join(f'"{c}" {"text" if c == "k" else "bigint"}' for c in columns)
        listed = ", ".join(f'"{c}"' for c in columns)
        table = f"staged_{number}_{len(columns)}"
        return StagedCells(
            ddl=f"CREATE TEMP TABLE IF NOT EXISTS {table} ({types}) ON COMMIT DELETE ROWS",
            table=table,
            rows=CopyRows("".join(row + "\n" for row in rows).encode()),
            read={name: f"(SELECT {listed} FROM {table})"},
        )


def landing(to: Offsets, queries: Iterable[str], tails: Tails | None = None) -> dict[str, tuple[Offsets, Tails]]:
    """The landing point of a leap, by query: each reads the topic of its name."""
    return {name: (Offsets({at: end for at, end in to.items() if at.topic == name}), tails or {}) for name in queries}


def maintained(connection: Connection, query: str) -> set[str]:
    """The tables of cells that a query maintains now."""
    from serving_layer.promise.micro_batch import maintained as fed

    return {table.cell_table for table in fed(connection, query)}


def empty(id: str, name: str, partitions: int = 1) -> Topic:
    """A topic of this name and id that holds no records."""
    return Topic(id, Offsets.of(name, dict.fromkeys(range(partitions), 0)))


def assert_invariant(world: World) -> None:
    """In one snapshot: cells(g) = partial(all records below progress), for every live generation g.

    A building generation whose batch view is loaded holds the same in its cells and realtime tables together. The
    published generation of a view is live.
    """
    with world.database.snapshot() as connection:
        published = lookup.published(connection)
        states = {}
        for opened in lookup.find(connection, generation.c.state != "retired"):
            states[opened.id] = opened.state
            below = progress.read(connection, opened.queries)
            for name in opened.tables:
                if opened.state == "live":
                    cells = world.cells(connection, name, opened.places[name])
                    assert cells == world.expected(name, below), f"generation {opened.id} of {opened.view}"
        for view, id in published.items():
            assert states.get(id) == "live", f"{view} is read from generation {id}"


def shown(world: World, view: str) -> list[tuple[object, ...]]:
    """The rows that an analyst reads, sorted."""
    with world.database.snapshot() as connection:
        rows = connection.execute(text(f"SELECT * FROM analytics.{view}")).all()
    return sorted((tuple(row) for row in rows), key=repr)
