"""Faults of others: producers that send nonsense, and readers that stay."""

from __future__ import annotations

import random
from contextlib import suppress

import psycopg2

from benchmarks.chaos.faults.service_faults import run_program
from benchmarks.chaos.hostile import HOSTILE
from benchmarks.chaos.readers import read_within
from benchmarks.chaos.stage import Stage
from benchmarks.chaos.table import fault
from view_algebra.errors import LaminaError

VOLLEY = 400
"""Hostile records at a time. If they are large, three."""


@fault(30)
def hostile_records(stage: Stage, dice: random.Random) -> None:
    """Hostile records of one of many kinds arrive among good ones."""
    if not stage.hostile:
        stage.hostile.extend(dice.sample(sorted(HOSTILE), len(HOSTILE)))
    kind = HOSTILE[stage.hostile.pop()]
    count = 3 if kind.few else VOLLEY
    volley = [(kind.source, kind.record(stage.world.number())) for _ in range(count)]
    volley += stage.producer.good(20, dice)
    dice.shuffle(volley)
    stage.producer.burst(volley, dice)


@fault(2)
def hostile_records_of_every_kind(stage: Stage, dice: random.Random) -> None:
    """Hostile records of all kinds arrive at once."""
    volley = [(kind.source, kind.record(stage.world.number())) for kind in HOSTILE.values()]
    dice.shuffle(volley)
    stage.producer.burst(volley, dice)


@fault(6)
def reader_holds_a_transaction(stage: Stage, dice: random.Random) -> None:
    """A reader keeps a transaction open in which it has read every view. Meanwhile views move, but not in its
    snapshot.
    """
    connection = stage.connect()
    try:
        connection.autocommit = False
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            first = read_within(cursor)
            stage.producer.burst(stage.producer.good(50, dice), dice)
            stage.await_counted()
            stage.wait(dice.uniform(0, 15))
            with suppress(psycopg2.OperationalError):  # Postgres was restarted
                second = read_within(cursor)
                if (second.views, second.offsets) != (first.views, first.offsets):
                    raise LaminaError("A snapshot has changed while it was held", evidence=str(first.offsets))
    except psycopg2.errors.UndefinedTable:
        return  # a view was dropped meanwhile
    finally:
        connection.close()


@fault(4)
def database_dumped(stage: Stage, dice: random.Random) -> None:
    """pg_dump runs, again and again."""
    dump = stage.folder / "again.dump"
    for _ in range(dice.choice((2, 3, 4))):
        run_program("pg_dump", "-Fc", "-f", str(dump), stage.settings.postgres)
    dump.unlink()
