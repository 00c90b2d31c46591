"""Functions that are another way to write something else: what they are made of, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from view_algebra.expressions import Call, Constant, Expr, Place
from view_algebra.operators import calculate, call, case, cast, compare, number
from view_algebra.refusals import Wrong
from view_algebra.times import MICROSECONDS, shifted
from view_algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
    words,
)

Arguments = Sequence[Expr]

CASTS: dict[str, Type] = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": Type("SMALLINT"),
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "string": STRING,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
"""Functions that are CASTs to a type: `int(x)`."""

TIMED = words("timestampdiff timestampadd datediff date_diff dateadd date_add")
"""Functions whose first argument may be a unit of time: `timestampdiff(MINUTE, a, b)`."""


def _decode(given: Arguments, place: Place) -> Expr:
    """`decode(x, a, 'A', b, 'B', 'other')`, which takes NULLs as equal."""
    value, *rest = given
    branches = [(compare("<=>", value, a, place), then) for a, then in zip(rest[0:-1:2], rest[1::2], strict=False)]
    return case(branches, rest[-1] if len(rest) % 2 else None, place)


MADE: dict[str, tuple[int, Callable[[Arguments, Place], Expr]]] = {
    "zeroifnull": (1, lambda given, place: call("coalesce", [given[0], number("0", place)], place)),
    "try_divide": (2, lambda given, place: calculate("/", given[0], given[1], place)),
    "mod": (2, lambda given, place: calculate("%", given[0], given[1], place)),
    "decode": (3, _decode),
}
"""What a function is made of, and the fewest arguments that it takes."""


def made(name: str, given: Arguments, place: Place) -> Expr | None:
    """What a function is made of; None where it is none of these."""
    fewest, make = MADE.get(name, (0, None))
    if make is None:
        return None
    if len(given) < fewest or (len(given) > fewest and name != "decode"):
        raise Wrong(place, f"{name}() with {len(given)} arguments", f"It takes {fewest}.")
    return make(given, place)


def timed(name: str, unit: str, given: Arguments, place: Place) -> Expr:
    """A function of a unit, and a number and a time or two times."""
    word = unit.lower().rstrip("s")
    if len(given) != 2:
        raise Wrong(place, f"{name}({unit}, …) with {len(given)} arguments", f"Write {name}({unit}, a, b).")
    if name in ("timestampadd", "dateadd", "date_add"):
        count, time = given
        if not (isinstance(count, Constant) and count.type == INT):
            raise Wrong(count.place or place, f"{name}() of a number that is no literal", "Write it out.")
        if time.type == DATE:
            time = cast(time, TIMESTAMP, implicit=True)
        moved = shifted("+", time, Constant(f"{count.value} {word}", INTERVAL), place)
        assert moved is not None
        return moved
    length = MICROSECONDS.get(word)
    if length is None:
        way_out = f"Write {name}(DAY, a, b)."
        raise Wrong(place, f"{name}() in {word}s, whose length varies", way_out)
    begin, end = (call("unix_micros", [each], place) for each in given)
    apart = calculate("-", end, begin, place)
    return apart if length == 1 else Call("div", (apart, Constant(str(length), BIGINT)), BIGINT, place=place)
