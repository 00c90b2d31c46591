"""Brokers that ask who one is: all of Lamina against a listener that takes no other, and that of docker-compose.yml."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.deployment import Deployment
from lamina.services import kafka
from lamina.services.jars import jars
from lamina.services.java import java_home
from lamina.services.processes import free_port
from lamina.settings import Settings
from master_log.kafka import Brokers
from master_log.login import Login
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.fix_services import quick_java
from tests.fix_stack import broker_properties, kafka_configs, services_of
from view_algebra.errors import LaminaError

USER, PASSWORD = "lamina", 'se"cr\\et'
"""What would end a text of Java's login module, were it not quoted."""


@dataclass(frozen=True)
class Listeners:
    """Addresses of one broker: of a listener that asks for a login, and of the outside one of docker-compose.yml."""

    asking: str
    outside: str
    compose: Mapping[str, Any]


@pytest.fixture
def broker(run_home: Path, variables: dict[str, str]) -> Iterator[Listeners]:
    """A broker all of whose listeners ask for a login."""
    home = run_home / "login"
    home.mkdir()
    (home / "jars").symlink_to(run_home / "jars")
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'username="{USER}" password="{quoted}" user_{USER}="{quoted}"'
    compose = services_of(variables | {"KAFKA_PASSWORD": r"a\b= #c"})
    ports = free_port(), free_port(), free_port()
    here, controller, outside = (f"127.0.0.1:{port}" for port in ports)
    given = compose["kafka"]["environment"]
    protocols = given["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]
    settings = {
        **{
            name: value for name, value in broker_properties(given).items() if name.startswith("listener.name.outside.")
        },
        "listeners": f"PLAINTEXT://{here},CONTROLLER://{controller},OUTSIDE://{outside}",
        "advertised.listeners": f"PLAINTEXT://{here},OUTSIDE://{outside}",
        "listener.security.protocol.map": protocols.replace("INSIDE:PLAINTEXT", "PLAINTEXT:SASL_PLAINTEXT"),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{module} {users};".replace("\\", "\\\\"),
    }
    java = java_home(run_home)
    started = kafka.start(
        home,
        java=java,
        jars=jars(run_home, "kafka"),
        settings=settings,
        jvm_options=quick_java(run_home, "kafka"),
        ports=ports[:2],
    )
    yield Listeners(started.address, outside, compose)
    kafka.stop(started.process)
    shutil.rmtree(home, ignore_errors=True)


def test_brokers_that_ask_for_a_login_are_read_from_by_all_of_lamina(
    broker: Listeners, settings: Settings, spark: SparkSession, run_home: Path
) -> None:
    login = Login("SASL_PLAINTEXT", "PLAIN", USER, PASSWORD)
    with Brokers(broker.asking) as nobody, pytest.raises(LaminaError):
        nobody.latest("any")
    with Brokers(broker.asking, replace(login, password="wrong")) as wrong, pytest.raises(LaminaError) as refused:
        wrong.latest("any")  # the broker says so, or only hangs up
    assert "refuse the login" in str(refused.value) or "how to log in" in str(refused.value)
    assert "wrong" not in str(refused.value)
    deployment = Deployment(replace(settings, kafka=broker.asking, login=login), lent=spark)
    deployment.install()
    with closing(deployment), closing(KafkaProducer(bootstrap_servers=broker.asking, **login.for_client())) as producer:
        deployed = Deployed(deployment, producer)
        deployed.apply(events=EVENTS, totals=TOTALS)
        deployed.send("events", *(event(n) for n in range(20)))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (20,)
        deployment.batch.rebuild()
        deployed.check()
        _only_the_producer_of_the_deployment_comes_in_from_outside(broker, run_home, login, deployed.topic("events"))


def _only_the_producer_of_the_deployment_comes_in_from_outside(
    broker: Listeners, home: Path, us: Login, topic: str
) -> None:
    """By the command that compose runs, through the listener that is inside there."""
    users = broker.compose["kafka-users"]
    password = users["environment"]["KAFKA_PASSWORD"]
    assert password not in " ".join(users["command"])
    client = home / "login" / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    secret = us.password.replace("\\", "\\\\").replace('"', '\\"')
    jaas = f'{module} username="{us.user}" password="{secret}";'.replace("\\", "\\\\")
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
    script = kafka_configs(home / "login" / "kafka-configs.sh", home, "--command-config", str(client))
    places = {"/opt/kafka/bin/kafka-configs.sh": f"'{script}'", "kafka:9092": broker.asking}
    words = [str(word) for word in users["command"]]
    for inside, here in places.items():
        assert inside in words[-1]
        words[-1] = words[-1].replace(inside, here)
    done = subprocess.run(words, env=users["environment"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    producer = Login("SASL_PLAINTEXT", "SCRAM-SHA-512", "producer", password)
    with Brokers(broker.outside, producer) as known:
        assert sum(known.latest(topic).values()) == 20
    for other in (None, replace(producer, password="wrong"), us):
        with Brokers(broker.outside, other) as nobody, pytest.raises(LaminaError):
            nobody.latest(topic)
