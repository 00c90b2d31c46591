"""Flushes files of the warehouse to disk if the warehouse is a folder. Object storage needs no flush."""

from __future__ import annotations

import errno
import gzip
import json
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from view_algebra.errors import LaminaError

SLACK_SECONDS = 2.0
"""Seconds by which the clock that stamps files may lag behind ours."""


def sync_start() -> float:
    """The time from which a file counts as new."""
    return time.time() - SLACK_SECONDS


def sync_file(location: str) -> None:
    """Waits until a file and its entry in the folder are on disk."""
    path = _path(location)
    if path is not None:
        _sync(path)
        _sync(path.parent)


def sync_changed_since(location: str, began: float) -> None:
    """Waits until every file and folder below `location` that changed since `began` is on disk."""
    top = _path(location)
    if top is None:
        return
    for folder, _, names in os.walk(top, topdown=False):
        changed = _changed(Path(folder)) >= began
        for name in names:
            path = Path(folder, name)
            if _changed(path) >= began:
                _sync(path)
        if changed:
            _sync(Path(folder))
    for above in list(top.parents)[:2]:  # the folder of a new table, and the folder of all logs
        _sync(above)


def is_whole(location: str, fetch: Callable[[str], bytes]) -> bool:
    """True if a metadata file can be read to its end. `fetch` reads a file of object storage."""
    path = _path(location)
    try:
        data = fetch(location) if path is None else path.read_bytes()
        json.loads(gzip.decompress(data) if ".gz." in location else data)
    except (FileNotFoundError, gzip.BadGzipFile, zlib.error, ValueError, EOFError):
        return False
    except OSError as error:  # the file itself may be whole
        raise LaminaError(
            f"{location} of the master log cannot be read",
            evidence=str(error),
            way_out="Make sure that the warehouse (LAMINA_WAREHOUSE) is mounted, and that this user may read it.",
        ) from error
    return True


def _path(location: str) -> Path | None:
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else location)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # a draft that has since been renamed


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    except PermissionError:
        os.sync()  # another user's file: flushes everything that the machine has not written yet
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems, such as CIFS, cannot flush folders
            raise
    finally:
        os.close(descriptor)
