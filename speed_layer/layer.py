"""The speed layer as a process: one query per deployed source, restarted whenever it can continue.

It takes over each query with a fence token of its own. It waits for what may return (Postgres, Kafka). Otherwise the
query ends with its reason: a newer speed layer, another topic of the same name, records that are gone.
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

from py4j.protocol import Py4JError

from master_log.connections.unavailable import KafkaUnavailable
from master_log.kafka.groups import Groups
from master_log.offsets import Offsets
from serving_layer.catalog import versions
from serving_layer.catalog.deployed import state
from serving_layer.monitoring import freshness_history
from serving_layer.postgres import phases
from serving_layer.postgres.database import PostgresError, first_line, is_unavailable
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.progress import Fenced
from speed_layer.inquiry import ASKED_AT_ONCE, ASKED_EVERY, Inquiry, at_progress
from speed_layer.judge import LONGEST_WAIT, Judge
from speed_layer.member import Member
from speed_layer.position import Position
from speed_layer.query import Query
from speed_layer.resources import Resources
from speed_layer.run import spark_is_gone
from speed_layer.runs import Runs
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

LOOK_EVERY = 0.2
"""Seconds between two looks at the runs."""

CHECK_EVERY = 5.0
"""Seconds between two looks at the ids of the topics."""

CAUGHT_UP_EVERY = 1.0
"""Seconds between two comparisons of progress with the ends of topics, by which an idle view stays fresh."""

NOTE_EVERY = 20.0
"""Seconds between two attempts to note freshness, so that every minute has one."""

LEAP_EVERY = 1.0
"""Seconds between two checks for the landing of a leap."""

HEARD_EVERY = 1.0
"""Seconds between two heartbeats. The console reports the loss of a speed layer after 4."""


@dataclass
class SpeedLayer:
    """Runs the queries of the deployed catalog until `stopping` is set or none of them can continue."""

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
        """Returns when it is stopped or, with `until_caught_up`, when progress has reached the current ends of topics.

        It looks at a refused query repeatedly, since its reason may go away. Raises that reason if progress cannot
        reach an end without the query, and at once if the query was fenced.
        """
        try:
            with heartbeat(self._show_life), heartbeat(self._show_progress):
                self._run(until_caught_up=until_caught_up)
            self._release()
            with suppress(PostgresError, LaminaError):
                self._show_progress()
        except (Py4JError, ConnectionError) as error:
            if not spark_is_gone(error):
                raise
            raise _spark_ended("Spark's process has ended", first_line(error)) from error
        except (PostgresError, LaminaError) as error:
            self._release()  # a refused process has not died
            if not (self.stopping.is_set() and is_unavailable(error)):  # a stopping process does not wait for a server
                raise
        finally:
            for query in self._queries.values():
                query.close()
            self._runs.end(self._queries.values())
            self._groups.close()

    def _run(self, *, until_caught_up: bool) -> None:
        self._follow_catalog()
        goal = self._ends() if until_caught_up else None
        while not self.stopping.is_set():
            self.resources.database.waiting(self._tick, give_up=self.stopping.is_set)
            refused = [query.trouble.refused for query in self._queries.values() if query.trouble.refused]
            fenced = [reason for reason in refused if isinstance(reason, Fenced)]
            if fenced or (goal is not None and refused and len(refused) == len(self._queries)):
                raise (fenced or refused)[0]
            if goal is not None and self._have_reached(goal):
                if refused:
                    raise refused[0]
                break
            self.stopping.wait(LOOK_EVERY)

    def _tick(self) -> None:
        """Looks at everything once. If Postgres goes away in the middle, the look can be repeated from its start."""
        if self.resources.spark.sparkContext._jsc.sc().isStopped():  # noqa: SLF001 (pyspark has no public way to ask)
            raise _spark_ended("Spark has stopped", "Its master removed the application, or a person ended it.")
        self._follow_catalog()
        self._runs.look()
        for query in self._queries.values():
            if query.member is None and self.clock() >= query.not_before and self._judge.may_run(query):
                self._begin(query)
        self._renew_spark()
        self._runs.begin()
        self._check_topics()
        self._note_caught_up()

    def _renew_spark(self) -> None:
        """Replaces Spark's process if a task in it spins. Every run begins again from progress."""
        queries = self._queries.values()
        spinning = [hang for query in queries if (hang := query.trouble.hang) and hang.spins and not hang.ended]
        preparing = any(query.member is not None and query.member.preparation.spins() for query in queries)
        if self.resources.renew is None or not (spinning or preparing):
            return
        log.warning("Spark is restarted: a task that was given up still runs, and nothing else ends it")
        self._runs.end(queries)
        for query in queries:
            query.forget_inquiry()  # it runs in the process that ends
        self.resources.renew()
        for hang in spinning:
            hang.ended = True

    def _follow_catalog(self) -> None:
        """Begins the sources that were deployed, or are about to be, and ends those that were dropped.

        New, changed and dropped views need no look: the next commit finds that other tables of cells are maintained.
        """
        with self.resources.database.snapshot() as connection:
            now = (state(connection), versions.awaited_sources(connection))
            if now == self._deployed_at:
                return
            sources = versions.sources_to_read(connection)
        self._deployed_at = now
        for name in [name for name, query in self._queries.items() if sources.get(name) != query.source]:
            gone = self._queries.pop(name)
            gone.close()
            self._runs.end([gone])
            log.info("%s: %s", name, "its declaration has changed" if name in sources else "dropped")
        for name, source in sources.items():
            self._queries.setdefault(name, Query(source))

    def _begin(self, query: Query) -> None:
        """Takes a query over, unless it is ours already, and begins a member at its progress."""
        try:
            if query.fence is None:
                with self.resources.database.begin() as connection:
                    progress.lock(connection, [query.source.name])
                    if rebuilds.is_leaping(connection):
                        query.not_before = self.clock() + LEAP_EVERY
                        return
                    query.fence = progress.take_over(connection, query.source.name, writer())
                    self._judge.note_deaths(query, progress.deaths(connection, query.source.name))
            if (start := self._start(query)) is None:
                query.not_before = self.clock() + ASKED_EVERY
                return
            query.member = Member(self.resources, query.source, query.fence, start)
            query.backlog.behind = query.member.behind(self.resources.brokers.latest(query.source.topic))
        except Exception as error:
            query.member = None
            if spark_is_gone(error):
                raise  # no other run can begin
            self._judge.decide(query, error)

    def _start(self, query: Query) -> Position | None:
        """The position at a query's progress, with the log times it needs, or None while the log is asked for them."""
        if query.inquiry is not None and not query.inquiry.over:
            return None
        with self.resources.database.begin() as connection:
            position, question = at_progress(connection, query.source)
        if question is None:
            query.inquiry = None
            return position
        inquiry, query.inquiry = query.inquiry, None
        if inquiry is not None and inquiry.question == question:
            log_times = {**(position.log_times or {}), **inquiry.answer()}
            query.inquiry = inquiry  # its answer holds until a micro-batch is committed
            return replace(position, log_times=log_times)
        asking = [other for other in self._queries.values() if other.inquiry is not None and not other.inquiry.over]
        if len(asking) < ASKED_AT_ONCE:
            log.info("%s: asking the log for its log times", query.source.name)
            query.inquiry = Inquiry(self.resources, query.source, question)
        return None

    def _check_topics(self) -> None:
        """Refuses queries whose topics were recreated or lack records: otherwise they would read others' records."""
        if self.clock() < self._checked_at + CHECK_EVERY:
            return
        self._checked_at = self.clock()
        if not self.resources.brokers.listening():  # every question would wait for the brokers
            return
        for query in self._judge.in_doubt([query for query in self._queries.values() if query.trouble.refused is None]):
            if (reason := self._judge.lost_records(query)) is not None:
                self._runs.end([query])
                self._judge.refuse(query, reason)

    def _note_caught_up(self) -> None:
        """Asks once for the ends of all topics, and notes for every query how far progress is behind them."""
        if self.clock() < self._caught_up_at + CAUGHT_UP_EVERY:
            return
        self._caught_up_at = began = self.clock()
        running = {name: query for name, query in self._queries.items() if query.run is not None}
        if not running:
            return
        with suppress(PostgresError, LaminaError):
            ends = self.resources.brokers.latest(*(query.source.topic for query in running.values()))
            for query in running.values():
                query.backlog.note_end(began, Offsets.of(query.source.topic, ends.on(query.source.topic)))
            with self.resources.database.begin() as connection:
                now = self.clock()
                ago = {name: [(now - at, end) for at, end in query.backlog.ends] for name, query in running.items()}
                reached = progress.record_backlog(connection, ago)
            for name, looks in reached.items():
                query = running[name]
                query.backlog.reach(looks)
                if not query.backlog.ends and self.clock() >= query.began + LONGEST_WAIT:
                    self._judge.note_well(query)

    def _show_life(self) -> None:
        """Notes in Postgres that this process lives, and a few times a minute its freshness and phases."""
        if fences := self._fences():
            with self.resources.database.begin() as connection:
                progress.limit_lock_waits(connection)
                progress.record_heartbeat(connection, fences)
            if self.clock() >= self._noted_at + NOTE_EVERY:
                with self.resources.database.begin() as connection:
                    progress.limit_lock_waits(connection)
                    freshness_history.note(connection)
                    phases.note(connection, self.resources.phases.take())
                self._noted_at = self.clock()

    def _show_progress(self) -> None:
        """Commits progress to Kafka's consumer groups, for Kafka's own tools. Nothing depends on it."""
        if fences := self._fences():
            with self.resources.database.begin() as connection:
                offsets = progress.read_by_query(connection, fences)
            self._groups.commit(offsets)

    def _release(self) -> None:
        """Releases the queries, so that `lamina status` does not miss this process."""
        self._runs.end(self._queries.values())
        with suppress(PostgresError, LaminaError), self.resources.database.begin() as connection:
            progress.release(connection, self._fences())
            phases.note(connection, self.resources.phases.take())

    def _fences(self) -> dict[str, int]:
        # A copy, because the heartbeat calls this from another thread.
        return {name: query.fence for name, query in list(self._queries.items()) if query.fence is not None}

    def _ends(self) -> dict[str, Offsets] | None:
        """The ends of all topics, once Kafka answers, or None if this process was stopped meanwhile."""
        warned = False
        while not self.stopping.is_set():
            try:
                latest = self.resources.brokers.latest
                return {name: latest(query.source.topic) for name, query in self._queries.items()}
            except KafkaUnavailable as error:
                if not warned:
                    log.warning("%s; waiting for it", error.what)
                warned = True
                self.stopping.wait(LOOK_EVERY)
        return None

    def _have_reached(self, goal: dict[str, Offsets]) -> bool:
        def read() -> bool:
            with self.resources.database.begin() as connection:
                return all(
                    progress.read(connection, [name]).reaches(end)
                    for name, end in goal.items()
                    if name in self._queries and self._queries[name].trouble.refused is None
                )

        return self.resources.database.waiting(read, give_up=self.stopping.is_set)


@contextmanager
def heartbeat(beat: Callable[[], None]) -> Iterator[None]:
    """Calls `beat` at once, and then every second while the block runs, in a thread of its own. It ignores failures."""
    ended = threading.Event()

    def run() -> None:
        while True:
            with suppress(Exception):  # the next call may succeed
                beat()
            if ended.wait(HEARD_EVERY):
                return

    thread = threading.Thread(target=run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(HEARD_EVERY)


def _spark_ended(what: str, why: str) -> LaminaError:
    """The error for a Spark that is gone. This process ends with it, and another one resumes."""
    way_out = "Start the speed layer again: it resumes from progress. Too little memory is the usual cause."
    return LaminaError(what, evidence=why, way_out=way_out)


def writer() -> str:
    """The name of this process, for the error of a process that it fences."""
    return f"process {os.getpid()} ({_TOKEN}) on {socket.gethostname()}"


_TOKEN = secrets.token_hex(2)
"""Distinguishes this process from an earlier one with its number, as in a container that was restarted."""
