"""From the author's syntax to typed scalar expressions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial, reduce
from typing import Any, ClassVar
from typing import cast as typed

from sqlglot import exp

from view_algebra import sugar
from view_algebra.aggregates import ACCURACY, AGGREGATES, BY_BUCKETS, BY_EVENT_ORDER, SYNONYMS, known_aggregate
from view_algebra.aggregates import known as all_known
from view_algebra.calls import (
    TIME_WINDOWS,
    aggregate,
    aggregate_over,
    frame,
    refuse_nulls_left_out,
    time_window,
    window_arguments,
)
from view_algebra.casts import instead_of, is_untried, tries
from view_algebra.constants import rows_of
from view_algebra.correlated import BY_AN_AGGREGATE, asked, gives_no_null, is_known
from view_algebra.dialect import SPELLED, is_suffixed, parsed, span, spell, written
from view_algebra.estimates import bucketed, estimate
from view_algebra.expressions import (
    Aggregate,
    Call,
    Constant,
    Expr,
    Nested,
    Order,
    Output,
    Place,
    Query,
    Select,
    Windowed,
    both,
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
    window_key,
)
from view_algebra.nested import LAMBDAS, over_elements, structured
from view_algebra.operators import BITWISE, bitwise, calculate, call, case, condition, negative, number, text_of
from view_algebra.refusals import Wrong, suggestion
from view_algebra.structs import by as chosen
from view_algebra.structs import extreme, is_struct, order_of
from view_algebra.times import OF_LENGTHS, aggregated, cast_of, interval, shifted
from view_algebra.types import (
    BIGINT,
    BITS,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
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


class Scalars(ABC):
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

    @abstractmethod
    def event_order(self, scope: Scope, place: Place) -> tuple[str, tuple[Expr, ...]]:
        """What puts the records that a block reads in one order, as Spark SQL and as expressions."""

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
            made = reader(self, node, scope)  # sqlglot notes the NOT of `x NOT LIKE y` beside the rest
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
        else:
            result = compare("<=>", value, self.expression(target, scope), place)
        return Call("not", (result,), BOOLEAN, place=place) if negated else result

    def _in(self, node: exp.In, scope: Scope) -> Expr:
        query = node.args.get("query")
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
            if name == "grouping" and len(read_) != 1:
                raise Wrong(place, f"grouping() with {len(read_)} arguments", "Write grouping(a), or grouping_id().")
            return Call(name, tuple(map(window_key, read_)), TINYINT if name == "grouping" else BIGINT, place=place)
        if name == "percentile" and len(node.expressions) == 2 and _is_array(node.expressions[1]):
            return self._shares(node, scope, condition_)
        if name in BY_EVENT_ORDER or name in BY_EVENT_ORDER.values():
            return self._by(name, node, scope, condition_)
        if name in BY_BUCKETS:
            return self._of_buckets(name, node, scope, condition_, filter_)
        if known_aggregate(name):
            return self._in_order(aggregate(name, node, read, condition_), node, scope, filter_)
        return self._scalar(name, node, scope)

    def _scalar(self, name: str, node: exp.Anonymous, scope: Scope) -> Expr:
        """A call of a function of one row."""
        place, given = span(node), node.expressions
        if name in ("sort_array", "array_sort") and (listed := self._sorted_list(given, scope)) is not None:
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

    def _sorted_list(self, given: Sequence[exp.Expr], scope: Scope) -> Expr | None:
        """sort_array(collect_list(x)): the list in the values' own order, of structs, or where events have none."""
        filter_ = given[0] if given and isinstance(given[0], exp.Filter) else None
        listed = filter_.this if filter_ is not None else given[0] if given else None
        upwards = [flag.this for flag in given[1:] if isinstance(flag, exp.Boolean)]
        if not isinstance(listed, exp.Anonymous) or len(upwards) < len(given) - 1:
            return None
        name = SYNONYMS.get(listed.name.lower(), listed.name.lower())
        if name not in ("collect_list", "collect_set"):
            return None
        when = None if filter_ is None else condition(self.expression(filter_.expression.this, scope), "FILTER")
        made = aggregate(name, listed, partial(self.expression, scope=scope), when)
        if made.distinct or not (is_struct(made.arguments[0]) or (scope.above and name == "collect_list")):
            return None
        once = scope.above or name == "collect_set"  # else a value stands there as often as it came
        events = () if once else self.event_order(scope, made.place)[1]
        made = replace(made, arguments=(*made.arguments[:1] * 2, *events))
        return made if all(upwards) else Call("reverse", (made,), made.type, place=made.place)

    def _shares(self, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr:
        """percentile(x, array(0.5, 0.9)): several percentiles of the same values."""
        value, shares = node.expressions
        read = partial(self.expression, scope=scope)
        each = [
            aggregate("percentile", _call_of("percentile", value, share), read, when) for share in shares.expressions
        ]
        return _listed(each, span(node))

    def _by(self, name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, known: bool = False) -> Expr:
        """The value with the least or greatest order, ties and all decided by the order of the events."""
        place, given = span(node), list(node.expressions)
        if given and isinstance(given[0], exp.Distinct) and name in BY_EVENT_ORDER:
            given[:1] = given[0].expressions  # of different values, too, it is the first
        function = BY_EVENT_ORDER.get(name, name)
        if name in BY_EVENT_ORDER and len(given) == 2 and isinstance(given[1], exp.Boolean):
            known = bool(given.pop().this)
        if len(given) != 1 + (name == function):
            way_out = f"Write {name}(x, y)." if name == function else f"Write {name}(x)."
            raise Wrong(place, f"{name}() with {len(given)} arguments", way_out)
        arguments = [self.expression(a, scope) for a in given]
        for argument in arguments:
            refuse_aggregates(argument, f"{name}()", "Aggregate in a subquery first.")
            if not AGGREGATES[function].accepts(argument.type):
                way_out = f"Write {name}() of a scalar value, a struct of such, or to_json(…)."
                raise Wrong(argument.place or place, f"{name}() of {argument.type}", way_out)
        texts = [written(a) for a in given]
        if scope.above and name == "any_value":
            spell(node, f"min({texts[0]})")
            return _extreme(Aggregate("min", (arguments[0],), when, False, arguments[0].type, place))
        by_value: tuple[str, tuple[Expr, ...]] = (texts[0], order_of(arguments[0]))
        order, events = by_value if scope.above and function == name else self.event_order(scope, place)
        struct = f"struct({', '.join([*texts[1:], order])})"
        for text in [*texts[1:], *texts[: int(known)]]:
            struct = f"CASE WHEN {text} IS NOT NULL THEN {struct} END"
        spell(node, f"{function}({texts[0]}, {struct})")
        if known:
            when = both(when, Call("is not null", (arguments[0],), BOOLEAN))
        value, *keys = arguments
        keys = [key for each in keys for key in order_of(each)]
        return chosen(function, value, (*keys, *events), both(when, all_known(arguments[1:])), place)

    def _of_buckets(
        self, name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None
    ) -> Expr:
        """percentile_approx(x, 0.9): of the values' type, as Spark's, and by so much off as the third argument says."""
        place, given = span(node), node.expressions
        if scope.above:
            raise Wrong(place, f"{name}() above the aggregation", "Write percentile(x, 0.9), which is exact.")
        if not 2 <= len(given) <= 3 or isinstance(given[0], exp.Distinct):
            raise Wrong(place, f"{name}() of other arguments than a value and a share", f"Write {name}(x, 0.9).")
        accuracy = self.expression(given[2], scope) if len(given) > 2 else Constant(str(ACCURACY), INT)
        if not (isinstance(accuracy, Constant) and accuracy.type == INT and 10 <= int(accuracy.value or 0) <= 10_000):
            raise Wrong(place, f"{name}() with another accuracy than 10 to 10000", f"Write {name}(x, 0.9, 100).")
        value = self.expression(given[0], scope)
        refuse_aggregates(value, f"{name}()", "Aggregate in a subquery first.")
        kind = value.type
        if not kind.numeric or kind == FLOAT:
            raise Wrong(place, f"{name}() of {kind}", f"Write {name}(CAST(… AS DOUBLE), 0.9).")
        bucket = bucketed(f"({written(given[0])})", kind, 1 / int(accuracy.value or ACCURACY))
        where = _of_filter(filter_, " FILTER (WHERE ", ")")
        texts, made = [], []
        for share in given[1].expressions if _is_array(given[1]) else [given[1]]:
            disc = exp.Anonymous(this="percentile_disc", expressions=[parsed(bucket), share])
            exact = aggregate("percentile_disc", disc, partial(self.expression, scope=scope), when)
            made.append(cast(replace(exact, place=place), kind))
            disc_text = f"percentile_disc({written(share)}) WITHIN GROUP (ORDER BY {bucket}){where}"
            texts.append(f"CAST({disc_text} AS {kind.spark})")
        several = f"CASE WHEN {texts[0]} IS NOT NULL THEN array({', '.join(texts)}) END"
        spell(node if filter_ is None else filter_, several if _is_array(given[1]) else texts[0])
        return _listed(made, place) if _is_array(given[1]) else made[0]

    def _in_order(self, made: Aggregate, node: exp.Anonymous, scope: Scope, filter_: exp.Filter | None) -> Expr:
        """An aggregate whose result Spark leaves to the order of rows, in the order of their events or their values."""
        name = made.function
        if name in OF_LENGTHS and made.arguments[0].type.length:
            return aggregated(made)
        if name in ("min", "max"):
            return _extreme(made)
        if made.distinct and "session_window" in scope.windows:
            return self._in_a_session(made, node, filter_)
        if name not in ("mode", "collect_set", "collect_list", "listagg", "approx_count_distinct"):
            return made
        if made.distinct:
            way_out = "Write collect_set(x)." if name == "collect_list" else "Write … WITHIN GROUP (ORDER BY x)."
            raise Wrong(made.place, f"{name}(DISTINCT …)", way_out)
        first = node.expressions[0]
        value = written(first.expressions[0] if isinstance(first, exp.Distinct) else first)
        counts = f"{value} IS NOT NULL" + _of_filter(filter_)
        whole: exp.Expr = node if filter_ is None else filter_
        if name == "approx_count_distinct":
            spell(whole, estimate(value, counts, int(getattr(made.arguments[1], "value", 0))))
            return made
        if name == "mode":
            spell(node, f"mode({_one_zero(value, made.type)}, true)")
            return made
        if name == "collect_set":
            spell(whole, f"sort_array(collect_set(CASE WHEN {counts} THEN {value} END))")
            return _by_itself(made)
        order, events = self.event_order(scope, made.place)
        found = _sorted(order, value, counts)
        listed = _in_turn(found)
        if name == "listagg":
            listed = _joined(found, listed, node.expressions[1:])
        spell(whole, listed)
        return replace(made, arguments=(made.arguments[0], *events, *made.arguments[1:]))

    def _in_a_session(self, made: Aggregate, node: exp.Anonymous, filter_: exp.Filter | None) -> Aggregate:
        """DISTINCT in a session, where Spark counts a value once for each piece that it merges to the session."""
        if made.function != "count":
            way_out = "Leave DISTINCT out, or group by window(ts, …)."
            raise Wrong(made.place, f"{made.function}(DISTINCT …) in a session", way_out)
        values = [written(e) for e in node.expressions[0].expressions]
        counts = " AND ".join(f"{value} IS NOT NULL" for value in values) + _of_filter(filter_)
        alike = [_one_zero(value, e.type) for value, e in zip(values, made.arguments, strict=True)]
        whole = node if filter_ is None else filter_
        spell(whole, f"CAST(size(collect_set(CASE WHEN {counts} THEN struct({', '.join(alike)}) END)) AS BIGINT)")
        return made

    def _within_group(
        self, node: exp.WithinGroup, scope: Scope, when: Expr | None = None, filter_: exp.Filter | None = None
    ) -> Expr:
        """percentile_cont(0.5) WITHIN GROUP (ORDER BY x), and its like."""
        call_, place = node.this, span(node.this)
        keys = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        name = SYNONYMS.get(call_.name.lower(), call_.name.lower()) if isinstance(call_, exp.Anonymous) else ""
        given, read = call_.expressions, partial(self.expression, scope=scope)
        texts = given[0].expressions if given and isinstance(given[0], exp.Distinct) else given
        if name == "listagg" and texts:
            return self._listed_within(keys, call_, texts, scope, when, node if filter_ is None else filter_)
        if not name or len(keys) != 1:
            raise Wrong(place, "WITHIN GROUP of another order than one column", "Write WITHIN GROUP (ORDER BY x).")
        value = keys[0].this
        if name in ("mode", "percentile", "percentile_disc"):
            made = aggregate(name, exp.Anonymous(this=name, expressions=[value, *given]), read, when)
            made = replace(made, place=place)
        else:
            raise Wrong(
                place, f"{name}() WITHIN GROUP", "It goes with percentile_cont, percentile_disc, mode and listagg."
            )
        if keys[0].args.get("desc"):
            if name != "percentile":
                raise Wrong(place, f"{name}() in descending order", _FROM_THE_TOP[name])
            share = Decimal(1) - Decimal(str(getattr(made.arguments[1], "value", 0)))
            made = replace(made, arguments=(made.arguments[0], number(str(share))))
        return made

    def _listed_within(
        self,
        keys: Sequence[exp.Ordered],
        node: exp.Anonymous,
        texts: Sequence[exp.Expr],
        scope: Scope,
        when: Expr | None,
        whole: exp.Expr,
    ) -> Expr:
        """listagg(x) WITHIN GROUP (ORDER BY …), by x itself or by something else."""
        read, (value, *between) = partial(self.expression, scope=scope), texts
        keys = _nulls_as_usual(keys, value)
        made = aggregate("listagg", node, read, when)
        if not made.distinct and all(_descends(key) for key in keys):
            return self._listed_downwards(keys, node, scope, when, whole)
        if (by := [read(key.this) for key in keys]) != [read(value)]:
            return _listed_by(keys, by, made, node, whole)
        where = _of_filter(whole) if isinstance(whole, exp.Filter) else ""
        listed = f"CASE WHEN {written(value)} IS NOT NULL{where} THEN {written(value)} END"
        found = f"sort_array({'collect_set' if made.distinct else 'collect_list'}({listed}))"
        if not _descends(keys[0]):
            spell(whole, _joined(found, found, between))
            return made
        spell(whole, _joined(found, f"reverse({found})", between))
        return self._reversed(aggregate("collect_set", _call_of("collect_set", value), read, when), between, scope)

    def _listed_downwards(
        self, keys: Sequence[exp.Ordered], node: exp.Anonymous, scope: Scope, when: Expr | None, whole: exp.Expr
    ) -> Expr:
        """listagg(x) WITHIN GROUP (ORDER BY y DESC): upwards, by y and by x of the same y; then reversed."""
        read, (value, *between), place = partial(self.expression, scope=scope), node.expressions, span(node)
        text = aggregate("listagg", node, read, when).arguments[0]
        events = () if scope.above else self.event_order(scope, place)[1]
        upwards = aggregate("collect_list", _call_of("collect_list", value), read, when)
        upwards = replace(upwards, arguments=(text, *(read(key.this) for key in keys), text, *events))
        counts = f"{written(value)} IS NOT NULL" + (_of_filter(whole) if isinstance(whole, exp.Filter) else "")
        found = _sorted(", ".join(written(key.this) for key in keys), written(value), counts)
        spell(whole, _joined(found, f"reverse({_in_turn(found)})", between))
        return self._reversed(upwards, between, scope)

    def _reversed(self, upwards: Aggregate, between: Sequence[exp.Expr], scope: Scope) -> Expr:
        """The texts of a list from its last to its first as one; of none it is NULL."""
        place = upwards.place
        downwards = Call("reverse", (upwards,), upwards.type, place=place)
        separator = self.expression(between[0], scope) if between else Constant("", STRING)
        joined = call("array_join", [downwards, separator], place)
        return case([(compare(">", call("size", [upwards], place), number("0"), place), joined)], None, place)

    def _ignoring_nulls(self, node: exp.IgnoreNulls, scope: Scope) -> Expr:
        filter_ = node.this if isinstance(node.this, exp.Filter) else None
        inner = node.this if filter_ is None else filter_.this
        if not isinstance(inner, exp.Anonymous) or inner.name.lower() not in BY_EVENT_ORDER:
            raise Wrong(span(node), "IGNORE NULLS", "It goes with first_value(x) and last_value(x).")
        when = None if filter_ is None else condition(self.expression(filter_.expression.this, scope), "FILTER")
        result = self._by(inner.name.lower(), inner, scope, when, known=True)
        where = _of_filter(filter_, " FILTER (WHERE ", ")")
        spell(node, f"{written(inner.meta[SPELLED])}{where}")
        return result

    def _filtered(self, node: exp.Filter, scope: Scope) -> Expr:
        when = condition(self.expression(node.expression.this, scope), "FILTER")
        refuse_aggregates(when, "FILTER", "Filter by columns of the records.")
        if isinstance(node.this, exp.WithinGroup):
            return self._within_group(node.this, scope, when, node)
        if not isinstance(node.this, exp.Anonymous) or not known_aggregate(node.this.name.lower()):
            raise Wrong(span(node), "FILTER after something that is no aggregate", "Use CASE WHEN … THEN … END.")
        return self._call(node.this, scope, when, node)

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
        exp.IgnoreNulls: _ignoring_nulls,
        exp.RespectNulls: lambda self, node, scope: self.expression(node.this, scope),
        exp.WithinGroup: _within_group,
        exp.Subquery: _subquery,
        exp.Exists: _subquery,
        exp.Anonymous: _call,
        exp.Interval: lambda _, node, __: interval(node),
        exp.All: _of_all,
        exp.Any: _of_all,
        exp.Tuple: _tuple,
        exp.Lambda: _lambda,
    }


def _extreme(made: Aggregate) -> Expr:
    return extreme(made) if made.type.nested else made


def _by_itself(made: Aggregate) -> Aggregate:
    """A list of structs in their own order, which is not that of their JSON."""
    return replace(made, arguments=made.arguments[:1] * 2) if is_struct(made.arguments[0]) else made


def _refuse_frame(name: str, rows: str, order: Sequence[Order], place: Place, *, of_all: bool) -> None:
    """Refuses a frame that Spark does: any but a function's own, and to one of all rows any order."""
    if rows and rows != OWN_FRAMES.get(name, rows):
        raise Wrong(place, f"{name}() over a frame, which Spark refuses", "Leave the frame out.")
    if of_all and (order or rows):
        way_out = "Leave ORDER BY out, or write percentile(x, 0.5) OVER (…)."
        raise Wrong(place, f"{name}() over an order, which Spark refuses", way_out)


def _descends(key: exp.Ordered) -> bool:
    return bool(key.args.get("desc"))


def _nulls_as_usual(keys: Sequence[exp.Ordered], listed: exp.Expr) -> list[exp.Ordered]:
    """Keys with NULL where Spark has it, before all or after all that descends: where it is not, a key says so."""
    usual: list[exp.Ordered] = []
    for key in keys:
        down = bool(key.args.get("desc"))
        if down == bool(key.args.get("nulls_first", not down)) and key.this != listed:
            usual.append(exp.Ordered(this=exp.Is(this=key.this.copy(), expression=exp.Null()), desc=down))
        usual.append(exp.Ordered(this=key.this, desc=down, nulls_first=not down))
    return usual


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


def _is_array(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "array" and bool(node.expressions)


def _listed(shares: Sequence[Expr], place: Place) -> Expr:
    """Several percentiles of the same values as a list."""
    return Call("shares", tuple(shares), Type("ARRAY", element=shares[0].type), place=place)


_FROM_THE_TOP = {
    "mode": "Count where x IS NOT NULL, GROUP BY x, and take the first by row_number() OVER (ORDER BY n DESC, x DESC).",
    "percentile_disc": "Of rows whose x is not NULL, take max(x) WHERE cume_dist() OVER (ORDER BY x DESC) >= 0.25.",
}
"""What to write instead of descending order."""

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


def _call_of(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _lowered(text: Expr, place: Place) -> Expr:
    if isinstance(text, Constant) and (text.value or "").isascii():
        return replace(text, value=None if text.value is None else text.value.lower())
    return call("lower", [text], place)


def _refuse_as_value(node: exp.In, values: Sequence[Expr], query: Query, scope: Scope) -> None:
    """IN over a query that is NULL is false to Spark, or the NOT of it true, as it happens to plan it: where that
    matters, it is refused.
    """
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


def _of_filter(filter_: exp.Filter | None, before: str = " AND (", after: str = ")") -> str:
    """The condition of a FILTER in Spark SQL, empty where there is none."""
    return "" if filter_ is None else f"{before}{written(filter_.expression.this)}{after}"


def _sorted(order: str, value: str, counts: str) -> str:
    """The values for which `counts` holds, in Spark SQL, each with what it is ordered by."""
    return f"array_sort(collect_list(CASE WHEN {counts} THEN struct({order}, {value} AS v) END))"


def _in_turn(found: str) -> str:
    return f"transform({found}, s -> s.v)"


def _listed_by(
    keys: Sequence[exp.Ordered], by: Sequence[Expr], made: Aggregate, node: exp.Anonymous, whole: exp.Expr
) -> Aggregate:
    """listagg(x) WITHIN GROUP (ORDER BY y), and by x where several have the same y."""
    if made.distinct:
        raise Wrong(
            made.place, "listagg(DISTINCT …) in another order than its own", "Write … WITHIN GROUP (ORDER BY x)."
        )
    for key in keys:
        if key.args.get("desc"):
            way_out = "Order by what ascends, or all descends: by -n for n DESC, where n is not NULL."
            raise Wrong(made.place, "listagg() in mixed order", way_out)
    value = written(node.expressions[0])
    counts = f"{value} IS NOT NULL" + (_of_filter(whole) if isinstance(whole, exp.Filter) else "")
    found = _sorted(", ".join(written(key.this) for key in keys), value, counts)
    spell(whole, _joined(found, _in_turn(found), node.expressions[1:]))
    text, *between = made.arguments
    return replace(made, arguments=(text, *by, text, *between))


def _one_zero(value: str, kind: Type) -> str:
    """A value in Spark SQL; the two zeros of fractions are one value."""
    return f"CASE WHEN {value} = 0 THEN CAST(0 AS {kind.spark}) ELSE {value} END" if kind in (DOUBLE, FLOAT) else value


def _joined(found: str, texts: str, between: Sequence[exp.Expr]) -> str:
    """Texts as one, in Spark SQL; of none that were found it is NULL, as with listagg()."""
    separator = written(between[0]) if between else "''"
    return f"CASE WHEN size({found}) > 0 THEN array_join({texts}, {separator}) END"


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


def refuse_aggregates(expression: Expr, where: str, way_out: str) -> None:
    """Refuses aggregates and window functions where there can be none."""
    refuse_windowed(expression, where)
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise Wrong(part.place, f"{part.function}() in {where}", way_out)


def refuse_windowed(expression: Expr, where: str) -> None:
    """Refuses window functions where there can be none."""
    for part in walk(expression):
        if isinstance(part, Windowed):
            what = f"{part.function}() OVER (…) in {where}"
            raise Wrong(part.place, what, "Compute it in a subquery, and filter outside.")
