"""`make` alone sets up a fresh machine, from locked packages and jars."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lamina.services.jars import LOCK, locked_hashes
from lamina.services.packages import as_uv
from tests.fix_services import REPOSITORY

MAKEFILE = (REPOSITORY / "Makefile").read_text()


def test_every_target_has_a_comment() -> None:
    lines = MAKEFILE.splitlines()
    targets = [number for number, line in enumerate(lines) if re.match(r"[a-z$][^=]*:(?!=)", line)]
    assert len(targets) > 7
    assert [lines[number] for number in targets if not lines[number - 1].startswith("# ")] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "demo.lock", "lamina/services/jars.lock"])
def test_no_lock_file_holds_an_address(lock: str) -> None:
    assert re.findall(r"[a-z+]+://|index-url|find-links|@\s*file", (REPOSITORY / lock).read_text()) == []


def locked_packages(lock: str) -> list[str]:
    return re.split(r"\n(?=[a-z0-9])", (REPOSITORY / lock).read_text().strip())


def test_every_locked_package_has_a_hash() -> None:
    packages = locked_packages("requirements.lock")
    assert [package.split()[0] for package in packages if "==" in package and "--hash=sha256:" not in package] == []


def test_the_demo_installs_versions_that_the_tests_run_with() -> None:
    every, demo = locked_packages("requirements.lock"), locked_packages("demo.lock")
    without_reasons = [{re.sub(r"\n    #[^\n]*", "", package) for package in packages} for packages in (every, demo)]
    assert without_reasons[1] - without_reasons[0] == set()
    assert len(demo) < len(every) / 3


def test_packages_come_from_the_indexes_in_pips_settings() -> None:
    pip_settings = (
        "global.cert='/etc/ca.pem'\nglobal.index-url='https://example.com/simple'\n:env:.find-links='/a\\n/b'"
    )
    expected = {
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_DEFAULT_INDEX": "https://example.com/simple",
        "UV_FIND_LINKS": "/a /b",
    }
    assert as_uv(pip_settings, {}) == expected
    del expected["SSL_CERT_FILE"]
    assert as_uv(pip_settings, {"SSL_CERT_FILE": "/mine.pem"}) == expected


def test_every_jar_has_a_hash() -> None:
    groups = ("spark", "kafka", "s3", "s3_server")
    for group in groups:
        for path, digest in locked_hashes(group).items():
            assert re.fullmatch("[0-9a-f]{64}", digest)
            name, version, file = path.split("/")[-3:]
            assert re.fullmatch(rf"{name}-{version}(-[a-z-]+)?\.jar", file), "the path follows Maven's layout"
    assert len(LOCK.read_text().splitlines()) == 1 + sum(len(locked_hashes(group)) for group in groups)


def make_with(tmp_path: Path, python: str | None) -> subprocess.CompletedProcess[str]:
    """`make setup` in an empty folder, with a PATH on which only `python` (a script) is Python."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "grep", "awk", "rm", "touch"):
        program = shutil.which(name)
        assert program
        (programs / name).symlink_to(program)
    if python is not None:
        (programs / "python3").write_text(python)
        (programs / "python3").chmod(0o755)
    folder = tmp_path / "a clone"
    needed = ("demo.lock", "requirements.lock", "lamina/services/jars.lock", "lamina/services/packages.py")
    for name in ("Makefile", "pyproject.toml", *needed):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    make = shutil.which("make")
    assert make
    return subprocess.run(
        [make, "setup"], cwd=folder, capture_output=True, text=True, check=False, env={"PATH": str(programs)}
    )


def test_setup_without_a_python_says_which_it_needs(tmp_path: Path) -> None:
    answer = make_with(tmp_path, None)
    assert answer.returncode != 0
    assert "Lamina needs Python 3.11, 3.12 or 3.13 on the PATH" in answer.stderr


def test_setup_with_an_old_python_says_which_it_needs(tmp_path: Path) -> None:
    answer = make_with(tmp_path, "#!/bin/sh\nexit 1\n")
    assert "Lamina needs Python 3.11, 3.12 or 3.13 on the PATH" in answer.stderr


def test_setup_with_a_python_without_venv_names_the_package(tmp_path: Path) -> None:
    answer = make_with(tmp_path, '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\n')
    assert "python3-venv" in answer.stderr
    assert answer.returncode != 0
