"""Credentials for Kafka's brokers and for a schema registry."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from master_log.connections.certificates import ClientCertificate, check_authorities
from master_log.connections.tokens import TokenEndpoint, provider
from view_algebra.errors import LaminaError

PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
OAUTH, MSK = "OAUTHBEARER", "AWS_MSK_IAM"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", OAUTH, MSK)

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    OAUTH: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    MSK: "software.amazon.msk.auth.iam.IAMLoginModule",
}
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class Login:
    """Credentials for Kafka's brokers, and further options of Kafka's clients.

    protocol: one of `PROTOCOLS`, or PLAINTEXT
    mechanism: one of `MECHANISMS`. OAUTHBEARER logs in by `tokens`, and AWS_MSK_IAM by the machine's own credentials
    ca_file: PEM file of the authority that signed the brokers' certificates. None trusts the system's authorities
    java, python: further options of Spark's client and of kafka-python, by their names there
    """

    protocol: str
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = ""
    ca_file: str | None = None
    certificate: ClientCertificate | None = None
    tokens: TokenEndpoint | None = None
    java: Mapping[str, str] = field(default_factory=dict)
    python: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Login({self.protocol}, {self.mechanism}, user={self.user!r})"

    @property
    def shown(self) -> str:
        """The login in words, without its secrets."""
        if self.protocol.startswith("SASL"):
            return f"the login as {self.tokens.client if self.tokens else self.user!r}"
        return f"the certificate in {self.certificate.file}" if self.certificate else "a connection without a login"

    def check(self) -> None:
        """Raises LaminaError if a file or the token endpoint fails. A client would only log the failure."""
        if self.ca_file:
            check_authorities(self.ca_file)
        if self.tokens:
            provider(self.tokens).token()
        if self.certificate:
            self.certificate.read()

    def for_client(self) -> dict[str, Any]:
        """The options of kafka-python. Raises as `check` does, and if a package is missing."""
        self.check()
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            options |= {"sasl_mechanism": self.mechanism}
            if self.tokens:
                options["sasl_oauth_token_provider"] = provider(self.tokens)
            elif self.mechanism != MSK:
                options |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
            elif find_spec("botocore") is None:
                raise LaminaError(f"{MSK} needs the package botocore", way_out="Install it: pip install botocore.")
        if self.ca_file:
            options["ssl_cafile"] = self.ca_file
        if self.certificate:
            options |= self.certificate.for_client()
        return options | dict(self.python)

    def for_spark(self) -> dict[str, str]:
        """The options of Spark's Kafka source. Raises as `check` does."""
        self.check()
        options = {"security.protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            options |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._jaas(), **self._callbacks()}
        if self.ca_file:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self.certificate:
            options |= self.certificate.for_java()
        return {f"kafka.{name}": value for name, value in (options | dict(self.java)).items()}

    def java_options(self) -> tuple[str, ...]:
        """Options for every JVM that logs in: Kafka's client only uses token endpoints that they name."""
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.url}",) if self.tokens else ()

    def _jaas(self) -> str:
        if self.tokens:
            options = {"clientId": self.tokens.client, "clientSecret": self.tokens.secret}
            if self.tokens.scope:
                options["scope"] = self.tokens.scope
            if self.tokens.ca_file:
                options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.tokens.ca_file}
        else:
            options = {} if self.mechanism == MSK else {"username": self.user, "password": self.password}
        words = [f"{name}={_quoted(value)}" for name, value in options.items()]
        return " ".join([_MODULES.get(self.mechanism, _SCRAM), "required", *words]) + ";"

    def _callbacks(self) -> dict[str, str]:
        if self.tokens:
            return {
                "sasl.login.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
                ),
                "sasl.oauthbearer.token.endpoint.url": self.tokens.url,
            }
        if self.mechanism == MSK:
            return {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}
        return {}


def _quoted(text: str) -> str:
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"'


@dataclass(frozen=True)
class RegistryAddress:
    """One address of a schema registry, with its login, if it needs one.

    url: up to the path that holds `/schemas`
    ca_file, certificate, key: PEM files
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
        """The HTTP headers of every request."""
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.token:
            return headers | {"Authorization": f"Bearer {self.token}"}
        if self.user:
            login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return headers | {"Authorization": f"Basic {login}"}
        return headers
