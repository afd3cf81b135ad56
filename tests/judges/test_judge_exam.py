"""The exam: what is asked is wrong for certain, who is careless is caught, who reads is not, and a build stops."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stepdown.builder.config.families import family_of
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.protocol import JudgeBar
from stepdown.builder.run.ledger.database import FILE_NAME
from stepdown.judges.case import JudgeCase
from stepdown.judges.exam.library import good_answers
from stepdown.judges.exam.mutations import KINDS, OPPOSED, UNSUPPORTED, drawing
from stepdown.judges.exam.probes import HONEST, library_probes, probe_beside
from stepdown.judges.exam.tally import Observation, Tally, is_below
from stepdown.judges.guards import SourceContents, evidence_texts, unsourced_items
from stepdown.judges.text import plain, words
from tests.conftest import Result, Shop, stepdown
from tests.judges import playing
from tests.judges.infodesk import config, knowing, panel
from tests.judges.playing import reporting, with_judges
from tests.judges.reading import JUDGES
from tests.provider import FAULTS, Provider

Start = Callable[..., Provider]
PROBES = list(library_probes())


# What is asked


def test_every_way_of_being_wrong_is_asked_about_and_good_answers_too() -> None:
    asked = Counter(probe.kind for probe in PROBES)
    assert set(asked) == {*KINDS, HONEST}
    first = Counter(probe.kind for probe in PROBES[:30])
    assert first[HONEST] == 10
    assert len(first) >= 11


@pytest.mark.parametrize("kind", ["number", "date", "name"])
def test_a_figure_or_name_that_is_changed_is_in_no_passage(kind: str) -> None:
    """By the guards, which know nothing of how it was changed."""
    changed = [probe for probe in PROBES if probe.kind == kind]
    assert len(changed) >= 7
    for probe in changed:
        kinds = {"number", "date"} if kind != "name" else {"name", "sentence"}
        assert kinds & {item.kind for item in unsourced_items(probe.case)}, probe.case.answer


def test_a_unit_that_is_changed_is_not_the_one_of_its_number() -> None:
    for probe in (probe for probe in PROBES if probe.kind == "unit"):
        told = SourceContents.of_texts(evidence_texts(probe.case))
        assert any(kind in {"unit", "number"} for kind, _ in told.unknown(plain(probe.case.answer))), probe.case.answer


@pytest.mark.parametrize("kind", OPPOSED)
def test_what_is_turned_round_differs_from_a_true_answer_by_that_alone(kind: str) -> None:
    good = [answer.case for answer in good_answers()]
    for probe in (probe for probe in PROBES if probe.kind == kind):
        changed = Counter(words(probe.case.answer))
        near = min(
            sum(((said := Counter(words(case.answer))) - changed).values()) + sum((changed - said).values())
            for case in good
            if case.turns == probe.case.turns
        )
        assert 1 <= near <= 6, probe.case.answer


def test_answers_that_are_the_same_make_the_same_probes_everywhere() -> None:
    assert [probe.case.digest for probe in library_probes()] == [probe.case.digest for probe in PROBES]
    assert [probe.case.digest for probe in library_probes(1)] != [probe.case.digest for probe in PROBES]


def cases(count: int, *references: str) -> list[JudgeCase]:
    first = good_answers()[0].case
    shared = {"kind": first.kind, "turns": first.turns, "evidence": first.evidence, "references": references}
    return [JudgeCase(**shared, answer=f"Answer {n}.") for n in range(count)]


def test_about_every_kth_case_has_a_probe_and_which_one_depends_on_the_case_alone() -> None:
    asked = [probe_beside(case, 5) for case in cases(500)]
    assert 70 <= sum(probe is not None for probe in asked) <= 130
    assert [probe_beside(case, 5) for case in cases(500)] == asked
    assert not any(probe_beside(case, 0) for case in cases(50))


def test_an_accepted_answer_of_the_case_is_made_wrong_in_ways_that_need_no_trust_in_it() -> None:
    own = [probe for case in cases(300, good_answers()[0].case.answer) if (probe := probe_beside(case, 1))]
    mutated = [probe for probe in own if probe.case.turns == good_answers()[0].case.turns]
    assert len(mutated) > 100
    assert {probe.kind for probe in mutated} & set(OPPOSED) <= {probe.kind for probe in PROBES}
    assert {probe.kind for probe in mutated} >= {"number", "added claim", "other question"}
    assert not any(probe.case.references for probe in own), "a judge that is shown the right answer is not examined"


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_a_way_that_does_not_apply_is_left_out(kind: str) -> None:
    blank = good_answers()[0].case.answered("It is so.")
    changed = UNSUPPORTED[kind](blank, drawing(1))
    assert changed is None or changed != "It is so."


# What is concluded


def test_a_judge_at_its_bar_is_hardly_ever_said_to_be_below_however_often_one_looks() -> None:
    draw = random.Random(5)
    wrongly = 0
    for _ in range(300):
        right = 0
        for n in range(1, 200):
            right += draw.random() < 0.8
            if is_below(right, n, 0.8):
                wrongly += 1
                break
    assert wrongly <= 3


def test_a_judge_far_below_its_bar_is_found_soon() -> None:
    assert min(n for n in range(1, 50) if is_below(0, n, 0.8)) <= 8
    assert min(n for n in range(2, 200, 2) if is_below(n // 2, n, 0.8)) <= 60


def test_a_probe_that_is_asked_twice_counts_once_as_the_worst() -> None:
    seen = [Observation("j", "number", "p", outcome) for outcome in ("right", "wrong", "right")]
    assert (Tally(seen).detection("j").count, Tally(seen).detection("j").of) == (0, 1)


def test_a_judge_that_fails_one_kind_only_is_below() -> None:
    seen = [Observation("j", kind, f"{kind}{n}", "right") for kind in KINDS[1:] for n in range(20)]
    seen += [Observation("j", KINDS[0], f"x{n}", "wrong") for n in range(8)]
    assert KINDS[0] in (Tally(seen).below("j", JudgeBar()) or "")


# The command


def examined(provider: Start, folder: Path, judge: str, *options: str) -> Result:
    server = provider({judge: reporting(JUDGES[judge])})
    (folder / "config.yaml").write_text(with_judges(server.url, judge).model_dump_json())
    return stepdown("judge", "exam", "--config", str(folder / "config.yaml"), *options)


@pytest.mark.parametrize("judge", ["irrelevant", "nearest", "whole", "lying", "lazy", "grumpy"])
def test_a_careless_judge_is_caught_within_thirty_probes(provider: Start, tmp_path: Path, judge: str) -> None:
    done = examined(provider, tmp_path, judge, "--probes", "30", "--json")
    assert done.code == 3, done.err
    found = json.loads(done.out)["judges"][judge]
    assert found["below_bar"]
    assert found["detection"]["of"] + found["false_alarm"]["of"] <= 30
    assert set(found["detection"]) == {"count", "of", "rate", "interval"}


def test_what_is_shown_has_rates_by_kind_with_intervals(provider: Start, tmp_path: Path) -> None:
    done = examined(provider, tmp_path, "nearest", "--probes", "12", "--all")
    assert done.code == 3
    for part in ("detection", "added claim", "false alarms", "not believed", "below its bar: it failed 0 of"):
        assert part in done.out
    assert "0.000 [0.000," in done.out


def test_a_judge_that_is_down_is_not_said_to_be_bad(provider: Start, tmp_path: Path) -> None:
    server = provider({"one": lambda request: FAULTS["server_500"]})
    (tmp_path / "config.yaml").write_text(with_judges(server.url, "one").model_dump_json())
    done = stepdown("judge", "exam", "--config", str(tmp_path / "config.yaml"), "--probes", "3")
    assert done.code == 0, done.err
    assert "no answer to 3 probes" in done.out


# In a build

MODELS = {
    "weak": knowing("wrong-day", "too-hot", "dollars", "vote-flip", "freeze", "brother"),
    "able": knowing("brief", "plain", "cents", "score", "short", "passive"),
}
SCENES = ["lighthouse", "compost", "library-fines", "vote", "vaccine", "bridge"]


def test_probes_are_asked_booked_and_told_and_are_no_verdicts(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "fair": MODELS["weak"], "reader": _playing_and_reading})
    plain_run = Shop(shop.folder / "plain")
    plain_run.folder.mkdir()
    assert plain_run.build(config(server.url, SCENES, panel("reader", probes=0))).code == 0
    without = server.count("reader")
    assert shop.build(config(server.url, SCENES, panel("reader", probes=1))).code == 0
    probes = server.count("reader") - 2 * without
    assert probes > 10
    assert shop.labels() == plain_run.labels()
    exam = shop.manifest()["judge"]["exam"]["reader"]
    assert exam["detection"]["of"] + exam["false_alarm"]["of"] > 10
    assert exam["below_bar"] is None
    assert sum(line["calls"] for line in shop.read_json("spend.json")["by_model"] if line["model"] == "reader") == (
        without + probes
    )
    report = stepdown("report", str(shop.run), "--tables-only")
    assert "judges on answers of known worth" in report.out


def _playing_and_reading(request: object) -> object:
    """Reads probes like the honest judge, and knows the scenes of the desk by heart."""
    try:
        return reporting(playing.sloppy)(request)  # type: ignore[arg-type]
    except KeyError:
        return reporting(JUDGES["honest"])(request)  # type: ignore[arg-type]


def test_a_build_stops_where_a_judge_falls_below_its_bar_and_goes_on_with_another(shop: Shop, provider: Start) -> None:
    judges = {"careless": reporting(JUDGES["nearest"]), "reader": _playing_and_reading}
    server = provider({**MODELS, "fair": MODELS["weak"], **judges})
    done = shop.build(config(server.url, SCENES, panel("careless", probes=1, attempts=1)))
    assert done.code == 3
    assert "judge careless has fallen below `judge.bar`: it failed 0 of" in done.err
    assert "name another judge in a config" in done.err
    assert shop.manifest()["judge"]["exam"]["careless"]["below_bar"]
    before = server.count()
    again = shop.resume()
    assert again.code == 3
    assert "has fallen below" in again.err
    assert server.count() == before, "nothing more is paid for under a judge that is not believed"
    answers = server.count("able")
    new = shop.write(config(server.url, SCENES, panel("reader", probes=1)), "new.yaml")
    other = Shop(shop.folder / "other")
    relabelled = stepdown("relabel", str(shop.run), "--config", str(new), "--run", str(other.run))
    assert relabelled.code == 0, relabelled.err
    assert server.count("able") <= answers + len(SCENES)
    assert not {"weak", "fair", "able"} & {model for model, _ in server.repeated()}


# The panel


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openrouter/openai/gpt-5.4", "openai"),
        ("openai/o3-mini", "openai"),
        ("anthropic/claude-opus-4.6", "anthropic"),
        ("bedrock/anthropic.claude-3", "anthropic"),
        ("hosted_vllm/meta-llama/Llama-3.3-70B", "meta"),
        ("openrouter/qwen/qwen3.5-397b-a17b", "alibaba"),
        ("openai/judge-a", "judge-a"),
    ],
)
def test_the_family_of_a_model_is_in_its_name(model: str, family: str) -> None:
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("names", "rest", "complaint"),
    [
        (["openai/gpt-5"], {}, "one judge alone"),
        (["openai/gpt-5", "openrouter/openai/gpt-4.1"], {}, "judges of one family (openai)"),
        (["openai/gpt-5"], {"panel": "single"}, ""),
        (["openai/gpt-5", "anthropic/claude-4"], {}, ""),
    ],
)
def test_one_family_alone_is_believed_only_where_the_config_says_so(
    shop: Shop, names: list[str], rest: dict[str, str], complaint: str
) -> None:
    judge = {"models": [{"name": f"j{n}", "model": name} for n, name in enumerate(names)], **rest}
    path = shop.write(config("http://127.0.0.1:9/v1", SCENES, judge))
    done = stepdown("estimate", str(path), "--steps", "1")
    assert done.code == (2 if complaint else 0)
    assert complaint in done.err
    if complaint:
        assert "`panel: single`" in done.err
        assert len(done.err.splitlines()) == 1
    else:
        assert load_config(path).protocol.judge is not None


def test_a_run_of_before_that_had_one_judge_is_read(shop: Shop, provider: Start) -> None:
    """Its frozen protocol says nothing of panels and probes."""
    server = provider({**MODELS, "fair": MODELS["weak"], "sloppy": reporting(playing.sloppy)})
    assert shop.build(config(server.url, SCENES, panel("sloppy"))).code == 0
    with closing(sqlite3.connect(shop.run / FILE_NAME)) as ledger, ledger:
        frozen = json.loads(ledger.execute("SELECT value FROM meta WHERE key = 'protocol'").fetchone()[0])
        for key in ("panel", "probes", "bar"):
            del frozen["judge"][key]
        ledger.execute("UPDATE meta SET value = ? WHERE key = 'protocol'", (json.dumps(frozen),))
    assert stepdown("status", str(shop.run)).code == 0
    assert stepdown("explain", str(shop.run), "infodesk/lighthouse/1").code == 0
    assert shop.resume().code == 0
