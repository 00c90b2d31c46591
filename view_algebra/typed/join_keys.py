"""Columns of two relations that are compared for equality: a text does not meet a number.

Spark reads the text as a number, and a text that is none meets nothing: a key that is declared with the wrong type
gives a view without rows, in silence. So whoever means that writes the cast.
"""

from __future__ import annotations

from view_algebra.language.expressions import Call, Expr, Field, Joined, Select
from view_algebra.language.relations import relations_in
from view_algebra.language.types import STRING
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong


def refuse_texts_that_meet_numbers(block: Select) -> None:
    """Raises for the first equality of a text of one relation with a number of another, in ON or WHERE."""
    joined = (each.condition for each in relations_in(block.relation) if isinstance(each, Joined))
    for condition in (*joined, block.where):
        for part in () if condition is None else walk(condition):
            if isinstance(part, Call) and part.function in ("=", "<=>"):
                left, right = part.arguments
                _refuse(part, left, right)
                _refuse(part, right, left)


def _refuse(equality: Call, text: Expr, number: Expr) -> None:
    """Raises where `text` is a text that the equality reads as a number, and both are of relations that differ."""
    read = _without_cast(text)
    if read.type != STRING or not text.type.numeric or not _relations(text) or not _relations(number):
        return
    if _relations(text).isdisjoint(_relations(number)):
        kind = _without_cast(number).type
        raise Wrong(
            equality.place,
            f"a join of STRING with {kind}",
            f"Write CAST(… AS {kind}) around the text, where one that is no number matches nothing; or declare its"
            f" column as {kind}.",
        )


def _without_cast(side: Expr) -> Expr:
    """A side as its author wrote it."""
    return side.arguments[0] if isinstance(side, Call) and side.function == "cast" and side.implicit else side


def _relations(expression: Expr) -> set[tuple[str, bool]]:
    """The relations whose columns an expression names, and whether they are of the block around."""
    return {(part.relation, part.outer) for part in walk(expression) if isinstance(part, Field)}
