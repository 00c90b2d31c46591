"""The clock: `now()` and similar functions are the moment at which a view is read, which no record decides.

Postgres computes them when a view is read, as the time of the reader's transaction. Dates and local times are in UTC,
as in Spark's session.
"""

from __future__ import annotations

from view_algebra.language.expressions import NOW, Call, Expr, Place
from view_algebra.language.meeting import cast
from view_algebra.language.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Type

CLOCK: dict[str, Type] = {
    "now": TIMESTAMP,
    "current_timestamp": TIMESTAMP,
    "localtimestamp": TIMESTAMP_NTZ,
    "current_date": DATE,
    "curdate": DATE,
}
"""Functions that return the current time, with their types."""

NOW_IN_SPARK = "system.session.lamina_now"
"""A variable of Spark's session: the time of the snapshot that the oracle is compared with."""


def told(name: str, place: Place) -> Expr:
    """The expression of a function of the clock."""
    return cast(Call(NOW, (), TIMESTAMP, place=place), CLOCK[name.lower()])


def in_spark(name: str) -> str:
    """The function in the SELECT that Spark runs."""
    kind = CLOCK[name.lower()]
    return NOW_IN_SPARK if kind == TIMESTAMP else f"CAST({NOW_IN_SPARK} AS {kind.spark})"
