"""What Postgres, Spark and the system refuse, in our words: one sentence, the evidence, the way out."""

from __future__ import annotations

from view_algebra.errors import LaminaError

POSTGRES_AWAY = (
    "connection to server at",
    "server closed the connection",
    "terminating connection",
    "PSQLException: Connection to",
    "PSQLException: An I/O error",
    "PSQLException: This connection has been closed",
)
"""What says, in Spark's words about a task that failed, that Postgres was the reason."""


def in_our_words(error: Exception) -> LaminaError | None:
    """What Postgres, Spark or the system refused, as an error with a way out; None for a mistake of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from serving_layer.postgres.database import REFUSALS, is_away, is_read_only, lacks_rights

    if isinstance(error, REFUSALS):
        said = str(getattr(error, "orig", None) or error).strip()
        if is_away(error):
            return _away(said)
        if lacks_rights(error):
            way_out = "Name the owner's login in LAMINA_POSTGRES. An analyst's login can only read views."
            return LaminaError("The login in LAMINA_POSTGRES lacks the rights for this", evidence=said, way_out=way_out)
        if is_read_only(error):
            way_out = "Name the primary in LAMINA_POSTGRES for whatever is not only reading."
            return LaminaError("This Postgres is a standby: nothing is written there", evidence=said, way_out=way_out)
        way_out = "Its transaction was rolled back. Fix what the error names, and repeat the command."
        return LaminaError("Postgres reported an error", evidence=said, way_out=way_out)
    if isinstance(error, (PySparkException, Py4JError)):
        return by_spark(str(error))
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        what = f"{error.filename}: the file or folder cannot be used" if error.filename else "The system refused"
        way_out = "Correct the path or its rights, or make room on the disk; then repeat the command."
        return LaminaError(what, evidence=error.strerror or str(error), way_out=way_out)
    return None


def told(error: Exception) -> LaminaError:
    """The same of any error; a mistake of ours is raised again."""
    found = error if isinstance(error, LaminaError) else in_our_words(error)
    if found is None:
        raise error
    return found


def of_view(name: str, error: Exception) -> LaminaError:
    """The same of an error that arose while a view was computed, with its name. An error of ours stays as it is."""
    found = told(error)
    if found is error:
        return found
    return LaminaError(f"{name}: {found.what}", evidence=found.evidence, way_out=found.way_out)


def by_spark(said: str) -> LaminaError:
    """One sentence out of a page of Java's: what it was caused by, and whether Postgres went away meanwhile.

    >>> by_spark("Job aborted.|at x.y(z)|Caused by: IOException: No space left".replace("|", chr(10))).evidence
    'IOException: No space left'
    """
    from master_log.causes import cause

    lines = [line.strip() for line in said.splitlines()]
    if away := next((line for line in lines if any(sign in line for sign in POSTGRES_AWAY)), None):
        return _away(away)
    return LaminaError(
        "Spark failed",
        evidence=cause(said),
        way_out="Fix what the error names, and repeat the command. Spark's log is logs/spark.log in LAMINA_HOME.",
    )


def _away(said: str) -> LaminaError:
    return LaminaError(
        "Postgres went away in the middle",
        evidence=said,
        way_out="What was not committed is rolled back, and nothing is lost. Make sure that Postgres runs, and repeat"
        " the command.",
    )
