"""Random views, and regressions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.duck import Duck, translate
from tests.fuzz.fuzzing import Fuzzing, report
from tests.fuzz.records import records, split
from tests.fuzz.rounds import Round, check
from tests.laws.engines import Engines

CASES = Path(__file__).parent / "cases"


def test_random_views_equal_their_selects(engines: Engines) -> None:
    fuzzing = Fuzzing(seed=1)
    wrong = [report(difference) for difference in fuzzing.run(engines, views=25, small=False)]
    assert not wrong, "\n".join(wrong)
    assert fuzzing.unanswered == 0


def test_views_that_were_wrong_once_are_right(engines: Engines) -> None:
    views = {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(CASES.glob("*.sql"))}
    dice = random.Random(1)
    round_ = Round(views, split(dice, records(dice, 40)))
    wrong = [report((round_, finding)) for finding in check(engines, Duck(), round_)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("cast", ["300 AS SMALLINT", "'-7' AS INT"])
def test_duckdb_computes_a_cast_to_an_integer_that_fits(cast: str) -> None:
    assert translate(f"SELECT CAST({cast}) AS c FROM s") is not None


@pytest.mark.parametrize("cast", ["4000000000 AS INT", "128 AS TINYINT", "1.5 AS INT", "'x' AS BIGINT"])
def test_duckdb_does_not_compute_a_cast_that_spark_computes_otherwise(cast: str) -> None:
    assert translate(f"SELECT CAST({cast}) AS c FROM s") is None
