"""Amounts in the units a person would use."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A length of time, rounded.

    >>> duration(0.2), duration(95), duration(7_300)
    ('1 s', '2 min', '2 h')
    """
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


def size(number: float) -> str:
    """A number of bytes, rounded.

    >>> size(8_192), size(1_048_575), size(600_000_000), size(34_000_000_000_000)
    ('8 kB', '1.0 MB', '600 MB', '34,000 GB')
    """
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5 or unit == "GB":
            break
    return f"{number:,.{0 if number >= 9.95 or unit == 'kB' else 1}f} {unit}"


def age(seconds: float) -> str:
    """A span of time, in the largest unit that it has at least two of.

    >>> age(75), age(7_300), age(9 * 86_400), age(7_000)
    ('75 s', '2 h', '9 d', '116 min')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
