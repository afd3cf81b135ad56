"""The page: one file that asks for nothing, runs nothing, and shows every name as text."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.reports.charts import Bars, Lines, Stacked, svg
from tests.banks import Life, write_bank
from tests.conftest import stepdown

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=document.title=1>',
    "$\\frac{1}{0}$ $$",
    "{{ 7 * 7 }} {% for %}",
    "</svg></style><iframe src=//example.org>",
    "javascript:alert(1)",
    "a" * 180,
    "‮gnp.exe",
    "\x00\uffff\ufffe\ud800\x1b[31m",
    "名前 имя 😀",
)


def hostile_bank(folder: Path) -> Path:
    """Every name that a stranger can choose is hostile: workloads, instances, groups, reasons."""
    call = {"id": "call_1", "type": "function", "function": {"name": HOSTILE[0], "arguments": HOSTILE[1]}}
    lives = [
        Life(
            [0, 3, 1], name, name.replace("/", ""), answers=[{"content": name, "tool_calls": [call]}, {"content": name}]
        )
        for name in HOSTILE
    ]
    return write_bank(folder, lives, {"dropped": {HOSTILE[0]: {HOSTILE[1]: 3}}, "name": HOSTILE[0]})


def written(bank: Path, out: Path) -> str:
    result = stepdown("report", str(bank), "--out", str(out))
    assert result.code == 0, result.err
    assert result.err == ""
    assert result.out.splitlines()[-1] == str(out)
    return out.read_text(encoding="utf-8")


class _Elements(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page)
    return parser.found


def test_the_page_refers_to_nothing_outside_itself_and_runs_nothing(tmp_path: Path) -> None:
    page = written(hostile_bank(tmp_path / "bank"), tmp_path / "report.html")
    found = elements(page)
    assert not {"script", "iframe", "img", "link", "object", "embed", "form"} & {tag for tag, _ in found}
    for tag, attributes in found:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src"}], tag
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "default-src 'none'" in page
    assert not re.search(r"url\((?!#)", page)


def test_hostile_names_stand_on_the_page_as_text(tmp_path: Path) -> None:
    page = written(hostile_bank(tmp_path / "bank"), tmp_path / "report.html")
    assert "&lt;script&gt;document.title=" in page
    assert "{{ 7 * 7 }}" in page
    assert "‮" not in page


def test_every_id_is_there_once_and_every_plot_has_words_beside_it(tmp_path: Path) -> None:
    page = written(hostile_bank(tmp_path / "bank"), tmp_path / "report.html")
    ids = [attributes["id"] for _, attributes in elements(page) if "id" in attributes]
    assert len(ids) == len(set(ids))
    plots = [attributes for tag, attributes in elements(page) if tag == "svg"]
    assert plots
    assert all(plot.get("role") == "img" and plot.get("aria-label") for plot in plots)
    for _, attributes in elements(page):
        if labelled := attributes.get("aria-labelledby"):
            assert labelled in ids


def test_the_page_is_the_same_at_every_look(tmp_path: Path) -> None:
    bank = hostile_bank(tmp_path / "bank")
    assert written(bank, tmp_path / "a.html") == written(bank, tmp_path / "b.html")


def test_a_failed_report_leaves_no_page(tmp_path: Path) -> None:
    bank = write_bank(tmp_path / "bank", [Life([0])])
    with (bank / "question_bank.jsonl").open("a") as file:
        file.write("{\n")
    assert stepdown("report", str(bank), "--out", str(tmp_path / "r.html")).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank"]


@pytest.mark.parametrize(
    "chart",
    [
        Stacked(("", "a"), ("x",), ((0,), (1,)), "nothing at all"),
        Stacked(("a",), tuple(f"tier {n}" for n in range(9)), (tuple(range(9)),), "nine tiers"),
        Bars(("a",), (0.0,), (), 0, "steps", "an empty bar"),
        Lines((("one", (0.0, 1.0)), ("$x_$", (0.5, 2.0))), "step", "USD", "two lines"),
    ],
)
def test_a_plot_of_little_or_much_is_drawn(chart: Stacked | Bars | Lines) -> None:
    drawn = svg(chart, "p")
    assert drawn.startswith("<svg")
    assert "style=" not in drawn
    assert "#000000" not in drawn


# In a real browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield made
        made.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_shown_without_a_request_a_complaint_or_sideways_scrolling(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    written(hostile_bank(tmp_path / "bank"), tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    address = (tmp_path / "report.html").as_uri()
    page.goto(address, timeout=20_000)
    assert said == [address]
    assert page.title().startswith("stepdown report")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper)]
    assert (light[0] < light[1]) == (scheme == "light")
    # A plot's words take the page's own colour.
    assert page.evaluate("getComputedStyle(document.querySelector('svg text')).fill") == ink
    context.close()


@pytest.mark.browser
def test_a_bank_of_one_row_is_a_page_too(browser: Any, tmp_path: Path) -> None:
    written(write_bank(tmp_path / "bank", [Life([1])]), tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 400, "height": 900})
    page.goto((tmp_path / "report.html").as_uri(), timeout=20_000)
    assert "1 labelled step of 1 instance" in page.inner_text("#labels")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.close()


def test_json_and_page_speak_of_the_same_tables(tmp_path: Path) -> None:
    bank = hostile_bank(tmp_path / "bank")
    page = written(bank, tmp_path / "report.html")
    sections = json.loads(stepdown("report", str(bank), "--json").out)["sections"]
    titles = [table["title"] for tables in sections.values() for table in tables]
    assert sorted(re.findall(r"<h3[^>]*>([^<]*)</h3>", page)) == sorted(titles)


def test_a_page_never_replaces_a_file_of_another_kind(tmp_path: Path) -> None:
    bank = write_bank(tmp_path / "bank", [Life([0])])
    rows = bank / "question_bank.jsonl"
    before = rows.read_bytes()
    assert "is no .html file" in stepdown("report", str(bank), "--out", str(rows)).err
    assert rows.read_bytes() == before
    written(bank, tmp_path / "report.html")
    written(bank, tmp_path / "report.html")
