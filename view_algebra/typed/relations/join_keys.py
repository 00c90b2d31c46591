"""The refusal of joins of a text with a number.

Spark would read the text as a number, and a text that is not a number matches nothing: a key declared with the wrong
type would silently give a view without rows. The author writes the cast.
"""

from __future__ import annotations

from view_algebra.language.expressions import (
    Call,
    Expr,
    Field,
    Joined,
    Nested,
    Read,
    Select,
    Stream,
    bare_value,
    conjuncts,
)
from view_algebra.language.types import STRING
from view_algebra.language.walks import relations_in, walk
from view_algebra.refusals import Wrong


def refuse_texts_that_meet_numbers(block: Select) -> None:
    """Refuses `text = number` between two relations in ON, USING or WHERE."""
    relations = list(relations_in(block.relation))
    named = {relation.alias for relation in relations if isinstance(relation, (Stream, Read, Nested))}
    for clause in (*(relation.condition for relation in relations if isinstance(relation, Joined)), block.where):
        for part in () if clause is None else conjuncts(clause):
            if isinstance(part, Call) and part.function in ("=", "<=>"):
                left, right = part.arguments
                _refuse_reading(part, left, right, named)
                _refuse_reading(part, right, left, named)


def _refuse_reading(equality: Call, text: Expr, number: Expr, named: set[str]) -> None:
    """Refuses an equality that reads the text of one relation as a number to compare it with another relation's."""
    if bare_value(text).type != STRING or not text.type.numeric:
        return
    of_text, of_number = (_relations(side) & named for side in (text, number))
    if of_text and of_number and of_text.isdisjoint(of_number):
        kind = bare_value(number).type
        raise Wrong(
            equality.place,
            f"a join does not compare STRING with {kind}",
            f"Write CAST(… AS {kind}) around the text. A text that is not a number then matches nothing."
            f" Or declare its column as {kind}.",
        )


def _relations(expression: Expr) -> set[str]:
    """The relations of the block whose columns an expression names."""
    return {part.relation for part in walk(expression) if isinstance(part, Field) and not part.outer}
