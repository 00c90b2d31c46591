"""Verdicts on new generations by their proofs and checks, before anybody reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import view_checks
from serving_layer.change.view_checks import Trial, Verdict
from serving_layer.narration import waiting
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import proof, rebuilds
from view_algebra.errors import Blocked


def run_checks(database: Database, tell: Callable[[str], None], trial: Trial) -> list[Verdict]:
    """Runs the checks of a catalog over the rows it would show, in one snapshot per view."""
    verdicts: list[Verdict] = []
    with waiting(tell, "running the checks over the new rows"):
        for name in (name for name, view in trial.catalog.views.items() if view.checks):
            with database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                verdicts += view_checks.run_on_trial(connection, trial, name)
    return verdicts


def held_views(
    connection: Connection, run: rebuilds.Rebuild, new: Sequence[Generation], released: Collection[str] = ()
) -> list[str]:
    """The views of a rebuild that are not handed over: those that fail, and those that were checked with them.

    The `released` views are handed over despite their failures.
    """
    catalog = deployed(connection)
    by_checks = view_checks.views_failing_checks(connection, catalog, run.id, new)
    failing = by_checks.union(proof.unproven_views(connection, new)).difference(released)
    return sorted(view_checks.held_together(catalog, new, failing).difference(released))


def refuse_failed_checks(connection: Connection, leap: int, new: Sequence[Generation]) -> None:
    """Raises Blocked if a check of a leap fails, since a leap hands over all views or none."""
    if by_checks := view_checks.views_failing_checks(connection, deployed(connection), leap, new):
        blocked = [verdict.sentence for verdict in view_checks.results(connection, leap) if verdict.blocked]
        raise Blocked(
            f"The leap is not handed over: {', '.join(sorted(by_checks))} fails a check",
            evidence="\n".join(blocked) or "its checks were not run: `lamina step check` runs them",
            way_out="Nothing that is read has changed. Correct what fails, or let the check warn: NOT ENFORCED.",
        )


def views_with_new_rows(database: Database, id: int) -> list[str]:
    """The views whose rows a hand-over has changed: those of the rebuild, and the derived views over them."""
    with database.begin() as connection:
        catalog = deployed(connection)
        published = lookup.published(connection)
        moved = [new.view for new in lookup.generations_of_rebuild(connection, id) if published.get(new.view) == new.id]
    return [name for name, changed in view_checks.changed_inputs(catalog, moved).items() if changed]


def reasons_for_holding(database: Database, id: int, held: Sequence[str]) -> list[str]:
    """Sentences about failed checks, unproven views and checks that were not run, which hold these views back."""
    with database.begin() as connection:
        failures = [verdict.sentence for verdict, _ in view_checks.blocking(connection, id, held)]
        opened = [new for new in lookup.generations_of_rebuild(connection, id) if new.view in held]
        unproven = [f"{name}: no proof found it equal" for name in sorted(proof.unproven_views(connection, opened))]
        missing = view_checks.without_result(connection, id, held)
    way_out = f"run `lamina step check --rebuild {id}`, then this again"
    return [*failures, *unproven, *([f"checks were not run ({', '.join(missing)}): {way_out}"] if missing else [])]
