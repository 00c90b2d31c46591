"""The layers run the deployed texts, even if another version of Lamina would compile different ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from lamina.operations import applying, source_topics
from lamina.operations.deployment import Deployment
from serving_layer.catalog.deployed import deployed as deployed_catalog
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from tests.fix_lamina import Deployed
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog, CellTable, View
from view_algebra.errors import LaminaError

SALES = """CREATE TABLE sales (country STRING, amount BIGINT) USING kafka
    OPTIONS (topic '{topics}_sales', format 'json');"""
TOTALS = "CREATE VIEW totals AS SELECT country, count(*) AS n, sum(amount) AS amount FROM sales GROUP BY country;"
LARGEST = "CREATE VIEW largest AS SELECT * FROM totals ORDER BY amount DESC, country LIMIT 1;"


def by_an_older_compiler(catalog: Catalog) -> Catalog:
    """The catalog with other texts of the same meaning: the count's column and the version have other names."""

    def older(text: str) -> str:
        return re.sub(r"\bcount\b(?!\()", "how_many", text)

    def table(now: CellTable, version: str) -> CellTable:
        partials = tuple(replace(p, column=replace(p.column, name=older(p.column.name))) for p in now.partials)
        return replace(
            now,
            name=now.name.replace(version, "0ldc0de1"),
            partials=partials,
            partial=older(now.partial),
            cells=older(now.cells),
            merge=older(now.merge),
        )

    def view(now: View) -> View:
        if not now.cell_tables:
            return now
        tables = tuple(table(one, now.version) for one in now.cell_tables)
        final = older(now.final.replace(now.version, "0ldc0de1"))
        return replace(now, version="0ldc0de1", cell_tables=tables, final=final)

    return Catalog(catalog.sources, {name: view(now) for name, now in catalog.views.items()})


def deploy_by_an_older_lamina(
    deployed: Deployed, compiler: Callable[[Catalog], Catalog] = by_an_older_compiler, **files: str
) -> None:
    opened = deployed.deployment
    deployed.files = {f"{name}.sql": sql.replace("{topics}", deployed.prefix) for name, sql in files.items()}
    catalog = compile_catalog(deployed.files)
    topics = {
        name: source_topics.ensure_topic(opened.brokers, source, catalog, opened.tell)
        for name, source in catalog.sources.items()
    }
    with opened.database.begin() as connection:
        deploying.apply(connection, Target(deployed.files, compiler(catalog), topics))


def actions(opened: Deployment, files: dict[str, str]) -> dict[str, str]:
    return {change.name: change.action for change in applying.plan(opened, files)}


def test_a_catalog_of_an_older_lamina_is_streamed_rebuilt_and_checked(deployed: Deployed) -> None:
    deploy_by_an_older_lamina(deployed, sales=SALES, totals=TOTALS, largest=LARGEST)
    deployed.send("sales", {"country": "NL", "amount": 3}, {"country": "BE", "amount": 4}, b"no JSON")
    with deployed.speed():  # this Lamina's, during all steps
        deployed.wait_for("sales")
        assert deployed.rows("SELECT * FROM totals ORDER BY country") == [("BE", 1, 4), ("NL", 1, 3)]
        upgraded(deployed)
    deployed.check()


def upgraded(deployed: Deployed) -> None:
    """Plans, applies and rebuilds a catalog of an older Lamina with this Lamina."""
    planned = applying.plan(deployed.deployment, deployed.files)
    kept = {change.name: change.effect for change in planned if change.action == "keep"}
    assert kept == {"totals": "this Lamina would compile it differently (partial, cells, merge); it stays as deployed"}
    assert actions(deployed.deployment, deployed.files)["largest"] == "nothing"

    applying.apply(deployed.deployment, deployed.files)
    with deployed.deployment.database.begin() as connection:
        assert deployed_catalog(connection).views["totals"].version == "0ldc0de1"
    deployed.send("sales", {"country": "NL", "amount": 5})
    deployed.wait_for("sales")
    proofs = deployed.deployment.batch.rebuild()
    assert [(proof.cells, proof.differing) for proof in proofs] == [(2, 0)]
    assert deployed.rows("SELECT * FROM largest") == [("NL", 2, 8)]


def test_a_view_of_an_older_lamina_keeps_its_cells_if_only_other_texts_differ(deployed: Deployed) -> None:
    def older(catalog: Catalog) -> Catalog:
        totals, largest = catalog.views["totals"], catalog.views["largest"]
        (table,) = totals.cell_tables
        inputs = replace(
            table,
            partial_inputs=tuple(replace(partial, spark=f"({partial.spark})") for partial in table.partial_inputs),
        )
        views = {
            "totals": replace(totals, cell_tables=(inputs,)),
            "largest": replace(largest, final=f"{largest.final}\n"),
        }
        return Catalog(catalog.sources, views)

    deploy_by_an_older_lamina(deployed, older, sales=SALES, totals=TOTALS, largest=LARGEST)
    planned = {
        change.name: (change.action, change.effect) for change in applying.plan(deployed.deployment, deployed.files)
    }
    kept = "this Lamina would compile it differently ({}); it stays as deployed"
    assert planned["totals"] == ("keep", kept.format("how records are read"))
    assert planned["largest"] == ("keep", kept.format("final"))
    more = TOTALS.replace("AS amount FROM", "AS amount, count(*) + 1 AS more FROM")
    applying.apply(deployed.deployment, {**deployed.files, "totals.sql": more})
    with deployed.deployment.database.begin() as connection:
        (table,) = deployed_catalog(connection).views["totals"].cell_tables
    assert table.partial_inputs[0].spark.startswith("("), "all computations of a version use the same texts"


def test_a_changed_declaration_is_not_mistaken_for_a_changed_compilation(deployed: Deployed) -> None:
    deploy_by_an_older_lamina(deployed, sales=SALES, totals=TOTALS)
    other = TOTALS.replace("sum(amount)", "max(amount)")
    files = {**deployed.files, "totals.sql": other}
    deployed.send("sales", {"country": "NL", "amount": 3}, {"country": "NL", "amount": 4})
    deployed.catch_up()
    assert actions(deployed.deployment, files)["totals"] == "reprocess"
    applying.apply(deployed.deployment, files)
    deployed.send("sales", {"country": "NL", "amount": 2})
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM totals") == [("NL", 3, 4)]
    applying.roll_back(deployed.deployment, "totals")
    assert deployed.rows("SELECT * FROM totals") == [("NL", 3, 9)], "the older Lamina's version, with its own texts"


def test_a_view_is_fed_by_the_parse_of_its_version(deployed: Deployed) -> None:
    def older(catalog: Catalog) -> Catalog:
        sales = catalog.sources["sales"]
        loud = replace(sales, parse=f"SELECT * EXCEPT (country), upper(country) AS country FROM ({sales.parse})")
        return Catalog({"sales": loud}, by_an_older_compiler(catalog).views)

    deploy_by_an_older_lamina(deployed, older, sales=SALES, totals=TOTALS)
    deployed.send("sales", {"country": "nl", "amount": 3})
    deployed.catch_up()
    applying.apply(deployed.deployment, deployed.files)
    assert deployed.rows("SELECT * FROM totals") == [("NL", 1, 3)], "the deployed parse stays while no view is computed"

    files = {
        **deployed.files,
        "most.sql": "CREATE VIEW most AS SELECT country, max(amount) AS n FROM sales GROUP BY 1;",
    }
    applying.apply(deployed.deployment, files)
    deployed.send("sales", {"country": "nl", "amount": 4})
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM most") == [("nl", 4)]
    assert deployed.rows("SELECT * FROM totals") == [("nl", 2, 7)]
    commented = SALES.replace("country STRING", "country STRING COMMENT 'where'").replace("{topics}", deployed.prefix)
    assert set(actions(deployed.deployment, {**files, "sales.sql": commented}).values()) <= {"nothing", "update"}
    with pytest.raises(LaminaError, match="cannot be rolled back alone: its source was declared differently"):
        applying.roll_back(deployed.deployment, "totals")
    deployed.check()


def test_later_views_read_a_unique_stream_by_the_declaration_its_ids_were_claimed_with(deployed: Deployed) -> None:
    """An older Lamina may have rejected a record that this one counts. Then its id is unknown."""

    def older(catalog: Catalog) -> Catalog:
        sales = catalog.sources["sales"]
        bad = "CASE WHEN amount > 9 THEN 'too much' ELSE kafka_error END AS kafka_error"
        return Catalog(
            {"sales": replace(sales, parse=f"SELECT * EXCEPT (kafka_error), {bad} FROM ({sales.parse})")},
            by_an_older_compiler(catalog).views,
        )

    def sale(id: int, amount: int) -> dict[str, object]:
        return {"id": id, "country": "NL", "amount": amount}

    unique = SALES.replace("(country STRING", "(id BIGINT UNIQUE, country STRING")
    deploy_by_an_older_lamina(deployed, older, sales=unique, totals=TOTALS)
    deployed.send("sales", sale(1, 3), sale(1, 3), sale(2, 10))
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM totals") == [("NL", 1, 3)]
    deployed.apply(most="CREATE VIEW most AS SELECT country, count(*) AS n, max(amount) AS most FROM sales GROUP BY 1;")
    deployed.send("sales", sale(1, 3), sale(2, 10), sale(3, 4))
    deployed.catch_up()
    for _ in range(2):
        assert deployed.rows("SELECT * FROM totals") == [("NL", 2, 7)]
        assert deployed.rows("SELECT * FROM most") == [("NL", 2, 4)]
        deployed.check()
        assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}


def test_the_deployed_texts_are_the_compiled_ones(deployed: Deployed) -> None:
    deployed.apply(sales=SALES, totals=TOTALS, largest=LARGEST)
    assert deployed.deployment.deployed() == compile_catalog(deployed.files)
