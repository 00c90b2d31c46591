"""The embedded services of one folder: at most one Kafka, one Postgres and one object storage.

Any process finds them by a file with their last state. A process in it counts only if it is still the same process.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lamina.services import kafka_broker, postgres, s3
from lamina.services.jars import jar_files
from lamina.services.java import java_home
from lamina.services.own_processes import RunningProcess, locked
from view_algebra.errors import LaminaError

S = TypeVar("S", kafka_broker.Broker, postgres.Server, s3.Store)


@dataclass(frozen=True)
class Addresses:
    """Addresses of the services. The URLs carry passwords.

    `analyst` is the login of Lamina's own reading commands, `reader` the one of the machine's user. `store` is the
    object storage with the master log, or None.
    """

    kafka: str
    postgres: str
    analyst: str
    reader: str
    store: s3.Store | None = None


class NotRunning(LaminaError):
    """A service does not run here. `one_runs` is True if another one does: this one is starting, or was forgotten."""

    def __init__(self, what: str, *, evidence: str, way_out: str, one_runs: bool) -> None:
        super().__init__(what, evidence=evidence, way_out=way_out)
        self.one_runs = one_runs


class EmbeddedServices:
    """Kafka, Postgres and, if asked for, S3 under one folder, which identifies them.

    `kafka_settings` are broker properties over our own, such as {"log.segment.bytes": "16384"}. `kafka_jvm_options`
    replace the options that make its start quick.
    """

    def __init__(
        self,
        home: Path,
        *,
        kafka_settings: Mapping[str, str] | None = None,
        kafka_jvm_options: tuple[str, ...] = (),
    ) -> None:
        self.home = home.absolute()
        self._kafka_settings = dict(kafka_settings or {})
        self._kafka_jvm_options = kafka_jvm_options

    def start(self, *, store: bool = False) -> Addresses:
        """Starts all stopped services at the same time, and returns when all answer.

        With `store`, this and every later start include an object storage. After a LaminaError, the services that it
        started are stopped again.
        """
        with self._locked():
            java, jars = java_home(self.home), jar_files(self.home, "kafka")  # fetched before anything starts
            state = self._read()
            broker = _answering(self._find_kafka(state), kafka_broker.answers, kafka_broker.stop)
            server = _answering(self._find_postgres(state), partial(postgres.answers, self.home), postgres.stop)
            object_store = _answering(s3.find(self.home), s3.answers, s3.stop)
            running = [service.process for service in (broker, server, object_store) if service is not None]
            try:
                with ThreadPoolExecutor(max_workers=3) as pool:
                    starting_store = None
                    if store or s3.wanted(self.home):
                        starting_store = pool.submit(lambda: object_store or self._start_store(java))
                    starting_broker = pool.submit(lambda: broker or self._start_kafka(java, jars, state.get("kafka")))
                    port = state.get("postgres", {}).get("port")
                    starting_server = pool.submit(lambda: server or postgres.start(self.home, port=port))
                broker, server = starting_broker.result(), starting_server.result()
                object_store = starting_store.result() if starting_store else object_store
            except BaseException:  # also for Ctrl-C
                self._stop(except_for=running)
                raise
            self._write({"kafka": asdict(broker), "postgres": asdict(server)})
            return self._addresses(broker, server, object_store)

    def _start_store(self, java: Path) -> s3.Store:
        return s3.start(self.home, java=java, jars=jar_files(self.home, "s3_server"))

    def _start_kafka(self, java: Path, jars: tuple[Path, ...], last: Mapping[str, Any] | None) -> kafka_broker.Broker:
        return kafka_broker.start(
            self.home,
            java=java,
            jars=jars,
            settings=self._kafka_settings,
            jvm_options=self._kafka_jvm_options,
            ports=(last["port"], last["controller_port"]) if last else None,
        )

    def stop(self) -> bool:
        """Stops all services, and returns when no process of theirs is left. Returns False if none ran."""
        if not self.home.exists():
            return False
        with self._locked():
            return self._stop()

    def _stop(self, *, except_for: Collection[RunningProcess] = ()) -> bool:
        state = self._read()
        services = (
            (s3.stop, s3.find(self.home)),
            (kafka_broker.stop, self._find_kafka(state)),
            (postgres.stop, self._find_postgres(state)),
        )
        with ThreadPoolExecutor(max_workers=3) as pool:
            stopping = [
                pool.submit(stop, service.process)
                for stop, service in services
                if service is not None and service.process not in except_for
            ]
        for stopped in stopping:
            stopped.result()
        return bool(stopping)

    def addresses(self) -> Addresses:
        """Addresses of the running services. Raises LaminaError if one of them does not run."""
        state = self._read()
        broker, server, store = self._find_kafka(state), self._find_postgres(state), s3.find(self.home)
        wanted = {"Kafka": broker, "Postgres": server, **({"S3": store} if s3.wanted(self.home) else {})}
        down = [name for name, service in wanted.items() if service is None]
        if broker is None or server is None or down:
            raise NotRunning(
                "The services are not running",
                evidence=f"Not running in {self.home}: {', '.join(down)}.",
                way_out="Start them with `lamina up`, or set LAMINA_POSTGRES and LAMINA_KAFKA to your own services.",
                one_runs=len(down) < len(wanted),
            )
        return self._addresses(broker, server, store)

    def _addresses(self, broker: kafka_broker.Broker, server: postgres.Server, store: s3.Store | None) -> Addresses:
        return Addresses(
            kafka=broker.address,
            postgres=postgres.url(self.home, server.port),
            analyst=postgres.url(self.home, server.port, role=postgres.ANALYST),
            reader=postgres.reader_url(self.home, server.port),
            store=store,
        )

    def _find_kafka(self, state: Mapping[str, Any]) -> kafka_broker.Broker | None:
        return _alive(kafka_broker.Broker, state.get("kafka")) or kafka_broker.find(self.home)

    def _find_postgres(self, state: Mapping[str, Any]) -> postgres.Server | None:
        return _alive(postgres.Server, state.get("postgres")) or postgres.find(self.home)

    def _read(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            state: dict[str, Any] = json.loads((self.home / "services.json").read_text())
            return state
        return {}

    def _write(self, state: Mapping[str, Any]) -> None:
        path = self.home / "services.json"
        draft = path.with_name(f"services.{os.getpid()}")
        draft.write_text(json.dumps(state, indent=2) + "\n")
        draft.replace(path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Allows one start or stop of a home at a time."""
        try:
            postgres.keep_private(self.home)
            (self.home / "services.lock").touch()
        except OSError as error:
            raise LaminaError(
                f"The folder {self.home} cannot be written",
                evidence=str(error),
                way_out="Set LAMINA_HOME to a folder of your own.",
            ) from error
        with locked(self.home / "services.lock"):
            try:
                yield
            except OSError as error:
                raise LaminaError(
                    "The services could not be started or stopped",
                    evidence=str(error),
                    way_out=f"{self.home} must be writable and have 1 GB free.",
                ) from error


def _answering(service: S | None, answers: Callable[[int], bool], stop: Callable[[RunningProcess], None]) -> S | None:
    """The service if it answers. One that hangs or is dying is ended, so that another can start."""
    if service is None or answers(service.port):
        return service
    stop(service.process)
    return None


def _alive(kind: Callable[..., S], last: Mapping[str, Any] | None) -> S | None:
    """The service of the state file, or None if the file is lost or outdated."""
    service = None if last is None else kind(**{**last, "process": RunningProcess(**last["process"])})
    return service if service is not None and service.process.alive() else None
