"""The SELECT that `lamina check` runs in Spark: the author's own, edited where Spark's result would be undefined.

An edit is a note at a node of the author's syntax. Only the functions here add edits, while names are resolved.
`written` applies them to a copy. So the oracle stays the author's text, and is independent of the texts of a view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from view_algebra.written.dialect import parsed, text_of, unaliased

T = TypeVar("T", bound=exp.Expr)

_EDIT = "lamina_edit"
"""The entry of a node's `meta` with its edit."""


@dataclass
class Edit:
    """The edits of a node for Spark.

    instead: the replacement; guarded: the replacement is the node with a guard, which is added once. columns: the
    columns of a `*`. alias: the name of a node that the author left unnamed. order: inherited keys of ORDER BY;
    ties: keys that break ties. outputs: further columns, by name.
    keys_as_columns: in a correlated query, LIMIT goes by keys that are not columns; Spark would pick arbitrary rows.
    whole_conditions: in a correlated query, LIMIT picks from the rows that conditions leave; if `=` casts a side,
    Spark would compare after LIMIT, except in the form `(…) IS TRUE`.
    """

    instead: exp.Expr | None = None
    guarded: bool = False
    columns: Sequence[exp.Expr] = ()
    alias: str = ""
    order: Sequence[exp.Expr] = ()
    ties: Sequence[exp.Expr] = ()
    outputs: dict[str, exp.Expr] = field(default_factory=dict)
    keys_as_columns: bool = False
    whole_conditions: bool = False

    @property
    def tells(self) -> bool:
        """True if the edit changes Spark's result, unlike a name or an inherited order alone."""
        return self != Edit(alias=self.alias, order=self.order)


def _edit(node: exp.Expr) -> Edit:
    edit: Edit = node.meta.setdefault(_EDIT, Edit())
    return edit


# making edits


def spell(node: exp.Expr, text: str) -> None:
    """Replaces a node by a text of Spark SQL."""
    put(node, parsed(text))


def guarded(node: exp.Expr, text: str) -> None:
    """Puts a guard around a node, and remembers it for the next reading of the node."""
    spell(node, text)
    _edit(node).guarded = True


def is_guarded(node: exp.Expr) -> bool:
    """True if a node that is read again has its guard."""
    return _EDIT in node.meta and _edit(node).guarded


def put(node: exp.Expr, other: exp.Expr) -> None:
    """Replaces a node by other syntax."""
    _edit(node).instead = other


def copied(node: T) -> T:
    """A copy of a node for its own replacement, with the edits inside it but not its own."""
    copy: T = node.copy()
    copy.meta.pop(_EDIT, None)
    return copy


def spell_columns(star: exp.Expr, columns: Sequence[str]) -> None:
    """Spells out the columns of `*`, because in Spark a source also has Kafka's columns."""
    _edit(star).columns = tuple(parsed(column) for column in columns)


def name(node: exp.Expr, alias: str) -> None:
    """Gives an alias to a relation without one, so that its columns can be named."""
    _edit(node).alias = alias


def inherit_order(node: exp.Select, keys: Sequence[str]) -> None:
    """Gives a SELECT the order of its input."""
    _edit(node).order = tuple(_key(key) for key in keys)


def break_ties(node: exp.Expr, keys: Sequence[str]) -> None:
    """Appends keys to the ORDER BY of a node."""
    if keys or _EDIT in node.meta:
        _edit(node).ties = tuple(_key(key) for key in keys)


def append_output(node: exp.Select, text: str, name: str) -> None:
    """Appends a column to a SELECT."""
    _edit(node).outputs[name] = parsed(text)


def appended(node: exp.Select) -> Mapping[str, exp.Expr]:
    """The columns appended to a SELECT."""
    return node.meta[_EDIT].outputs if _EDIT in node.meta else {}


def keys_as_columns(block: exp.Select) -> None:
    """Makes the keys of ORDER BY columns, which an outer SELECT drops."""
    _edit(block).keys_as_columns = True


def whole_conditions(block: exp.Expr) -> None:
    """Adds IS TRUE to every comparison that a row has to meet."""
    _edit(block).whole_conditions = True


def _key(text: str) -> exp.Expr:
    key: exp.Expr = parsed(f"SELECT 1 ORDER BY {text}").args["order"].expressions[0]
    return key


# applying them


def select_for_spark(select: exp.Expr) -> str | None:
    """A SELECT with its edits; None without edits, if the author's own text suffices."""
    return written(select) if is_edited(select) else None


def written(node: exp.Expr) -> str:
    """A node as Spark SQL, with its edits."""
    return text_of(_applied(node) if is_edited(node) else node)


def is_edited(node: exp.Expr) -> bool:
    """True if a node inside has an edit."""
    return any(_EDIT in part.meta and part.meta[_EDIT].tells for part in node.walk())


def _applied(node: exp.Expr) -> exp.Expr:
    def change(part: exp.Expr) -> exp.Expr:
        edit: Edit | None = part.meta.get(_EDIT)
        return part if edit is None or edit.instead is None else _applied(edit.instead)

    tree = node.transform(change)
    for part in [part for part in tree.walk() if _EDIT in part.meta]:
        edit: Edit = part.meta[_EDIT]
        if edit.alias and not part.alias:
            part.set("alias", exp.TableAlias(this=exp.to_identifier(edit.alias)))
        if keys := [*edit.order, *edit.ties]:
            order = part.args.get("order") or exp.Order(expressions=[])
            part.set("order", exp.Order(expressions=[*order.expressions, *keys]))
        for name_, output in edit.outputs.items():
            part.append("expressions", exp.alias_(output, name_))
    for block in list(tree.find_all(exp.Select)):
        block.set("expressions", [column for item in block.expressions for column in _columns(item)])
        edit = block.meta.pop(_EDIT, Edit())
        if edit.whole_conditions:
            _compare_inside(block)
        if edit.keys_as_columns:
            whole = _with_keys(block)
            tree = whole if block is tree else tree
    for part in tree.walk():
        part.meta.pop(_EDIT, None)
    return tree


def _columns(item: exp.Expr) -> Sequence[exp.Expr]:
    """The columns of an output, which are several for an edited `*`."""
    star = item.this if isinstance(item, exp.Column) else item
    edit: Edit | None = star.meta.get(_EDIT) if isinstance(star, exp.Expr) else None
    return edit.columns if edit is not None and edit.columns else [item]


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
