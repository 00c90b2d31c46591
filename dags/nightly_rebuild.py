"""Recomputes every view from the master log every night, proves it, checks it, and hands it over to its readers.

    seal → archive → compute [views] → go_live → prove [view] → check → hand_over → retire
                                                                            └─→ held [view]

A task is one `lamina` command, so any task can be repeated by hand: its log shows the command. Tasks pass on the
rebuild's id and its views, as the steps print them with `--json`. Each view has tasks with its name: `prove`, and
`held` if it is held back.

- **A failed task is retried alone** by Airflow (three times). By hand, clear it with its downstream tasks, which have
  not run: each step looks up in Postgres what is left to do. `seal` is retried for four hours at growing intervals,
  because another rebuild or an apply may be running.
- **A run is about a cut of offsets, not about a time.** No task gets a date. `seal` opens the cut at the views' current
  progress, and everything below it is recomputed. So a missed night needs no repair, a run that is cleared as a whole
  does the same work again, and a `seal` that is repeated within a run continues the rebuild that it began.
- **A run that finally failed has changed nothing for readers.** Its rebuild can be continued for six hours (its lease).
  After that, the next `seal` finds it dead and retires its leftovers. `lamina step abandon` gives it up earlier.
- **A view is held back** if its proof found a difference and its policy (`on_difference`) is to hold, or if a check
  that the catalog declares for it failed. `hand_over` hands over the other views, `retire` ends the rebuild, and `held`
  fails for this view, and with it the run. Readers still read the view's previous generation, which is kept current.
- **Each view is an asset**, `Asset("lamina://analytics/VIEW")`. `hand_over` updates the assets of all views whose rows
  it has changed: the views that it handed over, and the derived views over them. A DAG of your own waits for one:
      @dag(schedule=Asset("lamina://analytics/revenue"))

A view is left out until its `rebuild_every`, a property in the catalog, has passed. A night without a due view is
skipped. All views of a night are handed over in one transaction. A run that is triggered by hand with **views**, a list
of names, recomputes these alone, due or not.

LAMINA_REBUILD_APPLICATIONS is the number of Spark applications that compute the views in parallel, each in a mapped
task. The default is one, because it is faster on few cores: the five views of `examples/online_retail`, 541,909
records, took 40 to 62 s in one application and 148 to 169 s in five (two busy cores). Set it to the number of views, or
more, and each view has its own mapped task.
"""

from __future__ import annotations

import json
import os
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset, AssetAlias, Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

FINDING = 3
"""Exit code of `lamina step hand-over` when a proof or a check held a view back."""

VIEWS = AssetAlias("lamina")
"""Stands for the assets of all views. The ones that a hand-over updates are only known when it is done."""

HELD_BACK = """\
lamina status
echo '{view}: a proof found a difference and the policy of the view is to hold, or a check failed.
Readers still read its previous generation. The log of prove shows what differs, the log of check what fails.
To let them read the new one anyway:
lamina step hand-over --anyway {view} --rebuild {rebuild}' >&2
exit {finding}
"""


def applications(printed: str) -> list[dict[str, Any]]:
    """The views that `seal` printed, dealt to the Spark applications that compute them.

    >>> applications('{"rebuild": 7, "views": ["customers", "revenue"]}')
    [{'rebuild': 7, 'views': ['customers', 'revenue']}]
    """
    sealed = json.loads(printed)
    if not sealed["views"]:
        raise AirflowSkipException("no view is due tonight")
    count = int(os.environ.get("LAMINA_REBUILD_APPLICATIONS") or 1)
    return [{**sealed, "views": views} for views in shares(sealed["views"], count)]


def shares(views: list[str], count: int) -> list[list[str]]:
    """The views, dealt to this many applications: to at least one, and to none without a view.

    >>> shares(["customers", "revenue", "visits"], 2), shares(["revenue"], 0), shares(["revenue"], 5)
    ([['customers', 'visits'], ['revenue']], [['revenue']], [['revenue']])
    """
    count = max(1, min(count, len(views)))
    return [views[number::count] for number in range(count)]


def one_by_one(printed: str) -> list[dict[str, Any]]:
    """The views that `go-live` printed, one by one.

    >>> one_by_one('{"rebuild": 7, "views": ["customers", "revenue"]}')
    [{'rebuild': 7, 'view': 'customers'}, {'rebuild': 7, 'view': 'revenue'}]
    """
    live = json.loads(printed)
    return [{"rebuild": live["rebuild"], "view": view} for view in live["views"]]


class HandOver(BashOperator):
    """Updates the assets of the views whose rows a hand-over has changed. Returns the views that it held back."""

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """Runs the command, whose last line lists these views."""
        done = json.loads(super().execute(context))
        updates = context["outlet_events"][VIEWS]
        for view in done["handed_over"]:
            updates.add(Asset(f"lamina://analytics/{view}"), extra={"rebuild": done["rebuild"]})
        return [{"rebuild": done["rebuild"], "view": view} for view in done["held"]]


def step(name: str, after: str = "", of: type[BashOperator] = BashOperator, **options: Any) -> BashOperator:
    """The task of one step of the rebuild that `seal` began."""
    rebuild = "{{ ti.xcom_pull(task_ids='seal')[0]['rebuild'] }}"
    command = f"lamina step {name} --rebuild {rebuild}{after}"
    return of(task_id=name.replace("-", "_"), bash_command=command, **options)


@task.bash(map_index_template="{{ views | join(', ') }}")
def compute(rebuild: int, views: list[str]) -> str:
    """One Spark application. It skips views whose cells are loaded, so a retry resumes where the last attempt ended."""
    return shlex.join(["lamina", "step", "compute", "--rebuild", str(rebuild), *views])


@task.bash(map_index_template="{{ view }}")
def prove(rebuild: int, view: str) -> str:
    """Compares every cell of one view with the published one."""
    return shlex.join(["lamina", "step", "prove", "--rebuild", str(rebuild), view])


@task.bash(map_index_template="{{ view }}", retries=0)
def held(rebuild: int, view: str) -> str:
    """The verdict on one view that is held back. If none is, there is no such task."""
    return HELD_BACK.format(rebuild=rebuild, view=view, finding=FINDING)


@dag(
    schedule=os.environ.get("LAMINA_REBUILD_SCHEDULE") or "0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    params={  # these become words of a command
        "views": Param([], type="array", items={"type": "string", "pattern": r"^\w+$"}, uniqueItems=True)
    },
    default_args={
        "retries": 3,
        "retry_delay": timedelta(seconds=int(os.environ.get("LAMINA_RETRY_SECONDS") or 60)),
    },
    tags=["lamina"],
    doc_md=__doc__,
)
def nightly_rebuild() -> None:
    """The steps in order. The file's docstring, which Airflow shows next to the graph, describes them."""
    seal = BashOperator(
        task_id="seal",
        bash_command="lamina step seal {{ params.views | join(' ') or '--due' }} --key '{{ run_id }}' --json",
        output_processor=applications,
        retries=8,
        retry_exponential_backoff=True,
    )
    go_live = step("go-live", " --json", output_processor=one_by_one)
    hand_over = step("hand-over", f" --json || [ $? -eq {FINDING} ]", HandOver, outlets=[VIEWS])
    (
        seal
        >> step("archive")
        >> compute.expand_kwargs(seal.output)
        >> go_live
        >> prove.expand_kwargs(go_live.output)
        >> step("check")
        >> hand_over
        >> [step("retire"), held.expand_kwargs(hand_over.output)]
    )


nightly_rebuild()
