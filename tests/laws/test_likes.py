"""LIKE as a regular expression finds the texts that Spark's LIKE finds, also in a megabyte."""

from __future__ import annotations

import random
import re

from tests.laws.engines import Engines
from view_algebra.engines.spark import constant
from view_algebra.language.expressions import Constant
from view_algebra.language.like_patterns import like_as_regex, like_as_regex_in_spark
from view_algebra.language.types import STRING

SIGNS = ["a", "b", "%", "_", r"\%", r"\_", r"\\", ".", "(", "\n", "$", "😀", "-", "]"]
LETTERS = ["a", "b", "%", "_", "\\", ".", "(", "\n", "$", "😀", "-", "]"]


BEYOND = "\U0001f600"


def test_like_finds_the_texts_that_sparks_like_finds(engines: Engines) -> None:
    """The patterns have no characters beyond U+FFFF, because Spark 4.1 never finds these."""
    dice = random.Random(3)
    rows = []
    for _ in range(4000):
        pattern = "".join(dice.choices(SIGNS, weights=[4, 3, 6, 2, *(1,) * 10], k=dice.randrange(9)))
        text = "".join(dice.choices(LETTERS, weights=[6, 5, *(1,) * 10], k=dice.randrange(10)))
        rows.append((text, pattern.replace(BEYOND, "é"), like_as_regex(pattern.replace(BEYOND, "é"))))
    engines.spark.createDataFrame(rows, "s string, p string, r string").createOrReplaceTempView("texts")
    [(likes, wrong, literals, wrong_literals)] = engines.spark.sql(
        f"""SELECT count_if(s LIKE p), count_if((s LIKE p) <> (s RLIKE {like_as_regex_in_spark("p")})),
          count_if(s LIKE p AND r IS NOT NULL), count_if((s LIKE p) <> (s RLIKE r)) FROM texts"""
    ).collect()
    assert (wrong, wrong_literals) == (0, 0)
    assert likes > 200
    assert literals > 10


def test_like_of_a_megabyte_ends(engines: Engines) -> None:
    million = 1_000_000
    literal = constant(Constant(like_as_regex("%a%b%c"), STRING))
    rows = [("a" * million, "%a%b" * 30), ("ab" * (million // 2), "%a%b" * 2_500), ("", "%(\\_" * 3_000)]
    texts = engines.spark.createDataFrame(rows, "s string, p string")
    answers = texts.selectExpr(f"s RLIKE {literal}", f"s RLIKE {like_as_regex_in_spark('p')}").collect()
    assert [tuple(row) for row in answers] == [(False, False), (False, True), (False, False)]


def test_like_finds_characters_beyond_the_first_plane(engines: Engines) -> None:
    patterns = ["😀%", "😀_", "%😀", "_😀%", "😀😀", "%😀_😀%"]
    texts = ["😀a", "a😀", "😀😀", "a😀b😀", "b"]
    engines.spark.createDataFrame([(text,) for text in texts], "s string").createOrReplaceTempView("texts")
    for pattern in patterns:
        regex = constant(Constant(like_as_regex(pattern), STRING))
        matches = engines.spark.sql(f"SELECT s FROM texts WHERE s RLIKE {regex}")
        like = re.compile("".join({"%": ".*", "_": "."}.get(sign, sign) for sign in pattern))
        assert sorted(row.s for row in matches.collect()) == sorted(filter(like.fullmatch, texts)), pattern
