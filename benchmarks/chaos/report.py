"""The certificate: actions, findings and machine of a run, as a page of Markdown."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import psutil

from benchmarks.chaos.hostile import HOSTILE
from benchmarks.chaos.storm import Storm, Struck, by_kind
from lamina import __version__

INTRODUCTION = """\
Written by `python -m benchmarks.chaos`. Faults strike processes, services, disks, topics and records, one
after another or several in a row, and in parallel the batch layer. All the time readers take snapshots
(REPEATABLE READ), and every view in each is compared with DuckDB over exactly the records below the offsets
that `lamina.offsets` names in that snapshot. The sender of the records decides which ones are good. At the
end every view is rebuilt with its proof, and `lamina check` compares it with its `SELECT` in Spark.
"""

RECOVERY = """\
The time until the views moved again runs from the fault until every record that Kafka held then was counted.
It includes the fault itself, such as the time for which a process stands still, and the start of another
process.
"""


def page(run: Storm, figures: Sequence[tuple[str, str, str]], began: datetime, seed: int) -> str:
    """The whole page. `figures` are name, value and bound."""
    bad = sum(kind.row is None for kind in HOSTILE.values())
    lines = [
        "# Certificate",
        "",
        INTRODUCTION,
        f"{began:%Y-%m-%d %H:%M} UTC, {run.minutes:.0f} minutes, seed {seed}. {_machine()}",
        "",
        "| figure | found | must be |",
        "| --- | --- | --- |",
        *(f"| {name} | {value} | {bound} |" for name, value, bound in figures),
        "",
        "## Faults",
        "",
        RECOVERY,
        "| fault | times | longest until the views moved again | alarms |",
        "| --- | --- | --- | --- |",
        *(_row(kind, struck) for kind, struck in by_kind(run.struck).items()),
        "",
        "## Hostile records",
        "",
        f"{len(HOSTILE)} kinds: {bad} must go to quarantine, and the others must be counted.",
        "",
        *(f"- {name}{'' if kind.row is None else ' (counted)'}" for name, kind in HOSTILE.items()),
        "",
        "## How commands ended",
        "",
        "| how | times |",
        "| --- | --- |",
        *(f"| {what.replace('|', '/')} | {count} |" for what, count in sorted(run.stage.ends.items())),
    ]
    return "\n".join(lines) + "\n"


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    asked = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(
        asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()
    version = f"{__version__} (commit {commit})" if commit else __version__
    return (
        f"Lamina {version}, Python {platform.python_version()}; {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" {platform.system()} {platform.machine()}."
    )


def _row(kind: str, struck: Sequence[Struck]) -> str:
    alarms = len({alarm for fault in struck for alarm in fault.alarms})
    return f"| {kind} | {len(struck)} | {max(fault.seconds for fault in struck):.0f} s | {alarms or ''} |"
