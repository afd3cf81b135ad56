"""What a policy's name means, and whose code it runs: named before it is loaded."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepdown.builder.cli.main import main
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message
from stepdown.routing.policies.contract import View
from stepdown.routing.policies.loading import load_policy, own_module
from tests.banks import TIERS
from tests.routing.rules import ruled_bank
from tests.test_planted import PlantedRun

OWN = """
import stepdown
class Mine:
    name, version = "mine", "1"
    def choose(self, view):
        return stepdown.Choice(view.tiers[0])
"""
HELLO = View([{"role": "user", "content": "hello"}], tiers=TIERS)


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy of one's own, and another one to work in."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def _module(folder: Path, name: str, text: str = OWN) -> str:
    (folder / f"{name}.py").write_text(text)
    return f"{name}:Mine"


def test_it_is_found_where_one_works(beside: Path) -> None:
    assert load_policy(_module(Path.cwd(), "policy_at_work")).choose(HELLO).tier == "low"


def test_it_is_found_beside_the_config_first(beside: Path) -> None:
    _module(Path.cwd(), "policy_beside", "raise ValueError('the other one')")
    assert load_policy(_module(beside, "policy_beside"), beside).name == "mine"


def test_a_file_of_the_name_of_a_library_is_not_loaded_in_its_place(beside: Path) -> None:
    _module(Path.cwd(), "json", "raise ValueError('not yours')")
    with pytest.raises(BadInput, match="can not be made"):
        load_policy("json:Mine")
    assert json.loads("1") == 1


@pytest.mark.parametrize("name", ["always_careful", "rulebook", "chancy"])
def test_a_module_whose_name_is_like_a_kind_is_still_ones_own(beside: Path, name: str) -> None:
    assert load_policy(_module(Path.cwd(), name)).name == "mine"


def test_a_folder_of_the_name_of_a_kind_is_not_taken_for_a_policy(beside: Path) -> None:
    (Path.cwd() / "rules").mkdir()
    assert load_policy("rules").name == "rules"


@pytest.mark.parametrize(
    "name",
    ["always:", "chance:x", "chance:" + "9" * 5000, "chance:\u0663", "a b:C", "x" * 5000, "\0", ":", "mod:", "../x"],
)
def test_a_name_that_is_none_is_one_line(beside: Path, name: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_policy(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["always:low", "chance:3", "rules", "uncommon-route", "router.yaml"])
def test_no_kind_is_anybodys_code(name: str) -> None:
    assert own_module(name) is None


def test_a_score_names_code_before_it_is_loaded(beside: Path) -> None:
    bank = ruled_bank(beside / "bank", groups=4, steps=2)
    named = _module(Path.cwd(), "policy_told", "raise ValueError('loaded')")
    done = CliRunner().invoke(main, ["score", str(bank), "--policy", named])
    assert done.exit_code == 2
    told, problem = done.stderr.strip().splitlines()
    assert told == "loading policy policy_told:Mine from policy_told.py: its code runs here"
    assert "loaded" in problem


def test_hints_name_code_before_it_is_loaded_and_find_it_beside_the_config(beside: Path) -> None:
    run = PlantedRun(beside)
    config = run.write([[0, 1]])
    data = json.loads(config.read_text())
    data["protocol"]["hints"] = {"source": "policy", "policy": _module(beside, "policy_hinting")}
    config.write_text(json.dumps(data))
    done = CliRunner().invoke(main, ["build", str(config), "--run", str(run.run)])
    assert done.exit_code == 0, done.output
    assert "loading policy policy_hinting:Mine from" in done.stderr
    assert run.labels() == [[0, 1]]


def test_a_model_that_is_asked_gives_no_hints_whose_calls_nobody_counts(beside: Path) -> None:
    run = PlantedRun(beside)
    config = run.write([[0]])
    data = json.loads(config.read_text())
    data["protocol"]["hints"] = {"source": "policy", "policy": "router.yaml"}
    config.write_text(json.dumps(data))
    done = CliRunner().invoke(main, ["build", str(config), "--run", str(run.run)])
    assert done.exit_code == 2
    assert "name it in `hints.model`, so that its calls are counted" in done.output


def test_uncommon_route_says_what_to_install_where_it_is_not() -> None:
    if importlib.util.find_spec("uncommon_route") is not None:
        pytest.skip("uncommon-route is installed")
    with pytest.raises(BadInput, match="this needs uncommon_route: pip install --no-deps uncommon-route"):
        load_policy("uncommon-route")


def test_uncommon_route_decides_by_its_metadata_as_the_paper_ran_it() -> None:
    """Without tools: low. Deep in a tool workflow its vote is damped to 0.30, under its threshold: a tier higher."""
    pytest.importorskip("uncommon_route")
    policy = load_policy("uncommon-route")
    assert policy.choose(HELLO).tier == "low"
    called: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}],
    }
    told: Message = {"role": "tool", "content": [{"type": "text", "text": "a"}]}
    light = View([*HELLO.messages, called, told], tiers=TIERS)
    assert policy.choose(light).tier == "mid_high", "mid at 0.50, which is under 0.55"
    deep = View([*HELLO.messages, *[called, told] * 6], tiers=TIERS)
    assert policy.choose(deep).tier == "high"
    assert policy.choose(View([*HELLO.messages, *[called, told] * 6], tiers=("low", "high"))).tier == "high"
