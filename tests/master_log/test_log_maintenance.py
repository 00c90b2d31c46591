"""Maintenance keeps every record and the held offsets, and a power cut tears no metadata unnoticed."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.configuration.settings import Settings
from master_log import durable
from master_log.archive_runs import ArchiveRun, maintain
from master_log.iceberg import Table
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import Offsets
from tests.fix_sources import NewSource
from tests.master_log.logs import fill, ids, opened, table_name
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError


def test_the_held_offsets_survive_compaction_and_expiry_and_a_rollback_archives_again(
    spark: SparkSession, log: MasterLog, brokers: Brokers, new_source: NewSource, producer: KafkaProducer
) -> None:
    source = opened(log, new_source(), brokers)
    for end in (3, 6, 9):
        fill(producer, source, range(end - 3, end))
        ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: end}))
    spark.sql(
        f"CALL lamina.system.rewrite_data_files(table => 'log.`{source.topic}`', options => map('rewrite-all', 'true'))"
    )
    spark.sql(
        f"CALL lamina.system.expire_snapshots(table => 'log.`{source.topic}`', older_than => TIMESTAMP '2100-01-01', "
        "retain_last => 1)"
    )
    kept = [
        row.operation
        for row in spark.sql(f"SELECT operation FROM {table_name(source)}.snapshots ORDER BY committed_at").collect()
    ]
    assert kept == ["append", "replace"], "the last run's snapshot and the compaction's"
    nine = Offsets.of(source.topic, {0: 9})
    assert log.held(source) == nine
    assert ids(log.records_below(source, nine)) == list(range(9))

    fill(producer, source, range(9, 12))
    twelve = Offsets.of(source.topic, {0: 12})
    compacted = next(Table(spark, table_name(source)).lineage())
    assert ArchiveRun(log, source, brokers).archive(twelve).records == 3
    spark.sql(f"CALL lamina.system.rollback_to_snapshot('log.`{source.topic}`', {compacted.id})")
    assert log.held(source) == nine
    assert ArchiveRun(log, source, brokers).archive(twelve).records == 3
    assert ids(log.records_below(source, twelve)) == list(range(12))


def files_of(settings: Settings, source: Source) -> set[str]:
    (folder,) = Path(settings.warehouse, "log").glob(f"{source.topic}-*")
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"}


def test_maintenance_keeps_records_and_held_offsets_in_as_few_files_as_needed(
    settings: Settings,
    spark: SparkSession,
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    source = opened(log, new_source(), brokers)
    counts = []
    for first in (0, 5):
        for end in range(first + 1, first + 6):
            fill(producer, source, range(end - 1, end))
            ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: end}))
        if first:
            before = files_of(settings, source)
            kept = maintain(log, source, datetime.now(UTC) - timedelta(days=1))
            assert (kept.compacted, kept.expired, kept.removed) == (6, 0, 0)
            assert before <= files_of(settings, source), "a backup of today may name each of them"
        maintain(log, source, datetime.now(UTC))
        assert log.held(source) == Offsets.of(source.topic, {0: first + 5})
        assert ids(log.records_below(source, log.held(source))) == list(range(first + 5))
        counts.append(len(files_of(settings, source)))
    assert spark.sql(f"SELECT * FROM {table_name(source)}.files").count() == 1
    assert [row.name for row in spark.sql(f"SELECT name FROM {table_name(source)}.refs").collect()] == ["main"]
    assert counts[1] <= counts[0] + 2, counts


def test_maintenance_during_an_unnoticed_archive_run_keeps_its_offsets(
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    """An archive run publishes just before the compaction, as if the lock was lost."""
    source = opened(log, new_source(), brokers)
    for end in range(1, 7):
        fill(producer, source, range(end - 1, end))
        ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: end}))

    class MeddledTable(Table):
        def compact(self, by: str) -> int:
            fill(producer, source, range(6, 8))
            ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 8}))
            return super().compact(by)

    class MeddledLog(MasterLog):
        def table(self, source: Source) -> Table:
            return MeddledTable(self.spark, super().table(source).name)

    assert maintain(MeddledLog(log.spark), source, datetime.now(UTC)).compacted > 0
    assert log.held(source) == Offsets.of(source.topic, {0: 8})
    assert ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 8})).records == 0
    assert ids(log.records_below(source, log.held(source))) == list(range(8))


def test_metadata_count_as_torn_if_truncated_but_not_if_unreadable(tmp_path: Path) -> None:
    def fetched(location: str) -> bytes:
        raise AssertionError(location)

    metadata = tmp_path / "1.gz.metadata.json"
    data = gzip.compress(b'{"format-version": 2}')
    for written, whole in ((data, True), (data[:-9], False), (data[:12] + b"\xff" * 9, False), (b"", False)):
        metadata.write_bytes(written)
        assert durable.is_whole(str(metadata), fetched) is whole
    assert not durable.is_whole(str(tmp_path / "none.gz.metadata.json"), fetched)
    with pytest.raises(LaminaError, match="cannot be read"):
        durable.is_whole(str(tmp_path), fetched)
