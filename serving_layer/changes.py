"""What a changed catalog would do, declaration by declaration: in words, and as a difference of the SQL.

Nothing is asked here. What is known of the database beside its catalog is a value (`Known`), so that 200 views are
compared in one pass.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from serving_layer import renames
from serving_layer.amounts import duration, size
from view_algebra.compiled import Catalog, Column, Source, View
from view_algebra.errors import LaminaError

Action = Literal["create", "update", "reprocess", "drop", "keep", "refuse", "nothing"]
"""`update`: at once, nothing is recomputed. `reprocess`: new cells are computed from all records, beside the old ones.
`keep`: this Lamina would compile the same declaration otherwise, and goes on with what was deployed."""

NOTHING = Catalog(sources={}, views={})

_OTHER_CHECKS = "its checks changed: they are run before the next hand-over"


@dataclass(frozen=True)
class Change:
    """What applying a catalog would do to one declaration, or to the database, and what that means.

    diff: of the SQL, as lines of `diff -u`. breaks: what readers use and would lose. dependents: the views that read
    it, and the relations of others in Postgres. records: offsets below progress that are read anew; seconds: how long
    that takes at the rate of the last rebuild, where there was one. bytes: what the cells there are take in Postgres,
    beside which new ones are kept.
    """

    kind: Literal["database", "source", "view"]
    name: str
    action: Action
    effect: str
    diff: str = ""
    breaks: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    records: int | None = None
    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Known:
    """What is known of a database beside its catalog.

    counted: per query, how many offsets lie below its progress. kept: the versions of views that are live and not
    published, each with its newest generation: to return to, or for a preview. rate: offsets a second that the last
    rebuild has read. sizes: bytes of the cells that each view is read from. others: per view, the relations in Postgres
    that read it, directly or through views of ours, and are not ours. previewed: per view, the previews that have one
    of that name; reading: per source, the previews of which it feeds a view.
    """

    counted: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rate: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    previewed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reading: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def moved(self) -> set[str]:
        """The queries that have counted records: a view that is new to them lacks what they have read."""
        return {name for name, offsets in self.counted.items() if offsets}


def compare(before: Catalog, after: Catalog, known: Known) -> list[Change]:
    """A change for each declaration of the two catalogs: sources first, then views in the order of their reading."""
    if said := renames.wanted(before, after):
        return _with_renames(said, before, after, known)
    anew = _read_anew(before, after)
    changes = [_source_change(name, before, after, anew, known) for name in sorted({*before.sources, *after.sources})]
    names = [*after.views, *(name for name in before.views if name not in after.views)]
    changes += [_view_change(name, before, after, anew, known) for name in names]
    return [_with_readers(change, after, known) for change in changes]


def _with_renames(said: Mapping[str, str], before: Catalog, after: Catalog, known: Known) -> list[Change]:
    """The changes as they would be had the renamed views always had their new names, and the renames."""
    names = {old: new for new, old in said.items()}
    as_now = replace(
        known,
        kept={(names.get(view, view), version): id for (view, version), id in known.kept.items()},
        others={names.get(view, view): readers for view, readers in known.others.items()},
    )
    served = renames.renamed(before, names)
    changes = [_after_the_rename(each, served, after) for each in compare(served, after, as_now)]
    beside = any(change.action == "reprocess" for change in changes)
    anew = "cells are computed anew in the same apply: apply the rename alone, then the rest" if beside else None
    return [
        _rename(each, old, _why_not_renamed(each.name, said, before, after, known) or anew, after, as_now)
        if each.kind == "view" and (old := said.get(each.name)) is not None
        else each
        for each in changes
    ]


def _after_the_rename(change: Change, before: Catalog, after: Catalog) -> Change:
    """A rename computes nothing: what is new waits for a rebuild, unless a view that is served reads it."""
    if change.action != "reprocess" or change.name in before.views:
        return change
    if any(name in before.views and change.name in _below(name, after) for name in after.views):
        return change
    return replace(change, action="create", effect=f"served after `lamina rebuild {change.name}`: a rename comes first")


def _why_not_renamed(new: str, said: Mapping[str, str], before: Catalog, after: Catalog, known: Known) -> str | None:
    """Why a view keeps its name: also where a preview has it, of which the cells are known by the name."""
    for name in (said[new], new):
        for preview in known.previewed.get(name, ()):
            return f"the preview {preview} has {name}; `lamina apply --preview {preview} --drop`, or wait for its end"
    return renames.why_not(said[new], new, said, before, after)


def _rename(change: Change, old: str, why: str | None, after: Catalog, known: Known) -> Change:
    if why is not None or change.action == "refuse":
        return replace(change, action="refuse", effect=f"it is not renamed from {old}: {why or change.effect}")
    gone = f"{old} would be another view" if old in after.views else f"the name {old} would go"
    change = replace(change, action="update", effect=f"renamed from {old}: its cells stay")
    return _with_readers(replace(change, breaks=(gone, *change.breaks)), after, known)


class WouldDrop(LaminaError):
    """The catalog lacks declarations that are deployed: what is not in it would be dropped."""


def check_allowed(changes: Sequence[Change], *, prune: bool, allow_break: bool = False) -> None:
    """Raises unless all changes may be made.

    `prune`: what the catalog no longer declares may be dropped. `allow_break`: readers may lose columns.
    """
    refused = [change for change in changes if change.action == "refuse"]
    if refused:
        raise LaminaError(
            "This change of the catalog is not applied",
            evidence=_listed(refused),
            way_out="Change what each line names; or declare it under a new name, apply, and drop the old one.",
        )
    breaking = [change for change in changes if change.breaks]
    if breaking and not allow_break:
        raise LaminaError(
            "Readers would lose columns or names that they may use; nothing was changed",
            evidence="\n".join(f"{each.name}: {', '.join(each.breaks)}{_read_by(each)}" for each in breaking),
            way_out="Keep these, or change the readers first; then `lamina apply --allow-break`.",
        )
    dropped = [change for change in changes if change.action == "drop"]
    if dropped and not prune:
        raise WouldDrop(
            "This catalog would drop what is deployed; nothing was changed",
            evidence=_listed(dropped),
            way_out="A deployment holds one catalog, and what is not in it is dropped. Name the catalog that declares"
            " these, too; or drop them: `lamina apply --prune`.",
        )


def chosen(before: Catalog, after: Catalog, changes: Iterable[Change], stored: Iterable[View] = ()) -> Catalog:
    """The catalog that is deployed from now on: the new one, but for what goes on as it was.

    `stored` are views of other versions that are kept: a version is computed in one way, whoever compiles it again.
    """
    kept = {(change.kind, change.name) for change in changes if change.action == "keep"}
    known = {(view.name, view.version): view for view in (*stored, *before.views.values())}
    return Catalog(
        sources={n: before.sources[n] if ("source", n) in kept else each for n, each in after.sources.items()},
        views={
            n: replace(before.views[n], checks=each.checks)
            if ("view", n) in kept
            else _over_its_cells(known.get((n, each.version)), each)
            for n, each in after.views.items()
        },
    )


def breaks(old: Sequence[Column], new: Sequence[Column]) -> tuple[str, ...]:
    """The columns that a reader by name would miss, or find of another type.

    >>> a, b = Column("a", "BIGINT", "bigint"), Column("b", "STRING", "text")
    >>> breaks([a, b], [b, Column("a", "INT", "integer"), Column("c", "INT", "integer")])
    ('column a would be integer and is bigint',)
    >>> breaks([a, b], [a])
    ('column b would go',)
    """
    types = {column.name: column.postgres for column in new}
    return tuple(
        f"column {c.name} would be {types[c.name]} and is {c.postgres}"
        if c.name in types
        else f"column {c.name} would go"
        for c in old
        if types.get(c.name) != c.postgres
    )


def appends(old: Sequence[Column], new: Sequence[Column]) -> bool:
    """Does the new shape only add columns at the end? Postgres renews such a view; any other is dropped and made."""
    return _shape(old) == _shape(new[: len(old)])


def _read_anew(before: Catalog, after: Catalog) -> set[str]:
    """The sources that are declared as they were, read otherwise by this Lamina, and feed cells that are computed.

    One parse feeds all cells of a source. It goes on as deployed while all of them do; else all of them are computed
    anew, with those that share another such source.
    """
    otherwise = {
        name
        for name, new in after.sources.items()
        if (old := before.sources.get(name)) and old.sql == new.sql and not _read_alike(old, new)
    }
    anew: set[str] = set()
    while more := {
        source
        for view in after.views.values()
        if (left := (view.fed_by & otherwise) - anew) and _has_other_cells(view, before, after, anew)
        for source in left
    }:
        anew |= more
    return anew


def _has_other_cells(new: View, before: Catalog, after: Catalog, anew: set[str]) -> bool:
    """Are the cells of a view of another version than those deployed, once `anew` are read anew?"""
    old = before.views.get(new.name)
    return old is None or (old.version != new.version and not _declared_alike(new.name, before, after, anew))


def _read_alike(old: Source, new: Source) -> bool:
    return (old.topic, old.parse, old.counted, old.ids) == (new.topic, new.parse, new.counted, new.ids)


def _source_change(name: str, before: Catalog, after: Catalog, anew: set[str], known: Known) -> Change:
    old, new = before.sources.get(name), after.sources.get(name)
    if new is None:
        return Change("source", name, "drop", "its query ends; its master log stays in the warehouse")
    if old is None:
        return Change("source", name, "create", f"topic {new.topic} is read from its first record")
    if _read_alike(old, new):
        settings = _settings(old.properties, new.properties)
        return Change("source", name, "update", settings) if settings else Change("source", name, "nothing", "")
    if old.kind == new.kind == "table" and name not in before.views:  # deployed by a Lamina that did not read tables
        return Change("source", name, "update", "its rows are served from now on")
    if old.sql == new.sql and name not in anew:
        return Change("source", name, "keep", "this Lamina would read its records otherwise; it goes on as deployed")
    change = Change("source", name, "update", _read_otherwise(old, new), diff=_diff(old.sql, new.sql))
    if (old.counted, old.ids, _told_apart(old)) != (new.counted, new.ids, _told_apart(new)):
        return _to_another_name(change, "it would tell other events apart than those that were counted")
    if old.topic != new.topic or old.kind != new.kind:
        was, now = (f"a {each.kind} of topic {each.topic}" for each in (old, new))
        return _to_another_name(change, f"it would be {now} and is {was}, whose offsets are others")
    if new.ids and name in anew:
        return _to_another_name(change, "it is read as an older Lamina did, by whose good records its events are known")
    if new.ids and not _types(old).items() <= _types(new).items():
        return _to_another_name(change, "records that were bad would be good now, and their events are not known")
    for preview in known.reading.get(name, ()) if new.ids else ():
        way_out = f"`lamina apply --preview {preview} --drop`, or wait for its end"
        return replace(change, action="refuse", effect=f"the preview {preview} reads it as it is deployed; {way_out}")
    return change


def _settings(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Which properties are others, in words; empty where none is.

    >>> _settings({"retain": "9 days", "comment": "x"}, {"retain": "1 day", "comment": "x", "keep_versions": "2"})
    'retain is 1 day and was 9 days, keep_versions is 2'
    """
    said = [f"{name} is {new[name]} and was {old[name]}" for name in new if name in old and new[name] != old[name]]
    said += [f"{name} is {new[name]}" for name in new if name not in old]
    said += [f"{name} is said no more, and was {old[name]}" for name in old if name not in new]
    return ", ".join(said)


def _to_another_name(change: Change, why: str) -> Change:
    effect = f"{why}: declare it under another name, and let the views read that"
    return replace(change, action="refuse", effect=effect)


def _types(source: Source) -> dict[str, str]:
    return {column.name: column.spark for column in source.columns}


def _told_apart(source: Source) -> dict[str, str]:
    """The columns by which a stream tells its events apart: by their texts, which depend on their types."""
    return {name: kind for name, kind in _types(source).items() if name in source.unique} if source.ids else {}


def _read_otherwise(old: Source, new: Source) -> str:
    """In what two declarations of a source differ: every record is read anew from its value, for all views of it."""
    was, now = _types(old), _types(new)
    said = [f"column {name} is new" for name in now if name not in was]
    said += [f"column {name} goes" for name in was if name not in now]
    said += [f"column {n} is {now[n]} and was {was[n]}" for n in now if n in was and now[n] != was[n]]
    what = ", ".join(said) or "its records are read otherwise"
    return f"{what}: every record is read anew from its value, and its views are computed anew"


def _view_change(name: str, before: Catalog, after: Catalog, anew: set[str], known: Known) -> Change:
    old, new = before.views.get(name), after.views.get(name)
    if new is None and (others := known.others.get(name)):
        return Change(
            "view", name, "refuse", f"it is declared no more, and {', '.join(others)} reads it: drop that first"
        )
    if new is None:
        effect = (
            f"it is no longer served; its cells are dropped{renames.way_to_keep(before.views[name], before, after)}"
        )
        return Change("view", name, "drop", effect)
    if old is None:
        return _new_view(new, after, known)
    if _declared_alike(name, before, after, anew):
        if old == new:
            return Change("view", name, "nothing", "")
        if old == replace(new, checks=old.checks):
            return Change("view", name, "update", _OTHER_CHECKS)
        effect = f"this Lamina would compile it otherwise ({_what_differs(old, new)}); it goes on as deployed"
        return Change("view", name, "keep", effect)
    change = Change("view", name, "update", "", diff=_diff(old.sql, new.sql), breaks=breaks(old.columns, new.columns))
    if (others := known.others.get(name)) and not appends(old.columns, new.columns):
        effect = f"its columns would be others, or in another order, and {', '.join(others)} reads it: drop that first"
        return replace(change, action="refuse", effect=effect)
    if old.version != new.version:
        return _new_version(change, old, new, after, known)
    if (old.final, old.columns, old.comment) != (new.final, new.columns, new.comment):
        return replace(change, effect="only what is read from the cells changed: served at once")
    if settings := _settings(old.properties, new.properties):
        kept = old.properties.get("retain") == new.properties.get("retain")
        return replace(change, effect=settings if kept else f"{settings}: groups leave or come with the next rebuild")
    return Change("view", name, *(("update", _OTHER_CHECKS) if old.checks != new.checks else ("nothing", "")))


def _new_view(new: View, after: Catalog, known: Known) -> Change:
    """Of a source with history, a view is computed from what was counted before it is served."""
    if (new.name, new.version) in known.kept:
        return Change("view", new.name, "create", "its cells are live, for a preview: served at once")
    waits = sorted(known.moved & new.fed_by)
    if not waits:
        return Change("view", new.name, "create", "served at once")
    return _reprocessed(
        Change("view", new.name, "reprocess", ""), f"{', '.join(waits)} has counted records", new, after, known
    )


def _new_version(change: Change, old: View, new: View, after: Catalog, known: Known) -> Change:
    if not new.cell_tables:
        return replace(change, effect="it is read from other views now: served at once, its cells are dropped")
    if (new.name, new.version) in known.kept:
        return replace(change, effect="this version of its cells is kept, and live: served at once")
    change = _reprocessed(change, _why(old, new), new, after, known)
    cells = known.sizes.get(new.name)
    sized = "" if cells is None else f", with {size(cells)} of cells,"
    return replace(change, effect=f"{change.effect}; the old version{sized} is served meanwhile", bytes=cells)


def _reprocessed(change: Change, why: str, new: View, after: Catalog, known: Known) -> Change:
    records = sum(known.counted.get(source, 0) for source in new.fed_by)
    seconds = None if known.rate is None else records / known.rate
    time = "" if seconds is None else f", about {duration(seconds)} at the rate of the last rebuild"
    unread = sorted(new.fed_by - known.counted.keys())
    more = "".join(f", and what topic {after.sources[name].topic} holds for {name}" for name in unread)
    effect = f"new cells: {why}; {records:,} records are read{time}{more}"
    return replace(change, action="reprocess", effect=effect, records=records, seconds=seconds)


def _below(name: str, catalog: Catalog) -> set[str]:
    """The views that a view reads, directly or through others."""
    reads = set(catalog.views[name].reads)
    return reads.union(*(_below(each, catalog) for each in reads))


def _why(old: View, new: View) -> str:
    """In what the cells of two versions differ: groups, then partials, then conditions."""

    def names(view: View) -> tuple[set[str], set[str], set[str]]:
        tables = view.cell_tables
        keys = {key.name for table in tables for key in table.keys}
        partials = {partial.column.name for table in tables for partial in table.partials}
        return keys, partials, {table.source for table in tables}

    said = []
    for word, was, now in zip(("groups", "partials", "sources"), names(old), names(new), strict=True):
        found = [f"{name} is new" for name in sorted(now - was)] + [f"{name} goes" for name in sorted(was - now)]
        said += [f"{word} ({', '.join(found)})"] if found else []
    if not said and [table.partial for table in old.cell_tables] == [table.partial for table in new.cell_tables]:
        return "how records are read"
    return ", ".join(said) or "how they are computed"


def _with_readers(change: Change, after: Catalog, known: Known) -> Change:
    """A change of a view with the views that read it, and the relations of others that do."""
    if change.kind != "view" or change.action in ("create", "keep", "nothing"):
        return change
    ours = sorted(name for name, each in after.views.items() if change.name in each.reads)
    return replace(change, dependents=(*ours, *known.others.get(change.name, ())))


def _declared_alike(name: str, before: Catalog, after: Catalog, anew: set[str]) -> bool:
    """Is all that a view is made of declared in the same words: the view, and what it names? None is read `anew`?"""
    old, new = (_declarations(catalog) for catalog in (before, after))
    seen, todo = {name}, [name]
    while todo:
        each = todo.pop()
        if old[each] != new.get(each) or each in anew:
            return False
        named = {word.lower() for word in re.findall(r"\w+", old[each])} & old.keys()
        todo += named - seen
        seen |= named
    return True


def _declarations(catalog: Catalog) -> dict[str, str]:
    sources = {name: source.sql for name, source in catalog.sources.items()}
    return sources | {name: each.sql for name, each in catalog.views.items()}


def _what_differs(old: View, new: View) -> str:
    """Which texts of a view differ, as a reason to read them."""
    pairs = list(zip(old.cell_tables, new.cell_tables, strict=False))
    names = [
        text for text in ("partial", "cells", "merge") if any(getattr(a, text) != getattr(b, text) for a, b in pairs)
    ]
    names += ["other tables of cells"] * (len(old.cell_tables) != len(new.cell_tables))
    names += [text for text in ("columns", "spelled") if getattr(old, text) != getattr(new, text)]
    names += ["final"] * (old.final != new.final and old.version == new.version)
    return ", ".join(names) or "how records are read"


def _over_its_cells(old: View | None, new: View) -> View:
    """A view of the version that is deployed goes on with the cells as they are computed: they are one thing."""
    return new if old is None or old.version != new.version else replace(new, cell_tables=old.cell_tables)


def _shape(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.postgres) for column in columns]


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "deployed", "catalog", lineterm="")
    return "\n".join(lines)


def _listed(changes: Iterable[Change]) -> str:
    return "\n".join(f"{change.kind} {change.name}: {change.effect}" for change in changes)


def _read_by(change: Change) -> str:
    return f" (read by {', '.join(change.dependents)})" if change.dependents else ""
