"""Settings come from the environment, then from `lamina.toml` in the working folder, then from the embedded services.

`LAMINA_POSTGRES_FILE` and the other `_FILE` variables name a file that holds the value, and Postgres' password may come
from libpq's passfile. Then no secret is in the environment, which child processes and administrators can read.

Only this module reads the settings of docs/settings.md from the environment. Postgres and Kafka are set together or not
at all, so a deployment that forgot one of them never writes to a service on somebody's laptop.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from view_algebra.errors import LaminaError

FILE = "lamina.toml"

_FILE = "_FILE"
"""Suffix of a variable that names a file with the value."""


class Setting(NamedTuple):
    """A row of docs/settings.md."""

    default: str
    means: str


SETTINGS = {
    "postgres": Setting(
        "the embedded server", "URL of the role that owns and writes everything: `postgresql://lamina:…@db:5432/lamina`"
    ),
    "analyst": Setting(
        "the embedded server's, otherwise none",
        "URL of the read-only role, by which `lamina sql`, the console and receipts read",
    ),
    "analyst_limits": Setting(
        "[see Roles](operations.md#roles)", "limits of readers, such as `statement_timeout=10min`"
    ),
    "kafka": Setting(
        "the embedded broker", "brokers: `host1:9092,host2:9092`, or a [URL with a login](how-to/logins.md)"
    ),
    "kafka_options": Setting(
        "none",
        "options of Kafka's Java clients, [as a properties file](how-to/logins.md#a-file-of-options)",
    ),
    "schema_registry": Setting(
        "none",
        "schema registry for the records' schemas: `https://user:password@host:8081`,"
        " or a [URL with other logins](operations.md#schema-registry)",
    ),
    "warehouse": Setting(
        "`warehouse` in LAMINA_HOME",
        "folder of the master log: a path that Spark's driver and every worker reach, `s3://bucket/path` or `hdfs://…`"
        " ([object storage](how-to/object-storage.md))",
    ),
    "warehouse_options": Setting(
        "none", "properties of Iceberg's access to object storage, such as `s3.path-style-access=true`, comma-separated"
    ),
    "spark_jars": Setting("none", "further jars for Spark, comma-separated paths: the client of `gs://` or `abfss://`"),
    "spark_master": Setting(
        "`local[*]`",
        "Spark's master: `local[N]`, `spark://host:7077`, `yarn`, `k8s://https://host:6443`; with any but `local`,"
        " `LAMINA_WAREHOUSE` must be set",
    ),
    "spark_conf": Setting("none", "further settings of Spark, [as in spark-defaults.conf](operations.md#spark)"),
    "home": Setting("`.lamina`", "folder of logs, checkpoints, jars and the embedded services' data"),
    "catalog": Setting("`catalog`", "folder of the declarations"),
    "alarm_after": Setting("60", "alarm after this many seconds in which records wait and the speed layer counts none"),
    "alarm_bad_records": Setting("1000", "alarm above this many bad records of a source within an hour"),
    "alarm_no_rebuild": Setting("never", "alarm after this many hours without a successful rebuild"),
    "backup_days": Setting("14", "age in days of the oldest backup that can be restored"),
}
"""Each setting by its key in lamina.toml."""

VARIABLES = {key: f"LAMINA_{key.upper()}" for key in SETTINGS}
"""The environment variable of each key. It wins over lamina.toml."""


def values_of(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings by key. An empty variable counts as unset."""
    values = _read_toml(folder / FILE)
    for key, variable in VARIABLES.items():
        if environment.get(variable, "").strip():
            values[key] = environment[variable].strip()
        if environment.get(f"{variable}{_FILE}", "").strip():
            if environment.get(variable, "").strip():
                raise LaminaError(
                    f"{variable} and {variable}{_FILE} are both set",
                    evidence="one says the value, the other names a file that holds it",
                    way_out="Set one of them.",
                )
            values[key] = _held_in(environment[f"{variable}{_FILE}"].strip(), f"{variable}{_FILE}")
    variables = {*VARIABLES.values(), *(f"{variable}{_FILE}" for variable in VARIABLES.values())}
    unknown = [name for name in environment if name.startswith("LAMINA_") and name not in variables]
    for name in sorted(unknown):
        near = difflib.get_close_matches(name, VARIABLES.values(), n=1, cutoff=0.8)
        if near:  # the prefix may be somebody else's, but a name this near to ours is a typo
            raise LaminaError(
                f"The environment sets {name}, which Lamina does not know",
                evidence=f"Known: {', '.join(VARIABLES.values())}.",
                way_out=f"Did you mean {near[0]}?",
            )
    return values


def _held_in(name: str, variable: str) -> str:
    try:
        value = Path(name).read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LaminaError(
            f"{variable} names a file that cannot be read", evidence=str(error), way_out="Make it a readable text."
        ) from error
    if not value:
        raise LaminaError(f"{variable} names an empty file", evidence=name, way_out="Write the value into it.")
    return value


def _read_toml(path: Path) -> dict[str, str]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LaminaError(
            f"{path} is not TOML", evidence=str(error), way_out='Lines look like: kafka = "localhost:9092"'
        ) from error
    except OSError as error:
        raise LaminaError(f"{path} cannot be read", evidence=str(error), way_out="Make it readable.") from error
    for key, value in table.items():
        if key not in VARIABLES:
            near = difflib.get_close_matches(key, VARIABLES, n=1)
            raise LaminaError(
                f"{path} has the key `{key}`, which Lamina does not know",
                evidence=f"Known: {', '.join(VARIABLES)}.",
                way_out=f"Did you mean `{near[0]}`?" if near else "Take it out.",
            )
        if not isinstance(value, str) or not value:
            raise LaminaError(
                f"{path} sets `{key}` to something that is not a text",
                evidence=f"Found {value!r}, wanted a string.",
                way_out=f'Write it in quotes: {key} = "…"',
            )
    return dict(table)


def catalog_folder(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The folder of declarations according to the working folder's settings and the environment, by default
    `catalog`.
    """
    values = values_of((folder or Path()).absolute(), os.environ if environment is None else environment)
    return Path(values.get("catalog", "catalog"))
