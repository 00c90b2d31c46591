"""The command line: `lamina` and its commands.

Exit codes are 0 (done), 1 (refused or failed), 2 (usage), 3 (a difference, a failed check or test, or a view that is
held back) and 130 (Ctrl-C).
"""

from __future__ import annotations

import gc
import io
import os
import sys
from pathlib import Path

from lamina.commands import (  # noqa: F401 - each adds its own
    catalog,
    generating,
    inspection,
    log_keeping,
    logins,
    own_data,
    rebuilding,
    running,
    transfers,
)
from lamina.commands.command import end_unread, lamina
from lamina.interrupts import (
    end_interrupted,
    ignore_interrupts_at_the_end,
    interrupt_again_if_lost,
    interrupt_engines,
)

__all__ = ["lamina", "main"]

COLLECTED_AFTER = 50_000
"""New objects after which Python collects garbage. At Python's own 700, a command that loads its modules spends a sixth
of its time on collections that free nothing.
"""


def main() -> None:
    """The entry point. Ctrl-C ends with 130 and no traceback."""
    gc.set_threshold(COLLECTED_AFTER)
    ignore_interrupts_at_the_end()
    interrupt_again_if_lost()
    interrupt_engines()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - None if a shell has closed it (`>&-`)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    # If the locale is not UTF-8, "→" must not end a command that has done its work.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        lamina(standalone_mode=True)
    except KeyboardInterrupt:
        end_interrupted()
    except BrokenPipeError:
        end_unread()
