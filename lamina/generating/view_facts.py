"""Facts about a view that other tools show: the meaning of a row, its chart, and a SELECT of its freshness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from lamina.reports.chart_choice import Choice, ColumnKind, choose
from view_algebra.compiled import Catalog, Column, View
from view_algebra.language.quoting import postgres_text

SCHEMA = "analytics"
"""The schema of the views."""

_TIMES = ("timestamp", "date")
_NUMBERS = ("bigint", "numeric", "double precision", "real")
"""Postgres types of measures. Ranks and most ids are `integer`, but counts and sums are not."""


@dataclass(frozen=True)
class Address:
    """The address of Postgres for a tool, and its user. Each tool keeps its own password."""

    host: str
    port: int
    database: str
    user: str
    sslmode: str

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in a URL.

        >>> Address.of("postgresql://ann:secret@db/lamina?sslmode=require")
        Address(host='db', port=5432, database='lamina', user='ann', sslmode='require')
        """
        parts = urlsplit(url)
        sslmode = parse_qs(parts.query).get("sslmode", ["prefer"])[0]
        user, database = unquote(parts.username or ""), unquote(parts.path.strip("/"))
        return cls(parts.hostname or "", parts.port or 5432, database, user, sslmode)

    @property
    def server(self) -> str:
        """Host and port, as they are written in a URL.

        >>> Address.of("postgresql://ann@[::1]/lamina").server
        '[::1]:5432'
        """
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def kinds(catalog: Catalog, view: View) -> list[ColumnKind]:
    """The kinds of a view's columns, for `choose`.

    A time or a text counts if it is part of a key, or if the view has no known key. A number counts if an aggregate
    computes it, so ids of a row view are not drawn.
    """
    keys = {name for key in view.unique for name in key}
    return [_kind(catalog, view, column, keys) for column in view.columns]


def _kind(catalog: Catalog, view: View, column: Column, keys: set[str]) -> ColumnKind:
    if column.postgres.startswith(_NUMBERS) and column.name not in keys and _is_measured(catalog, view, column.name):
        return "number"
    if keys and column.name not in keys:
        return "other"
    return "time" if column.postgres.startswith(_TIMES) else "text" if column.postgres == "text" else "other"


def _is_measured(catalog: Catalog, view: View, column: str) -> bool:
    """True if an aggregate computes the column, here or in a view that this one reads. A table's columns are
    recorded.
    """
    output = next((output for output in view.lineage if output.column == column), None)
    if output is None or view.name in catalog.sources:
        return False
    origins = (name.rpartition(".") for name in output.columns)
    return bool(output.aggregates) or any(
        relation in view.reads and _is_measured(catalog, catalog.views[relation], name) for relation, _, name in origins
    )


def chart(catalog: Catalog, view: View) -> Choice | None:
    """The chart that draws a view, or None for a table.

    >>> from view_algebra import compile_catalog
    >>> from view_algebra.passes import EXAMPLE
    >>> catalog = compile_catalog({"example.sql": EXAMPLE})
    >>> chart(catalog, catalog.views["top"])
    Choice(form='bars', along=0, numbers=(1,), category=None)
    """
    shown = kinds(catalog, view)
    names = [column.name for column in view.columns]

    def are_apart(positions: Sequence[int]) -> bool:
        if view.unique:
            return any(set(key) <= {names[at] for at in positions} for key in view.unique)
        return {at for at, kind in enumerate(shown) if kind != "number"} <= set(positions)

    return choose(shown, are_apart)


def drawn_first(catalog: Catalog) -> list[View]:
    """The views in the order of a dashboard: lines, bars, then tables, each by name."""

    def place(view: View) -> tuple[int, str]:
        chosen = chart(catalog, view)
        return 2 if chosen is None else int(chosen.form == "bars"), view.name

    return sorted(catalog.views.values(), key=place)


def row(view: View) -> str:
    """A sentence about the meaning of a view's row, empty if that is not known.

    >>> from view_algebra import compile_catalog
    >>> from view_algebra.passes import EXAMPLE
    >>> row(compile_catalog({"example.sql": EXAMPLE}).views["top"])
    'One row per country.'
    """
    if not view.unique:
        return "One row per record, or per match of records." if view.kind == "row" else ""
    key = [column.name for column in view.columns if column.name in view.unique[0]]
    return f"One row per {', '.join(key)}." if key else "One row in total."


def description(catalog: Catalog, view: View) -> str:
    """The comment of a view, the meaning of a row, and the topics that it is computed from, in sentences."""
    topics = sorted({catalog.sources[name].topic for name in view.sources})
    return " ".join(filter(None, (sentence(view.comment), row(view), f"From Kafka: {', '.join(topics)}.")))


def sentence(text: str | None) -> str:
    """The text with a full stop, if it lacks one. None and an empty text are empty.

    >>> sentence("what was sold"), sentence("Why?"), sentence(None)
    ('what was sold.', 'Why?', '')
    """
    return "" if not text else text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."


def time_column(view: View) -> str | None:
    """The column that orders rows by time (the first one), or None if the view has no time."""
    return next((column.name for column in view.columns if column.postgres.startswith(_TIMES)), None)


def loaded_at(view: View) -> str:
    """A SELECT of the time up to which a view counts every record. It is NULL until each source has a counted
    record.
    """
    return (
        "SELECT clock_timestamp() - seconds_behind * interval '1 second' AS loaded_at"
        f" FROM lamina.freshness WHERE view = {postgres_text(view.name)}"
    )
