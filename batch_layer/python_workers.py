"""Spark's Python workers, which load the cells of a rebuild: forks of a process that has imported their modules.

Spark puts its own archives, a zip of Python sources and a jar, before the installed packages, and lets each task look
for modules again. Up to Python 3.12, that reads the directories of both archives, which takes longer than a small part
of a rebuild. So the process and its forks skip archives.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from zipimport import zipimporter

USED = (
    "pandas",
    "pyarrow.csv",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "serving_layer.postgres.copying",
    "serving_layer.promise.loading",
)
"""Modules that every worker would otherwise import for itself."""


def main() -> None:
    """Runs until Spark ends it."""
    forget_archives()  # before anything of Spark's is imported from one
    for name in USED:
        importlib.import_module(name)
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]


def forget_archives() -> None:
    """Lets Python look for modules in folders only: the modules in Spark's archives are installed there, too."""
    sys.path[:] = [path for path in sys.path if not Path(path).is_file()]
    for path in [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]:
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    main()
