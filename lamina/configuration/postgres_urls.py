"""The address of Postgres in the settings, for psycopg2 (with a passfile's password) and for Java."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from view_algebra.errors import LaminaError


def postgres_url(text: str, name: str) -> str:
    """The URL in the only form that psycopg2 accepts. SQLAlchemy's `postgresql+psycopg2://` is also accepted.

    The LaminaError for a bad URL does not show its password.
    """
    problem = None
    try:
        parts = _with_login(urlsplit(text))
        scheme = parts.scheme.partition("+")[0]
        if scheme not in {"postgresql", "postgres"}:
            problem = f"begins with {parts.scheme}://" if "://" in text else "has no scheme"
        elif not parts.hostname:
            problem = "has no host"
        elif parts.netloc.endswith(":"):
            problem = "has no port after the host's colon"
        elif not parts.path.strip("/"):
            problem = "names no database"
        elif not parts.username:
            problem = "names no user"
        else:
            _ = parts.port  # raises if it is not a number
            return urlunsplit(("postgresql", parts.netloc, parts.path, parts.query, ""))
    except ValueError as error:
        problem = f"is malformed: {error}"
    shown = text.partition("?")[0] if "@" not in text else "…@" + text.rpartition("@")[2].partition("?")[0]
    shown = shown if "password" not in shown.lower() else "It"
    raise LaminaError(
        f"{name} is not the URL of a Postgres database",
        evidence=f"{shown} {problem}.",
        way_out="It looks like postgresql://user:password@host:5432/database; special characters are %-encoded.",
    )


def _with_login(parts: SplitResult) -> SplitResult:
    """The URL with user and password in the login part. libpq also accepts them in the query."""
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    login_parts = {key: value for key, value in parameters if key in ("user", "password")}
    if not login_parts:
        return parts
    user = login_parts.get("user", unquote(parts.username or ""))
    password = login_parts.get("password", unquote(parts.password or ""))
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    rest = [(key, value) for key, value in parameters if key not in login_parts]
    return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}", query=urlencode(rest))


def with_password(url: str, environment: Mapping[str, str]) -> str:
    """The URL with the password that libpq would find in a passfile. Java's driver and Spark's workers read no
    passfile.
    """
    parts = urlsplit(url)
    if parts.password is not None:
        return url
    parameters = dict(parse_qsl(parts.query))
    path = parameters.get("passfile") or environment.get("PGPASSFILE") or Path("~/.pgpass").expanduser()
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return url
    wanted = (parts.hostname or "", str(parts.port or 5432), parts.path.strip("/"), unquote(parts.username or ""))
    for line in lines:
        fields = [re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\):", line)]
        if (
            not line.startswith("#")
            and len(fields) == 5
            and all(a in ("*", b) for a, b in zip(fields, wanted, strict=False))
        ):
            user, _, address = parts.netloc.rpartition("@")
            return urlunsplit(parts._replace(netloc=f"{user}:{quote(fields[4], safe='')}@{address}"))
    return url


def without_password(url: str, passfile: Path) -> str:
    """Writes the password to a passfile, and returns the URL without it for a command line, which other users
    can see.
    """
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host, port, database = parts.hostname or "", parts.port or 5432, parts.path.strip("/")
    fields = (host, str(port), database, unquote(parts.username or ""), unquote(parts.password))
    passfile.parent.mkdir(parents=True, exist_ok=True)
    passfile.touch(mode=0o600)
    passfile.chmod(0o600)
    passfile.write_text(":".join(re.sub(r"([\\:])", r"\\\1", part) for part in fields) + "\n", encoding="utf-8")
    query = urlencode([*parse_qsl(parts.query), ("passfile", str(passfile.absolute()))], quote_via=quote)
    address = f"{parts.username}@{parts.netloc.rpartition('@')[2]}"
    return urlunsplit(parts._replace(netloc=address, query=query))


@dataclass(frozen=True)
class Jdbc:
    """A Postgres URL as Java's driver takes it."""

    url: str
    user: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, postgres: str, **parameters: str) -> Jdbc:
        """Parses a URL that `postgres_url` accepted. `parameters` are the driver's, such as currentSchema."""
        parts = urlsplit(postgres)
        query = urlencode({**dict(parse_qsl(parts.query)), **parameters})
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        address = f"{host}:{parts.port or 5432}"
        return cls(
            f"jdbc:postgresql://{address}{parts.path}" + (f"?{query}" if query else ""),
            unquote(parts.username or ""),
            unquote(parts.password or ""),
        )
