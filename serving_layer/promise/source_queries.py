"""The queries of sources: created when a source is declared, deleted when it is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from master_log.kafka.tails import Tails
from master_log.offsets import Offsets
from serving_layer.postgres.bookkeeping import archived, cell_table, generation, generation_cells, query
from serving_layer.postgres.bookkeeping import compiled as texts
from serving_layer.postgres.bookkeeping import progress as progress_table
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import history, progress, quarantine
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers hold it: its id, and the first offset of each partition.

    start: the declared start of the source. A partition that it leaves out begins at its first record
    """

    id: str
    earliest: Offsets
    start: Offsets = field(default_factory=lambda: Offsets({}))


@dataclass(frozen=True)
class End:
    """The end of a topic, and the tails below it."""

    offsets: Offsets
    tails: Tails


def create(connection: Connection, name: str, topic: str, at: Topic, end: End | None = None) -> None:
    """Creates the query of a source. It reads the topic from its start, or from `end` if a version computes the rest.

    That version is computed from the first record in the master log, which may be older than Kafka's first, unless the
    source declares a later start.
    """
    others = progress.queries_over(connection, topic)
    logged = progress.begins(connection, topic) if end else {}
    newest = max((q.newest for q in others if q.newest is not None), default=None) if end else None
    for other in others:
        if other.topic_id != at.id:
            raise LaminaError(
                f"{name}: topic {topic} is not the one that {other.name} reads",
                evidence=f"Found: topic id {at.id}.\nWanted: topic id {other.topic_id}.",
                way_out=f"The topic was created again, and both sources would share one log: drop {other.name} first"
                " (`lamina apply --prune`).",
            )
    # A dropped source of this name may have left its row, for tables of cells that are not dropped yet.
    values = {"topic": topic, "topic_id": at.id, "newest": newest}
    again = upsert(query).values(name=name, **values)
    connection.execute(
        again.on_conflict_do_update(
            index_elements=[query.c.name],
            set_={
                **values,
                "fence": query.c.fence + 1,
                "deaths": 0,
                "created_at": func.clock_timestamp(),
                **dict.fromkeys(("writer", "writer_kind", "stopped", "committed_at", "caught_up_at", "waiting")),
            },
        )
    )
    quarantine.forget(connection, name)  # those of a dropped source of this name: its records are read again
    _forget_ids(connection, name)
    for partition, offset in at.earliest.items():
        start = max(min(offset, logged.get(partition, offset)), at.start.get(partition, 0))
        reached, tail = (start, None) if end is None else (end.offsets[partition], end.tails.get(partition))
        row = {"topic": topic, "partition": partition.partition, "start_offset": start, "next_offset": reached}
        connection.execute(insert(progress_table).values(query=name, tail=tail, **row))


def with_history(connection: Connection) -> set[str]:
    """The queries with counted records. A view that is new to them lacks these records."""
    has_moved = progress_table.c.next_offset != progress_table.c.start_offset
    return set(connection.execute(select(progress_table.c.query).where(has_moved).distinct()).scalars())


def forget(connection: Connection, name: str) -> None:
    """Ends the query of a dropped source. Its row stays while tables of cells name it."""
    connection.execute(delete(progress_table).where(progress_table.c.query == name))
    connection.execute(delete(archived).where(archived.c.query == name))
    _forget_ids(connection, name)
    history.forget(connection, name)


def _forget_ids(connection: Connection, name: str) -> None:
    from serving_layer.promise import event_ids  # which takes NumPy along

    event_ids.forget(connection, name)


def forget_undeployed(connection: Connection) -> None:
    """Ends the queries that were created for a catalog that was never applied."""
    declared = select(texts.c.name).where(texts.c.kind == "source")
    feeding = (
        select(cell_table.c.query)
        .join_from(generation_cells, cell_table, generation_cells.c.cell_table == cell_table.c.name)
        .join(generation, generation_cells.c.generation == generation.c.id)
        .where(generation.c.state != GenerationState.RETIRED)
    )
    if connection.execute(declared.limit(1)).one_or_none() is not None:
        unused = progress_table.c.query.not_in(declared) & progress_table.c.query.not_in(feeding)
        unused_names = select(progress_table.c.query).where(unused).distinct()
        for name in connection.execute(unused_names).scalars().all():
            forget(connection, name)
