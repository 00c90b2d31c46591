"""The expressions that the compiler accepts. One catalog compiles all of them, so their source is compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from view_algebra import Refused, View, compile_catalog


def accepted(declarations: str, expressions: Iterable[str], of: str) -> dict[str, View]:
    """The expressions that compile as `SELECT … AS x FROM` a source or view, each with the view."""
    views = {
        f"v{number}": (expression, f"CREATE VIEW v{number} AS SELECT {expression} AS x FROM {of};")
        for number, expression in enumerate(dict.fromkeys(expressions))
    }
    files = {f"{name}.sql": sql for name, (_, sql) in views.items()} | {"declarations.sql": declarations}
    try:
        compiled = compile_catalog(files).views
    except Refused as refused:  # each mistake begins with the path of its file
        wrong = set(re.findall(r"^(v\d+\.sql):", str(refused), re.MULTILINE))
        compiled = compile_catalog({path: sql for path, sql in files.items() if path not in wrong}).views
    return {expression: compiled[name] for name, (expression, _) in views.items() if name in compiled}
