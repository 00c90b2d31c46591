"""Ctrl-C: it ends a command at once, wherever it arrives. Only what is imported in no time is imported here."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C, by the convention of shells."""

AGAIN_SECONDS = 0.05
"""Seconds until a lost interrupt is raised again."""

CANCEL_SECONDS, CANCEL_EVERY = 10.0, 0.5
"""Seconds for which the jobs of Spark are cancelled after an interrupt, and seconds between two attempts."""

INTERRUPTS = (signal.SIGINT, signal.SIGALRM)
"""Ctrl-C, and the timer that repeats it."""


def end_interrupted() -> NoReturn:
    """Ends a command that Ctrl-C interrupted.

    Python remembers an interrupt that reached it inside an `exec` of text, as `dataclass` has. `python -m lamina` would
    then die of SIGINT in place of its exit code, so another `exec` makes Python forget it.
    """
    exec("")  # noqa: S102
    sys.exit(INTERRUPTED)


def ignore_interrupts_at_the_end() -> None:
    """Ignores Ctrl-C once a command is done, since an ending Python would die of SIGINT in place of its exit code.

    Functions at exit run in reverse order, so this one comes after all that are registered later.
    """
    for number in INTERRUPTS:
        atexit.register(signal.signal, number, signal.SIG_IGN)


def interrupt_again_if_lost() -> None:
    """Repeats a Ctrl-C that Python could not raise: in `__del__`, or in a weak reference's callback.

    Python only prints such an interrupt, and the command would run to its end. A timer repeats it. The callback may run
    while a thread holds any lock, so it must not start a thread.
    """

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            sys.__unraisablehook__(unraisable)

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = hook


def interrupt_engines() -> None:
    """Makes Ctrl-C end the command's work in Postgres and in Spark.

    The command waits for Postgres in C, where Python raises nothing, and PySpark's toArrow() waits for the end of its
    job even after an interrupt. A command that handles Ctrl-C itself, such as `lamina speed`, keeps both running.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def listen() -> None:
        while number := os.read(read_end, 1):
            if number[0] in INTERRUPTS and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                if "serving_layer.postgres.database" in sys.modules:
                    from serving_layer.postgres import database

                    database.cancel()
                if "pyspark" in sys.modules:
                    threading.Thread(target=_cancel_spark, name="cancelling", daemon=True).start()

    threading.Thread(target=listen, name="interrupts", daemon=True).start()


def _cancel_spark() -> None:
    """Cancels the jobs of Spark for a while, because the job that the command waits for may not have been submitted
    yet.
    """
    from lamina.spark.spark_session import cancel_jobs

    for _ in range(round(CANCEL_SECONDS / CANCEL_EVERY)):
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        with suppress(Exception):  # the JVM may be ending
            cancel_jobs()
        time.sleep(CANCEL_EVERY)
