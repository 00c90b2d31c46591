"""What FROM reads: streams, views, subqueries, VALUES, joins, and LATERAL, with every name found."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Choice
from typing import cast as typed

from sqlglot import exp

from view_algebra.compiled import changes_of
from view_algebra.language.endless import finite
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
from view_algebra.language.guards import within_calendar
from view_algebra.language.meeting import compare
from view_algebra.language.operators import condition
from view_algebra.language.quoting import spark_name, words
from view_algebra.language.times import MOST_ELEMENTS
from view_algebra.language.types import BIGINT, CALENDAR, INTERVAL
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.aliases import (
    alias_of,
    all_of,
    column_names,
    columns_of,
    named_by,
    named_item,
    naming,
    refuse_other_number,
    right_alias,
    untyped,
)
from view_algebra.typed.as_of import A_TIME, HOLDS, versions_of
from view_algebra.typed.calls import refuse_aggregates
from view_algebra.typed.constants import elements, joined, table
from view_algebra.typed.correlated import JOINS, semi_join
from view_algebra.typed.generators import generated, makes_rows, with_generator
from view_algebra.typed.names import OWN_ALIASES, Outside, Scope, find
from view_algebra.typed.passing import PASSED, is_in_order, passes_on
from view_algebra.typed.scalars import expression
from view_algebra.typed.spark_refuses import refuse_in_join, refuse_joins_behind, refuse_windows_in_join
from view_algebra.typed.using import common_columns, using_condition
from view_algebra.written.dialect import parsed
from view_algebra.written.oracle import guarded, is_edited, put, written
from view_algebra.written.pivots import pivoted, refuse_counts
from view_algebra.written.ways_out import unnested

AS_A_SUBQUERY = "Make it a subquery that names its columns: (SELECT a.k, b.x FROM a JOIN b ON …) AS ab."
_NAMED_RELATION = "Name a source, a view or a subquery."
_SERIES = words("generate_series generate_date_array generate_timestamp_array sequence")
_DAYS = (
    "Write FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY)) AS day) AS days,"
    " with literal dates."
)
_FILTERED = "Write ON true, and leave elements out before: LATERAL explode(filter(tags, t -> t > 'a'))."


def from_clause(node: exp.Select, scope: Scope) -> Relation | None:
    """What a SELECT reads; its names are known in the scope from then on."""
    for lateral in node.args.get("laterals") or []:
        refuse_joins_behind(lateral, node)
    from_ = node.args.get("from_")
    relation = None if from_ is None else _from(from_.this, scope)
    for join in node.args.get("joins") or []:
        if relation is None:
            raise Wrong(span(join), "a JOIN with nothing before it", "A column of that name is written `join`.")
        relation = _join(relation, join, scope)
    for lateral in node.args.get("laterals") or []:
        relation = _explode(relation, lateral, scope)
    return relation


def _from(node: exp.Expr, scope: Scope) -> Relation:
    relation = _from(node.this, scope) if _is_plain(node, scope) else _named(node, scope)
    for join in node.args.get("joins") or []:
        if isinstance(node.parent, exp.Join):
            raise Wrong(span(join), "a JOIN before the ON of another, which Spark does not read", AS_A_SUBQUERY)
        relation = _join(relation, join, scope)
    return relation


def _named(node: exp.Expr, scope: Scope) -> Relation:
    relation: Relation
    if node.args.get("pivots"):
        relation = _pivoted(node, scope)
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        relation = _made_rows(node, scope)
    elif isinstance(node, exp.Table):
        relation = _table(node, scope)
    elif isinstance(node, exp.Subquery):
        told = naming(node)
        inner = scope.context.query(told, scope.in_from())
        alias, names = alias_of(told, scope)
        relation = Nested(named_by(inner, names, span(node)) if names else inner, alias, span(node))
    elif isinstance(node, exp.Values):
        alias, names = alias_of(node, scope)
        relation = table(_rows(node, scope), names, alias, span(node))
    else:
        counts = ", which counts from 0" if isinstance(node, exp.Unnest) and node.args.get("offset") else ""
        way_out = f"Write {unnested(node)}{counts}." if isinstance(node, exp.Unnest) else _NAMED_RELATION
        raise Wrong(span(node), f"{node.key.upper()} in FROM", way_out)
    if relation.alias in scope.relations:
        raise Wrong(span(node), f"two relations are named {relation.alias}", "Give one of them another alias: … AS b.")
    columns = untyped(relation, columns_of(relation, scope.context.streams))
    if isinstance(relation, Nested) and passes_on(relation.query):  # `*` leaves out what nobody declared
        columns = tuple(column for column in columns if column[0] not in PASSED)
    scope.relations[relation.alias] = columns
    return relation


def _pivoted(node: exp.Expr, scope: Scope) -> Nested:
    """A relation that PIVOT or UNPIVOT makes of another."""
    pivot, *more = node.args["pivots"]
    beside = node.args.get("joins") or (node.parent_select and node.parent_select.args.get("joins"))
    if more or beside:
        raise Wrong(span(node), "PIVOT beside a join or another one", "Put what it is of into a subquery.")
    if pivot.alias and not pivot.args.get("unpivot"):
        raise Wrong(span(pivot), "PIVOT (…) with an alias", "Write FROM (SELECT * FROM … PIVOT (…)) AS p.")
    source = type(node)(**{name: part for name, part in node.args.items() if name not in ("pivots", "joins")})
    known = columns_of(_from(source, Scope(scope.outside.alone())), scope.context.streams)
    of_stream = isinstance(node, exp.Table) and node.name.lower() in scope.context.streams
    columns = {name: kind for name, kind in known if not (of_stream and name.startswith("kafka_"))}
    made = pivoted(pivot, source, columns)
    inner = scope.context.query(made, scope.in_from().alone())
    if not pivot.args.get("unpivot"):
        refuse_counts(pivot, inner)
    alias, renamed = alias_of(pivot, scope)
    if of_stream:  # to Spark a source has Kafka's columns, too, and would be grouped by them
        own = parsed(f"SELECT {', '.join(map(spark_name, columns))} FROM {spark_name(node.name)}")
        put(node, exp.Subquery(this=own, pivots=[pivot.copy()]))
    if any(map(is_edited, made.expressions)):
        named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(name) for name in renamed])
        put(node, exp.Subquery(this=made, alias=named))  # Spark would pivot by the order of events, too
    return Nested(named_by(inner, renamed, span(node)) if renamed else inner, alias, span(node))


def _rows(node: exp.Values, scope: Scope) -> list[list[Expr]]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    for value in (value for row in rows for value in row):
        if isinstance(value, exp.Alias):
            raise Wrong(span(value), "a name after a value of VALUES", "Write VALUES (1), (2) AS numbers(n).")
    return [[expression(value, Scope(Outside(scope.context))) for value in row] for row in rows]


def _made_rows(node: exp.Table, scope: Scope) -> Constants:
    """FROM range(24), and FROM explode(array(1, 2)) AS t(n)."""
    name, place = node.this.name.lower(), span(node.this)
    if name in WINDOWED:
        raise Wrong(place, f"{name}() in FROM", "Write FROM s GROUP BY window(ts, '15 minutes').")
    given = [expression(each, Scope(Outside(scope.context))) for each in node.this.expressions]
    alias, names = alias_of(node, scope)
    if name == "explode" and len(given) == 1:
        return table([[each] for each in elements(given[0], place)], names or ["col"], alias, place)
    if name != "range" or not 1 <= len(given) <= 3:
        of_times = any(each.type.name in CALENDAR or each.type == INTERVAL for each in given)
        series = _DAYS if of_times else "Write FROM range(1, 11) AS t(n), whose end is not among its rows."
        raise Wrong(place, f"{name}() in FROM", series if name in _SERIES else _NAMED_RELATION)
    ends = [int(each.value) for each in given if isinstance(each, Constant) and each.type.integral and each.value]
    if len(ends) < len(given) or not 0 < len(found := range(*ends)) <= MOST_ELEMENTS:
        raise Wrong(place, "range() of no rows, or of too many", "Write it as range(0, 24).")
    return table([[Constant(str(each), BIGINT)] for each in found], names or ["id"], alias, place)


def _table(node: exp.Table, scope: Scope) -> Stream | Read | Nested:
    if node.args.get("version"):
        way_out = f"Write FROM orders AS o JOIN {node.name} FOR SYSTEM_TIME AS OF o.ts AS {node.name[:1]} ON …."
        raise Wrong(span(node), "FOR SYSTEM_TIME AS OF where nothing is joined", way_out)
    if node.args.get("sample"):
        raise Wrong(span(node), "TABLESAMPLE is not served", "Write WHERE pmod(hash(id), 10) = 0, for a tenth.")
    name, alias = node.name, (node.alias or node.name).lower()
    names = column_names(node)
    if node.args.get("db"):
        raise Wrong(span(node), f"a schema before {name}", f"Write the name alone: {name}.")
    if name.lower() in scope.ctes:
        inner = scope.ctes[name.lower()]
        return Nested(named_by(inner, names, span(node)) if names else inner, alias, span(node))
    if name.lower() in scope.context.streams:
        if names:
            return _named_anew(node, names, scope)
        scope.streams[alias] = name.lower()
        return Stream(name.lower(), alias, span(node))
    if name.lower() in scope.context.views:
        if (records := _records_of(node, alias, names, scope)) is not None:
            return records
        read = Read(name.lower(), name.lower() if names else alias, scope.context.views[name.lower()], span(node))
        return Nested(named_by(all_of(read), names, span(node)), alias, span(node)) if names else read
    raise Wrong(
        span(node),
        f"no source or view {name}",
        suggestion(name, [n for n in (*scope.context.streams, *scope.context.views, *scope.ctes) if " " not in n]),
    )


def _records_of(node: exp.Table, alias: str, names: list[str], scope: Scope) -> Nested | None:
    """The SELECT over records that a view is, in its place; Spark is told the same."""
    if (declared := scope.context.read_through.get(node.name.lower())) is None:
        return None
    if any(item.alias == PASSED[0] for item in declared.select.expressions):  # a table that says where its records are
        return _in_place_of(node, declared.select.copy(), [*names, *PASSED] if names else [], scope)
    if changes_of(declared.name) in scope.context.streams:  # a table: to Spark, too, its name means its rows
        newest = scope.context.query(declared.select.copy(), Outside(scope.context))
        return Nested(named_by(newest, names, span(node)) if names else newest, alias, span(node))
    select, names = declared.select.copy(), names or [name for name, _ in declared.columns]
    if names and not any(item.is_star for item in select.expressions):
        outputs = zip(select.expressions, names, strict=True)
        select.set("expressions", [named_item(item, name) for item, name in outputs])
        names = []
    return _in_place_of(node, select, names, scope, of_view=True)


def _without_infinities(query: Query, select: exp.Expr) -> Query:
    """The SELECT of a view as others read it: infinities are NULL where a view shows them."""
    select = select.unnest()
    if isinstance(query, Combined):
        left, right = _without_infinities(query.left, select.this), _without_infinities(query.right, select.expression)
        return replace(query, left=left, right=right)
    for output, item in zip(query.outputs, select.expressions, strict=False):
        if output.expression.type.endless:
            guarded(item.unalias(), within_calendar(written(item.unalias()), output.expression.type))
    outputs = (replace(o, expression=finite(e)) if (e := o.expression).type.endless else o for o in query.outputs)
    return replace(query, outputs=tuple(outputs))


def _named_anew(node: exp.Table, names: list[str], scope: Scope) -> Nested:
    """FROM orders AS o(a, b): a stream whose columns have other names; to Spark it has Kafka's columns, too."""
    own = [name for name, _ in scope.context.streams[node.name.lower()] if not name.startswith("kafka_")]
    refuse_other_number(names, len(own), span(node))
    columns = (f"{spark_name(each)} AS {spark_name(name)}" for each, name in zip(own, names, strict=True))
    found = _in_place_of(node, parsed(f"SELECT {', '.join(columns)} FROM {spark_name(node.name)}"), [], scope)
    assert found is not None, "rows of a stream are in order"
    return found


def _in_place_of(
    node: exp.Table, select: exp.Expr, names: list[str], scope: Scope, *, of_view: bool = False
) -> Nested | None:
    """A SELECT over records in the place of a name, where it is one; Spark is told the same."""
    hidden = next((each.name for each in select.find_all(exp.Table) if each.name.lower() in scope.ctes), None)
    if hidden is not None:  # Spark would read the CTE
        raise Wrong(span(node), f"{node.name}, of records of {hidden}, beside a CTE of that name", "Rename the CTE.")
    inner, alias = scope.context.query(select, Outside(scope.context)), (node.alias or node.name).lower()
    inner = _without_infinities(inner, select) if of_view else inner
    if not is_in_order(inner, windows=False):
        return None
    named = named_by(inner, names, span(node)) if names else inner
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=columns)
    put(node, exp.Subquery(this=select, alias=called))
    return Nested(named, alias, span(node))


def _explode(relation: Relation | None, lateral: exp.Lateral, scope: Scope, *, outer: bool = False) -> Relation:
    call_, alias = lateral.this, lateral.args.get("alias")
    place = span(call_)
    if not makes_rows(call_):
        what = f"{call_.name.lower()}() as LATERAL VIEW" if isinstance(call_, exp.Anonymous) else "LATERAL of no call"
        raise Wrong(place, what, instead_of_rows(call_.name))
    name = alias.name.lower() if alias is not None and alias.name else f"q{len(scope.relations) + 1}"
    if name in scope.relations:
        raise Wrong(place, f"two relations are named {name}", "Give one of them another alias.")
    names = column_names(lateral)
    made = generated(call_, names, name, scope)
    made = replace(made, outer=made.outer or outer or bool(lateral.args.get("outer")))
    scope.relations[name] = made.columns
    return with_generator(relation, made)


def _join(left: Relation, join: exp.Join, scope: Scope) -> Relation:
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("method") and not natural:
        way_out = "Write the condition: JOIN … ON …."
        if str(join.args["method"]).upper() == "ASOF":
            way_out = "Write JOIN t FOR SYSTEM_TIME AS OF a.ts AS t ON a.k = t.k, where t has a PRIMARY KEY."
        raise Wrong(span(join), f"{join.args['method']} JOIN", way_out)
    kind = " ".join(str(join.args[k]).upper() for k in ("side", "kind") if join.args.get(k))
    kind = {"": "INNER", "INNER": "INNER", "LEFT OUTER": "LEFT", "RIGHT OUTER": "RIGHT", "FULL OUTER": "FULL"}.get(
        kind, kind
    )
    if kind in JOINS:
        return _semi_join(left, kind, join, scope)
    if kind not in ("INNER", "LEFT", "RIGHT", "FULL", "CROSS") or (scope.semi and kind in ("RIGHT", "FULL")):
        way_out = _OF_JOINS.get(kind, "Write WHERE k IN (SELECT k …), or NOT IN.")
        raise Wrong(span(join), f"{kind.removesuffix('_JOIN')} JOIN", way_out)
    if isinstance(join.this, exp.Lateral):
        return _lateral(left, kind, join, scope)
    before = dict(scope.relations)
    if (versions := versions_of(join, kind, scope)) is not None:
        return _as_of(left, kind, join, *versions, scope)
    right = _from(join.this, scope)
    on: Expr | None = None
    using = common_columns(before, right_alias(right), join, scope) if natural else join.args.get("using")
    if using:
        on = using_condition(kind, using, replace(scope, relations=before), right_alias(right), scope)
    elif join.args.get("on") is not None:
        on = condition(expression(join.args["on"], scope), "ON")
        refuse_aggregates(on, "ON", "Aggregate in a subquery, and join that.")
        refuse_in_join(on, before)
    elif kind in ("LEFT", "RIGHT", "FULL") and not natural:
        on = TRUE
    if kind == "INNER" and isinstance(on, Constant) and on.value == "true":
        on = None
    if kind in ("INNER", "CROSS"):  # CROSS JOIN … ON is an inner join
        kind = "CROSS" if on is None else "INNER"
    kind_ = typed(Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"], kind)
    return joined(Joined(left, right, kind_, on, span(join)))


_OF_JOINS = {"OUTER": "Write LEFT, RIGHT or FULL JOIN.", "STRAIGHT_JOIN": "Write JOIN."}


def _as_of(left: Relation, kind: str, join: exp.Join, versions: exp.Subquery, holds: exp.Expr, scope: Scope) -> Joined:
    """A join with the versions that held at a time; Spark is told the same."""
    before = dict(scope.relations)
    time = join.this.args["version"].expression
    asked = expression(time.copy(), scope)
    refuse_aggregates(asked, "FOR SYSTEM_TIME AS OF", "Aggregate in a subquery, and join from that.")
    if asked.type.numeric or asked.type.nested or asked.type.name == "BOOLEAN":
        raise Wrong(span(time), f"FOR SYSTEM_TIME AS OF {asked.type}, which is not a time", A_TIME)
    right, both_hold = _named(versions, scope), exp.and_(join.args["on"].copy(), holds)
    on = condition(expression(both_hold, scope), "ON")
    refuse_aggregates(on, "ON", "Aggregate in a subquery, and join that.")
    refuse_in_join(on, before)
    put(join.this, versions)
    put(join.args["on"], both_hold)
    alias = right_alias(right)
    scope.relations[alias] = tuple(column for column in scope.relations[alias] if column[0] not in HOLDS)
    return Joined(left, right, "LEFT" if kind == "LEFT" else "INNER", on, span(join))


def _lateral(left: Relation, kind: str, join: exp.Join, scope: Scope) -> Relation:
    """`FROM a, LATERAL explode(x) AS t(c)` is LATERAL VIEW, and OUTER where the join keeps its left side; or a
    subquery about each row of the left side.
    """
    on, always = join.args.get("on"), exp.true()
    if kind in ("RIGHT", "FULL") or join.args.get("using"):
        raise Wrong(span(join), f"LATERAL in a {kind} JOIN", "Put the condition into WHERE.")
    of_rows = isinstance(join.this.this, exp.Subquery)
    if kind == "LEFT" and on is None and not of_rows:
        what = "LEFT JOIN LATERAL without ON, where Spark leaves out the rows of which nothing is made"
        raise Wrong(span(join), what, "Write LEFT JOIN LATERAL … ON true, or CROSS JOIN LATERAL ….")
    if kind == "LEFT" and on not in (None, always):
        way_out = "Write ON true, and the condition into the subquery's WHERE." if of_rows else _FILTERED
        raise Wrong(span(join), "LEFT JOIN LATERAL on another condition than true", way_out)
    if of_rows:
        if on not in (None, always):
            raise Wrong(span(join), "LATERAL (SELECT …) with a condition", "Put the condition into WHERE.")
        right = _about_rows(join.this, scope)
        return Joined(left, right, "LEFT" if kind == "LEFT" else "CROSS", None, span(join))
    made = _explode(left, join.this, scope, outer=kind == "LEFT")
    if on not in (None, always):
        scope.semi.append(condition(expression(on, scope), "ON"))
    return made


def _about_rows(node: exp.Lateral, scope: Scope) -> Nested:
    """A subquery in FROM that may name columns of the relations before it: in WHERE, and among its columns."""
    place = span(node)
    inner = scope.context.query(node.this, replace(scope, relations=dict(scope.relations), lateral=True).subquery())
    alias, names = alias_of(node, scope)
    if alias in scope.relations:
        raise Wrong(place, f"two relations are named {alias}", "Give one of them another alias.")
    made = named_by(inner, names, place) if names else inner
    nested = Nested(made, alias, place, lateral=True)
    scope.relations[alias] = untyped(nested, made.columns)
    return nested


def _semi_join(left: Relation, kind: str, join: exp.Join, scope: Scope) -> Relation:
    """The left side, and in `scope` the condition that there is, or is not, a row on the right."""
    place, inner = span(join), Scope(scope.outside.alone())
    right = _from(join.this, inner)
    if inner.relations.keys() & (scope.relations.keys() | set(OWN_ALIASES)):
        raise Wrong(place, f"two relations are named {right_alias(right)}", "Give one of them another alias.")
    on: Expr | None = None
    if join.args.get("on") is not None:
        within = replace(scope, relations={**scope.relations, **inner.relations})
        on = condition(expression(join.args["on"], within), "ON")
    for column in join.args.get("using") or []:
        at = span(column)
        of_right = find([right_alias(right), column.name], inner.relations, at)
        on = both(on, compare("=", find([column.name], scope.relations, at), of_right, at))
    if on is None:
        raise Wrong(place, f"{kind} JOIN without ON", "Write the condition: ON a.k = b.k.")
    refuse_aggregates(on, "ON", "Aggregate in a subquery, and join that.")
    refuse_windows_in_join(on)
    scope.semi.append(semi_join(kind, right, inner.relations, on, place))
    return left


def in_parentheses(node: exp.Expr) -> bool:
    """Is it a relation in parentheses, as `(a JOIN b ON …)`, and no query?"""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Subquery):
        parts = ("joins", "pivots", "laterals") if node.alias else ("joins", "pivots", "laterals", "alias")
        return any(inner.args.get(part) for part in parts)
    return isinstance(inner, exp.Table)


def _is_plain(node: exp.Expr, scope: Scope) -> bool:
    """Does it mean without its parentheses what it means with them?"""
    if not in_parentheses(node) or node.alias or node.args.get("pivots"):
        return False
    return not (node.this.args.get("pivots") or (scope.relations and node.this.args.get("joins")))
