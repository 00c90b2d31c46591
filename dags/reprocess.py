"""Triggered by hand: a changed catalog is deployed; views whose cells change are computed beside the old ones.

    plan → apply

`plan` says what would be done, and its log shows it: per declaration, in words and as a difference of the SQL. `apply`
does it. Until all new versions are computed the old ones are served, and then all of them move in one transaction.

- **catalog** is a folder that the scheduler's machine sees; that of LAMINA_CATALOG unless another is given.
- **allow_break** allows removing names or columns that readers may use, or changing a column's type.
- **prune** drops what is deployed but not in the catalog.

An `apply` that failed or was killed has changed nothing. It is tried again; one that was killed, or that readers kept
from its end, continues with what was computed. While another rebuild runs it is refused, and tried again, too, for four
hours at ever longer intervals; where a check blocks the new versions it is not. It updates the assets of the views that
it has changed, as the hand-over of `nightly_rebuild` does.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset, AssetAlias, Param, dag
from airflow.sdk.exceptions import AirflowFailException

DIFFERENT = 3
"""Exit code of `lamina plan` when there is something to do, and of `lamina apply` when a check blocks it."""

VIEWS = AssetAlias("lamina")
"""Stands for the assets of all views, as in `nightly_rebuild`."""


def changed(printed: str) -> list[str]:
    """The views that an apply has created or changed: it prints a JSON object for each change, here with commas.

    >>> changed('{"change": "update", "what": "view", "name": "v"},{"change": "drop", "what": "view", "name": "w"}')
    ['v']
    """
    changes = [each for each in json.loads(f"[{printed}]") if each["what"] == "view"]
    return [each["name"] for each in changes if each["change"] in ("create", "update", "reprocess")]


class Apply(BashOperator):
    """Updates the assets of the views that it has changed; gives their names."""

    def execute(self, context: Any) -> list[str]:
        """Runs the command, whose last line says which."""
        printed = super().execute(context)
        if printed == "blocked":
            raise AirflowFailException("a check fails for the new versions, so nothing has changed: this log names it")
        views = changed(printed)
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
        "env": {"LAMINA_CATALOG": "{{ params.catalog }}"},  # not a word of the command, which a shell would read
        "append_env": True,
    },
    tags=["lamina"],
    doc_md=__doc__,
)
def reprocess() -> None:
    """Two tasks, two commands."""
    options = "{{ ' --allow-break' if params.allow_break }}{{ ' --prune' if params.prune }}"
    plan = BashOperator(task_id="plan", bash_command=f"lamina plan || [ $? -eq {DIFFERENT} ]")
    ended = f"case ${{PIPESTATUS[0]}} in 0) ;; {DIFFERENT}) echo blocked ;; *) exit 1 ;; esac"
    command = f"lamina apply --json{options} | paste -s -d ,; {ended}"
    apply = Apply(task_id="apply", bash_command=command, outlets=[VIEWS], retries=8, retry_exponential_backoff=True)
    plan >> apply


reprocess()
