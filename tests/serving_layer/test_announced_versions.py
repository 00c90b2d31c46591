"""New versions are announced before they are opened, and forgotten if they are not opened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, text

from batch_layer import reprocess
from batch_layer.rebuild import BatchLayer
from master_log.kafka.brokers import Brokers
from master_log.offsets import Offsets, TopicPartition
from serving_layer import narration
from serving_layer.catalog import lookup, versions
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from serving_layer.postgres.database import session_of
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.source_queries import End
from serving_layer.upkeep import dropping
from tests.serving_layer.changing import BY_KEY, left, until_blocked, until_waited_for
from tests.serving_layer.world import World, empty
from view_algebra import Catalog, compile_catalog
from view_algebra.compiled import View


def announce(connection: Connection, new: Sequence[View], catalog: Catalog) -> None:
    deploying.announce(connection, new, catalog)


def open_versions(connection: Connection, new: Sequence[View], catalog: Catalog) -> None:
    id = rebuilds.begin(connection, [], purpose=rebuilds.APPLY)
    deploying.open_versions(connection, new, catalog, id)


@pytest.mark.parametrize("step", [announce, open_versions])
def test_a_session_that_waits_for_a_query_holds_no_lock_on_versions(
    world: World, step: Callable[[Connection, Sequence[View], Catalog], None]
) -> None:
    catalog = compile_catalog({**world.files, "counts.sql": BY_KEY})
    waiting: list[int] = []

    def wait() -> None:
        with suppress(GivenUp), world.database.begin() as connection:
            waiting.append(session_of(connection))
            step(connection, [catalog.views["counts"]], catalog)
            raise GivenUp

    other = threading.Thread(target=wait)
    with world.database.begin() as connection:
        progress.lock(connection, ["a"])
        other.start()
        until_blocked(world, waiting)
        connection.execute(text("SET LOCAL lock_timeout = '300ms'"))
        versions.lock(connection)
    other.join()


class GivenUp(Exception):
    """Raised to roll back."""


def test_an_announced_version_is_not_forgotten_while_it_is_opened(world: World) -> None:
    world.files["counts.sql"] = BY_KEY
    catalog = compile_catalog(world.files)
    with world.database.begin() as connection:
        changes = deploying.plan(connection, catalog)
        after, soon = deploying.to_compute(connection, catalog, changes)
        assert [version.name for version in soon] == ["counts"]
        assert not deploying.announce(connection, soon, after), "nobody commits"
    with world.database.begin() as connection:
        names = {table.name for version in soon for table in version.cell_tables}
        assert versions.announced_tables(connection, "a") == names
    failed: list[BaseException] = []

    def drop() -> None:
        try:
            dropping.drop_unused(world.database)
        except BaseException as error:  # noqa: BLE001 (asserted below)
            failed.append(error)

    with world.database.begin() as connection:
        id = rebuilds.begin(connection, ["counts"], purpose=rebuilds.APPLY)
        deploying.open_changed(connection, catalog, changes, {}, {}, id)
        dropper = threading.Thread(target=drop)
        dropper.start()
        until_waited_for(world, connection)
    dropper.join()
    assert failed == []
    with world.database.begin() as connection:
        [opened] = lookup.generations_of_rebuild(connection, id)
        assert versions.get(connection, "counts", opened.version).view == soon[0]
        assert versions.announced_tables(connection, "a") == set()
        kept = text("SELECT cell_table FROM lamina.generation_cells WHERE generation = :id")
        assert set(connection.execute(kept, {"id": opened.id}).scalars()) == names


def test_an_announced_version_that_was_not_opened_is_forgotten(world: World) -> None:
    dropping.drop_unused(world.database)
    before = left(world)
    world.files["counts.sql"] = BY_KEY
    catalog = compile_catalog(world.files)
    with world.database.begin() as connection:
        after, soon = deploying.to_compute(connection, catalog, deploying.plan(connection, catalog))
        deploying.announce(connection, soon, after)
    assert left(world) != before
    dropping.drop_unused(world.database)
    assert left(world) == before


def test_an_apply_says_that_it_waits_for_the_speed_layer(world: World) -> None:
    world.append("a", 0, ("x", 1))
    world.advance("a")
    catalog = compile_catalog({**world.files, "counts.sql": BY_KEY})
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        with world.database.begin() as connection:
            for name in versions.announced_tables(connection, "a"):
                versions.note_prepared(connection, name)

    def no_session() -> Any:
        return None

    batch = BatchLayer(world.database, Brokers("nowhere:0"), no_session, pytest.fail, "no address", tell)
    with world.database.begin() as connection:
        announced = deploying.announce(connection, [catalog.views["counts"]], catalog)
    reprocess.await_prepared(batch, announced)
    assert lines == ["the speed layer prepares for the new versions …"]


def test_an_apply_says_that_it_runs_checks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narration, "SILENT_SECONDS", 0.0)
    lines: list[str] = []
    batch = BatchLayer(world.database, Brokers("nowhere:0"), pytest.fail, pytest.fail, "no address", lines.append)
    world.append("a", 0, ("x", 1))
    world.advance("a")
    positive = "ALTER VIEW sums ADD CONSTRAINT positive CHECK (c > 0);"
    doubled = world.files["sums.sql"].replace("count(*)", "2 * count(*)")
    files = {**world.files, "sums.sql": doubled, "positive.sql": positive}
    reprocess.deploy(batch, Target(files, compile_catalog(files), {}))
    assert lines == ["running the checks over the new rows …"]


NEW_SOURCE = "CREATE TABLE c (k STRING, n BIGINT) USING kafka OPTIONS (topic '{}', format 'json');"


def left_by_a_dead_apply(world: World, topic: str) -> tuple[int, Catalog]:
    """The rebuild and the catalog of an apply that died after it had opened a version over a new source."""
    moved = world.files["sums.sql"].replace("FROM a", "FROM c")
    files = world.files | {"c.sql": NEW_SOURCE.format(topic), "sums.sql": moved}
    catalog = compile_catalog(files)
    at = Offsets.of(topic, {0: 7})
    with world.database.begin() as connection:
        id = rebuilds.begin(connection, ["sums"], purpose=rebuilds.APPLY)
        arguments = (catalog, deploying.plan(connection, catalog), {"c": empty("id-c", topic)})
        deploying.open_changed(connection, *arguments, {"c": End(at, {TopicPartition(topic, 0): "a tail"})}, id)
        assert progress.read_with_tails(connection, "c") == (at, {TopicPartition(topic, 0): "a tail"})
    return id, catalog


def test_a_query_created_by_a_dead_apply_begins_at_the_first_record_in_another_catalog(world: World) -> None:
    id, _ = left_by_a_dead_apply(world, "c")
    new = {"c.sql": NEW_SOURCE.format("c"), "of_c.sql": "CREATE VIEW of_c AS SELECT count(*) AS n FROM c;"}
    files = world.files | new
    with world.database.begin() as connection:
        deploying.apply(connection, Target(files, compile_catalog(files), {"c": empty("id-c", "c")}))
        assert progress.read_with_tails(connection, "c") == (Offsets.of("c", {0: 0}), {})
        assert rebuilds.get(connection, id).state == "failed"
        assert "of_c" in lookup.published(connection), "every record was counted"
    with world.database.begin() as connection:
        world.apply(connection)


def test_a_dead_apply_is_not_resumed_if_its_source_reads_another_topic(world: World) -> None:
    id, catalog = left_by_a_dead_apply(world, "c")
    batch = BatchLayer(world.database, Brokers("nowhere:0"), pytest.fail, pytest.fail, "no address")
    source = replace(catalog.sources["c"], topic="d")
    other = replace(catalog, sources={**catalog.sources, "c": source})
    for wanted, resumed in ((catalog, True), (other, False)):
        with world.database.begin() as connection:
            versions = [catalog.views["sums"]]
            opened, is_new = reprocess.resume_or_begin(connection, batch, rebuilds.APPLY, versions, wanted)
            assert (opened == id, is_new) == (resumed, not resumed)
    with world.database.begin() as connection:
        world.apply(connection)
