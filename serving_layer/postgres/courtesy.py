"""Long work that holds no lock stands back behind readers and micro-batches, where Postgres runs on this machine."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

NICENESS = 10
"""Of a backend that loads or compares cells: at 10, a ninth of the processor's share of one at 0."""


def stand_back(connection: Connection) -> None:
    """Lets the backend of a connection stand back until it ends, for which it is taken out of the pool.

    Only for a transaction that nobody waits for. Where the backend is on another machine, or belongs to another user,
    nothing happens.
    """
    backend = connection.connection.driver_connection
    connection.detach()
    backend_stands_back(backend)


def backend_stands_back(connection: Any) -> None:
    """The same for psycopg2's own connection, of which the caller makes no other use."""
    pid = connection.info.backend_pid
    with suppress(OSError):  # no such process here, or none that we may tell
        if not _serves(pid, connection.fileno()):
            return
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
        # Postgres gives each backend a session, and Linux shares the processors out between these first (sched(7)).
        if os.getsid(pid) == pid:
            Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))


def _serves(pid: int, descriptor: int) -> bool:
    """Whether a process of this machine is the backend at the other end: its title names the port that we call from."""
    with socket.socket(fileno=os.dup(descriptor)) as ours:
        if ours.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        port = ours.getsockname()[1]
    return f"({port}) ".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
