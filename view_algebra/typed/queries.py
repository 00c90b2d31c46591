"""From the author's syntax to typed queries: a block's clauses in the order in which SQL gives them meaning.

SELECT spells out `*` and explode(), and gives each output the name that Spark gives it. UNION, INTERSECT and EXCEPT
bring their columns to one type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.language.expressions import (
    NULL,
    Aggregate,
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    Nested,
    Order,
    Output,
    Query,
    Relation,
    Select,
    Stream,
    Subquery,
    Windowed,
    both,
    member,
)
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.meeting import cast, meet
from view_algebra.language.operators import condition
from view_algebra.language.quoting import spark_name
from view_algebra.language.time_windows import is_session
from view_algebra.language.types import STRING, VOID, WINDOW, Type, inside
from view_algebra.language.walks import (
    above_group,
    every_relation,
    has_windows,
    is_of_records,
    rewrite,
    walk,
    walk_all,
    windowed,
    with_nested,
)
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.calls import in_a_window, refuse_aggregates, refuse_windowed
from view_algebra.typed.events import is_in_order, passing_on_all, reading_passed, reads_records
from view_algebra.typed.generators import generated, makes_rows, with_generator
from view_algebra.typed.grouping import (
    HAS_ROWS,
    exploded_groups,
    groups_of,
    in_every_window,
    in_sessions,
    key_texts,
    over_sets,
    windows_of,
)
from view_algebra.typed.keys import by_rows
from view_algebra.typed.names import (
    column_names,
    find,
    merged_column,
    name_parts,
    naming,
    refuse_alike,
    with_column_names,
)
from view_algebra.typed.natural_names import natural_name
from view_algebra.typed.nested import by_scalars, by_texts, is_empty
from view_algebra.typed.relations import AS_A_SUBQUERY, from_clause, in_parentheses, refuse_texts_that_meet_numbers
from view_algebra.typed.scopes import Outside, Rows, Scope, Sets, is_kafkas, resolved
from view_algebra.typed.spark_refuses import (
    OVERLAPPING,
    refuse_in_outer_joins,
    refuse_names_of_names,
    spark_refuses,
    spark_refuses_of_groupings,
)
from view_algebra.typed.ties import (
    in_total_order,
    inherited,
    limit_of,
    refuse_windows_in_order,
    set_in_total_order,
    sort_keys,
)
from view_algebra.written.dialect import qualifying, without_qualify
from view_algebra.written.ways_out import one_row_each


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
            outside = outside.with_ctes({**outside.ctes, name: cte_query})
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
    scope, outputs, group, sets, having = _select_group_having(node, scope)
    relation = scope.rows.relation
    order = tuple(sort_keys(node, scope, tuple((o.name, o.expression.type) for o in outputs), outputs))
    if distinct := is_distinct(node, outputs):
        refuse_windows_in_order(order, node)
        _refuse_hidden_order(order, outputs)
    limit, offset = limit_of(node)
    above = [o.expression for o in outputs] + [o.expression for o in order]
    above += [generator.argument for generator in scope.generators]
    if group is None and (having is not None or any(isinstance(e, Aggregate) for e in walk_all(above, None))):
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
    block = in_every_window(_within_windows(block))
    return in_sessions(_completed(block, node, scope, outputs, sets))


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
    filtered = reduce(both, scope.semi, filtered)
    if filtered is not None:
        refuse_aggregates(filtered, "WHERE", "Put the condition into HAVING, or FILTER (WHERE …) of the aggregate.")
    return replace(scope, rows=replace(scope.rows, where=filtered))


def _rows(relation: Relation | None) -> Rows:
    below = relation.query if isinstance(relation, Nested) else None
    return Rows(
        relation,
        above=not reads_records(relation),
        records=below if below is not None and is_in_order(below, windows=False) else None,
        in_order=below if below is not None and is_in_order(below) else None,
    )


def _select_group_having(
    node: exp.Select, scope: Scope
) -> tuple[Scope, list[Output], tuple[Expr, ...] | None, Sets | None, Expr | None]:
    """SELECT, GROUP BY and HAVING: the scope, the outputs, the keys, the sets of keys, the condition on groups."""
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
    return scope, outputs, group, sets, having


def _completed(block: Select, node: exp.Select, scope: Scope, outputs: Sequence[Output], sets: Sets | None) -> Select:
    """The block with total orders and one block per grouping. Refuses the clauses that cannot be served."""
    block = _in_inherited_order(block, node, scope)
    grouped = {} if node.args.get("group") is None else key_texts(node, scope, outputs)
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
    return exploded_groups(reading_passed(block, scope), generator)


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
    if by_row and (below := passing_on_all(scope)) is not None:
        block = with_nested(block, lambda nested: below if nested.alias == below.alias else nested)
    return in_total_order(reading_passed(block, scope), node, scope, grouped, sets)


def outputs_of(node: exp.Select, scope: Scope) -> tuple[list[Output], Scope]:
    """The outputs of a SELECT, and the scope with their names and the calls among them that make rows."""
    outputs: list[Output] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else None
        qualifier = ""
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            star, qualifier = item.this, item.table.lower()
        if star is not None and qualifier and qualifier not in scope.relations:
            outputs += _fields(static_cast(exp.Column, item), scope)
            continue
        if star is not None:
            outputs += _star(star, qualifier, scope)
            continue
        inner = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
        if makes_rows(inner):
            exploded, scope = _exploded(inner, item, scope)
            outputs += exploded
            continue
        value = resolved(inner, scope)
        name = item.alias if isinstance(item, exp.Alias) else natural_name(item, scope)
        if any(kind.length for kind in inside(value.type)) and value.type not in LENGTHS:
            way_out = "A difference of two times is a column of its own: ts - before AS waited."
            raise Wrong(span(item), f"a column cannot be of type {value.type}", way_out)
        if value.type == VOID:
            value = cast(value, STRING, implicit=True)
        elif VOID in inside(value.type) and any(map(is_empty, walk(value))):
            way_out = "Write it next to others, for example coalesce(tags, array())."
            raise Wrong(value.place or span(item), f"an empty {value.type} has no known type", way_out)
        outputs.append(Output(name, value))
        if isinstance(item, exp.Alias):
            unclear = scope.unclear | ({name.lower()} & scope.aliases.keys())
            scope = replace(scope, unclear=unclear, aliases={name.lower(): value, **scope.aliases})
    return outputs, replace(scope, unclear=scope.unclear | _unclear(outputs))


def _exploded(node: exp.Expr, item: exp.Expr, scope: Scope) -> tuple[list[Output], Scope]:
    """The columns of `SELECT explode(x) AS element`, and the scope with their names."""
    place = span(node)
    if scope.generators:
        way_out = "Write LATERAL VIEW explode(tags) t AS tag."
        raise Wrong(place, "SELECT has two generators", way_out)
    names = [column.name for column in item.args["expressions"]] if isinstance(item, exp.Aliases) else []
    names = [item.alias] if isinstance(item, exp.Alias) else names
    generator = generated(node, names, f"q{len(scope.relations) + 1}", scope)
    outputs = [Output(name, Field(generator.alias, (name,), kind, place=place)) for name, kind in generator.columns]
    aliases = {output.name.lower(): output.expression for output in outputs if names}
    return outputs, replace(scope, generators=(generator,), aliases={**aliases, **scope.aliases})


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[Output]:
    if not scope.relations:
        raise Wrong(span(star), "SELECT * needs FROM", "Name a source or a view in FROM.")
    left_out = _left_out(star, {name.lower() for columns in scope.relations.values() for name, _ in columns})
    for alias, columns in scope.relations.items():
        if not qualifier or alias == qualifier:
            refuse_alike(columns, span(star))
    starred = [
        Field(alias, (name,), kind, place=span(star))
        for alias, columns in scope.relations.items()
        if not qualifier or alias == qualifier
        for name, kind in columns
        if not is_kafkas(alias, name, scope) and name.lower() not in left_out
    ]
    names = () if qualifier else [name for name in scope.using if name not in left_out]
    shared = {name: e for name in names if (e := merged_column(name, scope, span(star))) is not None}
    if not qualifier:
        starred = [field for field in starred if (field.relation, field.path[0].lower()) not in scope.merged]
    own = [f"{spark_name(field.relation)}.{spark_name(field.path[0])}" for field in starred]
    scope.edits.spell_columns(star, [*map(spark_name, shared), *own])
    once = [Output(next(f.path[0] for f in walk(e) if isinstance(f, Field)), e) for e in shared.values()]
    nulls = Constant(None, STRING, span(star))
    return [*once, *(Output(f.path[0], nulls if f.type == VOID else f) for f in starred)]


def _unclear(outputs: Sequence[Output]) -> set[str]:
    """Names that several outputs share, unless all of them are that one column."""
    meant: dict[str, Expr] = {}
    shared: set[str] = set()
    for name, value in ((output.name.lower(), output.expression) for output in outputs):
        own = isinstance(value, Field) and [part.lower() for part in value.path] == [name]
        if name in meant and not (own and meant[name] == value):
            shared.add(name)
        meant.setdefault(name, value)
    return shared


def refuse_outer(outputs: Sequence[Output]) -> None:
    """Refuses columns of the relations before LATERAL in the outputs of records or groups."""
    for part in (part for output in outputs for part in walk(output.expression)):
        if isinstance(part, Field) and part.outer:
            way_out = f"Compute with it outside: SELECT {part.relation}.{part.path[0]} + l.x FROM …, LATERAL (…) AS l."
            raise Wrong(part.place, "records and groups cannot show a column of a relation before LATERAL", way_out)


def _left_out(star: exp.Star, columns: Collection[str]) -> set[str]:
    """The columns that `* EXCEPT (…)` leaves out."""
    omitted: set[str] = set()
    for column in star.args.get("except_") or star.args.get("except") or []:
        name = (
            ".".join(name_parts(column)).lower() if isinstance(column, (exp.Column, exp.Dot)) else column.name.lower()
        )
        if name not in columns or name in omitted:
            raise Wrong(span(column), f"EXCEPT ({name}) names a column that is missing", suggestion(name, [*columns]))
        omitted.add(name)
    return omitted


def _fields(item: exp.Column, scope: Scope) -> list[Output]:
    """The fields of the struct, or the bounds of the window, of `column.*`."""
    names, place = [part.name for part in item.parts[:-1]], span(item.parts[-2])
    if names[0].lower() in scope.windows:
        raise Wrong(place, f"Spark does not know {names[0]}.*", "Write window.start, window.end.")
    visible = {name.lower() for columns in scope.relations.values() for name, _ in columns}
    visible |= {relation.lower() for relation in scope.relations} if len(names) > 1 else set()
    if names[0].lower() not in visible:
        raise Wrong(place, f"there is no relation {names[0]}", suggestion(names[0], scope.relations))
    struct = find(names, scope.relations, place)
    if not struct.type.fields or item.this.args.get("except_") or item.this.args.get("except"):
        raise Wrong(place, f"{'.'.join(names)}.* does not take {struct.type}", "Name the fields.")
    return [Output(name, member(struct, name, place)) for name, _ in struct.type.fields]


def is_distinct(node: exp.Select, outputs: Sequence[Output]) -> bool:
    """True for SELECT DISTINCT. Refuses it if the two engines compare its outputs differently."""
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Wrong(
            span(distinct.args["on"]) or span(node), "DISTINCT ON is not served", f"Write {one_row_each(node)}."
        )
    kinds = {o.expression: o.expression.type for o in outputs}
    nested = next((e for e, kind in kinds.items() if kind.nested and kind != WINDOW), None)
    if distinct is not None and nested is not None:
        way_out = "Leave it out, or take to_json(…) of it."
        raise Wrong(nested.place or span(node), f"SELECT DISTINCT does not take {nested.type}", way_out)
    session = next((e for e, kind in kinds.items() if kind.session), None)
    if distinct is not None and session is not None:
        way_out = OVERLAPPING
        if node.args.get("group") is None:
            way_out = "Write GROUP BY session_window(…), and select session_window.start and session_window.end."
        raise Wrong(session.place or span(node), "SELECT DISTINCT does not take sessions", way_out)
    return distinct is not None


def _refuse_hidden_order(order: Sequence[Order], outputs: Sequence[Output]) -> None:
    """Refuses ORDER BY of DISTINCT rows by other than their columns."""
    columns = {output.expression: NULL for output in outputs}
    for part in (part for key in order for part in walk(rewrite(key.expression, columns.get))):
        if isinstance(part, (Field, Aggregate, Windowed, Subquery)):
            way_out = "Select it, or leave DISTINCT out."
            raise Wrong(part.place, "ORDER BY reads what SELECT DISTINCT leaves out", way_out)


def combined(node: exp.SetOperation, outside: Outside) -> Query:
    """Two queries as one: each column gets a common type, and the name that the first query gives it."""
    left, right = (outside.context.query(side, outside.of_a_part()) for side in (node.this, node.expression))
    place = span(node.expression)
    if len(left.columns) != len(right.columns):
        raise Wrong(
            place,
            f"the sides of {node.key.upper()} have {len(left.columns)} and {len(right.columns)} columns",
            "Give both sides the same columns.",
        )
    if node.args.get("by_name"):
        raise Wrong(place, f"{node.key.upper()} BY NAME is not served", "Order the columns alike on both sides.")
    sides = zip(_kinds(left), _kinds(right), strict=True)
    met = [meet((Constant("", a), Constant("", b)), place, node.key.upper(), texts=True) for a, b in sides]
    kinds = [column[0].type for column in met]
    kinds = [STRING if kind == VOID else kind for kind in kinds]
    left, right = _cast_outputs(left, kinds), _cast_outputs(right, kinds)
    operator = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
    if not node.args.get("distinct", True):
        operator += " ALL"
    if not operator.endswith("ALL") and any(kind.nested and kind != WINDOW for kind in kinds):
        raise Wrong(place, f"{operator} does not take nested values", f"Take to_json(…) of them, or {operator} ALL.")
    if not operator.endswith("ALL") and any(kind.session for kind in _kinds(left) + _kinds(right)):
        raise Wrong(place, f"{operator} does not take sessions", OVERLAPPING)
    return modified(Combined(operator, left, right, left.columns, place=span(node)), node, outside)


def modified(query: Query, node: exp.Expr, outside: Outside) -> Query:
    """ORDER BY and LIMIT after a set operation or around a query in parentheses."""
    if not node.args.get("order") and not node.args.get("limit") and not node.args.get("offset"):
        return query
    scope = Scope(outside.without_outer(), {"": query.columns})
    order = tuple(sort_keys(node, scope, query.columns))
    for key in order:
        way_out = "Put the set operation into a subquery in FROM, and compute and order outside."
        refuse_aggregates(key.expression, "ORDER BY of a set operation", way_out)
        _refuse_records(key.expression, way_out)
    limit, offset = limit_of(node)
    if isinstance(query, Combined):
        refuse_windows_in_order(order, node)
    if query.order or query.limit is not None:
        raise Wrong(span(node), "the query has ORDER BY or LIMIT twice", "Put the inner query into a subquery in FROM.")
    place = span(node.args.get("limit") or node)
    query = replace(query, order=order, limit=limit, offset=offset, limit_place=place)
    return set_in_total_order(query, node, scope.edits) if isinstance(query, Combined) else query


def _refuse_records(key: Expr, way_out: str) -> None:
    """Refuses a subquery over records in ORDER BY of a set operation: it belongs to no block that could keep cells."""
    for part in walk(key):
        if isinstance(part, Subquery) and any(isinstance(read, Stream) for read in every_relation(part.query)):
            raise Wrong(part.place, "ORDER BY of a set operation cannot read records in a subquery", way_out)


def _kinds(query: Query) -> list[Type]:
    """The types of a query's columns. A column of NULLs takes any type."""
    if isinstance(query, Combined):
        sides = zip(_kinds(query.left), _kinds(query.right), strict=True)
        return [right if left == VOID else left for left, right in sides]
    columns = [output.expression for output in query.outputs]
    return [VOID if isinstance(e, Constant) and e.value is None else e.type for e in columns]


def _cast_outputs(query: Query, kinds: Sequence[Type]) -> Query:
    if isinstance(query, Select):
        outputs = tuple(
            replace(o, expression=cast(o.expression, kind, implicit=kind != STRING or o.expression.type == VOID))
            for o, kind in zip(query.outputs, kinds, strict=True)
        )
        return replace(query, outputs=outputs)
    columns = tuple((name, kind) for (name, _), kind in zip(query.columns, kinds, strict=True))
    return replace(
        query, left=_cast_outputs(query.left, kinds), right=_cast_outputs(query.right, kinds), columns=columns
    )
