"""The cost of a table of change events: parsed once per micro-batch, one column per value and per order."""

from __future__ import annotations

from view_algebra.compile import compile_catalog
from view_algebra.texts.fuse import fuse

CATALOG = """
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, n INT) USING kafka OPTIONS (topic 't', format 'debezium-json');
"""


def test_a_micro_batch_of_change_events_is_parsed_once() -> None:
    """Key updates change two rows, truncations one cell, and bad records count once. All share one reading."""
    compiled = compile_catalog({"users.sql": CATALOG})
    fused = fuse(compiled.sources["users"], compiled.views["users"].cell_tables)
    assert fused.sql.count("FROM records") == 1
    assert fused.sql.count("`position 1` = 0") == 2, "the truncation and the bad record take the first row"


def test_the_order_of_the_newest_record_is_kept_once() -> None:
    """The order of the newest record ends with its offset, which the SELECT of the rows also reads."""
    compiled = compile_catalog({"users.sql": CATALOG})
    for table in compiled.views["users"].cell_tables:
        kept = [line.partition(" AS ")[0] for line in table.partial.split("\n") if line.startswith("  max_by(")]
        assert len(kept) == len(set(kept))
