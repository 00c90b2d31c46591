"""The Python workers that load a rebuild's cells start quickly."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import SparkSession


def test_sparks_python_workers_import_from_no_archive(spark: SparkSession) -> None:
    """Each task would read the whole archive several times."""

    def archives(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        import sys
        from zipimport import zipimporter

        for _ in batches:
            cached = [finder.archive for finder in sys.path_importer_cache.values() if isinstance(finder, zipimporter)]
            yield pa.RecordBatch.from_pydict({"place": pa.array(cached, pa.string())})

    rows = spark.range(4).repartition(2).mapInArrow(archives, "place string").collect()
    assert [row.place for row in rows] == []
