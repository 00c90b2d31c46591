"""A new aggregate is a row of `view_algebra/language/aggregates.py`: other modules ask the row, not for its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from view_algebra.language.aggregates import AGGREGATES, SYNONYMS

ROOT = Path(__file__).parents[2] / "view_algebra"

TABLE = ROOT / "language" / "aggregates.py"

EXCEPTIONS = {
    # the names of merges
    ("compiled.py", name)
    for name in ("sum", "min", "max", "bit_and", "bit_or", "bit_xor", "mean")
} | {
    # the results that Postgres gives in Spark's type: golden texts fix which of them are cast
    *(("engines/postgres/query_texts.py", name) for name in ("sum", "count", "avg")),
    # the one synonym that Spark prints under another name
    ("typed/natural_names.py", "array_agg"),
    # the beginning of a column's name
    ("split/leaves.py", "count"),
    # kinds of types in the signatures of functions
    *((f"language/{module}.py", "any") for module in ("functions", "overloads")),
    # kinds of `AggregateFunction.settled`
    ("typed/aggregation/aggregates.py", "mode"),
}


def decisions(tree: ast.AST) -> Iterator[str]:
    """The texts in a module by which it may decide: no docstrings, and no arguments of calls."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(node, (ast.Call, ast.keyword, ast.Expr)):
                continue
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.value


def test_no_module_outside_the_table_decides_by_the_name_of_an_aggregate() -> None:
    names = AGGREGATES.keys() | SYNONYMS.keys()
    decided = {
        (str(path.relative_to(ROOT)), text)
        for path in ROOT.rglob("*.py")
        if path != TABLE
        for text in decisions(ast.parse(path.read_text()))
        if text in names
    }
    assert decided == EXCEPTIONS
