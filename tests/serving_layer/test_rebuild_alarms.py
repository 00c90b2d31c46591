"""An alarm is raised for every rebuild that needs attention, and for no other."""

from __future__ import annotations

from serving_layer.catalog import lookup
from serving_layer.change import facts
from serving_layer.change.facts import MeasuredRebuild
from serving_layer.monitoring import metric_table
from serving_layer.monitoring.overview import overview
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.monitoring.view_states import view_state
from serving_layer.postgres.states import RebuildKind, RebuildState, Step, Stop, WriterKind
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.promise.rebuilds import Purpose, Scheduler
from tests.serving_layer.alarming import LONG_AGO, alarms_of_a, sql
from tests.serving_layer.world import World


def test_an_abandoned_leap_raises_an_alarm_with_the_way_out(world: World) -> None:
    with world.database.begin() as connection:
        id = rebuilds.begin(connection, ["sums"], leap=True, by=Scheduler())
        progress.take_over(connection, "a", rebuilds.leap_writer(id), WriterKind.LEAP)
        rebuilds.record_finished(connection, id, Step.SEAL)
    assert alarms_of_a(world) == []
    sql(world, f"UPDATE lamina.query SET {LONG_AGO}")
    assert alarms_of_a(world) == [], "it lacks nothing yet"
    with world.database.snapshot() as connection:
        heard = [s.labels for s in metric_table.read(connection) if s.metric == "lamina_source_heard_age_seconds"]
    assert heard == [("b",)], "a leap sends no heartbeats, so no alert asks for a speed layer"
    [alarm] = alarms_of_a(world, behind=3)
    assert f"rebuild {id}, a leap, holds its progress, and its last step was `seal`" in alarm
    assert f"lamina step abandon --rebuild {id}" in alarm
    sql(world, "UPDATE lamina.rebuild SET lease_until = lease_until - interval '2 hours'")
    [left] = alarms_of_a(world)
    assert left.startswith(f"rebuild {id} was left 2 h ago after step `seal`: continue its steps, or")


def test_a_failed_dead_or_overdue_rebuild_raises_an_alarm(world: World) -> None:
    assert alarms_of_a(world) == []
    assert alarms_of_a(world, thresholds=Thresholds(rebuild_within=26)) == []
    sql(world, "UPDATE lamina.query SET created_at = created_at - interval '27 hours'")
    [overdue] = alarms_of_a(world, thresholds=Thresholds(rebuild_within=26))
    assert overdue.startswith("no rebuild has succeeded for 27 h")
    with rebuilds.in_one_process(world.database):
        with world.database.begin() as connection:
            id = rebuilds.begin(connection, ["sums"])
        assert alarms_of_a(world) == []
    assert alarms_of_a(world)[0].startswith(f"rebuild {id} died after step `begin`")
    for stopped, telling in (("NULL", 1), *((f"'{stop}'", 0) for stop in Stop)):
        sql(world, f"UPDATE lamina.rebuild SET state = 'failed', error = 'the disk is full', stopped = {stopped}")
        assert len(alarms_of_a(world)) == telling, stopped
        assert metric(world, "lamina_rebuild_failed") == telling, "the alert agrees with the alarm"
    sql(world, "UPDATE lamina.rebuild SET state = 'done', error = NULL, stopped = NULL, ended_at = clock_timestamp()")
    assert alarms_of_a(world, thresholds=Thresholds(rebuild_within=26)) == []
    assert metric(world, "lamina_rebuild_age_seconds") < 60
    sql(world, "UPDATE lamina.rebuild SET kind = 'apply'")
    assert metric(world, "lamina_rebuild_age_seconds") == 0, "it has no value"
    [overdue] = alarms_of_a(world, thresholds=Thresholds(rebuild_within=26))
    assert overdue.startswith("no rebuild has succeeded for 27 h"), "an apply is not a nightly rebuild"


def metric(world: World, name: str) -> float:
    """The value of a metric without labels, or 0 if it has none."""
    with world.database.snapshot() as connection:
        return {sample.metric: sample.value for sample in metric_table.read(connection)}.get(name, 0)


def test_the_alarm_about_a_dead_preview_names_the_preview_and_no_apply(world: World) -> None:
    def ended(state: RebuildState, purpose: Purpose = rebuilds.RECOMPUTE) -> int:
        with rebuilds.in_one_process(world.database), world.database.begin() as connection:
            id = rebuilds.begin(connection, ["sums"], purpose=purpose)
            if state is not RebuildState.RUNNING:
                rebuilds.end(connection, id, state, "the disk is full")
            return id

    nightly, preview = ended(RebuildState.FAILED), Purpose(RebuildKind.PREVIEW, "dev")
    for state in (RebuildState.FAILED, RebuildState.DONE):
        ended(state, preview)
        [failed] = alarms_of_a(world)
        assert failed.startswith(f"rebuild {nightly} failed"), (
            "a preview reports its own failure, and repairs no other rebuild"
        )
    died = ended(RebuildState.RUNNING, preview)
    assert (
        f"rebuild {died} died after step `begin`: repeat the `lamina apply --preview dev` that"
        in alarms_of_a(world)[-1]
    )
    sql(world, "UPDATE lamina.query SET created_at = created_at - interval '27 hours'")
    sql(world, "UPDATE lamina.rebuild SET state = 'done', ended_at = clock_timestamp() WHERE kind = 'preview'")
    overdue = alarms_of_a(world, thresholds=Thresholds(rebuild_within=26))[-1]
    assert overdue.startswith("no rebuild has succeeded for 27 h"), "a preview is not a nightly rebuild"


def test_a_failed_rebuild_raises_an_alarm_until_a_later_one_has_computed_its_views(world: World) -> None:
    def ended(*views: str, state: RebuildState, error: str | None = None, stopped: Stop | None = None) -> int:
        with rebuilds.in_one_process(world.database), world.database.begin() as connection:
            id = rebuilds.begin(connection, views)
            rebuilds.end(connection, id, state, error, stopped)
            return id

    first = ended("counts", "sums", state=RebuildState.FAILED, error="the disk is full")
    ended("both", state=RebuildState.DONE)
    ended("sums", state=RebuildState.DONE)
    [alarm] = alarms_of_a(world)
    assert alarm.startswith(f"rebuild {first} failed after step `begin`: the disk is full")
    assert metric(world, "lamina_rebuild_failed") == 1, "the alert agrees with the alarm"
    ended("counts", state=RebuildState.FAILED, error="it was interrupted", stopped=Stop.INTERRUPTED)
    assert alarms_of_a(world) == [alarm], "a person's stop raises no alarm"
    ended("counts", state=RebuildState.DONE)
    assert alarms_of_a(world) == []
    assert metric(world, "lamina_rebuild_failed") == 0
    ended("not_deployed", state=RebuildState.FAILED, error="the disk is full")
    assert len(alarms_of_a(world)) == 1
    ended("both", state=RebuildState.DONE)
    assert alarms_of_a(world) == []


def test_a_held_generation_raises_an_alarm_until_a_later_one_is_read(world: World) -> None:
    """Rebuilds of other views do not change that."""
    world.change(
        sums=world.files["sums.sql"].replace("AS SELECT", "TBLPROPERTIES ('on_difference' = 'hold') AS SELECT")
    )
    world.append("a", 0, ("x", 1))
    world.advance("a")
    held = rebuilt(world, "sums", state=RebuildState.HELD)
    [alarm] = alarms_of_a(world)
    assert alarm.startswith(f"sums: its proof found a difference, and rebuild {held} holds it back")
    rebuilt(world, "counts", state=RebuildState.DONE)
    assert alarms_of_a(world) == [alarm]
    rebuilt(world, "sums", state=RebuildState.DONE)
    assert alarms_of_a(world) == []


def held_views(world: World) -> set[str]:
    """The views that a new generation is held back from, as the console, the metrics and the alarms say alike."""
    with world.database.snapshot() as connection:
        shown = {view.name for view in overview(connection).views if view.held}
        samples = {s.labels[0] for s in metric_table.read(connection) if s.metric == "lamina_view_held" and s.value}
        pages = {name for name in world.catalog.views if (page := view_state(connection, name)) and page.held}
        alarming = {new.view for held in lookup.generations_held_by_rebuilds(connection).values() for new in held}
    assert shown == samples == pages == alarming
    return shown


def test_a_view_is_held_until_its_own_rebuild_or_a_later_one_is_read(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    id, opened = world.rebuild("counts", "sums")
    world.hand_over("counts", opened["counts"])
    with world.database.begin() as connection:
        rebuilds.end(connection, id, RebuildState.HELD)
    assert held_views(world) == {"sums"}, "counts was handed over"
    with world.database.begin() as connection:
        preview = rebuilds.begin(connection, ["sums"], purpose=Purpose(RebuildKind.PREVIEW, "dev"))
        rebuilds.end(connection, preview, RebuildState.DONE)
    assert held_views(world) == {"sums"}, "a preview hands nothing over"
    rebuilt(world, "sums", state=RebuildState.DONE)
    assert held_views(world) == set()


def test_the_largest_recent_rebuild_predicts_durations(world: World) -> None:
    with world.database.begin() as connection:
        assert facts.largest_rebuild(connection) is None
    world.append("a", 0, *[("x", number) for number in range(9)])
    world.advance("a")
    large = rebuilt(world, "sums", state=RebuildState.DONE)
    sql(world, f"UPDATE lamina.rebuild SET started_at = ended_at - interval '18 s' WHERE id = {large}")
    with world.database.begin() as connection:
        assert facts.largest_rebuild(connection) == MeasuredRebuild(large, 9, 18.0)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    rebuilt(world, "sums", state=RebuildState.FAILED)
    with world.database.begin() as connection:
        assert facts.largest_rebuild(connection) == MeasuredRebuild(large, 9, 18.0)


def rebuilt(world: World, view: str, *, state: RebuildState) -> int:
    """Runs a rebuild of one view, which is handed over if `state` is DONE. Returns its id."""
    with rebuilds.in_one_process(world.database):
        with world.database.begin() as connection:
            id = rebuilds.begin(connection, [view])
            new = generations.open_building(connection, view, rebuild=id).id
        world.load(new)
        world.go_live(new)
        if state is RebuildState.DONE:
            world.hand_over(view, new)
        with world.database.begin() as connection:
            rebuilds.end(connection, id, state)
    return id
