"""collect_set() of lists over records: of their JSON, which tells them apart, read back as lists when it is shown."""

from __future__ import annotations

from sqlglot import exp

from view_algebra.language.expressions import Aggregate, Call, Expr
from view_algebra.language.types import STRING, Type
from view_algebra.refusals import span
from view_algebra.typed.calls import refuse_aggregates
from view_algebra.typed.names import Scope, resolved
from view_algebra.typed.nested_keys import is_list_key, text_of
from view_algebra.written.oracle import spell, written


def set_of_lists(node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None) -> Expr | None:
    """`collect_set(tags)` in the order of the lists' JSON; None where it is of something else."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Distinct):
        return None
    value = resolved(node.expressions[0], scope)
    if not is_list_key(value.type):
        return None
    refuse_aggregates(value, "collect_set()", "Aggregate in a subquery first.")
    listed = Type("ARRAY", element=value.type)
    texts = Aggregate("collect_set", (text_of(value),), when, False, Type("ARRAY", element=STRING), span(node))
    of = written(node.expressions[0])
    where = f"{of} IS NOT NULL" + ("" if filter_ is None else f" AND ({written(filter_.expression.this)})")
    pairs = f"collect_set(CASE WHEN {where} THEN struct(to_json({of}) AS text, {of} AS list) END)"
    spell(node if filter_ is None else filter_, f"transform(sort_array({pairs}), pair -> pair.list)")
    return Call("from_texts", (texts,), listed, place=span(node))
