"""FROM: streams, views, subqueries, VALUES, joins and LATERAL, with every name resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal as Choice
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.compiled import changes_name
from view_algebra.language.calendar_bounds import finite, within_calendar
from view_algebra.language.expressions import (
    TRUE,
    Combined,
    Constant,
    Constants,
    Expr,
    Joined,
    Nested,
    Query,
    Read,
    Relation,
    Stream,
    both,
)
from view_algebra.language.functions import WINDOWED, instead_of_rows
from view_algebra.language.meeting import compare
from view_algebra.language.operators import condition
from view_algebra.language.quoting import spark_name, words
from view_algebra.language.times import MOST_ELEMENTS
from view_algebra.language.types import BIGINT, CALENDAR, INTERVAL
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.aggregation.calls import refuse_aggregates
from view_algebra.typed.names import OWN_ALIASES, find
from view_algebra.typed.order.events import ORDER_COLUMNS, has_order_columns, is_in_order
from view_algebra.typed.relations.aliases import (
    alias_of,
    all_of,
    column_names,
    columns_of,
    named_item,
    naming,
    refuse_other_number,
    right_alias,
    untyped,
    with_column_names,
)
from view_algebra.typed.relations.as_of import A_TIME, versions_of
from view_algebra.typed.relations.constants import elements, join_of, table
from view_algebra.typed.relations.generators import generated, makes_rows, with_generator
from view_algebra.typed.relations.subqueries import JOINS, semi_join
from view_algebra.typed.relations.using import common_columns, using_condition
from view_algebra.typed.scopes import Columns, Outside, Scope, resolved
from view_algebra.typed.spark_refuses import refuse_in_join, refuse_joins_behind, refuse_windows_in_join
from view_algebra.written.dialect import parsed
from view_algebra.written.rewrites.pivots import pivoted, refuse_counts
from view_algebra.written.tables import HOLDS
from view_algebra.written.ways_out.replacements import unnested

AS_A_SUBQUERY = "Make it a subquery that names its columns: (SELECT a.k, b.x FROM a JOIN b ON …) AS ab."
_NAMED_RELATION = "Name a source, a view or a subquery."
_SERIES = words("generate_series generate_date_array generate_timestamp_array sequence")
_DAYS = (
    "Write FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY)) AS day) AS days,"
    " with literal dates."
)
_FILTERED = "Write ON true, and leave elements out before: LATERAL explode(filter(tags, t -> t > 'a'))."


def from_clause(node: exp.Select, scope: Scope) -> tuple[Relation | None, Scope]:
    """The relation that a SELECT reads, and the scope with its names."""
    for lateral in node.args.get("laterals") or []:
        refuse_joins_behind(lateral, node)
    from_ = node.args.get("from_")
    relation: Relation | None = None
    if from_ is not None:
        relation, scope = _from(from_.this, scope)
    for join in node.args.get("joins") or []:
        if relation is None:
            raise Wrong(span(join), "JOIN needs a relation before it", "A column of that name is written `join`.")
        relation, scope = _join(relation, join, scope)
    for lateral in node.args.get("laterals") or []:
        relation, scope = _explode(relation, lateral, scope)
    return relation, scope


def _from(node: exp.Expr, scope: Scope) -> tuple[Relation, Scope]:
    """A relation with the joins after it, and the scope with their names."""
    relation, scope = _from(node.this, scope) if _is_plain(node, scope) else _named(node, scope)
    for join in node.args.get("joins") or []:
        if isinstance(node.parent, exp.Join):
            raise Wrong(span(join), "Spark rejects a JOIN before the ON of another", AS_A_SUBQUERY)
        relation, scope = _join(relation, join, scope)
    return relation, scope


def _named(node: exp.Expr, scope: Scope) -> tuple[Relation, Scope]:
    """A relation without the joins after it, and the scope with its name."""
    relation: Relation
    if node.args.get("pivots"):
        relation = _pivoted(node, scope)
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        relation = _table_function(node, scope)
    elif isinstance(node, exp.Table):
        relation = _table(node, scope)
    elif isinstance(node, exp.Subquery):
        named = naming(node, scope.edits)
        inner = scope.context.query(named, scope.in_from())
        alias, names = alias_of(named, scope)
        relation = Nested(with_column_names(inner, names, span(node)) if names else inner, alias, span(node))
    elif isinstance(node, exp.Values):
        alias, names = alias_of(node, scope)
        relation = table(_rows(node, scope), names, alias, span(node))
    else:
        counts = ", which counts from 0" if isinstance(node, exp.Unnest) and node.args.get("offset") else ""
        way_out = f"Write {unnested(node)}{counts}." if isinstance(node, exp.Unnest) else _NAMED_RELATION
        raise Wrong(span(node), f"FROM does not take {node.key.upper()}", way_out)
    if relation.alias in scope.relations:
        raise Wrong(span(node), f"two relations are named {relation.alias}", "Give one of them another alias: … AS b.")
    columns = untyped(relation, columns_of(relation, scope.context.streams))
    if isinstance(relation, Nested) and has_order_columns(relation.query):  # `*` leaves out undeclared columns
        columns = tuple(column for column in columns if column[0] not in ORDER_COLUMNS)
    if isinstance(relation, Stream):
        scope = replace(scope, streams={**scope.streams, relation.alias: relation.source})
    return relation, scope.with_relation(relation.alias, columns)


def _pivoted(node: exp.Expr, scope: Scope) -> Nested:
    """A relation made from another by PIVOT or UNPIVOT."""
    pivot, *more = node.args["pivots"]
    joins = node.args.get("joins") or (node.parent_select and node.parent_select.args.get("joins"))
    if more or joins:
        way_out = "Put the pivoted relation into a subquery in FROM."
        raise Wrong(span(node), "PIVOT cannot stand next to a join or a second PIVOT", way_out)
    if pivot.alias and not pivot.args.get("unpivot"):
        raise Wrong(span(pivot), "PIVOT (…) does not take an alias", "Write FROM (SELECT * FROM … PIVOT (…)) AS p.")
    source = scope.edits.copy(node)
    source.set("pivots", None)
    source.set("joins", None)
    inputs = columns_of(_from(source, Scope(scope.outside.without_outer()))[0], scope.context.streams)
    of_stream = isinstance(node, exp.Table) and node.name.lower() in scope.context.streams
    columns = {name: kind for name, kind in inputs if not (of_stream and name.startswith("kafka_"))}
    pivoted_query = pivoted(pivot, source, columns)
    inner = scope.context.query(pivoted_query, scope.in_from().without_outer())
    for name, part in source.args.items():
        if isinstance(part, exp.Expr):
            scope.edits.adopt(node.args[name], part)
    if not pivot.args.get("unpivot"):
        refuse_counts(pivot, inner)
    alias, renamed = alias_of(pivot, scope)
    if of_stream:  # Spark would also group by Kafka's columns
        own = parsed(f"SELECT {', '.join(map(spark_name, columns))} FROM {spark_name(node.name)}")
        scope.edits.put(node, exp.Subquery(this=own, pivots=[scope.edits.copy(pivot)]))
    if any(scope.edits.changes_result(item) for item in pivoted_query.expressions):
        named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(name) for name in renamed])
        # Spark would also pivot by the order of events.
        scope.edits.put(node, exp.Subquery(this=pivoted_query, alias=named))
    return Nested(with_column_names(inner, renamed, span(node)) if renamed else inner, alias, span(node))


def _rows(node: exp.Values, scope: Scope) -> list[list[Expr]]:
    """The rows of VALUES, which name no columns."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    for value in (value for row in rows for value in row):
        if isinstance(value, exp.Alias):
            raise Wrong(span(value), "a value of VALUES cannot have a name", "Write VALUES (1), (2) AS numbers(n).")
    return [[resolved(value, Scope(Outside(scope.context))) for value in row] for row in rows]


def _table_function(node: exp.Table, scope: Scope) -> Constants:
    """FROM range(24), and FROM explode(array(1, 2)) AS t(n)."""
    name, place = node.this.name.lower(), span(node.this)
    if name in WINDOWED:
        raise Wrong(place, f"FROM does not take {name}()", "Write FROM s GROUP BY window(ts, '15 minutes').")
    bounds = [resolved(argument, Scope(Outside(scope.context))) for argument in node.this.expressions]
    alias, names = alias_of(node, scope)
    if name == "explode" and len(bounds) == 1:
        return table([[element] for element in elements(bounds[0], place)], names or ["col"], alias, place)
    if name != "range" or not 1 <= len(bounds) <= 3:
        of_times = any(bound.type.name in CALENDAR or bound.type == INTERVAL for bound in bounds)
        series = _DAYS if of_times else "Write FROM range(1, 11) AS t(n), whose end is not among its rows."
        raise Wrong(place, f"FROM does not take {name}()", series if name in _SERIES else _NAMED_RELATION)
    ends = [int(bound.value) for bound in bounds if isinstance(bound, Constant) and bound.type.integral and bound.value]
    is_literal = len(ends) == len(bounds) and 0 not in ends[2:]
    numbers = range(*ends)[: MOST_ELEMENTS + 1] if is_literal else range(0)
    if not 0 < len(numbers) <= MOST_ELEMENTS:
        raise Wrong(place, f"range() needs literals that give 1 to {MOST_ELEMENTS:,} rows", "Write it as range(0, 24).")
    return table([[Constant(str(number), BIGINT)] for number in numbers], names or ["id"], alias, place)


def _table(node: exp.Table, scope: Scope) -> Stream | Read | Nested:
    """A stream, a view or a CTE, by its name."""
    if node.args.get("version"):
        way_out = f"Write FROM orders AS o JOIN {node.name} FOR SYSTEM_TIME AS OF o.ts AS {node.name[:1]} ON …."
        raise Wrong(span(node), "FOR SYSTEM_TIME AS OF needs a join", way_out)
    if node.args.get("sample"):
        raise Wrong(span(node), "TABLESAMPLE is not served", "Write WHERE pmod(hash(id), 10) = 0, for a tenth.")
    name, alias = node.name, (node.alias or node.name).lower()
    names = column_names(node)
    if node.args.get("db"):
        raise Wrong(span(node), f"{name} has a schema before it", f"Write the name alone: {name}.")
    if name.lower() in scope.ctes:
        inner = scope.ctes[name.lower()]
        return Nested(with_column_names(inner, names, span(node)) if names else inner, alias, span(node))
    if name.lower() in scope.context.streams:
        if names:
            return _with_column_aliases(node, names, scope)
        return Stream(name.lower(), alias, span(node))
    if name.lower() in scope.context.views:
        if (records := _records_of(node, alias, names, scope)) is not None:
            return records
        read = Read(name.lower(), name.lower() if names else alias, scope.context.views[name.lower()], span(node))
        return Nested(with_column_names(all_of(read), names, span(node)), alias, span(node)) if names else read
    raise Wrong(
        span(node),
        f"there is no source or view {name}",
        suggestion(name, [n for n in (*scope.context.streams, *scope.context.views, *scope.ctes) if " " not in n]),
    )


def _records_of(node: exp.Table, alias: str, names: Sequence[str], scope: Scope) -> Nested | None:
    """A view over records, replaced by its SELECT. Spark gets the same edit. None if its rows are read."""
    if (declared := scope.context.read_through.get(node.name.lower())) is None:
        return None
    if any(item.alias == ORDER_COLUMNS[0] for item in declared.select.expressions):  # a table with log positions
        select, columns = declared.select.copy(), [*names, *ORDER_COLUMNS] if names else []
        return _in_place_of(node, select, _records(node, select, scope), columns, scope)
    if changes_name(declared.name) in scope.context.streams:  # a table: its name means its rows to Spark too
        newest = scope.context.query(declared.select.copy(), Outside(scope.context))
        return Nested(with_column_names(newest, names, span(node)) if names else newest, alias, span(node))
    select, names = declared.select.copy(), names or [name for name, _ in declared.columns]
    if names and not any(item.is_star for item in select.expressions):
        outputs = zip(select.expressions, names, strict=True)
        select.set("expressions", [named_item(item, name) for item, name in outputs])
        names = []
    inner = _without_infinities(_records(node, select, scope), select, scope)
    return _in_place_of(node, select, inner, names, scope)


def _without_infinities(query: Query, select: exp.Expr, scope: Scope) -> Query:
    """The SELECT of a view as other views read it: the infinities that the view shows are NULL."""
    select = select.unnest()
    if isinstance(query, Combined):
        left = _without_infinities(query.left, select.this, scope)
        return replace(query, left=left, right=_without_infinities(query.right, select.expression, scope))
    for output, item in zip(query.outputs, select.expressions, strict=False):
        if output.expression.type.endless:
            scope.edits.guard(item.unalias(), within_calendar(scope.edited_sql(item.unalias()), output.expression.type))
    outputs = (replace(o, expression=finite(e)) if (e := o.expression).type.endless else o for o in query.outputs)
    return replace(query, outputs=tuple(outputs))


def _with_column_aliases(node: exp.Table, names: Sequence[str], scope: Scope) -> Nested:
    """FROM orders AS o(a, b): a stream under new column names, without Kafka's columns, which Spark would count."""
    own = [name for name, _ in scope.context.streams[node.name.lower()] if not name.startswith("kafka_")]
    refuse_other_number(names, len(own), span(node))
    columns = (f"{spark_name(column)} AS {spark_name(name)}" for column, name in zip(own, names, strict=True))
    select = parsed(f"SELECT {', '.join(columns)} FROM {spark_name(node.name)}")
    stream = _in_place_of(node, select, _records(node, select, scope), [], scope)
    assert stream is not None, "rows of a stream are in order"
    return stream


def _records(node: exp.Table, select: exp.Expr, scope: Scope) -> Query:
    """The query of a SELECT over records that stands in place of a name."""
    hidden = next((table.name for table in select.find_all(exp.Table) if table.name.lower() in scope.ctes), None)
    if hidden is not None:  # Spark would read the CTE
        raise Wrong(span(node), f"a CTE hides {hidden}, which {node.name} reads", "Rename the CTE.")
    return scope.context.query(select, Outside(scope.context))


def _in_place_of(node: exp.Table, select: exp.Expr, inner: Query, names: Sequence[str], scope: Scope) -> Nested | None:
    """A name replaced by a SELECT over records. Spark gets the same edit. None if its rows are not records."""
    if not is_in_order(inner, windows=False):
        return None
    alias = (node.alias or node.name).lower()
    named = with_column_names(inner, names, span(node)) if names else inner
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=columns)
    scope.edits.put(node, exp.Subquery(this=select, alias=called))
    return Nested(named, alias, span(node))


def _explode(
    relation: Relation | None, lateral: exp.Lateral, scope: Scope, *, outer: bool = False
) -> tuple[Relation, Scope]:
    """The relation exploded by LATERAL VIEW, and the scope with the names of the new columns."""
    call_, alias = lateral.this, lateral.args.get("alias")
    place = span(call_)
    if not makes_rows(call_):
        what = (
            f"LATERAL VIEW does not take {call_.name.lower()}()"
            if isinstance(call_, exp.Anonymous)
            else "LATERAL needs a call"
        )
        raise Wrong(place, what, instead_of_rows(call_.name))
    name = alias.name.lower() if alias is not None and alias.name else f"q{len(scope.relations) + 1}"
    if name in scope.relations:
        raise Wrong(place, f"two relations are named {name}", "Give one of them another alias.")
    names = column_names(lateral)
    generator = generated(call_, names, name, scope)
    generator = replace(generator, outer=generator.outer or outer or bool(lateral.args.get("outer")))
    return with_generator(relation, generator), scope.with_relation(name, generator.columns)


def _join(left: Relation, join: exp.Join, scope: Scope) -> tuple[Relation, Scope]:
    """A relation joined with the next one, and the scope with the names of both."""
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("method") and not natural:
        way_out = "Write the condition: JOIN … ON …."
        if str(join.args["method"]).upper() == "ASOF":
            way_out = "Write JOIN t FOR SYSTEM_TIME AS OF a.ts AS t ON a.k = t.k, where t has a PRIMARY KEY."
        raise Wrong(span(join), f"{join.args['method']} JOIN is not served", way_out)
    kind = " ".join(str(join.args[k]).upper() for k in ("side", "kind") if join.args.get(k))
    kind = {"": "INNER", "INNER": "INNER", "LEFT OUTER": "LEFT", "RIGHT OUTER": "RIGHT", "FULL OUTER": "FULL"}.get(
        kind, kind
    )
    if kind in JOINS:
        return _semi_join(left, kind, join, scope)
    if kind not in ("INNER", "LEFT", "RIGHT", "FULL", "CROSS") or (scope.filters and kind in ("RIGHT", "FULL")):
        way_out = _INSTEAD.get(kind, "Write WHERE k IN (SELECT k …), or NOT IN.")
        raise Wrong(span(join), f"{kind.removesuffix('_JOIN')} JOIN is not served", way_out)
    if isinstance(join.this, exp.Lateral):
        return _lateral(left, kind, join, scope)
    before = scope.relations
    if (versions := versions_of(join, kind, scope)) is not None:
        return _as_of(left, kind, join, *versions, scope)
    right, scope = _from(join.this, scope)
    on: Expr | None = None
    using = common_columns(before, right_alias(right), join, scope) if natural else join.args.get("using")
    if using:
        on, scope = using_condition(kind, using, replace(scope, relations=before), right_alias(right), scope)
    elif join.args.get("on") is not None:
        on = _on(join.args["on"], before, scope)
    elif kind in ("LEFT", "RIGHT", "FULL") and not natural:
        on = TRUE
    if kind == "INNER" and isinstance(on, Constant) and on.value == "true":
        on = None
    if kind in ("INNER", "CROSS"):  # CROSS JOIN … ON is an inner join
        kind = "CROSS" if on is None else "INNER"
    kind_ = static_cast(Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"], kind)
    return join_of(Joined(left, right, kind_, on, span(join))), scope


def _on(node: exp.Expr, before: Mapping[str, Columns], scope: Scope) -> Expr:
    """The condition of a join. `before`: the relations of its left side."""
    on = condition(resolved(node, scope), "ON")
    refuse_aggregates(on, "ON", "Aggregate in a subquery, and join that.")
    refuse_in_join(on, before)
    return on


_INSTEAD = {"OUTER": "Write LEFT, RIGHT or FULL JOIN.", "STRAIGHT_JOIN": "Write JOIN."}
"""The way out for joins of other systems."""


def _as_of(
    left: Relation, kind: str, join: exp.Join, versions: exp.Subquery, holds: exp.Expr, scope: Scope
) -> tuple[Joined, Scope]:
    """A join with the versions that held at a time. Spark gets the same edit."""
    before = scope.relations
    time = join.this.args["version"].expression
    at = resolved(time.copy(), scope)
    refuse_aggregates(at, "FOR SYSTEM_TIME AS OF", "Aggregate in a subquery, and join from that.")
    if at.type.numeric or at.type.nested or at.type.name == "BOOLEAN":
        raise Wrong(span(time), f"FOR SYSTEM_TIME AS OF takes a time, not {at.type}", A_TIME)
    right, scope = _named(versions, scope)
    both_hold = exp.and_(scope.edits.copy(join.args["on"]), holds, copy=False)
    on = _on(both_hold, before, scope)
    scope.edits.put(join.this, versions)
    scope.edits.put(join.args["on"], both_hold)
    alias = right_alias(right)
    shown = tuple(column for column in scope.relations[alias] if column[0] not in HOLDS)
    as_of = Joined(left, right, "LEFT" if kind == "LEFT" else "INNER", on, span(join))
    return as_of, scope.with_relation(alias, shown)


def _lateral(left: Relation, kind: str, join: exp.Join, scope: Scope) -> tuple[Relation, Scope]:
    """`FROM a, LATERAL explode(x) AS t(c)` as LATERAL VIEW, or a subquery about each row of the left side.

    The view is OUTER if the join keeps its left side.
    """
    on, always = join.args.get("on"), exp.true()
    if kind in ("RIGHT", "FULL") or join.args.get("using"):
        raise Wrong(span(join), f"{kind} JOIN does not take LATERAL", "Put the condition into WHERE.")
    of_rows = isinstance(join.this.this, exp.Subquery)
    if kind == "LEFT" and on is None and not of_rows:
        what = "LEFT JOIN LATERAL needs ON: without it, Spark drops rows without elements"
        raise Wrong(span(join), what, "Write LEFT JOIN LATERAL … ON true, or CROSS JOIN LATERAL ….")
    if kind == "LEFT" and on not in (None, always):
        way_out = "Write ON true, and the condition into the subquery's WHERE." if of_rows else _FILTERED
        raise Wrong(span(join), "LEFT JOIN LATERAL takes only ON true", way_out)
    if of_rows:
        if on not in (None, always):
            raise Wrong(span(join), "LATERAL (SELECT …) does not take a condition", "Put the condition into WHERE.")
        right, scope = _lateral_subquery(join.this, scope)
        return Joined(left, right, "LEFT" if kind == "LEFT" else "CROSS", None, span(join)), scope
    exploded, scope = _explode(left, join.this, scope, outer=kind == "LEFT")
    if on not in (None, always):
        scope = replace(scope, filters=(*scope.filters, condition(resolved(on, scope), "ON")))
    return exploded, scope


def _lateral_subquery(node: exp.Lateral, scope: Scope) -> tuple[Nested, Scope]:
    """A subquery in FROM that may name columns of the relations before it, in WHERE and in its SELECT list."""
    place = span(node)
    inner = scope.context.query(node.this, replace(scope, lateral=True).subquery())
    alias, names = alias_of(node, scope)
    if alias in scope.relations:
        raise Wrong(place, f"two relations are named {alias}", "Give one of them another alias.")
    correlated = with_column_names(inner, names, place) if names else inner
    nested = Nested(correlated, alias, place, lateral=True)
    return nested, scope.with_relation(alias, untyped(nested, correlated.columns))


def _semi_join(left: Relation, kind: str, join: exp.Join, scope: Scope) -> tuple[Relation, Scope]:
    """The left side of a SEMI or ANTI join, and the scope with the condition that a row on the right exists, or not."""
    place = span(join)
    right, inner = _from(join.this, Scope(scope.outside.without_outer()))
    if inner.relations.keys() & (scope.relations.keys() | set(OWN_ALIASES)):
        raise Wrong(place, f"two relations are named {right_alias(right)}", "Give one of them another alias.")
    on: Expr | None = None
    if join.args.get("on") is not None:
        within = replace(scope, relations={**scope.relations, **inner.relations})
        on = condition(resolved(join.args["on"], within), "ON")
    for column in join.args.get("using") or []:
        at = span(column)
        of_right = find([right_alias(right), column.name], inner.relations, at)
        on = both(on, compare("=", find([column.name], scope.relations, at), of_right, at))
    if on is None:
        raise Wrong(place, f"{kind} JOIN needs ON", "Write the condition: ON a.k = b.k.")
    refuse_aggregates(on, "ON", "Aggregate in a subquery, and join that.")
    refuse_windows_in_join(on)
    return left, replace(scope, filters=(*scope.filters, semi_join(kind, right, inner.relations, on, place)))


def in_parentheses(node: exp.Expr) -> bool:
    """True for a relation in parentheses, such as `(a JOIN b ON …)`, and false for a query."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Subquery):
        parts = ("joins", "pivots", "laterals") if node.alias else ("joins", "pivots", "laterals", "alias")
        return any(inner.args.get(part) for part in parts)
    return isinstance(inner, exp.Table)


def _is_plain(node: exp.Expr, scope: Scope) -> bool:
    """True if the relation means the same without its parentheses."""
    if not in_parentheses(node) or node.alias or node.args.get("pivots"):
        return False
    return not (node.this.args.get("pivots") or (scope.relations and node.this.args.get("joins")))
