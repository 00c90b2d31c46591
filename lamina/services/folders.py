"""Folders that are removed with their process, or at the next start if the process was killed."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import uuid
from pathlib import Path

from lamina.services.own_processes import locked

_OWNER = "owner.lock"
"""The file in a folder whose lock the process holds. The kernel releases it however the process ends."""

_MINE: dict[Path, Path] = {}


def own_folder(parent: Path) -> Path:
    """The folder of this process in `parent`, created by the first call, which also removes folders of dead processes.

    Process ids cannot be the names, because containers that share a volume use the same ids.
    """
    folder = _MINE.get(parent)
    if folder is not None and folder.exists():
        return folder
    parent.mkdir(parents=True, exist_ok=True)
    with locked(parent / "folders.lock"):
        _remove_left(parent)
        folder = parent / uuid.uuid4().hex
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder / _OWNER, os.O_CREAT | os.O_RDWR, 0o600)  # stays open until the process ends
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    _MINE[parent] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def sweep(parent: Path) -> int:
    """Removes the folders of dead processes in `parent`, and returns their number."""
    if not parent.is_dir():
        return 0
    with locked(parent / "folders.lock"):
        return _remove_left(parent)


def _remove_left(parent: Path) -> int:
    left = [folder for folder in parent.iterdir() if folder.is_dir() and _is_left(folder)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    return len(left)


def _is_left(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / _OWNER, os.O_RDWR)
    except FileNotFoundError:
        return True  # a version without locks left it, or a start that was killed
    except OSError:
        return False  # another user's
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
