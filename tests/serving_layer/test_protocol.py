"""The real transactions in any order: the invariant of `generations.py` holds after every step.

`protocol_model.py` explores every interleaving of a model. Here hypothesis runs the code itself on a real Postgres.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, text

from master_log.offsets import Offsets
from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from serving_layer.postgres import cells
from serving_layer.postgres.database import Database
from serving_layer.promise import generations, progress
from serving_layer.promise.micro_batch import MicroBatch, Outcome
from serving_layer.promise.progress import Fenced
from serving_layer.upkeep import dropping
from tests.serving_layer.world import World, assert_invariant, landing
from view_algebra.errors import LaminaError

VIEWS = st.sampled_from(["sums", "counts", "both"])
RECORDS = st.lists(
    st.one_of(st.none(), st.tuples(st.sampled_from(["x", "y", None]), st.integers(-3, 3))), min_size=1, max_size=3
)


class Protocol(RuleBasedStateMachine):
    """The steps of the protocol as rules over one database, which each run empties first."""

    serving: ClassVar[Database]

    in_flight = Bundle("in_flight")
    building = Bundle("building")

    @initialize()
    def deploy(self) -> None:
        with self.serving.begin() as connection:
            empty(connection)
        self.world = World(self.serving)
        self.world.deploy()

    @rule(place=st.sampled_from([("a", 0), ("a", 1), ("b", 0)]), records=RECORDS)
    def append(self, place: tuple[str, int], records: list[tuple[str | None, int] | None]) -> None:
        self.world.append(*place, *records)

    @rule(target=in_flight, query=st.sampled_from(["a", "b"]), behind=st.booleans(), part=st.booleans())
    def compute(self, query: str, behind: bool, part: bool) -> MicroBatch:
        """A micro-batch of all new records or of half, from progress or replayed from the beginning."""
        world = self.world
        start = Offsets(dict.fromkeys(world.end(query), 0)) if behind else world.progress(query)
        end = world.end(query)
        if part:
            end = Offsets({at: max(start.get(at, 0), offset // 2) for at, offset in end.items()})
        return world.micro_batch(query, start, end)

    @rule(batch=in_flight)
    def commit(self, batch: MicroBatch) -> None:
        """Commits any earlier micro-batch, any number of times."""
        before = self.world.progress(batch.query)
        try:
            outcome = self.world.commit(batch)
        except Fenced:
            outcome = None
        if outcome is not Outcome.APPLIED:
            assert self.world.progress(batch.query) == before

    @rule(query=st.sampled_from(["a", "b"]))
    def take_over(self, query: str) -> None:
        with self.serving.begin() as connection:
            self.world.fences[query] = progress.take_over(connection, query, "another")

    @rule(target=building, view=VIEWS)
    def open(self, view: str) -> int:
        return self.world.open(view)

    @rule(id=building)
    def load(self, id: int) -> None:
        if self.state(id) == "building" and not self.absorbed(id):
            self.world.load(id)

    @rule(id=building)
    def absorb(self, id: int) -> None:
        if self.state(id) == "building" and self.loaded(id):
            generations.absorb(self.serving, id)

    @rule(id=building)
    def go_live(self, id: int) -> None:
        if self.state(id) == "building" and self.loaded(id):
            self.serving.retrying(lambda connection: generations.go_live(connection, [id]))

    @rule(id=building)
    def hand_over(self, id: int) -> None:
        if self.state(id) == "live":
            with self.serving.begin() as connection:
                generations.hand_over(connection, {lookup.get(connection, id).view: id})

    @rule(view=VIEWS)
    def roll_back(self, view: str) -> None:
        try:
            with self.serving.begin() as connection:
                rollbacks.roll_back(connection, view)
        except LaminaError as error:
            assert "no older live generation" in error.what  # noqa: PT017 (either way is right)

    @rule(view=VIEWS)
    def retire(self, view: str) -> None:
        with self.serving.begin() as connection:
            generations.retire(connection, generations.superseded(connection, view))

    @rule(id=consumes(building))
    def abandon(self, id: int) -> None:
        with self.serving.begin() as connection:
            if id not in lookup.published(connection).values():
                generations.retire(connection, [id])

    @rule()
    def drop(self) -> None:
        dropping.drop_unused(self.serving)

    @precondition(lambda self: self.world.end("a") != self.world.progress("a"))
    @rule()
    def leap(self) -> None:
        """All views and both queries, since `both` joins them."""
        world = self.world
        with self.serving.begin() as connection:
            world.fences = {name: progress.take_over(connection, name, "a leap") for name in ("a", "b")}
        to = Offsets({**world.end("a"), **world.end("b")})
        ids = []
        for view in ("sums", "counts", "both"):
            with self.serving.begin() as connection:
                ids.append(generations.open_building(connection, view, rebuild=None, at=to).id)
            world.load(ids[-1])
        with self.serving.begin() as connection:
            generations.land(connection, ids, world.fences, landing(to, world.fences))

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            assert_invariant(self.world)

    def state(self, id: int) -> str:
        with self.serving.begin() as connection:
            return lookup.get(connection, id).state

    def loaded(self, id: int) -> bool:
        return self.all_of(id, "loaded_at IS NOT NULL")

    def absorbed(self, id: int) -> bool:
        return not self.all_of(id, "absorbed = 0")

    def all_of(self, id: int, condition: str) -> bool:
        with self.serving.begin() as connection:
            query = text(f"SELECT bool_and({condition}) FROM lamina.generation_cells WHERE generation = :id")
            return bool(connection.execute(query, {"id": id}).scalar_one())


def empty(connection: Connection) -> None:
    """Drops everything that an earlier run deployed."""
    tables = connection.execute(
        text(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('cells', 'realtime')"
            " AND NOT EXISTS"
            " (SELECT FROM pg_inherits WHERE inhrelid = format('%I.%I', schemaname, tablename)::regclass)"
        )
    ).scalars()
    for view in (
        connection.execute(text("SELECT viewname FROM pg_views WHERE schemaname = 'analytics'")).scalars().all()
    ):
        cells.run(connection, f'DROP VIEW analytics."{view}" CASCADE')
    for table in tables.all():
        cells.run(connection, f"DROP TABLE {table} CASCADE")
    for table in (
        "generation",
        "query",
        "cell_table",
        "view",
        "declaration",
        "compiled",
        "publication",
        "proof",
        "noted",
    ):
        cells.run(connection, f"TRUNCATE lamina.{table} CASCADE")


def test_any_order_of_steps_keeps_live_generations_equal_to_the_records_below_progress(serving: Database) -> None:
    run_state_machine_as_test(
        type("ProtocolOverThisDatabase", (Protocol,), {"serving": serving}),
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
