"""Policies in a report: the score's own tables and figures, drawn, on one page that asks for nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import stepdown
from tests.routing.rules import ruled_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruled_bank(tmp_path_factory.mktemp("report") / "bank", groups=8, steps=3)


def test_the_tables_are_those_of_the_score(bank: Path) -> None:
    named = ["--policy", "always:mid", "--policy", "nearest-in-sample", "--split", "test"]
    report = stepdown("report", str(bank), *named, "--json")
    assert report.code == 0, report.err
    tables = {table["title"]: table for table in json.loads(report.out)["sections"]["policies"]}
    [scored, _] = json.loads(stepdown("score", str(bank), *named, "--json").out)["policies"]
    row = next(row for row in tables["policies (percent)"]["rows"] if row[0] == "always:mid")
    assert row[1] == f"{scored['score']['overall']['metrics']['RowPass']['value']:.2f}"
    patterns = next(row for row in tables["errors on rows labelled below high"]["rows"] if row[0] == "always:mid")
    assert patterns[1:] == [str(count) for count in scored["score"]["overall"]["patterns"].values()]
    assert any("nearest-in-sample (in sample)" in row[0] for row in tables["policies (percent)"]["rows"])


def test_the_page_draws_every_policy_and_names_none_as_markup(bank: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = stepdown("report", str(bank), "--policy", "tests.reports.test_policies_section:Rude", "--out", str(out))
    assert done.code == 0, done.err
    assert "its code runs here" in done.err
    page = out.read_text()
    section = page[page.index('id="policies"') :]
    assert section.count("<svg") == 2
    assert "<b>rude" not in page
    assert "&lt;b&gt;rude" in section
    assert "--split test leaves them out" in section
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", section)


def test_a_split_goes_with_policies(bank: Path) -> None:
    done = stepdown("report", str(bank), "--split", "test", "--tables-only")
    assert (done.code, "--split: goes with --policy" in done.err) == (2, True)


class Rude:
    """A policy of anybody's name."""

    name, version = "<b>rude\x1b[31m</b>", "1"

    def choose(self, view: object) -> object:
        from stepdown.routing.policies.contract import Choice

        return Choice("low")
