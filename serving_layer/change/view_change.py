"""The change of a view that is declared, fed or compiled differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from serving_layer.change import renames
from serving_layer.change.facts import Facts
from serving_layer.change.planned_change import PlannedChange, other_settings, sql_diff
from serving_layer.narration import age, size
from view_algebra.compiled import Catalog, Column, Source, View

_OTHER_CHECKS = "its checks changed: they are run before the next hand-over"


_OWN_VALUES = (
    *("user", "current_user", "session_user", "system_user", "current_role", "current_catalog", "current_schema"),
    *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
)
"""Words that Postgres takes for functions even if a table has a column of that name."""


def words_of_postgres(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns that readers must quote. `SELECT user FROM v` returns the reader's own name in each row."""
    return tuple(column.name for column in columns if column.name in _OWN_VALUES)


def breaks(old: Sequence[Column], new: Sequence[Column]) -> tuple[str, ...]:
    """The columns that a reader by name would miss, or would get with another type.

    >>> a, b = Column("a", "BIGINT", "bigint"), Column("b", "STRING", "text")
    >>> breaks([a, b], [b, Column("a", "INT", "integer"), Column("c", "INT", "integer")])
    ('column a would be integer and is bigint',)
    >>> breaks([a, b], [a])
    ('column b would be removed',)
    """
    types = {column.name: column.postgres for column in new}
    return tuple(
        f"column {c.name} would be {types[c.name]} and is {c.postgres}"
        if c.name in types
        else f"column {c.name} would be removed"
        for c in old
        if types.get(c.name) != c.postgres
    )


def appends(old: Sequence[Column], new: Sequence[Column]) -> bool:
    """True if the new shape only appends columns. Postgres replaces such a view. Any other is dropped and created."""
    return _shape(old) == _shape(new[: len(old)])


def view_change(name: str, before: Catalog, after: Catalog, changed_parses: set[str], facts: Facts) -> PlannedChange:
    """The change of a view. `changed_parses` are the sources whose records are read differently."""
    old, new = before.views.get(name), after.views.get(name)
    if new is None and (others := facts.others.get(name)):
        return PlannedChange(
            "view", name, "refuse", f"it is no longer declared, but read by {', '.join(others)}: drop those first"
        )
    dropped_too = _dropped_too(facts.droppable.get(name, ()))
    if new is None:
        kept = renames.way_to_keep(before.views[name], before, after)
        return PlannedChange("view", name, "drop", f"it is no longer served; its cells are dropped{dropped_too}{kept}")
    if old is None:
        return _new_view(new, after, facts)
    if declared_alike(name, before, after, changed_parses):
        if old == new:
            return _with_the_spark(name, facts)
        if old == replace(new, checks=old.checks):
            return PlannedChange("view", name, "update", _OTHER_CHECKS)
        effect = f"this Lamina would compile it differently ({_what_differs(old, new)}); it stays as deployed"
        return PlannedChange("view", name, "keep", effect)
    change = PlannedChange(
        "view", name, "update", "", diff=sql_diff(old.sql, new.sql), breaks=breaks(old.columns, new.columns)
    )
    if (others := facts.others.get(name)) and not appends(old.columns, new.columns):
        effect = f"its columns would change or move, but it is read by {', '.join(others)}: drop those first"
        return replace(change, action="refuse", effect=effect)
    changed = _changed(change, old, new, after, facts)
    return changed if appends(old.columns, new.columns) else replace(changed, effect=f"{changed.effect}{dropped_too}")


def _changed(change: PlannedChange, old: View, new: View, after: Catalog, facts: Facts) -> PlannedChange:
    """The change of a view whose readers stay, or are dropped by the apply."""
    if old.version != new.version:
        return _new_version(change, old, new, after, facts)
    if (old.final, old.columns, old.comment) != (new.final, new.columns, new.comment):
        return replace(change, effect="only what is read from the cells changed: served at once")
    if settings := other_settings(old.properties, new.properties):
        kept = old.properties.get("retain") == new.properties.get("retain")
        return replace(change, effect=settings if kept else f"{settings}: the next rebuild adds or removes groups")
    if old.checks != new.checks:
        return PlannedChange("view", new.name, "update", _OTHER_CHECKS)
    return PlannedChange("view", new.name, "nothing", "")


def _dropped_too(names: Sequence[str]) -> str:
    """Words about the analysts' relations that are dropped with a view."""
    views_are = f"view {names[0]} is" if len(names) == 1 else f"views {', '.join(names)} are"
    return f"; the analysts' {views_are} dropped with it" if names else ""


def _with_the_spark(name: str, facts: Facts) -> PlannedChange:
    """The change of an unchanged view: its cells stay, even if another Spark computed them."""
    installed = version("pyspark")
    if facts.sparks.get(name, installed) == installed:
        return PlannedChange("view", name, "nothing", "")
    effect = (
        f"its cells were computed by Spark {facts.sparks[name]}, and this is Spark {installed}:"
        f" `lamina rebuild {name}` computes them again, and its proof says what differs"
    )
    return PlannedChange("view", name, "keep", effect)


def _new_view(new: View, after: Catalog, facts: Facts) -> PlannedChange:
    """The change of a new view. Over a source with history, it is computed from the counted records and then served."""
    if (new.name, new.version) in facts.kept:
        return PlannedChange("view", new.name, "create", "its cells are live, for a preview: served at once")
    waits = sorted(facts.with_records & new.fed_by)
    if not waits:
        return PlannedChange("view", new.name, "create", "served at once")
    return _reprocessed(
        PlannedChange("view", new.name, "reprocess", ""), f"{', '.join(waits)} has counted records", new, after, facts
    )


def _new_version(change: PlannedChange, old: View, new: View, after: Catalog, facts: Facts) -> PlannedChange:
    if not new.cell_tables:
        return replace(change, effect="it now reads other views: served at once, and its own cells are dropped")
    if (new.name, new.version) in facts.kept:
        return replace(change, effect="this version of its cells is kept, and live: served at once")
    change = _reprocessed(change, _why(old, new), new, after, facts)
    cells = facts.sizes.get(new.name)
    sized = "" if cells is None else f", with {size(cells)} of cells,"
    late = sorted(new.fed_by - facts.counted.keys())
    later = f"; {', '.join(late)} is read up to its end before the move" if late else ""
    return replace(change, effect=f"{change.effect}; the old version{sized} is served meanwhile{later}", bytes=cells)


def _reprocessed(change: PlannedChange, why: str, new: View, after: Catalog, facts: Facts) -> PlannedChange:
    records = sum(facts.counted.get(source, 0) for source in new.fed_by)
    measured = facts.measured
    seconds = None if measured is None else measured.seconds_for(records)
    time = ""
    if measured is not None and seconds is None:
        time = " (no rebuild so far read nearly as many: how long it takes is unknown)"
    elif measured is not None and seconds is not None:
        time = f", about {age(max(1, seconds))} at the rate of rebuild {measured.rebuild}"
    unread = sorted(new.fed_by - facts.counted.keys())
    read = [f"{records:,} records are read{time}"] if records or not unread else []
    read += [f"all records of topic {after.sources[name].topic} are read for {name}" for name in unread]
    effect = f"new cells: {why}; {', and '.join(read)}"
    return replace(change, action="reprocess", effect=effect, records=records, seconds=seconds)


def _why(old: View, new: View) -> str:
    """The differences between the cells of two versions: groups, then partials, then sources."""

    def parts(view: View) -> tuple[set[str], set[str], set[str]]:
        tables = view.cell_tables
        keys = {key.name for table in tables for key in table.keys}
        partials = {partial.column.name for table in tables for partial in table.partials}
        return keys, partials, {table.source for table in tables}

    differences = []
    for word, was, now in zip(("groups", "partials", "sources"), parts(old), parts(new), strict=True):
        changed = [f"{name} is new" for name in sorted(now - was)]
        changed += [f"{name} is removed" for name in sorted(was - now)]
        differences += [f"{word} ({', '.join(changed)})"] if changed else []
    if not differences and [table.partial for table in old.cell_tables] == [table.partial for table in new.cell_tables]:
        return "how records are read"
    return ", ".join(differences) or "how they are computed"


def declared_alike(name: str, before: Catalog, after: Catalog, changed_parses: set[str]) -> bool:
    """True if the view and all it names are declared in the same words, and no named source is in `changed_parses`."""
    from view_algebra.written.naming import names_in

    old, new = (_declarations(catalog) for catalog in (before, after))
    seen, todo = {name}, [name]
    while todo:
        declared = todo.pop()
        in_both = declared in old.keys() & new.keys()
        if not in_both or old[declared].sql != new[declared].sql or declared in changed_parses:
            return False
        named = names_in(new[declared]) & (old.keys() | new.keys())
        todo += named - seen
        seen |= named
    return True


def _declarations(catalog: Catalog) -> dict[str, Source | View]:
    return {**catalog.sources, **catalog.views}


def _what_differs(old: View, new: View) -> str:
    """The names of the texts in which two views differ."""
    pairs = list(zip(old.cell_tables, new.cell_tables, strict=False))
    names = [
        text for text in ("partial", "cells", "merge") if any(getattr(a, text) != getattr(b, text) for a, b in pairs)
    ]
    names += ["other tables of cells"] * (len(old.cell_tables) != len(new.cell_tables))
    names += [text for text in ("columns", "spelled") if getattr(old, text) != getattr(new, text)]
    names += ["final"] * (old.final != new.final and old.version == new.version)
    return ", ".join(names) or "how records are read"


def _shape(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.postgres) for column in columns]
