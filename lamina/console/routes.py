"""The pages of the console: the answer at each address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lamina import __version__
from lamina.console.page_values import PageReader
from lamina.console.readings import Reading
from lamina.console.request_guards import RequestGuard
from lamina.console.threads import for_reader, in_thread
from lamina.console.watcher import Watch, unforeseen_error
from lamina.operations.deployment import Deployment
from lamina.reports.chart_choice import MOST_ROWS
from lamina.reports.metrics import registry
from lamina.terminal.failures import as_lamina_error
from lamina.terminal.render import cell, seconds
from serving_layer.monitoring.overview import MOST_BAD
from serving_layer.narration import age, size
from serving_layer.readers.analyst import PageSelect
from view_algebra.errors import LaminaError, Unknown

LONGEST_FORM = 200_000
"""Bytes of a form."""

MOST_STREAMS = 500
"""Pages that may listen at a time."""

MOST_ANSWERS = 8
"""Pages that may be read at a time. Each takes a session of the analyst, and readers need the others."""

HERE = Path(__file__).parent

FRAGMENTS = ("gone", "state", "attention", "views", "sources")
"""The parts of the first page that change, each a template and an event. Screen readers announce `gone`."""


class Pages:
    """Answers requests about one deployment. `ending` is set when the server stops, and ends open streams."""

    def __init__(self, deployment: Deployment, ending: asyncio.Event) -> None:
        self._deployment = deployment
        self._ending = ending
        self._watch = Watch(deployment)
        self._reader = PageReader(deployment)
        self._metrics: CollectorRegistry = registry(deployment)
        self._counting = asyncio.Lock()
        self._templates = _environment()
        self._answering = asyncio.Semaphore(MOST_ANSWERS)
        self._fragments: tuple[Reading, dict[str, str]] | None = None

    def application(self, names: Collection[str], token: str | None) -> ASGIApp:
        """The application under these names, for everybody who has the token (if there is one)."""
        routes = [
            Route("/", self._now),
            Route("/stream", self._stream),
            Route("/metrics", self._numbers),
            Route("/view/{name:path}/receipt", partial(self._read, "receipt.html", self._reader.receipt)),
            Route("/view/{name:path}/cost", partial(self._read, "cost.html", self._reader.cost)),
            Route("/view/{name:path}/row", self._row),
            Route("/view/{name:path}", partial(self._read, "view.html", self._reader.view)),
            Route("/source/{name:path}", partial(self._read, "source.html", self._reader.source)),
            Route("/sql", self._sql, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
        handlers = {404: self._no_page, 405: self._no_method, 413: self._too_long, Exception: self._failed}
        named = frozenset(name.lower() for name in names)
        return RequestGuard(Starlette(routes=routes, exception_handlers=handlers), named, token)

    async def _now(self, _: Request) -> Response:
        crowded = MOST_STREAMS if self._watch.listeners >= MOST_STREAMS else None
        return self._page("now.html", title="Now", fragments=self._rendered(await self._watch.now()), crowded=crowded)

    async def _stream(self, _: Request) -> Response:
        if self._watch.listeners >= MOST_STREAMS:
            return Response(f"{MOST_STREAMS} pages are open, which is the limit. Close one.\n", 503)
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        """Yields the fragments of each reading that differ from the ones sent before."""
        sent: dict[str, str] = {}
        async with self._watch.listening() as readings:
            async for now in readings:
                if self._ending.is_set():
                    return
                fragments = self._rendered(now)
                changed = {name: text for name, text in fragments.items() if sent.get(name) != text}
                sent = fragments
                yield "".join(_event(name, text) for name, text in changed.items())

    async def _numbers(self, _: Request) -> Response:
        async with self._counting:  # a Postgres that hangs blocks at most one thread
            text = await in_thread(lambda: generate_latest(self._metrics))
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def _row(self, request: Request) -> Response:
        """The page of a view's rows with a key, and of the steps that may have moved them."""
        parameters = dict(request.query_params)
        return await self._read(
            "row.html", lambda name, statement: self._reader.row(name, parameters, statement), request
        )

    async def _sql(self, request: Request) -> Response:
        """The page of the SQL box, with the answer to its SELECT."""
        query = await _sent(request)
        values: dict[str, Any] = {"title": "SQL", "query": query or "", "most": MOST_ROWS}
        values |= dict.fromkeys(("answer", "chart", "error"))
        if query is None:
            return self._page("sql.html", **values)
        try:
            async with self._answering:
                return await for_reader(
                    request, lambda statement: self._page("sql.html", **values | self._reader.sql(query, statement))
                )
        except Exception as error:  # noqa: BLE001 (a bug is raised again)
            return self._page("sql.html", 400, **values | {"error": as_lamina_error(error)})

    async def _read(
        self, template: str, values: Callable[[str, PageSelect], dict[str, Any]], request: Request
    ) -> Response:
        """A page about the view or source in the address. An error also becomes a page."""
        name = request.path_params["name"]
        try:
            async with self._answering:
                return await for_reader(
                    request, lambda statement: self._page(template, title=name, **values(name, statement))
                )
        except Unknown as error:
            return self._page("error.html", 404, title="Not found", error=error)
        except Exception as error:  # noqa: BLE001 (a bug is raised again)
            return self._page("error.html", 503, title=name, error=as_lamina_error(error))

    async def _no_page(self, request: Request, _: Exception) -> Response:
        error = LaminaError("There is no such page", evidence=request.url.path, way_out="The first page is /.")
        return self._page("error.html", 404, title="Not found", error=error)

    async def _no_method(self, request: Request, _: Exception) -> Response:
        error = LaminaError(
            f"{request.method} is not supported", evidence=request.url.path, way_out="This console only reads."
        )
        return self._page("error.html", 405, title="Not allowed", error=error)

    async def _too_long(self, _: Request, __: Exception) -> Response:
        what = f"The SELECT is longer than {LONGEST_FORM:,} bytes"
        return self._page("error.html", 413, title="Too long", error=LaminaError(what, way_out="Ask `lamina sql`."))

    async def _failed(self, _: Request, error: Exception) -> Response:
        failure = unforeseen_error(error)
        return self._page("error.html", 500, title="Failed", error=failure)

    def _rendered(self, now: Reading) -> dict[str, str]:
        """The fragments of a reading, rendered once for all pages."""
        if self._fragments is None or self._fragments[0] is not now:
            texts = {name: self._templates.get_template(f"{name}.html").render(now=now) for name in FRAGMENTS}
            self._fragments = (now, texts)
        return self._fragments[1]

    def _page(self, template: str, status: int = 200, **values: object) -> Response:
        text = self._templates.get_template(template).render(version=__version__, **values)
        return HTMLResponse(text, status)


async def _sent(request: Request) -> str | None:
    """The SELECT in a submitted form, or None. Raises a 413 if the form is too long."""
    if request.method != "POST":
        return None
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_FORM:
            raise HTTPException(413)
    return parse_qs(body.decode(errors="replace")).get("query", [""])[0]


def _event(name: str, text: str) -> str:
    lines = "\n".join(f"data: {line}" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n\n"


def _environment() -> Environment:
    """Templates that escape every value, and fail on a missing value."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "seconds": seconds,
        "age": age,
        "number": number,
        "instant": instant,
        "many": many,
        "cell": cell,
        "sentence": sentence,
        "size": size,
    }
    return environment


def number(value: float | None) -> str:
    """A number in a form for people.

    >>> number(1234567), number(0.25), number(None)
    ('1,234,567', '0.2', '')
    """
    if value is None:
        return ""
    return f"{value:,.1f}" if value < 10 and value != int(value) else f"{value:,.0f}"


def sentence(text: str) -> Markup:
    """A sentence of ours, with its commands as code. It is escaped, since it may quote a producer's text.

    >>> sentence("<b>: run `lamina up`")
    Markup('&lt;b&gt;: run <code>lamina up</code>')
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def many(value: int) -> str:
    """A count that is only exact up to its limit.

    >>> many(7), many(MOST_BAD)
    ('7', 'more than 10,000')
    """
    return f"{value:,}" if value < MOST_BAD else f"more than {MOST_BAD - 1:,}"


def instant(value: datetime | None) -> str:
    """An instant in UTC, to the second. None is empty."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}Z"
