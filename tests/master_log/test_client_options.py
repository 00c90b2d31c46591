"""Options of Kafka's Java clients apply to both clients, or are refused with an explanation."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from kafka import KafkaConsumer, KafkaProducer

from master_log.connections.certificates import ClientCertificate, check_authorities
from master_log.connections.client_options import FIXED_OPTIONS, PYTHON, with_options
from master_log.connections.login import Login
from master_log.connections.tokens import TokenEndpoint, Tokens
from master_log.connections.unavailable import KafkaUnavailable
from master_log.reading.kafka_reader import KAFKA_READER
from tests.fix_identities import Authority, Issuer
from view_algebra.errors import LaminaError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"


def test_java_options_reach_both_clients() -> None:
    text = f"""
        # as our platform hands it out
        security.protocol = SASL_SSL
        sasl.mechanism : PLAIN
        sasl.jaas.config = {PLAIN} \\
            username="ann" password="a\\\\"b c";
        ssl.truststore.type=PEM
        ssl.truststore.location=/etc/ca.pem
        ssl.endpoint.identification.algorithm=
        connections.max.idle.ms 60000
        client.rack=a
        some.plugin.setting=1
    """
    login = with_options(None, text)
    assert login is not None
    rest = ("ssl.endpoint.identification.algorithm", "connections.max.idle.ms", "client.rack", "some.plugin.setting")
    java = dict(zip(rest, ("", "60000", "a", "1"), strict=True))
    python = {"ssl_check_hostname": False, "connections_max_idle_ms": 60000}
    assert login == Login("SASL_SSL", "PLAIN", "ann", 'a"b c', "/etc/ca.pem", java=java, python=python)
    text = f"""
        security.protocol=SASL_SSL
        sasl.mechanism=OAUTHBEARER
        sasl.login.callback.handler.class={OAUTH}LoginCallbackHandler
        sasl.oauthbearer.token.endpoint.url=https://id/token
        sasl.jaas.config={OAUTH}LoginModule required clientId='me' clientSecret=x scope="kafka";
        ssl.keystore.type=PEM
        ssl.keystore.location=/client.pem
        ssl.key.password=secret
    """
    expected = Login(
        "SASL_SSL",
        "OAUTHBEARER",
        certificate=ClientCertificate("/client.pem", key_password="secret"),
        tokens=TokenEndpoint("https://id/token", "me", "x", "kafka"),
    )
    assert with_options(None, text) == expected
    assert with_options(Login("SSL"), "client.rack=a") == Login("SSL", java={"client.rack": "a"})
    assert with_options(None, "client.rack=a") == Login("PLAINTEXT", java={"client.rack": "a"})
    assert with_options(None, "# none") is None
    # As Amazon documents it; no MSK is at hand.
    amazon = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "kafka.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }
    assert Login("SASL_SSL", "AWS_MSK_IAM").for_spark() == amazon
    text = "".join(f"{name.removeprefix('kafka.')}={value}\n" for name, value in amazon.items())
    assert with_options(None, text) == Login("SASL_SSL", "AWS_MSK_IAM")
    for client in (KafkaConsumer, KafkaProducer):
        assert client.DEFAULT_CONFIG.keys() >= set(PYTHON.values())
    assert FIXED_OPTIONS.keys() >= {name.removeprefix("kafka.") for name in KAFKA_READER if name.startswith("kafka.")}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        *((f"{name}=x", f"sets {name}, which Lamina decides") for name in FIXED_OPTIONS),
        ("conections.max.idle.ms=1", "sets conections.max.idle.ms, which Kafka's clients do not know"),
        ("connections.max.idle.ms=x", "to 'x', which is not a number"),
        ("sasl.mechanism=PLAIN", "security.protocol is PLAINTEXT"),
        ("security.protocol=SASL_SSL", "logs in by GSSAPI, which Lamina does not support"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "describes the login incompletely"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "sets sasl.login.callback.handler.class"),
        ("security.protocol=SSL\nssl.truststore.location=/a.jks", "names a truststore of type JKS"),
        (
            "security.protocol=SSL\nssl.keystore.location=/a\nssl.keystore.type=PKCS12",
            "names a keystore of type PKCS12",
        ),
        ("ssl.keystore.password=secret", "sets ssl.keystore.password, which Kafka's Python client does not support"),
    ],
)
def test_an_option_that_lamina_cannot_honor_is_refused(text: str, what: str) -> None:
    with pytest.raises(LaminaError, match="LAMINA_KAFKA_OPTIONS") as refused:
        with_options(None, text)
    assert what in refused.value.what
    assert refused.value.way_out
    assert "secret" not in str(refused.value)
    if text.startswith(("security", "sasl")):
        with pytest.raises(LaminaError, match="and LAMINA_KAFKA is a URL that says how to log in"):
            with_options(Login("SSL"), text)


def test_a_certificate_may_have_a_key_of_any_kind(authority: Authority) -> None:
    for number, (password, form) in enumerate(
        [("", PrivateFormat.PKCS8), ("", PrivateFormat.TraditionalOpenSSL), ("s/ecret", PrivateFormat.PKCS8)]
    ):
        files = authority.issue(f"kind{number}", password=password, form=form)
        chain, key = ClientCertificate(*files, password).read()
        assert chain == Path(files[0]).read_text()
        assert key.startswith("-----BEGIN PRIVATE KEY-----")
        both = Path(files[0]).with_suffix(".pem")
        both.write_text("".join(Path(file).read_text() for file in files))
        assert ClientCertificate(str(both), key_password=password).read() == (chain, key)


def test_an_unusable_certificate_is_refused(authority: Authority, tmp_path: Path) -> None:
    good, key = authority.issue("good")
    other, _ = authority.issue("other")
    expired, old_key = authority.issue("expired", days=-1)
    locked, locked_key = authority.issue("locked", password="right")
    html = tmp_path / "page.pem"
    html.write_text("<html>secret</html>")
    none = str(tmp_path / "none.pem")
    for certificate, what in (
        (ClientCertificate(none, key), "cert_file names a file that cannot be read"),
        (ClientCertificate(good, none), "key_file names a file that cannot be read"),
        (ClientCertificate(str(html), key), f"{html} holds no certificate"),
        (ClientCertificate(good, str(html)), f"{html} holds no private key"),
        (ClientCertificate(good), f"{good} holds no private key"),
        (ClientCertificate(other, key), f"The key in {key} does not belong to the certificate in {other}"),
        (ClientCertificate(expired, old_key), f"The client certificate in {expired} expired at "),
        (ClientCertificate(locked, locked_key, "wrong"), f"The key in {locked_key} does not open with its password"),
        (ClientCertificate(locked, locked_key), f"The key in {locked_key} does not open with its password"),
    ):
        login = Login("SSL", certificate=certificate)
        for options in (login.for_client, login.for_spark):
            with pytest.raises(LaminaError) as refused:
                options()
            assert what in refused.value.what
            assert refused.value.way_out
            assert "secret" not in str(refused.value)
    for file, what in ((none, "ca_file names a file"), (str(html), "holds no certificate")):
        with pytest.raises(LaminaError, match=what):
            check_authorities(file)


def test_a_token_endpoint_is_an_http_or_https_url(tmp_path: Path) -> None:
    token = tmp_path / "token.json"
    token.write_text('{"access_token": "a.b.c"}')
    text = f"""
        security.protocol=SASL_SSL
        sasl.mechanism=OAUTHBEARER
        sasl.jaas.config={OAUTH}LoginModule required clientId="me" clientSecret="secret";
        sasl.login.callback.handler.class={OAUTH}LoginCallbackHandler
        sasl.oauthbearer.token.endpoint.url={token.as_uri()}
    """
    with pytest.raises(LaminaError, match="The token endpoint is not an http or https URL") as refused:
        with_options(None, text)
    assert "secret" not in str(refused.value)


def test_a_token_endpoint_that_issues_no_token_is_reported(issuer: Issuer) -> None:
    issuer.answers |= {
        "/html": (200, "<html>Sign in</html>"),
        "/opaque": (200, '{"access_token": "abc"}'),
        "/down": (503, "later"),
        "/list": (200, "[]"),
        "/other": (200, '{"token": "opaque"}'),
    }
    base = issuer.url.removesuffix("/token")
    for path, secret, what, evidence in (
        ("/token", "wrong", "refuses the client 'me'", "HTTP 401 invalid_client: no such client"),
        ("/html", "sec/ret", "does not answer with a token", "<html>Sign in</html>"),
        ("/list", "sec/ret", "does not answer with a token", "JSON that is not an object"),
        ("/other", "sec/ret", "does not answer with a token", "an object with token, wanted"),
        ("/opaque", "sec/ret", "issues tokens that are not JWTs", "Java"),
        ("/down", "sec/ret", "does not answer", "503"),
    ):
        with pytest.raises(LaminaError) as refused:
            TokenEndpoint(base + path, "me", secret, "kafka").fetch()
        assert what in refused.value.what
        assert evidence in refused.value.evidence
    with pytest.raises(LaminaError, match="does not answer"):
        TokenEndpoint("http://127.0.0.1:1/token", "me", "x").fetch()
    with pytest.raises(LaminaError, match="token_ca_file names a file that cannot be read"):
        TokenEndpoint("https://127.0.0.1:1/token", "me", "x", ca_file="/none.pem").fetch()


def test_a_token_endpoint_that_speaks_no_http_counts_as_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

        pool.submit(answer)
        with pytest.raises(KafkaUnavailable, match="does not answer"):
            TokenEndpoint(f"http://127.0.0.1:{server.getsockname()[1]}/token", "me", "x").fetch()


def test_a_token_is_used_until_most_of_its_life_has_passed(issuer: Issuer) -> None:
    now = [1_000.0]
    tokens = Tokens(TokenEndpoint(issuer.url, "again", "sec/ret", "kafka"), lambda: now[0])
    first = tokens.token()
    now[0] += 0.79 * issuer.seconds
    assert tokens.token() == first
    now[0] += 0.02 * issuer.seconds
    issuer.answers["/token"] = (503, "")
    assert tokens.token() == first, "it is valid still"
    del issuer.answers["/token"]
    assert tokens.token() != first
    assert issuer.clients.count("again") == 2
