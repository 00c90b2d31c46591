"""The SELECTs in `spark_refuses.sql`, which this package's tests compile and the laws run in Spark."""

from __future__ import annotations

import re
from pathlib import Path

CASES = re.findall(
    r"-- (\w+)(, answered)?: (.*)\n([^;]*);", (Path(__file__).parent / "spark_refuses.sql").read_text(encoding="utf-8")
)
"""Names of checks, each with ", answered" if Spark answers anyway, the subject, and a SELECT over `s` and `t`."""
