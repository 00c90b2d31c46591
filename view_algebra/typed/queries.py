"""From the author's syntax to typed queries: a block's clauses in the order in which SQL gives them meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Expr,
    Field,
    Nested,
    Output,
    Query,
    Relation,
    Select,
    Windowed,
    both,
)
from view_algebra.language.operators import condition
from view_algebra.language.time_windows import is_session
from view_algebra.language.walks import above_group, rewrite, walk, walk_all
from view_algebra.refusals import Wrong, span
from view_algebra.typed.aliases import column_names, named_by, naming
from view_algebra.typed.calls import in_a_window, refuse_aggregates, refuse_windowed
from view_algebra.typed.determinism import by_rows
from view_algebra.typed.events import passed
from view_algebra.typed.generators import with_generator
from view_algebra.typed.grouping_keys import groups_of, windows_of, written_keys
from view_algebra.typed.groupings import SOME, Sets, exploded_groups, over_sets
from view_algebra.typed.hopping import in_every_window
from view_algebra.typed.join_keys import refuse_texts_that_meet_numbers
from view_algebra.typed.names import Outside, Scope
from view_algebra.typed.nested_keys import by_scalars, by_texts
from view_algebra.typed.orders import limit_of, refuse_windows_in_order, sort_keys
from view_algebra.typed.outputs import is_distinct, outputs_of, refuse_outer
from view_algebra.typed.passing import has_windows, is_in_order, is_of_records, reading_passed, reads_records
from view_algebra.typed.relations import AS_A_SUBQUERY, from_clause, in_parentheses
from view_algebra.typed.scalars import expression
from view_algebra.typed.sessions import in_sessions
from view_algebra.typed.set_operations import combined, modified
from view_algebra.typed.spark_refuses import (
    refuse_in_outer_joins,
    refuse_names_of_names,
    spark_refuses,
    spark_refuses_of_groupings,
)
from view_algebra.typed.ties import inherited, settled
from view_algebra.written.dialect import qualifying, without_qualify, write_windows_out
from view_algebra.written.oracle import put


def query(node: exp.Expr, outside: Outside) -> Query:
    """A query, its CTEs inlined where they are named."""
    known = dict(outside.ctes)
    outside = outside.but(known)
    with_ = node.args.get("with_")
    if with_ is not None:
        if with_.args.get("recursive"):
            raise Wrong(span(with_), "WITH RECURSIVE", "Write the levels out as joins.")
        own: set[str] = set()
        for cte in with_.expressions:
            if (name := cte.alias.lower()) in own:
                raise Wrong(span(cte), f"two CTEs are named {name}", "Give one of them another name.")
            own.add(name)
            told = naming(cte)
            inner, names = query(told.this, outside.alone()), column_names(told)
            known[name] = named_by(inner, names, span(cte)) if names else inner
    if isinstance(node, exp.Subquery):
        if in_parentheses(node):
            raise Wrong(span(node), "a relation in parentheses", AS_A_SUBQUERY)
        return modified(query(node.this, outside), node, outside)
    if isinstance(node, exp.SetOperation):
        return combined(node, outside)
    if isinstance(node, exp.Select):
        return _qualified(node, outside.alone()) if node.args.get("qualify") else _block(node, Scope(outside))
    raise Wrong(span(node), f"{node.key.upper()} is not a query", "Write a SELECT.")


def _qualified(node: exp.Select, outside: Outside) -> Query:
    """QUALIFY filters the rows of a block by its window functions, before DISTINCT, ORDER BY and LIMIT."""
    place = span(node.args["qualify"])
    names = [name for name, _ in _block(qualifying(node), Scope(outside)).columns[:-1]]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        way_out = "Write … AS name, or leave out a column that comes twice: t.* EXCEPT (id)."
        raise Wrong(place, "QUALIFY over columns without names of their own", way_out)
    block = without_qualify(node, names)
    put(node, block)
    return query(block, outside)


def _block(node: exp.Select, scope: Scope) -> Select:
    """One SELECT, clause by clause in the order in which SQL gives them meaning."""
    relation, filtered = _from_where(node, scope)
    outputs, group, sets, having = _select_group_having(node, scope)
    order = tuple(sort_keys(node, scope, tuple((o.name, o.expression.type) for o in outputs), outputs))
    if distinct := is_distinct(node, outputs):
        refuse_windows_in_order(order, node)
    limit, offset = limit_of(node)
    above = [o.expression for o in outputs] + [o.expression for o in order]
    above += [made.argument for made in scope.generators]
    if group is None and (having is not None or any(isinstance(e, Aggregate) for e in walk_all(above, None))):
        group = ()
    over = [Output("", each) for o in outputs for each in walk(o.expression) if isinstance(each, Windowed)]
    refuse_outer(outputs if group is not None or not scope.above else over)
    for made in scope.generators if group is None else ():
        relation = with_generator(relation, made)
    block = Select(
        tuple(outputs),
        relation,
        where=filtered,
        group=group,
        having=having,
        distinct=distinct,
        order=order,
        limit=limit,
        offset=offset,
        place=span(node),
        limit_place=span(node.args["limit"]) if node.args.get("limit") else None,
        syntax=node,
    )
    spark_refuses(block)
    refuse_texts_that_meet_numbers(block)
    block = by_scalars(block if scope.above else by_texts(block))
    return in_sessions(_completed(in_every_window(_within_windows(block)), node, scope, outputs, sets))


def _within_windows(block: Select) -> Select:
    """A block of the rows that are in the windows of time that it names."""
    where = block.where
    named = walk_all([*(block.group or ()), *(o.expression for o in block.outputs)], where)
    for known in dict.fromkeys(c for e in named if isinstance(e, Call) and (c := in_a_window(e)) is not None):
        where = both(where, known)
    return replace(block, where=where)


def _from_where(node: exp.Select, scope: Scope) -> tuple[Relation | None, Expr | None]:
    """FROM and WHERE: what the block reads, and which rows of it; the scope knows both from then on."""
    write_windows_out(node)
    relation = from_clause(node, scope)
    if isinstance(relation, Nested):
        scope.records = relation.query if is_in_order(relation.query, windows=False) else None
        scope.rows = relation.query if is_in_order(relation.query) else None
    refuse_in_outer_joins(relation, span(node))
    scope.above = not reads_records(relation)
    where = node.args.get("where")
    scope.outer = scope.outside.around
    filtered = condition(expression(where.this, scope), "WHERE") if where else None
    scope.outer = None
    filtered = reduce(both, scope.semi, filtered)
    if filtered is not None:
        refuse_aggregates(filtered, "WHERE", "Put the condition into HAVING, or FILTER (WHERE …) of the aggregate.")
    scope.where, scope.relation = filtered, relation
    return relation, filtered


def _select_group_having(
    node: exp.Select, scope: Scope
) -> tuple[list[Output], tuple[Expr, ...] | None, Sets | None, Expr | None]:
    """SELECT, GROUP BY and HAVING: the outputs, the keys, the sets of keys, the condition on groups."""
    around, group_node = scope.outside.around, node.args.get("group")
    scope.windows = windows_of(node, scope)
    scope.outer = around if around is not None and around.lateral else None
    outputs = outputs_of(node, scope)
    scope.outer = None
    group, sets = (None, None) if group_node is None else groups_of(group_node, scope, outputs)
    refuse_names_of_names(node)
    having_node = node.args.get("having")
    scope.outer = around
    having = None if having_node is None else _having(having_node.this, scope, group or (), outputs)
    scope.outer = None
    if group == () and group_node is not None and group_node.expressions:
        having = both(having, SOME)
    return outputs, group, sets, having


def _completed(block: Select, node: exp.Select, scope: Scope, outputs: list[Output], sets: Sets | None) -> Select:
    """The block with an order that leaves no ties, its sets of groups spelled out; what nothing serves is refused."""
    block = _in_inherited_order(block, node, scope)
    grouped = {} if node.args.get("group") is None else written_keys(node, scope, outputs)
    if scope.generators and block.group is not None:
        block, grouped = _exploded_groups(block, scope, sets), {}
    block = _settled(block, node, scope, grouped, sets)
    if sets is not None:
        spark_refuses_of_groupings(block)
        session = next(filter(is_session, block.group or ()), None)
        if session is not None and block.relation is not None and not reads_records(block.relation):
            way_out = "Write a SELECT for each of the sets, and UNION ALL between them."
            raise Wrong(session.place or block.place, "sets of groups beside sessions of a join or a view", way_out)
        return over_sets(block, sets)
    for part in walk_all(above_group(block), None):
        if isinstance(part, Call) and part.function in ("grouping", "grouping_id"):
            raise Wrong(part.place, f"{part.function}() without groupings", "GROUP BY ROLLUP(…) or CUBE(…).")
    return block


def _in_inherited_order(block: Select, node: exp.Select, scope: Scope) -> Select:
    """A block that picks rows, and says no order, goes by that of the subquery or view that it reads."""
    picks = block.limit is not None or block.offset is not None
    if not picks or block.order or block.distinct or block.group is not None or has_windows(block):
        return block
    return replace(block, order=inherited(block.relation, node, scope.context.sortings))


def _exploded_groups(block: Select, scope: Scope, sets: Sets | None) -> Select:
    """The rows that a generator among the columns makes of groups."""
    (made,) = scope.generators
    if sets is not None:
        raise Wrong(made.place, "explode() beside GROUPING SETS", "Group in a subquery in FROM, and explode around it.")
    if block.relation is not None:
        block = replace(block, relation=reading_passed(block.relation, scope.passed))
    return exploded_groups(block, made)


def _having(node: exp.Expr, scope: Scope, group: Sequence[Expr], outputs: Sequence[Output]) -> Expr:
    """The condition on groups: names mean columns that it groups by, and else its outputs."""
    named = {o.name.lower(): o.expression for o in outputs}
    meant: dict[str, Expr] = {}

    def grouped(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if isinstance(part, Field) and (output := named.get(part.path[-1].lower())) is not None:
            if output.type != part.type:  # Spark compares it as it would the column
                what = f"{part.path[-1]}, a column of {part.type} and an output of {output.type}"
                raise Wrong(part.place, what, "Give the output another name.")
            meant[part.path[-1].lower()] = output
        return None

    having = condition(expression(node, scope), "HAVING")
    refuse_windowed(having, "HAVING")
    rewrite(having, grouped)
    with scope.preferring(meant):
        return condition(expression(node, scope), "HAVING") if meant else having


def _settled(block: Select, node: exp.Select, scope: Scope, grouped: Mapping[Expr, str], sets: Sets | None) -> Select:
    """The block with its ties broken, reading what a subquery of records passes on for that."""
    picks = block.limit is not None and scope.rows is not None and is_of_records(scope.rows)
    if block.group is None and (picks or any(by_rows(call_) for call_, _ in scope.windowed)):
        passed(scope, with_windows=True)
    if block.relation is not None:
        block = replace(block, relation=reading_passed(block.relation, scope.passed))
    return settled(block, node, scope.windowed, grouped, scope.context.keys, sets)
