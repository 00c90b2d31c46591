"""Checks of views: an invalid check is refused with a way out that compiles, and no check is part of a version."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from serving_layer.change.catalog_changes import compare
from serving_layer.change.facts import Facts
from tests.algebra.refused import BASE
from view_algebra import Refused, View, compile_catalog

REFUSED = [
    # (the declaration, the reason in its refusal, what works instead)
    (
        "hourly ADD CONSTRAINT c CHECK (contry = 'x')",
        "no column contry",
        "hourly ADD CONSTRAINT c CHECK (country = 'x')",
    ),
    ("hourly ADD CONSTRAINT c CHECK (n + 1)", "NOT takes a condition", "hourly ADD CONSTRAINT c CHECK (n + 1 > 0)"),
    ("hourly ADD CONSTRAINT c CHECK (rand() < n)", "rand() gives another", "hourly ADD CONSTRAINT c CHECK (0 < n)"),
    ("hourly ADD CHECK (n > 0)", "Give the check a name", "hourly ADD CONSTRAINT c CHECK (n > 0)"),
    (
        "hourly ADD CONSTRAINT c PRIMARY KEY (country, hour)",
        "PRIMARY KEY (country, hour) is not a check of a view",
        "hourly ADD CONSTRAINT c UNIQUE (country, hour)",
    ),
    ("hourly ADD CONSTRAINT c UNIQUE ()", "UNIQUE is not a check", "hourly ADD CONSTRAINT c UNIQUE (country)"),
    (
        "hourly ADD CONSTRAINT c FOREIGN KEY (n)",
        "FOREIGN KEY (n) is not a check of a view",
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id)",
    ),
    (
        "hourly ADD CONSTRAINT c FOREIGN KEY () REFERENCES users ()",
        "is not a check of a view",
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id)",
    ),
    ("hourly ADD CONSTRAINT c UNIQUE (contry)", "no column contry", "hourly ADD CONSTRAINT c UNIQUE (country)"),
    (
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES usrs (user_id)",
        "Did you mean users?",
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id)",
    ),
    (
        "hourly ADD CONSTRAINT c FOREIGN KEY (n, hour) REFERENCES users (user_id)",
        "2 columns reference 1",
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id)",
    ),
    (
        "hourly ADD CONSTRAINT c CHECK (n < (SELECT count(*) FROM events))",
        "the check reads records of events",
        "hourly ADD CONSTRAINT c CHECK (n < (SELECT sum(n) FROM hourly))",
    ),
    ("events ADD CONSTRAINT c CHECK (amount > 0)", "events is not a view", "hourly ADD CONSTRAINT c CHECK (n > 0)"),
    ("hourli ADD CONSTRAINT c CHECK (n > 0)", "Did you mean hourly?", "hourly ADD CONSTRAINT c CHECK (n > 0)"),
    (
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id) ON DELETE CASCADE",
        "ON DELETE CASCADE is not served in a check",
        "hourly ADD CONSTRAINT c FOREIGN KEY (n) REFERENCES users (user_id) NOT ENFORCED",
    ),
    (
        "analytics.hourly ADD CONSTRAINT c CHECK (n > 0)",
        "the schema analytics is not served",
        "hourly ADD CONSTRAINT c CHECK (n > 0) NOT ENFORCED",
    ),
    (
        "IF EXISTS hourly ADD CONSTRAINT c UNIQUE (country, hour)",
        "EXISTS is not served in a check",
        "hourly ADD CONSTRAINT c UNIQUE (country, hour) NOT ENFORCED",
    ),
    ("hourly RENAME TO h", "ALTER VIEW adds one constraint", "hourly ADD CONSTRAINT c CHECK (n > 0)"),
    (
        "hourly ADD CONSTRAINT c CHECK (n > 0); ALTER VIEW hourly ADD CONSTRAINT c CHECK (n > 1)",
        "a check c is already declared in checks.sql:1",
        "hourly ADD CONSTRAINT c CHECK (n > 0); ALTER VIEW hourly ADD CONSTRAINT d CHECK (n > 1)",
    ),
]


@pytest.mark.parametrize(("declared", "reason", "instead"), REFUSED, ids=[declared for declared, _, _ in REFUSED])
def test_an_invalid_check_is_refused_with_a_way_out(declared: str, reason: str, instead: str) -> None:
    with pytest.raises(Refused) as caught:
        compile_catalog({"base.sql": BASE, "checks.sql": f"ALTER VIEW {declared};"})
    assert reason in str(caught.value)
    assert "checks.sql:1" in str(caught.value)
    assert compile_catalog({"base.sql": BASE, "checks.sql": f"ALTER VIEW {instead};"}).views["hourly"].checks


def test_a_condition_that_is_neither_true_nor_false_fails_no_row() -> None:
    check = "ALTER VIEW hourly ADD CONSTRAINT c CHECK (n > 0 OR country = 'x');"
    [compiled] = compile_catalog({"base.sql": BASE, "checks.sql": check}).views["hourly"].checks
    assert compiled.failing.endswith("WHERE NOT (n > 0 OR country = 'x')")


def test_a_check_changes_the_view_but_not_its_version() -> None:
    without = compile_catalog({"base.sql": BASE})
    check = "ALTER VIEW hourly ADD CONSTRAINT c CHECK (n > 0);"
    with_it = compile_catalog({"base.sql": BASE, "checks.sql": check})
    assert replace(with_it.views["hourly"], checks=()) == without.views["hourly"]
    changed = [change for change in compare(without, with_it, Facts()) if change.action != "nothing"]
    assert [(change.name, change.action) for change in changed] == [("hourly", "update")]
    assert "its checks changed" in changed[0].effect


def test_a_view_that_was_stored_without_checks_is_read_without_them() -> None:
    stored = TypeAdapter(View)
    written = json.loads(stored.dump_json(compile_catalog({"base.sql": BASE}).views["hourly"]))
    del written["checks"]
    assert stored.validate_python(written).checks == ()
