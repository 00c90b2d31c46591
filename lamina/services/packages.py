"""Installs the packages of a lock file: `python lamina/services/packages.py demo.lock`.

`make` and the Dockerfile run this file before any package is installed, so it imports only the standard library. pip
installs uv and the tools that build packages, and uv installs the rest in a tenth of pip's time. Both check the hashes
of the lock.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

TOOLS = ("packaging", "setuptools", "uv", "wheel")
"""Packages that install and build others. pyspark is published only as sources."""

BUILD = "[bdist_wheel]\ncompression = stored\n"
"""Settings of setuptools. pyspark is 400 MB of archives, which must not be compressed again only to be unpacked."""

UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""Settings of pip for the places of packages, and uv's variables for them."""


def tools_of(lock: str) -> str:
    r"""The part of a lock file that names the tools, with their hashes.

    >>> print(tools_of("uv==0.9 --hash=sha256:aa\nvine==5.1 --hash=sha256:bb"))
    uv==0.9 --hash=sha256:aa
    """
    packages = re.split(r"\n(?=[a-z0-9])", lock.strip())
    return "\n".join(package for package in packages if package.partition("==")[0] in TOOLS)


def as_uv(settings: str, environment: Mapping[str, str]) -> dict[str, str]:
    r"""Variables for uv from the output of `pip config list`. Variables that are set already stay.

    >>> as_uv("global.index-url='https://example.com/simple'\n:env:.quiet='1'", {})
    {'UV_DEFAULT_INDEX': 'https://example.com/simple'}
    """
    named = re.findall(r"^[^=]*\.([a-z-]+)='(.*)'$", settings, re.MULTILINE)
    variables = {UV_NAMES[name]: value.replace("\\n", " ").strip() for name, value in named if name in UV_NAMES}
    return {name: value for name, value in variables.items() if name not in environment}


def install(lock: Path) -> None:
    """Installs the packages of the lock for the running Python. Exits with a sentence if it cannot."""
    text = lock.read_text()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as tools:
        tools.write(tools_of(text))
        tools.flush()
        _run([*pip, "install", "--quiet", "--require-hashes", "--requirement", tools.name], os.environ)
    settings_of_pip = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=False).stdout
    # Compiled here, because a Python that writes no bytecode would compile for half a second at each command.
    uv = [sys.executable, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", sys.executable]
    # Without --no-deps, uv would fetch the sources of pyspark twice to read its dependencies, which the lock lists.
    locked = ["--require-hashes", "--no-deps", "--no-build-isolation", "--requirement", str(lock)]
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as settings:
        settings.write(BUILD)
        settings.flush()
        _run([*uv, *locked], {**os.environ, **as_uv(settings_of_pip, os.environ), "DIST_EXTRA_CONFIG": settings.name})


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    """Runs a command with its progress on stderr. In a log, uv's list of packages is left out."""
    shown = None if sys.stderr.isatty() else subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=shown, text=True) as process:
        for line in process.stderr or ():
            if not line.startswith((" + ", " - ")):
                sys.stderr.write(line)
                sys.stderr.flush()
    if process.returncode:
        sys.exit("The packages could not be installed. The reason is above. Repeat the command to resume.")


if __name__ == "__main__":
    install(Path(sys.argv[1]))
