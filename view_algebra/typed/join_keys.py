"""Columns of two relations that are compared for equality: a text does not meet a number.

Spark reads the text as a number, and a text that is none meets nothing: a key that is declared with the wrong type
gives a view without rows, in silence. So whoever means that writes the cast.
"""

from __future__ import annotations

from view_algebra.language.expressions import Call, Expr, Field, Joined, Nested, Read, Select, Stream, conjuncts
from view_algebra.language.relations import relations_in
from view_algebra.language.types import STRING
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong


def refuse_texts_that_meet_numbers(block: Select) -> None:
    """Raises where rows of two relations meet by the equality of a text and a number: in ON, USING or WHERE."""
    relations = list(relations_in(block.relation))
    named = {each.alias for each in relations if isinstance(each, (Stream, Read, Nested))}
    for condition in (*(each.condition for each in relations if isinstance(each, Joined)), block.where):
        for part in () if condition is None else conjuncts(condition):
            if isinstance(part, Call) and part.function in ("=", "<=>"):
                left, right = part.arguments
                _refuse(part, left, right, named)
                _refuse(part, right, left, named)


def _refuse(equality: Call, text: Expr, number: Expr, named: set[str]) -> None:
    """Raises where `text` is a text that the equality reads as a number, and each side is of another relation."""
    if _without_cast(text).type != STRING or not text.type.numeric:
        return
    of_text, of_number = (_relations(side) & named for side in (text, number))
    if of_text and of_number and of_text.isdisjoint(of_number):
        kind = _without_cast(number).type
        raise Wrong(
            equality.place,
            f"a join of STRING with {kind}",
            f"Write CAST(… AS {kind}) around the text, where one that is not a number matches nothing; or declare its"
            f" column as {kind}.",
        )


def _without_cast(side: Expr) -> Expr:
    """A side as its author wrote it."""
    return side.arguments[0] if isinstance(side, Call) and side.function == "cast" and side.implicit else side


def _relations(expression: Expr) -> set[str]:
    """The relations of the block whose columns an expression names."""
    return {part.relation for part in walk(expression) if isinstance(part, Field) and not part.outer}
