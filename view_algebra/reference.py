"""The reference of the SQL that is served, written from the tables that the compiler itself uses."""

from __future__ import annotations

from collections.abc import Iterable

from view_algebra.aggregates import AGGREGATES, BY_BUCKETS, BY_EVENT_ORDER, DEFAULT_REGISTERS, REWRITES, SYNONYMS
from view_algebra.calls import MOST_PANES
from view_algebra.cells import INDEXED_BYTES
from view_algebra.declarations import SOURCE_PROPERTIES, VIEW_PROPERTIES
from view_algebra.functions import FUNCTIONS, NON_DETERMINISTIC, WINDOW_FUNCTIONS, Function
from view_algebra.nested import LAMBDAS
from view_algebra.postgres import OF_ELEMENTS
from view_algebra.records import PSEUDO_COLUMNS
from view_algebra.sugar import CASTS, COMPUTED, FIELDS, MADE, TIMED
from view_algebra.types import postgres_types

_HEAD = """# The SQL of a catalog

Views are Spark SQL. Everything up to the innermost GROUP BY over a source runs in Spark ("below"), everything above it
in Postgres ("above"), with Spark's meaning: ANSI mode off, session time zone UTC. What has no row here is refused when
it is declared, with its place and the way out. This page is written from the compiler's own tables
(`python -m view_algebra.reference > docs/sql.md`).
"""

_REGEXES = """Above the aggregation a regular expression is one that Postgres reads as Java does: characters, classes,
groups, `|`, counts, `^`, `$`, and `(?i)` at its beginning (`translated`). To find or replace something, no two of its
places may compete for a character, so that a text has one way through it (`unambiguous`): `https?://([^/]+)`, not
`(.*)/(.*)`.
"""

_DECLARATIONS = """## Declarations

```sql
CREATE TABLE orders (
  id BIGINT COMMENT 'of the shop', country STRING, amount DECIMAL(12, 2), at TIMESTAMP,
  payload STRUCT<user: STRUCT<id: BIGINT>>
) USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'at', 'partitions' = '8');

CREATE VIEW by_country (country COMMENT 'as billed', amount) TBLPROPERTIES ('on_difference' = 'hold') AS
SELECT country, sum(amount) FROM orders GROUP BY country;
```

A record is a JSON object. A field that it lacks, or that is null, is NULL; one that is not declared is left out. A
decimal with more digits than were declared is rounded. What is of another type than declared, is no object or no JSON
goes to quarantine as a whole, with the reason (`SELECT * FROM lamina.bad_records`). `lamina ingest` makes JSON of a CSV
file's lines: an empty field is NULL.

A view reads the rows of the views that it names. A row view that it names alone in FROM, without a join, stands for
its records where only Spark can compute what is asked (`hash`, sessions, estimates, `last(x)`), or where the order of
events decides something: the view then keeps cells of its own.
"""

_EDGES = f"""A text to group by may be about {INDEXED_BYTES:,} bytes long (all texts of a group together); of a longer
one the beginning is shown with its SHA-256, so that each such text is still a group of its own
([why](decisions/6-long-group-keys.md)). A text that holds a time of day without a day ("03:04") is no TIMESTAMP here;
Spark would take it for a time of the day on which it is read.
"""

_VALUES = f"""DISTINCT, `mode`, `median`, `percentile(x, 0.9)`, `percentile_cont(0.9) WITHIN GROUP (ORDER BY x)`,
`percentile_disc`, `collect_set`, `collect_list` and `listagg` keep a cell per value of a group, and are exact.
`percentile(x, array(0.5, 0.9))` is a list, and so is `percentile_approx`.
`approx_count_distinct(x)` keeps up to {DEFAULT_REGISTERS:,} registers of HyperLogLog, for a relative standard error of
less than 3.3 % at any size; a second argument says another. `percentile_approx(x, 0.9)` keeps a cell per bucket of
values and is at most 1 % of the exact percentile off; with a third argument, 1 / that.

What Spark leaves to the order of rows goes here by the order of events: their time, partition and offset. `last(x)`,
`first(x)` (and `… IGNORE NULLS`), `max_by(x, y)` and `min_by(x, y)` where several have the extreme `y`, `collect_list`
and `listagg` without WITHIN GROUP; with it `listagg` goes by any columns, all upwards or all downwards, and
where they are alike by its own texts. `collect_set` is sorted, and of the most frequent values `mode` is the least.
Structs of scalars stand where scalars do in `max`, `min`, `max_by`, `min_by`, `first`, `last`, `collect_list` and
`collect_set`: `max(struct(ts, kind)).kind`, `sort_array(collect_list(struct(ts, kind)))`.
`lamina check` runs the SELECT with that order spelled out. Sums of doubles, and what is made of them, may differ in
their last digits by the order of adding up. A date or a time outside the years 1 to 9999 that a function makes is NULL;
in a text that one makes, U+0000 and what is no UTF-8 are shown as U+FFFD: Postgres has neither.
"""

_TIME = f"""`window(ts, '1 hour')` tumbles, `window(ts, '1 hour', '5 seconds')` hops, a third length moves its start;
`session_window(ts, '30 minutes')` ends when no record came for so long, and the gap may be a text that each record
decides. Grouped by, each is a value of `.start` and `.end`, read as jsonb; its bounds alone are found by index. A
hopping window keeps cells of gcd(length, slide), up to {MOST_PANES:,} to a window, and a session cells as long as its
gap ([how](decisions/8-windows-of-panes.md)). Months:
`date_trunc('month', ts)`. `a - b` of two times, or days, is a length: it is compared with an INTERVAL, added up and
averaged, taken apart by EXTRACT, and cast to a number, which is its seconds, or days; a column of a view it is not.
Days of a time zone: `date_trunc('day', from_utc_timestamp(ts, 'Europe/Paris'))`, or
`CAST(ts AT TIME ZONE 'Europe/Paris' AS DATE)`: AT TIME ZONE, which Spark does not read, is what clocks there show as a
TIMESTAMP_NTZ, and of a TIMESTAMP_NTZ the instant, as it is in Postgres. A late
record corrects its windows at once, whatever its age.
"""


_SUBQUERIES = """In FROM, as CTEs, as a value (which aggregates, or ends with LIMIT 1), in IN and EXISTS; LEFT SEMI
and LEFT ANTI JOIN. IN is a condition then, and a value where it is sure not to be NULL, as with IS NOT NULL in both
WHEREs: Spark may have what is NULL false.
In WHERE and HAVING, and among columns, a subquery may name columns of the block directly around it.
`LATERAL (SELECT …) AS l` in FROM may name columns of what stands before it: in WHERE, and among its own where it reads
groups and makes none.
In WHERE and GROUP BY of records, too, in FILTER of their aggregates, `count_if(…)` and
`sum(CASE WHEN … THEN x ELSE 0 END)`: the cells are then kept by the columns that it names
([how](decisions/11-questions-about-each-record.md)).
"""

_CONSTANTS = """`VALUES ('NL', 'Netherlands'), … AS names(code, name)` and SELECT without FROM stand where a query may.
So do, of literals, `SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY)) AS day` and
`FROM range(24)`.
Records are joined with them, too, by any but a RIGHT or FULL JOIN: below the aggregation, where each is compared with
every row.
"""

_FRAMES = """Where an order that decides something leaves
ties (`row_number`, `LIMIT`, frames of ROWS), the rest of a key breaks them ([how](decisions/9-the-order-of-events.md)).
LIMIT without ORDER BY goes by that of the subquery or view it reads, as Spark's does; nothing else goes by it.
In a frame of RANGE, which ends with the rows of equal order, `last_value` and `nth_value` need an order without ties.
`IGNORE NULLS` goes with `first_value`, `last_value`, `lag` and `lead`.
Frames are of ROWS, or a RANGE: of an INTERVAL over a time, of whole numbers over a number or a date. Where a bound lies
beyond the numbers that a BIGINT or an INT can be, the frame reaches to the last of them; Spark's wraps around.
"""


def reference() -> str:
    """The page docs/sql.md, in Markdown."""
    return "\n".join(
        [
            _HEAD,
            _DECLARATIONS,
            "## Types\n",
            _table(("Spark", "Postgres"), sorted(postgres_types().items())),
            (
                "Text compares by its bytes in both engines; with a number, a time or a BOOLEAN it compares as one, as"
                " in Spark (`t > 2.5`), and in a list, in CASE and in coalesce() it makes texts of them. A nested"
                " value is read as jsonb: its fields and elements can be taken above (`payload.user.id`, `tags[0]`).\n"
            ),
            _EDGES,
            "## Every source's own columns\n",
            _table(("column", "type"), [(name, kind.spark) for name, kind in PSEUDO_COLUMNS]),
            "## Properties\n",
            _table(("of a source", "says"), list(SOURCE_PROPERTIES.items())),
            _table(("of a view", "says"), list(VIEW_PROPERTIES.items())),
            "## Aggregates\n",
            f"{', '.join(f'`{name}`' for name in AGGREGATES)}, each with FILTER.\n",
            f"By another name: {', '.join(f'`{name}`' for name in (*SYNONYMS, *BY_EVENT_ORDER, *BY_BUCKETS))}.\n",
            _VALUES,
            "Others are refused:\n",
            _table(("aggregate", "instead"), sorted(REWRITES.items())),
            "GROUPING SETS, ROLLUP and CUBE, `grouping` and `grouping_id` add up the cells of the finest groups.\n",
            "QUALIFY filters by window functions; to Spark it is WHERE around a subquery.\n",
            "PIVOT and UNPIVOT (of one column) are the GROUP BY and the UNION ALL that they stand for.\n",
            (
                "`LATERAL VIEW [OUTER] explode(split(line, ' ')) t AS word` (`posexplode`, `inline`, `stack` and\n"
                "`json_tuple`, too, and maps) and `SELECT event_id, explode(tags) AS tag` make rows of records, and\n"
                "of groups: `explode(sequence(first_day, last_day, INTERVAL 1 DAY))` has a row for each day, and none\n"
                "where the last is before the first, at which Spark would raise.\n"
                "`FROM s, LATERAL explode(tags) AS t(tag)` and `LEFT JOIN LATERAL … ON true` are the same.\n"
            ),
            "## Subqueries\n",
            _SUBQUERIES,
            "## Constants\n",
            _CONSTANTS,
            "## Windows of time\n",
            _TIME,
            "## Window functions, above\n",
            _windows(),
            "## Functions\n",
            _REGEXES,
            _table(("call", "above, in Postgres"), [_row(f) for name in sorted(FUNCTIONS) for f in FUNCTIONS[name]]),
            (
                f"With a lambda: {_listed(OF_ELEMENTS)}, and below the aggregation"
                f" {_listed(n for n in LAMBDAS if n not in OF_ELEMENTS)}."
                " `struct`, `named_struct` and `map` make nested values in both.\n"
            ),
            _written_as(),
            "## Refused everywhere\n",
            _table(("function", "because it", "instead"), [(n, *why) for n, why in sorted(NON_DETERMINISTIC.items())]),
        ]
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _windows() -> str:
    names = ", ".join(f"`{name}`" for name in sorted(WINDOW_FUNCTIONS))
    return f"{names}, and every aggregate. {_FRAMES}"


def _written_as() -> str:
    casts, made = (", ".join(f"`{name}`" for name in names) for names in (CASTS, MADE))
    fields = ", ".join(f"`{name}`" for name in (*FIELDS, *COMPUTED))
    units = ", ".join(f"`{name}(MINUTE, …)`" for name in sorted(TIMED))
    return (
        f"Written as something else, which is served where that is: {made}; `ILIKE`; casts by the name of their type "
        f"({casts}); a unit of time in {units}; `EXTRACT(field FROM ts)` and `date_part('field', ts)` of {fields}.\n"
    )


def _row(function: Function) -> tuple[str, str]:
    call = f"`{function.name}({', '.join(function.takes)})`"
    return call, f"`{function.above}`" if function.above else f"below only: {function.why}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 — the page goes where it is piped to
