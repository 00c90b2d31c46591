"""Every error that Lamina raises on purpose. Anything else is a bug and keeps its traceback."""

from __future__ import annotations

from collections.abc import Iterable


class LaminaError(Exception):
    """A failure with a way out, in three parts.

    what: one sentence that says where and what
    evidence: the state found and the state wanted. For SQL, the author's line with a caret
    way_out: the instruction that works instead
    """

    def __init__(self, what: str, *, evidence: str = "", way_out: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.evidence = evidence
        self.way_out = way_out

    def __str__(self) -> str:
        """The three parts, separated by blank lines."""
        return "\n\n".join(part for part in (self.what, self.evidence, self.way_out) if part)


def interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C during whose handling an error was raised, or None."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind


class Unknown(LaminaError):
    """Raised if no view, source or preview has the name that was asked for.

    names: those that exist
    state: the state of those names, such as `deployed` or `served`
    """

    def __init__(
        self, kind: str, name: str, names: Iterable[str], *, state: str = "deployed", place: str = "", way_out: str
    ) -> None:
        super().__init__(
            f"There is no {kind} named {name}{place}",
            evidence=f"{state}: {', '.join(names) or 'none'}",
            way_out=way_out,
        )


class Blocked(LaminaError):
    """Raised when a check declared in the catalog fails. Nothing is handed over. Readers keep the rows they had."""


class Refused(LaminaError):
    """Raised at declaration for a view or source that Lamina could not keep true."""
