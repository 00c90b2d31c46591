"""The certificate: what was done, what it found, on which machine, as a page of Markdown."""

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
after the other or several in a row, and beside them the batch layer's. All the while readers take snapshots
(REPEATABLE READ), and every view in each is compared with DuckDB over exactly the records below the offsets
that `lamina.offsets` names in that snapshot. Which records are good is known to whoever sends them. At the
end every view is rebuilt with its proof, and `lamina check` compares it with its `SELECT` in Spark.
"""

RECOVERY = """\
Until the views moved again: from the fault until every record that Kafka held then was counted. That contains
the fault itself, as the time for which a process stands still, and the start of another process.
"""


def page(found: Storm, figures: Sequence[tuple[str, str, str]], began: datetime, seed: int) -> str:
    """The whole page; `figures` are name, value and what it must be."""
    bad = sum(kind.row is None for kind in HOSTILE.values())
    lines = [
        "# Certificate",
        "",
        INTRODUCTION,
        f"{began:%Y-%m-%d %H:%M} UTC, {found.minutes:.0f} minutes, seed {seed}. {_machine()}",
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
        *(_row(kind, struck) for kind, struck in by_kind(found.struck).items()),
        "",
        "## Hostile records",
        "",
        f"{len(HOSTILE)} kinds, {bad} of which must go to quarantine and the others be counted:",
        "",
        *(f"- {name}{'' if kind.row is None else ' (counted)'}" for name, kind in HOSTILE.items()),
        "",
        "## How commands ended",
        "",
        "| how | times |",
        "| --- | --- |",
        *(f"| {what.replace('|', '/')} | {count} |" for what, count in sorted(found.stage.ends.items())),
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
    alarms = len({alarm for each in struck for alarm in each.alarms})
    return f"| {kind} | {len(struck)} | {max(each.seconds for each in struck):.0f} s | {alarms or ''} |"
