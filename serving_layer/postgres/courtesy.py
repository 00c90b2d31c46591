"""Long work that holds no lock yields the processor to readers and micro-batches, if Postgres runs on this machine."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

NICENESS = 10
"""Niceness of a backend that loads or compares cells. At 10 it gets a ninth of the processor time of a backend at 0."""


def stand_back(connection: Connection) -> None:
    """Lowers the priority of a connection's backend until the backend ends, and takes the connection out of the pool.

    Only for a transaction that nobody waits for. Does nothing if the backend runs on another machine or as another
    user.
    """
    backend = connection.connection.driver_connection
    connection.detach()
    backend_stands_back(backend)


def backend_stands_back(connection: Any) -> None:
    """Lowers the priority of the backend of a psycopg2 connection, which the caller uses for nothing else."""
    pid = connection.info.backend_pid
    with suppress(OSError):  # the process is not on this machine, or not ours
        if not _serves(pid, connection.fileno()):
            return
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
        # Each backend is a session of its own, and Linux divides the processors among sessions first (sched(7)).
        if os.getsid(pid) == pid:
            Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))


def _serves(pid: int, descriptor: int) -> bool:
    """True if a process on this machine is the backend of this connection: its title names our port."""
    with socket.socket(fileno=os.dup(descriptor)) as own_socket:
        if own_socket.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        port = own_socket.getsockname()[1]
    return f"({port}) ".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
