"""The rows of the shop's views, in JSON and by a schema registry alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fix_lamina import Deployed

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "shop"

SHOWN = {
    "local_buyers_now": "SELECT to_char(hour, 'HH24'), buyers FROM local_buyers_now",
    "local_buyers_then": "SELECT to_char(hour, 'HH24'), buyers FROM local_buyers_then",
    "paid_in_time": "SELECT order_id, to_char(paid_at, 'HH24:MI') FROM paid_in_time",
    "in_euro": "SELECT currency, orders, amount::float8 FROM in_euro",
    "twice_within_a_minute": "SELECT * FROM twice_within_a_minute",
    "by_city": "SELECT * FROM by_city",
    "baskets": "SELECT city, to_char(began, 'HH24:MI'), orders::text FROM baskets",
}

RowsByView = dict[str, list[tuple[Any, ...]]]

BEFORE_CUSTOMERS: RowsByView = {
    "local_buyers_now": [],
    "local_buyers_then": [],
    "paid_in_time": [(1, "01:10"), (2, None), (3, "01:16"), (4, None), (5, "02:20")],
    "in_euro": [("SEK", 2, 13.5), ("USD", 3, 29.0)],
    "twice_within_a_minute": [],
    "by_city": [],
    "baskets": [],
}
"""An inner join shows nothing without a customer. Counted by hand from examples/shop/data, as what follows."""

WITH_CUSTOMERS: RowsByView = BEFORE_CUSTOMERS | {
    "local_buyers_now": [("01", 1), ("02", 1)],  # customer 1 moved from Ulm to Bonn, and bought of both
    "local_buyers_then": [("01", 2), ("02", 1)],
    "by_city": [("Bonn", 1), ("Kiel", 1), ("Trier", 1)],
    "baskets": [
        ("Bonn", "01:05", "[1, 2]"),
        ("Bonn", "02:11", "[5]"),
        ("Kiel", "01:16", "[3]"),
        ("Trier", "02:10", "[4]"),
    ],
}

AFTER_CHANGES: RowsByView = {
    "local_buyers_now": [("01", 1)],
    "local_buyers_then": [("01", 2)],
    "paid_in_time": [(1, "01:10"), (2, "01:20"), (3, "01:16"), (4, None), (5, "02:20"), (6, None)],
    "in_euro": [("SEK", 3, 14.4), ("USD", 3, 34.0)],
    "twice_within_a_minute": [(3, 6)],
    "by_city": [("Kiel", 1), ("Trier", 1)],
    "baskets": [("Kiel", "01:16", "[3, 6]"), ("Trier", "02:10", "[4]")],
}
"""Customer 1 is deleted, an old address of customer 2 comes late, a rate is corrected, piano making leaves Bonn,
order 2 is paid after five minutes, and order 6 comes late."""


def rows_by_view(deployed: Deployed) -> RowsByView:
    """The rows that the analyst sees of each view."""
    return {view: sorted(deployed.rows(query), key=str) for view, query in SHOWN.items()}
