"""Settings come from the environment, then from `lamina.toml` in the working folder, then from the embedded services.

`LAMINA_POSTGRES_FILE` and the other `_FILE` variables name a file that holds the value, and Postgres' password may come
from libpq's passfile. Then no secret is in the environment, which child processes and administrators can read.

No other module reads settings from the environment. Postgres and Kafka are set together or not at all, so a deployment
that forgot one of them never writes to a service on somebody's laptop.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from lamina.configuration import warehouses
from lamina.configuration.kafka_urls import brokers
from lamina.configuration.postgres_urls import postgres_url, with_password
from lamina.services.embedded import Embedded
from master_log.client_options import with_options
from master_log.java_properties import properties
from master_log.login import Login, RegistryAddress
from serving_layer.readers.analyst_limits import Limits
from view_algebra.errors import LaminaError

FILE = "lamina.toml"

_FILE = "_FILE"
"""Suffix of a variable that names a file with the value."""

BACKUP_DAYS = 14.0
"""Days for which the master log keeps files that only an older backup of its catalog names."""


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


@dataclass(frozen=True)
class LineageReceiver:
    """The receiver of OpenLineage events, from the variables that OpenLineage's own client reads.

    `url` is None if a configuration file or variables that begin with OPENLINEAGE__ configure more than a URL.
    """

    namespace: str
    url: str | None
    endpoint: str
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> LineageReceiver | None:
        """The receiver, or None if none is set or OPENLINEAGE_DISABLED is `true`."""
        variables = {name: value.strip() for name, value in environment.items() if value.strip()}
        more = "OPENLINEAGE_CONFIG" in variables or any(
            name.startswith("OPENLINEAGE__TRANSPORT__") for name in variables
        )
        if variables.get("OPENLINEAGE_DISABLED", "").lower() == "true" or not (more or "OPENLINEAGE_URL" in variables):
            return None
        return cls(
            variables.get("OPENLINEAGE_NAMESPACE", "lamina"),
            None if more else variables["OPENLINEAGE_URL"],
            variables.get("OPENLINEAGE_ENDPOINT", "api/v1/lineage"),
            variables.get("OPENLINEAGE_API_KEY"),
        )

    @property
    def shown(self) -> str:
        """Its address without a login."""
        return self.url.rpartition("@")[2] if self.url else "the receiver of OpenLineage's configuration"


@dataclass(frozen=True)
class Settings:
    """Addresses, folders and limits of one deployment. The repr shows no password.

    postgres: URL of the role that owns and writes, as psycopg2 and SQLAlchemy take it (`postgresql://…`)
    analyst: URL of the read-only role, or None
    kafka: bootstrap servers, `host:port`, comma-separated
    login: credentials for brokers that ask for them
    schema_registry: addresses of the registry of the records' schemas, or none
    spark_conf: the operator's settings of Spark by name, allowed by `lamina/spark/spark_settings.py`
    warehouse: absolute path or URI of the Iceberg warehouse
    warehouse_options: Iceberg's properties for access to the warehouse
    spark_jars: files for Spark's class path
    home: absolute path of LAMINA_HOME, with logs, checkpoints, jars and the embedded services' data
    embedded: True if Postgres and Kafka are the embedded ones
    limits: limits of a reader's use of Postgres
    alarm_after: seconds that records may wait without one being counted
    alarm_bad_records: records that may go to quarantine within an hour
    alarm_no_rebuild: hours without a rebuild, or None if none is expected
    backup_days: age in days of the oldest backup that can be restored
    lineage: receiver of OpenLineage events, or None
    """

    postgres: str = field(repr=False)
    analyst: str | None = field(repr=False)
    kafka: str
    warehouse: str
    spark_master: str
    home: Path
    embedded: bool
    login: Login | None = field(default=None, repr=False)
    schema_registry: tuple[RegistryAddress, ...] = ()
    alarm_after: float = 60.0
    alarm_bad_records: int = 1000
    alarm_no_rebuild: float | None = None
    backup_days: float = BACKUP_DAYS
    limits: Limits = field(default_factory=Limits)
    lineage: LineageReceiver | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    warehouse_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_jars: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings of the working folder (or `folder`) and the environment.

        Raises LaminaError for a bad file, key or URL, and if nothing is set while the embedded services do not run.
        """
        folder = (folder or Path()).absolute()
        environment = os.environ if environment is None else environment
        values = _values(folder, environment)
        home = folder / values.get("home", ".lamina")
        master = values.get("spark_master", "local[*]")
        postgres, kafka, analyst = values.get("postgres"), values.get("kafka"), values.get("analyst")
        warehouse, options = values.get("warehouse"), warehouses.options(values.get("warehouse_options", ""))
        jars = warehouses.jars(values.get("spark_jars", ""), folder)
        embedded = postgres is None and kafka is None
        if embedded:
            addresses = Embedded(home).addresses()
            postgres, kafka, analyst = addresses.postgres, addresses.kafka, analyst or addresses.analyst
            if addresses.store is not None and warehouse is None:
                warehouse, options = addresses.store.warehouse, addresses.store.options | options
        if postgres is None or kafka is None:
            lacking, present = (
                ("LAMINA_POSTGRES", "LAMINA_KAFKA") if postgres is None else ("LAMINA_KAFKA", "LAMINA_POSTGRES")
            )
            raise LaminaError(
                f"{lacking} is not set",
                evidence=f"{present} is, so the embedded services are not used.",
                way_out=f"Set both, or neither for the embedded services ({FILE} or the environment).",
            )
        _check_master(master, environment)
        servers, login = brokers(kafka)
        login = with_options(login, values.get("kafka_options", ""))
        if warehouse is None and not master.startswith("local"):
            raise LaminaError(
                "LAMINA_WAREHOUSE is not set",
                evidence=f"Spark's master is {master}: its workers cannot be assumed to see {home}.",
                way_out=f"Set it to {warehouses.SHARED}.",
            )
        return cls(
            postgres=with_password(postgres_url(postgres, "LAMINA_POSTGRES"), environment),
            analyst=with_password(postgres_url(analyst, "LAMINA_ANALYST"), environment) if analyst else None,
            kafka=servers,
            warehouse=warehouses.warehouse(warehouse, folder, jars) if warehouse else str(home / "warehouse"),
            spark_master=master,
            home=home,
            embedded=embedded,
            login=login,
            schema_registry=_registry(values["schema_registry"]) if "schema_registry" in values else (),
            alarm_after=_number(values, "alarm_after", cls.alarm_after),
            alarm_bad_records=int(_number(values, "alarm_bad_records", cls.alarm_bad_records)),
            alarm_no_rebuild=_number(values, "alarm_no_rebuild", 0.0) or None,
            backup_days=_days(values["backup_days"]) if "backup_days" in values else BACKUP_DAYS,
            limits=Limits.read(values["analyst_limits"]) if "analyst_limits" in values else Limits(),
            lineage=LineageReceiver.read(environment),
            spark_conf=properties(values.get("spark_conf", "")),
            warehouse_options=options,
            spark_jars=jars,
        )

    def reader(self) -> str:
        """The URL for running a SELECT by anybody. Raises LaminaError if there is none."""
        if self.analyst is None:
            raise LaminaError(
                "LAMINA_ANALYST is not set",
                evidence="over the owner's login, a SELECT could do all that the owner can",
                way_out="Set it to postgresql://analyst:password@host:5432/database. Then `lamina password` gives the"
                " role `analyst`, which `lamina apply` has made, that password.",
            )
        return self.analyst

    @classmethod
    def home_of(cls, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
        """LAMINA_HOME alone, for the commands that start and stop the services."""
        folder = (folder or Path()).absolute()
        return folder / _values(folder, os.environ if environment is None else environment).get("home", ".lamina")


def _values(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings by key. An empty variable counts as unset."""
    values = _file(folder / FILE)
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
    ours = {*VARIABLES.values(), *(f"{variable}{_FILE}" for variable in VARIABLES.values())}
    unknown = [name for name in environment if name.startswith("LAMINA_") and name not in ours]
    for name in sorted(unknown):
        near = difflib.get_close_matches(name, VARIABLES.values(), n=1, cutoff=0.8)
        if near:  # the prefix may be somebody else's, but a name this near to ours is a typo
            raise LaminaError(
                f"the environment sets {name}, which Lamina does not know",
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


def _file(path: Path) -> dict[str, str]:
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
    values = _values((folder or Path()).absolute(), os.environ if environment is None else environment)
    return Path(values.get("catalog", "catalog"))


def _registry(text: str) -> tuple[RegistryAddress, ...]:
    """The addresses of a registry, such as `https://user:password@host:8081/path?ca_file=/path`, comma-separated."""
    addresses = []
    for address in filter(None, map(str.strip, text.split(","))):
        try:
            url = urlsplit(address)
            parameters = dict(parse_qsl(url.query.replace("+", "%2B"), strict_parsing=bool(url.query)))
            host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
            port = f":{url.port}" if url.port else ""
        except ValueError:
            raise _no_registry() from None
        if url.scheme not in ("http", "https") or not host or parameters.keys() - _OF_REGISTRY:
            raise _no_registry()
        addresses.append(
            RegistryAddress(
                f"{url.scheme}://{host}{port}{url.path.rstrip('/')}",
                unquote(url.username or ""),
                unquote(url.password or ""),
                parameters.get("token", ""),
                parameters.get("ca_file"),
                parameters.get("cert_file"),
                parameters.get("key_file"),
            )
        )
    if not addresses:
        raise _no_registry()
    return tuple(addresses)


_OF_REGISTRY = {"token", "ca_file", "cert_file", "key_file"}


def _no_registry() -> LaminaError:
    return LaminaError(
        "LAMINA_SCHEMA_REGISTRY is not a list of URLs",
        evidence="each URL begins with http:// or https://, and its query has no other parameters than"
        f" {', '.join(sorted(_OF_REGISTRY))}",
        way_out="It looks like https://user:password@host:8081/path?ca_file=/path (special characters %-encoded).",
    )


def _number(values: Mapping[str, str], key: str, otherwise: float) -> float:
    text = values.get(key, str(otherwise))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise LaminaError(
            f"{VARIABLES[key]} is not a number", evidence=f"Found {text!r}.", way_out=f'It looks like {key} = "60".'
        )
    return number


def _check_master(master: str, environment: Mapping[str, str]) -> None:
    is_master = master.startswith(("local", "spark://", "k8s://")) or master == "yarn"
    if not is_master:
        raise LaminaError(
            "LAMINA_SPARK_MASTER is not one of Spark's masters",
            evidence=f"Found {master!r}.",
            way_out="It looks like local[*], spark://host:7077, yarn or k8s://https://host:6443.",
        )
    if master == "yarn" and not any(environment.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")):
        raise LaminaError(
            "LAMINA_SPARK_MASTER is yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set",
            way_out="Set HADOOP_CONF_DIR to the folder of the cluster's yarn-site.xml and core-site.xml.",
        )


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 1 <= days < 100_000:
        raise LaminaError(
            "LAMINA_BACKUP_DAYS is not a number of days",
            evidence=f"Found {text!r}, wanted one from 1 on.",
            way_out="Set it to the age of the oldest backup that you may restore: 14.",
        )
    return days
