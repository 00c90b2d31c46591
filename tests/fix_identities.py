"""Identities for Kafka's brokers: certificates of the tests' own authority, and tokens of an endpoint."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

NOW = datetime.now(UTC)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Authority:
    """Signs certificates under the name of its folder. `file` holds the authority's own certificate."""

    folder: Path
    key: rsa.RSAPrivateKey = field(default_factory=new_key)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.file = str(self.folder / "authority.pem")
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        own = self._certificate(self.folder.name, self.key, NOW + timedelta(days=1), constraint)
        Path(self.file).write_bytes(own)

    def _certificate(self, name: str, key: rsa.RSAPrivateKey, until: datetime, extension: x509.ExtensionType) -> bytes:
        unsigned = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(self.folder.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=2))
            .not_valid_after(until)
            .add_extension(extension, critical=False)
        )
        return unsigned.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def issue(
        self, name: str, *, days: float = 1.0, password: str = "", form: PrivateFormat = PrivateFormat.PKCS8
    ) -> tuple[str, str]:
        """The files of a new certificate, valid for so many days, and of its key."""
        key = new_key()
        localhost = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        certificate, private = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(self._certificate(name, key, NOW + timedelta(days=days), localhost))
        way: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        private.write_bytes(key.private_bytes(Encoding.PEM, form, way))
        return str(certificate), str(private)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Issuer:
    """An endpoint that issues tokens, and the keys by which brokers check them.

    seconds: the life of a token
    clients: the client of every issued token
    answers: other answers, by path
    """

    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    seconds: float = 600.0
    clients: list[str] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    url: str = ""

    def answer(self, path: str, authorization: str, form: dict[str, list[str]]) -> tuple[int, str]:
        """Status and body of a POST."""
        if path in self.answers:
            return self.answers[path]
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if secret != "sec/ret" or form.get("grant_type") != ["client_credentials"] or form.get("scope") != ["kafka"]:
            return 401, '{"error": "invalid_client", "error_description": "no such client"}'
        self.clients.append(client)
        return 200, json.dumps({"access_token": self._token(client), "expires_in": self.seconds})

    def _token(self, client: str) -> str:
        now = time.time()
        claims = {"sub": client, "iat": now, "exp": now + self.seconds, "scope": "kafka", "jti": str(len(self.clients))}
        head = {"alg": "RS256", "kid": "one", "typ": "JWT"}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_base64(self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def keys(self) -> str:
        """The JSON Web Key Set that a broker reads."""
        public = self.key.public_key().public_numbers()
        numbers = {"n": _base64(public.n.to_bytes(256)), "e": _base64(public.e.to_bytes(3))}
        return json.dumps({"keys": [{"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", **numbers}]})


def _handler(issuer: Issuer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _give(self, status: int, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self) -> None:
            self._give(200, issuer.keys())

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._give(*issuer.answer(self.path, self.headers["Authorization"], form))

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """A token endpoint at `url`, which also serves its keys."""
    issuer = Issuer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer))
    issuer.url = f"http://127.0.0.1:{server.server_port}/token"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield issuer
    server.shutdown()
    server.server_close()
    serving.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority of certificates."""
    return Authority(tmp_path_factory.mktemp("identities") / "authority")
