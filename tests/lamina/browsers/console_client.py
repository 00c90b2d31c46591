"""A console over a deployment, and a client with the headers of a browser."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlencode

from lamina.console.server import Console
from lamina.operations.deployment import Deployment
from tests.fix_lamina import PATIENCE

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
