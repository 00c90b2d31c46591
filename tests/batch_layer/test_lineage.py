"""A receiver gets OpenLineage events of every apply and rebuild, and these lose nothing if there is no receiver."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lamina.configuration.settings import LineageReceiver
from lamina.operations import rebuild_steps
from lamina.operations.lineage_events import PATIENCE
from serving_layer.promise.rebuilds import Scheduler
from tests.fix_catalogs import EVENTS, HOURLY, PLACES, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed

LARGEST = TOTALS.replace("FROM events", ", max(n) AS largest FROM events")
FAILING = "ALTER VIEW totals ADD CONSTRAINT few CHECK (events < 3);"


@dataclass
class Receiver:
    """An HTTP server that keeps every event that it receives."""

    url: str
    events: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)

    def taken(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/api/v1/lineage"
            receiver.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            receiver.keys.add(self.headers["Authorization"])
            self.send_response(201)
            self.end_headers()

        def log_message(self, *of: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send_to(deployed: Deployed, url: str) -> list[str]:
    """Makes a deployment send its events to this address. Returns the list of its narration."""
    narration: list[str] = []
    receiver = LineageReceiver.read({"OPENLINEAGE_URL": url, "OPENLINEAGE_API_KEY": "secret"})
    deployed.deployment.settings = replace(deployed.deployment.settings, lineage=receiver)
    deployed.deployment.tell = narration.append
    return narration


def kinds(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((event["job"]["name"], event["eventType"]) for event in events)


def test_a_receiver_gets_an_event_of_every_view_that_an_apply_or_a_rebuild_computes(deployed: Deployed) -> None:
    with receiving() as receiver:
        narration = send_to(deployed, receiver.url)
        deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY, places=PLACES)
        views = ("hourly", "places", "totals")
        first = receiver.taken()
        assert kinds(first) == sorted((view, type) for view in views for type in ("START", "COMPLETE"))
        assert len({event["run"]["runId"] for event in first}) == 3
        by_view = {event["job"]["name"]: event for event in first if event["eventType"] == "COMPLETE"}
        database = deployed.prefix
        [topic] = by_view["totals"]["inputs"]
        assert topic["name"] == deployed.topic("events")
        assert topic["namespace"] == f"kafka://{deployed.deployment.settings.kafka}"
        assert f"{database}.analytics.hourly" in {table["name"] for table in by_view["places"]["inputs"]}
        [output] = by_view["totals"]["outputs"]
        assert output["name"] == f"{database}.analytics.totals"
        assert output["namespace"].startswith("postgres://")
        assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["events", "n", "price"]
        assert by_view["totals"]["job"]["facets"]["sql"]["query"].startswith("SELECT count(*) AS events")
        assert receiver.keys == {"Bearer secret"}

        deployed.apply()
        assert receiver.taken() == [], "nothing had to be computed"

        deployed.send("events", *(event(n) for n in range(20)))
        deployed.catch_up()
        rebuild_steps.rebuild(deployed.deployment, ["totals"])
        rebuilt = receiver.taken()
        assert kinds(rebuilt) == [("totals", "COMPLETE"), ("totals", "START")]
        [proof] = next(event for event in rebuilt if event["eventType"] == "COMPLETE")["run"]["facets"]["test"]["tests"]
        assert (proof["name"], proof["status"], proof["actual"], proof["description"]) == (
            "proof",
            "pass",
            "0",
            "of 1 cells",
        )

        def die(place: str) -> None:
            if place == "after archive":
                raise RuntimeError("no power\nat all")

        deployed.deployment.at = die
        with pytest.raises(RuntimeError, match="no power"):
            deployed.apply(totals=LARGEST)
        deployed.deployment.at = lambda _: None
        failed = receiver.taken()
        assert kinds(failed) == [("totals", "FAIL"), ("totals", "START")]
        assert failed[-1]["run"]["facets"]["errorMessage"]["message"] == "no power"
        assert failed[0]["run"]["runId"] == failed[1]["run"]["runId"]

        deployed.apply(totals=TOTALS + FAILING)
        receiver.taken()
        rebuild_steps.rebuild(deployed.deployment, ["totals"])
        held = receiver.taken()[-1]
        assert (held["eventType"], held["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", "it is held back")
        tests = {test["name"]: test["status"] for test in held["run"]["facets"]["test"]["tests"]}
        assert tests == {"proof": "pass", "few": "fail"}
        assert [line for line in narration if "lineage" in line] == []


def test_a_schedulers_separate_steps_are_reported_as_one_run(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS + FAILING, hourly=HOURLY)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    with receiving() as receiver:
        narration = send_to(deployed, receiver.url)
        opened, batch = deployed.deployment, deployed.deployment.batch
        id = rebuild_steps.seal(opened, ["totals", "hourly"], leap=False, by=Scheduler("tonight"))
        begun = receiver.taken()
        assert kinds(begun) == [("hourly", "START"), ("totals", "START")]
        batch.archive(id)
        for view in ("totals", "hourly"):
            batch.compute(id, view)
        batch.go_live(id)
        batch.prove(id)
        batch.check(id)
        assert receiver.taken() == []

        assert rebuild_steps.hand_over(opened, id, anyway=False) == ["totals"]
        ended = receiver.taken()
        assert kinds(ended) == [("hourly", "COMPLETE"), ("totals", "FAIL")]
        assert runs_of(ended) == runs_of(begun)
        held = next(event["run"]["facets"] for event in ended if event["job"]["name"] == "totals")
        assert held["errorMessage"]["message"] == "it is held back"
        assert {test["name"]: test["status"] for test in held["test"]["tests"]} == {"proof": "pass", "few": "fail"}

        rebuild_steps.hand_over(opened, id, anyway=True)
        assert kinds(receiver.taken()) == [("hourly", "COMPLETE"), ("totals", "COMPLETE")]
        batch.retire(id)

        id = rebuild_steps.seal(opened, ["totals"], leap=False, by=Scheduler("tomorrow"))
        rebuild_steps.abandon(opened, id)
        start, failed = receiver.taken()
        assert failed["run"]["facets"]["errorMessage"]["message"] == "it was given up"
        assert runs_of([start]) == runs_of([failed]) != {"totals": runs_of(begun)["totals"]}
        assert [line for line in narration if "lineage" in line] == []


def runs_of(events: list[dict[str, Any]]) -> dict[str, str]:
    return {event["job"]["name"]: event["run"]["runId"] for event in events}


def test_an_absent_or_silent_receiver_costs_one_line(deployed: Deployed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        port = silent.getsockname()[1]
        narration = send_to(deployed, f"http://127.0.0.1:{port}")
        began = time.monotonic()
        deployed.apply(events=EVENTS, totals=TOTALS)
        assert time.monotonic() - began < PATIENCE + 10
        [line] = [line for line in narration if "lineage" in line]
        assert line == f"lineage events were not sent: http://127.0.0.1:{port} did not take them in time"
    narration = send_to(deployed, f"http://somebody:secret@127.0.0.1:{port}")
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    [proof] = rebuild_steps.rebuild(deployed.deployment)
    assert (proof.view, proof.differing) == ("totals", 0)
    [line] = [line for line in narration if "lineage" in line]
    assert "Connection refused" in line
    assert "secret" not in line


def test_without_a_receiver_openlineage_is_not_imported(
    deployed: Deployed, lamina: CommandLine, tmp_path: Path
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    for name, sql in deployed.files.items():
        (catalog / name).write_text(sql)
    (catalog / "totals.sql").write_text(TOTALS.replace("SELECT", "SELECT 1 AS one,"))

    def imported(**environment: str) -> bool:
        command = lamina.start_program(
            "-X", "importtime", "-m", "lamina", "apply", "--catalog", "catalog", "--allow-break", **environment
        )
        _, stderr = command.communicate(timeout=300)
        assert command.returncode == 0, stderr[-2000:]
        return "openlineage" in stderr

    assert not imported()
    (catalog / "totals.sql").write_text(TOTALS)
    with receiving() as receiver:
        assert imported(OPENLINEAGE_URL=receiver.url)
        assert kinds(receiver.taken()) == [("totals", "COMPLETE"), ("totals", "START")]
        (catalog / "totals.sql").write_text(TOTALS.replace("SELECT", "SELECT 1 AS one,"))
        assert not imported(OPENLINEAGE_URL=receiver.url, OPENLINEAGE_DISABLED="true")
        assert receiver.taken() == []
