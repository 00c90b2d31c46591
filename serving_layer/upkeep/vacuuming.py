"""VACUUM where it pays: a table of many rows keeps millions of dead ones before Postgres vacuums it by itself.

Autovacuum waits until a fifth of a table is dead. Readers pass over the dead rows until then.
"""

from __future__ import annotations

import logging

from sqlalchemy import text

from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Database, PostgresError

log = logging.getLogger("lamina.serving")

LEAST_DEAD, SHARE_DEAD = 10_000, 0.05
"""The dead rows from which on a table is vacuumed: so many, and such a share of the living."""

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
    """Vacuums the tables that have many dead rows, and gives their names. It stands back; readers and writers go on.

    A table that is dropped, or that somebody changes, is left for the next time.
    """
    done = []
    with database.autocommit() as connection:
        tables = connection.execute(text(_TABLES), {"least": LEAST_DEAD, "share": SHARE_DEAD}).scalars().all()
        courtesy.stand_back(connection)
        connection.exec_driver_sql("SET lock_timeout = '1s'")
        for name in tables:
            try:
                # Giving the end of a file back would lock readers out.
                connection.exec_driver_sql(f"VACUUM (TRUNCATE off, PARALLEL 0, ANALYZE) {name}")
            except PostgresError as error:
                log.info("%s is not vacuumed: %s", name, str(error.orig).strip())
            else:
                done.append(name)
    return done
