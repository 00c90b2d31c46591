"""Random SELECTs, of every shape that docs/sql.md describes. Most of them compile.

A query is text with the types of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.fuzz.values import COLUMNS, FEW, MONEY, NESTED, SCALARS, Values, exact
from view_algebra.language.aggregates import AGGREGATES
from view_algebra.language.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TINYINT, Type

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


FRAMES = (
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


@dataclass(frozen=True)
class Query:
    """A SELECT, and the names and types of its columns. `unique`: names that together no two rows share."""

    sql: str
    columns: tuple[tuple[str, Type], ...]
    unique: tuple[str, ...] = ()


LISTED = (
    Query(f"SELECT code, rank FROM {CONSTANTS}", (("code", STRING), ("rank", INT))),
    Query("SELECT explode(sequence(DATE '2024-02-27', DATE '2024-03-02')) AS listed", (("listed", DATE),)),
    Query("SELECT id FROM range(5)", (("id", BIGINT),)),
)
"""Rows of literals, to join with."""


@dataclass
class Grammar(Values):
    """Generates queries. Equal dice give equal queries."""

    views: dict[str, Query] = field(default_factory=dict)

    def query(self) -> Query:
        """A view's SELECT."""
        shapes: list[tuple[int, Callable[[], Query]]] = [
            (10, self.aggregated),
            (6, lambda: self.above(self.aggregated())),
            (3, lambda: self.reaggregated(self.relation())),
            (3, self.joined),
            (2, self.combined),
            (3, lambda: self.windowed(self.relation())),
            (2, lambda: self.limited(self.relation())),
            (2, self.with_subquery),
            (3, self.row_view),
            (2, self.latest),
            (2, self.sequenced),
            (1, self.visits),
            (1, lambda: self.exploded(self.relation())),
            (1, self.newest),
            (1, lambda: self.pivoted(self.relation())),
        ]
        return self.dice.choices([make for _, make in shapes], [weight for weight, _ in shapes])[0]()

    def relation(self) -> Query:
        """A relation that a query above an aggregation reads."""
        names = sorted(name for name, view in self.views.items() if any(exact(kind) for _, kind in view.columns))
        if names and self.chance(0.25):
            name = self.dice.choice(names)
            return Query(f"SELECT * FROM {name}", self.views[name].columns, self.views[name].unique)
        inner = self.aggregated()
        return self.above(inner) if self.chance(0.33) else inner

    # aggregation

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
        if not any(exact(kind) for _, kind in outputs):
            outputs.append(("count(*)", BIGINT))
        if self.chance(0.3):
            outputs.append(self._of_aggregates(columns, keys if not sets else ()))
        where = self.where(columns, 0.35, subqueries=source == "s" and not any("session" in key for key in group))
        having = f" HAVING {self._having(columns)}" if self.chance(0.15) else ""
        text, named = self._outputs(outputs)
        by = f" GROUP BY {', '.join(group)}" if group else ""
        sql = f"SELECT {text} FROM {source}{where}{by}{having}"
        return Query(sql, named, tuple(n for n, _ in named[:count]) if unique_keys else ())

    def _lateral(
        self, columns: list[tuple[str, Type]], few: list[str]
    ) -> tuple[str, list[tuple[str, Type]], list[str]]:
        outer = self.dice.choice(["", "OUTER "])
        generator, name, kind = self.dice.choice(
            [
                ("explode(tags) l AS", "tag", STRING),
                ("explode(numbers) l AS", "number", INT),
                ("explode(split(word, ' ')) l AS", "part", STRING),
                ("posexplode(tags) l AS p,", "tag", STRING),
                ("explode(sequence(1, 3)) l AS", "step", INT),
                ("stack(2, kind, k, word, CAST(tiny AS INT)) l AS called,", "number", INT),
                ("inline(array(struct(k AS n, kind AS c), struct(7 AS n, 'x' AS c))) l AS number,", "called", STRING),
            ]
        )
        return f"s LATERAL VIEW {outer}{generator} {name}", [*columns, (name, kind), (name, kind)], [*few, name, name]

    def _labelled(
        self, columns: list[tuple[str, Type]], few: list[str]
    ) -> tuple[str, list[tuple[str, Type]], list[str]]:
        """Records joined with constants by their kinds or numbers."""
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
        aggregates = [self.aggregate(columns) for _ in range(2)]
        aggregates = [(text, kind) for text, kind in aggregates if exact(kind)]
        self.below = False
        try:
            if aggregates and self.chance(0.4):
                return f"{aggregates[0][0]} / {aggregates[-1][0]}", DOUBLE
            return self.any_value([*aggregates, *keys], 2)
        finally:
            self.below = True

    def _having(self, columns: Sequence[tuple[str, Type]]) -> str:
        text, kind = self.aggregate(columns)
        return f"{text} IS NOT NULL" if not exact(kind) or self.chance(0.2) else f"{text} > {self.value(kind, (), 0)}"

    def _outputs(
        self, outputs: Sequence[tuple[str, Type]], prefix: str = "c"
    ) -> tuple[str, tuple[tuple[str, Type], ...]]:
        named = tuple((f"{prefix}{n}", kind) for n, (_, kind) in enumerate(outputs))
        return ", ".join(f"{text} AS {prefix}{n}" for n, (text, _) in enumerate(outputs)), named

    # above the aggregation

    def above(self, inner: Query) -> Query:
        """Scalars and a condition over a query."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if exact(kind) or kind.name == "ARRAY"]
        outputs: list[tuple[str, Type]] = list(inner.columns[: self.dice.choice([1, 2, 9])])
        outputs += [self.any_value(flat, self.dice.choice([1, 2, 2])) for _ in range(self.dice.choice([1, 2, 3]))]
        if self.chance(0.15):
            of = self.aggregated()
            self.below = False
            call, kind = self.aggregate([column for column in of.columns if exact(column[1])], "groups")
            if exact(kind):
                outputs.append((f"(SELECT {call} FROM ({of.sql}) AS one)", kind))
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
        flat = [(name, kind) for name, kind in inner.columns if exact(kind)]
        keys = self.dice.sample(flat, min(len(flat), self.dice.choice([0, 1, 1, 2])))
        outputs = [*keys, *(self.aggregate(flat, "groups") for _ in range(self.dice.choice([1, 2, 3])))]
        if self.chance(0.25):
            outputs.append(self.any_value([self.aggregate(flat, "groups"), *keys], 2))
        if not any(exact(kind) for _, kind in outputs):
            outputs.append(("count(*)", BIGINT))
        text, named = self._outputs(outputs, prefix="g")
        group = ", ".join(name for name, _ in keys)
        if keys and self.chance(0.2):
            group = self._sets([name for name, _ in keys])
        by = f" GROUP BY {group}" if keys else ""
        where = f" WHERE {self.condition(flat)}" if self.chance(0.3) else ""
        than = f"(SELECT count(*) / 9 FROM ({self.aggregated().sql}) AS h)" if self.chance(0.2) else "2"
        self.below = False
        having = f" HAVING count(*) {self.dice.choice(['>', '<'])} {than}" if self.chance(0.2) else ""
        sql = f"SELECT {text} FROM ({inner.sql}) AS r{where}{by}{having}"
        return Query(sql, named, tuple(n for n, _ in named[: len(keys)]))

    def joined(self) -> Query:
        """A join of two queries."""
        left, right = self.relation(), self.relation()
        if self.chance(0.1):
            right = self.dice.choice(LISTED)
        self.below = False
        word = self.dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        pairs = [
            (a, b)
            for a, x in left.columns
            for b, y in right.columns
            if x.name == y.name and exact(x) and x.name not in ("DOUBLE", "FLOAT")
        ]
        if not pairs or self.chance(0.05):
            word = "CROSS JOIN"
        condition = ""
        if word != "CROSS JOIN":
            sign = self.dice.choice(["=", "=", "<=>", "<=>", "<", ">="])
            condition = " ON " + " AND ".join(
                f"x.{a} {sign} y.{b}" for a, b in self.dice.sample(pairs, min(len(pairs), self.dice.choice([1, 1, 2])))
            )
        columns = [(f"x.{name}", t) for name, t in left.columns] + [(f"y.{name}", t) for name, t in right.columns]
        flat = [(name, t) for name, t in columns if exact(t)]
        outputs = [*self.dice.sample(columns, min(len(columns), 4)), self.any_value(flat, 1)]
        where = f" WHERE {self.condition(flat)}" if self.chance(0.25) else ""
        text, named = self._outputs(outputs, prefix="j")
        return Query(f"SELECT {text} FROM ({left.sql}) AS x {word} ({right.sql}) AS y{condition}{where}", named)

    def combined(self) -> Query:
        """A set operation on two queries with the same types of columns."""
        word = self.dice.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        sides = [self.relation(), self.relation()]
        self.below = False
        kinds = [
            self.dice.choice([INT, BIGINT, DOUBLE, STRING, MONEY, DATE]) for _ in range(self.dice.choice([1, 2, 3]))
        ]
        texts = []
        for side in sides:
            flat = [(name, kind) for name, kind in side.columns if exact(kind)]
            text, named = self._outputs([(self.value(kind, flat, 1), kind) for kind in kinds], prefix="u")
            texts.append(f"SELECT {text} FROM ({side.sql}) AS z")
        if self.chance(0.3):
            by = [*(name for name, _ in named), f"coalesce(CAST({named[0][0]} AS STRING), '') || 'z'"]
            first = f"{self.dice.choice(by)}{self.dice.choice(['', ' DESC'])}"
            rest = ", ".join(name for name, _ in named)
            texts[-1] += f" ORDER BY {first}, {rest} LIMIT {self.dice.choice([1, 3, 7])}"
        return Query(f" {word} ".join(texts), named)

    def windowed(self, inner: Query) -> Query:
        """Window functions over a query."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if exact(kind)]
        order = list(inner.unique or [name for name, _ in flat])
        self.dice.shuffle(order)
        extra = [name for name, _ in flat if name not in order and self.chance(0.4)]
        directions = ["", "", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        ordered = ", ".join(f"{name}{self.dice.choice(directions)}" for name in [*extra, *order])
        outputs: list[tuple[str, Type]] = list(inner.columns)
        named_window = ""
        for _ in range(self.dice.choice([1, 2, 3])):
            call, gives = self._window_function(flat)
            partition, by = self._window(call, flat, ordered)
            if not named_window and self.chance(0.2):
                named_window = f" WINDOW w AS ({partition}{by})"
                outputs.append((f"{call} OVER w", gives))
                continue
            if self.chance(0.2):  # ties, which the compiler breaks
                by = by.replace(ordered, self.dice.choice(flat)[0])
            outputs.append((f"{call} OVER ({partition}{by})", gives))
        text, named = self._outputs(outputs, prefix="w")
        sql = f"SELECT {text} FROM ({inner.sql}) AS o{named_window}"
        if self.chance(0.3) and named[-1][1] == INT:
            sql = f"SELECT * FROM ({sql}) AS t WHERE {named[-1][0]} <= 2"
        elif self.chance(0.2) and not named_window:
            sql += f" QUALIFY row_number() OVER (PARTITION BY {self.dice.choice(flat)[0]} ORDER BY {ordered}) <= 2"
        return Query(sql, named)

    def _window_function(self, columns: Sequence[tuple[str, Type]]) -> tuple[str, Type]:
        name, kind = self.dice.choice(columns)
        ranks = ("row_number()", "rank()", "dense_rank()")
        values = (f"lag({name})", f"lead({name}, 2)", f"first_value({name})", f"last_value({name})")
        return self.dice.choice(
            [
                *((call, INT) for call in ranks),
                ("percent_rank()", DOUBLE),
                ("cume_dist()", DOUBLE),
                ("ntile(3)", INT),
                *((call, kind) for call in (*values, f"nth_value({name}, 2)")),
                *(self.aggregate(columns, "window") for _ in range(3)),
            ]
        )

    def _window(self, call: str, columns: Sequence[tuple[str, Type]], ordered: str) -> tuple[str, str]:
        """The PARTITION BY and the ORDER BY of a call. `ordered`: keys that order all rows."""
        part = self.dice.choice(columns)[0]
        partition = f"PARTITION BY {part} " if self.chance(0.5) else ""
        takes_frame = call.partition("(")[0] in AGGREGATES or "value" in call
        frame = self.dice.choice(FRAMES) if takes_frame and self.chance(0.5) else ""
        by = "" if takes_frame and not frame and self.chance(0.4) else f"ORDER BY {ordered}{frame}"
        times = [name for name, kind in columns if kind in (TIMESTAMP, DATE)]
        if takes_frame and times and self.chance(0.4):
            reach = self.dice.choice(["CURRENT ROW", "INTERVAL 9 DAYS FOLLOWING"])
            by = f"ORDER BY {self.dice.choice(times)}{self.dice.choice(['', ' DESC'])}"
            by += f" RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND {reach}"
        return partition, by

    def exploded(self, inner: Query) -> Query:
        """A row for each element of a list."""
        self.below = False
        lists = [(name, kind) for name, kind in inner.columns if kind.name == "ARRAY" and kind.element in SCALARS]
        flat = [(name, kind) for name, kind in inner.columns if exact(kind)]
        if lists:
            name, kind = self.dice.choice(lists)
            of, element = name, kind.element or STRING
        else:
            of, element = self.dice.choice([("array('a', NULL, 'b')", STRING), ("sequence(1, 3)", INT)])
        outer, position = self.dice.choice(["", "OUTER "]), self.chance(0.3)
        call = f"posexplode({of}) l AS pos, e" if position else f"explode({of}) l AS e"
        outputs = [*flat[:2], ("l.e", element), *([("l.pos", INT)] if position else [])]
        text, named = self._outputs(outputs, prefix="e")
        query = Query(f"SELECT {text} FROM ({inner.sql}) AS x LATERAL VIEW {outer}{call}", named)
        return self.reaggregated(query) if self.chance(0.4) else query

    def pivoted(self, inner: Query) -> Query:
        """A column's values as columns."""
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if exact(kind)]
        name, kind = self.dice.choice(flat)
        rest = [column for column in flat if column[0] != name]
        if not rest:
            return self.above(inner)
        summed, kind_of_sum = self.aggregate(rest, "window")
        kept = self.dice.sample(rest, min(len(rest), 2))
        values = list(dict.fromkeys(self.value(kind, (), 0) for _ in range(3)))
        listed = ", ".join(f"{value} AS p{place}" for place, value in enumerate(values))
        read = ", ".join(dict.fromkeys([name, *(n for n, _ in rest)]))
        sql = f"SELECT * FROM (SELECT {read} FROM ({inner.sql}) AS i) PIVOT ({summed} FOR {name} IN ({listed}))"
        columns = [column for column in rest if column[0] not in summed]
        pivoted = [(f"p{place}", kind_of_sum) for place in range(len(values))]
        if kept and self.chance(0.5):
            sql = f"SELECT {', '.join(n for n, _ in pivoted)} FROM ({sql}) AS q"
            columns = []
        return Query(sql, (*columns, *pivoted))

    def limited(self, inner: Query) -> Query:
        """The first rows of a query by a total order."""
        flat = [name for name, kind in inner.columns if exact(kind)]
        self.dice.shuffle(flat)
        by = flat[:1] if self.chance(0.4) else flat
        ordered = ", ".join(f"{name}{self.dice.choice(['', ' DESC', ' NULLS LAST'])}" for name in by)
        offset = " OFFSET 1" if self.chance(0.2) else ""
        names = ", ".join(flat)
        sql = f"SELECT {names} FROM ({inner.sql}) AS l ORDER BY {ordered} LIMIT {self.dice.choice([1, 3, 10])}{offset}"
        kinds = dict(inner.columns)
        return Query(sql, tuple((name, kinds[name]) for name in flat))

    def with_subquery(self) -> Query:
        """A query with a subquery in its condition."""
        inner, other = self.relation(), self.aggregated()
        self.below = False
        flat = [(name, kind) for name, kind in inner.columns if exact(kind)]
        theirs = [(name, kind) for name, kind in other.columns if exact(kind)]
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
        if self.chance(0.2):
            return self._first_of_each(inner, other, f"i.{which} {self.dice.choice(['=', '=', '<=>', '<'])} e.{name}")
        listed = ", ".join(n for n, _ in inner.columns)
        if self.chance(0.3):
            answer = self.dice.choice([where, f"NOT ({where})", f"CASE WHEN {where} THEN false END"])
            return Query(
                f"SELECT {listed}, {answer} AS answer FROM ({inner.sql}) AS e", (*inner.columns, ("answer", BOOLEAN))
            )
        if self.chance(0.25):
            word = self.dice.choice(["SEMI", "ANTI"])
            named = ", ".join(f"e.{n}" for n, _ in inner.columns)
            on = f"i.{which} {self.dice.choice(['=', '<=>', '<'])} e.{name}"
            sql = f"SELECT {named} FROM ({inner.sql}) AS e LEFT {word} JOIN ({other.sql}) AS i ON {on}"
            return Query(sql, inner.columns, inner.unique)
        return Query(f"SELECT {listed} FROM ({inner.sql}) AS e WHERE {where}", inner.columns, inner.unique)

    def _first_of_each(self, inner: Query, other: Query, meets: str) -> Query:
        """The first rows that meet a row, by an order that they need not show."""
        theirs = [(name, kind) for name, kind in other.columns if exact(kind)]
        self.dice.shuffle(theirs)
        shown, kind = self.dice.choice(theirs)
        by = theirs[:1] if self.chance(0.4) else theirs
        ordered = ", ".join(f"i.{name}{self.dice.choice(['', ' DESC', ' NULLS LAST'])}" for name, _ in by)
        listed = ", ".join(f"e.{name}" for name, _ in inner.columns)
        first = f"SELECT i.{shown} AS first FROM ({other.sql}) AS i WHERE {meets} ORDER BY {ordered} LIMIT"
        if self.chance(0.5):
            sql = f"SELECT {listed}, ({first} 1) AS first FROM ({inner.sql}) AS e"
        else:
            sql = f"SELECT {listed}, l.first FROM ({inner.sql}) AS e, LATERAL ({first} {self.dice.choice([1, 3])}) AS l"
        return Query(sql, (*inner.columns, ("first", kind)))

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
        where = self.where(columns, 0.6, 2, subqueries=source == "s")
        return Query(f"SELECT {text} FROM {source}{where}", named)

    def latest(self) -> Query:
        """The last records of each key."""
        self.below = True
        key, (order, _) = self.dice.choice(FEW), self.any_value(COLUMNS, 0)
        direction = self.dice.choice(["", " DESC", " DESC NULLS FIRST", " NULLS LAST"])
        names = ["k", "big", "price", "kind", "ts", "money"]
        outputs = [(name, dict(COLUMNS)[name]) for name in self.dice.sample(names, 3)] + [(key, dict(COLUMNS)[key])]
        text, named = self._outputs(outputs, prefix="n")
        where = self.where(COLUMNS, 0.4, subqueries=True)
        inner = (
            f"SELECT {text}, row_number() OVER (PARTITION BY {key} ORDER BY {order}{direction}, kafka_partition,"
            f" kafka_offset DESC) AS place FROM s{where}"
        )
        sql = f"SELECT {', '.join(n for n, _ in named)} FROM ({inner}) AS b WHERE place <= {self.dice.choice([1, 2])}"
        query = Query(sql, named)
        return self.reaggregated(query) if self.chance(0.3) else query

    def sequenced(self) -> Query:
        """Records next to the earlier and later records of the same key."""
        self.below = True
        key, order = (
            self.dice.choice(FEW),
            self.dice.choice(["ts", "ts DESC", "big, ts", "day NULLS LAST, kafka_offset"]),
        )
        over = f"OVER (PARTITION BY {key} ORDER BY {order}"
        frame = self.dice.choice(["", " ROWS UNBOUNDED PRECEDING", " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"])
        text, kind = self.any_value(COLUMNS, 1)
        outputs: list[tuple[str, Type]] = [("kafka_offset", BIGINT), (key, dict(COLUMNS)[key])]
        outputs += self.dice.sample(
            [
                (f"lag({text}) {over})", kind),
                (f"lead({text}, 2) {over})", kind),
                (f"first_value({text}) {over}{frame})", kind),
                (f"count({text}) {over}{frame})", BIGINT),
                (f"sum(k) {over}{frame})", BIGINT),
                (f"max(money) {over}{frame})", MONEY),
                (f"dense_rank() {over})", INT),
                (f"ntile(3) {over})", INT),
            ],
            self.dice.choice([1, 2]),
        )
        listed, named = self._outputs(outputs, prefix="q")
        query = Query(f"SELECT {listed} FROM s{self.where(COLUMNS, 0.4, subqueries=True)}", named, ("q0",))
        return self.dice.choice([self.above, self.reaggregated])(query) if self.chance(0.5) else query

    def visits(self) -> Query:
        """Sessions by hand: a record begins one if it is much later than the record before."""
        self.below = True
        key = self.dice.choice(FEW[:5])
        gap = self.dice.choice(["1 MINUTE", "30 MINUTES", "2 HOURS"])
        over = f"OVER (PARTITION BY {key} ORDER BY ts{self.dice.choice(['', ', big', ' DESC, money'])}"
        begins = f"CASE WHEN ts - INTERVAL {gap} > lag(ts) {over}) THEN 1 ELSE 0 END"
        marked = f"SELECT *, {begins} AS begins FROM s{self.where(COLUMNS, 0.3, subqueries=True)}"
        visits = f"SELECT *, sum(begins) {over} ROWS UNBOUNDED PRECEDING) AS visit FROM ({marked})"
        self.below = False
        plain = [column for column in COLUMNS if "." not in column[0]]
        outputs = [(key, dict(COLUMNS)[key]), ("visit", BIGINT), ("count(*)", BIGINT)]
        outputs += [self.aggregate(plain, "groups") for _ in range(self.dice.choice([1, 2]))]
        listed, named = self._outputs(outputs, prefix="s")
        return Query(f"SELECT {listed} FROM ({visits}) GROUP BY {key}, visit", named, ("s0", "s1"))

    def newest(self) -> Query:
        """The first records by an order, and queries over them."""
        self.below = True
        order = self.dice.choice(["ts DESC", "big", "money DESC NULLS LAST, ts", "kafka_timestamp, kind"])
        plain = [column for column in COLUMNS if "." not in column[0]]
        outputs = self.dice.sample(plain, 5)
        listed, named = self._outputs(outputs, prefix="f")
        where = self.where(COLUMNS, 0.4, subqueries=True)
        query = Query(f"SELECT {listed} FROM s{where} ORDER BY {order} LIMIT {self.dice.choice([1, 5, 20])}", named)
        return self.reaggregated(query) if self.chance(0.5) else query
