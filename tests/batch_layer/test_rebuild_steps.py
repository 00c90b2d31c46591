"""The steps of a rebuild: it may die at each of them, and each may be repeated by another process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamina.terminal.failures import in_our_words
from serving_layer.promise import rebuilds
from serving_layer.promise.rebuilds import Scheduler
from tests.fix_catalogs import CLICKS, EVENTS, HOURLY, PLACES, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one
from view_algebra.errors import LaminaError

STEPS = (
    "after seal",
    "after archive",
    "compute totals",
    "after compute totals",
    "absorbed",
    "after go-live",
    "after prove",
    "after check",
    "noted",
    "after hand-over",
    "after retire",
)
"""The steps at which a rebuild may die."""


def test_a_rebuild_may_die_at_any_step_and_the_next_one_succeeds(deployed: Deployed) -> None:
    """The next one dies a step later, and the last one finds what all of them have left."""
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    for sent, step in enumerate(STEPS, 21):
        with deployed.killed_at(step):
            deployed.deployment.batch.rebuild()
        deployed.send("events", event(sent))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (sent,), step
    proofs = deployed.deployment.batch.rebuild()
    assert [proof.differing for proof in proofs] == [0, 0]
    deployed.check()


def test_two_rebuilds_at_once_are_refused(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running") as refused:
        batch.rebuild()
    assert "its last step, seal, ended 0 min ago. Another may begin when it is done, or 5 h 59" in str(refused.value)
    assert f"`lamina step abandon --rebuild {id}`" in refused.value.way_out
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running"):
        batch.seal(by=Scheduler())
    batch.abandon(id)
    batch.rebuild()


def test_a_repeated_request_begins_one_rebuild(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler("Monday"))
    assert batch.seal(by=Scheduler("Monday")) == id
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running"):
        batch.seal(by=Scheduler("Tuesday"))
    batch.abandon(id)
    leap = batch.leap_seal(by=Scheduler("Monday"))
    assert leap > id
    assert batch.leap_seal(by=Scheduler("Monday")) == leap
    batch.abandon(leap)


def test_a_rebuild_in_one_process_keeps_a_scheduler_out(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    refused: list[Any] = []

    def meanwhile(place: str) -> None:
        if place == "after seal":
            with pytest.raises(LaminaError, match="is running") as caught:
                deployed.deployment.batch.seal(by=Scheduler())
            refused.append(caught.value)

    deployed.deployment.at = meanwhile
    deployed.deployment.batch.rebuild()
    assert refused


def test_every_step_can_be_repeated(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    for _ in range(2):
        batch.archive(id)
    away = replace(batch, dsn="postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Exception, match="Connection refused") as refused:
        away.compute(id, "totals")
    error = in_our_words(refused.value)
    assert error is not None
    assert error.what == "Postgres went away during the command"
    assert len(error.evidence.splitlines()) == 1, "of a page of Java's"
    batch.compute(id, "totals")
    with deployed.deployment.database.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE lamina.generation_cells SET loaded_at = NULL"
            " WHERE generation = (SELECT max(id) FROM lamina.generation)"
        )
    for _ in range(2):
        batch.compute(id, "totals")
    for _ in range(2):
        batch.go_live(id)
    for _ in range(2):
        [proof] = batch.prove(id)
        assert proof.differing == 0
    with pytest.raises(LaminaError, match="was not handed over"):
        batch.retire(id)
    for _ in range(2):
        batch.hand_over(id)
    for _ in range(2):
        batch.retire(id)
    with deployed.deployment.database.begin() as connection:
        assert rebuilds.get(connection, id).state == "done"
    deployed.check()


def test_a_view_dropped_during_a_rebuild_does_not_fail_the_others(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY)
    deployed.send("events", event(1))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    batch.archive(id)
    deployed.apply(hourly="")
    batch.compute(id, "hourly")
    with pytest.raises(LaminaError):
        batch.compute(id, "hourlies")
    batch.compute(id, "totals")
    batch.go_live(id)
    batch.prove(id)
    assert batch.hand_over(id) == []
    batch.retire(id)
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_views_are_proven_one_by_one_and_the_hand_over_names_those_with_new_rows(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    hold = TOTALS.replace("VIEW totals AS", "VIEW totals TBLPROPERTIES ('on_difference' = 'hold') AS")
    deployed.apply(events=EVENTS, hourly=HOURLY, places=PLACES, totals=hold)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    batch.archive(id)
    for name in ("hourly", "totals"):
        batch.compute(id, name)
    live = quick_lamina("step", "go-live", "--json").lines()[-1]
    assert live == {"rebuild": id, "views": ["hourly", "totals"]}

    with pytest.raises(LaminaError, match=f"Rebuild {id} has no view total"):
        batch.prove(id, ["total"])
    proven = quick_lamina("step", "prove", "hourly", "--json").lines()
    assert [proof["view"] for proof in proven] == ["hourly"]

    handed = quick_lamina("step", "hand-over", "--json", code=3).lines()[-1]
    assert handed == {"rebuild": id, "handed_over": ["hourly", "places"], "held": ["totals"]}, "it is not proven"
