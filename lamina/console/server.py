"""The console as a process: an address to listen on, and the server that answers there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection

import uvicorn

from lamina.console.routes import Pages
from lamina.operations.deployment import Deployment
from view_algebra.errors import LaminaError

STOPS_WITHIN = 2
"""Seconds that unfinished answers may take when the server stops."""


class Console:
    """A console that listens at an address. Port 0 is any free port. Raises LaminaError if the port is taken.

    `names` are further names by which a proxy or a browser calls it. `token` is the one that readers must show, or
    None.
    """

    def __init__(
        self, deployment: Deployment, host: str, port: int, names: Collection[str] = (), token: str | None = None
    ) -> None:
        self._listening = _listening(host, port)
        self._host, self.port, self._token = host, int(self._listening.getsockname()[1]), token
        self._ending = asyncio.Event()
        config = uvicorn.Config(
            Pages(deployment, self._ending).application([host, *names], token),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=STOPS_WITHIN,
        )
        self._server = _Server(config, self._ending)

    @property
    def address(self) -> str:
        """The address of the first page, with the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/" + (f"?token={self._token}" if self._token else "")

    def run(self) -> None:
        """Answers until the process is interrupted, or `stop` is called from another thread."""
        asyncio.run(self._server.serve(sockets=[self._listening]))

    def stop(self) -> None:
        """Ends `run` within about `STOPS_WITHIN` seconds."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Ends the streams when it is stopped. Otherwise an open page would keep it from ending."""

    def __init__(self, config: uvicorn.Config, ending: asyncio.Event) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise LaminaError(
            f"The console cannot listen at {host}:{port}",
            evidence=error.strerror or str(error),
            way_out="Another one may run there. Name another address with --listen HOST:PORT.",
        ) from error
    return listening
