"""What `lamina explain` prints: the texts of a view, exactly those that run, and what its columns are made of."""

from __future__ import annotations

from view_algebra.compiled import CellTable, View


def explain(view: View) -> str:
    """The four texts of a view; a derived view has `final` only, one with several tables of cells names each."""
    parts: list[str] = []
    for table in view.cell_tables:
        parts.append(f"-- partial: Spark, over records of {table.source}\n{table.partial}")
        parts.append(f"-- cells: Postgres, {kept(table)}\n{table.cells.replace('{table}', f'cells.{table.name}')}")
        parts.append(f"-- merge: Postgres\n{table.merge}")
    parts.append(f"-- final: Postgres, what analytics.{view.name} reads\n{view.final}")
    parts.append("-- columns\n" + "\n".join(f"-- {line}" for line in origins(view)))
    return "\n\n".join(parts)


def kept(table: CellTable) -> str:
    """How many cells there are: one for each of what."""
    if table.kind == "row":
        return "one for each row"
    if table.spread:
        return "one for each window that holds a record"
    return f"one for each ({', '.join(key.name for key in table.keys)})" if table.keys else "one in all"


def origins(view: View) -> list[str]:
    """A line for each column: the aggregates in it, and the columns that it is made of."""
    lines = []
    for each in view.lineage:
        how = ", ".join(each.aggregates)
        whence = f"from {', '.join(each.columns)}" if each.columns else "from every record" if how else "a constant"
        lines.append(f"{each.column}: {how + ' ' if how else ''}{whence}")
    return lines
