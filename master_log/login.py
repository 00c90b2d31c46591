"""How to prove who we are to Kafka's brokers."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
