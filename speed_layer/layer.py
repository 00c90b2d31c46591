"""The speed layer as a process: a query per deployed source, begun anew whenever it can go on; small ones share a run.

It takes each query over with a fence token of its own. What can be waited for (Postgres, Kafka) is waited for; what
cannot (a newer speed layer, a topic that is another one, records that are gone) ends the query with its reason.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from py4j.protocol import Py4JError

from master_log.client import KafkaAway
from master_log.groups import Groups
from master_log.offsets import Offsets
from serving_layer.catalog import versions
from serving_layer.catalog.deployed import state
from serving_layer.monitoring import freshness
from serving_layer.postgres import phases
from serving_layer.postgres.database import PostgresError, first_line, is_away
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.progress import Fenced
from speed_layer.asking import ASKED_AT_ONCE, ASKED_EVERY, Asking, reached
from speed_layer.flow import Position
from speed_layer.judging import LONGEST_WAIT, Judge, halvings_after
from speed_layer.member import Member
from speed_layer.query import Query
from speed_layer.resources import Resources
from speed_layer.run import spark_is_gone
from speed_layer.runs import Runs
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

_T = TypeVar("_T")

LOOK_EVERY = 0.2
"""Seconds between two looks at the runs."""

CHECK_EVERY = 5.0
"""Seconds between two looks at the ids of the topics."""

CAUGHT_UP_EVERY = 1.0
"""Seconds between two looks whether there is anything left to count: what an idle view's freshness is told by."""

NOTE_EVERY = 20.0
"""Seconds between two tries to note the freshness of a minute: one of them falls into each."""

LEAP_EVERY = 1.0
"""Seconds between two looks whether a leap has landed."""

HEARD_EVERY = 1.0
"""Seconds between two signs of life: the console misses a speed layer after 4 (`lamina/console/watch.py`)."""


@dataclass
class SpeedLayer:
    """Runs the queries of the deployed catalog until `stopping` is set or none of them can go on."""

    resources: Resources
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    _queries: dict[str, Query] = field(default_factory=dict)
    _deployed_at: object = None
    _checked_at: float = 0.0
    _caught_up_at: float = 0.0
    _noted_at: float = -math.inf

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.resources, self.clock)

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.resources, self._judge, self.clock, self._queries)

    @cached_property
    def _groups(self) -> Groups:
        return self.resources.brokers.groups()

    def run(self, *, until_caught_up: bool = False) -> None:
        """Returns when it was stopped or, if asked, when progress has reached the ends the topics have now.

        A query that was refused is looked at again and again, since it may be mended from outside. Raises its reason
        where progress is to reach an end that no other can reach; at once when it was fenced.
        """
        try:
            with heartbeat(self._say_it_lives), heartbeat(self._show_progress):
                self._go_on(until_caught_up=until_caught_up)
            self._let_go()
            with suppress(PostgresError, LaminaError):
                self._show_progress()
        except (Py4JError, ConnectionError) as error:
            if not spark_is_gone(error):
                raise
            raise _ended("Spark's process has ended", first_line(error)) from error
        except (PostgresError, LaminaError) as error:
            self._let_go()  # whoever is refused has not died
            if not (self.stopping.is_set() and is_away(error)):  # what is away need not be waited for by who stops
                raise
        finally:
            for query in self._queries.values():
                query.forget_hang()
                query.forget_asking()
            self._runs.end(self._queries.values())
            self._groups.close()

    def _go_on(self, *, until_caught_up: bool) -> None:
        self._look_at_catalog()
        goal = self._when_kafka_answers(self._ends) if until_caught_up else None
        while not self.stopping.is_set():
            self.resources.database.waiting(self._look, give_up=self.stopping.is_set)
            refused = [query.refused for query in self._queries.values() if query.refused]
            fenced = [reason for reason in refused if isinstance(reason, Fenced)]
            if fenced or (goal is not None and refused and len(refused) == len(self._queries)):
                raise (fenced or refused)[0]
            if goal is not None and self._have_reached(goal):
                if refused:
                    raise refused[0]
                break
            self.stopping.wait(LOOK_EVERY)

    def _look(self) -> None:
        """One look at everything; it can be repeated from the start where Postgres goes away in the middle."""
        if self.resources.spark.sparkContext._jsc.sc().isStopped():  # noqa: SLF001 (pyspark has no public way to ask)
            raise _ended("Spark has stopped", "Its master removed the application, or somebody ended it.")
        self._look_at_catalog()
        self._runs.look()
        for query in self._queries.values():
            if query.member is None and self.clock() >= query.not_before and self._judge.may_go_on(query):
                self._begin(query)
        self._renew_spark()
        self._runs.begin()
        self._check_topics()
        self._note_caught_up()

    def _renew_spark(self) -> None:
        """Ends Spark's process, and starts another, where a task in it spins. Every run begins again from progress."""
        queries = self._queries.values()
        spinning = [hang for query in queries if (hang := query.hang) and hang.spins and not hang.ended]
        preparing = any(query.member is not None and query.member.flow.planner.spins() for query in queries)
        if self.resources.renew is None or not (spinning or preparing):
            return
        log.warning("Spark is started anew: it computes what was given up, and nothing else ends that")
        self._runs.end(queries)
        for query in queries:
            query.forget_asking()  # of the process that ends
        self.resources.renew()
        for hang in spinning:
            hang.ended = True

    def _look_at_catalog(self) -> None:
        """Follows what was applied, or is about to be: new sources are begun, dropped ones ended.

        A view that is new, changed or dropped needs no look: the next commit finds other tables of cells maintained.
        """
        with self.resources.database.snapshot() as connection:
            now = (state(connection), versions.awaited(connection))
            if now == self._deployed_at:
                return
            sources = versions.read(connection)
        self._deployed_at = now
        for name in [name for name, query in self._queries.items() if sources.get(name) != query.source]:
            gone = self._queries.pop(name)
            gone.forget_hang()
            gone.forget_asking()
            self._runs.end([gone])
            log.info("%s: %s", name, "declared anew" if name in sources else "dropped")
        for name, source in sources.items():
            self._queries.setdefault(name, Query(source))

    def _begin(self, query: Query) -> None:
        """Takes a query over, where it is not ours yet, and reads where it is."""
        try:
            if query.fence is None:
                with self.resources.database.begin() as connection:
                    progress.lock(connection, [query.source.name])
                    if rebuilds.leaping(connection):
                        query.not_before = self.clock() + LEAP_EVERY
                        return
                    query.fence = progress.take_over(connection, query.source.name, writer())
                    query.halvings = max(query.halvings, halvings_after(progress.deaths(connection, query.source.name)))
            if (where := self._reached(query)) is None:
                query.not_before = self.clock() + ASKED_EVERY
                return
            query.member = Member(self.resources, query.source, query.fence, where)
            query.behind = query.member.behind(self.resources.brokers.latest(query.source.topic))
        except Exception as error:
            query.member = None
            if spark_is_gone(error):
                raise  # no other run can begin
            self._judge.judge(query, error)  # which tells what can be waited for from what cannot

    def _reached(self, query: Query) -> Position | None:
        """Where a query is, with the log times that its member has to know; None while the log is asked for them."""
        if query.asking is not None and not query.asking.over:
            return None
        with self.resources.database.begin() as connection:
            known, question = reached(connection, query.source)
        if question is None:
            query.asking = None
            return known
        asking, query.asking = query.asking, None
        if asking is not None and asking.question == question:
            answer = {**(known.log_times or {}), **asking.answer()}
            query.asking = asking  # whose answer holds until a micro-batch is committed
            return replace(known, log_times=answer)
        if sum(each.asking is not None and not each.asking.over for each in self._queries.values()) < ASKED_AT_ONCE:
            log.info("%s: the log is asked for its log times", query.source.name)
            query.asking = Asking(self.resources, query.source, question)
        return None

    def _check_topics(self) -> None:
        """A topic that is deleted and created again while a query reads it would be read on at other records."""
        if self.clock() < self._checked_at + CHECK_EVERY:
            return
        self._checked_at = self.clock()
        if not self.resources.brokers.listening():  # each question would wait for them
            return
        for query in self._judge.in_doubt([query for query in self._queries.values() if query.refused is None]):
            if (reason := self._judge.lost_records(query)) is not None:
                self._runs.end([query])
                self._judge.refuse(query, reason)

    def _note_caught_up(self) -> None:
        """Asks once what the topics have, and notes of all queries how far behind they are."""
        if self.clock() < self._caught_up_at + CAUGHT_UP_EVERY:
            return
        self._caught_up_at = began = self.clock()
        running = {name: query for name, query in self._queries.items() if query.run is not None}
        if not running:
            return
        with suppress(PostgresError, LaminaError):
            ends = self.resources.brokers.latest(*(query.source.topic for query in running.values()))
            for query in running.values():
                query.note_end(began, Offsets.of(query.source.topic, ends.on(query.source.topic)))
            with self.resources.database.begin() as connection:
                now = self.clock()
                ago = {name: [(now - at, end) for at, end in query.ends] for name, query in running.items()}
                reached = progress.seen(connection, ago)
            for name, done in reached.items():
                query = running[name]
                query.reached(done)
                if not query.ends and self.clock() >= query.began + LONGEST_WAIT:
                    self._judge.well(query)

    def _say_it_lives(self) -> None:
        if fences := self._fences():
            with self.resources.database.begin() as connection:
                progress.wait_shortly(connection)
                progress.heard(connection, fences)
            if self.clock() >= self._noted_at + NOTE_EVERY:
                with self.resources.database.begin() as connection:
                    progress.wait_shortly(connection)
                    freshness.note(connection)
                    phases.note(connection, self.resources.phases.taken())
                self._noted_at = self.clock()

    def _show_progress(self) -> None:
        """Commits progress to Kafka's consumer groups, for Kafka's own tools. Nothing depends on it."""
        if fences := self._fences():
            with self.resources.database.begin() as connection:
                found = progress.of_each(connection, fences)
            self._groups.commit(found)

    def _let_go(self) -> None:
        """Ends in order: whoever reads the status need not look for this process."""
        self._runs.end(self._queries.values())
        with suppress(PostgresError, LaminaError), self.resources.database.begin() as connection:
            progress.let_go(connection, self._fences())
            phases.note(connection, self.resources.phases.taken())

    def _fences(self) -> dict[str, int]:
        # A copy: the heartbeat asks from another thread.
        return {name: query.fence for name, query in list(self._queries.items()) if query.fence is not None}

    def _when_kafka_answers(self, question: Callable[[], _T]) -> _T | None:
        """The answer, waited for; None when it was stopped meanwhile."""
        told = False
        while not self.stopping.is_set():
            try:
                return question()
            except KafkaAway as error:
                if not told:
                    log.warning("%s; waiting for it", error.what)
                told = True
                self.stopping.wait(LOOK_EVERY)
        return None

    def _ends(self) -> dict[str, Offsets]:
        return {name: self.resources.brokers.latest(query.source.topic) for name, query in self._queries.items()}

    def _have_reached(self, goal: dict[str, Offsets]) -> bool:
        def read() -> bool:
            with self.resources.database.begin() as connection:
                return all(
                    progress.read(connection, [name]).reaches(end)
                    for name, end in goal.items()
                    if name in self._queries and self._queries[name].refused is None
                )

        return self.resources.database.waiting(read, give_up=self.stopping.is_set)


@contextmanager
def heartbeat(say: Callable[[], None]) -> Iterator[None]:
    """Calls `say` at once and then every second while the block runs, in a thread that waits for nothing else.

    A call that fails is ignored.
    """
    ended = threading.Event()

    def beat() -> None:
        while True:
            with suppress(Exception):  # the next call may succeed
                say()
            if ended.wait(HEARD_EVERY):
                return

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(HEARD_EVERY)


def _ended(what: str, why: str) -> LaminaError:
    """Spark has gone, and this process with it: another one resumes."""
    way_out = "Start the speed layer again: it resumes from progress. Too little memory is the usual cause."
    return LaminaError(what, evidence=why, way_out=way_out)


def writer() -> str:
    """Who this process is, for whoever finds that it was taken over."""
    return f"process {os.getpid()} ({_TOKEN}) on {socket.gethostname()}"


_TOKEN = secrets.token_hex(2)
"""Tells this process from one of the same number, as in a container that was started again."""
