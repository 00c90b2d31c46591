"""The third writer: the SELECT that `lamina check` runs in Spark, against which the texts of a view are compared.

It is the author's own, edited where Spark's result would be undefined. Typing makes the edits (`written/edits.py`).
This module applies them to a copy of the syntax, and shares nothing with the writers of a view's texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from view_algebra.written.dialect import parsed, text_of, unaliased
from view_algebra.written.edits import NO_EDIT, Edit, Edits


def select_for_spark(select: exp.Expr, edits: Edits) -> str | None:
    """A SELECT with its edits, or None without edits, if the author's own text suffices."""
    return written(select, edits) if is_edited(select, edits) else None


def written(node: exp.Expr, edits: Edits) -> str:
    """A node as Spark SQL, with its edits."""
    return text_of(_applied(node, edits) if is_edited(node, edits) else node)


def is_edited(node: exp.Expr, edits: Edits) -> bool:
    """True if a node inside has an edit."""
    return any(edits.of(part).tells for part in node.walk())


def _applied(node: exp.Expr, edits: Edits) -> exp.Expr:
    tree: exp.Expr = node.copy()
    pairs = zip(tree.walk(), node.walk(), strict=True)
    own = {id(copy): (copy, edit) for copy, part in pairs if (edit := edits.of(part)) is not NO_EDIT}

    def change(part: exp.Expr) -> exp.Expr:
        edit = _own(part, own)
        if edit.numbers is not None:
            part.set("expressions", [key.copy() for key in edit.numbers])
        return part if edit.instead is None else _applied(edit.instead, edits)

    tree = tree.transform(change, copy=False)
    for part in [part for part in tree.walk() if id(part) in own]:
        edit = _own(part, own)
        if edit.alias and not part.alias:
            part.set("alias", exp.TableAlias(this=exp.to_identifier(edit.alias)))
        if keys := [*edit.order, *edit.ties]:
            order = part.args.get("order") or exp.Order(expressions=[])
            part.set("order", exp.Order(expressions=[*order.expressions, *(key.copy() for key in keys)]))
        for name, output in edit.outputs.items():
            part.append("expressions", exp.alias_(output, name))
    for block in list(tree.find_all(exp.Select)):
        block.set("expressions", [column for item in block.expressions for column in _columns(item, own)])
        edit = _own(block, own)
        if edit.whole_conditions:
            _compare_inside(block)
        if edit.keys_as_columns:
            whole = _with_keys(block)
            tree = whole if block is tree else tree
    return tree


_Own = Mapping[int, tuple[exp.Expr, Edit]]
"""The edits of the nodes of a copy, by the identity of the node, which it keeps."""


def _own(node: exp.Expr, edits: _Own) -> Edit:
    return edits[id(node)][1] if id(node) in edits else NO_EDIT


def _columns(item: exp.Expr, edits: _Own) -> Sequence[exp.Expr]:
    """The columns of an output, which are several for an edited `*`."""
    star = item.this if isinstance(item, exp.Column) else item
    columns = _own(star, edits).columns if isinstance(star, exp.Expr) else ()
    return [column.copy() for column in columns] or [item]


def _compare_inside(block: exp.Expr) -> None:
    """Rewrites `a = b`, as a condition that a row has to meet, to `(a = b) IS TRUE`."""
    for clause in block.find_all(exp.Where, exp.Having):
        for condition in clause.this.flatten() if isinstance(clause.this, exp.And) else [clause.this]:
            if isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
                condition.replace(exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true()))


def _with_keys(block: exp.Select) -> exp.Expr:
    """A SELECT around one whose ORDER BY keys are further columns, which takes its place."""
    keys = [key for key in block.args["order"].expressions if not key.this.is_number]
    names = [f"{_KEYED}_{number}" for number, _ in enumerate(keys)]
    whole = parsed(f"SELECT * EXCEPT ({', '.join(names)}) FROM (SELECT 1)")
    block.replace(whole)
    whole.args["from_"].this.set("this", block)
    meant = unaliased(block)
    for key, name in zip(keys, names, strict=True):
        block.append("expressions", exp.alias_(key.this.transform(meant), name))
        key.set("this", exp.column(name))
    return whole


_KEYED = "lamina_keyed"
"""Prefix of the names of keys that are columns."""
