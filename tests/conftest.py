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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of Airflow's DAGs take minutes, most of which they wait: begun last, they would keep a run waiting."""
    items.sort(key=lambda item: "/dags/" not in item.path.as_posix())
