"""Sources that share a run: records count as if each source ran alone, and a failing source stops no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from master_log.connections.unavailable import unreachable
from master_log.kafka.brokers import Brokers
from master_log.kafka.fetching import Epochs, LeaderChanged
from master_log.offsets import Offsets, TopicPartition
from serving_layer.postgres.database import session_of
from serving_layer.promise import progress
from speed_layer.run import AT_ONCE
from tests.fix_lamina import PATIENCE, Deployed, hurried
from tests.fix_services import is_waited_for

SOURCE = """
    CREATE TABLE {0} (n BIGINT, name STRING) USING kafka OPTIONS (topic '{{topics}}_{0}', format 'json')
    TBLPROPERTIES ('partitions' = '2');
    CREATE VIEW {0}_total AS SELECT count(*) AS records, sum(n) AS n FROM {0};
    CREATE VIEW {0}_names AS SELECT name, min(n) AS least, max(n) AS most FROM {0} GROUP BY name;
"""


def apply(deployed: Deployed, *names: str, **files: str) -> None:
    deployed.apply(**{name: SOURCE.format(name) for name in names}, **files)


def send(deployed: Deployed, numbers: range, *names: str) -> None:
    for name in names:
        deployed.send(name, *({"n": n, "name": f"{name}{n % 3}"} for n in numbers))


def runs(deployed: Deployed) -> dict[str, str]:
    """The names of the running streaming queries, by Spark's id."""
    return {str(query.runId): str(query.name) for query in deployed.deployment.spark().streams.active}


def stopped(deployed: Deployed, name: str) -> str | None:
    [(why,)] = deployed.owner(f"SELECT stopped FROM lamina.query WHERE name = '{name}'")
    return None if why is None else str(why)


def records(deployed: Deployed, *names: str) -> list[Any]:
    return [deployed.rows(f"SELECT records FROM {name}_total")[0][0] for name in names]


def shared_by(deployed: Deployed, sources: int) -> bool:
    """True if this many sources share the only run."""
    names = list(runs(deployed).values())
    return len(names) == 1 and f"-and-{sources - 1}-more" in names[0]


def test_small_sources_share_a_run_and_each_view_equals_its_select(deployed: Deployed) -> None:
    names = ("a", "b", "c", "d", "e")
    apply(deployed, *names)
    send(deployed, range(100), *names)
    with deployed.speed():
        for name in names:
            deployed.wait_for(name)
        assert shared_by(deployed, 5)
        before = runs(deployed)
        deployed.send("b", b"no JSON", {"n": 1000, "name": "b"})
        send(deployed, range(100, 150), "a", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        assert runs(deployed) == before
    assert records(deployed, *names) == [150, 101, 150, 100, 100]
    assert deployed.rows("SELECT error, records FROM lamina.bad_records") == [("not JSON", 1)]
    assert len(deployed.check()) == 10


def test_a_failing_source_leaves_the_shared_run_and_returns(
    deployed: Deployed, caplog: pytest.LogCaptureFixture
) -> None:
    apply(deployed, "a", "b", "c")
    [(point,)] = deployed.owner("SELECT place FROM lamina.generation_cells WHERE cell_table LIKE 'a_names%'")
    with deployed.speed(clock=hurried):
        send(deployed, range(10), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        deployed.owner(f"ALTER TABLE {point} ADD CONSTRAINT never CHECK (false) NOT VALID")
        send(deployed, range(10, 20), "a", "b", "c")
        for number in range(20, 30):
            send(deployed, range(number, number + 1), "b", "c")
            deployed.wait_for("b")
            deployed.wait_for("c")
        deployed.until(lambda: "fails again and again" in str(stopped(deployed, "a")), "status says why")
        assert stopped(deployed, "b") is stopped(deployed, "c") is None
        assert records(deployed, "a", "b", "c") == [10, 30, 30]
        messages = [line.getMessage() for line in caplog.records if line.name == "lamina.speed"]
        assert not [message for message in messages if message.startswith(("b:", "c:", "b, ", "c, "))]
        deployed.owner(f"ALTER TABLE {point} DROP CONSTRAINT never")
        deployed.wait_for("a")
        deployed.until(lambda: shared_by(deployed, 3), "it has returned")
        send(deployed, range(20, 50), "a", "b")
        deployed.wait_for("a")
        deployed.wait_for("b")
    assert records(deployed, "a", "b", "c") == [50, 60, 30]
    assert len(deployed.check()) == 6


def test_a_recreated_topic_stops_its_source_and_no_other(deployed: Deployed) -> None:
    apply(deployed, "a", "b", "c")
    topic, brokers = deployed.topic("a"), deployed.deployment.brokers
    with deployed.speed():
        send(deployed, range(10), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        brokers.delete(topic)
        deployed.until(lambda: brokers.topic_id(topic) is None, "the topic is gone")
        brokers.create(topic, 2)
        send(deployed, range(20), "a")
        send(deployed, range(10, 20), "b", "c")
        deployed.wait_for("b")
        deployed.wait_for("c")
        deployed.until(lambda: "created again" in str(stopped(deployed, "a")), "status says why")
        send(deployed, range(20, 30), "b", "c")
        deployed.wait_for("b")
        deployed.wait_for("c")
    assert records(deployed, "a", "b", "c") == [10, 30, 30]
    assert stopped(deployed, "b") is stopped(deployed, "c") is None


def test_a_topic_whose_end_was_lost_stops_its_source_and_no_other(deployed: Deployed) -> None:
    apply(deployed, "a", "b", "c")
    with deployed.speed(clock=hurried):
        send(deployed, range(10), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        deployed.owner("UPDATE lamina.progress SET tail = 'offsets 0 to 0 (another)' WHERE query = 'a'")
        deployed.until(lambda: "has lost records" in str(stopped(deployed, "a")), "status says why")
        send(deployed, range(10, 20), "a", "b", "c")
        deployed.wait_for("b")
        deployed.wait_for("c")
    assert records(deployed, "a", "b", "c") == [10, 20, 20]


class Elections(Brokers):
    """Brokers with a topic that lacks a leader, or whose leaders change.

    has_leader: if False, any question about the topic's ends fails
    changes: the number of further questions about its tails during which its leader changes, after the tails of
        another topic have arrived
    """

    def __init__(self, kafka: str) -> None:
        super().__init__(kafka)
        self._others_answered = threading.Event()

    topic = ""
    has_leader = True
    changes = 0

    def latest(self, *topics: str) -> Offsets:
        """Kafka's answer, unless the topic has no leader."""
        if self.topic in topics and not self.has_leader:
            raise unreachable(self.bootstrap_servers, [f"{self.topic}: LeaderNotAvailableError"])
        return super().latest(*topics)

    def tails(self, below: Offsets, epochs: Epochs | None = None) -> dict[TopicPartition, str]:
        """Kafka's answer, unless the topic's leader changes."""
        if self.changes and epochs and self.topic in below.topics():
            self.changes -= 1
            self._others_answered.wait(1.0)  # unless no other topic is asked for
            self._others_answered.clear()
            raise LeaderChanged("Partition 0 has another leader")
        tails = super().tails(below, epochs)
        self._others_answered.set()
        return tails


@pytest.fixture
def elections(deployed: Deployed, kafka: str) -> Iterator[Elections]:
    """The brokers of the deployment."""
    with Elections(kafka) as brokers:
        deployed.deployment.brokers = brokers
        yield brokers


def test_an_unanswered_topic_delays_no_other_source(deployed: Deployed, elections: Elections) -> None:
    apply(deployed, "a", "b", "c")
    elections.topic, elections.has_leader = deployed.topic("a"), False
    with deployed.speed(clock=hurried):
        send(deployed, range(10), "a", "b", "c")
        deployed.wait_for("b")
        deployed.wait_for("c")
        elections.has_leader = True
        deployed.wait_for("a")
    assert records(deployed, "a", "b", "c") == [10, 10, 10]


def test_a_new_leader_of_a_partition_stops_no_source_and_all_stay_in_one_run(
    deployed: Deployed, elections: Elections, caplog: pytest.LogCaptureFixture
) -> None:
    apply(deployed, "a", "b", "c")
    elections.topic = deployed.topic("b")
    caplog.set_level("INFO", "lamina.speed")
    with deployed.speed():
        send(deployed, range(10), "a", "c")
        for name in ("a", "c"):
            deployed.wait_for(name)
        elections.changes = 2
        send(deployed, range(10, 30), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        send(deployed, range(30, 40), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        assert shared_by(deployed, 3)
    assert elections.changes == 0
    lines = [line for line in caplog.records if line.name == "lamina.speed" and line.levelname != "INFO"]
    assert [line.getMessage() for line in lines] == []
    assert records(deployed, "a", "b", "c") == [40, 30, 40]


def test_a_commit_that_waits_for_a_lock_delays_no_other_source(deployed: Deployed) -> None:
    apply(deployed, "a", "b", "c")
    with deployed.speed():
        send(deployed, range(10), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        with deployed.deployment.database.begin() as connection:
            progress.lock(connection, ["a"])
            for number in range(10, 20):
                send(deployed, range(number, number + 1), "a", "b", "c")
                deployed.wait_for("b")
                deployed.wait_for("c")
            assert records(deployed, "a", "b", "c") == [10, 20, 20]
        deployed.wait_for("a")
    assert records(deployed, "a", "b", "c") == [20, 20, 20]
    assert len(deployed.check()) == 6


def test_a_run_can_end_while_a_commit_waits_for_a_lock(deployed: Deployed) -> None:
    apply(deployed, "a", "b")
    database = deployed.deployment.database
    with ExitStack() as held:
        with deployed.speed():
            send(deployed, range(10), "a", "b")
            deployed.wait_for("a")
            deployed.wait_for("b")
            connection = held.enter_context(database.begin())
            progress.lock(connection, ["a"])
            send(deployed, range(10, 20), "a")
            deployed.until(lambda: is_waited_for(database, session_of(connection)), "the commit waits")
        assert "speed layer" not in {thread.name for thread in threading.enumerate()}, "it has ended despite the lock"
    deployed.until(lambda: records(deployed, "a", "b") == [20, 10], "the commit continues once the lock is free")
    deployed.catch_up()
    assert records(deployed, "a", "b") == [20, 10]
    assert len(deployed.check()) == 4


def test_a_source_alone_can_stop_while_its_commit_waits_for_a_lock(deployed: Deployed) -> None:
    apply(deployed, "a")
    database, points = deployed.deployment.database, list[str]()
    deployed.deployment.at = points.append
    with ExitStack() as held:
        with deployed.speed():
            send(deployed, range(10), "a")
            deployed.wait_for("a")
            connection = held.enter_context(database.begin())
            progress.lock(connection, ["a"])
            send(deployed, range(10, 20), "a")
            deployed.until(lambda: is_waited_for(database, session_of(connection)), "the commit waits")
            points.clear()
            send(deployed, range(20, 30), "a")
            deployed.until(lambda: "before waiting for the commit" in points, "the next micro-batch waits for it")
            stopping = time.monotonic()
        assert time.monotonic() < stopping + 30, "Spark does not wait for a micro-batch that waits for the lock"
    deployed.until(lambda: records(deployed, "a") == [20], "the commit continues once the lock is free")
    deployed.catch_up()
    assert records(deployed, "a") == [30]
    assert len(deployed.check()) == 2


def test_a_run_outlives_new_and_dropped_views_and_generations(deployed: Deployed) -> None:
    extra = "CREATE VIEW a_greatest AS SELECT max(n) AS n FROM a;"
    apply(deployed, "a", "b")
    with deployed.speed():
        send(deployed, range(10), "a", "b")
        deployed.wait_for("a")
        deployed.wait_for("b")
        before = runs(deployed)
        deployed.apply(extra=extra)
        send(deployed, range(10, 20), "a", "b")
        deployed.wait_for("a")
        deployed.deployment.batch.rebuild()
        send(deployed, range(20, 30), "a")
        deployed.wait_for("a")
        assert deployed.rows("SELECT n FROM a_greatest") == [(29,)]
        del deployed.files["extra.sql"]
        deployed.apply()
        send(deployed, range(30, 40), "a", "b")
        deployed.wait_for("a")
        deployed.wait_for("b")
        assert runs(deployed) == before
    assert records(deployed, "a", "b") == [40, 30]
    assert len(deployed.check()) == 4


def test_a_busy_source_has_a_run_of_its_own(deployed: Deployed) -> None:
    apply(deployed, "a", "b", "c")
    with deployed.speed():
        send(deployed, range(10), "a", "b", "c")
        for name in ("a", "b", "c"):
            deployed.wait_for(name)
        assert shared_by(deployed, 3)
        send(deployed, range(10, 5_000), "a")  # within two periods at most: one of them is too large for a shared run
        deployed.until(lambda: len(runs(deployed)) == 2, "it has a run of its own")
        send(deployed, range(5_000, 5_100), "a", "b")
        deployed.wait_for("a")
        deployed.wait_for("b")
    assert records(deployed, "a", "b", "c") == [5_100, 110, 10]


def test_a_stopped_run_computes_no_further_member(deployed: Deployed) -> None:
    names = ("a", "b", "c", "d", "e", "f")
    apply(deployed, *names)
    send(deployed, range(10), *names)
    computing: list[str] = []
    cancelled = threading.Event()

    def wait_for_the_end(point: str) -> None:
        if point == "before computing":
            computing.append(point)
            cancelled.wait(PATIENCE)
        elif point == "after cancelling":
            cancelled.set()

    deployed.deployment.at = wait_for_the_end
    with deployed.speed():
        deployed.until(lambda: len(computing) == AT_ONCE, "as many members as can are computing")
    assert len(computing) == AT_ONCE
    deployed.deployment.at = lambda point: None
    deployed.catch_up()
    assert records(deployed, *names) == [10] * 6
