"""From the author's syntax to typed scalar expressions."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, ClassVar
from typing import cast as typed

from sqlglot import exp

from view_algebra import sugar
from view_algebra.aggregates import AGGREGATES, BY_BUCKETS, BY_EVENT_ORDER, SYNONYMS, known_aggregate
from view_algebra.calls import (
    TIME_WINDOWS,
    aggregate_over,
    frame,
    refuse_aggregates,
    refuse_nulls_left_out,
    time_window,
    window_arguments,
)
from view_algebra.casts import instead_of, is_untried, tries
from view_algebra.collected import Collecting
from view_algebra.constants import rows_of
from view_algebra.correlated import BY_AN_AGGREGATE, asked, gives_no_null, is_known
from view_algebra.dialect import is_suffixed, span, spell, written
from view_algebra.expressions import (
    NULL,
    Aggregate,
    Call,
    Constant,
    Expr,
    Field,
    Nested,
    Order,
    Output,
    Place,
    Query,
    Select,
    Subquery,
    Windowed,
    outer_fields,
    walk,
)
from view_algebra.functions import (
    FOREIGN,
    GENERATORS,
    NON_DETERMINISTIC,
    OWN_FRAMES,
    WINDOW_FUNCTIONS,
    instead_of_rows,
)
from view_algebra.meeting import among, cast, compare, meet
from view_algebra.names import (
    Columns,
    Scope,
    find,
    find_outside,
    given_once,
    is_column,
    member,
    parts_of,
    refuse_far,
    refuse_unclear,
    window_key,
)
from view_algebra.nested import LAMBDAS, over_elements, structured
from view_algebra.operators import BITWISE, bitwise, calculate, call, case, condition, negative, number, text_of
from view_algebra.refusals import Wrong, suggestion
from view_algebra.times import cast_of, interval, shifted
from view_algebra.types import (
    BIGINT,
    BITS,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Type,
    as_written,
    instead,
)
from view_algebra.types import read as read_type

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
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}

_PREDICATES = (exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Between, exp.Not)
_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_BITS = (exp.BitwiseAnd, exp.BitwiseXor, exp.BitwiseOr)
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)
_LOOSE: dict[type[exp.Expr], tuple[tuple[type[exp.Expr], ...], ...]] = {
    exp.DPipe: ((*_BITS, *_SHIFTS), (exp.Add, exp.Sub)),
    **dict.fromkeys(_SHIFTS, (_BITS, ())),
    exp.BitwiseAnd: ((exp.BitwiseXor, exp.BitwiseOr), ()),
    exp.BitwiseXor: ((exp.BitwiseOr,), ()),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.NullSafeEQ), (_PREDICATES, (*_ORDERED, *_PREDICATES))),
    **dict.fromkeys(_ORDERED, (_PREDICATES, _PREDICATES)),
    **dict.fromkeys((exp.Is, exp.In, exp.Like, exp.ILike), (_PREDICATES, ())),
}
"""Left and right sides that Spark does not read as the operator's: to it `a || b + 1` is `(a || b) + 1`, `a | b & c` is
`a | (b & c)`, and `a = b IN (c)` is `(a = b) IN (c)`; `a IS NULL = b` is nothing at all.
"""

_OF_A_FRAME = {"first": "first_value", "any_value": "first_value", "last": "last_value"}
"""What functions of the order of events are called where OVER says the order."""


class Scalars(Collecting):
    """Resolves scalar expressions; queries inside them, and their ORDER BY, are for the subclass.

    around: the block around the subquery that is resolved next. blocks: what is being resolved, from the outermost.
    """

    around: Scope | None = None
    blocks: list[Scope]

    @abstractmethod
    def query(self, node: exp.Expr, ctes: Mapping[str, Query] | None = None) -> Query:
        """A query inside an expression."""

    @abstractmethod
    def is_one_row(self, query: Query) -> bool:
        """Is it sure that a query about nothing around it gives one row at most?"""

    @abstractmethod
    def order(self, node: exp.Expr, scope: Scope, columns: Columns, outputs: Sequence[Output] = ()) -> list[Order]:
        """The keys of the ORDER BY of a node."""

    def expression(self, node: exp.Expr, scope: Scope) -> Expr:
        """One scalar expression."""
        if scope.preferred and _aggregates(node):
            with scope.preferring({}):
                return self.expression(node, scope)
        sides = zip((node.args.get("this"), node.args.get("expression")), _LOOSE.get(type(node), ()), strict=False)
        if any(isinstance(side, kinds) for side, kinds in sides):
            raise Wrong(span(node), "operators that Spark reads in another order", "Put one of them into parentheses.")
        reader = self._readers.get(type(node))
        if reader is not None:
            made = reader(self, node, scope)
            if made.type == VOID and not any(isinstance(part, (Aggregate, Subquery)) for part in walk(made)):
                return replace(NULL, place=span(node))
            # sqlglot notes the NOT of `x NOT LIKE y` beside the rest
            return Call("not", (made,), BOOLEAN, place=span(node)) if node.args.get("negate") else made
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self._binary(operator, typed(exp.Binary, node), scope)
        if isinstance(node, exp.Func):
            return call(node.sql_name(), [], span(node))
        raise Wrong(span(node), f"{node.key.upper()} is not served", "Write it with the functions in docs/sql.md.")

    def _several(self, name: str, nodes: Sequence[exp.Expr | None], scope: Scope, place: Place) -> Expr:
        """A call whose syntax is special."""
        return call(name, [self.expression(n, scope) for n in nodes if n is not None], place)

    def _negative(self, node: exp.Neg, scope: Scope) -> Expr:
        """`-x`; a literal has one sign at most, so that `- -3` and `-(3)` are none."""
        operand = self.expression(node.this, scope)
        literal = isinstance(node.this, exp.Literal) or is_suffixed(node.this)
        if isinstance(operand, Constant) and operand.type.numeric and operand.value is not None and not literal:
            return Call("negative", (operand,), operand.type, place=span(node))
        return negative(operand, span(node))

    def _shifted_right(self, node: exp.BitwiseRightShift, scope: Scope) -> Expr:
        """`x >> n`, of which Spark's lexer makes the end of two types after a word such as STRUCT or MAP."""
        made = self._several("shiftright", [node.left, node.right], scope, span(node))
        spell(node, f"shiftright({written(node.left)}, {written(node.right)})")
        return made

    def _logical(self, node: exp.Connector, scope: Scope) -> Expr:
        word = "and" if isinstance(node, exp.And) else "or"
        sides = (self.expression(node.left, scope), self.expression(node.right, scope))
        return Call(word, tuple(condition(s, word.upper()) for s in sides), BOOLEAN, place=span(node))

    def _not(self, node: exp.Not, scope: Scope) -> Expr:
        return Call("not", (condition(self.expression(node.this, scope), "NOT"),), BOOLEAN, place=span(node))

    def _distinct(self, node: exp.NullSafeNEQ, scope: Scope) -> Expr:
        left, right = self.expression(node.this, scope), self.expression(node.expression, scope)
        return Call("not", (compare("<=>", left, right, span(node)),), BOOLEAN, place=span(node))

    def _between(self, node: exp.Between, scope: Scope) -> Expr:
        value, place = self.expression(node.this, scope), span(node)
        low, high = self.expression(node.args["low"], scope), self.expression(node.args["high"], scope)
        sides = (compare(">=", value, low, place), compare("<=", value, high, place))
        return Call("and", sides, BOOLEAN, place=place)

    def _field(self, node: exp.Expr, scope: Scope) -> Expr:
        root = node
        while isinstance(root, exp.Dot):
            root = root.this
        if isinstance(node, exp.Dot) and not isinstance(root, exp.Column):
            return member(self.expression(node.this, scope), node.expression.name, span(node.expression))
        names = parts_of(node)
        place = span(node)
        first = names[0].lower()
        preferred = first in scope.preferred and (first not in scope.relations or len(names) == 1)
        if preferred and first not in scope.variables:
            refuse_unclear(first, scope, place)
        if first in scope.variables or preferred:
            found: Expr = scope.variables[first] if first in scope.variables else scope.preferred[first]
            for name in names[1:]:
                found = member(found, name, place)
            return found
        if first in scope.windows and len(names) <= 2:
            window = replace(typed(Call, scope.windows[first]), place=place)
            return member(window, names[1], place) if len(names) == 2 else window
        once = given_once(names[0], scope, place) if len(names) == 1 else None
        if once is not None:
            return once
        try:
            return find(names, scope.relations, place)
        except Wrong as wrong:
            return self._elsewhere(names, node, scope, wrong)

    def _elsewhere(self, names: list[str], node: exp.Expr, scope: Scope, wrong: Wrong) -> Expr:
        """What is no column of FROM: an output, a function without parentheses, or a column of the block around."""
        place, alias = span(node), scope.aliases.get(names[0].lower())
        if alias is None and names[0].lower() in NON_DETERMINISTIC:
            return call(names[0], [], place)
        hidden = len(names) > 1 and is_column(names[:1], scope)  # by a column that is called as the relation
        if alias is None and scope.outer is not None and is_column(names, scope.outer) and not hidden:
            return find_outside(names, scope, place)
        if alias is None:
            refuse_far(names, scope, self.blocks, place)
            raise wrong
        refuse_unclear(names[0].lower(), scope, place)
        _spell_in_window(node)
        return reduce(lambda value, name: member(value, name, place), names[1:], alias)

    def _binary(self, operator: str, node: exp.Binary, scope: Scope) -> Expr:
        place = span(node)
        left, right = self.expression(node.left, scope), self.expression(node.right, scope)
        if operator in ("+", "-"):
            moved = shifted(operator, left, right, place)
            if moved is not None:
                return moved
            return calculate(operator, left, right, place)
        if operator in ("*", "/", "%", "div"):
            return calculate(operator, left, right, place)
        if operator in BITWISE:
            return bitwise(operator, (left, right), place)
        return compare(operator, left, right, place)

    def _is(self, node: exp.Is, scope: Scope) -> Expr:
        value, place = self.expression(node.this, scope), span(node)
        target, negated = node.expression, False
        if isinstance(target, exp.Not):
            target, negated = target.this, True
        if isinstance(target, exp.Null):
            result: Expr = Call("is null", (value,), BOOLEAN, place=place)
        elif not isinstance(target, exp.Boolean):
            raise Wrong(place, "IS before a value, which Spark does not read", "Write … IS NOT DISTINCT FROM ….")
        else:
            result = compare("<=>", value, self.expression(target, scope), place)
        return Call("not", (result,), BOOLEAN, place=place) if negated else result

    def _in(self, node: exp.In, scope: Scope) -> Expr:
        query = node.args.get("query")
        if query is not None and isinstance(query.this, exp.Subquery):
            what = "IN ((SELECT …)), whose SELECT is one value to Spark"
            raise Wrong(span(query), what, "Write one pair of parentheses: IN (SELECT …).")
        if isinstance(node.this, exp.Tuple):
            return self._row_in(node, scope)
        value, place = self.expression(node.this, scope), span(node)
        if query is not None:
            inner = self._inner(query, scope)
            if len(inner.columns) != 1:
                raise Wrong(place, f"IN over {len(inner.columns)} columns", "Select one column.")
            value = _beside(value, inner.columns[0][1], place)
            _refuse_as_value(node, [value], inner, scope)
            if (rows := rows_of(inner)) is not None:
                return Call("in", among([value, *(row[0] for row in rows)], place), BOOLEAN, place=place)
            return asked("in", inner, value, place)
        if not node.expressions:
            raise Wrong(place, "IN of nothing", "Name a value, or a subquery.")
        items = [value, *(self.expression(e, scope) for e in node.expressions)]
        return Call("in", among(items, place), BOOLEAN, place=place)

    def _row_in(self, node: exp.In, scope: Scope) -> Expr:
        """(a, b) IN (SELECT x, y …)."""
        values, place = [self.expression(e, scope) for e in node.this.expressions], span(node)
        query = node.args.get("query")
        if query is None:  # which Spark compares as structs: a NULL in both is equal
            raise Wrong(place, "several values IN a list", "Write (a = 1 AND b = 2) OR (a = 3 AND b = 4).")
        inner = self._inner(query, scope)
        if len(inner.columns) != len(values):
            raise Wrong(place, f"{len(values)} values IN over {len(inner.columns)} columns", "Select as many.")
        values = [_beside(value, kind, place) for value, (_, kind) in zip(values, inner.columns, strict=True)]
        _refuse_as_value(node, values, inner, scope)
        return asked("in", inner, Call("row", tuple(values), Type("STRUCT", fields=inner.columns)), place)

    def _like(self, node: exp.Like | exp.ILike, scope: Scope) -> Expr:
        several = node.expression
        if isinstance(several, (exp.Any, exp.All)):
            inner = several.this.this if isinstance(several.this, exp.Paren) else several.this
            patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
            if not patterns:
                raise Wrong(span(node), "LIKE of no pattern", "Name one.")
            # NOT of it is put around it: of NOT LIKE ANY, one that is not like it is enough
            word = "or" if isinstance(several, exp.Any) != bool(node.args.get("negate")) else "and"
            each = [self._like(type(node)(this=node.this, expression=p), scope) for p in patterns]
            return _all(word, each, span(node))
        value, wanted = self.expression(node.this, scope), self.expression(node.expression, scope)
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
        return Call("like", (value, wanted), BOOLEAN, place=span(node))

    def _escaped(self, node: exp.Escape, scope: Scope) -> Expr:
        """LIKE … ESCAPE '!' is LIKE with the same pattern escaped as always, by a backslash."""
        like, sign = node.this, node.expression.name
        wanted = like.expression.name if isinstance(like.expression, exp.Literal) else None
        if not isinstance(like, (exp.Like, exp.ILike)) or wanted is None or len(sign) != 1:
            raise Wrong(span(node), "ESCAPE with a pattern that is no literal", "Write it out.")
        quoted, plain = re.escape(sign), wanted if sign == "\\" else wanted.replace("\\", "\\\\")
        if re.sub(rf"{quoted}[%_{quoted}]", "", wanted).count(sign):
            raise Wrong(span(node), f"{sign} before what needs no escape", f"Put it before %, _ or {sign}.")
        pattern = re.sub(rf"{quoted}([%_{quoted}])", lambda m: f"\\{m[1]}" if m[1] in "%_\\" else m[1], plain)
        unescaped = type(like)(this=like.this, expression=exp.Literal.string(pattern), **_negated(like))
        return self.expression(unescaped, scope)

    def _cast(self, node: exp.Cast, scope: Scope) -> Expr:
        kind = read_type(node.args["to"])
        if kind is None or kind.nested:
            known = instead(node.args["to"])
            way_out = f"Write {known}." if known else "Cast to a scalar type of docs/sql.md."
            what = node.args["to"].sql("spark") if known is None else as_written(node.args["to"])
            raise Wrong(span(node), f"CAST to {what}", way_out)
        if is_suffixed(node) and kind.integral:
            return _whole_number(node, kind)
        return self._as(kind, node, node.this, scope)

    def _try_cast(self, node: exp.TryCast, scope: Scope) -> Expr:
        """TRY_CAST, which alone is `safe` to sqlglot."""
        made, value = self._cast(node, scope), self.expression(node.this, scope)
        if node.args.get("safe") and is_untried(value.type, made.type):
            what = f"TRY_CAST of {value.type} to {made.type}, which Spark refuses"
            raise Wrong(span(node), what, f"Write CAST(… AS {made.type}), which raises nothing.")
        differs = node.args.get("safe") and tries(value.type, made.type)
        return Call("try_cast", (value,), made.type, place=span(node)) if differs else made

    def _as(self, kind: Type, node: exp.Expr, what: exp.Expr, scope: Scope) -> Expr:
        """A value as another type, as the author says."""
        value = self.expression(what, scope)
        if value.type.length:
            return cast_of(value, kind, span(node))
        if (way_out := instead_of(value.type, kind)) is not None:
            raise Wrong(span(node), f"CAST of {value.type} to {kind}, which Spark refuses", way_out)
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
            and re.fullmatch(r"-?\d+(\.\d+)?", text := value.value or "")
        ):
            if kind.integral and not -(2 ** BITS[kind.name]) <= int(text.partition(".")[0]) < 2 ** BITS[kind.name]:
                return Constant(None, kind, span(node))  # a number would wrap
            read = number(text)
            plain = read.type == kind and not kind.integral
            return read if plain else Call("cast", (read,), kind, place=span(node))
        if isinstance(value, Constant) and value.type == kind and kind.integral:
            return Call("cast", (value,), kind, place=span(node))  # no literal, whose digits alone would count
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
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        given = [node.this] if node.expression is None else [node.expression, node.this]
        return call(name, [self.expression(each, scope) for each in given], span(node))

    def _extract(self, node: exp.Extract, scope: Scope, place: Place = None) -> Expr:
        return sugar.extracted(node.this.name.upper(), self.expression(node.expression, scope), place or span(node))

    def _in_zone(self, node: exp.AtTimeZone, scope: Scope) -> Expr:
        """AT TIME ZONE, which Spark does not read."""
        time, zone = node.this, node.args["zone"]
        text, made = sugar.in_zone(self.expression(time, scope), self.expression(zone, scope), span(node))
        spell(node, text.format(time=written(time), zone=written(zone)))
        return made

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
            above = node.parent
            compared = isinstance(above, exp.Binary) and not isinstance(above, exp.Connector)
            if compared or (isinstance(above, (exp.In, exp.Between)) and above.this is node):
                raise Wrong(place, "EXISTS (…) beside an operator", "Put it into parentheses: (EXISTS (…)).")
            return asked("exists", inner, None, place)
        if len(inner.columns) != 1:
            raise Wrong(place, f"a subquery of {len(inner.columns)} columns as a value", "Select one column.")
        one = isinstance(inner, Select) and (inner.limit == 1 or inner.relation is None)
        if not one and not _is_one_aggregate(inner) and not self.is_one_row(inner):
            about_a_row = any(True for _ in outer_fields(inner))
            way_out = BY_AN_AGGREGATE if about_a_row else "Aggregate it, or end it with ORDER BY … LIMIT 1."
            raise Wrong(place, "a subquery as a value must give one row", way_out)
        return asked("scalar", inner, None, place)

    def _inner(self, node: exp.Expr, scope: Scope) -> Query:
        """A query inside an expression, which may name columns of the block around it."""
        around, self.around = self.around, scope
        try:
            return self.query(node, scope.ctes)
        finally:
            self.around = around

    def _call(
        self, node: exp.Anonymous, scope: Scope, condition_: Expr | None = None, filter_: exp.Filter | None = None
    ) -> Expr:
        name, place = node.name.lower(), span(node)
        if name in ("percentile_cont", "percentile_disc"):
            raise Wrong(place, f"{name}() without its order", f"Write {name}(0.9) WITHIN GROUP (ORDER BY x).")
        name = SYNONYMS.get(name, name)
        read = partial(self.expression, scope=scope)
        if name in TIME_WINDOWS:
            return time_window(name, node, read)
        if name in WINDOW_FUNCTIONS and not known_aggregate(name):
            raise Wrong(place, f"{name}() without OVER", f"Write {name}() OVER (ORDER BY …).")
        if name in GENERATORS:
            raise Wrong(place, f"{name}() gives several rows for one", instead_of_rows(name))
        if name in ("grouping", "grouping_id"):
            read_ = [read(a) for a in node.expressions]
            if isinstance(node.find_ancestor(exp.Join, exp.Lateral, exp.Select), (exp.Join, exp.Lateral)):
                raise Wrong(place, f"{name}() in FROM", "Select it in a subquery that groups, and go on around it.")
            if name == "grouping" and len(read_) != 1:
                raise Wrong(place, f"grouping() with {len(read_)} arguments", "Write grouping(a), or grouping_id().")
            return Call(name, tuple(map(window_key, read_)), TINYINT if name == "grouping" else BIGINT, place=place)
        made = self.collected(name, node, scope, condition_, filter_)
        return self._scalar(name, node, scope) if made is None else made

    def _scalar(self, name: str, node: exp.Anonymous, scope: Scope) -> Expr:
        """A call of a function of one row."""
        place, given = span(node), node.expressions
        if name in ("sort_array", "array_sort") and (listed := self.sorted_list(given, scope)) is not None:
            return listed
        if name in ("struct", "named_struct", "map"):
            return structured(node, scope, self.expression)
        if name in LAMBDAS:
            return over_elements(node, scope, self.expression)
        if name in ("date_part", "datepart"):
            if len(given) != 2 or not isinstance(given[0], exp.Literal):
                raise Wrong(place, f"{name}() of a field that is no literal", f"Write {name}('year', ts).")
            return self._extract(exp.Extract(this=exp.Var(this=given[0].name), expression=given[1]), scope, place)
        if name in sugar.TIMED and len(given) == 3 and isinstance(given[0], exp.Column):
            return sugar.timed(name, given[0].name, [self.expression(a, scope) for a in given[1:]], place)
        if name in sugar.TIMED and len(given) == 3 and isinstance(given[0], exp.Literal):
            raise Wrong(place, f"{name}() of a unit in quotes", f"Write {name}({given[0].name.upper()}, a, b).")
        if name in sugar.CASTS and len(given) == 1:
            return self._as(sugar.CASTS[name], node, given[0], scope)
        arguments = [self.expression(a, scope) for a in node.expressions]
        if (other := sugar.made(name, arguments, place)) is not None:
            return other
        return call(name, arguments, place)

    def _filtered(self, node: exp.Filter, scope: Scope) -> Expr:
        when = condition(self.expression(node.expression.this, scope), "FILTER")
        refuse_aggregates(when, "FILTER", "Filter by columns of the records.")
        if isinstance(node.this, exp.WithinGroup):
            return self.within_group(node.this, scope, when, node)
        if not isinstance(node.this, exp.Anonymous) or not known_aggregate(node.this.name.lower()):
            raise Wrong(span(node), "FILTER after something that is no aggregate", "Use CASE WHEN … THEN … END.")
        return self._call(node.this, scope, when, node)

    def _respecting_nulls(self, node: exp.RespectNulls, scope: Scope) -> Expr:
        if not isinstance(node.this, (exp.Anonymous, exp.Filter)):
            raise Wrong(span(node), "RESPECT NULLS of what is no call", "Write first_value(x) RESPECT NULLS.")
        return self.expression(node.this, scope)

    def _windowed(self, node: exp.Window, scope: Scope) -> Expr:
        place = span(node.this)
        if isinstance(node.args.get("alias"), exp.Identifier) or node.args.get("over") is None:
            raise Wrong(place, "OVER with a window that is not named in this block", "Write it out: OVER (ORDER BY …).")
        inner: exp.Expr = node.this
        known = isinstance(inner, exp.IgnoreNulls)
        if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
            inner = inner.this
        if isinstance(inner, exp.Filter):
            way_out = "Write f(CASE WHEN … THEN x END) OVER (…)."
            raise Wrong(place, "FILTER before OVER, which Spark does not run", way_out)
        if isinstance(inner, exp.WithinGroup):
            inner = _share_of(inner, place)
        if not isinstance(inner, exp.Anonymous):
            raise Wrong(place, "OVER after something that is no function", "Write f(x) OVER (…).")
        name = SYNONYMS.get(inner.name.lower(), inner.name.lower())
        name, given = _OF_A_FRAME.get(name, name), inner.expressions
        if name in ("first_value", "last_value") and len(given) == 2 and isinstance(given[1], exp.Boolean):
            known, given = known or bool(given[1].this), given[:1]
        if name in AGGREGATES:
            folded = aggregate_over(name, inner, partial(self.expression, scope=scope))
            arguments, kind = folded.arguments, folded.type
        elif name in WINDOW_FUNCTIONS:
            arguments = tuple(self.expression(a, scope) for a in given)
            arguments, kind = window_arguments(name, arguments, place)
        else:
            way_out = (
                f"Write {FOREIGN[name]}." if name in FOREIGN else suggestion(name, [*WINDOW_FUNCTIONS, *AGGREGATES])
            )
            raise Wrong(place, f"{name}() OVER (…)", way_out)
        partition = tuple(self.expression(e, scope) for e in node.args.get("partition_by") or [])
        order = tuple(self.order(node, scope, ()))
        if name in WINDOW_FUNCTIONS and name not in ("first_value", "last_value") and not order:
            raise Wrong(place, f"{name}() without ORDER BY", f"Write {name}() OVER (ORDER BY …).")
        _refuse_inside(arguments, partition, order, place)
        if known:
            refuse_nulls_left_out(name, arguments, place)
        rows = frame(node, order)
        _refuse_frame(name, rows, order, place, of_all=name == "median" or isinstance(node.this, exp.WithinGroup))
        call_ = Windowed(name, arguments, partition, order, rows, kind, place, known)
        scope.windowed.append((call_, node))
        return call_

    def _of_all(self, node: exp.SubqueryPredicate, _: Scope) -> Expr:
        way_out = "Compare with (SELECT max(x) FROM …) or (SELECT min(x) FROM …), or write IN (SELECT …)."
        raise Wrong(span(node), f"{node.key.upper()} (…), which Spark does not read", way_out)

    def _tuple(self, node: exp.Tuple, _: Scope) -> Expr:
        raise Wrong(span(node), "several values in parentheses", "Write struct(a, b), or to_json(struct(a, b)).")

    def _lambda(self, node: exp.Lambda, _: Scope) -> Expr:
        raise Wrong(span(node), "a lambda, where none is taken", f"These take one: {', '.join(LAMBDAS)}.")

    _readers: ClassVar[dict[type[exp.Expr], Callable[[Any, Any, Scope], Expr]]] = {
        exp.Paren: lambda self, node, scope: self.expression(node.this, scope),
        exp.Column: _field,
        exp.Identifier: _field,
        exp.Dot: _field,
        exp.Literal: lambda _, node, __: _literal(node),
        exp.Boolean: lambda _, node, __: _literal(node),
        exp.Null: lambda _, node, __: _literal(node),
        exp.Neg: _negative,
        exp.Not: _not,
        exp.NullSafeNEQ: _distinct,
        exp.And: _logical,
        exp.Or: _logical,
        exp.Is: _is,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like,
        exp.Escape: _escaped,
        exp.BitwiseNot: lambda self, node, scope: bitwise("~", [self.expression(node.this, scope)], span(node)),
        exp.BitwiseLeftShift: lambda self, n, scope: self._several("shiftleft", [n.left, n.right], scope, span(n)),
        exp.BitwiseRightShift: _shifted_right,
        exp.ILike: _like,
        exp.RawString: lambda _, node, __: Constant(node.name, STRING, span(node)),
        exp.RegexpLike: lambda self, n, scope: self._several("rlike", [n.this, n.expression], scope, span(n)),
        exp.DPipe: lambda self, n, scope: self._several("concat", [n.left, n.right], scope, span(n)),
        exp.Concat: lambda self, n, scope: self._several("concat", n.expressions, scope, span(n)),
        exp.Substring: lambda self, n, scope: self._several(
            "substring", [n.this, n.args.get("start"), n.args.get("length")], scope, span(n)
        ),
        exp.Overlay: lambda self, n, scope: self._several(
            "overlay", [n.this, n.expression, n.args.get("from_"), n.args.get("for_")], scope, span(n)
        ),
        exp.StrPosition: lambda self, n, scope: self._several("position", [n.args["substr"], n.this], scope, span(n)),
        exp.Cast: _cast,
        exp.TryCast: _try_cast,
        exp.Case: _case,
        exp.Trim: _trim,
        exp.Extract: _extract,
        exp.AtTimeZone: _in_zone,
        exp.Bracket: _bracket,
        exp.Filter: _filtered,
        exp.Window: _windowed,
        exp.IgnoreNulls: Collecting.ignoring_nulls,
        exp.RespectNulls: _respecting_nulls,
        exp.WithinGroup: Collecting.within_group,
        exp.Subquery: _subquery,
        exp.Exists: _subquery,
        exp.Anonymous: _call,
        exp.Interval: lambda _, node, __: interval(node),
        exp.All: _of_all,
        exp.Any: _of_all,
        exp.Tuple: _tuple,
        exp.Lambda: _lambda,
    }


def _refuse_frame(name: str, rows: str, order: Sequence[Order], place: Place, *, of_all: bool) -> None:
    """Refuses a frame that Spark does: any but a function's own, and to one of all rows any order."""
    if rows and rows != OWN_FRAMES.get(name, rows):
        raise Wrong(place, f"{name}() over a frame, which Spark refuses", "Leave the frame out.")
    if of_all and (order or rows):
        way_out = "Leave ORDER BY out, or write percentile(x, 0.5) OVER (…)."
        raise Wrong(place, f"{name}() over an order, which Spark refuses", way_out)


def _share_of(node: exp.WithinGroup, place: Place) -> exp.Expr:
    """percentile_cont(0.9) WITHIN GROUP (ORDER BY x) as percentile(x, 0.9)."""
    key, *more = node.expression.expressions
    if more or key.args.get("desc") or node.this.name.lower() != "percentile_cont":
        raise Wrong(place, "WITHIN GROUP before OVER", "Compute it with GROUP BY in a subquery, and join that.")
    return exp.Anonymous(this="percentile", expressions=[key.this, *node.this.expressions])


def _all(word: str, conditions: Sequence[Expr], place: Place) -> Expr:
    """Conditions joined by `and` or `or`."""
    return reduce(lambda a, b: Call(word, (a, b), BOOLEAN, place=place), conditions)


def _aggregates(node: exp.Expr) -> bool:
    """Is it an aggregate, without OVER?"""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return known_aggregate(name) or name in BY_EVENT_ORDER or name in BY_BUCKETS or name in SYNONYMS
    return isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls))


def _is_one_aggregate(query: Query) -> bool:
    """Does a query give one aggregate of all rows, or a part of a query that does?"""
    if not isinstance(query, Select) or query.group is not None:
        return isinstance(query, Select) and query.group == ()
    return isinstance(query.relation, Nested) and _is_one_aggregate(query.relation.query)


_OUTPUT = "lamina_output"
"""The entry of a node's `meta` with what its name stands for, where it is that of another output."""


def _spell_in_window(node: exp.Expr) -> None:
    """Notes what an output's name stands for in OVER (…) and in aggregates, where Spark knows no such names."""
    block = node.parent_select
    for item in block.expressions if block is not None else ():
        if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            node.meta[_OUTPUT] = item.this
            within = node.find_ancestor(exp.Window, exp.Anonymous)
            while isinstance(within, exp.Anonymous) and not known_aggregate(within.name.lower()):
                within = within.find_ancestor(exp.Window, exp.Anonymous)
            if within is not None:
                spell(node, written(_without_names(node)))


def names_an_output(node: exp.Expr) -> bool:
    """Does an output name another one, outside of OVER (…)?"""
    return any(_OUTPUT in part.meta and part.find_ancestor(exp.Window) is None for part in node.walk())


def _without_names(node: exp.Expr) -> exp.Expr:
    """An expression that names no other outputs."""
    if _OUTPUT in node.meta:
        return exp.Paren(this=_without_names(node.meta[_OUTPUT]))
    return node.transform(lambda part: _without_names(part) if _OUTPUT in part.meta else part)


def _lowered(text: Expr, place: Place) -> Expr:
    if isinstance(text, Constant) and (text.value or "").isascii():
        return replace(text, value=None if text.value is None else text.value.lower())
    return call("lower", [text], place)


def _refuse_inside(arguments: Sequence[Expr], partition: Sequence[Expr], order: Sequence[Order], place: Place) -> None:
    """What Spark takes nowhere inside a window function."""
    if (by := next((each for each in partition if each.type.name == "MAP"), None)) is not None:
        raise Wrong(by.place or place, "PARTITION BY a map, which Spark cannot sort", "Write to_json(…) of it.")
    inside = (*arguments, *partition, *(key.expression for key in order))
    if any(isinstance(part, Windowed) for each in inside for part in walk(each)):
        raise Wrong(place, "a window function inside another", "Compute the inner one in a subquery in FROM.")


def _refuse_as_value(node: exp.In, values: Sequence[Expr], query: Query, scope: Scope) -> None:
    """IN over a query that is NULL is false to Spark, or the NOT of it true, as it happens to plan it: where that
    matters, it is refused. So is NULL in a query, whatever it decides: Spark never looks whether the query has rows.
    """
    if all(map(_is_null, values)):
        raise Wrong(span(node), "NULL IN (SELECT …)", "Leave it out, or compare a column.")
    below: exp.Expr = node
    above = node.parent
    while isinstance(above, (exp.Paren, exp.And, exp.Or, exp.Not)):
        below, above = above, above.parent
    counted = isinstance(above, exp.Anonymous) and above.name.lower() in ("count_if", "if")
    decides = above is not None and (
        isinstance(above, (exp.Where, exp.Having, exp.Join))
        or (isinstance(above, exp.If) and above.this is below)
        or (counted and above.expressions[0] is below)
    )
    block = node.parent_select
    group = None if block is None else block.args.get("group")
    whole = group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None  # which leave keys out, as NULL
    known = whole and all(is_known(value, scope.where, scope.relation) for value in values) and gives_no_null(query)
    if not decides and not known:
        way_out = (
            "Write EXISTS (SELECT 1 FROM … WHERE k = x), which is never NULL, or put it into WHERE. Where it cannot be "
            "NULL it is served: with IS NOT NULL in both WHEREs."
        )
        raise Wrong(span(node), "IN (SELECT …) as a value", way_out)


def _is_null(value: Expr) -> bool:
    """Is it NULL for whatever is read?"""
    given = list(walk(value))
    return any(isinstance(e, Constant) and e.value is None for e in given) and not any(
        isinstance(e, Field) for e in given
    )


def _beside(value: Expr, kind: Type, place: Place) -> Expr:
    """What IN compares with values of a type: one of it, or numbers, in the wider type.

    Of times, each engine has its own idea of which is the same, and of FLOAT and another number, of which to widen.
    """
    met = meet((value, Constant("", kind)), place, "IN")[0]
    if value.type != kind and (not met.type.numeric or FLOAT in (value.type, kind)):
        raise Wrong(place, f"IN meets {value.type} with {kind}", "Cast one of them.")
    return met


def _negated(node: exp.Expr) -> dict[str, bool]:
    return {"negate": True} if node.args.get("negate") else {}


def _literal(node: exp.Expr) -> Expr:
    place = span(node)
    if isinstance(node, exp.Literal):
        return Constant(node.name, STRING, place) if node.is_string else number(node.name, place)
    return (
        Constant(None, VOID, place) if isinstance(node, exp.Null) else Constant(str(node.this).lower(), BOOLEAN, place)
    )


def _whole_number(node: exp.Cast, kind: Type) -> Constant:
    """`2L`, which is a literal; the least one's digits are one more than the greatest's."""
    digits = node.this.name
    if not digits.isdigit() or int(digits) > 2 ** BITS[kind.name]:
        raise Wrong(span(node), f"{digits}, which is no {kind}", "Write it without a letter, or with another.")
    return Constant(str(int(digits)), kind, span(node), suffixed=True)
