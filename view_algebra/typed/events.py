"""The order of events: what puts the records that a block reads in one order, where Spark leaves it open."""

from __future__ import annotations

from functools import partial

from view_algebra.compiled import changes_of, source_of
from view_algebra.language.aggregates import EVENT_ORDER
from view_algebra.language.expressions import Expr, Field, Place, Select, Stream
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_name
from view_algebra.refusals import AsksForRecords, Wrong
from view_algebra.typed.names import Context, Scope, find
from view_algebra.typed.passing import PASSED, passing_on
from view_algebra.typed.ties import sorting


def event_order(scope: Scope, place: Place, function: str = "") -> tuple[str, tuple[Expr, ...]]:
    """What puts the records that a block reads in one order, as Spark SQL and as expressions; `function`: the
    aggregate that goes by it alone.
    """
    if function and scope.records is not None and sorting(scope.records, scope.context.sortings):
        way_out = "Leave its ORDER BY out, or write max_by(x, t), or listagg(x) WITHIN GROUP (ORDER BY t)."
        raise Wrong(place, f"{function}() of records that a subquery sorts", way_out)
    if len(scope.relations) == 1 and (given := passed(scope)) is not None:
        (alias,) = scope.relations
        kinds = dict(given.columns)
        return ", ".join(PASSED), tuple(Field(alias, (name,), kinds[name], place=place) for name in PASSED)
    of_changes = [changes_of(source_of(each)) == each for each in scope.streams.values()] == [True]  # and their moves
    if not scope.streams or (len(scope.relations) != 1 and not of_changes):
        way_out = "Name the source alone in FROM."
        if scope.above:
            way_out = "Write max_by(x, t), listagg(x) WITHIN GROUP (ORDER BY x) or sort_array(collect_list(x))."
        elif scope.records is not None:
            way_out = "Give kafka_offset and its like another name in the subquery: it has to pass them on."
        raise AsksForRecords(place, "the order of events, where the block reads no source", way_out)
    ((alias, source),) = scope.streams.items()
    texts, columns = of_events(Stream(source, alias, place), scope.context)
    return ", ".join(texts), columns


def passed(scope: Scope) -> Select | None:
    """The subquery that a block reads, passing the order of events on; None where it does not read records so."""
    if scope.records is not None and scope.passed is None:
        scope.passed = passing_on(scope.records, partial(of_events, context=scope.context))
    return scope.passed


def of_events(stream: Stream, context: Context) -> tuple[tuple[str, ...], tuple[Expr, ...]]:
    """The time, the partition and the offset of a stream's records, as Spark SQL and as expressions."""
    alias, relations = stream.alias, {stream.alias: context.streams[stream.source]}
    at = [c for c in (context.times.get(stream.source), "kafka_timestamp") if c]
    columns = [find([alias, name], relations, stream.place) for name in (*at, *EVENT_ORDER[1:])]
    time: Expr = columns[0] if len(at) == 1 else call("coalesce", columns[:2], stream.place)
    alias = spark_name(alias)
    names = [f"{alias}.{spark_name(name)}" for name in at]
    texts = (
        names[0] if len(at) == 1 else f"coalesce({', '.join(names)})",
        *(f"{alias}.{n}" for n in EVENT_ORDER[1:]),
    )
    return texts, (time, *columns[len(at) :])
