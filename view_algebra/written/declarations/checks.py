"""Rewrites ALTER VIEW … ADD CONSTRAINT as a SELECT of the violations, which is compiled like any view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as Choice

from sqlglot import exp

from view_algebra.language.aggregates import is_aggregate
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME, words
from view_algebra.refusals import File, Span, Wrong, moved_to, span
from view_algebra.written.dialect import Statement, parsed, text_of
from view_algebra.written.rewrites.named_windows import write_windows_out

CLOCK = "clock of checks"
"""The view of one row that gives a check the time. No author can use this name."""

PUBLISHED = "published"
"""The schema by which a check names the published version of a view."""

_OF_THE_CLOCK = {"current_timestamp": "now", "now": "now", "current_date": "today", "curdate": "today"}
"""Columns of the clock by the functions that they replace."""


@dataclass(frozen=True)
class CheckDeclaration:
    """A declared check. `select` returns its violations, and `counts` says what one of its rows is."""

    name: str
    view: str
    file: File
    place: Span | None
    counts: Choice["row", "key", "whole"]
    enforced: bool
    select: exp.Expr
    sql: str


def published(view: str) -> str:
    """The name of a view's published version, which no author can use.

    >>> published("revenue")
    'published revenue'
    """
    return f"{PUBLISHED} {view}"


def check_declaration(file: File, written: Statement) -> CheckDeclaration:
    """The check in a statement. Raises `Wrong` for other constraints."""
    statement = written.tree
    actions = statement.args.get("actions") or []
    constraints = actions[0].expressions if len(actions) == 1 and isinstance(actions[0], exp.AddConstraint) else []
    if len(constraints) != 1 or not isinstance(constraints[0], exp.Constraint):
        way_out = "Write ALTER VIEW v ADD CONSTRAINT name CHECK (condition). Make other changes in the view itself."
        raise Wrong(span(statement), "ALTER VIEW adds one constraint", way_out)
    view, constraint = statement.this.name, constraints[0]
    kinds = constraint.expressions
    if len(kinds) != 1:
        raise Wrong(
            span(constraint), "the constraint has several kinds", "Give each a statement and a name of its own."
        )
    for node in (
        statement,
        *kinds,
        *(kind.args["reference"] for kind in kinds if kind.args.get("reference") is not None),
    ):
        _refuse_unread(node)
    counts, select = _failing(view, kinds[0])
    for node in list(select.walk()):
        _put_in_place(node)
    write_windows_out(select)
    enforced = "NOT ENFORCED" not in [str(option).upper() for option in _options(kinds[0])]
    return CheckDeclaration(
        constraint.this.name, view, file, span(constraint.this), counts, enforced, select, written.sql
    )


_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Alter: words("this kind actions"),
    exp.CheckColumnConstraint: words("this enforced options"),
    exp.UniqueColumnConstraint: words("this options"),
    exp.ForeignKey: words("expressions reference"),
    exp.Reference: words("this options"),
}
"""The parts of a constraint that are read."""


def _refuse_unread(node: exp.Expr) -> None:
    """Raises `Wrong` for a part that would be ignored silently, such as IF EXISTS or ON DELETE CASCADE."""
    read = _READ.get(type(node), node.args.keys())
    options = [str(option).upper() for option in node.args.get("options") or []]
    unread = [name.strip("_").upper() for name, value in node.args.items() if value and name not in read]
    unread += [option for option in options if option not in ("ENFORCED", "NOT ENFORCED")]
    if isinstance(node, exp.Alter) and node.this.args.get("db"):
        unread.append(f"the schema {node.this.text('db')}")
    if unread:
        raise Wrong(span(node), f"{unread[0]} is not served in a check", "Leave it out. Only NOT ENFORCED may follow.")


def _failing(view: str, kind: exp.Expr) -> tuple[Choice["row", "key", "whole"], exp.Expr]:
    """The meaning of a row of violations, and the SELECT of the violations."""
    match kind:
        case exp.CheckColumnConstraint():
            condition = kind.this
            aggregates = list(_aggregates(condition))
            fails = exp.not_(condition.copy())
            if not aggregates:
                return "row", exp.select("*").from_(exp.table_(view)).where(fails)
            return "whole", exp.select(*_shown(aggregates)).from_(exp.table_(view)).having(fails)
        case exp.UniqueColumnConstraint() if isinstance(kind.this, exp.Schema) and kind.this.expressions:
            names = [column.name for column in kind.this.expressions]
            columns, there = ", ".join(map(_quoted, names)), " AND ".join(f"{_quoted(n)} IS NOT NULL" for n in names)
            select = (
                f"SELECT {columns}, count(*) AS `count(*)` FROM {_quoted(view)} WHERE {there}"
                f" GROUP BY {columns} HAVING count(*) > 1"
            )
            return "key", moved_to(parsed(select), span(kind))
        case exp.ForeignKey() if kind.expressions and kind.args.get("reference") is not None:
            return "row", _without_partner(view, kind)
    way_out = "Write CHECK (condition), UNIQUE (columns) or FOREIGN KEY (columns) REFERENCES view (columns)."
    raise Wrong(span(kind) or span(kind.parent or kind), f"{text_of(kind)} is not a check of a view", way_out)


def _without_partner(view: str, key: exp.ForeignKey) -> exp.Expr:
    """The rows without NULLs in the key for which the other view has no row."""
    names = [column.name for column in key.expressions]
    target = key.args["reference"].this
    other, others = (
        (target.this, [c.name for c in target.expressions]) if isinstance(target, exp.Schema) else (target, names)
    )
    if len(others) != len(names):
        raise Wrong(
            span(target), f"{len(names)} columns reference {len(others)}", "Name as many columns on both sides."
        )
    checked, partner = _quoted(view), _quoted(other.name if other.name.lower() != view.lower() else "partner")
    there = " AND ".join(f"{checked}.{_quoted(name)} IS NOT NULL" for name in names)
    on = " AND ".join(f"{partner}.{_quoted(b)} = {checked}.{_quoted(a)}" for a, b in zip(names, others, strict=True))
    select = (
        f"SELECT {checked}.* FROM {_quoted(view)} AS {checked}"
        f" LEFT ANTI JOIN {text_of(other)} AS {partner} ON {on} WHERE {there}"
    )
    return moved_to(parsed(select), span(key))


def _aggregates(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of a condition over all the view's rows, thus outside of subqueries and windows."""
    for node in condition.walk(prune=lambda node: isinstance(node, (exp.Query, exp.Window))):
        if isinstance(node, (exp.Anonymous, exp.Func)) and is_aggregate(node.name.lower()):
            yield node.parent if isinstance(node.parent, exp.Filter) else node


def _shown(aggregates: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregates as columns, named by their own text."""
    named = {aggregate.sql("spark", normalize_functions=False): aggregate for aggregate in aggregates}
    return [
        exp.alias_(
            aggregate.copy(),
            text if len(text.encode()) <= LONGEST_POSTGRES_NAME else f"value {number}",
            quoted=True,
        )
        for number, (text, aggregate) in enumerate(named.items(), 1)
    ]


def _put_in_place(node: exp.Expr) -> None:
    """Replaces the clock and published views by the views that they are to the compiler."""
    if isinstance(node, exp.Table) and node.text("db").lower() == PUBLISHED:
        alias = node.alias or node.name
        node.set("db", None)
        node.set("this", exp.to_identifier(published(node.name.lower()), quoted=True))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return
    called = isinstance(node, exp.Anonymous) and not node.expressions
    if called or (isinstance(node, exp.Column) and not node.table):
        column = _OF_THE_CLOCK.get(node.name.lower())
        if column is not None and (called or node.name.lower().startswith("current")):
            node.replace(parsed(f"(SELECT max({column}) FROM `{CLOCK}` AS clock)"))


def _options(kind: exp.Expr) -> list[object]:
    reference = kind.args.get("reference")
    return [*(kind.args.get("options") or []), *((reference.args.get("options") or []) if reference else [])]


def _quoted(name: str) -> str:
    return text_of(exp.to_identifier(name, quoted=True))
