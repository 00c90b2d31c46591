"""The schemas of a registry that records are written with: asked for once, and kept as long as the log may be read.

A schema is kept before the first record is counted that was written with it, and never changes. So what is counted can
be decoded for ever, also when the registry is gone; and both layers decode it alike. That a registry had no schema with
an id is kept as well, since it decides that a record is bad.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from master_log.registry import Registry, RegistryAway
from serving_layer.bookkeeping import schema
from serving_layer.database import Database
from view_algebra.formats.interface import Schema, Schemas

AT_A_TIME = 100
"""Schemas that are asked for before those are kept that were found."""


def kept(connection: Connection, topic: str) -> Schemas:
    """The schemas of a topic, by their ids."""
    rows = connection.execute(select(schema).where(schema.c.topic == topic))
    return {
        row.id: row.kind and Schema(row.kind, row.text, tuple((name, text) for name, text in row.references))
        for row in rows
    }


def keep(connection: Connection, topic: str, found: Schemas) -> None:
    """Keeps schemas; what was kept before stays."""
    for id, each in found.items():
        row: dict[str, Any] = {"topic": topic, "id": id}
        if each is not None:
            row |= {"kind": each.kind, "text": each.text, "references": [list(pair) for pair in each.references]}
        connection.execute(insert(schema).values(row).on_conflict_do_nothing())


@dataclass(frozen=True)
class KeptSchemas:
    """The schemas of all topics. registry: where those are that are not kept yet; None if no setting names one."""

    database: Database
    registry: Registry | None

    def of(self, topic: str) -> Schemas:
        """The topic's kept schemas, by their ids."""
        with self.database.begin() as connection:
            return kept(connection, topic)

    def learn(self, topic: str, ids: Collection[str], *, patient: bool = True) -> Schemas:
        """Asks the registry for those of the ids that are not kept, and keeps its answers; gives all that are kept.

        patient: waits some seconds for a schema that the registry does not have yet. Raises `RegistryAway`.
        """
        missing = sorted(set(ids) - self.of(topic).keys())
        for some in (missing[place : place + AT_A_TIME] for place in range(0, len(missing), AT_A_TIME)):
            if self.registry is None:
                raise RegistryAway("LAMINA_SCHEMA_REGISTRY is not set")
            found = self.registry.schemas(some, patient=patient)
            self.database.retrying(partial(keep, topic=topic, found=found))
        return self.of(topic)
