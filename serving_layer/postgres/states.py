"""States and kinds of rows of schema `lamina`: the texts that are stored, as types."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import CheckConstraint, Dialect, Text, TypeDecorator


class GenerationState(StrEnum):
    """A generation is opened at a cut, maintained, and in the end dropped."""

    BUILDING = "building"
    LIVE = "live"
    RETIRED = "retired"


class RebuildState(StrEnum):
    """A rebuild runs until it is done, fails, or ends while it holds views back."""

    RUNNING = "running"
    DONE = "done"
    HELD = "held"
    FAILED = "failed"


class RebuildKind(StrEnum):
    """A rebuild recomputes the declared versions, or computes new ones for an apply or a preview."""

    REBUILD = "rebuild"
    APPLY = "apply"
    PREVIEW = "preview"


class Step(StrEnum):
    """The steps of a rebuild in their order. BEGIN stands for the time before the first one is finished."""

    BEGIN = "begin"
    SEAL = "seal"
    ARCHIVE = "archive"
    COMPUTE = "compute"
    GO_LIVE = "go-live"
    PROVE = "prove"
    CHECK = "check"
    HAND_OVER = "hand-over"
    RETIRE = "retire"


class Stop(StrEnum):
    """A person stops a rebuild: an interrupted apply can be resumed, a rebuild that is given up cannot."""

    INTERRUPTED = "interrupted"
    GIVEN_UP = "given up"

    @property
    def reason(self) -> str:
        """The error that is shown for it."""
        return f"it was {self}"


class WriterKind(StrEnum):
    """A query's writer. A speed layer reads on, a leap holds the query for a while, and a skip for a moment."""

    SPEED_LAYER = "speed layer"
    LEAP = "leap"
    SKIP = "skip"


class OneOf(TypeDecorator[StrEnum]):
    """A column whose texts are read as the members of an enumeration."""

    impl = Text
    cache_ok = True

    def __init__(self, values: type[StrEnum]) -> None:
        """`values` are all texts that the column may hold."""
        super().__init__()
        self.values = values

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:  # noqa: ARG002 (SQLAlchemy's)
        """The member that a stored text stands for."""
        return None if value is None else self.values(value)


def only(column: str, values: type[StrEnum]) -> CheckConstraint:
    """The constraint that a column holds nothing else."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)
