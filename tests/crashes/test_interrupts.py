"""A person interrupts a command: it ends soon, in one line, and leaves neither a process nor half of its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from lamina.reports.statuses import read_status
from lamina.services.java import QUICK_COLLECTOR
from serving_layer.postgres.database import PostgresError, cancel
from tests.fix_catalogs import CATALOG, EVENTS, TOTALS, event
from tests.fix_lamina import PATIENCE, CommandLine, Deployed, one

QUICKLY = 30.0
"""Seconds within which Ctrl-C ends a rebuild. It takes 2 on an idle machine, but tests run on a busy one, which may
stand still for a while.
"""


def _last_step(deployed: Deployed) -> str | None:
    with deployed.deployment.database.begin() as connection:
        step: str | None = connection.exec_driver_sql("SELECT step FROM lamina.rebuild ORDER BY id DESC").scalar()
    return step


def _arguments(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):  # a Python worker of Spark ends at any time
        return list(process.cmdline())
    return []


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.mark.parametrize("step", ["seal", "compute"])
def test_ctrl_c_ends_a_rebuild_in_one_line_and_leaves_no_process(
    deployed: Deployed, lamina: CommandLine, step: str
) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", *(event(n) for n in range(500)))
    deployed.catch_up()
    process = lamina.start("rebuild")
    deployed.until(lambda: str(_last_step(deployed)).startswith(step), f"{step} is done")
    children = psutil.Process(process.pid).children(recursive=True)
    assert step == "seal" or any(QUICK_COLLECTOR in _arguments(child) for child in children), (
        "the JVM is one for many records"
    )
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert time.monotonic() - began < QUICKLY, "a person who changes their mind does not wait"
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "is given up: nothing that is read has changed" in stderr
    assert "Traceback" not in stderr
    assert "ERROR" not in stderr
    deployed.until(lambda: not any(map(_runs, children)), "no process is left", 5.0)
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
    _, stderr = process.communicate(timeout=PATIENCE)
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
    before = again.err.count("its cells were computed before")
    assert before >= 1, "at least one view was computed when it was interrupted"
    assert before + again.err.count("cells computed") == 2
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
    _, stderr = process.communicate(timeout=PATIENCE)
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


INTERRUPTED_WHILE_NOTHING_CAN_BE_RAISED = """
import os, signal, time
from lamina.interrupts import interrupt_again_if_lost

class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

interrupt_again_if_lost()
Ends()
time.sleep(30)
print("went on")
"""


def test_ctrl_c_is_not_lost_if_it_arrives_while_python_cannot_raise() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_NOTHING_CAN_BE_RAISED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == -signal.SIGINT
    assert not ran.stdout, "it ends at once"
    assert "Exception ignored" not in ran.stderr


COMMAND = """
import os, signal, sys
from lamina.cli import main
from lamina.commands.command import command
from pyspark.errors import PySparkException
from view_algebra.errors import LaminaError

def in_text():  # Python runs text for each dataclass, and remembers an interrupt in it until it has run another text
    exec("raise KeyboardInterrupt")

def in_a_job():
    try:
        raise KeyboardInterrupt
    finally:
        raise PySparkException("Job 7 cancelled")

def before_a_failure():
    try:
        raise KeyboardInterrupt
    finally:
        raise LaminaError("Process 7 does not end", evidence="It is Kafka.", way_out="End it.")

def when_done():
    global removed_as_python_ends

    class Interrupts:
        def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
            kill(process, number)

    removed_as_python_ends = Interrupts()

@command()
def interrupted(output):
    globals()[moment]()

moment = sys.argv[1]
sys.argv[1:] = ["interrupted"]
main()
"""


@pytest.mark.parametrize(
    ("moment", "code", "shown"),
    [
        ("when_done", 0, ""),
        ("in_text", 130, "\ninterrupted\n"),
        ("in_a_job", 130, "\ninterrupted\n"),
        ("before_a_failure", 1, "error: Process 7 does not end\n\nIt is Kafka.\n\nEnd it.\n"),
    ],
)
def test_ctrl_c_ends_with_its_code_unless_something_is_left_to_do(
    tmp_path: Path, moment: str, code: int, shown: str
) -> None:
    (tmp_path / "program.py").write_text(COMMAND)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"}
    ran = subprocess.run(
        [sys.executable, "-m", "program", moment], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (code, shown)


INTERRUPTED_WHILE_IMPORTING = """
import runpy, sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "lamina.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
runpy.run_module("lamina", run_name="__main__")
"""


def test_ctrl_c_while_modules_are_imported_prints_no_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (130, "\ninterrupted\n")


INTERRUPTED_WHILE_SPARK_STARTS = """
import os, signal, sys, threading, time
from contextlib import suppress
import psutil
from lamina.cli import main

def launches() -> bool:  # PySpark waits for the JVM to come up
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has ended meanwhile
            if "pyspark-shell" in child.cmdline():
                return True
    return False

def asks() -> bool:  # asks the JVM for a session, where PySpark would handle Ctrl-C itself
    frame, seen = sys._current_frames()[threading.main_thread().ident], set()
    while frame is not None:
        seen.add((os.path.basename(frame.f_code.co_filename), frame.f_code.co_name))
        frame = frame.f_back
    return {("session.py", "__init__"), ("clientserver.py", "send_command")} <= seen

def interrupt(moment) -> None:
    while not moment():
        time.sleep(0.0005)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, args=[globals()[sys.argv[1]]], daemon=True).start()
sys.argv[1:] = ["check"]
main()
"""


@pytest.mark.parametrize("moment", ["launches", "asks"])
def test_ctrl_c_while_spark_starts_is_not_an_error(deployed: Deployed, lamina: CommandLine, moment: str) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    process = lamina.start_program("-c", INTERRUPTED_WHILE_SPARK_STARTS, moment)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "error" not in stderr
    assert "Traceback" not in stderr


INTERRUPTED_WHILE_SPARK_COMPUTES = """
import os, signal, sys, threading, time
from pyspark import SparkContext
from lamina.cli import main

def interrupt() -> None:
    frames = lambda: sys._current_frames()[threading.main_thread().ident]
    def waits() -> bool:
        frame, seen = frames(), set()
        while frame is not None:
            seen.add(frame.f_code.co_name)
            frame = frame.f_back
        return {"_collect_as_arrow", "load_stream"} <= seen
    def computes() -> bool:
        tracker = SparkContext._active_spark_context.statusTracker()
        stages = [tracker.getStageInfo(id) for id in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numActiveTasks for stage in stages)
    while not (waits() and computes()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)  # the watch for endless records would also end it, but later
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
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
