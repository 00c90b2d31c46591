"""The console's pages: their contents, their cost, and the requests that they refuse."""

from __future__ import annotations

import http.client
import re
import shlex
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import psutil
import psycopg2
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event

from lamina.console import routes
from lamina.console.request_guards import token_for
from lamina.console.server import Console
from lamina.operations.deployment import Deployment
from lamina.reports import statuses
from lamina.reports.metrics import EVERY
from lamina.services.background import ConsoleProcess
from serving_layer.monitoring import deployment_alarms
from serving_layer.postgres.phases import PHASES
from serving_layer.readers import analyst
from tests.fix_lamina import PATIENCE, Deployed
from tests.lamina.chromium import PROGRAM, chromium

HOSTILE = "<script>alert('x')</script>"

CLICKS = f"""
CREATE TABLE clicks (id BIGINT, page STRING, at TIMESTAMP, UNIQUE (id)) USING kafka
OPTIONS (topic '{{topics}}_clicks', format 'json') TBLPROPERTIES ('partitions' = '1');
CREATE VIEW pages COMMENT "{HOSTILE}" AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
CREATE VIEW many TBLPROPERTIES ('fresh_within' = '1 second') AS SELECT page FROM pages WHERE n > 1;
CREATE VIEW days AS SELECT window(at, '1 day').start AS day, count(*) AS n FROM clicks GROUP BY window(at, '1 day');
"""


@dataclass(frozen=True)
class Browser:
    """Sends requests to a console, with the headers of a browser."""

    port: int

    def __call__(self, path: str, status: int = 200, **headers: str) -> str:
        return self._ask("GET", path, status, None, headers)

    def post(self, query: str, status: int = 200, **headers: str) -> str:
        own_headers = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", "/sql", status, urlencode({"query": query}), {**own_headers, **headers})

    def asking(self, query: str) -> http.client.HTTPConnection:
        """Sends a SELECT. Returns the connection, on which nobody has read the answer yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        own_headers = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sql", urlencode({"query": query}), own_headers)
        return connection

    def delete(self, path: str, status: int) -> str:
        return self._ask("DELETE", path, status, None, {"Origin": f"http://127.0.0.1:{self.port}"})

    def _ask(self, method: str, path: str, status: int, body: str | None, headers: dict[str, str]) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == status, text
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin", "else a browser's form has the origin `null`"
        return text

    @contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, str]]]:
        """The events that an open page receives, as names and texts."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/stream")
        answer = connection.getresponse()

        def read() -> Iterator[tuple[str, str]]:
            name, lines = "", list[str]()
            for line in (line_read.decode().rstrip("\n") for line_read in answer):
                if line.startswith("event: "):
                    name, lines = line.removeprefix("event: "), []
                elif line.startswith("data: "):
                    lines.append(line.removeprefix("data: "))
                elif not line and name:
                    yield name, "\n".join(lines)

        try:
            yield read()
        finally:
            connection.close()

    def until(self, fragment: str, says: str, *, present: bool = True) -> float:
        """Waits until a fragment of an open page contains a text, or no longer contains it. Returns the seconds."""
        began = time.monotonic()
        with self.events() as events:
            for name, text in events:
                if name == fragment and (says in text) == present:
                    return time.monotonic() - began
                assert time.monotonic() < began + PATIENCE, text
        raise AssertionError("the stream has ended")


@contextmanager
def console(opened: Deployment, names: Sequence[str] = (), token: str | None = None) -> Iterator[Browser]:
    served = Console(opened, "127.0.0.1", 0, names, token)
    thread = threading.Thread(target=served.run, name="console")
    thread.start()
    try:
        yield Browser(served.port)
    finally:
        served.stop()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def texts(page: str) -> str:
    """A page without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def part(page: str, tag: str) -> str:
    """The last element of a page with this tag."""
    return page[page.rindex(f"<{tag}") : page.rindex(f"</{tag}>")]


def test_the_pages_show_the_deployment_and_escape_its_texts(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    records = [
        {"id": 1, "page": HOSTILE, "at": "2024-03-01T10:00:00Z"},
        {"id": 2, "page": "shop", "at": "2024-03-02T10:00:00Z", "referer": "x"},
    ]
    deployed.send("clicks", *records, records[0], f'{{"id": "{HOSTILE}"'.encode())
    deployed.catch_up()
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    deployed.owner(
        "INSERT INTO lamina.freshness_history"
        " SELECT date_trunc('minute', now()) - interval '20 min', '{\"clicks\": 0.4}'"
    )
    minute = "date_trunc('minute', now())"
    deployed.owner(
        f"INSERT INTO lamina.freshness_target VALUES ('many', {minute}, {minute}, 1::bit(1440)) ON CONFLICT DO NOTHING"
    )
    with console(deployed.deployment) as browser:
        shown = {path: browser(path) for path in ("/", "/view/pages", "/view/many", "/view/days", "/source/clicks")}
        answers = [
            browser.post("SELECT page, n FROM pages ORDER BY page"),
            browser.post(f"SELECT '{HOSTILE.replace(chr(39), '')}' AS \"{HOSTILE}\", 1 AS n FROM pages"),
            browser.post(f"SELECT {HOSTILE}", 400),
            browser(f"/view/{HOSTILE.replace('/', '%2F')}", 404),
        ]
        links = [unescape(link) for link in re.findall(r'href="(/view/pages/row[?][^"]+)', shown["/view/pages"])]
        rows = [browser(link) for link in links]
        day = browser("/view/days/row?day=2024-03-02")
        wrong = browser("/view/days/row?day=never")
        whole = browser("/view/pages/row")
        cost = browser("/view/pages/cost")
        deployed.owner("GRANT SELECT ON lamina.bad_values TO analyst")
        deployed.owner("UPDATE lamina.progress SET start_offset = 2")  # as if retention had dropped those before
        late = browser.post("SELECT n FROM pages")
        shown["granted"] = browser("/source/clicks")
        receipt = browser("/view/pages/receipt")
        metrics = browser("/metrics")
    for page in [*shown.values(), *answers, *rows, day, wrong, whole, cost, receipt]:
        assert "<script>" not in page
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", page)
        assert re.search(r'<html lang="en">.*<title>[^<]+</title>.*<main .*<h1', page, re.DOTALL)
        assert re.findall(r"<th(?! scope|ead)[^>]*>", page) == []
    first = texts(shown["/"])
    assert "2 cells compared, 0 differ" in first
    assert "The speed layer is gone. None runs for clicks" in first
    assert "reads other views" in first
    assert re.search(r"many ▲ \d+\.\d s wanted 1 s", first)
    assert re.search(
        r"wanted 1 s, met in \d+\.\d % of the last hour, met in \d+\.\d % of the last day", texts(shown["/view/many"])
    )
    assert "wanted" not in texts(shown["/view/pages"])
    view = texts(shown["/view/pages"])
    assert HOSTILE in view
    assert "True for every record below clicks 0:4" in view
    assert "count(*)" in view
    assert "source clicks" in view
    assert re.findall(r'<a href="([^"]+)"', part(shown["/view/pages"], "svg")) == [
        "/source/clicks",
        "/view/pages",
        "/view/many",
    ]
    assert "read now" in view
    assert 'data-chart="{&#34;times&#34;: [1709251200.0, 1709337600.0]' in shown["/view/days"]
    assert len(rows) == 2
    [hostile] = [texts(page) for page in rows if HOSTILE in unescape(page)]
    assert f"lamina blame pages {shlex.quote('page=' + HOSTILE)}" in hostile
    assert re.search(r"rebuild 1, generation \d+ is published: 2 cells compared, 0 differ", hostile)
    assert "micro-batch of clicks 0:0-3" in hostile
    assert "2024-03-02 00:00:00Z 1" in texts(day)
    assert "never' is not a value of day" in texts(wrong)
    assert "lamina blame" not in whole
    assert re.search(r"time [\d.]+ ms rows 2 rows that the planner expected", texts(cost))
    source = texts(shown["/source/clicks"])
    assert "duplicates 1" in source
    phases = re.findall(r"(\w+) ([\d.,]+) ([\d.]+) % ", source)
    assert [name for name, _, _ in phases] == ["read", "compute", "stage", "merge", "commit"]
    assert abs(sum(float(share) for _, _, share in phases) - 100) <= 3
    assert all(float(mean.replace(",", "")) > 0 for name, mean, _ in phases if name != "read")
    assert "referer is not declared" in source
    assert HOSTILE not in source
    assert "GRANT SELECT ON lamina.bad_values TO analyst" in source
    assert HOSTILE in texts(shown["granted"])
    assert "True for every record below clicks 0:4" in texts(answers[0])
    assert "True for every record below clicks 0:4 (from 2 on)" in texts(late)
    assert "Postgres refused" in texts(answers[2])
    assert '"digest"' in unescape(receipt)
    counted = {
        sample.labels["phase"]
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "lamina_micro_batch_seconds"
    }
    assert counted == set(PHASES)
    families = [*text_string_to_metric_families(metrics)]
    assert {sample.name for family in families for sample in family.samples} <= {metric.name for metric in EVERY}
    assert {family.name for family in families} == {metric.name.removesuffix("_total") for metric in EVERY}


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
def test_the_pages_work_in_a_browser_without_complaints(deployed: Deployed, tmp_path: Path) -> None:
    deployed.apply(clicks=CLICKS)
    deployed.send("clicks", *({"id": day, "page": "shop", "at": f"2024-03-0{day}T10:00:00Z"} for day in (1, 2)))
    deployed.catch_up()
    with chromium(tmp_path) as page:
        with console(deployed.deployment) as browser:
            here = f"http://127.0.0.1:{browser.port}"
            page.open(f"{here}/view/days")
            page.until("document.querySelector('.chart canvas') !== null")
            page.value("document.querySelector('.rows a').click()")
            page.until(
                "document.querySelector('pre')?.innerText === 'lamina blame days \\'day=2024-03-02 00:00:00+00:00\\''"
            )
            page.value("history.back()")
            page.until("document.querySelector('.graph') !== null")
            page.value("document.querySelector('.graph a').focus()")
            for kind in ("keyDown", "keyUp"):
                page.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")
            page.until("document.querySelector('h1').innerText === 'clicks'")
            for width in (1280, 390):
                page.call(
                    "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
                )
                for path in ("/view/days", "/view/days/row", "/view/days/cost", "/source/clicks", "/sql", "/"):
                    page.open(f"{here}{path}")
                    page.until("document.readyState === 'complete'")
                    assert page.value("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width}"
            page.open(f"{here}/sql")
            page.until("document.querySelector('textarea') !== null")
            page.value("document.querySelector('textarea').value = 'SELECT 6 * 7 AS answer'")
            page.value("document.querySelector('form').requestSubmit()")
            page.until("document.querySelector('.rows td')?.innerText === '42'")
            page.open(f"{here}/")
            page.until("document.querySelector('time') !== null")
            page.value("window.first = document.querySelector('time').innerText")
            page.until("document.querySelector('time').innerText !== window.first")
            page.value("document.getElementById('view-days').focus()")
            page.value("window.first = document.querySelector('time').innerText")
            page.until("document.querySelector('time').innerText !== window.first")
            assert page.value("document.activeElement.id") == "view-days", "an update keeps the focus"
            assert page.value("document.getElementById('away').hidden")
            assert page.complaints == []
        page.until("!document.getElementById('away').hidden")


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


def test_a_console_on_the_network_requires_the_token(deployed: Deployed, tmp_path: Path) -> None:
    assert token_for("::1", [], tmp_path) is None
    token = token_for("0.0.0.0", [], tmp_path)
    assert token is not None
    assert token == token_for("127.0.0.1", ["lamina.example.org"], tmp_path), "it is kept, and required behind a proxy"
    assert (tmp_path / "console.token").stat().st_mode & 0o077 == 0
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


def test_large_answers_are_cut_and_slow_ones_cancelled(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.apply(clicks=CLICKS)
    with console(deployed.deployment) as browser:
        page = browser.post("SELECT repeat('x', 300000) AS x FROM generate_series(1, 50)")
        assert len(page) < 2_500_000
        assert "and there are more" in texts(page)
        set_ = browser.post("SELECT current_setting('statement_timeout') AS limit")
        assert "30s" in texts(set_)
        monkeypatch.setattr(analyst, "ANSWER_SECONDS", 0.001)
        for path in ("/view/pages/receipt", "/view/pages/cost"):
            assert "statement timeout" in browser(path, 503)


def test_a_select_ends_when_its_browser_disconnects_or_the_console_stops(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    sleeping = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"

    def runs() -> bool:
        return bool(deployed.rows(sleeping))

    with console(deployed.deployment) as browser:
        connection = browser.asking("SELECT pg_sleep(25) FROM generate_series(1, 1)")
        deployed.until(runs, "the SELECT runs")
        began = time.monotonic()
        connection.close()
        deployed.until(lambda: not runs(), "it has ended with its reader")
        assert time.monotonic() < began + 10
        connection = browser.asking("SELECT pg_sleep(25) FROM generate_series(1, 1)")
        deployed.until(runs, "the SELECT runs again")
        began = time.monotonic()
    assert time.monotonic() < began + 10, "the console waits for no SELECT"
    deployed.until(lambda: not runs(), "it has ended with the console")
    connection.close()


def test_a_hundred_open_pages_cost_one_statement_a_second(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.apply(clicks=CLICKS)
    monkeypatch.setattr(routes, "MOST_STREAMS", 100)
    asked: list[str] = []
    engine = deployed.deployment.database.engine
    event.listen(engine, "before_cursor_execute", lambda *arguments: asked.append(arguments[2]))
    with console(deployed.deployment) as browser, ExitStack() as open_pages:
        streams = [open_pages.enter_context(browser.events()) for _ in range(100)]
        began = time.monotonic()
        for _ in range(3):
            for stream in streams:
                assert next(text for name, text in stream if name == "state")
        seconds = time.monotonic() - began
        assert "100 pages are open" in texts(browser("/"))
        assert "100 pages are open" in browser("/stream", 503)
    overviews = [statement for statement in asked if "'heard_age'" in statement]
    assert 2 <= len(overviews) <= seconds + 3


def test_a_missing_service_is_named_until_it_returns(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    with console(deployed.deployment) as browser:
        assert browser.until("state", "None runs for clicks") < 5
        with deployed.speed():
            browser.until("state", "is gone", present=False)
            assert browser.until("gone", "The speed layer", present=False) < 5
            deployed.until(lambda: len(deployed.owner("SELECT FROM lamina.freshness_history")) > 0, "a minute is kept")
        assert browser.until("state", "None runs for clicks") < 5
        deployed.owner(
            "UPDATE lamina.query SET writer = 'process 1 on a', writer_kind = 'speed layer', committed_at = NULL"
        )
        silent = "UPDATE lamina.heartbeat SET heard_at = now() - interval"
        deployed.owner(f"{silent} '6 s'")
        assert browser.until("state", "It may pause") < 5
        deployed.owner(f"{silent} '31 s'")
        assert browser.until("state", "Start it again") < 5
        deployed.owner("UPDATE lamina.query SET committed_at = now() + interval '1 h'")
        browser.until("state", "was last heard of", present=False)


FAULTS = """
CREATE TABLE {0} (id BIGINT, page STRING) USING kafka
OPTIONS (topic '{{topics}}_{0}', format 'json') TBLPROPERTIES ('partitions' = '1', 'quarantine_bytes' = '100 kB');
CREATE VIEW of_{0} TBLPROPERTIES ('on_difference' = 'hold') AS SELECT page, count(*) AS n FROM {0} GROUP BY page;
"""

AGO = "clock_timestamp() - interval"

PLANTED = {
    "dead speed layer": (
        f"""
UPDATE lamina.query SET writer = 'process 1 on a', writer_kind = 'speed layer' WHERE name = 'dead';
INSERT INTO lamina.heartbeat VALUES ('dead', {AGO} '40 s')
ON CONFLICT (query) DO UPDATE SET heard_at = excluded.heard_at
""",
        r"dead: its speed layer \(process 1 on a\) was last heard of 4\d s ago: start it again \( lamina up \)",
    ),
    "full quarantine": (
        """
INSERT INTO lamina.quarantine (source, topic, partition, "offset", error, value)
SELECT 'full', 'full', 0, n, 'no JSON', decode(repeat('ff', 900), 'hex') FROM generate_series(1, 80) AS n;
INSERT INTO lamina.bad_count (source, topic, error, records) VALUES ('full', 'full', 'no JSON', 800)
""",
        r"full: more records than it keeps went to quarantine within an hour: .* \(correct the producer",
    ),
    "failed rebuild": (
        "INSERT INTO lamina.rebuild (views, step, state, error) VALUES ('{of_dead}', 'seal', 'failed', 'no memory')",
        r"rebuild \d+ failed after step seal : no memory \( lamina rebuild begins again\)",
    ),
    "lagging archive": (
        f"UPDATE lamina.query SET created_at = {AGO} '5 days', caught_up_at = now() WHERE name = 'archive'",
        r"archive: nothing was archived for 5 d, and Kafka keeps records for 7 d: run lamina archive",
    ),
    "held view": (
        """
WITH held AS (INSERT INTO lamina.rebuild (views, step, state) VALUES ('{of_full}', 'prove', 'held') RETURNING id)
INSERT INTO lamina.generation (view, version, state, rebuild)
SELECT name, version, 'live', id FROM lamina.view, held WHERE name = 'of_full'
""",
        r"of_full: its proof found a difference, .* lamina step hand-over --anyway of_full --rebuild \d+ lets the new",
    ),
    "slow reader": ("", r"a session of analyst has held a snapshot for .* SELECT pg_terminate_backend\(\d+\) ends it"),
    "differing proof": (
        """
INSERT INTO lamina.proof (view, generation, against, cells, differing, examples)
SELECT view, generation, generation, 9, 2, '[]' FROM lamina.publication WHERE view = 'of_late'
""",
        r"of_late: its newest proof found 2 of 9 cells that differ \(.* lamina check of_late compares",
    ),
    "late source": (
        f"UPDATE lamina.query SET created_at = {AGO} '80 s' WHERE name = 'late'",
        r"late: 1 records behind, and none was counted for 8\d s: no speed layer runs \( lamina up ,",
    ),
    "mistyped field": (
        "",
        r"late: pgae is not declared, in 1 of 1 records; did you mean page\? \(correct the producer",
    ),
    "mistyped value": (
        """
UPDATE lamina.progress SET next_offset = 20 WHERE query = 'wrong';
INSERT INTO lamina.quarantine (source, topic, partition, "offset", error)
SELECT query, topic, partition, n, 'id is no BIGINT' FROM lamina.progress, generate_series(8, 19) AS n
WHERE query = 'wrong'
""",
        r"wrong: 12 of its newest 20 records went to quarantine within an hour: .* \(correct the producer",
    ),
    "full disk": ("", r"the disk of \S+ has [\d,.]+ GB left: make room before"),
}
"""By fault, the statement that plants it, and the sentence on the first page."""


def test_the_first_page_shows_each_planted_fault_and_its_way_out(
    deployed: Deployed, kafka_admin: KafkaAdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.apply(faults="".join(FAULTS.format(name) for name in ("dead", "full", "archive", "late", "wrong")))
    attention = r"What needs attention(.*?)Views"
    with console(deployed.deployment) as browser:
        before = texts(browser("/"))
    assert re.search(r"What needs attention ✓ Nothing else needs attention. Views", before)
    topic, week = deployed.topic("archive"), {"retention.ms": str(7 * 86_400_000)}
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, week)])
    deployed.until(lambda: deployed.deployment.brokers.retention(topic).milliseconds is not None, "it is kept a week")
    for source in ("archive", "late"):
        deployed.send(source, {"id": 1, "pgae" if source == "late" else "page": "shop"})
    for statement, _ in PLANTED.values():
        if statement:
            deployed.owner(statement)
    assert deployed.deployment.settings.analyst is not None
    monkeypatch.setattr(deployment_alarms, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(statuses, "LITTLE_ROOM", 10**15)
    with closing(psycopg2.connect(deployed.deployment.settings.analyst)) as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM analytics.of_late")
        with console(deployed.deployment) as browser:
            page = browser("/")
    [shown] = re.findall(attention, texts(page))
    for fault, (_, sentence) in PLANTED.items():
        assert re.search(sentence, shown), f"{fault}: {shown}"
    assert shown.count("▲") == len(PLANTED), "nothing is shown twice"


def test_a_missing_server_is_named(deployed: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    deployed.apply(clicks=CLICKS)
    settings = deployed.deployment.settings
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        kafka = f"127.0.0.1:{hangs.getsockname()[1]}"
        away = {
            "Postgres is gone": (
                replace(settings, postgres="postgresql://nobody:x@127.0.0.1:1/x"),
                "Unknown: Postgres does not answer.",
            ),
            "Kafka is gone": (replace(settings, kafka="127.0.0.1:1"), "What needs attention"),
            "Kafka is gone.": (replace(settings, kafka=kafka), "Unknown: Kafka does not answer."),
        }
        for says, (settings, attention) in away.items():
            opened = Deployment(settings, tell=lambda line: None)
            caplog.clear()
            try:
                with console(opened) as browser:
                    assert browser.until("state", says) < 6
                    page = texts(browser("/"))
                    assert "Start it" in page
                    assert attention in page
                    browser.until("state", "<time")
                    logged = [record.getMessage() for record in caplog.records if record.name == "lamina.console"]
                    assert sum(says in line for line in logged) == 1, "a line per outage"
            finally:
                opened.close()


def test_two_starts_of_a_home_start_one_console(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = deployed.deployment.settings
    for name in ("postgres", "kafka", "analyst"):
        monkeypatch.setenv(f"LAMINA_{name.upper()}", getattr(settings, name))
    home = ConsoleProcess(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: home.start(), range(2))
    try:
        assert first == second
        home.expect()
        marked = [
            process
            for process in psutil.process_iter(["cmdline"])
            if home.background.mark in (process.info["cmdline"] or ())
        ]
        assert len(marked) == 1
    finally:
        assert home.stop()
    assert home.background.find() is None
