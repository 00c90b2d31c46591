"""Random views equal their SELECTs, and so do views that once were wrong."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.duck import Duck
from tests.fuzz.fuzzing import Fuzzing, report
from tests.fuzz.records import records, split
from tests.fuzz.rounds import Round, check
from tests.laws.engines import Engines

CASES = Path(__file__).parent / "cases"


def test_random_views_equal_their_selects(engines: Engines) -> None:
    fuzzing = Fuzzing(seed=1)
    wrong = [report(difference) for difference in fuzzing.run(engines, views=25, shrinking=False)]
    assert not wrong, "\n".join(wrong)
    assert fuzzing.unanswered == 0


def test_views_that_were_wrong_once_are_right(engines: Engines) -> None:
    views = {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(CASES.glob("*.sql"))}
    dice = random.Random(1)
    round_ = Round(views, split(dice, records(dice, 40)))
    wrong = [report((round_, finding)) for finding in check(engines, Duck(), round_)]
    assert not wrong, "\n".join(wrong)
