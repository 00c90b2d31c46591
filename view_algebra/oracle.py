"""The third writer: the SELECT that `lamina check` runs in Spark, against which the texts of a view are compared.

It is the author's own, edited where Spark's result would be undefined. Typing never writes to the author's syntax:
`Edits` collects, as values, what Spark shall read at a node, and applies them to a copy. This module imports none of
the writers of a view's texts. But the guards in the edits are those of `language/`, and `texts/calendars.py` decides
for both sides which times become NULL. `lamina check` cannot find a mistake in either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlglot import exp

from view_algebra.written.dialect import parsed, text_of
from view_algebra.written.rewrites.qualify import unaliased

T = TypeVar("T", bound=exp.Expr)


@dataclass(frozen=True)
class Edit:
    """The edit of a node for Spark.

    instead: the replacement
    guarded: true if the replacement is the node with a guard, which is added once
    columns: the columns of a `*`
    alias: the name of a node that the author left unnamed
    order: inherited keys of ORDER BY
    ties: keys that break ties
    outputs: further columns, by name
    numbers: the columns of ORDER BY ALL
    keys_as_columns: true for a correlated query whose LIMIT goes by keys that are not columns. Spark would pick
        arbitrary rows
    whole_conditions: true for a correlated query whose LIMIT picks from the rows that conditions leave. If `=` casts a
        side, Spark would compare after LIMIT, except in the form `(…) IS TRUE`
    """

    instead: exp.Expr | None = None
    guarded: bool = False
    columns: tuple[exp.Expr, ...] = ()
    alias: str = ""
    order: tuple[exp.Expr, ...] = ()
    ties: tuple[exp.Expr, ...] = ()
    outputs: Mapping[str, exp.Expr] = field(default_factory=dict)
    numbers: tuple[exp.Expr, ...] | None = None
    keys_as_columns: bool = False
    whole_conditions: bool = False

    @property
    def changes_result(self) -> bool:
        """True if the edit changes Spark's result, unlike a name, an inherited order or numbers alone."""
        return self != Edit(alias=self.alias, order=self.order, numbers=self.numbers)


NO_EDIT = Edit()


@dataclass
class Edits:
    """Collects the edits of one typing, by node. An entry holds its node, so that no other node gets its id.

    _outputs: the expression behind a name, if the name is another output's
    """

    _edits: dict[int, tuple[exp.Expr, Edit]] = field(default_factory=dict)
    _outputs: dict[int, tuple[exp.Expr, exp.Expr]] = field(default_factory=dict)

    def of(self, node: exp.Expr) -> Edit:
        """The edit of a node."""
        return self._edits[id(node)][1] if id(node) in self._edits else NO_EDIT

    def _add(self, node: exp.Expr, **parts: Any) -> None:
        self._edits[id(node)] = node, replace(self.of(node), **parts)

    def spell(self, node: exp.Expr, text: str) -> None:
        """Replaces a node by a text of Spark SQL."""
        self.put(node, parsed(text))

    def put(self, node: exp.Expr, other: exp.Expr) -> None:
        """Replaces a node by other syntax."""
        self._add(node, instead=other)

    def guard(self, node: exp.Expr, text: str) -> None:
        """Puts a guard around a node, and remembers it for the next reading of the node."""
        self._add(node, instead=parsed(text), guarded=True)

    def spell_columns(self, star: exp.Expr, columns: Sequence[str]) -> None:
        """Spells out the columns of `*`, because in Spark a source also has Kafka's columns."""
        self._add(star, columns=tuple(parsed(column) for column in columns))

    def name(self, node: exp.Expr, alias: str) -> None:
        """Gives an alias to a relation without one, so that its columns can be named."""
        self._add(node, alias=alias)

    def number(self, order: exp.Order, keys: Sequence[exp.Expr]) -> None:
        """Replaces the keys of ORDER BY ALL by the numbers of all columns."""
        self._add(order, numbers=tuple(keys))

    def inherit_order(self, node: exp.Select, keys: Sequence[str]) -> None:
        """Gives a SELECT the order of its input."""
        self._add(node, order=tuple(_key(key) for key in keys))

    def break_ties(self, node: exp.Expr, keys: Sequence[str]) -> None:
        """Appends keys to the ORDER BY of a node, in place of those that an earlier reading appended."""
        if keys or self.of(node).ties:
            self._add(node, ties=tuple(_key(key) for key in keys))

    def append_output(self, node: exp.Select, text: str, name: str) -> None:
        """Appends a column to a SELECT."""
        self._add(node, outputs={**self.of(node).outputs, name: parsed(text)})

    def keys_as_columns(self, block: exp.Select) -> None:
        """Makes the keys of ORDER BY columns, which an outer SELECT drops."""
        self._add(block, keys_as_columns=True)

    def whole_conditions(self, block: exp.Expr) -> None:
        """Adds IS TRUE to every comparison that a row has to meet."""
        self._add(block, whole_conditions=True)

    def name_output(self, node: exp.Expr, meant: exp.Expr) -> None:
        """Notes that a name is an output's, and means its expression."""
        self._outputs[id(node)] = node, meant

    def output_named(self, node: exp.Expr) -> exp.Expr | None:
        """The expression of the output that a node names, or None for other nodes."""
        return self._outputs[id(node)][1] if id(node) in self._outputs else None

    def text(self, node: exp.Expr, unedited: str = "") -> str:
        """A node as Spark SQL, with its edits. Without edits, the author's own text of it, if that is passed."""
        return text_of(_applied(node, self)) if self.changes_result(node) else unedited or text_of(node)

    def changes_result(self, node: exp.Expr) -> bool:
        """True if a node inside has an edit that changes Spark's result."""
        return any(self.of(part).changes_result for part in node.walk())

    def copy_without_own_edit(self, node: T) -> T:
        """A copy of a node for its own replacement, with the edits inside it but not its own."""
        copy = self.copy(node)
        self._edits.pop(id(copy), None)
        return copy

    def copy(self, node: T) -> T:
        """A copy of a node with its edits."""
        copy: T = node.copy()
        self.adopt(copy, node)
        return copy

    @contextmanager
    def copies(self, *nodes: exp.Expr) -> Iterator[list[exp.Expr]]:
        """Copies of nodes, to be read in another place. The nodes adopt the edits that their copies get there."""
        copies = [self.copy(node) for node in nodes]
        yield copies
        for node, copy in zip(nodes, copies, strict=True):
            self.adopt(node, copy)

    def adopt(self, node: exp.Expr, copy: exp.Expr) -> None:
        """Gives a node the edits of its copy, which was read in another place."""
        for own, other in zip(node.walk(), copy.walk(), strict=True):
            if id(other) in self._edits:
                self._edits[id(own)] = own, self._edits[id(other)][1]
            if id(other) in self._outputs:
                self._outputs[id(own)] = own, self._outputs[id(other)][1]


def _key(text: str) -> exp.Expr:
    key: exp.Expr = parsed(f"SELECT 1 ORDER BY {text}").args["order"].expressions[0]
    return key


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
