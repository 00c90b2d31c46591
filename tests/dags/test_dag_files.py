"""The DAG files, read without running them."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template

from tests.fix_services import REPOSITORY

DAGS = REPOSITORY / "dags"
ALLOWED = ("airflow.sdk", "airflow.providers.standard")

DESCRIBE = """
import doctest, json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(json.dumps({
    "errors": bag.import_errors,
    "examples": {
        name: doctest.testmod(module)._asdict()
        for name, module in list(sys.modules.items())
        if (getattr(module, "__file__", None) or "").startswith(sys.argv[1])
    },
    "dags": {
        dag.dag_id: {
            "catchup": dag.catchup,
            "max_active_runs": dag.max_active_runs,
            "after": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
            "retries": {task.task_id: task.retries for task in dag.tasks},
            "mapped": [task.task_id for task in dag.tasks if hasattr(task, "expand_input")],
            "outlets": [task.task_id for task in dag.tasks if getattr(task, "outlets", None)],
            "timetable": type(dag.timetable).__name__,
            "params": dag.params.dump(),
            "words": {task.task_id: str(getattr(task, "bash_command", "")) for task in dag.tasks},
        }
        for dag in bag.dags.values()
    },
}))
"""

RETRIED_APPLY = """
import json, sys
from collections import defaultdict
from types import SimpleNamespace
from airflow.dag_processing.dagbag import DagBag
tasks = DagBag(sys.argv[1]).dags["reprocess"].task_dict
planned = tasks["plan"].execute({})
events = defaultdict(lambda: SimpleNamespace(add=lambda asset: updated.append(asset.uri)))
updated = []
pulled = SimpleNamespace(xcom_pull=lambda task_ids: {"plan": planned}[task_ids])
tasks["apply"].execute({"ti": pulled, "outlet_events": events})
print(json.dumps(updated))
"""
"""Runs the commands of `reprocess` without Airflow's scheduler, and prints the updated assets."""

LAMINA = """\
#!/bin/sh
# lamina with a changed view, which an apply has moved before it died. Its retry has nothing left to do.
case "$*" in
  "plan --json") echo '{"change": "update", "what": "view", "name": "revenue"}'; exit 3 ;;
  plan) echo revenue changes; exit 3 ;;
esac
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The DAGs that Airflow reads from the files."""
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE, DAGS],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["errors"] == {}
    assert sum(module["attempted"] for module in answer["examples"].values()) > 4
    assert not [name for name, module in answer["examples"].items() if module["failed"]], done.stdout
    dags: dict[str, Any] = answer["dags"]
    return dags


@pytest.mark.parametrize("file", sorted(DAGS.glob("*.py")), ids=lambda file: file.name)
def test_a_dag_file_imports_only_airflow_and_the_standard_library(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        for name in names:
            standard = name.partition(".")[0] in sys.stdlib_module_names
            assert standard or f"{name}.".startswith(tuple(f"{package}." for package in ALLOWED)), name


def test_a_rebuild_runs_its_steps_in_order_and_ends_at_a_held_view(described: dict[str, Any]) -> None:
    assert described["nightly_rebuild"]["after"] == {
        "seal": [],
        "archive": ["seal"],
        "compute": ["archive", "seal"],
        "go_live": ["compute"],
        "prove": ["go_live"],
        "check": ["prove"],
        "hand_over": ["check"],
        "retire": ["hand_over"],
        "held": ["hand_over"],
    }
    assert sorted(described["nightly_rebuild"]["mapped"]) == ["compute", "held", "prove"]


@pytest.mark.parametrize(("views", "words"), [([], "--due"), (["revenue", "visits"], "revenue visits")])
def test_a_rebuild_recomputes_due_views_or_named_ones(described: dict[str, Any], views: list[str], words: str) -> None:
    assert described["nightly_rebuild"]["params"] == {"views": []}
    command = Template(described["nightly_rebuild"]["words"]["seal"]).render(params={"views": views}, run_id="tonight")
    assert command == f"lamina step seal {words} --key 'tonight' --json"


def test_a_reprocess_is_triggered_by_hand_and_by_default_loses_nothing(described: dict[str, Any]) -> None:
    assert described["reprocess"]["timetable"] == "NullTimetable"
    assert described["reprocess"]["after"] == {"plan": [], "apply": ["plan"]}
    flags = {name: value for name, value in described["reprocess"]["params"].items() if name != "catalog"}
    assert flags == {"allow_break": False, "prune": False}


def test_a_task_that_moves_views_updates_their_assets(described: dict[str, Any]) -> None:
    updating = {name: dag["outlets"] for name, dag in described.items() if dag["outlets"]}
    assert updating == {"nightly_rebuild": ["hand_over"], "reprocess": ["apply"]}


def test_an_apply_that_is_retried_after_the_move_updates_the_planned_assets(tmp_path: Path) -> None:
    command = tmp_path / "lamina"
    command.write_text(LAMINA)
    command.chmod(0o755)
    here = {"AIRFLOW_HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = [sys.executable, "-c", RETRIED_APPLY, str(DAGS)]
    done = subprocess.run(run, env={**os.environ, **here}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["lamina://analytics/revenue"]


@pytest.mark.parametrize("file", sorted(DAGS.glob("*.py")), ids=lambda file: file.name)
def test_no_task_reads_a_time(file: Path) -> None:
    """A repeated run does the same work at any time."""
    times = re.findall(r"\{\{\s*(ds|ts|logical_date|data_interval\w*|dag_run)\b", file.read_text())
    assert times == []


def test_missed_runs_are_not_caught_up_and_runs_never_overlap(described: dict[str, Any]) -> None:
    assert set(described) == {"nightly_rebuild", "archive", "maintenance", "reprocess", "watch"}
    for dag in described.values():
        assert not dag["catchup"]
        assert dag["max_active_runs"] == 1


def test_every_task_is_retried_unless_it_is_a_verdict(described: dict[str, Any]) -> None:
    for dag in described.values():
        assert {task for task, retries in dag["retries"].items() if retries < 1} <= {"held"}


def test_every_task_is_a_lamina_command(described: dict[str, Any]) -> None:
    tasks = {(name, task): words for name, dag in described.items() for task, words in dag["words"].items()}
    # These commands are composed at run time, and the `check` of `watch` runs two.
    composed = {
        *(("nightly_rebuild", task) for task in ("compute", "prove", "held")),
        ("archive", "archive_all"),
        ("maintenance", "maintain_all"),
        ("watch", "check"),
        ("watch", "look"),
    }
    assert composed < tasks.keys()
    for name, task in tasks.keys() - composed:
        assert tasks[name, task].startswith("lamina "), (name, task)
