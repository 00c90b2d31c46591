"""The answer of a registry is decided once for every layer, even if a producer invents any number of ids."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from master_log.reading.schema_registry import Registry
from serving_layer.postgres.database import Database
from serving_layer.promise.kept_schemas import MARGIN, MOST_LACKED, KeptSchemas, keep
from tests.serving_layer.world import World
from view_algebra.formats import frames
from view_algebra.formats.interface import NoText, Schema, Schemas

LONG, TEXT = Schema("AVRO", '"long"'), Schema("AVRO", '"string"')


@dataclass(frozen=True)
class RecordingRegistry(Registry):
    """A registry with these schemas that records its requests."""

    has: dict[str, Schema] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def schemas(self, ids: Collection[str], *, patient: bool = True) -> dict[str, Schema | None]:
        self.asked.extend(ids)
        return {id: self.has.get(id) for id in ids}


def schemas_of(database: Database, has: dict[str, Schema]) -> KeptSchemas:
    return KeptSchemas(database, RecordingRegistry([], has=has))


def asked(schemas: KeptSchemas) -> list[str]:
    assert isinstance(schemas.registry, RecordingRegistry)
    return schemas.registry.asked


def reason(id: str, schemas: Schemas) -> str:
    with pytest.raises(NoText) as raised:
        frames.find_schema(id, schemas, "AVRO")
    return str(raised.value)


def test_a_missing_schema_is_requested_again_with_another_ask_again(world: World) -> None:
    schemas = schemas_of(world.database, {"1": LONG})
    assert schemas.learn("t", 0, ["1", "2"]) == {0: {"1": LONG, "2": None}}
    now = schemas_of(world.database, {"1": TEXT, "2": TEXT})
    assert now.learn("t", 0, ["1", "2"]) == {0: {"1": LONG, "2": None}}
    assert asked(now) == []
    assert now.learn("t", 1, ["1", "2"]) == {0: {"1": LONG, "2": None}, 1: {"1": TEXT, "2": TEXT}}
    assert sorted(asked(now)) == ["1", "2"], "another registry may have had another schema with the id"
    assert now.learn("another", 0, ["2"]) == {0: {"2": TEXT}}


def test_a_producer_of_random_ids_fills_no_table_and_hides_no_schema(world: World) -> None:
    schemas = schemas_of(world.database, {"7": LONG, "123456": TEXT, "3000000000": LONG})
    made_up = [str(2_000_000_000 + number) for number in range(20_000)]
    answers = schemas.learn("t", 0, ["7", *made_up])[0]
    assert len(answers) < MOST_LACKED + 200
    assert len(asked(schemas)) == len(answers) - 1
    line = f"the registry lacked too many schemas to be asked for one above {MARGIN + 7}: "
    way_out = "if it has by now, raise ask_again in OPTIONS and apply"
    assert reason(made_up[-1], answers) == line + way_out
    assert reason("3000000000", answers) == line + way_out
    assert schemas.learn("t", 0, made_up) == {0: answers}
    assert frames.find_schema("123456", schemas.learn("t", 0, ["123456", "3000000000"])[0], "AVRO") == TEXT
    assert schemas.learn("t", 1, ["3000000000"])[1] == {"3000000000": LONG}


def test_a_schema_found_by_another_process_after_the_decision_changes_nothing(world: World) -> None:
    schemas = schemas_of(world.database, {})
    schemas.learn("t", 0, ["5", *map(str, range(2_000_000_000, 2_000_001_000))])
    answers = schemas.of("t")
    with world.database.begin() as connection:
        keep(connection, "t", 0, {"5": LONG, "3000000000": LONG})
    assert schemas.of("t") == answers
