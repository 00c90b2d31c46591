"""Undeclared fields are reported, except those of every change event."""

from __future__ import annotations

import json

from interchange.undeclared import in_sample
from view_algebra.language.types import INT, STRING, Type

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
