"""Running one SELECT as a reader: read-only, with the rights of one login."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions

from serving_layer.postgres import connecting
from serving_layer.postgres.database import is_unavailable, no_connection, register, unreadable_time
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted

CONNECT_TIMEOUT = 10
"""Seconds."""

PAUSE = "15min"
"""Longest pause between two fetches, while earlier rows are written to a file or a topic. The readers' limit is meant
for forgotten transactions."""

FETCHED = 10_000
"""Rows in memory at a time."""

ANSWER_SECONDS = 30
"""Seconds that a page of the console waits for a SELECT."""

LONGEST_VALUE = 100_000
"""Characters shown of a text in an answer."""

ANSWER_FETCHED = 20
"""Rows of an answer in memory before their characters are counted."""

MOST_CHARACTERS = 2_000_000
"""Characters of an answer in all."""

_NO_RIGHT = (
    "A reader's login reads the views, and those tables of lamina that docs/operations.md lists under Roles."
    " lamina.bad_records counts bad records; to let a login read their values, the owner runs"
    " GRANT SELECT ON lamina.bad_values TO that login."
)

_TOO_LONG_FOR_A_PAGE = f"A page waits {ANSWER_SECONDS} seconds. Request fewer rows, or ask `lamina sql`."

_IN_THE_WAY = (
    "Run it again. A standby ends a SELECT that holds its replay back for longer than max_standby_streaming_delay;"
    " docs/how-to/standbys.md says which to expect."
)

_TOO_LONG = "Request fewer rows, or let readers take longer: `statement_timeout` in LAMINA_ANALYST_LIMITS."

Row = tuple[Any, ...]


class PageSelect:
    """A SELECT for a page. It may take `ANSWER_SECONDS`, and another thread may cancel it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: psycopg2.extensions.connection | None = None
        self._cancelled = False

    def runs_on(self, connection: psycopg2.extensions.connection) -> None:
        """Names the connection to cancel. Raises LaminaError if the SELECT was cancelled before it began."""
        with self._lock:
            self._connection = connection
            if self._cancelled:
                raise LaminaError("The SELECT was cancelled", way_out="Run it again.")

    def cancel(self) -> None:
        """Cancels the SELECT, or keeps it from beginning. Does nothing after it has ended."""
        with self._lock, contextlib.suppress(psycopg2.Error):
            self._cancelled = True
            if self._connection is not None:
                self._connection.cancel()


class Forbidden(LaminaError):
    """The login has no right to read a relation that the SELECT names."""


def _or_infinity(read: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Reads a time, and an infinity as Postgres writes it. The driver would return Python's first or last day."""

    def read_time(value: Any, cursor: Any) -> Any:
        return value if value in ("infinity", "-infinity") else read(value, cursor)

    return read_time


_TIMES = [
    psycopg2.extensions.new_type(oids, name, _or_infinity(read))
    for oids, name, read in (
        ((1082,), "DATE", psycopg2.extensions.PYDATE),
        ((1114,), "TIMESTAMP", psycopg2.extensions.PYDATETIME),
        ((1184,), "TIMESTAMPTZ", psycopg2.extensions.PYDATETIMETZ),
    )
]
"""Readers of times, by their type's number in Postgres (pg_type)."""


@contextlib.contextmanager
def selected(
    url: str, query: str, statement: PageSelect | None = None
) -> Iterator[tuple[Sequence[str], Iterator[Row]]]:
    """Column names and rows of one SELECT in one snapshot, as the role in `url`.

    A cursor accepts nothing but one SELECT. The login limits what that SELECT may do. A role taken on by SET ROLE would
    not: a SELECT may call functions that run statements, and one of these could reset it.
    """
    with _snapshot(url, statement) as connection, _rows(connection, query, FETCHED) as result:
        yield result


@contextlib.contextmanager
def _rows(
    connection: psycopg2.extensions.connection, query: str, at_a_time: int
) -> Iterator[tuple[Sequence[str], Iterator[Row]]]:
    """Column names and rows. `at_a_time` rows are in memory."""
    with connection.cursor(name="answer") as cursor:
        cursor.itersize = at_a_time
        cursor.execute(_one_statement(query))
        first = cursor.fetchmany(at_a_time)  # the columns are known after the first fetch
        yield [column.name for column in cursor.description or ()], itertools.chain(first, cursor)


@contextlib.contextmanager
def _snapshot(url: str, statement: PageSelect | None) -> Iterator[psycopg2.extensions.connection]:
    """A connection as the role in `url`, in a read-only transaction of one snapshot. Raises refusals in our words."""
    session: dict[str, Any] = {
        "application_name": "lamina sql",
        "options": f"-c timezone=UTC -c search_path=analytics -c idle_in_transaction_session_timeout={PAUSE}",
    }
    try:
        connection = psycopg2.connect(url, connect_timeout=CONNECT_TIMEOUT, **session)
    except psycopg2.OperationalError as error:
        settings, start = "LAMINA_ANALYST or LAMINA_POSTGRES", "Start it (`lamina up`)"
        code = connecting.refusal(url, **session)
        raise no_connection(code, str(error).strip(), settings, start=start) from error
    register(connection)
    for kind in _TIMES:
        psycopg2.extensions.register_type(kind, connection)
    try:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        if statement is not None:
            statement.runs_on(connection)
            with connection.cursor() as limit:
                limit.execute(_SHORTER, [1000 * ANSWER_SECONDS])
        yield connection
    except psycopg2.errors.UndefinedTable as error:
        raise _refused(
            error, "`lamina status` lists the views; a view that waits for its first rebuild cannot be read yet."
        ) from error
    except psycopg2.errors.InsufficientPrivilege as error:
        refusal = _refused(error, _NO_RIGHT)
        raise Forbidden(refusal.what, evidence=refusal.evidence, way_out=refusal.way_out) from error
    except psycopg2.errors.QueryCanceled as error:
        raise _refused(error, _TOO_LONG if statement is None else _TOO_LONG_FOR_A_PAGE) from error
    except psycopg2.errors.SerializationFailure as error:  # for a read-only transaction: only a standby raises it
        raise _refused(error, _IN_THE_WAY) from error
    except ValueError as error:
        raise unreadable_time(error) from error
    except psycopg2.Error as error:
        if is_unavailable(error):
            raise
        raise _refused(error, "Correct the SELECT: only reading is allowed, one statement at a time.") from error
    finally:
        connection.close()


def select(
    url: str, query: str, limit: int | None = None, statement: PageSelect | None = None
) -> tuple[Sequence[str], list[Row]]:
    """Column names and at most `limit` rows of one SELECT."""
    with selected(url, query, statement) as (columns, rows):
        return columns, list(itertools.islice(rows, limit))


@dataclass(frozen=True)
class PartitionCut:
    """A view and a partition of one of its sources: the view counts every record from `first` on below `offset`."""

    view: str
    source: str
    partition: int
    first: int
    offset: int


@dataclass(frozen=True)
class Answer:
    """The rows of a SELECT, and the offsets that they are true for.

    more: the limit cut off further rows
    """

    columns: Sequence[str]
    rows: Sequence[Row]
    more: bool
    below: Sequence[PartitionCut]


def answer(url: str, query: str, views: Collection[str], limit: int, statement: PageSelect) -> Answer:
    """At most `limit` rows and `MOST_CHARACTERS` of one SELECT, and the offsets of the views that it names.

    All are read in one snapshot.
    """
    with _snapshot(url, statement) as connection:
        with _rows(connection, query, ANSWER_FETCHED) as (columns, rows):
            fitting, more = _fitting(rows, limit)
        with connection.cursor() as offsets:
            offsets.execute(_BELOW, {"views": list(views)})
            below = [PartitionCut(*row) for row in offsets]
    return Answer(columns, fitting, more, below)


@dataclass(frozen=True)
class ReadCost:
    """The cost of reading every row of a view inside Postgres.

    expected: the planner's estimate of `rows`
    cached: bytes found in Postgres' memory
    read: bytes requested from the operating system
    plan: a line per node
    """

    rows: int
    expected: int
    milliseconds: float
    cached: int
    read: int
    plan: Sequence[str]


BLOCK = 8_192
"""Bytes of a block of Postgres."""


def cost(url: str, view: str, statement: PageSelect) -> ReadCost:
    """Reads every row of a view as the role in `url`, and sends none."""
    explain = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, FORMAT JSON)"
    with _snapshot(url, statement) as connection, connection.cursor() as cursor:
        cursor.execute(f"{explain} SELECT * FROM {quoted(view)}")
        [[[explained]]] = cursor.fetchall()
    plan = explained["Plan"]
    return ReadCost(
        rows=round(plan["Actual Rows"]),
        expected=round(plan["Plan Rows"]),
        milliseconds=explained["Planning Time"] + explained["Execution Time"],
        cached=BLOCK * plan["Shared Hit Blocks"],
        read=BLOCK * plan["Shared Read Blocks"],
        plan=list(_nodes(plan, "")),
    )


def _nodes(plan: Mapping[str, Any], indent: str) -> Iterator[str]:
    name = " ".join(filter(None, (plan["Node Type"], plan.get("Relation Name") or plan.get("Index Name"))))
    loops = f" in each of {plan['Actual Loops']:,} loops" if plan["Actual Loops"] > 1 else ""
    yield f"{indent}{name}: {plan['Actual Rows']:,.0f} rows{loops}, {plan['Plan Rows']:,} expected"
    for child in plan.get("Plans", ()):
        yield from _nodes(child, indent + "  ")


def _fitting(rows: Iterable[Row], limit: int) -> tuple[list[Row], bool]:
    """The first rows, as many as a page shows, and True if there are more."""
    fitting: list[Row] = []
    characters, deadline = 0, time.monotonic() + ANSWER_SECONDS
    for row in rows:
        if time.monotonic() > deadline:  # Postgres limits each fetch, not their sum
            raise LaminaError(f"The SELECT takes longer than {ANSWER_SECONDS} seconds", way_out=_TOO_LONG_FOR_A_PAGE)
        cut = tuple(map(_cut, row))
        characters += sum(len(str(value)) for value in cut)
        if len(fitting) == limit or (fitting and characters > MOST_CHARACTERS):
            return fitting, True
        fitting.append(cut)
    return fitting, False


def _cut(value: Any) -> Any:
    return value if not isinstance(value, str) or len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}…"


_SHORTER = """
SELECT set_config('statement_timeout', least(%s, nullif(setting::integer, 0))::text, true)
FROM pg_settings WHERE name = 'statement_timeout'
"""

_BELOW = """
SELECT view, source, partition, first_offset, next_offset FROM lamina.offsets WHERE view = ANY (%(views)s)
ORDER BY view, source, partition
"""


def _one_statement(query: str) -> str:
    """The text without a trailing semicolon. Raises if it holds several statements, whose results would be lost."""
    if ";" not in query:
        return query
    import sqlglot
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    with contextlib.suppress(TokenError):  # Postgres explains an unclosed quote better
        tokens = sqlglot.tokenize(query, read="postgres")
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            query = query[: tokens.pop().start]
        if any(token.token_type == TokenType.SEMICOLON for token in tokens):
            raise LaminaError("The text holds more than one statement", way_out="Ask for one SELECT at a time.")
    return query


def _refused(error: psycopg2.Error, way_out: str) -> LaminaError:
    """Without the line of the statement, which is our declaration of a cursor, and without the context."""
    parts = {"DETAIL": error.diag.message_detail, "HINT": error.diag.message_hint}
    what = error.diag.message_primary or str(error).strip() or type(error).__name__
    evidence = "\n".join(f"{label}:  {part}" for label, part in parts.items() if part)
    return LaminaError(f"Postgres refused: {what}", evidence=evidence, way_out=way_out)
