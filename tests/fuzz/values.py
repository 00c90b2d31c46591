"""Random scalar expressions and aggregates, of every kind that docs/sql.md describes.

Arguments need not have the right type: the compiler refuses a call that does not fit, and the run counts it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from view_algebra.language.aggregates import AGGREGATES
from view_algebra.language.aggregates import MOMENTS as MOMENTS_BY_ANY_NAME
from view_algebra.language.functions import FUNCTIONS, Function
from view_algebra.language.quoting import words
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
)

MONEY, WIDE, SMALL = decimal(10, 2), decimal(30, 6), Type("SMALLINT")
BY_EVENTS = words("first last first_value last_value any_value min_by max_by collect_list listagg")
"""Aggregates that go by the order of the events, so that they need the stream itself in FROM."""

Rows = Literal["records", "groups", "window"]
"""The rows that a value aggregates."""

ABOUT = Type("ABOUT")
"""A double whose last digits depend on the order of summation. Nothing is computed from it."""

MOMENTS = MOMENTS_BY_ANY_NAME & AGGREGATES.keys()

SOURCE = """CREATE TABLE s (
  k INT, tiny TINYINT, small SMALLINT, big BIGINT, price DOUBLE, ratio FLOAT, money DECIMAL(10,2), wide DECIMAL(30,6),
  kind STRING, word STRING, flag BOOLEAN, day DATE, ts TIMESTAMP, gap STRING,
  user STRUCT<id: BIGINT, name: STRING>, tags ARRAY<STRING>, numbers ARRAY<INT>
) USING kafka OPTIONS (topic 's', format 'json');
"""

COLUMNS: tuple[tuple[str, Type], ...] = (
    ("k", INT),
    ("tiny", TINYINT),
    ("small", SMALL),
    ("big", BIGINT),
    ("price", DOUBLE),
    ("ratio", FLOAT),
    ("money", MONEY),
    ("wide", WIDE),
    ("kind", STRING),
    ("word", STRING),
    ("flag", BOOLEAN),
    ("day", DATE),
    ("ts", TIMESTAMP),
    ("user.id", BIGINT),
    ("user.name", STRING),
)
"""The scalar columns of `s`, as a query names them."""

NESTED: tuple[tuple[str, Type], ...] = (
    ("tags", Type("ARRAY", element=STRING)),
    ("numbers", Type("ARRAY", element=INT)),
)

FEW = ("k", "tiny", "kind", "word", "flag", "user.id", "day")
"""Columns of few values, to group by."""

UNCALLED = words(
    "repeat space pi make_date make_timestamp date_add date_sub dateadd"
    " timestamp_seconds timestamp_millis timestamp_micros add_months date_from_unix_date"
)
"""Functions that make endless texts, or times outside the years 0001 to 9999, which are NULL here."""

LITERALS: dict[str, tuple[str, ...]] = {
    "TINYINT": ("1Y", "-3Y"),
    "SMALLINT": ("2S", "CAST(300 AS SMALLINT)"),
    "INT": ("0", "1", "2", "-1", "7", "1000000"),
    "BIGINT": ("3L", "-9L", "CAST(0 AS BIGINT)", "4000000000"),
    "FLOAT": ("CAST(1.5 AS FLOAT)",),
    "DOUBLE": ("0.5D", "2D", "CAST(-1.25 AS DOUBLE)", "0D", "1e3"),
    "DECIMAL": ("1.5", "0.01", "-2.250", "100.0"),
    "STRING": ("'a'", "''", "'B b'", "'ä'", "'x'", "'1'"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("DATE '2024-02-29'", "DATE '1969-12-31'"),
    "TIMESTAMP": ("TIMESTAMP '2024-03-01 12:00:00'", "TIMESTAMP '1969-12-31 23:59:59.5'"),
}

SCALARS = (INT, TINYINT, SMALL, BIGINT, FLOAT, DOUBLE, MONEY, WIDE, STRING, BOOLEAN, DATE, TIMESTAMP)
NUMBERS = (INT, TINYINT, BIGINT, DOUBLE, MONEY, WIDE)

WORDS: dict[str, tuple[str, ...]] = {
    "literal": ("'a'", "'-'", "'MO'"),
    "positive": ("1", "2", "3"),
    "natural": ("0", "1", "2", "5"),
    "whole": ("-3", "-1", "0", "1", "2"),
    "nonzero": ("-2", "-1", "1", "2"),
    "negative": ("-3", "-1"),
    "character": ("' '", "'a'"),
    "delimiter": ("' '", "'ab'"),
    "weekday": ("'MO'", "'sun'"),
    "schema": ("'a INT, b STRING'", "'ARRAY<STRING>'"),
    "flag": ("true", "false"),
    "regex": ("'[aeiou]'", "'(a)(b)?'", "'\\\\s+'", "' '"),
    "translated": ("'[aeiou]'", "'^a|b$'", "'(?i)A.*b'", "'.'"),
    "unambiguous": ("'[aeiou]'", "'(a)(b)?'", "'[^a-z]+'", "'\\\\w'"),
    "replacement": ("'_'", "''", "'<$0>'"),
    "format": ("'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss'", "'E'"),
    "parsed": ("'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss'", "'HH dd'", "'D'", "'XXX'"),
    "pattern": ("'EEE d MMMM'", "'yyyyMMdd h a'", "'yyyy-MM'", "'yyyy-MM-dd HH:mm'", "'HH'"),
    "zone": ("'Europe/Paris'", "'UTC'", "'America/St_Johns'"),
    "unit": ("'hour'", "'day'", "'month'", "'week'", "'year'", "'minute'", "'quarter'"),
    "dateunit": ("'month'", "'year'", "'week'", "'quarter'"),
}
"""Arguments that are literals."""

LISTS = ("array", "comparable", "same", "plain", "printed", "listed", "scalars", "doubles", "times")
"""Arguments that are arrays."""

OTHER_ROWS = 0.12
"""The probability that a condition on a record queries other records."""


@dataclass
class Values:
    """Generates expressions. Equal dice give equal expressions.

    below: the expressions are about records
    ordered: these records are the stream's own, in the order of events
    """

    dice: random.Random
    below: bool = True
    ordered: bool = True

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.dice.random() < share

    def value(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int = 1) -> str:
        """An expression of about this type."""
        if kind in (STRING, INT, BOOLEAN) and any(t.name == "ARRAY" for _, t in columns) and self.chance(0.15):
            return self._of_lists(kind, columns)
        fitting = [name for name, t in columns if t.name == kind.name]
        if fitting and self.chance(0.65 if depth > 0 else 0.9):
            return self.dice.choice(fitting)
        if depth <= 0:
            return self.dice.choice(LITERALS[kind.name]) if kind.name in LITERALS else "NULL"
        if self.below and NESTED[0] in columns and kind in (STRING, INT, BOOLEAN) and self.chance(0.15):
            return self._over_elements(kind, columns, depth - 1)
        method = self.dice.choice([self._call, self._call, self._operation, self._conditional, self._cast])
        return method(kind, columns, depth - 1)

    def any_value(self, columns: Sequence[tuple[str, Type]], depth: int = 1) -> tuple[str, Type]:
        """An expression, mostly of a column's own type."""
        kinds = [t for _, t in columns if t in SCALARS]
        kind = self.dice.choice(kinds) if kinds and self.chance(0.7) else self.dice.choice(SCALARS)
        return self.value(kind, columns, depth), kind

    def condition(self, columns: Sequence[tuple[str, Type]], depth: int = 1) -> str:
        """A condition on a row."""
        text, kind = self.any_value(columns, depth - 1)
        literal = self.value(kind, columns if self.chance(0.2) else (), 0)
        other = self.value(kind, (), 0)
        simple = [
            f"{text} {self.dice.choice(['=', '<>', '<', '>=', '<=>', '>', '<='])} {literal}",
            f"{text} IS {self.dice.choice(['', 'NOT '])}NULL",
            f"{text} IN ({literal}, {other})",
            f"{text} NOT IN ({literal}, {other})",
            f"{text} BETWEEN {literal} AND {other}",
            f"{text} IS {self.dice.choice(['', 'NOT '])}DISTINCT FROM {literal}",
        ]
        if self.chance(0.12):  # of another type, which Spark may cast
            sign, operand = (
                self.dice.choice(["=", "<", ">=", "<=>"]),
                self.dice.choice([STRING, INT, DOUBLE, MONEY, DATE]),
            )
            simple = [f"{text} {sign} {self.value(operand, columns if self.chance(0.3) else (), 0)}"]
        elif kind == TIMESTAMP and self.chance(0.2):
            simple.append(f"{text} - {literal} {self.dice.choice('<>')} INTERVAL {self.dice.choice([1, 90])} MINUTES")
        if kind == STRING:
            simple.append(f"{text} {self.dice.choice(['', 'NOT '])}LIKE '{self.dice.choice(['a%', '%b', '_', '%'])}'")
        condition = self.dice.choice(simple)
        if depth > 0 and self.chance(0.3):
            condition = f"({condition} {self.dice.choice(['AND', 'OR'])} {self.condition(columns, depth - 1)})"
        return f"NOT ({condition})" if self.chance(0.08) else condition

    def _operation(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        a = self.value(kind, columns, depth)
        if kind in (INT, BIGINT) and self.chance(0.15):
            return f"({a} {self.dice.choice(['<<', '>>'])} {self.dice.choice([1, 3, 40])})"
        if kind == BIGINT and self.chance(0.15):
            times = f"{self.value(TIMESTAMP, columns, depth)}, {self.value(TIMESTAMP, columns, 0)}"
            return f"timestampdiff({self.dice.choice(['MONTH', 'DAY', 'HOUR', 'YEAR'])}, {times})"
        if kind == BIGINT and self.chance(0.1):
            apart = f"{self.value(TIMESTAMP, columns, 0)} - {self.value(TIMESTAMP, columns, 0)}"
            return f"CAST({apart} AS BIGINT)"
        if kind.numeric:
            b = self.value(self.dice.choice(NUMBERS) if self.chance(0.2) else kind, columns, depth)
            signs = ["+", "-", "*", "%"] + (["/"] if kind.name in ("DOUBLE", "DECIMAL") else ["div"])
            signs += ["&", "|", "^"] if kind.integral else []
            return f"({a} {self.dice.choice(signs)} {b})" if self.chance(0.9) else f"(- {a})"
        if kind == STRING:
            return f"({a} || {self.value(self.dice.choice([STRING, INT, DATE]), columns, depth)})"
        if kind == DATE:
            return f"({a} + {self.dice.choice([1, 40])})"
        if kind == TIMESTAMP:
            shift = self.dice.choice(["1 hour", "2 days", "1 month", "90 seconds"])
            return f"({a} {self.dice.choice('+-')} INTERVAL '{shift}')"
        return f"({self.condition(columns, depth)})" if kind == BOOLEAN else a

    def _over_elements(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        array, element = self.dice.choice([("tags", STRING), ("numbers", INT)])
        name = self.dice.choice(["x", "word", "x1"])
        inside = [(name, element), *(column for column in columns if column[0] != name)]
        if kind == STRING:
            inner = self.value(STRING, [(name, STRING), *inside[1:]], depth)
            return f"array_join(transform(tags, {name} -> {inner}), '-')"
        if kind == INT and self.chance(0.5):
            return f"aggregate(numbers, 0, (a, {name}) -> a + coalesce({name}, {self.value(INT, (), 0)}))"
        condition = f"{name} -> {self.condition(inside, depth)}"
        if kind == INT:
            return f"size(filter({array}, {condition}))"
        return f"{self.dice.choice(['exists', 'forall'])}({array}, {condition})"

    def over_other_rows(self, columns: Sequence[tuple[str, Type]]) -> str:
        """A condition on a record of `s` that depends on other records."""
        name, kind = self.dice.choice([c for c in columns if c[0] in FEW])
        alike = self.dice.choice([n for n, t in COLUMNS if t == kind])
        number = self.dice.choice(["k", "big", "money", "tiny"])
        sign, other = self.dice.choice(["=", "<=>"]), self.condition(COLUMNS)
        greater, some = self.dice.choice([">", "<="]), self.dice.choice(["EXISTS", "NOT EXISTS"])
        inside = self.dice.choice(
            [
                f"{some} (SELECT 1 FROM s AS j WHERE j.{alike} = i.{alike} AND j.{number} > i.{number})",
                f"i.{number} >= (SELECT avg(j.{number}) FROM s AS j WHERE j.{alike} {sign} i.{alike})",
                f"i.{alike} IN (SELECT j.{alike} FROM s AS j WHERE j.{name} = i.{name} AND j.k > 0)",
            ]
        )
        return self.dice.choice(
            [
                f"{name} {self.dice.choice(['', 'NOT '])}IN (SELECT {alike} FROM s WHERE {other})",
                f"{name} IN (SELECT {name} FROM s GROUP BY {name} HAVING count(*) > {self.dice.choice([2, 5, 9])})",
                f"({name}, {number}) IN (SELECT {name}, max({number}) FROM s GROUP BY {name})",
                f"{number} {greater} (SELECT avg({number}) FROM s WHERE {other})",
                f"{number} >= (SELECT avg(i.{number}) FROM s AS i WHERE i.{name} {sign} s.{name})",
                f"{some} (SELECT 1 FROM s AS i WHERE i.{name} = s.{name} AND i.{number} > s.{number})",
                f"{self.dice.choice([1, 2])} < (SELECT count(*) FROM s AS i WHERE i.{name} {sign} s.{alike})",
                f"{some} (SELECT 1 FROM s AS i WHERE i.{name} = s.{name} AND {inside})",
                f"{number} > (SELECT min(i.{number}) FROM s AS i WHERE i.{name} = s.{name} AND {inside})",
            ]
        )

    def where(
        self, columns: Sequence[tuple[str, Type]], share: float, depth: int = 1, *, subqueries: bool = False
    ) -> str:
        """A WHERE with probability `share`, perhaps also with a subquery over other records."""
        conditions = [self.condition(columns, depth)] if self.chance(share) else []
        conditions += [self.over_other_rows(columns)] if subqueries and self.chance(OTHER_ROWS) else []
        return f" WHERE {' AND '.join(f'({one})' for one in conditions)}" if conditions else ""

    def _conditional(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        a, b = self.value(kind, columns, depth), self.value(kind, columns, depth)
        when = self.condition(columns, 0)
        otherwise = f" ELSE {b}" if self.chance(0.7) else ""
        return self.dice.choice(
            [f"CASE WHEN {when} THEN {a}{otherwise} END", f"coalesce({a}, {b})", f"if({when}, {a}, {b})"]
        )

    def _cast(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        from_ = self.dice.choice([STRING, DATE, BOOLEAN] if kind == TIMESTAMP else SCALARS)  # others leave the calendar
        word = "TRY_CAST" if self.chance(0.15) else "CAST"
        return f"{word}({self.value(from_, columns, depth)} AS {kind.spark})"

    def _call(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        lists = any(t.name == "ARRAY" for _, t in columns)
        fitting = [
            row
            for rows in FUNCTIONS.values()
            for row in rows
            if (self.below or (row.above and (lists or not {*row.takes} & {*LISTS})))
            and _gives(row, kind)
            and row.name not in UNCALLED
        ]
        if not fitting:
            return self.value(kind, columns, 0)
        name = self.dice.choice(sorted({row.name for row in fitting}))
        row = self.dice.choice([row for row in fitting if row.name == name])
        takes: list[str] = []
        for one in row.takes:
            repeats = (
                self.dice.choice([0, 1, 2]) if one[-1] == "*" else self.dice.choice([0, 1]) if one[-1] == "?" else 1
            )
            takes += [one.rstrip("*?")] * repeats
        common = kind if row.gives in ("common", "first") or not isinstance(row.gives, (Type, str)) else None
        if common is None:
            common = self.dice.choice(SCALARS)
        if name == "date_trunc" and self.chance(0.1):
            return f"date_trunc('week', {self.value(TIMESTAMP, columns, depth)})"
        return f"{name}({', '.join(self._argument(one, common, columns, depth) for one in takes)})"

    def _argument(self, takes: str, common: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        if takes in WORDS:
            return self.dice.choice(WORDS[takes])
        if takes in LISTS:
            return self._list(columns)
        if takes in ("struct", "map"):
            nested = [name for name, t in columns if t.name == takes.upper()]
            return self.dice.choice(nested or ["split(word, ' ')"])
        kinds: dict[str, Sequence[Type]] = {
            "integral": (INT, BIGINT, TINYINT, SMALL),
            "numeric": NUMBERS,
            "any": SCALARS,
            "scalar": SCALARS,
            "text": (STRING, STRING, INT, DATE),
            "common": (common,),
            "element": (STRING, INT, BIGINT),
            "key": (STRING,),
            "day": (DATE,),
            "texts": (STRING,),
            "decimal": (MONEY, WIDE),
            "binary": (STRING,),
            "timestamp_ntz": (TIMESTAMP,),
        }
        plain = {t.name.lower(): (t,) for t in (INT, BIGINT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP)}
        return self.value(self.dice.choice([*kinds.get(takes, plain.get(takes, (common,)))]), columns, depth)

    def _list(self, columns: Sequence[tuple[str, Type]]) -> str:
        """A list column, sometimes transformed."""
        lists = [(name, t.element) for name, t in columns if t.element is not None and t.name == "ARRAY"]
        a, element = self.dice.choice(lists or [("split(word, ' ')", STRING)])
        if element not in SCALARS or self.chance(0.6):
            return a
        b = self.dice.choice([name for name, other in lists if other == element] or [a])
        e = self.value(element, columns, 0)
        name = self.dice.choice(["union", "intersect", "except"])
        calls = [f"array_{name}({a}, {self.dice.choice([b, f'array({e})'])})", f"array_remove({a}, {e})"]
        calls += [f"array_append({a}, {e})", f"array_prepend({b}, {e})", f"array_compact({a})", f"slice({a}, -2, 2)"]
        calls += [f"sort_array({a}, false)", f"array_sort({a})", f"array_distinct({a})", f"reverse({a})"]
        return self.dice.choice(calls)

    def _of_lists(self, kind: Type, columns: Sequence[tuple[str, Type]]) -> str:
        a, b = self._list(columns), self._list(columns)
        if kind == STRING:
            return f"array_join({a}, '-', '?')"
        return f"size({a})" if kind == INT else f"arrays_overlap({a}, {b})"

    def _aggregates(self, rows: Rows) -> list[str]:
        """The names of the aggregates over these rows, some twice."""
        above, plain = rows != "records", rows != "window"
        names = [n for n, row in AGGREGATES.items() if not above or row.above or (plain and row.rows)]
        names += ["a struct"] * 4 if plain else []
        if above:
            names = [n for n in names if n != "collect_list"]  # there it has no order
            return names + (["min_by", "max_by", "any_value"] if plain else [])
        names += ["percentile_approx", "any_value", "mean", "stddev", "count", "sum", "sum"]
        names += ["first", "last", "first_value", "last_value"]
        names = [n for n in names if n not in MOMENTS or self.chance(0.5)]
        return [n for n in names if self.ordered or n not in BY_EVENTS]

    def aggregate(self, columns: Sequence[tuple[str, Type]], rows: Rows = "records") -> tuple[str, Type]:
        """An aggregate over the values of these rows. Over a window, Spark has no FILTER and no DISTINCT."""
        name = self.dice.choice(self._aggregates(rows))
        if name == "a struct":
            return self._of_structs(columns)
        synonyms = {"mean": "avg", "stddev": "stddev_samp", "percentile_approx": "percentile"}
        row = AGGREGATES.get(synonyms.get(name, name))
        where = "" if rows == "window" else self._filter(columns, subqueries=rows == "records" and self.ordered)
        if name == "count" and self.chance(0.5):
            return f"count(*){where}", BIGINT
        if row is not None and row.name in MOMENTS:
            return self._moments(name, row.arguments[0], columns, where)
        kinds = [t for _, t in columns if t in SCALARS and (row is None or row.accepts(t))]
        kind = self.dice.choice(kinds or [t for t in SCALARS if row is None or row.accepts(t)])
        text = self.value(kind, columns, self.dice.choice([0, 0, 0, 1]))
        distinct = "DISTINCT " if rows != "window" and self.chance(0.15) else ""
        gives = row.gives([kind, kind]) if row is not None and name not in ("min_by", "max_by") else kind
        if name in ("percentile", "median", "percentile_disc", "mode", "percentile_approx"):
            return self._percentile(name, text) + where, kind if name == "percentile_approx" else gives
        if name == "listagg":
            if distinct:
                return f"listagg(DISTINCT {text}, '|') WITHIN GROUP (ORDER BY {text}){where}", STRING
            within = f" WITHIN GROUP (ORDER BY {text})" if self.chance(0.4) else ""
            return f"listagg({text}, '-'){within}{where}", STRING
        if name in ("collect_set", "collect_list"):
            return f"{name}({text}){where}", gives
        if name == "count" and self.chance(0.2):
            return f"count({distinct}{text}, {self.value(STRING, columns, 0)}){where}", BIGINT
        if name in ("first", "last", "first_value", "last_value"):
            ignore = " IGNORE NULLS" if self.chance(0.3) else ""
            return f"{name}({text}){where}{ignore}", kind
        if row is not None and row.arguments[0] == 2:
            second = self.dice.choice(NUMBERS)
            other = self.value(second, columns, 0)
            return f"{name}({text}, {other}){where}", row.gives([kind, second]) if name.startswith("regr") else gives
        return f"{name}({distinct}{text}){where}", gives

    def _percentile(self, name: str, text: str) -> str:
        share = self.dice.choice(["0", "0.1", "0.5", "0.75", "1.0"])
        ordered = f"WITHIN GROUP (ORDER BY {text})"
        continuous = f"percentile({text}, {share})" if share < "0.5" else f"percentile_cont({share}) {ordered}"
        calls = {
            "percentile": continuous,
            "percentile_disc": f"percentile_disc({share}) {ordered}",
            "percentile_approx": f"percentile_approx({text}, {share}{self.dice.choice(['', ', 10', ', 1000'])})",
        }
        return calls.get(name, f"{name}({text})")

    def _of_structs(self, columns: Sequence[tuple[str, Type]]) -> tuple[str, Type]:
        """An aggregate of structs, or a field of its result."""
        x, kind = self.any_value(columns, 0)
        y, other = self.any_value(columns, 0)
        struct = f"struct({x} AS x, {y} AS y)"
        whole = Type("STRUCT", fields=(("x", kind), ("y", other)))
        name = self.dice.choice(["max", "min", "max_by", "collect_list", "collect_set"])
        name = self.dice.choice(["first", "last"]) if self.below and self.ordered and self.chance(0.3) else name
        if name.startswith("collect"):
            return f"{name}({struct})", Type("ARRAY", element=whole)
        call = f"{name}({struct}, {self.value(INT, columns, 0)})" if name == "max_by" else f"{name}({struct})"
        return self.dice.choice([(call, whole), (f"{call}.x", kind), (f"{call}.y", other)])

    def _filter(self, columns: Sequence[tuple[str, Type]], *, subqueries: bool) -> str:
        """A FILTER with probability 0.2, perhaps a subquery over other records."""
        if not self.chance(0.2):
            return ""
        condition = self.over_other_rows(columns) if subqueries and self.chance(OTHER_ROWS) else self.condition(columns)
        return f" FILTER (WHERE {condition})"

    def _moments(self, name: str, arguments: int, columns: Sequence[tuple[str, Type]], where: str) -> tuple[str, Type]:
        """An aggregate of deviations. Its numbers are small, so that their products lose no digits to each other."""
        powers = {"skewness": 3, "kurtosis": 3}.get(name, arguments)
        own, small = dict(COLUMNS), (TINYINT, SMALL, MONEY)[: 4 - powers]
        fitting = [n if n in own else f"CAST({n} AS SMALLINT)" for n, t in columns if own.get(n, t) in small] or ["1"]
        return f"{name}({', '.join(self.dice.choice(fitting) for _ in range(arguments))}){where}", ABOUT


def exact(kind: Type) -> bool:
    """True for a scalar that does not depend on the order in which it was computed."""
    return not kind.nested and kind != ABOUT


def _gives(row: Function, kind: Type) -> bool:
    """True if a function may give a value of about this type."""
    if isinstance(row.gives, Type):
        return row.gives.name == kind.name
    if row.gives == "common":
        return True
    first = row.takes[0].replace("comparable", "array") if row.takes else ""
    if first in ("doubles", "times"):
        return callable(row.gives) and kind in ((DOUBLE,) if first == "doubles" else (TIMESTAMP,))
    if first in ("plain", "scalars"):
        return kind in (STRING, INT, BIGINT, DATE, MONEY) and callable(row.gives)
    if first in ("common", "any", "boolean"):
        return True
    if first == "integral":
        return kind.integral
    return first == kind.name.lower()
