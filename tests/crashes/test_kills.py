"""Real processes are killed or interrupted, at a named point or at random. Nothing is lost, and `check` agrees."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from lamina.operations.deployment import BATCH_NICENESS, SPEED_NICENESS
from lamina.reports.statuses import read_status
from lamina.services.java import QUICK_COLLECTOR
from serving_layer.postgres.database import PostgresError, cancel
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, SHOP, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one, short_lived

ROUNDS = 5
"""Kills of the speed layer, at random moments of one replay."""

QUICKLY = 10.0
"""Seconds within which Ctrl-C ends a rebuild. It takes 2 on an idle machine, but tests run on a busy one."""


def test_the_speed_layer_may_be_killed_anywhere_in_a_commit(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    sent = 0
    for place in ("before the commit", "inside the commit", "after the commit"):
        deployed.send("events", *(event(n) for n in range(sent, sent + 40)))
        sent += 40
        with short_lived(lamina, spark, LAMINA_STOP_AT=place) as process:
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == -9, stderr
        counted = one(deployed.rows("SELECT events FROM totals"))
        assert counted == ((sent,) if place == "after the commit" else (sent - 40,))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (sent,)
    deployed.check()


def test_unique_events_tables_and_joins_survive_a_kill_anywhere_in_a_commit(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    """Every order is sent again in the next round, users move, and payments are late. Checkpoints are lost once."""
    deployed.apply(**SHOP)

    def order(number: int) -> dict[str, object]:
        return {
            "id": number,
            "user_id": number % 5,
            "amount": "2.50",
            "ts": f"2026-03-01T{number // 60:02}:{number % 60:02}:00Z",
        }

    places = ("before the commit", "inside the commit", "after the commit")
    for turn, place in enumerate(places):
        again = range(max(0, 40 * (turn - 1)), 40 * (turn + 1))
        moved_at = f"2026-03-01T{turn:02}:00:00Z"
        deployed.send("users", *({"id": n, "city": f"{n} {turn}", "moved_at": moved_at} for n in range(4)))
        deployed.send("orders", *map(order, again))
        deployed.send(
            "payments", *({"order_id": n, "ts": order(n + n % 20)["ts"]} for n in range(40 * turn, 40 * turn + 40))
        )
        with short_lived(lamina, spark, LAMINA_STOP_AT=place) as process:
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == -9, stderr
        if place == "inside the commit":
            shutil.rmtree(deployed.deployment.settings.home / "checkpoints")
        deployed.catch_up()
    totals = "SELECT (SELECT sum(orders) FROM lived), (SELECT sum(amount) FROM lived), (SELECT sum(orders) FROM live)"
    totals += ", (SELECT count(*) FROM paid), (SELECT count(ts) FROM paid)"
    expected = (120, Decimal("300.00"), 96, 120, 96)
    assert one(deployed.rows(totals)) == expected
    # User 1 ordered 12 times in each hour, and lived in a city of its own in each.
    assert deployed.rows("SELECT city, orders FROM lived WHERE city LIKE '1 %' ORDER BY city") == [
        ("1 0", 12),
        ("1 1", 12),
    ]
    with deployed.killed_at("after go-live"):
        deployed.deployment.batch.rebuild()
    deployed.send("orders", *map(order, range(120)))
    deployed.catch_up()
    assert one(deployed.rows(totals)) == expected
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    assert one(deployed.rows(totals)) == expected
    deployed.check()


def test_the_speed_layer_may_be_killed_repeatedly_during_a_replay(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    """Each process is killed within the first micro-batches that it commits, at a random moment."""
    deployed.apply(**CATALOG)
    moments = random.Random(20)
    deployed.send("events", *(event(n) for n in range(20_000)))
    end = deployed.deployment.brokers.latest(deployed.topic("events"))
    for _ in range(ROUNDS):
        before = deployed.progress("events")
        with short_lived(lamina, spark, max_records=200) as process:
            deployed.until(lambda: deployed.progress("events") != before or process.poll() is not None, "it commits")  # noqa: B023
            time.sleep(moments.uniform(0, 0.3))
        assert process.returncode == -9
        shown = one(deployed.rows("SELECT events FROM totals"))[0]
        assert shown == sum(deployed.progress("events").values())
        if deployed.progress("events") == end:
            deployed.send("events", *(event(n) for n in range(2_000)))
            end = deployed.deployment.brokers.latest(deployed.topic("events"))
    deployed.catch_up()
    deployed.check()


def test_a_rebuild_leaves_the_processors_to_the_speed_layer_and_both_to_postgres(
    deployed: Deployed, lamina: CommandLine
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)

    def stands_back(process: subprocess.Popen[str], nice: int) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            for child in psutil.Process(process.pid).children(recursive=True):
                if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                    return child.nice() == nice and _session_nice(child.pid) in (nice, None)
        return False

    deployed.send("events", *(event(n) for n in range(4_000)))
    speed = lamina.start("speed", "--max-records", "20")
    try:
        deployed.until(lambda: stands_back(speed, SPEED_NICENESS), "the speed layer stands back a little")
        rebuild = lamina.start("rebuild")
        try:
            deployed.until(lambda: stands_back(rebuild, BATCH_NICENESS), "the rebuild stands back far")
        finally:
            rebuild.kill()  # at its niceness, it would wait for every other test
            rebuild.communicate()
        deployed.until(lambda: any(deployed.progress("events").values()), "a micro-batch is running")
        speed.terminate()
        stderr = speed.communicate(timeout=120)[1]
        assert speed.returncode == 0
        assert len(stderr.splitlines()) < 5, "it ends quietly during a micro-batch"
    finally:
        speed.kill()
        speed.communicate()


def _session_nice(pid: int) -> int | None:
    """The niceness of a process's session (autogroup, sched(7)), or None if it is unknown."""
    autogroup = Path(f"/proc/{pid}/autogroup")
    assert os.getsid(pid) == pid, "a session of its own"
    return int(autogroup.read_text().rpartition("nice ")[2]) if autogroup.exists() else None


@pytest.mark.parametrize("step", ["seal", "compute clicks"])
def test_ctrl_c_ends_a_rebuild_in_one_line_and_leaves_no_process(
    deployed: Deployed, lamina: CommandLine, step: str
) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", *(event(n) for n in range(500)))
    deployed.catch_up()
    process = lamina.start("rebuild")
    deployed.until(lambda: _last_step(deployed) == step, f"{step} is done")
    children = psutil.Process(process.pid).children(recursive=True)
    assert step == "seal" or any(QUICK_COLLECTOR in child.cmdline() for child in children), (
        "the JVM is one for many records"
    )
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - began < QUICKLY, "a person who changes their mind does not wait"
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "is given up: nothing that is read has changed" in stderr
    assert "Traceback" not in stderr
    assert "ERROR" not in stderr
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    with deployed.deployment.database.begin() as connection:
        last = connection.exec_driver_sql("SELECT state, error FROM lamina.rebuild ORDER BY id DESC").first()
        states = connection.exec_driver_sql("SELECT DISTINCT state FROM lamina.generation").scalars().all()
    assert last is not None
    assert tuple(last) == ("failed", "it was interrupted")
    assert "building" not in states
    [proof, *_] = deployed.deployment.batch.rebuild()
    assert proof.differing == 0


def test_ctrl_c_ends_an_apply_and_the_same_apply_resumes(
    deployed: Deployed, lamina: CommandLine, quick_lamina: CommandLine, tmp_path: Path
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(500)))
    deployed.catch_up()
    wider = TOTALS.replace("FROM events", ", max(n) AS more FROM events")
    files = {**deployed.files, "totals.sql": wider, "others.sql": wider.replace("totals", "others")}
    for name, sql in files.items():
        (tmp_path / name).write_text(sql)
    process = lamina.start("apply", "--catalog", str(tmp_path))
    deployed.until(lambda: str(_last_step(deployed)).startswith("compute"), "it is computed")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "is interrupted, and nothing that is read has changed" in stderr
    assert "Traceback" not in stderr
    assert read_status(deployed.deployment).alarms == [], "a person who interrupts needs no alarm"
    deployed.send("events", event(500))
    deployed.catch_up()
    assert len(deployed.rows("SELECT * FROM totals")[0]) == 3
    again = quick_lamina("apply", "--catalog", str(tmp_path))
    assert "continues rebuild" in again.err
    assert again.err.count("its cells were computed before") == 1
    assert again.err.count("cells computed") == 1
    assert one(deployed.rows("SELECT events, more FROM totals")) == (501, 500)


def test_ctrl_c_ends_a_query_that_postgres_computes(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    process = lamina.start("sql", "SELECT count(*), pg_sleep(300) FROM totals")
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lamina sql' AND wait_event = 'PgSleep'"

    def computes() -> bool:
        with deployed.deployment.database.begin() as connection:
            return bool(connection.exec_driver_sql(running).scalar_one())

    deployed.until(computes, "Postgres computes")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - began < QUICKLY
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    deployed.until(lambda: not computes(), "Postgres has stopped")


def test_a_cancel_reaches_the_statements_of_every_connection_of_a_command(deployed: Deployed) -> None:
    sleeps = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"

    def cancel_the_sleep() -> None:
        deployed.until(lambda: deployed.owner(sleeps) != [], "the statement runs")
        cancel()

    threading.Thread(target=cancel_the_sleep).start()
    with (
        pytest.raises(PostgresError, match="canceling statement due to user request"),
        deployed.deployment.database.begin() as connection,
    ):
        connection.exec_driver_sql("SELECT pg_sleep(60)")


INTERRUPTED_WHERE_NOTHING_IS_RAISED = """
import os, signal, time
from lamina.cli import interrupt_again_if_lost

class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

interrupt_again_if_lost()
Ends()
time.sleep(30)
print("went on")
"""


def test_ctrl_c_is_not_lost_where_python_cannot_raise() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHERE_NOTHING_IS_RAISED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == -signal.SIGINT
    assert not ran.stdout, "it ends at once"
    assert "Exception ignored" not in ran.stderr


def _last_step(deployed: Deployed) -> str | None:
    with deployed.deployment.database.begin() as connection:
        step: str | None = connection.exec_driver_sql("SELECT step FROM lamina.rebuild ORDER BY id DESC").scalar()
    return step


def test_the_next_rebuild_finds_a_killed_one(deployed: Deployed, quick_lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(50)))
    deployed.catch_up()
    assert quick_lamina("rebuild", code=None, LAMINA_STOP_AT="after hand-over").code == -9
    deployed.send("events", event(50))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (51,)
    [proof] = deployed.deployment.batch.rebuild()
    assert proof.differing == 0
    deployed.check()


INTERRUPTED_WHILE_SPARK_STARTS = """
import os, signal, sys, threading, time
from lamina.cli import main

def asks() -> bool:  # asks the JVM for a session, where PySpark would handle Ctrl-C itself
    frame, seen = sys._current_frames()[threading.main_thread().ident], set()
    while frame is not None:
        seen.add((os.path.basename(frame.f_code.co_filename), frame.f_code.co_name))
        frame = frame.f_back
    return {("session.py", "__init__"), ("clientserver.py", "send_command")} <= seen

def interrupt() -> None:
    while not asks():
        time.sleep(0.0005)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
sys.argv[1:] = ["check"]
main()
"""


def test_ctrl_c_while_spark_starts_is_not_an_error(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    process = lamina.start_program("-c", INTERRUPTED_WHILE_SPARK_STARTS)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "error" not in stderr
    assert "Traceback" not in stderr


INTERRUPTED_WHILE_SPARK_COMPUTES = """
import os, signal, sys, threading, time
from lamina.cli import main

def interrupt() -> None:
    frames = lambda: sys._current_frames()[threading.main_thread().ident]
    def waits() -> bool:
        frame, seen = frames(), set()
        while frame is not None:
            seen.add(frame.f_code.co_name)
            frame = frame.f_back
        return {"_collect_as_arrow", "load_stream"} <= seen
    while not waits():
        time.sleep(0.01)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(15)  # the watch for endless records would also end it, but later
    os._exit(7)

threading.Thread(target=interrupt, daemon=True).start()
sys.argv[1:] = ["check"]
main()
"""


def test_ctrl_c_ends_sparks_computation_for_a_check(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    endless = "repeat(concat(''a'', left(CAST(n AS STRING), 0)), 60) RLIKE ''^(a+)+b$''"
    slow = f"'count(*)', 'count_if({endless})'"
    for table, name in (("compiled", "name"), ("version", "view"), ("definition", "view")):
        deployed.owner(f"UPDATE lamina.{table} SET texts = replace(texts::text, {slow})::jsonb WHERE {name} = 'totals'")
    process = lamina.start_program("-c", INTERRUPTED_WHILE_SPARK_COMPUTES)
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr


SPARK_STOPS = """
import sys, threading, time
from pyspark import SparkContext
from pyspark.sql import SparkSession
from lamina.cli import main

def runs() -> bool:
    session = SparkSession._instantiatedSession
    return session is not None and not session._jsparkSession.sharedState().activeStreamingQueries().isEmpty()

def stop() -> None:  # as a master that removes the application does, or a person on Spark's page
    while not runs():
        time.sleep(0.1)
    SparkContext._active_spark_context._jsc.sc().stop()

threading.Thread(target=stop, daemon=True).start()
sys.argv[1:] = ["speed"]
main()
"""


def test_a_speed_layer_ends_with_its_spark_so_that_another_can_resume(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    process = lamina.start_program("-c", SPARK_STOPS)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 1, stderr
    assert "Spark has stopped" in stderr
    assert "Start the speed layer again" in stderr
    deployed.send("events", event(1))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_a_second_speed_layer_takes_over_and_the_first_reports_it(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    first = lamina.start("speed")
    try:
        deployed.wait_for("events")
        deployed.send("events", event(2))
        deployed.wait_for("events")
        deployed.catch_up()  # a second one, in this process
        deployed.send("events", event(3))
        stderr = first.communicate(timeout=120)[1]
    except subprocess.TimeoutExpired:
        first.kill()
        raise
    assert first.returncode == 1
    assert "The query events was taken over" in stderr
    assert "StackOverflowError" not in stderr
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (3,)
    deployed.check()
