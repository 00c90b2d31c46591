"""Opens a file, a pipe or standard input so that its decompressed bytes can be read twice."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from interchange.compression import DamagedFile, is_packed, unpacked
from view_algebra.errors import LaminaError

MOST_OF_A_LINE = 256 * 1024 * 1024
"""Bytes within which a line must end: a file without line ends may be endless."""

_CHUNK = 1024 * 1024
"""Bytes copied from a pipe at a time."""


@contextmanager
def seekable(name: str, stdin: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file's decompressed bytes, readable twice: `-` and pipes are first copied whole to a temporary file.

    Raises LaminaError for a device, which may have no end.
    """
    with ExitStack() as opened:
        with readable(name):
            file = stdin if name == "-" else opened.enter_context(Path(name).open("rb"))
            _refuse_devices(file, name)
            if name == "-" or not file.seekable():
                copy = cast("IO[bytes]", opened.enter_context(tempfile.TemporaryFile()))
                _copy(file, copy, name)
                file = copy
            content = unpacked(file)
            if content is not file:
                opened.enter_context(content)
        yield content


def _refuse_devices(file: IO[bytes], name: str) -> None:
    try:
        status = os.fstat(file.fileno())
    except io.UnsupportedOperation:  # bytes in memory
        return
    if not os.isatty(file.fileno()):
        refuse_device(status, name)


def refuse_device(status: os.stat_result, name: str) -> None:
    """Raises LaminaError for a device other than /dev/null."""
    device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    if device and status.st_rdev != Path(os.devnull).stat().st_rdev:
        raise LaminaError(
            f"{name} is a device", evidence="It may have no end.", way_out="Name a file, or pipe the records."
        )


def _copy(pipe: IO[bytes], copy: IO[bytes], name: str) -> None:
    """Copies the bytes of a pipe. Raises LaminaError for a text without line ends, or if the disk is full."""
    try:
        chunk = pipe.read(_CHUNK)
        is_text = not is_packed(chunk) and not chunk.startswith(b"PAR1")
        since = 0
        while chunk:
            copy.write(chunk)
            end = chunk.rfind(b"\n")
            since = since + len(chunk) if end < 0 else len(chunk) - end - 1
            if is_text and since > MOST_OF_A_LINE:
                raise endless(name, "a line")
            chunk = pipe.read(_CHUNK)
        copy.seek(0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise LaminaError(
            f"{name}: the temporary folder is full",
            evidence=f"Bytes from a pipe are first copied to {tempfile.gettempdir()}, to be read twice.",
            way_out="Set TMPDIR to a folder with more room, or pass the file itself to `lamina ingest`.",
        ) from error


def endless(name: str, line: str) -> LaminaError:
    """The error for a line without an end."""
    return LaminaError(
        f"{name}: {line} has no end within {MOST_OF_A_LINE / 1e6:.0f} MB",
        evidence="No topic takes such a record.",
        way_out="Use a file with one record per line.",
    )


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns an error of reading a file into a LaminaError."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error, DamagedFile) as error:
        raise LaminaError(
            f"{name}: the compressed file is damaged",
            evidence=str(error),
            way_out="Fetch it again, or decompress what can be decompressed and use that.",
        ) from error
    except OSError as error:
        raise LaminaError(
            f"{name}: the file cannot be read",
            evidence=error.strerror or str(error),
            way_out="Correct the path or its permissions.",
        ) from error
