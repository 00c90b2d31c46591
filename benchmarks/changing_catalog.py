"""The catalog of a shop, and its twenty changes: cells, shapes, names, checks, sources and views come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Catalog = dict[str, str]

CUSTOMERS, GOODS = 2_000, 40
CITIES, CURRENCIES = ("Ulm", "Kiel", "Bonn", "Trier"), ("EUR", "USD", "SEK")

SOURCES: Catalog = {
    "orders": """
CREATE TABLE orders (id INT, customer_id INT, good_id INT, currency STRING, amount DECIMAL(8, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');""",
    "payments": """
CREATE TABLE payments (order_id INT, ts TIMESTAMP, UNIQUE (order_id))
USING kafka OPTIONS (topic 'payments', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');""",
    "customers": """
CREATE TABLE customers (id INT PRIMARY KEY, city STRING, moved_at TIMESTAMP)
USING kafka OPTIONS (topic 'customers', format 'json', key_format 'json')
TBLPROPERTIES ('event_time' = 'moved_at', 'partitions' = '2');""",
}

VIEWS: Catalog = {
    "total": "CREATE VIEW total AS SELECT count(*) AS orders FROM orders;",
    "by_currency": "CREATE VIEW by_currency AS SELECT currency, count(*) AS orders FROM orders GROUP BY currency;",
    "by_city": """
CREATE VIEW by_city AS SELECT c.city, count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.city;""",
}

BEFORE = SOURCES | VIEWS


@dataclass(frozen=True)
class CatalogChange:
    """One step of the catalog: its files, the options of the apply, and the expected exit code."""

    what: str
    files: Callable[[Catalog], Catalog]
    options: tuple[str, ...] = ()
    exit_code: int = 0

    def after(self, catalog: Catalog) -> Catalog:
        """The deployed catalog after the change, which changes nothing if it is refused."""
        return catalog if self.exit_code else self.files(catalog)


def put(name: str, sql: str) -> Callable[[Catalog], Catalog]:
    """The catalog with this declaration."""
    return lambda catalog: catalog | {name: sql}


def edited(name: str, old: str, new: str) -> Callable[[Catalog], Catalog]:
    """The catalog with some words of a declaration replaced."""

    def change(catalog: Catalog) -> Catalog:
        assert old in catalog[name], f"{name} has no {old!r}: {catalog[name]}"
        return catalog | {name: catalog[name].replace(old, new)}

    return change


def without(*names: str) -> Callable[[Catalog], Catalog]:
    """The catalog without some declarations."""
    return lambda catalog: {name: sql for name, sql in catalog.items() if name not in names}


CHANGES: Sequence[CatalogChange] = (
    CatalogChange(
        "one aggregate more", edited("by_currency", "count(*) AS orders", "count(*) AS orders, avg(amount) AS mean")
    ),
    CatalogChange(
        "finer groups",
        put(
            "by_currency",
            "CREATE VIEW by_currency AS SELECT currency, good_id, count(*) AS orders, avg(amount) AS mean"
            " FROM orders GROUP BY currency, good_id;",
        ),
        ("--allow-break",),
    ),
    CatalogChange(
        "only what is shown of the cells",
        edited("by_currency", "avg(amount) AS mean", "avg(amount) AS mean, count(*) % 10 AS over"),
    ),
    CatalogChange(
        "a join as of the event",
        edited("by_city", "JOIN customers c", "JOIN customers FOR SYSTEM_TIME AS OF o.ts AS c"),
    ),
    CatalogChange(
        "a column that producers already send", edited("orders", "ts TIMESTAMP", "ts TIMESTAMP, note STRING")
    ),
    CatalogChange(
        "a view of that column",
        put("notes", "CREATE VIEW notes AS SELECT note, count(*) AS orders FROM orders GROUP BY note;"),
    ),
    CatalogChange(
        "a join of three in time",
        put(
            "paid",
            "CREATE VIEW paid AS SELECT o.id, p.ts AS paid_at FROM orders o LEFT JOIN payments p"
            " ON p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 MINUTES;",
        ),
    ),
    CatalogChange(
        "a view over it",
        put("paid_share", "CREATE VIEW paid_share AS SELECT count(*) AS orders, count(paid_at) AS paid FROM paid;"),
    ),
    CatalogChange("what is below a view", edited("paid", "15 MINUTES", "5 MINUTES")),
    CatalogChange(
        "a check that fails blocks",
        lambda catalog: (
            catalog
            | {
                "notes": catalog["notes"].replace("GROUP BY", "WHERE id >= 0 GROUP BY"),
                "check": "ALTER VIEW notes ADD CONSTRAINT none CHECK (note IS NULL);",
            }
        ),
        exit_code=3,
    ),
    CatalogChange(
        "the same, warning",
        lambda catalog: (
            catalog
            | {
                "notes": catalog["notes"].replace("GROUP BY", "WHERE id >= 0 GROUP BY"),
                "check": "ALTER VIEW notes ADD CONSTRAINT none CHECK (note IS NULL) NOT ENFORCED;",
            }
        ),
    ),
    CatalogChange("a wider type", edited("orders", "DECIMAL(8, 2)", "DECIMAL(12, 2)"), ("--allow-break",)),
    CatalogChange(
        "another name",
        lambda catalog: (
            {name: sql for name, sql in catalog.items() if name not in ("notes", "check")}
            | {
                "remarks": catalog["notes"].replace(
                    "VIEW notes AS", "VIEW remarks TBLPROPERTIES ('renamed_from' = 'notes') AS"
                )
            }
        ),
        ("--allow-break",),
    ),
    CatalogChange(
        "sessions of a join",
        put(
            "baskets",
            "CREATE VIEW baskets AS"
            " SELECT c.city, session_window(o.ts, '1 minute').start AS began, count(*) AS orders"
            " FROM orders o JOIN customers c ON c.id = o.customer_id"
            " GROUP BY c.city, session_window(o.ts, '1 minute');",
        ),
    ),
    CatalogChange("a condition", edited("by_city", "GROUP BY", "WHERE o.amount >= 0 GROUP BY")),
    CatalogChange("a view less", without("baskets"), ("--prune",)),
    CatalogChange(
        "a source more",
        lambda catalog: (
            catalog
            | {
                "goods": """
CREATE TABLE goods (id INT PRIMARY KEY, origin STRING) USING kafka
OPTIONS (topic 'goods', format 'json', key_format 'json') TBLPROPERTIES ('partitions' = '1');""",
                "local": "CREATE VIEW local AS SELECT count(*) AS n FROM orders o JOIN goods g ON g.id = o.good_id"
                " JOIN customers c ON c.id = o.customer_id WHERE g.origin = c.city;",
            }
        ),
    ),
    CatalogChange(
        "distinct, quantiles, order",
        put(
            "by_currency",
            "CREATE VIEW by_currency AS SELECT currency, count(*) AS orders, count(DISTINCT customer_id) AS buyers,"
            " percentile_approx(amount, 0.5) AS median, max_by(id, ts) AS newest FROM orders GROUP BY currency;",
        ),
        ("--allow-break",),
    ),
    CatalogChange(
        "other events told apart: refused", edited("orders", "note STRING)", "note STRING, UNIQUE (id))"), exit_code=1
    ),
    CatalogChange(
        "all views at once",
        lambda catalog: {
            name: sql.replace("count(*) AS orders", "count(*) AS orders, max(kafka_timestamp) AS latest")
            if "FROM orders" in sql and "GROUP BY" in sql
            else sql
            for name, sql in catalog.items()
        },
    ),
)

SUMS = {"by_currency", "by_city", "notes", "remarks", "paid_share", "baskets"}
"""Views whose `orders` add up to those of `total`, as long as every order is in one of their rows."""

RENAMED_OR_DROPPED = {"notes", "baskets"}
"""Views among `SUMS` that a change renames or drops, perhaps after a snapshot has listed them."""
