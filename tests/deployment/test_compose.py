"""docker-compose.yml declares what its services need. Nothing is started."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from lamina.configuration.settings import Settings
from lamina.services import postgres
from tests.fix_services import REPOSITORY
from tests.fix_stack import COMPOSE, VARIABLE, NotSet, broker_properties, services_of

EXAMPLE = REPOSITORY / ".env.example"
SECRETS = {
    "POSTGRES_PASSWORD",
    "LAMINA_PASSWORD",
    "ANALYST_PASSWORD",
    "AIRFLOW_DATABASE_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_SECRET",
    "AIRFLOW_FERNET_KEY",
    "KAFKA_PASSWORD",
}
SECRETS_OF_DASHBOARDS = {"DASHBOARDS_PASSWORD", "SUPERSET_SECRET"}
NEEDED_BY_FEW = {
    "LAMINA_SCHEMA_REGISTRY",
    "LAMINA_KAFKA_OPTIONS_FILE",
    "LAMINA_SPARK_CONF_FILE",
    "LAMINA_WAREHOUSE_OPTIONS",
    "S3_REGION",
    "S3_ENDPOINT",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
    "S3_CREDENTIALS_FILE",
}
END_BY_THEMSELVES = {"catalog", "dashboards", "airflow-init", "kafka-users", "certificates"}


def example() -> dict[str, str]:
    lines = [line for line in EXAMPLE.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def services(variables: dict[str, str]) -> dict[str, Any]:
    return services_of(variables)


def test_the_compose_file_matches_the_schema() -> None:
    words = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_env_example_lists_exactly_the_variables_of_compose() -> None:
    used = {name for name, _, _ in VARIABLE.findall(COMPOSE.read_text())}
    assert used == set(example())
    # Compose may read a form of a variable that this pattern misses. `$$` is a dollar sign in a command.
    plain = COMPOSE.read_text().replace("$$", "")
    assert len(VARIABLE.findall(plain)) == plain.count("$")


def test_defaults_equal_those_of_env_example() -> None:
    for name, how, default in VARIABLE.findall(COMPOSE.read_text()):
        if name not in SECRETS:
            assert (how, default) == ("-", example()[name]), name


def test_retention_by_timestamp_is_off(variables: dict[str, str]) -> None:
    properties = broker_properties(services_of(variables)["kafka"]["environment"])
    limits = {name: int(value) for name, value in properties.items() if name.startswith("log.retention")}
    assert limits == {"log.retention.hours": -1}


def test_no_secret_has_a_default() -> None:
    without = {name for name, value in example().items() if not value}
    assert without == SECRETS | SECRETS_OF_DASHBOARDS | NEEDED_BY_FEW
    assert {how for name, how, _ in VARIABLE.findall(COMPOSE.read_text()) if name in SECRETS} == {"?"}


@pytest.mark.parametrize("missing", sorted(SECRETS))
def test_compose_names_a_missing_secret(variables: dict[str, str], missing: str) -> None:
    with pytest.raises(NotSet, match=f"^{missing}: see .env.example$"):
        services_of({**variables, missing: ""})


@pytest.mark.parametrize("missing", sorted(SECRETS_OF_DASHBOARDS))
def test_only_the_dashboards_profile_requires_its_secrets(variables: dict[str, str], missing: str) -> None:
    services = services_of({**variables, missing: ""})
    dashboards = services["dashboards"]
    environment = {name: str(value or "") for name, value in dashboards["environment"].items()}
    done = subprocess.run(dashboards["command"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{missing}: see .env.example\n")
    for name in ("grafana", "superset"):
        assert services[name]["depends_on"]["dashboards"] == {"condition": "service_completed_successfully"}


def test_secrets_are_new_each_time_and_need_no_escaping_in_urls(variables: dict[str, str]) -> None:
    files = [subprocess.check_output([sys.executable, REPOSITORY / "deploy" / "new_env.py"]) for _ in range(2)]
    assert files[0] != files[1]
    for name in (SECRETS | SECRETS_OF_DASHBOARDS) - {"AIRFLOW_FERNET_KEY"}:
        assert re.fullmatch(r"[0-9a-f]{48}", variables[name]), name
    others = example().keys() - SECRETS - SECRETS_OF_DASHBOARDS
    assert {name: variables[name] for name in others} == {name: example()[name] for name in others}


def test_a_long_running_service_has_a_health_check_and_restarts(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert ("healthcheck" in service) == (name not in END_BY_THEMSELVES), name
        assert (service.get("restart", "no") == "unless-stopped") == (name not in END_BY_THEMSELVES), name


def test_a_service_waits_until_its_dependencies_are_healthy_or_complete(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for needed, wait in service.get("depends_on", {}).items():
            ends = needed in END_BY_THEMSELVES
            assert wait == {"condition": "service_completed_successfully" if ends else "service_healthy"}, name


def test_every_service_that_runs_spark_sees_the_same_warehouse(services: dict[str, Any]) -> None:
    for name in ("speed", "spark-worker", "airflow-scheduler"):
        assert "warehouse:/warehouse" in services[name]["volumes"], name


def test_the_bucket_and_its_keys_reach_every_spark_process(variables: dict[str, str]) -> None:
    bucket = {
        "LAMINA_WAREHOUSE": "s3://logs/lamina",
        "LAMINA_WAREHOUSE_OPTIONS": "s3.path-style-access=true,s3.retry.num-retries=9",
        "S3_REGION": "eu-central-1",
        "S3_ENDPOINT": "http://minio:9000",
        "S3_ACCESS_KEY_ID": "key",
        "S3_SECRET_ACCESS_KEY": "secret",
        "S3_CREDENTIALS_FILE": "/files/keys",
    }
    services = services_of({**variables, **bucket})
    client = {
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL_S3": "http://minio:9000",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SHARED_CREDENTIALS_FILE": "/files/keys",
    }
    for name in ("catalog", "speed", "spark-worker", "airflow-scheduler"):
        assert client.items() <= services[name]["environment"].items(), name
    for name in ("catalog", "speed", "airflow-scheduler"):
        settings = Settings.read(REPOSITORY / "nowhere", services[name]["environment"])
        assert settings.warehouse == "s3://logs/lamina"
        assert settings.warehouse_options == {"s3.path-style-access": "true", "s3.retry.num-retries": "9"}


def test_services_with_file_settings_mount_the_folder_of_files(variables: dict[str, str]) -> None:
    services = services_of({**variables, "FILES": "/etc/lamina"})
    ours = {name for name, service in services.items() if "AWS_REGION" in service.get("environment", {})}
    assert "spark-worker" in ours
    assert {name for name, service in services.items() if "/etc/lamina:/files:ro" in service.get("volumes", ())} == ours


def test_every_command_gets_the_files_of_options_and_settings(variables: dict[str, str]) -> None:
    named = {"LAMINA_KAFKA_OPTIONS_FILE": "/files/kafka", "LAMINA_SPARK_CONF_FILE": "/files/spark"}
    services = services_of({**variables, **named})
    for name in (name for name, service in services.items() if "LAMINA_POSTGRES" in service.get("environment", {})):
        assert named.items() <= services[name]["environment"].items(), name


def test_ports_are_open_only_to_this_machine_by_default(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 7
    assert all(port.startswith("127.0.0.1:") for port in ports), ports


@pytest.mark.parametrize(
    "service", ["kafka", "postgres", "spark-master", "airflow-api-server", "console", "grafana", "superset"]
)
def test_opening_one_service_to_others_opens_no_other(variables: dict[str, str], service: str) -> None:
    switch = {"spark-master": "SPARK", "airflow-api-server": "AIRFLOW"}.get(service, service.upper())
    opened = services_of({**variables, f"{switch}_BIND_ADDRESS": "0.0.0.0"})
    public = [
        name for name, service in opened.items() for port in service.get("ports", []) if port.startswith("0.0.0.0:")
    ]
    assert public == [service]


def shaken_hands(folder: Path, name: str) -> None:
    """Connects to a server by a name, with a client that trusts only the authority. Raises if it refuses the server."""
    here, there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=folder / "root.crt")
    here.load_cert_chain(folder / "server.crt", folder / "server.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = there.wrap_bio(to_client, to_server, server_hostname=name)
    server = here.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.version() == server.version() == "TLSv1.3"


def test_the_certificate_of_postgres_is_made_once_and_covers_its_names(
    services: dict[str, Any], tmp_path: Path
) -> None:
    shell, script, place, *names = services["certificates"]["command"]
    assert f"certificates:{place}:ro" in services["postgres"]["volumes"]
    words = [shell, script.replace("/opt/lamina", str(REPOSITORY)), str(tmp_path), *names]
    certificates = []
    for _ in range(2):
        subprocess.run(words, check=True)
        certificates.append((tmp_path / "server.crt").read_bytes())
    assert certificates[0] == certificates[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root.crt", "server.crt", "server.key"]
    assert (tmp_path / "server.key").stat().st_mode & 0o137 == 0, "Postgres refuses a key that others may read"
    for name in ("postgres", "localhost"):
        shaken_hands(tmp_path, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken_hands(tmp_path, "elsewhere")


def first_answer(port: int, source: str) -> bytes:
    """The first answer of a Postgres to a client at this address that wants no TLS."""
    login = b"user\0lamina\0database\0lamina\0\0"
    with socket.create_connection(("127.0.0.1", port), source_address=(source, 0)) as connection:
        connection.sendall(struct.pack("!ii", 8 + len(login), 3 << 16) + login)
        return connection.recv(1024)


def test_postgres_refuses_other_hosts_without_tls(services: dict[str, Any], tmp_path: Path) -> None:
    """The file of logins is tried in a Postgres without TLS."""
    mounted = "./deploy/pg_hba.conf:/etc/lamina/pg_hba.conf:ro"
    assert mounted in services["postgres"]["volumes"]
    assert "hba_file=/etc/lamina/pg_hba.conf" in services["postgres"]["command"]
    home, rules = tmp_path / "home", (REPOSITORY / "deploy" / "pg_hba.conf").read_text()
    postgres.stop(postgres.start(home, port=None).process)
    (home / "postgres" / "data" / "pg_hba.conf").write_text(rules)
    assert ["hostssl", "all", "all", "all", "scram-sha-256"] in [line.split() for line in rules.splitlines()]
    server = postgres.start(home, port=None)
    try:
        psycopg2.connect(postgres.url(home, server.port)).close()
        assert first_answer(server.port, "127.0.0.1").startswith(b"R"), "a password is requested"
        assert b"no encryption" in first_answer(server.port, "127.0.0.2")
    finally:
        postgres.stop(server.process)


def test_strings_sort_in_the_container_as_in_the_embedded_postgres(services: dict[str, Any]) -> None:
    embedded = (REPOSITORY / "lamina" / "services" / "postgres.py").read_text()
    for word in services["postgres"]["environment"]["POSTGRES_INITDB_ARGS"].split():
        assert f'"{word}"' in embedded, word
