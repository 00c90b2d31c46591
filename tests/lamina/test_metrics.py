"""The metrics are those of the deployment, and the files made from their table are up to date."""

from __future__ import annotations

import json
import re
import urllib.request
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from prometheus_client import start_http_server

from lamina.operations.deployment import Deployment
from lamina.reports.metric_files import FILES
from lamina.reports.metrics import EVERY, UP, MetricCollector, registry
from serving_layer.postgres.states import Step
from serving_layer.promise.rebuilds import STEPS
from tests.fix_lamina import Deployed
from tests.fix_services import REPOSITORY
from tests.lamina.prometheus import every_metric

CLICKS = """
CREATE TABLE clicks (id BIGINT, page STRING, UNIQUE (id)) USING kafka OPTIONS (topic '{topics}_clicks', format 'json')
TBLPROPERTIES ('partitions' = '1');
CREATE VIEW pages TBLPROPERTIES ('fresh_within' = '1 hour') AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
ALTER VIEW pages ADD CONSTRAINT no_home CHECK (page <> 'home') NOT ENFORCED;
"""

Values = dict[tuple[str, ...], float]


def samples(opened: Deployment) -> Values:
    return {(sample.metric, *sample.labels): sample.value for sample in MetricCollector(opened).samples()}


def test_metrics_equal_the_deployments_state(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    deployed.send("clicks", {"id": 1, "page": "home"}, {"id": 2, "page": "shop"}, {"id": 2, "page": "shop"}, b"{")
    assert samples(deployed.deployment)["lamina_source_lag_offsets", "clicks", "0"] == 4
    deployed.catch_up()
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    with deployed.deployment.database.begin() as connection:
        minute = "date_trunc('minute', clock_timestamp()) - interval '2 min'"
        noted = f"INSERT INTO lamina.freshness_target VALUES ('pages', {minute}, {minute}, 1::bit(1440))"
        connection.exec_driver_sql(f"{noted} ON CONFLICT DO NOTHING")
    numbers = samples(deployed.deployment)
    outcomes = {key[-1]: value for key, value in numbers.items() if key[0] == "lamina_source_records_total"}
    assert outcomes == {"counted": 2, "bad": 1, "bad_field": 0, "duplicate": 1, "skipped": 0}
    expected = {
        ("lamina_postgres_up",): 1,
        ("lamina_kafka_up",): 1,
        ("lamina_source_lag_offsets", "clicks", "0"): 0,
        ("lamina_source_next_offset", "clicks", "0"): 4,
        ("lamina_archive_lag_offsets", "clicks", "0"): 0,
        ("lamina_archive_headroom_offsets", "clicks", "0"): 4,
        ("lamina_source_stopped", "clicks"): 0,
        ("lamina_proof_compared_cells", "pages"): 2,
        ("lamina_proof_differing_cells", "pages"): 0,
        ("lamina_view_held", "pages"): 0,
        ("lamina_view_fresh_within_seconds", "pages"): 3600,
        ("lamina_rebuild_failed",): 0,
    }
    assert {key: numbers.get(key) for key in expected} == expected
    assert numbers["lamina_view_seconds_behind", "pages"] < 600
    assert numbers["lamina_view_bytes", "pages"] > 0
    steps = {key[1:]: value for key, value in numbers.items() if key[0] == "lamina_rebuild_step_seconds"}
    assert steps.keys() == {(step, "pages" if step is Step.COMPUTE else "") for step in STEPS}
    assert sum(steps.values()) == pytest.approx(numbers["lamina_rebuild_seconds",], abs=0.1)
    assert 0 < numbers["lamina_view_fresh_ratio", "pages", "day"] <= 1
    names = {metric.name for metric in EVERY}
    assert {key[0] for key in numbers} <= names
    assert names - {key[0] for key in numbers} == {"lamina_check_failing"}  # no check is declared as enforced


def test_a_dropped_source_has_no_metrics(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS, taps=CLICKS.replace("clicks", "taps").replace("pages", "screens"))
    deployed.send("taps", {"id": 1, "page": "home"})
    deployed.catch_up()
    assert ("lamina_source_next_offset", "taps", "0") in samples(deployed.deployment)
    del deployed.files["taps.sql"]
    deployed.apply()
    numbers = samples(deployed.deployment)
    assert ("lamina_source_next_offset", "clicks", "0") in numbers
    assert not [key for key in numbers if {"taps", "screens"} & set(key)]


def test_the_cells_of_a_small_view_are_counted_before_postgres_analyzes_it(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    with deployed.deployment.database.begin() as connection:
        place = connection.exec_driver_sql("SELECT place FROM lamina.generation_cells").scalar_one()
        connection.exec_driver_sql(f"ANALYZE {place}")
    deployed.send("clicks", {"id": 1, "page": "home"}, {"id": 2, "page": "shop"})
    deployed.catch_up()

    number = "lamina_view_cells", "pages"
    deployed.until(lambda: samples(deployed.deployment)[number] == 2, "both cells are counted")


def test_prometheus_parses_the_served_metrics(deployed: Deployed) -> None:
    deployed.apply(clicks=CLICKS)
    server, thread = start_http_server(0, "127.0.0.1", registry(deployed.deployment))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            served = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert every_metric(served)


def test_the_oldest_snapshot_is_measured(deployed: Deployed) -> None:
    reader = psycopg2.connect(deployed.deployment.settings.reader())
    try:
        reader.set_session(isolation_level="REPEATABLE READ")
        with reader.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert samples(deployed.deployment)["lamina_oldest_snapshot_seconds",] > 0
    finally:
        reader.close()


@pytest.mark.parametrize("kafka_is_up", [True, False])
def test_an_unavailable_service_reports_up_0(deployed: Deployed, kafka_is_up: bool) -> None:
    settings = deployed.deployment.settings
    kafka = settings.kafka if kafka_is_up else "127.0.0.1:1"
    away = replace(settings, postgres="postgresql://nobody:x@127.0.0.1:1/x", kafka=kafka)
    opened = Deployment(away, tell=lambda line: None)
    try:
        numbers = samples(opened)
    finally:
        opened.close()
    assert (numbers["lamina_postgres_up",], numbers["lamina_kafka_up",]) == (0, kafka_is_up)
    assert {key[0] for key in numbers} == {metric.name for metric in UP}


def test_rules_dashboard_and_document_are_generated_from_the_metrics() -> None:
    for name, text_of in FILES.items():
        assert (REPOSITORY / name).read_text() == text_of(), f"run python -m lamina.reports.metric_files for {name}"


def test_every_alert_and_panel_queries_existing_metrics() -> None:
    names = {metric.name for metric in EVERY}
    rules = json.loads(Path(REPOSITORY / "deploy/prometheus/lamina.rules.json").read_text())["groups"][0]["rules"]
    panels = json.loads(Path(REPOSITORY / "deploy/grafana/lamina.json").read_text())["panels"]
    queries = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    assert {name for query in queries for name in re.findall(r"lamina_\w+", query)} == names - {"lamina_build_info"}
