"""Receipts: the content of a view in one snapshot, as one line of JSON that can be verified without the snapshot.

`lamina.receipt` (receipts.sql) writes it with the caller's rights, in the caller's snapshot. The same SQL digests rows
recomputed from the master log, so there is only one implementation of the digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from master_log.offsets import Offsets
from serving_layer.postgres import cells
from serving_layer.postgres.copying import CopyRows
from view_algebra.compiled import View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted

FORMAT = 1
"""Format of the receipts that this Lamina writes and reads."""


@dataclass(frozen=True)
class Digest:
    """A digest of a view's rows in any order.

    columns: a digest per column
    doubles: for each column of doubles, the weighted sums of its numbers and of their sizes
    left_out: the columns without a digest
    """

    rows: int
    digest: str
    columns: Mapping[str, str]
    doubles: Mapping[str, tuple[Decimal, Decimal]]
    left_out: Sequence[str]

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Digest:
        """A digest from its JSON."""
        doubles = {}
        for name, sums in fields["doubles"].items():
            total, size = sums.split()
            doubles[str(name)] = (Decimal(total), Decimal(size))
        columns = {str(name): str(value) for name, value in fields["columns"].items()}
        return cls(int(fields["rows"]), str(fields["digest"]), columns, doubles, list(fields["left_out"]))


@dataclass(frozen=True)
class CountedRecords:
    """The records of a source that a view counts: those of a topic between two vectors of offsets."""

    topic: str
    topic_id: str
    begins: Offsets
    below: Offsets


@dataclass(frozen=True)
class Receipt:
    """The content of a view in a snapshot.

    since: for each view that it reads, the beginning of the oldest groups kept
    clock: the value of `now()`
    sparks: the versions of Spark that computed its cells, if known
    """

    view: str
    version: str
    definition: str
    generation: int | None
    read_at: str
    clock: datetime
    digest: Digest
    sources: Mapping[str, CountedRecords]
    since: Mapping[str, datetime]
    sparks: frozenset[str] = frozenset()

    @classmethod
    def read(cls, line: str) -> Receipt:
        """A receipt from the text that `lamina receipt` prints."""
        try:
            fields = json.loads(line)
            if fields["receipt"] != FORMAT:
                raise LaminaError(
                    "This receipt has another format",
                    evidence=f"found format {fields['receipt']}, this Lamina reads {FORMAT}",
                    way_out="Verify it with the Lamina that wrote it, or a later one.",
                )
            return _read(fields)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise LaminaError(
                "This is not a receipt",
                evidence=f"{type(error).__name__}: {error}",
                way_out="`lamina receipt VIEW` prints one: a line of JSON, to be given as it is.",
            ) from error


def _read(fields: Mapping[str, Any]) -> Receipt:
    made_of = fields["made_of"] or {}
    since = {name: read["since"] for name, read in made_of.items() if read["since"] is not None}
    return Receipt(
        view=str(fields["view"]),
        version=str(fields["version"]),
        definition=str(fields["definition"]),
        generation=fields["generation"],
        read_at=str(fields["read_at"]),
        clock=datetime.fromisoformat(str(fields.get("clock", fields["read_at"]))),
        digest=Digest.read(fields),
        sources={name: _counted(source) for name, source in fields["sources"].items()},
        since={name: datetime.fromisoformat(time) for name, time in since.items()},
        sparks=frozenset(str(read["spark"]) for read in made_of.values() if read.get("spark")),
    )


def _counted(fields: Mapping[str, Any]) -> CountedRecords:
    begins, below = (
        Offsets.of(fields["topic"], {int(partition): int(offset) for partition, offset in fields[which].items()})
        for which in ("from", "below")
    )
    return CountedRecords(str(fields["topic"]), str(fields["topic_id"]), begins, below)


def digest_of(connection: Connection, view: View, rows: CopyRows) -> Digest:
    """The digest of rows that a view would show. Their values are in COPY's text form."""
    columns = ", ".join(f"{quoted(column.name)} {column.postgres}" for column in view.columns)
    cells.run(connection, f"CREATE TEMPORARY TABLE recomputed ({columns}) ON COMMIT DROP")
    cells.run(connection, "SET LOCAL timezone = 'UTC'")
    cells.copy(connection, "recomputed", rows)
    query = text("SELECT lamina.digest('pg_temp.recomputed', CAST(:columns AS jsonb))")
    columns_json = json.dumps([asdict(column) for column in view.columns])
    return Digest.read(connection.execute(query, {"columns": columns_json}).scalar_one())
