"""Reading joins: orders by the country of the user, and by hour, as users are now and as they were then.

The same SELECT runs over plain Postgres tables of the raw rows: orders, users, and all versions of users. The analyst
asks each side in turns, and both must give equal rows. A rebuild of both views, which computes the cells of all sides
again, is measured as well.
"""

from __future__ import annotations

import statistics
from time import monotonic, perf_counter

import click

from benchmarks.figures import Figure, benchmark
from benchmarks.running import analyst, catch_up, deployment
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output
from serving_layer.postgres.cells import copy
from serving_layer.postgres.copying import CopyRows

AT_MOST, FEWER_AT_MOST = 1.1, 0.5
"""Largest shares of the raw rows' time: with about as many cells as orders, and with fewer cells."""

CATALOG = {
    "sources.sql": """
CREATE TABLE orders (id BIGINT, user_id BIGINT, amount DECIMAL(10,2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '4');
CREATE TABLE users (user_id BIGINT PRIMARY KEY, country STRING, ts TIMESTAMP)
USING kafka OPTIONS (topic 'users', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '4');""",
    "by_country.sql": """
CREATE VIEW by_country AS
SELECT u.country, count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN users u ON u.user_id = o.user_id
GROUP BY u.country;""",
    "by_country_now.sql": """
CREATE VIEW by_country_now AS
SELECT date_trunc('HOUR', o.ts) AS hour, u.country, count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN users u ON u.user_id = o.user_id
GROUP BY date_trunc('HOUR', o.ts), u.country;""",
    "by_country_then.sql": """
CREATE VIEW by_country_then AS
SELECT date_trunc('HOUR', o.ts) AS hour, u.country, count(*) AS orders, sum(o.amount) AS amount
FROM orders o JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON u.user_id = o.user_id
GROUP BY date_trunc('HOUR', o.ts), u.country;""",
}

_SUMS = "u.country, count(*) AS orders, sum(o.amount) AS amount"
_HOURLY = f"date_trunc('hour', o.ts, 'UTC') AS hour, {_SUMS}"

SIDES = {
    "as users are now": (
        "SELECT * FROM analytics.by_country",
        f"SELECT {_SUMS} FROM public.orders o JOIN public.users u USING (user_id) GROUP BY 1",
        FEWER_AT_MOST,
    ),
    "by the hour, as users are now": (
        "SELECT * FROM analytics.by_country_now",
        f"SELECT {_HOURLY} FROM public.orders o JOIN public.users u USING (user_id) GROUP BY 1, 2",
        AT_MOST,
    ),
    "by the hour, as users were then": (
        "SELECT * FROM analytics.by_country_then",
        f"""WITH versions AS (
          SELECT *, coalesce(lead(ts) OVER (PARTITION BY user_id ORDER BY ts), 'infinity') AS until FROM public.versions
        )
        SELECT {_HOURLY} FROM public.orders o JOIN versions u
        ON u.user_id = o.user_id AND u.ts <= o.ts AND o.ts < u.until GROUP BY 1, 2""",
        AT_MOST,
    ),
}
"""The view, the same SELECT over raw rows, and the largest share of its time."""

_FIRST = "timestamp '2026-01-01'"


def send(opened: Deployment, orders: int, users: int, moves: int) -> None:
    """Sends orders over 30 days, and each user's versions. A user's first version is earlier than all orders."""
    spark = opened.spark()
    ts = f"{_FIRST} + make_interval(0, 0, 0, 0, 0, 0, CAST(id * 2592000 / {orders} AS DECIMAL(18,6)))"
    ordered = spark.range(0, orders, 1, 4).selectExpr(
        "id", f"pmod(hash(id, 1), {users}) AS user_id", "pmod(hash(id, 2), 10000) / 100 AS amount", f"{ts} AS ts"
    )
    moved = f"{_FIRST} + make_interval(0, 0, 0, CAST(30 * (id DIV {users}) DIV {moves} AS INT), 0, 0, 0)"
    versions = spark.range(0, users * moves, 1, 4).selectExpr(
        f"id % {users} AS user_id", "concat('C', pmod(hash(id, 3), 200)) AS country", f"{moved} AS ts"
    )
    for topic, rows in (("orders", ordered), ("users", versions)):
        values = rows.selectExpr("to_json(struct(*)) AS value")
        values.write.format("kafka").options(**opened.brokers.for_spark()).option("topic", topic).save()


def copy_raw_rows(opened: Deployment) -> None:
    """Fills plain tables from the master log, as one would load them without Lamina."""
    sources = opened.deployed().sources
    with opened.database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE public.orders (id bigint, user_id bigint, amount numeric(10,2), ts timestamptz);"
            "CREATE TABLE public.versions (user_id bigint, country text, ts timestamptz);"
        )
    for name, table in (("orders", "orders"), ("users", "versions")):
        columns = [column.name for column in sources[name].columns]
        rows = opened.log().records_below(sources[name], opened.log().held(sources[name])).select(*columns).toArrow()
        _load(opened, table, columns, rows)
    with opened.database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE public.users AS"
            " SELECT DISTINCT ON (user_id) user_id, country FROM public.versions ORDER BY user_id, ts DESC;"
            "ALTER TABLE public.users ADD PRIMARY KEY (user_id);"
            "GRANT USAGE ON SCHEMA public TO analyst; GRANT SELECT ON ALL TABLES IN SCHEMA public TO analyst;"
        )
    with opened.database.autocommit() as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")


def _load(opened: Deployment, table: str, columns: list[str], rows) -> None:  # type: ignore[no-untyped-def]
    rows_to_copy = CopyRows()
    rows_to_copy.add(rows)
    with opened.database.begin() as connection:
        copy(connection, f"public.{table} ({', '.join(columns)})", rows_to_copy)


def measure(opened: Deployment, turns: int) -> list[Figure]:
    """Seconds of each SELECT on each side, and the ratio of the medians."""
    connection, figures = analyst(opened), []
    with connection.cursor() as cursor:
        for name, (view, raw, at_most) in SIDES.items():
            took: dict[str, list[float]] = {view: [], raw: []}
            for turn in range(turns + 1):
                answers = []
                for side in (view, raw):
                    began = perf_counter()
                    cursor.execute(side)
                    answers.append(sorted(cursor.fetchall()))
                    took[side] += [perf_counter() - began] if turn else []
                assert answers[0] == answers[1], f"{name}: the view and the raw rows answer differently"
            ours, theirs = (statistics.median(took[side]) for side in (view, raw))
            figures += [Figure(f"{name}: view", ours, "s"), Figure(f"{name}: raw rows", theirs, "s")]
            figures.append(Figure(f"{name}: view / raw rows", ours / theirs, "", at_most=at_most))
    connection.close()
    return figures


@click.command()
@click.option("--orders", default=1_000_000, show_default=True)
@click.option("--users", default=100_000, show_default=True)
@click.option("--moves", default=3, show_default=True, help="Versions of each user.")
@click.option("--turns", default=7, show_default=True, help="Turns of each side, after a warm-up turn.")
@benchmark
def main(output: Output, orders: int, users: int, moves: int, turns: int) -> list[Figure]:
    """Reading joins by hour and country, against the same SELECT over raw rows, and their rebuild."""
    with deployment(output) as opened:
        applying.apply(opened, CATALOG)
        send(opened, orders, users, moves)
        output.tell(f"{orders:,} orders and {users * moves:,} versions of users are in Kafka")
        caught_up = catch_up(opened)
        opened.batch.rebuild()  # the rebuild archives
        began = monotonic()
        opened.batch.rebuild()
        rebuilt = monotonic() - began
        copy_raw_rows(opened)
        return [
            Figure("catch-up", (orders + users * moves) / caught_up, "records/s"),
            Figure("rebuild of all views, archived before", (orders + users * moves) / rebuilt, "records/s"),
            *measure(opened, turns),
        ]


if __name__ == "__main__":
    main()
