"""Every hour, what Kafka holds is taken into the master log, so that nothing depends on Kafka's retention.

An archive run goes on where the last one ended, so a run that failed or was missed needs nothing by hand: the next one
takes its records too. Two at once, or one beside a rebuild, wait for each other.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task


@dag(
    schedule=os.environ.get("LAMINA_ARCHIVE_SCHEDULE") or "0 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args={
        "retries": 3,
        "retry_delay": timedelta(seconds=int(os.environ.get("LAMINA_RETRY_SECONDS") or 60)),
    },
    tags=["lamina"],
    doc_md=__doc__,
)
def archive() -> None:
    """One task, one command."""

    @task.bash
    def archive_all() -> str:
        """Takes everything that Kafka holds of all sources."""
        return "lamina archive"

    archive_all()


archive()
