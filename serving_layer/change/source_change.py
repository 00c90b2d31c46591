"""The change of a source that is declared differently, or that this Lamina would read differently."""

from __future__ import annotations

from dataclasses import replace

import view_algebra
from serving_layer.change.facts import Facts
from serving_layer.change.planned_change import PlannedChange, other_settings, sql_diff
from serving_layer.change.view_change import declared_alike
from view_algebra.compiled import ASK_AGAIN, Catalog, Source, View
from view_algebra.language.starts import EARLIEST, start_of


def read_anew(before: Catalog, after: Catalog) -> set[str]:
    """The sources with an unchanged declaration that this Lamina reads differently and that feed cells to be computed.

    One parse feeds all cells of a source. The deployed parse stays in use while all these cells stay. Otherwise all of
    them are computed again, with the cells of views that join another such source. A source decoded by our Python code
    cannot keep the old way of reading once that code has changed, since future records would be read differently from
    counted ones.
    """
    from view_algebra.formats import DECODERS, Decoding

    otherwise = {
        name
        for name, new in after.sources.items()
        if (old := before.sources.get(name)) and old.sql == new.sql and not old.reads_as(new)
    }
    anew = {name for name in otherwise if (by := Decoding.of(before.sources[name])) and by.version != DECODERS}
    while more := {
        source
        for view in after.views.values()
        if (left := (view.fed_by & otherwise) - anew) and _has_other_cells(view, before, after, anew)
        for source in left
    }:
        anew |= more
    return anew


def _has_other_cells(new: View, before: Catalog, after: Catalog, anew: set[str]) -> bool:
    """True if a view has another version of cells than the deployed one, once the sources in `anew` are read again."""
    old = before.views.get(new.name)
    return old is None or (old.version != new.version and not declared_alike(new.name, before, after, anew))


LEAVES = (
    "its query ends; its master log stays in the warehouse, but declared again it counts only what Kafka still holds"
)


def source_change(name: str, before: Catalog, after: Catalog, anew: set[str], facts: Facts) -> PlannedChange:
    """The change of a source. `anew` is the result of `read_anew`."""
    old, new = before.sources.get(name), after.sources.get(name)
    if new is None:
        return PlannedChange("source", name, "drop", LEAVES)
    if old is None:
        begins = "its first record" if start_of(new.start) == EARLIEST else f"start {new.start!r}"
        return PlannedChange("source", name, "create", f"topic {new.topic} is read from {begins}")
    if start_of(old.start) != start_of(new.start):
        change = PlannedChange("source", name, "update", "", diff=sql_diff(old.sql, new.sql))
        return _to_another_name(change, f"it would begin at {new.start!r}, and began at {old.start!r}")
    if old.reads_as(new):
        settings = other_settings(old.properties, new.properties)
        return (
            PlannedChange("source", name, "update", settings)
            if settings
            else PlannedChange("source", name, "nothing", "")
        )
    if old.kind == new.kind == "table" and name not in before.views:  # deployed by a Lamina that could not query tables
        return PlannedChange("source", name, "update", "its rows are served from now on")
    if old.sql == new.sql and name not in anew:
        return PlannedChange(
            "source", name, "keep", "this Lamina would read its records differently; it stays as deployed"
        )
    change = PlannedChange("source", name, "update", _read_otherwise(old, new), diff=sql_diff(old.sql, new.sql))
    if (old.counted, old.ids, _event_columns(old)) != (new.counted, new.ids, _event_columns(new)):
        return _to_another_name(change, "it would tell events apart differently from those already counted")
    if old.topic != new.topic or old.kind != new.kind:
        was, now = (f"a {source.kind} of topic {source.topic}" for source in (old, new))
        return _to_another_name(change, f"it would be {now} and is {was}, which has other offsets")
    if new.ids and ((today := view_algebra.of_today(old)) is None or not old.reads_as(today)):
        why = "it is still read as an older Lamina read it, which decided whose ids are known"
        return _to_another_name(change, why)
    if new.ids and _may_make_good(old, new):
        return _to_another_name(change, "records that were bad would be good now, and their events are not known")
    for preview in facts.reading.get(name, ()) if new.ids else ():
        way_out = f"`lamina apply --preview {preview} --drop`, or wait for its end"
        return replace(change, action="refuse", effect=f"the preview {preview} reads it as it is deployed; {way_out}")
    return change


def _to_another_name(change: PlannedChange, why: str) -> PlannedChange:
    effect = f"{why}: declare it under another name, and let the views read that"
    return replace(change, action="refuse", effect=effect)


def _types(source: Source) -> dict[str, str]:
    return {column.name: column.spark for column in source.columns}


def _may_make_good(old: Source, new: Source) -> bool:
    """True if a record that was bad may be good under the new declaration."""
    lenient = {("on_bad_field", "null"), ("empty_as_null", "true")} & new.properties.items()
    fields = [{column.name: source.field(column.name) for column in old.columns} for source in (old, new)]
    is_typed_alike = _types(old).items() <= _types(new).items()
    asks_again = old.properties.get(ASK_AGAIN) != new.properties.get(ASK_AGAIN)
    return asks_again or not is_typed_alike or not lenient <= old.properties.items() or fields[0] != fields[1]


def _event_columns(source: Source) -> dict[str, str]:
    """The UNIQUE columns of a stream with their types, because ids are made from the columns' texts."""
    return {name: kind for name, kind in _types(source).items() if name in source.unique} if source.ids else {}


def _read_otherwise(old: Source, new: Source) -> str:
    """The differences between two declarations of a source, whose records are all read again for all its views."""
    was, now = _types(old), _types(new)
    words = [f"column {name} is new" for name in now if name not in was]
    words += [f"column {name} goes" for name in was if name not in now]
    words += [f"column {n} is {now[n]} and was {was[n]}" for n in now if n in was and now[n] != was[n]]
    words += [
        f"column {name} comes from field {new.field(name)} and came from {old.field(name)}"
        for name in now
        if name in was and old.field(name) != new.field(name)
    ]
    for setting in ("on_bad_field", "empty_as_null", ASK_AGAIN):
        before, after = (source.properties.get(setting, "not set") for source in (old, new))
        words += [f"{setting} is {after} and was {before}"] if before != after else []
    what = ", ".join(words) or "its records are read differently"
    return f"{what}: every record is read again from its value, and its views are computed again"
