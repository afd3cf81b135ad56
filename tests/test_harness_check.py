"""`stepdown harness check`: the contract suite from the command line, each finding with its line of code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, stepdown

SOURCE = '{"bills": [[3, 12, 4], [25, 8]]}'
WHOLE = (ROOT / "stepdown/examples/till.py").read_text()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    yield
    sys.modules.pop("mine", None)


def mine(was: str = "", becomes: str = "", name: str = "mine") -> int:
    """A till of one's own with one piece of its code changed; the number of the changed line."""
    assert was in WHOLE
    Path(f"{name}.py").write_text(WHOLE.replace(was, becomes, 1) if was else WHOLE)
    return WHOLE[: WHOLE.index(was)].count("\n") + 1


def test_a_sound_harness_is_said_to_be_one() -> None:
    mine()
    done = stepdown("harness", "check", "mine:Till", "--source", SOURCE)
    assert (done.code, done.out) == (0, "ok: mine:Till keeps to the contract on what was played\n")
    assert done.err == "loading mine:Till from mine.py: its code runs here\n"


@pytest.mark.parametrize(
    ("was", "becomes", "part", "told"),
    [
        (
            "arguments.get(\"price\") if isinstance(arguments, dict) and call.name == \"add\" else None",
            'arguments["price"]',
            'arguments["price"]',
            "raises KeyError: 'price', where a ruling is due",
        ),
        (
            'at if isinstance(at, State) else None)',
            "None)",
            "    @contextmanager",
            "from the checkpoint after step 1 it does not go on as it did before",
        ),
        ('version = "1"', 'version = ""', "class Till(Harness)", "`version` is no text"),
        (
            'yield Instance(self.name, f"bill-{number}"',
            'yield Instance("other", f"bill-{number}"',
            "    def instances",
            "instance bill-1 is of the benchmark 'other', not 'till'",
        ),
    ],
)  # fmt: skip
def test_a_finding_names_the_line_that_is_to_blame(was: str, becomes: str, part: str, told: str) -> None:
    mine(was, becomes)
    done = stepdown("harness", "check", "mine:Till", "--source", SOURCE)
    line = Path("mine.py").read_text().split(part)[0].count("\n") + 1
    assert done.code == 3
    found = next(one for one in done.out.splitlines() if told in one)
    assert found.startswith(f"mine.py:{line}: ")
    assert "breaks the contract of a harness: " in done.err
    document = json.loads(stepdown("harness", "check", "mine:Till", "--source", SOURCE, "--json").out)
    assert document["ok"] is False
    assert (str(Path("mine.py").resolve()), line) in [(one["file"], one["line"]) for one in document["findings"]]


def test_source_and_options_are_json_or_a_file() -> None:
    Path("source.yaml").write_text("categories: {simple_python: 1}\n")
    assert stepdown("harness", "check", "bfcl", "--source", "source.yaml", "--most", "1").code == 0


def test_answers_may_come_from_a_seed_file() -> None:
    mine('if name not in ("reference", "hasty")', 'if name != "hasty"')
    bad = stepdown("harness", "check", "mine:Till", "--source", '{"bills": [[5]]}')
    assert "there are no answers to play" in bad.out
    steps = [{"tool_calls": [{"name": "add", "arguments": {"price": 5}}]}, {"content": "5"}]
    Path("seeds.jsonl").write_text(json.dumps({"instance_id": "bill-1", "model": "any", "steps": steps}) + "\n")
    done = stepdown("harness", "check", "mine:Till", "--source", '{"bills": [[5]]}', "--answers", "seeds.jsonl")
    assert (done.code, done.out) == (0, "ok: mine:Till keeps to the contract on what was played\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("nowhere:Till",), "can not be loaded: No module named 'nowhere'"),
        (("mine:Tlil",), "module 'mine' has no class 'Tlil': did you mean 'Till'?"),
        (("tiil",), "no such workload 'tiil'"),
        (("mine:Till", "--source", "{"), "--source: not JSON"),
        (("mine:Till", "--source", "[1]"), "--source: must be a mapping"),
        (("mine:Till", "--source", "none.json"), "none.json: No such file"),
        (("mine:Till", "--options", '{"spare": 1}'), "options: "),
        (("mine:Till", "--source", SOURCE, "--answers", "none.jsonl"), "none.jsonl: No such file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: tuple[str, ...], problem: str) -> None:
    mine()
    done = stepdown("harness", "check", *words)
    assert done.code == 2
    assert problem in done.err.splitlines()[-1]


def test_a_source_that_the_harness_refuses_is_bad_input() -> None:
    mine()
    done = stepdown("harness", "check", "mine:Till", "--source", '{"bils": []}')
    assert (done.code, done.err.splitlines()[-1]) == (2, "stepdown: source: must be `bills`, a list of lists of prices")
