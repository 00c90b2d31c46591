"""The console's pages: what they show of a deployment, and that no text of a record becomes a script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import pytest

from serving_layer.postgres.phases import PHASES
from tests.fix_lamina import Deployed
from tests.lamina.browsers.console_client import CLICKS, HOSTILE, Browser, console, part, texts
from tests.lamina.prometheus import every_metric


@pytest.fixture(scope="module")
def shop(shared_deployment: Deployed) -> Deployed:
    """Two clicks that count, a duplicate, a bad record, a rebuild, and freshness of earlier minutes."""
    deployed = shared_deployment
    deployed.apply(clicks=CLICKS)
    hostile = {"id": 1, "page": HOSTILE, "at": "2024-03-01T10:00:00Z"}
    undeclared = {"id": 2, "page": "shop", "at": "2024-03-02T10:00:00Z", "referer": "x"}
    deployed.send("clicks", hostile, undeclared, hostile, f'{{"id": "{HOSTILE}"'.encode())
    deployed.catch_up()
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    deployed.owner(
        "INSERT INTO lamina.freshness_history"
        " SELECT date_trunc('minute', now()) - interval '20 min', '{\"clicks\": 0.4}'"
    )
    minute = "date_trunc('minute', now())"
    deployed.owner(
        f"INSERT INTO lamina.freshness_target VALUES ('many', {minute}, {minute}, 1::bit(1440)) ON CONFLICT DO NOTHING"
    )
    return deployed


@pytest.fixture(scope="module")
def browser(shop: Deployed) -> Iterator[Browser]:
    with console(shop.deployment) as browser:
        yield browser


@contextmanager
def meanwhile(shop: Deployed, change: str, undo: str) -> Iterator[None]:
    """Changes the database that the tests share, for the block."""
    shop.owner(change)
    try:
        yield
    finally:
        shop.owner(undo)


def rows_of_pages(browser: Browser) -> list[str]:
    """The pages to which the rows on the page of the view `pages` link."""
    links = re.findall(r'href="(/view/pages/row[?][^"]+)', browser("/view/pages"))
    return [browser(unescape(link)) for link in links]


def assert_safe(page: str) -> None:
    """The page runs no script of a record, and is laid out as a screen reader needs it."""
    assert "<script>" not in page
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", page)
    assert re.search(r'<html lang="en">.*<title>[^<]+</title>.*<main .*<h1', page, re.DOTALL)
    assert re.findall(r"<th(?! scope|ead)[^>]*>", page) == []


PATHS = (
    "/",
    "/view/pages",
    "/view/many",
    "/view/days",
    "/source/clicks",
    "/view/days/row?day=2024-03-02",
    "/view/days/row?day=never",
    "/view/pages/row",
    "/view/pages/cost",
    "/view/pages/receipt",
)


def test_every_page_escapes_the_texts_of_records_and_declarations(browser: Browser) -> None:
    for path in PATHS:
        assert_safe(browser(path))
    for page in rows_of_pages(browser):
        assert_safe(page)
    assert_safe(browser(f"/view/{HOSTILE.replace('/', '%2F')}", 404))
    assert_safe(browser.post("SELECT page, n FROM pages ORDER BY page"))
    assert_safe(browser.post(f"SELECT '{HOSTILE.replace(chr(39), '')}' AS \"{HOSTILE}\", 1 AS n FROM pages"))
    assert_safe(browser.post(f"SELECT {HOSTILE}", 400))


def test_the_first_page_shows_proofs_missing_speed_layers_and_freshness(browser: Browser) -> None:
    first = texts(browser("/"))
    assert "2 cells compared, 0 differ" in first
    assert "The speed layer is gone. None runs for clicks" in first
    assert "reads other views" in first
    assert re.search(r"many ▲ [\d.]+ (s|min) wanted 1 s", first)


def test_a_views_page_shows_how_often_its_wanted_freshness_was_met(browser: Browser) -> None:
    met = r"wanted 1 s, met in \d+\.\d % of the last hour, met in \d+\.\d % of the last day"
    assert re.search(met, texts(browser("/view/many")))
    assert "wanted" not in texts(browser("/view/pages"))


def test_a_views_page_shows_its_comment_offsets_select_and_lineage(browser: Browser) -> None:
    page = browser("/view/pages")
    view = texts(page)
    assert HOSTILE in view
    assert "True for every record below clicks 0:4" in view
    assert "count(*)" in view
    assert "source clicks" in view
    assert re.findall(r'<a href="([^"]+)"', part(page, "svg")) == ["/source/clicks", "/view/pages", "/view/many"]
    assert "read now" in view


def test_the_page_of_a_view_by_time_draws_its_groups(browser: Browser) -> None:
    assert 'data-chart="{&#34;times&#34;: [1709251200.0, 1709337600.0]' in browser("/view/days")


def test_a_rows_page_names_the_rebuild_and_the_micro_batch_that_moved_it(browser: Browser) -> None:
    rows = rows_of_pages(browser)
    assert len(rows) == 2
    [hostile] = [texts(page) for page in rows if HOSTILE in unescape(page)]
    assert f"lamina blame pages {shlex.quote('page=' + HOSTILE)}" in hostile
    assert re.search(r"rebuild 1, generation \d+ is published: 2 cells compared, 0 differ", hostile)
    assert "micro-batch of clicks 0:0-3" in hostile


def test_a_row_is_named_by_the_values_of_its_keys(browser: Browser) -> None:
    assert "2024-03-02 00:00:00Z 1" in texts(browser("/view/days/row?day=2024-03-02"))
    assert "never' is not a value of day" in texts(browser("/view/days/row?day=never"))
    assert "lamina blame" not in browser("/view/pages/row")


def test_the_cost_of_a_view_is_measured_when_it_is_requested(browser: Browser) -> None:
    cost = texts(browser("/view/pages/cost"))
    assert re.search(r"time [\d.,]+ ms rows 2 rows that the planner expected", cost)


def test_a_sources_page_shows_the_time_of_each_phase(browser: Browser) -> None:
    phases = re.findall(r"(\w+) ([\d.,]+) ([\d.]+) % ", texts(browser("/source/clicks")))
    assert [name for name, _, _ in phases] == ["read", "compute", "stage", "merge", "commit"]
    assert abs(sum(float(share) for _, _, share in phases) - 100) <= 3
    assert all(float(mean.replace(",", "")) > 0 for name, mean, _ in phases if name != "read")


def test_a_sources_page_counts_duplicates_and_names_undeclared_fields(browser: Browser) -> None:
    source = texts(browser("/source/clicks"))
    assert "duplicates 1" in source
    assert "referer is not declared" in source


def test_bad_values_are_shown_only_if_the_analyst_may_read_them(shop: Deployed, browser: Browser) -> None:
    source = texts(browser("/source/clicks"))
    assert HOSTILE not in source
    assert "GRANT SELECT ON lamina.bad_values TO analyst" in source
    on_values = "SELECT ON lamina.bad_values"
    with meanwhile(shop, f"GRANT {on_values} TO analyst", f"REVOKE {on_values} FROM analyst"):
        granted = browser("/source/clicks")
    assert HOSTILE in texts(granted)
    assert_safe(granted)


def test_an_answer_names_the_records_that_it_counts(shop: Deployed, browser: Browser) -> None:
    answer = browser.post("SELECT page, n FROM pages ORDER BY page")
    assert "True for every record below clicks 0:4" in texts(answer)
    as_if_retention_had_dropped = "UPDATE lamina.progress SET start_offset = {}".format
    with meanwhile(shop, as_if_retention_had_dropped(2), as_if_retention_had_dropped(0)):
        late = browser.post("SELECT n FROM pages")
    assert "True for every record below clicks 0:4 (from 2 on)" in texts(late)
    assert "Postgres refused" in texts(browser.post(f"SELECT {HOSTILE}", 400))


def test_the_receipt_of_a_view_has_a_digest(browser: Browser) -> None:
    assert '"digest"' in unescape(browser("/view/pages/receipt"))


def test_the_console_serves_every_metric(browser: Browser) -> None:
    samples = every_metric(browser("/metrics"))
    phases = {sample.labels["phase"] for sample in samples if sample.name == "lamina_micro_batch_seconds"}
    assert phases == set(PHASES)
