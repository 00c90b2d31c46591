"""Fixtures live in the files `fix_*.py`, each by what it gives."""

from __future__ import annotations

from pathlib import Path

pytest_plugins = [f"tests.{path.stem}" for path in sorted(Path(__file__).parent.glob("fix_*.py"))]
