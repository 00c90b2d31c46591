"""GROUP BY a nested value: a struct by its scalars and whether it is NULL, a list by its JSON.

`GROUP BY pair` is `GROUP BY pair IS NOT NULL, pair.a, pair.b`. `SELECT tags … GROUP BY tags` is
`SELECT min_by(tags, 1) … GROUP BY to_json(tags)`: a long text can be shortened for an index, and the list stays whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from view_algebra.language.expressions import ONE, Aggregate, Call, Expr, Field, Output, Select
from view_algebra.language.fields import member
from view_algebra.language.quoting import spark_name
from view_algebra.language.structs import is_struct, rebuilt, scalars
from view_algebra.language.types import STRING, WINDOW, Type, of_scalars, told_apart_as_json
from view_algebra.language.walks import above_group, rewrite
from view_algebra.refusals import Wrong


def is_key(kind: Type) -> bool:
    """Can groups be told apart by a struct of this type? Of a list or a map in it they cannot."""
    return kind.name == "STRUCT" and kind != WINDOW and of_scalars(kind)


def is_list_key(kind: Type) -> bool:
    """Can groups be told apart by the JSON of such a value?"""
    return told_apart_as_json(kind) and not is_key(kind)


def text_of(key: Expr) -> Expr:
    """The JSON of a list, which tells its groups apart."""
    return Call("to_json", (key,), STRING, place=key.place)


def by_texts(block: Select) -> Select:
    """A block over records that groups by no list: where it shows one that it grouped by, that is any of its group."""
    group = block.group or ()
    lists = {key for key in group if is_list_key(key.type)}
    if not lists:
        return block

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Aggregate):
            return part
        if part in lists:
            return Aggregate("min_by", (part, ONE), None, False, part.type, part.place)
        if isinstance(part, Field) and part.of is not None:
            whole = change(replace(part, path=part.path[:-1], type=part.of))
            return None if whole is None else member(whole, part.path[-1], part.place)
        return None

    return _changed(block, tuple(text_of(key) if key in lists else key for key in group), change)


def by_scalars(block: Select) -> Select:
    """A block that groups by no struct: where it shows one that it grouped by, that is put together of its scalars."""
    group = block.group or ()
    apart = {key for key in group if is_struct(key) and is_key(key.type)}
    if not apart:
        return block
    keys = tuple(dict.fromkeys(part for key in group for part in (scalars(key) if key in apart else (key,))))
    _refuse_parts(block, apart)

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Aggregate):
            return part
        return rebuilt(part, lambda scalar: scalar) if part in apart else None

    return _changed(block, keys, change)


def _changed(block: Select, group: tuple[Expr, ...], change: Callable[[Expr], Expr | None]) -> Select:
    """A block with other groups, and with what it computes of them."""
    return replace(
        block,
        group=group,
        outputs=tuple(Output(each.name, rewrite(each.expression, change)) for each in block.outputs),
        having=None if block.having is None else rewrite(block.having, change),
        order=tuple(replace(each, expression=rewrite(each.expression, change)) for each in block.order),
    )


def _refuse_parts(block: Select, apart: set[Expr]) -> None:
    """Spark knows a struct that is made in GROUP BY as a whole, and not what it was made of."""
    group = block.group or ()
    made = {part for key in apart if not isinstance(key, Field) for part in scalars(key) if part not in group}

    def known(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if part in made:
            raise Wrong(part.place, "a part of a struct that is grouped by", "Group by it, too.")
        return None

    for each in above_group(block):
        rewrite(each, known)


def in_spark(scalar: Expr, struct: Field, text: str) -> str:
    """A scalar of a struct, or whether one is there, as Spark SQL has it; `text`: the struct."""
    if isinstance(scalar, Call):
        return f"({in_spark(scalar.arguments[0], struct, text)} IS NOT NULL)"
    assert isinstance(scalar, Field)
    return ".".join((text, *map(spark_name, scalar.path[len(struct.path) :])))
