"""The Dockerfile runs the same steps as `make setup`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from tests.fix_services import REPOSITORY

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
MAKEFILE = (REPOSITORY / "Makefile").read_text().replace("\\\n", " ")
SETUP = MAKEFILE[MAKEFILE.index("\n$(SETUP): ") :]


def steps(text: str, python: str) -> list[list[str]]:
    """The commands that Python runs, without folders and without options that only choose a folder for packages."""
    steps = re.findall(rf"(?<![\w/]){re.escape(python)} ([^|&;}}\n]*)", text)
    return [[word.rpartition("/")[2] for word in step.split() if word not in ("-m", "--system")] for step in steps]


def test_the_image_is_built_by_the_steps_of_make_setup() -> None:
    of_image = steps(DOCKERFILE[DOCKERFILE.index("\nRUN ") :], "python")
    of_folder = steps(SETUP, "$(PY)")
    packages, ours, compiled, prepared = of_image
    assert packages == ["packages.py", "requirements.lock"]
    assert ours[:3] == ["uv", "pip", "install"]
    assert "--offline" in ours
    assert compiled[0] == "compileall"
    assert prepared == ["lamina.local.prepare", "lamina", "s3"]  # otherwise every container would fetch it
    assert of_folder == [packages, ours, ["lamina.local.prepare", ".lamina"]]
    assert compiled in steps(MAKEFILE[MAKEFILE.index("\n$(DEMO): ") : MAKEFILE.index("\n$(SETUP): ")], "$(PY)")


def test_the_image_holds_every_package_and_nothing_of_a_working_folder() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    copied = {word for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()}
    let_in = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied.remove("lamina/services/packages.py")  # alone, before the rest
    assert copied == packages | {"requirements.lock", "pyproject.toml", "README.md", "deploy", "dags"}
    assert let_in == copied
    assert "\n*\n" in (REPOSITORY / ".dockerignore").read_text()


def test_the_image_is_prepared_without_files_that_are_copied_later(tmp_path: Path) -> None:
    before, prepare, _ = DOCKERFILE.partition("RUN python -m lamina.local.prepare ")
    assert prepare
    for name in re.findall(r"^COPY (?:[\w.]+ )*?(\w+) \./\1$", before, re.MULTILINE):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    guarding = "from lamina.services import postgres; print(postgres.superusers_script())"
    ran = subprocess.run(
        [sys.executable, "-c", guarding], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "REVOKE EXECUTE" in ran.stdout


def test_one_service_builds_the_image_and_none_pulls_it() -> None:
    services = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
    ours = {name: service for name, service in services.items() if service.get("image") == "lamina"}
    assert len(ours) > 1
    assert [name for name, service in ours.items() if "build" in service] == ["certificates"]
    assert {service["pull_policy"] for service in ours.values()} == {"never"}


def test_the_image_has_the_locked_python_and_does_not_run_as_root() -> None:
    assert re.search(r"^FROM python:3\.11-slim", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["lamina"]
    assert DOCKERFILE.index("USER lamina") < DOCKERFILE.index("\nCMD ")
