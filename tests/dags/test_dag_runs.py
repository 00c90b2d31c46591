"""The DAGs in a real Airflow, on the whole stack with its speed layer running; every view is true afterwards."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.fix_stack import Stack

DIES_ONCE = """\
#!/bin/sh
# lamina, but the first go-live ends in its middle, as by kill -9.
if [ "$2" = go-live ] && mkdir "{folder}/died" 2>/dev/null; then
  export LAMINA_STOP_AT=absorbed
fi
exec "{lamina}" "$@"
"""

SOON = {"LAMINA_REBUILD_SCHEDULE": "@once", "LAMINA_ARCHIVE_SCHEDULE": "@once", "LAMINA_RETRY_SECONDS": "1"}


@pytest.fixture
def dying(running: Stack, tmp_path: Path) -> str:
    """A PATH on which `lamina` dies once."""
    path = running.environment("airflow-scheduler")["PATH"]
    script = tmp_path / "lamina"
    script.write_text(DIES_ONCE.format(folder=tmp_path, lamina=Path(path.partition(":")[0]) / "lamina"))
    script.chmod(0o755)
    return f"{tmp_path}:{path}"


def published(stack: Stack) -> dict[str, int]:
    """The generation that each view is read from."""
    return dict(stack.query("lamina", "SELECT view, generation FROM lamina.publication"))


def tamper(stack: Stack, by: int) -> None:
    """Changes a cell that readers of `totals` see, behind the layers' back."""
    ((table, partials),) = stack.query(
        "lamina",
        "SELECT place, partials FROM lamina.generation_cells JOIN lamina.cell_table ON name = cell_table"
        " JOIN lamina.publication USING (generation) WHERE publication.view = 'totals'",
    )
    stack.query("lamina", f'UPDATE {table} SET "{partials[0]}" = "{partials[0]}" + {by}')


def test_a_task_that_died_is_retried_alone_and_a_view_whose_proof_differs_is_held_back(
    running: Stack, dying: str
) -> None:
    before = published(running)
    tamper(running, by=1)
    running.send(range(5_000, 6_000))

    words = ("airflow", "dags", "test", "nightly_rebuild")
    ended = running.run("airflow-scheduler", *words, code=None, PATH=dying, LAMINA_REBUILD_APPLICATIONS="2", **SOON)

    tasks = {
        (task, index): (state, tries)
        for task, index, state, tries in running.query(
            "airflow", "SELECT task_id, map_index, state, try_number FROM task_instance"
        )
    }
    assert tasks == {
        ("seal", -1): ("success", 1),
        ("archive", -1): ("success", 1),
        ("compute", 0): ("success", 1),
        ("compute", 1): ("success", 1),
        ("go_live", -1): ("success", 2),
        ("prove", -1): ("success", 1),
        ("hand_over", -1): ("skipped", 1),
        ("retire", -1): ("success", 1),
        ("held", -1): ("failed", 1),
    }, ended.out + ended.err
    assert "held back by their proof: totals" in ended.out + ended.err

    after = published(running)
    assert after.pop("totals") == before.pop("totals")
    assert all(after[view] > before[view] for view in before)
    assert running.query("lamina", "SELECT state FROM lamina.rebuild ORDER BY id DESC LIMIT 1") == [("held",)]
    tamper(running, by=-1)


def test_the_scheduler_runs_a_rebuild_and_an_archive_run_and_every_view_is_true(running: Stack) -> None:
    before = published(running)
    running.send(range(6_000, 7_000))
    running.start("airflow-scheduler", "airflow", "standalone", **SOON)

    ended = "SELECT dag_id, state FROM dag_run WHERE run_type = 'scheduled' AND state IN ('success', 'failed')"
    ended += " AND dag_id != 'maintenance'"  # which has its hour
    running.until(lambda: len(running.query("airflow", ended)) == 2, "both have run", "airflow-scheduler")
    assert dict(running.query("airflow", ended)) == {"nightly_rebuild": "success", "archive": "success"}

    after = published(running)
    assert all(after[view] > before[view] for view in before)
    assert running.query("lamina", "SELECT state FROM lamina.rebuild ORDER BY id DESC LIMIT 1") == [("done",)]

    _its_parts_are_those_of_the_deployment(running)
    assert running.stop("airflow-scheduler", parts=True) == []

    running.until(lambda: running.progress() >= 7_000, "the speed layer has caught up", "speed")
    checked = running.run("catalog", "lamina", "check", "--json").lines()
    assert {each["view"]: each["result"] for each in checked} == dict.fromkeys([*before, "places"], "equal")


def _its_parts_are_those_of_the_deployment(running: Stack) -> None:
    """What standalone started is what the deployment starts, is healthy by its checks, and knows its password."""
    parts = [_title(process) for process in running.descendants("airflow-scheduler")]
    for service in ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor"):
        program, part = running.command(service)
        named = re.compile(rf"{program}\b.*\b{part.replace('-', '[-_]')}\b")
        assert any(named.search(title) for title in parts), (part, parts)
        running.run(service, *running.health(service))
    admin = {"username": "admin", "password": running.services["airflow-init"]["environment"]["AIRFLOW_ADMIN_PASSWORD"]}
    request = urllib.request.Request(
        f"http://{running.places['airflow-api-server:8080']}/auth/token",
        json.dumps(admin).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert json.load(answer)["access_token"]


def _title(process: psutil.Process) -> str:
    """Its command line, or what it calls itself instead."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
