"""A view is placed over the rows or the records that it reads before its texts are written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from view_algebra import Refused, compile_catalog
from view_algebra.compile import avoided, stages
from view_algebra.engines.postgres.expression_texts import FORMS
from view_algebra.language.above import WRITER_FORMS
from view_algebra.written.naming import names_in, under_another_name

CASES = Path(__file__).parent / "placement.sql"
GOLDEN = CASES.with_suffix(".txt")
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def test_each_view_has_exactly_this_placement_and_reason() -> None:
    views = stages({"placement.sql": CASES.read_text(encoding="utf-8")})
    lines = [
        f"{name}: over rows" if view.avoided is None else f"{name}: over records ({view.avoided.reason})"
        for name, view in views.items()
    ]
    placements = "\n".join(lines) + "\n"
    if UPDATE:
        GOLDEN.write_text(placements, encoding="utf-8")
    assert placements == GOLDEN.read_text(encoding="utf-8")


def test_avoided_gives_the_obstacle_of_a_compiled_view() -> None:
    catalog = compile_catalog({"placement.sql": CASES.read_text(encoding="utf-8")})
    obstacle = avoided(catalog, "last_of_view")
    assert obstacle is not None
    assert obstacle.reason == "these rows have no order of events"
    assert avoided(catalog, "count_of_view") is None


def test_a_view_that_this_compiler_refuses_has_no_placement_to_explain() -> None:
    catalog = compile_catalog({"placement.sql": CASES.read_text(encoding="utf-8")})
    of_another = replace(
        catalog.views["last_of_view"], sql="CREATE VIEW last_of_view AS SELECT nothing() AS n FROM chosen"
    )
    assert avoided(replace(catalog, views={**catalog.views, "last_of_view": of_another}), "last_of_view") is None


@pytest.mark.parametrize("written", ["last_of_view", "`last_of_view`"])
def test_a_declaration_under_another_name_can_be_read(written: str) -> None:
    catalog = compile_catalog({"placement.sql": CASES.read_text(encoding="utf-8")})
    view = catalog.views["last_of_view"]
    renamed = under_another_name(view.sql.replace("last_of_view", written), "select")
    assert names_in(replace(view, name="select", sql=renamed)) == {"chosen"} == names_in(view)


def test_a_stored_declaration_that_this_compiler_cannot_read_is_refused() -> None:
    catalog = compile_catalog({"placement.sql": CASES.read_text(encoding="utf-8")})
    with pytest.raises(Refused, match="SELECT has nothing after it"):
        names_in(replace(catalog.views["last_of_view"], sql="CREATE VIEW last_of_view AS SELECT FROM"))
    with pytest.raises(Refused, match="SELECT has nothing after it"):
        under_another_name("CREATE VIEW last_of_view AS SELECT FROM", "latest")


@pytest.mark.parametrize("call", sorted(WRITER_FORMS - {"lambda", "to_json"}))
def test_every_call_that_needs_no_template_has_a_form_in_postgres(call: str) -> None:
    assert call in FORMS


def test_every_form_in_postgres_is_known_to_the_placement() -> None:
    assert FORMS.keys() <= WRITER_FORMS


def test_an_obstacle_that_records_leave_too_is_refused_in_the_words_of_the_first() -> None:
    sql = CASES.read_text(encoding="utf-8")
    with pytest.raises(Refused, match=r"initcap\(\) as Spark does") as refused:
        compile_catalog({"c.sql": f"{sql}CREATE VIEW v AS SELECT initcap(max(kind)) AS kind FROM by_user GROUP BY n;"})
    assert "initcap(max(kind))" in str(refused.value)


OBSTACLES = ("initcap(max(kind))", "last(kind)", "max(CAST(f AS STRING))", "percentile_approx(x, 0.9)")
"""Aggregates of a view over groups that Postgres does not compute: rows and records both leave the obstacle."""

POSITIONS = (
    "SELECT {0} AS c FROM grouped",
    "SELECT kind FROM grouped GROUP BY kind HAVING {0} IS NULL",
    "SELECT kind FROM grouped GROUP BY kind ORDER BY {0}, kind LIMIT 3",
    "SELECT kind, (SELECT {0} FROM grouped) AS c FROM grouped",
    "SELECT kind FROM grouped WHERE EXISTS (SELECT {0} FROM grouped WHERE kind = 'a')",
    "SELECT kind FROM grouped WHERE NOT EXISTS (SELECT {0} FROM grouped WHERE n > 1)",
    "SELECT kind FROM grouped WHERE kind IN (SELECT CAST({0} AS STRING) FROM grouped)",
    "SELECT g.kind FROM grouped g JOIN (SELECT {0} AS c FROM grouped) h ON CAST(h.c AS STRING) = g.kind",
    "SELECT kind FROM grouped UNION SELECT kind FROM grouped ORDER BY (SELECT {0} FROM grouped)",
    "SELECT kind FROM grouped UNION ALL (SELECT CAST({0} AS STRING) AS kind FROM grouped)",
    "SELECT CASE WHEN {0} IS NULL THEN 1 END AS c FROM grouped",
    "SELECT kind, e FROM (SELECT max(kind) AS kind, {0} AS c FROM grouped) LATERAL VIEW explode(array(c)) t AS e",
    "SELECT coalesce(CAST({0} AS STRING), 'none') AS c FROM grouped",
    "SELECT sum(count(*)) OVER (ORDER BY {0}) AS c FROM grouped GROUP BY kind",
)
"""SELECTs with a place for an aggregate."""

GROUPED = "CREATE VIEW grouped AS SELECT kind, user_id, count(*) AS n, sum(amount) AS x, max(price) AS f FROM events"


@pytest.mark.parametrize("select", POSITIONS)
@pytest.mark.parametrize("aggregate", OBSTACLES)
def test_an_obstacle_is_found_wherever_it_stands(select: str, aggregate: str) -> None:
    declared = f"{CASES.read_text(encoding='utf-8')}{GROUPED} GROUP BY kind, user_id;"
    with pytest.raises(Refused, match=r"above the aggregation|no order of events") as refused:
        compile_catalog({"c.sql": f"{declared}\nCREATE VIEW v AS {select.format(aggregate)};"})
    assert "^" in refused.value.evidence


ORDERS = ("initcap(kind)", "CAST(f AS STRING)", "f * 2", "(SELECT last(kind) FROM grouped)")


@pytest.mark.parametrize("order", ORDERS)
def test_an_obstacle_is_found_in_the_order_of_a_set_operation(order: str) -> None:
    declared = f"{CASES.read_text(encoding='utf-8')}{GROUPED} GROUP BY kind, user_id;"
    union = f"SELECT kind, f FROM grouped UNION SELECT kind, f FROM grouped ORDER BY {order}"
    with pytest.raises(Refused, match=r"above the aggregation|no order of events"):
        compile_catalog({"c.sql": f"{declared}\nCREATE VIEW v AS {union};"})


def test_an_aggregate_that_needs_records_gives_a_row_of_no_rows() -> None:
    exists = "SELECT user_id FROM chosen WHERE EXISTS (SELECT percentile_approx(amount, 0.9) FROM chosen WHERE false)"
    catalog = compile_catalog({"c.sql": f"{CASES.read_text(encoding='utf-8')}CREATE VIEW v AS {exists};"})
    assert avoided(catalog, "v") is not None
    assert "percentile_disc" in catalog.views["v"].final


def test_records_that_spark_does_not_compute_are_refused_at_a_place_of_the_view_itself() -> None:
    above = "CREATE VIEW asks AS SELECT id, kind, amount, (SELECT max(n) FROM by_user) AS top FROM events;"
    view = "CREATE VIEW v AS SELECT initcap(kind) AS k, e FROM asks LATERAL VIEW explode(array(top, id)) t AS e;"
    with pytest.raises(Refused, match=r"initcap\(\) as Spark does") as refused:
        compile_catalog({"a.sql": CASES.read_text(encoding="utf-8"), "b.sql": above, "v.sql": view})
    assert refused.value.what.startswith("v.sql:1: v: ")
