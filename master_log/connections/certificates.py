"""TLS certificates in PEM files: our client certificate for Kafka's brokers, and those of trusted authorities."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class ClientCertificate:
    """The certificate and private key of a client that logs in by mTLS.

    file: PEM, the client's own certificate first, then the chain to its authority
    key_file: PEM, or None if `file` holds the key
    key_password: the password of an encrypted key
    """

    file: str
    key_file: str | None = None
    key_password: str = field(default="", repr=False)

    def read(self) -> tuple[str, str]:
        """The certificates and the key as PEM texts. The key is unencrypted PKCS#8, so that Java reads any kind of key.

        Raises LaminaError for a missing or wrong file, for a key that does not belong to the certificate, and for a
        certificate that is not valid now.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

        text = _read(self.file, "cert_file")
        try:
            chain = x509.load_pem_x509_certificates(text)
        except ValueError as error:
            raise LaminaError(
                f"{self.file} holds no certificate",
                evidence=f"{error}; wanted PEM: -----BEGIN CERTIFICATE-----",
                way_out="Name the client's certificate in cert_file, as PEM.",
            ) from error
        _check_valid(self.file, chain[0].not_valid_before_utc, chain[0].not_valid_after_utc)
        key = self._key()
        public = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if key.public_key().public_bytes(*public) != chain[0].public_key().public_bytes(*public):
            raise LaminaError(
                f"The key in {self.key_file or self.file} does not belong to the certificate in {self.file}",
                evidence=f"the first certificate there belongs to {chain[0].subject.rfc4514_string()}",
                way_out="Put the client's own certificate first, and renew both files together.",
            )
        return (
            "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in chain),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        )

    def for_client(self) -> dict[str, str]:
        """The options of kafka-python, which reads the files for each connection."""
        options = {"ssl_certfile": self.file, "ssl_keyfile": self.key_file, "ssl_password": self.key_password}
        return {name: value for name, value in options.items() if value}

    def for_java(self) -> dict[str, str]:
        """The options of Java's client: the texts themselves, so Spark's workers do not need the files."""
        chain, key = self.read()
        return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}

    def _key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        file = self.key_file or self.file
        text = _read(file, "key_file")
        password = self.key_password.encode() if b"ENCRYPTED" in text else None
        try:
            return load_pem_private_key(text, password or None)
        except (ValueError, TypeError) as error:
            encrypted = b"ENCRYPTED" in text
            raise LaminaError(
                f"The key in {file} does not open with its password" if encrypted else f"{file} holds no private key",
                evidence=str(error) if encrypted else "wanted PEM: -----BEGIN PRIVATE KEY-----",
                way_out="Correct key_password." if encrypted else "Name the PEM file of the private key in key_file.",
            ) from error


def check_authorities(file: str, parameter: str = "ca_file") -> None:
    """Raises LaminaError unless the file named by a parameter holds certificates of authorities, as PEM."""
    _read(file, parameter)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except ssl.SSLError as error:
        raise LaminaError(
            f"{file} holds no certificate",
            evidence=f"{error}; wanted PEM: -----BEGIN CERTIFICATE-----",
            way_out=f"Name the certificate of the authority in {parameter}, as PEM.",
        ) from error


def _read(file: str, parameter: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise LaminaError(
            f"{parameter} names a file that cannot be read",
            evidence=str(error),
            way_out=f"Correct {parameter} in LAMINA_KAFKA, and let Lamina's user read the file.",
        ) from error


def _check_valid(file: str, since: datetime, until: datetime) -> None:
    now = datetime.now(UTC)
    if not since <= now <= until:
        when = f"expired at {until:%Y-%m-%d %H:%M} UTC" if now > until else f"is valid from {since:%Y-%m-%d %H:%M} UTC"
        raise LaminaError(
            f"The client certificate in {file} {when}",
            evidence=f"it is {now:%Y-%m-%d %H:%M} UTC here",
            way_out="Put a valid certificate into the file; it is read again without a restart.",
        )
