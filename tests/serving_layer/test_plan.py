"""What a changed catalog would do, where no database is needed to tell."""

from __future__ import annotations

from dataclasses import replace

from serving_layer.changes import Known, compare
from view_algebra import Catalog, compile_catalog

USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING) USING kafka OPTIONS (topic 'users', format 'json');"


def test_a_table_that_an_older_lamina_deployed_and_did_not_read_is_read_from_now_on() -> None:
    catalog = compile_catalog({"users.sql": USERS})
    unread = replace(catalog.sources["users"], parse="SELECT 'as streams are read' AS it")
    changes = compare(Catalog(sources={"users": unread}, views={}), catalog, Known())
    assert [(change.kind, change.name, change.action) for change in changes] == [
        ("source", "users", "update"),
        ("view", "users", "create"),
    ]
