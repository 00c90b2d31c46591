"""Why Spark failed, out of a page of Java's."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises while it plans or computes; PySpark passes exceptions on that it has no name for as Py4J's."""


def cause(said: str) -> str:
    """The line that names the cause: the last `Caused by`, or the last exception that is named.

    >>> cause("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10)))
    'IOException: No space left'
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (causes or raised or lines or ["It said nothing."])[-1 if causes or raised else 0][:500]
