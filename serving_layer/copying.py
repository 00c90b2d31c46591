"""Arrow, as Spark gives it, in the form in which COPY takes it."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.csv


def csv(table: pa.Table) -> bytes:
    r"""Rows for `COPY … (FORMAT csv)`: NULL is nothing between two commas, every string is quoted.

    >>> csv(pa.table({"a": [1, None], "b": ["x", ""]}))
    b'1,"x"\\n,""\\n'
    """
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out, pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"))
    return out.getvalue()
