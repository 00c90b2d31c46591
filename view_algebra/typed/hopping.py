"""Rows of hopping windows: each once for every window that it is in. Grouped records need it not: they have panes."""

from __future__ import annotations

from dataclasses import replace

from view_algebra.language.expressions import Call, Expr, Field, Generator, Select
from view_algebra.language.time_windows import hops
from view_algebra.language.types import TIMESTAMP, Type
from view_algebra.language.walks import above_group, rewritten, walk
from view_algebra.refusals import Wrong
from view_algebra.typed.generators import with_generator
from view_algebra.typed.passing import reads_records


def in_every_window(block: Select) -> Select:
    """A row once for each hopping window that it is in, unless a block groups records."""
    asked = (*above_group(block), *(block.group or ()))
    found = dict.fromkeys(e for x in asked for e in walk(x) if isinstance(e, Call) and hops(e))
    grouped = block.group is not None or block.distinct
    if not found or block.relation is None or (grouped and reads_records(block.relation)):
        return block
    window, *more = found
    if more:
        raise Wrong(more[0].place, "two hopping windows of one record", "Select one of them.")
    starts = Call("hops", window.arguments, Type("ARRAY", element=TIMESTAMP), place=window.place)
    made = Generator(starts, (("start", TIMESTAMP),), False, False, _EVERY_WINDOW, window.place)

    def start(expression: Expr) -> Expr | None:
        return Field(_EVERY_WINDOW, ("start",), TIMESTAMP, place=expression.place) if expression == window else None

    return replace(
        rewritten(replace(block, where=None), start), relation=with_generator(block.relation, made), where=block.where
    )


_EVERY_WINDOW = "every window"
"""An alias that no author can give."""
