"""The environment overrides lamina.toml, and a mistake in either is explained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.configuration.postgres_urls import Jdbc
from lamina.configuration.setting_texts import catalog_folder
from lamina.configuration.settings import Settings
from lamina.spark.spark_configuration import JOINED, OVERRIDABLE, combined, configuration
from master_log.connections.certificates import ClientCertificate
from master_log.connections.login import Login
from master_log.connections.tokens import TokenEndpoint
from tests.fix_services import REPOSITORY
from view_algebra.errors import LaminaError

SERVICES = {"LAMINA_POSTGRES": "postgresql://u:p@db:5433/lamina", "LAMINA_KAFKA": "a:9092, b:9092"}


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "lamina.toml").write_text('kafka = "file:1"\npostgres = "postgresql://u@file/d"\nhome = "elsewhere"\n')
    settings = Settings.read(tmp_path, {"LAMINA_KAFKA": "environment:2", "LAMINA_ANALYST": ""})
    assert settings.kafka == "environment:2"
    assert settings.postgres == "postgresql://u@file/d"
    assert settings.home == tmp_path / "elsewhere"
    assert settings.warehouse == str(tmp_path / "elsewhere" / "warehouse")
    assert settings.analyst is None
    assert not settings.embedded


def test_broker_lists_and_postgres_urls_are_normalized(tmp_path: Path) -> None:
    settings = Settings.read(tmp_path, {**SERVICES, "LAMINA_POSTGRES": "postgresql+psycopg2://u:p@db/lamina"})
    assert settings.kafka == "a:9092,b:9092"
    assert settings.postgres == "postgresql://u:p@db/lamina"


def test_a_kafka_url_may_hold_a_login(tmp_path: Path) -> None:
    def read(kafka: str) -> Settings:
        return Settings.read(tmp_path, {**SERVICES, "LAMINA_KAFKA": kafka})

    settings = read("sasl_ssl://al%40ice:s%2Fecret@a:9093, b:9093?mechanism=PLAIN&ca_file=/etc/ca.pem")
    assert settings.kafka == "a:9093,b:9093"
    assert settings.login == Login("SASL_SSL", "PLAIN", "al@ice", "s/ecret", "/etc/ca.pem")
    assert "ecret" not in repr(settings)
    assert read("ssl://a:9093").login == Login("SSL")
    own = ClientCertificate("/tls.crt", "/tls.key", "s/ecret")
    settings = read("ssl://a:9093?cert_file=/tls.crt&key_file=/tls.key&key_password=s/ecret&ca_file=/ca.pem")
    assert settings.login == Login("SSL", ca_file="/ca.pem", certificate=own)
    settings = read("sasl_ssl://me:s%2Fecret@a:9093?token_url=https://id/token&scope=a%20b&token_ca_file=/id.pem")
    tokens = TokenEndpoint("https://id/token", "me", "s/ecret", "a b", "/id.pem")
    assert settings.login == Login("SASL_SSL", "OAUTHBEARER", tokens=tokens)
    assert settings.login.shown == "the login as 'me'"
    assert "ecret" not in repr(settings) + repr(settings.login) + repr(own) + repr(tokens)
    assert read("sasl_ssl://a:9098?mechanism=AWS_MSK_IAM").login == Login("SASL_SSL", "AWS_MSK_IAM")
    assert read("a:9093").login is None


def test_the_master_log_may_be_in_object_storage(tmp_path: Path) -> None:
    (tmp_path / "client.jar").touch()
    environment = {
        **SERVICES,
        "LAMINA_WAREHOUSE": "s3a://bucket/logs",
        "LAMINA_WAREHOUSE_OPTIONS": "s3.path-style-access=true, s3.secret-access-key=hidden",
        "LAMINA_SPARK_JARS": "client.jar",
    }
    settings = Settings.read(tmp_path, environment)
    assert settings.warehouse == "s3://bucket/logs"
    assert settings.warehouse_options == {"s3.path-style-access": "true", "s3.secret-access-key": "hidden"}
    assert "hidden" not in repr(settings)
    assert settings.spark_jars == (str(tmp_path / "client.jar"),)
    assert (
        Settings.read(tmp_path, {**environment, "LAMINA_WAREHOUSE": "gs://bucket/logs"}).warehouse == "gs://bucket/logs"
    )


def test_secrets_may_be_in_files(tmp_path: Path) -> None:
    (tmp_path / "kafka").write_text("sasl_plaintext://u:p@a:9094\n")
    (tmp_path / "pgpass").write_text("# ours\nother:*:*:*:wrong\ndb:5433:*:u:pass\\:w@rd\\\\\n")
    url = f"postgresql://u@db:5433/lamina?passfile={tmp_path / 'pgpass'}"
    files = {"LAMINA_POSTGRES": url, "LAMINA_KAFKA_FILE": str(tmp_path / "kafka")}
    settings = Settings.read(tmp_path, files)
    assert settings.login == Login("SASL_PLAINTEXT", user="u", password="p")
    assert Jdbc.of(settings.postgres).password == "pass:w@rd\\"
    with pytest.raises(LaminaError, match="LAMINA_KAFKA and LAMINA_KAFKA_FILE are both set"):
        Settings.read(tmp_path, {**files, "LAMINA_KAFKA": "a:1"})
    with pytest.raises(LaminaError, match="LAMINA_KAFKA_FILE names a file that cannot be read"):
        Settings.read(tmp_path, {**files, "LAMINA_KAFKA_FILE": str(tmp_path / "none")})


def test_the_catalog_is_named_by_the_environment_or_by_the_file(tmp_path: Path) -> None:
    assert catalog_folder(tmp_path, {}) == Path("catalog")
    (tmp_path / "lamina.toml").write_text('catalog = "views"\n')
    assert catalog_folder(tmp_path, {}) == Path("views")
    (tmp_path / "name").write_text("from_a_file\n")
    assert catalog_folder(tmp_path, {"LAMINA_CATALOG_FILE": str(tmp_path / "name")}) == Path("from_a_file")
    assert catalog_folder(tmp_path, {"LAMINA_CATALOG": "elsewhere"}) == Path("elsewhere")


def test_a_command_reads_the_catalog_that_the_file_names(tmp_path: Path) -> None:
    (tmp_path / "lamina.toml").write_text('catalog = "views"\n')
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
    ran = subprocess.run(
        [sys.executable, "-m", "lamina", "test"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "There is no catalog at views" in ran.stderr


def test_readers_selects_never_run_as_the_owner(tmp_path: Path) -> None:
    with pytest.raises(LaminaError, match="LAMINA_ANALYST is not set"):
        Settings.read(tmp_path, SERVICES).reader()
    analyst = "postgresql://analyst:p@db:5433/lamina"
    assert Settings.read(tmp_path, {**SERVICES, "LAMINA_ANALYST": analyst}).reader() == analyst


def test_limits_of_readers_are_read(tmp_path: Path) -> None:
    settings = Settings.read(tmp_path, {**SERVICES, "LAMINA_ANALYST_LIMITS": "statement_timeout=1min connections=9"})
    assert (settings.limits.statement_timeout, settings.limits.connections) == ("1min", 9)
    assert settings.limits.lock_timeout == "30s"


def test_a_printed_setting_shows_no_password(tmp_path: Path) -> None:
    assert "secret" not in repr(
        Settings.read(tmp_path, {**SERVICES, "LAMINA_POSTGRES": "postgresql://u:secret@db/lamina"})
    )


@pytest.mark.parametrize(
    "url",
    [
        "host=db user=lamina password=secret dbname=x",
        "postgresql://db?user=u&password=secret",
        "postgresql://u@db?password=secret",
        "postgresql://u:secret@db?sslpassword=secret",
    ],
)
def test_the_error_for_a_bad_url_does_not_show_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(LaminaError) as refused:
        Settings.read(tmp_path, {**SERVICES, "LAMINA_POSTGRES": url})
    assert "secret" not in str(refused.value)


def test_a_login_in_the_query_equals_one_before_the_host(tmp_path: Path) -> None:
    url = "postgresql://db:5433/lamina?user=a%40b&password=p%2Fq&sslmode=require"
    settings = Settings.read(tmp_path, {**SERVICES, "LAMINA_POSTGRES": url})
    assert settings.postgres == "postgresql://a%40b:p%2Fq@db:5433/lamina?sslmode=require"
    assert "p/q" not in Jdbc.of(settings.postgres).url


def test_a_postgres_url_becomes_a_jdbc_url(tmp_path: Path) -> None:
    jdbc = Jdbc.of("postgresql://a%40b:p%2Fq@[::1]:5433/lamina?sslmode=require", currentSchema="iceberg")
    assert jdbc.url == "jdbc:postgresql://[::1]:5433/lamina?sslmode=require&currentSchema=iceberg"
    assert (jdbc.user, jdbc.password) == ("a@b", "p/q")


@pytest.mark.parametrize(
    ("environment", "what", "part"),
    [
        ({}, "The services are not running", "lamina up"),
        ({"LAMINA_KAFKA": "a:9092"}, "LAMINA_POSTGRES is not set", "Set both"),
        ({**SERVICES, "LAMINA_KAFKA": "a"}, "LAMINA_KAFKA is not a list of brokers", "host1:9092"),
        ({**SERVICES, "LAMINA_POSTGRES": "postgresql://u@a:/b"}, "LAMINA_POSTGRES is not the URL", "has no port after"),
        ({**SERVICES, "LAMINA_WAREHOUSE": "s3://]["}, "LAMINA_WAREHOUSE names no bucket", "Found s3://][."),
        ({**SERVICES, "LAMINA_KAFKA": "a..b:9092"}, "LAMINA_KAFKA is not a list of brokers", "Found 'a..b:9092'."),
        ({**SERVICES, "LAMINA_KAFKA": "u:secret@a:x"}, "LAMINA_KAFKA is not a list of brokers", "Found 'a:x'."),
        ({**SERVICES, "LAMINA_KAFKA": "u:secret@a:9092"}, "LAMINA_KAFKA is not a list of brokers", "Found 'a:9092'."),
        ({**SERVICES, "LAMINA_KAFKA": "kafka://a:9092"}, "LAMINA_KAFKA is not a list of brokers", "sasl_ssl://user"),
        ({**SERVICES, "LAMINA_KAFKA": "sasl_ssl://a:9092"}, "LAMINA_KAFKA is not a list of brokers", "lacks a user"),
        ({**SERVICES, "LAMINA_KAFKA": "ssl://u:p@a:9092"}, "LAMINA_KAFKA is not a list of brokers", "has a user"),
        ({**SERVICES, "LAMINA_KAFKA": "ssl://a:9092?mechanism=X"}, "LAMINA_KAFKA is not a list", "mechanism=X"),
        (
            {**SERVICES, "LAMINA_KAFKA": "ssl://a:9?key_password=secret"},
            "LAMINA_KAFKA is not",
            "without cert_file",
        ),
        (
            {**SERVICES, "LAMINA_KAFKA": "ssl://a:9?cafile=secret"},
            "LAMINA_KAFKA is not a list",
            "cafile=…, a parameter",
        ),
        (
            {**SERVICES, "LAMINA_KAFKA": "sasl_ssl://u:secret@a:9?mechanism=OAUTHBEARER"},
            "LAMINA_KAFKA is",
            "lacks a token",
        ),
        ({**SERVICES, "LAMINA_KAFKA": "sasl_ssl://u:secret@a:9?token_url=id/token"}, "The token endpoint", "https://"),
        (
            {**SERVICES, "LAMINA_KAFKA": "ssl://a:9?token_url=https://id"},
            "LAMINA_KAFKA is not a list",
            "has a token_url",
        ),
        ({**SERVICES, "LAMINA_KAFKA_OPTIONS": "group.id=g"}, "LAMINA_KAFKA_OPTIONS sets group.id", "Take the line out"),
        ({**SERVICES, "LAMINA_SPARK_MASTER": "mesos://m"}, "LAMINA_SPARK_MASTER is not one", "k8s://https://host"),
        ({**SERVICES, "LAMINA_SPARK_MASTER": "yarn"}, "LAMINA_SPARK_MASTER is yarn", "HADOOP_CONF_DIR"),
        ({**SERVICES, "LAMINA_KAFKA": "sasl_ssl://u:p[w@a:9093"}, "LAMINA_KAFKA is not a list", "%-encoded"),
        ({**SERVICES, "LAMINA_KAFKA": "a:²"}, "LAMINA_KAFKA is not a list", "Found 'a:²'."),
        ({**SERVICES, "LAMINA_POSTGRES": "mysql://u@h/d"}, "LAMINA_POSTGRES is not the URL", "begins with mysql"),
        ({**SERVICES, "LAMINA_POSTGRES": "postgresql://u@h"}, "LAMINA_POSTGRES is not the URL", "names no database"),
        ({**SERVICES, "LAMINA_POSTGRES": "postgresql://u@h:x/d"}, "LAMINA_POSTGRES is not the URL", "malformed"),
        ({**SERVICES, "LAMINA_POSTGRS": "x"}, "LAMINA_POSTGRS", "Did you mean LAMINA_POSTGRES"),
        ({**SERVICES, "LAMINA_SPARK_MASTER": "spark://m:7077"}, "LAMINA_WAREHOUSE is not set", "s3://"),
        ({**SERVICES, "LAMINA_WAREHOUSE": "oss://b/w"}, "LAMINA_WAREHOUSE begins with oss:", "mounted volume"),
        ({**SERVICES, "LAMINA_WAREHOUSE": "s3:///w"}, "LAMINA_WAREHOUSE names no bucket", "s3://bucket/path"),
        ({**SERVICES, "LAMINA_WAREHOUSE": "gs://b/w"}, "LAMINA_WAREHOUSE begins with gs:", "iceberg-gcp-bundle"),
        ({**SERVICES, "LAMINA_WAREHOUSE_OPTIONS": "io-impl=X"}, "LAMINA_WAREHOUSE_OPTIONS is not", "Found 'io-impl'"),
        ({**SERVICES, "LAMINA_SPARK_JARS": "no.jar"}, "LAMINA_SPARK_JARS names a file", "no.jar"),
    ],
)
def test_a_wrong_environment_is_explained(tmp_path: Path, environment: dict[str, str], what: str, part: str) -> None:
    with pytest.raises(LaminaError) as refusal:
        Settings.read(tmp_path, environment)
    assert what in refusal.value.what
    assert part in str(refusal.value)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("kafka = ", "is not TOML"),
        ('kafak = "a:1"', "Did you mean `kafka`?"),
        ("kafka = 9092", 'kafka = "…"'),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "lamina.toml").write_text(text)
    with pytest.raises(LaminaError) as refusal:
        Settings.read(tmp_path, SERVICES)
    assert part in str(refusal.value)
    assert "lamina.toml" in refusal.value.what


def test_a_wrong_url_is_shown_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(LaminaError) as refusal:
        Settings.read(tmp_path, {**SERVICES, "LAMINA_POSTGRES": "postgresql://u:secret@h"})
    assert "secret" not in str(refusal.value)


def test_settings_of_spark_are_added_unless_they_contradict_laminas(tmp_path: Path, run_home: Path) -> None:
    (tmp_path / "spark.conf").write_text("spark.driver.memory  9g\nspark.hadoop.fs.secret.key = s\n")
    environment = {**SERVICES, "LAMINA_SPARK_CONF_FILE": str(tmp_path / "spark.conf"), "LAMINA_HOME": str(run_home)}
    settings = Settings.read(tmp_path, environment)
    assert settings.spark_conf == {"spark.driver.memory": "9g", "spark.hadoop.fs.secret.key": "s"}
    assert "secret" not in repr(settings)
    laminas = configuration(settings, "k8s://https://127.0.0.1:6443", "2g", ())
    assert laminas["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in configuration(settings, "yarn", "2g", ())
    assert combined(laminas, settings.spark_conf) == {**laminas, **settings.spark_conf}
    more = combined(laminas, {"spark.jars": "a.jar", "spark.executor.extraJavaOptions": "-Da=b"})
    assert more["spark.jars"] == f"{laminas['spark.jars']},a.jar"
    assert more["spark.executor.extraJavaOptions"].startswith(laminas["spark.executor.extraJavaOptions"])
    for name in set(laminas) - set(OVERRIDABLE) - set(JOINED):
        assert combined(laminas, {name: laminas[name]}) == laminas
        with pytest.raises(LaminaError, match=f"sets {re.escape(name)} to 'x', which contradicts Lamina"):
            combined(laminas, {name: "x"})
    for name in ("spark.sql.caseSensitive", "spark.submit.deployMode", "fs.s3a.endpoint"):
        with pytest.raises(LaminaError, match=f"LAMINA_SPARK_CONF sets {name}"):
            combined(laminas, {name: "x"})
