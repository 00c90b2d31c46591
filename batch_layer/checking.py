"""What proofs and checks say of new generations before anybody reads them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import checks
from serving_layer.change.checks import Verdict
from serving_layer.change.trials import Trial
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import proof, rebuilds
from view_algebra.errors import Blocked


def checked(database: Database, trial: Trial) -> list[Verdict]:
    """What the checks of a catalog find over what it would show, a snapshot for each view."""
    found: list[Verdict] = []
    for name in (name for name, each in trial.catalog.views.items() if each.checks):
        with database.begin(isolation="REPEATABLE READ") as connection:
            courtesy.stand_back(connection)
            found += checks.of_trial(connection, trial, name)
    return found


def held_back(
    connection: Connection, run: rebuilds.Rebuild, new: Sequence[Generation], released: Collection[str] = ()
) -> list[str]:
    """The views of a rebuild that are not handed over, nor any that was only checked together with these.

    Some may be `released`, whatever fails for them. A leap hands all over, or is refused with Blocked.
    """
    catalog = deployed(connection)
    by_checks = checks.held_back(connection, catalog, run.id, new)
    if not run.leap:
        failing = by_checks.union(proof.held_back(connection, new)).difference(released)
        return sorted(checks.held_together(catalog, new, failing).difference(released))
    if by_checks:
        blocked = [each.sentence for each in checks.results(connection, run.id) if each.blocked]
        raise Blocked(
            f"The leap is not handed over: {', '.join(sorted(by_checks))} fails a check",
            evidence="\n".join(blocked) or "its checks were not run: `lamina step check` runs them",
            way_out="Nothing that is read has changed. Correct what fails, or let the check warn: NOT ENFORCED.",
        )
    return []


def handed_over(database: Database, id: int) -> list[str]:
    """The views whose rows a hand-over has changed: those that are read from it, and the derived ones over them."""
    with database.begin() as connection:
        catalog = deployed(connection)
        published = lookup.published(connection)
        moved = [each.view for each in lookup.of_rebuild(connection, id) if published.get(each.view) == each.id]
    return [name for name, changed in checks.affected(catalog, moved).items() if changed]


def blocking(database: Database, id: int, held: Sequence[str]) -> list[Verdict]:
    """What the checks of a rebuild have found that holds these views back."""
    with database.begin() as connection:
        return [each for each, _ in checks.blocking(connection, id, held)]


def verdicts(database: Database, id: int) -> list[Verdict]:
    """What the checks of a rebuild have found."""
    with database.begin() as connection:
        return checks.results(connection, id)
