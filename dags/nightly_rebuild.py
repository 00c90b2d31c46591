"""Every night, every view is recomputed from the master log, proven, checked, and handed over to its readers.

    seal → archive → compute [views] → go_live → prove [view] → check → hand_over → retire
                                                                            └─→ held [view]

A task is one `lamina` command, so whatever a task did can be repeated by hand: its log shows the command. What goes
from task to task is the rebuild's id and its views, as the steps print them with `--json`. Each view has tasks of its
own, which bear its name: `prove`, and `held` where it is held back.

- **A task that failed is retried alone** by Airflow (three times). By hand, clear it with its downstream tasks, which
  have not run: each step looks up in Postgres what is left to do. `seal` is retried for four hours, at ever longer
  intervals: another rebuild, or an apply, may be running.
- **A run is about a cut of offsets and not about a time.** No task is told a date. `seal` opens the cut where the views
  stand, and everything below it is recomputed. So a missed night needs nothing by hand, a run that is cleared as a
  whole does the same work again, and a `seal` that is repeated within a run continues the rebuild that it began.
- **A run that failed for good has changed nothing that anybody reads.** Its rebuild can be continued for six hours
  (its lease); after that the next `seal` finds it dead and retires what it left. `lamina step abandon` gives it up
  earlier.
- **A view is held back** when its proof found a difference and its policy (`on_difference`) is to hold, or when a check
  that the catalog declares for it failed: `hand_over` hands the other views over, `retire` ends the rebuild, and `held`
  fails for this view, the run with it. Readers still read its previous generation, current as ever.
- **Each view is an asset**, `Asset("lamina://analytics/VIEW")`. `hand_over` updates those whose rows it has changed:
  the views that it handed over, and the derived views over them. A DAG of your own waits for one:

      @dag(schedule=Asset("lamina://analytics/revenue"))

A view whose `rebuild_every`, a property in the catalog, has not passed is left out, and a night on which none is due is
skipped. All views of a night are handed over in one transaction. Triggered by hand with **views**, a list of names, a
run recomputes these alone, due or not.

How many Spark applications compute the views, side by side, is LAMINA_REBUILD_APPLICATIONS: each is a mapped task. One
is the default because it is faster where cores are few: the five views of `examples/online_retail`, 541,909 records,
took 40 to 62 s in one application and 148 to 169 s in five at once (two busy cores). Set it to the number of views, or
more, and each view is a mapped task of its own.
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

HELD = 3
"""Exit code of `lamina step hand-over` when a proof or a check held a view back."""

VIEWS = AssetAlias("lamina")
"""Stands for the assets of all views: which ones a hand-over updates is known when it is done."""

HELD_BACK = """\
lamina status
echo '{view}: a proof found a difference and the policy of the view is to hold, or a check of it, or beside it, failed.
Readers still read its previous generation. The log of prove shows what differs, the log of check what fails.
To let them read the new one anyway:
lamina step hand-over --anyway {view} --rebuild {rebuild}' >&2
exit 3
"""


def applications(printed: str) -> list[dict[str, Any]]:
    """The views that seal printed, dealt to the Spark applications that compute them.

    >>> applications('{"rebuild": 7, "views": ["customers", "revenue"]}')
    [{'rebuild': 7, 'views': ['customers', 'revenue']}]
    """
    sealed = json.loads(printed)
    if not sealed["views"]:
        raise AirflowSkipException("no view is due tonight")
    count = min(int(os.environ.get("LAMINA_REBUILD_APPLICATIONS") or 1), len(sealed["views"]))
    return [{**sealed, "views": sealed["views"][number::count]} for number in range(count)]


def each(printed: str) -> list[dict[str, Any]]:
    """The views that go-live printed, one by one.

    >>> each('{"rebuild": 7, "views": ["customers", "revenue"]}')
    [{'rebuild': 7, 'view': 'customers'}, {'rebuild': 7, 'view': 'revenue'}]
    """
    live = json.loads(printed)
    return [{"rebuild": live["rebuild"], "view": view} for view in live["views"]]


class HandOver(BashOperator):
    """Updates the assets of the views whose rows a hand-over has changed; gives those that it held back."""

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """Runs the command, whose last line says which."""
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
    """One Spark application; a view whose cells are loaded is passed over, so a retry goes on where it was."""
    return shlex.join(["lamina", "step", "compute", "--rebuild", str(rebuild), *views])


@task.bash(map_index_template="{{ view }}")
def prove(rebuild: int, view: str) -> str:
    """Every cell of one view, against what is read now."""
    return shlex.join(["lamina", "step", "prove", "--rebuild", str(rebuild), view])


@task.bash(map_index_template="{{ view }}", retries=0)
def held(rebuild: int, view: str) -> str:
    """The verdict on one view that is held back; without one there is no such task."""
    return HELD_BACK.format(rebuild=rebuild, view=view)


@dag(
    schedule=os.environ.get("LAMINA_REBUILD_SCHEDULE") or "0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    params={  # words of a command
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
    """The steps in their order; the file's docstring, which Airflow shows beside the graph, says the rest."""
    seal = BashOperator(
        task_id="seal",
        bash_command="lamina step seal {{ params.views | join(' ') or '--due' }} --key '{{ run_id }}' --json",
        output_processor=applications,
        retries=8,
        retry_exponential_backoff=True,
    )
    go_live = step("go-live", " --json", output_processor=each)
    hand_over = step("hand-over", f" --json || [ $? -eq {HELD} ]", HandOver, outlets=[VIEWS])
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
