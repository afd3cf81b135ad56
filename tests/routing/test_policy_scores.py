"""Policies held against a bank: the same scores as their written predictions, paired differences, references marked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from stepdown.builder.cli.main import main
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, NoChoice, View
from stepdown.routing.policies.fixed import Always, Chance, GivenTiers, Rules
from stepdown.routing.policies.trained import load_trained
from stepdown.routing.scores.comparing import score_policies
from stepdown.routing.scores.in_sample import NearestInSample
from stepdown.routing.training.train import TrainSettings, train
from stepdown.scoring.bank import Bank, open_bank
from stepdown.scoring.predictions import Predictions
from stepdown.scoring.rates import read_rates
from stepdown.scoring.score import ScoreSettings, score
from stepdown.scoring.tally import COLUMNS, METRICS, metrics
from stepdown.scoring.tokenizers import load_tokenizer
from tests.banks import TIERS, write_predictions
from tests.routing.rules import ruled_bank, ruleless_bank


def _settings(split: str | None = None, resamples: int = 200) -> ScoreSettings:
    return ScoreSettings(read_rates(TIERS), load_tokenizer(), split, resamples)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return open_bank(ruled_bank(tmp_path_factory.mktemp("scores") / "bank"))


class Silent:
    """Answers every second call."""

    name, version = "silent", "1"

    def choose(self, view: View) -> Choice:
        if view.step % 2:
            raise NoChoice("no digit")
        return Choice(view.tiers[-1])


class Broken:
    name, version = "broken", "1"

    def choose(self, view: View) -> Choice:
        return Choice("huge")


def test_a_policy_scores_what_its_written_predictions_score(bank: Bank, tmp_path: Path) -> None:
    [found] = score_policies(bank, [Always("mid")], _settings())
    rows = [json.loads(line) for line in bank.rows.read_text().splitlines()]
    file = write_predictions(tmp_path / "p.jsonl", {row["id"]: "mid" for row in rows})
    assert found.score == score(bank, Predictions(file, bank.tiers), _settings())


def test_a_trained_policy_beats_the_honest_fixed_tier_on_groups_that_it_has_not_seen(
    bank: Bank, tmp_path: Path
) -> None:
    train(bank, tmp_path / "p", "p", TrainSettings())
    [found] = score_policies(bank, [load_trained(tmp_path / "p")], _settings("test"))
    honest = next(best for best in found.score.best_fixed if best.basis == "train to test")
    low = found.score.overall.metrics["Combined"].low
    assert low is not None
    assert low > (honest.chosen["Combined"] or 0)


def test_where_there_is_no_signal_its_interval_is_not_above_the_honest_fixed_tier(tmp_path: Path) -> None:
    bank = open_bank(ruleless_bank(tmp_path / "bank", groups=80))
    train(bank, tmp_path / "p", "p", TrainSettings())
    fixed, made = score_policies(bank, [Always("high"), load_trained(tmp_path / "p")], _settings("test"))
    assert fixed.score.best_fixed[-1].folds[0].chosen == "high"
    assert (made.over_first["Combined"].low or 0) < 0


def test_shuffled_labels_teach_nothing(bank: Bank, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in bank.rows.read_text().splitlines()]
    order = np.random.default_rng(5).permutation(len(rows))
    labels = [(rows[place]["target_tier"], rows[place]["target_tier_id"]) for place in order]
    for row, (tier, number) in zip(rows, labels, strict=True):
        row |= {"target_tier": tier, "target_tier_id": number}
    folder = ruled_bank(tmp_path / "bank")
    (folder / "question_bank.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shuffled = open_bank(folder)
    report = train(shuffled, tmp_path / "p", "p", TrainSettings()).report
    assert min(report["cross_validated_log_loss"].values()) > report["prior_log_loss"] - 0.02


def test_differences_are_of_the_same_draws(bank: Bank) -> None:
    """Against an independent bootstrap that draws trajectories by itself, and exactly zero for equal policies."""
    first, same, other = score_policies(bank, [Always("high"), Always("high"), Rules()], _settings(resamples=2000))
    assert all(lead.value == lead.low == lead.high == 0 for lead in same.over_first.values() if lead.value is not None)
    units = [one.score.units["work"] for one in (first, other)]
    stream = np.random.default_rng(99)
    draws = [stream.integers(0, len(units[0]), len(units[0])) for _ in range(2000)]
    each = [np.stack([metrics(part[draw].sum(axis=0)[None])[1] for draw in draws]) for part in units]
    low, high = np.percentile((each[1] - each[0])[:, METRICS.index("Combined")], [2.5, 97.5])
    lead = other.over_first["Combined"]
    assert lead.low == pytest.approx(low, abs=1.5)
    assert lead.high == pytest.approx(high, abs=1.5)
    assert units[0].shape == (30, len(COLUMNS))


def test_a_call_without_an_answer_fails_its_row(bank: Bank) -> None:
    [found] = score_policies(bank, [Silent()], _settings())
    assert (found.score.broken, found.score.overall.metrics["RowPass"].value) == (90, 50.0)
    assert found.score.overall.failed_trajectories == 30


def test_a_policy_that_names_no_tier_is_named(bank: Bank) -> None:
    with pytest.raises(BadInput, match="policy 'broken' chose the tier 'huge'"):
        score_policies(bank, [Broken()], _settings())


def test_the_labels_themselves_are_exact(bank: Bank) -> None:
    rows = [json.loads(line) for line in bank.rows.read_text().splitlines()]
    gold = GivenTiers("labels", {row["id"]: row["target_tier"] for row in rows})
    [found] = score_policies(bank, [gold], _settings())
    assert found.score.overall.metrics["RowExact"].value == 100.0


def test_the_nearest_in_sample_knows_labels_that_nobody_could(tmp_path: Path) -> None:
    bank = open_bank(ruleless_bank(tmp_path / "bank"))
    [found] = score_policies(bank, [NearestInSample(bank)], _settings("test"))
    assert (found.score.overall.metrics["RowExact"].value or 0) > 80


def test_chance_is_the_same_twice_and_takes_every_tier(bank: Bank) -> None:
    first, second, other = score_policies(bank, [Chance(), Chance(), Chance(1)], _settings())
    assert first.score.overall.confusion == second.score.overall.confusion != other.score.overall.confusion
    assert all(sum(column) > 20 for column in list(zip(*first.score.overall.confusion, strict=True))[:4])


def test_the_command_shows_policies_side_by_side_and_marks_the_one_in_sample(bank: Bank) -> None:
    named = [
        "--policy",
        "rules",
        "--policy",
        "nearest-in-sample",
        "--policy",
        "tests.routing.test_policy_scores:Silent",
    ]
    done = CliRunner().invoke(main, ["score", str(bank.folder), *named, "--resamples", "50"])
    assert done.exit_code == 0, done.output
    assert "nearest-in-sample (in sample)" in done.output
    assert "points above rules, paired on the same trajectories" in done.output
    as_json = CliRunner().invoke(main, ["score", str(bank.folder), *named, "--resamples", "50", "--json"])
    found = json.loads(as_json.stdout)["policies"]
    assert [(one["policy"], one["in_sample"]) for one in found] == [
        ("rules", False),
        ("nearest-in-sample", True),
        ("silent", False),
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name a file of predictions, or policies by --policy"),
        (["--policy", "alwys:low"], "no such policy: did you mean 'always'?"),
        (["--policy", "always:huge"], "there is no tier 'huge'"),
        (["--policy", "no.such.module:Class"], "can not be made"),
        (["--policy", "rules", "--rows", "out.jsonl"], "--rows: goes with a file of predictions"),
    ],
)
def test_wrong_input_is_one_line(bank: Bank, arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(main, ["score", str(bank.folder), *arguments])
    assert done.exit_code == 2
    assert problem in done.output
