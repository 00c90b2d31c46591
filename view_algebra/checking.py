"""Checks of views. A check compiles like a derived view, so that its condition means what it means to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from view_algebra.compiled import Check, View
from view_algebra.language.quoting import postgres_name
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.passes import Known, final_text, placed, views_read
from view_algebra.refusals import Wrong
from view_algebra.written.checks import CLOCK, PUBLISHED, CheckDeclaration, published
from view_algebra.written.clauses import refuse_unread
from view_algebra.written.declarations import ViewDeclaration

T = TypeVar("T")

_NOW = "(SELECT now() AS now, CAST(now() AT TIME ZONE 'UTC' AS date) AS today)"


def compile_check(d: CheckDeclaration, known: Known) -> Check:
    """The compiled texts of a check of a compiled view."""
    view, around = known.views[d.view], _with_published(known)
    refuse_unread(d.select)
    declared = ViewDeclaration(d.view, d.file, d.place, (), {}, None, {}, d.select, "", d.sql)
    whole = placed(declared, around)
    if whole.cell_tables:
        source = whole.split.leaves[0].source
        raise Wrong(d.place, f"the check reads records of {source}", "Declare a view over them, and read that.")
    read = views_read(whole.split.above)
    text = final_text(whole).replace(f"analytics.{postgres_name(CLOCK)}", _NOW)
    for name in known.types:
        text = text.replace(f"analytics.{postgres_name(published(name))}", f"{PUBLISHED}.{postgres_name(name)}")
    return Check(
        name=d.name,
        sql=d.sql,
        counts=d.counts,
        blocks=d.enforced and view.properties.get("on_failure", "block") == "block",
        failing=text,
        reads=tuple(sorted(read & known.views.keys())),
    )


def with_checks(views: Mapping[str, View], checks: Mapping[tuple[str, str], Check]) -> dict[str, View]:
    """The views with their checks, sorted by name; `checks` holds them by view and name."""
    return {
        name: replace(each, checks=tuple(checks[key] for key in sorted(checks) if key[0] == name))
        for name, each in views.items()
    }


def _with_published(known: Known) -> Known:
    """The relations that a check may read: the views, the same views as readers see them now, and the clock."""

    def also(views: Mapping[str, T]) -> dict[str, T]:
        return {**views, **{published(name): fact for name, fact in views.items()}}

    types = also(known.types) | {CLOCK: (("now", TIMESTAMP), ("today", DATE))}
    return replace(known, types=types, keys=also(known.keys), sortings=also(known.sortings))
