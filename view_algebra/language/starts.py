"""Start positions of a source in its topic, as written in OPTIONS (start '…')."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

Start = Literal["earliest", "latest"] | datetime | Mapping[int, int]
"""The first record that Kafka holds, the end of the topic, the first record at or after a time, or offsets by
partition. A partition without an offset begins with its first record."""

EARLIEST: Start = "earliest"
"""The start of a source without an option for it."""

OFFSETS = 2**63
"""Kafka's offsets are smaller than this."""


def start_of(text: str) -> Start:
    """Reads a start position. Raises ValueError, with the way out, for any other text.

    >>> start_of("latest"), start_of('{"0": 4711, "1": 12}')
    ('latest', {0: 4711, 1: 12})
    >>> start_of("2026-01-01T00:00:00Z").isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]
    if text.lstrip().startswith("{"):
        return _offsets(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "Write 'earliest', 'latest', a time ('2026-01-01T00:00:00Z') or offsets by partition ('{\"0\": 4711}')."
        ) from None
    if time.tzinfo is None:
        raise ValueError("Write the time with its zone: '2026-01-01T00:00:00Z', or +01:00 in place of Z.")
    return time


def _offsets(text: str) -> Mapping[int, int]:
    problem = ValueError('Write partitions and offsets as JSON: \'{"0": 4711, "1": 12}\'.')
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise problem from None
    offsets = {key: offset for key, offset in pairs if key.isdecimal() and key.isascii() and type(offset) is int}
    if len(offsets) < len(pairs) or any(not 0 <= offset < OFFSETS for offset in offsets.values()):
        raise problem
    return {int(key): offset for key, offset in offsets.items()}
