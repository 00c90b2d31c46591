"""The column types that `lamina init` and `lamina plan` take from a Protobuf schema."""

from __future__ import annotations

import pytest

from interchange.column_types.protobuf_types import columns_like, columns_of
from tests.fix_protobuf import ORDER
from view_algebra.formats.interface import NoText, Schema

TYPES = {
    "id": "BIGINT",
    "most": "DECIMAL(20,0)",
    "less": "INT",
    "fixed": "DECIMAL(20,0)",
    "share": "DOUBLE",
    "part": "DOUBLE",
    "ok": "BOOLEAN",
    "userName": "STRING",
    "raw": "BINARY",
    "kind": "STRING",
    "given": "INT",
    "numbers": "ARRAY<INT>",
    "by_truth": "MAP<STRING, DOUBLE>",
    "cash": "BIGINT",
    "at": "TIMESTAMP",
    "day": "DATE",
    "took": "DECIMAL(20,9)",
    "wrapped": "BIGINT",
    "any_json": "STRING",
    "kinds": "ARRAY<STRING>",
    "place": "STRUCT<city: STRING, floors: MAP<STRING, INT>>",
    "any": "STRUCT<type_url: STRING, value: BINARY>",
    "within": "STRING",
}


def test_a_field_of_a_message_decides_the_type_of_its_column() -> None:
    columns = columns_of(Schema("PROTOBUF", ORDER), "shop.Order")
    assert {name: columns[name].spark for name in TYPES} == TYPES
    assert columns_of(Schema("PROTOBUF", ORDER), (1,)).keys() == {"name"}
    with pytest.raises(NoText, match="the schema has no message \\[2\\]"):
        columns_of(Schema("PROTOBUF", ORDER), (2,))


def test_columns_are_compared_with_the_message_that_shares_most_of_them() -> None:
    assert columns_like({"name", "age"}, Schema("PROTOBUF", ORDER)).keys() == {"name"}
    assert columns_like({"id", "name", "ok"}, Schema("PROTOBUF", ORDER)).keys() >= {"id", "ok"}
