"""Relations in Postgres that read an analyst's view: our own views, and relations of other roles.

A relation of another role blocks a change that would drop it, unless its schema is an analysts' schema: one that
Lamina's owner has created, and in which the role `analyst` may create. Relations there are dropped, and their authors
create them again. The schema `public` never counts as one: before Postgres 15, every role may create in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from serving_layer.postgres.cells import run
from serving_layer.postgres.database import has_readers
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted

_IS_DROPPABLE = """r.relkind IN ('v', 'm') AND EXISTS (
  SELECT FROM pg_namespace AS n
  WHERE n.oid = r.relnamespace AND n.nspname <> 'public' AND pg_get_userbyid(n.nspowner) = current_user
    AND has_schema_privilege('analyst', n.oid, 'CREATE'))"""

_READS = """
WITH RECURSIVE reads (reader, base) AS (
  SELECT DISTINCT r.ev_class, d.refobjid
  FROM pg_depend AS d
  JOIN pg_rewrite AS r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
)"""

_ABOVE = f"""{_READS}, above (base, reader) AS (
  SELECT base, reader
  FROM reads
  WHERE base IN (SELECT oid FROM pg_class WHERE relnamespace = 'analytics'::regnamespace)
  UNION
  SELECT above.base, reads.reader
  FROM above
  JOIN reads ON reads.base = above.reader
)
SELECT b.relname AS view, r.relname AS reader, r.oid::regclass::text AS written,
  r.relnamespace = 'analytics'::regnamespace AND v.name IS NOT NULL AS ours, {_IS_DROPPABLE} AS droppable
FROM above
JOIN pg_class AS b ON b.oid = above.base
JOIN pg_class AS r ON r.oid = above.reader
LEFT JOIN lamina.view AS v ON v.name = r.relname
ORDER BY view, reader
"""

_DROPPABLE = f"""{_READS}, above (reader, depth) AS (
  SELECT oid, 0 FROM pg_class WHERE relnamespace = 'analytics'::regnamespace AND relname = ANY (:names)
  UNION
  SELECT reads.reader, above.depth + 1
  FROM above
  JOIN reads ON reads.base = above.reader
)
SELECT format('DROP %s %s', CASE r.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, r.oid::regclass)
FROM above
JOIN pg_class AS r ON r.oid = above.reader
WHERE {_IS_DROPPABLE}
GROUP BY r.oid, r.relkind
ORDER BY max(depth) DESC
"""

_RIGHTS = """
SELECT c.relname AS view,
  format('GRANT %s ON analytics.%I TO %s%s', a.privilege_type, c.relname,
    CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
    CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS granted
FROM pg_class AS c, aclexplode(c.relacl) AS a
WHERE c.relnamespace = 'analytics'::regnamespace AND c.relname = ANY (:names) AND a.grantee <> c.relowner
UNION ALL
SELECT c.relname,
  format('GRANT %s (%I) ON analytics.%I TO %s', a.privilege_type, t.attname, c.relname,
    CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
FROM pg_class AS c
JOIN pg_attribute AS t ON t.attrelid = c.oid, aclexplode(t.attacl) AS a
WHERE c.relnamespace = 'analytics'::regnamespace AND c.relname = ANY (:names)
"""


def of_others(connection: Connection) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The relations of other roles that read each of our views, directly or through our views.

    Returns those that block a drop, and those in analysts' schemas, which an apply may drop.
    """
    blocking: dict[str, tuple[str, ...]] = {}
    droppable: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(text(_ABOVE)):
        if not row.ours:
            readers = droppable if row.droppable else blocking
            readers[row.view] = (*readers.get(row.view, ()), row.written)
    return blocking, droppable


def drop(connection: Connection, name: str) -> dict[str, list[str]]:
    """Drops an analyst's view and our views that read it, all to be created again.

    Returns their names, each with the GRANT statements of its present rights. Raises if another role reads one.
    """
    rows = connection.execute(text(_ABOVE)).all()
    names = [name, *(row.reader for row in rows if row.view == name and row.ours)]
    rights: dict[str, list[str]] = {view: [] for view in names}
    for row in connection.execute(text(_RIGHTS), {"names": names}):
        rights[row.view].append(row.granted)
    drop_all(connection, names)
    return rights


def drop_all(connection: Connection, names: Collection[str]) -> None:
    """Drops analysts' views, with the droppable relations. Raises if any other relation reads one."""
    what = f"Relations of other roles read {', '.join(names)}, which would be dropped; nothing was changed"
    way_out = "Drop these relations, apply, and create them again."
    with refused_if_read(what, way_out), connection.begin_nested():
        for statement in connection.execute(text(_DROPPABLE), {"names": list(names)}).scalars().all():
            run(connection, statement)
        run(connection, f"DROP VIEW IF EXISTS {', '.join(f'analytics.{quoted(name)}' for name in names)}")


@contextmanager
def refused_if_read(what: str, way_out: str) -> Iterator[None]:
    """Raises in our words if relations of other roles depend on what the block drops."""
    try:
        yield
    except DBAPIError as error:
        if not has_readers(error):
            raise
        evidence = str(getattr(error.orig, "pgerror", error)).strip()
        raise LaminaError(what, evidence=evidence, way_out=way_out) from error
