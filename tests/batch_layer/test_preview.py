"""A changed catalog is previewed next to the deployed one over a real log, and then applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batch_layer.check import check
from lamina.operations import applying
from tests.fix_catalogs import CATALOG, event
from tests.fix_lamina import CommandLine, Deployed, one
from view_algebra.errors import Blocked

CLICKED = CATALOG["totals"].replace("FROM events", ", max(ratio) AS ratio FROM events WHERE kind = 'click' OR n < 100")
WIDER = CATALOG["events"].replace("ratio DOUBLE,", "ratio DOUBLE, device STRING,")
BAD = CLICKED + "\nALTER VIEW totals ADD CONSTRAINT few CHECK (events < 100);"


def equal(deployed: Deployed, preview: str) -> None:
    """Every view of a preview equals its SELECT over all records below progress."""
    opened = deployed.deployment
    results = check(opened.database, lambda: (opened.spark(), opened.log()), opened.brokers, preview=preview)
    assert results
    for result in results:
        assert result.equal, f"{result.view}: missing {result.missing}, surplus {result.surplus}"


def test_a_catalog_is_previewed_compared_and_applied_without_computing(
    deployed: Deployed, quick_lamina: CommandLine, tmp_path: Path
) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", *(event(n) for n in range(200)))
    deployed.catch_up()

    def traffic(place: str) -> None:
        if place in ("after archive", "absorbed"):
            deployed.deployment.at = lambda _: None
            deployed.send("events", *(event(n) for n in range(200, 250)))
            deployed.catch_up()
            deployed.deployment.at = traffic

    deployed.deployment.at = traffic
    files = {**deployed.files, "totals.sql": CLICKED}
    cells = {view.view: view.cells for view in applying.preview(deployed.deployment, "dev", files)}
    deployed.deployment.at = lambda _: None
    assert cells == {"hourly": "shared", "totals": "own", "users": "shared", "clicks": "shared", "places": "none"}
    deployed.deployment.batch.rebuild(["totals", "hourly"])
    deployed.send("events", event(250))
    deployed.catch_up()
    deployed.check()
    equal(deployed, "dev")
    there = deployed.rows("SELECT 301 - events FROM dev.totals")

    with_files = tmp_path / "catalog"
    with_files.mkdir()
    for name, text in files.items():
        (with_files / name).write_text(text)
    assert_compared(deployed, quick_lamina, there)
    with pytest.raises(Blocked, match="fails a check"):
        applying.apply(deployed.deployment, {**files, "totals.sql": BAD})
    rebuilds = deployed.owner("SELECT count(*) FROM lamina.rebuild")
    quick_lamina("apply", "--catalog", str(with_files))
    assert deployed.owner("SELECT count(*) FROM lamina.rebuild") == rebuilds, "nothing was computed"
    deployed.check()
    quick_lamina("diff", "totals", "--against", "dev")
    for changed in (
        CATALOG["totals"].replace("FROM events", f", {function}(n) AS some FROM events") for function in ("min", "max")
    ):
        applying.preview(deployed.deployment, "dev", {**files, "totals.sql": changed})
        applying.apply(deployed.deployment, {**files, "totals.sql": changed}, allow_break=True)
    live = "SELECT count(DISTINCT version) FROM lamina.generation WHERE view = 'totals' AND state = 'live'"
    assert deployed.owner(live) == [(2,)], "one version besides the published one is kept"
    quick_lamina("apply", "--catalog", str(with_files), "--allow-break")
    quick_lamina("apply", "--preview", "dev", "--drop")
    assert deployed.owner("SELECT count(*) FROM pg_namespace WHERE nspname = 'dev'") == [(0,)]
    assert one(deployed.rows("SELECT events FROM totals"))[0] == 301 - there[0][0]


def assert_compared(deployed: Deployed, lamina: CommandLine, there: list[tuple[Any, ...]]) -> None:
    """Asserts what `diff`, `status` and `lamina.previews` show of a preview in which only `totals` differs."""
    assert lamina("diff", "hourly", "--against", "dev").out.startswith("analytics.hourly and dev.hourly are equal")
    [difference] = lamina("diff", "totals", "--against", "dev", "--json", code=3).lines()
    assert tuple(difference[key] for key in ("rows_here", "rows_there", "differing", "equal")) == (1, 1, 1, False)
    [example] = difference["examples"]
    assert there == [(example["here"]["events"] - example["there"]["events"],)]
    assert "differing: 1" in lamina("diff", "totals", "--against", "dev", code=3).out
    assert "preview dev" in lamina("status").out
    assert lamina("sql", "SELECT view FROM lamina.previews WHERE NOT served").out.split() == ["view"]
    offsets = "SELECT source, partition, next_offset FROM {} WHERE view = 'places' ORDER BY partition"
    assert deployed.rows(offsets.format("lamina.preview_offsets")) == deployed.rows(offsets.format("lamina.offsets"))


def test_options_that_contradict_a_preview_are_refused(
    deployed: Deployed, quick_lamina: CommandLine, tmp_path: Path
) -> None:
    deployed.apply(events=CATALOG["events"])
    (tmp_path / "events.sql").write_text(deployed.files["events.sql"])
    for arguments in (
        ("apply", "--drop"),
        ("apply", "--preview", "dev", "--prune"),
        ("check", "--live", "--preview", "a"),
    ):
        assert "Usage" in quick_lamina(*arguments, code=2).err
    refused = quick_lamina("apply", "--preview", "analytics", "--catalog", str(tmp_path), code=1).err
    assert "cannot be the name of a preview" in refused


def test_a_new_column_can_be_previewed_and_a_failed_preview_leaves_nothing(deployed: Deployed) -> None:
    deployed.apply(events=CATALOG["events"], totals=CATALOG["totals"])
    deployed.send("events", *({**event(n), "device": f"d{n}"} for n in range(20)))
    deployed.catch_up()
    files = {
        **deployed.files,
        "events.sql": WIDER.replace("{topics}", deployed.prefix),
        "totals.sql": CATALOG["totals"].replace("FROM events", ", max(device) AS device FROM events"),
    }

    def die(place: str) -> None:
        if place == "after go-live":
            raise KeyError(place)

    deployed.deployment.at = die
    with pytest.raises(KeyError):
        applying.preview(deployed.deployment, "dev", files)
    deployed.deployment.at = lambda _: None
    assert deployed.owner("SELECT count(*) FROM lamina.generation WHERE state <> 'retired'") == [(1,)]
    with deployed.speed():
        applying.preview(deployed.deployment, "dev", files)
        deployed.send("events", {**event(20), "device": "z"}, {**event(21), "device": 7})
        deployed.wait_for("events")
    assert deployed.rows("SELECT events, device FROM dev.totals") == [(22, "z")]
    deployed.check()
    equal(deployed, "dev")
    applying.drop_preview(deployed.deployment, "dev")
    deployed.deployment.batch.tidy()
    assert deployed.owner(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'cells'::regnamespace AND relkind = 'r'"
    ) == [(1,)]
