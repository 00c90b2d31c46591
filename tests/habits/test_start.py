"""A command loads only the packages that it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "airflow",
    "alembic",
    "duckdb",
    "kafka",
    "numpy",
    "pandas",
    "py4j",
    "pyarrow",
    "pydantic",
    "pyspark",
    "sqlalchemy",
    "sqlglot",
}

LOADED = {
    "lamina.cli": set(),
    "lamina.operations.deployment": {"sqlalchemy"},
    "lamina.reports.status_lines": {"sqlalchemy"},
    "lamina.reports.receipt_lines": {"sqlalchemy"},
    "serving_layer.change.deploying": {"sqlalchemy"},
}
"""Modules that a command loads at its start, and the heavy packages that they load."""


@pytest.mark.parametrize("module", LOADED)
def test_a_command_starts_without_the_packages_that_few_commands_need(module: str) -> None:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.intersection(done.stdout.split()) == LOADED[module]


def test_a_command_loads_the_compiler_and_the_layers_only_if_it_uses_them() -> None:
    code = "import sys, lamina.operations.deployment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"view_algebra.compile", "batch_layer", "speed_layer"}.isdisjoint(done.stdout.split())
