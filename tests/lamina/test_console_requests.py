"""The requests that a console refuses, cuts short or cancels."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lamina.console.request_guards import token_for
from serving_layer.readers import analyst
from tests.fix_lamina import Deployed
from tests.lamina.browsers.console_client import CLICKS, console, texts

SLEEPS = "SELECT pg_sleep(25) FROM generate_series(1, 1)"


def test_requests_from_other_sites_are_refused(deployed: Deployed) -> None:
    with console(deployed.deployment) as browser:
        for host in ("rebound.example", f"rebound.example:{browser.port}", "127.0.0.1.rebound.example", "["):
            browser("/", 403, Host=host)
        for host in ("localhost", f"127.0.0.1:{browser.port}", "[::1]:80"):
            browser("/", Host=host)
        for origin in ("http://rebound.example", "null", "http://127.0.0.1:1"):
            assert "another site" in browser.post("SELECT 1", 403, Origin=origin)
        for mode, status in (("no-cors", 403), ("navigate", 200)):
            browser("/", status, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode})
        browser.post("SELECT 1 AS one")
        assert "longer than 200,000 bytes" in browser.post("x" * 300_000, 413)
        assert "only reads" in browser.delete("/sql", 405)
    with console(deployed.deployment, names=["Lamina.Example.org"]) as browser:
        browser("/", Host="lamina.example.org")
        browser("/", Host="LAMINA.EXAMPLE.ORG:443")


def test_a_token_is_private_and_required_on_a_network_or_behind_a_proxy(tmp_path: Path) -> None:
    assert token_for("::1", [], tmp_path) is None
    token = token_for("0.0.0.0", [], tmp_path)
    assert token is not None
    assert token == token_for("127.0.0.1", ["lamina.example.org"], tmp_path), "the token is kept"
    assert (tmp_path / "console.token").stat().st_mode & 0o077 == 0


def test_a_console_with_a_token_answers_only_requests_that_carry_it(deployed: Deployed) -> None:
    token = "a-token-of-this-test"
    with console(deployed.deployment, token=token) as browser:
        for path in ("/", "/sql", "/metrics", "/stream", "/?token=", f"/?token={token}x"):
            assert "token included" in browser(path, 401)
        browser("/", 401, Cookie=f"lamina_console_{browser.port}=")
        browser("/", 401, Cookie=f"lamina_console_1={token}")
        browser.post("SELECT 1 AS one", 401)
        browser(f"/sql?token={token}", 303)
        browser("/sql", Cookie=f"lamina_console_{browser.port}={token}")
        assert "lamina_postgres_up" in browser("/metrics", Authorization=f"Bearer {token}")
        browser("/static/icon.svg")


def test_a_large_answer_is_cut_to_the_size_of_a_page(deployed: Deployed) -> None:
    with console(deployed.deployment) as browser:
        page = browser.post("SELECT repeat('x', 300000) AS x FROM generate_series(1, 50)")
    assert len(page) < 2_500_000
    assert "and there are more" in texts(page)


def test_a_slow_answer_is_cancelled(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.apply(clicks=CLICKS)
    with console(deployed.deployment) as browser:
        limit = browser.post("SELECT current_setting('statement_timeout') AS limit")
        assert "30s" in texts(limit)
        monkeypatch.setattr(analyst, "ANSWER_SECONDS", 0.001)
        for path in ("/view/pages/receipt", "/view/pages/cost"):
            assert "statement timeout" in browser(path, 503)


def _sleeps(deployed: Deployed) -> bool:
    sleeping = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    return bool(deployed.rows(sleeping))


def test_a_select_ends_when_its_browser_disconnects(deployed: Deployed) -> None:
    with console(deployed.deployment) as browser:
        connection = browser.asking(SLEEPS)
        deployed.until(lambda: _sleeps(deployed), "the SELECT runs")
        began = time.monotonic()
        connection.close()
        deployed.until(lambda: not _sleeps(deployed), "it has ended with its reader")
        assert time.monotonic() < began + 20


def test_a_select_ends_when_the_console_stops(deployed: Deployed) -> None:
    with console(deployed.deployment) as browser:
        connection = browser.asking(SLEEPS)
        deployed.until(lambda: _sleeps(deployed), "the SELECT runs")
        began = time.monotonic()
    assert time.monotonic() < began + 20, "the console waits for no SELECT"
    deployed.until(lambda: not _sleeps(deployed), "it has ended with the console")
    connection.close()
