"""Decompressing streams for gzip and Zstandard files, readable again from the start."""

from __future__ import annotations

import gzip
import io
from typing import IO, Any, cast

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of gzip and Zstandard files."""

ENDINGS = (".gz", ".zst")

_BUFFER = 128 * 1024
"""Bytes unpacked at a time. A damaged file may also lose this many bytes before the damage."""


class DamagedFile(OSError):
    """A Zstandard file ends early, or is not one."""


def is_packed(beginning: bytes) -> bool:
    """True if these are the first bytes of a compressed file."""
    return beginning.startswith((GZIP, ZSTD))


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """A stream of a file's decompressed bytes, from its start. An uncompressed file is its own stream."""
    beginning = file.read(len(ZSTD))
    file.seek(0)
    if beginning.startswith(GZIP):
        return cast("IO[bytes]", gzip.open(file, "rb"))
    if beginning.startswith(ZSTD):
        return cast("IO[bytes]", io.BufferedReader(_Zstandard(file), _BUFFER))
    return file


def without_ending(name: str) -> str:
    """A file's name without the ending of its compression.

    >>> without_ending("orders.csv.gz"), without_ending("orders.csv")
    ('orders.csv', 'orders.csv')
    """
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def is_unpacking(file: IO[bytes]) -> bool:
    """True if the stream decompresses, so that seeking backwards decompresses it again."""
    opened = cast("Any", file)
    return isinstance(opened, gzip.GzipFile) or isinstance(getattr(opened, "raw", None), _Zstandard)


class _Zstandard(io.RawIOBase):
    """Decompresses with Arrow's decoder, which keeps one window in memory. `seek(0)` starts over."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        import pyarrow as pa

        self._file.seek(0)
        self._stream = pa.CompressedInputStream(pa.PythonFile(_OpenFile(self._file), mode="r"), "zstd")
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes back to the start, or stays."""
        if offset != 0 or whence == io.SEEK_END:
            raise io.UnsupportedOperation("a compressed file is read from its start")
        if whence == io.SEEK_SET:
            self._begin()
        return self._at

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._stream.read(len(buffer))
        except OSError as error:
            raise DamagedFile(str(error)) from error
        buffer[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)


class _OpenFile:
    """A file that Arrow cannot close together with its own stream."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Reads the next bytes."""
        return self._file.read(size)

    def close(self) -> None:
        """Leaves the file open for its owner."""
