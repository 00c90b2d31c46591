"""The console's pages in a real browser, which reports no error of a script and no breach of their policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_lamina import Deployed
from tests.lamina.browsers.chromium import PROGRAM, Chromium, chromium
from tests.lamina.browsers.console_client import CLICKS, console

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def clicks(shared_deployment: Deployed) -> Deployed:
    """A click on each of two days."""
    deployed = shared_deployment
    deployed.apply(clicks=CLICKS)
    deployed.send("clicks", *({"id": day, "page": "shop", "at": f"2024-03-0{day}T10:00:00Z"} for day in (1, 2)))
    deployed.catch_up()
    return deployed


@pytest.fixture(scope="module")
def address(clicks: Deployed) -> Iterator[str]:
    """The address of a console."""
    with console(clicks.deployment) as browser:
        yield f"http://127.0.0.1:{browser.port}"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(window: Chromium) -> Iterator[Chromium]:
    """A browser that complains about nothing during the test."""
    yield window
    assert window.complaints == []


def test_a_chart_is_drawn_and_a_click_on_a_row_shows_its_command(page: Chromium, address: str) -> None:
    page.open(f"{address}/view/days")
    page.until("document.querySelector('.chart canvas') !== null")
    page.value("document.querySelector('.rows a').click()")
    page.until("document.querySelector('pre')?.innerText === 'lamina blame days \\'day=2024-03-02 00:00:00+00:00\\''")
    page.value("history.back()")
    page.until("document.querySelector('.graph') !== null")


def test_the_keyboard_follows_the_lineage_of_a_view(page: Chromium, address: str) -> None:
    page.open(f"{address}/view/days")
    page.until("document.querySelector('.graph') !== null")
    page.value("document.querySelector('.graph a').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")
    page.until("document.querySelector('h1').innerText === 'clicks'")


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_a_screen_or_a_telephone(page: Chromium, address: str, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    for path in ("/view/days", "/view/days/row", "/view/days/cost", "/source/clicks", "/sql", "/"):
        page.open(f"{address}{path}")
        page.until("document.readyState === 'complete'")
        assert page.value("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width}"


def test_the_form_runs_a_select_and_shows_its_rows(page: Chromium, address: str) -> None:
    page.open(f"{address}/sql")
    page.until("document.querySelector('textarea') !== null")
    page.value("document.querySelector('textarea').value = 'SELECT 6 * 7 AS answer'")
    page.value("document.querySelector('form').requestSubmit()")
    page.until("document.querySelector('.rows td')?.innerText === '42'")


def test_an_open_page_is_updated_and_keeps_the_focus(page: Chromium, address: str) -> None:
    page.open(f"{address}/")
    page.until("document.querySelector('time') !== null")
    for _ in range(2):
        page.value("window.first = document.querySelector('time').innerText")
        page.until("document.querySelector('time').innerText !== window.first")
        page.value("document.getElementById('view-days').focus()")
    page.value("window.first = document.querySelector('time').innerText")
    page.until("document.querySelector('time').innerText !== window.first")
    assert page.value("document.activeElement.id") == "view-days", "an update keeps the focus"
    assert page.value("document.getElementById('away').hidden")


def test_an_open_page_says_that_its_console_has_stopped(clicks: Deployed, window: Chromium) -> None:
    with console(clicks.deployment) as browser:
        window.open(f"http://127.0.0.1:{browser.port}/")
        window.until("document.querySelector('time') !== null")
        assert window.value("document.getElementById('away').hidden")
    window.until("!document.getElementById('away').hidden")
