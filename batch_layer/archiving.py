"""Writing the master log: by one process at a time, after a commit torn by a power cut was undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from master_log import durable, log_refusals
from master_log.kafka.brokers import Brokers
from master_log.kafka.tails import Tails
from master_log.offsets import OffsetRange, Offsets
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.lookup import Generation
from serving_layer.narration import amount, waiting
from serving_layer.postgres import log_catalog, work_locks
from serving_layer.postgres.database import Database
from serving_layer.promise import progress, skipping
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from master_log.archive_runs import MaintenanceCounts
    from master_log.log import MasterLog


AT_ONCE = 10_000_000
"""Offsets per commit. After a crash, the next archive run continues from the last commit."""


@dataclass(frozen=True)
class Logs:
    """The master logs of one deployment.

    tell: prints a line of narration
    """

    database: Database
    brokers: Brokers
    log: Callable[[], MasterLog]
    tell: Callable[[str], None]

    def archive_below_cuts(self, sealed: Sequence[Generation]) -> None:
        """Archives every record below the cuts of these generations."""
        with self.database.begin() as connection:
            cuts = lookup.cuts(connection, sealed)
            declared = [versions.get(connection, new.view, new.version).sources for new in sealed]
        sources = {name: source for by_name in declared for name, source in by_name.items()}
        for name, (cut, tails) in sorted(cuts.items()):
            self.archive(sources[name], cut, tails=tails)

    def archive(self, source: Source, to: Offsets, *, accept_loss: bool = False, tails: Tails | None = None) -> int:
        """Archives the records of one source below `to` in the master log. Returns their number.

        Raises if Kafka no longer has the counted records.

        tails: Kafka's last batches below `to`
        """
        from master_log.archive_runs import ArchiveRun

        with self.database.begin() as connection:
            topic_id = progress.queries(connection)[source.name].topic_id
            start = progress.begins(connection, source.topic)
        with waiting(self.tell, f"{source.name}: archiving its records"), work_locks.archiving(self.database):
            master_log = self._whole_log(source)
            master_log.create(source, topic_id, start)
            for at, offset in skipping.forget_lost(self.database, self.brokers, source.topic):
                self.tell(f"{source.name}: the record skipped at partition {at.partition}, offset {offset} is lost")
            if differing := self.brokers.differing(to, tails or {}):
                raise log_refusals.kafka_lost_counted_records(source, differing)
            run = ArchiveRun(master_log, source, self.brokers, accept_loss)
            last, records = Offsets.of(source.topic, to.on(source.topic)), 0
            for end in OffsetRange(master_log.held(source), last).steps(AT_ONCE):
                tails_of_end = tails if end == last else None
                archived = run.archive(end, tails_of_end)
                with self.database.begin() as connection:
                    progress.record_archived(connection, source.name, archived.held)
                records += archived.records
                if (cut := archived.cut_off) is not None:
                    self.tell(
                        f"{source.name}: Kafka now has other records from {cut.start} to {cut.end} than the log."
                        f" Those were cut off the log, and stay readable as its Iceberg tag {archived.kept_as}"
                    )
                if (lost := archived.lost).end:
                    self.tell(f"{source.name}: the records from {lost.start} to {lost.end} are lost, and noted as lost")
                self.tell(f"{source.name}: {amount(records, 'record')} archived{'' if end == last else ' so far'}")
            first = master_log.start(source)
            earlier = OffsetRange.since(start, Offsets({at: first[at] for at in start if at in first}))
            for begin in reversed([start, *earlier.steps(AT_ONCE)[:-1]]):
                records += run.reach_back(begin)
        return records

    def maintain(self, source: Source, before: datetime) -> MaintenanceCounts:
        """Maintains the log of one source so that every backup made since `before` can be restored."""
        from master_log.archive_runs import maintain

        with waiting(self.tell, f"{source.name}: maintaining its log"), work_locks.archiving(self.database):
            return maintain(self._whole_log(source), source, before)

    def _read(self, location: str) -> bytes:
        return self.log().warehouse.read(location)

    def _whole_log(self, source: Source) -> MasterLog:
        """The master log, after a torn commit to this source's log was undone.

        A power cut may tear the newest metadata file. Then the log goes back to the previous file. Nobody has acted on
        the lost commit, because Postgres learns of a commit only after its files are on the disk.
        """
        with self.database.begin() as connection:
            present, before = log_catalog.metadata_files(connection, source.topic) or ("", None)
            if not present or durable.is_whole(present, self._read):
                return self.log()
            if before is None or not durable.is_whole(before, self._read):
                raise LaminaError(
                    f"{source.name}: its log cannot be read",
                    evidence=f"{present} is missing or incomplete",
                    way_out="Make sure that the warehouse is mounted and LAMINA_WAREHOUSE is right, or restore its"
                    " backup.",
                )
            log_catalog.step_back(connection, source.topic, torn=present, before=before)
        self.tell(f"{source.name}: its log goes back to the metadata before {present}, which a power cut has torn")
        return self.log()
