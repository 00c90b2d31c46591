"""Compressed files as the bytes that were compressed: gzip and Zstandard, as streams, readable again from the start."""

from __future__ import annotations

import gzip
import io
from typing import IO, Any, cast

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
"""The bytes that each begins with."""

ENDINGS = (".gz", ".zst")

_BUFFER = 128 * 1024
"""Bytes that are unpacked at a time; if a file is damaged, so many before the place may be lost, too."""


class Damaged(OSError):
    """A Zstandard file that ends early, or is none."""


def is_packed(beginning: bytes) -> bool:
    """True of the first bytes of a compressed file."""
    return beginning.startswith((GZIP, ZSTD))


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The bytes that were compressed into a file that stands at its start; another file is itself."""
    beginning = file.read(len(ZSTD))
    file.seek(0)
    if beginning.startswith(GZIP):
        return cast("IO[bytes]", gzip.open(file, "rb"))
    if beginning.startswith(ZSTD):
        return cast("IO[bytes]", io.BufferedReader(_Zstandard(file), _BUFFER))
    return file


def without_ending(name: str) -> str:
    """A file's name without what says how it is compressed.

    >>> without_ending("orders.csv.gz"), without_ending("orders.csv")
    ('orders.csv', 'orders.csv')
    """
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def is_unpacking(file: IO[bytes]) -> bool:
    """True of what `unpacked` made of a compressed file: to go back in it is to unpack it again."""
    opened = cast("Any", file)
    return isinstance(opened, gzip.GzipFile) or isinstance(getattr(opened, "raw", None), _Zstandard)


class _Zstandard(io.RawIOBase):
    """Unpacks with Arrow's decoder, which keeps one window in memory; `seek(0)` begins again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        import pyarrow as pa

        self._file.seek(0)
        self._stream = pa.CompressedInputStream(pa.PythonFile(_Open(self._file), mode="r"), "zstd")
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
            raise Damaged(str(error)) from error
        buffer[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)


class _Open:
    """A file that Arrow does not close with a stream of its own."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Reads the next bytes."""
        return self._file.read(size)

    def close(self) -> None:
        """Leaves the file to who opened it."""
