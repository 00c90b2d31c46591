"""`docs/sql.md` equals the compiler's tables, and every example in it and in docstrings is true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import view_algebra
from view_algebra import compile_catalog
from view_algebra.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
MODULES = [module.name for module in pkgutil.walk_packages(view_algebra.__path__, "view_algebra.")]


def test_the_reference_is_what_the_compiler_s_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("name", MODULES)
def test_an_example_in_a_docstring_is_true(name: str) -> None:
    module = importlib.import_module(name)
    examples = doctest.testmod(module, verbose=False)
    assert examples.failed == 0
    assert examples.attempted == inspect.getsource(module).count(">>> ")


def test_the_examples_of_the_page_compile_as_one_catalog() -> None:
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    catalog = compile_catalog({f"{number}.sql": text for number, text in enumerate(blocks)})
    assert [*catalog.sources] == [
        "clicks",
        "customers",
        "deliveries",
        "order_changes",
        "orders",
        "payments",
        "readings",
        "sales_in_avro",
        "suppliers",
        "trades",
    ]
    others = ["by_city", "by_city_then", "customers", "net_revenue", "paid", "suppliers"]
    assert sorted(catalog.views) == sorted([*others, "best_countries", "buyers", "order_status", "revenue", "visits"])
    assert catalog.views["best_countries"].kind == "derived"
