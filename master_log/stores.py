"""Object storage under the master log, and its reasons for refusing a request."""

from __future__ import annotations

import re
from typing import NamedTuple

SCHEMES = ("s3", "gs", "abfss")
"""URI schemes that Iceberg reaches with a store's own client, not through Hadoop."""

FILES_BY_SCHEME = "org.apache.iceberg.io.ResolvingFileIO"
"""Opens each file by the scheme of its name, so a log that began elsewhere is still read there."""

SKEW_MS = 15 * 60 * 1000
"""Largest difference between a store's clock, which stamps its files, and ours: AWS refuses requests beyond it."""

CLIENT = "software.amazon.awssdk"
"""Part of every error of S3's client."""


def is_in_object_storage(location: str) -> bool:
    """True if the file or folder is in object storage."""
    return location.partition(":")[0] in SCHEMES


class StoreError(NamedTuple):
    """A pattern in an error of S3's client, its meaning, and the way out."""

    pattern: re.Pattern[str]
    what: str
    way_out: str


REASONS = (
    StoreError(
        re.compile(r"NoSuchBucket|The specified bucket does not exist"),
        "the bucket of the warehouse does not exist",
        "Make the bucket, or correct LAMINA_WAREHOUSE",
    ),
    StoreError(
        re.compile(r"Unable to load region"),
        "S3's client has no region",
        "Set AWS_REGION, in the environment of each machine that runs Spark, or client.region in"
        " LAMINA_WAREHOUSE_OPTIONS",
    ),
    StoreError(
        re.compile(r"Unable to load credentials|Status Code: 40[13]|[Tt]oken (?:\w+ )*(?:expired|invalid|malformed)"),
        "object storage refuses the keys",
        "Give keys that may list, read, write and delete in the bucket, where AWS's clients look for them: the"
        " environment, a file of credentials, or the machine's role",
    ),
    StoreError(
        re.compile(r"UnknownHostException: .*"),
        "the address of object storage is not known",
        "Correct the endpoint (AWS_ENDPOINT_URL_S3). If the address begins with the name of the bucket and the store"
        " has no such addresses, set s3.path-style-access=true in LAMINA_WAREHOUSE_OPTIONS",
    ),
    StoreError(
        re.compile(r"Status Code: 5\d\d"),
        "object storage is overloaded or fails",
        "Wait until it has recovered",
    ),
    StoreError(
        re.compile(r"SdkClientException: .*|S3Exception: .*"),
        "object storage does not answer as it should",
        "Make sure that it runs and can be reached from each machine that runs Spark",
    ),
    StoreError(
        re.compile(r'No FileSystem for scheme "\w+"|Invalid S3 URI.*'),
        "its files are not at LAMINA_WAREHOUSE",
        "Set LAMINA_WAREHOUSE to the location where the log was created: a log cannot move, its metadata name it",
    ),
)
"""The first pattern that matches gives the reason, so the general ones come last."""


def reason(text: str) -> StoreError | None:
    """The reason in an error's text, or None if the error does not come from object storage."""
    if CLIENT not in text and "No FileSystem for scheme" not in text:
        return None
    return next((reason for reason in REASONS if reason.pattern.search(text)), None)
