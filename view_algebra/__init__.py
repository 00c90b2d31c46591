"""The declaration and its compilation: SQL in, SQL out.

In come the `.sql` files of a catalog. Out comes a `Catalog` of frozen values that hold, per view, four texts:
`partial` (Spark), `cells`, `merge` and `final` (Postgres). Promised for every view that compiles, and tested by running
the texts: `merge` is associative and commutative, and `final(merge(partial(A), partial(B)))` is the author's SELECT
over A and B together, for disjoint sets of records A and B. What cannot keep the promise is refused, with the way out.

Nothing here runs SQL. The compiler needs sqlglot alone. `formats/` also has the decoders of Avro and Protobuf, which
`master_log` runs.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from view_algebra.compiled import Catalog, CellTable, Column, Fused, Input, Merge, Partial, Source, View
from view_algebra.errors import LaminaError, Refused

if TYPE_CHECKING:
    from view_algebra.compile import compile_catalog, recompiled
    from view_algebra.texts.fuse import fuse, rows

SPARK_FUNCTIONS = (files(__package__) / "spark_functions.sql").read_text(encoding="utf-8")
"""Postgres DDL of schema `spark`, which every `merge` and `final` may call. Run it when the serving layer migrates."""

_COMPILING = {"compile_catalog": "compile", "recompiled": "compile", "fuse": "texts.fuse", "rows": "texts.fuse"}


def __getattr__(name: str) -> object:
    """The compiler, imported when it is first used, because the import takes half a second."""
    if name not in _COMPILING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_COMPILING[name]}"), name)


__all__ = [
    "SPARK_FUNCTIONS",
    "Catalog",
    "CellTable",
    "Column",
    "Fused",
    "Input",
    "LaminaError",
    "Merge",
    "Partial",
    "Refused",
    "Source",
    "View",
    "compile_catalog",
    "fuse",
    "recompiled",
    "rows",
]
