"""Random joins: of two streams, a table and a table of change events, by any kind and any condition.

A query is text with the types of its columns, as in `grammar`. It reads the records of `records` and of `others`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import timedelta

from tests.fuzz.grammar import Query
from tests.fuzz.records import START
from tests.fuzz.values import MONEY, Values, exact
from tests.laws.engines import Record
from view_algebra.language.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP, Type

SOURCES = """CREATE TABLE r (
  k INT, kind STRING, paid DECIMAL(10,2), n BIGINT, ok BOOLEAN, at TIMESTAMP, id STRING, UNIQUE (id)
) USING kafka OPTIONS (topic 'r', format 'json') TBLPROPERTIES ('event_time' = 'at');
CREATE TABLE t (
  k INT PRIMARY KEY, kind STRING, label STRING, rank BIGINT, at TIMESTAMP
) USING kafka OPTIONS (topic 't', format 'json', key_format 'json')
TBLPROPERTIES ('event_time' = 'at', 'newest_by' = 'event_time');
CREATE TABLE d (
  k INT, kind STRING, label STRING, ok BOOLEAN, PRIMARY KEY (k, kind)
) USING kafka OPTIONS (topic 'd', format 'debezium-json');
"""

SIDES: dict[str, tuple[tuple[str, Type], ...]] = {
    "s": (("k", INT), ("big", BIGINT), ("money", MONEY), ("kind", STRING), ("flag", BOOLEAN), ("ts", TIMESTAMP)),
    "r": (("k", INT), ("kind", STRING), ("paid", MONEY), ("n", BIGINT), ("ok", BOOLEAN), ("at", TIMESTAMP)),
    "t": (("k", INT), ("kind", STRING), ("label", STRING), ("rank", BIGINT), ("at", TIMESTAMP)),
    "d": (("k", INT), ("kind", STRING), ("label", STRING), ("ok", BOOLEAN)),
}
"""The joined relations, with the columns in use. The columns have few different values, so that keys meet."""

KEYS, KINDS = [1, 2, 3, -4, 0], ["a", "b", "", "ä"]
"""The values of keys, among those of `s`."""

Columns = list[tuple[str, Type]]


class Joins(Values):
    """Generates joins. Equal dice give equal joins."""

    def query(self) -> Query:
        """A view's SELECT."""
        source, columns, hidden = self._joined()
        self.ordered = False  # two streams have no common order of events
        where = self.where([*columns, *hidden][: len(columns)], 0.35)
        if self.chance(0.25):
            outputs = self.dice.sample(columns, min(len(columns), 4))
            outputs += [self.any_value(columns, 1)] if self.chance(0.5) else []
            return self._named(f"{source}{where}", outputs, "")
        keys = self.dice.sample(columns, min(len(columns), self.dice.choice([0, 1, 1, 1, 2])))
        keys += [self.any_value(columns, 1)] if self.chance(0.15) else []
        keys = [key for key in dict.fromkeys(keys) if "." in key[0]]
        of = columns if self.chance(0.5) else self._one_side(columns)
        outputs = [*keys, *(self.aggregate(of) for _ in range(self.dice.choice([1, 2, 3])))]
        if not any(exact(kind) for _, kind in outputs):
            outputs.append(("count(*)", BIGINT))
        by = f" GROUP BY {', '.join(text for text, _ in keys)}" if keys else ""
        return self._named(f"{source}{where}", outputs, by)

    def _one_side(self, columns: Columns) -> Columns:
        alias = self.dice.choice(sorted({name.partition(".")[0] for name, _ in columns}))
        return [column for column in columns if column[0].startswith(f"{alias}.")]

    def _named(self, source: str, outputs: Sequence[tuple[str, Type]], by: str) -> Query:
        named = tuple((f"c{n}", kind) for n, (_, kind) in enumerate(outputs))
        listed = ", ".join(f"{text} AS c{n}" for n, (text, _) in enumerate(outputs))
        return Query(f"SELECT {listed} FROM {source}{by}", named)

    def _joined(self) -> tuple[str, Columns, Columns]:
        """A FROM, its columns, and the columns of SEMI and ANTI joins, which only ON may name."""
        self.below = True
        first = self.dice.choice(["s", "s", "s", "r", "r", "t", "d"])
        source, columns, hidden = self._side(first, "x")
        for alias in "yz" if self.chance(0.3) else "y":
            other = self.dice.choice(["s", "r", "r", "t", "t", "d"])
            text, more, _ = self._side(other, alias)
            at = "x.ts" if first == "s" else "x.at"
            if other == "t" and first in "sr" and (at, TIMESTAMP) in columns and self.chance(0.5):
                word = self.dice.choice(["", "LEFT "])
                source += f" {word}JOIN t FOR SYSTEM_TIME AS OF {at} AS {alias} ON {alias}.k = x.k"
                columns += more
                continue
            word = self.dice.choice(["", "", "LEFT ", "LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI "])
            source += f" {word}JOIN {text} ON {self._on(columns, more)}"
            if word in ("LEFT SEMI ", "LEFT ANTI "):
                hidden += more
            else:
                columns += more
        return source, columns, hidden

    def _side(self, name: str, alias: str) -> tuple[str, Columns, Columns]:
        columns = [(f"{alias}.{column}", kind) for column, kind in SIDES[name]]
        if name in "sr" and self.chance(0.15):
            plain = ", ".join(column for column, _ in SIDES[name])
            return f"(SELECT {plain} FROM {name}{self.where(SIDES[name], 0.7)}) AS {alias}", columns, []
        if name in "sr" and self.chance(0.15):
            grouped: Columns = [("k", INT), ("kind", STRING), ("total", BIGINT)]
            number = "big" if name == "s" else "n"
            inner = f"SELECT k, kind, sum({number} % 1000) AS total FROM {name} GROUP BY k, kind"
            return f"({inner}) AS {alias}", [(f"{alias}.{column}", kind) for column, kind in grouped], []
        return f"{name} AS {alias}", columns, []

    def _on(self, left: Columns, right: Columns) -> str:
        alike = [(a, b) for a, x in left for b, y in right if x == y and x in (INT, STRING, BIGINT)]
        keys = [(a, b) for a, b in alike if a.partition(".")[2] == b.partition(".")[2] in ("k", "kind")] or alike
        terms = [self._pair(*self.dice.choice(keys if self.chance(0.9) else alike))]
        terms += [self._pair(*self.dice.choice(keys))] if self.chance(0.3) else []
        times = [[name for name, kind in side if kind == TIMESTAMP] for side in (left, right)]
        conditions: list[Callable[[], str]] = [
            lambda: self.condition(left, 0),
            lambda: self.condition(right, 0),
            lambda: self.condition([*left, *right], 0),
        ]
        if all(times):
            a, b = map(self.dice.choice, times)
            conditions += [lambda: f"{b} BETWEEN {a} - INTERVAL 1 HOUR AND {a} + INTERVAL 2 HOURS"] * 2
        terms += [self.dice.choice(conditions)() for _ in range(self.dice.choice([0, 0, 1, 1, 2]))]
        return " AND ".join(terms)

    def _pair(self, a: str, b: str) -> str:
        if a.endswith("kind") and self.chance(0.15):
            return f"lower({a}) = lower({b})"
        return f"{a} {self.dice.choice(['=', '=', '=', '<=>'])} {b}"


def others(dice: random.Random, count: int) -> dict[str, list[Record]]:
    """Records of the sources other than `s`: keys that recur and move, deletions, late, duplicate and bad records."""
    return {"r": _payments(dice, count), "t": _rows(dice, count), "d": _changes(dice, count)}


def _at(dice: random.Random, number: int) -> str | None:
    late = dice.choice([0, 0, 0, -60, -3600, -7200])
    return None if dice.random() < 0.05 else (START + timedelta(seconds=600 * number + late)).isoformat()


def _payments(dice: random.Random, count: int) -> list[Record]:
    payments: list[Record] = []
    for number in range(count):
        if payments and dice.random() < 0.2:
            payments.append(dice.choice(payments))  # a copy, unless it has no id
            continue
        values = {
            "k": dice.choice([*KEYS, None]),
            "kind": dice.choice([*KINDS, None]),
            "paid": dice.choice(["0.00", "1.25", "-3.10", None]),
            "n": dice.choice([1, 2, -3, 10, None]),
            "ok": dice.choice([True, False, None]),
            "at": _at(dice, number),
            "id": dice.choice([f"payment {number}"] * 5 + [None]),
        }
        payments.append(json.dumps(values).encode())
    return payments


def _rows(dice: random.Random, count: int) -> list[Record]:
    rows: list[Record] = []
    for number in range(count):
        key = dice.choice(KEYS)
        label, rank = dice.choice(["one", "two", None]), dice.choice([1, 2, 10, None])
        row = {"k": key, "kind": dice.choice([*KINDS, None]), "label": label, "rank": rank, "at": _at(dice, number)}
        value = None if dice.random() < 0.15 else b"[]" if dice.random() < 0.03 else json.dumps(row).encode()
        rows.append((json.dumps({"k": key}).encode(), value))
    return rows


def _changes(dice: random.Random, count: int) -> list[Record]:
    changes: list[Record] = []
    for _ in range(count):
        op = dice.choice("cuuud")
        rows = [
            {"k": dice.choice(KEYS[:3]), "kind": dice.choice(KINDS[:2]), "label": dice.choice("xy"), "ok": True}
            for _ in range(2)
        ]
        before = None if op == "c" else rows[0] if dice.random() < 0.5 else rows[1]
        changes.append(json.dumps({"op": op, "before": before, "after": None if op == "d" else rows[1]}).encode())
    return changes
