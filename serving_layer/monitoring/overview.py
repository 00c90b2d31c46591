"""The state of every view and source in one statement, for a page that asks every second (`overview.sql`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from serving_layer.monitoring.view_states import VIEW_STATES, ViewState
from serving_layer.postgres.states import WriterKind
from serving_layer.promise.quarantine import BAD_LATELY

MOST_BAD = 10_001
"""Bad records of the last hour that are counted: one more than the page writes out."""

_TEMPLATE = Path(__file__).with_name("overview.sql").read_text()
_STATEMENT = text(_TEMPLATE.replace("{view_states}", VIEW_STATES).replace("{bad_lately}", BAD_LATELY))


@dataclass(frozen=True)
class SourceOverview:
    """A source as its query counts it.

    next_offsets: progress by partition
    counted: offsets below progress
    heard_age: seconds since its writer's last heartbeat or commit
    """

    name: str
    topic: str
    next_offsets: Mapping[int, int]
    counted: int
    bad: int
    bad_lately: int
    writer: str | None
    writer_kind: str | None
    stopped: str | None
    heard_age: float | None

    @property
    def is_read(self) -> bool:
        """True if its writer is a speed layer. A leap writes for a while, and a skip for a moment."""
        return self.writer is not None and self.writer_kind == WriterKind.SPEED_LAYER


@dataclass(frozen=True)
class Overview:
    """Views, each after those that it reads, and sources by name.

    minutes: the minutes of the last hour, oldest first: seconds ago, and by source the seconds that it was behind
    """

    views: tuple[ViewState, ...]
    sources: tuple[SourceOverview, ...]
    minutes: tuple[tuple[float, Mapping[str, float]], ...] = ()


def overview(connection: Connection) -> Overview:
    """Reads the whole state in one statement."""
    read: dict[str, Any] = connection.execute(_STATEMENT, {"most": MOST_BAD}).scalar_one()
    minutes = tuple((ago, behind) for ago, behind in read["minutes"])
    return Overview(tuple(map(ViewState.of_row, read["views"])), tuple(map(_source, read["sources"])), minutes)


def _source(row: dict[str, Any]) -> SourceOverview:
    offsets = {int(partition): offset for partition, offset in row["next_offsets"].items()}
    return SourceOverview(**{**row, "next_offsets": offsets})
