"""Any file becomes a source, a view and rows through the commands that `lamina init` prints."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from lamina.cli import lamina as program
from lamina.operations.topic_records import wait_until_counted
from serving_layer.promise import progress
from tests.fix_lamina import CommandLine, Deployed
from tests.interchange.change_events import AFTER, SCHEMAS, SECONDS, change
from view_algebra.errors import LaminaError

DOCS = Path(__file__).resolve().parents[2] / "docs"

COUNTRIES = ("NL", "DE", "FR", None)

ODD = 'it\'s a `b`\n\\ "100 %"'
"""A name that needs quotes in every language."""


def orders(count: int) -> list[dict[str, Any]]:
    """Orders of a shop, with a field name that SQL cannot have, a zip code, and a time in milliseconds."""
    return [
        {
            "Order ID": number,
            "zip": f"{number % 7:05}",
            "country": COUNTRIES[number % 4],
            "amount": number / 4,
            "placed": 1_704_164_645_000 + 600_000 * number,
            "buyer": {"name": f"ä{number}", "tags": ["new"] * (number % 3)},
            ODD: number,
            "größe": number % 3 == 0,
            "note": number if number % 2 else f"n {number}",
        }
        for number in range(count)
    ]


def hours(records: list[dict[str, Any]]) -> Counter[Any]:
    """The number of orders per hour and country."""
    return Counter(
        (datetime.fromtimestamp(order["placed"] / 1000, UTC).replace(minute=0, second=0), order["country"])
        for order in records
    )


COLUMNS = "order_id, zip, amount, placed, buyer, note, it_s_a_b_100, groe"
"""The columns that `init` names by the fields of `orders`, except the country."""


def test_the_commands_that_init_suggests_turn_a_file_into_a_view(
    deployed: Deployed, lamina: CommandLine, tmp_path: Path
) -> None:
    records, name = orders(500), f"{deployed.prefix[-20:]}_orders".lstrip("_0123456789")
    file = tmp_path / "orders.jsonl.zst"
    file.write_bytes(pa.compress("\n".join(map(json.dumps, records)).encode(), codec="zstd", asbytes=True))
    [guessed] = lamina("init", str(file), "--name", name, "--json").lines()
    assert (guessed["records"], guessed["bad"]) == (500, 0)
    assert (guessed["event_time"], guessed["key"]) == ("placed", ["order_id"])
    (tmp_path / "catalog" / "views" / "rows.sql").write_text(f"CREATE VIEW every_row AS SELECT {COLUMNS} FROM {name};")
    apply, ingest, sql = (shlex.split(line)[1:] for line in guessed["next"])
    lamina(*apply)
    with deployed.speed():
        sent = lamina(*ingest)
    assert "500 records sent" in sent.out
    assert "visible" in sent.err
    hourly = deployed.rows(f"SELECT hour, country, records FROM {guessed['view']}")  # at once: ingest has waited
    assert {(hour, country): count for hour, country, count in hourly} == hours(records)
    newest = max(hour for hour, _, _ in hourly).isoformat().replace("+00:00", "Z")
    assert lamina(*sql, "--json").lines()[0]["hour"] == newest
    _every_field_has_its_value(deployed, records)
    _its_topic_is_guessed_like_the_file(lamina, guessed)
    _a_topic_of_changes_becomes_a_table(deployed, lamina, tmp_path, apply)


def _every_field_has_its_value(deployed: Deployed, records: list[dict[str, Any]]) -> None:
    assert deployed.rows(f"SELECT {COLUMNS} FROM every_row ORDER BY order_id") == [
        (
            order["Order ID"],
            order["zip"],
            Decimal(str(order["amount"])),
            datetime.fromtimestamp(order["placed"] / 1000, UTC),
            order["buyer"],
            str(order["note"]),
            order[ODD],
            order["größe"],
        )
        for order in records
    ]
    assert deployed.owner("SELECT count(*) FROM lamina.quarantine") == [(0,)]


def _its_topic_is_guessed_like_the_file(lamina: CommandLine, guessed: dict[str, Any]) -> None:
    [from_topic] = lamina("init", "--topic", guessed["topic"], "--catalog", "other", "--json").lines()
    types, types_of_file = ({c["field"]: c["type"] for c in guess["columns"]} for guess in (from_topic, guessed))
    assert types == types_of_file
    assert (from_topic["records"], from_topic["all"]) == (500, True)
    assert len(from_topic["next"]) == 2, "there is no file to send"
    refused = lamina("init", "--topic", f"{guessed['topic']}_none", "--catalog", "other", code=1)
    assert "There is no topic" in refused.err


def _a_topic_of_changes_becomes_a_table(
    deployed: Deployed, lamina: CommandLine, folder: Path, apply: list[str]
) -> None:
    topic = f"{deployed.prefix}_changes"
    deployed.deployment.brokers.create(topic, 1)
    values = (change(AFTER, SCHEMAS), change(AFTER | {"tags": []}, SCHEMAS, "u"), change(AFTER | {"id": 8}, SCHEMAS))
    for value in values:
        number = json.loads(value)["payload"]["after"]["id"]
        deployed.producer.send(topic, value, key=json.dumps({"schema": {}, "payload": {"id": number}}).encode())
    deployed.producer.flush()
    [guessed] = lamina("init", "--topic", topic, "--name", "changed", "--json").lines()
    assert (guessed["key"], guessed["records"]) == (["id"], 3)
    (folder / "catalog" / "views" / "changed_rows.sql").write_text(
        "CREATE VIEW changed_rows AS SELECT id, price, total, day, at, zoned, opens, tags, note FROM changed;"
    )
    lamina(*apply)
    deployed.catch_up()
    row = (
        Decimal("5.00"),
        Decimal("0.5000000000"),
        date(2024, 10, 4),
        datetime.fromtimestamp(SECONDS, UTC),
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        1,
    )
    rows = deployed.rows("SELECT id, price, total, day, at, zoned, opens, tags, note FROM changed_rows ORDER BY id")
    assert rows == [(7, *row, [], None), (8, *row, ["a"], None)]
    assert deployed.rows(f"SELECT sum(records)::int FROM {guessed['view']}") == [(2,)]
    assert deployed.owner("SELECT count(*) FROM lamina.quarantine") == [(0,)]


def init(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    """`lamina init` in this process, which needs no services."""
    done = CliRunner().invoke(program, ["init", *arguments], input=stdin)
    assert done.exit_code == code, f"{arguments} ended with {done.exit_code}\n{done.output}"
    return done


def test_the_first_view_of_a_table_does_not_count_each_row_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    states = [{"station": f"S{n % 4}", "place": "ROPQTU"[n % 6], "free": n} for n in range(40)]
    Path("docks.jsonl").write_text("\n".join(map(json.dumps, states)))
    init("docks.jsonl", "--table", "--key", "station")
    [view] = Path("catalog", "views").iterdir()
    assert view.name == "docks_per_place.sql"


def test_init_suggests_the_option_that_reads_texts_as_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text("id,started\n" + "\n".join(f"{n},{n}.10.2026 05:01" for n in range(1, 20)))
    suggestion = init("rides.csv").stderr
    assert "text columns that may hold times: started" in suggestion
    assert "--timestamp-format" in suggestion
    again = init("rides.csv", "--force", "--timestamp-format", "%d.%m.%Y %H:%M")
    assert "may hold times" not in again.stderr
    assert "TIMESTAMP" in again.stdout
    Path("rides.jsonl").write_text('{"started": "1.10.2026 05:01"}\n{"started": "2.10.2026 05:01"}')
    assert "may hold times" not in init("rides.jsonl", "--name", "others").stderr, "the option is for CSV"


def test_init_overwrites_nothing_in_a_catalog_without_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAMINA_CATALOG", raising=False)
    (tmp_path / "stock.csv").write_text("place,pieces\nshelf,1\nshelf,2\ncellar,3\n")
    init("stock.csv")
    source, view = tmp_path / "catalog/sources/stock.sql", tmp_path / "catalog/views/stock_per_place.sql"
    source.write_text(source.read_text().replace("pieces INT", "pieces BIGINT"))
    edited = source.read_text()
    refused = init("stock.csv", code=1).stderr
    assert "has sources/stock.sql and views/stock_per_place.sql; nothing was written" in refused
    view.rename(tmp_path / "catalog/views/other.sql")
    assert "sources/stock.sql; nothing was written" in init("stock.csv", code=1).stderr
    assert not view.exists()
    assert "stock_per_place" in init("stock.csv", "--force", code=1).stderr, "another file has a view of that name"
    assert source.read_text() == edited
    (tmp_path / "catalog/views/other.sql").unlink()
    init("stock.csv", "--force")
    assert "pieces INT" in source.read_text()
    init("stock.csv", "--name", "goods")
    suggestions = init("stock.csv", "--name", "more", "--null", "n/a", "--timestamp-format", "%d/%m/%Y").stdout
    assert "lamina ingest more stock.csv --null n/a --timestamp-format %d/%m/%Y --wait" in suggestions
    assert "Two sources would be named stock" in init("stock.csv", "stock.csv", code=1).stderr
    for wrong in ([], ["-"], ["stock.csv", "other.csv", "--name", "x"], ["stock.csv", "--name", "my stock"]):
        init(*wrong, code=2)
    assert (
        "lamina ingest piped - --format jsonl"
        in init("-", "--name", "piped", "--format", "jsonl", stdin='{"a": 1}\n').stdout
    )
    assert f"{tmp_path} is a folder" in init(str(tmp_path), code=1).stderr
    assert "the file cannot be read" in init("none.csv", code=1).stderr
    assert "'Stock' cannot be a name" in init("stock.csv", "--name", "Stock", code=1).stderr


def test_a_hopeless_wait_ends_and_says_that_the_records_were_sent(deployed: Deployed) -> None:
    deployed.apply(
        events="CREATE TABLE events (n INT) USING kafka OPTIONS (topic '{topics}_events', format 'json');",
        total="CREATE VIEW total AS SELECT sum(n) AS n FROM events;",
    )
    deployed.send("events", {"n": 1})
    opened, source = deployed.deployment, deployed.deployment.deployed().sources["events"]
    end = opened.brokers.latest(source.topic)
    with pytest.raises(LaminaError, match="No speed layer runs") as waited:
        wait_until_counted(opened, source, end, patience=0)
    assert "Do not send them again" in waited.value.way_out
    with opened.database.begin() as connection:
        progress.record_stop(connection, "events", "the topic is another one")
    with pytest.raises(LaminaError, match="events has stopped") as waited:
        wait_until_counted(opened, source, end)
    assert waited.value.evidence == "the topic is another one"
    deployed.catch_up()
    wait_until_counted(opened, source, end)
    assert deployed.rows("SELECT n FROM total") == [(1,)]


def lines(printed: str) -> list[str]:
    """Lines without the narration of waits and without seconds. stderr arrives at any time."""
    return sorted(re.sub(r"\d+\.\d s ", "N s ", line.rstrip()) for line in printed.splitlines() if "…" not in line)


def test_the_tutorials_print_what_they_show(deployed: Deployed, lamina: CommandLine, tmp_path: Path) -> None:
    text = (DOCS / "own-data.md").read_text()
    [content] = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    (tmp_path / "bakery.csv").write_text(content)
    steps = re.findall(r"```console\n\$ lamina (.*?)\n(.*?)```", text, re.DOTALL)
    assert len(steps) == 4
    with deployed.speed():
        for command, shown in steps:
            done = lamina(*shlex.split(command))
            assert lines(done.err + done.out) == lines(shown), command
        statements = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        assert {path.read_text() for path in (tmp_path / "catalog").rglob("*.sql")} == set(statements)
        _topic_tutorial(deployed, lamina, tmp_path)


def _topic_tutorial(deployed: Deployed, lamina: CommandLine, folder: Path) -> None:
    """docs/own-topic.md, in a catalog that has a source already."""
    text = (DOCS / "own-topic.md").read_text()
    deployed.deployment.brokers.create("readings", 1)
    [records] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    for record in records.splitlines():
        deployed.producer.send("readings", record.encode())
    deployed.producer.flush()
    pieces = re.findall(
        r"```console\n\$ lamina (.*?)\n(.*?)```|Replace `(.*?)`[^`]*```sql\n(.*?)```|```sql\n(.*?)```", text, re.DOTALL
    )
    assert sum(bool(command) for command, *_ in pieces) == 4
    for command, shown, replaced, by, guessed in pieces:
        if command:
            if command.startswith("sql"):
                opened = deployed.deployment
                wait_until_counted(opened, opened.deployed().sources["readings"], opened.brokers.latest("readings"))
            done = lamina(*shlex.split(command))
            assert lines(done.err + done.out) == lines(shown), command
        elif replaced:
            assert (folder / replaced).exists()
            (folder / replaced).write_text(by)
        else:
            assert (folder / "catalog" / "sources" / "readings.sql").read_text() == guessed
