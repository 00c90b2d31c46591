"""Deploys a changed catalog when triggered by hand. Views whose cells change are computed next to the old ones.

    plan → apply

`plan` shows the changes in its log: per declaration, in words and as a difference of the SQL. `apply` makes them. The
old versions are served until all new ones are computed, and then all views move in one transaction.

- **catalog** is a folder that the scheduler's machine can read, by default the one of LAMINA_CATALOG.
- **allow_break** allows removing names or columns that readers may use, or changing a column's type.
- **prune** drops views and sources that are deployed but not in the catalog.

An `apply` that fails before the views move has changed nothing that is deployed, and is retried. If it was killed, or
if readers kept it from finishing, the retry continues with the computed cells. An `apply` that was refused because
another rebuild runs is also retried, for four hours at growing intervals. If a check blocks the new versions, it is not
retried. Once `apply` has succeeded, it updates the assets of the views that changed, as the hand-over of
`nightly_rebuild` does. They include the ones that only `plan` listed, because an attempt may die after the views moved.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset, AssetAlias, Param, dag
from airflow.sdk.exceptions import AirflowFailException

FINDING = 3
"""Exit code of `lamina plan` if there are changes, and of `lamina apply` if a check blocks them."""

VIEWS = AssetAlias("lamina")
"""Stands for the assets of all views, as in `nightly_rebuild`."""


def changed(*printed: str) -> list[str]:
    """The created and changed views, from the JSON objects of a plan and an apply. Each text has commas between them.

    >>> plan = '{"change": "update", "what": "view", "name": "v"},{"change": "drop", "what": "view", "name": "w"}'
    >>> changed(plan, plan), changed(plan, "")
    (['v'], ['v'])
    """
    changes = [change for text in printed for change in json.loads(f"[{text}]") if change["what"] == "view"]
    names = [change["name"] for change in changes if change["change"] in ("create", "update", "reprocess")]
    return list(dict.fromkeys(names))


class Apply(BashOperator):
    """Updates the assets of the views that it or an interrupted attempt has changed, and returns their names."""

    def execute(self, context: Any) -> list[str]:
        """Runs the command, whose last line lists the changes."""
        printed = super().execute(context)
        if printed == "blocked":
            raise AirflowFailException(
                "a check fails for the new versions, so nothing has changed. This log names the check"
            )
        views = changed(context["ti"].xcom_pull(task_ids="plan"), printed)
        for view in views:
            context["outlet_events"][VIEWS].add(Asset(f"lamina://analytics/{view}"))
        return views


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    params={
        "catalog": Param(os.environ.get("LAMINA_CATALOG") or "catalog", type="string", minLength=1),
        "allow_break": Param(False, type="boolean"),
        "prune": Param(False, type="boolean"),
    },
    default_args={
        "retries": 3,
        "retry_delay": timedelta(seconds=int(os.environ.get("LAMINA_RETRY_SECONDS") or 60)),
        "env": {"LAMINA_CATALOG": "{{ params.catalog }}"},  # not as a word of the command, which a shell would read
        "append_env": True,
    },
    tags=["lamina"],
    doc_md=__doc__,
)
def reprocess() -> None:
    """Two tasks, two commands."""
    options = "{{ ' --allow-break' if params.allow_break }}{{ ' --prune' if params.prune }}"
    listed = f"lamina plan --json | paste -s -d ,; case ${{PIPESTATUS[0]}} in 0|{FINDING}) ;; *) exit 1 ;; esac"
    plan = BashOperator(task_id="plan", bash_command=f"lamina plan || [ $? -eq {FINDING} ] || exit 1; {listed}")
    ended = f"case ${{PIPESTATUS[0]}} in 0) ;; {FINDING}) echo blocked ;; *) exit 1 ;; esac"
    command = f"lamina apply --json{options} | paste -s -d ,; {ended}"
    apply = Apply(task_id="apply", bash_command=command, outlets=[VIEWS], retries=8, retry_exponential_backoff=True)
    plan >> apply


reprocess()
