"""The changes between the deployed catalog and a new one, declaration by declaration: in words, and as a diff of SQL.

No statement runs here. The facts about the database are a value (`facts.py`), so 200 views are compared in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import view_algebra
from serving_layer.change import renames
from serving_layer.change.facts import Facts
from serving_layer.change.planned_change import PlannedChange, other_settings, sql_diff
from serving_layer.change.view_change import declared_alike, view_change, words_of_postgres
from view_algebra.compiled import ASK_AGAIN, Catalog, Source, View
from view_algebra.errors import LaminaError
from view_algebra.language.starts import EARLIEST, start_of

NOTHING = Catalog(sources={}, views={})

_DROP_EFFECT = (
    "its query ends; its master log stays in the warehouse, but declared again it counts only what Kafka still holds"
)


def compare(before: Catalog, after: Catalog, facts: Facts) -> list[PlannedChange]:
    """A change for each declaration of the two catalogs: sources first, then views, each after those it reads."""
    if renamed := renames.declared_renames(before, after):
        return _with_renames(renamed, before, after, facts)
    changed_parses = sources_read_differently(before, after)
    changes = [
        source_change(name, before, after, changed_parses, facts) for name in sorted({*before.sources, *after.sources})
    ]
    names = [*after.views, *(name for name in before.views if name not in after.views)]
    changes += [view_change(name, before, after, changed_parses, facts) for name in names]
    return [_with_quotes(_with_readers(change, after, facts), after) for change in changes]


def _with_renames(renamed: Mapping[str, str], before: Catalog, after: Catalog, facts: Facts) -> list[PlannedChange]:
    """The changes as they would be if the renamed views had always had their new names, and the renames themselves."""
    names = {old: new for new, old in renamed.items()}
    as_now = replace(
        facts,
        kept={(names.get(view, view), version): id for (view, version), id in facts.kept.items()},
        others={names.get(view, view): readers for view, readers in facts.others.items()},
        droppable={names.get(view, view): readers for view, readers in facts.droppable.items()},
    )
    served = renames.renamed_catalog(before, names)
    changes = [_after_the_rename(change, served, after) for change in compare(served, after, as_now)]
    computes = any(change.action == "reprocess" for change in changes)
    alone = "the same apply computes new cells: apply the rename alone, then the rest" if computes else None
    return [
        _rename(change, old, _why_not_renamed(change.name, renamed, before, after, facts) or alone, after, as_now)
        if change.kind == "view" and (old := renamed.get(change.name)) is not None
        else change
        for change in changes
    ]


def _after_the_rename(change: PlannedChange, before: Catalog, after: Catalog) -> PlannedChange:
    """The change of a new view in an apply that renames: it waits for a rebuild, unless a served view reads it."""
    if change.action != "reprocess" or change.name in before.views:
        return change
    if any(name in before.views and change.name in _below(name, after) for name in after.views):
        return change
    return replace(change, action="create", effect=f"served after `lamina rebuild {change.name}`: a rename comes first")


def _why_not_renamed(new: str, renamed: Mapping[str, str], before: Catalog, after: Catalog, facts: Facts) -> str | None:
    """The reason why a view keeps its name, or None. A preview prevents a rename, because it names the view's cells."""
    for name in (renamed[new], new):
        for preview in facts.previewed.get(name, ()):
            return f"the preview {preview} has {name}; `lamina apply --preview {preview} --drop`, or wait for its end"
    return renames.why_not(renamed[new], new, renamed, before, after)


def _rename(change: PlannedChange, old: str, why: str | None, after: Catalog, facts: Facts) -> PlannedChange:
    if why is not None or change.action == "refuse":
        return replace(change, action="refuse", effect=f"it is not renamed from {old}: {why or change.effect}")
    gone = f"{old} would be another view" if old in after.views else f"the name {old} would be free"
    change = replace(change, action="update", effect=f"renamed from {old}: its cells stay")
    return _with_readers(replace(change, breaks=(gone, *change.breaks)), after, facts)


class WouldDrop(LaminaError):
    """The catalog lacks deployed declarations, which an apply would drop."""


def check_allowed(changes: Sequence[PlannedChange], *, prune: bool, allow_break: bool = False) -> None:
    """Raises unless all changes may be made.

    `prune`: declarations missing from the catalog may be dropped. `allow_break`: readers may lose columns.
    """
    refused = [change for change in changes if change.action == "refuse"]
    if refused:
        raise LaminaError(
            "This change of the catalog is not applied",
            evidence=_listed(refused),
            way_out="Correct these declarations; or declare them under new names, apply, and drop the old ones.",
        )
    dropped = [change for change in changes if change.action == "drop"]
    breaking = [change for change in changes if change.breaks]
    if breaking and not allow_break:
        prunes = f" --prune`, which also drops {', '.join(change.name for change in dropped)}."
        options = prunes if dropped and not prune else "`."
        raise LaminaError(
            "Readers would lose columns or names that they may use; nothing was changed",
            evidence="\n".join(f"{change.name}: {', '.join(change.breaks)}{_read_by(change)}" for change in breaking),
            way_out=f"Keep these, or change the readers first; then `lamina apply --allow-break{options}",
        )
    if dropped and not prune:
        raise WouldDrop(
            "This catalog would drop what is deployed; nothing was changed",
            evidence=_listed(dropped),
            way_out="An apply drops every declaration that its catalog lacks. Name the catalog that declares these"
            " too, or drop them: `lamina apply --prune`.",
        )


def deployable(
    before: Catalog, after: Catalog, changes: Iterable[PlannedChange], stored: Iterable[View] = ()
) -> Catalog:
    """The catalog to deploy: the new one, except for declarations that stay as deployed.

    `stored` are views of versions that are kept. A version's texts never change, even if another Lamina compiles it.
    """
    kept = {(change.kind, change.name) for change in changes if change.action == "keep"}
    compiled = {(view.name, view.version): view for view in (*stored, *before.views.values())}
    return Catalog(
        sources={n: before.sources[n] if ("source", n) in kept else new for n, new in after.sources.items()},
        views={
            n: replace(before.views[n], checks=new.checks)
            if ("view", n) in kept
            else _over_its_cells(compiled.get((n, new.version)), new)
            for n, new in after.views.items()
        },
    )


def _below(name: str, catalog: Catalog) -> set[str]:
    """The views that a view reads, directly or through other views."""
    reads = set(catalog.views[name].reads)
    return reads.union(*(_below(read, catalog) for read in reads))


def _with_readers(change: PlannedChange, after: Catalog, facts: Facts) -> PlannedChange:
    """A change of a view, completed by our views and other roles' relations that read it."""
    if change.kind != "view" or change.action in ("create", "keep", "nothing"):
        return change
    own_readers = sorted(name for name, view in after.views.items() if change.name in view.reads)
    gone = facts.droppable.get(change.name, ())
    return replace(change, dependents=(*own_readers, *facts.others.get(change.name, ()), *gone))


def _with_quotes(change: PlannedChange, after: Catalog) -> PlannedChange:
    """A change of a view, with a warning about columns whose names are functions in Postgres."""
    view = after.views.get(change.name) if change.kind == "view" else None
    names = () if view is None else words_of_postgres(view.columns)
    if not names or change.action in ("nothing", "keep", "refuse"):
        return change
    quoted = " and ".join(f'"{name}"' for name in names)
    effect = f"{change.effect}; readers have to quote {quoted}: without quotes, Postgres gives them its own value"
    return replace(change, effect=effect)


def _over_its_cells(old: View | None, new: View) -> View:
    """A view whose version is deployed, over the deployed tables of cells."""
    return new if old is None or old.version != new.version else replace(new, cell_tables=old.cell_tables)


def _listed(changes: Iterable[PlannedChange]) -> str:
    return "\n".join(f"{change.kind} {change.name}: {change.effect}" for change in changes)


def _read_by(change: PlannedChange) -> str:
    return f" (read by {', '.join(change.dependents)})" if change.dependents else ""


def sources_read_differently(before: Catalog, after: Catalog) -> set[str]:
    """The sources with an unchanged declaration that this Lamina reads differently and that feed cells to be computed.

    One parse feeds all cells of a source. The deployed parse stays in use while all these cells stay. Otherwise all of
    them are computed again, with the cells of views that join another such source. A source decoded by our Python code
    cannot keep the old way of reading once that code has changed, since future records would be read differently from
    counted ones.
    """
    from view_algebra.formats import DECODERS, Decoding

    parsed_differently = {
        name
        for name, new in after.sources.items()
        if (old := before.sources.get(name)) and old.sql == new.sql and not old.reads_as(new)
    }
    changed_parses = {
        name for name in parsed_differently if (by := Decoding.of(before.sources[name])) and by.version != DECODERS
    }
    while more := {
        source
        for view in after.views.values()
        if (left := (view.fed_by & parsed_differently) - changed_parses)
        and _has_other_cells(view, before, after, changed_parses)
        for source in left
    }:
        changed_parses |= more
    return changed_parses


def _has_other_cells(new: View, before: Catalog, after: Catalog, changed_parses: set[str]) -> bool:
    """True if a view has another version of cells than the deployed one, given the sources in `changed_parses`."""
    old = before.views.get(new.name)
    return old is None or (old.version != new.version and not declared_alike(new.name, before, after, changed_parses))


def source_change(name: str, before: Catalog, after: Catalog, changed_parses: set[str], facts: Facts) -> PlannedChange:
    """The change of a source. `changed_parses` is the result of `sources_read_differently`."""
    old, new = before.sources.get(name), after.sources.get(name)
    if new is None:
        return PlannedChange("source", name, "drop", _DROP_EFFECT)
    if old is None:
        begins = "its first record" if start_of(new.start) == EARLIEST else f"start {new.start!r}"
        return PlannedChange("source", name, "create", f"topic {new.topic} is read from {begins}")
    kept = _start_change(old, new) or _settings_change(
        old, new, is_served=name in before.views, is_parse_kept=name not in changed_parses
    )
    if kept is not None:
        return kept
    change = PlannedChange("source", name, "update", _read_differently(old, new), diff=sql_diff(old.sql, new.sql))
    return _identity_change(change, old, new) or _parse_change(change, old, new, facts)


def _start_change(old: Source, new: Source) -> PlannedChange | None:
    """The refusal of a change of a source's first record, or None."""
    if start_of(old.start) == start_of(new.start):
        return None
    change = PlannedChange("source", new.name, "update", "", diff=sql_diff(old.sql, new.sql))
    return _to_another_name(change, f"it would begin at {new.start!r}, and began at {old.start!r}")


def _settings_change(old: Source, new: Source, *, is_served: bool, is_parse_kept: bool) -> PlannedChange | None:
    """The change of a source whose records are read as before, or None."""
    if old.reads_as(new):
        settings = other_settings(old.properties, new.properties)
        return PlannedChange("source", new.name, "update" if settings else "nothing", settings)
    if old.kind == new.kind == "table" and not is_served:  # deployed by a Lamina that could not query tables
        return PlannedChange("source", new.name, "update", "its rows are served from now on")
    if old.sql == new.sql and is_parse_kept:
        effect = "this Lamina would read its records differently; it stays as deployed"
        return PlannedChange("source", new.name, "keep", effect)
    return None


def _identity_change(change: PlannedChange, old: Source, new: Source) -> PlannedChange | None:
    """The refusal of a change of a source's events or offsets, or None."""
    if (old.counted, old.ids, _event_columns(old)) != (new.counted, new.ids, _event_columns(new)):
        return _to_another_name(change, "it would tell events apart differently from those already counted")
    if old.topic != new.topic or old.kind != new.kind:
        was, now = (f"a {source.kind} of topic {source.topic}" for source in (old, new))
        return _to_another_name(change, f"it would be {now} and is {was}, which has other offsets")
    return None


def _parse_change(change: PlannedChange, old: Source, new: Source, facts: Facts) -> PlannedChange:
    """The change of a source whose records are read differently. It is refused if an event's id could change."""
    if not new.ids:
        return change
    if (today := view_algebra.recompiled(old)) is None or not old.reads_as(today):
        why = "it is still read as an older Lamina read it, which decided whose ids are known"
        return _to_another_name(change, why)
    if _may_make_good(old, new):
        return _to_another_name(change, "records that were bad would be good now, and their events are not known")
    for preview in facts.reading.get(new.name, ()):
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


def _read_differently(old: Source, new: Source) -> str:
    """The differences between two declarations of a source, whose records are all read again for all its views."""
    was, now = _types(old), _types(new)
    words = [f"column {name} is new" for name in now if name not in was]
    words += [f"column {name} is removed" for name in was if name not in now]
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
