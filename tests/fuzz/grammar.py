"""SELECTs at random, of every shape that docs/sql.md tells of; most of them compile.

A query is text with the types of its columns. Types are as near as a choice of arguments needs them: a function that
gets one it does not take is refused by the compiler, and the run counts it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from view_algebra.aggregates import AGGREGATES
from view_algebra.aggregates import MOMENTS as MOMENTS_BY_ANY_NAME
from view_algebra.functions import FUNCTIONS, Function
from view_algebra.types import (
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
    words,
)

MONEY, WIDE, SMALL = decimal(10, 2), decimal(30, 6), Type("SMALLINT")
BY_EVENTS = words("first last first_value last_value any_value min_by max_by collect_list listagg")
"""Aggregates that go by the order of the events, so that they need the stream itself in FROM."""

ABOUT = Type("ABOUT")
"""A double whose last digits depend on the order of adding up: shown, but nothing further is made of it."""

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
"""The columns of `s` that are scalars, as they are written in a query."""

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
    "replacement": ("'_'", "''", "'<$0>'"),
    "format": ("'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss'", "'E'"),
    "pattern": ("'EEE d MMMM'", "'yyyyMMdd h a'", "'yyyy-MM'", "'yyyy-MM-dd HH:mm'", "'HH'"),
    "zone": ("'Europe/Paris'", "'UTC'", "'America/St_Johns'"),
    "unit": ("'hour'", "'day'", "'month'", "'week'", "'year'", "'minute'", "'quarter'"),
    "dateunit": ("'month'", "'year'", "'week'", "'quarter'"),
}
"""What a function takes that is known when a view is declared."""

TUMBLING = ("window(ts, '1 hour')", "window(ts, '7 hours', '7 hours', '90 minutes')", "window(ts, '1 day')")
HOPPING = (
    "window(ts, '1 hour', '20 minutes')",
    "window(ts, '1 day', '7 hours')",
    "window(ts, '2 hours', '1 hour', '-5 minutes')",
    "window(ts, '5 hours', '4 minutes')",
)
SESSIONS = (
    "session_window(ts, '30 minutes')",
    "session_window(ts, '1 day')",
    "session_window(ts, gap)",
    "session_window(ts, CASE WHEN kind = 'a' THEN '1 minute' ELSE '2 hours' END)",
)


CONSTANTS = "(VALUES ('a', 1, 'one'), ('b', 2, 'two'), ('B b', 2, NULL), (NULL, 3, 'three')) AS v (code, rank, label)"

LISTS = ("array", "same", "plain", "printed", "listed")
"""What a function takes that is an array."""

ASKED = 0.12
"""How many conditions on records ask other records."""


@dataclass(frozen=True)
class Query:
    """A SELECT, and the names and types of its columns. `unique`: names that together no two rows share."""

    sql: str
    columns: tuple[tuple[str, Type], ...]
    unique: tuple[str, ...] = ()


@dataclass
class Grammar:
    """Makes queries; the same dice make the same ones."""

    dice: random.Random
    views: dict[str, Query] = field(default_factory=dict)
    below: bool = True
    ordered: bool = True

    def query(self) -> Query:
        """A view's SELECT."""
        shapes: list[tuple[int, Callable[[], Query]]] = [
            (10, self.aggregated),
            (6, lambda: self.above(self.aggregated())),
            (3, lambda: self.reaggregated(self.relation())),
            (3, self.joined),
            (2, self.combined),
            (3, lambda: self.ranked(self.relation())),
            (2, lambda: self.limited(self.relation())),
            (2, self.compared),
            (3, self.row_view),
            (2, self.latest),
        ]
        return self.dice.choices([make for _, make in shapes], [weight for weight, _ in shapes])[0]()

    def relation(self) -> Query:
        """What is read above an aggregation."""
        if self.views and self.chance(0.25):
            name = self.dice.choice(sorted(self.views))
            return Query(f"SELECT * FROM {name}", self.views[name].columns, self.views[name].unique)
        inner = self.aggregated()
        return self.above(inner) if self.chance(0.33) else inner

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.dice.random() < share

    # scalar expressions

    def value(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int = 1) -> str:
        """An expression of about this type."""
        fitting = [name for name, t in columns if t.name == kind.name]
        if fitting and self.chance(0.65 if depth > 0 else 0.9):
            return self.dice.choice(fitting)
        if depth <= 0:
            return self.dice.choice(LITERALS[kind.name]) if kind.name in LITERALS else "NULL"
        if self.below and NESTED[0] in columns and kind in (STRING, INT, BOOLEAN) and self.chance(0.15):
            return self._over_elements(kind, columns, depth - 1)
        made = self.dice.choice([self._call, self._call, self._operation, self._conditional, self._cast])
        return made(kind, columns, depth - 1)

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
        if kind == STRING:
            simple.append(f"{text} {self.dice.choice(['', 'NOT '])}LIKE '{self.dice.choice(['a%', '%b', '_', '%'])}'")
        made = self.dice.choice(simple)
        if depth > 0 and self.chance(0.3):
            made = f"({made} {self.dice.choice(['AND', 'OR'])} {self.condition(columns, depth - 1)})"
        return f"NOT ({made})" if self.chance(0.08) else made

    def _operation(self, kind: Type, columns: Sequence[tuple[str, Type]], depth: int) -> str:
        a = self.value(kind, columns, depth)
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
            made = self.value(STRING, [(name, STRING), *inside[1:]], depth)
            return f"array_join(transform(tags, {name} -> {made}), '-')"
        if kind == INT and self.chance(0.5):
            return f"aggregate(numbers, 0, (a, {name}) -> a + coalesce({name}, {self.value(INT, (), 0)}))"
        condition = f"{name} -> {self.condition(inside, depth)}"
        if kind == INT:
            return f"size(filter({array}, {condition}))"
        return f"{self.dice.choice(['exists', 'forall'])}({array}, {condition})"

    def asked(self, columns: Sequence[tuple[str, Type]]) -> str:
        """A condition on a record of `s` that other records answer."""
        name, kind = self.dice.choice([c for c in columns if c[0] in FEW])
        alike = self.dice.choice([n for n, t in COLUMNS if t == kind])
        number = self.dice.choice(["k", "big", "money", "tiny"])
        sign, other = self.dice.choice(["=", "<=>"]), self.condition(COLUMNS)
        greater, some = self.dice.choice([">", "<="]), self.dice.choice(["EXISTS", "NOT EXISTS"])
        return self.dice.choice(
            [
                f"{name} {self.dice.choice(['', 'NOT '])}IN (SELECT {alike} FROM s WHERE {other})",
                f"{name} IN (SELECT {name} FROM s GROUP BY {name} HAVING count(*) > {self.dice.choice([2, 5, 9])})",
                f"({name}, {number}) IN (SELECT {name}, max({number}) FROM s GROUP BY {name})",
                f"{number} {greater} (SELECT avg({number}) FROM s WHERE {other})",
                f"{number} >= (SELECT avg(i.{number}) FROM s AS i WHERE i.{name} {sign} s.{name})",
                f"{some} (SELECT 1 FROM s AS i WHERE i.{name} = s.{name} AND i.{number} > s.{number})",
                f"{self.dice.choice([1, 2])} < (SELECT count(*) FROM s AS i WHERE i.{name} {sign} s.{alike})",
            ]
        )

    def where(self, columns: Sequence[tuple[str, Type]], share: float, asks: bool, depth: int = 1) -> str:
        """A WHERE, so often; where it `asks`, of other records too."""
        conditions = [self.condition(columns, depth)] if self.chance(share) else []
        conditions += [self.asked(columns)] if asks and self.chance(ASKED) else []
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
        return f"CAST({self.value(from_, columns, depth)} AS {kind.spark})"

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
        if takes in (*LISTS, "struct", "map"):
            arrays = [name for name, t in columns if t.name == ("ARRAY" if takes in LISTS else takes.upper())]
            return self.dice.choice(arrays) if arrays else "split(word, ' ')"
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

    # aggregation

    def aggregate(
        self, columns: Sequence[tuple[str, Type]], above: bool = False, over: bool = False
    ) -> tuple[str, Type]:
        """An aggregate of a row's values; `over` a window, where Spark has no FILTER and no DISTINCT."""
        names = [n for n, row in AGGREGATES.items() if not above or row.above or (not over and row.rows)]
        if above and not over:
            names += ["min_by", "max_by", "any_value"]
        if not above:
            names += [
                "percentile_approx",
                "any_value",
                "first",
                "last",
                "first_value",
                "last_value",
                "mean",
                "stddev",
                "count",
                "sum",
                "sum",
            ]
            names = [n for n in names if n not in MOMENTS or self.chance(0.5)]
            names = [n for n in names if self.ordered or n not in BY_EVENTS]
        name = self.dice.choice(names)
        row = AGGREGATES.get(
            {"mean": "avg", "stddev": "stddev_samp", "percentile_approx": "percentile"}.get(name, name)
        )
        where = "" if over else self._filter(columns, asks=not above and self.ordered)
        if name == "count" and self.chance(0.5):
            return f"count(*){where}", BIGINT
        if row is not None and row.name in MOMENTS:
            return self._moments(name, row.arguments[0], columns, where)
        kinds = [t for _, t in columns if t in SCALARS and (row is None or row.accepts(t))]
        kind = self.dice.choice(kinds or [t for t in SCALARS if row is None or row.accepts(t)])
        text = self.value(kind, columns, self.dice.choice([0, 0, 0, 1]))
        each = "DISTINCT " if not over and self.chance(0.15) else ""
        gives = row.gives([kind, kind]) if row is not None and name not in ("min_by", "max_by") else kind
        if name in ("percentile", "median", "percentile_disc", "mode", "percentile_approx"):
            share = self.dice.choice(["0", "0.1", "0.5", "0.75", "1.0"])
            ordered = f"WITHIN GROUP (ORDER BY {text})"
            return {
                "percentile": f"percentile({text}, {share})"
                if share < "0.5"
                else f"percentile_cont({share}) {ordered}",
                "median": f"median({text})",
                "mode": f"mode({text})",
                "percentile_disc": f"percentile_disc({share}) {ordered}",
                "percentile_approx": f"percentile_approx({text}, {share}{self.dice.choice(['', ', 10', ', 1000'])})",
            }[name] + where, kind if name == "percentile_approx" else gives
        if name == "listagg":
            if each:
                return f"listagg(DISTINCT {text}, '|') WITHIN GROUP (ORDER BY {text}){where}", STRING
            within = f" WITHIN GROUP (ORDER BY {text})" if self.chance(0.4) else ""
            return f"listagg({text}, '-'){within}{where}", STRING
        if name in ("collect_set", "collect_list"):
            return f"{name}({text}){where}", gives
        if name == "count" and self.chance(0.2):
            return f"count({each}{text}, {self.value(STRING, columns, 0)}){where}", BIGINT
        if name in ("first", "last", "first_value", "last_value"):
            ignore = " IGNORE NULLS" if self.chance(0.3) else ""
            return f"{name}({text}){where}{ignore}", kind
        if row is not None and row.arguments[0] == 2:
            second = self.dice.choice(NUMBERS)
            other = self.value(second, columns, 0)
            return f"{name}({text}, {other}){where}", row.gives([kind, second]) if name.startswith("regr") else gives
        return f"{name}({each}{text}){where}", gives

    def _filter(self, columns: Sequence[tuple[str, Type]], *, asks: bool) -> str:
        """A FILTER, at times; where it `asks`, of other records too."""
        if not self.chance(0.2):
            return ""
        condition = self.asked(columns) if asks and self.chance(ASKED) else self.condition(columns)
        return f" FILTER (WHERE {condition})"

    def _moments(self, name: str, arguments: int, columns: Sequence[tuple[str, Type]], where: str) -> tuple[str, Type]:
        """An aggregate of deviations, of numbers that are not so large that their squares drown each other."""
        fitting = [n for n, t in columns if t in (TINYINT, SMALL, MONEY)] or ["1"]
        return f"{name}({', '.join(self.dice.choice(fitting) for _ in range(arguments))}){where}", ABOUT

    def aggregated(self) -> Query:
        """A GROUP BY over the stream."""
        self.below = True
        columns: list[tuple[str, Type]] = [*COLUMNS, *(NESTED if self.chance(0.3) else ())]
        source, few = "s", list(FEW)
        if self.chance(0.12):
            source, columns, few = self._lateral(columns, few)
        elif self.chance(0.12):
            source, columns, few = self._projected()
        elif self.chance(0.08):
            source, columns, few = self._labelled(columns, few)
        self.ordered = source == "s"
        keys: list[tuple[str, Type]] = []
        for _ in range(self.dice.choice([0, 1, 1, 1, 2, 2, 3])):
            if self.chance(0.7):
                name = self.dice.choice(few)
                keys.append((name, dict(columns)[name]))
            else:
                keys.append(self.any_value(columns, 1))
        keys = [key for key in dict.fromkeys(keys) if key[0].strip("'-0123456789") and key[0] not in ("true", "false")]
        outputs = [(text, kind) for text, kind in keys if self.chance(0.93)]
        group = [text for text, _ in keys]
        unique_keys = len(outputs) == len(keys)
        sets = False
        if group and self.chance(0.15):
            group, grouped = [self._sets(group)], group
            sets, unique_keys = True, False
            if self.chance(0.5):
                outputs.append((f"grouping({self.dice.choice(grouped)})", TINYINT))
                outputs.append(("grouping_id()", BIGINT))
        if source == "s" and self.chance(0.25):
            call = self.dice.choice([*TUMBLING, *TUMBLING, *HOPPING, *HOPPING, *SESSIONS])
            group.append(call)
            name = call.partition("(")[0]
            which = self.dice.choice([f"{name}.start", f"{name}.end", f"{call}.start"])
            outputs.append((which, TIMESTAMP))
        count = len(outputs)
        outputs += [self.aggregate(columns) for _ in range(self.dice.choice([1, 2, 3, 4]))]
        if not any(_exact(kind) for _, kind in outputs):
            outputs.append(("count(*)", BIGINT))
        if self.chance(0.3):
            outputs.append(self._of_aggregates(columns, keys if not sets else ()))
        where = self.where(columns, 0.35, source == "s" and not any("session" in key for key in group))
        having = f" HAVING {self._having(columns)}" if self.chance(0.15) else ""
        text, named = self._outputs(outputs)
        by = f" GROUP BY {', '.join(group)}" if group else ""
        sql = f"SELECT {text} FROM {source}{where}{by}{having}"
        return Query(sql, named, tuple(n for n, _ in named[:count]) if unique_keys else ())

    def _lateral(
        self, columns: list[tuple[str, Type]], few: list[str]
    ) -> tuple[str, list[tuple[str, Type]], list[str]]:
        outer = self.dice.choice(["", "OUTER "])
        made, name, kind = self.dice.choice(
            [
                ("explode(tags) l AS", "tag", STRING),
                ("explode(numbers) l AS", "number", INT),
                ("explode(split(word, ' ')) l AS", "part", STRING),
                ("posexplode(tags) l AS p,", "tag", STRING),
                ("explode(sequence(1, 3)) l AS", "step", INT),
            ]
        )
        return f"s LATERAL VIEW {outer}{made} {name}", [*columns, (name, kind), (name, kind)], [*few, name, name]

    def _labelled(
        self, columns: list[tuple[str, Type]], few: list[str]
    ) -> tuple[str, list[tuple[str, Type]], list[str]]:
        """Records with what constants say of their kinds or numbers."""
        on = self.dice.choice(["v.code = kind", "v.code = word", "v.rank = k", "v.rank = k AND v.code <> kind"])
        source = f"s {self.dice.choice(['', 'LEFT '])}JOIN {CONSTANTS} ON {on}"
        return source, [*columns, ("label", STRING), ("v.rank", INT)], [*few, "label", "v.rank"]

    def _projected(self) -> tuple[str, list[tuple[str, Type]], list[str]]:
        """A subquery over the stream, to aggregate."""
        outputs = [self.any_value(COLUMNS, 1) for _ in range(self.dice.choice([2, 3, 4]))]
        outputs += [(name, dict(COLUMNS)[name]) for name in ("ts", "kind", "k")]
        text, named = self._outputs(outputs, prefix="p")
        where = f" WHERE {self.condition(COLUMNS)}" if self.chance(0.4) else ""
        distinct = "DISTINCT " if self.chance(0.2) else ""
        return f"(SELECT {distinct}{text} FROM s{where}) AS q", list(named), [name for name, _ in named]

    def _sets(self, group: Sequence[str]) -> str:
        listed = ", ".join(group)
        sets = ", ".join([f"({listed})", *(f"({one})" for one in group if self.chance(0.7)), "()"])
        return self.dice.choice([f"ROLLUP({listed})", f"CUBE({listed})", f"GROUPING SETS ({sets})"])

    def _of_aggregates(self, columns: Sequence[tuple[str, Type]], keys: Sequence[tuple[str, Type]]) -> tuple[str, Type]:
        """An expression over aggregates, in the same SELECT."""
        made = [self.aggregate(columns) for _ in range(2)]
        made = [(text, kind) for text, kind in made if _exact(kind)]
        self.below = False
        try:
            if made and self.chance(0.4):
                return f"{made[0][0]} / {made[-1][0]}", DOUBLE
            return self.any_value([*made, *keys], 2)
        finally:
            self.below = True

    def _having(self, columns: Sequence[tuple[str, Type]]) -> str:
        text, kind = self.aggregate(columns)
        return f"{text} IS NOT NULL" if not _exact(kind) or self.chance(0.2) else f"{text} > {self.value(kind, (), 0)}"

    def _outputs(
        self, outputs: Sequence[tuple[str, Type]], prefix: str = "c"
    ) -> tuple[str, tuple[tuple[str, Type], ...]]:
        named = tuple((f"{prefix}{n}", kind) for n, (_, kind) in enumerate(outputs))
        return ", ".join(f"{text} AS {prefix}{n}" for n, (text, _) in enumerate(outputs)), named

    # above the aggregation

    def above(self, inner: Query) -> Query:
        """Scalars and a condition over a query."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if _exact(kind) or kind.name == "ARRAY"]
        outputs: list[tuple[str, Type]] = list(inner.columns[: self.dice.choice([1, 2, 9])])
        outputs += [self.any_value(flat, self.dice.choice([1, 2, 2])) for _ in range(self.dice.choice([1, 2, 3]))]
        where = f" WHERE {self.condition(flat)}" if self.chance(0.4) else ""
        text, named = self._outputs(outputs, prefix="a")
        kept = {name: f"a{n}" for n, (name, _) in enumerate(outputs)}
        unique = tuple(kept.get(name, "") for name in inner.unique)
        if self.chance(0.2):
            sql = f"WITH w AS ({inner.sql}) SELECT {text} FROM w{where}"
        else:
            sql = f"SELECT {text} FROM ({inner.sql}) AS w{where}"
        return Query(sql, named, unique if all(unique) else ())

    def reaggregated(self, inner: Query) -> Query:
        """A GROUP BY over a query."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if _exact(kind)]
        keys = self.dice.sample(flat, min(len(flat), self.dice.choice([0, 1, 1, 2])))
        outputs = [*keys, *(self.aggregate(flat, above=True) for _ in range(self.dice.choice([1, 2, 3])))]
        if self.chance(0.25):
            outputs.append(self.any_value([self.aggregate(flat, above=True), *keys], 2))
        if not any(_exact(kind) for _, kind in outputs):
            outputs.append(("count(*)", BIGINT))
        text, named = self._outputs(outputs, prefix="g")
        group = ", ".join(name for name, _ in keys)
        if keys and self.chance(0.2):
            group = self._sets([name for name, _ in keys])
        by = f" GROUP BY {group}" if keys else ""
        where = f" WHERE {self.condition(flat)}" if self.chance(0.3) else ""
        having = f" HAVING count(*) {self.dice.choice(['>', '<'])} 2" if self.chance(0.2) else ""
        sql = f"SELECT {text} FROM ({inner.sql}) AS r{where}{by}{having}"
        return Query(sql, named, tuple(n for n, _ in named[: len(keys)]))

    def joined(self) -> Query:
        """A join of two queries."""
        left, right = self.relation(), self.relation()
        if self.chance(0.1):
            right = Query(f"SELECT code, rank FROM {CONSTANTS}", (("code", STRING), ("rank", INT)))
        self.below = False
        word = self.dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        pairs = [
            (a, b)
            for a, x in left.columns
            for b, y in right.columns
            if x.name == y.name and _exact(x) and x.name not in ("DOUBLE", "FLOAT")
        ]
        if not pairs or self.chance(0.05):
            word = "CROSS JOIN"
        condition = ""
        if word != "CROSS JOIN":
            sign = self.dice.choice(["=", "<=>"])
            condition = " ON " + " AND ".join(
                f"x.{a} {sign} y.{b}" for a, b in self.dice.sample(pairs, min(len(pairs), self.dice.choice([1, 1, 2])))
            )
        columns = [(f"x.{name}", t) for name, t in left.columns] + [(f"y.{name}", t) for name, t in right.columns]
        flat = [(name, t) for name, t in columns if _exact(t)]
        outputs = [*self.dice.sample(columns, min(len(columns), 4)), self.any_value(flat, 1)]
        where = f" WHERE {self.condition(flat)}" if self.chance(0.25) else ""
        text, named = self._outputs(outputs, prefix="j")
        return Query(f"SELECT {text} FROM ({left.sql}) AS x {word} ({right.sql}) AS y{condition}{where}", named)

    def combined(self) -> Query:
        """UNION and its like, of queries whose columns are alike."""
        word = self.dice.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        sides = [self.relation(), self.relation()]
        self.below = False
        kinds = [
            self.dice.choice([INT, BIGINT, DOUBLE, STRING, MONEY, DATE]) for _ in range(self.dice.choice([1, 2, 3]))
        ]
        texts = []
        for side in sides:
            flat = [(name, kind) for name, kind in side.columns if _exact(kind)]
            text, named = self._outputs([(self.value(kind, flat, 1), kind) for kind in kinds], prefix="u")
            texts.append(f"SELECT {text} FROM ({side.sql}) AS z")
        return Query(f" {word} ".join(texts), named)

    def ranked(self, inner: Query) -> Query:
        """Window functions over a query."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if _exact(kind)]
        order = list(inner.unique or [name for name, _ in flat])
        self.dice.shuffle(order)
        extra = [name for name, _ in flat if name not in order and self.chance(0.4)]
        ordered = ", ".join(
            f"{name}{self.dice.choice(['', '', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'])}"
            for name in [*extra, *order]
        )
        outputs: list[tuple[str, Type]] = list(inner.columns)
        times = [name for name, kind in flat if kind in (TIMESTAMP, DATE)]
        windows = ""
        for _ in range(self.dice.choice([1, 2, 3])):
            name, kind = self.dice.choice(flat)
            call, gives = self.dice.choice(
                [
                    ("row_number()", INT),
                    ("rank()", INT),
                    ("dense_rank()", INT),
                    ("percent_rank()", DOUBLE),
                    ("cume_dist()", DOUBLE),
                    ("ntile(3)", INT),
                    (f"lag({name})", kind),
                    (f"lead({name}, 2)", kind),
                    (f"first_value({name})", kind),
                    (f"last_value({name})", kind),
                    (f"nth_value({name}, 2)", kind),
                    self.aggregate(flat, above=True, over=True),
                    self.aggregate(flat, above=True, over=True),
                    self.aggregate(flat, above=True, over=True),
                ]
            )
            part = self.dice.choice(flat)[0]
            partition = f"PARTITION BY {part} " if self.chance(0.5) else ""
            aggregate = call.partition("(")[0] in AGGREGATES or "value" in call
            frame = ""
            if aggregate and self.chance(0.5):
                frame = self.dice.choice(
                    [
                        " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                        " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                        " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                    ]
                )
            by = "" if aggregate and not frame and self.chance(0.4) else f"ORDER BY {ordered}{frame}"
            if aggregate and times and self.chance(0.4):
                reach = self.dice.choice(["CURRENT ROW", "INTERVAL 9 DAYS FOLLOWING"])
                by = f"ORDER BY {self.dice.choice(times)}{self.dice.choice(['', ' DESC'])}"
                by += f" RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND {reach}"
            if not windows and self.chance(0.2):
                windows = f" WINDOW w AS ({partition}{by})"
                outputs.append((f"{call} OVER w", gives))
                continue
            if self.chance(0.2):  # with ties, which the rest of a key breaks
                by = by.replace(ordered, self.dice.choice(flat)[0])
            outputs.append((f"{call} OVER ({partition}{by})", gives))
        text, named = self._outputs(outputs, prefix="w")
        sql = f"SELECT {text} FROM ({inner.sql}) AS o{windows}"
        if self.chance(0.3) and named[-1][1] == INT:
            sql = f"SELECT * FROM ({sql}) AS t WHERE {named[-1][0]} <= 2"
        return Query(sql, named)

    def limited(self, inner: Query) -> Query:
        """The first rows of a query by a total order."""
        flat = [name for name, kind in inner.columns if _exact(kind)]
        self.dice.shuffle(flat)
        by = flat[:1] if self.chance(0.4) else flat
        ordered = ", ".join(f"{name}{self.dice.choice(['', ' DESC', ' NULLS LAST'])}" for name in by)
        offset = " OFFSET 1" if self.chance(0.2) else ""
        names = ", ".join(flat)
        sql = f"SELECT {names} FROM ({inner.sql}) AS l ORDER BY {ordered} LIMIT {self.dice.choice([1, 3, 10])}{offset}"
        kinds = dict(inner.columns)
        return Query(sql, tuple((name, kinds[name]) for name in flat))

    def compared(self) -> Query:
        """A query whose condition has a query in it."""
        inner, other = self.relation(), self.aggregated()
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if _exact(kind)]
        theirs = [(name, kind) for name, kind in other.columns if _exact(kind)]
        name, kind = self.dice.choice(flat)
        alike = [n for n, t in theirs if t == kind] or [theirs[0][0]]
        which = self.dice.choice(alike)
        where = self.dice.choice(
            [
                f"{name} IN (SELECT {which} FROM ({other.sql}) AS i)",
                f"{name} NOT IN (SELECT {which} FROM ({other.sql}) AS i WHERE {which} IS NOT NULL)",
                f"{name} NOT IN (SELECT {which} FROM ({other.sql}) AS i)",
                f"{name} >= (SELECT max({which}) FROM ({other.sql}) AS i)",
                f"EXISTS (SELECT 1 FROM ({other.sql}) AS i WHERE {which} IS NULL)",
                f"EXISTS (SELECT 1 FROM ({other.sql}) AS i WHERE i.{which} = e.{name})",
                f"NOT EXISTS (SELECT 1 FROM ({other.sql}) AS i WHERE i.{which} >= e.{name} AND e.{name} IS NOT NULL)",
                f"{name} >= (SELECT max({which}) FROM ({other.sql}) AS i WHERE i.{which} = e.{name})",
                f"0 = (SELECT count({which}) FROM ({other.sql}) AS i WHERE i.{which} <=> e.{name})",
            ]
        )
        listed = ", ".join(n for n, _ in inner.columns)
        if self.chance(0.25):
            word = self.dice.choice(["SEMI", "ANTI"])
            named = ", ".join(f"e.{n}" for n, _ in inner.columns)
            on = f"i.{which} {self.dice.choice(['=', '<=>', '<'])} e.{name}"
            sql = f"SELECT {named} FROM ({inner.sql}) AS e LEFT {word} JOIN ({other.sql}) AS i ON {on}"
            return Query(sql, inner.columns, inner.unique)
        return Query(f"SELECT {listed} FROM ({inner.sql}) AS e WHERE {where}", inner.columns, inner.unique)

    # rows of the stream itself

    def row_view(self) -> Query:
        """A row for each record."""
        self.below = True
        columns: list[tuple[str, Type]] = [*COLUMNS, *NESTED]
        source = "s"
        if self.chance(0.25):
            source, columns, _ = self._lateral(columns, [])
        outputs = [("kafka_offset", BIGINT)] + [
            self.any_value(columns, self.dice.choice([1, 2, 3])) for _ in range(self.dice.choice([2, 4, 6]))
        ]
        if self.chance(0.2):
            outputs.append(("tags", NESTED[0][1]))
        if source == "s" and self.chance(0.2):
            call = self.dice.choice(HOPPING[:3])
            outputs += [(f"{call}.start", TIMESTAMP), (f"{call}.end", TIMESTAMP)]
        text, named = self._outputs(outputs, prefix="r")
        where = self.where(columns, 0.6, source == "s", 2)
        return Query(f"SELECT {text} FROM {source}{where}", named)

    def latest(self) -> Query:
        """The last records of each key."""
        self.below = True
        key, (order, _) = self.dice.choice(FEW), self.any_value(COLUMNS, 0)
        direction = self.dice.choice(["", " DESC", " DESC NULLS FIRST", " NULLS LAST"])
        names = ["k", "big", "price", "kind", "ts", "money"]
        outputs = [(name, dict(COLUMNS)[name]) for name in self.dice.sample(names, 3)] + [(key, dict(COLUMNS)[key])]
        text, named = self._outputs(outputs, prefix="n")
        where = self.where(COLUMNS, 0.4, True)
        inner = (
            f"SELECT {text}, row_number() OVER (PARTITION BY {key} ORDER BY {order}{direction}, kafka_partition,"
            f" kafka_offset DESC) AS place FROM s{where}"
        )
        sql = f"SELECT {', '.join(n for n, _ in named)} FROM ({inner}) AS b WHERE place <= {self.dice.choice([1, 2])}"
        query = Query(sql, named)
        return self.reaggregated(query) if self.chance(0.3) else query


def _exact(kind: Type) -> bool:
    """Is it a scalar that is the same in whatever order it was computed?"""
    return not kind.nested and kind != ABOUT


def _gives(row: Function, kind: Type) -> bool:
    """May a function give a value of about this type?"""
    if isinstance(row.gives, Type):
        return row.gives.name == kind.name
    if row.gives == "common":
        return True
    first = row.takes[0] if row.takes else ""
    if first == "plain":
        return kind in (STRING, INT, BIGINT, DATE, MONEY) and callable(row.gives)
    if first in ("common", "any", "boolean"):
        return True
    if first == "integral":
        return kind.integral
    return first == kind.name.lower()
