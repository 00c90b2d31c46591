"""Commands for readers' logins and their passwords."""

from __future__ import annotations

import click

from lamina.commands.command import command, open_deployment
from lamina.configuration.postgres_urls import without_password
from lamina.configuration.settings import Settings
from lamina.terminal.render import Output


@command()
def password(output: Output) -> None:
    """Set the analyst's password to the one in LAMINA_ANALYST."""
    from lamina.operations import installation

    with open_deployment(output) as deployment:
        role = installation.set_password(deployment)
        output.text(f"{role} has the password of LAMINA_ANALYST", role=role)


@command()
@click.argument("name", required=False)
@click.option(
    "--connections",
    type=click.IntRange(1),
    help="Limit of simultaneous connections: 5 for a new login, more for a dashboard.",
)
@click.option("--owner", is_flag=True, help="Print the URL of the database's owner instead. No login is made.")
def login(output: Output, name: str | None, connections: int | None, owner: bool) -> None:
    """Make a reader's login NAME, and print its URL.

    The URL holds a new password, which is shown only once. An existing login gets this password. The owner's URL is for
    statements such as GRANT, as in `psql "$(lamina login --owner)"`. It names a file with the password, since other
    users of the machine can see the arguments of psql.
    """
    if owner == (name is not None):
        raise click.UsageError("Give either the NAME of a reader or --owner.")
    if owner and connections is not None:
        raise click.UsageError("--connections limits the login of a reader. It cannot be used with --owner.")
    if name is None:
        settings = Settings.read()
        url = without_password(settings.postgres, settings.home / "owner.pgpass")
        output.text(url, url=url)
        return
    from lamina.operations import installation

    with open_deployment(output) as deployment:
        url, new = installation.make_login(deployment, name, connections)
    output.text(url, login=name, url=url, new=new)
    output.tell(f"{name} is a new login" if new else f"{name} has a new password")
    pause = deployment.settings.limits.idle_in_transaction_session_timeout
    if pause != "0":
        output.tell(
            f"a session that pauses within a transaction for {pause} loses its connection: read with autocommit"
            " (docs/reading.md)"
        )
