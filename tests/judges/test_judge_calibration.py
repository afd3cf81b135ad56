"""`stepdown judge calibrate`: counts that can be checked by hand, choices tested on what they have not seen."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.judges.calibration.choosing import as_arrays, candidates, compared, cross_validated, threshold_for
from tests.conftest import ROOT, Result, stepdown
from tests.judges import playing
from tests.judges.playing import entries, reporting
from tests.judges.reading import JUDGES
from tests.provider import Answer, Provider

SHARED = ROOT.parent / "shared" / "data" / "mtrag_human_calibration.jsonl"


def rated(number: int, good: bool, scores: dict[str, float], **rest: Any) -> dict[str, Any]:
    """One answer of conversation `number // 4`; a bad one has a figure that is in no passage."""
    rates = [4, 3, 4] if good else [2, 4, 2]
    return {
        "task_id": f"talk-{number // 4}<::>{number % 4}",
        "answerability": ["ANSWERABLE"],
        "input": [{"speaker": "user", "text": "How many rooms are there?"}],
        "contexts": [{"document_id": "d", "text": "There are 12 rooms."}],
        "answer": "There are 12 rooms." if good or number % 3 else "There are 99 rooms.",
        "human": {"faithfulness": rates, "appropriateness": [4], "completeness": [3, 3]},
        "judges": scores,
        **rest,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """48 answers of 12 conversations, every third of them bad: `fair` tells most apart, `blind` none."""
    draw = random.Random(1)
    lines = []
    for number in range(48):
        good = number % 3 != 0
        fair = min(1.0, max(0.0, (0.8 if good else 0.4) + draw.uniform(-0.3, 0.3)))
        lines.append(rated(number, good, {"fair": fair, "blind": draw.random()}))
    return written(tmp_path, lines)


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "rated.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def calibrate(path: Path, *options: str) -> Result:
    return stepdown("judge", "calibrate", str(path), *options)


@pytest.mark.skipif(not SHARED.exists(), reason="the human-rated file is not here")
def test_the_human_rated_file_comes_out_as_its_figures_say() -> None:
    done = calibrate(SHARED, "--threshold", "0.7", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    table = {line["score"]: line for line in found["table"]}
    counts = {
        name: [(line[key]["count"], line[key]["of"]) for key in ("pass_given_bad", "pass_given_good")]
        for name, line in table.items()
    }
    assert counts["rb_llm"] == [(19, 26), (193, 211)]
    assert counts["rl_f"] == [(4, 26), (175, 211)]
    # The deterministic guards alone: below 1 is an answer with at least one item.
    flagged = {
        k: line["of"] - line["count"]
        for k, line in table["guards"].items()
        if k in {"pass_given_bad", "pass_given_good"}
    }
    assert flagged == {"pass_given_bad": 23, "pass_given_good": 56}
    low, high = found["comparison"]["gain"]["interval"]
    assert (low > 0) == found["comparison"]["claim"].startswith("the combination beats")
    assert low < found["comparison"]["gain"]["value"] < high


def test_counts_can_be_checked_by_hand(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    found = json.loads(calibrate(file, "--threshold", "0.6", "--json").out)
    line = next(line for line in found["table"] if line["score"] == "fair")
    bad = [one["judges"]["fair"] >= 0.6 for number, one in enumerate(lines) if number % 3 == 0]
    good = [one["judges"]["fair"] >= 0.6 for number, one in enumerate(lines) if number % 3]
    assert (line["pass_given_bad"]["count"], line["pass_given_bad"]["of"]) == (sum(bad), len(bad))
    assert (line["pass_given_good"]["count"], line["pass_given_good"]["of"]) == (sum(good), len(good))
    assert line["bad_given_pass"]["count"] == sum(bad)
    assert line["bad_given_pass"]["of"] == sum(bad) + sum(good)
    # Nobody found fault with how complete the answers are: against that rating there is no bad one.
    alone = next(one for one in found["by_rating"] if (one["rating"], one["score"]) == ("completeness", "fair"))
    assert alone["pass_given_bad"]["of"] == 0


def test_what_is_shown_says_the_interval_either_way(file: Path) -> None:
    done = calibrate(file)
    assert done.code == 0, done.err
    assert "48 answerable answers of 12 conversations: 32 good, 16 bad" in done.out
    assert "P(bad | pass)" in done.out
    assert "combination minus single" in done.out
    assert ("beats the best single" in done.out) or ("no claim that" in done.out) or ("is worse than" in done.out)


def test_a_combination_is_claimed_only_where_its_interval_excludes_zero(tmp_path: Path) -> None:
    """Two scores that each see half of the faults: only together do they see all, in every conversation."""
    lines = []
    for number in range(120):
        good = number % 2 == 1
        sees_first = number % 4 == 0
        scores = {"one": 1.0 if good or sees_first else 0.0, "two": 0.0 if sees_first else 1.0}
        lines.append(rated(number, good, scores, answer="There are 12 rooms."))
    found = json.loads(calibrate(written(tmp_path, lines), "--score", "one", "--score", "two", "--json").out)
    assert found["comparison"]["claim"].startswith("the combination beats")
    assert found["comparison"]["gain"]["interval"][0] > 0
    same = json.loads(calibrate(written(tmp_path, lines), "--score", "one", "--json").out)
    assert same["combination"] is None


def test_noise_is_not_claimed_to_add_anything(file: Path) -> None:
    found = json.loads(calibrate(file, "--score", "fair", "--score", "blind", "--json").out)
    assert found["comparison"]["claim"].startswith(("no claim", "the combination is worse"))
    assert set(found["single"]) >= {"pass_given_bad", "bad_given_pass", "picked"}


def test_nothing_of_a_held_out_conversation_reaches_its_own_threshold() -> None:
    """Changing the scores of one conversation changes nobody else's share of folds in which it is held out."""
    draw = np.random.default_rng(3)
    good, groups = as_arrays([bool(n % 3) for n in range(60)], [str(n // 5) for n in range(60)])
    scores = draw.random(60)
    changed = scores.copy()
    changed[groups == 0] = draw.random(5)
    first = cross_validated({"s": scores}, good, groups, 0.2)
    own = threshold_for(scores[groups != 0], good[groups != 0], 0.2)
    second = cross_validated({"s": changed}, good, groups, 0.2)
    assert list(first.passes[:5]) == [bool(v >= own) for v in scores[:5]]
    assert list(second.passes[:5]) == [bool(v >= own) for v in changed[:5]]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.1, 0.25, 0.5]),
)
def test_a_threshold_keeps_its_target_and_is_the_lowest_that_does(rows: list[tuple[int, bool]], target: float) -> None:
    scores, good = np.array([float(s) for s, _ in rows]), np.array([g for _, g in rows])
    threshold = threshold_for(scores, good, target)
    bad = scores[~good]
    assert (bad >= threshold).sum() <= target * len(bad) + 1e-9
    lower = [value for value in set(scores) if value < threshold]
    assert all((bad >= value).sum() > target * len(bad) + 1e-9 for value in lower)


def test_a_procedure_compared_with_itself_differs_by_nothing() -> None:
    good, groups = as_arrays([bool(n % 3) for n in range(60)], [str(n // 5) for n in range(60)])
    one = cross_validated(candidates({"s": list(np.linspace(0, 1, 60))})[0], good, groups, 0.2)
    gain = compared(one.passes, one.passes, good, groups, seed=0).gain
    assert (gain.value, gain.low, gain.high, gain.excludes_zero) == (0.0, 0.0, 0.0, False)


# Chosen on one file, applied to another


def two_files(folder: Path, shared: bool = False) -> tuple[Path, Path]:
    """Two files of 12 conversations each, which share one where asked to; some answers are references."""
    draw, files = random.Random(2), []
    for place in (0, 1):
        lines = []
        for number in range(48):
            good = number % 3 != 0
            scores = {"fair": (0.8 if good else 0.4) + draw.uniform(-0.3, 0.3), "blind": draw.random()}
            line = rated(number + 48 * place, good, scores)
            lines.append(line | {"reference": line["answer"] if number % 8 == 1 else "There are twelve."})
        if shared and place:
            lines[0]["task_id"] = "talk-0<::>9"
        path = folder / f"{place}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        files.append(path)
    return files[0], files[1]


def test_what_is_chosen_on_one_file_is_measured_on_the_other(tmp_path: Path) -> None:
    first, second = two_files(tmp_path)
    done = stepdown("judge", "calibrate", "--choose", str(first), "--apply", str(second), "--json")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["transfers"]
    assert found["shared_conversations"] == []
    lines = [json.loads(line) for line in second.read_text().splitlines()]
    name, threshold = found["single"]["score"], found["single"]["threshold"]
    assert name in {"fair", "blind", "guards"}
    if name != "guards":
        apart = [line for line in lines if line["reference"] == line["answer"]]
        good = [line["judges"][name] >= threshold for line in apart if line["human"]["faithfulness"][0] == 4]
        counted = found["single"]["equal_to_the_reference"]["pass_given_good"]
        assert (counted["count"], counted["of"]) == (sum(good), len(good))
        assert len(apart) == 6
    low = found["comparison"]["gain"]["interval"][0]
    assert (low > 0) == found["comparison"]["claim"].startswith("the combination beats")
    assert any("bad answers" in line for line in found["power"])


def test_conversations_in_both_files_are_named(tmp_path: Path) -> None:
    first, second = two_files(tmp_path, shared=True)
    done = stepdown("judge", "calibrate", "--choose", str(first), "--apply", str(second), "--score", "fair")
    assert "conversations in both, which the choice has seen: 1: talk-0" in done.out
    assert "power: 16 bad answers were there to be passed" in done.out
    assert "is shown to be at 0.1 or below by 36 bad answers" in done.out


def test_halves_of_one_file_are_chosen_on_and_applied_to_in_turn(file: Path) -> None:
    done = calibrate(file, "--halves", "--score", "fair", "--json")
    assert done.code == 0, done.err
    one, other = json.loads(done.out)["transfers"]
    assert (one["chosen_on"], one["applied_to"]) == (other["applied_to"], other["chosen_on"])
    assert one["shared_conversations"] == []


def test_an_answer_without_a_verdict_is_not_passed_and_counted(file: Path, provider: Callable[..., Provider]) -> None:
    asked: list[int] = []

    def half_mute(request: Any) -> Any:
        asked.append(1)
        return Answer("no report") if len(asked) % 2 else reporting(JUDGES["honest"])(request)

    server = provider({"mute": half_mute})
    config = file.parent / "config.yaml"
    config.write_text(playing.with_judges(server.url, "mute", attempts=1).model_dump_json())
    done = calibrate(file, "--config", str(config), "--score", "fair", "--threshold", "1", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["answers"], found["left_out"]) == (48, {})
    assert 0 < found["without_verdict"] < 48
    line = next(line for line in found["table"] if line["score"] == "judge")
    assert (line["pass_given_good"]["of"], line["pass_given_bad"]["of"]) == (32, 16)


@pytest.mark.parametrize(
    "options", [["--choose", "a.jsonl"], ["--apply", "a.jsonl"], ["x", "--choose", "a", "--apply", "b"], []]
)
def test_choose_and_apply_go_together(options: list[str]) -> None:
    done = stepdown("judge", "calibrate", *options)
    assert done.code == 2
    assert "--choose and --apply" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_picture_is_drawn(file: Path, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"c.{ending}"
    assert calibrate(file, "--plot", str(picture)).code == 0
    head = picture.read_bytes()[:200]
    assert b"<svg" in picture.read_bytes() if ending == "svg" else head.startswith(b"\x89PNG")


def test_a_judge_is_measured_on_the_rated_answers(
    file: Path, provider: Callable[..., Provider], tmp_path: Path
) -> None:
    """A config's judge: here on answers of the library, each as good as people would find it."""
    chosen_entries = list(entries())[:40]
    lines = [
        {
            "task_id": f"{entry.name.split('/')[0]}<::>{number}",
            "input": [turn.model_dump() for turn in entry.case.turns],
            "contexts": [{"document_id": p.title, "text": p.text} for p in entry.case.evidence],
            "answer": entry.case.answer,
            "human": {
                name: [4 if entry.is_honest else 1] for name in ("faithfulness", "appropriateness", "completeness")
            },
        }
        for number, entry in enumerate(chosen_entries)
    ]
    server = provider({"sloppy": reporting(playing.sloppy)})
    config = tmp_path / "config.yaml"
    config.write_text(playing.with_judges(server.url, "sloppy").model_dump_json())
    done = calibrate(written(tmp_path, lines), "--config", str(config), "--threshold", "1", "--json")
    assert done.code == 0, done.err
    line = next(line for line in json.loads(done.out)["table"] if line["score"] == "judge")
    assert line["pass_given_bad"]["count"] == 0
    assert line["pass_given_good"]["count"] == line["pass_given_good"]["of"] > 0
    assert server.count() == 40


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({"human": {"faithfulness": []}}, [], "human.faithfulness"),
        ({"human": None}, [], "rated.jsonl:1: human"),
        ({"judges": {"fair": "high", "blind": 1}}, [], "judges.fair"),
        ({}, ["--score", "unheard"], "no number of the name 'unheard'"),
        ({}, ["--target", "1.5"], "--target"),
        ({}, ["--plot", "x.pdf"], "an .svg or a .png"),
        ({}, ["--good", "9"], "all bad"),
        ({}, ["--seed", "-1"], "--seed: -1 is below 0"),
    ],
)
def test_wrong_input_is_one_line(file: Path, change: dict[str, Any], options: list[str], complaint: str) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0] |= change
    done = calibrate(written(file.parent, lines), *options)
    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("library", ["numpy", "statsmodels"])
def test_a_library_that_is_missing_is_named(file: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    done = calibrate(file)
    assert (done.code, done.err.strip()) == (
        2,
        f"stepdown: this needs {library}: pip install 'stepdown[judge]'",
    )


def test_the_command_imports_no_provider_and_no_plotting_unless_needed() -> None:
    heavy = "('litellm', 'matplotlib', 'statsmodels', 'numpy')"
    code = f"import sys, stepdown.builder.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
