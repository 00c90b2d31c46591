"""Every check of what Spark does not accept refuses a SELECT, and tests/laws asks Spark about the same ones."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from view_algebra import Refused, compile_catalog
from view_algebra.typed import spark_refuses

CASES = re.findall(
    r"-- (\w+)(, answered)?: (.*)\n([^;]*);", (Path(__file__).parent / "spark_refuses.sql").read_text(encoding="utf-8")
)
"""Names of checks, each with ", answered" if Spark answers all the same, the reason, and a SELECT over `s` and `t`."""

SOURCES = """
CREATE TABLE s (k STRING, n INT, day INT, tags ARRAY<STRING>, ts TIMESTAMP)
USING kafka OPTIONS (topic 's', format 'json');
CREATE VIEW t AS SELECT k, n, count(*) AS c FROM s GROUP BY k, n;
"""


def test_there_is_a_case_for_every_check_and_in_their_order() -> None:
    checks = [name for name in vars(spark_refuses) if name.startswith("refuse_")]
    assert list(dict.fromkeys(name for name, *_ in CASES)) == checks


@pytest.mark.parametrize(("check", "answered", "what", "select"), CASES, ids=[what for _, _, what, _ in CASES])
def test_a_check_refuses_what_spark_does_not_accept(check: str, answered: str, what: str, select: str) -> None:
    with pytest.raises(Refused) as refused:
        compile_catalog({"c.sql": f"{SOURCES}CREATE VIEW v AS {select};"})
    source = ast.walk(ast.parse(inspect.getsource(getattr(spark_refuses, check))))
    texts = [node.value for node in source if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert any(len(text) > 8 and text in refused.value.what for text in texts), refused.value.what
