"""The declarations and the records: each view with the same question in DuckDB's SQL, each record with its row.

The maker of a record decides here if it is good, and which row it gives. Lamina is not asked.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from benchmarks.chaos.parcels import written

Row = Mapping[str, Any]

COUNTRIES = ("FR", "JP", "NG", "BR", "", None)
KINDS = ("order", "order", "order", "order", "order", "order", "gift", "refund", None)
PAGES = ("/", "/search", "/basket", "/pay", None)


@dataclass(frozen=True)
class WorldSource:
    """A source as it is declared. `columns` are the types of its rows in DuckDB."""

    name: str
    topic: str
    ddl: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class WorldView:
    """A view and the same question in DuckDB's SQL. `kept_by` is the column of `retain`."""

    name: str
    ddl: str
    duck: str
    kept_by: str | None = None


@dataclass(frozen=True)
class SentRecord:
    """A record to send. `row` is the one that Lamina must count for it, or None if it must go to quarantine."""

    value: bytes | None
    row: Row | None
    timestamp_ms: int | None = None


ORDERS = """CREATE TABLE orders (
  id BIGINT, customer STRING, country STRING, kind STRING, amount DECIMAL(12, 2), n INT, ts TIMESTAMP,
  payload STRUCT<device: STRUCT<os: STRING>>
) USING kafka OPTIONS (topic '{topic}', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '3');"""

VISITS = """CREATE TABLE visits (who STRING, page STRING, ms BIGINT, ratio DOUBLE, ts TIMESTAMP)
USING kafka OPTIONS (topic '{topic}', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');"""

SPARE = """CREATE TABLE {name} (kind STRING, n INT)
USING kafka OPTIONS (topic '{topic}', format 'json') TBLPROPERTIES ('partitions' = '1');"""

CUSTOMERS = """CREATE TABLE customers (customer STRING PRIMARY KEY, city STRING, ts TIMESTAMP)
USING kafka OPTIONS (topic '{topic}', format 'debezium-json', key_format 'none')
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');"""

PARCELS = """CREATE TABLE parcels (id BIGINT, city STRING, grams BIGINT, price DECIMAL(12, 2))
USING kafka OPTIONS (topic '{topic}', format 'avro') TBLPROPERTIES ('partitions' = '2');"""

ORDER_COLUMNS = {
    "id": "BIGINT",
    "customer": "VARCHAR",
    "country": "VARCHAR",
    "kind": "VARCHAR",
    "amount": "DECIMAL(12, 2)",
    "n": "INTEGER",
    "ts": "TIMESTAMP",
    "os": "VARCHAR",
}
VISIT_COLUMNS = {"who": "VARCHAR", "page": "VARCHAR", "ms": "BIGINT", "ratio": "DOUBLE", "ts": "TIMESTAMP"}
PARCEL_COLUMNS = {"id": "BIGINT", "city": "VARCHAR", "grams": "BIGINT", "price": "DECIMAL(12, 2)"}
SPARE_COLUMNS = {"kind": "VARCHAR", "n": "INTEGER"}
CUSTOMER_COLUMNS = {"customer": "VARCHAR", "city": "VARCHAR", "ts": "TIMESTAMP", "gone": "BOOLEAN", "before": "VARCHAR"}
"""`gone` is True if the record deletes. `before` is the key from which it takes the row away."""

HOURLY = """SELECT time_bucket(INTERVAL '1 hour', ts) AS hour, country, count(*) AS orders,
       count(*) FILTER (WHERE kind = 'gift') AS gifts, sum(amount) AS amount, min(n) AS least, max(n) AS most
FROM orders WHERE ts IS NOT NULL GROUP BY ALL"""

SESSIONS = """SELECT who, min(ts) AS start, max(ts) + INTERVAL '10 minutes' AS stop, count(*) AS pages
FROM (
  SELECT *, sum(begins) OVER (PARTITION BY who ORDER BY ts, kafka_partition, kafka_offset) AS number
  FROM (
    SELECT *, CASE WHEN lag(ts) OVER (PARTITION BY who ORDER BY ts, kafka_partition, kafka_offset)
                        + INTERVAL '10 minutes' >= ts THEN 0 ELSE 1 END AS begins
    FROM visits WHERE ts IS NOT NULL
  )
)
GROUP BY who, number"""

NEWEST = """SELECT customer, city, ts FROM (
  SELECT *, row_number() OVER (PARTITION BY customer ORDER BY ms DESC, kafka_partition DESC, kafka_offset DESC) AS nth
  FROM (
    SELECT customer, city, ts, gone, kafka_partition, kafka_offset FROM customers
    UNION ALL
    SELECT before, NULL, ts, true, kafka_partition, kafka_offset FROM customers WHERE before IS NOT NULL
  ) JOIN (
    SELECT kafka_partition, kafka_offset, max(kafka_ms) OVER (PARTITION BY kafka_partition ORDER BY kafka_offset) AS ms
    FROM (
      SELECT kafka_partition, kafka_offset, kafka_ms FROM customers
      UNION ALL
      SELECT kafka_partition, kafka_offset, kafka_ms FROM bad WHERE source = 'customers'
    )
  ) USING (kafka_partition, kafka_offset)
) WHERE nth = 1 AND NOT gone"""
"""The newest by the log: within a partition the later offset, between partitions the greatest timestamp up to
a record.
"""

VIEWS = (
    WorldView("customers", "", NEWEST),
    WorldView(
        "cities",
        """CREATE VIEW cities AS SELECT c.city, count(*) AS orders, sum(o.amount) AS amount, max(o.n) AS most
        FROM orders o LEFT JOIN customers c ON c.customer = o.customer GROUP BY c.city;""",
        f"""SELECT c.city, count(*), sum(o.amount), max(o.n)
        FROM orders o LEFT JOIN ({NEWEST}) c ON c.customer = o.customer GROUP BY c.city""",
    ),
    WorldView(
        "totals",
        """CREATE VIEW totals AS SELECT count(*) AS orders, count(n) AS counted, sum(n) AS n, sum(amount) AS amount,
        max(id) AS newest, max(kafka_timestamp) IS NULL AS none FROM orders;""",
        "SELECT count(*), count(n), sum(n), sum(amount), max(id), count(*) = 0 FROM orders",
    ),
    WorldView(
        "hourly",
        """CREATE VIEW hourly (hour, country, orders, gifts, amount, least, most) AS
        SELECT window(ts, '1 hour').start, country, count(*), count(*) FILTER (WHERE kind = 'gift'), sum(amount),
               min(n), max(n)
        FROM orders GROUP BY window(ts, '1 hour'), country;""",
        HOURLY,
    ),
    WorldView(
        "places",
        "CREATE VIEW places AS SELECT country, sum(orders) AS orders, sum(amount) AS amount"
        " FROM hourly GROUP BY country;",
        f"SELECT country, sum(orders), sum(amount) FROM ({HOURLY}) GROUP BY country",
    ),
    WorldView(
        "days",
        """CREATE VIEW days (day, kind, orders) TBLPROPERTIES ('retain' = '1 day') AS
        SELECT window(ts, '1 day').start, kind, count(*) FROM orders GROUP BY window(ts, '1 day'), kind;""",
        "SELECT time_bucket(INTERVAL '1 day', ts) AS day, kind, count(*) AS orders FROM orders WHERE ts IS NOT NULL"
        " GROUP BY ALL",
        kept_by="day",
    ),
    WorldView(
        "buyers",
        "CREATE VIEW buyers AS SELECT payload.device.os AS os, count(DISTINCT customer) AS customers,"
        " count(*) AS orders FROM orders GROUP BY payload.device.os;",
        "SELECT os, count(DISTINCT customer), count(*) FROM orders GROUP BY os",
    ),
    WorldView(
        "refunds",
        "CREATE VIEW refunds AS SELECT id, customer, amount, ts, kafka_partition, kafka_offset FROM orders"
        " WHERE kind = 'refund';",
        "SELECT id, customer, amount, ts, kafka_partition, kafka_offset FROM orders WHERE kind = 'refund'",
    ),
    WorldView(
        "waits",
        """CREATE VIEW waits AS SELECT page, count(*) AS visits, median(ms) AS usual, percentile(ms, 0.9) AS slow,
        min(ratio) AS least, max(ratio) AS most FROM visits GROUP BY page;""",
        "SELECT page, count(*), median(ms), quantile_cont(ms, 0.9), min(ratio), max(ratio) FROM visits GROUP BY page",
    ),
    WorldView(
        "traffic",
        """CREATE VIEW traffic (start, page, visits, ms) AS
        SELECT window(ts, '30 minutes', '10 minutes').start, page, count(*), sum(ms)
        FROM visits GROUP BY window(ts, '30 minutes', '10 minutes'), page;""",
        """SELECT time_bucket(INTERVAL '10 minutes', ts) - ago * INTERVAL '10 minutes' AS start, page, count(*), sum(ms)
        FROM visits, range(3) AS panes(ago) WHERE ts IS NOT NULL GROUP BY ALL""",
    ),
    WorldView(
        "sessions",
        """CREATE VIEW sessions (who, start, stop, pages) AS
        SELECT who, session_window(ts, '10 minutes').start, session_window(ts, '10 minutes').end, count(*)
        FROM visits GROUP BY who, session_window(ts, '10 minutes');""",
        SESSIONS,
    ),
)

OF_PARCELS = WorldView(
    "posted",
    """CREATE VIEW posted AS SELECT city, count(*) AS parcels, sum(grams) AS grams, sum(price) AS price,
    max(id) AS newest FROM parcels GROUP BY city;""",
    "SELECT city, count(*), sum(grams), sum(price), max(id) FROM parcels GROUP BY city",
)

EXTRA = (
    WorldView(
        "extra",
        "CREATE VIEW extra AS SELECT kind, count(*) AS orders FROM orders GROUP BY kind;",
        "SELECT kind, count(*) AS orders FROM orders GROUP BY kind",
    ),
    WorldView(
        "extra",
        "CREATE VIEW extra AS SELECT kind, count(*) AS orders, sum(n) AS n FROM orders GROUP BY kind;",
        "SELECT kind, count(*) AS orders, sum(n) AS n FROM orders GROUP BY kind",
    ),
)
"""Two versions of a view that comes and changes. The number of its columns identifies the version that is read."""


@dataclass
class World:
    """The current catalog, and the records for it.

    `prefix` makes the names of topics unique. `versions` is the number of versions of the parcels' schema, 0 without a
    registry.
    """

    prefix: str
    seed: int
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    extra: int | None = None
    spare: int = 1
    versions: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def sources(self) -> dict[str, WorldSource]:
        """The sources that are declared now."""
        spare = f"spare_{self.spare}"
        declared: tuple[tuple[str, str, Mapping[str, str]], ...] = (
            ("orders", ORDERS, ORDER_COLUMNS),
            ("visits", VISITS, VISIT_COLUMNS),
            (spare, SPARE, SPARE_COLUMNS),
            ("customers", CUSTOMERS, CUSTOMER_COLUMNS),
            *((("parcels", PARCELS, PARCEL_COLUMNS),) if self.versions else ()),
        )
        return {
            name: WorldSource(
                name, f"{self.prefix}_{name}", ddl.format(name=name, topic=f"{self.prefix}_{name}"), columns
            )
            for name, ddl, columns in declared
        }

    @property
    def views(self) -> tuple[WorldView, ...]:
        """The views that are declared now."""
        name = f"spare_{self.spare}"
        counted = f"SELECT kind, count(*) AS records, sum(n) AS n FROM {name} GROUP BY kind"
        spare = WorldView(f"{name}_kinds", f"CREATE VIEW {name}_kinds AS {counted};", counted)
        extra = EXTRA[self.extra : self.extra + 1] if self.extra is not None else ()
        return (*VIEWS, spare, *((OF_PARCELS,) if self.versions else ()), *extra)

    @property
    def files(self) -> dict[str, str]:
        """The catalog. A table is a view without its own declaration."""
        return {f"{declaration.name}.sql": declaration.ddl for declaration in self._declared() if declaration.ddl}

    def _declared(self) -> list[WorldSource | WorldView]:
        return [*self.sources.values(), *self.views]

    def number(self) -> int:
        """A number that no other record has."""
        with self._lock:
            return next(self._numbers)

    def record(self, source: str, dice: random.Random) -> SentRecord:
        """A good record. Some are late by days, and some fields are NULL or missing."""
        if source == "customers":
            return _change(self, dice)
        row = _ROWS[source.partition("_")[0]](self, dice)
        for name in list(row):
            if dice.random() < 0.05 and (source, name) != ("parcels", "id"):  # an id may not be null
                row[name] = None
        if source == "parcels":
            return SentRecord(written(self.versions, row), row)
        present = {name: value for name, value in row.items() if value is not None or dice.random() < 0.5}
        return SentRecord(json.dumps(_nested(present), default=_json).encode(), row)

    def time(self, dice: random.Random) -> datetime:
        """The time of a record: mostly within the six hours before the run, rarely days ago."""
        ago = timedelta(seconds=dice.uniform(0, 6 * 3600), days=dice.choice([0] * 19 + [3]))
        return (self.began - ago).replace(tzinfo=None, microsecond=dice.randrange(1000) * 1000)


def _order(world: World, dice: random.Random) -> dict[str, Any]:
    return {
        "id": world.number(),
        "customer": f"c{dice.randrange(5000)}",
        "country": dice.choice(COUNTRIES),
        "kind": dice.choice(KINDS),
        "amount": Decimal(dice.randrange(-10_000, 100_000)) / 100,
        "n": dice.randrange(-5, 100),
        "ts": world.time(dice),
        "os": dice.choice(("linux", "ios", "plan 9")),
    }


def _visit(world: World, dice: random.Random) -> dict[str, Any]:
    return {
        "who": f"w{dice.randrange(300)}",
        "page": dice.choice(PAGES),
        "ms": dice.randrange(5000),
        "ratio": dice.randrange(-400, 400) / 4,
        "ts": world.time(dice),
    }


def _change(world: World, dice: random.Random) -> SentRecord:
    """A change of a customer, who may move to another key, or go. Few customers change often, so that changes meet."""
    customer, before = f"c{dice.randrange(500)}", f"c{dice.randrange(500)}"
    op, at = dice.choice("cuuud"), world.time(dice)
    row = {"customer": customer, "city": dice.choice(("Bonn", "Kiel", "Ulm", None)), "ts": at}
    moved = before if op == "u" and before != customer and dice.random() < 0.3 else None
    old = None if op == "c" else {"customer": moved or customer, "city": "Jena", "ts": world.began.replace(tzinfo=None)}
    event = {"op": op, "before": old, "after": None if op == "d" else row}
    sent = round(at.replace(tzinfo=UTC).timestamp() * 1000)  # timestamps often fall
    counted_row = row | {"gone": op == "d", "before": moved}
    return SentRecord(json.dumps(event, default=_json).encode(), counted_row, sent)


def _spare(_: World, dice: random.Random) -> dict[str, Any]:
    return {"kind": dice.choice(("a", "b", None)), "n": dice.randrange(10)}


def _parcel(world: World, dice: random.Random) -> dict[str, Any]:
    return {
        "id": world.number(),
        "city": dice.choice(("Bonn", "Kiel", "Ulm")),
        "grams": dice.randrange(30_000),
        "price": Decimal(dice.randrange(100_000)) / 100,
    }


_ROWS = {"orders": _order, "visits": _visit, "spare": _spare, "parcels": _parcel}


def _nested(row: Row) -> dict[str, Any]:
    """The row as producers write it. The system of a device is two levels deep."""
    flat = {name: value for name, value in row.items() if name != "os"}
    return flat | ({"payload": {"device": {"os": row["os"]}}} if "os" in row else {})


def _json(value: Any) -> str:
    return value.isoformat() + "Z" if isinstance(value, datetime) else str(value)
