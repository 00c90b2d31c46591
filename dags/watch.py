"""Every few minutes, what needs attention fails a run, with one sentence that says what and what to do.

Everything is asked for that `lamina status --alarms` knows: lag, freshness, a speed layer that is gone, records that
Kafka may drop before they are archived, quarantine that grows, a rebuild that failed or is overdue, checks that fail.
Beside it the checks of views are run on what readers read now (`lamina check --live`), which may take as long as the
views' SELECTs: a task of its own, so that it keeps no alarm waiting. The exception of a task that fails is the
sentence, so whatever Airflow sends when a task fails (a callback, a notifier) carries it.

What it finds is not tried again: the next run asks again, and passes when the cause is gone. A task that Airflow could
not run (its server did not answer in time) has found nothing, and is.
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

DIFFERENT = 3
"""Exit code of `lamina check` when a check fails: `lamina status --alarms` then shows which."""

WITHIN = timedelta(minutes=10)
"""How long one of the tasks may take: what hangs would keep the next run from looking."""


def lamina(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs one command, whose words and answer the task's log shows."""
    done = subprocess.run(["lamina", *words, "--json"], capture_output=True, text=True, check=False)
    log.info("lamina %s: exit code %s\n%s%s", " ".join(words), done.returncode, done.stdout, done.stderr)
    return done


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """What is wrong: the alarms that a command printed, or the error it ended with.

    >>> told = '{"alarms": ["orders: 9 records behind (`lamina up`)"]}'
    >>> sentence(subprocess.CompletedProcess([], 1, told, ""))
    'orders: 9 records behind (`lamina up`)'
    >>> sentence(subprocess.CompletedProcess([], 1, "", '{"error": "Postgres is away", "way_out": "Start it."}'))
    'Postgres is away: Start it.'
    """
    try:
        if done.stdout:
            return "; ".join(json.loads(done.stdout.splitlines()[-1])["alarms"])
        error = json.loads(done.stderr.splitlines()[-1])
        said = [str(error.get(part) or "").partition("\n")[0] for part in ("error", "evidence", "way_out")]
        return ": ".join(part for part in said if part)
    except (IndexError, KeyError, ValueError):
        return f"`lamina` ended with {done.returncode}: see the log of this task"


def fail_with(done: subprocess.CompletedProcess[str]) -> None:
    """Fails the task with what a command has found, if anything."""
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
    """Two tasks side by side; what the checks find is among the alarms of the next run, too."""

    @task
    def look() -> None:
        """Fails with what needs attention."""
        fail_with(lamina("status", "--alarms"))

    @task
    def check() -> None:
        """Runs the checks of live views; what fails is told by the alarms."""
        checks = lamina("check", "--live")
        fail_with(lamina("status", "--alarms") if checks.returncode == DIFFERENT else checks)

    look()
    check()


watch()
