"""Spark's and Kafka's jars are fetched once, with the Ivy that ships inside pyspark, and checked against `jars.lock`.

Afterwards nothing is ever resolved again: Spark gets the jars as plain files, and no start needs the network. A folder
of jars is there whole or not at all, because it is renamed into place when every hash has been checked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lamina.services.java import java_home
from lamina.services.processes import locked
from lamina.services.trust import network_options
from view_algebra.errors import LaminaError

SPARK = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.11.0"),
    ("org.postgresql", "postgresql", "42.7.14"),
    ("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
)
"""What Spark needs beside its own jars. The connector is 4.0.0, not pyspark's 4.0.5: its dependency
spark-token-provider-kafka is missing from some mirrors for later versions. The last writes local files without starting
a program for each."""

KAFKA = (("org.apache.kafka", "kafka_2.13", "4.1.0"),)
"""The broker."""

_GROUPS = {"spark": SPARK, "kafka": KAFKA}

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
}
"""Left out, because pyspark brings its own (or, of the last, because it is for compilers)."""

LOCK = Path(__file__).with_name("jars.lock")

RESOLVE_SECONDS = 900.0
"""Fifteen minutes for 100 MB; it takes 40 s where Maven Central is near."""


def jars(home: Path, group: str, *, java: Path) -> tuple[Path, ...]:
    """The jar files of `group` ("spark" or "kafka") under `home`, fetched when they are not there yet.

    Raises LaminaError without a network, with a full disk, or when a file is not the one in `jars.lock`.
    """
    resolve(home, java=java, groups=(group,))
    return tuple(sorted((home / "jars" / group).resolve().glob("*.jar")))


def resolve(home: Path, *, java: Path, groups: tuple[str, ...] = ("spark", "kafka")) -> None:
    """Makes the folders `jars/<group>` under `home` complete; touches no network when they are."""
    folder = home / "jars"
    if all(_complete(folder / group, group) for group in groups):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", patience=RESOLVE_SECONDS):
        missing = [group for group in groups if not _complete(folder / group, group)]
        with ThreadPoolExecutor(max_workers=2) as pool:  # the time is the network's, a round trip per module
            for done in [pool.submit(_fetch, folder, group, java) for group in missing]:
                done.result()


def locked_hashes(group: str) -> dict[str, str]:
    """SHA-256 by file name, from `jars.lock`."""
    rows = (line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    return {name.removeprefix(f"{group}/"): digest for digest, name in rows if name.startswith(f"{group}/")}


def _complete(folder: Path, group: str) -> bool:
    """True when the folder holds the locked names: hashes were checked before it got its name."""
    return folder.is_dir() and {jar.name for jar in folder.glob("*.jar")} == set(locked_hashes(group))


def _fetch(folder: Path, group: str, java: Path) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=f"{group}-", dir=folder) as draft:
            _ivy(Path(draft), group, java)
            fetched = Path(draft) / "jars"
            _verify(fetched, group)
            final = folder / group
            if final.exists():
                shutil.rmtree(final)
            fetched.rename(final)
    except OSError as error:
        raise LaminaError(
            f"the jars of {group} could not be kept",
            evidence=str(error),
            way_out=f"{folder} must be writable and have 300 MB free.",
        ) from error


def _ivy(draft: Path, group: str, java: Path) -> None:
    dependencies = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default->master,runtime"/>'
        for org, name, rev in _GROUPS[group]
    )
    excludes = "".join(f'<exclude org="{org}" module="{module}"/>' for org, module in _IN_PYSPARK[group])
    (draft / "ivy.xml").write_text(
        f'<ivy-module version="2.0"><info organisation="lamina" module="{group}"/>'
        f'<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}{excludes}</dependencies></ivy-module>"
    )
    (ivy,) = _pyspark().glob("jars/ivy-*.jar")
    command = [str(java / "bin" / "java"), "-Xmx256m", *network_options(draft), "-cp", str(ivy), "org.apache.ivy.Main"]
    command += [
        "-cache",
        str(draft / "cache"),
        "-ivy",
        str(draft / "ivy.xml"),
        "-confs",
        "default",
        "-types",
        "jar",
        "bundle",
    ]
    command += ["-retrieve", str(draft / "jars" / "[artifact]-[revision](-[classifier]).[ext]")]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(group, f"No end after {RESOLVE_SECONDS:.0f} seconds.") from None
    output = answer.stdout + answer.stderr
    if answer.returncode != 0 or not (draft / "jars").is_dir():
        said = [line.strip() for line in output.splitlines() if _tells(line)]
        raise _unreachable(group, "\n".join(dict.fromkeys(said[:6])) or output[-600:].strip())


def _tells(line: str) -> bool:
    """True for the lines of Ivy's long report that say why."""
    words = (
        "unresolved dependency",
        "Host ",
        "UnknownHost",
        "refused",
        "timed out",
        "No space left",
        "denied",
        "FAILED",
        "SSL",
    )
    return any(word in line for word in words)


def _unreachable(group: str, evidence: str) -> LaminaError:
    return LaminaError(
        f"the jars of {group} could not be fetched",
        evidence=evidence,
        way_out="They are fetched once, from Maven Central: run this again with a network (https_proxy is heeded), or "
        "copy the folder `jars` of another LAMINA_HOME into this one.",
    )


def _verify(fetched: Path, group: str) -> None:
    wanted = locked_hashes(group)
    found = {jar.name: _sha256(jar) for jar in fetched.glob("*.jar")}
    wrong = [
        f"{name}: found {found.get(name, 'nothing')[:16]}, wanted {wanted.get(name, 'nothing')[:16]}"
        for name in sorted(wanted.keys() | found.keys())
        if found.get(name) != wanted.get(name)
    ]
    if wrong:
        raise LaminaError(
            f"the jars of {group} are not those of jars.lock",
            evidence="\n".join(wrong),
            way_out="Nothing was kept. Try another network or mirror; if the versions were changed on purpose, "
            "run `make lock`.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pyspark() -> Path:
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise LaminaError("pyspark is not installed", way_out="Run `make setup`.")
    return Path(package.origin).parent


def write_lock(java: Path) -> None:
    """Resolves anew and writes `jars.lock`: what `make lock` does."""
    lines = ["# SHA-256 of every jar that Spark and Kafka get; written by `make lock`."]
    for group in _GROUPS:
        with tempfile.TemporaryDirectory() as draft:
            _ivy(Path(draft), group, java)
            lines += [f"{_sha256(jar)}  {group}/{jar.name}" for jar in sorted((Path(draft) / "jars").glob("*.jar"))]
    LOCK.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    home = Path(".lamina")
    if sys.argv[1:] == ["lock"]:
        write_lock(java_home(home))
    else:
        try:
            resolve(home.absolute(), java=java_home(home.absolute()))
        except LaminaError as error:
            sys.exit(f"{error}")
