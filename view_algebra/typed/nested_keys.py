"""GROUP BY a nested value: a struct by its scalars and by whether it is NULL, a list by its JSON.

`GROUP BY pair` is `GROUP BY pair IS NOT NULL, pair.a, pair.b`. `SELECT tags … GROUP BY tags` is
`SELECT min_by(tags, 1) … GROUP BY to_json(tags)`: an index may shorten a long text, but the list stays whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from view_algebra.language.expressions import ONE, Aggregate, Call, Expr, Field, Output, Select, member
from view_algebra.language.quoting import spark_name
from view_algebra.language.structs import is_struct, rebuilt, scalars
from view_algebra.language.types import STRING, WINDOW, Type, of_scalars, told_apart_as_json
from view_algebra.language.walks import above_group, rewrite
from view_algebra.refusals import Wrong


def is_key(kind: Type) -> bool:
    """True if the scalars of such a struct tell groups apart. A list or a map inside it prevents that."""
    return kind.name == "STRUCT" and kind != WINDOW and of_scalars(kind)


def is_list_key(kind: Type) -> bool:
    """True if the JSON of such a value tells groups apart."""
    return told_apart_as_json(kind) and not is_key(kind)


def json_of(key: Expr) -> Expr:
    """The JSON of a list, which tells its groups apart."""
    return Call("to_json", (key,), STRING, place=key.place)


def by_texts(block: Select) -> Select:
    """A block over records, grouped by the JSON of its lists. An output shows any list of its group."""
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

    return _with_group(block, tuple(json_of(key) if key in lists else key for key in group), change)


def by_scalars(block: Select) -> Select:
    """A block grouped by the scalars of its structs. An output puts a struct together from them."""
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

    return _with_group(block, keys, change)


def _with_group(block: Select, group: tuple[Expr, ...], change: Callable[[Expr], Expr | None]) -> Select:
    """A block with new group columns, and with its outputs computed from them."""
    return replace(
        block,
        group=group,
        outputs=tuple(Output(output.name, rewrite(output.expression, change)) for output in block.outputs),
        having=None if block.having is None else rewrite(block.having, change),
        order=tuple(replace(key, expression=rewrite(key.expression, change)) for key in block.order),
    )


def _refuse_parts(block: Select, apart: set[Expr]) -> None:
    """Refuses a struct built in GROUP BY if its parts are used: Spark knows it only as a whole."""
    group = block.group or ()
    inner = {part for key in apart if not isinstance(key, Field) for part in scalars(key) if part not in group}

    def grouped(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if part in inner:
            raise Wrong(part.place, "GROUP BY has the struct, but not this part of it", "Group by it as well.")
        return None

    for expression in above_group(block):
        rewrite(expression, grouped)


def in_spark(scalar: Expr, struct: Field, text: str) -> str:
    """A struct's scalar, or the test that the struct is present, as Spark SQL. `text` is the struct."""
    if isinstance(scalar, Call):
        return f"({in_spark(scalar.arguments[0], struct, text)} IS NOT NULL)"
    assert isinstance(scalar, Field)
    return ".".join((text, *map(spark_name, scalar.path[len(struct.path) :])))
