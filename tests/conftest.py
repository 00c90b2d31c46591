"""Fixtures live in the files `fix_*.py`, each by what it gives."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest_plugins = [f"tests.{path.stem}" for path in sorted(Path(__file__).parent.glob("fix_*.py"))]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # in a shell's background: what is started here would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "dags/test_dag_runs.py",
    "deployment/test_services.py",  # over the same Postgres
    "laws/test_views.py",
    "crashes/test_lost_tails.py",
    "crashes/test_chaos.py",
    "batch_layer/test_stalls.py",
    "speed_layer/test_endless.py",
    "acceptance/test_reports.py",
    "acceptance/test_demo.py",
    "acceptance/test_join_cases.py",
    "acceptance/test_cases.py",
)
"""Files with tests that take a minute or more: begun last, one would keep a run waiting that has nothing else to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest tests first, in the order above."""
    first = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(LONGEST)))
