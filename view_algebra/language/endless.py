"""Infinities: times after or before every other time, which a view shows as NULL.

Debezium writes Postgres' infinities as numbers. In Spark they are the first instant after the calendar and the start
of the last day before it; in Postgres they are infinities. `Type.endless` marks types that may have them. Functions
that return an argument or compare times keep them. A time computed from an infinity is the same infinity. For any
other function they are NULL.
"""

from __future__ import annotations

from dataclasses import replace

from view_algebra.language.expressions import Call, Expr
from view_algebra.language.quoting import words
from view_algebra.language.types import Type

KEEPS = words(
    "coalesce nvl ifnull nullif nvl2 if iff greatest least isnull isnotnull equal_null decode to_timestamp to_date"
    " date timestamp count min max first last any_value first_value last_value nth_value lag lead max_by min_by"
)
"""Functions that return one of their times, or compare them."""

MOVES = words(
    "date_trunc trunc date_add dateadd date_sub add_months last_day next_day from_utc_timestamp to_utc_timestamp"
    " timestampadd"
)
"""Functions that compute a time from a time."""


def finite(time: Expr) -> Expr:
    """The time, or NULL for an infinity."""
    return Call("finite", (time,), replace(time.type, endless=False), place=time.place)


def moved(call: Call, time: Expr) -> Call:
    """The value of a call on a time; for an infinity, the same infinity."""
    arguments = tuple(finite(argument) if argument == time else argument for argument in call.arguments)
    of_finite = replace(call, arguments=arguments, type=replace(call.type, endless=False))
    return Call("endless", (of_finite, time), replace(call.type, endless=True), place=call.place)


def without(kind: Type) -> Type:
    """The type without infinities, as a view shows it."""
    return replace(kind, endless=False)
