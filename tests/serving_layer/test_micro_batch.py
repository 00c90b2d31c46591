"""The one transaction of a micro-batch, against a real Postgres."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from master_log.offsets import Offsets
from serving_layer.postgres.copying import CopyRows
from serving_layer.postgres.database import SessionLost, is_unavailable
from serving_layer.promise import progress, quarantine
from serving_layer.promise.micro_batch import Outcome
from serving_layer.promise.progress import Fenced
from serving_layer.promise.quarantine import BadRecords
from serving_layer.readers.analyst import select
from tests.fix_services import Services
from tests.serving_layer.world import World, assert_invariant, shown
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError


def test_a_deployment_shows_its_first_records_without_a_rebuild(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2), (None, 3))
    world.append("a", 1, ("x", 10))
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "sums") == [("x", 2, 11), ("y", 1, 2), (None, 1, 3)]
    assert shown(world, "counts") == [(4, 16)]


def test_an_aggregate_over_no_records_is_one_row(world: World) -> None:
    assert shown(world, "counts") == [(0, None)]
    assert shown(world, "sums") == []


def test_a_micro_batch_that_is_committed_again_changes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1), ("x", 1))
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    assert world.commit(batch) is Outcome.APPLIED
    assert world.commit(batch) is Outcome.ALREADY_COUNTED
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


def test_a_fenced_writer_writes_nothing(world: World) -> None:
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
    assert world.commit(batch) is Outcome.OTHER_TABLES
    assert redeployed.advance("a") is Outcome.APPLIED
    assert_invariant(redeployed)
    world.catalog = redeployed.catalog


def test_an_added_partition_starts_at_its_first_record(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    world.log[type(next(iter(world.log)))("a", 2)] = [("x", 7)]
    assert world.advance("a") is Outcome.APPLIED
    assert shown(world, "sums") == [("x", 2, 8)]


def test_bad_records_are_kept_as_they_came_in_the_same_transaction(world: World) -> None:
    world.append("a", 0, None)
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    arriving = CopyRows(b'"a","a",0,0,,"not JSON",,"\\x00ff7b",3\n')
    assert world.commit(replace(batch, bad=BadRecords("a", "a", arriving, {"not JSON": 1}))) is Outcome.APPLIED
    with world.database.begin() as connection:
        rows = connection.execute(text("SELECT topic, partition, error, value FROM lamina.quarantine")).all()
    assert [(r.topic, r.partition, r.error, bytes(r.value)) for r in rows] == [("a", 0, "not JSON", b"\x00\xff{")]


def test_a_login_with_the_right_reads_bad_records_as_text(world: World, services: Services) -> None:
    values = {b"\xc3\xa9{": "é{", b"\x00\xff{": r"\000\377{", b"\xc3": r"\303", b"": "", b"a\\b": r"a\b"}
    reason = "a field has the wrong type: n is no BIGINT"
    lines = [f'"a","a",0,{n},,"{reason}",,"\\x{value.hex()}",{len(value)}\n' for n, value in enumerate(values)]
    batch = world.micro_batch("a", world.progress("a"), world.end("a"))
    bad = BadRecords("a", "a", CopyRows("".join(lines).encode()), {reason: len(values)})
    assert world.commit(replace(batch, bad=bad)) is Outcome.APPLIED
    url = services.database_url(str(world.database.url.database), "analyst")
    asked = 'SELECT source, topic, partition, "offset", error, key, value FROM lamina.bad_values ORDER BY "offset"'
    with pytest.raises(LaminaError, match="permission denied") as refused:
        select(url, asked)
    assert "GRANT SELECT ON lamina.bad_values TO" in refused.value.way_out
    with world.database.begin() as connection:
        connection.execute(text("GRANT SELECT ON lamina.bad_values TO analyst"))
    assert select(url, asked)[1] == [("a", "a", 0, n, reason, None, shown) for n, shown in enumerate(values.values())]


def test_quarantine_keeps_the_newest_records_within_bounds_and_counts_all(world: World) -> None:
    source = compile_catalog(
        {
            "a.sql": "CREATE TABLE a (n BIGINT) USING kafka OPTIONS (topic 'a', format 'json')"
            " TBLPROPERTIES ('quarantine_bytes' = '300 kB', 'quarantine_age' = '2 days');"
        }
    ).sources["a"]
    arrived = 0
    for day in range(5, -1, -1):
        with world.database.begin() as connection:
            row = f'"a","a",0,{{}},,"not JSON",,"\\x{"ff" * 892}",892\n'  # a thousand bytes each
            rows = CopyRows("".join(row.format(arrived + number) for number in range(200)).encode())
            bad = BadRecords("a", "a", rows, {"not JSON": 200})
            quarantine.stage(connection, bad)
            quarantine.write(connection, bad)
            aged = (
                "UPDATE lamina.quarantine SET quarantined_at = now() - :days * interval '1 day' WHERE \"offset\" >= :n"
            )
            connection.execute(text(aged), {"days": day, "n": arrived})
        arrived += 200
    quarantine.trim(world.database, source)
    with world.database.begin() as connection:
        kept = connection.execute(text('SELECT min("offset"), max("offset"), sum(size) FROM lamina.quarantine')).one()
        assert quarantine.count(connection, "a") == arrived
    assert (kept.min, kept.max) == (arrived - 307, arrived - 1)
    assert kept.sum == 307_000
    older = replace(source, properties={"quarantine_age": "1 day"})
    quarantine.trim(world.database, older)
    with world.database.begin() as connection:
        assert connection.execute(text('SELECT min("offset") FROM lamina.quarantine')).scalar_one() == arrived - 200


def test_a_producer_that_invents_reasons_does_not_fill_the_counts_of_bad_records(world: World) -> None:
    made_up = {f"reason {number}": 2 for number in range(quarantine.MOST_REASONS + 5)}
    with world.database.begin() as connection:
        for _ in range(2):
            bad = BadRecords("a", "a", CopyRows(), made_up)
            quarantine.stage(connection, bad)
            quarantine.write(connection, bad)
        assert quarantine.count(connection, "a") == 2 * sum(made_up.values())
        reasons = "SELECT count(*), max(records) FROM lamina.bad_records"
        assert tuple(connection.execute(text(reasons)).one()) == (quarantine.MOST_REASONS + 1, 20)


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


def test_a_fenced_writer_does_not_report_its_failure(world: World) -> None:
    old = world.fences["a"]
    with world.database.begin() as connection:
        world.fences["a"] = progress.take_over(connection, "a", "another")
    with pytest.raises(Fenced), world.database.begin() as connection:
        progress.record_stop(connection, "a", "its disk is full", old)
    with world.database.begin() as connection:
        assert progress.queries(connection)["a"].stopped is None
        progress.record_stop(connection, "a", "its own is, too", world.fences["a"])
        assert progress.queries(connection)["a"].stopped == "its own is, too"


def test_a_commit_that_crashes_its_session_is_not_an_outage(world: World) -> None:
    def dies() -> None:
        with world.database.begin() as connection:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(SessionLost, match="keeps ending the session in the middle of a transaction") as raised:
        world.database.waiting(dies, lost_at_most=2)
    assert not is_unavailable(raised.value), "the commit is judged, since a smaller micro-batch may pass"


def test_the_transaction_timeout_of_the_database_does_not_apply_to_us(world: World) -> None:
    with world.database.autocommit() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE \"{name}\" SET transaction_timeout = '100ms'"))
    world.database.close()
    with world.database.begin() as connection:
        connection.execute(text("SELECT pg_sleep(0.3)"))


def test_writers_that_die_before_they_commit_are_counted_until_one_commits(world: World) -> None:
    def taken_over_by(process: int) -> int:
        with world.database.begin() as connection:
            world.fences["a"] = progress.take_over(connection, "a", f"process {process} on a machine")
            return progress.deaths(connection, "a")

    with world.database.begin() as connection:
        progress.release(connection, {"a": world.fences["a"]})
    assert [taken_over_by(process) for process in (1, 2, 3, 3)] == [0, 1, 2, 2]
    world.append("a", 0, ("x", 1))
    world.advance("a")
    assert [taken_over_by(process) for process in (4, 5)] == [1, 2]
    with world.database.begin() as connection:
        progress.release(connection, {"a": world.fences["a"]})
    assert taken_over_by(6) == 0
