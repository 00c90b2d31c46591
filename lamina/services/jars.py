"""Fetches the jars of Spark, Kafka and S3 once from Maven Central, and checks them against `jars.lock`.

Afterwards nothing is ever resolved again. Spark gets the jars as plain files, and no start needs the network. A folder
of jars is complete or missing, because it is renamed into place only after every hash was checked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from http.client import HTTPException
from pathlib import Path
from ssl import SSLContext

from lamina.services.java import java_home
from lamina.services.own_processes import locked
from lamina.services.trust import network_options, trusting
from view_algebra.errors import LaminaError

SPARK = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.1"),
    ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
    ("org.postgresql", "postgresql", "42.7.14"),
    ("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
)
"""Jars that Spark needs besides its own. The last writes local files without starting a program for each."""

KAFKA = (("org.apache.kafka", "kafka_2.13", "4.1.0"),)
"""The broker."""

S3 = (("org.apache.iceberg", "iceberg-aws-bundle", "1.12.0"),)
"""Spark's client of S3, fetched only if the warehouse is in S3. It is as large as all other jars of Spark."""

S3_SERVER = (("org.gaul", "s3proxy", "4.0.0"),)
"""The object storage of `lamina up --s3`."""

_GROUPS = {"spark": SPARK, "kafka": KAFKA, "s3": S3, "s3_server": S3_SERVER}

_CLASSIFIERS = {"s3proxy": "jar-with-dependencies"}
"""Classifiers of artifacts that bring their dependencies in one jar."""

_IN_PYSPARK = {
    "spark": (
        ("org.apache.hadoop", "*"),
        ("org.scala-lang", "*"),
        ("org.scala-lang.modules", "*"),
        ("org.slf4j", "*"),
        ("org.lz4", "*"),
        ("org.xerial.snappy", "*"),
        ("com.google.code.findbugs", "*"),
        ("org.apache.spark", "spark-tags_2.13"),
        ("org.checkerframework", "*"),
    ),
    "kafka": (),
    "s3": (),
    "s3_server": (),
}
"""Jars that are left out because pyspark brings its own. The last one is only for compilers."""

LOCK = Path(__file__).with_name("jars.lock")

AT_ONCE = 8
"""Jars that are fetched at a time. Most are small, and take a round trip each."""

ANSWER_SECONDS = 60.0
"""Seconds without a byte after which a download fails."""

FETCH_SECONDS = 900.0
"""Seconds that a process waits for another one that fetches jars. 100 MB take 3 s near Maven Central."""


def jar_files(home: Path, group: str) -> tuple[Path, ...]:
    """The jar files of a group under `home`, fetched if they are missing.

    Raises LaminaError without a network, with a full disk, or if a file differs from the one in `jars.lock`.
    """
    resolve(home, groups=(group,))
    return tuple(sorted((home / "jars" / group).resolve().glob("*.jar")))


def resolve(home: Path, *, groups: tuple[str, ...] = ("spark", "kafka")) -> None:
    """Completes the folders `jars/<group>` under `home`. Uses no network if they are complete."""
    folder = home / "jars"
    if all(_is_complete(folder / group, group) for group in groups):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", patience=FETCH_SECONDS):
        missing = [group for group in groups if not _is_complete(folder / group, group)]
        for group in missing:
            _fetch(folder, group)


def locked_hashes(group: str) -> dict[str, str]:
    """SHA-256 by path in Maven Central, from `jars.lock`."""
    rows = (line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    return {name.removeprefix(f"{group}/"): digest for digest, name in rows if name.startswith(f"{group}/")}


def _is_complete(folder: Path, group: str) -> bool:
    """True if the folder holds the locked names. Hashes were checked before the folder got its name."""
    wanted = {Path(path).name for path in locked_hashes(group)}
    return folder.is_dir() and {jar.name for jar in folder.glob("*.jar")} == wanted


def _fetch(folder: Path, group: str) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=f"{group}-", dir=folder) as draft:
            fetched = Path(draft) / "jars"
            fetched.mkdir()
            paths, context = list(locked_hashes(group)), trusting()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for path, jar in zip(paths, pool.map(partial(_downloaded, group, context), paths), strict=True):
                    (fetched / Path(path).name).write_bytes(jar)
            _verify(fetched, group)
            final = folder / group
            if final.exists():
                shutil.rmtree(final)
            fetched.rename(final)
    except OSError as error:
        raise LaminaError(
            f"The jars of {group} could not be stored",
            evidence=str(error),
            way_out=f"{folder} must be writable and have 300 MB free.",
        ) from error


def _downloaded(group: str, context: SSLContext, path: str) -> bytes:
    """The content of a file of Maven Central."""
    try:
        address = _maven_central() + path
        with urllib.request.urlopen(address, timeout=ANSWER_SECONDS, context=context) as answer:  # noqa: S310 (https)
            return bytes(answer.read())
    except (OSError, HTTPException) as error:
        raise LaminaError(
            f"The jars of {group} could not be fetched",
            evidence=f"{path}: {error}",
            way_out="They are fetched once, from Maven Central: run this again with a network (https_proxy is used),"
            " or copy the folder `jars` of another LAMINA_HOME into this one.",
        ) from error


def _verify(fetched: Path, group: str) -> None:
    wanted = {Path(path).name: digest for path, digest in locked_hashes(group).items()}
    fetched_hashes = {jar.name: _sha256(jar) for jar in fetched.glob("*.jar")}
    wrong = [
        f"{name}: found {fetched_hashes.get(name, 'nothing')[:16]}, wanted {wanted.get(name, 'nothing')[:16]}"
        for name in sorted(wanted.keys() | fetched_hashes.keys())
        if fetched_hashes.get(name) != wanted.get(name)
    ]
    if wrong:
        raise LaminaError(
            f"The jars of {group} differ from jars.lock",
            evidence="\n".join(wrong),
            way_out="Nothing was kept. Try another network or mirror. If the versions were changed on purpose, "
            "run `make lock`.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def jars_of_pyspark() -> Path:
    """The folder of the jars inside pyspark."""
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise LaminaError("PySpark is not installed", way_out="Run `make setup`.")
    return Path(package.origin).parent / "jars"


def _ivy() -> Path:
    """The Ivy that ships inside pyspark."""
    (ivy,) = jars_of_pyspark().glob("ivy-*.jar")
    return ivy


@cache
def _maven_central() -> str:
    """The address of Maven Central, a constant in the class of Ivy's resolver."""
    with zipfile.ZipFile(_ivy()) as jar:
        resolver = jar.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
    address = re.search(rb"https://[a-z0-9.]+/maven2/", resolver)
    if address is None:
        raise LaminaError("Ivy names no Maven Central", way_out="Install the pyspark of the lock: `make setup`.")
    return address[0].decode()


def write_lock(java: Path) -> None:
    """Resolves all jars again, with the Ivy inside pyspark, and writes `jars.lock`. `make lock` runs it."""
    lines = ["# SHA-256 of every jar that Spark and Kafka get, and its path in Maven Central; written by `make lock`."]
    for group in _GROUPS:
        with tempfile.TemporaryDirectory() as draft:
            resolved = _resolved(Path(draft), group, java)
            lines += [f"{_sha256(jar)}  {group}/{jar.relative_to(resolved)}" for jar in sorted(resolved.rglob("*.jar"))]
    LOCK.write_text("\n".join(lines) + "\n")


def _resolved(draft: Path, group: str, java: Path) -> Path:
    """A folder of all jars that a group needs, in Maven's layout."""
    dependencies = "".join(_dependency(*artifact) for artifact in _GROUPS[group])
    excludes = "".join(f'<exclude org="{org}" module="{module}"/>' for org, module in _IN_PYSPARK[group])
    (draft / "ivy.xml").write_text(
        f'<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="lamina" module="{group}"/>'
        f'<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}{excludes}</dependencies></ivy-module>"
    )
    layout = "[orgPath]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
    command = [
        str(java / "bin" / "java"),
        "-Xmx256m",
        *network_options(draft),
        "-cp",
        str(_ivy()),
        "org.apache.ivy.Main",
    ]
    command += ["-cache", str(draft / "cache"), "-ivy", str(draft / "ivy.xml"), "-confs", "default"]
    command += ["-types", "jar", "bundle", "-retrieve", str(draft / "jars" / layout)]
    subprocess.run(command, check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    return draft / "jars"


def _dependency(org: str, name: str, rev: str) -> str:
    """An artifact in Ivy's syntax: with its dependencies, or as the one jar that its classifier names."""
    begin = f'<dependency org="{org}" name="{name}" rev="{rev}"'
    if name not in _CLASSIFIERS:
        return f'{begin} conf="default->master,runtime"/>'
    whole = f'<artifact name="{name}" type="jar" ext="jar" m:classifier="{_CLASSIFIERS[name]}"/>'
    return f'{begin} transitive="false" conf="default->master">{whole}</dependency>'


if __name__ == "__main__":
    home = Path(".lamina")
    if sys.argv[1:] == ["lock"]:
        write_lock(java_home(home))
    else:
        try:
            resolve(home.absolute())
        except LaminaError as error:
            sys.exit(f"{error}")
