"""Generations of views: opened at a cut, live, retired. Here the batch view meets the realtime view.

After every committed transaction of this module and of `micro_batch.py`:

    cells(g) = partial(all records below progress)      for every live generation g

A building generation holds this sum in two parts. Its cells count the records below its cut (the batch view, once
loaded). Its realtime tables count the records from the cut to progress (the realtime view). Merging is associative and
commutative, so `go_live` may fold the tables in any order.

Readers always read the same table. A hand-over overwrites the cells that differ in that table and moves their previous
contents to the table of the new generation, which from then on holds the previous generation (`overwriting.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from typing import Any

from sqlalchemy import Connection, Row, Select, Update, cast, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.dialects.postgresql import insert as upsert

from master_log.kafka.tails import Tails
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog.lookup import Generation, find, generations_of_previews, get, published
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import (
    cell_table,
    cut,
    generation,
    generation_cells,
    publication,
    query,
    rebuild,
    view,
)
from serving_layer.postgres.database import Database
from serving_layer.postgres.states import GenerationState, RebuildState
from serving_layer.promise import history, overwriting, progress
from view_algebra.compiled import View
from view_algebra.errors import LaminaError

ABSORB_ABOVE = 20_000
"""Cells. Larger realtime tables are absorbed without the lock before a generation goes live. A merge of this many takes
about 0.2 s, and the query's micro-batches wait that long."""


def open_building(
    connection: Connection,
    view_name: str,
    *,
    rebuild: int | None,
    at: Offsets | None = None,
    tails: Tails | None = None,
    other: View | None = None,
) -> Generation:
    """Opens a generation of a view's declared version. From now on every micro-batch merges into it.

    The cut is progress, read under the lock of the view's queries, so every micro-batch lies wholly below the cut or
    wholly above it. Only a leap, which has taken the queries over, passes its own cut (`at`) and tails.
    `other` is a view of another version to open, whose tables of cells must be registered.
    """
    tables = _cell_tables(connection, view_name, None if other is None else other.version)
    feeding = sorted({row.query for row in tables.values()})
    progress.lock(connection, feeding)
    if other is None:
        retain = connection.execute(select(view.c.retain).where(view.c.name == view_name)).scalar_one()
    else:
        retain = other.properties.get("retain")
    values = {"view": view_name, "version": next(iter(tables.values())).version, "state": GenerationState.BUILDING}
    values |= {"rebuild": rebuild, "since": None if retain is None else _since(connection, feeding, retain)}
    values |= {"spark": version_of_package("pyspark")}
    new = connection.execute(insert(generation).values(values).returning(generation.c.id)).scalar_one()
    for name in feeding:
        reached, tails_below = progress.read_with_tails(connection, name)
        if at is not None:
            reached, tails_below = reached.updated(_on(reached.topics(), at)), tails or {}
        _record_cut(connection, new, name, reached, tails_below)
    for name, row in tables.items():
        place = cells.cells_of(name, new)
        cells.create(connection, row.ddl, place)
        cells.create(connection, row.ddl, cells.realtime_of(name, new, 0))
        connection.execute(insert(generation_cells).values(generation=new, cell_table=name, place=place))
    return get(connection, new)


def _cell_tables(connection: Connection, view_name: str, version: str | None) -> dict[str, Row[Any]]:
    """The registered tables of cells of a version of a view, or of its declared version. Raises if there are none."""
    declared = select(view.c.version).where(view.c.name == view_name).scalar_subquery()
    wanted = (cell_table.c.view == view_name, cell_table.c.version == (declared if version is None else version))
    rows = connection.execute(select(cell_table).where(*wanted).order_by(cell_table.c.name)).all()
    if not rows:
        raise LaminaError(
            f"{view_name} has no cells to rebuild",
            evidence="it is a derived view, or it is not in the catalog that was applied last",
            way_out="`lamina status` lists the views.",
        )
    return {row.name: row for row in rows}


def _since(connection: Connection, feeding: Sequence[str], retain: str) -> datetime | None:
    """The beginning of the first day (UTC) whose groups a generation opened now keeps.

    The day is computed from the earlier of the clock and the newest record, so a fast clock drops no group too early.
    """
    newest = select(func.max(query.c.newest)).where(query.c.name.in_(feeding)).scalar_subquery()
    begins = func.date_trunc("day", func.least(func.now(), newest) - cast(retain, INTERVAL), "UTC")
    since: datetime | None = connection.execute(select(begins)).scalar_one()
    return since


def keep_all(connection: Connection) -> None:
    """Makes the generations of views with `retain` keep all groups, however old."""
    always = datetime(1000, 1, 1, tzinfo=UTC)
    connection.execute(update(generation).where(generation.c.since.is_not(None)).values(since=always))


def absorb(database: Database, id: int) -> None:
    """Folds the realtime tables of a loaded generation into its cells until each holds few cells.

    A realtime table is swapped for an empty one under the lock and merged without the lock, so micro-batches continue.
    A repeat after a crash loses nothing: a table is merged and marked as absorbed in one transaction.
    """
    while database.retrying(lambda connection: _swap(connection, id)):
        database.retrying(lambda connection: _fold_sealed(connection, id))


def go_live(connection: Connection, ids: Sequence[int]) -> None:
    """Merges the remaining realtime cells and makes the generations live, under the lock of their queries.

    After this commit micro-batches merge into the cells in place.
    """
    opened = [get(connection, id) for id in sorted(ids)]
    progress.lock(connection, {name for new in opened for name in new.queries})
    for new in opened:
        state = _lock_state(connection, new.id)
        if state is GenerationState.LIVE or _is_withdrawn(connection, new.view, state):
            continue
        if state is not GenerationState.BUILDING:
            raise LaminaError(
                f"Generation {new.id} of {new.view} was retired", way_out="Start again with `lamina rebuild`."
            )
        _fold(connection, new.id, sealed_only=False)
        live = {"state": GenerationState.LIVE, "live_at": func.clock_timestamp()}
        connection.execute(update(generation).where(generation.c.id == new.id).values(live))


def hand_over(connection: Connection, to: Mapping[str, int]) -> None:
    """Publishes these generations in one transaction, overwriting the cells that differ where readers read.

    The differing cells were noted by `overwriting.note`. Without notes the generations are compared now, under the
    lock.
    """
    progress.lock(connection, {query for id in to.values() for query in get(connection, id).queries})
    for name, id in sorted(to.items()):
        state = _lock_state(connection, id)
        if _is_withdrawn(connection, name, state):
            continue
        if state is not GenerationState.LIVE:
            raise LaminaError(
                f"Generation {id} of {name} is {state} and cannot be read",
                way_out="Only a live generation can be handed over: run the steps of the rebuild in their order.",
            )
        new, now = get(connection, id), published(connection).get(name)
        declared = connection.execute(select(view.c.version).where(view.c.name == name)).scalar_one()
        if new.version != declared:
            raise LaminaError(
                f"Generation {id} of {name} does not have the declared version",
                evidence=f"its version is {new.version}, and version {declared} is declared",
                way_out="`lamina apply` moves a view and its readers to another version.",
            )
        if now is not None and now != id and (old := get(connection, now)).version == new.version:
            _exchange(connection, new, old)
        if now != id:
            at, this = func.clock_timestamp(), update(generation)
            connection.execute(this.where(generation.c.id == id).values(shown_at=at))
            if now is not None:
                connection.execute(this.where(generation.c.id == now).values(shown_until=at))
        statement = upsert(publication).values(view=name, generation=id)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=[publication.c.view], set_={"generation": id, "handed_over_at": func.clock_timestamp()}
            )
        )
    history.record_shown(connection, sorted(to))


def _exchange(connection: Connection, new: Generation, old: Generation) -> None:
    """Exchanges the tables of two live generations of one version: readers now read the new generation."""
    for name in new.tables:
        overwriting.exchange(connection, name, new, old)
        for id, place in ((new.id, old.places[name]), (old.id, new.places[name])):
            connection.execute(update_cells(id, name).values(place=place))


def retire(connection: Connection, ids: Sequence[int]) -> None:
    """Ends the maintenance of unpublished generations. Their tables are dropped later (`dropping.py`)."""
    surplus = [get(connection, id) for id in sorted(ids)]
    progress.lock(connection, {name for old in surplus for name in old.queries})
    for old in surplus:
        _lock_state(connection, old.id)
    # Read only after their rows are locked: every earlier hand-over or rollback has ended by now.
    still = {id for id in published(connection).values() if id in ids}
    if still:
        raise LaminaError(f"Generation {min(still)} is published", way_out="Hand its view over first.")
    retired = {"state": GenerationState.RETIRED, "retired_at": func.clock_timestamp()}
    maintained = (generation.c.id.in_([old.id for old in surplus]), generation.c.state != GenerationState.RETIRED)
    connection.execute(update(generation).where(*maintained).values(retired))


def retire_superseded(connection: Connection, names: Iterable[str]) -> None:
    """Retires the generations that these views no longer keep, except those that a rebuild has yet to hand over."""
    going_on = rebuild.c.state.in_([RebuildState.RUNNING, RebuildState.HELD])
    to_come = select(generation.c.id).join(rebuild).where(going_on, generation.c.shown_at.is_(None))
    kept = set(connection.execute(to_come).scalars())
    retire(connection, [id for name in names for id in superseded(connection, name) if id not in kept])


def superseded(connection: Connection, view_name: str) -> list[int]:
    """The live generations that a view no longer keeps.

    A view keeps the published generation, the `keep_generations` of its version that were shown last, and one
    generation of each of the `keep_versions` that were shown before. Generations that a preview reads are kept too.
    """
    now = published(connection).get(view_name)
    row = connection.execute(select(view).where(view.c.name == view_name)).one_or_none()
    has_cells = row is not None and row.kind != "derived"
    keep_generations, keep_versions = (row.keep_generations, row.keep_versions) if row and has_cells else (0, 0)
    declared = None if row is None else row.version
    live = find(
        connection, generation.c.view == view_name, generation.c.state == GenerationState.LIVE, generation.c.id != now
    )
    for_previews = generations_of_previews(connection)
    others = [old for old in live if old.id not in for_previews]
    shown_until = select(generation.c.id, generation.c.shown_until).where(generation.c.view == view_name)
    shown = {row.id: row.shown_until for row in connection.execute(shown_until)}
    others.sort(key=lambda old: (shown[old.id] is not None, shown[old.id], old.id), reverse=True)
    same_version = [old.id for old in others if old.version == declared]
    by_version = {old.version: old.id for old in reversed(others) if old.version != declared}
    last_shown = [old.id for old in others if old.id in by_version.values()]
    kept = {*same_version[:keep_generations], *last_shown[:keep_versions]}
    return [old.id for old in reversed(others) if old.id not in kept]


def land(
    connection: Connection,
    ids: Sequence[int],
    fences: Mapping[str, int],
    to: Mapping[str, tuple[Offsets, Tails]],
    lost: Container[TopicPartition] = (),
) -> None:
    """Ends a leap in one transaction: go live, hand over, move progress to the cut, retire all older generations.

    `to` maps each query to its cut and tails. No older generation may stay live, because it lacks the records between
    the old progress and the cut. Progress moves back only in the `lost` partitions, whose end Kafka has lost, and every
    generation that counted the lost records retires.
    """
    progress.lock(connection, fences)
    for name, fence in sorted(fences.items()):
        progress.check_fence(connection, name, fence)
        reached = progress.read(connection, [name])
        if not to[name][0].reaches({at: offset for at, offset in reached.items() if at not in lost}):
            raise LaminaError(
                f"The leap of {name} would go back",
                evidence=f"progress is {reached}, the log ends at {to[name][0]}",
                way_out="Records were counted meanwhile: run the leap again.",
            )
    go_live(connection, ids)
    leapt = {new.view: new.id for new in (get(connection, id) for id in ids)}
    hand_over(connection, leapt)
    older = [old for old in fed_by(connection, fences) if old.id not in ids]
    left = {old.view for old in older if old.id in published(connection).values()}
    if left:
        raise LaminaError(
            f"{min(left)} was deployed while the leap ran, and would miss the records leapt over",
            way_out="Run the leap again: it takes the view with it.",
        )
    retire(connection, [old.id for old in older])
    for name in fences:
        reached = progress.read(connection, [name])
        end, tails = to[name]
        progress.move(connection, name, end, None, tails)
        history.record_leap(connection, name, reached, end, leapt_to=max(ids, default=None), lost=lost)


def record_loaded(connection: Connection, id: int, cell_table_name: str, attempt: int) -> None:
    """Records that the cells below the cut are complete. Raises if a later attempt has begun."""
    this = update_cells(id, cell_table_name).where(generation_cells.c.attempt == attempt)
    if connection.execute(this.values(loaded_at=func.clock_timestamp())).rowcount == 0:
        raise LaminaError(
            f"The cells of generation {id} are being loaded by another process",
            evidence=f"attempt {attempt} at {cell_table_name} was followed by a newer one",
            way_out="Let the newer one finish.",
        )


def _record_cut(connection: Connection, id: int, query: str, at: Offsets, tails: Tails) -> None:
    for partition, offset in at.items():
        where = {"topic": partition.topic, "partition": partition.partition, "offset": offset}
        connection.execute(insert(cut).values(generation=id, query=query, tail=tails.get(partition), **where))


def fed_by(connection: Connection, queries: Iterable[str]) -> list[Generation]:
    """The generations fed by at least one of these queries, except retired ones."""
    fed = select(generation_cells.c.generation).join(cell_table).where(cell_table.c.query.in_(list(queries)))
    return find(connection, generation.c.id.in_(fed), generation.c.state != GenerationState.RETIRED)


def _on(topics: Sequence[str], at: Offsets) -> Offsets:
    return Offsets({partition: offset for partition, offset in at.items() if partition.topic in topics})


def _lock_state(connection: Connection, id: int) -> GenerationState:
    """The state of a generation, locked until the transaction ends."""
    locked = select(generation.c.state).where(generation.c.id == id).with_for_update(key_share=True)
    state: GenerationState = connection.execute(locked).scalar_one()
    return state


def _is_withdrawn(connection: Connection, view_name: str, state: GenerationState) -> bool:
    """True if a generation was retired because its view was dropped or no longer has cells."""
    if state is not GenerationState.RETIRED:
        return False
    with_cells = (view.c.name == view_name, view.c.kind != "derived")
    return connection.execute(select(view.c.name).where(*with_cells)).one_or_none() is None


def _swap(connection: Connection, id: int) -> bool:
    """Replaces large realtime tables of a building generation by empty ones. True if there is a table to fold."""
    opened = get(connection, id)
    progress.lock(connection, opened.queries)
    if _lock_state(connection, id) is not GenerationState.BUILDING:
        return False
    swapped = False
    for name in opened.tables:
        row = connection.execute(cells_row(id, name)).one()
        present = cells.realtime_of(name, id, row.realtime)
        if row.absorbed < row.realtime:
            swapped = True
        elif _has_more_than(connection, present, ABSORB_ABOVE):
            ddl = connection.execute(select(cell_table.c.ddl).where(cell_table.c.name == name)).scalar_one()
            cells.create(connection, ddl, cells.realtime_of(name, id, row.realtime + 1))
            connection.execute(update_cells(id, name).values(realtime=row.realtime + 1))
            swapped = True
    return swapped


def _fold_sealed(connection: Connection, id: int) -> None:
    """Merges the realtime tables that were swapped out, under a lock on each table's row.

    The generation's row stays unlocked: whoever retires it holds its queries and must not wait for a merge. A merge
    into a retired generation is harmless, since nobody reads it.
    """
    if get(connection, id).state is GenerationState.BUILDING:
        _fold(connection, id, sealed_only=True)


def _fold(connection: Connection, id: int, *, sealed_only: bool) -> None:
    """Merges realtime tables of a generation into its cells: those swapped out, or all of them under the lock."""
    opened = get(connection, id)
    for name in opened.tables:
        row = connection.execute(cells_row(id, name).with_for_update()).one()
        if row.loaded_at is None:
            raise LaminaError(
                f"Generation {id} has no batch view yet",
                evidence=f"{name} is not loaded",
                way_out="Compute it first: `lamina step compute`.",
            )
        statement = connection.execute(select(cell_table.c.merge).where(cell_table.c.name == name)).scalar_one()
        end = max(row.absorbed, row.realtime if sealed_only else row.realtime + 1)
        for number in range(row.absorbed, end):
            realtime = cells.realtime_of(name, id, number)
            cells.merge(connection, statement, into=row.place, stamp=id, cells=realtime, since=opened.since)
        # The tables are dropped later (`dropping.py`): here a DROP could wait for pg_dump, and micro-batches for it.
        connection.execute(update_cells(id, name).values(absorbed=end))


def cells_row(id: int, name: str) -> Select[Any]:
    """The row of one of a generation's tables of cells."""
    return select(generation_cells).where(generation_cells.c.generation == id, generation_cells.c.cell_table == name)


def update_cells(id: int, name: str) -> Update:
    """An update of the row of one of a generation's tables of cells."""
    return update(generation_cells).where(generation_cells.c.generation == id, generation_cells.c.cell_table == name)


def _has_more_than(connection: Connection, table: str, limit: int) -> bool:
    counted = connection.execute(text(f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {limit + 1}) AS counted"))
    return bool(counted.scalar_one() > limit)
