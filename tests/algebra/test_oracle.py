"""The edits for `lamina check` are values: the author's syntax stays as it was parsed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from view_algebra.compile import stages
from view_algebra.declared import Mistakes, declarations

CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))


def nodes(tree: exp.Expr) -> list[object]:
    """Every node with its values, its metadata and its place in the tree, without the cached extent."""
    return [
        (
            type(node),
            {name: value for name, value in node.args.items() if not isinstance(value, (exp.Expr, list))},
            {name: value for name, value in node.meta.items() if name != "lamina_extent"},
            type(node.parent),
            node.arg_key,
        )
        for node in tree.walk()
    ]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_typing_leaves_the_authors_syntax_as_it_was_parsed(path: Path) -> None:
    files = {path.name: path.read_text(encoding="utf-8")}
    views, untouched = stages(files), declarations(files, Mistakes()).views
    assert untouched
    for name, view in untouched.items():
        assert nodes(views[name].split.typed.declaration.select) == nodes(view.select), name
