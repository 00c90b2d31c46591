"""Options of Kafka's Java clients, applied to Lamina's two clients: Spark's and kafka-python.

Options of the login become a `Login`, which both clients understand. Options that kafka-python shares get its names.
The others go to Spark's client alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from master_log.connections.certificates import ClientCertificate
from master_log.connections.java_properties import properties
from master_log.connections.login import MECHANISMS, MSK, OAUTH, PROTOCOLS, Login
from master_log.connections.tokens import TokenEndpoint
from view_algebra.errors import LaminaError

NAME = "LAMINA_KAFKA_OPTIONS"

_POSITION = "Postgres stores the offsets that have been read"
_FETCHING = "it is tuned for reading micro-batches"
_TEXTS = "records are read as bytes, and a source's declaration says what they mean"
_WRITING = "Lamina writes each record exactly once"

FIXED_OPTIONS = {
    "bootstrap.servers": "LAMINA_KAFKA names the brokers",
    **dict.fromkeys(("group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy"), _POSITION),
    **dict.fromkeys(("auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms"), _POSITION),
    "isolation.level": "records of aborted transactions never count",
    **dict.fromkeys(("key.deserializer", "value.deserializer", "interceptor.classes"), _TEXTS),
    **dict.fromkeys(("key.serializer", "value.serializer"), _TEXTS),
    **dict.fromkeys(("acks", "enable.idempotence", "transactional.id", "retries", "delivery.timeout.ms"), _WRITING),
    **dict.fromkeys(("fetch.max.wait.ms", "fetch.min.bytes", "fetch.max.bytes"), _FETCHING),
    **dict.fromkeys(("max.poll.records", "max.partition.fetch.bytes", "receive.buffer.bytes"), _FETCHING),
    "allow.auto.create.topics": "`lamina apply` creates the topics that a catalog declares",
}
"""Options that Lamina decides, with the reason."""

LOGIN = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.key.password",
)
"""Options that become a `Login`."""

NOT_SHARED = (
    "ssl.keystore.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "ssl.engine.factory.class",
    "sasl.oauthbearer.header.urlencode",
    "sasl.kerberos.service.name",
    "sasl.login.class",
)
"""Options of the login that only Java's client understands."""

PYTHON = {
    "client.dns.lookup": "client_dns_lookup",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "send.buffer.bytes": "send_buffer_bytes",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
}
"""Options that every client of kafka-python shares, with their names there."""

JAVA = (
    "check.crcs",
    "client.id",
    "client.rack",
    "default.api.timeout.ms",
    "metadata.recovery.strategy",
    "reconnect.backoff.max.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.trustmanager.algorithm",
)
"""Further options of Java's client. An unknown option passes unless it is nearly one of these."""

_ALL = (*FIXED_OPTIONS, *LOGIN, *NOT_SHARED, *PYTHON, *JAVA)
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_PEM = "Kafka's Python client reads PEM files only."
_TO_PEM = (
    "Write PEM files (openssl pkcs12 -in store.p12 -nodes -out client.pem; of a JKS, first keytool -importkeystore"
    " -srckeystore store.jks -destkeystore store.p12 -deststoretype PKCS12), and name them with type=PEM."
)


def with_options(login: Login | None, text: str) -> Login | None:
    """The login with the options of a text in Java's properties format.

    Raises LaminaError for an option that Lamina decides, for an option of the login that only one client would follow,
    and for an option that the login already sets.
    """
    options = properties(text)
    if not options:
        return login
    for name in options:
        _check(name)
    login_options = [name for name in LOGIN if name in options]
    if login is None:
        login = _login({name: options[name] for name in login_options}) if login_options else Login("PLAINTEXT")
    elif login_options:
        raise LaminaError(
            f"{NAME} sets {login_options[0]}, and LAMINA_KAFKA is a URL that says how to log in",
            way_out="Set it in one of them: LAMINA_KAFKA may be host1:9093,host2:9093.",
        )
    rest = {name: value for name, value in options.items() if name not in LOGIN}
    python = {PYTHON[name]: _for_python(name, value) for name, value in rest.items() if name in PYTHON}
    return replace(login, java=rest, python=python)


def _check(name: str) -> None:
    if name in FIXED_OPTIONS:
        raise LaminaError(
            f"{NAME} sets {name}, which Lamina decides",
            evidence=f"{FIXED_OPTIONS[name]}.",
            way_out="Take the line out.",
        )
    if name in NOT_SHARED:
        raise _not_shared(name)
    if name not in _ALL and (near := difflib.get_close_matches(name, _ALL, n=1, cutoff=0.9)):
        raise LaminaError(f"{NAME} sets {name}, which Kafka's clients do not know", way_out=f"Did you mean {near[0]}?")


def _login(options: Mapping[str, str]) -> Login:
    protocol = options.get("security.protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise LaminaError(
            f"{NAME} says how to log in, but security.protocol is {protocol}",
            way_out=f"Set it to one of {', '.join(PROTOCOLS)}.",
        )
    ca_file, client_file = (_pem_file(options, store) for store in ("truststore", "keystore"))
    certificate = (
        ClientCertificate(client_file, key_password=options.get("ssl.key.password", "")) if client_file else None
    )
    if not protocol.startswith("SASL"):
        return Login(protocol, ca_file=ca_file, certificate=certificate)
    mechanism = options.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        raise LaminaError(
            f"{NAME} logs in by {mechanism}, which Lamina does not support",
            way_out=f"Set sasl.mechanism to one of {', '.join(MECHANISMS)}.",
        )
    words = {
        name: _unescaped(double or single or bare)
        for name, double, single, bare in _JAAS_OPTION.findall(options.get("sasl.jaas.config", ""))
    }
    if mechanism == OAUTH:
        return Login(protocol, mechanism, ca_file=ca_file, certificate=certificate, tokens=_tokens(options, words))
    if mechanism != MSK and not words.keys() >= {"username", "password"}:
        raise _incomplete("username and password")
    user, password = ("", "") if mechanism == MSK else (words["username"], words["password"])
    return Login(protocol, mechanism, user, password, ca_file, certificate)


def _tokens(options: Mapping[str, str], words: Mapping[str, str]) -> TokenEndpoint:
    handler = options.get("sasl.login.callback.handler.class", "")
    if not handler.endswith(".OAuthBearerLoginCallbackHandler"):
        raise _not_shared("sasl.login.callback.handler.class")
    if "sasl.oauthbearer.token.endpoint.url" not in options or not words.keys() >= {"clientId", "clientSecret"}:
        raise _incomplete("clientId and clientSecret, next to sasl.oauthbearer.token.endpoint.url")
    return TokenEndpoint(
        options["sasl.oauthbearer.token.endpoint.url"],
        words["clientId"],
        words["clientSecret"],
        words.get("scope", ""),
        words.get("ssl.truststore.location"),
    )


def _pem_file(options: Mapping[str, str], store: str) -> str | None:
    file = options.get(f"ssl.{store}.location")
    kind = options.get(f"ssl.{store}.type", "JKS")
    if file is not None and kind != "PEM":
        raise LaminaError(f"{NAME} names a {store} of type {kind}", evidence=_PEM, way_out=_TO_PEM)
    return file


def _incomplete(wanted: str) -> LaminaError:
    return LaminaError(
        f"{NAME} describes the login incompletely",
        evidence=f"sasl.jaas.config needs {wanted}.",
        way_out="Complete it, or put the login into LAMINA_KAFKA: sasl_ssl://user:password@host:9093.",
    )


def _not_shared(name: str) -> LaminaError:
    return LaminaError(
        f"{NAME} sets {name}, which Kafka's Python client does not support",
        evidence="Lamina reaches the brokers through both this client and Spark's Java client.",
        way_out=_TO_PEM if name.startswith("ssl.") else "Take it out, or log in another way (docs/how-to/logins.md).",
    )


def _for_python(name: str, value: str) -> Any:
    if name == "client.dns.lookup":
        return value
    if name == "ssl.endpoint.identification.algorithm":
        return value != ""
    if not value.strip().lstrip("-").isdecimal():
        raise LaminaError(f"{NAME} sets {name} to {value!r}, which is not a number", way_out="Correct it.")
    return int(value)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
