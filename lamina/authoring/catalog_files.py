"""A catalog as an author keeps it: a folder of `.sql` files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from view_algebra.errors import LaminaError


def catalog_files(folder: Path) -> dict[str, str]:
    """The `.sql` files of a catalog, by their path relative to its folder."""
    if not folder.is_dir():
        raise LaminaError(
            f"There is no catalog at {folder}",
            evidence="wanted a folder of .sql files",
            way_out="Name it with --catalog DIR or LAMINA_CATALOG, or let `lamina init` write one.",
        )
    files = {str(path.relative_to(folder)): read_text(path) for path in files_in(folder, ".sql")}
    if not files:
        raise LaminaError(
            f"The catalog at {folder} is empty",
            evidence="found no .sql file in it",
            way_out="Declare a source and a view. `examples/` shows some.",
        )
    return files


def files_in(folder: Path, ending: str) -> list[Path]:
    """The files with this ending in a catalog's folder and its sub-folders, without hidden ones (`.git`, `..data`).

    An unreadable folder raises LaminaError. If it passed for an empty one, apply would drop what it declares.
    """
    paths = []
    for where, folders, names in os.walk(folder, onerror=_unreadable, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [_file(Path(where, name)) for name in names if name.endswith(ending) and not name.startswith(".")]
    return sorted(paths)


def _file(path: Path) -> Path:
    """The path of a file, or of a link to one. Raises LaminaError for a FIFO or a device, whose text may never end."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise _cannot_be_read(path, error) from error
    if not regular:
        raise LaminaError(
            f"{path} is not a file",
            evidence="it is a FIFO, a socket or a device",
            way_out="Remove it from the catalog's folder, or give it another ending.",
        )
    return path


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark. Raises LaminaError if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _cannot_be_read(path, error) from error


def _unreadable(error: OSError) -> None:
    raise _cannot_be_read(error.filename, error) from error


def _cannot_be_read(path: object, error: Exception) -> LaminaError:
    return LaminaError(f"{path} cannot be read", evidence=str(error), way_out="Make it a readable file in UTF-8.")
