"""A real Airflow runs the DAGs on the whole stack, next to the speed layer. Afterwards every view equals its SELECT."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fix_services import REPOSITORY
from tests.fix_stack import Stack

DIES_ONCE = """\
#!/bin/sh
# lamina, but the first go-live dies halfway, as by kill -9.
if [ "$2" = go-live ] && mkdir "{folder}/died" 2>/dev/null; then
  export LAMINA_STOP_AT=absorbed
fi
exec "{lamina}" "$@"
"""

SOON = {
    "LAMINA_REBUILD_SCHEDULE": "@once",
    "LAMINA_ARCHIVE_SCHEDULE": "@once",
    "LAMINA_MAINTENANCE_SCHEDULE": "@once",
    "LAMINA_WATCH_SCHEDULE": "@once",
    "LAMINA_RETRY_SECONDS": "1",
}

OVERDUE = {"LAMINA_ALARM_NO_REBUILD": "0.000001"}
"""With it, the last rebuild has always ended too long ago."""

WAITING = """\
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

with DAG("of_a_user", schedule=Asset("lamina://analytics/places"), is_paused_upon_creation=False):
    EmptyOperator(task_id="reads_places")
"""

BUSIEST = "CREATE VIEW places AS SELECT country, max(events) AS events FROM hourly GROUP BY country;"
"""The view of the catalog with another SELECT over the same cells."""


@pytest.fixture
def dying(running: Stack, tmp_path: Path) -> str:
    """A PATH on which `lamina` dies once."""
    path = running.environment("airflow-scheduler")["PATH"]
    script = tmp_path / "lamina"
    script.write_text(DIES_ONCE.format(folder=tmp_path, lamina=Path(path.partition(":")[0]) / "lamina"))
    script.chmod(0o755)
    return f"{tmp_path}:{path}"


def published(stack: Stack) -> dict[str, int]:
    """The published generation of each view."""
    return dict(stack.query("lamina", "SELECT view, generation FROM lamina.publication"))


def tamper(stack: Stack, by: int) -> None:
    """Changes a cell that readers of `totals` see, without the layers' knowledge."""
    ((table, partials),) = stack.query(
        "lamina",
        "SELECT place, partials FROM lamina.generation_cells JOIN lamina.cell_table ON name = cell_table"
        " JOIN lamina.publication USING (generation) WHERE publication.view = 'totals'",
    )
    stack.query("lamina", f'UPDATE {table} SET "{partials[0]}" = "{partials[0]}" + {by}')


def updated(stack: Stack) -> list[str]:
    """The views whose assets were updated, a name for each time."""
    events = "SELECT name FROM asset_event JOIN asset ON asset.id = asset_id ORDER BY asset_event.id"
    return [name.removeprefix("lamina://analytics/") for (name,) in stack.query("airflow", events)]


def test_the_scheduler_runs_the_dags_and_every_view_equals_its_select(
    running: Stack, dying: str, tmp_path: Path
) -> None:
    """A task that dies is retried alone. A view whose proof differs is held back and keeps its rows."""
    _the_speed_layer_leaves_cores_for_a_rebuild_and_an_archive_run(running)
    _the_speed_layer_outlives_spark_s_master(running)
    before = published(running)
    tamper(running, by=1)
    dags = tmp_path / "dags"
    shutil.copytree(REPOSITORY / "dags", dags)
    (dags / "of_a_user.py").write_text(WAITING)
    running.send(range(5_100, 6_000))
    here = {"AIRFLOW__CORE__DAGS_FOLDER": str(dags), "PATH": dying, "LAMINA_REBUILD_APPLICATIONS": "2"}
    running.start("airflow-scheduler", "airflow", "standalone", **here, **SOON, **OVERDUE)

    ended = "SELECT dag_id, state FROM dag_run WHERE run_type IN ('scheduled', 'asset_triggered')"
    ended += " AND state IN ('success', 'failed')"
    running.until(lambda: len(running.query("airflow", ended)) == 5, "every DAG has run", "airflow-scheduler")
    assert dict(running.query("airflow", ended)) == {
        "nightly_rebuild": "failed",
        "archive": "success",
        "maintenance": "success",
        "of_a_user": "success",
        "watch": "failed",
    }
    _a_task_was_retried_alone_and_a_view_is_held_back(running, before)
    assert re.search(r"AirflowFailException.*no rebuild has succeeded for", _log_of(running, "watch"))
    tamper(running, by=-1)

    _a_catalog_that_changed_is_reprocessed(running, tmp_path / "changed")
    _standalone_runs_the_deployments_processes(running)
    assert running.stop("airflow-scheduler", parts=True) == []

    running.until(lambda: running.progress() >= 6_000, "the speed layer has caught up", "speed")
    checked = running.run("catalog", "lamina", "check", "--json").lines()
    assert {line["view"]: line["result"] for line in checked} == dict.fromkeys([*before, "places"], "equal")


def _the_speed_layer_leaves_cores_for_a_rebuild_and_an_archive_run(running: Stack) -> None:
    """Spark's master reports the cores and the memory of its cluster."""
    state = _cluster(running)
    (worker,) = state["workers"]
    (application,) = [app for app in state["activeapps"] if app["state"] == "RUNNING"]
    assert worker["cores"] >= 3 * application["cores"], state
    assert worker["memory"] >= 3 * application["memoryperexecutor"], state


def _the_speed_layer_outlives_spark_s_master(running: Stack) -> None:
    """A restarted master has the running applications, and their executors continue."""
    (before,) = [app["id"] for app in _cluster(running)["activeapps"]]
    running.stop("spark-master")
    running.start("spark-master")
    running.healthy("spark-master")

    def is_known_again() -> bool:
        state = _cluster(running)
        running_ids = [app["id"] for app in state["activeapps"] if app["state"] == "RUNNING"]
        return running_ids == [before] and [worker["coresused"] > 0 for worker in state["workers"]] == [True]

    running.until(is_known_again, "the master knows the speed layer again", "spark-master")
    running.send(range(5_000, 5_100))
    running.until(lambda: running.progress() >= 5_100, "the speed layer continues", "speed")


def _cluster(running: Stack) -> Any:
    """The state of the cluster, as Spark's master reports it."""
    with urllib.request.urlopen(f"http://{running.places['spark-master:8080']}/json/", timeout=20) as answer:
        return json.load(answer)


def _a_task_was_retried_alone_and_a_view_is_held_back(running: Stack, before: dict[str, int]) -> None:
    """Airflow's tasks of the night, and the published generations."""
    tasks = {
        (task, index): (state, tries)
        for task, index, state, tries in running.query(
            "airflow",
            "SELECT task_id, map_index, state, try_number FROM task_instance WHERE dag_id = 'nightly_rebuild'",
        )
    }
    log = _log_of(running, "nightly_rebuild")
    assert tasks == {
        ("seal", -1): ("success", 1),
        ("archive", -1): ("success", 1),
        ("compute", 0): ("success", 1),
        ("compute", 1): ("success", 1),
        ("go_live", -1): ("success", 2),
        **{("prove", view): ("success", 1) for view in range(4)},
        ("check", -1): ("success", 1),
        ("hand_over", -1): ("success", 1),
        ("retire", -1): ("success", 1),
        ("held", 0): ("failed", 1),
    }, log
    assert "totals: no proof found it equal" in log

    after = published(running)
    assert after["totals"] == before["totals"]
    assert all(after[view] > before[view] for view in before if view != "totals")
    assert running.query("lamina", "SELECT state FROM lamina.rebuild ORDER BY id DESC LIMIT 1") == [("held",)]
    assert sorted(updated(running)) == ["clicks", "hourly", "places", "users"], "all except the held one"


def _log_of(stack: Stack, dag: str) -> str:
    """The log lines of a DAG's tasks."""
    files = (stack.home / "airflow" / "logs" / f"dag_id={dag}").rglob("*.log")
    return "".join(file.read_text() for file in files)


def _a_catalog_that_changed_is_reprocessed(running: Stack, catalog: Path) -> None:
    """A person triggers the DAG with another folder. Afterwards, the deployment's own catalog is applied again."""
    shutil.copytree(running.home / "catalog", catalog)
    (catalog / "places.sql").write_text(BUSIEST)
    before = len(updated(running))
    request = {"logical_date": None, "conf": {"catalog": str(catalog)}}
    _ask(running, "api/v2/dags/reprocess/dagRuns", request, token=_token(running))
    ended = "SELECT state FROM dag_run WHERE dag_id = 'reprocess' AND state IN ('success', 'failed')"
    running.until(lambda: running.query("airflow", ended) != [], "the catalog is reprocessed", "airflow-scheduler")
    assert running.query("airflow", ended) == [("success",)], _log_of(running, "reprocess")
    ((differing,),) = running.query(
        "lamina",
        "SELECT count(*) FROM analytics.places AS p WHERE p.events !="
        " (SELECT max(h.events) FROM analytics.hourly AS h WHERE h.country IS NOT DISTINCT FROM p.country)",
    )
    assert differing == 0
    assert updated(running)[before:] == ["places"]
    running.run("catalog", "lamina", "apply")


def _standalone_runs_the_deployments_processes(running: Stack) -> None:
    """`airflow standalone` starts the deployment's processes: healthy by its checks, with its password."""
    parts = [_title(process) for process in running.descendants("airflow-scheduler")]
    for service in ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor"):
        program, part = running.command(service)
        named = re.compile(rf"{program}\b.*\b{part.replace('-', '[-_]')}\b")
        assert any(named.search(title) for title in parts), (part, parts)
        running.run(service, *running.health(service))
    assert _token(running)


def _token(running: Stack) -> str:
    """A token from Airflow's server for the password of its user `admin`."""
    password = running.services["airflow-init"]["environment"]["AIRFLOW_ADMIN_PASSWORD"]
    return str(_ask(running, "auth/token", {"username": "admin", "password": password})["access_token"])


def _ask(running: Stack, path: str, body: object, token: str = "") -> Any:
    """The response of Airflow's server."""
    request = urllib.request.Request(
        f"http://{running.places['airflow-api-server:8080']}/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _title(process: psutil.Process) -> str:
    """The command line of a process, or the title it has set."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
