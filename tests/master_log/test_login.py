"""Brokers that ask who one is: all of Lamina against a listener that takes no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from lamina.deployment import Deployment
from lamina.services import kafka
from lamina.services.jars import jars
from lamina.services.java import java_home
from lamina.settings import Settings
from master_log.kafka import Brokers, Login
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.fix_services import quick_java
from view_algebra.errors import LaminaError

USER, PASSWORD = "lamina", 'se"cr\\et'
"""What would end a text of Java's login module, were it not quoted."""


@pytest.fixture
def broker(run_home: Path) -> Iterator[str]:
    """A broker whose only listener asks for a login."""
    home = run_home / "login"
    home.mkdir()
    (home / "jars").symlink_to(run_home / "jars")
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'username="{USER}" password="{quoted}" user_{USER}="{quoted}"'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{module} {users};".replace("\\", "\\\\"),
    }
    java = java_home(run_home)
    started = kafka.start(
        home,
        java=java,
        jars=jars(run_home, "kafka", java=java),
        settings=settings,
        jvm_options=quick_java(run_home, "kafka"),
        ports=None,
    )
    yield started.address
    kafka.stop(started.process)
    shutil.rmtree(home, ignore_errors=True)


def test_brokers_that_ask_for_a_login_are_read_from_by_all_of_lamina(
    broker: str, settings: Settings, spark: SparkSession
) -> None:
    login = Login("SASL_PLAINTEXT", "PLAIN", USER, PASSWORD)
    with Brokers(broker) as nobody, pytest.raises(LaminaError):
        nobody.latest("any")
    with Brokers(broker, replace(login, password="wrong")) as wrong, pytest.raises(LaminaError) as refused:
        wrong.latest("any")  # the broker says so, or only hangs up
    assert "refuse us" in str(refused.value) or "how to log in" in str(refused.value)
    assert "wrong" not in str(refused.value)
    deployment = Deployment(replace(settings, kafka=broker, login=login), lent=spark)
    deployment.install()
    with closing(deployment), closing(KafkaProducer(bootstrap_servers=broker, **login.for_client())) as producer:
        deployed = Deployed(deployment, producer)
        deployed.apply(events=EVENTS, totals=TOTALS)
        deployed.send("events", *(event(n) for n in range(20)))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (20,)
        deployment.batch.rebuild()
        deployed.check()
