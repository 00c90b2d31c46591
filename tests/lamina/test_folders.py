"""A process's folder is removed when the process ends or, after a kill, at the next start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lamina.services import folders

OWN = """
import sys
from pathlib import Path
from lamina.services import folders
mine = folders.own_folder(Path(sys.argv[1]))
assert folders.own_folder(Path(sys.argv[1])) == mine
(mine / "spilled").write_text("x" * 1000)
print(mine, flush=True)
sys.stdin.read()
"""


def process(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    started = subprocess.Popen(
        [sys.executable, "-c", OWN, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    return started, Path(started.stdout.readline().strip())


def test_a_start_removes_leftovers_of_killed_processes_and_keeps_files_in_use(tmp_path: Path) -> None:
    (tmp_path / "4711" / "blockmgr").mkdir(parents=True)  # as an older version named it
    (living, used), (killed, left) = process(tmp_path), process(tmp_path)
    assert not (tmp_path / "4711").exists()
    killed.kill()
    killed.communicate()
    assert left.exists()
    (third, new) = process(tmp_path)
    assert [path.exists() for path in (used, left, new)] == [True, False, True]
    third.kill()
    third.communicate()
    assert folders.sweep(tmp_path) == 1
    living.communicate()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [], "a process that ends leaves nothing"
