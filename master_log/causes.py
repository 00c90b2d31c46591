"""The reason for a failure of Spark, taken from the page of text that Java prints for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Exceptions of planning and computing. PySpark passes on an exception it has no name for as Py4J's."""

T = TypeVar("T")


def interrupted_at_once(compute: Callable[[], T]) -> T:
    """Calls Spark and returns its value. Raises KeyboardInterrupt for Ctrl-C, even if Spark reports a cancelled job."""
    try:
        return compute()
    except SPARK_ERRORS as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        raise (cause or error) from None


_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
"""A line in which Java names the cause of an exception; the last one is the root cause."""

_OF_A_TASK = re.compile(r"\(\S+ executor \S+\): (.+)")
"""The reason for the failure of a task."""

_RAISED = re.compile(r"^\s*([\w.]+(?:Error|Exception): .+)$", re.MULTILINE)

AT_MOST = 500
"""Characters of a reason."""


def cause(text: str) -> str:
    """The line that names the root cause, or else the exception of the task, or else the last exception named.

    >>> cause("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10)))
    'IOException: No space left'
    >>> cause("Job aborted: Lost task 0.0 (host executor driver): MemoryError: heap|at x.y(z)".replace("|", chr(10)))
    'MemoryError: heap'
    """
    for pattern in (_CAUSED_BY, _OF_A_TASK, _RAISED):
        lines: list[str] = pattern.findall(text)
        if lines:
            return lines[-1].strip()[:AT_MOST]
    first = text.strip().partition("\n")[0]
    return first[:AT_MOST] or "Spark gave no reason."
