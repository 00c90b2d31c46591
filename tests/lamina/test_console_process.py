"""The console of `lamina up`, a process in the background."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from lamina.services.background import ConsoleProcess
from tests.fix_lamina import Deployed


def test_two_starts_of_a_home_start_one_console(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = deployed.deployment.settings
    for name in ("postgres", "kafka", "analyst"):
        monkeypatch.setenv(f"LAMINA_{name.upper()}", getattr(settings, name))
    home = ConsoleProcess(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: home.start(), range(2))
    try:
        assert first == second
        home.expect()
        marked = [
            process
            for process in psutil.process_iter(["cmdline"])
            if home.background.mark in (process.info["cmdline"] or ())
        ]
        assert len(marked) == 1
    finally:
        assert home.stop()
    assert home.background.find() is None
