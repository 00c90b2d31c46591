"""Maintenance bounds everything that grows with time, and a power cut loses no record that was reported as archived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from batch_layer import archiving
from lamina.operations.maintenance import maintain
from serving_layer.catalog import lookup
from serving_layer.monitoring.deployment_alarms import overdue_rebuild
from serving_layer.monitoring.query_alarms import Thresholds
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, Killed, one
from view_algebra.errors import LaminaError


def newest_metadata(deployed: Deployed, source: str) -> Path:
    """The file that describes the newest state of a source's log."""
    location = f"SELECT metadata_location FROM iceberg.iceberg_tables WHERE table_name = '{deployed.topic(source)}'"
    [(path,)] = deployed.owner(location)
    return Path(path.removeprefix("file:"))


def test_a_log_with_metadata_torn_by_a_power_cut_steps_back_and_archives_again(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened, warehouse = deployed.deployment, Path(deployed.deployment.settings.warehouse)
    source = opened.deployed().sources["events"]
    deployed.send("events", *(event(n) for n in range(10)))
    opened.batch.logs.archive(source, opened.brokers.latest(source.topic))
    newest = newest_metadata(deployed, "events")
    newest.write_bytes(b"")  # the name reached the disk and the bytes did not
    (newest.parent / f".{newest.name}.crc").unlink()
    end = opened.brokers.latest(source.topic)
    away = warehouse.rename(warehouse.with_name("away"))
    with pytest.raises(LaminaError, match="its log cannot be read") as raised:
        opened.batch.logs.archive(source, end)
    assert "Make sure that the warehouse is mounted" in raised.value.way_out
    away.rename(warehouse)
    deployed.send("events", *(event(n) for n in range(10, 15)))
    end = opened.brokers.latest(source.topic)
    assert opened.batch.logs.archive(source, end) == 15
    assert opened.log().records_below(source, end).count() == 15


def test_an_archive_run_that_dies_keeps_its_commits(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "AT_ONCE", 10)
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened = deployed.deployment
    source = opened.deployed().sources["events"]
    deployed.send("events", *(event(n) for n in range(25)))
    end, narration = opened.brokers.latest(source.topic), list[str]()

    def dies(line: str) -> None:
        if line.endswith("so far"):  # a slow machine also narrates waits
            narration.append(line)
            raise Killed

    with pytest.raises(Killed):
        replace(opened.batch.logs, tell=dies).archive(source, end)
    [line] = narration
    first = int(line.split()[1])
    assert 0 < first < 15, line
    assert opened.log().records_below(source, opened.log().held(source)).count() == first
    assert opened.batch.logs.archive(source, end) == 25 - first
    assert opened.log().records_below(source, end).count() == 25


def test_a_log_that_cannot_be_maintained_delays_no_other(deployed: Deployed) -> None:
    others = EVENTS.replace("TABLE events", "TABLE others").replace("_events'", "_others'")
    deployed.apply(events=EVENTS, others=others)
    opened = deployed.deployment
    sources = opened.deployed().sources
    for source in sources.values():
        opened.batch.logs.archive(source, opened.brokers.latest(source.topic))
    newest_metadata(deployed, "events").parent.rename(Path(opened.settings.warehouse) / "lost")
    done = maintain(opened, list(sources.values()))
    [failure] = done.failed
    assert list(done.logs) == ["others"]
    assert f"`{deployed.topic('events')}` cannot be read" in failure.what


def test_sources_without_a_view_are_never_due(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS)
    batch = deployed.deployment.batch
    assert batch.due() == []
    with deployed.deployment.database.begin() as connection:
        connection.exec_driver_sql("UPDATE lamina.query SET created_at = created_at - interval '9 days'")
        assert overdue_rebuild(connection, Thresholds(rebuild_within=26)) == []
    deployed.apply(totals=TOTALS)
    assert batch.due() == ["totals"]
    assert [proof.view for proof in batch.rebuild(["totals", "totals"])] == ["totals"], "it is rebuilt once"


def test_maintenance_drops_leftovers_of_dead_rebuilds_and_ignores_a_missing_log(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened = deployed.deployment
    id = opened.batch.seal()
    with opened.database.begin() as connection:
        connection.exec_driver_sql(f"UPDATE lamina.rebuild SET state = 'failed' WHERE id = {id}")
        [left] = [generation.id for generation in opened.batch.generations(id)]
    done = maintain(opened, list(opened.deployed().sources.values()))
    assert (done.dropped, done.vacuumed, done.logs, done.failed) == ([left], [], {}, [])
    with opened.database.begin() as connection:
        assert lookup.get(connection, left).state == "retired"
    deployed.send("events", event(1))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)
