"""Kafka and Postgres take the settings of docker-compose.yml and answer its health checks."""

from __future__ import annotations

import subprocess
import urllib.request

import psycopg2
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from tests.fix_stack import Stack, broker_properties


def properties(stack: Stack) -> dict[str, str]:
    return broker_properties(stack.services["kafka"]["environment"])


def test_kafka_knows_every_setting(stack: Stack, kafka_admin: KafkaAdminClient) -> None:
    answer = kafka_admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")
    # The settings of one listener are not the broker's. tests/master_log/test_login.py logs in by them.
    settings = {name for name in properties(stack) if not name.startswith("listener.name.")}
    assert settings <= set(answer["broker"]["1"])


def test_kafka_accepts_its_settings_together(stack: Stack) -> None:
    file = stack.home / "server.properties"
    values = {**properties(stack), "log.dirs": str(stack.home / "kafka-of-the-container")}
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    java, jars = stack.home / "java" / "bin" / "java", stack.home / "jars" / "kafka"
    words = ["kafka.tools.StorageTool", "format", "--cluster-id", "5L6g3nShTleMCtKyyX86sw", "--config", str(file)]
    done = subprocess.run([java, "-cp", f"{jars}/*", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("service", ["kafka", "postgres"])
def test_a_running_service_is_healthy(stack: Stack, service: str) -> None:
    stack.run(service, *stack.health(service))


def test_the_console_answers(stack: Stack) -> None:
    stack.start("console")
    try:
        stack.healthy("console")
        with urllib.request.urlopen(f"http://{stack.places['localhost:8765']}/") as answer:
            assert "What needs attention" in answer.read().decode()
    finally:
        stack.stop("console")


def test_grafana_and_superset_find_their_files(stack: Stack) -> None:
    for _ in range(2):  # a later start writes them again
        stack.run("dashboards")
    grafana, superset = stack.services["grafana"], stack.services["superset"]
    [mounted] = [volume.split(":")[1] for volume in grafana["volumes"] if volume.startswith("dashboards:")]
    files = {
        f"{mounted}/{path.relative_to(stack.home / 'dashboards')}" for path in stack.home.glob("dashboards/**/*.*")
    }
    provisioning = grafana["environment"]["GF_PATHS_PROVISIONING"]
    assert {f"{provisioning}/datasources/lamina.yaml", f"{provisioning}/dashboards/lamina.yaml"} < files
    provider = (stack.home / "dashboards" / "provisioning" / "dashboards" / "lamina.yaml").read_text()
    assert f'path: "{mounted}"' in provider
    assert any(path.endswith("/lamina_views.json") for path in files)
    assert (stack.home / "dashboards" / "lamina.zip").exists()
    assert f"dashboards:{superset['environment']['DASHBOARDS']}:ro" in superset["volumes"]
    secret = stack.services["postgres"]["environment"]["ANALYST_PASSWORD"]
    assert not any(secret in path.read_text() for path in stack.home.glob("dashboards/**/*.yaml"))


def test_postgres_knows_its_settings(stack: Stack) -> None:
    program, *words = stack.command("postgres")
    assert program == "postgres"
    assert words[::2] == ["-c"] * (len(words) // 2)
    for word in words[1::2]:
        name, value = word.split("=")
        assert stack.query("lamina", f"SELECT count(*) FROM pg_settings WHERE name = '{name}'") == [(1,)]
        assert stack.query(
            "lamina", f"SELECT '{value}' ~ '^([0-9]+(MB|GB)?|on|off|/certificates/.*|/etc/lamina/pg_hba.conf)$'"
        ) == [(True,)]


def test_no_role_connects_to_another_roles_database(stack: Stack) -> None:
    environment = stack.services["postgres"]["environment"]
    address = stack.places["postgres:5432"]
    for role, secret, database in (
        ("analyst", "ANALYST_PASSWORD", "airflow"),
        ("airflow", "AIRFLOW_DATABASE_PASSWORD", "lamina"),
        ("lamina", "LAMINA_PASSWORD", "airflow"),
    ):
        with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
            psycopg2.connect(f"postgresql://{role}:{environment[secret]}@{address}/{database}")
