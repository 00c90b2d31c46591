"""Tools can read the files of `lamina generate`, and readers can run the SQL in them."""

from __future__ import annotations

import functools
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from click.testing import CliRunner, Result

from lamina.authoring.catalog_files import catalog_files
from lamina.cli import lamina
from lamina.generating import dbt, dictionary, grafana, superset
from lamina.generating.view_facts import Address, chart
from lamina.generating.yaml_text import yaml as as_yaml
from lamina.operations import applying
from tests.fix_lamina import Deployed
from tests.fix_services import REPOSITORY
from tests.fix_shop import WITH_CUSTOMERS, rows_by_view
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog

EXAMPLES = [REPOSITORY / "examples" / name for name in ("clicks", "online_retail", "shop", "web_access")]

ADDRESS = Address.of("postgresql://ann:secret@db:5433/lamina?sslmode=require")

HOSTILE = 'a | b `c` {{ d }} {% e %} {# f #} <script>"g": # no:\tx\u2028y'

STRANGE = f"""
CREATE TABLE clicks (page STRING, `Größe` BIGINT, `order` STRING) USING kafka OPTIONS (topic 'clicks', format 'json');
CREATE VIEW pages (page COMMENT '{HOSTILE}', `Größe`, `n of`) COMMENT '{HOSTILE}' AS
SELECT page, `Größe`, count(*) FROM clicks GROUP BY page, `Größe`;
ALTER VIEW pages ADD CONSTRAINT braces CHECK (page <> '{{{{ x }}}}') NOT ENFORCED;
CREATE VIEW by_order (`order`, `n of`) AS SELECT `order`, count(*) FROM clicks GROUP BY `order`;
CREATE VIEW whole AS SELECT count(*) AS n, avg(`Größe`) AS middle FROM clicks;
"""


def generate(*words: str) -> Result:
    return CliRunner().invoke(lamina, ["generate", *words])


@functools.cache
def example(folder: Path) -> Catalog:
    return compile_catalog(catalog_files(folder))


def sources(catalog: Catalog) -> list[dict[str, Any]]:
    [source] = yaml.safe_load(dbt.project(catalog)[dbt.SOURCES])["sources"]
    tables: list[dict[str, Any]] = source["tables"]
    return tables


def rendered(text: str) -> str:
    """The text after dbt's Jinja has rendered it."""
    template = jinja2.Template(text)
    return str(template.render(config=lambda **_: "", source=lambda schema, name: f'"{schema}"."{name}"'))


def panels(catalog: Catalog) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(grafana.board(catalog))["panels"]
    return panels


def without_macros(statement: str) -> str:
    """The SELECT that Grafana sends for a board that shows ten years."""
    between = r"\1 BETWEEN '2020-01-01T00:00:00Z' AND '2030-01-01T00:00:00Z'"
    return re.sub(r"\$__timeFilter\((.*?)\)", between, statement)


def statements_of_superset(catalog: Catalog) -> Iterator[str]:
    """The SELECTs that Superset builds for the charts."""
    files = superset.files(catalog, ADDRESS)
    datasets = {file["uuid"]: file for name, file in files.items() if name.startswith("datasets/")}
    for name, file in files.items():
        if not name.startswith("charts/"):
            continue
        dataset, form = datasets[file["dataset_uuid"]], file["params"]
        metrics = {metric["metric_name"]: metric["expression"] for metric in dataset["metrics"]}
        columns = form.get("all_columns") or [form["x_axis"], *form["groupby"]]
        shown = [f'"{column}"' for column in columns]
        selected = ", ".join((*shown, *(metrics[metric] for metric in form.get("metrics", ()))))
        grouped = f" GROUP BY {', '.join(shown)}" if "metrics" in form else ""
        yield f'SELECT {selected} FROM {dataset["schema"]}."{dataset["table_name"]}"{grouped}'


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_every_kind_is_generated_from_an_example(folder: Path, tmp_path: Path) -> None:
    catalog = example(folder)
    for kind in ("markdown", "dbt", "grafana", "superset"):
        to = tmp_path / kind
        to.mkdir()
        database = ["--database", "postgresql://ann:secret@db/lamina"]
        done = generate(kind, "--catalog", str(folder), "--output", str(to), *database)
        assert done.exit_code == 0, done.output
        written = [path for path in to.rglob("*") if path.is_file()]
        assert {str(path) for path in written} == set(done.stdout.split())
        assert not [path for path in written if b"secret" in path.read_bytes()]
    dictionary_of = (tmp_path / "markdown" / dictionary.FILE).read_text()
    for view in catalog.views.values():
        assert f"### {view.name}\n" in dictionary_of
        assert all(f"| `{column.name}` | {column.postgres} |" in dictionary_of for column in view.columns)
    listed = {table["name"]: table for table in sources(catalog)}
    assert {name: [column["name"] for column in table["columns"]] for name, table in listed.items()} == {
        view.name: [column.name for column in view.columns] for view in catalog.views.values()
    }
    assert len(panels(catalog)) == len(catalog.views)
    with zipfile.ZipFile(tmp_path / "superset" / superset.FILE) as bundle:
        read = {name.removeprefix("lamina/"): yaml.safe_load(bundle.read(name)) for name in bundle.namelist()}
    assert read == superset.files(catalog, Address.of("postgresql://ann@db/lamina"))


def test_a_chart_is_drawn_along_the_columns_that_identify_its_rows() -> None:
    drawn = {}
    for folder in EXAMPLES:
        catalog = example(folder)
        for view in catalog.views.values():
            chart_of_view = chart(catalog, view)
            names = [column.name for column in view.columns]
            if chart_of_view is not None:
                lines_of = () if chart_of_view.category is None else (names[chart_of_view.category],)
                drawn[view.name] = (
                    chart_of_view.form,
                    names[chart_of_view.along],
                    *lines_of,
                    names[chart_of_view.numbers[0]],
                )
    assert drawn == {
        "average_basket": ("bars", "country", "invoices"),
        "bestsellers": ("bars", "description", "pieces"),
        "by_city": ("bars", "city", "customers"),
        "cancellations": ("bars", "country", "lines"),
        "customers": ("bars", "country", "customers"),
        "in_euro": ("bars", "currency", "orders"),
        "last_hour": ("lines", "until", "page_views"),
        "local_buyers_now": ("lines", "hour", "buyers"),
        "local_buyers_then": ("lines", "hour", "buyers"),
        "revenue": ("lines", "hour", "country", "lines"),
        "sizes": ("bars", "method", "answers"),
        "top_products": ("lines", "day", "stock_code", "pieces"),
        "top_words": ("lines", "day", "word", "searches"),
        "traffic": ("lines", "minute", "requests"),
        "visits": ("lines", "began", "ip", "pages"),
        "words": ("bars", "word", "searches"),
    }


def test_dbt_tests_the_keys_and_checks_of_the_catalog() -> None:
    listed = {table["name"]: table for table in sources(example(REPOSITORY / "examples" / "shop"))}
    columns = {column["name"]: column.get("data_tests") for column in listed["in_euro"]["columns"]}
    assert columns == {"currency": ["unique"], "orders": ["not_null"], "amount": None}
    assert listed["baskets"]["data_tests"] == [{"unique_rows": {"arguments": {"columns": ["began", "city"]}}}]
    assert "WHERE view = 'by_city'" in listed["by_city"]["config"]["loaded_at_query"]
    tests = {name for name in dbt.project(example(REPOSITORY / "examples" / "shop")) if name.startswith("tests/")}
    assert "tests/in_euro__known_currency.sql" in tests


def test_no_text_of_a_catalog_becomes_markup() -> None:
    catalog = compile_catalog({"c.sql": STRANGE})
    by_order, pages, whole = sorted(sources(catalog), key=lambda table: str(table["name"]))
    assert [column.get("quote") for column in by_order["columns"]] == [True, True]
    assert HOSTILE in rendered(pages["description"])
    assert rendered(pages["columns"][0]["description"]) == HOSTILE
    assert [column.get("quote") for column in pages["columns"]] == [None, True, True]
    assert whole["data_tests"] == [{"unique_rows": {"arguments": {"columns": []}}}]
    [check] = [text for name, text in dbt.project(catalog).items() if name == "tests/pages__braces.sql"]
    assert "'{{ x }}'" in rendered(check)
    text = dictionary.markdown(catalog)
    assert "<script>" not in text
    assert len({line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("| `page")}) == 2
    files = superset.files(catalog, ADDRESS)
    assert {name: yaml.safe_load(as_yaml(content)) for name, content in files.items()} == files
    assert [panel["title"] for panel in panels(catalog)] == ["by_order", "pages", "whole"]


def test_every_statement_runs_as_a_reader(deployed: Deployed, tmp_path: Path) -> None:
    for folder in EXAMPLES:
        files = catalog_files(deployed.copied(folder, tmp_path / folder.name))
        applying.apply(deployed.deployment, files, prune=True, allow_break=True)
        if folder.name == "shop":
            _send_the_shop(deployed)
        _run_all(deployed)
        if folder.name == "shop":
            deployed.send("customers", (b'{"id": 9}', {"city": None, "moved_at": "2026-03-01T00:00:00Z"}))
            deployed.catch_up()
            assert [name for name, failing in _failing(deployed) if failing] == ["tests/customers__lives_somewhere.sql"]
    deployed.apply_break(strange=STRANGE.replace("topic 'clicks'", "topic '{topics}_strange'"))
    _run_all(deployed)


def _send_the_shop(deployed: Deployed) -> None:
    """Sends the example's records. Three of its sources are tables, each with a key of its own."""
    keys: dict[str, Callable[[dict[str, Any]], bytes]] = {
        "customers": lambda record: json.dumps({"id": record["id"]}).encode(),
        "goods": lambda record: json.dumps({"id": record["id"]}).encode(),
        "rates": lambda record: record["currency"].encode(),
    }
    for source in deployed.deployment.deployed().sources:
        lines = (REPOSITORY / "examples" / "shop" / "data" / f"{source}.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        deployed.send(source, *((keys[source](record), record) if source in keys else record for record in records))
    deployed.catch_up()
    assert rows_by_view(deployed) == WITH_CUSTOMERS


def _run_all(deployed: Deployed) -> None:
    """Runs the SELECTs of dashboards and of dbt's tests. No test may find a row."""
    catalog = deployed.deployment.deployed()
    for panel in panels(catalog):
        deployed.rows(without_macros(panel["targets"][0]["rawSql"]))
    for statement in statements_of_superset(catalog):
        deployed.rows(statement)
    for table in sources(catalog):
        [[_]] = deployed.rows(rendered(table["config"]["loaded_at_query"]))
    assert [name for name, failing in _failing(deployed) if failing] == []


def _failing(deployed: Deployed) -> Iterator[tuple[str, int]]:
    """The failing rows of each of dbt's singular tests."""
    for name, text in dbt.project(deployed.deployment.deployed()).items():
        if name.startswith("tests/") and "/generic/" not in name:
            [[failing]] = deployed.rows(f"SELECT count(*) FROM ({rendered(text)}) AS failing")
            yield name, failing


def test_wrong_usage_is_refused_and_overwrites_nothing(tmp_path: Path) -> None:
    shop = ["--catalog", str(REPOSITORY / "examples" / "shop")]
    file = tmp_path / "dictionary.md"
    file.write_text("mine")
    there = generate("markdown", *shop, "--output", str(file))
    assert (there.exit_code, file.read_text()) == (1, "mine")
    assert "--force" in there.stderr
    assert generate("markdown", *shop, "--output", str(file), "--force").exit_code == 0
    assert file.read_text() == generate("markdown", *shop).stdout
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "c.sql").write_text(STRANGE.partition(";")[0] + ";")
    refused = {
        ("pdf", *shop): (2, "'pdf' is not one of"),
        ("dbt", *shop): (1, "--output"),
        ("superset", *shop, "--database", "postgresql://a@b/c"): (1, "--output"),
        ("markdown", "--catalog", str(tmp_path / "empty")): (1, "The catalog has no view"),
        ("markdown", *shop, "--output", str(file / "below" / "a.md")): (1, "cannot be written"),
        ("grafana", *shop, "--output", str(tmp_path / "g"), "--database", "mysql://a@b/c"): (1, "--database"),
    }
    for words, (code, says) in refused.items():
        done = generate(*words)
        assert (done.exit_code, says in done.stderr) == (code, True), (words, done.stderr)
    record = json.loads(generate("markdown", *shop, "--json").stdout)
    assert record == {"file": dictionary.FILE, "content": file.read_text()}


def test_a_dbt_project_is_created_once_and_never_overwritten(tmp_path: Path) -> None:
    shop = ["--catalog", str(REPOSITORY / "examples" / "shop"), "--output", str(tmp_path)]
    address = ["--database", "postgresql://dbt:secret@db:5433/views?sslmode=require"]
    assert generate("dbt", *shop, *address).exit_code == 0
    profile = yaml.safe_load((tmp_path / "profiles.yml").read_text())["lamina"]
    target = profile["outputs"][profile["target"]]
    assert yaml.safe_load((tmp_path / dbt.PROJECT).read_text())["profile"] == "lamina"
    assert (target["host"], target["port"], target["user"], target["dbname"]) == ("db", 5433, "dbt", "views")
    assert (target["sslmode"], target["password"]) == ("require", "{{ env_var('LAMINA_DBT_PASSWORD') }}")
    for name in (dbt.PROJECT, "profiles.yml"):
        (tmp_path / name).write_text("mine")
    assert generate("dbt", *shop, *address, "--force").exit_code == 0
    assert [(tmp_path / name).read_text() for name in (dbt.PROJECT, "profiles.yml")] == ["mine", "mine"]


def test_generated_addresses_hold_no_password() -> None:
    address = Address.of("postgresql://an%40n:secret@[::1]:5433/la%20mina?sslmode=require")
    catalog = example(REPOSITORY / "examples" / "shop")
    uri = superset.files(catalog, address)["databases/Lamina.yaml"]["sqlalchemy_uri"]
    assert uri == "postgresql+psycopg2://an%40n@[::1]:5433/la%20mina?sslmode=require"
    files = grafana.provisioning(catalog, address)
    [source] = yaml.safe_load(files["provisioning/datasources/lamina.yaml"])["datasources"]
    assert (source["url"], source["user"], source["jsonData"]["database"]) == ("[::1]:5433", "an@n", "la mina")
    assert source["jsonData"]["sslmode"] == "require"


def test_bundles_are_reproducible() -> None:
    catalog = example(REPOSITORY / "examples" / "shop")
    first = superset.bundle(catalog, ADDRESS)
    assert superset.bundle(catalog, ADDRESS) == first
    assert zipfile.ZipFile(io.BytesIO(first)).testzip() is None


def test_checks_with_similar_names_become_separate_tests_and_keep_their_literals() -> None:
    sql = """
        CREATE TABLE s (k STRING, n INT) USING kafka OPTIONS (topic 's', format 'json');
        CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k;
        ALTER VIEW v ADD CONSTRAINT `n > 0` CHECK (n > 0);
        ALTER VIEW v ADD CONSTRAINT `n < 0` CHECK (k <> 'published.v' OR n < 0);
    """
    files = dbt.project(compile_catalog({"v.sql": sql}))
    assert {name for name in files if name.startswith("tests/v")} == {"tests/v__n___0.sql", "tests/v__n___0_2.sql"}
    [less] = [text for text in files.values() if "NOT (k <> 'published.v' OR n < 0)" in text]
    assert "FROM analytics.v" in less
