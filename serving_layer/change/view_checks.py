"""Checks of views: conditions that a new generation must meet before readers see it, and that live views must keep.

A check reads a view as its readers would. Before a hand-over or an apply, it reads a trial: temporary views over what
readers would read afterwards, in a transaction that is rolled back. Nobody else sees them, and nothing remains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg2 import errors
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import DataError, ProgrammingError

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import renames
from serving_layer.postgres.bookkeeping import checked
from serving_layer.postgres.cells import create, run
from serving_layer.postgres.database import first_line
from serving_layer.readers import views
from serving_layer.readers.sides import with_places
from serving_layer.readers.views import reachable
from view_algebra.compiled import Catalog, CellTable, Check, View
from view_algebra.language.quoting import quoted
from view_algebra.text_relations import reading

EXAMPLES = 5
"""Number of failing rows that are stored with a result."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check: the number of failing rows (or keys, or the whole view), and the first of them."""

    view: str
    check: str
    counts: Literal["row", "key", "whole"]
    blocks: bool
    failing: int
    examples: list[dict[str, Any]]

    @property
    def blocked(self) -> bool:
        """True if the failure keeps the generation from readers."""
        return self.blocks and self.failing > 0

    @property
    def result(self) -> str:
        """`passes`, `warns` or `FAILS`."""
        return "passes" if not self.failing else "FAILS" if self.blocks else "warns"

    @property
    def sentence(self) -> str:
        """The view, the check, the number of failing rows, and the first of them, in words.

        >>> print(Verdict("v", "a_is_there", "row", True, 2, [{"a": None}, {"a": None}]).sentence)
        v: its check a_is_there fails for 2 rows, the first {"a": null}
        """
        what = f"{self.view}: its check {self.check}"
        if not self.failing:
            return f"{what} passes"
        first = json.dumps(self.examples[0], ensure_ascii=False) if self.examples else ""
        if self.counts == "whole":
            return f"{what} fails: {first}"
        return f"{what} fails for {self.failing:,} {self.counts}{'s' * (self.failing > 1)}, the first {first}"


@dataclass(frozen=True)
class Trial:
    """A catalog as it would be read.

    places: the places of the tables of cells, by name. Tables without a place are empty
    changed: the views that would show other rows, or their first ones
    new: the names that nobody can read yet
    """

    catalog: Catalog
    places: Mapping[str, str]
    changed: frozenset[str]
    new: frozenset[str] = frozenset()


def trial_of_handover(connection: Connection, catalog: Catalog, new: Sequence[Generation]) -> Trial:
    """The deployed catalog after these generations are handed over. Generations of other versions are ignored."""
    declared = {(view.name, view.version) for view in catalog.views.values()}
    new = [opened for opened in new if (opened.view, opened.version) in declared]
    read = versions.readable_generations(connection, catalog) | {opened.view: opened for opened in new}
    unread = catalog.views.keys() - views.served_views(connection)
    return Trial(catalog, _places(read.values()), frozenset(opened.view for opened in new), frozenset(unread))


def trial_of_catalog(connection: Connection, catalog: Catalog, ready: Sequence[Generation]) -> Trial:
    """A planned catalog after it is deployed. `ready` are the generations that were computed for it."""
    before = deployed(connection)
    named = renames.declared_renames(before, catalog)
    old = renames.renamed_catalog(before, {was: name for name, was in named.items()}).views
    published = lookup.published(connection)
    read = versions.readable_generations(connection, catalog) | {opened.view: opened for opened in ready}
    places = _places(read.values())
    for name in (name for name, was in named.items() if was in published):
        places_now = lookup.get(connection, published[named[name]]).places
        tables = zip(before.views[named[name]].cell_tables, old[name].cell_tables, strict=True)
        places |= {table.name: places_now[other.name] for other, table in tables if other.name in places_now}
    new = (catalog.views.keys() - old.keys()) | named.keys()
    now = {name: opened.id for name, opened in read.items()}
    changed = {
        name
        for name, view in catalog.views.items()
        if name in old
        and (old[name].final != view.final or (name not in named and now.get(name) != published.get(name)))
    }
    unread = catalog.views.keys() - views.served_views(connection)
    first = {name for name in new - named.keys() if _has_cells(catalog, name, places)}
    return Trial(catalog, places, frozenset(changed | first), frozenset(new | unread))


def run_on_trial(connection: Connection, trial: Trial, name: str) -> list[Verdict]:
    """Runs the checks of one view that depend on views changed by a trial, as if the trial had come true.

    The caller's transaction is one snapshot (REPEATABLE READ).
    """
    view, affects = trial.catalog.views[name], changed_inputs(trial.catalog, trial.changed)
    todo = [check for check in view.checks if changed_inputs_of_check(check, affects)]
    if not todo:
        return []
    savepoint = connection.begin_nested()
    try:
        temporary = _make_temporary_views(connection, trial, trial.new.union(*(check.reads for check in todo)))
        return [_verdict(connection, view, check, temporary) for check in todo]
    finally:
        savepoint.rollback()


def run_on_live(connection: Connection, catalog: Catalog, names: Iterable[str]) -> list[Verdict]:
    """Runs the checks of these views over the published rows."""
    return [
        _verdict(connection, catalog.views[name], check, frozenset())
        for name in names
        for check in catalog.views[name].checks
    ]


def changed_inputs(catalog: Catalog, changed: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each view, the changed views that its rows depend on: itself, and those that it reads."""
    below: dict[str, frozenset[str]] = {}
    changed = frozenset(changed)
    for name, view in catalog.views.items():
        below[name] = (changed & {name}).union(*(below[read] for read in view.reads))
    return below


def changed_inputs_of_check(check: Check, affects: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The changed views that a check depends on."""
    return frozenset[str]().union(*(affects[read] for read in check.reads))


def views_failing_checks(connection: Connection, catalog: Catalog, rebuild: int, new: Sequence[Generation]) -> set[str]:
    """The views of a rebuild that have not passed all blocking checks. A check without a result has not passed."""
    affects = changed_inputs(catalog, [generation.view for generation in new])
    passed = {(verdict.view, verdict.check) for verdict in results(connection, rebuild) if not verdict.failing}
    failed = [check for view, check in _blocking(catalog) if (view, check.name) not in passed]
    return set[str]().union(*(changed_inputs_of_check(check, affects) for check in failed))


def held_together(catalog: Catalog, new: Sequence[Generation], held: Iterable[str]) -> set[str]:
    """The views held back, and those that were only checked together with one of them.

    A check of several new generations proves nothing about one of them next to an old generation of another.
    """
    affects, together = changed_inputs(catalog, [generation.view for generation in new]), set(held)
    checked_views = [changed_inputs_of_check(check, affects) for _, check in _blocking(catalog)]
    while True:
        wider = together.union(*(about for about in checked_views if about & together))
        if wider == together:
            return together
        together = wider


def _blocking(catalog: Catalog) -> Iterator[tuple[str, Check]]:
    return ((view.name, check) for view in catalog.views.values() for check in view.checks if check.blocks)


def record(connection: Connection, verdicts: Sequence[Verdict], rebuild: int | None) -> None:
    """Stores results in place of those of earlier rebuilds, or of earlier runs over the live views.

    The results for which a rebuild is held stay until it is released.
    """
    others = lookup.generations_held_by_rebuilds(connection).keys() - {rebuild}
    of_rebuilds = checked.c.rebuild.is_not(None) & checked.c.rebuild.not_in(others)
    for verdict in verdicts:
        same_kind = checked.c.rebuild.is_(None) if rebuild is None else of_rebuilds
        connection.execute(
            delete(checked).where(checked.c.view == verdict.view, checked.c.name == verdict.check, same_kind)
        )
        values = {**vars(verdict), "rebuild": rebuild}
        connection.execute(insert(checked).values(name=values.pop("check"), **values))


def results(connection: Connection, rebuild: int | None) -> list[Verdict]:
    """The last results of a rebuild, or (None) of the live views."""
    same_kind = checked.c.rebuild == rebuild if rebuild is not None else checked.c.rebuild.is_(None)
    rows = connection.execute(select(checked).where(same_kind).order_by(checked.c.id))
    return [Verdict(row.view, row.name, row.counts, row.blocks, row.failing, row.examples) for row in rows]


def replace_live(connection: Connection, verdicts: Sequence[Verdict]) -> None:
    """Replaces results about live views by verdicts on the generations that were just handed over."""
    recorded = {(verdict.view, verdict.check) for verdict in results(connection, None)}
    record(connection, [verdict for verdict in verdicts if (verdict.view, verdict.check) in recorded], None)


def blocking(connection: Connection, rebuild: int, held: Sequence[str]) -> Iterator[tuple[Verdict, list[str]]]:
    """The failed blocking checks of a rebuild that hold back some of these views, each with those views."""
    catalog = deployed(connection)
    affects = changed_inputs(catalog, held)
    failed = {(verdict.view, verdict.check): verdict for verdict in results(connection, rebuild) if verdict.blocked}
    for view, check in _blocking(catalog):
        if (view, check.name) in failed and (about := changed_inputs_of_check(check, affects)):
            yield failed[view, check.name], sorted(about)


def without_result(connection: Connection, rebuild: int, held: Sequence[str]) -> list[str]:
    """The blocking checks that hold back some of these views because the rebuild did not run them."""
    catalog = deployed(connection)
    affects = changed_inputs(catalog, held)
    ran = {(verdict.view, verdict.check) for verdict in results(connection, rebuild)}
    return [
        f"{check.name} of {view}"
        for view, check in _blocking(catalog)
        if (view, check.name) not in ran and changed_inputs_of_check(check, affects)
    ]


def forget(connection: Connection, catalog: Catalog) -> None:
    """Deletes the results of checks that a catalog no longer declares, or declares with another effect."""
    for row in connection.execute(select(checked.c.id, checked.c.view, checked.c.name, checked.c.blocks)).all():
        view = catalog.views.get(row.view)
        declared = {(check.name, check.blocks) for check in view.checks} if view else set()
        if (row.name, row.blocks) not in declared:
            connection.execute(delete(checked).where(checked.c.id == row.id))


def _make_temporary_views(connection: Connection, trial: Trial, wanted: Iterable[str]) -> frozenset[str]:
    """Creates temporary views of the `wanted` views that a trial changes, and of those they read. Returns the names."""
    views, temporary = trial.catalog.views, set[str]()
    reads = {name: view.reads for name, view in views.items()}
    needed = {read for name in wanted for read in reachable(name, reads)}
    affects = changed_inputs(trial.catalog, trial.changed | trial.new)
    for name in (name for name in views if name in needed and affects[name]):
        view = views[name]
        where = {(name, t.name): trial.places.get(t.name) or _empty(connection, t) for t in view.cell_tables}
        body = _with_temporary_views(with_places(view.final, where), temporary)
        columns = ", ".join(quoted(column.name) for column in view.columns)
        run(connection, f"CREATE TEMPORARY VIEW {quoted(name)} ({columns}) AS\n{body}")
        temporary.add(name)
    return frozenset(temporary)


def _empty(connection: Connection, table: CellTable) -> str:
    """Creates an empty temporary table of cells. Returns its name."""
    place = f"pg_temp.{quoted(table.name)}"
    create(connection, table.cells, place)
    return place


def _verdict(connection: Connection, view: View, check: Check, temporary: Iterable[str]) -> Verdict:
    failing = _with_served_views(connection, _with_temporary_views(check.failing, temporary))
    examples: list[dict[str, Any]] = []
    try:
        with connection.begin_nested():
            count = run(connection, f"SELECT count(*) FROM (\n{failing}\n) AS failing").scalar_one()
            if count:
                first = f"SELECT to_jsonb(failing) FROM (\n{failing}\n) AS failing LIMIT {EXAMPLES}"
                examples = list(run(connection, first).scalars())
    except (DataError, ProgrammingError) as error:  # a mistake in this check: other checks still run
        if isinstance(error.orig, (errors.UndefinedTable, errors.UndefinedColumn)):
            raise  # not the author's mistake
        return Verdict(view.name, check.name, "whole", check.blocks, 1, [{"error": first_line(error)}])
    return Verdict(view.name, check.name, check.counts, check.blocks, count, examples)


def _with_temporary_views(text: str, temporary: Iterable[str]) -> str:
    """The text, reading the temporary views instead of the served ones."""
    return reading(text, "analytics", {name: f"pg_temp.{quoted(name)}" for name in temporary}.get)


def _with_served_views(connection: Connection, text: str) -> str:
    """The text over the served views. A view that nobody can read yet counts as empty."""
    served = views.served_views(connection)

    def served_now(name: str) -> str:
        called = quoted(name)
        return f"analytics.{called}" if name in served else f"(SELECT * FROM pg_temp.{called} WHERE false)"

    return reading(text, "published", served_now)


def _has_cells(catalog: Catalog, name: str, places: Mapping[str, str]) -> bool:
    """True if a new view would have cells to show, and so would all views that it reads."""
    view = catalog.views[name]
    own = all(table.name in places for table in view.cell_tables)
    return own and all(_has_cells(catalog, read, places) for read in view.reads)


def _places(read: Iterable[Generation]) -> dict[str, str]:
    return {table: place for opened in read for table, place in opened.places.items()}
