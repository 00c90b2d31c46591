"""Spark's Python workers in tests: forks of a process that has imported what each would have to import by itself.

Spark ends a worker that was idle for a minute, so most rebuilds of a test run begin with new ones.
"""

from __future__ import annotations

import pandas as pd
from pyarrow import csv
from pyspark import daemon
from pyspark.sql.pandas import serializers, types

from serving_layer import copying, loading

USED = (copying, csv, loading, pd, serializers, types)

if __name__ == "__main__":
    daemon.manager()  # type: ignore[no-untyped-call]
