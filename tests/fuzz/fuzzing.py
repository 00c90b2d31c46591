"""Generates views until enough have run, and reports those that differ."""

from __future__ import annotations

import random
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tests.fuzz.duck import Duck
from tests.fuzz.grammar import Grammar, Query
from tests.fuzz.joins import Joins, others
from tests.fuzz.records import records, split
from tests.fuzz.rounds import UNANSWERED, Finding, Round, catalog_text, check
from tests.fuzz.shrinking import shrink
from tests.laws.engines import Engines, Row
from view_algebra import Refused, compile_catalog

PER_ROUND = 25
"""Views that share a Spark statement per micro-batch."""

SHOWN = 12
"""Most rows to print of a difference, per side."""


@dataclass
class Fuzzing:
    """The state of one run.

    joins: generate joins only. Otherwise every other round does.
    """

    seed: int
    joins: bool = False
    ran: int = 0
    differed: int = 0
    unanswered: int = 0
    duck: Duck = field(default_factory=Duck)
    refused: Counter[str] = field(default_factory=Counter)

    def run(self, engines: Engines, views: int, *, shrinking: bool = True) -> Iterator[tuple[Round, Finding]]:
        """Tries this number of views. Yields each view that differs, with a small round that shows it."""
        number = 0
        while self.ran < views:
            dice = random.Random(f"{self.seed} {number}")
            number += 1
            joined = self.joins or number % 2 == 0
            chosen, differences = self.compiling_views(dice, min(PER_ROUND, views - self.ran), joined=joined)
            self.ran += len(chosen) + len(differences)
            count = dice.choice([12, 40] if joined else [12, 40, 120])
            round_ = Round(chosen, split(dice, records(dice, count)))
            if joined:
                more = {name: split(dice, values) for name, values in others(dice, count).items()}
                round_ = replace(round_, others=more)
            findings = check(engines, self.duck, round_)
            wrong = [(round_.only(f.view), f) for f in findings if f.kind != UNANSWERED]
            for finding in findings:
                if finding.kind == UNANSWERED:
                    self.unanswered += 1
                    print(f"Spark failed: {finding.error}\n{chosen[finding.view]}", file=sys.stderr, flush=True)
            smaller = partial(check, engines, self.duck)
            differences += [shrink(*difference, smaller) for difference in wrong] if shrinking else wrong
            print(f"{self.summary()}", file=sys.stderr, flush=True)
            self.differed += len(differences)
            yield from differences

    def compiling_views(
        self, dice: random.Random, count: int, *, joined: bool
    ) -> tuple[dict[str, str], list[tuple[Round, Finding]]]:
        """This number of views that compile, and the views that raise another error than Refused."""
        grammar, chosen = Joins(dice) if joined else Grammar(dice), dict[str, str]()
        broken: list[tuple[Round, Finding]] = []
        queries: dict[str, Query] = {}
        while len(chosen) < count:
            query = grammar.query()
            if rounds_to_noise(query.sql):
                continue
            name = f"v{len(chosen)}"
            try:
                read = {other: select for other, select in chosen.items() if needed(other, query.sql, chosen)}
                compile_catalog({"fuzz.sql": catalog_text({**read, name: query.sql}, joined=joined)})
            except Refused as refused:
                self.refused[reason(refused)] += 1
                continue
            except Exception:  # noqa: BLE001 - the fuzzer looks for any other error
                error = traceback.format_exc(limit=-3)
                broken.append((Round({name: query.sql}, []), Finding(name, "compiling", error)))
                continue
            chosen[name] = query.sql
            queries[name] = query
            if isinstance(grammar, Grammar):
                grammar.views = dict(queries)
        return chosen, broken

    def summary(self) -> str:
        """The numbers of views that ran, differed, were answered by DuckDB, failed in Spark and were refused."""
        return (
            f"{self.ran} views ran, {self.differed} differed, DuckDB answered {self.duck.answered}, "
            f"Spark failed at {self.unanswered}, "
            f"{self.refused.total()} were refused"
        )


def rounds_to_noise(sql: str) -> bool:
    """True if it asks for a correlation or distribution of a constant, a value with itself, or a group's key.

    The result is rounding noise: the mean of equal values, merged from several partitions, may differ from them in its
    last digit.
    """
    pairs = re.findall(r"\b(?:corr|regr_\w+)\((\w+), (\w+)\)", sql, re.IGNORECASE)
    keys = " ".join(re.findall(r"GROUP BY .*", sql, re.IGNORECASE))
    singles = re.findall(r"\b(?:skewness|kurtosis)\((\w+)\)", sql, re.IGNORECASE)
    correlate = any(a == b or re.search(rf"\b({a}|{b})\b", keys) for a, b in pairs)
    return correlate or any(re.search(rf"\b{a}\b", keys) for a in singles)


def without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The rows without the others, counted as multisets."""
    left, rest = list(others), []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            rest.append(row)
    return rest


def needed(name: str, select: str, views: Mapping[str, str]) -> bool:
    """True if a SELECT reads a view, directly or through others."""
    named = set(re.findall(r"\bv\d+\b", select)) & set(views)
    return name in named or any(needed(name, views[other], views) for other in named)


def reason(refused: Refused) -> str:
    """The reason for a refusal, without names and values of the view."""
    what = refused.what.partition("\n")[0].split(": ", 2)[-1]
    what = re.sub(r"(DECIMAL\(\d+,\d+\)|\d+)", "N", what)
    return re.sub(r"'[^']*'", "'…'", what)


def report(difference: tuple[Round, Finding]) -> str:
    """A difference that a reader can repeat: the catalog, all records, the expected rows and the actual rows."""
    round_, finding = difference
    lines = [
        f"-- {finding.view}: {finding.kind}",
        catalog_text(round_.views, joined=bool(round_.others)),
        finding.error,
    ]
    for name, batches in round_.records.items():
        for batch in batches:
            lines += [f"-- micro-batch of {name}", *map(repr, batch)]
    missing, wrong = without(finding.expected, finding.actual), without(finding.actual, finding.expected)
    lines += [f"expected  {row}" for row in missing[:SHOWN]] + [f"actual    {row}" for row in wrong[:SHOWN]]
    return "\n".join(line for line in lines if line) + "\n"
