"""`lamina maintain`: bounds everything that grows with time rather than with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lamina.operations.deployment import Deployment
from lamina.services import folders
from lamina.terminal.failures import as_lamina_error
from master_log.archive_runs import MaintenanceCounts
from serving_layer.promise import history
from serving_layer.promise.quarantine import trim
from serving_layer.upkeep import indexes
from serving_layer.upkeep.dropping import forget_dropped
from serving_layer.upkeep.vacuuming import vacuum
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class MaintenanceResult:
    """Dropped generations, vacuumed tables, the work on each source's log, and the errors of logs that failed."""

    dropped: Sequence[int]
    vacuumed: Sequence[str]
    logs: Mapping[str, MaintenanceCounts]
    failed: Sequence[LaminaError]


def maintain(deployment: Deployment, sources: Sequence[Source]) -> MaintenanceResult:
    """Drops retired generations and old history, removes leftovers of dead processes, maintains logs, quarantine and
    tables.

    A log that fails does not stop the others. A missing log is passed over, and a log that two sources share is
    maintained once.
    """
    for kept in ("checkpoints", "spark"):
        folders.sweep(deployment.settings.home / kept)
    dropped = deployment.batch.tidy()
    indexes.renew(deployment.database)
    with deployment.database.begin() as connection:
        history.trim(connection)
        forget_dropped(connection)
    before = datetime.now(UTC) - timedelta(days=deployment.settings.backup_days)
    logs: dict[str, MaintenanceCounts] = {}
    topics = set[str]()
    failed: list[LaminaError] = []
    for source in sources:
        trim(deployment.database, source)
        try:
            if source.topic not in topics and deployment.log().opened(source):
                topics.add(source.topic)
                logs[source.name] = deployment.batch.logs.maintain(source, before)
        except Exception as error:  # noqa: BLE001 (a bug is raised again)
            failed.append(as_lamina_error(error))
    return MaintenanceResult(dropped, vacuum(deployment.database), logs, failed)
