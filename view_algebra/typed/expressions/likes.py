"""LIKE and ILIKE, with one pattern, with ANY or ALL of several, and with ESCAPE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from view_algebra.language.expressions import Call, Constant, Expr, Place
from view_algebra.language.like_patterns import like_as_regex, refuses_pattern
from view_algebra.language.overloads import call, text_of
from view_algebra.language.types import BOOLEAN, STRING, VOID
from view_algebra.refusals import Wrong, span
from view_algebra.typed.scopes import Scope, resolved


def like(node: exp.Like | exp.ILike, scope: Scope) -> Expr:
    """LIKE and ILIKE, with one pattern, or ANY or ALL of several."""
    several = node.expression
    if isinstance(several, (exp.Any, exp.All)):
        inner = several.this.this if isinstance(several.this, exp.Paren) else several.this
        patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        if not patterns:
            quantifier = "ANY" if isinstance(several, exp.Any) else "ALL"
            raise Wrong(span(node), f"LIKE {quantifier} () is empty", "Name at least one pattern.")
        # NOT goes around the whole: for NOT LIKE ANY, one pattern without a match is enough
        word = "or" if isinstance(several, exp.Any) != bool(node.args.get("negate")) else "and"
        return _joined(word, [_like_this(node, pattern, scope) for pattern in patterns], span(node))
    value, pattern = (text_of(resolved(side, scope)) for side in (node.this, node.expression))
    for side in (value, pattern):
        if side.type not in (STRING, VOID):
            raise Wrong(span(node), f"LIKE takes text, not {side.type}", "Compare one of its fields.")
    literal = pattern.value or "" if isinstance(pattern, Constant) else ""
    if re.sub(r"\\[%_\\]", "", literal).count("\\"):  # Spark would fail at it
        way_out = r"Write \\ for one of the text itself."
        raise Wrong(pattern.place, "a backslash comes before what needs no escape", way_out)
    if isinstance(node, exp.ILike):
        value, pattern = (_lowered(side, span(node)) for side in (value, pattern))
    if max(literal, default="") > "\uffff" and isinstance(pattern, Constant):
        text = scope.edits.copy_without_own_edit(node.this)
        text = exp.Lower(this=text) if isinstance(node, exp.ILike) else text
        regex = exp.Literal.string(like_as_regex(pattern.value or ""))
        scope.edits.put(node, exp.RegexpLike(this=text, expression=regex, **_negated(node)))
    return Call("like", (value, pattern), BOOLEAN, place=span(node))


def _like_this(node: exp.Like | exp.ILike, pattern: exp.Expr, scope: Scope) -> Expr:
    """LIKE with one of several patterns."""
    with scope.edits.copies(node.this, pattern) as (text, alone):
        return like(type(node)(this=text, expression=alone), scope)


def escaped_like(node: exp.Escape, scope: Scope) -> Expr:
    """LIKE … ESCAPE '!' as LIKE with the same pattern, escaped by a backslash."""
    like, sign = node.this, node.expression.name
    escaped = like.expression.name if isinstance(like.expression, exp.Literal) else None
    if not isinstance(like, (exp.Like, exp.ILike)) or escaped is None or len(sign) != 1:
        raise Wrong(span(node), "ESCAPE needs a literal pattern", "Write it out.")
    quoted, plain = re.escape(sign), escaped if sign == "\\" else escaped.replace("\\", "\\\\")
    if re.sub(rf"{quoted}[%_{quoted}]", "", escaped).count(sign):
        raise Wrong(span(node), f"{sign} comes before what needs no escape", f"Put it before %, _ or {sign}.")
    pattern = re.sub(rf"{quoted}([%_{quoted}])", lambda m: f"\\{m[1]}" if m[1] in "%_\\" else m[1], plain)
    with scope.edits.copies(like.this) as (text,):
        return resolved(type(like)(this=text, expression=exp.Literal.string(pattern), **_negated(like)), scope)


def _joined(word: str, conditions: Sequence[Expr], place: Place) -> Expr:
    """Conditions joined by `and` or `or`."""
    return reduce(lambda a, b: Call(word, (a, b), BOOLEAN, place=place), conditions)


def _lowered(text: Expr, place: Place) -> Expr:
    if isinstance(text, Constant) and (text.value or "").isascii():
        return replace(text, value=None if text.value is None else text.value.lower())
    return call("lower", [text], place)


def _negated(node: exp.Expr) -> dict[str, bool]:
    return {"negate": True} if node.args.get("negate") else {}


def guarded_like(node: exp.Like | exp.ILike, scope: Scope) -> str | None:
    """A LIKE whose pattern comes from a record: NULL if Spark would refuse the pattern. None for literal patterns."""
    several = node.expression
    inner = several.this.unnest() if isinstance(several, (exp.Any, exp.All)) else several
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    if all(isinstance(pattern, exp.Literal) for pattern in patterns):
        return None
    sign = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
    negated = bool(node.args.get("negate"))
    comparisons = (
        _like_one(f"({scope.edited_sql(node.this)}) {sign} ({scope.edited_sql(pattern)})", pattern, scope)
        for pattern in patterns
    )
    word = " OR " if isinstance(several, exp.Any) != negated else " AND "
    return f"NOT ({word.join(comparisons)})" if negated else f"({word.join(comparisons)})"


def _like_one(text: str, pattern: exp.Expr, scope: Scope) -> str:
    if isinstance(pattern, exp.Literal):
        return text
    return f"CASE WHEN NOT ({refuses_pattern(scope.edited_sql(pattern))}) THEN {text} END"
