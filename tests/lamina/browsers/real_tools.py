"""Runs dbt and Superset on the files of `lamina generate`, over the deployment of this folder.

This is not part of the suite, which installs neither. Each tool has an environment of its own:

    uv venv /tmp/dbt && uv pip install --python /tmp/dbt 'dbt-core>=1.10.5,<1.11' dbt-postgres
    uv venv /tmp/superset && uv pip install --python /tmp/superset apache-superset==6.1.0 rich cachetools \
        Flask-Caching==2.3.1 'cachelib<0.14' psycopg2-binary
    python -m tests.lamina.browsers.real_tools --dbt /tmp/dbt/bin/dbt --superset /tmp/superset/bin/superset \
        --picture a.png
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg2

from tests.lamina.browsers.chromium import PROGRAM, Chromium, chromium

PATIENCE = 180.0
"""Seconds until Superset's server answers, and until its charts are drawn."""

CONFIGURATION = """
SECRET_KEY = {key!r}
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
"""

TABLE = "SELECT view, newest_record FROM lamina.freshness"

MODELS = {
    "views": f"{{{{ config(materialized='table') }}}}\n{TABLE}",
    "grown": f"""{{{{ config(materialized='incremental', unique_key='view') }}}}
{TABLE} {{% if is_incremental() %}}WHERE view NOT IN (SELECT view FROM {{{{ this }}}}){{% endif %}}""",
    "above": "SELECT count(*) AS n FROM {{ ref('views') }} JOIN {{ ref('grown') }} USING (view)",
}
"""Models of dbt by name: a table, a table that grows, and a view."""

LOG_IN = """(() => {
  const form = Object.assign(document.createElement('form'), {method: 'POST', action: '/login/'});
  for (const name of ['username', 'password']) {
    form.append(Object.assign(document.createElement('input'), {name, value: 'admin'}));
  }
  document.body.append(form);
  form.submit();
})()"""

CHARTS = "document.querySelectorAll('.dashboard-component-chart-holder')"


def lamina(*words: str) -> str:
    """Runs a command of Lamina. Returns its output."""
    command = [sys.executable, "-m", "lamina", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@contextmanager
def as_owner() -> Iterator[Any]:
    """A cursor of the database's owner, in a transaction."""
    with closing(psycopg2.connect(lamina("login", "--owner"))) as connection, connection, connection.cursor() as cursor:
        yield cursor


def with_dbt(program: str, folder: Path) -> None:
    """Builds models twice in a schema that analysts may write to, checks freshness and runs the tests. Raises if dbt
    fails.
    """
    with as_owner() as cursor:
        cursor.execute("CREATE SCHEMA IF NOT EXISTS marts; GRANT USAGE, CREATE ON SCHEMA marts TO analyst")
        cursor.execute("SELECT format('GRANT TEMPORARY ON DATABASE %I TO analyst', current_database())")
        cursor.execute(cursor.fetchone()[0])
    url = lamina("login", "dbt")
    environment = {
        **os.environ,
        "LAMINA_DBT_PASSWORD": unquote(urlsplit(url).password or ""),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    lamina("generate", "dbt", "--database", url, "--output", str(folder))
    for name, model in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(model)
    for words in (["parse"], ["run"], ["run"], ["source", "freshness"], ["test"]):
        subprocess.run([program, *words], check=True, cwd=folder, env=environment)


def with_superset(program: str, folder: Path, picture: Path | None) -> None:
    """Imports the bundle twice, as after a change of the catalog, and draws the dashboard.

    Raises if an import or a chart fails.
    """
    url = lamina("login", "superset")
    with as_owner() as cursor:
        cursor.execute("ALTER ROLE superset CONNECTION LIMIT 30")  # Superset opens a connection per chart
    (folder / "superset_config.py").write_text(CONFIGURATION.format(key=secrets.token_hex(), folder=folder))
    environment = {**os.environ, "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "FLASK_APP": "superset"}
    environment.pop("PYTHONPATH", None)

    def superset(*words: str) -> None:
        subprocess.run([program, *words], check=True, cwd=folder, env=environment)

    lamina("generate", "superset", "--database", url, "--output", str(folder / "lamina.zip"))
    superset("db", "upgrade")
    person = ["--username", "admin", "--firstname", "a", "--lastname", "b", "--email", "a@example.com"]
    superset("fab", "create-admin", *person, "--password", "admin")
    superset("init")
    for command in ("import-dashboards", "import-datasources", "import-dashboards"):
        superset(command, "--path", str(folder / "lamina.zip"), "--username", "admin")
    superset("set-database-uri", "--database_name", "Lamina", "--uri", url.replace("://", "+psycopg2://", 1))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([program, "run", "--port", str(port)], cwd=folder, env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health")
        with _page(folder / "profile") as page:
            _draw(page, f"http://127.0.0.1:{port}", picture)
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


@contextmanager
def _page(profile: Path) -> Iterator[Chromium]:
    if PROGRAM is None:
        raise SystemExit("no Chromium is installed")
    with chromium(profile) as page:
        yield page


def _resize(page: Chromium, height: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=1300, height=height, deviceScaleFactor=1, mobile=False)


def _draw(page: Chromium, address: str, picture: Path | None) -> None:
    """Logs in, opens the dashboard, and waits until every chart is drawn."""
    _resize(page, 10_000)  # Superset draws what is in sight
    page.open(f"{address}/login/")
    page.until("document.readyState === 'complete'")
    page.value(LOG_IN)
    page.until("location.pathname !== '/login/' && document.readyState === 'complete'")
    page.open(f"{address}/superset/dashboard/lamina-views/")
    until(page, f"{CHARTS}.length > 0")
    until(page, f"[...{CHARTS}].every(chart => chart.querySelector('canvas, table, [role=alert], .ant-empty'))")
    failed = page.value(f"[...{CHARTS}].filter(chart => /error/i.test(chart.innerText)).map(chart => chart.innerText)")
    if failed:
        raise SystemExit(f"charts failed: {failed}")
    if picture is not None:
        _resize(page, 1000)
        picture.write_bytes(_still(page))


def _still(page: Chromium) -> bytes:
    """The picture of a page once two in a row are equal: Superset moves the bars into place."""
    deadline, before = time.monotonic() + PATIENCE, b""
    while (now := base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])) != before:
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE:.0f} s: a page on which nothing moves")
        before = now
        time.sleep(0.5)
    return before


def until(page: Chromium, condition: str) -> None:
    """Waits until a JavaScript expression is true in the page."""
    deadline = time.monotonic() + PATIENCE
    while not page.value(condition):
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE:.0f} s: {condition}\n{page.value('document.body.innerText')}")
        time.sleep(0.5)


def main() -> None:
    """Runs the tools whose programs are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dbt", help="dbt's program")
    parser.add_argument("--superset", help="Superset's program")
    parser.add_argument("--picture", type=Path, help="where to write a picture of Superset's dashboard")
    options: Any = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in ("dbt", "superset"):
            Path(folder, name).mkdir()
        if options.dbt:
            with_dbt(options.dbt, Path(folder, "dbt"))
        if options.superset:
            with_superset(options.superset, Path(folder, "superset"), options.picture)


if __name__ == "__main__":
    main()
