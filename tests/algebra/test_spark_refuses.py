"""Every check of SQL that Spark refuses has a SELECT. `tests/laws` runs the same SELECTs in Spark."""

from __future__ import annotations

import ast
import inspect

import pytest

from tests.algebra.spark_cases import CASES
from view_algebra import Refused, compile_catalog
from view_algebra.typed import spark_refuses

SOURCES = """
CREATE TABLE s (k STRING, n INT, day INT, tags ARRAY<STRING>, ts TIMESTAMP)
USING kafka OPTIONS (topic 's', format 'json');
CREATE VIEW t AS SELECT k, n, count(*) AS c FROM s GROUP BY k, n;
"""


def test_every_check_has_a_case_in_the_order_of_the_checks() -> None:
    checks = [name for name in vars(spark_refuses) if name.startswith("refuse_")]
    assert list(dict.fromkeys(name for name, *_ in CASES)) == checks


@pytest.mark.parametrize(("check", "answered", "what", "select"), CASES, ids=[what for _, _, what, _ in CASES])
def test_a_check_refuses_its_select(check: str, answered: str, what: str, select: str) -> None:
    with pytest.raises(Refused) as refused:
        compile_catalog({"c.sql": f"{SOURCES}CREATE VIEW v AS {select};"})
    source = ast.walk(ast.parse(inspect.getsource(getattr(spark_refuses, check))))
    texts = [node.value for node in source if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert any(len(text) > 8 and text in refused.value.what for text in texts), refused.value.what
