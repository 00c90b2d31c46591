"""The views that analysts read are created again with a change, with their rights and comments."""

from __future__ import annotations

import psycopg2
import psycopg2.errors
import pytest
from sqlalchemy import text

from batch_layer import renewals
from serving_layer.change import deploying
from tests.fix_services import Services
from tests.serving_layer.changing import BY_KEY, TOTAL, reading
from tests.serving_layer.world import World, shown
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError


def test_views_above_are_created_again_with_their_rights_and_comments(world: World) -> None:
    world.files["total.sql"] = TOTAL
    with world.database.begin() as connection:
        world.apply(connection)
        connection.execute(text("GRANT SELECT ON analytics.total TO lamina_writer WITH GRANT OPTION"))
        connection.execute(text("GRANT SELECT (s) ON analytics.counts TO lamina_writer"))
    world.change(
        counts="CREATE VIEW counts COMMENT 'by key' AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;"
    )
    with world.database.begin() as connection:
        may = "SELECT has_table_privilege('lamina_writer', 'analytics.total', 'SELECT WITH GRANT OPTION'),"
        may += " has_column_privilege('lamina_writer', 'analytics.counts', 's', 'SELECT'),"
        may += " has_table_privilege('lamina_writer', 'analytics.counts', 'SELECT'),"
        may += " has_table_privilege('analyst', 'analytics.total', 'SELECT'),"
        may += " obj_description('analytics.counts'::regclass)"
        assert connection.execute(text(may)).one() == (True, True, False, True, "by key")
    assert shown(world, "total") == [(None, None)]


def test_a_dropped_analysts_view_is_created_again_with_its_rights(world: World, database: str) -> None:
    """The view comes first because it now reads the stream. Its older side reads a view that is dropped later."""
    world.change(alpha="CREATE VIEW alpha AS SELECT c FROM counts WHERE c > 0;")
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    with world.database.begin() as connection:
        connection.execute(text("GRANT SELECT ON analytics.alpha TO lamina_writer"))
    reordered = "CREATE VIEW counts AS SELECT count(*) AS c, k, sum(n) AS s FROM a GROUP BY k;"
    with reading(database):  # so that the older side is needed
        world.change(alpha="CREATE VIEW alpha AS SELECT count(*) AS c, sum(n) AS s FROM a;", counts=reordered)
        assert shown(world, "alpha")
        with world.database.begin() as connection:
            may = text("SELECT has_table_privilege('lamina_writer', 'analytics.alpha', 'SELECT')")
            assert connection.execute(may).scalar_one()


def test_a_right_on_a_dropped_column_does_not_block_a_change(world: World) -> None:
    with world.database.begin() as connection:
        connection.execute(text("GRANT SELECT (s) ON analytics.counts TO lamina_writer"))
    world.change(
        counts="CREATE VIEW counts AS SELECT k, count(*) AS c FROM a GROUP BY k;",
        total="CREATE VIEW total AS SELECT sum(c) AS c FROM counts;",
        allow_break=True,
    )
    with world.database.begin() as connection:
        columns = text("SELECT attname FROM pg_attribute WHERE attrelid = 'analytics.counts'::regclass AND attnum > 0")
        assert set(connection.execute(columns).scalars()) == {"k", "c"}


def test_a_relation_of_another_role_is_named_and_never_dropped(world: World) -> None:
    with world.database.begin() as connection:
        connection.execute(text("CREATE VIEW public.theirs AS SELECT s FROM analytics.counts"))
    world.change(counts=BY_KEY)
    moved = "CREATE VIEW counts AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;"
    world.files["counts.sql"] = moved
    with pytest.raises(LaminaError, match="not applied") as refused, world.database.begin() as connection:
        world.apply(connection)
    assert "theirs" in refused.value.evidence.partition("read by ")[2]
    world.files["counts.sql"] = BY_KEY
    del world.files["sums.sql"]
    with world.database.begin() as connection:
        world.apply(connection)
        assert connection.execute(text("SELECT count(*) FROM public.theirs")).scalar_one() == 0


def test_analysts_own_views_are_dropped_with_a_change_and_their_tables_are_kept(
    world: World, services: Services
) -> None:
    name = str(world.database.url.database)
    with world.database.begin() as connection:
        connection.execute(text("CREATE SCHEMA marts"))
        connection.execute(text("GRANT USAGE, CREATE ON SCHEMA marts TO analyst"))
        connection.execute(text(f"GRANT TEMPORARY ON DATABASE {name} TO analyst"))
    world.append("a", 0, ("x", 1), ("y", 2))
    world.advance("a")
    world.change(counts=BY_KEY)
    analyst = psycopg2.connect(services.database_url(name, "analyst"))
    analyst.set_session(readonly=False, autocommit=True)
    with analyst.cursor() as cursor:  # the last one as dbt does for an incremental model
        for statement in (
            "CREATE VIEW marts.theirs AS SELECT k, s FROM analytics.counts",
            "CREATE MATERIALIZED VIEW marts.sum AS SELECT sum(s) AS s FROM marts.theirs",
            "CREATE VIEW marts.above AS SELECT s FROM marts.sum JOIN analytics.sums USING (s)",
            "CREATE TABLE marts.kept AS SELECT * FROM marts.theirs",
            "CREATE TEMPORARY TABLE newer AS SELECT * FROM marts.theirs",
            "INSERT INTO marts.kept SELECT * FROM newer",
        ):
            cursor.execute(statement)
        world.change(counts="CREATE VIEW counts AS SELECT k, count(*) AS c, sum(n) AS s FROM a GROUP BY k;")
        cursor.execute("SELECT count(*) FROM marts.kept")
        assert cursor.fetchall() == [(4,)]
        cursor.execute("CREATE VIEW marts.theirs AS SELECT k, s FROM analytics.counts")
        cursor.execute("CREATE VIEW marts.others AS SELECT k FROM analytics.sums")
        cursor.execute("SELECT table_name FROM information_schema.views WHERE table_schema = 'marts' ORDER BY 1")
        assert cursor.fetchall() == [("others",), ("theirs",)]
        del world.files["sums.sql"]
        with world.database.begin() as connection:
            effects = {
                change.name: change.effect for change in deploying.plan(connection, compile_catalog(world.files))
            }
            assert "the analysts' view marts.others is dropped with it" in effects["sums"]
            world.apply(connection)
        cursor.execute("SELECT table_name FROM information_schema.views WHERE table_schema = 'marts' ORDER BY 1")
        assert cursor.fetchall() == [("theirs",)]
        lines: list[str] = []
        renewals.roll_back(world.database, "counts", lines.append)
        assert lines == [
            "the analysts' view marts.theirs was dropped, because counts has other columns now: create it again"
        ]
        cursor.execute("SELECT count(*) FROM information_schema.views WHERE table_schema = 'marts'")
        assert cursor.fetchall() == [(0,)]
    analyst.close()
