"""The refusal of a record's sequence that no condition bounds."""

from __future__ import annotations

from view_algebra.language.expressions import Call
from view_algebra.language.times import MOST_ELEMENTS
from view_algebra.language.types import TIMESTAMP
from view_algebra.refusals import Wrong


def without_bound(call: Call, first: str, last: str, step: str = "") -> Wrong:
    """The refusal of a sequence of unbounded length, with a condition that would bound it."""
    low, high = (last, first) if step.startswith("-") else (first, last)
    longest = str(USUAL * abs(int(step.rstrip("L") or 1)))
    if call.arguments[0].type == TIMESTAMP:
        longest = next(length for least, length in _LENGTHS if int(step) >= least)
        step = f"INTERVAL {step} SECONDS"
    within = f"{high} <= {low} + {longest}" if step else f"{high} BETWEEN {low} - {longest} AND {low} + {longest}"
    bounds = ", ".join((first, last, step) if step else (first, last))
    way_out = (
        f"Write CASE WHEN {within} THEN sequence({bounds}) END. A record of which it is longer then has no elements. "
        f"A condition in WHERE does, too; {MOST_ELEMENTS:,} elements are the most."
    )
    return Wrong(call.place, f"{call.function}() of a record that nothing bounds", way_out)


USUAL = 1_000
"""Elements that the example condition of a refusal allows."""

_LENGTHS = ((86_400, "INTERVAL 366 DAYS"), (3_600, "INTERVAL 31 DAYS"), (60, "INTERVAL 1 DAY"), (0, "INTERVAL 1 HOUR"))
"""Lengths that the example condition of a refusal allows, by the least seconds of a step."""
