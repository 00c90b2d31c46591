"""A column may have any name that Spark takes."""

from __future__ import annotations

import pytest
from sqlglot.dialects.spark import Spark

from view_algebra import compile_catalog

READERS = (Spark.Tokenizer.KEYWORDS, Spark.Parser.FUNCTIONS, Spark.Parser.FUNCTION_PARSERS)
WORDS = sorted({word.lower() for words in READERS for word in words if word.replace("_", "").isalpha()})
"""Every word that means something to whoever reads our SQL, or Spark's."""


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_a_column_may_be_called_as_any_word(key: str) -> None:
    columns = ", ".join(f"`{word}` INT" for word in WORDS)
    largest = ", ".join(f"max(`{word}`) AS `{word}`" for word in WORDS)
    least = ", ".join(f"min(t.`{word}`) AS `{word}`" for word in WORDS)
    catalog = compile_catalog(
        {
            "words.sql": f"CREATE TABLE words (id BIGINT{key}, {columns})"
            " USING kafka OPTIONS (topic 'words', format 'json');"
            f" CREATE VIEW largest AS SELECT id, {largest} FROM words GROUP BY id;"
            f" CREATE VIEW least AS SELECT id, {least} FROM words AS t GROUP BY id;"
        }
    )
    assert [column.name for column in catalog.views["largest"].columns] == ["id", *WORDS]
