"""Arrow batches from Spark in the formats of COPY, streamed: no step holds a whole result."""

from __future__ import annotations

import io
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import DataFrame

IN_MEMORY = 16 * 1024 * 1024
"""Bytes of rows on their way to Postgres. More of them wait in a file."""


BINARY = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The header of rows in the binary format. The trailer is optional."""


class CopyRows:
    r"""Rows in a format of COPY, readable repeatedly. Many rows are kept in a file.

    >>> import pyarrow as pa
    >>> rows = CopyRows()
    >>> rows.add(pa.table({"a": [1, None], "b": ["x", ""]}))
    >>> rows.file().read()
    b'1,"x"\n,""\n'
    """

    def __init__(self, rows: bytes = b"", format: Literal["csv", "binary"] = "csv") -> None:
        """`rows` are encoded in the format."""
        self.format = format
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (it goes with the rows)
        weakref.finalize(self, self._file.close)
        self.size = self._file.write(rows)

    def add(self, table: pa.Table) -> None:
        """Appends rows."""
        if table.num_rows == 0:
            return
        begins = BINARY if self.format == "binary" and not self.size else b""
        self.size += self._file.write(begins + (csv if self.format == "csv" else binary)(table))

    def file(self) -> IO[bytes]:
        """The file of all rows, at its beginning."""
        self._file.seek(0)
        return self._file


def batches(result: DataFrame, *, at_most: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a result in no order, as its tasks end. `at_most` limits the rows of a batch.

    Unlike PySpark's `toArrow`, this does not hold the whole result: the driver's JVM needs memory for the rows in
    transit, and this process for one batch.
    """
    import pyarrow as pa
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.sql.pandas.serializers import ArrowCollectSerializer
    from pyspark.util import _load_from_socket

    with _batches_of(result, at_most):
        port, secret, server = result._jdf.collectAsArrowToPython()  # noqa: SLF001
        ended = True
        try:
            for batch in _load_from_socket((port, secret), ArrowCollectSerializer()):  # type: ignore[no-untyped-call]
                if isinstance(batch, pa.RecordBatch):  # the last item is their order
                    yield batch
        except (GeneratorExit, KeyboardInterrupt):
            ended = False  # the reader failed or was interrupted, so nothing waits for the rest
            raise
        finally:
            if ended:
                with unwrap_spark_exception():
                    server.getResult()


_limited: dict[str, tuple[int, str]] = {}
"""By Spark session, the results that are read in limited batches now, and the setting that the last one restores."""

_limiting = threading.Lock()


@contextmanager
def _batches_of(result: DataFrame, at_most: int | None) -> Iterator[None]:
    """Limits the rows of a batch during the block. Sources that share a run read their results in one session."""
    if at_most is None:
        yield
        return
    session, option = result.sparkSession, "spark.sql.execution.arrow.maxRecordsPerBatch"
    id = session._jsparkSession.sessionUUID()  # noqa: SLF001 (micro-batches have objects of their own for one session)
    with _limiting:
        readers, before = _limited.get(id) or (0, str(session.conf.get(option)))
        _limited[id] = readers + 1, before
        session.conf.set(option, str(at_most))
    try:
        yield
    finally:
        with _limiting:
            readers, before = _limited.pop(id)
            if readers > 1:
                _limited[id] = readers - 1, before
            else:
                session.conf.set(option, before)


def binary(table: pa.Table) -> bytes:
    r"""Rows for `COPY … (FORMAT binary)`, of integers and fixed-size bytes without NULLs.

    A row is the number of its columns, then the size in bytes and the big-endian value of each column.

    >>> import pyarrow as pa
    >>> binary(pa.table({"a": pa.array([258], pa.int32()), "b": pa.array([b"xy"], pa.binary(2))}))
    b'\x00\x02\x00\x00\x00\x04\x00\x00\x01\x02\x00\x00\x00\x02xy'
    """
    import numpy as np
    import pyarrow as pa

    assert not any(column.null_count for column in table.columns)
    values = {
        name: raw_bytes(column) if pa.types.is_fixed_size_binary(column.type) else column.to_numpy()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    columns = [
        field
        for name, value in values.items()
        for field in ((f"size of {name}", ">i4"), (name, value.dtype.newbyteorder(">")))
    ]
    rows = np.zeros(table.num_rows, np.dtype([("columns", ">i2"), *columns]))
    rows["columns"] = len(values)
    for name, value in values.items():
        rows[f"size of {name}"], rows[name] = value.dtype.itemsize, value
    return rows.tobytes()


def raw_bytes(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Fixed-size bytes as an array with an item per value."""
    import numpy as np

    values, size = column.combine_chunks(), column.type.byte_width
    return np.frombuffer(values.buffers()[1], f"V{size}", count=len(values), offset=values.offset * size)


def csv(table: pa.Table) -> bytes:
    r"""Rows for `COPY … (FORMAT csv)`: NULL is an empty field, every string is quoted.

    >>> import pyarrow as pa
    >>> csv(pa.table({"a": [1, None], "b": ["x", ""]}))
    b'1,"x"\n,""\n'
    """
    import pyarrow.csv

    out, table = io.BytesIO(), with_infinities(table)
    pyarrow.csv.write_csv(table, out, pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"))
    return out.getvalue()


def with_infinities(table: pa.Table) -> pa.Table:
    r"""The rows with Postgres' infinities for times outside the years 1 to 9999, which Spark has no infinities for.

    >>> import pyarrow as pa
    >>> from datetime import date
    >>> days = pa.array([2932897, -719163, 0], pa.int32()).cast(pa.date32())
    >>> with_infinities(pa.table({"day": days}))["day"].to_pylist()
    ['infinity', '-infinity', '1970-01-01']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, field in enumerate(table.schema):
        if not pa.types.is_date(field.type) and not pa.types.is_timestamp(field.type):
            continue
        first, last = (pa.scalar(bound).cast(field.type) for bound in _bounds(field.type))
        column = table.column(number)
        before, after = pc.less(column, first), pc.greater(column, last)
        if pc.any(pc.or_(before, after)).as_py():
            within = pc.if_else(pc.or_(before, after), pa.scalar(None, field.type), column)
            texts = pc.if_else(after, "infinity", pc.if_else(before, "-infinity", within.cast(pa.string())))
            table = table.set_column(number, field.name, texts)
    return table


def _bounds(kind: pa.DataType) -> tuple[date | datetime, date | datetime]:
    """The first and the last value of the calendar."""
    import pyarrow as pa

    if pa.types.is_date(kind):
        return date.min, date.max
    zone = UTC if kind.tz is not None else None
    return datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
