"""A deployed source as this process serves it: its fence token, its member of a run, and the failures it had."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from master_log.offsets import Offsets
from speed_layer.asking import Asking
from speed_layer.endless import Hang
from speed_layer.member import Member
from speed_layer.run import Run
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

GROW_AFTER = 2
"""Micro-batches that a query commits before its bound, which failures have halved, doubles again."""

MOST_PATIENCE = 64
"""Micro-batches that a query commits, at the most, where the doubled bound failed again and again."""

LOOKS_KEPT = 600
"""Looks that are remembered until progress has reached the ends they saw: ten minutes of them."""

BUSY, BUSY_SECONDS = 200, 10.0
"""Records a second from which on a source is busy, and for how long they are counted."""

FAR_BEHIND = 20_000
"""Records: a source that is further behind catches up in a run of its own."""

APART, APART_AT_MOST = 60.0, 3_600.0
"""Seconds for which a query that left a shared run stays by itself: twice as many each time."""


@dataclass
class Query:
    """A deployed source, its member and the run that this is in, if it has one.

    halvings: of its micro-batches, down to one record, while they fail. grow_after: commits until one is taken back;
    grew: the member is the first with the greater bound. ends: what its topic was seen to have, until progress is
    there. began: when its run did. behind: records that it had to read when its member began. apart_until: when it
    may share a run again. hang: what was given up of it last, until it is known why it took so long. asking: what the
    log is asked, or has answered, that its next member has to know.
    """

    source: Source
    fence: int | None = None
    member: Member | None = None
    run: Run | None = None
    refused: LaminaError | None = None
    hang: Hang | None = None
    asking: Asking | None = None
    failures: int = 0
    halvings: int = 0
    grow_after: int = GROW_AFTER
    grew: bool = False
    delay: float = 0.0
    not_before: float = 0.0
    ends: deque[tuple[float, Offsets]] = field(default_factory=lambda: deque(maxlen=LOOKS_KEPT))
    began: float = 0.0
    behind: int = 0
    busy: bool = False
    apart_until: float = 0.0
    _apart_for: float = APART
    _counted: tuple[float, int] | None = None

    def shares(self, now: float) -> bool:
        """May it share a run? It does where it is small, keeps up, and has left its failures behind."""
        well = not self.failures and now >= self.apart_until and not (self.halvings and self.behind)
        return well and not self.busy and self.behind <= FAR_BEHIND

    def keep_apart(self, now: float) -> None:
        """It goes on by itself for a while: longer each time, since each coming and going lets the others pause."""
        self.apart_until = now + self._apart_for
        self._apart_for = min(2 * self._apart_for, APART_AT_MOST)

    def halve(self) -> None:
        """Makes its next micro-batches half as large. If they had just grown, they grow again half as soon."""
        if self.grew:
            self.grow_after = min(2 * self.grow_after, MOST_PATIENCE)
        self.halvings, self.grew = self.halvings + 1, False

    def forget_hang(self) -> None:
        """Ends the search for the record that took too long, if there is one."""
        if self.hang is not None and self.hang.search is not None:
            self.hang.search.close()
        self.hang = None

    def forget_asking(self) -> None:
        """Ends what the log is asked, and forgets what it has answered."""
        if self.asking is not None:
            self.asking.close()
        self.asking = None

    def note_end(self, now: float, end: Offsets) -> None:
        """Notes what its topic has now, by which it is told whether it is busy."""
        self.ends.append((now, end))
        total = sum(end.values())
        began, before = self._counted or (now, total)
        many = total - before > BUSY * BUSY_SECONDS
        if many or now >= began + BUSY_SECONDS:
            self.busy, began, before = many, now, total
        self._counted = (began, before)

    def reached(self, looks: int) -> None:
        """Forgets the first looks, whose ends progress has reached; where it was the last, it has caught up."""
        for _ in range(looks):
            self.ends.popleft()
        if not self.ends:
            self.behind = 0
