"""The SELECT that `lamina check` runs in Spark: the author's own, edited where Spark leaves something open.

An edit is a note at a node of the author's syntax, made while names are resolved by the functions here and no others.
`written` applies all of them, to a copy. So the oracle stays the author's text, and owes nothing to the texts that a
view is computed by.
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
    """What Spark is told otherwise at a node.

    instead: what stands in its place; guarded: is it the node with a guard, which is put around it once? columns: what
    a `*` stands for. alias: what it is called, where the author gives it no name. order: the keys of the ORDER BY that
    it inherits; ties: those that break ties. outputs: columns that it gives besides, by name.
    keys_as_columns: LIMIT goes by keys that are no columns, in a query about a row around it; Spark picks any rows
    there, unless the keys are columns. whole_conditions: LIMIT picks from what conditions about a row around it leave;
    Spark compares after LIMIT where `=` has to cast one of its sides, unless that is IS TRUE.
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
        """Does Spark have to be told? A name alone changes nothing, and an order it inherits itself."""
        return self != Edit(alias=self.alias, order=self.order)


def _edit(node: exp.Expr) -> Edit:
    found: Edit = node.meta.setdefault(_EDIT, Edit())
    return found


# making edits


def spell(node: exp.Expr, text: str) -> None:
    """Puts a text of Spark SQL in the place of a node."""
    put(node, parsed(text))


def guarded(node: exp.Expr, text: str) -> None:
    """Puts a guard around a node, of which it is told when the node is read again."""
    spell(node, text)
    _edit(node).guarded = True


def is_guarded(node: exp.Expr) -> bool:
    """True if a node that is read again has its guard."""
    return _EDIT in node.meta and _edit(node).guarded


def put(node: exp.Expr, other: exp.Expr) -> None:
    """Puts other syntax in the place of a node."""
    _edit(node).instead = other


def copied(node: T) -> T:
    """A copy to be put in the node's place: with what is told otherwise within it, and not at it."""
    made: T = node.copy()
    made.meta.pop(_EDIT, None)
    return made


def spell_columns(star: exp.Expr, columns: Sequence[str]) -> None:
    """Says which columns `*` stands for: to Spark a source has Kafka's, too."""
    _edit(star).columns = tuple(parsed(column) for column in columns)


def name(node: exp.Expr, alias: str) -> None:
    """Names what has no alias, so that its columns can be named."""
    _edit(node).alias = alias


def inherit_order(node: exp.Select, keys: Sequence[str]) -> None:
    """Gives a SELECT the order of what it reads."""
    _edit(node).order = tuple(_key(key) for key in keys)


def break_ties(node: exp.Expr, keys: Sequence[str]) -> None:
    """Lets the ORDER BY of a node go on."""
    if keys or _EDIT in node.meta:
        _edit(node).ties = tuple(_key(key) for key in keys)


def append_output(node: exp.Select, text: str, name: str) -> None:
    """Lets a SELECT give one more column."""
    _edit(node).outputs[name] = parsed(text)


def appended(node: exp.Select) -> Mapping[str, exp.Expr]:
    """The columns that a SELECT was made to give."""
    return node.meta[_EDIT].outputs if _EDIT in node.meta else {}


def keys_as_columns(block: exp.Select) -> None:
    """Makes the keys of ORDER BY columns, which are then left out around it."""
    _edit(block).keys_as_columns = True


def whole_conditions(block: exp.Expr) -> None:
    """Makes every comparison that a row has to meet a condition that IS TRUE."""
    _edit(block).whole_conditions = True


def _key(text: str) -> exp.Expr:
    key: exp.Expr = parsed(f"SELECT 1 ORDER BY {text}").args["order"].expressions[0]
    return key


# applying them


def select_for_spark(select: exp.Expr) -> str | None:
    """A SELECT with its edits; None where there are none, and the author's own text will do."""
    return written(select) if is_edited(select) else None


def written(node: exp.Expr) -> str:
    """A node as Spark SQL, with its edits."""
    return text_of(_applied(node) if is_edited(node) else node)


def is_edited(node: exp.Expr) -> bool:
    """Is Spark told otherwise anywhere in it?"""
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
    """What an output is: of a `*` of which that was said, the columns."""
    star = item.this if isinstance(item, exp.Column) else item
    edit: Edit | None = star.meta.get(_EDIT) if isinstance(star, exp.Expr) else None
    return edit.columns if edit is not None and edit.columns else [item]


def _compare_inside(block: exp.Expr) -> None:
    """Makes `a = b`, as a condition that a row has to meet, `(a = b) IS TRUE`."""
    for clause in block.find_all(exp.Where, exp.Having):
        for condition in clause.this.flatten() if isinstance(clause.this, exp.And) else [clause.this]:
            if isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
                condition.replace(exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true()))


def _with_keys(block: exp.Select) -> exp.Expr:
    """A SELECT around one that has its keys of ORDER BY as columns, too; it takes that one's place."""
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
"""What the names of keys begin with that are columns."""
