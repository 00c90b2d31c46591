"""VACUUM of tables with many dead rows. In a large table, Postgres would let millions of them accumulate.

Autovacuum waits until a fifth of a table is dead. Until then readers pass over the dead rows.
"""

from __future__ import annotations

import logging

from sqlalchemy import text

from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Database, PostgresError

log = logging.getLogger("lamina.serving")

LEAST_DEAD, SHARE_DEAD = 10_000, 0.05
"""A table is vacuumed from this many dead rows on, if they are also this share of the live ones."""

_TABLES = """
SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables
WHERE n_dead_tup >= :least AND n_dead_tup >= :share * n_live_tup AND (
  schemaname = 'lamina' OR relid IN (
    SELECT to_regclass(c.place) FROM lamina.generation_cells AS c JOIN lamina.generation AS g ON g.id = c.generation
    WHERE g.state = 'live'
  )
)
ORDER BY 1
"""


def vacuum(database: Database) -> list[str]:
    """Vacuums the tables with many dead rows and returns their names, at low priority and without blocking anyone.

    A table that is dropped or altered meanwhile is left for the next run.
    """
    done = []
    with database.autocommit() as connection:
        tables = connection.execute(text(_TABLES), {"least": LEAST_DEAD, "share": SHARE_DEAD}).scalars().all()
        courtesy.stand_back(connection)
        connection.exec_driver_sql("SET lock_timeout = '1s'")
        for name in tables:
            try:
                # Truncating the file would lock readers out.
                connection.exec_driver_sql(f"VACUUM (TRUNCATE off, PARALLEL 0, ANALYZE) {name}")
            except PostgresError as error:
                log.info("%s is not vacuumed: %s", name, str(error.orig).strip())
            else:
                done.append(name)
    return done
