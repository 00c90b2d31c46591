"""OpenLineage events of `apply` and of rebuilds: which SQL made which view of which topics, when, and what came of it.

Each view that is computed or deployed has a run of its own: START, then COMPLETE or FAIL. The run of a view in a
rebuild has the same id in every process that works at it. Events are sent by a thread:
a receiver that is down or slow costs a line of narration and `PATIENCE` seconds at the end, and fails nothing. Where
no receiver is configured, OpenLineage's client is not even imported.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from lamina import __version__
from lamina.settings import LineageReceiver, Settings
from serving_layer.change.checks import Verdict
from serving_layer.promise.proof import Proof
from view_algebra.compiled import Catalog, View

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

PATIENCE = 2.0
"""Seconds that a command waits at its end for events that are not sent yet."""

TIMEOUT = 5.0
"""Seconds that the receiver may take to answer: the client's own default."""

PRODUCER = f"lamina/{__version__}"


@dataclass(frozen=True)
class Dataset:
    """A topic or an analyst's view, by OpenLineage's naming; columns: name, type and comment."""

    namespace: str
    name: str
    columns: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True)
class Finding:
    """A proof or a check of a view: what is to be, and what was found."""

    name: str
    type: Literal["proof", "check"]
    failing: int
    blocks: bool
    of: str


@dataclass(frozen=True)
class Event:
    """One event of a view's run. error: why it failed. tests: its proof and its checks."""

    at: datetime
    type: Literal["START", "COMPLETE", "FAIL"]
    run: str
    view: str
    sql: str
    inputs: tuple[Dataset, ...]
    output: Dataset
    error: str = ""
    tests: tuple[Finding, ...] = ()


@dataclass
class Runs:
    """The runs of the views of one command; every method does nothing where no receiver is configured."""

    settings: Settings
    tell: Callable[[str], None]
    started: dict[str, Event] = field(default_factory=dict)
    _tests: dict[str, list[Finding]] = field(default_factory=dict)
    _held: frozenset[str] = frozenset()
    _sender: Sender | None = None

    def start(self, catalog: Callable[[], Catalog], ids: Callable[[], Mapping[str, str]]) -> None:
        """Begins a run of each of these views, by its id."""
        self.go_on(catalog, ids)
        if self._sender is not None:
            self._sender.send(self.started.values())

    def go_on(self, catalog: Callable[[], Catalog], ids: Callable[[], Mapping[str, str]]) -> None:
        """Goes on with runs that another process has begun.

        What goes wrong in asking for them is told, and fails nothing.
        """
        if self.settings.lineage is None:
            return
        try:
            declared = catalog()
            self.started = {
                name: _started(self.settings, declared, declared.views[name], run) for name, run in ids().items()
            }
        except Exception as error:  # noqa: BLE001 (lineage is told beside the work, and never in its way)
            self.tell(f"no lineage events are sent: {_line(error)}")
            return
        if self.started:
            self._sender = Sender(self.settings.lineage)

    def proved(self, proofs: Sequence[Proof]) -> None:
        """Takes what the proofs have found."""
        for each in proofs:
            compared = Finding("proof", "proof", each.differing, blocks=False, of=f"{each.cells} cells")
            self._tests.setdefault(each.view, []).append(compared)

    def checked(self, verdicts: Sequence[Verdict]) -> None:
        """Takes what the checks have found."""
        for each in verdicts:
            found = Finding(each.check, "check", each.failing, each.blocks, of=each.counts)
            self._tests.setdefault(each.view, []).append(found)

    def held(self, views: Iterable[str]) -> None:
        """These views were computed and are not read."""
        self._held = frozenset(views)

    def end(self, error: BaseException | None = None) -> None:
        """Ends all runs that have begun."""
        if self._sender is None:
            return
        for view, began in self.started.items():
            why = _line(error) if error is not None else "it is held back" if view in self._held else ""
            tests = tuple(self._tests.get(view, ()))
            now = datetime.now(UTC)
            self._sender.send([replace(began, at=now, type="FAIL" if why else "COMPLETE", error=why, tests=tests)])
        self.close()

    def close(self) -> None:
        """Waits a little until all that has been left to the thread is sent."""
        if self._sender is not None and (problem := self._sender.close()):
            self.tell(f"lineage events were not sent: {problem}")


def new_ids(views: Iterable[str]) -> dict[str, str]:
    """An id of a run for each of these views, which nobody has had before."""
    return {view: str(uuid.uuid4()) for view in views}


def ids_of(postgres: str, rebuild: int, views: Iterable[str]) -> dict[str, str]:
    """The ids of the runs of a rebuild's views, the same in every process, whoever it logs in as.

    >>> ids_of("postgresql://me@db/lamina", 7, ["v"]) == ids_of("postgresql://you:secret@db:5432/lamina", 7, ["v"])
    True
    """
    return {view: str(uuid.uuid5(_OURS, "/".join([*_place(postgres), str(rebuild), view]))) for view in views}


_OURS = uuid.uuid5(uuid.NAMESPACE_URL, "lamina://rebuilds")


@contextmanager
def runs(settings: Settings, tell: Callable[[str], None]) -> Iterator[Runs]:
    """The runs of one command: ended well with the block, or with what it raises."""
    begun = Runs(settings, tell)
    try:
        yield begun
    except BaseException as error:
        begun.end(error)
        raise
    begun.end()


class Sender:
    """Sends events in their order, in a thread that the process does not wait for; stops at the first that fails."""

    def __init__(self, receiver: LineageReceiver) -> None:
        self._receiver = receiver
        self._waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
        self._thread.start()

    def send(self, events: Iterable[Event]) -> None:
        """Leaves events to the thread."""
        for each in events:
            self._waiting.put(each)

    def close(self) -> str:
        """Waits a little for the last events; what went wrong in a line, or nothing."""
        self._waiting.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            return f"{self._receiver.shown} did not take them in time"
        return self._problem

    def _run(self) -> None:
        try:
            client = _client(self._receiver)
            while (event := self._waiting.get()) is not None:
                client.emit(_as_openlineage(event, self._receiver.namespace))
            client.close()
        except ModuleNotFoundError as error:
            self._problem = f"{error}; OpenLineage's client comes with `pip install 'lamina[lineage]'`"
        except Exception as error:  # noqa: BLE001 (told at the end; lineage never fails a command)
            self._problem = f"{self._receiver.shown}: {_line(error)}"


def _client(receiver: LineageReceiver) -> OpenLineageClient:
    from openlineage.client import OpenLineageClient

    if receiver.url is None:
        return OpenLineageClient()
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    given: dict[str, Any] = {"url": receiver.url, "endpoint": receiver.endpoint, "timeout": TIMEOUT}
    if receiver.api_key is not None:
        given["auth"] = {"type": "api_key", "apiKey": receiver.api_key}
    return OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict({**given, "retry": {"total": 0}})))


def _as_openlineage(event: Event, namespace: str) -> Any:
    from openlineage.client import event_v2, facet_v2
    from openlineage.client.generated.test_run import TestExecution, TestRunFacet

    def schema(of: Dataset) -> dict[str, Any]:
        fields = [
            facet_v2.schema_dataset.SchemaDatasetFacetFields(name=name, type=type, description=comment)
            for name, type, comment in of.columns
        ]
        return {"schema": facet_v2.schema_dataset.SchemaDatasetFacet(fields=fields)}

    facets: dict[str, Any] = {}
    if event.error:
        facets["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(event.error, "PYTHON")
    if event.tests:
        tests = [
            TestExecution(
                name=each.name,
                type=each.type,
                status="fail" if each.failing else "pass",
                severity="error" if each.blocks else "warn",
                expected="0",
                actual=str(each.failing),
                description=f"of {each.of}",
            )
            for each in event.tests
        ]
        facets["test"] = TestRunFacet(tests=tests)
    job = {"sql": facet_v2.sql_job.SQLJobFacet(query=event.sql, dialect="spark")}
    return event_v2.RunEvent(
        eventTime=event.at.isoformat(),
        eventType=event_v2.RunState[event.type],
        run=event_v2.Run(runId=event.run, facets=facets),
        job=event_v2.Job(namespace=namespace, name=event.view, facets=dict(job)),
        inputs=[event_v2.InputDataset(each.namespace, each.name, facets=schema(each)) for each in event.inputs],
        outputs=[event_v2.OutputDataset(event.output.namespace, event.output.name, facets=schema(event.output))],
        producer=PRODUCER,
    )


def _started(settings: Settings, catalog: Catalog, view: View, run: str) -> Event:
    """The first event of a view's run. Its inputs: the views that it reads, and the topics it reads directly."""
    through = {source for name in view.reads for source in catalog.views[name].sources}
    topics = [source for source in view.sources if source not in through or source in view.fed_by]
    inputs = [_topic(settings, catalog, name) for name in topics]
    inputs += [_served(settings, catalog.views[name]) for name in view.reads]
    output = _served(settings, view)
    return Event(datetime.now(UTC), "START", run, view.name, view.select, tuple(inputs), output)


def _topic(settings: Settings, catalog: Catalog, name: str) -> Dataset:
    source = catalog.sources[name]
    columns = tuple((each.name, each.spark, each.comment) for each in source.columns)
    return Dataset(f"kafka://{settings.kafka.partition(',')[0]}", source.topic, columns)


def _served(settings: Settings, view: View) -> Dataset:
    server, database = _place(settings.postgres)
    columns = tuple((each.name, each.postgres, each.comment) for each in view.columns)
    return Dataset(server, f"{database}.analytics.{view.name}", columns)


def _place(postgres: str) -> tuple[str, str]:
    at = urlsplit(postgres)
    return f"postgres://{at.hostname}:{at.port or 5432}", at.path.strip("/")


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
