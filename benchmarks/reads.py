"""Reading through the analyst's view, against a plain indexed table with the same content.

The view is read as on the morning after: a rebuild has just handed over two million cells, and the generation before is
still live. The table holds the view's rows in the same order, with the view's keys as its primary key. Both are
vacuumed. The analyst's one connection asks each side in turns.
"""

from __future__ import annotations

import random
import statistics
from datetime import date, timedelta
from time import perf_counter

import click

from benchmarks import events
from benchmarks.figures import Figure, benchmark
from benchmarks.running import analyst, catch_up, deployment
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output

AT_MOST = 1.15

VIEW, TABLE = "analytics.user_days", "public.user_days"

POINT = "SELECT events, spent FROM {side} WHERE day = '{day}' AND user_id = {user}"
LAST_DAY = "SELECT count(*), sum(events), sum(spent) FROM {side} WHERE day = '{last}'"
ROLL_UP = "SELECT day, sum(events), sum(spent) FROM {side} GROUP BY day ORDER BY day"

QUERIES = {"a point": (POINT, 2000), "the last day": (LAST_DAY, 200), "a roll-up of all": (ROLL_UP, 21)}
"""The text of each query, and the number of times each side is asked."""


def prepare(opened: Deployment, records: int, days: int) -> None:
    """Fills the view, rebuilds it, and copies its rows into a table."""
    applying.apply(opened, events.catalog(user_days=events.USER_DAYS))
    events.send_user_days(opened, records, days=days, users=events.USERS)
    opened.tell(f"{records:,} records are in Kafka")
    catch_up(opened)
    opened.batch.rebuild()
    with opened.database.begin() as connection:
        for statement in (
            f"CREATE TABLE {TABLE} AS SELECT * FROM {VIEW}",
            f"ALTER TABLE {TABLE} ADD PRIMARY KEY (day, user_id)",
            "GRANT USAGE ON SCHEMA public TO analyst",
            f"GRANT SELECT ON {TABLE} TO analyst",
        ):
            connection.exec_driver_sql(statement)
    with opened.database.autocommit() as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")


def measure(opened: Deployment, days: int) -> list[Figure]:
    """Milliseconds of each query on each side, and the ratios of their medians."""
    dice = random.Random(1)
    first = date.fromisoformat(events.FIRST_DAY)
    figures = []
    connection = analyst(opened)
    with connection.cursor() as cursor:

        def ask(query: str) -> tuple[float, object]:
            began = perf_counter()
            cursor.execute(query)
            rows = cursor.fetchall()
            return perf_counter() - began, rows

        for name, (text, times) in QUERIES.items():
            took: dict[str, list[float]] = {VIEW: [], TABLE: []}
            for turn in range(times):
                asked = {
                    "day": first + timedelta(dice.randrange(days)),
                    "last": first + timedelta(days - 1),
                    "user": dice.randrange(events.USERS),
                }
                answers = []
                for side in (VIEW, TABLE) if turn % 2 else (TABLE, VIEW):
                    seconds, rows = ask(text.format(side=side, **asked))
                    took[side].append(seconds)
                    answers.append(rows)
                assert answers[0] == answers[1], f"{name}: the view and the table answer differently"
            view, table = (statistics.median(took[side]) * 1000 for side in (VIEW, TABLE))
            figures += [Figure(f"{name}: view, median", view, "ms"), Figure(f"{name}: table, median", table, "ms")]
            figures.append(Figure(f"{name}: view / table", view / table, "", at_most=AT_MOST))
    connection.close()
    return figures


@click.command()
@click.option("--records", default=2_500_000, show_default=True)
@click.option("--days", default=events.DAYS, show_default=True, help="Days with 5,000 cells each.")
@benchmark
def main(output: Output, records: int, days: int) -> list[Figure]:
    """Reading through the analyst's view, against a plain indexed table."""
    with deployment(output) as opened:
        prepare(opened, records, days)
        return [Figure("cells", days * events.USERS, ""), *measure(opened, days)]


if __name__ == "__main__":
    main()
