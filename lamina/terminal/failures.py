"""Errors of Postgres, Spark and the system in our words: one sentence, the evidence, the way out."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from view_algebra.errors import LaminaError, interrupt_behind

_AWAY_IN_A_TASK = re.compile(
    r"^.*\bpsycopg2\.(?:OperationalError|InterfaceError|errors\.(?:AdminShutdown|CrashShutdown|CannotConnectNow"
    r"|Connection\w+|SqlclientUnable\w+)): .*$",
    re.MULTILINE,
)
"""The line of a task's error that names a class of psycopg2. psycopg2 chooses the class by SQLSTATE (08…, 57P01 to
57P03), or raises one of the first two if the connection broke. The words after it depend on `lc_messages`."""


def in_our_words(error: Exception) -> LaminaError | None:
    """An error of Postgres, Spark or the system with a way out, or None for a bug."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from serving_layer.postgres.database import REFUSALS, is_read_only, is_unavailable, lacks_rights

    if isinstance(error, REFUSALS):
        text = str(getattr(error, "orig", None) or error).strip()
        if is_unavailable(error):
            return _unavailable(text)
        if lacks_rights(error):
            way_out = "Name the owner's login in LAMINA_POSTGRES. An analyst's login can only read views."
            return LaminaError("The login in LAMINA_POSTGRES lacks the rights for this", evidence=text, way_out=way_out)
        if is_read_only(error):
            way_out = "Name the primary in LAMINA_POSTGRES. A standby can only be read."
            return LaminaError("This Postgres is a standby, which accepts no writes", evidence=text, way_out=way_out)
        way_out = "Its transaction was rolled back. Fix what the error names, and repeat the command."
        return LaminaError("Postgres reported an error", evidence=text, way_out=way_out)
    if isinstance(error, (PySparkException, Py4JError)):
        lost = _lost_by_jdbc(error)
        return spark_failure(str(error)) if lost is None else _unavailable(lost)
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        where = f"{error.filename}: the file or folder cannot be used" if error.filename else ""
        way_out = "Correct the path or its rights, or make room on the disk. Then repeat the command."
        what = where or "The operating system reported an error"
        return LaminaError(what, evidence=error.strerror or str(error), way_out=way_out)
    return None


def follows_interrupt(error: Exception) -> bool:
    """True if Ctrl-C made Spark or Postgres fail: a job was cancelled, a statement too, or an answer is missing.

    An error of our own that was raised after Ctrl-C says what is left to do, such as a process that does not end.
    """
    if interrupt_behind(error) is None:  # asked first: few errors need the packages of the engines
        return False
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from serving_layer.postgres.database import REFUSALS

    reason = error.__cause__ if isinstance(error, LaminaError) else error
    return isinstance(reason, (PySparkException, Py4JError, *REFUSALS))


def as_lamina_error(error: Exception) -> LaminaError:
    """The error as a LaminaError. Raises it again if it is a bug, or if Ctrl-C is behind it."""
    translated = error if isinstance(error, LaminaError) else in_our_words(error)
    if translated is None or follows_interrupt(error):
        raise error
    return translated


def naming_view(name: str, error: Exception) -> LaminaError:
    """The error as a LaminaError that names the view whose computation raised it. A LaminaError stays as it is."""
    translated = as_lamina_error(error)
    if translated is error:
        return translated
    return LaminaError(f"{name}: {translated.what}", evidence=translated.evidence, way_out=translated.way_out)


def spark_failure(text: str) -> LaminaError:
    """The cause in a page of Java's text, in one sentence. Says so if a task lost Postgres.

    >>> spark_failure("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10))).evidence
    'IOException: No space left'
    >>> spark_failure("Job aborted.|psycopg2.errors.AdminShutdown: Verbindung endet|".replace("|", chr(10))).what
    'Postgres went away during the command'
    >>> spark_failure("Job aborted.|psycopg2.errors.OutOfMemory: kein Speicher|".replace("|", chr(10))).what
    'Spark failed'
    """
    from master_log.causes import cause

    if (away := _AWAY_IN_A_TASK.search(text)) is not None:
        return _unavailable(away[0].strip())
    return LaminaError(
        "Spark failed",
        evidence=cause(text),
        way_out="Fix what the error names, and repeat the command. Spark's log is logs/spark.log in LAMINA_HOME.",
    )


def _lost_by_jdbc(error: Exception) -> str | None:
    """The words with which the JDBC driver lost Postgres, by its SQLSTATE: the master log's catalog is there."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):  # Spark's process may have ended
        thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        while thrown is not None:
            is_driver = thrown.getClass().getName() == "org.postgresql.util.PSQLException"
            if is_driver and (thrown.getSQLState() or "").startswith(("08", "57P")):
                return str(thrown.toString())
            thrown = thrown.getCause()
    return None


def _unavailable(text: str) -> LaminaError:
    from serving_layer.postgres.database import PostgresUnavailable

    return PostgresUnavailable(
        "Postgres went away during the command",
        evidence=text,
        way_out="Uncommitted work is rolled back, and nothing is lost. Make sure that Postgres runs, and repeat"
        " the command.",
    )
