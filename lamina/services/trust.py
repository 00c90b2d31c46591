"""Lets Java trust the machine's certificates, for example those of a company's proxy.

A bundled Java knows only the public authorities. The machine's own are in a PEM file, which Java cannot
read, so this module writes them as a Java key store. Its format JKS holds certificates unchanged and needs no program.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
)

PASSWORD = "changeit"  # noqa: S105 - Java's usual word. Nothing is secret, it only guards against damage
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def trusting() -> ssl.SSLContext:
    """A context for Python with the machine's certificates."""
    return ssl.create_default_context(cafile=_bundle())


def network_options(folder: Path) -> list[str]:
    """The JVM options for reaching the network as other programs on this machine do. The key store is written to
    `folder`.
    """
    bundle = _bundle()
    options = []
    if bundle is not None:
        store = folder / "trusted.jks"
        store.write_bytes(_key_store(_certificates(bundle)))
        options += [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]
        options.append("-Djavax.net.ssl.trustStoreType=jks")
    for scheme, address in urllib.request.getproxies().items():
        proxy = urlsplit(address if "://" in address else f"//{address}")
        if scheme in {"http", "https"} and proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    return options


def _bundle() -> Path | None:
    """The machine's file of certificates: the first that has any."""
    named = [os.environ.get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")]
    places = (Path(path) for path in (*named, ssl.get_default_verify_paths().cafile, *BUNDLES) if path)
    return next((path for path in places if path.is_file() and _certificates(path)), None)


def _certificates(bundle: Path) -> list[bytes]:
    """The certificates of a PEM file, DER-encoded."""
    certificates = re.findall(f"{_BEGIN}.*?{_END}", bundle.read_text(errors="replace"), re.DOTALL)
    return [ssl.PEM_cert_to_DER_cert(certificate) for certificate in certificates]


def _key_store(certificates: list[bytes]) -> bytes:
    """A JKS file: a header, the entries, a digest over password and both (as sun.security.provider.JavaKeyStore)."""
    now = int(time.time() * 1000)
    store = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        store += struct.pack(">I", _TRUSTED) + _text(str(number)) + struct.pack(">Q", now)
        store += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    guard = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store, usedforsecurity=False)
    return store + guard.digest()


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()
