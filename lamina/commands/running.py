"""Commands that start and stop things: the embedded services, the speed layer, the demo, the console."""

from __future__ import annotations

import signal
import threading

import click

from lamina.commands.command import command, listen_address, open_deployment
from lamina.configuration.settings import Settings
from lamina.terminal.render import Output


@command()
@click.option("--s3", "store", is_flag=True, help="From now on, keep the master log in an embedded object storage.")
def up(output: Output, store: bool) -> None:
    """Start the embedded Kafka and Postgres, and the speed layer."""
    from lamina.local import stack

    stack.up(output, store=store)


@command()
def down(output: Output) -> None:
    """Stop everything that `up` has started."""
    from lamina.local import stack

    stack.down(output)


@command()
@click.option("--once", is_flag=True, help="End after the last step, and leave nothing running.")
@click.option("--lines", type=click.IntRange(min=1000), help="Invoice lines to send, by default all 541,909.")
def demo(output: Output, once: bool, lines: int | None) -> None:
    """See it all in five minutes, on real data.

    Live views over a shop's invoices, a rebuild under traffic, its proof, a late record.
    """
    from lamina.local.demo import run

    for number in (signal.SIGHUP, signal.SIGTERM):  # closing the terminal counts as Ctrl-C
        signal.signal(number, signal.default_int_handler)
    run(output, once=once, lines=lines)


@command()
@click.option("--until-caught-up", is_flag=True, help="End when every record that is in Kafka now is counted.")
@click.option(
    "--max-records",
    type=click.IntRange(min=1),
    default=500_000,
    show_default=True,
    help="Read at most this many records in one micro-batch.",
)
@click.option("--mark", hidden=True, help="Identifies this process.")
def speed(output: Output, until_caught_up: bool, max_records: int, mark: str | None) -> None:  # noqa: ARG001
    """Run the speed layer: keep every view fresh until stopped."""
    from serving_layer.postgres.database import cancel

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    _wait_for_services(output, stopping)
    if stopping.is_set():
        return
    with open_deployment(output) as deployment:
        deployment.database.waiting(deployment.require_installed, give_up=stopping.is_set)
        try:
            deployment.speed(stopping, max_records=max_records).run(until_caught_up=until_caught_up)
        finally:
            cancel()  # the process ends after its threads, and one may be waiting for a lock in Postgres


def _wait_for_services(output: Output, stopping: threading.Event) -> None:
    """Waits for the second embedded service if one of the two runs. Raises NotRunning if neither does."""
    from lamina.services.embedded import NotRunning

    has_told = False
    while not stopping.is_set():
        try:
            Settings.read()
            return
        except NotRunning as error:
            if not error.one_runs:
                raise
            if not has_told:
                output.tell(f"{error.what}: {error.evidence} Waiting for it. `lamina up` starts it.")
            has_told = True
            stopping.wait(1.0)


@command()
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:8765", show_default=True, help="Serve at http://HOST:PORT/."
)
@click.option("--name", "names", metavar="HOST", multiple=True, help="A name that a proxy gives it (repeatable).")
@click.option(
    "--open-to-all",
    is_flag=True,
    help="Ask for no token, even at an address that other machines reach (behind a proxy).",
)
@click.option("--mark", hidden=True, help="Identifies this process.")
def console(output: Output, listen: str, names: tuple[str, ...], open_to_all: bool, mark: str | None) -> None:  # noqa: ARG001
    """Serve a read-only page over the deployment until stopped.

    It shows the freshness of each view, alarms, proofs, lineage and rows, and runs SELECTs as the analyst. /metrics has
    the numbers of `lamina metrics`. At an address that other machines reach, it asks for the token in the printed URL.
    """
    from lamina.console.request_guards import token_for
    from lamina.console.server import Console

    host, port = listen_address(listen, "127.0.0.1:8765")
    with open_deployment(output) as deployment:
        token = None if open_to_all else token_for(host, names, deployment.settings.home)
        served = Console(deployment, host, port, names, token)
        output.text(served.address, url=served.address)
        output.tell("Press Ctrl-C to stop.")
        served.run()
