"""Every night, every view is recomputed from the master log, proven, checked, and handed over to its readers.

    seal → archive → compute → go_live → prove → hand_over → retire
                                                     └─→ held

A task is one `lamina` command, so whatever a task did can be repeated by hand: its log shows the command. What goes
from task to task is the rebuild's id and its views, as `lamina step seal --json` prints them.

- **A task that failed can be retried alone**, by Airflow (three times) or by a person ("clear task"): each step looks
  up in Postgres what is left to do.
- **A missed night needs nothing by hand**: a rebuild covers everything below its cut, so there is nothing to catch up.
- **A run that failed for good has changed nothing that anybody reads.** Its rebuild can be gone on with for six hours
  (its lease); after that the next `seal` finds it dead and retires what it left. `lamina step abandon` gives it up
  earlier.
- **A view is held back** when its proof found a difference and its policy (`on_difference`) is to hold, or when a check
  that the catalog declares for it failed (`lamina step prove` runs proofs and checks): `lamina step hand-over` hands
  the other views over and exits with 3. Then `hand_over` is *skipped* and not retried, `retire` ends the rebuild, and
  `held` fails, the run with it. The view goes on being read from the generation before, current as ever.

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
from airflow.sdk import dag, task

HELD = 3
"""Exit code of `lamina step hand-over` when a proof or a check held a view back."""

HELD_BACK = """\
lamina status
echo 'A proof found a difference and the policy of the view is to hold, or a check of the view failed.
It is read from the generation before. The log of hand_over names it, the log of prove shows what differs or fails.
To let it be read all the same:
lamina step hand-over --anyway --rebuild {{ ti.xcom_pull(task_ids='seal')[0]['rebuild'] }}' >&2
exit 3
"""


def applications(printed: str) -> list[dict[str, Any]]:
    """The views that seal printed, dealt to the Spark applications that compute them.

    >>> applications('{"rebuild": 7, "views": ["customers", "revenue"]}')
    [{'rebuild': 7, 'views': ['customers', 'revenue']}]
    """
    sealed = json.loads(printed)
    count = min(int(os.environ.get("LAMINA_REBUILD_APPLICATIONS") or 1), len(sealed["views"]))
    return [{**sealed, "views": sealed["views"][number::count]} for number in range(count)]


def step(name: str, **options: Any) -> BashOperator:
    """The task of one step of the rebuild that `seal` began."""
    rebuild = "{{ ti.xcom_pull(task_ids='seal')[0]['rebuild'] }}"
    return BashOperator(
        task_id=name.replace("-", "_"), bash_command=f"lamina step {name} --rebuild {rebuild}", **options
    )


@task.bash(map_index_template="{{ views | join(', ') }}")
def compute(rebuild: int, views: list[str]) -> str:
    """One Spark application; a view whose cells are loaded is passed over, so a retry goes on where it was."""
    return shlex.join(["lamina", "step", "compute", "--rebuild", str(rebuild), *views])


@dag(
    schedule=os.environ.get("LAMINA_REBUILD_SCHEDULE") or "0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
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
        task_id="seal", bash_command="lamina step seal --key '{{ run_id }}' --json", output_processor=applications
    )
    hand_over = step("hand-over", skip_on_exit_code=HELD)
    held = BashOperator(task_id="held", bash_command=HELD_BACK, trigger_rule="all_skipped", retries=0)
    (
        seal
        >> step("archive")
        >> compute.expand_kwargs(seal.output)
        >> step("go-live")
        >> step("prove")
        >> hand_over
        >> [step("retire", trigger_rule="none_failed"), held]
    )


nightly_rebuild()
