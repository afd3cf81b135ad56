"""A model as a router: one digit, kept answers, malformed ones told from an outage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from stepdown.builder.cli.main import main
from stepdown.builder.errors import BadInput, RunStopped
from stepdown.routing.policies.asking import Asking, load_asking, prompt
from stepdown.routing.policies.contract import NoChoice, Unreachable, View
from stepdown.routing.policies.loading import load_policy
from stepdown.scoring.bank import Bank, open_bank
from tests.banks import TIERS
from tests.provider import Ability, Answer, Fault, Provider, Request
from tests.routing.rules import ruled_bank


def _reads(request: Request) -> Answer:
    """A model that knows the banks' rule: a proof is hard, an error is middling."""
    latest = request["messages"][-1]["content"].rsplit("[user]", 1)[-1]
    return Answer("3" if "prove" in latest else "1\n" if "error" in latest else "0")


def _rambles(request: Request) -> Answer:
    return Answer("Tier 2, I would say")


@pytest.fixture
def provider() -> Iterator[Provider]:
    abilities: dict[str, Ability] = {
        "reader": _reads,
        "rambler": _rambles,
        "gone": lambda request: Fault(503, "busy"),
        "locked": lambda request: Fault(401, "no such key"),
    }
    with Provider(abilities) as running:
        yield running


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return open_bank(ruled_bank(tmp_path_factory.mktemp("asking") / "bank", groups=4, steps=3))


def _file(folder: Path, provider: Provider, model: str, more: dict[str, object] | None = None) -> Path:
    data = {
        "name": f"by-{model}",
        "model": {"name": model, "model": f"openai/{model}", "price": {"input": 1, "output": 2}},
        "endpoint": {"api_base": provider.url},
        "retries": {"attempts": 1},
        **(more or {}),
    }
    file = folder / f"{model}.yaml"
    file.write_text(yaml.safe_dump(data))
    return file


def _view(text: str = "copy the line") -> View:
    return View([{"role": "user", "content": text}], tiers=TIERS)


def _score(bank: Bank, *policies: Path) -> Result:
    named = [part for policy in policies for part in ("--policy", str(policy))]
    return CliRunner().invoke(main, ["score", str(bank.folder), *named, "--resamples", "0", "--json"])


def test_the_digit_is_the_tier(tmp_path: Path, provider: Provider) -> None:
    policy = load_policy(_file(tmp_path, provider, "reader"))
    texts = ("copy the line", "error: no such file", "prove it")
    assert [policy.choose(_view(text)).tier for text in texts] == ["low", "mid", "high"]
    assert all(seen.body["max_tokens"] == 1 for seen in provider.requests)


def test_what_every_call_shares_stands_first_and_the_latest_turn_last(bank: Bank) -> None:
    earlier = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    first, later = (prompt(View(part, tiers=TIERS), 1000) for part in (earlier, [*earlier, earlier[0]]))
    assert first[0] == later[0]
    shared = first[1]["content"].removesuffix("-" * 20 + "\nThe digit of the tier:").rstrip()
    assert later[1]["content"].startswith(shared)


def test_a_long_conversation_is_cut_in_its_middle() -> None:
    shown = prompt(_view("begin " + "x" * 9000 + " end"), 500)[1]["content"]
    assert len(shown) < 700
    assert "begin" in shown
    assert " end" in shown


def test_a_second_score_pays_nothing(tmp_path: Path, provider: Provider, bank: Bank) -> None:
    file = _file(tmp_path, provider, "reader")
    first = _score(bank, file)
    assert first.exit_code == 0, first.output
    asked = len(provider.requests)
    assert asked == 12
    again = _score(bank, file)
    assert again.stdout == first.stdout
    assert len(provider.requests) == asked
    assert "12 calls of its own, 12 of them answered before; list price $" in again.stderr
    [found] = json.loads(first.stdout)["policies"]
    assert found["score"]["overall"]["metrics"]["RowExact"]["value"] == 100.0


def test_a_malformed_answer_is_an_error_of_the_router(tmp_path: Path, provider: Provider, bank: Bank) -> None:
    file = _file(tmp_path, provider, "rambler")
    with pytest.raises(NoChoice, match="answered 'Tier 2, I would say'"):
        load_policy(file).choose(_view())
    done = _score(bank, file)
    assert done.exit_code == 0, done.output
    [found] = json.loads(done.stdout)["policies"]
    assert found["score"]["broken"] == 12
    assert found["score"]["overall"]["metrics"]["RowPass"]["value"] == 0.0


@pytest.mark.parametrize("text", ["4", "01", "", "low", "\u0663", "-1", "1.", "²"])
def test_only_one_digit_of_a_tier_is_an_answer(tmp_path: Path, text: str) -> None:
    with Provider({"m": lambda request: Answer(text)}) as running, pytest.raises(NoChoice):
        load_policy(_file(tmp_path, running, "m")).choose(_view())


def test_an_outage_fails_no_row_and_what_was_answered_is_kept(tmp_path: Path, provider: Provider, bank: Bank) -> None:
    with pytest.raises(Unreachable):
        load_policy(_file(tmp_path, provider, "gone")).choose(_view())
    done = _score(bank, _file(tmp_path, provider, "gone"))
    assert done.exit_code != 0
    assert "router 'by-gone'" in done.output
    assert not done.stdout.startswith("{")


def test_a_refused_key_stops_at_once(tmp_path: Path, provider: Provider) -> None:
    with pytest.raises(RunStopped):
        load_policy(_file(tmp_path, provider, "locked")).choose(_view())


@pytest.mark.parametrize("content", [None, 7, [{"type": "text", "text": "prove"}], "\ud800 lone", "\x00", "x" * 10**6])
def test_any_message_can_be_asked_about(tmp_path: Path, provider: Provider, content: object) -> None:
    policy = load_policy(_file(tmp_path, provider, "reader"))
    assert policy.choose(View([{"role": "user", "content": content}], tiers=TIERS)).tier in TIERS


def test_nothing_is_opened_before_the_first_call(tmp_path: Path, provider: Provider) -> None:
    policy = load_asking(_file(tmp_path, provider, "reader"))
    assert isinstance(policy, Asking)
    with pytest.raises(NoChoice):
        policy.choose(View([], tiers=TIERS))
    assert [file.name for file in tmp_path.iterdir()] == ["reader.yaml"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"modle": 1}, "did you mean `model`"),
        ({"model": {"name": "r", "model": "workload/reference"}}, "pseudo-model routes nothing"),
        ({"most_characters": 1}, "most_characters"),
        ({"endpoint": {"api_base": "http://user:secret@host/v1"}}, "credentials"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, provider: Provider, change: dict[str, object], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        load_policy(_file(tmp_path, provider, "reader", change))


def test_more_tiers_than_digits_are_refused(tmp_path: Path, provider: Provider) -> None:
    view = View([{"role": "user", "content": "x"}], tiers=tuple(f"t{n}" for n in range(11)))
    with pytest.raises(BadInput, match="one digit: there are 11 tiers"):
        load_policy(_file(tmp_path, provider, "reader")).choose(view)
