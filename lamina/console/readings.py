"""One reading of a deployment for the console's first page: its state, and the servers that do not answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from interchange.undeclared import UndeclaredField
from lamina.console.charts import sparkline
from master_log.connections.unavailable import KafkaUnavailable
from master_log.offsets import Offsets
from serving_layer.monitoring.delays import GONE_AFTER
from serving_layer.monitoring.overview import Overview, SourceOverview
from serving_layer.monitoring.view_states import ViewState
from serving_layer.narration import age
from serving_layer.postgres.database import is_unavailable
from view_algebra.errors import LaminaError

SILENCE = 4.0
"""Seconds without a sign of life after which the speed layer is missing. It writes one every second."""

SPARK = (120, 22)
"""Width and height of the last hour's line, in pixels."""

GONE = "The speed layer is gone."

SILENT = "The speed layer is silent."

SHOWN = 5
"""Names of sources in a sentence."""


@dataclass(frozen=True)
class MissingService:
    """A service that does not answer, or refuses. The headline names it, and `way_out` says what to do."""

    headline: str
    what: str
    way_out: str


@dataclass(frozen=True, eq=False)
class Reading:
    """The state at one moment.

    overview: None while Postgres does not answer
    ends: the ends of the topics, or None while Kafka does not answer
    rates: records counted per second, by source. Empty at first
    alarms: None until they have been read once
    undeclared: undeclared fields of the newest records, by source. Empty until they have been read once
    """

    at: datetime
    overview: Overview | None
    ends: Offsets | None
    rates: dict[str, float]
    alarms: list[str] | None
    missing: list[MissingService]
    undeclared: Mapping[str, list[UndeclaredField]] = field(default_factory=dict)

    @property
    def remarks(self) -> list[str]:
        """Sentences about matters that are not alarms but need a look: proofs that differ, and mistyped fields."""
        differ = [
            f"{view.name}: its newest proof found {view.proof.differing:,} of {view.proof.compared:,} cells that differ"
            f" (a rebuild has corrected them; `lamina check {view.name}` compares its rows with its SELECT)"
            for view in (self.overview.views if self.overview else ())
            if view.proof and view.proof.differing and not view.held
        ]
        mistyped = [
            f"{source}: {field} (correct the producer, or declare it)"
            for source, fields in self.undeclared.items()
            for field in fields
            if field.meant
        ]
        return differ + mistyped

    def lag(self, source: SourceOverview) -> int | None:
        """Offsets between a source's progress and the end of its topic, or None if Kafka does not answer."""
        if self.ends is None or not (ends := self.ends.on(source.topic)):
            return None
        return sum(max(0, end - source.next_offsets.get(at, 0)) for at, end in ends.items())

    def rate(self, view: ViewState) -> float | None:
        """Records of its sources that are counted per second, or None until two readings can be compared."""
        return sum(self.rates.get(source, 0.0) for source in view.sources) if self.rates else None

    def bad_lately(self, view: ViewState) -> int:
        """Records of its sources that went to quarantine within the last hour."""
        sources = self.overview.sources if self.overview else ()
        return sum(source.bad_lately for source in sources if source.name in view.sources)

    def sparkline(self, view: ViewState) -> list[str]:
        """The freshness of a view in the last hour, as paths of an SVG of size `SPARK`."""
        minutes = self.overview.minutes if self.overview else ()
        points = [
            (ago, max(ages))
            for ago, behind in minutes
            if (ages := [behind[source] for source in view.sources if source in behind])
        ]
        if view.seconds_behind is not None:
            points.append((0.0, view.seconds_behind))
        return sparkline(points, *SPARK, span=3600)

    @property
    def unknown(self) -> int:
        """The number of views with a source that has no counted record yet."""
        return sum(view.seconds_behind is None for view in self.overview.views) if self.overview else 0

    @property
    def worst(self) -> ViewState | None:
        """The view that is the most seconds behind, or None if no record was counted yet."""
        views = self.overview.views if self.overview else ()
        dated = [view for view in views if view.seconds_behind is not None]
        return max(dated, key=lambda view: view.seconds_behind or 0.0, default=None)


def missing_server(name: str, seconds: float, refusal: LaminaError | None, start: str) -> MissingService:
    """A server that has been silent for `seconds`, or one that answers with a refusal, which has its own way out."""
    if refusal is None or isinstance(refusal, KafkaUnavailable) or is_unavailable(refusal):
        way_out = f"{start}: `lamina up`, or your own. Nothing is lost."
        return MissingService(f"{name} is gone.", f"It has not answered for {age(seconds)}.", way_out)
    return MissingService(f"{refusal.what}.", refusal.evidence, refusal.way_out)


def missing_speed_layer(current: Overview) -> list[MissingService]:
    """Lists the sources that no speed layer reads, and the ones whose speed layer has been silent for too long."""
    unread = [source.name for source in current.sources if source.writer is None and source.stopped is None]
    silent = {
        source.name: silence
        for source in current.sources
        if source.is_read and source.stopped is None and (silence := source.heard_age or 0) > SILENCE
    }
    missing = []
    if unread:
        way_out = "Start it: `lamina up`, or `lamina speed`. Nothing is lost."
        missing.append(MissingService(GONE, f"None runs for {_some(unread)}.", way_out))
    if silent:
        longest = max(silent.values())
        headline, way_out = GONE, "Start it again: `lamina up`, or `lamina speed`. Nothing is lost."
        if longest < GONE_AFTER:  # the process that pauses would lose its queries to the new one
            headline, way_out = SILENT, f"It may pause. Wait until it has been silent for {GONE_AFTER:.0f} s."
        what = f"The one of {_some(list(silent))} was last heard of {age(longest)} ago."
        missing.append(MissingService(headline, what, way_out))
    return missing


def _some(names: list[str]) -> str:
    """The names, as many as a person reads.

    >>> _some(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
