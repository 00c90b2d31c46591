"""What `lamina explain` prints: the texts of a view, exactly those that run."""

from __future__ import annotations

from view_algebra.compiled import View


def explain(view: View) -> str:
    """The four texts of a view; a derived view has `final` only, one with several tables of cells names each."""
    parts: list[str] = []
    for table in view.cell_tables:
        parts.append(f"-- partial: Spark, over records of {table.source}\n{table.partial}")
        parts.append(f"-- cells: Postgres\n{table.cells.replace('{table}', f'cells.{table.name}')}")
        parts.append(f"-- merge: Postgres\n{table.merge}")
    parts.append(f"-- final: Postgres, what analytics.{view.name} reads\n{view.final}")
    return "\n\n".join(parts)
