"""Fixtures live in the files `fix_*.py`, each by what it gives."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest_plugins = [f"tests.{path.stem}" for path in sorted(Path(__file__).parent.glob("fix_*.py"))]

pytest.register_assert_rewrite(*pytest_plugins)  # before one of them imports another

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # in a shell's background: what is started here would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "dags/test_dag_runs.py",
    "deployment/test_services.py",  # over the same Postgres
    "laws/test_views.py",
    "acceptance/test_reports.py",
    "acceptance/test_cases.py",
    "master_log/test_object_storage.py",
    "acceptance/test_shop_registry.py",
    "crashes/test_lost_tails.py",
    "speed_layer/test_endless.py",
    "batch_layer/test_topic_of_two_sources.py",
    "batch_layer/test_beginnings.py",
    "acceptance/test_join_cases.py",
    "crashes/test_bank.py",
    "crashes/test_kills.py",
    "crashes/test_interrupts.py",
    "crashes/test_chaos.py",
    "acceptance/test_demo.py",
    "batch_layer/test_rebuild.py",
    "batch_layer/test_rebuild_steps.py",
    "batch_layer/test_hard_values.py",
    "batch_layer/test_stalls.py",
    "acceptance/test_ask_again.py",
    "acceptance/test_up.py",
)
"""The files with tests of 45 seconds or more, the longest first: a long test that is left for the end is waited for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest tests first, in the order above."""
    first = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    assert all(path.exists() for path in first), "LONGEST names a file that is gone"
    items.sort(key=lambda item: first.get(item.path, len(LONGEST)))
