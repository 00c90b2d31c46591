"""Runs `lamina maintain` every day, which bounds everything that grows with time rather than with the data.

Small files of the master log become few large ones. Snapshots, metadata and files that no backup of the last
LAMINA_BACKUP_DAYS names are removed, and so are leftovers of dead rebuilds and dead processes. A run that failed or was
missed needs no repair. Archive runs and the archive step of a rebuild wait while their log is maintained.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task


@dag(
    schedule=os.environ.get("LAMINA_MAINTENANCE_SCHEDULE") or "30 5 * * *",
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
def maintenance() -> None:
    """One task, one command."""

    @task.bash
    def maintain_all() -> str:
        """Maintains the logs of all sources."""
        return "lamina maintain"

    maintain_all()


maintenance()
