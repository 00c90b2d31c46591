"""`lamina`, with less patience for a computation that stands still.

    python -m tests.impatient_command STALLS_AFTER ALONE PROBED check VIEW

The numbers are seconds.
"""

from __future__ import annotations

import sys

import batch_layer.stalls
import lamina.operations.probing
from lamina.cli import main
from speed_layer.endless import TimeLimits

if __name__ == "__main__":
    batch_layer.stalls.STALLS_AFTER, alone, probed = (float(sys.argv.pop(1)) for _ in range(3))
    lamina.operations.probing.TIME_LIMITS = TimeLimits(10.0, alone, probed, 1 / 20_000)
    main()
