"""Every hour, archives all records that Kafka holds, so nothing depends on its retention.

An archive run resumes where the last one ended. A run that failed or was missed needs no repair, because the next one
also takes its records. Two runs at a time, or a run during a rebuild, wait for each other.
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
        """Archives the records of all sources."""
        return "lamina archive"

    archive_all()


archive()
