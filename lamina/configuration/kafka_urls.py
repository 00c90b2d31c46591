"""The address of Kafka's brokers in the settings: a list of servers, or a URL with a login."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from master_log.connections.certificates import ClientCertificate
from master_log.connections.login import MECHANISMS, MSK, OAUTH, PROTOCOLS, Login
from master_log.connections.tokens import TokenEndpoint
from view_algebra.errors import LaminaError

PARAMETERS = {
    "ca_file": (),
    "mechanism": (),
    "cert_file": (),
    "key_file": ("cert_file",),
    "key_password": ("cert_file",),
    "token_url": (),
    "token_ca_file": ("token_url",),
    "scope": ("token_url",),
}
"""Parameters of the URL, with the parameters that each one needs."""


def brokers(text: str) -> tuple[str, Login | None]:
    """Bootstrap servers, and the login of a URL such as `sasl_ssl://user:password@host:9093,…?mechanism=PLAIN`.

    The LaminaError for a bad URL shows neither a password nor the values of parameters.
    """
    scheme, is_url, rest = text.partition("://")
    login = None
    if is_url:
        text, login = _url(scheme.upper(), rest)
    servers = [server.strip() for server in text.split(",") if server.strip()]
    for server in servers or [text]:
        host, _, port = server.rpartition(":")
        if not _is_host(host) or "@" in host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise _no_brokers(repr(server.rpartition("@")[2]))
    return ",".join(servers), login


def _is_host(name: str) -> bool:
    """True unless no server can have the name: it is empty, or a part between two dots is empty or too long."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def _url(scheme: str, rest: str) -> tuple[str, Login]:
    shown = f"{scheme.lower()}://…@{rest.rpartition('@')[2].partition('?')[0]}"
    try:
        url = urlsplit(f"//{rest}")
    except ValueError:  # a bracket, which would begin an IPv6 address
        raise _no_brokers(shown) from None
    who, _, servers = url.netloc.rpartition("@")
    user, _, password = map(unquote, who.partition(":"))
    parameters = dict(parse_qsl(url.query))
    mechanism = parameters.get("mechanism", OAUTH if "token_url" in parameters else Login.mechanism)
    # A ? or # in the password has cut it off, and its rest must not be shown.
    cut_off = "@" in url.query + url.fragment and not who
    if scheme not in PROTOCOLS or url.path.strip("/") or cut_off:
        raise _no_brokers(shown)
    if mechanism not in MECHANISMS:
        raise _no_brokers(f"{shown}?mechanism={mechanism}")
    for name in parameters:
        if name not in PARAMETERS:
            raise _no_brokers(f"{shown}?{name}=…, a parameter that Lamina does not know")
        for needed in PARAMETERS[name]:
            if needed not in parameters:
                raise _no_brokers(f"{shown}?{name}=… without {needed}")
    has_user = scheme.startswith("SASL") and mechanism != MSK
    if bool(user) != has_user:
        raise _no_brokers(f"{shown.replace('…@', '')}, which {'has' if user else 'lacks'} a user")
    if (mechanism == OAUTH and scheme.startswith("SASL")) != ("token_url" in parameters):
        has = "has" if "token_url" in parameters else "lacks"
        raise _no_brokers(f"{shown}?mechanism={mechanism}, which {has} a token_url")
    login = Login(
        scheme,
        mechanism,
        *(("", "") if "token_url" in parameters else (user, password)),
        parameters.get("ca_file"),
        certificate(parameters),
        tokens(user, password, parameters),
    )
    return servers, login


def certificate(parameters: dict[str, str]) -> ClientCertificate | None:
    """The client certificate that the parameters name."""
    if "cert_file" not in parameters:
        return None
    return ClientCertificate(parameters["cert_file"], parameters.get("key_file"), parameters.get("key_password", ""))


def tokens(client: str, secret: str, parameters: dict[str, str]) -> TokenEndpoint | None:
    """The token endpoint that the parameters name."""
    if "token_url" not in parameters:
        return None
    scope, ca_file = parameters.get("scope", ""), parameters.get("token_ca_file")
    return TokenEndpoint(parameters["token_url"], client, secret, scope, ca_file)


def _no_brokers(shown: str) -> LaminaError:
    return LaminaError(
        "LAMINA_KAFKA is not a list of brokers",
        evidence=f"Found {shown}.",
        way_out="It looks like host1:9092,host2:9092, or, for brokers that ask for a login, like"
        f" sasl_ssl://user:password@host:9093?mechanism={Login.mechanism}&ca_file=/path (special characters %-encoded;"
        f" {', '.join(PROTOCOLS).lower()}; {', '.join(MECHANISMS)}; {', '.join(PARAMETERS)}).",
    )
