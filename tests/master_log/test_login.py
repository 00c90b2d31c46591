"""Brokers that require a login: every part of Lamina logs in by password, certificate and token."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.configuration.settings import Settings
from lamina.operations import installation
from lamina.operations.deployment import Deployment
from lamina.services import kafka_broker
from lamina.services.jars import jar_files
from lamina.services.java import java_home
from lamina.services.own_processes import free_port
from master_log.connections.certificates import ClientCertificate
from master_log.connections.client_options import with_options
from master_log.connections.login import Login
from master_log.connections.tokens import TokenEndpoint
from master_log.kafka.brokers import Brokers
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_identities import Authority, Issuer
from tests.fix_lamina import CommandLine, Deployed, one
from tests.fix_services import quick_java
from tests.fix_stack import broker_properties, kafka_configs, services_of
from view_algebra.errors import LaminaError

pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in.*ssl.SSLSocket")
"""kafka-python leaves its sockets to the garbage collector, which may close them during any of these tests."""

USER, PASSWORD = "lamina", 'se"cr\\et'
"""Characters that would end a value of Java's login module if they were not quoted."""


@dataclass(frozen=True)
class Listeners:
    """Addresses of one broker, by the login that a listener requires. docker-compose.yml has the listener `outside`."""

    password: str
    outside: str
    certificate: str
    token: str
    compose: Mapping[str, Any]
    restarted_trusting: Callable[[Authority], None]


@dataclass(frozen=True)
class Ports:
    """Free ports of this machine, as addresses, for the listeners of a broker."""

    inside: str
    controller: str
    outside: str
    certificate: str
    token: str

    def of_inside_and_controller(self) -> tuple[int, int]:
        return int(self.inside.rpartition(":")[2]), int(self.controller.rpartition(":")[2])


def listener_settings(ports: Ports, environment: Mapping[str, str]) -> dict[str, str]:
    """A broker's listeners: by password, by a client's certificate, by token, and `outside` as compose has it."""
    protocols = environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].replace(
        "INSIDE:PLAINTEXT", "PLAINTEXT:SASL_PLAINTEXT"
    )
    advertised = (
        f"PLAINTEXT://{ports.inside},OUTSIDE://{ports.outside},CERTIFICATE://{ports.certificate},TOKEN://{ports.token}"
    )
    properties = broker_properties(environment)
    return {
        **{name: value for name, value in properties.items() if name.startswith("listener.name.outside.")},
        "listeners": f"{advertised},CONTROLLER://{ports.controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": f"{protocols},CERTIFICATE:SSL,TOKEN:SASL_SSL",
    }


def password_settings() -> dict[str, str]:
    """A broker's settings for logins by password, its own included."""
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'username="{USER}" password="{quoted}" user_{USER}="{quoted}"'
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{module} {users};".replace("\\", "\\\\"),
    }


def certificate_settings(home: Path, authority: Authority) -> dict[str, str]:
    """A broker's settings for its own certificate and those of clients. Writes the files that they name."""
    files = [Path(file).read_text() for file in authority.issue("broker")]
    (home / "trusted.pem").write_text(Path(authority.file).read_text())
    (home / "broker.pem").write_text("".join(files))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home / "trusted.pem"),
        "listener.name.certificate.ssl.client.auth": "required",
    }


def token_settings(issuer: Issuer) -> dict[str, str]:
    """A broker's settings for logins by token. A connection ends with its token."""
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
    return {
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": f"{oauth}LoginModule required;",
        "listener.name.token.oauthbearer.sasl.server.callback.handler.class": f"{oauth}ValidatorCallbackHandler",
        "listener.name.token.oauthbearer.connections.max.reauth.ms": "3600000",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
    }


@pytest.fixture(scope="module")
def broker(run_home: Path, variables: dict[str, str], authority: Authority, issuer: Issuer) -> Iterator[Listeners]:
    """A broker whose listeners all require a login."""
    home = run_home / "login"
    home.mkdir()
    (home / "jars").symlink_to(run_home / "jars")
    compose = services_of(variables | {"KAFKA_PASSWORD": r"a\b= #c"})
    ports = Ports(*(f"127.0.0.1:{free_port()}" for _ in range(5)))
    settings = {
        **listener_settings(ports, compose["kafka"]["environment"]),
        **password_settings(),
        **certificate_settings(home, authority),
        **token_settings(issuer),
    }
    issuers = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.url}"

    def start() -> kafka_broker.Broker:
        return kafka_broker.start(
            home,
            java=java_home(run_home),
            jars=jar_files(run_home, "kafka"),
            settings=settings,
            jvm_options=(*quick_java(run_home, "kafka"), issuers),
            ports=ports.of_inside_and_controller(),
        )

    started = [start()]

    def restart(trusted: Authority) -> None:
        (home / "trusted.pem").write_text(Path(trusted.file).read_text())
        kafka_broker.stop(started.pop().process)
        started.append(start())

    yield Listeners(started[0].address, ports.outside, ports.certificate, ports.token, compose, restart)
    kafka_broker.stop(started[0].process)
    shutil.rmtree(home, ignore_errors=True)
    gc.collect()  # as part of the last test, whose frame no longer holds the clients


def test_every_part_of_lamina_reads_from_brokers_that_require_a_login(
    broker: Listeners, settings: Settings, spark: SparkSession, run_home: Path
) -> None:
    more = "client.rack=a\nconnections.max.idle.ms=60000\nreconnect.backoff.ms=20\n"
    login = with_options(None, _client_properties() + more)
    assert login is not None
    with Brokers(broker.password) as nobody, pytest.raises(LaminaError):
        nobody.latest("any")
    with Brokers(broker.password, replace(login, password="wrong")) as wrong, pytest.raises(LaminaError) as refused:
        wrong.latest("any")  # the broker says so, or only hangs up
    assert "refuse the login" in str(refused.value) or "and the login in LAMINA_KAFKA" in str(refused.value)
    assert "wrong" not in str(refused.value)
    deployment = Deployment(replace(settings, kafka=broker.password, login=login), lent=spark)
    installation.install(deployment)
    with (
        closing(deployment),
        closing(KafkaProducer(bootstrap_servers=broker.password, **login.for_client())) as producer,
    ):
        deployed = Deployed(deployment, producer)
        deployed.apply(events=EVENTS, totals=TOTALS)
        deployed.send("events", *(event(n) for n in range(20)))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (20,)
        deployment.batch.rebuild()
        deployed.check()
        _only_the_producer_of_the_deployment_comes_in_from_outside(broker, run_home, login, deployed.topic("events"))


@pytest.fixture
def by_password(broker: Listeners, settings: Settings, spark: SparkSession) -> Iterator[Deployed]:
    """A deployment whose login is a password."""
    password = Login("SASL_PLAINTEXT", "PLAIN", USER, PASSWORD)
    deployment = Deployment(replace(settings, kafka=broker.password, login=password), lent=spark)
    installation.install(deployment)
    with (
        closing(deployment),
        closing(KafkaProducer(bootstrap_servers=broker.password, **password.for_client())) as producer,
    ):
        deployed = Deployed(deployment, producer)
        deployed.apply(events=EVENTS, totals=TOTALS)
        yield deployed


def why_stopped(deployed: Deployed) -> str | None:
    [(why,)] = deployed.owner("SELECT stopped FROM lamina.query")
    return None if why is None else str(why)


def secrets_in_log(settings: Settings) -> list[str]:
    log = (settings.home / "logs" / "spark.log").read_text()
    return [secret for secret in ("PRIVATE KEY", "sec/ret") if secret in log]


def test_certificates_are_renewed_without_a_restart_and_not_logged(
    by_password: Deployed,
    broker: Listeners,
    settings: Settings,
    spark: SparkSession,
    authority: Authority,
    tmp_path: Path,
) -> None:
    deployed, files = by_password, authority.issue("client")
    certificate = Login("SSL", ca_file=authority.file, certificate=ClientCertificate(*files))
    by_certificate = Deployment(replace(settings, kafka=broker.certificate, login=certificate), lent=spark)
    deployed.deployment = by_certificate
    with closing(by_certificate), deployed.speed():
        deployed.send("events", event(1))
        deployed.wait_for("events")
        other = Authority(tmp_path / "other")
        _replaced(files, other.issue("expired", days=-1))
        broker.restarted_trusting(other)  # those who are connected need no certificate
        deployed.send("events", event(2))
        sentence = f"The client certificate in {files[0]} expired at "
        deployed.until(lambda: sentence in (why_stopped(deployed) or ""), "the query says so")
        _replaced(files, other.issue("renewed"))
        deployed.wait_for("events")
        deployed.until(lambda: why_stopped(deployed) is None, "the query is well")
        assert one(deployed.rows("SELECT events FROM totals")) == (2,)
    assert secrets_in_log(settings) == []


def test_tokens_are_renewed_without_a_restart_and_not_logged(
    by_password: Deployed,
    broker: Listeners,
    settings: Settings,
    spark: SparkSession,
    authority: Authority,
    issuer: Issuer,
) -> None:
    deployed, tokens = by_password, TokenEndpoint(issuer.url, "client", "sec/ret", "kafka")
    token = Login("SASL_SSL", "OAUTHBEARER", ca_file=authority.file, tokens=tokens)
    by_token = Deployment(replace(settings, kafka=broker.token, login=token), lent=spark)
    deployed.deployment = by_token
    issuer.seconds = 4.0
    with closing(by_token), deployed.speed():
        deployed.send("events", event(3))
        deployed.wait_for("events")
        deployed.until(lambda: len(issuer.clients) >= 5, "tokens are renewed")
        deployed.send("events", event(4))
        deployed.wait_for("events")
        deployed.until(lambda: why_stopped(deployed) is None, "the query is well")
        assert one(deployed.rows("SELECT events FROM totals")) == (2,)
    assert secrets_in_log(settings) == []


def test_a_command_says_that_its_certificate_has_expired(
    by_password: Deployed, broker: Listeners, lamina: CommandLine, authority: Authority
) -> None:
    old = _url(broker.certificate, authority.issue("old", days=-1))
    refused = lamina(
        "ingest", "events", "-", "--format", "jsonl", stdin=json.dumps(event(9), default=str), code=1, LAMINA_KAFKA=old
    )
    assert refused.err.count("expired at") == 1
    assert "Put a valid certificate into the file" in refused.err


def _url(address: str, files: tuple[str, str]) -> str:
    return f"ssl://{address}?cert_file={files[0]}&key_file={files[1]}"


def _replaced(files: tuple[str, str], by: tuple[str, str]) -> None:
    for file, new in zip(files, by, strict=True):
        Path(new).replace(file)


def _client_properties() -> str:
    """The properties by which Kafka's own tools log in."""
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{quoted}";'
    jaas = jaas.replace("\\", "\\\\")
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n"


def _only_the_producer_of_the_deployment_comes_in_from_outside(
    broker: Listeners, home: Path, us: Login, topic: str
) -> None:
    """Sets the password by compose's own command, through the inside listener."""
    users = broker.compose["kafka-users"]
    password = users["environment"]["KAFKA_PASSWORD"]
    assert password not in " ".join(users["command"])
    client = home / "login" / "client.properties"
    client.write_text(_client_properties())
    script = kafka_configs(home / "login" / "kafka-configs.sh", home, "--command-config", str(client))
    places = {"/opt/kafka/bin/kafka-configs.sh": f"'{script}'", "kafka:9092": broker.password}
    words = [str(word) for word in users["command"]]
    for inside, here in places.items():
        assert inside in words[-1]
        words[-1] = words[-1].replace(inside, here)
    done = subprocess.run(words, env=users["environment"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    producer = Login("SASL_PLAINTEXT", "SCRAM-SHA-512", "producer", password)
    with Brokers(broker.outside, producer) as logged_in:
        assert sum(logged_in.latest(topic).values()) == 20
    for other in (None, replace(producer, password="wrong"), us):
        with Brokers(broker.outside, other) as nobody, pytest.raises(LaminaError):
            nobody.latest(topic)
