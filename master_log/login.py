"""How to prove who we are to Kafka's brokers, and to a schema registry."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field

PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


@dataclass(frozen=True)
class Login:
    """How to prove who we are to brokers that ask.

    protocol: one of `PROTOCOLS`. mechanism: one of `MECHANISMS`.
    ca_file: PEM file of the authority that signed the brokers' certificates; None takes the system's.
    """

    protocol: str
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = ""
    ca_file: str | None = None

    def __repr__(self) -> str:
        return f"Login({self.protocol}, {self.mechanism}, user={self.user!r})"

    def for_client(self) -> dict[str, str]:
        """The options of kafka-python."""
        options = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        if self.ca_file:
            options["ssl_cafile"] = self.ca_file
        return options

    def for_spark(self) -> dict[str, str]:
        """The options of Spark's Kafka source."""
        options = {"kafka.security.protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            module = (
                "org.apache.kafka.common.security.plain.PlainLoginModule"
                if self.mechanism == "PLAIN"
                else "org.apache.kafka.common.security.scram.ScramLoginModule"
            )
            user, password = (re.sub(r'(["\\])', r"\\\1", text) for text in (self.user, self.password))
            options["kafka.sasl.mechanism"] = self.mechanism
            options["kafka.sasl.jaas.config"] = f'{module} required username="{user}" password="{password}";'
        if self.ca_file:
            options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": self.ca_file}
        return options


@dataclass(frozen=True)
class Address:
    """One address of a schema registry, with the login that it asks for, if it asks for one.

    url: up to the path under which `/schemas` is. ca_file, certificate, key: PEM files.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca_file: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Those of each question."""
        asked = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.token:
            return asked | {"Authorization": f"Bearer {self.token}"}
        if self.user:
            login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return asked | {"Authorization": f"Basic {login}"}
        return asked
