from __future__ import annotations

from pathlib import Path

from view_algebra.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


def test_the_reference_is_what_the_compiler_s_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference()
