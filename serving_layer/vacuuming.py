"""VACUUM where it pays: a table of many rows keeps millions of dead ones before Postgres vacuums it by itself.

Autovacuum waits until a fifth of a table is dead. Readers pass over the dead rows until then.
"""

from __future__ import annotations

from sqlalchemy import text

from serving_layer.database import Database

LEAST_DEAD, SHARE_DEAD = 10_000, 0.05
"""The dead rows from which on a table is vacuumed: so many, and such a share of the living."""

_TABLES = """
SELECT relid, format('%I.%I', schemaname, relname) AS name FROM pg_stat_user_tables
WHERE schemaname IN ('cells', 'realtime', 'lamina')
  AND n_dead_tup >= :least AND n_dead_tup >= :share * n_live_tup
ORDER BY name
"""


def vacuum(database: Database) -> list[str]:
    """Vacuums the tables that have many dead rows, and gives their names; nobody waits for it, and it for nobody."""
    done = []
    with database.autocommit() as connection:
        for id, name in connection.execute(text(_TABLES), {"least": LEAST_DEAD, "share": SHARE_DEAD}).all():
            there = text("SELECT EXISTS (SELECT FROM pg_class WHERE oid = :id)")  # it may be dropped meanwhile
            if connection.execute(there, {"id": id}).scalar_one():
                # Giving the end of a file back would lock readers out.
                connection.exec_driver_sql(f"VACUUM (SKIP_LOCKED, TRUNCATE off, ANALYZE) {name}")
                done.append(name)
    return done
