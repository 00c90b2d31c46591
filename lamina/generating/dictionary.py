"""A data dictionary in Markdown: every view with its columns, rows, sources, checks and freshness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lamina.generating.view_facts import row, sentence
from view_algebra.compiled import Catalog, Lineage, Source, View

FILE = "data_dictionary.md"

LONGEST = 60
"""Characters of an aggregate in a table."""

_INTRODUCTION = """\
Each view is a Postgres view in the schema `analytics`. Its rows equal its SELECT over every record below the offsets in
`lamina.offsets`. `SELECT * FROM lamina.freshness` says how many seconds each view is behind."""


def markdown(catalog: Catalog) -> str:
    """The dictionary of a catalog."""
    views = [view for view in catalog.views.values() if view.name not in catalog.sources]
    tables = [view for view in catalog.views.values() if view.name in catalog.sources]
    lines = ["# Data dictionary", "", _INTRODUCTION, ""]
    for title, listed in (("Views", views), ("Tables: the newest record of each key", tables)):
        if listed:
            lines += [f"## {title}", ""]
            for view in sorted(listed, key=lambda listed_view: listed_view.name):
                lines += [*_view(catalog, view), ""]
    lines += ["## Sources", ""]
    for source in catalog.sources.values():
        lines += [*_source(source), ""]
    return "\n".join(lines).rstrip() + "\n"


def _view(catalog: Catalog, view: View) -> Iterator[str]:
    yield f"### {_text(view.name)}"
    yield ""
    if about := " ".join(filter(None, (sentence(view.comment), row(view)))):
        yield _text(about)
        yield ""
    yield from _facts(catalog, view)
    yield ""
    lineage_of = {output.column: output for output in view.lineage}
    yield from _table(
        ("column", "type", "comment", "made of"),
        [
            (
                _code(column.name),
                _text(column.postgres),
                _text(column.comment or ""),
                _code(*_origins(lineage_of[column.name])) if column.name in lineage_of else "",
            )
            for column in view.columns
        ],
    )


def _origins(lineage: Lineage) -> Iterator[str]:
    """The aggregates and the declared columns of a column's lineage. A long aggregate is shortened to its name."""
    for aggregate in lineage.aggregates:
        yield aggregate if len(aggregate) <= LONGEST else f"{aggregate.partition('(')[0]}(…)"
    yield from (column for column in lineage.columns if not column.partition(".")[2].startswith("kafka_"))


def _facts(catalog: Catalog, view: View) -> Iterator[str]:
    if keys := [key for key in view.unique if key]:
        yield f"- No two rows have equal {', or equal '.join(_code(*key) for key in keys)}."
    if view.never_null:
        yield f"- Never NULL: {_code(*view.never_null)}."
    reads = [name for name in view.reads if name != view.name]
    topics = sorted({catalog.sources[name].topic for name in view.sources})
    yield f"- Computed from the sources {_code(*view.sources)} (topics {_code(*topics)})" + (
        f", through the views {_code(*reads)}." if reads else "."
    )
    if kept := view.properties.get("retain"):
        yield f"- Rows leave when their {_code(view.retained)} is {_text(kept)} ago."
    for check in view.checks:
        yield f"- {'Checked' if check.blocks else 'Watched'}: {_code(check.name)}, {_code(check.sql)}"


def _source(source: Source) -> Iterator[str]:
    yield f"### {_text(source.name)}"
    yield ""
    if source.comment:
        yield _text(sentence(source.comment))
        yield ""
    yield f"- A {source.kind} of the topic {_code(source.topic)}, format {_code(source.format)}."
    if source.unique:
        yield f"- {'Its key is' if source.kind == 'table' else 'Events are told apart by'} {_code(*source.unique)}."
    if source.event_time:
        yield f"- Event time: {_code(source.event_time)}."
    yield ""
    yield from _table(
        ("column", "type in records", "comment"),
        [(_code(column.name), _text(column.spark), _text(column.comment or "")) for column in source.columns],
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for cells in rows:
        yield f"| {' | '.join(cells)} |"


def _text(value: str) -> str:
    r"""A text on one line of Markdown, with Markdown's and HTML's special characters escaped.

    >>> print(_text("a|b <script> count(*)\nof user_id"))
    a\|b &lt;script> count(\*) of user_id
    """
    return re.sub(r"([\\`*|\[\]])", r"\\\1", _on_one_line(value).replace("&", "&amp;").replace("<", "&lt;"))


def _on_one_line(value: str) -> str:
    return " ".join(value.split())


def _code(*names: str) -> str:
    r"""Names as code, also for tables. A backquote in a name becomes a plain quote.

    >>> print(_code("count(*)", "a|b"))
    `count(*)`, `a\|b`
    """
    shown = (_on_one_line(name).replace("`", "'").replace("|", r"\|") for name in names)
    return ", ".join(f"`{name}`" for name in shown)
