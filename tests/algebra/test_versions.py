"""A view's version changes exactly if its cells change."""

from __future__ import annotations

import pytest

from view_algebra import compile_catalog

SOURCE = "CREATE TABLE s (a STRING, n INT, ts TIMESTAMP) USING kafka OPTIONS (topic 's', format 'json');\n"


def version(view: str, source: str = SOURCE) -> str:
    return compile_catalog({"c.sql": source + view}).views["v"].version


BASE = version("CREATE VIEW v AS SELECT a, count(*) AS c, sum(n) AS s FROM s GROUP BY a")


@pytest.mark.parametrize(
    "view",
    [
        "CREATE VIEW v (x, y, z) AS SELECT a, count(*), sum(n) FROM s GROUP BY a",
        "CREATE VIEW v COMMENT 'said' AS SELECT a, count(*) AS c, sum(n) AS s FROM s GROUP BY a",
        "CREATE VIEW v AS\n  select A , COUNT( * ) as c, SUM(n) AS s -- a comment\n FROM s GROUP BY a",
        "CREATE VIEW v AS SELECT sum(n) / count(*) AS mean, a FROM s GROUP BY a HAVING count(*) > 3",
        "CREATE VIEW v AS SELECT sum(s) AS s FROM (SELECT a, sum(n) AS s, count(*) AS c FROM s GROUP BY a) WHERE c > 1",
        "CREATE VIEW v AS SELECT x.a, count(*) AS c, sum(x.n) AS s FROM s AS x GROUP BY x.a",
    ],
)
def test_a_change_of_final_alone_changes_no_version(view: str) -> None:
    assert version(view) == BASE


@pytest.mark.parametrize(
    "view",
    [
        "CREATE VIEW v AS SELECT a, count(*) AS c, min(n) AS s FROM s GROUP BY a",
        "CREATE VIEW v AS SELECT a, count(*) AS c, sum(n) AS s FROM s WHERE n > 1 GROUP BY a",
        "CREATE VIEW v AS SELECT a, ts, count(*) AS c, sum(n) AS s FROM s GROUP BY a, ts",
        "CREATE VIEW v AS SELECT a, count(*) AS c, sum(n) FILTER (WHERE a = 'x') AS s FROM s GROUP BY a",
    ],
)
def test_a_change_of_the_cells_changes_the_version(view: str) -> None:
    assert version(view) != BASE


def test_a_column_read_as_another_type_changes_the_version() -> None:
    select = "CREATE VIEW v AS SELECT a, count(*) AS c, sum(n) AS s FROM s GROUP BY a"
    assert version(select, SOURCE.replace("n INT", "n BIGINT")) != BASE


def test_views_over_equal_blocks_share_one_table_of_cells() -> None:
    view = """CREATE VIEW v AS
    WITH h AS (SELECT a, count(*) AS c FROM s GROUP BY a)
    SELECT h.a, h.c, t.s
    FROM h JOIN (SELECT a, sum(n) AS s FROM s GROUP BY a) t ON h.a = t.a JOIN h AS g ON g.a = h.a"""
    tables = compile_catalog({"c.sql": SOURCE + view}).views["v"].cell_tables
    assert [[p.column.name for p in t.partials] for t in tables] == [["count", "sum_n"]]


def test_a_file_s_order_and_names_change_no_text() -> None:
    view = "CREATE VIEW v AS SELECT a, count(*) AS c FROM s GROUP BY a;"
    one = compile_catalog({"a.sql": SOURCE, "b.sql": view})
    other = compile_catalog({"z/views.sql": view, "z/sources/s.sql": SOURCE})
    assert one.views == other.views
    assert one.sources == other.sources
