"""`lamina test` computes the rows of a view's test in every way, and shows differences."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lamina.testing.fixtures import fixture
from lamina.testing.reruns import Reruns
from lamina.testing.results import Comparison
from lamina.testing.runner import Runner
from lamina.testing.scratch import Scratch, scratch
from tests.fix_lamina import CommandLine
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

CATALOG = compile_catalog(
    {
        "catalog.sql": """
        CREATE TABLE orders (id BIGINT, country STRING, amount DECIMAL(12, 2), placed_at TIMESTAMP)
        USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'placed_at');
        CREATE TABLE countries (country STRING PRIMARY KEY, name STRING)
        USING kafka OPTIONS (topic 'countries', format 'json', key_format 'string');
        CREATE VIEW revenue (hour, country, orders, amount) AS
        SELECT window(placed_at, '1 hour').start, country, count(*), sum(amount)
        FROM orders GROUP BY window(placed_at, '1 hour'), country;
        CREATE VIEW named AS SELECT r.hour, c.name, r.amount FROM revenue r JOIN countries c ON c.country = r.country;
        CREATE TABLE calls (id STRING, n INT, UNIQUE (id)) USING kafka OPTIONS (topic 'calls', format 'json');
        CREATE VIEW called AS SELECT count(*) AS calls, sum(n) AS n FROM calls;
        CREATE VIEW lately TBLPROPERTIES ('retain' = '90 days') AS
        SELECT date_trunc('DAY', placed_at) AS day, count(*) AS orders FROM orders GROUP BY ALL;
        CREATE VIEW latest AS SELECT country, last(id) AS id FROM orders GROUP BY country;
        """
    }
)

RIGHT = """
-- Two orders of one hour are one row. A deleted country has no name.

-- given orders
{"id": 1, "country": "FR", "amount": "10.00", "placed_at": "2026-03-01T10:05:00Z"}
{"id": 2, "country": "FR", "amount": "2.50", "placed_at": "2026-03-01T10:55:00Z"}
{"id": 3, "country": "JP", "amount": "1.00", "placed_at": "2026-03-01T11:00:00Z"}
{"id": 4, "country": "JP", "amount": "no number", "placed_at": "2026-03-01T11:00:00Z"}

-- given countries
{"country": "FR", "name": "France"}
{"country": "JP", "name": "Japan"}
{"country": "JP", "kafka_deleted": true}

-- given calls
{"id": "a", "n": 1}
{"id": "b", "n": 2}
{"id": "a", "n": 1}

-- expect called
{"calls": 2, "n": 3}

-- expect revenue
{"hour": "2026-03-01 11:00Z", "country": "JP", "orders": 1, "amount": 1}
{"hour": "2026-03-01T10:00:00Z", "country": "FR", "orders": 2, "amount": "12.50"}

-- expect named
{"name": "France", "amount": 12.5}

-- expect lately
{"day": "2026-03-01T00:00:00Z", "orders": 3}

-- expect latest
{"country": "FR", "id": 2}
{"country": "JP", "id": 3}
"""


@pytest.fixture(scope="module")
def server(run_home: Path) -> Iterator[Scratch]:
    with scratch(run_home) as server:
        yield server


def test_a_scratch_server_can_be_created_again(run_home: Path) -> None:
    """For example, if the tests of this file run in two processes."""
    for _ in range(2):
        with scratch(run_home / "again") as server, server.database() as (database, _), database.begin() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM lamina.query").scalar_one() == 0


def results(server: Scratch, spark: SparkSession, text: str, seed: int = 1) -> dict[tuple[str, str], Comparison]:
    compared = Runner(CATALOG, spark.newSession(), server, seed).run(fixture("a.test", text, CATALOG))
    return {(result.view, result.way): result for result in compared}


def test_every_way_yields_the_expected_rows(server: Scratch, spark_of_run: SparkSession) -> None:
    for seed in (1, 2):
        compared = results(server, spark_of_run, RIGHT, seed)
        assert {place: result.difference for place, result in compared.items() if not result.equal} == {}
        assert {view for view, way in compared if way == "live"} == {"called", "revenue", "named", "lately", "latest"}
        assert {view for view, way in compared if way == "batch"} == {"called", "revenue", "named", "lately", "latest"}
        assert [place for place, result in compared.items() if not result.left_out and place[1] == "duckdb"] == [
            ("called", "duckdb"),
            ("revenue", "duckdb"),
        ]


def test_a_topic_may_be_a_stream_and_a_table(server: Scratch, spark_of_run: SparkSession) -> None:
    catalog = compile_catalog(
        {
            "catalog.sql": """
            CREATE TABLE moves (id BIGINT, city STRING) USING kafka OPTIONS (topic 'moves', format 'json');
            CREATE TABLE homes (id BIGINT PRIMARY KEY, city STRING) USING kafka OPTIONS (topic 'moves', format 'json');
            CREATE VIEW moved AS SELECT count(*) AS n FROM moves;
            CREATE VIEW traced AS
            SELECT decode(try_element_at(filter(kafka_headers, h -> h.key = 'by'), -1).value, 'UTF-8') AS by,
              count(*) AS n
            FROM moves GROUP BY 1;
            CREATE VIEW lives AS SELECT city, count(*) AS n FROM homes GROUP BY city;
            """
        }
    )
    rows = '{"id": 1, "city": "A"}\n{"id": 1, "city": "B", "kafka_headers": {"to": null, "by": "train"}}\n\n'
    text = f"-- given moves\n{rows}-- given homes\n{rows}"
    text += '-- expect moved\n{"n": 2}\n\n-- expect lives\n{"city": "B", "n": 1}\n'
    text += '-- expect traced\n{"by": null, "n": 1}\n{"by": "train", "n": 1}\n'
    compared = Runner(catalog, spark_of_run.newSession(), server, 1).run(fixture("a.test", text, catalog))
    assert {(result.view, result.way): result.difference for result in compared if not result.equal} == {}


def test_a_number_of_a_test_keeps_every_digit(server: Scratch, spark_of_run: SparkSession) -> None:
    options = "USING kafka OPTIONS (topic 'rates', format 'json', key_format 'json')"
    declared = f"CREATE TABLE rates (id DECIMAL(38, 20) PRIMARY KEY, rate DECIMAL(38, 20)) {options};"
    view = "CREATE VIEW rated AS SELECT id, sum(rate) AS rate FROM rates GROUP BY id;"
    catalog = compile_catalog({"catalog.sql": declared + view})
    rows = '{"id": 0.12345678901234567890, "rate": 1.00000000000000000001}\n'
    rows += '{"id": 0.12345678901234567899, "rate": 1.00000000000000000002}\n'
    text = f"-- given rates\n{rows}\n-- expect rated\n{rows}"
    compared = Runner(catalog, spark_of_run.newSession(), server, 1).run(fixture("a.test", text, catalog))
    assert {(result.view, result.way): result.difference for result in compared if not result.equal} == {}


def test_differences_are_shown_row_by_row(server: Scratch, spark_of_run: SparkSession) -> None:
    wrong = RIGHT.replace('"orders": 2, "amount": "12.50"', '"orders": 2, "amount": "12.501"')
    compared = results(server, spark_of_run, wrong)
    for way in ("live", "batch"):
        assert compared["revenue", way].difference == [
            '- {"hour": "2026-03-01T10:00:00Z", "country": "FR", "orders": 2, "amount": "12.501"}',
            '+ {"hour": "2026-03-01T10:00:00Z", "country": "FR", "orders": 2, "amount": "12.50"}',
        ]
        assert compared["named", way].equal
    unexpected = results(server, spark_of_run, "-- given orders\n" + '{"country": "FR"}\n-- expect latest\n')
    assert unexpected["latest", "batch"].difference == ['+ {"country": "FR", "id": null}']


WRONG = [
    ('-- given orders\n{"id": 1\n-- expect revenue', "a.test:2: not JSON"),
    ("-- given orders\n[1]\n-- expect revenue", "a.test:2: not a JSON object"),
    ('-- given orders\n{"amuont": 1}\n-- expect revenue', "Did you mean amount?"),
    ("-- given order\n-- expect revenue", "Did you mean orders?"),
    ("-- expect revenu", "Did you mean revenue?"),
    ('{"id": 1}\n-- expect revenue', "a.test:1: a line before any"),
    ('-- given orders\n{"id": 1}', "a.test expects nothing"),
    ('-- given orders\n{"kafka_timestamp": "noon"}\n-- expect revenue', "kafka_timestamp is not a time"),
    ('-- given orders\n{"kafka_headers": {"a": 1}}\n-- expect revenue', "kafka_headers are not texts by key"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_an_unreadable_test_is_refused_with_line_and_reason(text: str, reason: str) -> None:
    with pytest.raises(LaminaError) as caught:
        fixture("a.test", text, CATALOG)
    assert reason in str(caught.value)


def test_an_expected_row_that_does_not_fit_is_refused_with_its_line(
    server: Scratch, spark_of_run: SparkSession
) -> None:
    with pytest.raises(LaminaError, match=r"a\.test:2: a value does not fit its column of revenue"):
        results(server, spark_of_run, '-- expect revenue\n{"orders": "many"}')
    with pytest.raises(LaminaError, match=r"a\.test:2: revenue has no column order"):
        results(server, spark_of_run, '-- expect revenue\n{"order": 1}')


def test_the_tests_of_the_examples_pass_without_any_service(lamina: CommandLine, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    for name in ("shop", "web_access"):
        for file in (EXAMPLES / name).rglob("*"):
            if file.suffix in (".sql", ".test"):
                (catalog / f"{name}_{file.name}").write_text(file.read_text())
    (catalog / "wrong.test").write_text('-- given goods\n{"id": 1}\n-- expect goods\n{"id": 2}\n')
    ended = lamina(
        "test", "--catalog", str(catalog), "--json", code=3, LAMINA_POSTGRES="", LAMINA_KAFKA="", LAMINA_ANALYST=""
    )
    lines = {(line["test"], line["view"], line["way"], line["result"]) for line in ended.lines()}
    assert {test for test, _, _, result in lines if result == "DIFFERENT"} == {"wrong"}
    assert ("web_access_error_rate", "traffic", "duckdb", "equal") in lines
    assert {view for _, view, _, result in lines if result == "equal"} >= {
        "by_city",
        "paid_in_time",
        "traffic",
        "failures",
    }
    assert 'wrong: goods, live: - {"id": 2}' in ended.err
    assert "--seed" in ended.err


TWO_VIEWS = """
CREATE TABLE orders (id BIGINT, country STRING) USING kafka OPTIONS (topic 'orders', format 'json');
CREATE VIEW by_country AS SELECT country, count(*) AS orders FROM orders GROUP BY country;
CREATE VIEW largest AS SELECT max(id) AS id FROM orders;
"""

FIXTURES = {
    "by_country.test": '-- given orders\n{"country": "FR"}\n-- expect by_country\n{"country": "FR", "orders": 1}\n',
    "largest.test": '-- given orders\n{"id": 1}\n{"id": 2}\n-- expect largest\n{"id": 2}\n',
}


def test_a_save_reruns_the_tests_it_may_affect_and_no_others(
    server: Scratch, spark_of_run: SparkSession, tmp_path: Path
) -> None:
    def save(name: str, text: str) -> Callable[[], object]:
        return lambda: (tmp_path / name).write_text(text)

    for name, text in {"catalog.sql": TWO_VIEWS, **FIXTURES}.items():
        save(name, text)()
    edits = [
        save("largest.test", FIXTURES["largest.test"].replace('{"id": 2}\n-- expect', '{"id": 7}\n-- expect')),
        save("catalog.sql", TWO_VIEWS.replace("max(id)", "max(it)")),
        save("catalog.sql", f"-- A comment changes no view.\n{TWO_VIEWS}"),
        save("catalog.sql", TWO_VIEWS.replace("count(*)", "count(id)")),
        save("catalog.sql", TWO_VIEWS.replace("max(id)", "min(id) + 1")),
    ]
    shown: list[object] = []

    def wait(seconds: float) -> None:
        if not edits:
            raise KeyboardInterrupt
        edits.pop(0)()

    reruns = Reruns(
        tmp_path,
        (),
        1,
        tell=lambda line: None,
        show=lambda results: shown.append({result.test: result.equal for result in results if result.way == "batch"}),
        fail=lambda error: shown.append(error.what),
        engines=lambda tell: nullcontext((spark_of_run, server)),
        wait=wait,
    )
    with pytest.raises(KeyboardInterrupt):
        reruns.run()
    unknown = shown.pop(2)
    assert "it" in str(unknown)
    assert shown == [
        {"by_country": True, "largest": True},
        {"largest": False},
        {"by_country": False},
        {"by_country": True, "largest": True},
    ]


def test_watch_runs_until_ctrl_c(lamina: CommandLine, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    for name, text in {"catalog.sql": TWO_VIEWS, **FIXTURES}.items():
        (catalog / name).write_text(text)
    process = lamina.start(
        "test", "--watch", "by_country", "--catalog", str(catalog), LAMINA_POSTGRES="", LAMINA_KAFKA=""
    )
    assert process.stderr is not None
    narration = []
    for line in process.stderr:
        narration.append(line)
        if "waiting for the next save" not in line:
            continue
        if sum("waiting for the next save" in line for line in narration) == 2:
            break
        (catalog / "by_country.test").write_text(FIXTURES["by_country.test"].replace('"orders": 1', '"orders": 2'))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, narration
    assert [line.split()[-1] for line in out.splitlines() if " live " in line] == ["equal", "DIFFERENT"]
