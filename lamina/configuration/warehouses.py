"""The place of the master log: a folder, a Spark file system, or object storage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from master_log import stores
from view_algebra.errors import LaminaError

FILE_SYSTEMS = ("file", "hdfs", "viewfs", "webhdfs", "s3")
"""File systems to which Lamina's own jars can write the master log."""

STORES = {"gs": "iceberg-gcp-bundle", "abfss": "iceberg-azure-bundle"}
"""Object storage whose client is a jar of the operator's, with Iceberg's name for the jar."""

SHARED = "a path that the driver and every worker reach, such as a mounted volume, or to s3://bucket/path"

_OPTION = re.compile(r"(?:s3|client|http-client|gcs|adls)\.[\w.-]+")
"""A property of Iceberg's access to object storage, not of its catalog."""


def warehouse(text: str, folder: Path, jars: Sequence[str]) -> str:
    """The path or URI of a warehouse, relative to `folder`. All of Hadoop's names for S3 become `s3:`."""
    scheme, has_scheme, _ = text.partition(":/")
    if not has_scheme:
        return str(folder / text)
    if scheme in ("s3a", "s3n"):  # Hadoop's names of S3
        scheme, text = "s3", f"s3{text[3:]}"
    if scheme in STORES and not jars:
        raise LaminaError(
            f"LAMINA_WAREHOUSE begins with {scheme}:, and Lamina has no client of that store",
            evidence=f"Iceberg publishes it as {STORES[scheme]}.",
            way_out="Set LAMINA_SPARK_JARS to the path of that jar, of the version of Iceberg in jars.lock.",
        )
    if scheme not in (*FILE_SYSTEMS, *STORES):
        raise LaminaError(
            f"LAMINA_WAREHOUSE begins with {scheme}:, a file system that this Spark does not have",
            evidence=f"It has {', '.join((*FILE_SYSTEMS, *STORES))}.",
            way_out=f"Set it to {SHARED}.",
        )
    if stores.is_in_object_storage(text) and not re.match(r"\w+://[\w$]", text):
        raise LaminaError(
            "LAMINA_WAREHOUSE names no bucket",
            evidence=f"Found {text}.",
            way_out=f"It looks like {scheme}://bucket/path.",
        )
    return text


def options(text: str) -> dict[str, str]:
    """Properties of Iceberg from `name=value, name=value`."""
    properties = {}
    for word in filter(None, re.split(r"[\s,]+", text)):
        name, equals, value = word.partition("=")
        if not equals or not _OPTION.fullmatch(name):
            raise LaminaError(
                "LAMINA_WAREHOUSE_OPTIONS is not a list of Iceberg's properties of object storage",
                evidence=f"Found {name!r}: they begin with s3., client., http-client., gcs. or adls.",
                way_out="It looks like s3.path-style-access=true,client.region=eu-central-1.",
            )
        properties[name] = value
    return properties


def jar_files(text: str, folder: Path) -> tuple[str, ...]:
    """Files for Spark's class path, relative to `folder`."""
    jars = tuple(str(folder / name.strip()) for name in text.split(",") if name.strip())
    if lacking := [jar for jar in jars if not Path(jar).is_file()]:
        raise LaminaError(
            "LAMINA_SPARK_JARS names a file that does not exist",
            evidence=", ".join(lacking),
            way_out="Name the jars by their paths, separated by commas.",
        )
    return jars
