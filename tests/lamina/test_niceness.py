"""The processors go to Postgres first, then to the speed layer, then to a rebuild."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import psutil

from lamina.operations.deployment import BATCH_NICENESS, SPEED_NICENESS
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed


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
        stderr = speed.communicate(timeout=300)[1]
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
