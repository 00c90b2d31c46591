"""Object storage under the master log: what is in it, and the reasons for which it refuses a request."""

from __future__ import annotations

import re
from typing import NamedTuple

SCHEMES = ("s3", "gs", "abfss")
"""Those of the locations that Iceberg reaches with the client of a store, and not through Hadoop."""

FILES_BY_SCHEME = "org.apache.iceberg.io.ResolvingFileIO"
"""Opens each file by the scheme of its name: a log that was begun in another place is still read there."""

SKEW_MS = 15 * 60 * 1000
"""A store stamps its files, and its clock may differ from ours by so much: AWS refuses requests from further away."""

CLIENT = "software.amazon.awssdk"
"""Is in every error of S3's client."""


def holds(location: str) -> bool:
    """True if a file or folder is in object storage."""
    return location.partition(":")[0] in SCHEMES


class Reason(NamedTuple):
    """A text in the error of S3's client, what it means, and what to do."""

    says: re.Pattern[str]
    what: str
    way_out: str


REASONS = (
    Reason(
        re.compile(r"NoSuchBucket|The specified bucket does not exist"),
        "the bucket of the warehouse is not there",
        "Make the bucket, or correct LAMINA_WAREHOUSE",
    ),
    Reason(
        re.compile(r"Unable to load region"),
        "S3's client knows no region",
        "Set AWS_REGION, in the environment of each machine that runs Spark, or client.region in"
        " LAMINA_WAREHOUSE_OPTIONS",
    ),
    Reason(
        re.compile(r"Unable to load credentials|Status Code: 40[13]|[Tt]oken (?:\w+ )*(?:expired|invalid|malformed)"),
        "object storage refuses the keys",
        "Give keys that may list, read, write and delete in the bucket, where AWS's clients look for them: the"
        " environment, a file of credentials, or the machine's role",
    ),
    Reason(
        re.compile(r"UnknownHostException: .*"),
        "the address of object storage is not known",
        "Correct the endpoint (AWS_ENDPOINT_URL_S3). If the address begins with the name of the bucket and the store"
        " has no such addresses, set s3.path-style-access=true in LAMINA_WAREHOUSE_OPTIONS",
    ),
    Reason(
        re.compile(r"Status Code: 5\d\d"),
        "object storage is overloaded or fails",
        "Wait until it has recovered",
    ),
    Reason(
        re.compile(r"SdkClientException: .*|S3Exception: .*"),
        "object storage does not answer as it should",
        "Make sure that it runs and can be reached from each machine that runs Spark",
    ),
    Reason(
        re.compile(r'No FileSystem for scheme "\w+"|Invalid S3 URI.*'),
        "its files are not where LAMINA_WAREHOUSE says",
        "Set LAMINA_WAREHOUSE to the place where the log was begun: a log stays there, and its metadata name it",
    ),
)
"""The first that applies is the reason; the general ones are last."""


def reason(text: str) -> Reason | None:
    """What keeps the object storage of an error's text from answering; None if the error is another's."""
    if CLIENT not in text and "No FileSystem for scheme" not in text:
        return None
    return next((each for each in REASONS if each.says.search(text)), None)
