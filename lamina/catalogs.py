"""A catalog as an author keeps it: a folder of `.sql` files."""

from __future__ import annotations

from pathlib import Path

from view_algebra.errors import LaminaError


def catalog_files(folder: Path) -> dict[str, str]:
    """The `.sql` files of a catalog, by their path relative to its folder."""
    if not folder.is_dir():
        raise LaminaError(
            f"There is no catalog at {folder}",
            evidence="wanted a folder of .sql files",
            way_out="Name it with --catalog DIR or LAMINA_CATALOG.",
        )
    files = {str(path.relative_to(folder)): _read(path) for path in sorted(folder.rglob("*.sql"))}
    if not files:
        raise LaminaError(
            f"The catalog at {folder} is empty",
            evidence="found no .sql file in it",
            way_out="Declare a source and a view; `examples/` shows some.",
        )
    return files


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LaminaError(
            f"{path} cannot be read", evidence=str(error), way_out="A catalog's files are readable UTF-8."
        ) from error
