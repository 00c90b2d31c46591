"""A command starts at once: what few commands need is loaded by these."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"kafka", "numpy", "pyarrow", "pyspark", "sqlglot", "alembic", "duckdb", "airflow"}


def test_the_command_line_starts_without_what_few_commands_need() -> None:
    code = "import sys, lamina.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())
