"""From the author's syntax to typed queries: every name found, every type known, `*` spelled out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import cast as typed

from sqlglot import exp

from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    Generator,
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
)
from view_algebra.language.fields import member
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.meeting import cast, meet
from view_algebra.language.operators import condition
from view_algebra.language.quoting import spark_name, words
from view_algebra.language.relations import has_joins, relations_in
from view_algebra.language.time_windows import bounds, hops, is_session, refuse_windows_together, window_key
from view_algebra.language.types import STRING, TIMESTAMP, VOID, WINDOW, Type, inside
from view_algebra.language.walks import above_group, is_made_of_bytes, rewrite, rewritten, walk, walk_all
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.calls import TIME_WINDOWS, in_a_window, refuse_aggregates, refuse_windowed
from view_algebra.typed.correlated import (
    refuse_elsewhere,
    refuse_groupings,
    refuse_in_outer_joins,
)
from view_algebra.typed.determinism import by_rows
from view_algebra.typed.events import of_events, passed
from view_algebra.typed.groupings import (
    SOME,
    Sets,
    exploded_groups,
    keys_of,
    leaves_of,
    over_sets,
    refuse_inside_groups,
    sets_of,
)
from view_algebra.typed.names import Outside, Scope, find, given_once, parts_of, refuse_alike
from view_algebra.typed.orders import position, sort_keys
from view_algebra.typed.passing import has_windows, is_of_records, is_projection, passing_on
from view_algebra.typed.relations import (
    AS_A_SUBQUERY,
    from_clause,
    generated,
    in_parentheses,
    makes_rows,
    named_by,
    with_generator,
)
from view_algebra.typed.scalars import expression, names_an_output
from view_algebra.typed.ties import inherited, settled, settled_set
from view_algebra.written.dialect import qualifying, without_qualify, write_windows_out
from view_algebra.written.oracle import put, spell_columns, written


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
            inner = query(cte.this, outside.alone())
            names = [c.name for c in (cte.args["alias"].args.get("columns") or [])]
            known[name] = named_by(inner, names, span(cte)) if names else inner
    if isinstance(node, exp.Subquery):
        if in_parentheses(node):
            raise Wrong(span(node), "a relation in parentheses", AS_A_SUBQUERY)
        return _modified(query(node.this, outside), node, outside)
    if isinstance(node, exp.SetOperation):
        return _combined(node, outside)
    if isinstance(node, exp.Select):
        return _qualified(node, outside.alone()) if node.args.get("qualify") else _block(node, Scope(outside))
    raise Wrong(span(node), f"{node.key.upper()} is not a query", "Write a SELECT.")


def _combined(node: exp.SetOperation, outside: Outside) -> Query:
    left, right = (query(side, outside.of_a_part()) for side in (node.this, node.expression))
    place = span(node.expression)
    if len(left.columns) != len(right.columns):
        raise Wrong(
            place,
            f"{node.key.upper()} of {len(left.columns)} and {len(right.columns)} columns",
            "Give both sides the same columns.",
        )
    if node.args.get("by_name"):
        raise Wrong(place, f"{node.key.upper()} BY NAME", "Put the columns in the same order on both sides.")
    sides = zip(_kinds(left), _kinds(right), strict=True)
    met = [meet((Constant("", a), Constant("", b)), place, node.key.upper(), texts=True) for a, b in sides]
    kinds = [column[0].type for column in met]
    kinds = [STRING if kind == VOID else kind for kind in kinds]
    left, right = _cast_outputs(left, kinds), _cast_outputs(right, kinds)
    operator = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
    if not node.args.get("distinct", True):
        operator += " ALL"
    if not operator.endswith("ALL") and any(kind.nested and kind != WINDOW for kind in kinds):
        raise Wrong(place, f"{operator} of nested values", f"Take to_json(…) of them, or {operator} ALL.")
    if not operator.endswith("ALL") and any(kind.session for kind in _kinds(left) + _kinds(right)):
        raise Wrong(place, f"{operator} of sessions", _OVERLAPPING)
    combined = Combined(operator, left, right, left.columns, place=span(node))
    return _modified(combined, node, outside)


def _modified(query: Query, node: exp.Expr, outside: Outside) -> Query:
    """ORDER BY and LIMIT after a set operation or around a query in parentheses."""
    if not node.args.get("order") and not node.args.get("limit") and not node.args.get("offset"):
        return query
    scope = Scope(outside.alone(), {"": query.columns})
    order = tuple(sort_keys(node, scope, query.columns))
    for key in order:
        way_out = "Put the set operation into a subquery in FROM, and compute and order around it."
        refuse_aggregates(key.expression, "ORDER BY of a set operation", way_out)
    limit, offset = _limit(node)
    if isinstance(query, Combined):
        _refuse_windows(order, node)
    if query.order or query.limit is not None:
        raise Wrong(span(node), "ORDER BY or LIMIT twice", "Put the inner query into a subquery in FROM.")
    place = span(node.args.get("limit") or node)
    query = replace(query, order=order, limit=limit, offset=offset, limit_place=place)
    return settled_set(query, node) if isinstance(query, Combined) else query


def _qualified(node: exp.Select, outside: Outside) -> Query:
    """QUALIFY filters the rows of a block by its window functions, before DISTINCT, ORDER BY and LIMIT."""
    place = span(node.args["qualify"])
    names = [name for name, _ in _block(qualifying(node), Scope(outside)).columns[:-1]]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise Wrong(place, "QUALIFY over columns without names of their own", "Write … AS name.")
    block = without_qualify(node, names)
    put(node, block)
    return query(block, outside)


def _block(node: exp.Select, scope: Scope) -> Select:
    """One SELECT, clause by clause in the order in which SQL gives them meaning."""
    relation, filtered = _from_where(node, scope)
    outputs, group, sets, having = _select_group_having(node, scope)
    order = tuple(sort_keys(node, scope, tuple((o.name, o.expression.type) for o in outputs), outputs))
    if distinct := _is_distinct(node, outputs):
        _refuse_windows(order, node)
    limit, offset = _limit(node)
    above = [o.expression for o in outputs] + [o.expression for o in order]
    above += [made.argument for made in scope.generators]
    if group is None and (having is not None or any(isinstance(e, Aggregate) for e in walk_all(above, None))):
        group = ()
    over = [Output("", each) for o in outputs for each in walk(o.expression) if isinstance(each, Windowed)]
    _refuse_outer(outputs if group is not None or not scope.above else over)
    for made in scope.generators if group is None else ():
        relation = with_generator(relation, made)
    refuse_windows_together([*(group or ()), *(o.expression for o in outputs)])
    refuse_windows_together([] if filtered is None else [filtered])
    in_windows = walk_all([*(group or ()), *(o.expression for o in outputs)], filtered)
    for known in dict.fromkeys(c for e in in_windows if isinstance(e, Call) and (c := in_a_window(e)) is not None):
        filtered = both(filtered, known)
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
    return _completed(_in_every_window(block), node, scope, outputs, sets)


def _from_where(node: exp.Select, scope: Scope) -> tuple[Relation | None, Expr | None]:
    """FROM and WHERE: what the block reads, and which rows of it; the scope knows both from then on."""
    write_windows_out(node)
    relation = from_clause(node, scope)
    if isinstance(relation, Nested) and isinstance(relation.query, Select):
        scope.records = relation.query if is_projection(relation.query) else None
        scope.rows = relation.query if is_of_records(relation.query) else None
    refuse_in_outer_joins(relation, span(node))
    scope.above = not _reads_records(relation)
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
    scope.windows = _windows_of(node, scope)
    scope.outer = around if around is not None and around.lateral else None
    outputs = _outputs(node, scope)
    scope.outer = None
    group, sets = (None, None) if group_node is None else _groups(group_node, scope, outputs)
    _refuse_names_of_names(node)
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
    grouped = {} if node.args.get("group") is None else _written_keys(node, scope, outputs)
    refuse_elsewhere(block)
    refuse_inside_groups(block)
    _refuse_unsorted(block, node)
    if scope.generators and block.group is not None:
        block, grouped = _exploded_groups(block, scope, sets), {}
    block = _settled(block, node, scope, grouped, sets)
    if sets is not None:
        refuse_groupings(block)
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
    if scope.passed is not None and isinstance(block.relation, Nested):
        block = replace(block, relation=replace(block.relation, query=scope.passed))
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
    if block.group is None and (block.limit is not None or any(by_rows(call_) for call_, _ in scope.windowed)):
        passed(scope)
        if scope.passed is None and scope.rows is not None:
            scope.passed = passing_on(scope.rows, partial(of_events, context=scope.context))
    if scope.passed is not None and isinstance(block.relation, Nested):
        block = replace(block, relation=replace(block.relation, query=scope.passed))
    return settled(block, node, scope.windowed, grouped, scope.context.keys, sets)


def _outputs(node: exp.Select, scope: Scope) -> list[Output]:
    outputs: list[Output] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else None
        qualifier = ""
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            star, qualifier = item.this, item.table.lower()
        if star is not None and qualifier and qualifier not in scope.relations:
            outputs += _fields(typed(exp.Column, item), scope)
            continue
        if star is not None:
            outputs += _star(star, qualifier, scope)
            continue
        inner = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
        if makes_rows(inner):
            outputs += _exploded(inner, item, scope)
            continue
        given = expression(inner, scope)
        name = item.alias if isinstance(item, exp.Alias) else _natural_name(item)
        if any(kind.length for kind in inside(given.type)) and given.type not in LENGTHS:
            raise Wrong(span(item), "the column is an interval", "Subtract unix_timestamp() of both times instead.")
        if given.type == VOID:
            given = cast(given, STRING, implicit=True)
        outputs.append(Output(name, given))
        if isinstance(item, exp.Alias):
            scope.unclear |= {name.lower()} & scope.aliases.keys()
            scope.aliases.setdefault(name.lower(), given)
    scope.unclear |= _unclear(outputs)
    return outputs


def _exploded(node: exp.Expr, item: exp.Expr, scope: Scope) -> list[Output]:
    """The columns of `SELECT explode(x) AS element`."""
    place = span(node)
    if scope.generators:
        way_out = "Write LATERAL VIEW explode(tags) t AS tag."
        raise Wrong(place, f"{node.name.lower()}() among columns, beside another", way_out)
    names = [each.name for each in item.args["expressions"]] if isinstance(item, exp.Aliases) else []
    names = [item.alias] if isinstance(item, exp.Alias) else names
    made = generated(node, names, f"q{len(scope.relations) + 1}", scope)
    scope.generators.append(made)
    found = [Output(name, Field(made.alias, (name,), kind, place=place)) for name, kind in made.columns]
    for output in found if names else ():
        scope.aliases.setdefault(output.name.lower(), output.expression)
    return found


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[Output]:
    if not scope.relations:
        raise Wrong(span(star), "* of nothing", "Name a source or a view in FROM.")
    left_out = _left_out(star, {name.lower() for columns in scope.relations.values() for name, _ in columns})
    for alias, columns in scope.relations.items():
        if not qualifier or alias == qualifier:
            refuse_alike(columns, span(star))
    found = [
        Field(alias, (name,), kind, place=span(star))
        for alias, columns in scope.relations.items()
        if not qualifier or alias == qualifier
        for name, kind in columns
        if not (alias in scope.streams and name.startswith("kafka_")) and name.lower() not in left_out
    ]
    names = () if qualifier else [name for name in scope.using if name not in left_out]
    shared = {name: e for name in names if (e := given_once(name, scope, span(star))) is not None}
    if not qualifier:
        found = [field for field in found if (field.relation, field.path[0].lower()) not in scope.merged]
    own = [f"{spark_name(field.relation)}.{spark_name(field.path[0])}" for field in found]
    spell_columns(star, [*map(spark_name, shared), *own])
    once = [Output(next(f.path[0] for f in walk(e) if isinstance(f, Field)), e) for e in shared.values()]
    nulls = Constant(None, STRING, span(star))
    return [*once, *(Output(f.path[0], nulls if f.type == VOID else f) for f in found)]


def _groups(node: exp.Group, scope: Scope, outputs: list[Output]) -> tuple[tuple[Expr, ...], Sets | None]:
    """The columns of GROUP BY, and its groupings where it has several."""
    every = node.args.get("all")
    if every is False or (every and node.expressions):
        raise Wrong(span(node), "GROUP BY DISTINCT, or ALL beside columns", "Write GROUP BY a, b.")
    key = partial(_key, scope=scope, outputs=outputs)
    sets = sets_of(node, key)
    return (_group(node, scope, outputs) if sets is None else keys_of(node, key)), sets


def _group(node: exp.Group, scope: Scope, outputs: list[Output]) -> tuple[Expr, ...]:
    if node.args.get("all"):
        if any(name.lower() == "all" for columns in scope.relations.values() for name, _ in columns):
            raise Wrong(span(node), "GROUP BY ALL, where a column is named all", "Write GROUP BY `all`, or name them.")
        every = [
            window_key(o.expression) for o in outputs if not any(isinstance(e, Aggregate) for e in walk(o.expression))
        ]
        return tuple(dict.fromkeys(every))
    keys = [key for item in node.expressions if (key := _key(item, scope, outputs)) is not None]
    return tuple(dict.fromkeys(keys))


def _key(item: exp.Expr, scope: Scope, outputs: list[Output]) -> Expr | None:
    """A column of GROUP BY; None for one that is the same for every row."""
    if (number := position(item)) is not None:
        if not 1 <= number <= len(outputs):
            raise Wrong(span(item), f"GROUP BY {number}: there are {len(outputs)} columns", "Count from 1.")
        key = window_key(outputs[number - 1].expression)
    elif isinstance(item, exp.Tuple):
        raise _no_column(item)
    else:
        key = window_key(expression(item, scope))
    if key.type == WINDOW and isinstance(key, Field) and not scope.above:
        key = member(key, "start", key.place)
    refuse_aggregates(key, "GROUP BY", "Aggregate in a subquery, and group its result.")
    if key.type.nested and not (key.type == WINDOW and scope.above):
        raise Wrong(span(item), f"a group key of type {key.type}", "Group by its fields, or by to_json(…).")
    if key.type.session:
        raise Wrong(span(item), "GROUP BY the sessions of a subquery", _OVERLAPPING)
    if any(is_made_of_bytes(e) for e in walk(key)):
        raise Wrong(span(item), "a group key made of bytes that may be no text", "Group by hex(…).")
    if key.type.name == "BINARY":
        raise Wrong(span(item), "a group key of type BINARY", "Group by hex(…).")
    return None if isinstance(key, Constant) else key


def _written_keys(node: exp.Select, scope: Scope, outputs: list[Output]) -> dict[Expr, str]:
    """How Spark SQL has the columns of GROUP BY elsewhere in the block."""
    found: dict[Expr, str] = {}
    for item in leaves_of(typed(exp.Group, node.args["group"])):
        key, meant = _key(item, scope, outputs), _meant(item, node)
        if key is not None and (window := _time_window(meant)) is not None:
            found[bounds(key)[0] if is_session(key) else key] = f"{window.name.lower()}.start"
        elif key is not None and meant is not None:
            found[key] = written(meant)
    return found


def _windows_of(node: exp.Select, scope: Scope) -> dict[str, Expr]:
    """The window that GROUP BY names, which `window.start` means in the same block."""
    group = node.args.get("group")
    items = [] if group is None else [*group.expressions, *group.find_all(exp.Anonymous)]
    windows = [window for item in items if (window := _time_window(_meant(item, node))) is not None]
    found = {expression(window, scope): window for window in windows}
    if len(found) > 1:
        raise Wrong(span([*found.values()][-1]), "two windows in one GROUP BY", "Group by one of them.")
    return {window.name.lower(): key for key, window in found.items()}


def _unclear(outputs: Sequence[Output]) -> set[str]:
    """The names of several outputs that are not one column of that name, written twice."""
    meant: dict[str, Expr] = {}
    found: set[str] = set()
    for name, given in ((output.name.lower(), output.expression) for output in outputs):
        own = isinstance(given, Field) and [part.lower() for part in given.path] == [name]
        if name in meant and not (own and meant[name] == given):
            found.add(name)
        meant.setdefault(name, given)
    return found


def _refuse_outer(outputs: Sequence[Output]) -> None:
    """Refuses columns of what stands before LATERAL among the outputs of records or groups."""
    for part in (part for output in outputs for part in walk(output.expression)):
        if isinstance(part, Field) and part.outer:
            way_out = f"Compute with it outside: SELECT {part.relation}.{part.path[0]} + l.x FROM …, LATERAL (…) AS l."
            raise Wrong(part.place, "a column of what stands before LATERAL, of each record or group", way_out)


def _refuse_windows(order: Sequence[Order], node: exp.Expr) -> None:
    """Refuses windows in an ORDER BY that can name outputs alone, and no bounds of them."""
    if any(o.expression.type == WINDOW for o in order):
        way_out = "Put the query into a subquery in FROM, and order around it."
        raise Wrong(span(node.args["order"]), "ORDER BY a window after DISTINCT or a set operation", way_out)


def _refuse_unsorted(block: Select, node: exp.Select) -> None:
    """Refuses in ORDER BY what Spark computes among the columns alone: there it fails, or shows one more column."""
    shown = [output.expression for output in block.outputs]
    for key, item in zip(block.order, node.args["order"].expressions if node.args.get("order") else (), strict=False):
        about_a_row = any(isinstance(part, Subquery) and part.correlated for part in walk(key.expression))
        if key.expression in shown and not about_a_row:
            continue
        found = {
            "a subquery about a row": about_a_row and item.find(exp.Select) is not None,
            "a function OVER (…)": item.find(exp.Window) is not None,
            "EXISTS (…)": item.find(exp.Exists) is not None,
            "IN (SELECT …)": any(each.args.get("query") for each in item.find_all(exp.In)),
            "window()": block.group is None
            and any(c.name.lower() in TIME_WINDOWS for c in item.find_all(exp.Anonymous)),
        }
        if what := next((name for name, is_there in found.items() if is_there), None):
            way_out = "Put it among the columns of a subquery in FROM, and order by its name."
            raise Wrong(span(item), f"{what} in ORDER BY, where Spark takes none", way_out)


def _left_out(star: exp.Star, columns: Collection[str]) -> set[str]:
    """The columns that `* EXCEPT (…)` leaves out."""
    found: set[str] = set()
    for column in star.args.get("except_") or star.args.get("except") or []:
        name = ".".join(parts_of(column)).lower() if isinstance(column, (exp.Column, exp.Dot)) else column.name.lower()
        if name not in columns or name in found:
            raise Wrong(span(column), f"EXCEPT ({name}): no column of this name", suggestion(name, [*columns]))
        found.add(name)
    return found


def _fields(item: exp.Column, scope: Scope) -> list[Output]:
    """The fields of the struct, or the bounds of the window, of `column.*`."""
    names, place = [part.name for part in item.parts[:-1]], span(item.parts[-2])
    if names[0].lower() in scope.windows:
        raise Wrong(place, f"{names[0]}.*, which Spark does not know", "Write window.start, window.end.")
    if not any(name.lower() == names[0].lower() for columns in scope.relations.values() for name, _ in columns):
        raise Wrong(place, f"no relation {names[0]}", suggestion(names[0], scope.relations))
    struct = find(names, scope.relations, place)
    if not struct.type.fields or item.this.args.get("except_") or item.this.args.get("except"):
        raise Wrong(place, f"{'.'.join(names)}.* of {struct.type}", "Name the fields.")
    return [Output(name, member(struct, name, place)) for name, _ in struct.type.fields]


def _meant(item: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """What a column of GROUP BY is, where a number or an alias stands for it; None where `*` hides that."""
    named = {each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)}
    if isinstance(item, exp.Literal):
        columns = [] if any(each.is_star for each in node.expressions) else node.expressions
        return next((each.unalias() for n, each in enumerate(columns, 1) if item.name == str(n)), None)
    simple = isinstance(item, exp.Column) and not item.table
    return named.get(item.name.lower(), item) if simple else item


def _refuse_names_of_names(node: exp.Select) -> None:
    """Spark knows no outputs in GROUP BY that name other ones."""
    group = node.args.get("group")
    items = [] if group is None else [_meant(item, node) for item in group.expressions]
    for item in node.expressions if group is not None and group.args.get("all") else items:
        if item is not None and names_an_output(item):
            what = "a column of GROUP BY, or beside GROUP BY ALL, that names another one"
            raise Wrong(span(item), what, "Write out what the name stands for, or put it into a subquery.")


def _no_column(item: exp.Tuple) -> Wrong:
    """The refusal of columns of GROUP BY in parentheses, or of none."""
    if item.expressions:
        return Wrong(span(item), "columns of GROUP BY in parentheses", "Write them without: GROUP BY a, b.")
    alone = len(typed(exp.Group, item.find_ancestor(exp.Group)).expressions) == 1
    place = span(item.find_ancestor(exp.Select) or item)
    return Wrong(place, "GROUP BY ()", "Leave GROUP BY out." if alone else "Leave () out.")


def _time_window(node: exp.Expr | None) -> exp.Anonymous | None:
    """The call of window() or session_window() that an expression is, or is a bound of."""
    call_ = node.this if isinstance(node, exp.Dot) else node
    return call_ if isinstance(call_, exp.Anonymous) and call_.name.lower() in TIME_WINDOWS else None


def _reads_records(relation: Relation | None) -> bool:
    """Are rows of a relation records, or made of some without an aggregation or a join between?"""
    return not has_joins(relation) and any(
        isinstance(each, Stream) or (isinstance(each, Nested) and _gives_records(each.query))
        for each in relations_in(relation)
    )


def _gives_records(query: Query) -> bool:
    if not isinstance(query, Select) or query.group is not None or query.distinct:
        return False
    every = query.limit is None and query.offset is None
    return every and not has_windows(query) and _reads_records(query.relation)


def _is_distinct(node: exp.Select, outputs: Sequence[Output]) -> bool:
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Wrong(span(node), "DISTINCT ON", "Use row_number() OVER (PARTITION BY … ORDER BY …) = 1.")
    kinds = {o.expression: o.expression.type for o in outputs}
    nested = next((e for e, kind in kinds.items() if kind.nested and kind != WINDOW), None)
    if distinct is not None and nested is not None:
        way_out = "Leave it out, or take to_json(…) of it."
        raise Wrong(nested.place or span(node), f"SELECT DISTINCT of a column of type {nested.type}", way_out)
    session = next((e for e, kind in kinds.items() if kind.session), None)
    if distinct is not None and session is not None:
        raise Wrong(session.place or span(node), "SELECT DISTINCT of sessions", _OVERLAPPING)
    return distinct is not None


_OVERLAPPING = "Spark would make those that overlap one: take their start and end, as session.start and session.end."


def _in_every_window(block: Select) -> Select:
    """A record once for each hopping window that it is in, where a block gives records, or joins them."""
    asked = (*above_group(block), *(block.group or ()))
    found = dict.fromkeys(e for x in asked for e in walk(x) if isinstance(e, Call) and hops(e))
    if not found or ((block.group is not None or block.distinct) and not has_joins(block.relation)):
        return block
    window, *more = found
    if more:
        raise Wrong(more[0].place, "two hopping windows of one record", "Select one of them.")
    starts = Call("hops", window.arguments, Type("ARRAY", element=TIMESTAMP), place=window.place)
    made = Generator(starts, (("start", TIMESTAMP),), False, False, _EVERY_WINDOW, window.place)

    def start(expression: Expr) -> Expr | None:
        return Field(_EVERY_WINDOW, ("start",), TIMESTAMP, place=expression.place) if expression == window else None

    return replace(
        rewritten(replace(block, where=None), start), relation=with_generator(block.relation, made), where=block.where
    )


_EVERY_WINDOW = "every window"
"""An alias that no author can give."""


def _natural_name(item: exp.Expr) -> str:
    """The name of an output without an alias; empty where the author must give one."""
    if isinstance(item, exp.Paren):
        return _natural_name(item.this)
    if isinstance(item, exp.Column):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    if isinstance(item, exp.Anonymous) and item.name.lower() in TIME_WINDOWS:
        return str(item.name.lower())
    if isinstance(item, exp.Anonymous) and item.name.lower() in _NAMED_BY_SPARK and len(item.expressions) == 1:
        distinct = isinstance(item.expressions[0], exp.Distinct)
        arguments = item.expressions[0].expressions if distinct else item.expressions
        texts = ["1" if isinstance(a, exp.Star) else a.name for a in arguments]
        if all(isinstance(a, exp.Star) or (isinstance(a, exp.Column) and len(a.parts) == 1) for a in arguments):
            return f"{item.name.lower()}({'DISTINCT ' if distinct else ''}{', '.join(texts)})"
    return ""


_NAMED_BY_SPARK = words(
    "count sum min max avg mean count_if stddev std variance var_pop first last first_value any_value median mode every"
    " bool_or collect_list collect_set approx_count_distinct year quarter month day dayofweek hour to_date upper length"
)
"""Calls that have a name of their own, of a column alone: Spark names others, too, by all that is in them."""


def _limit(node: exp.Expr) -> tuple[int | None, int | None]:
    numbers: list[int | None] = []
    for name in ("limit", "offset"):
        clause = node.args.get(name)
        value = clause.expression if clause is not None else None
        if isinstance(value, exp.Var) and value.name.upper() == "ALL" and name == "limit":
            value = None
        number = None if value is None else _whole(value)
        if clause is not None and value is not None and not 0 <= (-1 if number is None else number) < 2**31:
            raise Wrong(span(clause), f"{name.upper()} takes a number", f"Write {name.upper()} 10.")
        numbers.append(number)
    return numbers[0], numbers[1]


_COMPUTED: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: int.__add__,
    exp.Sub: int.__sub__,
    exp.Mul: int.__mul__,
}


def _whole(node: exp.Expr) -> int | None:
    """The whole number that is written as one, or as what makes one; None for anything else."""
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    if type(node) in _COMPUTED:
        left, right = _whole(node.this), _whole(node.expression)
        return None if left is None or right is None else _COMPUTED[type(node)](left, right)
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


def _kinds(query: Query) -> list[Type]:
    """The types of a query's columns; one of NULLs alone takes any."""
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
