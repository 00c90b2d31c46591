"""Records from a file into a source's topic."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from master_log.files import Line, format_of, lines, seekable
from master_log.kafka import Brokers
from master_log.values import columns
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

SHOWN = 10
"""How many bad lines are told one by one."""

_OVERHEAD = 512
"""Bytes that Kafka adds to a record alone in its batch, with room to spare; `max.message.bytes` counts them."""

_STEP = 500
"""Records between two calls of the progress callback."""


@dataclass(frozen=True)
class BadLine:
    """A line that is no record of the source, and why."""

    number: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.problem}"


@dataclass(frozen=True)
class Ingested:
    """What came of a file: records sent, how many of them are bad and lie in quarantine, and the first bad lines."""

    sent: int
    bad: int
    first_bad: tuple[BadLine, ...]


def ingest(
    source: Source,
    file: str,
    brokers: Brokers,
    *,
    file_format: str | None = None,
    on_bad: Literal["refuse", "quarantine"] = "refuse",
    key_by: Sequence[str] | None = None,
    rate: float | None = None,
    on_progress: Callable[[int, int | None], None] | None = None,
    stdin: IO[bytes] | None = None,
) -> Ingested:
    """Sends each line of the file (`-`: standard input) as a JSON record; returns when the brokers hold them all.

    `refuse` reads the whole file first and sends nothing when one line is bad. `quarantine` sends a bad line as it is,
    and it lands in quarantine. Records are keyed by the columns `key_by`, or those declared UNIQUE or PRIMARY KEY;
    without such, they are dealt to the partitions in turn. `rate` is in records per second; `on_progress` takes the
    records sent and, where it is known, how many there are.
    """
    keys = tuple(source.unique if key_by is None else key_by)
    declared = columns(source)
    unknown = [key for key in keys if key not in declared]
    if unknown:
        raise LaminaError(
            f"{source.name}: there is no column {unknown[0]} to key by",
            evidence=f"Found: {', '.join(declared)}.",
            way_out="Name declared columns.",
        )
    kind = format_of(file, file_format)
    partitions = brokers.partitions(source.topic)
    largest = brokers.retention(source.topic).record_bytes - _OVERHEAD
    total: int | None = None
    tally = _Tally()
    with seekable(file, stdin or sys.stdin.buffer) as content:

        def read() -> Iterator[Line]:
            return lines(content, file, kind, declared, largest)

        if on_bad == "refuse":
            total = tally.count(read())
            if tally.bad:
                raise _refused(file, tally, total)
        tally = _Tally()
        pace = _Pace(rate)
        with brokers.producer() as producer:
            for line in read():
                if line.problem is not None:
                    tally.note(line)
                    if len(line.raw) > largest:
                        raise LaminaError(
                            f"{file}: line {line.number} is too large for topic {source.topic}, even for quarantine",
                            evidence=f"{line.problem}.\nThe {tally.sent} lines before it were sent.",
                            way_out="Raise the topic's max.message.bytes, or take the line out.",
                        )
                pace.wait(tally.sent)
                key = None if line.problem else _key(keys, line.value)
                # A key decides its partition itself; without one, in turn, so that all of them fill alike.
                partition = partitions[tally.sent % len(partitions)] if key is None else None
                producer.send(source.topic, line.record if line.problem is None else line.raw, key, partition)
                tally.sent += 1
                if on_progress and tally.sent % _STEP == 0:
                    on_progress(tally.sent, total)
        if on_progress:
            on_progress(tally.sent, total)
    return Ingested(tally.sent, tally.bad, tuple(tally.first))


class _Tally:
    """Counts what a pass over the file found."""

    def __init__(self) -> None:
        self.sent = 0
        self.bad = 0
        self.first: list[BadLine] = []

    def note(self, line: Line) -> None:
        self.bad += 1
        if len(self.first) < SHOWN:
            self.first.append(BadLine(line.number, line.problem or ""))

    def count(self, found: Iterator[Line]) -> int:
        total = 0
        for line in found:
            total += 1
            if line.problem is not None:
                self.note(line)
        return total


class _Pace:
    """Holds back what comes earlier than `rate` records per second allow; late ones catch up."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def wait(self, sent: int) -> None:
        if self._rate:
            early = self._began + sent / self._rate - time.monotonic()
            if early > 0:
                time.sleep(early)


def _key(keys: Sequence[str], value: dict[str, Any]) -> bytes | None:
    """The text of one column, or the JSON list of several: records of one key go to one partition, in their order."""
    parts = [value.get(key) for key in keys]
    if not parts or None in parts:
        return None
    text = str(parts[0]) if len(parts) == 1 else json.dumps(parts, default=str, ensure_ascii=False)
    return text.encode()


def _refused(file: str, tally: _Tally, total: int) -> LaminaError:
    more = f"\n… and {tally.bad - len(tally.first)} more." if tally.bad > len(tally.first) else ""
    return LaminaError(
        f"{file}: {tally.bad} of {total} lines are bad; nothing was sent",
        evidence="\n".join(map(str, tally.first)) + more,
        way_out="Correct them, or let them go to quarantine: --on-bad quarantine.",
    )
