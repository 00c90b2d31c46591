"""A deployed source as this process serves it.

    part       written by      state
    backlog    `SpeedLayer`    the records it has to read
    trouble    `Judge`         its failures, and its reasons not to run. `SpeedLayer` ends its hang
    bound      `Judge`         the bound of its micro-batches, which `Runs` restores if the query joins a shared run
    separation `Runs`          the time until it may share a run again

`SpeedLayer` begins members, `Runs` puts them into runs, and ends both. All three work in one thread, and each may take
the fence from a query or put off its next try (`not_before`). The heartbeat's thread reads the fence.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from master_log.offsets import Offsets
from speed_layer.endless import Hang
from speed_layer.inquiry import Inquiry
from speed_layer.member import Member
from speed_layer.run import Run
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

GROW_AFTER = 2
"""Commits of a query before its bound, which failures have halved, is doubled again."""

GROW_AFTER_AT_MOST = 64
"""The greatest number of such commits, if the doubled bound failed again and again."""

LOOKS_KEPT = 600
"""The number of looks at the end of a topic that are kept until progress has reached it: ten minutes."""

BUSY, BUSY_SECONDS = 200, 10.0
"""Records per second above which a source is busy, and the seconds over which they are counted."""

FAR_BEHIND = 20_000
"""Records. A source that is further behind catches up in a run of its own."""

APART, APART_AT_MOST = 60.0, 3_600.0
"""Seconds for which a query that left a shared run stays alone: doubled each time, up to an hour."""


@dataclass
class Backlog:
    """The records that a query has to read.

    behind: their number when its member began, or 0 once it has caught up
    busy: more than `BUSY` records a second arrive
    ends: the ends of its topic that progress has not reached, each with the time at which it was seen
    """

    behind: int = 0
    busy: bool = False
    ends: deque[tuple[float, Offsets]] = field(default_factory=lambda: deque(maxlen=LOOKS_KEPT))
    _counted: tuple[float, int] | None = None

    def note_end(self, now: float, end: Offsets) -> None:
        """Notes the end of its topic, and measures whether it is busy."""
        self.ends.append((now, end))
        total = sum(end.values())
        began, before = self._counted or (now, total)
        many = total - before > BUSY * BUSY_SECONDS
        if many or now >= began + BUSY_SECONDS:
            self.busy, began, before = many, now, total
        self._counted = (began, before)

    def reach(self, looks: int) -> None:
        """Forgets the first ends, which progress has reached. After the last one, the query has caught up."""
        for _ in range(looks):
            self.ends.popleft()
        if not self.ends:
            self.behind = 0


@dataclass
class Trouble:
    """The failures of a query since it was last well, and its reasons not to run.

    refused: the reason for which it is not begun again, until that is gone
    hang: the micro-batch that was given up, until the reason for its slowness is established
    failures: their number, without those of a server that is down
    delay: seconds before the next attempt, doubled each time
    """

    refused: LaminaError | None = None
    hang: Hang | None = None
    failures: int = 0
    delay: float = 0.0

    def forget_hang(self) -> None:
        """Forgets the micro-batch that was given up, and ends the search for its record."""
        if self.hang is not None and self.hang.search is not None:
            self.hang.search.close()
        self.hang = None


@dataclass
class Bound:
    """The bound of a query's micro-batches. Failures halve it, down to one record, and commits double it again.

    grow_after: commits before the next doubling
    grew: no commit has yet shown that the doubled bound is not too large
    """

    halvings: int = 0
    grow_after: int = GROW_AFTER
    grew: bool = False

    def of(self, max_records: int) -> int:
        """The bound in offsets, if it was `max_records` at first."""
        return max(1, max_records >> self.halvings)

    def halve(self) -> None:
        """Halves it. If it had just been doubled, the next doubling takes twice as many commits."""
        if self.grew:
            self.grow_after = min(2 * self.grow_after, GROW_AFTER_AT_MOST)
        self.halvings, self.grew = self.halvings + 1, False

    def restore(self) -> None:
        """Undoes all halvings."""
        self.halvings = 0

    def grow(self, commits: int) -> bool:
        """Doubles it after enough commits of a member. Returns True if it did."""
        if self.halvings and commits >= self.grow_after:
            self.halvings, self.grew = self.halvings - 1, True
            return True
        if not self.halvings:
            self.grow_after, self.grew = GROW_AFTER, False
        return False


@dataclass
class Separation:
    """The time until which a query that left a shared run stays alone."""

    until: float = 0.0
    _seconds: float = APART

    def extend(self, now: float) -> None:
        """Keeps the query alone, for longer each time: the other sources pause whenever it leaves or returns."""
        self.until = now + self._seconds
        self._seconds = min(2 * self._seconds, APART_AT_MOST)


@dataclass
class Query:
    """A deployed source, its member and the run of the member.

    fence: its fence token, or None before it is taken over
    inquiry: the log times that its next member needs from the log
    began: when its run began
    not_before: when its next member or run may begin
    """

    source: Source
    fence: int | None = None
    member: Member | None = None
    inquiry: Inquiry | None = None
    run: Run | None = None
    began: float = 0.0
    not_before: float = 0.0
    backlog: Backlog = field(default_factory=Backlog)
    trouble: Trouble = field(default_factory=Trouble)
    bound: Bound = field(default_factory=Bound)
    separation: Separation = field(default_factory=Separation)

    def may_share(self, now: float) -> bool:
        """True if it may share a run: it is small, keeps up, and has left its failures behind."""
        behind = self.backlog.behind
        well = not self.trouble.failures and now >= self.separation.until and not (self.bound.halvings and behind)
        return well and not self.backlog.busy and behind <= FAR_BEHIND

    def forget_inquiry(self) -> None:
        """Ends its inquiry, and forgets the answer."""
        if self.inquiry is not None:
            self.inquiry.close()
        self.inquiry = None

    def close(self) -> None:
        """Ends its search and its inquiry."""
        self.trouble.forget_hang()
        self.forget_inquiry()
