"""Sequences that a record decides, in Spark SQL: those that conditions bound, and the refusal of the others."""

from __future__ import annotations

from view_algebra.language.expressions import Call
from view_algebra.language.times import MOST_ELEMENTS
from view_algebra.language.types import TIMESTAMP, Type
from view_algebra.refusals import Wrong


def bounded_sequence(kind: Type, first: str, last: str, step: str = "") -> str:
    """A sequence that the conditions around it bound, checked again: their sums may have wrapped around.

    >>> print(bounded_sequence(Type("INT"), "a", "b", "5"))
    CASE WHEN CAST(b AS DECIMAL(20, 0)) - CAST(a AS DECIMAL(20, 0)) BETWEEN 0 AND 50000 THEN sequence(a, b, 5) END
    """
    if kind == TIMESTAMP:
        apart = f"unix_micros({last}) - unix_micros({first}) BETWEEN 0 AND {MOST_ELEMENTS * int(step) * 1_000_000}L"
        return f"CASE WHEN {apart} THEN sequence({first}, {last}, INTERVAL '{step}' SECOND) END"
    number = int(step.rstrip("L") or 1)
    low, high = (first, last) if number > 0 else (last, first)
    apart = f"CAST({high} AS DECIMAL(20, 0)) - CAST({low} AS DECIMAL(20, 0))"
    least = 0 if step else -MOST_ELEMENTS  # without a step it goes down, too
    given = ", ".join((first, last, step) if step else (first, last))
    return f"CASE WHEN {apart} BETWEEN {least} AND {MOST_ELEMENTS * abs(number)} THEN sequence({given}) END"


def without_bound(call: Call, first: str, last: str, step: str = "") -> Wrong:
    """The refusal of a sequence that may be of any length, with a condition that bounds it."""
    low, high = (last, first) if step.startswith("-") else (first, last)
    longest = str(USUAL * abs(int(step.rstrip("L") or 1)))
    if call.arguments[0].type == TIMESTAMP:
        longest = next(length for least, length in _LENGTHS if int(step) >= least)
        step = f"INTERVAL {step} SECONDS"
    within = f"{high} <= {low} + {longest}" if step else f"{high} BETWEEN {low} - {longest} AND {low} + {longest}"
    given = ", ".join((first, last, step) if step else (first, last))
    way_out = (
        f"Write CASE WHEN {within} THEN sequence({given}) END. A record of which it is longer then has no elements. "
        f"A condition in WHERE does, too; {MOST_ELEMENTS:,} elements are the most."
    )
    return Wrong(call.place, f"{call.function}() of a record that nothing bounds", way_out)


USUAL = 1_000
"""Elements that the condition of a refusal allows, as an example."""

_LENGTHS = ((86_400, "INTERVAL 366 DAYS"), (3_600, "INTERVAL 31 DAYS"), (60, "INTERVAL 1 DAY"), (0, "INTERVAL 1 HOUR"))
"""Lengths that the condition of a refusal allows, as an example, by the least seconds of a step."""
