from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import view_algebra
from view_algebra.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
MODULES = [module.name for module in pkgutil.iter_modules(view_algebra.__path__)]


def test_the_reference_is_what_the_compiler_s_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("name", MODULES)
def test_an_example_in_a_docstring_is_true(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(f"view_algebra.{name}"), verbose=False)
    assert failed == 0
