"""LIKE and ILIKE, with ANY, ALL and ESCAPE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from view_algebra.language.expressions import Call, Constant, Expr, Place
from view_algebra.language.likes import regular
from view_algebra.language.overloads import call, text_of
from view_algebra.language.types import BOOLEAN, STRING, VOID
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope, resolved
from view_algebra.written.oracle import copied, put


def like(node: exp.Like | exp.ILike, scope: Scope) -> Expr:
    """LIKE and ILIKE; of several patterns, ANY or ALL of them."""
    several = node.expression
    if isinstance(several, (exp.Any, exp.All)):
        inner = several.this.this if isinstance(several.this, exp.Paren) else several.this
        patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        if not patterns:
            raise Wrong(span(node), "LIKE of no pattern", "Name one.")
        # NOT of it is put around it: of NOT LIKE ANY, one that is not like it is enough
        word = "or" if isinstance(several, exp.Any) != bool(node.args.get("negate")) else "and"
        each = [like(type(node)(this=node.this, expression=p), scope) for p in patterns]
        return _all(word, each, span(node))
    value, wanted = resolved(node.this, scope), resolved(node.expression, scope)
    value, wanted = text_of(value), text_of(wanted)
    for side in (value, wanted):
        if side.type not in (STRING, VOID):
            raise Wrong(span(node), f"LIKE takes text, this is {side.type}", "Compare one of its fields.")
    literal = wanted.value or "" if isinstance(wanted, Constant) else ""
    if re.sub(r"\\[%_\\]", "", literal).count("\\"):  # at which Spark would stop
        way_out = r"Write \\ for one of the text itself."
        raise Wrong(wanted.place, "a backslash before what needs no escape", way_out)
    if isinstance(node, exp.ILike):
        value, wanted = (_lowered(side, span(node)) for side in (value, wanted))
    if max(literal, default="") > "\uffff" and isinstance(wanted, Constant):
        text = exp.Lower(this=copied(node.this)) if isinstance(node, exp.ILike) else copied(node.this)
        found = exp.Literal.string(regular(wanted.value or ""))
        put(node, exp.RegexpLike(this=text, expression=found, **_negated(node)))
    return Call("like", (value, wanted), BOOLEAN, place=span(node))


def escaped_like(node: exp.Escape, scope: Scope) -> Expr:
    """LIKE … ESCAPE '!' is LIKE with the same pattern escaped as always, by a backslash."""
    like, sign = node.this, node.expression.name
    wanted = like.expression.name if isinstance(like.expression, exp.Literal) else None
    if not isinstance(like, (exp.Like, exp.ILike)) or wanted is None or len(sign) != 1:
        raise Wrong(span(node), "ESCAPE with a pattern that is not a literal", "Write it out.")
    quoted, plain = re.escape(sign), wanted if sign == "\\" else wanted.replace("\\", "\\\\")
    if re.sub(rf"{quoted}[%_{quoted}]", "", wanted).count(sign):
        raise Wrong(span(node), f"{sign} before what needs no escape", f"Put it before %, _ or {sign}.")
    pattern = re.sub(rf"{quoted}([%_{quoted}])", lambda m: f"\\{m[1]}" if m[1] in "%_\\" else m[1], plain)
    unescaped = type(like)(this=like.this, expression=exp.Literal.string(pattern), **_negated(like))
    return resolved(unescaped, scope)


def _all(word: str, conditions: Sequence[Expr], place: Place) -> Expr:
    """Conditions joined by `and` or `or`."""
    return reduce(lambda a, b: Call(word, (a, b), BOOLEAN, place=place), conditions)


def _lowered(text: Expr, place: Place) -> Expr:
    if isinstance(text, Constant) and (text.value or "").isascii():
        return replace(text, value=None if text.value is None else text.value.lower())
    return call("lower", [text], place)


def _negated(node: exp.Expr) -> dict[str, bool]:
    return {"negate": True} if node.args.get("negate") else {}
