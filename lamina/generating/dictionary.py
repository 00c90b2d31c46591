"""A data dictionary in Markdown: every view with its columns, rows, sources, checks and freshness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lamina.generating.shown import row, sentence
from view_algebra.compiled import Catalog, Lineage, Source, View

FILE = "data_dictionary.md"

LONGEST = 60
"""Characters of an aggregate in a table."""

_INTRODUCTION = """\
Each view is a Postgres view in the schema `analytics`. Its rows equal its SELECT over every record below the offsets in
`lamina.offsets`. `SELECT * FROM lamina.freshness` says how many seconds each view is behind."""


def markdown(catalog: Catalog) -> str:
    """The dictionary of a catalog."""
    views = [each for each in catalog.views.values() if each.name not in catalog.sources]
    tables = [each for each in catalog.views.values() if each.name in catalog.sources]
    lines = ["# Data dictionary", "", _INTRODUCTION, ""]
    for title, listed in (("Views", views), ("Tables: the newest record of each key", tables)):
        if listed:
            lines += [f"## {title}", ""]
            for view in sorted(listed, key=lambda each: each.name):
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
    made = {each.column: each for each in view.lineage}
    yield from _table(
        ("column", "type", "comment", "made of"),
        [
            (
                _code(each.name),
                _text(each.postgres),
                _text(each.comment or ""),
                _code(*_origins(made[each.name])) if each.name in made else "",
            )
            for each in view.columns
        ],
    )


def _origins(made: Lineage) -> Iterator[str]:
    """The aggregates and the declared columns that a column is made of; a long aggregate by its name."""
    for each in made.aggregates:
        yield each if len(each) <= LONGEST else f"{each.partition('(')[0]}(…)"
    yield from (each for each in made.columns if not each.partition(".")[2].startswith("kafka_"))


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
        [(_code(each.name), _text(each.spark), _text(each.comment or "")) for each in source.columns],
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for each in rows:
        yield f"| {' | '.join(each)} |"


def _text(value: str) -> str:
    r"""A text on one line of Markdown, with nothing in it that Markdown or HTML obeys.

    >>> print(_text("a|b <script> count(*)\nof user_id"))
    a\|b &lt;script> count(\*) of user_id
    """
    return re.sub(r"([\\`*|\[\]])", r"\\\1", _on_one_line(value).replace("&", "&amp;").replace("<", "&lt;"))


def _on_one_line(value: str) -> str:
    return " ".join(value.split())


def _code(*names: str) -> str:
    r"""Names, each set as code, also in a table; a backquote in one of them becomes a plain quote.

    >>> print(_code("count(*)", "a|b"))
    `count(*)`, `a\|b`
    """
    shown = (_on_one_line(name).replace("`", "'").replace("|", r"\|") for name in names)
    return ", ".join(f"`{name}`" for name in shown)
