"""The rights of readers, and their limits: no reader may take so much of the server that others notice.

Rights are Postgres' own. Limits are settings of the database, so they apply to every login, including one that is only
a member of `analyst`. The owner is exempt. A reader can raise the timeouts with `SET`, but not the number of
connections or the size of temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg2.extensions import encrypt_password
from sqlalchemy import Connection, text

from serving_layer.catalog import lookup
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database, PostgresError, is_lock_timeout
from serving_layer.readers.analyst_limits import CONNECTIONS_OF_A_PERSON, Limits
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import LONGEST_POSTGRES_NAME, quoted

OF_THE_ROLE: Mapping[str, str] = {"default_transaction_read_only": "on"}
"""The only settings with which a session of `analyst` begins in our database."""


def rights(database: str, analyst: str, writer: str) -> str:
    """The GRANT statements of the roles, to be run by the owner of the database."""
    here = quoted(database)
    return f"""
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        REVOKE CONNECT, TEMPORARY ON DATABASE {here} FROM PUBLIC;
        GRANT CONNECT ON DATABASE {here} TO {analyst};
        GRANT CONNECT, TEMPORARY ON DATABASE {here} TO {writer};
        GRANT USAGE ON SCHEMA analytics, spark TO {analyst};
        GRANT USAGE ON SCHEMA analytics, spark, lamina TO {writer};
        GRANT USAGE, CREATE ON SCHEMA cells, realtime TO {writer};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lamina, cells, realtime TO {writer};
        ALTER DEFAULT PRIVILEGES IN SCHEMA lamina, cells, realtime
            GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {writer};
        ALTER DATABASE {here} SET search_path = analytics, public;
    """


def settings(database: str, owner: str, analyst: str, limits: Limits, *, files: bool) -> str:
    """The limits as statements. `files`: includes the limit of temporary files, which needs a right of its own."""
    here, us = quoted(database), quoted(owner)
    shared = {**limits.timeouts, **({"temp_file_limit": limits.temp_file_limit} if files else {})}
    none = {**dict.fromkeys(limits.timeouts, "0"), **({"temp_file_limit": "-1"} if files else {})}
    statements = [f"ALTER DATABASE {here} SET {name} = '{value}'" for name, value in shared.items()]
    statements += [f"ALTER ROLE {us} IN DATABASE {here} SET {name} = '{value}'" for name, value in none.items()]
    statements += [
        *(f"ALTER ROLE {analyst} IN DATABASE {here} SET {name} = {value}" for name, value in OF_THE_ROLE.items()),
        f"ALTER ROLE {analyst} CONNECTION LIMIT {limits.connections or -1}",
    ]
    return ";\n".join(statements)


@dataclass(frozen=True)
class RoleSetting:
    """A foreign setting that sessions of a role begin with.

    value: None if one of ours is missing
    everywhere: it applies in all databases, not only in this one
    """

    name: str
    value: str | None
    everywhere: bool

    def __str__(self) -> str:
        return f"{self.name} = {self.value or 'the default'}"


def foreign_settings(connection: Connection, role: str) -> list[RoleSetting]:
    """The settings of the readers' role that Lamina did not set.

    Anyone with the role's login can change them (`ALTER ROLE … SET`), and Postgres cannot forbid it. Settings that only
    a superuser may change are left out, because no reader has set them.
    """
    rows = connection.execute(
        text(
            "SELECT of_role.setdatabase = 0 AS everywhere, split_part(one, '=', 1) AS name,"
            " substr(one, strpos(one, '=') + 1) AS value"
            " FROM pg_db_role_setting AS of_role CROSS JOIN unnest(of_role.setconfig) AS one"
            " LEFT JOIN pg_settings AS known ON lower(known.name) = lower(split_part(one, '=', 1))"
            " WHERE of_role.setrole = to_regrole(:role) AND coalesce(known.context, 'user') = 'user' AND"
            " of_role.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))"
            " ORDER BY everywhere DESC, name"
        ),
        {"role": role},
    ).all()
    here = {row.name: row.value for row in rows if not row.everywhere}
    foreign = [
        RoleSetting(row.name, row.value, row.everywhere)
        for row in rows
        if row.everywhere or OF_THE_ROLE.get(row.name) != row.value
    ]
    return foreign + [RoleSetting(name, None, everywhere=False) for name in OF_THE_ROLE if name not in here]


def reset_settings(connection: Connection, role: str, foreign: Sequence[RoleSetting]) -> None:
    """Restores our settings of a role."""
    database = quoted(str(connection.execute(text("SELECT current_database()")).scalar_one()))
    for setting in foreign:
        alter = f"ALTER ROLE {quoted(role)}" + ("" if setting.everywhere else f" IN DATABASE {database}")
        own_value = None if setting.everywhere else OF_THE_ROLE.get(setting.name)
        change = f"RESET {_name(setting.name)}" if own_value is None else f"SET {setting.name} = {own_value}"
        run(connection, f"{alter} {change}")


def _name(setting: str) -> str:
    """The name of a setting in SQL. An extension's setting has a dot."""
    return ".".join(quoted(part) for part in setting.split("."))


def make_login(connection: Connection, name: str, analyst: str, password: str, connections: int | None = None) -> bool:
    """Creates the login of a person with the rights of `analyst`. False if it existed, and only its password was set.

    connections: concurrent sessions. None keeps the present number, or sets that of a person. The login cannot become
        `analyst` itself (SET FALSE), so it can change neither that role's password nor its settings
    """
    is_other = connection.execute(
        text(
            "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR rolname = :analyst"
            " OR NOT EXISTS (SELECT FROM pg_auth_members WHERE roleid = to_regrole(:analyst) AND member = pg_roles.oid)"
            " FROM pg_roles WHERE rolname = :name"
        ),
        {"name": name, "analyst": analyst},
    ).scalar()
    if is_other or name.startswith("pg_") or len(name.encode()) > LONGEST_POSTGRES_NAME:
        raise LaminaError(
            f"{name} cannot be the login of a reader",
            evidence="a role of this name has other rights"
            if is_other
            else "Postgres does not accept this name for a role",
            way_out="Choose another name.",
        )
    if is_other is None:
        run(connection, f"CREATE ROLE {quoted(name)} LOGIN CONNECTION LIMIT {CONNECTIONS_OF_A_PERSON}")
        run(connection, f"GRANT {quoted(analyst)} TO {quoted(name)} WITH INHERIT TRUE, SET FALSE")
    if connections is not None:
        run(connection, f"ALTER ROLE {quoted(name)} CONNECTION LIMIT {connections}")
    set_password(connection, name, password)
    return is_other is None


def may_limit_files(connection: Connection) -> bool:
    """True if a superuser has allowed us to set `temp_file_limit` (`superuser.sql` does)."""
    may = "SELECT has_parameter_privilege('temp_file_limit', 'SET')"
    return bool(connection.execute(text(may)).scalar_one())


def unguarded(connection: Connection) -> list[str]:
    """The protections that only a superuser can set up (`superuser.sql`) and that are missing, as clauses."""
    takes, sees = connection.execute(
        text(
            "SELECT has_function_privilege('public', 'pg_advisory_lock(bigint)', 'EXECUTE'),"
            " pg_has_role('pg_read_all_stats', 'USAGE')"
        )
    ).one()
    return [
        *(["readers may take advisory locks and make large objects"] if takes else []),
        *([] if sees else ["Lamina does not see the sessions of other roles, so no alarm names an old snapshot"]),
    ]


@dataclass(frozen=True)
class Holder:
    """A process that reads a view, or is idle in a transaction that has read one, and for how many seconds."""

    process: int
    role: str
    program: str
    reads: bool
    seconds: float

    def __str__(self) -> str:
        what = "has been running a SELECT" if self.reads else "has been idle in its transaction"
        return f"process {self.process} ({self.role}, {self.program or 'no name'}) {what} for {self.seconds:.0f} s"


def in_the_way(connection: Connection) -> list[Holder]:
    """The processes that hold a view, as far as this login may see them.

    A reader's transaction with an id has written something. `DROP OWNED`, for example, revokes nothing but locks
    catalog entries of views.
    """
    holders = connection.execute(
        text(
            "SELECT DISTINCT a.pid, a.usename, a.application_name, a.state = 'active' AS reads,"
            " extract(epoch FROM statement_timestamp() - a.state_change) AS seconds"
            " FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid) LEFT JOIN pg_class AS c ON c.oid = l.relation"
            " WHERE a.pid <> pg_backend_pid() AND l.granted AND a.datname = current_database() AND a.state IS NOT NULL"
            " AND (c.relkind = 'v' AND c.relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = ANY (:schemas))"
            " OR l.locktype = 'transactionid' AND a.usename <> current_user) ORDER BY seconds DESC"
        ),
        {"schemas": ["analytics", "lamina", *lookup.preview_names(connection)]},
    )
    return [Holder(row.pid, row.usename, row.application_name, row.reads, float(row.seconds)) for row in holders]


def set_password(connection: Connection, role: str, password: str) -> None:
    """Sets a role's password. The server and its log see only the verifier."""
    raw = connection.connection.driver_connection
    verifier = encrypt_password(password, role, raw, "scram-sha-256")
    literal = connection.execute(text("SELECT quote_literal(:v)"), {"v": verifier}).scalar_one()
    run(connection, f"ALTER ROLE {quoted(role)} PASSWORD {literal}")


@contextmanager
def naming_readers(database: Database, what: str) -> Iterator[None]:
    """Names the readers in the way if one holds a view that the block wants to replace."""
    try:
        yield
    except PostgresError as error:
        if not is_lock_timeout(error):
            raise
        with database.begin() as connection:
            holders = in_the_way(connection)
        raise LaminaError(
            what,
            evidence="\n".join(map(str, holders)) or "its transaction has ended by now",
            way_out="Nothing was changed, and nobody waits. Repeat the command when the reader has ended; or end it:"
            " SELECT pg_terminate_backend(…) of its process.",
        ) from error
