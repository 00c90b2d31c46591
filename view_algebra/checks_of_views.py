"""Compiles the checks of views.

A check compiles like a derived view, so that its condition means what it means to Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from view_algebra.compiled import Check, View
from view_algebra.language.quoting import postgres_name
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.passes import Symbols, final_text, placed, views_read
from view_algebra.refusals import Wrong, suggestion
from view_algebra.text_relations import reading
from view_algebra.written.clauses import refuse_unread
from view_algebra.written.declarations.checks import CLOCK, PUBLISHED, CheckDeclaration, published
from view_algebra.written.declarations.sources_and_views import ViewDeclaration

T = TypeVar("T")


def compile_check(d: CheckDeclaration, symbols: Symbols) -> Check:
    """The compiled texts of a check of a compiled view."""
    if d.view not in symbols.views:
        raise Wrong(d.place, f"{d.view} is not a view", _no_view(d.view, symbols.sources, symbols.views))
    view, around = symbols.views[d.view], _with_published(symbols)
    refuse_unread(d.select)
    whole = placed(ViewDeclaration(d.view, d.file, d.place, d.select, "", d.sql), around)
    if whole.cell_tables:
        source = whole.split.leaves[0].source
        raise Wrong(d.place, f"the check reads records of {source}", "Declare a view over them, and read that.")
    read = views_read(whole.split.above)
    now = {published(name): f"{PUBLISHED}.{postgres_name(name)}" for name in symbols.types}
    return Check(
        name=d.name,
        sql=d.sql,
        counts=d.counts,
        blocks=d.enforced and view.properties.get("on_failure", "block") == "block",
        failing=reading(final_text(whole), "analytics", {**now, CLOCK: _NOW}.get),
        reads=tuple(sorted(read & symbols.views.keys())),
    )


def _with_published(symbols: Symbols) -> Symbols:
    """The relations that a check may read: the views, the same views as readers see them now, and the clock."""

    def also(views: Mapping[str, T]) -> dict[str, T]:
        return {**views, **{published(name): fact for name, fact in views.items()}}

    types = also(symbols.types) | {CLOCK: (("now", TIMESTAMP), ("today", DATE))}
    return replace(symbols, types=types, keys=also(symbols.keys), sortings=also(symbols.sortings))


_NOW = "(SELECT now() AS now, CAST(now() AT TIME ZONE 'UTC' AS date) AS today)"


def _no_view(name: str, sources: Collection[str], views: Collection[str]) -> str:
    return "Declare a view over it, and check that." if name in sources else suggestion(name, views)


def with_checks(views: Mapping[str, View], checks: Mapping[tuple[str, str], Check]) -> dict[str, View]:
    """The views with their checks, sorted by name. `checks` holds them by view and name."""
    return {
        name: replace(view, checks=tuple(checks[key] for key in sorted(checks) if key[0] == name))
        for name, view in views.items()
    }
