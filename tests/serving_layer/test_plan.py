"""What a changed catalog would do, where no database is needed to tell."""

from __future__ import annotations

from dataclasses import replace

from serving_layer.registry import _changes
from view_algebra import Catalog, compile_catalog

USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING) USING kafka OPTIONS (topic 'users', format 'json');"


def test_a_table_that_an_older_lamina_deployed_and_did_not_read_is_read_from_now_on() -> None:
    catalog = compile_catalog({"users.sql": USERS})
    unread = replace(catalog.sources["users"], parse="SELECT 'as streams are read' AS it")
    changes = _changes(Catalog(sources={"users": unread}, views={}), catalog, set())
    assert [(change.kind, change.name, change.action) for change in changes] == [
        ("source", "users", "update"),
        ("view", "users", "create"),
    ]


def test_what_an_older_lamina_does_not_read_of_a_table_is_asked_by_no_new_view() -> None:
    table = """CREATE TABLE seats (id INT PRIMARY KEY, guest STRING, at TIMESTAMP)
    USING kafka OPTIONS (topic 'seats', format 'debezium-json') TBLPROPERTIES ('event_time' = 'at');"""
    then = compile_catalog({"seats.sql": table})
    older = replace(then.sources["seats"], parse="SELECT 'without moves' AS it", moved_from="")
    looks = """CREATE TABLE looks (id INT, ts TIMESTAMP) USING kafka OPTIONS (topic 'looks', format 'json');
    CREATE VIEW guests AS SELECT guest, count(*) AS n FROM seats GROUP BY guest;
    CREATE VIEW seen AS SELECT s.guest FROM looks l JOIN seats FOR SYSTEM_TIME AS OF l.ts AS s ON s.id = l.id;"""
    now = compile_catalog({"seats.sql": table, "looks.sql": looks})
    changes = _changes(Catalog(sources={"seats": older}, views=then.views), now, set())
    assert {change.name: change.action for change in changes} == {
        "seats": "nothing",  # the view; the source is kept
        "looks": "create",
        "guests": "create",
        "seen": "refuse",
    }
