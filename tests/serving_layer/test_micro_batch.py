"""The one transaction of a micro-batch, against a real Postgres."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from master_log.offsets import Offsets
from serving_layer import progress
from serving_layer.micro_batch import Outcome
from serving_layer.progress import Fenced
from serving_layer.quarantine import BadRecord
from tests.serving_layer.world import World, assert_invariant, shown


def test_a_deployment_shows_its_first_records_without_a_rebuild(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2), (None, 3))
    world.append("a", 1, ("x", 10))
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "sums") == [("x", 2, 11), ("y", 1, 2), (None, 1, 3)]
    assert shown(world, "counts") == [(4, 16)]


def test_an_aggregate_of_nothing_is_one_row(world: World) -> None:
    assert shown(world, "counts") == [(0, None)]
    assert shown(world, "sums") == []


def test_a_micro_batch_that_is_committed_again_changes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1), ("x", 1))
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    assert world.commit(batch) is Outcome.APPLIED
    assert world.commit(batch) is Outcome.SKIPPED
    assert shown(world, "sums") == [("x", 2, 2)]


def test_a_replay_that_ends_at_other_offsets_is_discarded_whole(world: World) -> None:
    world.append("a", 0, ("x", 1), ("x", 2))
    world.append("a", 1, ("x", 4))
    start = world.progress("a")
    world.commit(world.micro_batch("a", start, Offsets.of("a", {0: 1, 1: 1})))
    further = world.micro_batch("a", start, world.end("a"))
    assert world.commit(further) is Outcome.NOT_CONTIGUOUS
    assert shown(world, "sums") == [("x", 2, 5)]


def test_a_micro_batch_that_leaves_a_gap_is_discarded(world: World) -> None:
    world.append("a", 0, ("x", 1), ("x", 2))
    ahead = world.micro_batch("a", Offsets.of("a", {0: 1, 1: 0}), world.end("a"))
    assert world.commit(ahead) is Outcome.NOT_CONTIGUOUS
    assert world.progress("a") == Offsets.of("a", {0: 0, 1: 0})


def test_equal_records_count_once_each(world: World) -> None:
    world.append("a", 0, ("x", 5), ("x", 5), ("x", 5))
    world.advance("a")
    assert shown(world, "sums") == [("x", 3, 15)]


def test_a_range_of_transaction_markers_moves_progress_alone(world: World) -> None:
    world.append("a", 0, None, None)
    assert world.advance("a") is Outcome.APPLIED
    assert world.progress("a") == Offsets.of("a", {0: 2, 1: 0})
    assert shown(world, "sums") == []


def test_the_writer_that_was_taken_over_writes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1))
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    with world.database.begin() as connection:
        newer = progress.take_over(connection, "a", "a newer speed layer")
    with pytest.raises(Fenced, match="The query a was taken over"):
        world.commit(batch)
    assert shown(world, "sums") == []
    world.fences["a"] = newer


def test_a_micro_batch_computed_for_other_views_is_computed_again(world: World) -> None:
    world.append("a", 0, ("x", 1))
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    without = {path: sql for path, sql in world.files.items() if path != "counts.sql"}
    redeployed = World(world.database, files=without, log=world.log, fences=world.fences)
    redeployed.deploy()
    batch = type(batch)(**{**vars(batch), "fence": world.fences["a"]})
    assert world.commit(batch) is Outcome.OTHER_VERSIONS
    assert redeployed.advance("a") is Outcome.APPLIED
    assert_invariant(redeployed)
    world.catalog = redeployed.catalog


def test_a_partition_that_is_added_starts_at_its_first_record(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    world.log[type(next(iter(world.log)))("a", 2)] = [("x", 7)]
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "sums") == [("x", 2, 8)]


def test_bad_records_are_kept_as_they_came_in_the_same_transaction(world: World) -> None:
    world.append("a", 0, None)
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    bad = BadRecord("a", 0, 0, None, "not JSON", None, b"\x00\xff{")
    world.commit(type(batch)(**{**vars(batch), "bad": [bad]}))
    with world.database.begin() as connection:
        rows = connection.execute(text("SELECT topic, partition, error, value FROM lamina.quarantine")).all()
    assert [(r.topic, r.partition, r.error, bytes(r.value)) for r in rows] == [("a", 0, "not JSON", b"\x00\xff{")]


def test_sums_wrap_as_they_do_in_spark_and_never_stop_the_stream(world: World) -> None:
    largest = 2**63 - 1
    world.append("a", 0, ("x", largest))
    world.advance("a")
    world.append("a", 0, ("x", 1))
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "sums") == [("x", 2, -(2**63))]
    world.append("a", 0, ("x", -(2**63)))
    world.advance("a")
    assert shown(world, "sums") == [("x", 3, 0)]
    world.log[next(iter(world.log))] = [("x", 0), ("x", 0), ("x", 0)]
