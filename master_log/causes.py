"""The reason for a failure of Spark, taken from the page of text that Java prints for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises while it plans or computes; PySpark passes exceptions on that it has no name for as Py4J's."""

T = TypeVar("T")


def interrupted_at_once(compute: Callable[[], T]) -> T:
    """The value of a call of Spark. A Ctrl-C stays one, also where Spark then says that its job was cancelled."""
    try:
        return compute()
    except SPARK_ERRORS as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        raise (cause or error) from None


_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
"""A line in which Java names what an exception comes from; the last of them is the root cause."""

_OF_A_TASK = re.compile(r"\(\S+ executor \S+\): (.+)")
"""The line in which Spark says why a task failed."""

_RAISED = re.compile(r"^\s*([\w.]+(?:Error|Exception): .+)$", re.MULTILINE)

AT_MOST = 500
"""Characters of a reason."""


def cause(said: str) -> str:
    """The line that names the root cause; without one, the exception of the task, or the last exception that is named.

    >>> cause("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10)))
    'IOException: No space left'
    >>> cause("Job aborted: Lost task 0.0 (host executor driver): MemoryError: heap|at x.y(z)".replace("|", chr(10)))
    'MemoryError: heap'
    """
    for named in (_CAUSED_BY, _OF_A_TASK, _RAISED):
        lines: list[str] = named.findall(said)
        if lines:
            return lines[-1].strip()[:AT_MOST]
    first = said.strip().partition("\n")[0]
    return first[:AT_MOST] or "Spark gave no reason."
