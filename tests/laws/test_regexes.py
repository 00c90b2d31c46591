"""A translated regular expression finds in Postgres what Java finds, in random texts."""

from __future__ import annotations

import json
import random

from tests.laws.engines import Engines, same
from view_algebra import compile_catalog
from view_algebra.language.endless_regexes import endless
from view_algebra.language.regexes import decides, finds

LETTERS = "ab1-_ \n\r\té😀\u0085\u2028"
CLASSES = (*(f"\\{letter}" for letter in "dwsDWS-"), ".", "[ab]", "[^a]", "[a-z1]", r"[^\w-]", r"[\s\d]", "[^\n]")
SOURCE = "CREATE TABLE s (s STRING) USING kafka OPTIONS (topic 's', format 'json');\n"


def text(dice: random.Random) -> str:
    return "".join(
        dice.choices(LETTERS, weights=[9, 9, 5, 4, 1, 3, 2, 1, 1, 2, 1, 1, 1], k=dice.choice([0, 1, 2, 4, 9]))
    )


def expression(dice: random.Random, depth: int = 2) -> str:
    """A regular expression. Many of them match a text in one way only."""
    parts = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        part = dice.choice(["a", "b", "1", "-", "é", *CLASSES])
        if depth > 0 and dice.random() < 0.4:
            options = [expression(dice, depth - 1) for _ in range(dice.choice([1, 1, 2]))]
            part = f"{dice.choice(['(', '(', '(?:'])}{'|'.join(options)})"
        parts.append(part + dice.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "+?"]))
    whole = "".join(parts)
    if depth == 2:
        whole = f"{dice.choice(['', '', '', '', '^', '(?i)'])}{whole}{dice.choice(['', '', '$', '|b$'])}"
    return whole


def calls(regex: str) -> list[str]:
    """The calls that take a regular expression."""
    if endless(regex) is not None:
        return []
    literal = "'" + regex.replace("\\", "\\\\") + "'"
    calls = [f"s RLIKE {literal}"] if decides(regex) is not None else []
    if finds(regex) is not None:
        groups = regex.count("(") - regex.count("(?")
        calls += [f"regexp_extract_all(s, {literal}, {group})" for group in range(groups + 1)]
        calls += [f"regexp_extract(s, {literal}, {group})" for group in range(groups + 1)]
        calls += [f"regexp_replace(s, {literal}, '<${groups}>$0')", f"regexp_count(s, {literal})"]
        calls += [f"split(s, {literal})", f"regexp_substr(s, {literal})"]
    return calls


def compare(engines: Engines, seed: int, count: int) -> tuple[int, list[str]]:
    """The number of calls, and the calls whose values differ."""
    dice = random.Random(seed)
    tried = list(dict.fromkeys(call for _ in range(count) for call in calls(expression(dice))))
    views = {f"v{start}": tried[start : start + 40] for start in range(0, len(tried), 40)}
    selects = [
        f"CREATE VIEW {name} AS SELECT id, {', '.join(f'{call} AS c{n}' for n, call in enumerate(part))} FROM r;"
        for name, part in views.items()
    ]
    read = "CREATE VIEW r AS SELECT kafka_offset AS id, s FROM s;"
    catalog = compile_catalog({"regexes.sql": "\n".join([SOURCE, read, *selects])})
    batches = {"s": [[json.dumps({"s": text(dice)}).encode() for _ in range(150)]]}
    engines.deploy(catalog)
    engines.feed(catalog, batches)
    engines.oracle(catalog, batches)
    texts = {row[0]: row[1] for row in engines.actual(catalog.views["r"])}
    wrong = []
    for name, part in views.items():
        view = catalog.views[name]
        for expected, actual in zip(engines.expected(view), engines.actual(view), strict=True):
            wrong += [
                f"{call} of {texts[expected[0]]!r}: {a!r}, in Postgres {b!r}"
                for call, a, b in zip(part, expected[1:], actual[1:], strict=True)
                if not same([(a,)], [(b,)])
            ]
    return len(tried), wrong


def test_a_regular_expression_finds_the_same_in_both_engines(engines: Engines) -> None:
    tried, wrong = compare(engines, seed=1, count=120)
    assert wrong == []
    assert tried > 200
