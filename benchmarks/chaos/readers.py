"""Readers: they compare every view of one snapshot after another with the oracle, over exactly the snapshot's
offsets.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 (a type)

from benchmarks.chaos.chaos_oracle import Offsets, Row, comparable
from benchmarks.chaos.stage import Stage, written
from benchmarks.chaos.world import EXTRA, OF_PARCELS, VIEWS, WorldView

REST = 3.0
"""Rest of a reader, as a multiple of the time of a comparison. The rest of the machine is for Lamina."""

LONGEST_REST = 10.0
"""Greatest rest of a reader in seconds. A comparison that waited, for example for Kafka, used no processor."""

SHOWN = 20
"""Rows of each side that are kept of a view that differs."""


@dataclass(frozen=True)
class ReadSnapshot:
    """One transaction of REPEATABLE READ: the rows of each view, and the offsets.

    widths: number of columns of each view now
    declared: number of columns in the version that the snapshot reads
    since: beginning of the groups that each view's generation keeps
    bad: records in quarantine, by source
    """

    at: datetime
    views: dict[str, Counter[Row]]
    widths: dict[str, int]
    declared: dict[str, int]
    offsets: Offsets
    of_view: dict[str, Offsets]
    since: dict[str, datetime | None]
    bad: dict[str, int]


def read(connection: Connection) -> ReadSnapshot:
    """Reads everything in one snapshot."""
    connection.autocommit = False
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection, connection.cursor() as cursor:
        return read_within(cursor)


def read_within(cursor: psycopg2.extensions.cursor) -> ReadSnapshot:
    """Reads everything in the snapshot of an open transaction."""
    cursor.execute("SELECT now()")
    [(at,)] = cursor.fetchall()
    cursor.execute("SELECT view, source, partition, first_offset, next_offset FROM lamina.offsets")
    of_view: dict[str, dict[tuple[str, int], tuple[int, int]]] = {}
    for view, source, partition, first, end in cursor.fetchall():
        of_view.setdefault(view, {})[source, partition] = (first, end)
    cursor.execute(
        "SELECT v.name, g.since, jsonb_array_length(v.columns) FROM lamina.view v"
        " LEFT JOIN lamina.publication p ON p.view = v.name"
        " LEFT JOIN lamina.generation g ON g.id = p.generation WHERE v.served IS NOT NULL"
    )
    listed = cursor.fetchall()
    since = {name: begins for name, begins, _ in listed}
    declared = {name: columns for name, _, columns in listed}
    cursor.execute(
        "SELECT q.name, coalesce(sum(b.records), 0) FROM lamina.query q"
        " LEFT JOIN lamina.bad_records b ON b.source = q.name GROUP BY q.name"
    )
    bad = {name: int(count) for name, count in cursor.fetchall()}
    views, widths = {}, {}
    for name in since:
        cursor.execute(f'SELECT * FROM analytics."{name}"')
        views[name] = Counter(map(comparable, cursor.fetchall()))
        widths[name] = len(cursor.description or ())
    together = {at: ends for offsets in of_view.values() for at, ends in offsets.items()}
    return ReadSnapshot(at, views, widths, declared, together, dict(of_view), since, bad)


@dataclass
class Readers:
    """Counts of snapshots and comparisons, and the differences."""

    stage: Stage
    snapshots: int = 0
    compared: int = 0
    away: int = 0
    wrong: list[Path] = field(default_factory=list)

    def run(self, stopping: threading.Event) -> None:
        """Reads and compares until it is stopped."""
        connection: Connection | None = None
        while not stopping.is_set():
            began = time.monotonic()
            try:
                connection = connection or self.stage.connect()
                with self.stage.reading:
                    self.compare(read(connection))
            except psycopg2.errors.UndefinedTable:  # a view that was dropped after the snapshot was taken
                continue
            except psycopg2.Error:
                self.away += 1
                if connection is not None:
                    connection.close()
                connection = None
                stopping.wait(0.1)
                continue
            stopping.wait(min(REST * (time.monotonic() - began), LONGEST_REST))
        if connection is not None:
            connection.close()

    def compare(self, snapshot: ReadSnapshot) -> list[str]:
        """Compares every view of a snapshot. Keeps the snapshot if something differs, and returns a line per
        difference.
        """
        oracle = self.stage.oracle
        oracle.await_reached(snapshot.offsets)
        differing = {}
        for name, shown in snapshot.views.items():
            view = version_of(name, snapshot.declared[name])
            whole = oracle.rows(view, snapshot.of_view[name], snapshot.since[name])
            wanted = as_wide(whole, snapshot.widths[name])
            if shown != wanted:
                differing[name] = (wanted - shown, shown - wanted)
        sources = {source for source, _ in snapshot.offsets}
        counted = {name: (oracle.bad(name, snapshot.offsets), snapshot.bad[name]) for name in sources}
        miscounted = {name: counts for name, counts in counted.items() if counts[0] != counts[1]}
        self.snapshots += 1
        self.compared += len(snapshot.views)
        if not differing and not miscounted:
            return []
        lines = [
            f"{name}: missing {sum(missing.values())} rows, surplus {sum(surplus.values())}"
            for name, (missing, surplus) in differing.items()
        ] + [f"{name}: {wanted} bad records, {shown} in quarantine" for name, (wanted, shown) in miscounted.items()]
        self.wrong.append(self._keep(snapshot, lines, differing))
        return lines

    def _keep(
        self, snapshot: ReadSnapshot, lines: Sequence[str], differing: dict[str, tuple[Counter[Row], Counter[Row]]]
    ) -> Path:
        path = self.stage.folder / f"differs-{len(self.wrong):03}.json"
        kept = {
            "seed": self.stage.world.seed,
            "at": snapshot.at,
            "said": lines,
            "offsets": {f"{source} {partition}": ends for (source, partition), ends in snapshot.offsets.items()},
            "since": snapshot.since,
            "rows": {
                name: {"missing": list(missing)[:SHOWN], "surplus": list(surplus)[:SHOWN]}
                for name, (missing, surplus) in differing.items()
            },
        }
        path.write_text(written(kept))
        self.stage.tell(f"a snapshot differs: {'; '.join(lines)} ({path})")
        return path


def as_wide(rows: Counter[Row], width: int) -> Counter[Row]:
    """Rows of an older version as the view shows them to an older snapshot, in which a new column is NULL."""
    return Counter(row[:width] + (None,) * (width - len(row)) for row in rows.elements())


def version_of(name: str, width: int) -> WorldView:
    """The view of this name. If it changes, the version with this number of columns."""
    if name.startswith("spare_"):
        source = name.removesuffix("_kinds")
        return WorldView(name, "", f"SELECT kind, count(*) AS records, sum(n) AS n FROM {source} GROUP BY kind")
    if name == "extra":
        return EXTRA[width - 2]
    return next(view for view in (*VIEWS, OF_PARCELS) if view.name == name)
