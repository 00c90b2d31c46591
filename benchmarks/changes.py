"""Changed views: the time of a change, its effect on readers and the speed layer, and the rate of a reprocess.

The first part runs under a trickle of records, with the speed layer as in `lamina up` and a reader that asks for one
cell after another. A view's cells change, so a new version is computed, goes live and moves. It is rolled back and
applied again. Then only its `final` changes. The reader and the speed layer are also measured before, for comparison.
The second part runs with no other load: `lamina plan` of many changed views, and three changed views over many records.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import click
import psycopg2

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.rebuild import Reader, Steps, narrate_steps
from benchmarks.rebuild_rate import archive
from benchmarks.running import analyst, catch_up, deployment, environment_for, folder_of, speed_layer, threads
from benchmarks.traffic import Watcher, traffic
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output

AT_ONCE, PLANNED = 1.0, 5.0
"""Limits in seconds for a change of `final` or a rollback, and for a plan."""

READER_BEYOND, SPEED_BEYOND = 50.0, 1.0
"""Milliseconds and seconds beyond the usual longest."""

REPROCESSED = 200_000
"""Records a second on two cores: a hundred times the rate of the freshness figure."""

TRICKLE = 50
"""Events a second."""


CTR = (
    """
SELECT country, count(*) AS events, count_if(kind = 'buy') / count(*) AS rate FROM events GROUP BY country""",
    """
SELECT country, city, count(*) AS events, count_if(kind = 'buy') / count(*) AS rate
FROM events GROUP BY country, city""",
    """
SELECT country, city, window(ts, '30 days', '1 day').end AS until, count(*) AS events,
       count_if(kind = 'buy') / count(*) AS rate, sum(quantity) FILTER (WHERE kind = 'buy') / count(*) AS pieces
FROM events GROUP BY country, city, window(ts, '30 days', '1 day')""",
)
"""A rate by country. Then by country and city. Then over the last 30 days of each day, so each event is in 30
windows.
"""


def more_cells(sql: str) -> str:
    """The view with one more aggregate, which needs new cells."""
    columns, from_clause, rest = sql.partition("FROM events")
    return f"{columns.rstrip()}, max(seq) AS newest {from_clause}{rest}"


def other_final(sql: str, turn: int) -> str:
    """The view with one more column that is computed from its existing cells."""
    return sql.replace("count(*) AS events", f"count(*) AS events, count(*) + {turn} AS shifted", 1)


def time_update(opened: Deployment, files: Mapping[str, str]) -> float:
    """Applies a change that needs no new cells. Returns the seconds it took."""
    actions = {change.action for change in applying.plan(opened, files)} - {"nothing"}
    assert actions == {"update"}, f"this change should be an update, and is {actions}"
    began = time.monotonic()
    applying.apply(opened, files, allow_break=True)
    return time.monotonic() - began


def time_command(
    opened: Deployment, *arguments: str, files: Mapping[str, str] | None = None, exit_code: int = 0
) -> float:
    """Runs a command, and returns its seconds, including Python's start. `files` are its catalog."""
    with folder_of(files or {}) as folder:
        catalog = ["--catalog", str(folder)] if files else []
        began = time.monotonic()
        command = [sys.executable, "-m", "lamina", *arguments, *catalog]
        done = subprocess.run(command, env=environment_for(opened), capture_output=True, text=True, check=False)
        took = time.monotonic() - began
    assert done.returncode == exit_code, f"{arguments} ended with {done.returncode}\n{done.stderr}"
    return took


def plan(output: Output, views: int) -> list[Figure]:
    """Measures `lamina plan` of a catalog in which every view has other cells than the deployed one."""
    names = list(events.VIEWS)
    declared = {f"{names[n % len(names)]}_{n}": events.VIEWS[names[n % len(names)]] for n in range(views)}
    changed = {name: more_cells(sql) for name, sql in declared.items()}
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**declared))
        output.tell(f"{views} views are deployed")
        took = time_command(opened, "plan", files=events.catalog(**changed), exit_code=3)
    return [Figure(f"plan of {views} views, the command", took, "s", at_most=PLANNED)]


def under_traffic(output: Output, held: int, warm_up: int, calm: int, turns: int) -> list[Figure]:
    """Measures a version computed, moved, rolled back and applied again, and changes of `final`, under readers and
    records.
    """
    days = max(1, min(events.DAYS, held // events.USERS))
    before = events.catalog(user_days=events.USER_DAYS, lanes=events.LANES)
    after = events.catalog(user_days=more_cells(events.USER_DAYS), lanes=events.LANES)
    reader, steps = Reader(), Steps()
    with deployment(output) as opened:
        applying.apply(opened, before)
        events.send_user_days(opened, held, days=days, users=events.USERS)
        catch_up(opened)
        with opened.database.autocommit() as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
        opened.at = steps.note
        watcher = Watcher(opened)
        with (
            speed_layer(opened),
            watcher.watching(),
            reader.reading(opened, days),
            traffic(opened, rate=TRICKLE, first=held) as due_by,
        ):
            watcher.wait_for(due_by)
            time.sleep(warm_up)
            output.tell(f"watching for {calm} s without a change")
            quiet = time.monotonic()
            time.sleep(calm)
            steps.began = time.monotonic()
            applying.apply(opened, after)
            moved = time.monotonic()
            time.sleep(5)
            figures = measure_turns(output, opened, after, turns)
            ended = time.monotonic()
    # A pause that the change makes longer begins before it, so the usual ends with the last commit before it.
    calmly = (quiet, max(at for at, _ in watcher.seen if at <= steps.began))
    narrate_steps(output, steps, reader, watcher)
    return [
        *figures,
        Figure("new version under traffic, from apply to moved", moved - steps.began, "s"),
        *calm_figures(reader, watcher, calmly),
        *figures_of_change(reader, watcher, calmly, (steps.began, moved + 5), "a version's change"),
        *figures_of_change(reader, watcher, calmly, (moved + 5, ended), "rollbacks and changes of final"),
    ]


def measure_turns(output: Output, opened: Deployment, files: Mapping[str, str], turns: int) -> list[Figure]:
    """Measures rollbacks to the version before, and changes of `final`, and repeats both as commands."""
    back, again, final = [], [], []
    for turn in range(turns):
        began = time.monotonic()
        applying.roll_back(opened, "user_days")
        back.append(time.monotonic() - began)
        again.append(time_update(opened, files))
        output.tell(f"turn {turn}: back {back[-1]:.2f} s, again {again[-1]:.2f} s")
    command_back = time_command(opened, "rollback", "user_days")
    time_update(opened, files)
    sql = more_cells(events.USER_DAYS)
    for turn in range(turns):
        changed = events.catalog(user_days=other_final(sql, turn), lanes=events.LANES)
        final.append(time_update(opened, changed))
        output.tell(f"turn {turn}: another final {final[-1]:.2f} s")
    changed = events.catalog(user_days=other_final(sql, turns), lanes=events.LANES)
    command_final = time_command(opened, "apply", files=changed)
    return [
        Figure("a change of final is live, median", statistics.median(final), "s"),
        Figure("a change of final is live, max", max(final), "s", at_most=AT_ONCE),
        Figure("a change of final, the command", command_final, "s"),
        Figure("rollback of a version, median", statistics.median(back), "s"),
        Figure("rollback of a version, max", max(back), "s", at_most=AT_ONCE),
        Figure("rollback of a version, the command", command_back, "s"),
        Figure("again by an apply, max", max(again), "s"),
    ]


Span = tuple[float, float]


def calm_figures(reader: Reader, watcher: Watcher, calm: Span) -> list[Figure]:
    """The longest query of the reader and the longest pause of the speed layer without a change."""
    looks = [look.took for look in reader.of(*calm)]
    return [
        Figure("reader, usual p50", 1000 * percentile(looks, 0.5), "ms"),
        Figure(f"reader, usual longest of {len(looks):,}", 1000 * looks[-1], "ms"),
        Figure("between two commits, usual longest", max(watcher.gaps(*calm)), "s"),
    ]


def figures_of_change(reader: Reader, watcher: Watcher, calm: Span, during: Span, what: str) -> list[Figure]:
    """The longest query of the reader and the longest pause of the speed layer, beyond the usual."""
    looks = reader.of(*during)
    longest, beyond = looks[-1].took, looks[-1].took - reader.of(*calm)[-1].took
    pause = max(watcher.gaps(*during))
    later = pause - max(watcher.gaps(*calm))
    return [
        Figure(f"reader during {what}, longest of {len(looks):,}", 1000 * longest, "ms"),
        Figure(f"reader during {what}, beyond the usual", 1000 * beyond, "ms", at_most=READER_BEYOND),
        Figure(f"between two commits during {what}, longest", pause, "s"),
        Figure(f"speed layer's pause during {what}, beyond the usual", later, "s", at_most=SPEED_BEYOND),
    ]


def reprocess(output: Output, records: int) -> list[Figure]:
    """Measures new cells for three views over all records in the master log, from the apply until they are read.

    Then measures a rate that becomes finer while readers look at it.
    """
    steps = Steps()
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**events.VIEWS))
        events.send_a_day(opened, records)
        catch_up(opened)
        archived = archive(opened)
        output.tell(f"{records:,} records are counted and archived")
        opened.at = steps.note
        steps.began = time.monotonic()
        applying.apply(opened, events.catalog(**{name: more_cells(sql) for name, sql in events.VIEWS.items()}))
        took = time.monotonic() - steps.began
        for name, _ in steps.at:
            begin, end = steps.span(name)
            output.tell(f"{name}: {end - begin:.2f} s")
        with opened.database.snapshot() as connection:
            counted = connection.exec_driver_sql("SELECT sum(events) FROM analytics.places").scalar_one()
        assert counted == records // events.PARTITIONS * events.PARTITIONS, f"the new version counts {counted:,}"
        opened.at = lambda place: None
        finer_figures = measure_finer_rate(output, opened, counted)
    return [
        Figure(f"reprocess of three views, {records:,} records", took, "s"),
        Figure("reprocess of three views", records / took, "records/s", at_least=REPROCESSED),
        Figure("archive before, once, cold", records / archived, "records/s"),
        Figure("reprocess of three views, that archive counted", records / (took + archived), "records/s"),
        *finer_figures,
    ]


def measure_finer_rate(output: Output, opened: Deployment, records: int) -> list[Figure]:
    """Splits a rate and gives it a span of time, over the same records, while readers look at it without a pause."""
    wrong, took, looked, stopping = list[str](), list[float](), list[float](), threading.Event()

    def look() -> None:
        connection = analyst(opened)
        while not stopping.is_set():
            began = time.monotonic()
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT *, sum(events) OVER () AS everything FROM ctr LIMIT 1")
                    names = [column.name for column in cursor.description or ()]
                    row = dict(zip(names, cursor.fetchone() or (), strict=False))
            except psycopg2.Error as error:
                wrong.append(str(error))
            else:
                if row.get("everything") != records * (30 if "until" in names else 1):
                    wrong.append(str(row))
            looked.append(time.monotonic() - began)
        connection.close()

    declared = {name: more_cells(sql) for name, sql in events.VIEWS.items()}
    applying.apply(opened, events.catalog(**declared, ctr=CTR[0]))
    with threads(stopping, look):
        for sql in CTR[1:]:
            began = time.monotonic()
            applying.apply(opened, events.catalog(**declared, ctr=sql), allow_break=True)
            took.append(time.monotonic() - began)
    for problem in wrong[:10]:
        output.tell(problem)
    return [
        Figure("a rate is split by city, then by 30 days, the longer apply", max(took), "s"),
        Figure("looks at it meanwhile", len(looked), ""),
        Figure("looks that went wrong", len(wrong), "", at_most=0),
        Figure("the longest look", 1000 * max(looked), "ms"),
    ]


@click.command()
@click.option(
    "--records", default=10_000_000, show_default=True, help="Records over which three views are reprocessed."
)
@click.option(
    "--held",
    default=1_000_000,
    show_default=True,
    help="Records in the views while readers and the speed layer are watched.",
)
@click.option("--views", default=200, show_default=True, help="Views of the planned catalog.")
@click.option("--warm-up", default=30, show_default=True, help="Seconds of traffic before the measurement.")
@click.option("--calm", default=60, show_default=True, help="Measured seconds without a change.")
@click.option("--turns", default=5, show_default=True, help="Turns of rollbacks and of changes of final.")
@benchmark
def main(output: Output, records: int, held: int, views: int, warm_up: int, calm: int, turns: int) -> list[Figure]:
    """Changed views: their time, their effect on readers and the speed layer, and the rate of a reprocess."""
    return [*plan(output, views), *under_traffic(output, held, warm_up, calm, turns), *reprocess(output, records)]


if __name__ == "__main__":
    main()
