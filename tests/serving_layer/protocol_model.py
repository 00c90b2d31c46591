"""The protocol of progress, cuts and generations, small enough that every interleaving of its steps can be visited.

In: a `World` (a log of a few records, views, the number of failures allowed) and the `Rules` in force. Out: an
`Exploration`, which counts every reachable state, or holds the shortest trace to a state that breaks the promise.
The promise, after every step s → t:

    for every live generation, for every query q that feeds it:  cells show selected(q, progress of q)
    for every published view v, over each q that feeds it:       rows of v = sum of selected(q, progress of q)
    for every query q:                                           progress of q in s ≤ progress of q in t

where `selected(q, offsets)` is the result of the author's SELECT over the records of q below the offsets. For a stream
it is the multiset of these records (the free commutative monoid). This shows any error that an aggregate could show: a
record counted twice, or not at all. A multiset is an integer whose hexadecimal digit i is the number of times that
record i is counted. Merge is `+`, and a double count is a digit 2. For a table, here with one key, it is the newest of
these records. Merge is the newer of two, and a record that deletes is kept and not shown.

A transaction that holds the query's lock is one step, because nothing sees inside it. No process (a writer of the speed
layer, a rebuild, an archive run) remembers anything outside the state, and no process must take its next step. So a
trace that stops is a crash, a trace that continues is a retry, and a step after another process has taken over is a
zombie's. Spark's checkpoint is a cache: after a restart it may hold any position.

Each action is a function from a state to the states that can follow, each with the words that a trace shows for it.
The model leaves out the exchange of cells in a hand-over (here no cells can differ: see test_overwriting.py), the order
of locks, ids that a horizon forgot, recreated topics, topics that lose their end (only then may a leap go back, and it
retires every generation that counted the lost records: see test_generations.py), and partitions added later (they
behave like empty ones). The file is long because the protocol should be read in one piece.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, product
from typing import NamedTuple, TypeVar

Offsets = tuple[int, ...]
"""The next offset to read, for each partition of a query's topic."""

Cells = int
"""A multiset of records: hexadecimal digit i is the number of times that record i is counted. A table: one record."""

Successors = Iterator[tuple[str, "State"]]
T = TypeVar("T")


class Batch(NamedTuple):
    """A micro-batch [start, end) that is computed. Its commit is on the way, perhaps that of a dead writer."""

    token: int
    start: Offsets
    end: Offsets
    versions: tuple[str, ...]
    listed: tuple[tuple[str, int, str], ...]
    """The stage of each generation when it was computed, which nothing reads while the rules are in force."""


class Archiving(NamedTuple):
    """An archive run that has read `held` and is about to append [start, to), perhaps after another took its place."""

    start: Offsets
    to: Offsets
    appended: bool = False


class Query(NamedTuple):
    """One streaming query and its topic: what Kafka, the master log, Postgres and the writer's process know of it."""

    end: Offsets
    """The end of the topic."""
    held: Offsets
    """The end of the master log, as its last snapshot records it."""
    archived: Cells
    """The content of the master log."""
    archiving: tuple[Archiving, ...]
    progress: Offsets
    fence: int
    """The token of whoever took the query over last."""
    token: int
    """The token of the running writer, 0 once it must stop."""
    position: Offsets
    """The offsets from which the running writer plans its next micro-batch: its checkpoint."""
    flight: tuple[Batch, ...]


class Part(NamedTuple):
    """The cells of one generation that one query feeds."""

    stage: str
    cut: Offsets
    cells: Cells = 0
    realtime: Cells = 0
    """The table that micro-batches merge into until the part is live."""
    absorbing: Cells = 0
    """A realtime table that was swapped for an empty one and is merged into the cells without the lock."""


BUILDING, LOADED, LIVE, RETIRED = "building", "loaded", "live", "retired"
CUT, COPIED, ABSORBED, JOINING = "cut", "copied", "absorbed", "joining"
"""Stages between two transactions that should have been one: only reached when a rule is taken away."""


class Generation(NamedTuple):
    """One generation of a view version, with one part for each query that feeds it."""

    version: str
    number: int
    leap: int
    """The fence token of the leap that opened it, 0 for an ordinary rebuild."""
    parts: tuple[Part, ...]


class State(NamedTuple):
    """Everything there is at one instant: what Postgres, the log and the processes hold."""

    queries: tuple[Query, ...]
    registered: tuple[str, ...]
    generations: tuple[Generation, ...]
    published: tuple[tuple[str, str, int], ...]
    """View, version and number of the generation that readers see, in order of the views."""
    sealed: int
    """The number of the newest rebuild."""


@dataclass(frozen=True)
class Rules:
    """The rules that the protocol relies on. Each can be taken away, and the promise then breaks."""

    range_starts_at_progress: bool = True
    """A commit applies its range only when it starts at progress."""
    fence_is_checked: bool = True
    """A commit, and the hand-over of a leap, is refused when another has taken the query over since."""
    versions_are_checked_under_the_lock: bool = True
    """A commit is computed again when other view versions are registered than it was computed for."""
    generations_are_listed_under_the_lock: bool = True
    """A commit reads which generations there are, and their stages, after it holds the lock."""
    progress_is_written_with_the_data: bool = True
    """One transaction merges the cells of a micro-batch and writes progress."""
    cut_is_progress: bool = True
    """A generation is opened at progress, not at the brokers' end offsets."""
    cut_locks_every_query: bool = True
    """A generation that two queries feed is opened while the locks of both are held."""
    archive_records_its_end: bool = True
    """The snapshot that appends [held, to) is the one that records `to`."""
    archive_appends_at_held: bool = True
    """An append is refused when `held` has moved since it was read."""
    load_waits_for_the_archive: bool = True
    """The batch view is computed only when the master log holds every record below the cut."""
    load_stops_at_the_cut: bool = True
    """The batch view is computed from the records below the cut, not from all records in the master log."""
    load_is_marked_with_the_data: bool = True
    """One transaction loads the batch view and marks it as loaded."""
    absorbed_is_marked_with_the_data: bool = True
    """One transaction merges a swapped realtime table and forgets it."""
    go_live_waits_for_what_was_swapped: bool = True
    """A generation goes live only when no swapped realtime table is left to absorb."""
    go_live_holds_the_lock: bool = True
    """No commit comes between merging the rest of the realtime table and being live."""
    stage_is_read_under_the_lock: bool = True
    """Going live and handing over are refused for a generation that was retired meanwhile."""
    hand_over_waits_for_every_query: bool = True
    """A generation is published only when what each query feeds of it is live."""
    hand_over_is_one_transaction: bool = True
    """Views read together, and a leap's progress, change together."""
    leap_cuts_above_progress: bool = True
    """A leap cuts at the end of the master log only when that is nowhere below progress."""
    leap_takes_every_view: bool = True
    """A leap is refused if its query feeds a published view that does not leap with it."""
    leap_retires_older_generations: bool = True
    """No generation that lacks the records leapt over stays live or building."""
    published_is_never_retired: bool = True
    """Maintenance of a generation ends only after it is no longer published."""
    every_version_is_fed: bool = True
    """Micro-batches are computed for every version that has cells, not for the declared ones alone."""
    move_waits_until_it_is_live: bool = True
    """A view moves to another version only when a generation of that is live."""
    newest_version_counts: bool = True
    """An older version of a table's row changes nothing, whenever it is merged."""
    deletion_is_remembered: bool = True
    """A record that deletes a table's row is kept, so that an older version which is merged later stays deleted."""


@dataclass(frozen=True)
class World:
    """The bounds that make the number of states finite."""

    log: Mapping[str, tuple[str, ...]]
    """For each query its partitions, one letter per offset: `r` is a record, `x` the marker of a transaction.

    For a table, the digits are the versions of its one row, in order. The even ones delete it.
    """
    views: Mapping[str, str]
    """For each view version the queries that feed it. The first letter of a version is its view."""
    later: tuple[str, ...] = ()
    """Versions that are registered while everything runs."""
    dropped: tuple[str, ...] = ()
    """Versions that may be dropped, and registered again, while everything runs."""
    changed: str = ""
    """The version that an apply computes next to the declared one, and moves the view to."""
    log_grows: bool = False
    """True if records appear one by one, False if all are in the log from the start."""
    flight: int = 1
    """The number of micro-batches that a writer computes ahead of their commits."""
    takeovers: Mapping[str, int] = field(default_factory=dict)
    """The number of times that a restarted writer or a leap takes a query over."""
    rebuilds: int = 0
    leaps: str = ""
    """The query that may be leapt, if any."""
    archivers: int = 1
    """The number of archive runs at once, including dead ones."""


@dataclass(frozen=True)
class Exploration:
    """The result of an exploration: all states, or the way to the first one that breaks the promise."""

    states: int
    steps: int
    complete: int
    """The number of states in which every record is counted and the newest rebuild is published."""
    happened: frozenset[tuple[str, str]]
    """Each action that happened, with how it ended."""
    broken: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The trace as numbered lines, the broken promise last."""
        lines = [f"{number:3}. {step}" for number, step in enumerate(self.trace, 1)]
        return "\n".join(
            [*lines, f"     {self.broken or 'the promise holds'} ({self.states:,} states, {self.steps:,} steps)"]
        )


def put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    """The same tuple with another item at one place."""
    return (*items[:index], item, *items[index + 1 :])


def at_most(left: Offsets, right: Offsets) -> bool:
    """True if `left` is nowhere beyond `right`."""
    return all(map(int.__le__, left, right))


def between(start: Offsets, end: Offsets) -> Iterator[Offsets]:
    """Every vector of offsets from `start` to `end`, both included."""
    return product(*(range(low, high + 1) for low, high in zip(start, end, strict=True)))


def text(offsets: Offsets) -> str:
    """Offsets as a trace shows them: `3,1`."""
    return ",".join(map(str, offsets))


@dataclass(frozen=True)
class Model:
    """The protocol in one world under given rules: an initial state, the actions, and the promise."""

    world: World
    rules: Rules = Rules()

    @cached_property
    def names(self) -> str:
        """The name of each query, one letter each."""
        return "".join(self.world.log)

    @cached_property
    def fed_by(self) -> Mapping[str, tuple[int, ...]]:
        """The queries that feed each view version."""
        return {version: tuple(map(self.names.index, fed)) for version, fed in self.world.views.items()}

    @cached_property
    def counted(self) -> tuple[Mapping[Offsets, Cells], ...]:
        """For each query, the cells of the records below each vector of offsets. Each record has its digit."""
        digits = count()
        tables = []
        for partitions in self.world.log.values():
            ones = [[0 if letter == "x" else 16 ** next(digits) for letter in letters] for letters in partitions]
            vectors = between(tuple(0 for _ in ones), tuple(map(len, ones)))
            tables.append({v: sum(sum(one[:offset]) for one, offset in zip(ones, v, strict=True)) for v in vectors})
        return tuple(tables)

    @cached_property
    def versions_of_tables(self) -> Mapping[int, Mapping[Cells, int]]:
        """For each query of a table: which version of its row each record is."""
        digits = count()
        tables: dict[int, dict[Cells, int]] = {}
        for q, partitions in enumerate(self.world.log.values()):
            for letter in "".join(partitions):
                if letter == "x":
                    continue
                record = 16 ** next(digits)
                if letter.isdigit():
                    tables.setdefault(q, {})[record] = int(letter)
        return tables

    def initial(self) -> State:
        """A first `apply`: every view has an empty live generation at the start of the log, published."""
        queries = []
        for partitions in self.world.log.values():
            zero = tuple(0 for _ in partitions)
            end = zero if self.world.log_grows else tuple(map(len, partitions))
            queries.append(Query(end, zero, 0, (), zero, 1, 1, zero, ()))
        registered = tuple(v for v in self.world.views if v not in (*self.world.later, self.world.changed))
        generations = tuple(
            Generation(v, 1, 0, tuple(Part(LIVE, queries[q].progress) for q in self.fed_by[v])) for v in registered
        )
        return State(tuple(queries), registered, generations, tuple((v[0], v, 1) for v in registered), 1)

    # ---- what is true of a state

    def below(self, query: int, offsets: Offsets) -> Cells:
        """All records below these offsets."""
        return self.counted[query][offsets]

    def merge(self, query: int, old: Cells, new: Cells) -> Cells:
        """The cells of two sets of records, from the cells of each: the records of a stream are cells of theirs."""
        versions = self.versions_of_tables.get(query)
        if versions is None:
            return old + new
        counted = old | new if self.rules.newest_version_counts else new or old
        counting = [record for record in versions if counted & (0xF * record)]
        newest = max(counting, key=versions.__getitem__, default=0)
        return newest if self.rules.deletion_is_remembered else self.shown(query, newest)

    def shown(self, query: int, cells: Cells) -> Cells:
        """The rows of the author's SELECT over these cells."""
        versions = self.versions_of_tables.get(query)
        return 0 if versions is not None and versions.get(cells, 0) % 2 == 0 else cells

    def selected(self, query: int, offsets: Offsets) -> Cells:
        """The rows of the author's SELECT over the records below these offsets, whatever the rules."""
        records, versions = self.below(query, offsets), self.versions_of_tables.get(query)
        if versions is None:
            return records
        by_version = {version: record for record, version in versions.items() if records & record}
        return self.shown(query, by_version[max(by_version)] if by_version else 0)

    def maintained(self, state: State, query: int) -> tuple[str, ...]:
        """The versions that micro-batches of a query are computed for: those declared, and those that have cells."""
        fed = set(state.registered)
        if self.rules.every_version_is_fed:
            fed |= {g.version for g in state.generations if any(part.stage != RETIRED for part in g.parts)}
        return tuple(sorted(v for v in fed if query in self.fed_by[v]))

    def complete(self, state: State) -> bool:
        """True if every record is counted and the newest rebuild is published."""
        full = (tuple(map(len, partitions)) for partitions in self.world.log.values())
        return all(query.progress == end for query, end in zip(state.queries, full, strict=True)) and all(
            number == state.sealed for _, _, number in state.published
        )

    def broken(self, before: State, after: State) -> str:
        """The promise that this step breaks, in words. Empty if none."""
        for name, old, new in zip(self.names, before.queries, after.queries, strict=True):
            if not at_most(old.progress, new.progress):
                return f"progress of {name} moves back from {text(old.progress)} to {text(new.progress)}"
        promised = [self.selected(q, query.progress) for q, query in enumerate(after.queries)]
        for version, number, _, parts in after.generations:
            for q, part in zip(self.fed_by[version], parts, strict=True):
                if part.stage == LIVE and self.shown(q, part.cells) != promised[q]:
                    count = f"counts {self.shown(q, part.cells):#x} of {promised[q]:#x}"
                    return f"{version} generation {number} is live and {count}"
        for view, version, number in after.published:
            read = [part for g in after.generations if g[:2] == (version, number) for part in g.parts]
            if not read or any(part.stage != LIVE for part in read):
                return f"{view} is published as {version} generation {number}, which is not live"
            rows = sum(self.shown(q, part.cells) for q, part in zip(self.fed_by[version], read, strict=True))
            if rows != sum(promised[q] for q in self.fed_by[version]):
                return f"{view} does not equal its SELECT"
        return ""

    # ---- steps on single things

    def with_query(self, state: State, index: int, query: Query) -> State:
        """The state in which one query is replaced."""
        return state._replace(queries=put(state.queries, index, query))

    def with_part(self, state: State, generation: int, part: int, new: Part) -> State:
        """The state in which one part of a generation is replaced."""
        old = state.generations[generation]
        return state._replace(
            generations=put(state.generations, generation, old._replace(parts=put(old.parts, part, new)))
        )

    def parts(self, state: State) -> list[tuple[int, int, Part, int]]:
        """Each part with its generation's place, its own place, and its query."""
        return [
            (g, p, part, q)
            for g, generation in enumerate(state.generations)
            for p, (q, part) in enumerate(zip(self.fed_by[generation.version], generation.parts, strict=True))
        ]

    def name(self, state: State, generation: int, query: int) -> str:
        """A part as a trace shows it: `W2.A` is what query A feeds of generation 2 of W."""
        return f"{state.generations[generation].version}{state.generations[generation].number}.{self.names[query]}"

    def opened(self, versions: Iterable[str], number: int, leap: int, cuts: list[Offsets]) -> tuple[Generation, ...]:
        """New building generations, each part at the cut of its query."""
        return tuple(
            Generation(v, number, leap, tuple(Part(self.first_stage(v, q), cuts[q]) for q in self.fed_by[v]))
            for v in versions
        )

    def first_stage(self, version: str, query: int) -> str:
        """The first stage of a part of a newly opened generation: there, or cut and not there yet."""
        return BUILDING if self.rules.cut_locks_every_query or query == self.fed_by[version][0] else CUT

    def retired(self, generation: Generation) -> Generation:
        """The generation, no longer maintained. Its table may be dropped at once: its cells are gone."""
        return generation._replace(parts=tuple(Part(RETIRED, ()) for _ in generation.parts))

    def without_dead_rebuilds(self, state: State) -> tuple[Generation, ...]:
        """The generations, those retired that a rebuild left unfinished."""
        return tuple(g if all(p.stage == LIVE for p in g.parts) else self.retired(g) for g in state.generations)

    # ---- the log

    def append(self, state: State) -> Successors:
        """A record, or the marker of a transaction, appears at the end of a partition."""
        for q, query in enumerate(state.queries):
            for p, letters in enumerate(self.world.log[self.names[q]]):
                if query.end[p] < len(letters):
                    yield (
                        f"{self.names[q]}: offset {query.end[p]} appears in partition {p}",
                        self.with_query(state, q, query._replace(end=put(query.end, p, query.end[p] + 1))),
                    )

    # ---- the speed layer

    def plan(self, state: State) -> Successors:
        """A writer computes a micro-batch from its checkpoint to any end, while the one before may not be committed."""
        for q, query in enumerate(state.queries):
            if not query.token or sum(b.token == query.token for b in query.flight) >= self.world.flight:
                continue
            versions = self.maintained(state, q)
            listed: tuple[tuple[str, int, str], ...] = ()
            if not self.rules.generations_are_listed_under_the_lock:
                listed = tuple(
                    (state.generations[g].version, state.generations[g].number, part.stage)
                    for g, _, part, of in self.parts(state)
                    if of == q
                )
            for end in between(query.position, query.end):
                if end != query.position:
                    batch = Batch(query.token, query.position, end, versions, listed)
                    flight = tuple(sorted({*query.flight, batch}))
                    range_ = f"[{text(batch.start)} → {text(end)})"
                    yield (
                        f"{self.names[q]}: writer {query.token} computes {range_} for {' and '.join(versions)}",
                        self.with_query(state, q, query._replace(position=end, flight=flight)),
                    )

    def commit(self, state: State) -> Successors:
        """The one transaction of a micro-batch: lock, check fence, versions and range, merge, move progress, commit."""
        for q, query in enumerate(state.queries):
            versions = self.maintained(state, q)
            for batch in query.flight:
                rest = query._replace(flight=tuple(b for b in query.flight if b is not batch))
                done = f"{self.names[q]}: commit [{text(batch.start)} → {text(batch.end)}) of writer {batch.token}"
                if self.rules.fence_is_checked and batch.token != query.fence:
                    if query.token == batch.token:
                        rest = rest._replace(token=0)
                    yield f"{done}: fenced, it stops", self.with_query(state, q, rest)
                elif self.rules.versions_are_checked_under_the_lock and batch.versions != versions:
                    again = tuple(sorted({*rest.flight, batch._replace(versions=versions)}))
                    yield (
                        f"{done}: versions changed, computed again",
                        self.with_query(state, q, rest._replace(flight=again)),
                    )
                elif batch.start == query.progress or not self.rules.range_starts_at_progress:
                    if self.rules.progress_is_written_with_the_data:
                        rest = rest._replace(progress=batch.end)
                    yield f"{done}: applied", self.merged(self.with_query(state, q, rest), q, batch)
                elif at_most(batch.end, query.progress):
                    yield f"{done}: skipped", self.with_query(state, q, rest)
                else:
                    others = tuple(b for b in query.flight if b.token != batch.token)
                    rest = query._replace(flight=others)
                    if query.token == batch.token:
                        rest = rest._replace(position=query.progress)
                    yield f"{done}: not at progress, checkpoint discarded", self.with_query(state, q, rest)

    def merged(self, state: State, query: int, batch: Batch) -> State:
        """A micro-batch in every generation its query feeds: a live one's cells, a building one's realtime table."""
        cells = self.merge(query, 0, self.below(query, batch.end) - self.below(query, batch.start))
        listed = {(version, number): stage for version, number, stage in batch.listed}
        for g, p, part, of in self.parts(state):
            version, number = state.generations[g][:2]
            stage = part.stage
            if not self.rules.generations_are_listed_under_the_lock:
                stage = listed.get((version, number), RETIRED)
            if of != query or version not in batch.versions or {RETIRED, CUT} & {stage, part.stage}:
                continue
            if stage == LIVE:
                state = self.with_part(state, g, p, part._replace(cells=self.merge(query, part.cells, cells)))
            else:
                state = self.with_part(state, g, p, part._replace(realtime=self.merge(query, part.realtime, cells)))
        return state

    def restart(self, state: State) -> Successors:
        """A new writer with any checkpoint takes the query over. Commits of the old writer may still arrive."""
        for q, query in enumerate(state.queries):
            if query.fence <= self.world.takeovers.get(self.names[q], 0):
                token = query.fence + 1
                for position in between(tuple(0 for _ in query.end), query.end):
                    yield (
                        f"{self.names[q]}: writer {token} takes over, its checkpoint at {text(position)}",
                        self.with_query(state, q, query._replace(fence=token, token=token, position=position)),
                    )

    # ---- the master log

    def archive(self, state: State) -> Successors:
        """An archive run reads `held` and sets out for a cut or for the end of the log."""
        for q, query in enumerate(state.queries):
            if len(query.archiving) < self.world.archivers:
                cuts = {part.cut for _, _, part, of in self.parts(state) if of == q and part.stage == BUILDING}
                for to in sorted(cuts | {query.end}):
                    if to != query.held and at_most(query.held, to):
                        runs = tuple(sorted((*query.archiving, Archiving(query.held, to))))
                        yield (
                            f"{self.names[q]}: an archive run sets out for [{text(query.held)} → {text(to)})",
                            self.with_query(state, q, query._replace(archiving=runs)),
                        )

    def archive_append(self, state: State) -> Successors:
        """One Iceberg commit appends [held, to) and records `to`, unless `held` has moved."""
        for q, query in enumerate(state.queries):
            for run in query.archiving:
                rest = query._replace(archiving=tuple(r for r in query.archiving if r is not run))
                done = f"{self.names[q]}: archive [{text(run.start)} → {text(run.to)})"
                if run.appended:
                    yield f"{done}: recorded", self.with_query(state, q, rest._replace(held=run.to))
                elif self.rules.archive_appends_at_held and run.start != query.held:
                    yield f"{done}: refused, held has moved", self.with_query(state, q, rest)
                else:
                    rest = rest._replace(archived=query.archived + self.below(q, run.to) - self.below(q, run.start))
                    if self.rules.archive_records_its_end:
                        rest = rest._replace(held=run.to)
                    else:
                        rest = rest._replace(archiving=tuple(sorted((*rest.archiving, run._replace(appended=True)))))
                    yield f"{done}: appended", self.with_query(state, q, rest)

    # ---- a rebuild

    def seal(self, state: State) -> Successors:
        """One transaction opens a generation of every view at its cuts, and retires what a dead rebuild left."""
        for g, p, part, q in self.parts(state):
            if part.stage == CUT:
                yield f"{self.name(state, g, q)}: is opened", self.with_part(state, g, p, part._replace(stage=BUILDING))
        if state.sealed <= self.world.rebuilds:
            number = state.sealed + 1
            cuts = [q.progress if self.rules.cut_is_progress else q.end for q in state.queries]
            opened = self.opened(state.registered, number, 0, cuts)
            yield (
                f"rebuild {number} seals {', '.join(map(text, cuts))}",
                state._replace(generations=(*self.without_dead_rebuilds(state), *opened), sealed=number),
            )

    def load(self, state: State) -> Successors:
        """The batch layer loads the cells of all archived records below the cut, once the master log holds them."""
        for g, p, part, q in self.parts(state):
            if part.stage == COPIED:
                yield (
                    f"{self.name(state, g, q)}: marked as loaded",
                    self.with_part(state, g, p, part._replace(stage=LOADED)),
                )
            held = at_most(part.cut, state.queries[q].held) or not self.rules.load_waits_for_the_archive
            if part.stage in (BUILDING, COPIED) and held:
                every_digit = 0xF
                cells = state.queries[q].archived
                if self.rules.load_stops_at_the_cut:
                    cells &= self.below(q, part.cut) * every_digit
                stage = LOADED if self.rules.load_is_marked_with_the_data else COPIED
                yield (
                    f"{self.name(state, g, q)}: loads {cells:#x}, below {text(part.cut)}",
                    self.with_part(state, g, p, part._replace(stage=stage, cells=self.merge(q, part.cells, cells))),
                )

    def swap(self, state: State) -> Successors:
        """A realtime table that has grown is swapped for an empty one."""
        for g, p, part, q in self.parts(state):
            if part.stage == LOADED and part.realtime and not part.absorbing:
                yield (
                    f"{self.name(state, g, q)}: realtime table swapped",
                    self.with_part(state, g, p, part._replace(realtime=0, absorbing=part.realtime)),
                )

    def absorb(self, state: State) -> Successors:
        """The swapped table is merged into the cells and forgotten, without the lock."""
        for g, p, part, q in self.parts(state):
            if part.stage == ABSORBED:
                yield (
                    f"{self.name(state, g, q)}: swapped table forgotten",
                    self.with_part(state, g, p, part._replace(stage=LOADED, absorbing=0)),
                )
            if part.absorbing:
                new = part._replace(cells=self.merge(q, part.cells, part.absorbing))
                marked = self.rules.absorbed_is_marked_with_the_data
                new = new._replace(absorbing=0) if marked else new._replace(stage=ABSORBED)
                yield f"{self.name(state, g, q)}: swapped table merged", self.with_part(state, g, p, new)

    def go_live(self, state: State) -> Successors:
        """The rest of the realtime table is merged into the cells, and micro-batches merge there from now on."""
        for g, p, part, q in self.parts(state):
            leapt = state.generations[g].leap and self.names[q] in self.world.leaps
            late = part.stage == RETIRED and not self.rules.stage_is_read_under_the_lock
            if leapt or (part.absorbing and self.rules.go_live_waits_for_what_was_swapped):
                continue
            if part.stage == JOINING:
                yield (
                    f"{self.name(state, g, q)}: is live",
                    self.with_part(state, g, p, part._replace(stage=LIVE, realtime=0)),
                )
            elif part.stage == LOADED or late:
                stage = LIVE if self.rules.go_live_holds_the_lock else JOINING
                cells = self.merge(q, part.cells, part.realtime)
                new = part._replace(stage=stage, cells=cells, realtime=0, absorbing=0)
                yield f"{self.name(state, g, q)}: realtime rest merged, {stage}", self.with_part(state, g, p, new)

    def hand_over(self, state: State) -> Successors:
        """One transaction publishes all views of a rebuild, when all their generations are live.

        The proof before it has nothing to do here: it compares live generations, and the promise says what these hold.
        """
        ready = (LIVE,) if self.rules.stage_is_read_under_the_lock else (LIVE, RETIRED)
        every = all if self.rules.hand_over_waits_for_every_query else any
        for number in range(2, state.sealed + 1):
            new = [g for g in state.generations if g.number == number and g.version in state.registered]
            if not new or any(g.leap or not every(part.stage in ready for part in g.parts) for g in new):
                continue
            for together in [new] if self.rules.hand_over_is_one_transaction else [[g] for g in new]:
                published = self.publishing(state, together)
                if published != state.published:
                    names = " and ".join(g.version for g in together)
                    yield f"rebuild {number} hands over {names}", state._replace(published=published)

    def publishing(self, state: State, generations: list[Generation]) -> tuple[tuple[str, str, int], ...]:
        """The publication with these generations in it."""
        rows = {row[0]: row for row in state.published}
        rows |= {g.version[0]: (g.version[0], g.version, g.number) for g in generations}
        return tuple(sorted(rows.values()))

    def roll_back(self, state: State) -> Successors:
        """An older live generation of a view is published again."""
        for g in state.generations:
            row = (g.version[0], g.version, g.number)
            published = [p for p in state.published if p[0] == row[0] and p != row]
            if published and g.number < published[0][2] and all(part.stage == LIVE for part in g.parts):
                yield f"{g.version} is rolled back to generation {g.number}", self.moved(state, g)

    def retire(self, state: State) -> Successors:
        """A live generation that is not published is maintained no longer."""
        for i, g in enumerate(state.generations):
            if any(part.stage != LIVE for part in g.parts):
                continue
            published = (g.version[0], g.version, g.number) in state.published
            newer = any(
                o.version[0] == g.version[0] and o.number > g.number and o.parts[0].stage == LIVE
                for o in state.generations
            )
            if not published if self.rules.published_is_never_retired else newer:
                yield (
                    f"{g.version} generation {g.number} is retired",
                    state._replace(generations=put(state.generations, i, self.retired(g))),
                )

    # ---- a leap

    def leap(self, state: State) -> Successors:
        """A leap takes a query over and opens generations of every view it feeds, cut at the end of the master log."""
        for q in map(self.names.index, self.world.leaps):
            query = state.queries[q]
            above = at_most(query.progress, query.held) or not self.rules.leap_cuts_above_progress
            may = query.fence <= self.world.takeovers.get(self.names[q], 0) and state.sealed <= self.world.rebuilds
            if may and above and query.held != query.progress:
                number, token = state.sealed + 1, query.fence + 1
                cuts = [query.held if f == q else other.progress for f, other in enumerate(state.queries)]
                opened = self.opened((v for v in state.registered if q in self.fed_by[v]), number, token, cuts)
                new = self.with_query(state, q, query._replace(fence=token))
                yield (
                    f"leap {number} takes {self.names[q]} over and cuts at {text(query.held)}",
                    new._replace(generations=(*self.without_dead_rebuilds(state), *opened), sealed=number),
                )

    def leap_hand_over(self, state: State) -> Successors:
        """One transaction publishes the generations of a leap, moves progress to the cut and retires the older ones."""
        for q in map(self.names.index, self.world.leaps):
            query = state.queries[q]
            for number in {g.number for g in state.generations if g.leap}:
                new = [g for g in state.generations if g.number == number and g.leap and g.version in state.registered]
                fed = [(part, f) for g in new for f, part in zip(self.fed_by[g.version], g.parts, strict=True)]
                ready = all(part.stage == (LOADED if f == q else LIVE) and not part.absorbing for part, f in fed)
                if not fed or not ready or (self.rules.fence_is_checked and query.fence != new[0].leap):
                    continue
                leaping = [g.version for g in new]
                behind = any(q in self.fed_by[version] and version not in leaping for _, version, _ in state.published)
                if behind and self.rules.leap_takes_every_view:
                    continue
                cut = next(part.cut for part, f in fed if f == q)
                older = [g for g in state.generations if g not in new and q in self.fed_by[g.version]]
                if not self.rules.leap_retires_older_generations:
                    older = []
                if not self.rules.hand_over_is_one_transaction:
                    for g in new:
                        yield f"leap {number} hands over {g.version} alone", self.leapt(state, [g], [])
                whole = self.with_query(self.leapt(state, new, older), q, query._replace(progress=cut))
                yield f"leap {number} hands over and moves progress of {self.names[q]} to {text(cut)}", whole

    def leapt(self, state: State, new: list[Generation], older: list[Generation]) -> State:
        """The state in which the generations of a leap are live and published, and the older ones retired."""

        def live(query: int, part: Part) -> Part:
            return part._replace(stage=LIVE, cells=self.merge(query, part.cells, part.realtime), realtime=0)

        generations = tuple(
            g._replace(parts=tuple(map(live, self.fed_by[g.version], g.parts)))
            if g in new
            else self.retired(g)
            if g in older
            else g
            for g in state.generations
        )
        return state._replace(generations=generations, published=self.publishing(state, new))

    # ---- change

    def register(self, state: State) -> Successors:
        """A view version is registered while micro-batches are in flight.

        The first version over queries without history is live at once, and empty. A rebuild gives others their history.
        """
        for version in (*self.world.later, *self.world.dropped):
            if version in state.registered:
                continue
            after = state._replace(registered=tuple(sorted((*state.registered, version))))
            moved = any(any(state.queries[q].progress) for q in self.fed_by[version])
            if moved or any(g.version == version for g in state.generations):
                yield f"{version} is registered", after
            else:
                parts = tuple(Part(LIVE, state.queries[q].progress) for q in self.fed_by[version])
                first = Generation(version, state.sealed, 0, parts)
                after = after._replace(generations=(*state.generations, first))
                after = after._replace(published=self.publishing(after, [first]))
                yield f"{version} is registered, live and published", after

    def drop(self, state: State) -> Successors:
        """A view version is dropped: unpublished, unregistered and its generations retired, in one transaction."""
        for version in self.world.dropped:
            if version in state.registered:
                yield (
                    f"{version} is dropped",
                    state._replace(
                        registered=tuple(v for v in state.registered if v != version),
                        published=tuple(row for row in state.published if row[1] != version),
                        generations=tuple(self.retired(g) if g.version == version else g for g in state.generations),
                    ),
                )

    def prepare(self, state: State) -> Successors:
        """An apply opens a generation of an undeclared version, at its cut. The declared version stays."""
        version = self.world.changed
        if version and version not in state.registered and state.sealed <= self.world.rebuilds:
            number = state.sealed + 1
            opened = self.opened([version], number, 0, [q.progress for q in state.queries])
            yield (
                f"apply {number} seals {version}",
                state._replace(generations=(*self.without_dead_rebuilds(state), *opened), sealed=number),
            )

    def move(self, state: State) -> Successors:
        """One transaction declares another version and publishes its generation. The old generation stays live."""
        for g in state.generations:
            ready = all(part.stage == LIVE for part in g.parts) or not self.rules.move_waits_until_it_is_live
            if g.version == self.world.changed and g.version not in state.registered and ready:
                yield f"{g.version[0]} moves to {g.version} generation {g.number}", self.moved(state, g)

    def moved(self, state: State, generation: Generation) -> State:
        """The state in which a view is read from a generation, and declared in its version."""
        others = (v for v in state.registered if v[0] != generation.version[0])
        registered = tuple(sorted((*others, generation.version)))
        return state._replace(registered=registered, published=self.publishing(state, [generation]))

    def actions(self) -> tuple[Callable[[State], Successors], ...]:
        """Everything that can happen."""
        return (
            self.append,
            self.plan,
            self.commit,
            self.restart,
            self.archive,
            self.archive_append,
            self.seal,
            self.load,
            self.swap,
            self.absorb,
            self.go_live,
            self.hand_over,
            self.roll_back,
            self.retire,
            self.leap,
            self.leap_hand_over,
            self.register,
            self.drop,
            self.prepare,
            self.move,
        )


def explore(model: Model, most: int = 2_000_000) -> Exploration:
    """Visits every state that can be reached, breadth first, and stops at the first step that breaks the promise.

    Breadth first, so the trace is a shortest one. Raises OverflowError past `most` states: a world too large to test.
    """
    start = model.initial()
    came_from: dict[State, State | None] = {start: None}
    ahead = deque([start])
    happened: set[tuple[str, str]] = set()
    steps = complete = 0
    actions = model.actions()
    while ahead:
        state = ahead.popleft()
        complete += model.complete(state)
        for action in actions:
            for words, after in action(state):
                steps += 1
                happened.add((action.__name__, words.rpartition(": ")[2]))
                if after in came_from:
                    continue
                came_from[after] = state
                if broken := model.broken(state, after):
                    trace = (*way(model, came_from, state), words)
                    return Exploration(len(came_from), steps, complete, frozenset(happened), broken, trace)
                ahead.append(after)
        if len(came_from) > most:
            raise OverflowError(f"more than {most:,} states: make the world smaller")
    return Exploration(len(came_from), steps, complete, frozenset(happened))


def way(model: Model, came_from: Mapping[State, State | None], state: State) -> tuple[str, ...]:
    """The words of the steps that lead to a state, found again so that exploring need not keep them."""
    before = came_from[state]
    if before is None:
        return ()
    words = next(words for action in model.actions() for words, after in action(before) if after == state)
    return (*way(model, came_from, before), words)
