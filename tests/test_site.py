"""The documentation site. That `make docs` builds it without a warning is for .ci/run to see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT
from tests.documented import PAGES, name
from tests.notebook import NOTEBOOK, executed

SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def _pages(entries: list[Any]) -> Iterator[str]:
    """The pages that a part of the navigation names, in order."""
    for entry in entries:
        for target in entry.values():
            yield from _pages(target) if isinstance(target, list) else [target]


def test_the_navigation_names_every_page_once() -> None:
    """Add a new page to `nav` in mkdocs.yml, where a stranger would look for it."""
    decisions = {name(page) for page in (ROOT / "docs" / "decisions").glob("0*.md")}
    of_notebooks = {name(file.with_suffix(".md")) for file in (ROOT / "docs").glob("*.ipynb")}
    named = list(_pages(SITE["nav"]))
    assert sorted(named) == sorted({name(page) for page in PAGES} - decisions | of_notebooks)


def test_the_list_of_decisions_leads_to_every_decision() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert [page for page in pages if f"({page})" not in listed] == []


def test_the_notebook_says_what_it_shows(tmp_path: Path) -> None:
    """After a change: python -m tests.notebook."""
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert sum(bool(cell["outputs"]) for cell in stored["cells"] if cell["cell_type"] == "code") > 3
    assert executed(tmp_path) == stored
    assert (tmp_path / "runs/notebook/question_bank.jsonl").exists()
