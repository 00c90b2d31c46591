"""The master log on a real S3 server, behind a real proxy that delays, limits or drops requests."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.configuration.settings import Settings
from lamina.services.s3 import Store
from master_log import stores
from master_log.archive_runs import ArchiveRun, maintain
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import Offsets
from tests.fix_catalogs import EVENTS, HOURLY, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.fix_services import Services
from tests.fix_sources import NewSource
from tests.lent_spark import sibling
from tests.master_log.logs import fill, ids, opened
from view_algebra.errors import LaminaError

SOON = {"s3.retry.num-retries": "1", "s3.retry.min-wait-ms": "20", "s3.retry.max-wait-ms": "50"}
"""Gives up at once. Iceberg's default waits for seconds."""


@dataclass
class Door:
    """A proxy in front of the store. refuses: by method, the status that a request gets instead of an answer."""

    server: ThreadingHTTPServer
    refuses: Callable[[str], int | None] = lambda _: None

    @property
    def endpoint(self) -> Mapping[str, str]:
        return {"s3.endpoint": f"http://127.0.0.1:{self.server.server_port}"}


@pytest.fixture
def door(store: Store) -> Iterator[Door]:
    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status = before.refuses(self.command)
            if status is not None:
                self.respond(status, [("content-type", "application/xml")], b"<Error><Code>SlowDown</Code></Error>")
                return
            behind = http.client.HTTPConnection("127.0.0.1", store.port, timeout=30)
            behind.request(self.command, self.path, body, dict(self.headers.items()))
            answer = behind.getresponse()
            kept = [(name, value) for name, value in answer.getheaders() if name.lower() != "transfer-encoding"]
            self.respond(answer.status, kept, answer.read())
            behind.close()

        def respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815 (names of http.server)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    before = Door(server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield before
    server.shutdown()
    server.server_close()


@pytest.fixture
def settings(settings: Settings, store: Store) -> Settings:
    """The test's own settings, with the warehouse in the store."""
    name = settings.postgres.rpartition("/")[2]
    return replace(settings, warehouse=f"{store.warehouse}/{name}", warehouse_options=store.options | SOON)


@pytest.fixture
def files(settings: Settings, services: Services) -> Path:
    """The store's folder for the warehouse."""
    return services.embedded.home / "s3" / "data" / settings.warehouse.removeprefix("s3://")


@pytest.fixture
def java_property(spark_of_run: SparkSession) -> Iterator[Callable[[str, str], object]]:
    """Sets a property of the JVM for one test."""
    system, names = spark_of_run._jvm.java.lang.System, list[str]()  # type: ignore[union-attr]

    def put(name: str, value: str) -> None:
        names.append(name)
        system.setProperty(name, value)

    yield put
    for name in names:
        system.clearProperty(name)


def elsewhere(spark: SparkSession, settings: Settings, *without: str, **changed: object) -> MasterLog:
    """The same log, opened with other options."""
    options = changed.pop("options", {})
    assert isinstance(options, Mapping)
    kept = {name: value for name, value in {**settings.warehouse_options, **options}.items() if name not in without}
    return MasterLog(sibling(spark, replace(settings, warehouse_options=kept, **changed)))  # type: ignore[arg-type]


def listed(files: Path) -> set[str]:
    return {str(path.relative_to(files)) for path in files.rglob("*") if path.is_file()}


def test_views_are_rebuilt_from_object_storage_and_checked(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY, totals=TOTALS)
    batch, source = deployed.deployment.batch, deployed.deployment.deployed().sources["events"]
    large = Random(7).randbytes
    for first in (0, 100):
        sent = [
            {**event(n), "country": large(400_000).hex() if n == first else "FR"} for n in range(first, first + 100)
        ]
        deployed.send("events", *sent)
        batch.logs.archive(source, deployed.deployment.brokers.latest(source.topic))
    deployed.catch_up()
    monkeypatch.setattr(stores, "SKEW_MS", 0)
    assert batch.logs.maintain(source, datetime.now(UTC)).expired > 0
    assert {proof.differing for proof in batch.rebuild()} == {0}
    assert one(deployed.rows("SELECT events FROM totals")) == (200,)
    deployed.check()


def test_an_archive_run_may_lose_the_store_at_any_write(
    spark_of_run: SparkSession,
    settings: Settings,
    door: Door,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    log = elsewhere(spark_of_run, settings, options=door.endpoint)
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(10))
    ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 5}))
    end, lost = brokers.latest(source.topic), 0
    while True:
        left = lost

        def refuses(method: str) -> int | None:
            nonlocal left
            if method == "PUT":
                left -= 1
            return 500 if left < 0 else None

        door.refuses = refuses
        try:
            archived = ArchiveRun(log, source, brokers).archive(end)
            break
        except LaminaError as error:
            refused = error
        assert "object storage" in refused.what
        assert "nothing was changed" in refused.way_out
        door.refuses = lambda _: None
        assert log.held(source) == Offsets.of(source.topic, {0: 5})
        assert ids(log.records_below(source, log.held(source))) == list(range(5))
        lost += 1
    assert lost > 4, "data, manifest, list, metadata of the branch, of the append and of the table"
    door.refuses = lambda _: None
    assert (archived.records, log.held(source)) == (5, end)
    assert ids(log.records_below(source, end)) == list(range(10))


def test_a_request_to_an_overloaded_store_is_repeated(
    spark_of_run: SparkSession,
    settings: Settings,
    files: Path,
    door: Door,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    def refuses(_: str) -> int | None:
        nonlocal asked
        asked += 1
        return 503 if asked % 3 == 0 else None

    door.refuses = refuses
    log = elsewhere(spark_of_run, settings, options={**door.endpoint, "s3.retry.num-retries": "5"})
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(5))
    for end in range(1, 6):
        assert ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: end})).records == 1
    monkeypatch.setattr(stores, "SKEW_MS", 0)
    before = listed(files)
    kept = maintain(log, source, datetime.now(UTC))
    assert kept.compacted == 5
    assert 5 < len(before - listed(files)) <= kept.removed
    assert ids(log.records_below(source, log.held(source))) == list(range(5))
    assert asked > 100


def test_a_store_that_cannot_be_reached_is_explained_and_nothing_is_lost(
    spark_of_run: SparkSession,
    settings: Settings,
    door: Door,
    java_property: Callable[[str, str], object],
    log: MasterLog,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(5))
    end = brokers.latest(source.topic)
    door.refuses = lambda _: 503
    java_property("aws.disableEc2Metadata", "true")
    keys = ("s3.access-key-id", "s3.secret-access-key")
    cases = (
        (elsewhere(spark_of_run, settings, warehouse="s3://nowhere/w"), "the bucket of the warehouse does not exist"),
        (elsewhere(spark_of_run, settings, options={keys[0]: "another"}), "refuses the keys"),
        (elsewhere(spark_of_run, settings, options={keys[1]: "another"}), "refuses the keys"),
        (elsewhere(spark_of_run, settings, *keys), "refuses the keys"),
        (elsewhere(spark_of_run, settings, "client.region"), "has no region"),
        (elsewhere(spark_of_run, settings, options=door.endpoint), "is overloaded"),
        (elsewhere(spark_of_run, settings, options={"s3.endpoint": "http://127.0.0.1:1"}), "does not answer"),
        (
            elsewhere(
                spark_of_run,
                settings,
                options={"s3.endpoint": "http://store.invalid", "s3.path-style-access": "false"},
            ),
            "the address of object storage is not known",
        ),
    )
    for other, what in cases:
        for act in (lambda: ArchiveRun(other, source, brokers).archive(end), lambda: other.held(source)):  # noqa: B023
            with pytest.raises(LaminaError, match=what) as raised:
                act()
            assert "\n" not in raised.value.evidence
            assert raised.value.way_out.endswith("and run it again: nothing was changed.")
    assert ArchiveRun(log, source, brokers).archive(end).records == 5
    assert ids(log.records_below(source, end)) == list(range(5))


def test_keys_in_a_file_may_change_without_a_restart(
    spark_of_run: SparkSession,
    settings: Settings,
    store: Store,
    java_property: Callable[[str, str], object],
    tmp_path: Path,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    def write(secret: str) -> None:
        user = store.options["s3.access-key-id"]
        (tmp_path / "keys").write_text(f"[default]\naws_access_key_id = {user}\naws_secret_access_key = {secret}\n")

    right = store.options["s3.secret-access-key"]
    write(right)
    java_property("aws.sharedCredentialsFile", str(tmp_path / "keys"))
    log = elsewhere(spark_of_run, settings, "s3.access-key-id", "s3.secret-access-key")
    source = opened(log, new_source(), brokers)
    fill(producer, source, range(5))
    assert ArchiveRun(log, source, brokers).archive(Offsets.of(source.topic, {0: 3})).records == 3
    write("expired")
    deadline = time.monotonic() + 120

    def archive_until_refused() -> None:
        while time.monotonic() < deadline:  # the client looks at the file again after some seconds
            ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic))
            fill(producer, source, range(2))

    with pytest.raises(LaminaError, match="refuses the keys"):
        archive_until_refused()
    write(right)
    deadline = time.monotonic() + 120
    while True:  # the client looks at the file again after some seconds
        try:
            archived = ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic))
            break
        except LaminaError:
            assert time.monotonic() < deadline
    assert archived.records == 2, "those that were refused"


def test_torn_metadata_in_the_store_are_rolled_back(deployed: Deployed, files: Path) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    opened = deployed.deployment
    source = opened.deployed().sources["events"]
    deployed.send("events", *(event(n) for n in range(10)))
    end = opened.brokers.latest(source.topic)
    assert opened.batch.logs.archive(source, end) == 10
    newest = one(deployed.owner("SELECT metadata_location FROM iceberg.iceberg_tables"))[0]
    name = str(newest).removeprefix(f"{opened.settings.warehouse}/")
    (files / name).write_bytes((files / name).read_bytes()[:-20])
    assert opened.batch.logs.archive(source, end) == 10
    assert opened.log().records_below(source, end).count() == 10


def test_a_log_that_began_in_a_folder_continues_there(
    spark_of_run: SparkSession,
    settings: Settings,
    tmp_path: Path,
    brokers: Brokers,
    new_source: NewSource,
    producer: KafkaProducer,
) -> None:
    before = elsewhere(spark_of_run, settings, warehouse=str(tmp_path / "warehouse"))
    source = opened(before, new_source(), brokers)
    fill(producer, source, range(3))
    ArchiveRun(before, source, brokers).archive(brokers.latest(source.topic))
    log = elsewhere(spark_of_run, settings)
    fill(producer, source, range(3, 6))
    assert ArchiveRun(log, source, brokers).archive(brokers.latest(source.topic)).records == 3
    assert ids(log.records_below(source, log.held(source))) == list(range(6))
    files = set((tmp_path / "warehouse").rglob("*.parquet"))
    maintain(log, source, datetime.now(UTC))
    assert set((tmp_path / "warehouse").rglob("*.parquet")) == files != set()
