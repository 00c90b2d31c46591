"""Long work lowers the priority of its own backend only."""

from __future__ import annotations

import os
import sys

import pytest
from sqlalchemy import Connection, text

from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Database


@pytest.mark.skipif(sys.platform != "linux", reason="niceness is only known on Linux")
def test_only_a_backend_with_lowered_priority_stands_back_and_leaves_the_pool(serving: Database) -> None:
    with serving.begin() as patient, serving.begin() as other:
        courtesy.stand_back(patient)
        stood_back = _backend(patient)
        assert _niceness(stood_back) == courtesy.NICENESS
        assert _niceness(_backend(other)) == 0
    with serving.begin() as connection:
        assert _backend(connection) != stood_back


def _backend(connection: Connection) -> int:
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)
