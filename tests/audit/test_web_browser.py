"""The review in a real browser: keys alone, hostile text, long text, both widths and schemes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.audit.gallery import NEEDLE
from tests.audit.web_review import CHROMIUM, CHROMIUM_OPTIONS, Review, reviewed, sampled
from tests.conftest import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.browser

NEEDS = [[1, 1, 5], [1, 5, 0]]
STEPS = [f"job-{job}/{step}" for job, needs in enumerate(NEEDS) for step, need in enumerate(needs, 1) if need]
"""The steps that people are asked about: all but those of the lowest label."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled(Shop(tmp_path_factory.mktemp("built")), NEEDS, {"turns": 8})


@pytest.fixture
def review(built: Path, tmp_path: Path) -> Iterator[Review]:
    with reviewed(shutil.copytree(built, tmp_path / "run"), "ann", "bo") as served:
        yield served


class Window:
    """A browser window of one reviewer's, which remembers all that should never happen in it."""

    def __init__(self, browser: Browser, link: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(30_000)
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.page = self.opened()
        self.page.goto(link)

    def opened(self) -> Page:
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismissed)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        return page

    def _dismissed(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def at(self, place: int) -> None:
        """Wait until a step of the queue is shown and takes verdicts."""
        self.page.wait_for_selector(f'main[data-place="{place}"]')
        self.page.wait_for_selector("body[data-ready]", state="attached")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def answered(self) -> str | None:
        return self.page.get_attribute("main", "data-answered")

    def text(self) -> str:
        return self.page.inner_text("body")


@pytest.fixture
def ann(browser: Browser, review: Review) -> Iterator[Window]:
    window = Window(browser, review.link())
    yield window
    window.context.close()
    assert (window.errors, window.dialogs) == ([], [])


def test_notes_on_an_answered_step_outlive_the_page_until_they_are_saved(ann: Window, review: Review) -> None:
    def noted() -> str:
        return ann.page.input_value("#notes")

    ann.at(1)
    ann.press("1")
    ann.at(2)
    ann.press("k")
    ann.at(1)
    ann.press("n")
    ann.page.keyboard.type("second thoughts")
    ann.press("Escape", "j")
    ann.at(2)
    ann.press("k")
    ann.at(1)
    assert (noted(), review.store.current("ann")["gallery/job-0/1"].notes) == ("second thoughts", "")
    ann.press("2")
    ann.at(2)
    # The verdict before it stands again, with its own notes.
    ann.press("u")
    ann.at(1)
    assert (ann.answered, noted()) == ("tight", "")
    # A verdict that is taken back altogether leaves its notes in the window.
    ann.press("u")
    ann.at(1)
    assert (ann.answered, noted()) == (None, "second thoughts")


def test_a_queue_is_worked_through_with_keys_alone(ann: Window, review: Review) -> None:
    ann.at(1)
    ann.press("1")
    ann.at(2)
    assert "Saved: tight for gallery/job-0/1" in ann.text()
    ann.press("n")
    ann.page.keyboard.type("123 jk u ? are letters here")
    ann.press("Escape", "2")
    ann.at(3)
    ann.press("3")
    ann.at(4)
    assert review.verdicts() == {STEPS[0]: "tight", STEPS[1]: "uncertain", STEPS[2]: "further-downgradeable"}
    ann.press("u")
    ann.at(3)
    assert (ann.answered, len(review.verdicts())) == (None, 2)
    ann.press("1")
    ann.at(4)
    ann.press("ArrowLeft")
    ann.at(3)
    assert ann.answered == "tight"
    ann.press("k")
    ann.at(2)
    assert (ann.answered, ann.page.input_value("#notes")) == ("uncertain", "123 jk u ? are letters here")
    ann.press("j")
    ann.at(3)
    ann.press("ArrowRight")
    ann.at(4)
    ann.press("1")
    ann.at(5)
    ann.press("1")
    ann.page.wait_for_selector('main[data-end="done"]')
    said = {**dict.fromkeys(STEPS, "tight"), STEPS[1]: "uncertain"}
    assert review.verdicts() == said
    ann.page.reload()
    assert "All 5 steps are reviewed" in ann.text()
    ann.press("o")
    ann.page.wait_for_selector("table")
    rows = [row.inner_text().split("\t") for row in ann.page.query_selector_all("tbody tr")]
    assert {row[1].partition("/")[2]: row[3] for row in rows} == said
    ann.page.goto(review.link())
    assert ann.page.get_attribute("main", "data-end") == "done"


def test_a_key_meant_for_the_last_step_does_not_judge_the_next(ann: Window, review: Review) -> None:
    ann.at(1)
    # As fast as can be: pressed again at the very moment the next step appears.
    ann.context.add_init_script(
        "addEventListener('DOMContentLoaded', () => setTimeout(() => document.dispatchEvent("
        "new KeyboardEvent('keydown', {key: '2', bubbles: true}))))"
    )
    ann.page.keyboard.down("1")
    ann.page.keyboard.down("1")  # held down
    ann.page.keyboard.press("3")  # another one while the first is being saved
    ann.at(2)
    assert "That was quick" in ann.text()
    assert review.verdicts() == {STEPS[0]: "tight"}


def test_notes_that_are_not_saved_yet_outlive_a_look_elsewhere(ann: Window, review: Review) -> None:
    ann.at(1)
    ann.press("n")
    ann.page.keyboard.type("half a thought")
    ann.press("Escape", "j")
    ann.at(2)
    ann.press("k")
    ann.at(1)
    assert ann.page.input_value("#notes") == "half a thought"
    ann.press("1")
    ann.at(2)
    assert review.store.current("ann")["gallery/job-0/1"].notes == "half a thought"


def test_there_may_be_nothing_to_undo(ann: Window, review: Review) -> None:
    ann.at(1)
    ann.press("u")
    assert "nothing to undo" in ann.text()
    assert review.verdicts() == {}


def test_search_and_jumps_move_through_folded_turns(ann: Window) -> None:
    ann.at(1)
    page = ann.page
    folded = page.locator(".turn:not([open])")
    assert folded.count() == 14
    ann.press("/")
    page.keyboard.type("BENCH_2.PY")
    ann.press("Enter")
    page.wait_for_selector("mark.here")
    assert page.locator("mark").count() == 1
    assert page.locator("mark.here").is_visible()
    ann.press("Escape")
    page.wait_for_selector("#no-search", state="detached")
    ann.at(1)
    ann.press("/")
    page.keyboard.type("shaped")
    ann.press("Enter")
    page.wait_for_selector("mark.here")
    order = "marks => marks.findIndex(mark => mark.classList.contains('here'))"
    seen = [page.eval_on_selector_all("mark", order)]
    for key in ("Enter", "Enter", "Shift+Enter", "Shift+Enter", "Shift+Enter"):
        ann.press(key)
        seen.append(page.eval_on_selector_all("mark", order))
    assert seen == [0, 1, 2, 1, 0, page.locator("mark").count() - 1]
    ann.press("g")
    assert page.evaluate("document.activeElement.closest('details').id") == "last"
    assert page.locator("#last").is_visible()
    ann.press("e")
    assert folded.count() == 0
    ann.press("e")
    assert page.locator(".turn[open]").count() == 1


def test_help_and_theme_have_keys(ann: Window) -> None:
    ann.at(1)
    ann.press("?")
    assert ann.page.locator("#help").is_visible()
    ann.press("1")  # a key in the help judges nothing
    ann.press("Escape")
    assert not ann.page.locator("#help").is_visible()
    theme = "document.documentElement.dataset.theme"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = ann.page.evaluate(ground)
    ann.press("d", "d")
    assert ann.page.evaluate(theme) == "dark"
    assert ann.page.evaluate(ground) != light
    ann.page.reload()
    assert ann.page.evaluate(theme) == "dark"


def test_a_second_reviewer_sees_their_own_queue_only(ann: Window, review: Review, browser: Browser) -> None:
    ann.at(1)
    ann.press("n")
    ann.page.keyboard.type("ann thinks so")
    ann.press("Escape", "1")
    ann.at(2)
    bo = Window(browser, review.link("bo"))
    bo.at(1)
    assert "0 of 5" in bo.text()
    for address in ("step?id=gallery/job-0/1", "queue", "end"):
        bo.page.goto(f"{review.origin}/review/bo/{address}")
        assert "ann" not in bo.text()
    bo.page.goto(f"{review.origin}/review/ann/queue")
    assert "Every reviewer has a link of their own" in bo.text()
    bo.page.goto(review.link("bo"))
    bo.at(1)
    bo.press("2")
    bo.at(2)
    bo.context.close()
    assert (review.verdicts("ann"), review.verdicts("bo")) == ({STEPS[0]: "tight"}, {STEPS[0]: "uncertain"})


def test_a_window_without_a_token_is_refused(review: Review, browser: Browser) -> None:
    stranger = Window(browser, review.origin)
    assert "Open the link that" in stranger.text()
    stranger.page.goto(f"{review.origin}/review/ann/step?id=gallery/job-0/1")
    assert "piece 1" not in stranger.text()
    stranger.context.close()


def test_a_form_on_another_sites_page_is_refused(ann: Window, review: Review) -> None:
    ann.at(1)
    form = (
        f'<form method=post action="{review.origin}/review/ann/verdict"><input name=step value="gallery/job-0/1">'
        "<input name=prefix value=x><input name=verdict value=tight></form><script>document.forms[0].submit()</script>"
    )
    other = ann.opened()
    other.route("http://elsewhere.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    other.goto("http://elsewhere.example/")
    other.wait_for_url(f"{review.origin}/**")
    assert "Refused" in other.inner_text("body")
    assert review.verdicts() == {}
    ann.errors.clear()  # the browser notes the refusal


def test_a_link_that_is_opened_from_another_site_leads_to_the_queue(review: Review, browser: Browser) -> None:
    window = Window(browser, "about:blank")
    page = f'<a href="{review.link()}">the link</a>'
    window.page.route("http://elsewhere.example/", lambda route: route.fulfill(body=page, content_type="text/html"))
    window.page.goto("http://elsewhere.example/")
    window.page.click("text=the link")
    window.page.wait_for_url(f"{review.origin}/review/ann/**")
    if window.page.locator("text=go on").count():  # the cookie is not sent along with another site's click
        window.page.click("text=go on")
    window.at(1)
    window.context.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    with reviewed(sampled(Shop(tmp_path_factory.mktemp("hostile")), [[1, 1]], {"hostile": True})) as served:
        yield served


def test_hostile_text_is_shown_and_does_nothing(hostile: Review, browser: Browser) -> None:
    window = Window(browser, hostile.link())
    window.at(1)
    page = window.page
    text = window.text()
    assert "<script>alert('script ran')" in text
    assert "onerror=\"alert('image ran')\"" in text
    assert "{{7*7}}{% raw %}" in text
    assert "safeU+202EevilU+2066ESC[31mNULU+200Bend" in text
    assert page.locator("main script, main img, main svg, main [onerror], main a[href^=javascript]").count() == 0
    assert "owned" not in page.title()

    window.press("/")
    page.keyboard.type(NEEDLE)
    window.press("Enter")
    page.wait_for_selector("mark.here")
    assert page.locator("mark.here").inner_text() == NEEDLE
    window.press("Escape")
    page.wait_for_selector("#no-search", state="detached")
    window.at(1)

    shown = page.locator(".role-tool .text").first
    before = len(shown.inner_text())
    shown.locator(".gap a").click()
    page.wait_for_selector(".fetched")
    assert page.locator(".fetched").count() == 1
    shown.locator(".gap .all").click()
    page.wait_for_selector(".role-tool .gap", state="detached")
    whole = shown.text_content() or ""
    assert len(whole) > 2_000_000 > before
    assert NEEDLE in whole
    window.press("1")  # the page takes keys as before
    window.at(2)
    window.press("k")
    window.at(1)

    assert hostile.verdicts() == {STEPS[0]: "tight"}
    assert {re.match(r"\w+://[^/]*", url)[0] for url in window.requests} == {hostile.origin}  # type: ignore[index]
    assert (window.dialogs, window.errors) == ([], [])
    window.context.close()


CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = value => value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
  const light = colour => [.2126, .7152, .0722].reduce((sum, part, i) => sum + part * linear(colour[i] / 255), 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest(".off, :disabled") || !element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), element.outerHTML.slice(0, 80)]);
  }
  return found;
}"""
"""The contrast of every text that can be seen, as WCAG 2 has it, and where it stands."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_and_can_be_read(hostile: Review, browser: Browser, width: int, scheme: str) -> None:
    size = {"width": width, "height": 800}
    window = Window(browser, hostile.link(), viewport=size, color_scheme=scheme)
    for address in ("step?id=gallery/job-0/1&q=needle", "step?id=gallery/job-0/2", "queue", "end"):
        window.page.goto(f"{hostile.origin}/review/ann/{address}")
        assert window.page.evaluate("document.scrollingElement.scrollWidth") <= width, address
        measured = window.page.evaluate(CONTRAST)
        assert len(measured) > 8
        assert [what for ratio, what in measured if ratio < 4.5] == [], address
    unnamed = "buttons => buttons.filter(button => !(button.textContent || button.ariaLabel || '').trim()).length"
    window.page.goto(f"{hostile.origin}/review/ann/step?id=gallery/job-0/2")
    assert window.page.eval_on_selector_all("button:not([hidden]), a[href]", unnamed) == 0
    for button in window.page.query_selector_all(".verdicts button"):
        box = button.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= size["height"]  # in view, however long the prefix
    window.context.close()
