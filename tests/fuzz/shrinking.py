"""Makes a round smaller in which a view is wrong. The view stays wrong in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tests.fuzz.rounds import Finding, Round
from view_algebra import Refused

SECONDS = 120.0
"""Seconds spent on making a round smaller."""


def shrink(round_: Round, finding: Finding, check: Callable[[Round], list[Finding]]) -> tuple[Round, Finding]:
    """The smallest wrong round that was found, with its difference."""
    end = time.monotonic() + SECONDS
    best, why = round_.only(finding.view), finding

    def fails(candidate: Round) -> bool:
        nonlocal best, why
        if time.monotonic() > end:
            return False
        try:
            candidate = candidate.only(finding.view)
            findings = [f for f in check(candidate) if f.view == finding.view and f.kind == finding.kind]
        except Refused:
            return False
        if findings:
            best, why = candidate, findings[0]
        return bool(findings)

    if not fails(best):
        return round_, finding
    fails(replace(best, batches=[[v for batch in best.batches for v in batch]]))
    _fewer_records(lambda: best, fails)
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = any(
            fails(replace(best, views={**best.views, name: text}))
            for name in list(best.views)
            for text in _smaller(best.views[name])
        )
    _fewer_records(lambda: best, fails)
    return best, why


def _fewer_records(best: Callable[[], Round], fails: Callable[[Round], bool]) -> None:
    """Leaves out ever smaller parts of the records."""
    size = max(1, sum(len(batch) for batch in best().batches) // 2)
    while size:
        at = 0
        while at < sum(len(batch) for batch in best().batches):
            gone, kept, position = range(at, at + size), [], 0
            for batch in best().batches:
                kept.append([v for n, v in enumerate(batch, position) if n not in gone])
                position += len(batch)
            if not fails(replace(best(), batches=[batch for batch in kept if batch])):
                at += size
        size //= 2


def _smaller(select: str) -> Iterator[str]:
    """A SELECT with one of its parts left out, or taken for the whole. The largest parts come first."""
    try:
        tree = parse_one(select, dialect="spark")
    except SqlglotError:
        return
    seen = {select}
    count = sum(1 for _ in tree.walk())
    for number in range(count):
        for change in range(_CHANGES):
            copy = tree.copy()
            nodes = list(copy.walk())
            changed = _changed(nodes[number], change)
            if changed is None:
                continue
            text = (changed if nodes[number] is copy else copy).sql(dialect="spark")
            if text not in seen and len(text) < len(select) + 1:
                seen.add(text)
                yield text


_CHANGES = 6


def _changed(node: exp.Expr, change: int) -> exp.Expr | None:
    """A node with its `change`th part gone, or None if it has fewer parts."""
    if isinstance(node, exp.Select):
        clauses = [
            name for name in ("with_", "where", "having", "order", "limit", "offset", "laterals") if node.args.get(name)
        ]
        if change < len(clauses):
            node.set(clauses[change], None)
            if clauses[change] == "order":
                node.set("limit", None)
            return node
        return None
    if isinstance(node, (exp.Where, exp.Having, exp.Literal, exp.Identifier, exp.Column, exp.From, exp.DataType)):
        return None
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions" and change == 0:
        if len(node.parent.expressions) < 2:
            return None
        return _without(node)
    if isinstance(node.parent, exp.Group) and node.arg_key == "expressions" and change == 0:
        return _without(node)
    if isinstance(node, exp.SetOperation) and change < 2:
        part = (node.left, node.right)[change]
        return _in_place(node, part)
    if isinstance(node, exp.Filter) and change == 0:
        return _in_place(node, node.this)
    children = [child for child in node.iter_expressions() if isinstance(child, (exp.Condition, exp.Query))]
    if isinstance(node, exp.Condition) and change - 1 < len(children) and change:
        return _in_place(node, children[change - 1])
    return None


def _without(node: exp.Expr) -> exp.Expr:
    node.pop()
    return node


def _in_place(node: exp.Expr, part: exp.Expr) -> exp.Expr:
    part = part.copy()
    if node.parent is not None:
        node.replace(part)
    return part
