"""Open pages are updated every second, at the cost of one page, and name each service that is missing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from sqlalchemy import event

from lamina.console import routes
from lamina.operations.deployment import Deployment
from tests.fix_lamina import Deployed
from tests.lamina.browsers.console_client import CLICKS, console, texts

SOON = 15.0
"""Seconds within which an open page shows a change. It takes 5 at most, on a machine that never stands still."""


def test_a_hundred_open_pages_cost_one_statement_a_second(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.apply(clicks=CLICKS)
    monkeypatch.setattr(routes, "MOST_STREAMS", 100)
    asked: list[str] = []
    engine = deployed.deployment.database.engine
    event.listen(engine, "before_cursor_execute", lambda *arguments: asked.append(arguments[2]))
    began = time.monotonic()
    with console(deployed.deployment) as browser, ExitStack() as open_pages:
        streams = [open_pages.enter_context(browser.events()) for _ in range(100)]
        for _ in range(3):
            for stream in streams:
                assert next(text for name, text in stream if name == "state")
        assert "100 pages are open" in texts(browser("/"))
        assert "100 pages are open" in browser("/stream", 503)
    seconds = time.monotonic() - began
    overviews = [statement for statement in asked if "'heard_age'" in statement]
    assert 2 <= len(overviews) <= seconds + 3


def test_a_missing_speed_layer_is_named_until_one_runs(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    with console(deployed.deployment) as browser:
        assert browser.until("state", "None runs for clicks") < SOON
        with deployed.speed():
            browser.until("state", "is gone", present=False)
            assert browser.until("gone", "The speed layer", present=False) < SOON
            deployed.until(lambda: len(deployed.owner("SELECT FROM lamina.freshness_history")) > 0, "a minute is kept")
        assert browser.until("state", "None runs for clicks") < SOON


def test_a_silent_speed_layer_is_named_until_it_commits(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    deployed.owner(
        "UPDATE lamina.query SET writer = 'process 1 on a', writer_kind = 'speed layer', committed_at = NULL"
    )
    silent = """
        INSERT INTO lamina.heartbeat VALUES ('clicks', now() - interval '{}')
        ON CONFLICT (query) DO UPDATE SET heard_at = excluded.heard_at
    """
    with console(deployed.deployment) as browser:
        deployed.owner(silent.format("6 s"))
        assert browser.until("state", "It may pause") < SOON
        deployed.owner(silent.format("31 s"))
        assert browser.until("state", "Start it again") < SOON
        deployed.owner("UPDATE lamina.query SET committed_at = now() + interval '1 h'")
        browser.until("state", "was last heard of", present=False)


@pytest.fixture
def hanging_address() -> Iterator[str]:
    """The address of a server that accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_an_unreachable_postgres_is_named(deployed: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    settings = replace(deployed.deployment.settings, postgres="postgresql://nobody:x@127.0.0.1:1/x")
    with closing(Deployment(settings, tell=lambda line: None)) as opened:
        assert_named(opened, caplog, "Postgres is gone", "Unknown: Postgres does not answer.")


def test_an_unreachable_kafka_is_named(deployed: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    deployed.apply(clicks=CLICKS)
    settings = replace(deployed.deployment.settings, kafka="127.0.0.1:1")
    with closing(Deployment(settings, tell=lambda line: None)) as opened:
        assert_named(opened, caplog, "Kafka is gone", "What needs attention")


def test_a_hanging_kafka_is_named(deployed: Deployed, caplog: pytest.LogCaptureFixture, hanging_address: str) -> None:
    deployed.apply(clicks=CLICKS)
    settings = replace(deployed.deployment.settings, kafka=hanging_address)
    with closing(Deployment(settings, tell=lambda line: None)) as opened:
        assert_named(opened, caplog, "Kafka is gone.", "Unknown: Kafka does not answer.")


def assert_named(opened: Deployment, caplog: pytest.LogCaptureFixture, says: str, attention: str) -> None:
    """The console of a deployment without a server soon shows which one is gone, and logs it once."""
    with console(opened) as browser:
        assert browser.until("state", says) < SOON
        page = texts(browser("/"))
        assert "Start it" in page
        assert attention in page
        browser.until("state", "<time")
        logged = [record.getMessage() for record in caplog.records if record.name == "lamina.console"]
        assert sum(says in line for line in logged) == 1, "a line per outage"
