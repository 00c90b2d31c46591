"""Generations: opened at a cut, live, handed over, rolled back, retired."""

from __future__ import annotations

import threading

import psycopg2
import pytest
from sqlalchemy import text

from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup
from serving_layer.change import deploying, rollbacks
from serving_layer.change.deploying import Target
from serving_layer.postgres.bookkeeping import generation
from serving_layer.postgres.database import Database
from serving_layer.promise import generations, history, loading, progress
from serving_layer.promise.micro_batch import Outcome
from serving_layer.promise.source_queries import Topic
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import until_waited_for
from tests.serving_layer.world import FILES, World, assert_invariant, landing, shown
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError


def test_a_generation_counts_no_record_below_its_cut_twice(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    new = world.open("sums")
    world.append("a", 0, ("x", 4))
    world.advance("a")
    world.load(new)
    world.append("a", 1, ("z", 8))
    world.advance("a")
    world.go_live(new)
    assert_invariant(world)
    before = shown(world, "sums")
    world.hand_over("sums", new)
    assert shown(world, "sums") == before == [("x", 2, 5), ("y", 1, 2), ("z", 1, 8)]


def test_the_records_of_dropped_generations_are_deleted(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    for _ in range(4):
        new = world.open("sums")
        world.load(new)
        world.go_live(new)
        world.hand_over("sums", new)
        with world.database.begin() as connection:
            generations.retire(connection, generations.superseded(connection, "sums"))
    dropping.drop_unused(world.database)
    counted = "SELECT count(*), count(dropped_at) FROM lamina.generation WHERE view = 'sums'"
    of_cells = "SELECT count(DISTINCT generation) FROM lamina.generation_cells WHERE cell_table LIKE 'sums%'"
    with world.database.begin() as connection:
        assert connection.execute(text(counted)).one() == (5, 3)
        connection.execute(text("UPDATE lamina.generation SET dropped_at = dropped_at - interval '8 days'"))
        dropping.forget_dropped(connection)
        assert connection.execute(text(counted)).one() == (5, 3), "the history keeps them"
        connection.execute(text("UPDATE lamina.history SET at = at - interval '3 days'"))
        history.trim(connection)
        dropping.forget_dropped(connection)
        assert connection.execute(text(counted)).one() == (2, 0)
        assert connection.execute(text(of_cells)).scalar() == 2
    assert shown(world, "sums") == [("x", 1, 1), ("y", 1, 2)]


def test_a_micro_batch_in_flight_when_a_generation_opens_lies_wholly_above_its_cut(world: World) -> None:
    world.append("a", 0, ("x", 1))
    in_flight = world.micro_batch("a", world.progress("a"), world.end("a"))
    new = world.open("sums")
    assert world.commit(in_flight) is Outcome.APPLIED
    world.load(new)
    world.go_live(new)


def test_a_large_realtime_table_is_absorbed_before_the_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "ABSORB_ABOVE", 2)
    new = world.open("sums")
    world.load(new)
    for round_ in range(3):
        world.append("a", 0, *((f"k{n}", round_) for n in range(5)))
        world.advance("a")
        generations.absorb(world.database, new)
        with world.database.begin() as connection:
            left = connection.execute(
                text("SELECT absorbed, realtime FROM lamina.generation_cells WHERE generation = :g"), {"g": new}
            ).one()
        assert left.absorbed == left.realtime == round_ + 1
    world.go_live(new)


def test_an_interrupted_absorption_is_resumed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "ABSORB_ABOVE", 0)
    new = world.open("sums")
    world.load(new)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    with world.database.begin() as connection:
        generations._swap(connection, new)  # and then the process died
    world.append("a", 0, ("x", 2))
    world.advance("a")
    world.go_live(new)


def test_a_generation_without_its_batch_view_does_not_go_live(world: World) -> None:
    new = world.open("sums")
    with pytest.raises(LaminaError, match="has no batch view yet"):
        world.go_live(new)


def test_a_view_fed_by_two_queries_is_cut_at_the_progress_of_each(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    new = world.open("both")
    world.append("b", 0, ("x", 2), ("y", 3))
    world.advance("b")
    world.append("a", 1, ("x", 4))
    world.advance("a")
    world.load(new)
    world.go_live(new)
    world.hand_over("both", new)
    assert shown(world, "both") == [("x", 1, 2), ("x", 2, 5), ("y", 1, 3)]


def test_a_generation_that_is_not_live_is_never_handed_over(world: World) -> None:
    new = world.open("sums")
    with pytest.raises(LaminaError, match="is building and cannot be read"):
        world.hand_over("sums", new)


def test_a_rolled_back_view_counts_the_newest_micro_batch(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    new = world.open("sums")
    world.load(new)
    world.go_live(new)
    world.hand_over("sums", new)
    world.append("a", 0, ("x", 2))
    world.advance("a")
    with world.database.begin() as connection:
        before, after = rollbacks.roll_back(connection, "sums")
    assert before == new
    assert after < before
    assert shown(world, "sums") == [("x", 2, 3)]


def test_a_view_without_an_older_generation_is_not_rolled_back(world: World) -> None:
    with pytest.raises(LaminaError, match="no older live generation"), world.database.begin() as connection:
        rollbacks.roll_back(connection, "sums")


def test_a_published_generation_cannot_be_retired(world: World) -> None:
    with world.database.begin() as connection:
        now = lookup.published(connection)["sums"]
    with pytest.raises(LaminaError, match="is published"), world.database.begin() as connection:
        generations.retire(connection, [now])


def test_a_reader_keeps_its_snapshot_while_its_generation_is_replaced_and_dropped(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    with world.database.begin() as connection:
        old = lookup.published(connection)["sums"]
        [place] = lookup.get(connection, old).places.values()
        connection.execute(text(f"UPDATE {place} SET count = 7"))
    reader = psycopg2.connect(database)
    reader.set_session(isolation_level="REPEATABLE READ")
    with reader.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM analytics.counts")
        new = world.open("sums")
        world.load(new)
        world.go_live(new)
        world.hand_over("sums", new)
        with world.database.begin() as connection:
            generations.retire(connection, [old])
        assert old in dropping.drop_unused(world.database)
        cursor.execute("SELECT * FROM analytics.sums")
        assert cursor.fetchall() == [("x", 7, 1)]
    reader.close()
    assert shown(world, "sums") == [("x", 1, 1)]
    with world.database.begin() as connection:
        left = connection.execute(text("SELECT count(*) FROM pg_class WHERE relname LIKE 'sums%' AND relkind = 'r'"))
        assert left.scalar_one() == 1, "readers still read one table"


def test_a_table_is_dropped_once_its_readers_are_gone(world: World, database: str) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    reader = psycopg2.connect(database)
    with reader.cursor() as cursor:
        files = {name: sql for name, sql in world.files.items() if name != "sums.sql"}
        topics = {name: Topic(f"id-{name}", Offsets({})) for name in ("a", "b")}
        with world.database.begin() as connection:
            old = lookup.published(connection)["sums"]
            [place] = lookup.get(connection, old).places.values()
            deploying.apply(connection, Target(files, compile_catalog(files), topics, prune=True))
        cursor.execute(f"SELECT * FROM {place}")
        assert old not in dropping.drop_unused(world.database)
        reader.commit()
        assert old in dropping.drop_unused(world.database)
    reader.close()


def swapped(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """A generation with a swapped realtime table that is not merged yet."""
    monkeypatch.setattr(generations, "ABSORB_ABOVE", 0)
    id = world.open("sums")
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.load(id)
    with world.database.begin() as connection:
        assert generations._swap(connection, id)
    return id


def test_a_generation_is_retired_without_waiting_for_a_merge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id = swapped(world, monkeypatch)
    with world.database.begin() as merging:
        generations._fold_sealed(merging, id)
        with world.database.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            generations.retire(connection, [id])
        world.append("a", 0, ("x", 4))
        world.advance("a")
    dropping.drop_unused(world.database)
    with world.database.begin() as connection:
        assert not lookup.find(connection, generation.c.id == id, generation.c.dropped_at.is_(None))


def test_going_live_waits_for_the_merge_of_a_dead_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id = swapped(world, monkeypatch)
    live = threading.Thread(target=world.go_live, args=(id,))
    with world.database.begin() as merging:
        generations._fold_sealed(merging, id)
        live.start()
        until_waited_for(world, merging)  # otherwise what is merged here would be merged twice
    live.join()
    assert_invariant(world)


def test_a_leap_moves_progress_to_its_cut_and_leaves_no_older_generation_live(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.append("b", 0, ("x", 1))
    world.advance("a")
    world.append("a", 0, ("x", 2), ("x", 4))
    with world.database.begin() as connection:
        fences = {name: progress.take_over(connection, name, "a leap") for name in ("a", "b")}
    to = Offsets({**world.end("a"), **world.end("b")})
    ids = []
    for view in ("sums", "counts", "both"):
        with world.database.begin() as connection:
            ids.append(generations.open_building(connection, view, rebuild=None, at=to).id)
        world.load(ids[-1])
    with world.database.begin() as connection:
        generations.land(connection, ids, fences, landing(to, fences))
    assert world.progress("a") == world.end("a")
    assert shown(world, "sums") == [("x", 3, 7)]
    with world.database.begin() as connection:
        live = lookup.find(connection, generation.c.state == "live")
    assert [generation.id for generation in live] == ids
    world.fences = fences


def test_a_leap_moves_back_only_in_partitions_that_kafka_has_lost(world: World) -> None:
    lost, kept = (TopicPartition("a", partition) for partition in (0, 1))
    world.append("a", 0, ("x", 1), ("x", 2), ("x", 4))
    world.append("a", 1, ("x", 8), ("x", 16))
    world.advance("a")
    with world.database.begin() as connection:
        world.fences["a"] = fence = progress.take_over(connection, "a", "a leap")
        world.fences["b"] = progress.take_over(connection, "b", "a leap")
    world.log[lost][1:] = [("y", 32)]  # other records have arrived since
    tails = {lost: "the batch that has the 32"}

    def leap(to: Offsets) -> None:
        ids = []
        for view in ("sums", "counts", "both"):
            with world.database.begin() as connection:
                everywhere = Offsets({**to, **world.end("b")})
                ids.append(generations.open_building(connection, view, rebuild=None, at=everywhere, tails=tails).id)
            world.load(ids[-1])
        with world.database.begin() as connection:
            fences = {"a": fence, "b": world.fences["b"]}
            generations.land(connection, ids, fences, landing(everywhere, fences, tails), lost=[lost])

    with pytest.raises(LaminaError, match="would go back"):
        leap(Offsets({lost: 2, kept: 1}))
    leap(Offsets({lost: 2, kept: 2}))
    assert world.progress("a") == world.end("a")
    assert shown(world, "sums") == [("x", 3, 25), ("y", 1, 32)]
    with world.database.begin() as connection:
        reached, tails_below = progress.read_with_tails(connection, "a")
    assert (reached, tails_below) == (world.end("a"), tails)


def test_a_leap_that_lost_its_queries_cannot_land(world: World) -> None:
    with world.database.begin() as connection:
        fence = progress.take_over(connection, "a", "a leap")
    world.append("a", 0, ("x", 2))
    ids = []
    for view in ("sums", "counts"):
        with world.database.begin() as connection:
            ids.append(generations.open_building(connection, view, rebuild=None, at=world.end("a")).id)
        world.load(ids[-1])
    with world.database.begin() as connection:
        world.fences["a"] = progress.take_over(connection, "a", "a speed layer")
    with pytest.raises(progress.Fenced), world.database.begin() as connection:
        generations.land(connection, ids, {"a": fence}, landing(world.end("a"), "a"))
    assert shown(world, "sums") == []


def test_readers_of_several_views_never_see_half_of_a_hand_over(world: World, database: str) -> None:
    """Two views of the same records, read in one snapshot, agree through rebuilds, hand-overs and micro-batches."""
    stop, wrong, reads = threading.Event(), [], 0

    def read() -> None:
        nonlocal reads
        connection = psycopg2.connect(database)
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        while not stop.is_set():
            with connection, connection.cursor() as cursor:
                cursor.execute("SELECT c, coalesce(s, 0) FROM analytics.counts")
                whole = cursor.fetchall()
                cursor.execute("SELECT coalesce(sum(c), 0), coalesce(sum(s), 0) FROM analytics.sums")
                parts = cursor.fetchall()
            reads += 1
            if whole != parts:
                wrong.append((whole, parts))
        connection.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for round_ in range(5):
            world.append("a", round_ % 2, *((f"k{n}", n) for n in range(round_ + 1)))
            world.advance("a")
            new = {view: world.open(view) for view in ("sums", "counts")}
            world.append("a", 0, ("x", 1))
            world.advance("a")
            for id in new.values():
                world.load(id)
            world.go_live(*new.values())
            with world.database.begin() as connection:
                generations.hand_over(connection, new)
                surplus = [old for view in new for old in generations.superseded(connection, view)]
                generations.retire(connection, surplus)
            dropping.drop_unused(world.database)
    finally:
        stop.set()
        thread.join()
    assert not wrong
    assert reads > 20


def test_a_view_deployed_during_a_leap_makes_it_start_again(world: World) -> None:
    with world.database.begin() as connection:
        fence = progress.take_over(connection, "a", "a leap")
        other = progress.take_over(connection, "b", "a leap")
    world.append("a", 0, ("x", 2))
    to = Offsets({**world.end("a"), **world.end("b")})
    ids = []
    for view in ("sums", "counts"):
        with world.database.begin() as connection:
            ids.append(generations.open_building(connection, view, rebuild=None, at=to).id)
        world.load(ids[-1])
    with pytest.raises(LaminaError, match="both was deployed while the leap ran"), world.database.begin() as connection:
        generations.land(connection, ids, {"a": fence}, landing(to, "a"))
    world.fences = {"a": fence, "b": other}
    assert world.progress("a") == Offsets.of("a", {0: 0, 1: 0})


def test_a_superseded_attempt_completes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    new = world.open("sums")
    with world.database.begin() as connection:
        [name] = lookup.get(connection, new).tables
        older = loading.begin_attempt(connection, new, name)
        loading.begin_attempt(connection, new, name)
    with pytest.raises(LaminaError, match="loaded by another process"), world.database.begin() as connection:
        loading.complete(connection, new, name, older, set())


def test_a_batch_view_with_a_missing_part_is_not_complete(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    new = world.open("sums")
    world.load(new)
    with world.database.begin() as connection:
        [name] = lookup.get(connection, new).tables
        attempt = loading.begin_attempt(connection, new, name)
    with pytest.raises(LaminaError, match="not complete") as raised, world.database.begin() as connection:
        loading.complete(connection, new, name, attempt, {0, 1})
    assert "2 parts were computed, 0 are loaded; unmatched: 0, 1" in raised.value.evidence
    with pytest.raises(LaminaError, match="no batch view yet"):
        world.go_live(new)


def test_a_rollback_during_a_retirement_never_publishes_a_retired_generation(world: World) -> None:
    new = world.open("sums")
    world.load(new)
    world.go_live(new)
    world.hand_over("sums", new)
    refused: list[LaminaError] = []
    with world.database.begin() as rolling:
        _, old = rollbacks.roll_back(rolling, "sums")

        def retire() -> None:
            try:
                with world.database.begin() as connection:
                    generations.retire(connection, [old])
            except LaminaError as error:
                refused.append(error)

        thread = threading.Thread(target=retire)
        thread.start()
        until_waited_for(world, rolling)
    thread.join()
    assert [error.what for error in refused] == [f"Generation {old} is published"]


def test_a_fast_clock_drops_no_group_early(serving: Database) -> None:
    retained = (
        "CREATE VIEW daily TBLPROPERTIES ('retain' = '3 days') AS SELECT k, date_trunc('DAY', t) AS d, count(*) AS c"
    )
    source = FILES["sources.sql"].replace("(k STRING, n BIGINT)", "(k STRING, n BIGINT, t TIMESTAMP)", 1)
    world = World(serving, {"sources.sql": source, "daily.sql": f"{retained} FROM a GROUP BY k, date_trunc('DAY', t);"})
    world.deploy()

    def kept(newest: str) -> tuple[int, bool]:
        """Days from the first kept day of a generation to the newest record, and True if that day is long ago."""
        with serving.begin() as connection:
            connection.execute(text(f"UPDATE lamina.query SET newest = {newest} WHERE name = 'a'"))
            id = generations.open_building(connection, "daily", rebuild=None).id
            asked = (
                f"SELECT extract(day FROM {newest} - since), since < now() - interval '10 days' FROM lamina.generation"
            )
            days, long_ago = connection.execute(text(f"{asked} WHERE id = {id}")).one()
            return int(days), long_ago

    assert kept("now()") == (3, False)
    assert kept("now() - interval '2000 days'") == (3, True), "the clock is years ahead, or the stream idle"
