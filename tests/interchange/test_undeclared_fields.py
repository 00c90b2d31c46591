"""Fields whose columns have other names are named as in JSON."""

from __future__ import annotations

import pytest

from interchange.json_values import columns
from interchange.undeclared import in_sample
from lamina.testing.fixtures import fixture
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError

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


def test_a_field_that_fills_a_column_is_declared() -> None:
    source = CATALOG.sources["clicks"]
    assert list(columns(source)) == ["userId", "userid", "_deleted"]
    undeclared = in_sample(columns(source), [b'{"userid": "a", "_deleted": true}', b'{"lower_id": 1, "USERID": "b"}'])
    assert [field.field for field in undeclared] == ["lower_id", "USERID"]


def test_a_test_of_a_view_names_fields_as_in_json() -> None:
    text = '-- given clicks\n{"userid": "a", "_deleted": false}\n-- expect users\n{"lower_id": "a", "deleted": false}\n'
    [record] = fixture("a.test", text, CATALOG).records["clicks"]
    assert (record.key, record.value) == (b'{"userid": "a"}', b'{"userid": "a", "_deleted": false}')
    with pytest.raises(LaminaError, match="clicks has no field deleted"):
        fixture("a.test", text.replace("_deleted", "deleted"), CATALOG)
