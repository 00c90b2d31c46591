"""Tables with many dead rows are vacuumed, and nobody waits for that."""

from __future__ import annotations

import time

from sqlalchemy import text

from serving_layer.database import Database
from serving_layer.vacuuming import vacuum

DEAD = text("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'many'")


def dead(serving: Database) -> int:
    with serving.begin() as connection:
        return int(connection.execute(DEAD).scalar_one())


def test_many_dead_rows_are_vacuumed_beside_a_reader(serving: Database) -> None:
    with serving.begin() as connection:
        for name, rows in (("many", 30_000), ("few", 5_000)):
            connection.exec_driver_sql(f"CREATE TABLE cells.{name} (n int) WITH (autovacuum_enabled = off)")
            connection.exec_driver_sql(f"INSERT INTO cells.{name} SELECT generate_series(1, {rows})")
    with serving.begin() as connection:
        for name in ("many", "few"):
            connection.exec_driver_sql(f"UPDATE cells.{name} SET n = n + 1")
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    deadline = time.monotonic() + 10
    while dead(serving) < 30_000 and time.monotonic() < deadline:
        time.sleep(0.1)
    with serving.begin() as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM cells.few").scalar_one() == 5_000
        assert vacuum(serving) == ["cells.many"]
    assert dead(serving) == 0
    assert vacuum(serving) == []
