"""A measured figure with its target, the command that prints it, and the statistics behind it."""

from __future__ import annotations

import os
import signal
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
import psutil

from lamina.terminal.render import Output


@dataclass(frozen=True)
class Figure:
    """One measured value. A figure with a bound is met or missed. Without a bound it is only for reading."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The bound, as the table shows it."""
        bound, sign = (self.at_least, "≥") if self.at_least is not None else (self.at_most, "≤")
        return "" if bound is None else f"{sign} {shown(bound)} {self.unit}".rstrip()

    @property
    def missed(self) -> bool:
        """True if there is a bound and the value lies beyond it."""
        low = self.at_least is not None and self.value < self.at_least
        return low or (self.at_most is not None and self.value > self.at_most)

    @property
    def met(self) -> str:
        """The verdict on the bound for the table: `yes`, `no` or empty."""
        return "" if not self.target else "no" if self.missed else "yes"


def shown(value: float) -> str:
    """The value with three significant digits, and with all digits before the point.

    >>> shown(0.61234), shown(12.345), shown(151234.4)
    ('0.612', '12.3', '151,234')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def benchmark(measure: Callable[..., Sequence[Figure]]) -> Callable[..., None]:
    """The command of a figure. It measures the figure, prints the results, and exits 1 if a bound is missed.

    `measure` takes the Output first, then the options that are declared above it.
    """

    @click.option("--json", "as_json", is_flag=True, help="Results as JSON, one object per line.")
    def command(*, as_json: bool, **options: Any) -> None:
        # As on Ctrl-C, everything that was started is stopped.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        output = Output(as_json=as_json)
        busy = os.getloadavg()[0]
        began = datetime.now(UTC)
        figures = measure(output, **options)
        memory = psutil.virtual_memory().total / 2**30
        output.text(
            f"{began:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {memory:.0f} GiB, load average {busy:.2f} before",
            began=began.isoformat(timespec="seconds"),
            cores=os.cpu_count(),
            memory_gib=round(memory),
            load_average_before=busy,
        )
        output.table(
            ("figure", "measured", "unit", "target", "met"),
            [(f.name, f.value if as_json else shown(f.value), f.unit, f.target, f.met) for f in figures],
        )
        sys.exit(1 if any(figure.missed for figure in figures) else 0)

    command.__name__ = measure.__module__.rpartition(".")[2]
    command.__doc__ = measure.__doc__
    return command


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies (nearest rank). `values` must be sorted.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 1.0)
    (2.0, 4.0)
    """
    return values[max(0, -(-int(share * 1_000_000) * len(values) // 1_000_000) - 1)]


def in_turns(output: Output, sides: Mapping[str, Callable[[int], float]], turns: int) -> dict[str, list[float]]:
    """The seconds that each side takes, measured in turns. The first turn of each side is a warm-up, and does not
    count.
    """
    took: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name, run in sides.items():
            seconds = run(turn)
            output.tell(f"{'warming' if turn == 0 else f'turn {turn}'}: {name}, {seconds:.1f} s")
            took[name] += [seconds] if turn else []
    output.tell(spread(took))
    return took


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios between values of the same turn."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def spread(seconds: Mapping[str, Sequence[float]]) -> str:
    """Measured seconds per side, for narration."""
    return "; ".join(f"{name} {', '.join(f'{s:.1f}' for s in took)} s" for name, took in seconds.items())
