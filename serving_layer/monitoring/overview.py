"""The state of every view and source in one statement, for a page that asks every second (`overview.sql`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from serving_layer.catalog.lookup import HELD
from serving_layer.monitoring.freshness_history import is_late
from serving_layer.postgres.cells import ESTIMATED
from serving_layer.postgres.states import WriterKind

MOST_BAD = 10_001
"""Bad records of the last hour that are counted: one more than the page writes out."""

_TEMPLATE = Path(__file__).with_name("overview.sql").read_text()
_STATEMENT = text(_TEMPLATE.replace("{held}", HELD).replace("{estimated}", ESTIMATED))


@dataclass(frozen=True)
class NewestProof:
    """The newest proof of a view: cells compared, cells that differed, and when."""

    compared: int
    differing: int
    at: datetime


@dataclass(frozen=True)
class ViewOverview:
    """A view as readers read it.

    cells: Postgres' estimate. None for a derived view, and until Postgres has estimated it
    seconds_behind: seconds for which it may lack a record of one of its sources
    fresh_within: the seconds that it may be behind, if declared
    held: a new generation is held back from readers
    """

    name: str
    kind: str
    sources: tuple[str, ...]
    seconds_behind: float | None
    generation: int | None
    cells: int | None
    held: bool
    served: bool
    fresh_within: float | None
    proof: NewestProof | None

    @property
    def is_late(self) -> bool:
        """True if it is further behind than its `fresh_within`."""
        return is_late(self.seconds_behind, self.fresh_within)


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

    minutes: of the last hour, oldest first: the seconds since then, and how far each source was behind
    """

    views: tuple[ViewOverview, ...]
    sources: tuple[SourceOverview, ...]
    minutes: tuple[tuple[float, Mapping[str, float]], ...] = ()


def overview(connection: Connection) -> Overview:
    """Reads the whole state in one statement."""
    read: dict[str, Any] = connection.execute(_STATEMENT, {"most_bad": MOST_BAD}).scalar_one()
    minutes = tuple((ago, behind) for ago, behind in read["minutes"])
    return Overview(tuple(map(_view, read["views"])), tuple(map(_source, read["sources"])), minutes)


def _view(row: dict[str, Any]) -> ViewOverview:
    compared, differing, at = row.pop("compared"), row.pop("differing"), row.pop("proved_at")
    proof = None if at is None else NewestProof(compared, differing, datetime.fromisoformat(at))
    return ViewOverview(**{**row, "sources": tuple(row["sources"] or ())}, proof=proof)


def _source(row: dict[str, Any]) -> SourceOverview:
    offsets = {int(partition): offset for partition, offset in row["next_offsets"].items()}
    return SourceOverview(**{**row, "next_offsets": offsets})
