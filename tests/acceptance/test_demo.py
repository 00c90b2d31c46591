"""The demo as a newcomer runs it, and the rows of its real data."""

from __future__ import annotations

import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from statistics import median, stdev

import psutil

from lamina.authoring.catalog_files import catalog_files
from lamina.operations import applying
from tests.fix_lamina import CommandLine, Deployed, one

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_demo_ends_by_itself_with_its_proof(lamina: CommandLine) -> None:
    embedded = {"LAMINA_POSTGRES": "", "LAMINA_KAFKA": "", "LAMINA_ANALYST": "", "LAMINA_WAREHOUSE": ""}
    command = CommandLine({**lamina.environment, **embedded}, lamina.folder)
    done = command("demo", "--once", "--lines", "20000", timeout=1200)
    assert re.search(r"^[\d,]+ cells compared, 0 differ$", done.out, re.MULTILINE)
    assert "postgresql://" not in done.out, "a stopped Postgres has no address"
    home = str(Path(lamina.environment["LAMINA_HOME"]) / "demo")
    left = [process.pid for process in psutil.process_iter() if home in " ".join(_arguments(process))]
    assert left == []


def _arguments(process: psutil.Process) -> list[str]:
    try:
        arguments: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return arguments


def test_the_demo_sells_an_article_under_its_newest_name(deployed: Deployed, tmp_path: Path) -> None:
    applying.apply(
        deployed.deployment, catalog_files(deployed.copied(EXAMPLES / "online_retail", tmp_path / "catalog"))
    )

    def line(day: int, code: str, description: str | None, quantity: int) -> dict[str, object]:
        article = {"stock_code": code, "description": description, "unit_price": "1.500"}
        return {**article, "invoice_date": f"2010-12-{day:02}T09:00:00Z", "quantity": quantity}

    def sold() -> list[tuple[object, ...]]:
        return deployed.rows("SELECT description, pieces, revenue FROM bestsellers ORDER BY revenue DESC")

    deployed.send("invoice_lines", line(1, "84879", "BIRD", 8), line(1, "22622", "BOX", 2), line(3, "84879", "WREN", 4))
    deployed.catch_up()
    assert sold() == [("WREN", 12, Decimal("18.000")), ("BOX", 2, Decimal("3.000"))]
    # A late line renames nothing. A newer line renames everything sold, here to the name of another article.
    deployed.send("invoice_lines", line(2, "84879", "LARK", -1), line(5, "84879", "BOX", 1))
    deployed.catch_up()
    renamed = [("BOX", 14, Decimal("21.000"))]
    assert sold() == renamed
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert sold() == renamed
    deployed.check()


def test_a_web_log_is_served_rebuilt_and_exported(deployed: Deployed, lamina: CommandLine, tmp_path: Path) -> None:
    """Uses the command line and SQL alone, and a topic of the test's own."""
    catalog = deployed.copied(EXAMPLES / "web_access", tmp_path / "catalog")
    planned = lamina("plan", "--catalog", str(catalog), "--json", code=3).lines()
    assert {(row["change"], row["name"]) for row in planned} == {
        ("create", "requests"),
        ("create", "traffic"),
        ("create", "failures"),
        ("create", "visits"),
        ("create", "sizes"),
    }
    lamina("apply", "--catalog", str(catalog))
    log = str(EXAMPLES / "web_access" / "data" / "web_access.jsonl.gz")
    assert lamina("ingest", "requests", log, "--json").lines()[0]["sent"] == 10_000
    deployed.catch_up()
    assert one(deployed.rows("SELECT sum(requests) FROM traffic")) == (Decimal(10_000),)
    _middles_are_exact(deployed, log)
    proofs = deployed.deployment.batch.rebuild()
    assert {proof.differing for proof in proofs} == {0}
    [row] = lamina("sql", "SELECT count(*) AS failed, min(status) AS lowest FROM failures", "--json").lines()
    assert row["lowest"] >= 400
    lamina("export", "failures", "--to", "failures.csv")
    assert len((tmp_path / "failures.csv").read_text().splitlines()) == row["failed"] + 1
    deployed.check()


def _middles_are_exact(deployed: Deployed, log: str) -> None:
    with gzip.open(log, "rt", encoding="utf-8") as lines:
        sizes = sorted(
            row["bytes"] for row in map(json.loads, lines) if row["method"] == "GET" and row["bytes"] is not None
        )
    at = 0.99 * (len(sizes) - 1)
    low, high = sizes[int(at)], sizes[int(at) + 1]
    [row] = deployed.rows("SELECT answers, middle, p99, deviation FROM sizes WHERE method = 'GET'")
    assert row[:2] == (len(sizes), median(sizes))
    assert abs(row[2] - (low + (high - low) * (at - int(at)))) < 1e-6
    assert abs(row[3] / stdev(sizes) - 1) < 1e-9


def test_mistakes_end_without_a_traceback(lamina: CommandLine, deployed: Deployed, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "v.sql").write_text("CREATE VIEW v AS SELECT count(*) AS n FROM nowhere;")
    mistakes = {
        ("apply", "--catalog", "bad"): "nowhere",
        ("apply", "--catalog", "nothing"): "There is no catalog at nothing",
        ("rebuild", "nothing"): "There is no view named nothing",
        ("rollback", "nothing"): "There is no view named nothing",
        ("check", "nothing"): "There is no view named nothing",
        ("ingest", "nothing", "-"): "There is no source named nothing",
        ("sql", "DELETE FROM x"): "Postgres refused",
        ("sql", "SELECT 1; DROP TABLE x"): "The text holds more than one statement",
        ("step", "compute"): "No rebuild is running",
    }
    with ThreadPoolExecutor(2) as both:
        ended = list(both.map(lambda arguments: lamina(*arguments, code=1), mistakes))
    for failed, reason in zip(ended, mistakes.values(), strict=True):
        assert reason in failed.err
        assert "Traceback" not in failed.err
        assert "starting Spark" not in failed.err
        assert failed.out == ""
    wrong = lamina("status", code=1, LAMINA_POSTGRES="postgresql://nobody:x@127.0.0.1:1/x")
    assert "Postgres does not answer" in wrong.err
    assert lamina("rebuild", "--no-such-option", code=2).out == ""
    assert "from 0 to 65535" in lamina("console", "--listen", "127.0.0.1:99999", code=2).err
