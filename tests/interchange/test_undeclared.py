"""Undeclared fields are reported, except those of every change event."""

from __future__ import annotations

import json

import pytest

from interchange.json_values import columns
from interchange.undeclared import in_sample
from lamina.testing.fixtures import fixture
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError
from view_algebra.language.types import INT, STRING, Type

CATALOG = compile_catalog(
    {
        "c.sql": """
        CREATE TABLE clicks (userId STRING, lower_id STRING, deleted BOOLEAN, PRIMARY KEY (lower_id))
        USING kafka OPTIONS (topic 'clicks', format 'json', key_format 'json')
        TBLPROPERTIES ('field.lower_id' = 'userid', 'field.deleted' = '_deleted');
        CREATE VIEW users AS SELECT lower_id, deleted FROM clicks;
        """
    }
)

EVENT = {
    "op": "c",
    "before": None,
    "after": {"id": 1, "Osv": 2},
    "source": {"db": "s"},
    "ts_ms": 1,
    "transaction": None,
}


def test_only_the_row_of_a_debezium_envelope_has_undeclared_fields() -> None:
    declared = {"op": STRING, "after": Type("STRUCT", fields=(("id", INT), ("osv", INT)))}
    whole = {"schema": {"type": "struct"}, "payload": EVENT}
    undeclared = in_sample(declared, [json.dumps(EVENT).encode(), json.dumps({**EVENT, "more": 1}).encode(), None])
    assert [(field.field, field.records, field.meant) for field in undeclared] == [
        ("after.Osv", 2, "after.osv"),
        ("more", 1, None),
    ]
    assert {field.field for field in in_sample(declared, [json.dumps(whole).encode()])} == {"schema", "payload"}


def test_fields_of_an_event_that_is_not_a_change_are_reported() -> None:
    undeclared = in_sample({"op": STRING}, [b'{"op": "add", "ts_ms": 1}'])
    assert [field.field for field in undeclared] == ["ts_ms"]


def test_a_column_that_a_record_has_is_not_suggested_for_another_field() -> None:
    columns = {"invoice_date": STRING, "page": STRING}
    both = b'{"invoice_date": "a", "invoice_no": 1, "pgae": "x", "page": "y"}'
    dated = b'{"invoice_date": "a", "invoice_no": 1, "pgae": "x"}'
    assert {field.field: field.meant for field in in_sample(columns, [both])} == {"invoice_no": None, "pgae": None}
    assert {field.field: field.meant for field in in_sample(columns, [both, dated])}["pgae"] == "page"


def test_a_field_that_fills_a_column_is_declared() -> None:
    source = CATALOG.sources["clicks"]
    assert list(columns(source)) == ["userId", "userid", "_deleted"]
    undeclared = in_sample(columns(source), [b'{"userid": "a", "_deleted": true}', b'{"lower_id": 1, "USERID": "b"}'])
    assert [field.field for field in undeclared] == ["lower_id", "USERID"]


def test_a_test_of_a_view_names_fields_as_in_json() -> None:
    text = '-- given clicks\n{"userid": "a", "_deleted": false}\n-- expect users\n{"lower_id": "a", "deleted": false}\n'
    [record] = fixture("a.test", text, CATALOG).records["clicks"]
    assert (record.key, record.value) == (b'{"userid": "a"}', b'{"userid":"a","_deleted":false}')
    with pytest.raises(LaminaError, match="clicks has no field deleted"):
        fixture("a.test", text.replace("_deleted", "deleted"), CATALOG)
