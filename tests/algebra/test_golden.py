"""Every catalog in `cases/` compiles to the texts next to it, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from view_algebra import Catalog, compile_catalog
from view_algebra.explain import explain

CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def compiled(path: Path) -> Catalog:
    return compile_catalog({path.name: path.read_text(encoding="utf-8")})


def page(catalog: Catalog) -> str:
    """Every view: its columns, what it reads, and the texts that run."""
    pages = []
    for view in catalog.views.values():
        columns = ", ".join(f"{c.name} {c.spark}" for c in view.columns)
        head = f"{view.name} ({view.kind}): {columns}\nreads {', '.join((*view.sources, *view.reads))}"
        pages.append(f"{head}\n\n{explain(view)}\n")
    return ("\n" + "=" * 100 + "\n").join(pages)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_a_catalog_compiles_to_exactly_these_texts(path: Path) -> None:
    golden = path.with_suffix(".txt")
    text = page(compiled(path))
    if UPDATE:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
