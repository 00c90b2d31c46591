"""Commands do what their help says, and answer a typo with a way out. No test here needs Spark."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg2.extensions
import pytest
from click.testing import CliRunner
from click.testing import Result as Ran

import serving_layer.narration
from lamina.cli import lamina as program
from lamina.configuration.settings import Settings
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from serving_layer.narration import waiting
from serving_layer.promise import progress
from tests.fix_catalogs import EVENTS, PLACES, TOTALS
from tests.fix_lamina import CommandLine
from tests.fix_stack import services_of

HOURS = "CREATE VIEW hourly AS SELECT country, count(*) AS events FROM events GROUP BY country;"


@dataclass(frozen=True)
class Here:
    """The command line in this process, which is quicker than a process of its own."""

    deployment: Deployment
    environment: dict[str, str]
    folder: Path

    def __call__(self, *arguments: str, code: int = 0, stdin: str | None = None) -> Ran:
        done = CliRunner().invoke(program, arguments, env=self.environment, input=stdin)
        assert done.exit_code == code, f"{arguments} ended with {done.exit_code}\n{done.output}"
        return done

    def catalog(self, name: str, **files: str) -> str:
        """Writes a folder of declarations, with the test's own prefix in place of `{topics}`."""
        prefix = self.deployment.settings.postgres.rpartition("/")[2]
        (self.folder / name).mkdir()
        for view, sql in files.items():
            (self.folder / name / f"{view}.sql").write_text(sql.replace("{topics}", prefix))
        return str(self.folder / name)


@pytest.fixture
def here(settings: Settings, lamina: CommandLine, tmp_path: Path) -> Iterator[Here]:
    """A deployment with two views over one source."""
    deployment = Deployment(settings)
    here = Here(deployment, {**lamina.environment, "LAMINA_ALARM_AFTER": "3600"}, tmp_path)
    here("apply", "--catalog", here.catalog("catalog", events=EVENTS, hourly=HOURS, places=PLACES))
    yield here
    deployment.close()


def test_accept_loss_needs_named_sources(here: Here) -> None:
    assert "--accept-loss needs SOURCES" in here("archive", "--accept-loss", code=2).output


def test_apply_drops_nothing_without_prune(here: Here, lamina: CommandLine) -> None:
    other = here.catalog("other", others=EVENTS.replace("events", "others"), totals=TOTALS.replace("events", "others"))
    planned = here("plan", "--catalog", other, code=3)
    assert "drop" in planned.stdout
    assert "A deployment holds one catalog" in planned.stderr
    refused = here("apply", "--catalog", other, code=1)
    assert "would drop what is deployed; nothing was changed" in refused.stderr
    for name in ("source events", "view hourly", "view places"):
        assert name in refused.stderr
    assert "--prune" in refused.stderr
    topics = [source.topic.replace("events", "others") for source in here.deployment.deployed().sources.values()]
    assert [here.deployment.brokers.topic_id(topic) for topic in topics] == [None], "no topic was created for it"
    assert set(here.deployment.deployed().views) == {"hourly", "places"}
    assert answered(lamina, "n\n", "apply", "--catalog", other) == 1
    assert set(here.deployment.deployed().views) == {"hourly", "places"}
    assert answered(lamina, "y\n", "apply", "--catalog", other) == 0
    assert set(here.deployment.deployed().views) == {"totals"}
    here("apply", "--catalog", str(here.folder / "catalog"), "--prune")
    assert set(here.deployment.deployed().views) == {"hourly", "places"}


def test_apply_first_deploys_only_into_an_empty_database(here: Here, variables: dict[str, str]) -> None:
    """`docker compose up` runs it each time. It touches neither an unfinished edit nor a rollback."""
    assert services_of(variables)["catalog"]["command"] == ["lamina", "apply", "--first"]
    broken = here.catalog("broken", events=EVENTS, hourly="CREATE VIEW hourly AS SELECT nothing FROM nowhere")
    started = here("apply", "--first", "--catalog", broken)
    assert "The deployed catalog stays" in started.stderr
    assert set(here.deployment.deployed().views) == {"hourly", "places"}
    applying.apply(here.deployment, {}, prune=True, allow_break=True)
    here("apply", "--first", "--catalog", broken, code=1)
    here("apply", "--first", "--catalog", str(here.folder / "catalog"))
    assert set(here.deployment.deployed().views) == {"hourly", "places"}


def answered(lamina: CommandLine, answer: str, *arguments: str) -> int:
    """The exit code of a command at a terminal at which a person types `answer`."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lamina", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(lamina.environment), cwd=lamina.folder
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    while True:
        try:
            if not os.read(ours, 4096):
                break
        except OSError:  # Linux reports a closed other end so
            break
    os.close(ours)
    return process.wait(60)


def test_an_answer_reports_how_many_records_are_not_counted_yet(here: Here, tmp_path: Path) -> None:
    records = tmp_path / "events.jsonl"
    records.write_text('{"country": "FR"}\n' * 1_500)
    here("ingest", "events", str(records))
    asked = here("sql", "SELECT events FROM places WHERE country = 'FR'")
    assert "events is 1,500 records behind: no speed layer runs" in asked.stderr
    assert "behind" not in asked.stdout
    narrated = here("status").stderr
    assert "1,500 records behind: no speed layer runs" in narrated
    [status] = map(json.loads, here("status", "--json").stdout.splitlines())
    fields = {"view", "kind", "rows", "generation", "freshness", "provisional", "proof", "fresh_within"}
    assert {view["view"]: view.keys() for view in status["views"]} == {"hourly": fields, "places": fields}
    [query] = status["queries"]
    assert query["lag"] == 1_500
    assert query["waits_for"].startswith("no speed layer runs")
    assert status["unguarded"], "only a superuser can protect this database"
    assert all(f"{gap}: a superuser changes that" in narrated for gap in status["unguarded"])
    assert "behind" not in here("sql", "SELECT view FROM lamina.freshness").stderr, "the SELECT reads no view"
    with here.deployment.database.begin() as connection:
        fence = progress.take_over(connection, "events", "a speed layer")
    assert "1,500 records behind: the speed layer is starting" in here("status").stderr
    with here.deployment.database.begin() as connection:
        progress.release(connection, {"events": fence})


def test_a_long_wait_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_layer.narration, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(serving_layer.narration, "REPEATED_EVERY", 0.01)
    narrated: list[str] = []
    third = threading.Event()

    def tell(line: str) -> None:
        narrated.append(line)
        if len(narrated) == 3:
            third.set()

    with waiting(tell, "starting Kafka"):
        assert third.wait(60)
    assert narrated[0] == "starting Kafka …"
    assert re.fullmatch(r"starting Kafka … \(\d+ s so far\)", narrated[2])
    third.clear()
    narrated.clear()
    with waiting(tell, "comparing", so_far=lambda: "views compared: 2"):
        assert third.wait(60)
    assert re.fullmatch(r"comparing … \(\d+ s so far, views compared: 2\)", narrated[2])
    lines = len(narrated)
    with monkeypatch.context() as patient:
        patient.setattr(serving_layer.narration, "SILENT_SECONDS", 60.0)
        with waiting(tell, "nothing"):
            pass
    assert len(narrated) == lines, "a short wait is not narrated"


def test_undeclared_fields_of_a_stream_are_reported_with_the_columns_they_may_mean(here: Here, tmp_path: Path) -> None:
    assert here("status", "--json").stdout.count('"undeclared": []') == 1
    lines = ['{"Country": "FR", "n": 1}', '{"country": "FR", "payload": {"usr": {"id": 1}}}', "no JSON", '{"n": 2}']
    (tmp_path / "events.jsonl").write_text("\n".join(lines * 30))
    sent = ("ingest", "events", str(tmp_path / "events.jsonl"), "--ignore-unknown", "--on-bad", "quarantine")
    result = json.loads(here(*sent, "--json").stdout)
    assert (result["sent"], result["bad"], result["with_null"], result["first_with_null"]) == (120, 30, 0, None)
    fields = json.loads(here("status", "--json").stdout)["undeclared"]
    assert {(field["source"], field["field"], field["meant"]) for field in fields} == {
        ("events", "Country", "country"),
        ("events", "payload.usr", "payload.user"),
    }
    assert all(20 <= field["records"] <= 30 and field["of"] >= 60 for field in fields)
    assert "Country is not declared" in here("status").stderr
    assert "did you mean country?" in here("status").stderr


REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_command_succeeds_if_nobody_reads_its_output(tmp_path: Path) -> None:
    catalog = str(REPOSITORY / "examples" / "online_retail")
    command = shlex.join([sys.executable, "-m", "lamina", "explain", "revenue", "--catalog", catalog])
    for line in (f"{command} | true", f"{command} >&-"):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), line


ELSEWHERE = {"LAMINA_POSTGRES": "postgresql://a@127.0.0.1:1/b", "LAMINA_KAFKA": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("arguments", "environment", "reason"),
    [
        ("explain v --catalog README.md", {}, "There is no catalog at"),
        ("status", {}, "The services are not running"),
        ("sql 'SELECT 1'", {}, "The services are not running"),
        ("sql 'SELECT 1'", {**ELSEWHERE, "LAMINA_POSTGRES": "x"}, "is not the URL of a Postgres"),
        ("ingest events /tmp --format csv", ELSEWHERE, "Postgres does not answer"),
        ("rebuild", ELSEWHERE, "Postgres does not answer"),
        ("metrics --listen nowhere.invalid:9464", ELSEWHERE, "cannot be served at nowhere.invalid:9464"),
        ("metrics --listen a..b:9464", ELSEWHERE, "cannot be served at a..b:9464"),
        ("up", ELSEWHERE, "The settings name your own services"),
        ("up", {"LAMINA_HOME": "/proc/nobody"}, "cannot be written"),
    ],
)
def test_wrong_arguments_and_settings_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, environment: dict[str, str], reason: str
) -> None:
    for name in [name for name in os.environ if name.startswith("LAMINA_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(program, shlex.split(arguments), env=environment)
    assert done.exit_code == 1, done.output
    assert reason in done.stderr


def test_an_unknown_view_is_named_without_postgres_context(here: Here) -> None:
    for arguments in (("receipt", "nope"), ("sql", "SELECT * FROM nope")):
        refused = here(*arguments, code=1).stderr
        assert "nope" in refused
        assert "a view that waits for its first rebuild cannot be read yet" in " ".join(refused.split())
        assert "CONTEXT" not in refused
        assert "PL/pgSQL" not in refused


def test_every_person_gets_a_login(here: Here) -> None:
    try:
        first = here("login", "ann")
        assert "ann is a new login" in first.stderr
        assert "read with autocommit" in " ".join(first.stderr.split())
        url = first.stdout.strip()
        assert url.startswith("postgresql://ann:")
        as_ann = replace(here, environment=here.environment | {"LAMINA_ANALYST": url})
        assert as_ann("sql", "SELECT count(*) AS n FROM hourly", "--json").stdout == '{"n": 0}\n'
        again = here("login", "ann", "--json", "--connections", "30")
        with here.deployment.database.begin() as connection:
            limit = connection.exec_driver_sql("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'ann'").scalar()
        assert limit == 30
        assert "ann has a new password" in again.stderr
        assert json.loads(again.stdout)["url"] != url
        refused = here("login", "lamina", code=1)
        assert "lamina cannot be the login of a reader" in refused.stderr
        owner = here("login", "--owner").stdout.strip()
        assert ":" not in owner.partition("@")[0].removeprefix("postgresql://"), "other users see the arguments of psql"
        with closing(psycopg2.connect(owner)) as connected:
            assert connected.info.user == psycopg2.extensions.parse_dsn(here.deployment.settings.postgres)["user"]
        here("login", "ann", "--owner", code=2)
        here("login", "--owner", "--connections", "3", code=2)
        here("login", code=2)
    finally:
        with here.deployment.database.begin() as connection:
            connection.exec_driver_sql("DROP ROLE IF EXISTS ann")


def test_plan_exits_3_if_an_option_of_apply_allows_the_change_and_1_if_none_does(here: Here) -> None:
    narrower = PLACES.replace(", sum(events) AS events", "")
    breaks = here.catalog("breaks", events=EVENTS, hourly=HOURS, places=narrower)
    assert "without --allow-break" in here("plan", "--catalog", breaks, code=3).stderr
    assert "--allow-break" in here("apply", "--catalog", breaks, code=1).stderr
    moved = EVENTS.replace("{topics}_events", "{topics}_elsewhere")
    refused = here.catalog("refused", events=moved, hourly=HOURS, places=PLACES)
    assert "refuse" in here("plan", "--catalog", refused, code=1).stdout
    here("apply", "--catalog", refused, "--allow-break", "--prune", code=1)


def test_plan_and_apply_warn_about_partitions_and_retention_of_existing_topics(here: Here) -> None:
    declared = {"hourly": HOURS, "places": PLACES}
    more = here.catalog("more", events=EVENTS.replace("'partitions' = '2'", "'partitions' = '3'"), **declared)
    keeps = "exists with 2 partitions and keeps them: 'partitions' = '3' only counts if `lamina apply` creates"
    assert keeps in here("plan", "--catalog", more, code=3).stderr
    assert keeps in here("apply", "--catalog", more).stderr
    others = EVENTS.replace("events", "others")
    prefix = here.deployment.settings.postgres.rpartition("/")[2]
    here.deployment.brokers.create(f"{prefix}_others", 2, {"retention.ms": "604800000"})
    catalog = here.catalog("others", events=EVENTS, others=others, **declared)
    may_lose = f"Kafka removes records from topic {prefix}_others once their own timestamp is 7 d old"
    assert may_lose in here("plan", "--catalog", catalog, code=3).stderr
    assert may_lose in here("apply", "--catalog", catalog).stderr
