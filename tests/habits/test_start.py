"""A command starts at once: what few commands need is loaded by these."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"kafka", "numpy", "pyarrow", "pyspark", "sqlglot", "alembic", "duckdb", "airflow"}


def test_the_command_line_starts_without_what_few_commands_need() -> None:
    code = "import sys, lamina.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


def test_a_command_that_works_on_a_deployment_loads_the_compiler_only_where_it_compiles() -> None:
    code = "import sys, lamina.deployment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"sqlglot", "view_algebra.compile"}.isdisjoint(done.stdout.split())
