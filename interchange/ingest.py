"""Records from a file into a source's topic."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

from interchange.files import ISO, Line, format_of, lines, seekable
from interchange.judgements import NOT_UTF8, Rules
from interchange.undeclared import Strangers
from interchange.writers import NOTHING_NEWEST, Newest, key_of, value_of
from interchange.written import Written
from master_log.kafka import Brokers
from master_log.producer import NotTaken, Producer
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.texts.quarantined import PROBLEM_HEADER

SHOWN = 10
"""How many bad lines are told one by one."""

_OVERHEAD = 512
"""Bytes that Kafka adds to a record alone in its batch, with room to spare; `max.message.bytes` counts them."""

_STEP = 500
"""Records between two calls of the progress callback."""

_SLICE_SECONDS = 0.1
"""Of a wait for the next record: so soon is an interrupt heard."""

_REASON_BYTES = 200
"""Of the reason that a bad record is sent with; `_OVERHEAD` has room for it."""


@dataclass(frozen=True)
class BadLine:
    """A bad line, or a line with a bad field, and why it is bad."""

    number: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.problem}"


@dataclass(frozen=True)
class Ingested:
    """What came of a file: records sent, how many of them are bad and lie in quarantine, and the first bad lines.

    skipped: the records at the beginning of the file that were not to be sent. with_null: records that count with NULL
    for a field that cannot be read. not_utf8: records that count with replacement characters for some bytes.
    """

    sent: int
    bad: int
    first_bad: tuple[BadLine, ...]
    skipped: int = 0
    with_null: int = 0
    first_with_null: BadLine | None = None
    not_utf8: int = 0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after the brokers had taken the file's first `sent` records (with those skipped), and no other."""

    def __init__(self, sent: int) -> None:
        super().__init__(f"{sent:,} records of the file were sent")
        self.sent = sent


def ingest(
    source: Source,
    file: str,
    brokers: Brokers,
    *,
    file_format: str | None = None,
    written: Written = ISO,
    on_bad: Literal["refuse", "quarantine"] = "refuse",
    key_by: Sequence[str] | None = None,
    rate: float | None = None,
    ignore_unknown: bool = False,
    skip: int = 0,
    on_progress: Callable[[int, int | None], None] | None = None,
    stdin: IO[bytes] | None = None,
    newest: Newest = NOTHING_NEWEST,
) -> Ingested:
    """Sends each line of the file (`-`: standard input) as a record; returns when the brokers hold them all.

    The record is JSON, or of the source's own format; by the `newest` schemas of a registry, if it needs one.

    A line is bad if the source will find it bad. `refuse` reads the whole file first, and sends nothing if one line is
    bad, or not UTF-8. `quarantine` sends a bad line as it is and its problem with it, and it lands in quarantine. A
    field that the source does not declare, as one that is mistyped, refuses the file either way, unless
    `ignore_unknown` lets it go. Records are keyed by the columns
    `key_by`, or those declared UNIQUE or PRIMARY KEY; without such, they are dealt to the partitions in turn. `rate`
    is in records per second; `on_progress` takes the records of the file that are done and, where it is known, how
    many there are. The first `skip` records are left out: they were sent before. Raises `Interrupted` on Ctrl-C.
    """
    if source.has_changes:
        raise LaminaError(
            f"{source.name} takes Debezium's change events, and `lamina ingest` sends plain records",
            evidence=f"format '{source.format}'",
            way_out=f"Let a Debezium connector write to topic {source.topic}; try the views before by `lamina test`,"
            " whose tests hold change events. Or declare a source of another format.",
        )
    keys = tuple(map(source.field, _keys(source, key_by)))
    rules = Rules.of(source)
    kind = format_of(file, file_format)
    written.check(file, kind)
    partitions = brokers.partitions(source.topic)
    largest = brokers.retention(source.topic).record_bytes - _OVERHEAD
    total: int | None = None
    tally = _Tally()
    with seekable(file, stdin or sys.stdin.buffer) as content:

        def read() -> Iterator[Line]:
            return lines(content, file, kind, rules, largest, written)

        if on_bad == "refuse" or not ignore_unknown:
            strangers = None if ignore_unknown else Strangers(rules.columns)
            total = _looked_at(file, source, read(), strangers, on_bad, skip)
        pace = _Pace(rate)
        with brokers.producer() as producer, _between_records() as interrupted:
            try:
                for line in _told(itertools.islice(read(), skip, None), producer, lambda: skip + tally.sent):
                    place = skip + tally.sent
                    tally.note(line)
                    if line.problem is not None and len(line.raw) > largest:
                        producer.flush()
                        raise _too_large(file, source, line, place)
                    pace.wait(tally.sent, interrupted)
                    if interrupted():
                        break
                    key = None if line.problem else key_of(source, keys, line.value, newest)
                    # A key decides its partition itself; without one, in turn, so that all of them fill alike.
                    partition = partitions[place % len(partitions)] if key is None else None
                    record = _value(file, source, line, place, producer, newest)
                    producer.send(source.topic, record, key, partition, _headers(line))
                    tally.sent += 1
                    if on_progress and tally.sent % _STEP == 0:
                        on_progress(place + 1, total)
                producer.flush()
            except NotTaken as error:
                raise _broken_off(error, skip + producer.acknowledged, tally.sent - producer.acknowledged) from error
            if interrupted():
                raise Interrupted(skip + tally.sent)
        if not tally.sent:
            _check_skip(file, skip, sum(1 for _ in itertools.islice(read(), skip)))
        if on_progress:
            on_progress(skip + tally.sent, total)
    with_mistakes = (tally.with_null, tally.first_with_null, tally.not_utf8)
    return Ingested(tally.sent, tally.bad, tuple(tally.first), skip, *with_mistakes)


def _told(file_lines: Iterator[Line], producer: Producer, sent: Callable[[], int]) -> Iterator[Line]:
    """The lines; where the file turns out to be damaged, the error says how many records were sent."""
    try:
        yield from file_lines
    except LaminaError as error:
        producer.flush()
        raise _broken_off(error, sent(), 0) from error


def _keys(source: Source, key_by: Sequence[str] | None) -> tuple[str, ...]:
    declared = [column.name for column in source.columns]
    keys = tuple(source.unique if key_by is None else key_by)
    unknown = [key for key in keys if key not in declared]
    if unknown:
        raise LaminaError(
            f"{source.name}: there is no column {unknown[0]} to key by",
            evidence=f"Found: {', '.join(declared)}.",
            way_out="Name declared columns.",
        )
    return keys


def _looked_at(
    file: str, source: Source, file_lines: Iterator[Line], strangers: Strangers | None, on_bad: str, skip: int
) -> int:
    """Reads the whole file and raises unless it may be sent; gives how many records it has."""
    tally, total = _Tally(refusing=on_bad == "refuse"), 0
    try:
        for line in file_lines:
            total += 1
            tally.note(line)
            if line.problem is None and strangers is not None:
                strangers.note(line.value)
    except KeyboardInterrupt:
        raise Interrupted(skip) from None  # nothing of it is sent yet
    if tally.bad and on_bad == "refuse":
        raise _refused(file, tally, total)
    if strangers:
        raise _not_declared(file, source, strangers)
    _check_skip(file, skip, total)
    return total


class _Tally:
    """Counts what a pass over the file found. refusing: a line that is not UTF-8 is bad."""

    def __init__(self, *, refusing: bool = False) -> None:
        self.refusing = refusing
        self.sent = 0
        self.bad = 0
        self.first: list[BadLine] = []
        self.with_null = 0
        self.first_with_null: BadLine | None = None
        self.not_utf8 = 0

    def note(self, line: Line) -> None:
        problem = line.problem or (NOT_UTF8 if self.refusing and not line.is_utf8 else None)
        if problem is not None:
            self.bad += 1
            if len(self.first) < SHOWN:
                self.first.append(BadLine(line.number, problem))
            return
        self.not_utf8 += not line.is_utf8
        if line.with_null is not None:
            self.with_null += 1
            self.first_with_null = self.first_with_null or BadLine(line.number, line.with_null)


class _Pace:
    """Holds back what comes earlier than `rate` records per second allow; late ones catch up."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def wait(self, sent: int, interrupted: Callable[[], bool]) -> None:
        while self._rate and not interrupted():
            early = self._began + sent / self._rate - time.monotonic()
            if early <= 0:
                return
            time.sleep(min(early, _SLICE_SECONDS))


@contextmanager
def _between_records() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is heard between two records, so that the number of those sent is true; a second one ends at once."""
    asked = []
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        asked.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def _broken_off(error: LaminaError, sent: int, after: int) -> LaminaError:
    return LaminaError(
        error.what,
        evidence=f"{error.evidence}\nThe first {sent:,} records of the file were sent."
        + (f" Some of the {after:,} after them may have been sent, too." if after else ""),
        way_out=f"{error.way_out} To continue after those sent: `--skip {sent}`.",
    )


def _headers(line: Line) -> list[tuple[str, bytes]]:
    """The reason a line is bad, sent with it if the reader, who sees the record alone, would find another one.

    Reasons are counted: none names its line. A line that is its own record (JSON lines) gets the reader's reason, which
    is the same for all values.
    """
    if line.problem is None or line.record == line.raw:
        return []
    return [(PROBLEM_HEADER, f"lamina ingest: {line.problem}".encode()[:_REASON_BYTES])]


def _not_declared(file: str, source: Source, strangers: Strangers) -> LaminaError:
    undeclared = strangers.found()
    more = f"\n… and {len(undeclared) - SHOWN} more." if len(undeclared) > SHOWN else ""
    are = "1 field is" if len(undeclared) == 1 else f"{len(undeclared)} fields are"
    return LaminaError(
        f"{file}: {are} not declared by source {source.name}; nothing was sent",
        evidence="\n".join(map(str, undeclared[:SHOWN])) + more,
        way_out="Correct the names (their case counts), or declare them. `--ignore-unknown` sends the records all the"
        " same: no view reads such a field.",
    )


def _check_skip(file: str, skip: int, total: int) -> None:
    """Raises if fewer than `skip` records are in a file of `total`."""
    if skip > total:
        raise LaminaError(
            f"{file} has only {total:,} {'record' if total == 1 else 'records'}, and {skip:,} were to be skipped",
            way_out="Give the number that the interrupted command printed, and the same file.",
        )


def _value(file: str, source: Source, line: Line, before: int, producer: Producer, newest: Newest) -> bytes:
    """The value that is sent of a line; raises LaminaError if the format of the source cannot write it."""
    if line.problem is not None:
        return line.raw
    try:
        return value_of(source, line.record, newest)
    except LaminaError as error:
        producer.flush()
        raise LaminaError(
            f"{file}: line {line.number}: {error.what}",
            evidence=f"{error.evidence}.\nThe {before:,} records before it were sent.",
            way_out=f"{error.way_out} Then continue after the others: `--skip {before}`.",
        ) from error


def _too_large(file: str, source: Source, line: Line, before: int) -> LaminaError:
    return LaminaError(
        f"{file}: line {line.number} is too large for topic {source.topic}, even for quarantine",
        evidence=f"{line.problem}.\nThe {before:,} records before it were sent.",
        way_out="Raise the topic's max.message.bytes, or take the line out; then continue after the others:"
        f" `--skip {before}`.",
    )


def _refused(file: str, tally: _Tally, total: int) -> LaminaError:
    more = f"\n… and {tally.bad - len(tally.first)} more." if tally.bad > len(tally.first) else ""
    return LaminaError(
        f"{file}: {tally.bad} of {total} lines are bad; nothing was sent",
        evidence="\n".join(map(str, tally.first)) + more,
        way_out="Correct them, or let them go to quarantine: --on-bad quarantine.",
    )
