"""Sources of a dbt project: the views with descriptions, tests of the catalog's guarantees, and freshness."""

from __future__ import annotations

import re
from typing import Any

from lamina.generating.view_facts import SCHEMA, Address, description, loaded_at
from lamina.generating.yaml_text import yaml
from view_algebra.compiled import Catalog, Check, Column, View
from view_algebra.language.quoting import postgres_name
from view_algebra.text_relations import reading

SOURCES = "models/sources.yml"

PROJECT = "dbt_project.yml"

VARIABLE = "LAMINA_DBT_PASSWORD"
"""The variable from which dbt takes the password of its login."""

MODELS_SCHEMA = "marts"
"""The schema of models, as docs/reading.md creates it."""

WARN_AFTER = {"count": 5, "period": "minute"}
ERROR_AFTER = {"count": 1, "period": "hour"}
"""Limits of freshness. While the speed layer runs, a view is seconds behind even if no record comes."""

UNIQUE_ROWS = "unique_rows"

_UNIQUE_ROWS = """\
{% test unique_rows(model, columns) %}
-- No two rows have equal values in these columns; two NULLs are equal. Without columns: there is one row.
SELECT count(*) AS rows FROM {{ model }}
{% if columns %}GROUP BY {{ columns | join(', ') }}{% endif %}
HAVING count(*) > 1
{% endtest %}
"""


def project(catalog: Catalog) -> dict[str, str]:
    """The files of a dbt project, by name: sources, a generic test for keys of several columns, a test per check."""
    tables = [_table(catalog, view) for view in catalog.views.values()]
    source = {
        "name": SCHEMA,
        "schema": SCHEMA,
        "description": "Views over Kafka that Lamina keeps current.",
        "config": {"freshness": {"warn_after": WARN_AFTER, "error_after": ERROR_AFTER}},
        "tables": tables,
    }
    files = {SOURCES: yaml({"version": 2, "sources": [source]})}
    if any("data_tests" in table for table in tables):
        files[f"tests/generic/{UNIQUE_ROWS}.sql"] = _UNIQUE_ROWS
    for view in catalog.views.values():
        for check in view.checks:
            name = f"tests/{_file_name(view.name, check.name)}"
            numbered = (name, *(f"{name}_{number}" for number in range(2, len(view.checks) + 1)))
            files[next(f"{path}.sql" for path in numbered if f"{path}.sql" not in files)] = _singular(check)
    return files


def beginning(address: Address) -> dict[str, str]:
    """The files that make a folder a dbt project, by name: its name, and a profile without the password."""
    profile = {
        "type": "postgres",
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": f"{{{{ env_var('{VARIABLE}') }}}}",
        "dbname": address.database,
        "schema": MODELS_SCHEMA,
        "sslmode": address.sslmode,
        "threads": 2,
    }
    return {
        PROJECT: yaml({"name": "lamina", "version": "1.0", "profile": "lamina"}),
        "profiles.yml": yaml({"lamina": {"target": "now", "outputs": {"now": profile}}}),
    }


def _table(catalog: Catalog, view: View) -> dict[str, Any]:
    keys = [list(key) for key in view.unique if len(key) != 1]
    table: dict[str, Any] = {
        "name": view.name,
        "description": _without_jinja(description(catalog, view)),
        "config": {"loaded_at_query": _without_jinja(loaded_at(view))},
    }
    if keys:
        table["data_tests"] = [
            {UNIQUE_ROWS: {"arguments": {"columns": [_without_jinja(postgres_name(name)) for name in key]}}}
            for key in keys
        ]
    return {**table, "columns": [_column(view, column) for column in view.columns]}


def _column(view: View, column: Column) -> dict[str, Any]:
    proved = {"unique": (column.name,) in view.unique, "not_null": column.name in view.never_null}
    tests = [test for test, holds in proved.items() if holds]
    return {
        "name": column.name,
        **({"description": _without_jinja(column.comment)} if column.comment else {}),
        "data_type": column.postgres,
        **({"quote": True} if postgres_name(column.name) != column.name else {}),
        **({"data_tests": tests} if tests else {}),
    }


def _singular(check: Check) -> str:
    """A test that fails for the same rows as a check of the catalog."""
    reads = [f"-- depends_on: {{{{ source('{SCHEMA}', {name!r}) }}}}" for name in check.reads]
    failing = reading(check.failing, "published", lambda name: f"{SCHEMA}.{postgres_name(name)}")
    severity = "error" if check.blocks else "warn"
    head = f"{{{{ config(severity='{severity}') }}}}\n-- {_without_jinja(' '.join(check.sql.split()))}"
    return "\n".join([head, *reads, _without_jinja(failing)]) + "\n"


def _file_name(view: str, check: str) -> str:
    """The name of a test, which dbt takes from its file. Letters of other alphabets stay.

    >>> _file_name("in_euro", "known currency")
    'in_euro__known_currency'
    """
    return re.sub(r"\W", "_", f"{view}__{check}")


def _without_jinja(text: str) -> str:
    """The text with Jinja's opening braces escaped.

    >>> print(_without_jinja("{{ x }}"))
    {{ '{' }}{ x }}
    """
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)
