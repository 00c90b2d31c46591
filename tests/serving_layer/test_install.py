"""A database becomes a serving layer, and stays one."""

from __future__ import annotations

import psycopg2
import pytest
from alembic import command
from sqlalchemy import text

from serving_layer.database import Database
from serving_layer.install import install, installed, migrations
from tests.fix_services import Services
from tests.serving_layer.world import World
from view_algebra.errors import LaminaError


def test_the_migrations_make_the_tables_that_the_code_declares(serving: Database) -> None:
    with serving.begin() as connection:
        command.check(migrations(connection))


def test_installing_again_changes_nothing(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    install(world.database)
    assert installed(world.database)


def test_the_analyst_reads_the_views_and_nothing_else(world: World, services: Services) -> None:
    name = world.database.url.database
    assert name is not None
    connection = psycopg2.connect(services.database_url(name, "analyst"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sums")
        cursor.execute("SELECT view, seconds_behind FROM lamina.freshness")
        cursor.execute("SELECT topic, error, records FROM lamina.bad_records")
        for refused in (
            "SELECT * FROM lamina.query",
            "DELETE FROM sums",
            "CREATE TABLE analytics.t (x int)",
            "CREATE TABLE public.t (x int)",
        ):
            with pytest.raises(psycopg2.Error, match=r"permission denied|cannot delete"):
                cursor.execute(refused)
    connection.close()


def test_a_database_of_another_encoding_is_refused(services: Services, serving: Database) -> None:
    with serving.autocommit() as connection:
        connection.execute(text("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
    latin = Database(services.database_url("latin"))
    with pytest.raises(LaminaError, match="cannot hold every text"):
        install(latin)
    latin.close()


def test_a_wrong_password_is_told_with_the_way_out(serving: Database) -> None:
    wrong = Database(serving.url.set(password="wrong").render_as_string(hide_password=False))
    with pytest.raises(LaminaError, match="Postgres refuses us") as caught, wrong.begin():
        pass
    assert "wrong" not in str(caught.value).replace("password", "")
    wrong.close()
