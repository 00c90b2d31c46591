"""The settings of one deployment, as typed values out of texts. Addresses, numbers and folders are checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from lamina.configuration import warehouses
from lamina.configuration.kafka_urls import brokers
from lamina.configuration.postgres_urls import postgres_url, with_password
from lamina.configuration.setting_texts import FILE, VARIABLES, values_of
from lamina.services.embedded import EmbeddedServices
from master_log.connections.client_options import with_options
from master_log.connections.java_properties import properties
from master_log.connections.login import Login, RegistryAddress
from serving_layer.readers.analyst_limits import Limits
from view_algebra.errors import LaminaError

BACKUP_DAYS = 14.0
"""Days for which the master log keeps files that only an older backup of its catalog names."""


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
    spark_conf: the operator's settings of Spark by name, allowed by `lamina/spark/spark_configuration.py`
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
        values = values_of(folder, environment)
        home = folder / values.get("home", ".lamina")
        master = values.get("spark_master", "local[*]")
        postgres, kafka, analyst = values.get("postgres"), values.get("kafka"), values.get("analyst")
        warehouse, options = values.get("warehouse"), warehouses.options(values.get("warehouse_options", ""))
        jars = warehouses.jar_files(values.get("spark_jars", ""), folder)
        embedded = postgres is None and kafka is None
        if embedded:
            addresses = EmbeddedServices(home).addresses()
            postgres, kafka, analyst = addresses.postgres, addresses.kafka, analyst or addresses.analyst
            if addresses.store is not None and warehouse is None:
                warehouse, options = addresses.store.warehouse, addresses.store.options | options
        if postgres is None or kafka is None:
            raise _only_one_is_set("LAMINA_KAFKA" if postgres is None else "LAMINA_POSTGRES")
        _check_master(master, environment)
        if warehouse is None:
            _check_local(master, home)
        servers, login = brokers(kafka)
        return cls(
            postgres=with_password(postgres_url(postgres, "LAMINA_POSTGRES"), environment),
            analyst=with_password(postgres_url(analyst, "LAMINA_ANALYST"), environment) if analyst else None,
            kafka=servers,
            warehouse=warehouses.warehouse(warehouse, folder, jars) if warehouse else str(home / "warehouse"),
            spark_master=master,
            home=home,
            embedded=embedded,
            login=with_options(login, values.get("kafka_options", "")),
            schema_registry=_registry(values["schema_registry"]) if "schema_registry" in values else (),
            alarm_after=_number(values, "alarm_after", cls.alarm_after),
            alarm_bad_records=int(_number(values, "alarm_bad_records", cls.alarm_bad_records)),
            alarm_no_rebuild=_number(values, "alarm_no_rebuild", 0.0) or None,
            backup_days=_number(values, "backup_days", BACKUP_DAYS, least=1, below=100_000),
            limits=Limits.read(values["analyst_limits"]) if "analyst_limits" in values else Limits(),
            lineage=LineageReceiver.read(environment),
            spark_conf=properties(values.get("spark_conf", "")),
            warehouse_options=options,
            spark_jars=jars,
        )

    def reader(self) -> str:
        """The reader's URL, over which anybody's SELECT may run. Raises LaminaError if none is set."""
        if self.analyst is None:
            raise LaminaError(
                "LAMINA_ANALYST is not set",
                evidence="over the owner's login, a SELECT could do all that the owner can",
                way_out="Set it to postgresql://analyst:password@host:5432/database. Then `lamina password` gives the"
                " role `analyst`, which `lamina apply` has made, that password.",
            )
        return self.analyst

    @classmethod
    def home_of(cls) -> Path:
        """The absolute path of LAMINA_HOME alone, for the commands that start and stop the services."""
        folder = Path().absolute()
        return folder / values_of(folder, os.environ).get("home", ".lamina")


def _only_one_is_set(name: str) -> LaminaError:
    lacking = "LAMINA_POSTGRES" if name == "LAMINA_KAFKA" else "LAMINA_KAFKA"
    return LaminaError(
        f"{lacking} is not set",
        evidence=f"{name} is set, so the embedded services are not used.",
        way_out=f"Set both, in {FILE} or the environment. Set neither to use the embedded services.",
    )


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


def _number(values: Mapping[str, str], key: str, otherwise: float, *, least: float = 0.0, below: float = 1e9) -> float:
    text = values.get(key, str(otherwise))
    try:
        number = float(text)
    except ValueError:
        number = least - 1
    if not least <= number < below:
        raise LaminaError(
            f"{VARIABLES[key]} is not a number from {least:.0f} to below {below:.0f}",
            evidence=f"Found {text!r}.",
            way_out=f'It looks like {key} = "{max(otherwise, least):.0f}".',
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


def _check_local(master: str, home: Path) -> None:
    """Raises LaminaError unless Spark runs on this machine, where it sees LAMINA_HOME."""
    if not master.startswith("local"):
        raise LaminaError(
            "LAMINA_WAREHOUSE is not set",
            evidence=f"Spark's master is {master}: its workers cannot be assumed to see {home}.",
            way_out=f"Set it to {warehouses.SHARED}.",
        )
