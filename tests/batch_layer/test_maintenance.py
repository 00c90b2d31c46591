"""What grows with time is kept small, and a power cut takes nothing that anybody was told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.maintenance import maintain
from serving_layer import lookup
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, one
from view_algebra.errors import LaminaError


def test_a_log_whose_metadata_a_power_cut_tore_goes_back_and_takes_the_records_again(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened, warehouse = deployed.deployment, Path(deployed.deployment.settings.warehouse)
    source = opened.deployed().sources["events"]
    deployed.send("events", *(event(n) for n in range(10)))
    opened.batch.logs.archive(source, opened.brokers.latest(source.topic))
    found = f"SELECT metadata_location FROM iceberg.iceberg_tables WHERE table_name = '{source.topic}'"
    with opened.database.begin() as connection:
        newest = Path(connection.exec_driver_sql(found).scalar_one().removeprefix("file:"))
    newest.write_bytes(b"")  # the name was on the disk and the bytes were not, as a file system may have it
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
    assert opened.log.records_below(source, end).count() == 15


def test_maintenance_drops_what_dead_rebuilds_left_and_passes_over_a_log_that_is_not_there(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened = deployed.deployment
    id = opened.batch.seal()
    with opened.database.begin() as connection:
        connection.exec_driver_sql(f"UPDATE lamina.rebuild SET state = 'failed' WHERE id = {id}")
        [left] = [each.id for each in opened.batch.generations(id)]
    done = maintain(opened, list(opened.deployed().sources.values()))
    assert (done.dropped, done.vacuumed, done.logs, done.failed) == ([left], [], {}, [])
    with opened.database.begin() as connection:
        assert lookup.get(connection, left).state == "retired"
    deployed.send("events", event(1))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)
