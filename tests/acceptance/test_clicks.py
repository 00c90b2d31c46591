"""The views of a search page, through the command line and SQL alone: live, rebuilt, and after a late event."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.fix_lamina import CommandLine, Deployed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "SELECT word, searches, users FROM words ORDER BY searches DESC, word": [
        ("hat", 3, 2),
        ("red", 3, 2),
        ("shoes", 3, 2),
        ("blue", 2, 1),
        ("coat", 2, 1),
    ],
    "SELECT page_views, visitors FROM last_hour WHERE until = '2024-05-01 10:00:00Z'": [(14, 3)],
    "SELECT page_views, visitors FROM last_hour WHERE until = '2024-05-01 10:01:05Z'": [(9, 3)],
    "SELECT min(until)::text, max(until)::text FROM last_hour WHERE until < '2024-05-02'": [
        ("2024-05-01 09:00:05+00", "2024-05-01 10:30:05+00")
    ],
    "SELECT country, province, city, impressions, clicks, conversions, round(ctr::numeric, 3) FROM search_ctr"
    " WHERE country = 'NL' ORDER BY province NULLS FIRST, city NULLS FIRST": [
        ("NL", None, None, 5, 3, 1, Decimal("0.600")),
        ("NL", "Utrecht", None, 5, 3, 1, Decimal("0.600")),
        ("NL", "Utrecht", "Houten", 2, 2, 0, Decimal("1.000")),
        ("NL", "Utrecht", "Zeist", 3, 1, 1, Decimal("0.333")),
    ],
    "SELECT word, searches, place FROM top_words WHERE day = '2024-05-01 00:00:00Z' ORDER BY place": [
        ("shoes", 3, 1),
        ("blue", 2, 2),
        ("coat", 2, 3),
    ],
    "SELECT began::text, seconds, clicks FROM pauses WHERE user_id = 2 ORDER BY began": [
        ("2024-05-01 09:01:00+00", 480, 1),
        ("2024-05-01 09:25:00+00", 30, 1),
    ],
    "SELECT user_id, began::text, ended::text, clicks, logged_out FROM visits WHERE user_id = 1 ORDER BY began": [
        (1, "2024-05-01 09:00:00+00", "2024-05-01 09:02:30+00", 1, 1),
        (1, "2024-05-01 09:04:00+00", "2024-05-01 09:04:00+00", 0, 0),
        (1, "2024-05-02 08:00:00+00", "2024-05-02 08:00:05+00", 0, 0),
    ],
}
"""Counted by hand from examples/clicks/data/events.jsonl."""

LATE = {"user_id": 2, "kind": "click", "country": "NL", "province": "Utrecht", "city": "Houten"}
AFTER_THE_LATE: dict[str, list[tuple[Any, ...]]] = {
    "SELECT began::text, seconds, clicks FROM pauses WHERE user_id = 2 ORDER BY began": [
        ("2024-05-01 09:01:00+00", 1470, 3)
    ],
    "SELECT page_views, visitors FROM last_hour WHERE until = '2024-05-01 10:00:00Z'": [(15, 3)],
    "SELECT impressions, clicks FROM search_ctr WHERE city = 'Houten'": [(2, 3)],
}


def test_clicks_are_counted_live_and_rebuilt_and_a_late_click_corrects_its_windows(
    deployed: Deployed, lamina: CommandLine, tmp_path: Path
) -> None:
    catalog = deployed.copied(EXAMPLES / "clicks", tmp_path / "catalog")
    lamina("apply", "--catalog", str(catalog))
    lamina("ingest", "events", str(EXAMPLES / "clicks" / "data" / "events.jsonl"))
    deployed.catch_up()
    assert {query: deployed.rows(query) for query in EXPECTED} == EXPECTED
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert {query: deployed.rows(query) for query in EXPECTED} == EXPECTED
    deployed.send("events", LATE | {"ts": "2024-05-01T09:17:00Z"})  # between two visits, and part of both
    deployed.catch_up()
    assert {query: deployed.rows(query) for query in AFTER_THE_LATE} == AFTER_THE_LATE
    deployed.check()
