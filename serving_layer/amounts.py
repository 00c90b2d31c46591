"""Amounts as a person says them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A length of time as a person says it.

    >>> duration(0.2), duration(95), duration(7_300)
    ('1 s', '2 min', '2 h')
    """
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


def in_bytes(bytes: int) -> str:
    """A size as a person says it.

    >>> in_bytes(81_920), in_bytes(1_200_000), in_bytes(600_000_000), in_bytes(34_000_000_000)
    ('80 KB', '1.1 MB', '572 MB', '32 GB')
    """
    for unit, size in (("GB", 2**30), ("MB", 2**20)):
        if bytes >= size:
            return f"{bytes / size:.{0 if bytes >= 10 * size else 1}f} {unit}"
    return f"{-(-bytes // 2**10)} KB"
