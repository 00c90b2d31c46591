"""From the author's syntax to typed queries: a block's clauses in the order in which SQL gives them meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from view_algebra.language.walks import (
    above_group,
    has_windows,
    is_of_records,
    rewrite,
    walk,
    walk_all,
    windowed,
    with_nested,
)
from view_algebra.refusals import Wrong, span
from view_algebra.typed.aggregation.calls import in_a_window, refuse_aggregates, refuse_windowed
from view_algebra.typed.grouping import HAS_ROWS, exploded_groups, groups_of, key_texts, over_sets, windows_of
from view_algebra.typed.nested_keys import by_scalars, by_texts
from view_algebra.typed.order.events import is_in_order, reads_records, source_with_order, with_ordered_subqueries
from view_algebra.typed.order.keys import by_rows
from view_algebra.typed.order.ties import in_total_order, inherited, limit_of, refuse_windows_in_order, sort_keys
from view_algebra.typed.outputs import is_distinct, outputs_of, refuse_hidden_order, refuse_outer
from view_algebra.typed.relations.aliases import column_names, naming, with_column_names
from view_algebra.typed.relations.from_clause import AS_A_SUBQUERY, from_clause, in_parentheses
from view_algebra.typed.relations.generators import with_generator
from view_algebra.typed.relations.join_keys import refuse_texts_that_meet_numbers
from view_algebra.typed.scopes import Outside, Rows, Scope, Sets, resolved
from view_algebra.typed.set_operations import combined, modified
from view_algebra.typed.spark_refuses import (
    refuse_in_outer_joins,
    refuse_names_of_names,
    spark_refuses,
    spark_refuses_of_groupings,
)
from view_algebra.typed.windows_of_rows import in_every_window, in_sessions
from view_algebra.written.rewrites.qualify import qualifying, without_qualify


def query(node: exp.Expr, outside: Outside) -> Query:
    """A query, its CTEs inlined where they are named."""
    with_ = node.args.get("with_")
    if with_ is not None:
        if with_.args.get("recursive"):
            raise Wrong(span(with_), "WITH RECURSIVE is not served", "Write the levels out as joins.")
        own: set[str] = set()
        for cte in with_.expressions:
            if (name := cte.alias.lower()) in own:
                raise Wrong(span(cte), f"two CTEs are named {name}", "Give one of them another name.")
            own.add(name)
            named = naming(cte, outside.context.edits)
            inner, names = query(named.this, outside.without_outer()), column_names(named)
            cte_query = with_column_names(inner, names, span(cte)) if names else inner
            outside = replace(outside, ctes={**outside.ctes, name: cte_query})
    if isinstance(node, exp.Subquery):
        if in_parentheses(node):
            raise Wrong(span(node), "a relation cannot stand in parentheses", AS_A_SUBQUERY)
        return modified(query(node.this, outside), node, outside)
    if isinstance(node, exp.SetOperation):
        return combined(node, outside)
    if isinstance(node, exp.Select):
        return _qualified(node, outside.without_outer()) if node.args.get("qualify") else _block(node, Scope(outside))
    raise Wrong(span(node), f"{node.key.upper()} is not a query", "Write a SELECT.")


def _qualified(node: exp.Select, outside: Outside) -> Query:
    """QUALIFY filters the rows of a block by its window functions, before DISTINCT, ORDER BY and LIMIT."""
    place = span(node.args["qualify"])
    names = [name for name, _ in _block(qualifying(node), Scope(outside)).columns[:-1]]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        way_out = "Write … AS name, or leave out a column that comes twice: t.* EXCEPT (id)."
        raise Wrong(place, "QUALIFY needs a different name for every column", way_out)
    block = without_qualify(node, names)
    outside.context.edits.put(node, block)
    return query(block, outside)


def _block(node: exp.Select, scope: Scope) -> Select:
    """One SELECT, clause by clause in the order in which SQL gives them meaning."""
    scope = _from_where(node, scope)
    selected = _select_group_having(node, scope)
    scope, outputs, group = selected.scope, selected.outputs, selected.group
    relation = scope.rows.relation
    order = tuple(sort_keys(node, scope, tuple((o.name, o.expression.type) for o in outputs), outputs))
    if distinct := is_distinct(node, outputs):
        refuse_windows_in_order(order, node)
        refuse_hidden_order(order, outputs)
    limit, offset = limit_of(node)
    above = [o.expression for o in outputs] + [o.expression for o in order]
    above += [generator.argument for generator in scope.generators]
    if group is None and (selected.having is not None or any(isinstance(e, Aggregate) for e in walk_all(above, None))):
        group = ()
    over = [Output("", part) for o in outputs for part in walk(o.expression) if isinstance(part, Windowed)]
    refuse_outer(outputs if group is not None or not scope.above else over)
    for generator in scope.generators if group is None else ():
        relation = with_generator(relation, generator)
    block = Select(
        tuple(outputs),
        relation,
        where=scope.rows.where,
        group=group,
        having=selected.having,
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
    block = in_every_window(_within_windows(block))
    return in_sessions(_completed(block, node, selected))


@dataclass(frozen=True)
class _SelectClause:
    """SELECT, GROUP BY and HAVING of a block.

    scope: the block's scope with the names of the outputs
    group: the columns of GROUP BY, or None without it
    sets: its groupings, if it has several
    having: the condition on groups
    """

    scope: Scope
    outputs: Sequence[Output]
    group: tuple[Expr, ...] | None
    sets: Sets | None
    having: Expr | None


def _within_windows(block: Select) -> Select:
    """A block over the rows that are in its time windows."""
    where = block.where
    named = walk_all([*(block.group or ()), *(o.expression for o in block.outputs)], where)
    for in_window in dict.fromkeys(c for e in named if isinstance(e, Call) and (c := in_a_window(e)) is not None):
        where = both(where, in_window)
    return replace(block, where=where)


def _from_where(node: exp.Select, scope: Scope) -> Scope:
    """FROM and WHERE: the scope with the names and the rows that the block reads."""
    relation, scope = from_clause(node, scope)
    refuse_in_outer_joins(relation, span(node))
    scope = replace(scope, rows=_rows(relation))
    where = node.args.get("where")
    filtered = condition(resolved(where.this, scope.with_outer(scope.outside.around)), "WHERE") if where else None
    filtered = reduce(both, scope.filters, filtered)
    if filtered is not None:
        refuse_aggregates(filtered, "WHERE", "Put the condition into HAVING, or FILTER (WHERE …) of the aggregate.")
    return replace(scope, rows=replace(scope.rows, where=filtered))


def _rows(relation: Relation | None) -> Rows:
    """The rows of FROM, before WHERE."""
    below = relation.query if isinstance(relation, Nested) else None
    return Rows(
        relation,
        above=not reads_records(relation),
        records=below if below is not None and is_in_order(below, windows=False) else None,
        in_order=below if below is not None and is_in_order(below) else None,
    )


def _select_group_having(node: exp.Select, scope: Scope) -> _SelectClause:
    """SELECT, GROUP BY and HAVING, in the order in which SQL gives them meaning."""
    around, group_node = scope.outside.around, node.args.get("group")
    scope = replace(scope, windows=windows_of(node, scope))
    outputs, scope = outputs_of(node, scope.with_outer(around if around is not None and around.lateral else None))
    scope = scope.with_outer(None)
    group, sets = (None, None) if group_node is None else groups_of(group_node, scope, outputs)
    refuse_names_of_names(node, scope.edits)
    having_node = node.args.get("having")
    having = None if having_node is None else _having(having_node.this, scope.with_outer(around), group or (), outputs)
    if group == () and group_node is not None and group_node.expressions:
        having = both(having, HAS_ROWS)
    return _SelectClause(scope, outputs, group, sets, having)


def _completed(block: Select, node: exp.Select, selected: _SelectClause) -> Select:
    """The block with total orders and one block per grouping. Refuses the clauses that cannot be served."""
    scope, sets = selected.scope, selected.sets
    block = _in_inherited_order(block, node, scope)
    grouped = {} if node.args.get("group") is None else key_texts(node, scope, selected.outputs)
    if scope.generators and block.group is not None:
        block, grouped = _exploded_groups(block, scope, sets), {}
    block = _in_total_order(block, node, scope, grouped, sets)
    if sets is not None:
        spark_refuses_of_groupings(block)
        session = next(filter(is_session, block.group or ()), None)
        if session is not None and block.relation is not None and not reads_records(block.relation):
            way_out = "Write a SELECT for each of the sets, and UNION ALL between them."
            raise Wrong(
                session.place or block.place, "several groupings do not go with sessions of a join or a view", way_out
            )
        return over_sets(block, sets)
    for part in walk_all(above_group(block), None):
        if isinstance(part, Call) and part.function in ("grouping", "grouping_id"):
            raise Wrong(part.place, f"{part.function}() needs several groupings", "GROUP BY ROLLUP(…) or CUBE(…).")
    return block


def _in_inherited_order(block: Select, node: exp.Select, scope: Scope) -> Select:
    """A block with LIMIT but no ORDER BY, in the order of the subquery or view that it reads."""
    picks = block.limit is not None or block.offset is not None
    if not picks or block.order or block.distinct or block.group is not None or has_windows(block):
        return block
    return replace(block, order=inherited(block.relation, node, scope))


def _exploded_groups(block: Select, scope: Scope, sets: Sets | None) -> Select:
    """The rows that a generator in SELECT makes from groups."""
    (generator,) = scope.generators
    if sets is not None:
        raise Wrong(
            generator.place,
            "explode() does not go with GROUPING SETS",
            "Group in a subquery in FROM, and explode its columns outside.",
        )
    return exploded_groups(with_ordered_subqueries(block, scope), generator)


def _having(node: exp.Expr, scope: Scope, group: Sequence[Expr], outputs: Sequence[Output]) -> Expr:
    """The condition on groups: a name means a group column first, then an output."""
    named = {o.name.lower(): o.expression for o in outputs}
    meant: dict[str, Expr] = {}

    def grouped(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if isinstance(part, Field) and (output := named.get(part.path[-1].lower())) is not None:
            if output.type != part.type:  # Spark compares it like the column
                what = f"{part.path[-1]} is a column of {part.type} and an output of {output.type}"
                raise Wrong(part.place, what, "Give the output another name.")
            meant[part.path[-1].lower()] = output
        return None

    having = condition(resolved(node, scope), "HAVING")
    refuse_windowed(having, "HAVING")
    rewrite(having, grouped)
    return condition(resolved(node, scope.preferring(meant)), "HAVING") if meant else having


def _in_total_order(
    block: Select, node: exp.Select, scope: Scope, grouped: Mapping[Expr, str], sets: Sets | None
) -> Select:
    """The block with total orders. To break ties, it reads the order of events that a subquery of records passes on."""
    picks = block.limit is not None and scope.rows.in_order is not None and is_of_records(scope.rows.in_order)
    by_row = block.group is None and (picks or any(map(by_rows, windowed(block))))
    if by_row and (below := source_with_order(scope)) is not None:
        block = with_nested(block, lambda nested: below if nested.alias == below.alias else nested)
    return in_total_order(with_ordered_subqueries(block, scope), node, scope, grouped, sets)
