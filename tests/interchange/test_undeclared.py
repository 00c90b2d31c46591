"""Fields that no column takes are told; those that every change event has are not."""

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


def test_an_envelope_of_debezium_has_no_undeclared_fields_but_those_of_its_row() -> None:
    declared = {"op": STRING, "after": Type("STRUCT", fields=(("id", INT), ("osv", INT)))}
    whole = {"schema": {"type": "struct"}, "payload": EVENT}
    found = in_sample(declared, [json.dumps(EVENT).encode(), json.dumps({**EVENT, "more": 1}).encode(), None])
    assert [(each.field, each.records, each.meant) for each in found] == [
        ("after.Osv", 2, "after.osv"),
        ("more", 1, None),
    ]
    assert {each.field for each in in_sample(declared, [json.dumps(whole).encode()])} == {"schema", "payload"}


def test_fields_of_an_event_that_is_no_change_are_told() -> None:
    found = in_sample({"op": STRING}, [b'{"op": "add", "ts_ms": 1}'])
    assert [each.field for each in found] == ["ts_ms"]


def test_a_column_that_a_record_has_is_not_what_its_other_field_means() -> None:
    columns = {"invoice_date": STRING, "page": STRING}
    both = b'{"invoice_date": "a", "invoice_no": 1, "pgae": "x", "page": "y"}'
    dated = b'{"invoice_date": "a", "invoice_no": 1, "pgae": "x"}'
    assert {each.field: each.meant for each in in_sample(columns, [both])} == {"invoice_no": None, "pgae": None}
    assert {each.field: each.meant for each in in_sample(columns, [both, dated])}["pgae"] == "page"
