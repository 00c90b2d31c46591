"""Every day, what grows with time and not with the data is kept small: `lamina maintain`.

Small files of the master log become few large ones. Snapshots, metadata and files that no backup of the last
LAMINA_BACKUP_DAYS names are removed, and so is what dead rebuilds and dead processes have left. A run that failed or
was missed needs nothing by hand. Archive runs and the archive step of a rebuild wait while one log is maintained.
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
        """Keeps the log of all sources small."""
        return "lamina maintain"

    maintain_all()


maintenance()
