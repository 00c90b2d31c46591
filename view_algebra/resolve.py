"""From the author's syntax to typed queries: every name found, every type known, `*` spelled out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from typing import Literal as Choice
from typing import cast as typed

from sqlglot import exp

from view_algebra.aggregates import (
    AGGREGATES,
    NO_PARTIAL,
    REWRITES,
    SYNONYMS,
    known_aggregate,
)
from view_algebra.dialect import span
from view_algebra.expressions import (
    Aggregate,
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    Joined,
    Nested,
    Order,
    Output,
    Place,
    Query,
    Read,
    Relation,
    Select,
    Stream,
    Subquery,
    Windowed,
    walk,
)
from view_algebra.functions import NON_DETERMINISTIC, WINDOW_FUNCTIONS
from view_algebra.operators import calculate, call, case, cast, compare, condition, meet, negative, number
from view_algebra.refusals import Wrong, suggestion
from view_algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    WINDOW,
    Type,
    read,
)

Columns = tuple[tuple[str, Type], ...]

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}

_INTERVALS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
"""Microseconds of a unit of time; months and years have no fixed length."""

LONGEST_SHIFT = 9_999
"""Years by which a time may be moved; Spark raises where the result leaves its own calendar."""


@dataclass
class Scope:
    """What names mean inside one SELECT block."""

    relations: dict[str, Columns] = field(default_factory=dict)
    aliases: dict[str, Expr] = field(default_factory=dict)
    window: Expr | None = None
    ctes: Mapping[str, Query] = field(default_factory=dict)


@dataclass
class Resolver:
    """Resolves the queries of one catalog: `streams` and `views` by name, with the columns they give."""

    streams: Mapping[str, Columns]
    views: Mapping[str, Columns]
    tables: frozenset[str] = frozenset()

    def query(self, node: exp.Expr, ctes: Mapping[str, Query] | None = None) -> Query:
        """A query, its CTEs inlined where they are named."""
        known = dict(ctes or {})
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise Wrong(span(with_), "WITH RECURSIVE", "Write the levels out as joins.")
            for cte in with_.expressions:
                inner = self.query(cte.this, known)
                names = [c.name for c in (cte.args["alias"].args.get("columns") or [])]
                known[cte.alias.lower()] = _renamed(inner, names, span(cte)) if names else inner
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, known)
            return self._modified(inner, node, known)
        if isinstance(node, exp.SetOperation):
            return self._combined(node, known)
        if isinstance(node, exp.Select):
            return self._select(node, known)
        raise Wrong(span(node), f"{node.key.upper()} is not a query", "Write a SELECT.")

    def _combined(self, node: exp.SetOperation, ctes: Mapping[str, Query]) -> Query:
        left, right = self.query(node.this, ctes), self.query(node.expression, ctes)
        place = span(node.expression)
        if len(left.columns) != len(right.columns):
            raise Wrong(
                place,
                f"{node.key.upper()} of {len(left.columns)} and {len(right.columns)} columns",
                "Give both sides the same columns.",
            )
        if node.args.get("by_name"):
            raise Wrong(place, f"{node.key.upper()} BY NAME", "Put the columns in the same order on both sides.")
        kinds = [
            meet((Constant("", a), Constant("", b)), place, node.key.upper())[0].type
            for (_, a), (_, b) in zip(left.columns, right.columns, strict=True)
        ]
        left, right = _cast_outputs(left, kinds), _cast_outputs(right, kinds)
        operator = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
        if not node.args.get("distinct", True):
            operator += " ALL"
        combined = Combined(operator, left, right, left.columns, place=span(node))
        return self._modified(combined, node, ctes)

    def _modified(self, query: Query, node: exp.Expr, ctes: Mapping[str, Query]) -> Query:
        """ORDER BY and LIMIT after a set operation or around a query in parentheses."""
        if not node.args.get("order") and not node.args.get("limit") and not node.args.get("offset"):
            return query
        scope = Scope({"": query.columns}, ctes=ctes)
        order = tuple(self._order(node, scope, query.columns))
        limit, offset = _limit(node)
        if query.order or query.limit is not None:
            raise Wrong(span(node), "ORDER BY or LIMIT twice", "Put the inner query into a subquery in FROM.")
        return replace(query, order=order, limit=limit, offset=offset, limit_place=span(node.args.get("limit") or node))

    def _select(self, node: exp.Select, ctes: Mapping[str, Query]) -> Select:
        _refuse_clauses(node)
        scope = Scope(ctes=ctes)
        from_ = node.args.get("from_")
        relation = self._from(from_.this, scope) if from_ is not None else None
        for join in node.args.get("joins") or []:
            assert relation is not None
            relation = self._join(relation, join, scope)
        if relation is None:
            raise Wrong(span(node), "the SELECT reads nothing", "Name a source or a view in FROM.")
        where = node.args.get("where")
        filtered = condition(self.expression(where.this, scope), "WHERE") if where else None
        if filtered is not None:
            _refuse_aggregates(
                filtered, "WHERE", "Put the condition into HAVING, or FILTER (WHERE …) of the aggregate."
            )
        group_node = node.args.get("group")
        scope.window = self._window_of(node, scope)
        outputs = self._outputs(node, scope)
        group: tuple[Expr, ...] | None = None
        if group_node is not None:
            group = self._group(group_node, scope, outputs)
        having_node = node.args.get("having")
        having = condition(self.expression(having_node.this, scope), "HAVING") if having_node else None
        order = tuple(self._order(node, scope, tuple((o.name, o.expression.type) for o in outputs), outputs))
        above = [o.expression for o in outputs] + [o.expression for o in order] + [e for e in (having,) if e]
        if group is None and (having is not None or any(isinstance(e, Aggregate) for x in above for e in walk(x))):
            group = ()
        limit, offset = _limit(node)
        distinct = node.args.get("distinct") is not None
        if distinct and node.args["distinct"].args.get("on"):
            raise Wrong(span(node), "DISTINCT ON", "Use row_number() OVER (PARTITION BY … ORDER BY …) = 1.")
        windows = [e for e in walk_all(group or (), filtered) if isinstance(e, Call) and e.function == "window_start"]
        windows += [
            e for o in outputs for e in walk(o.expression) if isinstance(e, Call) and e.function == "window_start"
        ]
        for window in dict.fromkeys(windows):
            known = Call("is not null", (window.arguments[0],), BOOLEAN)
            filtered = known if filtered is None else Call("and", (filtered, known), BOOLEAN)
        return Select(
            tuple(outputs),
            relation,
            filtered,
            group,
            having,
            distinct,
            order,
            limit,
            offset,
            span(node),
            span(node.args["limit"]) if node.args.get("limit") else None,
        )

    # FROM

    def _from(self, node: exp.Expr, scope: Scope) -> Relation:
        relation: Relation
        if isinstance(node, exp.Table):
            relation = self._table(node, scope)
        elif isinstance(node, exp.Subquery):
            inner = self.query(node, scope.ctes)
            alias = (node.alias or f"q{len(scope.relations) + 1}").lower()
            names = [c.name for c in (node.args["alias"].args.get("columns") or [])] if node.args.get("alias") else []
            relation = Nested(_renamed(inner, names, span(node)) if names else inner, alias, span(node))
        elif isinstance(node, exp.Values):
            raise Wrong(span(node), "VALUES in FROM", "Put the rows into a source, or write CASE.")
        else:
            raise Wrong(span(node), f"{node.key.upper()} in FROM", "Name a source, a view or a subquery.")
        columns = columns_of(relation, self.streams)
        if relation.alias in scope.relations:
            raise Wrong(
                span(node), f"two relations are named {relation.alias}", "Give one of them another alias: … AS b."
            )
        scope.relations[relation.alias] = columns
        for join in node.args.get("joins") or []:
            relation = self._join(relation, join, scope)
        return relation

    def _table(self, node: exp.Table, scope: Scope) -> Stream | Read | Nested:
        if node.args.get("version"):
            raise Wrong(
                span(node),
                "FOR SYSTEM_TIME AS OF: joins with tables are not served yet",
                "Join views above the aggregation.",
            )
        if node.args.get("sample") or node.args.get("pivots") or node.args.get("laterals"):
            raise Wrong(
                span(node), "TABLESAMPLE, PIVOT and LATERAL VIEW are not served", "Use WHERE, or CASE in aggregates."
            )
        name, alias = node.name, (node.alias or node.name).lower()
        if node.args.get("db"):
            schema = node.args["db"].name
            if schema.lower() != "analytics":
                raise Wrong(span(node), f"no schema {schema}", f"Write the name alone: {name}.")
        elif name.lower() in scope.ctes:
            return Nested(scope.ctes[name.lower()], alias, span(node))
        if name.lower() in self.tables:
            raise Wrong(
                span(node),
                f"{name} is a table (it has a PRIMARY KEY), and tables are not served yet",
                "Declare it without PRIMARY KEY to read it as a stream of changes.",
            )
        if name.lower() in self.streams:
            return Stream(name.lower(), alias, span(node))
        if name.lower() in self.views:
            return Read(name.lower(), alias, self.views[name.lower()], span(node))
        raise Wrong(
            span(node), f"no source or view {name}", suggestion(name, [*self.streams, *self.views, *scope.ctes])
        )

    def _join(self, left: Relation, join: exp.Join, scope: Scope) -> Joined:
        if join.args.get("method"):
            raise Wrong(span(join), f"{join.args['method']} JOIN", "Write the condition: JOIN … ON ….")
        kind = " ".join(str(join.args[k]).upper() for k in ("side", "kind") if join.args.get(k))
        kind = {"": "INNER", "INNER": "INNER", "LEFT OUTER": "LEFT", "RIGHT OUTER": "RIGHT", "FULL OUTER": "FULL"}.get(
            kind, kind
        )
        if kind not in ("INNER", "LEFT", "RIGHT", "FULL", "CROSS"):
            raise Wrong(span(join), f"{kind} JOIN", "Write it as JOIN, or as EXISTS (SELECT …) over views.")
        before = dict(scope.relations)
        right = self._from(join.this, scope)
        on: Expr | None = None
        if join.args.get("using"):
            for column in join.args["using"]:
                a = _find([column.name], before, span(column))
                b = _find([right_alias(right), column.name], scope.relations, span(column))
                both_ = compare("=", a, b, span(column))
                on = both_ if on is None else Call("and", (on, both_), BOOLEAN)
        elif join.args.get("on") is not None:
            on = condition(self.expression(join.args["on"], scope), "ON")
            if kind == "CROSS" or (isinstance(on, Constant) and on.value == "true" and kind == "INNER"):
                kind, on = "CROSS", None
        elif kind == "INNER":
            kind = "CROSS"
        return Joined(left, right, typed(Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"], kind), on, span(join))

    # SELECT, GROUP BY, ORDER BY

    def _outputs(self, node: exp.Select, scope: Scope) -> list[Output]:
        outputs: list[Output] = []
        for item in node.expressions:
            star = item if isinstance(item, exp.Star) else None
            qualifier = ""
            if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                star, qualifier = item.this, item.table.lower()
            if star is not None:
                outputs += self._star(star, qualifier, scope)
                continue
            expression = self.expression(item.this if isinstance(item, exp.Alias) else item, scope)
            name = item.alias if isinstance(item, exp.Alias) else _natural_name(item)
            if expression.type == WINDOW and isinstance(expression, Call):
                raise Wrong(span(item), "a window is a pair of times", "Select window.start and window.end.")
            if expression.type == INTERVAL:
                raise Wrong(span(item), "the column is an interval", "Subtract unix_timestamp() of both times instead.")
            if expression.type == VOID:
                expression = cast(expression, STRING, implicit=True)
            outputs.append(Output(name, expression))
            if isinstance(item, exp.Alias):
                scope.aliases.setdefault(name.lower(), expression)
        return outputs

    def _star(self, star: exp.Star, qualifier: str, scope: Scope) -> list[Output]:
        if qualifier and qualifier not in scope.relations:
            raise Wrong(span(star), f"no relation {qualifier}", suggestion(qualifier, scope.relations))
        left_out = {e.name.lower() for e in (star.args.get("except_") or star.args.get("except") or [])}
        return [
            Output(name, Field(alias, (name,), kind, place=span(star)))
            for alias, columns in scope.relations.items()
            if not qualifier or alias == qualifier
            for name, kind in columns
            if not name.startswith("kafka_") and name.lower() not in left_out
        ]

    def _group(self, node: exp.Group, scope: Scope, outputs: list[Output]) -> tuple[Expr, ...]:
        _refuse_groupings(node)
        if node.args.get("all"):
            keys = [o.expression for o in outputs if not any(isinstance(e, Aggregate) for e in walk(o.expression))]
            return tuple(dict.fromkeys(keys))
        keys = []
        for item in node.expressions:
            if isinstance(item, exp.Literal) and not item.is_string:
                position = int(item.name)
                if not 1 <= position <= len(outputs):
                    raise Wrong(span(item), f"GROUP BY {position}: there are {len(outputs)} columns", "Count from 1.")
                key = outputs[position - 1].expression
            elif isinstance(item, exp.Tuple) and not item.expressions:
                continue
            else:
                key = self.expression(item, scope)
                if key.type == WINDOW and isinstance(key, Call):
                    key = _window_start(key)
            _refuse_aggregates(key, "GROUP BY", "Aggregate in a subquery, and group its result.")
            if key.type.nested:
                raise Wrong(span(item), f"a group key of type {key.type}", "Group by its fields, or by to_json(…).")
            if key.type.name == "BINARY":
                raise Wrong(span(item), "a group key of type BINARY", "Group by hex(…) or CAST(… AS STRING).")
            if not isinstance(key, Constant):
                keys.append(key)
        return tuple(dict.fromkeys(keys))

    def _window_of(self, node: exp.Select, scope: Scope) -> Expr | None:
        """The window that GROUP BY names, which `window.start` means in the same block."""
        group = node.args.get("group")
        for item in group.expressions if group is not None else []:
            call_ = item.this if isinstance(item, exp.Dot) else item
            if isinstance(call_, exp.Anonymous) and call_.name.lower() == "window":
                return self.expression(call_, scope)
        return None

    def _order(self, node: exp.Expr, scope: Scope, columns: Columns, outputs: Sequence[Output] = ()) -> list[Order]:
        order = node.args.get("order")
        result: list[Order] = []
        for item in order.expressions if order is not None else []:
            expression = item.this
            if isinstance(expression, exp.Literal) and not expression.is_string:
                position = int(expression.name)
                if not 1 <= position <= len(columns):
                    raise Wrong(span(item), f"ORDER BY {position}: there are {len(columns)} columns", "Count from 1.")
                key: Expr = (
                    outputs[position - 1].expression
                    if outputs
                    else Field("", (columns[position - 1][0],), columns[position - 1][1])
                )
            else:
                named = {o.name.lower(): o.expression for o in outputs}
                simple = isinstance(expression, exp.Column) and not expression.table
                key = (
                    named[expression.name.lower()]
                    if simple and expression.name.lower() in named
                    else self.expression(expression, scope)
                )
            result.append(_ordered(key, item))
        return result

    # expressions

    def expression(self, node: exp.Expr, scope: Scope) -> Expr:
        """One scalar expression."""
        reader = self._readers.get(type(node))
        if reader is not None:
            return reader(self, node, scope)
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self._binary(operator, typed(exp.Binary, node), scope)
        if isinstance(node, exp.Func):
            return call(node.sql_name(), [], span(node))
        raise Wrong(span(node), f"{node.key.upper()} is not served", "Write it with the functions in docs/sql.md.")

    def _several(self, name: str, nodes: Sequence[exp.Expr | None], scope: Scope, place: Place) -> Expr:
        """A call whose syntax is special."""
        return call(name, [self.expression(n, scope) for n in nodes if n is not None], place)

    def _logical(self, node: exp.Connector, scope: Scope) -> Expr:
        word = "and" if isinstance(node, exp.And) else "or"
        sides = (self.expression(node.left, scope), self.expression(node.right, scope))
        return Call(word, tuple(condition(s, word.upper()) for s in sides), BOOLEAN, place=span(node))

    def _not(self, node: exp.Not, scope: Scope) -> Expr:
        return Call("not", (condition(self.expression(node.this, scope), "NOT"),), BOOLEAN, place=span(node))

    def _between(self, node: exp.Between, scope: Scope) -> Expr:
        value, place = self.expression(node.this, scope), span(node)
        low, high = self.expression(node.args["low"], scope), self.expression(node.args["high"], scope)
        sides = (compare(">=", value, low, place), compare("<=", value, high, place))
        return Call("and", sides, BOOLEAN, place=place)

    def _field(self, node: exp.Expr, scope: Scope) -> Expr:
        if isinstance(node, exp.Dot):
            inner = node.this
            if not isinstance(inner, (exp.Dot, exp.Column)):
                value = self.expression(inner, scope)
                return _member(value, node.expression.name, span(node.expression))
        names = _names(node)
        place = span(node)
        if scope.window is not None and names[0].lower() == "window" and isinstance(scope.window, Call):
            return _member(scope.window, names[1], place) if len(names) == 2 else scope.window
        try:
            return _find(names, scope.relations, place)
        except Wrong:
            alias = scope.aliases.get(names[0].lower())
            if alias is None and names[0].lower() in NON_DETERMINISTIC:
                return call(names[0], [], place)
            if alias is None:
                raise
            value = alias
            for name in names[1:]:
                value = _member(value, name, place)
            return value

    def _binary(self, operator: str, node: exp.Binary, scope: Scope) -> Expr:
        place = span(node)
        left, right = self.expression(node.left, scope), self.expression(node.right, scope)
        if operator in ("+", "-"):
            shifted = _shifted(operator, left, right, place)
            if shifted is not None:
                return shifted
            return calculate(operator, left, right, place)
        if operator in ("*", "/", "%", "div"):
            return calculate(operator, left, right, place)
        return compare(operator, left, right, place)

    def _is(self, node: exp.Is, scope: Scope) -> Expr:
        value, place = self.expression(node.this, scope), span(node)
        target, negated = node.expression, False
        if isinstance(target, exp.Not):
            target, negated = target.this, True
        if isinstance(target, exp.Null):
            result: Expr = Call("is null", (value,), BOOLEAN, place=place)
        else:
            result = compare("<=>", value, self.expression(target, scope), place)
        return Call("not", (result,), BOOLEAN, place=place) if negated else result

    def _in(self, node: exp.In, scope: Scope) -> Expr:
        value, place = self.expression(node.this, scope), span(node)
        query = node.args.get("query")
        if query is not None:
            inner = self._inner(query, scope)
            if len(inner.columns) != 1:
                raise Wrong(place, f"IN over {len(inner.columns)} columns", "Select one column.")
            if meet((value, Constant("", inner.columns[0][1])), place, "IN")[0].type != value.type:
                raise Wrong(place, f"IN meets {value.type} with {inner.columns[0][1]}", "Cast one of them.")
            return Subquery("in", inner, value, BOOLEAN, place)
        items = meet([value, *(self.expression(e, scope) for e in node.expressions)], place, "IN")
        return Call("in", items, BOOLEAN, place=place)

    def _like(self, node: exp.Like, scope: Scope) -> Expr:
        value, wanted = self.expression(node.this, scope), self.expression(node.expression, scope)
        for side in (value, wanted):
            if side.type not in (STRING, VOID):
                raise Wrong(span(node), f"LIKE takes text, this is {side.type}", "Write CAST(… AS STRING).")
        return Call("like", (value, wanted), BOOLEAN, place=span(node))

    def _cast(self, node: exp.Cast, scope: Scope) -> Expr:
        kind = read(node.args["to"])
        if kind is None or kind.nested:
            raise Wrong(span(node), f"CAST to {node.args['to'].sql('spark')}", "Cast to a scalar type of docs/sql.md.")
        value = self.expression(node.this, scope)
        if isinstance(value, Constant) and value.type == STRING and kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            literal = cast(value, kind)
            if isinstance(literal, Call):
                raise Wrong(
                    span(node),
                    f"{value.value!r} is no {kind} that both engines read alike",
                    "Write it as '2024-01-31 12:30:00'.",
                )
            return literal
        if (
            isinstance(value, Constant)
            and value.type == STRING
            and kind.numeric
            and re.fullmatch(r"-?\d+(\.\d+)?", value.value or "")
        ):
            return (
                Call("cast", (number(value.value or "0"),), kind, place=span(node))
                if number(value.value or "0").type != kind
                else number(value.value or "0")
            )
        return replace(made, place=span(node)) if isinstance(made := cast(value, kind), Call) else made

    def _case(self, node: exp.Case, scope: Scope) -> Expr:
        operand = self.expression(node.this, scope) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            when = self.expression(branch.this, scope)
            when = compare("=", operand, when, span(branch)) if operand is not None else condition(when, "WHEN")
            branches.append((when, self.expression(branch.args["true"], scope)))
        default = node.args.get("default")
        return case(branches, self.expression(default, scope) if default is not None else None, span(node))

    def _trim(self, node: exp.Trim, scope: Scope) -> Expr:
        if node.expression is not None:
            raise Wrong(span(node), "TRIM of other characters than spaces", "Use regexp_replace below the aggregation.")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return call(name, [self.expression(node.this, scope)], span(node))

    def _extract(self, node: exp.Extract, scope: Scope) -> Expr:
        names = {"DOW": "dayofweek", "DOY": "dayofyear", "WEEK": "weekofyear", "DAYOFWEEK": "dayofweek"}
        unit = node.this.name.upper()
        name = names.get(unit, unit.lower())
        if name not in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek", "dayofyear", "weekofyear"):
            raise Wrong(span(node), f"EXTRACT({unit} …)", "Use a function of docs/sql.md, as second(ts).")
        return call(name, [self.expression(node.expression, scope)], span(node))

    def _bracket(self, node: exp.Bracket, scope: Scope) -> Expr:
        value, key = self.expression(node.this, scope), self.expression(node.expressions[0], scope)
        if value.type.name == "ARRAY" and key.type.integral and value.type.element is not None:
            return Call("[]", (value, key), value.type.element, place=span(node))
        if value.type.name == "MAP" and key.type == value.type.key and value.type.element is not None:
            return Call("[]", (value, key), value.type.element, place=span(node))
        raise Wrong(span(node), f"{value.type}[{key.type}]", "Index an array by a whole number, a map by its key.")

    def _subquery(self, node: exp.Expr, scope: Scope) -> Expr:
        place = span(node)
        inner = self._inner(node.this, scope)
        if isinstance(node, exp.Exists):
            return Subquery("exists", inner, None, BOOLEAN, place)
        if len(inner.columns) != 1:
            raise Wrong(place, f"a subquery of {len(inner.columns)} columns as a value", "Select one column.")
        one = isinstance(inner, Select) and (inner.group == () or inner.limit == 1)
        if not one:
            raise Wrong(
                place, "a subquery as a value must give one row", "Aggregate it, or end it with ORDER BY … LIMIT 1."
            )
        return Subquery("scalar", inner, None, inner.columns[0][1], place)

    def _inner(self, node: exp.Expr, scope: Scope) -> Query:
        try:
            return self.query(node, scope.ctes)
        except Wrong as wrong:
            if wrong.reason.startswith("no column") or wrong.reason.startswith("no relation"):
                name = wrong.reason.removeprefix("no column ").split(" ")[0].split(".")
                try:
                    _find(name, scope.relations, wrong.span)
                except Wrong:
                    raise wrong from None
                raise Wrong(
                    wrong.span, "a subquery that names columns of the outer query", "Write it as a join."
                ) from None
            raise

    def _call(self, node: exp.Anonymous, scope: Scope, condition_: Expr | None = None) -> Expr:
        name, place = node.name.lower(), span(node)
        name = SYNONYMS.get(name, name)
        if name in ("window", "session_window"):
            return self._time_window(name, node, scope)
        if name in WINDOW_FUNCTIONS and not known_aggregate(name):
            raise Wrong(place, f"{name}() without OVER", f"Write {name}() OVER (ORDER BY …).")
        if name in ("explode", "explode_outer", "posexplode", "inline", "stack"):
            raise Wrong(place, f"{name}() gives several rows for one", "Pick elements with element_at(), for now.")
        if known_aggregate(name):
            return self._aggregate(name, node, scope, condition_)
        if name == "struct" or name == "named_struct" or name == "array" or name == "map":
            raise Wrong(place, f"{name}() makes a nested value", "Select its parts as columns.")
        arguments = [self.expression(a, scope) for a in node.expressions]
        if name == "date_part" or name == "datepart":
            raise Wrong(place, f"{name}()", "Write EXTRACT(… FROM …).")
        return call(name, arguments, place)

    def _aggregate(self, name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Aggregate:
        place = span(node)
        row = AGGREGATES.get(name)
        if row is None:
            raise Wrong(place, f"{name}() has no mergeable partial yet", REWRITES.get(name, NO_PARTIAL))
        if any(isinstance(a, exp.Distinct) for a in node.expressions):
            raise Wrong(
                place,
                f"{name}(DISTINCT …) has no mergeable partial yet",
                "Group by the value too, and aggregate its rows in an outer SELECT.",
            )
        star = len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
        if star and name != "count":
            raise Wrong(place, f"{name}(*)", f"Name the column: {name}(amount).")
        arguments = () if star else tuple(self.expression(a, scope) for a in node.expressions)
        fewest, most = row.arguments
        if not fewest <= len(arguments) <= most or (name == "count" and not star and not arguments):
            raise Wrong(
                place, f"{name}() with {len(arguments)} arguments", f"Write {name}(x)." if fewest else "Write count(*)."
            )
        for argument in arguments:
            if any(isinstance(e, Aggregate) for e in walk(argument)):
                raise Wrong(
                    argument.place or place, "an aggregate inside an aggregate", "Aggregate in a subquery first."
                )
            if any(isinstance(e, Windowed) for e in walk(argument)):
                raise Wrong(
                    argument.place or place, "a window function inside an aggregate", "Compute it in a subquery first."
                )
            if not row.accepts(argument.type):
                raise Wrong(
                    argument.place or place,
                    f"{name}() of {argument.type}",
                    f"Write {name}(CAST(… AS …)) with a type that it takes.",
                )
        if (
            name == "count"
            and len(arguments) == 1
            and isinstance(arguments[0], Constant)
            and arguments[0].value is not None
        ):
            arguments = ()
        return Aggregate(name, arguments, when, False, row.gives([a.type for a in arguments]), place)

    def _filtered(self, node: exp.Filter, scope: Scope) -> Expr:
        when = condition(self.expression(node.expression.this, scope), "FILTER")
        _refuse_aggregates(when, "FILTER", "Filter by columns of the records.")
        if not isinstance(node.this, exp.Anonymous) or not known_aggregate(node.this.name.lower()):
            raise Wrong(span(node), "FILTER after something that is no aggregate", "Use CASE WHEN … THEN … END.")
        return self._call(node.this, scope, when)

    def _windowed(self, node: exp.Window, scope: Scope) -> Expr:
        place = span(node.this)
        if isinstance(node.args.get("alias"), exp.Identifier) or node.args.get("over") is None:
            raise Wrong(place, "a named window", "Write OVER (PARTITION BY … ORDER BY …) out.")
        inner: exp.Expr = node.this
        if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
            if isinstance(inner, exp.IgnoreNulls):
                raise Wrong(place, "IGNORE NULLS", "Filter the NULLs in a subquery.")
            inner = inner.this
        when = None
        if isinstance(inner, exp.Filter):
            when, inner = condition(self.expression(inner.expression.this, scope), "FILTER"), inner.this
        if not isinstance(inner, exp.Anonymous):
            raise Wrong(place, "OVER after something that is no function", "Write f(x) OVER (…).")
        name = SYNONYMS.get(inner.name.lower(), inner.name.lower())
        if name in AGGREGATES:
            aggregate = self._aggregate_over(name, inner, scope, when)
            arguments, kind = aggregate.arguments, aggregate.type
        elif name in WINDOW_FUNCTIONS:
            arguments = tuple(self.expression(a, scope) for a in inner.expressions)
            arguments, kind = _window_arguments(name, arguments, place)
        else:
            raise Wrong(place, f"{name}() OVER (…)", suggestion(name, [*WINDOW_FUNCTIONS, *AGGREGATES]))
        partition = tuple(self.expression(e, scope) for e in node.args.get("partition_by") or [])
        order = tuple(self._order(node, scope, ()))
        if (
            name in ("rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "row_number", "lag", "lead")
            and not order
        ):
            raise Wrong(place, f"{name}() without ORDER BY", f"Write {name}() OVER (ORDER BY …).")
        return Windowed(name, arguments, when, partition, order, _frame(node), kind, place)

    def _aggregate_over(self, name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Aggregate:
        """The aggregate of `sum(count(*)) OVER (…)`: its arguments may hold aggregates of the group."""
        row, place = AGGREGATES[name], span(node)
        if any(isinstance(a, exp.Distinct) for a in node.expressions):
            raise Wrong(place, f"{name}(DISTINCT …) OVER (…)", "Take DISTINCT rows in a subquery first.")
        star = len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
        arguments = () if star else tuple(self.expression(a, scope) for a in node.expressions)
        if name != "count" and len(arguments) != 1:
            raise Wrong(place, f"{name}() with {len(arguments)} arguments", f"Write {name}(x).")
        for argument in arguments:
            if not row.accepts(argument.type):
                raise Wrong(argument.place or place, f"{name}() of {argument.type}", f"Write {name}(CAST(… AS …)).")
        return Aggregate(name, arguments, when, False, row.gives([a.type for a in arguments]), place)

    def _time_window(self, name: str, node: exp.Anonymous, scope: Scope) -> Expr:
        place = span(node)
        if name == "session_window":
            raise Wrong(place, "session_window() is not served yet", "Use window(ts, '30 minutes').")
        arguments = [self.expression(a, scope) for a in node.expressions]
        if not 2 <= len(arguments) <= 4:
            raise Wrong(place, f"window() with {len(arguments)} arguments", "Write window(ts, '1 hour').")
        time = arguments[0]
        if time.type != TIMESTAMP:
            raise Wrong(
                time.place or place, f"window() over {time.type}", "Write window(CAST(… AS TIMESTAMP), '1 hour')."
            )
        lengths = [_microseconds(a, place) for a in arguments[1:]]
        size, slide = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
        offset = lengths[2] if len(lengths) > 2 else 0
        if size <= 0:
            raise Wrong(place, "a window of no length", "Write window(ts, '1 hour').")
        if slide != size:
            raise Wrong(
                place,
                "a hopping window is not served yet",
                "Write window(ts, size) with one length, and add rows up when reading.",
            )
        parts = (time, Constant(str(size), BIGINT), Constant(str(offset % size), BIGINT))
        return Call("window", parts, WINDOW, place=place)

    _readers: ClassVar[dict[type[exp.Expr], Callable[[Any, Any, Scope], Expr]]] = {
        exp.Paren: lambda self, node, scope: self.expression(node.this, scope),
        exp.Column: _field,
        exp.Dot: _field,
        exp.Literal: lambda _, node, __: _literal(node),
        exp.Boolean: lambda _, node, __: _literal(node),
        exp.Null: lambda _, node, __: _literal(node),
        exp.Neg: lambda self, node, scope: negative(self.expression(node.this, scope), span(node)),
        exp.Not: _not,
        exp.And: _logical,
        exp.Or: _logical,
        exp.Is: _is,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like,
        exp.RegexpLike: lambda self, n, scope: self._several("rlike", [n.this, n.expression], scope, span(n)),
        exp.DPipe: lambda self, n, scope: self._several("concat", [n.left, n.right], scope, span(n)),
        exp.Concat: lambda self, n, scope: self._several("concat", n.expressions, scope, span(n)),
        exp.Substring: lambda self, n, scope: self._several(
            "substring", [n.this, n.args.get("start"), n.args.get("length")], scope, span(n)
        ),
        exp.StrPosition: lambda self, n, scope: self._several("position", [n.args["substr"], n.this], scope, span(n)),
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Case: _case,
        exp.Trim: _trim,
        exp.Extract: _extract,
        exp.Bracket: _bracket,
        exp.Filter: _filtered,
        exp.Window: _windowed,
        exp.Subquery: _subquery,
        exp.Exists: _subquery,
        exp.Anonymous: _call,
        exp.Interval: lambda _, node, __: _interval(node),
    }


def _literal(node: exp.Expr) -> Expr:
    place = span(node)
    if isinstance(node, exp.Literal):
        return Constant(node.name, STRING, place) if node.is_string else number(node.name, place)
    return (
        Constant(None, VOID, place) if isinstance(node, exp.Null) else Constant(str(node.this).lower(), BOOLEAN, place)
    )


def columns_of(relation: Relation, streams: Mapping[str, Columns]) -> Columns:
    """The columns that a relation of FROM gives."""
    match relation:
        case Stream():
            return streams[relation.source]
        case Nested():
            return relation.query.columns
        case Joined():
            return columns_of(relation.left, streams) + columns_of(relation.right, streams)
        case _:
            return relation.columns


def right_alias(relation: Relation) -> str:
    """The alias of a relation that is no join."""
    assert not isinstance(relation, Joined)
    return relation.alias


def walk_all(expressions: Sequence[Expr], more: Expr | None) -> list[Expr]:
    """Every expression inside several."""
    return [e for x in (*expressions, *(() if more is None else (more,))) for e in walk(x)]


def _names(node: exp.Expr) -> list[str]:
    if isinstance(node, exp.Dot):
        return [*_names(node.this), node.expression.name]
    return [part.name for part in typed(exp.Column, node).parts]


def _find(names: list[str], relations: Mapping[str, Columns], place: Place) -> Field:
    """A column by its name, or by relation and name, and then by fields inside it."""
    if len(names) > 1 and names[0].lower() in relations:
        found = _column(names[0].lower(), names[1:], relations[names[0].lower()], place)
        if found is not None:
            return found
        known = [name for name, _ in relations[names[0].lower()]]
        raise Wrong(place, f"no column {'.'.join(names)}", suggestion(names[1], known))
    hits = [
        found for alias, columns in relations.items() if (found := _column(alias, names, columns, place)) is not None
    ]
    if len(hits) > 1:
        either = " or ".join(f"{hit.relation}.{names[0]}" for hit in hits)
        raise Wrong(place, f"{names[0]} could be of several relations", f"Write {either}.")
    if not hits:
        known = [name for columns in relations.values() for name, _ in columns]
        raise Wrong(place, f"no column {'.'.join(names)}", suggestion(names[0], known))
    return hits[0]


def _column(alias: str, names: list[str], columns: Columns, place: Place) -> Field | None:
    for name, kind in columns:
        if name.lower() == names[0].lower():
            result = Field(alias, (name,), kind, place=place)
            for part in names[1:]:
                result = typed(Field, _member(result, part, place))
            return result
    return None


def _member(value: Expr, name: str, place: Place) -> Expr:
    if isinstance(value, Call) and value.function == "window":
        if name.lower() not in ("start", "end"):
            raise Wrong(place, f"window().{name}", "Write window(…).start or window(…).end.")
        start = _window_start(value)
        return (
            start
            if name.lower() == "start"
            else Call("window_end", (start, value.arguments[1]), TIMESTAMP, place=place)
        )
    fields = dict(value.type.fields)
    exact = next((f for f in fields if f.lower() == name.lower()), None)
    if exact is None:
        raise Wrong(place, f"no field {name} in {value.type}", suggestion(name, fields))
    if isinstance(value, Field):
        return Field(value.relation, (*value.path, exact), fields[exact], place=place)
    return Call(".", (value, Constant(exact, STRING)), fields[exact], place=place)


def _window_start(window: Call) -> Call:
    return Call("window_start", window.arguments, TIMESTAMP, place=window.place)


def _ordered(key: Expr, item: exp.Expr) -> Order:
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    if key.type.nested:
        raise Wrong(span(item), f"ORDER BY {key.type}", "Order by its fields.")
    return Order(key, descending, bool(nulls_first) if nulls_first is not None else not descending)


def _natural_name(item: exp.Expr) -> str:
    """The name of an output without an alias; empty where the author must give one."""
    if isinstance(item, exp.Column):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    return ""


def _limit(node: exp.Expr) -> tuple[int | None, int | None]:
    numbers: list[int | None] = []
    for name in ("limit", "offset"):
        clause = node.args.get(name)
        value = clause.expression if clause is not None else None
        if clause is not None and value is not None and not (isinstance(value, exp.Literal) and value.name.isdigit()):
            raise Wrong(span(clause), f"{name.upper()} takes a number", f"Write {name.upper()} 10.")
        numbers.append(int(value.name) if value is not None else None)
    return numbers[0], numbers[1]


def _refuse_clauses(node: exp.Select) -> None:
    for name, word in {
        "laterals": "LATERAL VIEW",
        "hint": "a hint",
        "distribute": "DISTRIBUTE BY",
        "sort": "SORT BY",
        "cluster": "CLUSTER BY",
        "windows": "WINDOW",
        "pivots": "PIVOT",
        "sample": "TABLESAMPLE",
        "match": "MATCH_RECOGNIZE",
        "into": "INTO",
        "qualify": "QUALIFY",
        "connect": "CONNECT BY",
    }.items():
        value = node.args.get(name)
        if value:
            way_out = {
                "windows": "Write OVER (PARTITION BY … ORDER BY …) out.",
                "laterals": "Pick elements, as tags[0].",
                "qualify": "Compute the window function in a subquery, and filter outside with WHERE.",
            }.get(name, "Leave it out.")
            raise Wrong(span(value[0] if isinstance(value, list) else value), f"{word} is not served", way_out)


def _refuse_groupings(node: exp.Group) -> None:
    for clause in ("grouping_sets", "cube", "rollup", "totals"):
        if node.args.get(clause):
            word = clause.replace("_", " ").upper()
            raise Wrong(span(node), f"GROUP BY with {word}", "UNION ALL one SELECT per grouping.")
    for item in node.expressions:
        if isinstance(item, (exp.Cube, exp.Rollup, exp.GroupingSets)):
            raise Wrong(span(item), f"GROUP BY {item.key.upper()}", "UNION ALL one SELECT per grouping.")


def _refuse_aggregates(expression: Expr, where: str, way_out: str) -> None:
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise Wrong(part.place, f"{part.function}() in {where}", way_out)
        if isinstance(part, Windowed):
            raise Wrong(
                part.place, f"{part.function}() OVER (…) in {where}", "Compute it in a subquery, and filter outside."
            )


def _renamed(query: Query, names: list[str], place: Place) -> Query:
    if len(names) != len(query.columns):
        raise Wrong(place, f"{len(names)} names for {len(query.columns)} columns", "Name every column.")
    if isinstance(query, Select):
        return replace(query, outputs=tuple(replace(o, name=n) for o, n in zip(query.outputs, names, strict=True)))
    left = _renamed(query.left, names, place)
    return replace(query, left=left, columns=tuple((n, k) for n, (_, k) in zip(names, query.columns, strict=True)))


def _cast_outputs(query: Query, kinds: Sequence[Type]) -> Query:
    if isinstance(query, Select):
        outputs = tuple(
            replace(o, expression=cast(o.expression, kind, implicit=True))
            for o, kind in zip(query.outputs, kinds, strict=True)
        )
        return replace(query, outputs=outputs)
    columns = tuple((name, kind) for (name, _), kind in zip(query.columns, kinds, strict=True))
    return replace(
        query, left=_cast_outputs(query.left, kinds), right=_cast_outputs(query.right, kinds), columns=columns
    )


def _interval(node: exp.Interval) -> Expr:
    value, unit = node.this, (node.args.get("unit") or exp.Var(this="")).name.lower().rstrip("s")
    text = value.name if isinstance(value, exp.Literal) else ""
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        text = f"-{value.this.name}"
    if not re.fullmatch(r"-?\d{1,9}", text) or unit not in (*_INTERVALS, "month", "quarter", "year"):
        raise Wrong(span(node), "an interval that is no whole number of one unit", "Write INTERVAL 90 MINUTES.")
    longest = {"year": LONGEST_SHIFT, "quarter": LONGEST_SHIFT * 4, "month": LONGEST_SHIFT * 12}.get(
        unit, LONGEST_SHIFT * 365 * _INTERVALS["day"] // _INTERVALS.get(unit, 1)
    )
    if abs(int(text)) > longest:
        raise Wrong(span(node), "an interval of more than 9,999 years", "Choose a shorter one.")
    return Constant(f"{int(text)} {unit}", INTERVAL, span(node))


def _microseconds(argument: Expr, place: Place) -> int:
    text = argument.value if isinstance(argument, Constant) and argument.type in (STRING, INTERVAL) else None
    if text is None:
        raise Wrong(
            argument.place or place, "window() takes a length known when it is declared", "Write window(ts, '1 hour')."
        )
    total, pieces = 0, re.findall(r"(-?\d+)\s*([a-z]+)", text.lower().removeprefix("interval").strip())
    for count, unit in pieces:
        factor = _INTERVALS.get(unit.rstrip("s") if unit.rstrip("s") in _INTERVALS else unit)
        if factor is None:
            raise Wrong(
                argument.place or place, f"window() of a {unit}, whose length varies", "Write date_trunc('month', ts)."
            )
        total += int(count) * factor
    if not pieces or re.sub(r"(-?\d+)\s*([a-z]+)", "", text.lower().removeprefix("interval")).strip():
        raise Wrong(argument.place or place, f"{text!r} is no length of time", "Write window(ts, '1 hour').")
    return total


def _shifted(operator: str, left: Expr, right: Expr, place: Place) -> Expr | None:
    """A time plus or minus an interval or days; None for plain numbers."""
    if operator == "+" and left.type == INTERVAL:
        left, right = right, left
    if right.type == INTERVAL and isinstance(right, Constant):
        months = (right.value or "").split(" ")[1] in ("month", "quarter", "year")
        whole_days = (right.value or "").split(" ")[1] in ("day", "week")
        if left.type == DATE and not (months or whole_days):
            left = cast(left, TIMESTAMP, implicit=True)
        if left.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise Wrong(place, f"{left.type} {operator} an interval", "Add intervals to times.")
        return Call(f"{operator} interval", (left, right), left.type, place=place)
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if left.type in times and right.type in times:
        raise Wrong(
            place,
            "the difference of two times is an interval",
            "Write unix_timestamp(a) - unix_timestamp(b), or datediff(a, b).",
        )
    if left.type == DATE and right.type.integral:
        return call("date_add" if operator == "+" else "date_sub", [left, right], place)
    if left.type in times or right.type in times:
        raise Wrong(place, f"{left.type} {operator} {right.type}", "Write ts + INTERVAL 5 MINUTES.")
    return None


def _window_arguments(name: str, arguments: tuple[Expr, ...], place: Place) -> tuple[tuple[Expr, ...], Type]:
    gives = WINDOW_FUNCTIONS[name]
    counts = {
        "lag": (1, 3),
        "lead": (1, 3),
        "first_value": (1, 1),
        "last_value": (1, 1),
        "nth_value": (2, 2),
        "ntile": (1, 1),
    }
    fewest, most = counts.get(name, (0, 0))
    if not fewest <= len(arguments) <= most:
        raise Wrong(place, f"{name}() with {len(arguments)} arguments", "See docs/sql.md.")
    for offset in arguments[1:2] if name != "ntile" else arguments:
        if not (isinstance(offset, Constant) and offset.type == INT):
            raise Wrong(offset.place or place, f"{name}() takes a literal number", f"Write {name}(…, 1).")
    if len(arguments) == 3:
        first, default = meet((arguments[0], arguments[2]), place, f"{name}()")
        arguments = (first, arguments[1], default)
    return arguments, gives if isinstance(gives, Type) else arguments[0].type


def _frame(node: exp.Window) -> str:
    """The frame as both engines write it, empty for the default."""
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "ROWS").upper()
    bounds = []
    for side in ("start", "end"):
        value, direction = spec.args.get(side), spec.args.get(f"{side}_side") or ""
        if value is None:
            bounds.append("CURRENT ROW")
        elif isinstance(value, str):
            bounds.append(f"{value} {direction}".strip().upper())
        elif isinstance(value, exp.Literal) and value.name.isdigit() and kind == "ROWS":
            bounds.append(f"{value.name} {direction}".strip().upper())
        else:
            raise Wrong(span(spec) or span(node), f"a {kind} frame over values", "Use a ROWS frame with whole numbers.")
    return f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"
