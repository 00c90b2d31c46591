"""OpenLineage events of `apply` and of rebuilds: the SQL, inputs, output, time and outcome of each view's run.

Each view that is computed or deployed has its own run: START, then COMPLETE or FAIL. A view's run in a rebuild has the
same id in every process that works on it. A thread sends the events. A receiver that is down or slow costs a line of
narration and `PATIENCE` seconds at the end, but no command fails because of it. Without a configured receiver,
OpenLineage's client is not even imported.
"""

from __future__ import annotations

import queue
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from lamina import __version__
from lamina.configuration.settings import LineageReceiver, Settings
from lamina.operations.daemon_threads import in_daemon_thread
from serving_layer.change.view_checks import Verdict
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
    """A topic or an analyst's view, by OpenLineage's naming. A column is a name, a type and a comment."""

    namespace: str
    name: str
    columns: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True)
class Finding:
    """The outcome of a proof or a check of a view: how many of `of` fail."""

    name: str
    type: Literal["proof", "check"]
    failing: int
    blocks: bool
    of: str


@dataclass(frozen=True)
class ViewEvent:
    """One event of a view's run. `error` is the reason of a failure, `tests` are its proof and its checks."""

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
class LineageRuns:
    """The runs of the views of one command. Without a configured receiver, every method does nothing."""

    settings: Settings
    tell: Callable[[str], None]
    started: dict[str, ViewEvent] = field(default_factory=dict)
    _tests: dict[str, list[Finding]] = field(default_factory=dict)
    _held: frozenset[str] = frozenset()
    _sender: Sender | None = None

    def start(self, catalog: Callable[[], Catalog], ids: Callable[[], Mapping[str, str]]) -> None:
        """Begins a run for each of these views, with its id."""
        self.resume(catalog, ids)
        if self._sender is not None:
            self._sender.send(self.started.values())

    def resume(self, catalog: Callable[[], Catalog], ids: Callable[[], Mapping[str, str]]) -> None:
        """Resumes runs that another process has begun.

        An error in reading them is narrated and fails nothing.
        """
        if self.settings.lineage is None:
            return
        try:
            declared = catalog()
            self.started = {
                name: _first_event(self.settings, declared, declared.views[name], run) for name, run in ids().items()
            }
        except Exception as error:  # noqa: BLE001 (lineage never fails a command)
            self.tell(f"no lineage events are sent: {_first_line(error)}")
            return
        if self.started:
            self._sender = Sender(self.settings.lineage)

    def add_proofs(self, proofs: Sequence[Proof]) -> None:
        """Adds the results of proofs."""
        for proof in proofs:
            compared = Finding("proof", "proof", proof.differing, blocks=False, of=f"{proof.cells} cells")
            self._tests.setdefault(proof.view, []).append(compared)

    def add_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Adds the results of checks."""
        for verdict in verdicts:
            finding = Finding(verdict.check, "check", verdict.failing, verdict.blocks, of=verdict.counts)
            self._tests.setdefault(verdict.view, []).append(finding)

    def mark_held(self, views: Iterable[str]) -> None:
        """Marks views that were computed but not handed over."""
        self._held = frozenset(views)

    def end(self, error: BaseException | None = None) -> None:
        """Ends all runs that have begun."""
        if self._sender is None:
            return
        for view, began in self.started.items():
            why = _first_line(error) if error is not None else "it is held back" if view in self._held else ""
            tests = tuple(self._tests.get(view, ()))
            now = datetime.now(UTC)
            self._sender.send([replace(began, at=now, type="FAIL" if why else "COMPLETE", error=why, tests=tests)])
        self.close()

    def close(self) -> None:
        """Waits up to `PATIENCE` seconds until the thread has sent everything."""
        if self._sender is not None and (problem := self._sender.close()):
            self.tell(f"lineage events were not sent: {problem}")


def new_ids(views: Iterable[str]) -> dict[str, str]:
    """A new run id for each of these views."""
    return {view: str(uuid.uuid4()) for view in views}


def ids_of(postgres: str, rebuild: int, views: Iterable[str]) -> dict[str, str]:
    """The run ids of a rebuild's views, the same in every process, whatever login it uses.

    >>> ids_of("postgresql://me@db/lamina", 7, ["v"]) == ids_of("postgresql://you:secret@db:5432/lamina", 7, ["v"])
    True
    """
    return {view: str(uuid.uuid5(_OURS, "/".join([*_place(postgres), str(rebuild), view]))) for view in views}


_OURS = uuid.uuid5(uuid.NAMESPACE_URL, "lamina://rebuilds")


@contextmanager
def runs(settings: Settings, tell: Callable[[str], None]) -> Iterator[LineageRuns]:
    """The runs of one command. They end with the block: COMPLETE, or FAIL with its exception."""
    of_command = LineageRuns(settings, tell)
    try:
        yield of_command
    except BaseException as error:
        of_command.end(error)
        raise
    of_command.end()


class Sender:
    """Sends events in order, in a thread that the process does not wait for. Stops at the first failure."""

    def __init__(self, receiver: LineageReceiver) -> None:
        self._receiver = receiver
        self._waiting: queue.SimpleQueue[ViewEvent | None] = queue.SimpleQueue()
        self._problem = in_daemon_thread("lineage", self._run)

    def send(self, events: Iterable[ViewEvent]) -> None:
        """Hands events to the thread."""
        for event in events:
            self._waiting.put(event)

    def close(self) -> str:
        """Waits up to `PATIENCE` seconds for the last events. Returns the problem in one line, or an empty text."""
        self._waiting.put(None)
        try:
            return self._problem.result(PATIENCE)
        except TimeoutError:
            return f"{self._receiver.shown} did not take them in time"

    def _run(self) -> str:
        """Sends the events. Returns the problem that ended it, or an empty text."""
        try:
            client = _client(self._receiver)
            while (event := self._waiting.get()) is not None:
                client.emit(_as_openlineage(event, self._receiver.namespace))
            client.close()
        except ModuleNotFoundError as error:
            return f"{error}; OpenLineage's client comes with `pip install 'lamina[lineage]'`"
        except Exception as error:  # noqa: BLE001 (reported at the end, lineage never fails a command)
            return f"{self._receiver.shown}: {_first_line(error)}"
        return ""


def _client(receiver: LineageReceiver) -> OpenLineageClient:
    from openlineage.client import OpenLineageClient

    if receiver.url is None:
        return OpenLineageClient()
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    options: dict[str, Any] = {"url": receiver.url, "endpoint": receiver.endpoint, "timeout": TIMEOUT}
    if receiver.api_key is not None:
        options["auth"] = {"type": "api_key", "apiKey": receiver.api_key}
    return OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict({**options, "retry": {"total": 0}})))


def _as_openlineage(event: ViewEvent, namespace: str) -> Any:
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
                name=finding.name,
                type=finding.type,
                status="fail" if finding.failing else "pass",
                severity="error" if finding.blocks else "warn",
                expected="0",
                actual=str(finding.failing),
                description=f"of {finding.of}",
            )
            for finding in event.tests
        ]
        facets["test"] = TestRunFacet(tests=tests)
    job = {"sql": facet_v2.sql_job.SQLJobFacet(query=event.sql, dialect="spark")}
    return event_v2.RunEvent(
        eventTime=event.at.isoformat(),
        eventType=event_v2.RunState[event.type],
        run=event_v2.Run(runId=event.run, facets=facets),
        job=event_v2.Job(namespace=namespace, name=event.view, facets=dict(job)),
        inputs=[
            event_v2.InputDataset(dataset.namespace, dataset.name, facets=schema(dataset)) for dataset in event.inputs
        ],
        outputs=[event_v2.OutputDataset(event.output.namespace, event.output.name, facets=schema(event.output))],
        producer=PRODUCER,
    )


def _first_event(settings: Settings, catalog: Catalog, view: View, run: str) -> ViewEvent:
    """The first event of a view's run. Its inputs are the views that it reads and the topics that it reads directly."""
    through = {source for name in view.reads for source in catalog.views[name].sources}
    topics = [source for source in view.sources if source not in through or source in view.fed_by]
    inputs = [_topic(settings, catalog, name) for name in topics]
    inputs += [_served(settings, catalog.views[name]) for name in view.reads]
    output = _served(settings, view)
    return ViewEvent(datetime.now(UTC), "START", run, view.name, view.select, tuple(inputs), output)


def _topic(settings: Settings, catalog: Catalog, name: str) -> Dataset:
    source = catalog.sources[name]
    columns = tuple((column.name, column.spark, column.comment) for column in source.columns)
    return Dataset(f"kafka://{settings.kafka.partition(',')[0]}", source.topic, columns)


def _served(settings: Settings, view: View) -> Dataset:
    server, database = _place(settings.postgres)
    columns = tuple((column.name, column.postgres, column.comment) for column in view.columns)
    return Dataset(server, f"{database}.analytics.{view.name}", columns)


def _place(postgres: str) -> tuple[str, str]:
    at = urlsplit(postgres)
    return f"postgres://{at.hostname}:{at.port or 5432}", at.path.strip("/")


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
