"""`lamina up` and `lamina down`: a whole Lamina in one folder, for a laptop, the demo and the tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lamina.configuration.settings import Settings
from lamina.operations.deployment import Deployment
from lamina.operations.installation import install
from lamina.services.background import ConsoleProcess, SpeedProcess
from lamina.services.embedded import Addresses, EmbeddedServices
from lamina.terminal.render import Output
from serving_layer.monitoring import delays
from serving_layer.narration import waiting
from serving_layer.postgres.database import Database
from serving_layer.promise import progress
from view_algebra.errors import LaminaError

HANGS_SECONDS = 5.0
"""Seconds that a hanging speed layer may take to end, since it hardly reacts to the signal."""


def _refuse_others() -> None:
    """Raises LaminaError if the settings name the user's own services, before any other is started."""
    try:
        embedded = Settings.read().embedded
    except LaminaError:
        return  # embedded services that do not run yet: other faults in the settings are reported once they do
    if not embedded:
        raise LaminaError(
            "The settings name your own services",
            evidence="LAMINA_POSTGRES and LAMINA_KAFKA are set, so nothing embedded is used",
            way_out="Run `lamina speed` against them, or unset both to use the embedded services.",
        )


def up(output: Output, *, store: bool) -> None:
    """Starts everything, with or without object storage, and says how to connect."""
    home = Settings.home_of()
    _refuse_others()
    began = time.monotonic()
    with waiting(output.tell, f"starting Kafka and Postgres in {home}"):
        addresses = EmbeddedServices(home).start(store=store)
    with _outliving_an_interrupt(output):
        deployment = Deployment(Settings.read(), tell=output.tell)
        with waiting(output.tell, "making the database a serving layer"):
            install(deployment)
        deployment.close()
        output.tell(f"Kafka and Postgres are up ({time.monotonic() - began:.1f} s)")
        speed = SpeedProcess(home)
        runs = speed.background.find() is not None
        if runs and (seconds := _silent_for(deployment.settings)) is not None:
            with waiting(output.tell, f"ending the speed layer, which has been silent for {seconds:.0f} s"):
                speed.stop(within=HANGS_SECONDS)
            runs = False
        running = speed.start()
        time.sleep(0.3)
        speed.expect(running)
        console = ConsoleProcess(home)
        address = console.start()
        output.table(("what", "where"), connections(addresses, speed, address))
        console.expect()
        output.tell(
            "the speed layer runs"
            if runs
            else "the speed layer is starting: views fill within half a minute on an idle machine"
        )


@contextmanager
def _outliving_an_interrupt(output: Output) -> Iterator[None]:
    """If Ctrl-C ends the block, says that the services keep running."""
    try:
        yield
    except KeyboardInterrupt:
        output.tell("Kafka and Postgres keep running. `lamina up` continues, and `lamina down` stops them.")
        raise


def _silent_for(settings: Settings) -> float | None:
    """Seconds for which a running speed layer has been silent, if that is too long (it hangs), or None."""
    database = Database(settings.postgres)
    with closing(database), database.begin() as connection:
        silent = [delays.silent(connection, query) for query in progress.queries(connection).values()]
    return max((seconds for seconds in silent if seconds is not None), default=None)


def connections(addresses: Addresses, speed: SpeedProcess, console: str) -> list[tuple[str, str]]:
    """Addresses of all services. The URLs carry the passwords of this folder's services. `console` is the console's
    address.
    """
    store = addresses.store
    return [
        ("console", console),
        ("Kafka", addresses.kafka),
        *((("master log (S3)", f"{store.warehouse} at {store.options['s3.endpoint']}"),) if store else ()),
        ("views (psql)", f"psql '{addresses.reader}'"),
        ("views (SQLAlchemy)", addresses.reader.replace("postgresql://", "postgresql+psycopg2://")),
        ("views, for another person", "lamina login NAME"),
        ("speed layer's log", str(speed.background.log)),
    ]


def down(output: Output) -> None:
    """Stops everything that `up` or `demo` started in this LAMINA_HOME."""
    home = Settings.home_of()
    if console_ran := ConsoleProcess(home).stop():
        output.tell("the console has stopped")
    with waiting(output.tell, "waiting for the speed layer's last micro-batch"):
        speed_ran = SpeedProcess(home).stop()
    if speed_ran:
        output.tell("the speed layer has stopped")
    with waiting(output.tell, "stopping Kafka and Postgres"):
        services_ran = EmbeddedServices(home).stop()
    if services_ran:
        output.tell("Kafka and Postgres have stopped")
    elif not (speed_ran or console_ran):
        output.tell(f"nothing was running in {home}")


def stop_all(home: Path) -> None:
    """Stops whatever runs in a LAMINA_HOME."""
    ConsoleProcess(home).stop()
    SpeedProcess(home).stop()
    EmbeddedServices(home).stop()


if __name__ == "__main__":
    for home in map(Path, sys.argv[1:]):  # `make clean` stops these before it removes the folders
        stop_all(home)
