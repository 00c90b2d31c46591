"""The compiler proves which columns of a view are unique, never NULL, or additive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from view_algebra import compile_catalog

SOURCES = """
CREATE TABLE clicks (page STRING, n BIGINT, tags ARRAY<STRING>, at TIMESTAMP) USING kafka
OPTIONS (topic 'clicks', format 'json') TBLPROPERTIES ('event_time' = 'at');
CREATE TABLE users (id BIGINT PRIMARY KEY, city STRING) USING kafka OPTIONS (topic 'users', format 'json');
"""
HOPS = "window(at, '1 hour', '10 minutes')"
PROVED = {
    "SELECT page, count(*) AS c, sum(n) AS s, max(n) AS m FROM clicks GROUP BY page": ("page", "c", "c s"),
    "SELECT page, count(DISTINCT n) AS c FROM clicks GROUP BY page": ("page", "c", ""),
    "SELECT count(*) AS c, count(n) / 2 AS half FROM clicks": (None, "c", "c"),
    "SELECT page, city, count(*) AS c FROM clicks JOIN users ON id = n GROUP BY page, city": ("city page", "c", ""),
    "SELECT DISTINCT count(*) AS c FROM clicks GROUP BY page": ("c", "c", ""),
    "SELECT id, city FROM users": ("id", "", ""),
    "SELECT page, n FROM clicks": ("", "", ""),
    f"SELECT page, sum(c) AS c FROM (SELECT {HOPS}.end AS e, page, count(*) AS c FROM clicks GROUP BY page, {HOPS})"
    " GROUP BY page": ("page", "", ""),
    "SELECT page, sum(n) AS s FROM (SELECT page, n FROM clicks UNION ALL SELECT page, n FROM clicks) GROUP BY page": (
        "page",
        "",
        "",
    ),
    # A record is in several hopping windows, in a group of each grouping, and once per element.
    f"SELECT {HOPS}.end AS until, count(*) AS c FROM clicks GROUP BY {HOPS}": ("until", "c", ""),
    "SELECT page, n, count(*) AS c FROM clicks GROUP BY ROLLUP (page, n)": ("", "", ""),
    "SELECT tag, sum(n) AS s FROM clicks LATERAL VIEW explode(tags) t AS tag GROUP BY tag": ("tag", "", ""),
}


@pytest.mark.parametrize("select", PROVED)
def test_the_compiler_proves_keys_nulls_and_sums(select: str) -> None:
    view = compile_catalog({"v.sql": f"{SOURCES} CREATE VIEW v AS {select};"}).views["v"]
    key, never_null, additive = PROVED[select]
    unique = () if key == "" else ((),) if key is None else (tuple(key.split()),)
    assert (view.unique, view.never_null, view.additive) == (
        unique,
        tuple(never_null.split()),
        tuple(additive.split()),
    )


def test_proofs_do_not_change_a_views_equality() -> None:
    view = compile_catalog(
        {"v.sql": f"{SOURCES} CREATE VIEW v AS SELECT page, count(*) AS c FROM clicks GROUP BY page;"}
    )
    compiled = view.views["v"]
    assert replace(compiled, unique=(), never_null=(), additive=()) == compiled
