"""Makes a database a serving layer, and gives readers their logins."""

from __future__ import annotations

import secrets

from lamina.operations.deployment import Deployment
from serving_layer.postgres.database import login_of, with_login
from serving_layer.readers import rights, views
from serving_layer.readers.analyst_limits import superusers_script
from serving_layer.upkeep import install as installing
from view_algebra.errors import LaminaError


def install(deployment: Deployment) -> None:
    """Makes the database a serving layer, or upgrades it to this version. Narrates the steps that only a superuser
    may do.
    """
    with rights.naming_readers(
        deployment.database, "Lamina cannot be installed while a reader holds a view that it replaces"
    ):
        done = installing.install(
            deployment.database,
            analyst_password=login_of(deployment.settings.analyst)[1],
            limits=deployment.settings.limits,
        )
    if not done:
        return
    for part in done:
        if part.startswith(installing.SETTINGS_OF):
            deployment.tell(f"{part} were reset to Lamina's")
    with deployment.database.begin() as connection:
        if lacking := rights.unguarded(connection):
            deployment.tell(
                f"{'; '.join(lacking)}. Only a superuser can change that, by running this in the database:"
                f"\n\n{superusers_script().strip()}\n"
            )


def set_password(deployment: Deployment) -> str:
    """Sets the password of LAMINA_ANALYST's role to the one in the URL. Returns the role's name."""
    role, password = login_of(deployment.settings.analyst)
    if not role or not password:
        raise LaminaError(
            "LAMINA_ANALYST has no password to set",
            evidence="it has a user but no password" if deployment.settings.analyst else "it is not set",
            way_out="Set it to postgresql://analyst:password@host:5432/database.",
        )
    with deployment.database.begin() as connection:
        rights.set_password(connection, role, password)
    return role


def make_login(deployment: Deployment, name: str, connections: int | None = None) -> tuple[str, bool]:
    """The URL of a person's login, with a new password, and True if the login is new. `connections` limits the
    simultaneous ones.
    """
    deployment.require_installed()
    password = secrets.token_urlsafe(24)
    with deployment.database.begin() as connection:
        new = rights.make_login(connection, name, views.ANALYST, password, connections)
    return with_login(deployment.settings.analyst or deployment.settings.postgres, name, password), new
