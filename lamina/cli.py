"""The command line: `lamina` and its commands.

Exit codes: 0 done, 1 refused or failed, 2 usage, 3 a check, a proof, `plan` or `diff` found a difference, 130 Ctrl-C.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from lamina.commands import (  # noqa: F401 - each adds its own
    blame,
    catalog,
    completion,
    generating,
    own_data,
    previews,
    reading,
    rebuilds,
    records,
    services,
)
from lamina.commands.command import INTERRUPTED, lamina, nobody_reads

__all__ = ["interrupt_again_if_lost", "interrupt_engines_too", "lamina", "main"]

AGAIN_SECONDS = 0.05
"""Until an interrupt that was lost comes again."""

CANCEL_SECONDS, CANCEL_EVERY = 10.0, 0.5
"""For how long the jobs of Spark are ended after an interrupt, and how often."""

COLLECTED_AFTER = 50_000
"""New objects after which Python looks for garbage: at its own 700, a command that loads its modules spends a sixth of
its time on that, and finds none.
"""

INTERRUPTS = (signal.SIGINT, signal.SIGALRM)
"""Ctrl-C, and one that comes again."""


def interrupt_again_if_lost() -> None:
    """Makes a Ctrl-C come again that fell where Python can raise nothing: in `__del__`, or a weak reference's callback.

    Python only prints such an interrupt, and the command would go on to its end. The second comes by a timer, because
    the callback may run inside any lock of the threads, so that it must not start one of its own.
    """

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            sys.__unraisablehook__(unraisable)

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = hook


def interrupt_engines_too() -> None:
    """Lets Ctrl-C end what Postgres and Spark compute for the command.

    It waits for Postgres in C, where Python raises nothing, and PySpark's toArrow() waits for the end of its job after
    an interrupt, too. A command with an answer of its own to Ctrl-C, as `lamina speed`, lets both go on.
    """
    heard, say = os.pipe()
    os.set_blocking(say, False)
    signal.set_wakeup_fd(say, warn_on_full_buffer=False)

    def listen() -> None:
        while number := os.read(heard, 1):
            if number[0] in INTERRUPTS and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                if "serving_layer.postgres.database" in sys.modules:
                    _cancel_postgres()
                if "pyspark" in sys.modules:
                    threading.Thread(target=_cancel_spark, name="cancelling", daemon=True).start()

    threading.Thread(target=listen, name="interrupts", daemon=True).start()


def _cancel_postgres() -> None:
    """Ends the statements of Postgres."""
    from serving_layer.postgres import database

    database.cancel()


def _cancel_spark() -> None:
    """Ends the jobs of Spark for a while: the one that is waited for may only be planned yet."""
    from lamina.spark import cancel_jobs

    for _ in range(round(CANCEL_SECONDS / CANCEL_EVERY)):
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        with suppress(Exception):  # the JVM may be ending, too
            cancel_jobs()
        time.sleep(CANCEL_EVERY)


def main() -> None:
    """The entry point; Ctrl-C ends with 130 and no traceback."""
    gc.set_threshold(COLLECTED_AFTER)
    interrupt_again_if_lost()
    interrupt_engines_too()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - None where a shell has closed it (`>&-`)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # where the locale is not UTF-8, "→" must not end what was done already
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        lamina(standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        nobody_reads()


if __name__ == "__main__":
    main()
