"""Fails a run every few minutes if there are alarms, with a sentence about each alarm and its way out.

The task `look` reports everything that `lamina status --alarms` knows: lag, freshness, a missing speed layer, records
that Kafka may drop before they are archived, a growing quarantine, a rebuild that failed or is overdue, failing checks.
The task `check` runs the checks of views on the rows that readers see now (`lamina check --live`). This may take as
long as the views' SELECTs, so it has its own task and delays no alarm. The exception of a failed task is the sentence,
so every notification of Airflow (a callback, a notifier) carries it.

A run that found an alarm is not retried: the next run asks again, and succeeds once the cause is gone. A task that
Airflow could not run (its server did not answer in time) is retried.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

log = logging.getLogger("airflow.task")

FINDING = 3
"""Exit code of `lamina check` if a check fails, which `lamina status --alarms` then shows."""

WITHIN = timedelta(minutes=10)
"""Longest time of one of the tasks. A task that hangs would keep the next run from starting."""


def lamina(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs one command. The task's log shows its words and output."""
    done = subprocess.run(["lamina", *words, "--json"], capture_output=True, text=True, check=False)
    log.info("lamina %s: exit code %s\n%s%s", " ".join(words), done.returncode, done.stdout, done.stderr)
    return done


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The problem: the alarms that a command printed, or the error with which it ended.

    >>> printed = '{"alarms": ["orders: 9 records behind (`lamina up`)"]}'
    >>> sentence(subprocess.CompletedProcess([], 1, printed, ""))
    'orders: 9 records behind (`lamina up`)'
    >>> sentence(subprocess.CompletedProcess([], 1, "", '{"error": "Postgres is away", "way_out": "Start it."}'))
    'Postgres is away: Start it.'
    """
    try:
        if done.stdout:
            return "; ".join(json.loads(done.stdout.splitlines()[-1])["alarms"])
        error = json.loads(done.stderr.splitlines()[-1])
        parts = [str(error.get(part) or "").partition("\n")[0] for part in ("error", "evidence", "way_out")]
        return ": ".join(part for part in parts if part)
    except (IndexError, KeyError, ValueError):
        return f"`lamina` ended with {done.returncode}: see the log of this task"


def fail_with(done: subprocess.CompletedProcess[str]) -> None:
    """Fails the task if a command failed, with its sentence."""
    if done.returncode:
        raise AirflowFailException(sentence(done))


@dag(
    schedule=os.environ.get("LAMINA_WATCH_SCHEDULE") or "*/5 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args={
        "retries": 3,
        "execution_timeout": WITHIN,
        "retry_delay": timedelta(seconds=int(os.environ.get("LAMINA_RETRY_SECONDS") or 60)),
    },
    tags=["lamina"],
    doc_md=__doc__,
)
def watch() -> None:
    """Two parallel tasks. A failing check is also among the alarms of the next run."""

    @task
    def look() -> None:
        """Fails if there are alarms."""
        fail_with(lamina("status", "--alarms"))

    @task
    def check() -> None:
        """Runs the checks of live views. The alarms report the failing ones."""
        checks = lamina("check", "--live")
        fail_with(lamina("status", "--alarms") if checks.returncode == FINDING else checks)

    look()
    check()


watch()
