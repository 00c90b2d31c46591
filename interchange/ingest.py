"""Sends the records of a file to a source's topic."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Literal

from interchange.csv_forms import CsvForms
from interchange.files import ISO, BadLine, Line, format_of, lines
from interchange.json_values import columns
from interchange.judgements import NOT_UTF8, Rules
from interchange.opening import seekable
from interchange.undeclared import UndeclaredCounter
from interchange.writers import NO_SCHEMAS, WriterSchemas, key_of, value_of
from master_log.kafka.brokers import Brokers
from master_log.kafka.producer import NotTaken, Producer
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.records.quarantined import PROBLEM_HEADER

Encode = Callable[[bytes], tuple[bytes | None, bytes]]
"""Encodes a record's JSON as Kafka's key and value."""

SHOWN = 10
"""Most bad lines that are listed one by one."""

_OVERHEAD = 512
"""Bytes that Kafka adds to a record alone in its batch, with some reserve. `max.message.bytes` includes them."""

_STEP = 500
"""Records between two calls of the progress callback."""

_SLICE_SECONDS = 0.1
"""Most seconds of one sleep before the next record, and thus until Ctrl-C takes effect."""

_REASON_BYTES = 200
"""Most bytes of the reason sent with a bad record. `_OVERHEAD` has room for them."""


@dataclass(frozen=True)
class Options:
    """The way to send a file. A line is bad if the source will quarantine it, or if its formats cannot hold it.

    file_format: by default, the format of the file's ending
    forms: the forms of NULL and times in a CSV file
    on_bad: `refuse` reads the whole file first, and sends nothing if a line is bad or not UTF-8. `quarantine` sends the
        unchanged bytes of a bad line with its problem
    key_by: columns of Kafka's key, by default those declared UNIQUE or PRIMARY KEY. Records without a key go to the
        partitions in turn
    rate: records per second
    ignore_unknown: an undeclared (perhaps mistyped) field does not refuse the file
    skip: first records to leave out, because they were sent before
    """

    file_format: str | None = None
    forms: CsvForms = ISO
    on_bad: Literal["refuse", "quarantine"] = "refuse"
    key_by: Sequence[str] | None = None
    rate: float | None = None
    ignore_unknown: bool = False
    skip: int = 0


REFUSE = Options()
"""A file with a bad line or an undeclared field is not sent."""


@dataclass
class Tally:
    """Counts of the records of one pass over a file: those sent, the bad ones among them, and the first bad lines.

    skipped: first records of the file that were left out
    with_null: records that count with NULL for a field that cannot be read
    not_utf8: records that count with replacement characters for some bytes
    """

    skipped: int = 0
    sent: int = 0
    bad: int = 0
    first_bad: list[BadLine] = field(default_factory=list)
    with_null: int = 0
    first_with_null: BadLine | None = None
    not_utf8: int = 0

    @property
    def done(self) -> int:
        """The number of the file's records that were sent, now or before."""
        return self.skipped + self.sent

    def note(self, line: Line, problem: str | None) -> None:
        """Counts a line, which is bad if it has a problem."""
        if problem is not None:
            self.bad += 1
            if len(self.first_bad) < SHOWN:
                self.first_bad.append(BadLine(line.number, problem))
            return
        self.not_utf8 += not line.judgement.is_utf8
        if (with_null := line.judgement.with_null) is not None:
            self.with_null += 1
            self.first_with_null = self.first_with_null or BadLine(line.number, with_null)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C after the brokers took exactly the first `sent` records of the file, including skipped ones."""

    def __init__(self, sent: int) -> None:
        super().__init__(f"{sent:,} records of the file were sent")
        self.sent = sent


def ingest(
    source: Source,
    file: str,
    brokers: Brokers,
    options: Options = REFUSE,
    *,
    newest: WriterSchemas = NO_SCHEMAS,
    on_progress: Callable[[int, int | None], None] = lambda done, total: None,
    stdin: IO[bytes] | None = None,
) -> Tally:
    """Sends each line of the file (`-`: standard input) as a record, and returns when the brokers hold them all.

    The record is JSON, or in the source's own format. A format that needs a registry uses its `newest` schemas.

    on_progress: takes the number of the file's records done and, if known, of all its records

    Raises LaminaError if the file must not be sent, and `Interrupted` on Ctrl-C.
    """
    _refuse_change_events(source)
    encode = partial(_encoded, source, _key_fields(source, options.key_by), newest)
    file_format = format_of(file, options.file_format)
    options.forms.check(file, file_format)
    rules, partitions = Rules.of(source), brokers.partitions(source.topic)
    largest = brokers.retention(source.topic).record_bytes - _OVERHEAD
    tally, total = Tally(options.skip), None
    with seekable(file, stdin or sys.stdin.buffer) as content:
        read = partial(lines, content, file, file_format, rules, largest, options.forms)
        if options.on_bad == "refuse" or not options.ignore_unknown:
            total = _checked(file, source, read(), encode, options)
        with brokers.producer() as producer:
            sender = _Sender(file, source, producer, partitions, encode, largest, tally)
            _send(sender, itertools.islice(read(), options.skip, None), options.rate, lambda n: on_progress(n, total))
        if not tally.sent:
            _check_skip(file, options.skip, sum(1 for _ in itertools.islice(read(), options.skip)))
    on_progress(tally.done, total)
    return tally


def _refuse_change_events(source: Source) -> None:
    if source.has_changes:
        raise LaminaError(
            f"{source.name} takes Debezium's change events, and `lamina ingest` sends plain records",
            evidence=f"format '{source.format}'",
            way_out=f"Let a Debezium connector write to topic {source.topic}; try the views first with `lamina test`,"
            " whose tests hold change events. Or declare a source of another format.",
        )


def _key_fields(source: Source, key_by: Sequence[str] | None) -> tuple[str, ...]:
    """The fields of Kafka's key. Raises LaminaError for a column that is not declared."""
    declared = [column.name for column in source.columns]
    keys = tuple(source.unique if key_by is None else key_by)
    unknown = [key for key in keys if key not in declared]
    if unknown:
        raise LaminaError(
            f"{source.name}: there is no column {unknown[0]} to key by",
            evidence=f"Found: {', '.join(declared)}.",
            way_out="Name declared columns.",
        )
    return tuple(map(source.field, keys))


def _checked(file: str, source: Source, file_lines: Iterator[Line], encode: Encode, options: Options) -> int:
    """Reads the whole file and returns its number of records. Raises LaminaError if it must not be sent."""
    tally, total, undeclared = Tally(), 0, UndeclaredCounter(columns(source))
    try:
        for line in file_lines:
            total += 1
            if options.on_bad == "refuse":
                tally.note(line, line.judgement.problem or _problem(line, encode))
            if line.judgement.problem is None and not options.ignore_unknown:
                undeclared.note(line.judgement.value)
    except KeyboardInterrupt:
        raise Interrupted(options.skip) from None  # nothing has been sent yet
    if tally.bad:
        raise _refused(file, tally, total)
    if undeclared:
        raise _not_declared(file, source, undeclared)
    _check_skip(file, options.skip, total)
    return total


def _encoded(source: Source, keys: Sequence[str], newest: WriterSchemas, record: bytes) -> tuple[bytes | None, bytes]:
    """Kafka's key and the value of a record. Raises LaminaError if the source's formats cannot hold them."""
    return key_of(source, keys, record, newest), value_of(source, record, newest)


def _problem(line: Line, encode: Encode) -> str | None:
    """The reason a line that is not bad to the reader cannot be sent."""
    if not line.judgement.is_utf8:
        return NOT_UTF8
    try:
        encode(line.record)
    except LaminaError as error:
        return f"{error.what} ({error.evidence})" if error.evidence else error.what
    return None


@dataclass(frozen=True)
class _Sender:
    """Sends the lines of one file in order, and counts them.

    largest: bytes of a record
    """

    file: str
    source: Source
    producer: Producer
    partitions: Sequence[int]
    encode: Encode
    largest: int
    tally: Tally

    def readable(self, file_lines: Iterator[Line]) -> Iterator[Line]:
        """The lines of the file. If it turns out to be damaged, the error says how many records were sent."""
        try:
            yield from file_lines
        except LaminaError as error:
            self.producer.flush()
            raise _broken_off(error, self.tally.done, 0) from error

    def send(self, line: Line) -> None:
        """Sends one line. Raises LaminaError if its topic or its source's format cannot take it."""
        self.tally.note(line, line.judgement.problem)
        key, value = self._encoded(line)
        # A key decides its partition. Without a key, partitions take turns, so that they fill evenly.
        partition = self.partitions[self.tally.done % len(self.partitions)] if key is None else None
        self.producer.send(self.source.topic, value, key, partition, _headers(line))
        self.tally.sent += 1

    def _encoded(self, line: Line) -> tuple[bytes | None, bytes]:
        if (problem := line.judgement.problem) is not None:
            if len(line.raw) > self.largest:
                raise self._stopped(
                    f"{self.file}: line {line.number} is too large for topic {self.source.topic}, even for quarantine",
                    problem,
                    "Raise the topic's max.message.bytes, or take the line out.",
                )
            return None, line.raw
        try:
            return self.encode(line.record)
        except LaminaError as error:
            what = f"{self.file}: line {line.number}: {error.what}"
            raise self._stopped(what, error.evidence, error.way_out) from error

    def _stopped(self, what: str, evidence: str, way_out: str) -> LaminaError:
        """The error for a record that cannot be sent, once the brokers hold all records before it."""
        self.producer.flush()
        return LaminaError(
            what,
            evidence=_with_sent(evidence, self.tally.done),
            way_out=f"{way_out} Then continue after the others: `--skip {self.tally.done}`.",
        )


def _send(sender: _Sender, file_lines: Iterator[Line], rate: float | None, on_progress: Callable[[int], None]) -> None:
    """Sends lines at a rate. Raises `Interrupted` on Ctrl-C, once the brokers hold every record before it."""
    began = time.monotonic()
    with _between_records() as interrupted:
        try:
            for line in sender.readable(file_lines):
                if rate:
                    _wait_until(began + sender.tally.sent / rate, interrupted)
                if interrupted():
                    break
                sender.send(line)
                if sender.tally.sent % _STEP == 0:
                    on_progress(sender.tally.done)
            sender.producer.flush()
        except NotTaken as error:
            acknowledged = sender.producer.acknowledged
            raise _broken_off(error, sender.tally.skipped + acknowledged, sender.tally.sent - acknowledged) from error
        if interrupted():
            raise Interrupted(sender.tally.done)


def _wait_until(moment: float, interrupted: Callable[[], bool]) -> None:
    """Returns at this moment of the monotonic clock, or on Ctrl-C. A record that is late is sent at once."""
    while not interrupted() and (early := moment - time.monotonic()) > 0:
        time.sleep(min(early, _SLICE_SECONDS))


@contextmanager
def _between_records() -> Iterator[Callable[[], bool]]:
    """Defers Ctrl-C to the end of a record, so that the number sent is exact. A second Ctrl-C ends at once."""
    interrupts = []
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        interrupts.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(interrupts)
    finally:
        signal.signal(signal.SIGINT, before)


def _broken_off(error: LaminaError, sent: int, unsure: int) -> LaminaError:
    return LaminaError(
        error.what,
        evidence=_with_sent(error.evidence, sent)
        + (f" Some of the {unsure:,} after them may have been sent as well." if unsure else ""),
        way_out=f"{error.way_out} To continue after those sent: `--skip {sent}`.",
    )


def _with_sent(evidence: str, sent: int) -> str:
    """The evidence of an error that ends an ingest, with the number of records sent before it."""
    return "\n".join(filter(None, (evidence, f"Records of the file that were sent: {sent:,}.")))


def _headers(line: Line) -> list[tuple[str, bytes]]:
    """The header with the reason a line is bad, unless the reader, which sees only the record, finds the same reason.

    Reasons are counted, so they never name their line. A line that is its own record (JSON lines) gets the reader's
    reason.
    """
    problem = line.judgement.problem
    if problem is None or line.record == line.raw:
        return []
    return [(PROBLEM_HEADER, f"lamina ingest: {problem}".encode()[:_REASON_BYTES])]


def _not_declared(file: str, source: Source, undeclared: UndeclaredCounter) -> LaminaError:
    fields = undeclared.fields()
    more = f"\n… and {len(fields) - SHOWN} more." if len(fields) > SHOWN else ""
    are = "1 field is" if len(fields) == 1 else f"{len(fields)} fields are"
    return LaminaError(
        f"{file}: {are} not declared by source {source.name}; nothing was sent",
        evidence="\n".join(map(str, fields[:SHOWN])) + more,
        way_out="Correct the names (case matters), or declare them. `--ignore-unknown` sends the records all the"
        " same: no view reads such a field.",
    )


def _check_skip(file: str, skip: int, total: int) -> None:
    """Raises LaminaError if a file of `total` records has fewer than `skip`."""
    if skip > total:
        raise LaminaError(
            f"{file} has fewer records ({total:,}) than were to be skipped ({skip:,})",
            way_out="Use the number that the interrupted command printed, and the same file.",
        )


def _refused(file: str, tally: Tally, total: int) -> LaminaError:
    more = f"\n… and {tally.bad - SHOWN} more." if tally.bad > SHOWN else ""
    return LaminaError(
        f"{file}: {tally.bad} of {total} lines are bad; nothing was sent",
        evidence="\n".join(map(str, tally.first_bad)) + more,
        way_out="Correct them, or send them to quarantine: --on-bad quarantine.",
    )
