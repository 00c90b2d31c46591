"""The console as a process: an address to listen on, and the server that answers there."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import uvicorn

from lamina.console.pages import Pages
from lamina.deployment import Deployment
from view_algebra.errors import LaminaError

STOPS_WITHIN = 2
"""Seconds that answers under way may take when the server is stopped."""


@dataclass(frozen=True)
class Address:
    """A host and a port to listen on; port 0 is any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def bound(address: Address) -> tuple[socket.socket, Address]:
    """A socket that listens there, and the address with its port. Raises LaminaError if it is taken."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address.host, address.port))
    except OSError as error:
        found.close()
        raise LaminaError(
            f"The console cannot listen at {address.host}:{address.port}",
            evidence=error.strerror or str(error),
            way_out="Another one may run there; name another address with --listen HOST:PORT.",
        ) from error
    return found, Address(address.host, found.getsockname()[1])


def serve(opened: Deployment, listening: socket.socket, host: str) -> None:
    """Serves the console until the process is interrupted."""
    asyncio.run(_serve(opened, listening, host))


class _Server(uvicorn.Server):
    """Ends the streams when it is stopped: a page that is open would keep it from ending."""

    def __init__(self, config: uvicorn.Config, ending: asyncio.Event) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


async def _serve(opened: Deployment, listening: socket.socket, host: str) -> None:
    ending = asyncio.Event()
    config = uvicorn.Config(
        Pages(opened, ending).application(host),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=STOPS_WITHIN,
    )
    await _Server(config, ending).serve(sockets=[listening])
