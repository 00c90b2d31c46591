"""`lamina blame` names the micro-batch (with its offsets), the rebuild or the version that changed a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from batch_layer.blame import Blame, Event, blame
from batch_layer.selects import Services
from batch_layer.stalls import Watching, Work, unwatched
from lamina.operations import applying
from lamina.reports.blame_lines import show
from lamina.terminal.render import Output
from master_log.offsets import OffsetRange, Offsets
from serving_layer.promise import history
from tests.fix_catalogs import CLICKS, EVENTS, HOURLY, PLACES, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed
from view_algebra.errors import LaminaError

HOUR = "2026-11-24 10:00"


def at(minute: int, country: str | None, n: int) -> dict[str, object]:
    """A record in the hour that the tests blame, at this minute."""
    return {**event(1), "country": country, "n": n, "price": "1.50", "ts": f"2026-11-24T10:{minute:02d}:00Z"}


def blamed(
    deployed: Deployed,
    view: str,
    *key: str,
    since: str = "1 hour",
    limit: int = 10,
    watching: Watching = unwatched,
) -> Blame:
    opened = deployed.deployment
    services = Services(opened.database, opened.spark, opened.log, opened.brokers)
    return blame(services, view, key, since=since, limit=limit, watching=watching)


def micro_batches(blame: Blame) -> list[Event]:
    return [event for event in blame.events if event.micro_batches]


def moved(event: Event, column: str) -> list[tuple[Any, Any]]:
    """The values of a column before and after each change of an event."""
    assert event.changes is not None
    return [
        tuple(None if side is None else side[column] for side in (change.before, change.after))  # type: ignore[misc]
        for change in event.changes
    ]


def ranges(deployed: Deployed, *offsets: tuple[int, int, int]) -> dict[str, OffsetRange]:
    """The ranges of the one source. offsets: (partition, first offset, next offset)."""
    topic = deployed.topic("events")
    starts, ends = ({partition: bounds[side] for partition, *bounds in offsets} for side in (0, 1))
    return {"events": OffsetRange(Offsets.of(topic, starts), Offsets.of(topic, ends))}


def send(deployed: Deployed, partition: int, *records: dict[str, object]) -> None:
    """Counts these records in one micro-batch."""
    deployed.send("events", *records, partition=partition)
    deployed.catch_up()


@contextmanager
def spark_jobs(deployed: Deployed, name: str) -> Iterator[list[int]]:
    """The jobs that Spark has run in the block. The list is filled at its end."""
    context, jobs = deployed.deployment.spark().sparkContext, list[int]()
    context.setJobGroup(name, name)
    try:
        yield jobs
    finally:
        jobs += context.statusTracker().getJobIdsForGroup(name)
        context.setJobGroup("", "")


def test_blame_names_the_micro_batches_that_moved_a_row_and_no_other(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY, places=PLACES, totals=TOTALS, clicks=CLICKS)
    send(deployed, 0, *(event(n) for n in range(12)))
    send(deployed, 1, at(5, "DE", 7), at(6, None, 1))
    send(deployed, 0, event(12))
    send(deployed, 0, at(1, "DE", -7), at(2, "FR", 4), event(13))
    watched: list[Work] = []

    def watching(work: Work) -> AbstractContextManager[None]:
        watched.append(work)
        return nullcontext()

    with spark_jobs(deployed, "a row") as searching:
        result = blamed(deployed, "hourly", HOUR, "DE", watching=watching)
    [(name, reads, tables)] = [(work.name, work.reads, work.tables_of("events")) for work in watched]
    assert name == "hourly", "a search for a slow record reads the sources of the view"
    assert str(reads["events"][1].end) == f"{deployed.topic('events')} 0:16 1:2"
    assert len(tables) == 1
    first, late = micro_batches(result)
    assert first.ranges == ranges(deployed, (1, 0, 2))
    assert moved(first, "events") == [(None, 1)]
    assert late.ranges == ranges(deployed, (0, 13, 16))
    assert moved(late, "largest") == [(7, 7)]
    assert moved(late, "smallest") == [(7, -7)]
    assert [row["events"] for row in result.shown] == [2]
    assert result.selected is None
    assert result.known_since is None
    [of_null] = micro_batches(blamed(deployed, "hourly", HOUR, "NULL"))
    assert of_null.ranges == first.ranges
    assert [event.ranges for event in micro_batches(blamed(deployed, "places", "DE"))] == [first.ranges, late.ranges]
    assert [event.ranges for event in micro_batches(blamed(deployed, "clicks", "n=-7"))] == [late.ranges]
    assert [moved(event, "events") for event in micro_batches(blamed(deployed, "totals"))] == [
        [(0, 12)],
        [(12, 14)],
        [(14, 15)],
        [(15, 18)],
    ]
    newest = micro_batches(blamed(deployed, "totals", limit=1))
    assert [(event.micro_batches, moved(event, "events")) for event in newest] == [(3, [(0, 15)]), (1, [(15, 18)])]
    with spark_jobs(deployed, "no row") as asking, pytest.raises(LaminaError, match="no such row"):
        blamed(deployed, "hourly", HOUR, "XX")
    assert len(asking) < len(searching), "no micro-batch is searched, since all of them together lack the row"


def test_blame_distinguishes_hand_overs_and_names_wrong_rows(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY)
    send(deployed, 0, at(1, "DE", 1), at(2, "FR", 2))
    [(place,)] = deployed.owner("SELECT place FROM lamina.generation_cells")
    key = (HOUR, "country=DE")
    deployed.owner(f"UPDATE {place} SET count = 9 WHERE country = 'DE'")
    wrong = blamed(deployed, "hourly", *key)
    assert [row["events"] for row in wrong.shown] == [9]
    assert [row["events"] for row in wrong.selected or ()] == [1]
    deployed.deployment.batch.rebuild()
    corrected = blamed(deployed, "hourly", *key)
    [*_, rebuilt] = corrected.events
    [turn] = rebuilt.turns
    assert turn.compared is not None
    assert (turn.compared.cells, turn.compared.differing) == (2, 1)
    assert rebuilt.changes == []
    assert corrected.selected is None
    send(deployed, 0, at(3, "DE", 3))
    deployed.deployment.batch.rebuild()
    [*_, before, again] = blamed(deployed, "hourly", *key).events
    assert moved(before, "events") == [(1, 2)]
    assert again.turns[0].compared is not None
    assert again.turns[0].compared.differing == 0
    applying.roll_back(deployed.deployment, "hourly")
    deployed.apply(hourly=HOURLY.replace("max(n)", "max(n + 1)"))
    [*_, back, changed] = blamed(deployed, "hourly", *key).events
    assert back.turns[0].after.generation == before_of(back)
    assert moved(changed, "largest") == [(3, 4)]
    assert changed.turns[0].old is not None
    assert changed.turns[0].new is not None
    assert changed.turns[0].old.version != changed.turns[0].new.version
    deployed.apply(
        hourly=HOURLY.replace("max(n)", "max(n + 1)").replace("country, count(*),", "country, count(*) * 2,")
    )
    [*_, selected] = blamed(deployed, "hourly", *key).events
    assert moved(selected, "events") == [(2, 4)]
    deployed.send("events", at(4, "DE", 4), partition=0)
    deployed.deployment.batch.rebuild(leap=True)
    [*_, leap] = blamed(deployed, "hourly", *key).events
    assert leap.ranges == ranges(deployed, (0, 3, 4))
    assert (leap.micro_batches, moved(leap, "events")) == (0, [(4, 6)])
    assert leap.turns[0].new is not None
    assert leap.turns[0].new.leap


def before_of(event: Event) -> int:
    """The generation before the one that a view was rolled back from."""
    before = event.turns[0].before
    assert before is not None
    assert before.generation is not None
    return before.generation - 1


def test_blame_states_when_its_history_begins(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    for n in range(3):
        send(deployed, 0, at(n, "DE", 1))
    shown, _, second, third = (id for (id,) in deployed.owner("SELECT id FROM lamina.history ORDER BY id"))
    deployed.owner(f"UPDATE lamina.history SET at = at - interval '3 days' WHERE id < {second}")
    with deployed.deployment.database.begin() as connection:
        history.trim(connection)
    left = deployed.owner("SELECT id FROM lamina.history ORDER BY id")
    assert left == [(shown,), (second,), (third,)]
    result = blamed(deployed, "totals", since="30 days")
    assert [moved(event, "events") for event in result.events] == [[(1, 2)], [(2, 3)]]
    assert result.known_since == result.events[0].at
    deployed.owner(f"UPDATE lamina.history SET next = ARRAY[1::bigint] WHERE id = {second}")
    after_a_gap = blamed(deployed, "totals")
    assert [moved(event, "events") for event in after_a_gap.events] == [[(2, 3)]]
    assert after_a_gap.known_since == after_a_gap.events[0].at
    others = EVENTS.replace("TABLE events", "TABLE others").replace("_events'", "_others'")
    deployed.apply(others=others, totals=TOTALS.replace("FROM events", "FROM others"))
    [*_, otherwise] = blamed(deployed, "totals").events
    assert otherwise.changes is None, "the view no longer reads its earlier source"


def test_blame_does_not_know_the_changes_before_a_rename(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    for n in range(2):
        send(deployed, 0, at(n, "DE", 1))
    deployed.apply_break(totals=TOTALS.replace("totals", "sums TBLPROPERTIES ('renamed_from' = 'totals')"))
    send(deployed, 0, at(2, "DE", 1))
    *before, last = blamed(deployed, "sums").events
    assert moved(last, "events") == [(2, 3)]
    assert {event.changes for event in before} == {None}


def test_blame_refuses_questions_it_cannot_answer(
    deployed: Deployed, lamina: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY)
    send(deployed, 0, at(1, "DE", 1), at(2, "DE", 2))
    for words, refusal in (
        (("nothing",), "There is no view named nothing"),
        (("hourly", "DE"), "hourly needs a value for each of its group columns: hour, country"),
        (("hourly", "noon", "DE"), "'noon' is not a value of hour"),
        (("hourly", "events=2"), "events is not a group column of hourly"),
        (("hourly", HOUR, "XX"), "hourly has no such row"),
    ):
        with pytest.raises(LaminaError, match=refusal):
            blamed(deployed, *words)
    with pytest.raises(LaminaError, match="'long ago' is not a time"):
        blamed(deployed, "hourly", HOUR, "DE", since="long ago")
    assert "is not a value of hour" in lamina("blame", "hourly", "noon", "DE", code=1).err
    show(Output(as_json=True), "hourly", blamed(deployed, "hourly", HOUR, "DE"))
    [*_, one, now] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert one["offsets"] == {"events": {"0": [0, 2]}}
    assert one["changes"][0]["after"]["events"] == 2
    assert (now["what"], now["selected"], now["known_since"]) == ("now", None, None)
    show(Output(), "hourly", blamed(deployed, "hourly", HOUR, "DE"))
    out = capsys.readouterr().out
    assert "micro-batch of events" in out
    assert "0:0-1" in out
    assert "first shown, by apply" in out
    assert "not known" not in out
