"""Prints `.env.example` with a random value for every password: `(umask 077; python3 deploy/new_env.py > .env)`."""

from __future__ import annotations

import base64
import re
import secrets
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / ".env.example"

SECRET = re.compile(r"(?!S3_)\w+_(PASSWORD|SECRET|KEY)=")
"""A line that names a secret and has no value. The keys of S3 are left out, because the object store issues them."""


def with_value(line: str) -> str:
    """The line, with a random value if it lacks the value of a secret."""
    if not SECRET.fullmatch(line):
        return line
    if line == "AIRFLOW_FERNET_KEY=":
        return line + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return line + secrets.token_hex(24)


if __name__ == "__main__":
    sys.stdout.write("".join(with_value(line) + "\n" for line in EXAMPLE.read_text().splitlines()))
