"""Spark settings that an operator adds to Lamina's own: sizes and those of a cluster or a file system, but not
of SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

from view_algebra.errors import LaminaError

NAME = "LAMINA_SPARK_CONF"

HIDDEN = r"(?i)secret|password|token|access[.]?key|credential|jaas|[.-]key(?:$|[.])|[.]sas"
"""Names of settings that are never shown and never on a command line."""

THEIRS = (
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.local.dir",
    "spark.pyspark.python",
    "spark.sql.shuffle.partitions",
    "spark.ui.enabled",
)
"""Lamina's own settings that an operator may override: places and sizes."""

JOINED = {
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.jars": ",",
}
"""List settings, to which the operator's values are appended."""

SQL = ("spark.sql.adaptive.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.catalog.", "spark.sql.files.")
"""Settings of Spark's SQL that change neither the meaning of a SELECT nor the running of micro-batches."""

_INSTEAD = {
    "spark.master": "Set LAMINA_SPARK_MASTER.",
    "spark.sql.catalog.lamina.warehouse": "Set LAMINA_WAREHOUSE.",
}


def combined(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session. Raises LaminaError if one of the operator's contradicts ours."""
    settings = dict(ours)
    for name, value in theirs.items():
        if not name.startswith("spark."):
            raise LaminaError(
                f"{NAME} sets {name}, which is not a setting of Spark",
                evidence="Spark heeds only names that begin with spark.",
                way_out=f"Write spark.hadoop.{name} for a setting of Hadoop, or take the line out.",
            )
        if name in JOINED:
            settings[name] = JOINED[name].join(part for part in (ours.get(name), value) if part)
        elif name in THEIRS or ours.get(name) == value:
            settings[name] = value
        elif name in ours:
            raise LaminaError(
                f"{NAME} sets {name} to {value!r}, which contradicts Lamina",
                evidence="" if "password" in name else f"Lamina sets it to {ours[name]!r}.",
                way_out=_INSTEAD.get(name, "Take the line out."),
            )
        elif name == "spark.submit.deployMode" or (name.startswith("spark.sql.") and not name.startswith(SQL)):
            raise LaminaError(
                f"{NAME} sets {name}, which Lamina leaves as it is",
                evidence="It may change what a SELECT means or how micro-batches run: views would lose their promise.",
                way_out="Take the line out.",
            )
        else:
            settings[name] = value
    return settings
