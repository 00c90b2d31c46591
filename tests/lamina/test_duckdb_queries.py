"""DuckDB runs a SELECT of Spark only if both give it one meaning."""

from __future__ import annotations

import pytest

from lamina.testing.duckdb_queries import translate


@pytest.mark.parametrize("cast", ["300 AS SMALLINT", "'-7' AS INT"])
def test_duckdb_computes_a_cast_to_an_integer_that_fits(cast: str) -> None:
    assert translate(f"SELECT CAST({cast}) AS c FROM s") is not None


@pytest.mark.parametrize("cast", ["4000000000 AS INT", "128 AS TINYINT", "1.5 AS INT", "'x' AS BIGINT"])
def test_duckdb_does_not_compute_a_cast_that_spark_computes_otherwise(cast: str) -> None:
    assert translate(f"SELECT CAST({cast}) AS c FROM s") is None
