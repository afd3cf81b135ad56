"""The pages of a run in a real browser: keys, both widths and schemes, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.audit.test_web_browser import CONTRAST
from tests.audit.test_web_browser import Window as BrowserWindow
from tests.audit.web_review import CHROMIUM, CHROMIUM_OPTIONS, config
from tests.conftest import Shop
from tests.view.viewing import View, viewed

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    shop = Shop(tmp_path_factory.mktemp("hostile"))
    assert shop.build(config([[1, 5, 0], [0]], {"hostile": True})).code == 0
    with viewed(shop.run) as served:
        yield served


PAGES = (
    "",
    "?verdict=fail&q=spoilt",
    "instance?id=gallery/job-0",
    "instance?id=gallery/job-0&q=needle",
    "trial?id=4",
    "compare?trial=3&trial=4",
    "prefix?trial=1&step=2",
    "nowhere",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_can_be_read_and_run_no_model_text(view: View, browser: Browser, width: int, scheme: str) -> None:
    window = BrowserWindow(browser, view.link, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = window.page
    for address in PAGES:
        page.goto(view.base + address)
        for folded in page.query_selector_all("details:not([open])"):
            folded.evaluate("one => { one.open = true; }")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width, address
        measured = page.evaluate(CONTRAST)
        assert len(measured) > 4
        assert [what for ratio, what in measured if ratio < 4.5] == [], address
        assert page.locator("main script, main img, main svg, main [onerror], main a[href^=javascript]").count() == 0
        assert "owned" not in page.title()
    window.context.close()
    assert window.dialogs == []
    assert [error for error in window.errors if "404" not in error] == []
    assert all(url.startswith(view.base.partition("/run/")[0]) for url in window.requests)


def test_a_timeline_is_gone_through_and_trials_compared_with_keys_alone(view: View, browser: Browser) -> None:
    window = BrowserWindow(browser, view.link)
    page = window.page
    page.goto(view.base + "instance?id=gallery/job-0")
    window.press("j", "j")
    assert page.evaluate("document.activeElement.id") == "step-2"
    window.press("k")
    assert page.evaluate("document.activeElement.id") == "step-1"
    window.press("c")
    assert "Mark two trials" in page.inner_text("#problem")
    for trial in (3, 4, 5):
        page.focus(f"#trial-{trial} summary")
        window.press("x")
    assert page.locator("input[name=trial]:checked").count() == 2
    window.press("c")
    page.wait_for_selector("main.compare")
    assert page.url.endswith("compare?trial=4&trial=5")
    window.press("o")
    page.wait_for_selector("main.list")
    window.press("/")
    page.keyboard.type("spoilt")
    window.press("Enter")
    page.wait_for_selector("a.match")
    page.click("a.match")
    page.wait_for_selector("mark.here")
    window.context.close()
    assert (window.errors, window.dialogs) == ([], [])
