"""A policy made from labels: what it learns, what it may not see, and what its folder holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import View
from stepdown.routing.policies.features import FIGURES, KNOWN_LATER, figures, latest_text
from stepdown.routing.policies.loading import load_policy
from stepdown.routing.policies.trained import Trained, load_trained
from stepdown.routing.training.examples import read_examples
from stepdown.routing.training.train import TrainSettings, train
from stepdown.scoring.bank import open_bank
from tests.banks import TIERS, Life, write_bank
from tests.routing.rules import TEXTS, ruled_bank, ruleless_bank

FULL = "sum the bill 7: "


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ruled_bank(tmp_path_factory.mktemp("ruled") / "bank")


@pytest.fixture(scope="module")
def policy(ruled: Path) -> Trained:
    train(open_bank(ruled), ruled.parent / "policy", "p", TrainSettings())
    return load_trained(ruled.parent / "policy")


def _asked(text: str) -> View:
    return View([{"role": "user", "content": text}], tiers=TIERS)


def test_it_finds_the_rule_in_words_that_it_has_not_seen_together(policy: Trained) -> None:
    for label, text in TEXTS.items():
        choice = policy.choose(_asked(FULL + text))
        assert choice.tier == TIERS[label]
        assert sum(choice.scores.values()) == pytest.approx(1, abs=1e-4)


def test_it_claims_nothing_where_nothing_can_be_learned(tmp_path: Path) -> None:
    bank = open_bank(ruleless_bank(tmp_path / "bank", groups=60))
    report = train(bank, tmp_path / "policy", "p", TrainSettings()).report
    assert min(report["cross_validated_log_loss"].values()) > report["prior_log_loss"] - 0.02


def test_only_training_groups_are_read_and_calibration_has_groups_of_its_own(ruled: Path) -> None:
    examples = read_examples(open_bank(ruled))
    fitting, apart = ({one.group for one in part} for part in (examples.fitting, examples.calibration))
    held_out = {f"work/g{number}" for number in range(0, 30, 4)}
    assert fitting
    assert apart
    assert not fitting & apart
    assert not (fitting | apart) & held_out
    assert examples.held_out_rows == 6 * len(held_out)


def test_labels_of_test_groups_change_nothing(ruled: Path, policy: Trained, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (ruled / "question_bank.jsonl").read_text().splitlines()]
    for row in lines:
        if row["split"] == "test":
            row |= {"target_tier": "mid_high", "target_tier_id": 2}
    other = write_bank(tmp_path / "bank", [])
    (other / "question_bank.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    assert train(open_bank(other), tmp_path / "p", "p", TrainSettings()).version == policy.version


def test_a_group_in_both_splits_is_refused(tmp_path: Path) -> None:
    lives = [Life([0], f"i{number}", group="one", split=split) for number, split in enumerate(("train", "test"))]
    with pytest.raises(BadInput, match="group 'work/one' stands in both splits"):
        read_examples(open_bank(write_bank(tmp_path / "bank", lives)))


@pytest.mark.parametrize("name", sorted(KNOWN_LATER))
def test_what_is_known_only_after_the_call_is_no_feature(name: str) -> None:
    with pytest.raises(BadInput, match="known only after the call"):
        figures(_asked("x"), [name])


def test_the_same_rows_give_the_same_policy_byte_for_byte(ruled: Path, policy: Trained, tmp_path: Path) -> None:
    train(open_bank(ruled), tmp_path / "again", "p", TrainSettings())
    for name in ("policy.json", "arrays.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (ruled.parent / "policy" / name).read_bytes()


def test_a_tier_that_no_example_has_is_never_chosen(policy: Trained) -> None:
    assert all(policy.choose(_asked(FULL + text)).scores["mid_high"] < 0.05 for text in TEXTS.values())


def test_one_label_alone_is_that_label_for_everything(tmp_path: Path) -> None:
    lives = [Life([2, 2], f"i{number}", group=f"g{number}", split="train") for number in range(6)]
    train(open_bank(write_bank(tmp_path / "bank", lives)), tmp_path / "p", "p", TrainSettings())
    assert load_trained(tmp_path / "p").choose(_asked("anything")).tier == "mid_high"


def test_neighbours_vote(ruled: Path, tmp_path: Path) -> None:
    train(open_bank(ruled), tmp_path / "p", "p", TrainSettings(kind="nearest", k=3))
    assert load_trained(tmp_path / "p").choose(_asked(FULL + TEXTS[3])).tier == "high"


def test_confidence_takes_the_cheapest_tier_that_is_surely_enough(tmp_path: Path) -> None:
    bank = open_bank(ruleless_bank(tmp_path / "bank"))
    for confidence, tier in ((0.0001, "low"), (1.0, "high")):
        train(bank, tmp_path / f"p{confidence}", "p", TrainSettings(confidence=confidence))
        assert load_trained(tmp_path / f"p{confidence}").choose(_asked("rename the table 3")).tier == tier


def test_other_tiers_are_refused(policy: Trained) -> None:
    with pytest.raises(BadInput, match="knows the tiers low, mid, mid_high, high; it is asked about small, large"):
        policy.choose(View([], tiers=("small", "large")))


def test_a_policy_runs_without_the_library_that_made_it(ruled: Path, policy: Trained) -> None:
    code = (
        "import sys; from pathlib import Path; from stepdown.routing.policies.trained import load_trained; "
        "from stepdown.routing.policies.contract import View; "
        f"load_trained(Path({str(ruled.parent / 'policy')!r})).choose(View([], tiers={TIERS!r})); "
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("arrays.npz", b"", "its digest differs"),
        ("policy.json", b"{}", "kind"),
        ("policy.json", b"[", "policy.json"),
    ],
)
def test_a_damaged_folder_is_named(
    ruled: Path, policy: Trained, tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    for file in (ruled.parent / "policy").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        load_policy(str(tmp_path))


def test_a_folder_with_something_in_it_is_not_written_over(ruled: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        train(open_bank(ruled), tmp_path, "p", TrainSettings())
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("content", ["plain", [{"type": "text", "text": "in parts"}], None, 7])
def test_any_content_of_a_message_is_read(content: object) -> None:
    view = View([{"role": "user", "content": content}], tiers=TIERS)
    assert isinstance(latest_text(view.messages), str)
    assert figures(view).shape == (len(FIGURES),)
