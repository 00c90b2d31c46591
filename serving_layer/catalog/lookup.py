"""Finding generations: by id, by view, by rebuild, and as published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, any_, func, select, text

from master_log.kafka.tails import Tails
from master_log.offsets import Cut, Offsets, TopicPartition
from serving_layer.postgres.bookkeeping import (
    cell_table,
    cut,
    generation,
    generation_cells,
    preview,
    previewed,
    publication,
    rebuild,
    view,
)
from serving_layer.postgres.states import GenerationState, RebuildState
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Generation:
    """A generation of a view, with its tables of cells by the query that feeds them and the places of its cells.

    since: the beginning of the oldest groups it keeps, or None if it keeps all
    was_shown: True if readers have ever read it
    """

    id: int
    view: str
    version: str
    state: GenerationState
    rebuild: int | None
    since: datetime | None
    was_shown: bool
    tables: Mapping[str, str]
    places: Mapping[str, str]

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries that feed the generation, in locking order."""
        return tuple(sorted(set(self.tables.values())))


def get(connection: Connection, id: int) -> Generation:
    """The generation with this id. Raises if there is none."""
    matching = find(connection, generation.c.id == id)
    if not matching:
        raise LaminaError(f"There is no generation {id}", way_out="`lamina status` lists the generations.")
    return matching[0]


def find(connection: Connection, *where: object) -> list[Generation]:
    """The generations that meet all conditions, oldest first."""
    rows = connection.execute(select(generation).where(*where).order_by(generation.c.id)).all()  # type: ignore[arg-type]
    tables: dict[int, dict[str, str]] = {row.id: {} for row in rows}
    places: dict[int, dict[str, str]] = {row.id: {} for row in rows}
    for id, name, fed_by, place in connection.execute(
        select(generation_cells.c.generation, cell_table.c.name, cell_table.c.query, generation_cells.c.place)
        .join(cell_table, cell_table.c.name == generation_cells.c.cell_table)
        .where(generation_cells.c.generation.in_(tables))
        .order_by(cell_table.c.name)
    ):
        tables[id][name], places[id][name] = fed_by, place
    return [
        Generation(
            row.id,
            row.view,
            row.version,
            row.state,
            row.rebuild,
            row.since,
            row.shown_at is not None,
            tables[row.id],
            places[row.id],
        )
        for row in rows
    ]


def cut_of(connection: Connection, id: int, query: str) -> Cut:
    """A generation's cut of one of the queries that feed it."""
    rows = connection.execute(
        select(cut.c.topic, cut.c.partition, cut.c.offset).where(cut.c.generation == id, cut.c.query == query)
    )
    return Offsets({TopicPartition(topic, partition): offset for topic, partition, offset in rows})


def tails_of(connection: Connection, id: int, query: str) -> Tails:
    """Kafka's tails below a generation's cut, for one of the queries that feed it."""
    rows = connection.execute(
        select(cut.c.topic, cut.c.partition, cut.c.tail).where(cut.c.generation == id, cut.c.query == query)
    )
    return {TopicPartition(topic, partition): tail for topic, partition, tail in rows if tail is not None}


def cuts(connection: Connection, opened: Iterable[Generation]) -> dict[str, tuple[Offsets, Tails]]:
    """The cuts of generations, with Kafka's last batches below, by the query that feeds them."""
    fed = [(new.id, name) for new in opened for name in new.queries]
    return {name: (cut_of(connection, id, name), tails_of(connection, id, name)) for id, name in fed}


def published(connection: Connection) -> dict[str, int]:
    """The published generation of each view."""
    return {row.view: row.generation for row in connection.execute(select(publication))}


def sizes(connection: Connection) -> dict[str, int]:
    """The bytes of each view's published cells, with their indexes."""
    size = func.sum(func.pg_total_relation_size(func.to_regclass(generation_cells.c.place)))
    by_view = select(publication.c.view, size).join(
        generation_cells, generation_cells.c.generation == publication.c.generation
    )
    return {view: int(bytes or 0) for view, bytes in connection.execute(by_view.group_by(publication.c.view))}


def sparks(connection: Connection) -> dict[str, str]:
    """The version of Spark that computed each view's published generation, if known.

    The column is read through JSON, because the database of an older Lamina lacks it.
    """
    query = text(
        "SELECT g.view, to_jsonb(g) ->> 'spark' AS spark"
        " FROM lamina.publication AS p JOIN lamina.generation AS g ON g.id = p.generation"
    )
    return {row.view: row.spark for row in connection.execute(query) if row.spark is not None}


def preview_names(connection: Connection) -> list[str]:
    """The names of all previews."""
    if connection.execute(select(func.to_regclass(str(preview)))).scalar() is None:  # an older Lamina's database
        return []
    return list(connection.execute(select(preview.c.name).order_by(preview.c.name)).scalars())


def previewed_views(connection: Connection) -> dict[str, tuple[str, ...]]:
    """For each view name, the previews with a view of that name."""
    by_view: dict[str, tuple[str, ...]] = {}
    if preview_names(connection):
        for row in connection.execute(select(previewed.c.view, previewed.c.preview).order_by(previewed.c.preview)):
            by_view[row.view] = (*by_view.get(row.view, ()), row.preview)
    return by_view


def previewed_sources(connection: Connection) -> dict[str, tuple[str, ...]]:
    """For each source, the previews with a view that it feeds."""
    by_source: dict[str, set[str]] = {}
    if preview_names(connection):
        fed_by = func.jsonb_path_query(previewed.c.texts, "$.cell_tables[*].source").op("#>>")(text("'{}'"))
        for source, preview_name in connection.execute(select(fed_by, previewed.c.preview)):
            by_source.setdefault(source, set()).add(preview_name)
    return {source: tuple(sorted(names)) for source, names in by_source.items()}


def generations_of_previews(connection: Connection) -> set[int]:
    """The generations whose cells previews read.

    A preview names places, not generations: a hand-over exchanges the places of two generations, and every reader
    stays with one table.
    """
    if not preview_names(connection):
        return set()
    made_of = select(generation_cells.c.generation).join(
        previewed, generation_cells.c.place == any_(previewed.c.places)
    )
    return set(connection.execute(made_of).scalars())


def shown_before(connection: Connection, view_name: str, now: int) -> list[Generation]:
    """The live generations of a view that were shown before `now`, the published one, by when they were last shown.

    A generation that was rolled back from comes further down. Generations that were held back or only previewed were
    never shown and are not among them.
    """
    first, last = generation.c.shown_at, func.coalesce(generation.c.shown_until, generation.c.shown_at)
    newest = select(first).where(generation.c.id == now).scalar_subquery()
    live = (generation.c.view == view_name, generation.c.state == GenerationState.LIVE, generation.c.id != now)
    ids = select(generation.c.id).where(*live, first < newest).order_by(last, first, generation.c.id)
    return [get(connection, id) for id in connection.execute(ids).scalars().all()]


def before_published(connection: Connection, view_name: str) -> tuple[Generation, Generation]:
    """A view's published generation, and the newest live one that was shown before it."""
    now = published(connection).get(view_name)
    if now is None:
        raise LaminaError(
            f"{view_name} has no published generation",
            evidence="a derived view is read from the views below it, and a new view waits for its rebuild",
            way_out="`lamina status` lists the views with their generations.",
        )
    older = shown_before(connection, view_name, now)
    if not older:
        raise LaminaError(
            f"{view_name} has no older live generation to roll back to",
            evidence=f"it is read from generation {now}",
            way_out="The property keep_generations sets how many stay live after a rebuild (default 1).",
        )
    return get(connection, now), older[-1]


def generations_of_rebuild(connection: Connection, id: int) -> list[Generation]:
    """The generations that a rebuild has opened, except retired ones."""
    return find(connection, generation.c.rebuild == id, generation.c.state != GenerationState.RETIRED)


def all_generations_of_rebuild(connection: Connection, id: int) -> list[Generation]:
    """The generations that a rebuild has opened, retired ones included."""
    return find(connection, generation.c.rebuild == id)


HELD = """
SELECT g.id, g.view, g.rebuild
FROM lamina.generation AS g
JOIN lamina.rebuild AS r ON r.id = g.rebuild AND r.state = 'held'
JOIN lamina.view AS v ON v.name = g.view AND v.version = g.version
LEFT JOIN lamina.publication AS p ON p.view = g.view
WHERE g.state <> 'retired' AND g.shown_at IS NULL AND g.id > coalesce(p.generation, 0)"""
"""SQL of the generations that rebuilds hold back.

They have the declared version, are newer than the published generation, and were never shown.
"""


def generations_held_by_rebuilds(connection: Connection) -> dict[int, list[Generation]]:
    """The generations that rebuilds hold back, by rebuild."""
    rebuild_of = {row.id: row.rebuild for row in connection.execute(text(HELD))}
    by_rebuild = dict[int, list[Generation]]()
    for held in find(connection, generation.c.id.in_(rebuild_of)):
        by_rebuild.setdefault(rebuild_of[held.id], []).append(held)
    return by_rebuild


def newer(connection: Connection, some: Iterable[Generation]) -> list[Generation]:
    """The generations that have the declared version and are newer than the published one."""
    now = published(connection)
    declared = {(row.name, row.version) for row in connection.execute(select(view.c.name, view.c.version))}
    return [new for new in some if (new.view, new.version) in declared and new.id > now.get(new.view, 0)]


def generation_of_rebuild(connection: Connection, id: int, view: str) -> Generation:
    """The generation of one view that a rebuild has opened."""
    matching = [opened for opened in generations_of_rebuild(connection, id) if opened.view == view]
    if not matching:
        raise LaminaError(
            f"Rebuild {id} has no generation of {view}",
            way_out="`lamina status` shows which views it rebuilds.",
        )
    return matching[0]


def left_by_failures(connection: Connection) -> list[Generation]:
    """The generations of failed rebuilds that were neither retired nor handed over."""
    failed = select(rebuild.c.id).where(rebuild.c.state == RebuildState.FAILED)
    now = published(connection)
    opened = find(connection, generation.c.rebuild.in_(failed), generation.c.state != GenerationState.RETIRED)
    return [new for new in opened if not new.was_shown and new.id > now.get(new.view, 0)]
