"""The changes between the deployed catalog and a new one, declaration by declaration: in words, and as a diff of SQL.

No statement runs here. The facts about the database are a value (`facts.py`), so 200 views are compared in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from serving_layer.change import renames
from serving_layer.change.facts import Facts
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.source_change import read_anew, source_change
from serving_layer.change.view_change import view_change, words_of_postgres
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError

NOTHING = Catalog(sources={}, views={})


def compare(before: Catalog, after: Catalog, facts: Facts) -> list[PlannedChange]:
    """A change for each declaration of the two catalogs: sources first, then views, each after those it reads."""
    if renamed := renames.declared_renames(before, after):
        return _with_renames(renamed, before, after, facts)
    anew = read_anew(before, after)
    changes = [source_change(name, before, after, anew, facts) for name in sorted({*before.sources, *after.sources})]
    names = [*after.views, *(name for name in before.views if name not in after.views)]
    changes += [view_change(name, before, after, anew, facts) for name in names]
    return [_with_quotes(_with_readers(change, after, facts), after) for change in changes]


def _with_renames(renamed: Mapping[str, str], before: Catalog, after: Catalog, facts: Facts) -> list[PlannedChange]:
    """The changes as they would be if the renamed views had always had their new names, and the renames themselves."""
    names = {old: new for new, old in renamed.items()}
    as_now = replace(
        facts,
        kept={(names.get(view, view), version): id for (view, version), id in facts.kept.items()},
        others={names.get(view, view): readers for view, readers in facts.others.items()},
        giving_way={names.get(view, view): readers for view, readers in facts.giving_way.items()},
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
    gone = f"{old} would be another view" if old in after.views else f"the name {old} would go"
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

    `stored` are views of versions that are kept. The texts of a version never change, whoever compiles it again.
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
    ours = sorted(name for name, view in after.views.items() if change.name in view.reads)
    gone = facts.giving_way.get(change.name, ())
    return replace(change, dependents=(*ours, *facts.others.get(change.name, ()), *gone))


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
