"""The registry's schemas of records: each is requested once, and kept as long as the log may be read.

A schema is kept before the first record written with it is counted, and never changes. So counted records can be
decoded permanently, even if the registry is gone, and both layers decode them alike. A missing schema is kept as well,
since it makes a record bad. A source with another ASK_AGAIN has answers of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, func, insert, select

from master_log.reading.schema_registry import Registry, RegistryUnavailable
from serving_layer.catalog.deployed import sources
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import bad_count, schema
from serving_layer.postgres.database import Database
from view_algebra.formats import Decoding, frames
from view_algebra.formats.interface import NO_SCHEMAS, Answers, Schema, Schemas

AT_A_TIME = 100
"""Schemas requested before the answers are kept."""

MOST_LACKED = 500
"""Missing schemas of a topic that are kept. A producer of random ids causes more, and each takes a row and time."""

MARGIN = 1_000_000
"""Ids above the greatest known one that are still requested: registries count up."""


def read(connection: Connection, topic: str) -> Answers:
    """The kept schemas of a topic, by ASK_AGAIN and id."""
    answers: dict[int, dict[str, Schema | None]] = {}
    for row in connection.execute(select(schema).where(schema.c.topic == topic)):
        answer = row.kind and Schema(row.kind, row.text, tuple((name, text) for name, text in row.references or ()))
        answers.setdefault(row.ask_again, {})[row.id] = answer
    return answers


def keep(connection: Connection, topic: str, ask_again: int, fetched: Schemas) -> None:
    """Keeps schemas, and which ids have none. An answer that another process has kept stays.

    If too many ids have none, all ids above the known ones count as missing.
    """
    cells.run(connection, "LOCK TABLE lamina.schema IN SHARE ROW EXCLUSIVE MODE")
    answers = read(connection, topic)
    schemas = dict(answers.get(ask_again, NO_SCHEMAS))
    new: dict[str, Schema | None] = {id: fetched[id] for id in frames.missing(fetched, schemas)}
    schemas |= new
    if frames.ABOVE not in schemas and list(schemas.values()).count(None) > MOST_LACKED:
        every = [id for ids in (*answers.values(), schemas) for id, one in ids.items() if one and id.isdigit()]
        new[frames.ABOVE] = Schema("ABOVE", str(max(map(int, every), default=0) + MARGIN))
    for id, answer in new.items():
        row: dict[str, Any] = {"topic": topic, "ask_again": ask_again, "id": id}
        if answer is not None:
            row |= {"kind": answer.kind, "text": answer.text, "references": [list(pair) for pair in answer.references]}
        connection.execute(insert(schema).values(row))


@dataclass(frozen=True)
class NamedSchema:
    """A schema named by records of a source.

    kind: None if the registry had none, which makes `bad_records` bad
    """

    source: str
    ask_again: int
    id: str
    kind: str | None
    kept_at: datetime
    bad_records: int


def listed(connection: Connection, names: Collection[str] = ()) -> list[NamedSchema]:
    """The kept schemas of these sources, or of all deployed ones."""
    schemas = []
    for name, source in sources(connection).items():
        by = Decoding.of(source)
        if by is None or not by.needs_registry or (names and name not in names):
            continue
        errors = select(bad_count.c.error, bad_count.c.records).where(bad_count.c.source == name)
        bad: dict[str, int] = {}
        for error, records in connection.execute(errors):
            if (id := frames.lacked(error)) is not None:
                bad[id] = bad.get(id, 0) + records
        of_source = (schema.c.topic == source.topic, schema.c.ask_again == by.ask_again)
        order = (func.length(schema.c.id), schema.c.id)
        for row in connection.execute(select(schema).where(*of_source).order_by(*order)):
            id, kind = (f"above {row.text}", None) if row.id == frames.ABOVE else (row.id, row.kind)
            schemas.append(NamedSchema(name, row.ask_again, id, kind, row.kept_at, 0 if kind else bad.get(row.id, 0)))
    return schemas


@dataclass(frozen=True)
class KeptSchemas:
    """The schemas of all topics.

    registry: the source of schemas not kept yet, or None if no setting names one
    """

    database: Database
    registry: Registry | None

    def of(self, topic: str) -> Answers:
        """The topic's kept schemas."""
        with self.database.begin() as connection:
            return read(connection, topic)

    def learn(self, topic: str, ask_again: int, ids: Collection[str], *, patient: bool = True) -> Answers:
        """Requests those of the ids that are not kept, keeps the answers, and returns all kept schemas of the topic.

        An id kept under another ASK_AGAIN is requested too, because another registry may have had another schema with
        that id.

        patient: waits some seconds for a schema that the registry does not have yet. Raises `RegistryUnavailable`
        """
        answers = self.of(topic)
        while missing := frames.missing(ids, answers.get(ask_again, NO_SCHEMAS)):
            if self.registry is None:
                raise RegistryUnavailable("LAMINA_SCHEMA_REGISTRY is not set")
            # A made-up id is often greater than a real one.
            lowest = sorted(missing, key=lambda digits: (len(digits), digits))
            fetched = self.registry.schemas(lowest[:AT_A_TIME], patient=patient)
            self.database.retrying(partial(keep, topic=topic, ask_again=ask_again, fetched=fetched))
            answers = self.of(topic)
        return answers
