"""The reason for a failure of Spark or of the warehouse, taken from the page of text that Java prints for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from master_log import stores
from view_algebra.errors import LaminaError, interrupt_behind

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Exceptions of planning and computing. PySpark raises an exception that it has no class for as Py4J's."""

T = TypeVar("T")


def interrupted_at_once(compute: Callable[[], T]) -> T:
    """Calls Spark and returns its value. Raises KeyboardInterrupt for Ctrl-C, even if Spark reports an error for it."""
    try:
        return compute()
    except (PySparkException, Py4JError) as error:
        raise (interrupt_behind(error) or error) from None


_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
"""A line in which Java names the cause of an exception. The last one is the root cause."""

_TASK_FAILURE = re.compile(r"\(\S+ executor \S+\): (.+)")
"""The reason for the failure of a task."""

_RAISED = re.compile(r"^\s*([\w.]+(?:Error|Exception): .+)$", re.MULTILINE)

LONGEST_CAUSE = 500
"""Characters of a reason."""


def cause(text: str) -> str:
    """The line that names the root cause, or else the exception of the task, or else the last exception named.

    >>> cause("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10)))
    'IOException: No space left'
    >>> cause("Job aborted: Lost task 0.0 (host executor driver): MemoryError: heap|at x.y(z)".replace("|", chr(10)))
    'MemoryError: heap'
    """
    for pattern in (_CAUSED_BY, _TASK_FAILURE, _RAISED):
        lines: list[str] = pattern.findall(text)
        if lines:
            return lines[-1].strip()[:LONGEST_CAUSE]
    first = text.strip().partition("\n")[0]
    return first[:LONGEST_CAUSE] or "Spark gave no reason."


_STORAGE = re.compile(
    r"No space left on device|Disk quota exceeded|Permission denied|Read-only file system|Not a directory"
    r"|Mkdirs failed|Failed to create|File exists|Is a directory"
)
_TORN = re.compile(
    r"Failed to (?:read|open|parse)[^\n]*metadata|ChecksumException|Could not find file"
    r"|No content to map due to end-of-input|NotFoundException: [^\n]*metadata\.json"
)
"""Incomplete metadata: the machine stopped before it reached the disk."""

CATALOG_ERROR = re.compile(
    r"PSQLException|SQLNonTransientConnectionException|Failed to connect: jdbc|Connection .* refused"
)


@contextmanager
def warehouse_errors(what: str) -> Iterator[None]:
    """Turns an error of the warehouse, the catalog or Kafka into a LaminaError. Any other error is a bug."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        translated = _translated(error, what)
        if translated is None:
            raise
        raise translated from error


def _translated(error: Exception, what: str) -> LaminaError | None:
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    if _TORN.search(text):
        return LaminaError(
            f"{what}: the metadata that its catalog names are incomplete",
            evidence=_shortest(lines, _TORN),
            way_out="Make sure that the warehouse exists (LAMINA_WAREHOUSE). If its machine lost power,"
            " `lamina archive` returns to the previous metadata and archives the records of its last run again.",
        )
    if (reason := stores.reason(text)) is not None:
        return LaminaError(
            f"{what}: {reason.what}",
            evidence=_shortest(lines, reason.pattern),
            way_out=f"{reason.way_out}, and run it again: nothing was changed.",
        )
    kafka_lines = [line for line in lines if "org.apache.kafka" in line and not line.startswith("at ")]
    if any(_STORAGE.search(line) for line in lines if line not in kafka_lines):  # Kafka's errors may match as well
        return LaminaError(
            f"{what}: the warehouse cannot be written",
            evidence=_shortest(lines, _STORAGE),
            way_out="Make room or give the user the right to write there (LAMINA_WAREHOUSE), and run it again: "
            "nothing was changed.",
        )
    if CATALOG_ERROR.search(text):
        return LaminaError(
            f"{what}: the log's catalog in Postgres does not answer",
            evidence=_shortest(lines, CATALOG_ERROR),
            way_out="Start Postgres, or correct LAMINA_POSTGRES, and run it again: nothing was changed.",
        )
    if kafka_lines or "KAFKA_DATA_LOSS" in text:
        return LaminaError(
            f"{what}: Kafka stopped sending records",
            evidence=cause(str(error)) if kafka_lines else next(line for line in lines if "KAFKA_DATA_LOSS" in line),
            way_out="Make sure that the brokers run and still hold these records, and run it again: nothing was"
            " changed.",
        )
    return None


def _shortest(lines: list[str], pattern: re.Pattern[str]) -> str:
    """The innermost of the lines that match, which adds nothing: Java repeats a cause once per layer."""
    return min((line for line in lines if pattern.search(line)), key=len).removeprefix("Caused by: ").removeprefix(": ")
