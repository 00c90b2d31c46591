"""array_agg(x ORDER BY y), which Spark has not: the x of structs of y and x, which sort_array() brings into that order.

    transform(sort_array(collect_list(struct(y AS y1, x AS x)) FILTER (WHERE x IS NOT NULL), true), e -> e.x)

Where two have the same y, the lesser x is first.
"""

from __future__ import annotations

from sqlglot import exp

from view_algebra.refusals import Wrong, span


def list_in_order(node: exp.Anonymous, filter_: exp.Filter | None) -> exp.Expr:
    """The call in Spark's SQL, with its FILTER."""
    order, name = node.expressions[0], node.name.lower()
    value, keys, place = order.this, order.expressions, span(node)
    if isinstance(value, exp.Distinct):
        raise Wrong(place, f"{name}(DISTINCT … ORDER BY …)", "Write sort_array(collect_set(x)).")
    falls = {bool(key.args.get("desc")) for key in keys}
    if len(falls) > 1 or any(bool(key.args.get("nulls_first")) == bool(key.args.get("desc")) for key in keys):
        way_out = (
            "Sort by columns that all ascend with NULL first, or all descend with NULL last, which are the defaults."
        )
        raise Wrong(place, f"{name}() by an order that no sort_array() has", way_out)
    named = [(f"y{number}", key.this) for number, key in enumerate(keys, 1)] + [("x", value)]
    fields = [exp.alias_(each.copy(), alias) for alias, each in named]
    kept: exp.Expr = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    if filter_ is not None:
        kept = exp.And(this=exp.Paren(this=filter_.expression.this.copy()), expression=kept)
    listed = exp.Filter(this=_call("collect_list", _call("struct", *fields)), expression=exp.Where(this=kept))
    element = exp.Dot(this=exp.to_identifier("e"), expression=exp.to_identifier("x"))
    only_x = exp.Lambda(this=element, expressions=[exp.to_identifier("e")])
    return _call("transform", _call("sort_array", listed, exp.Boolean(this=falls == {False})), only_x)


def _call(name: str, *given: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[*given])
