"""A speed layer with a JVM of its own, as `lamina speed`, that gives up sooner what takes too long.

    python -m tests.impatient SHARED ALONE PROBED

The numbers are the seconds of `TimeLimits`.
"""

from __future__ import annotations

import signal
import sys
import threading

from lamina.configuration.settings import Settings
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output, log_to_stderr
from speed_layer.endless import TimeLimits


def main(shared: float, alone: float, probed: float) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    log_to_stderr(Output(as_json=False).err)
    deployment = Deployment(Settings.read())
    limits = TimeLimits(shared, alone, probed)
    try:
        deployment.speed(stopping, max_records=100_000, limits=limits).run()
    finally:
        deployment.close()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
