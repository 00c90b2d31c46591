"""Everything that needs attention raises an alarm, and nothing else does."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sqlalchemy import text

from master_log.kafka.transactions import OpenTransaction
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog.deployed import deployed
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from serving_layer.monitoring import delays, freshness_history
from serving_layer.monitoring.alarms import alarms, of_queries
from serving_layer.monitoring.overview import overview
from serving_layer.monitoring.query_alarms import Thresholds, TopicState
from serving_layer.postgres.copying import CopyRows
from serving_layer.promise import progress, quarantine, source_queries
from serving_layer.promise.quarantine import BadRecords
from tests.serving_layer.alarming import AGO, COMPACTED, LONG_AGO, THRESHOLDS, WEEK, alarms_of_a, sql
from tests.serving_layer.world import World, empty
from view_algebra import LaminaError, compile_catalog


def in_tens(sentence: str) -> str:
    """A sentence with its seconds rounded down to tens: a busy machine asks for an age some seconds late."""
    return re.sub(r"(?<=\d)\d s\b", "0 s", sentence)


def set_heartbeat(world: World, ago: str) -> None:
    """Sets the age of the last heartbeat of a's writer."""
    sql(world, f"UPDATE lamina.heartbeat SET heard_at = {AGO} '{ago}' WHERE query = 'a'")


def test_an_unanswered_topic_is_reported_once_nothing_was_counted_for_a_while(world: World) -> None:
    for ago, expected in (("5 s", 0), ("80 s", 1)):
        long_ago = LONG_AGO.replace("80 s", ago)
        sql(world, f"UPDATE lamina.query SET {long_ago}")
        with world.database.snapshot() as connection:
            raised = [alarm for alarm in alarms(connection, {}, THRESHOLDS) if alarm.startswith("a: ")]
        assert len(raised) == expected, raised
    assert in_tens(raised[0]).startswith("a: Kafka does not answer for its topic, and no record was counted for 80 s")


QUERIES = [
    # (SET clause of the query, records behind, alarm)
    (LONG_AGO, 0, None),
    (
        LONG_AGO,
        7,
        "7 records behind, and none was counted for 80 s: the log of its speed layer (the test)",
    ),
    (f"{LONG_AGO}, committed_at = clock_timestamp()", 7, None),
    (f"{LONG_AGO}, created_at = clock_timestamp()", 7, None),
    (f"{LONG_AGO}, writer = NULL, writer_kind = NULL", 7, "none was counted for 80 s: no speed layer runs"),
    (f"{LONG_AGO}, stopped = 'it fails again and again: a reason'", 7, "it fails again and again: a reason"),
    (
        f"committed_at = clock_timestamp(), waiting = 9, waiting_at = {AGO} '61 s'",
        9,
        "and the backlog has not shrunk for 60 s",
    ),
    (f"committed_at = clock_timestamp(), waiting = 9, waiting_at = {AGO} '5 s'", 9, None),
    (f"committed_at = clock_timestamp(), waiting = 0, waiting_at = {AGO} '1 h'", 9, None),
]


def test_a_query_that_stands_still_raises_an_alarm_with_its_reason(world: World) -> None:
    before = "SELECT created_at, committed_at, caught_up_at, writer, writer_kind FROM lamina.query WHERE name = 'a'"
    for values, behind, expected in QUERIES:
        with world.database.begin() as connection:
            kept = connection.execute(text(before)).mappings().one()
        assigned: dict[str, str] = {}
        for part in values.split(", "):
            column, _, value = part.partition(" = ")
            assigned[column] = value
        sql(world, f"UPDATE lamina.query SET {', '.join(f'{c} = {v}' for c, v in assigned.items())} WHERE name = 'a'")
        set_heartbeat(world, "0 s")
        raised = alarms_of_a(world, behind=behind)
        assert len(raised) == (expected is not None), (values, raised)
        assert expected is None or expected in in_tens(raised[0]), (values, raised)
        with world.database.begin() as connection:
            connection.execute(
                text(
                    "UPDATE lamina.query SET created_at = :created_at, committed_at = :committed_at, caught_up_at ="
                    " :caught_up_at, writer = :writer, writer_kind = :writer_kind, stopped = NULL, waiting = NULL,"
                    " waiting_at = NULL WHERE name = 'a'"
                ),
                dict(kept),
            )


def test_a_view_is_as_fresh_as_its_oldest_source_and_unknown_until_each_was_counted(world: World) -> None:
    def hours_behind() -> dict[str, float | None]:
        with world.database.begin() as connection:
            rows = connection.execute(text("SELECT view, round(seconds_behind / 3600) FROM lamina.freshness"))
            of_views = {view: None if hours is None else float(hours) for view, hours in rows}
            assert {
                shown.name: shown.seconds_behind and round(shown.seconds_behind / 3600)
                for shown in overview(connection).views
            } == of_views
            return of_views

    sql(world, f"UPDATE lamina.query SET caught_up_at = {AGO} '40 hours' WHERE name = 'a'")
    assert hours_behind() == {"sums": 40, "counts": 40, "both": None}
    sql(world, f"UPDATE lamina.query SET caught_up_at = {AGO} '90 hours' WHERE name = 'b'")
    assert hours_behind() == {"sums": 40, "counts": 40, "both": 90}


def test_an_alarm_about_a_missed_freshness_target_says_how_often_it_was_met(world: World) -> None:
    wanted = {"counts": "1 minute", "both": "1 minute", "sums": "5 seconds"}
    files = {
        f"{name}.sql": world.files[f"{name}.sql"].replace(" AS", f" TBLPROPERTIES ('fresh_within' = '{span}') AS", 1)
        for name, span in wanted.items()
    }
    with world.database.begin() as connection:
        catalog = compile_catalog(world.files | files)
        changes = deploying.apply(connection, Target(world.files | files, catalog, {}))
        assert {change.name: (change.action, change.effect) for change in changes if change.action != "nothing"} == {
            name: ("update", f"fresh_within is {span}") for name, span in wanted.items()
        }
    sql(world, f"UPDATE lamina.query SET caught_up_at = now(), newest = NULL, created_at = {AGO} '70 s'")
    sql(world, "UPDATE lamina.query SET caught_up_at = NULL WHERE name = 'b'")
    [never] = [alarm for alarm in alarms_of_a(world) if "fresh_within" in alarm]
    assert in_tens(never).startswith("both: 70 s behind, because b was never counted, and its fresh_within is 60 s")
    for name, ago in (("a", "40 s"), ("b", "90 s")):
        sql(world, f"UPDATE lamina.query SET caught_up_at = {AGO} '{ago}', committed_at = NULL WHERE name = '{name}'")
    set_heartbeat(world, "0 s")
    late = [in_tens(alarm.partition(": `lamina")[0]) for alarm in alarms_of_a(world) if "fresh_within" in alarm]
    assert late == [
        "both: 90 s behind, and its fresh_within is 60 s",
        "sums: 40 s behind, and its fresh_within is 5 s",
    ]
    noted = [(50, 1, None), (146, 99, 1), (2, 10, 1), (2, 1, 2)]
    with world.database.begin() as connection:  # one transaction, and so one now()
        for minutes, *behind in noted:
            for name, seconds in zip("ab", behind, strict=True):
                at = "NULL" if seconds is None else f"{AGO} '{seconds} s'"
                connection.exec_driver_sql(f"UPDATE lamina.query SET caught_up_at = {at} WHERE name = '{name}'")
            freshness_history.note(connection)
            freshness_history.note(connection)
            connection.exec_driver_sql(
                f"UPDATE lamina.freshness_target SET minute = minute - {minutes} * interval '1 min',"
                f" since = since - {minutes} * interval '1 min'; DELETE FROM lamina.freshness_history"
            )
        rows = connection.execute(text("SELECT view, span, met FROM lamina.freshness_met ORDER BY 1, 2 DESC")).all()
    shares = {(view, span): round(met * (60 if span == "hour" else 1_000), 6) for view, span, met in rows}
    assert shares == {
        ("both", "hour"): 2,
        ("both", "day"): round(1_000 * 2 / 150, 6),  # from the first minute with both of its sources
        ("counts", "hour"): 2,
        ("counts", "day"): 1_000 * 3 / 200,
        ("sums", "hour"): 1,
        ("sums", "day"): 1_000 * 2 / 200,
    }


def test_a_writer_without_heartbeats_is_reported_as_gone(world: World) -> None:
    sql(world, f"UPDATE lamina.query SET {LONG_AGO} WHERE name = 'a'")
    set_heartbeat(world, "40 s")
    [gone] = alarms_of_a(world)
    assert in_tens(gone).startswith("a: its speed layer (the test) was last heard of 40 s ago")
    with world.database.begin() as other:
        progress.lock(other, ["a"])
        with world.database.begin() as connection:
            progress.limit_lock_waits(connection)
            progress.record_heartbeat(connection, world.fences)
        assert alarms_of_a(world) == [], "the query's lock does not delay heartbeats"
    set_heartbeat(world, "40 s")
    sql(world, "UPDATE lamina.query SET committed_at = clock_timestamp() WHERE name = 'a'")
    assert alarms_of_a(world) == [], "a commit is a sign of life"
    sql(world, f"UPDATE lamina.query SET {LONG_AGO}, writer = NULL, writer_kind = NULL WHERE name = 'a'")
    assert alarms_of_a(world) == [], "it has ended normally"


def test_a_query_whose_history_is_still_computed_is_not_read_and_raises_no_alarm(world: World) -> None:
    with world.database.begin() as connection:
        source_queries.create(connection, "later", "later", empty("id-later", "later"))
        connection.execute(text(f"UPDATE lamina.query SET {LONG_AGO} WHERE name = 'later'"))
        end = Offsets.of("later", {0: 7})
        of_later = TopicState(end, Offsets(dict.fromkeys(end, 0)), WEEK)
        assert of_queries(connection, {"later": of_later}, THRESHOLDS).keys() == {"a", "b"}
        assert delays.waits_for(connection, "later", starting=False) is None


def test_an_alarm_warns_of_records_that_kafka_may_drop_before_they_are_archived(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    assert alarms_of_a(world) == []
    sql(world, "UPDATE lamina.query SET created_at = created_at - interval '4 days'")
    [near] = alarms_of_a(world)
    assert near.startswith("a: nothing was archived for 4 d, and Kafka keeps records for 7 d: run `lamina archive`")
    with world.database.begin() as connection:
        progress.record_archived(connection, "a", world.progress("a"))
    assert alarms_of_a(world) == []
    sql(world, f"UPDATE lamina.archived SET archived_at = {AGO} '4 days'")
    assert alarms_of_a(world) == [], "everything is archived"
    [compacted] = alarms_of_a(world, retention=COMPACTED)
    assert compacted.startswith("a: topic a has been compacted since it was deployed")
    assert "cleanup.policy" in compacted


def test_an_alarm_warns_of_unarchived_records_that_kafka_is_about_to_drop_for_size(world: World) -> None:
    gigabyte = replace(WEEK, milliseconds=None, bytes=1_000_000_000)
    world.append("a", 0, *[("x", number) for number in range(10)])
    world.advance("a")
    held = Offsets({at: min(7, end) for at, end in world.progress("a").items()})
    with world.database.begin() as connection:
        progress.record_archived(connection, "a", held)
    for ago, earliest, alarms_told in (("1 hour", 5, 0), ("3 hours", 0, 0), ("3 hours", 3, 0), ("3 hours", 5, 1)):
        sql(world, f"UPDATE lamina.archived SET archived_at = {AGO} '{ago}'")
        raised = alarms_of_a(world, retention=gigabyte, earliest=earliest)
        assert len(raised) == alarms_told, (ago, earliest, raised)
    assert raised[0] == (
        "a: nothing was archived for 3 h, and more than half of the records that Kafka keeps of partition 0 (1.0 GB at"
        " most) are not archived: run `lamina archive`, and see why its schedule does not"
    )
    assert alarms_of_a(world, retention=WEEK, earliest=5) == [], "it drops none for their size"


def test_an_open_transaction_of_a_producer_raises_an_alarm(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    reached = world.progress("a")
    with world.database.begin() as connection:
        progress.record_archived(connection, "a", reached)
    for seconds, alarms_told in ((59.0, 0), (720.0, 1)):
        undecided = [OpenTransaction(TopicPartition("a", 0), 2, 1234, seconds)]
        topic = TopicState(reached, Offsets(dict.fromkeys(reached, 0)), WEEK, undecided)
        with world.database.snapshot() as connection:
            raised = [alarm for alarm in alarms(connection, {"a": topic}, THRESHOLDS) if alarm.startswith("a: ")]
        assert len(raised) == alarms_told, raised
    assert raised[0].startswith(
        "a: a producer has had a transaction open for 12 min in partition 0, and nothing from offset 2 on is counted or"
        " archived (1,234 offsets so far): "
    )
    by_record = [OpenTransaction(TopicPartition("a", 0), 2, 1234, 81_216_000.0, by_record=True)]
    topic = TopicState(reached, Offsets(dict.fromkeys(reached, 0)), WEEK, by_record)
    with world.database.snapshot() as connection:
        [unreported, *_] = [alarm for alarm in alarms(connection, {"a": topic}, THRESHOLDS) if alarm.startswith("a: ")]
    assert unreported.startswith(
        "a: a producer has had a transaction open in partition 0; the brokers do not report when it began, and nothing"
        " from offset 2 on is counted"
    ), "the timestamp of a record is not an age"


def test_an_alarm_about_records_lost_to_retention_says_if_views_count_them(world: World) -> None:
    world.append("a", 0, *[("x", number) for number in range(6)])
    below_4 = world.progress("a").updated({TopicPartition("a", 0): 4})
    for reached, effect in (
        (world.progress("a"), "no view counts them, and no rebuild can"),
        (below_4, "views count those below 4, a rebuild could not"),
        (world.end("a"), "views still count them, a rebuild could not"),
    ):
        if reached != world.progress("a"):
            world.commit(world.micro_batch("a", world.progress("a"), reached))
        [lost] = alarms_of_a(world, earliest=5)
        assert lost == (
            "a: records of a partition 0 from 0 to 5 were removed by retention before they were archived:"
            f" {effect} (`lamina archive a --accept-loss` records the loss)"
        )


def test_an_alarm_warns_that_kafka_may_drop_a_tables_deletions_before_they_are_archived(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    sql(world, """UPDATE lamina.compiled SET texts = jsonb_set(texts, '{kind}', '"table"') WHERE name = 'a'""")
    assert alarms_of_a(world, retention=COMPACTED) == []
    sql(world, "UPDATE lamina.query SET created_at = created_at - interval '13 hours'")
    [near] = alarms_of_a(world, retention=COMPACTED)
    assert near.startswith(
        "a: nothing was archived for 13 h, and Kafka drops deletions from a compacted topic 24 h after they came:"
    )
    with world.database.begin() as connection:
        progress.record_archived(connection, "a", world.progress("a"))
    assert alarms_of_a(world, retention=COMPACTED) == []


def test_more_bad_records_in_an_hour_than_are_kept_raise_an_alarm(world: World) -> None:
    kept = "TBLPROPERTIES ('quarantine_bytes' = '300 kB')"
    world.files["sources.sql"] = world.files["sources.sql"].replace("format 'json');", f"format 'json') {kept};", 1)
    with world.database.begin() as connection:
        world.apply(connection)
        source = deployed(connection).sources["a"]
    for first, alarmed in ((0, False), (200, True)):
        row = f'"a","a",0,{{}},,"no JSON",,"\\x{"ff" * 892}",892\n'  # a thousand bytes each
        rows = CopyRows("".join(row.format(first + number) for number in range(200)).encode())
        bad = BadRecords("a", "a", rows, {"no JSON": 200})
        with world.database.begin() as connection:
            quarantine.stage(connection, bad)
            quarantine.write(connection, bad)
        quarantine.trim(world.database, source)
        raised = alarms_of_a(world, thresholds=Thresholds(bad_an_hour=10_000))
        assert [alarm.partition(" within")[0] for alarm in raised] == (
            ["a: more records than it keeps went to quarantine"] if alarmed else []
        )
    sql(
        world,
        "UPDATE lamina.quarantine SET quarantined_at = quarantined_at - interval '2 hours' WHERE \"offset\" < 300",
    )
    assert alarms_of_a(world, thresholds=Thresholds(bad_an_hour=10_000)) == []


def test_many_bad_records_in_an_hour_raise_an_alarm(world: World) -> None:
    bad = (
        'INSERT INTO lamina.quarantine (source, topic, partition, "offset", error, quarantined_at)'
        " SELECT 'a', 'a', 0, n, 'no JSON', clock_timestamp() - {0} FROM generate_series({1}, {2}) AS n"
    )
    sql(world, bad.format("interval '2 hours'", 1, 50))
    sql(world, bad.format("interval '1 minute'", 51, 60))
    assert alarms_of_a(world, thresholds=Thresholds(bad_an_hour=10)) == []
    [alarm] = alarms_of_a(world, thresholds=Thresholds(bad_an_hour=9))
    assert alarm.startswith("a: more than 9 records went to quarantine within an hour")
    sql(world, "UPDATE lamina.progress SET next_offset = 201 WHERE query = 'a' AND partition = 0")
    for last, alarmed in ((150, []), (151, ["a: 51 of its newest 100 records went to quarantine"])):
        sql(world, 'DELETE FROM lamina.quarantine WHERE "offset" > 60')
        sql(world, bad.format("interval '1 minute'", 101, last))
        assert [alarm.partition(" within")[0] for alarm in alarms_of_a(world)] == alarmed


def test_a_source_that_is_declared_again_begins_again(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    sql(world, f"UPDATE lamina.query SET {LONG_AGO}, stopped = 'its topic is another', waiting = 9")
    bad = (
        "INSERT INTO lamina.quarantine (source, topic, partition, \"offset\", error) VALUES ('a', 'a', 0, 0, 'no JSON')"
    )
    sql(world, bad)
    without = {"sources.sql": world.files["sources.sql"].splitlines()[2]}
    topics = {name: empty(f"another-{name}", name) for name in ("a", "b")}
    for files in (without, world.files):
        with world.database.begin() as connection:
            deploying.apply(connection, Target(files, compile_catalog(files), topics, prune=True))
    world.log = {at: [] if at.topic == "a" else records for at, records in world.log.items()}
    assert alarms_of_a(world, behind=7) == []
    with world.database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM lamina.quarantine")).scalar() == 0


def test_a_recreated_topic_is_not_shared_with_its_previous_source(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    files = world.files | {
        "newest.sql": "CREATE TABLE newest (k STRING PRIMARY KEY, n BIGINT) USING kafka"
        " OPTIONS (topic 'a', format 'json');"
    }
    topics = {name: empty("another", "a") for name in ("a", "b", "newest")}
    with (
        pytest.raises(LaminaError, match="newest: topic a is not the one that a reads") as raised,
        world.database.begin() as connection,
    ):
        deploying.apply(connection, Target(files, compile_catalog(files), topics))
    assert "drop a first" in raised.value.way_out


def test_a_writer_sends_heartbeats_and_releases_its_query(world: World) -> None:
    def writer() -> tuple[str | None, bool]:
        with world.database.begin() as connection:
            row = connection.execute(
                text(
                    f"SELECT q.writer, h.heard_at > {AGO} '30 s' FROM lamina.query AS q"
                    " JOIN lamina.heartbeat AS h ON h.query = q.name WHERE q.name = 'a'"
                )
            ).one()
            return row[0], row[1]

    older = {"a": world.fences["a"] - 1}
    set_heartbeat(world, "1 h")
    with world.database.begin() as connection:
        progress.record_heartbeat(connection, older)
        progress.release(connection, older)
    assert writer() == ("the test", False), "another has taken it over since"
    with world.database.begin() as connection:
        progress.record_heartbeat(connection, world.fences)
    assert writer() == ("the test", True)
    with world.database.begin() as connection:
        progress.release(connection, world.fences)
    assert writer() == (None, True)


def test_records_count_as_waiting_after_some_seconds_above_progress(world: World) -> None:
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    looks: list[tuple[list[tuple[float, int]], int, int]] = [
        # (the end that the topic had so many seconds ago …, of these reached, records that wait)
        ([(9, 5), (6, 7), (1, 8)], 0, 5),
        ([(9, 5), (6, 9), (1, 9)], 0, 5),  # more of them now: what is kept is the fewest
        ([(9, 2), (6, 3), (0, 9)], 1, 1),
        ([(9, 2), (0, 2)], 2, 0),
        ([(4, 2), (0, 9)], 1, 0),
        ([(9, 4)], 0, 2),
    ]
    for ends, reached, waiting in looks:
        with world.database.begin() as connection:
            done = progress.record_backlog(connection, {"a": [(ago, Offsets.of("a", {0: end})) for ago, end in ends]})[
                "a"
            ]
            kept = connection.execute(text("SELECT waiting FROM lamina.query WHERE name = 'a'")).scalar()
        assert (done, kept) == (reached, waiting), ends


def test_a_wait_for_the_speed_layer_says_if_it_is_silent_or_gone(world: World) -> None:
    for ago, words in (
        ("1 s", "the speed layer is catching up"),
        ("12 s", "the speed layer has sent no heartbeat for 10 s (`lamina status` names its process)"),
        ("1 h", "no speed layer runs (`lamina up`, or `lamina speed`)"),
    ):
        sql(world, f"UPDATE lamina.query SET {LONG_AGO} WHERE name = 'a'")
        set_heartbeat(world, ago)
        with world.database.begin() as connection:
            assert in_tens(delays.waits_for(connection, "a", starting=False) or "") == words
