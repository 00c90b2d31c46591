"""The output of `lamina explain`: the texts of a view as a rebuild runs them, and the lineage of its columns.

A micro-batch computes the same partials, for all views of its source in one statement (`texts/fuse.py`).
"""

from __future__ import annotations

from view_algebra.compiled import CellTable, View
from view_algebra.language.lengths import MICROSECONDS

FAILS = {"row": "the rows that fail it", "key": "the keys that fail it", "whole": "the check's subject, if it fails"}
"""The result of a check's text, by the unit that it counts."""


def explain(view: View) -> str:
    """The four texts of a view. A derived view has only `final`. Each table of cells has its own other three."""
    parts: list[str] = []
    for table in view.cell_tables:
        parts.append(f"-- partial: Spark, over records of {table.source}\n{table.partial}")
        parts.append(f"-- cells: Postgres, {kept(table)}\n{table.cells.replace('{table}', f'cells.{table.name}')}")
        parts.append(f"-- merge: Postgres\n{table.merge}")
    parts.append(f"-- final: Postgres, what analytics.{view.name} reads\n{view.final}")
    parts += [f"-- check {check.name}: Postgres, {FAILS[check.counts]}\n{check.failing}" for check in view.checks]
    if view.cell_tables:
        parts.append("-- cost\n" + "\n".join(f"-- cells.{t.name}: {cost(t)}{age(t, view)}" for t in view.cell_tables))
    parts.append("-- columns\n" + "\n".join(f"-- {line}" for line in origins(view)))
    return "\n\n".join(parts)


def kept(table: CellTable) -> str:
    """The meaning of one cell: "one for each …"."""
    if table.kind == "row":
        return "one for each row"
    if table.spread:
        return "one for each window that holds a record"
    return f"one for each ({', '.join(key.name for key in table.keys)})" if table.keys else "one in all"


def cost(table: CellTable) -> str:
    """The number of cells per group in a table, and the number of panes per window."""
    if table.kind == "row":
        return "a cell per row"
    if table.spread:
        return "a cell per window that holds a record"
    per_group = table.cost
    per = "per group" if per_group.panes == 1 else "per group and pane"
    text = f"a cell {per}"
    if per_group.sub_keys:
        most = "" if per_group.at_most is None else f", at most {per_group.at_most:,}"
        text = f"{text} and value of {', '.join(per_group.sub_keys)}{most}"
    return text if per_group.panes == 1 else f"{text}; a window is read from {per_group.panes:,} panes"


def age(table: CellTable, view: View) -> str:
    """The age at which cells leave, if the view retains."""
    if "retain" not in view.properties:
        return ""
    if not table.retained:
        return ", kept forever"
    size, unit = max((size, unit) for unit, size in MICROSECONDS.items() if table.longer % size == 0)
    more = f" and {table.longer // size} {unit}{'s' if table.longer > size else ''}" if table.longer else ""
    return f", kept by {table.retained} for {view.properties['retain']}{more}"


def origins(view: View) -> list[str]:
    """A line per column: its aggregates, and the columns that it is computed from."""
    lines = []
    for origin in view.lineage:
        how = ", ".join(origin.aggregates)
        whence = f"from {', '.join(origin.columns)}" if origin.columns else "from every record" if how else "a constant"
        lines.append(f"{origin.column}: {how + ' ' if how else ''}{whence}")
    return lines
