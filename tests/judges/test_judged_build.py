"""A judged workload through the whole command: what is asked, paid, kept, resumed, relabelled and released."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stepdown.judges.prompts import prompts_digest
from tests.conftest import Shop, stepdown
from tests.judges import playing
from tests.judges.infodesk import config, knowing, panel
from tests.judges.playing import reporting
from tests.provider import FAULTS, Answer, Failing, Fault, Provider, Request

Start = Callable[..., Provider]

MODELS = {
    "weak": knowing("wrong-day", "too-hot"),
    "fair": knowing("right-words", "weekly"),
    "able": knowing("brief", "plain"),
}
SCENES = ["lighthouse", "compost"]


def calls(server: Provider) -> dict[str, int]:
    return dict(Counter(seen.model for seen in server.requests))


def test_labels_follow_what_the_judge_sees(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    done = shop.build(config(server.url, SCENES, panel("sloppy")))
    assert done.code == 0, done.err
    assert shop.labels() == [["mid"], ["high"]]
    # Two seeds, three trials at the first question, of which the strong tier has none, and two at the second.
    assert calls(server) == {"able": 2, "weak": 2, "fair": 2, "sloppy": 6}
    assert server.repeated() == []


def test_a_judge_s_calls_are_booked_and_priced_like_any_other(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    shop.build(config(server.url, SCENES, panel("sloppy")))
    spend = shop.read_json("spend.json")
    assert sum(line["calls"] for line in spend["by_model"] if line["model"] == "sloppy") == 6
    assert spend["calls"] == 12
    assert spend["unbooked"]["calls"] == 0
    assert spend["usd"] == pytest.approx(3e-6 * (6 * 1000 + 6 * 2000))
    assert shop.manifest()["needed"]["calls"]["sloppy"] == 6


def test_evidence_holds_what_the_judge_saw_and_the_manifest_by_what_measure(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    shop.build(config(server.url, SCENES, panel("sloppy", thresholds={"completeness": 3})))
    trial = shop.read("evidence.jsonl")[0]["trials"][0]
    (opinion,) = trial["grading"]["judge"]["opinions"]
    assert trial["verdict"] == opinion["verdict"] == "fail"
    assert opinion["report"]["verdict"] == "passed"
    assert ["contradiction", "It was first lit on 8 May 1871."] in opinion["reasons"]
    assert [item["text"] for item in trial["grading"]["judge"]["items"]] == ["8 May 1871"]
    manifest = shop.manifest()
    assert manifest["prompts"]["judge"] == prompts_digest()
    assert manifest["protocol"]["judge"]["thresholds"] == {"faithfulness": 4, "appropriateness": 4, "completeness": 3}
    assert [model["name"] for model in manifest["protocol"]["judge"]["models"]] == ["sloppy"]


def test_an_instance_that_every_tier_fails_is_dropped_and_counted(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "able": knowing("brief", "too-hot"), "sloppy": reporting(playing.sloppy)})
    done = shop.build(config(server.url, SCENES, panel("sloppy")))
    assert done.code == 0
    assert [row["instance_id"] for row in shop.read("question_bank.jsonl")] == ["lighthouse"]
    assert shop.manifest()["dropped"] == {"infodesk": {"no seed passed: fail": 1}}


def test_a_judged_workload_without_a_judge_is_refused_before_anything_is_paid(shop: Shop, provider: Start) -> None:
    server = provider(MODELS)
    done = shop.build(config(server.url, SCENES, None))
    assert done.code == 2
    assert "protocol.workloads.0" in done.err
    assert "protocol.judge.models" in done.err
    assert server.requests == []


def test_a_verdict_on_the_same_answer_is_not_asked_again(shop: Shop, provider: Start) -> None:
    """Relabelled for another pool: answers that were judged are known, only the new model and its answer cost."""
    server = provider({**MODELS, "other": knowing("brief", "weekly"), "sloppy": reporting(playing.sloppy)})
    old = config(server.url, SCENES, panel("sloppy"))
    shop.build(old)
    before = server.count()
    new = json.loads(json.dumps(old).replace('"desk-1"', '"desk-2"'))
    new["protocol"]["pool"]["tiers"][1]["models"][0] |= {"name": "other", "model": "openai/other"}
    done = stepdown(
        "relabel", str(shop.run), "--config", str(shop.write(new, "new.yaml")), "--run", str(shop.folder / "n")
    )
    assert done.code == 0, done.err
    # `other` says of the lighthouse what `able` said, and of the heap what `fair` said: no judge is asked.
    assert Counter(seen.model for seen in server.requests[before:]) == {"other": 2}
    assert server.repeated() == []


def test_other_prompts_ask_anew_and_the_same_do_not(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    settings = config(server.url, SCENES, panel("sloppy"), cache="shared")
    shop.build(settings)
    path = str(shop.write(settings))
    assert stepdown("build", path, "--run", str(shop.folder / "same")).code == 0
    assert server.count() == 12
    monkeypatch.setattr("stepdown.judges.panel.prompts_digest", lambda: "of other prompts")
    monkeypatch.setattr("stepdown.builder.engine.workloads.prompts_digest", lambda: "of other prompts")
    assert stepdown("build", path, "--run", str(shop.folder / "other")).code == 0
    assert (server.count("sloppy"), server.count()) == (12, 18)
    again = stepdown("resume", str(shop.folder / "same"))
    assert again.code == 2
    assert "judge.prompts" in again.err


def test_an_estimate_counts_the_judge_s_calls(shop: Shop, provider: Start) -> None:
    """Two questions of one step: at worst each has two tiers to fail, and a seed to be judged, three tries each.

    At best no seed is there to be judged. Where both seeds pass, each takes a seed and a candidate, and two rulings.
    """
    path = shop.write(config("http://127.0.0.1:9/v1", SCENES, panel("sloppy", attempts=3)))
    done = stepdown("estimate", str(path), "--steps", "1", "--json")
    assert done.code == 0, done.err
    line = next(line for line in json.loads(done.out)["models"] if line["model"] == "sloppy")
    assert (line["best"]["calls"], line["worst"]["calls"]) == (0, 2 * 3 * 3)
    assert json.loads(done.out)["where_seeds_pass"]["calls"] == 2 * (2 + 2)


GARBAGE = Answer("I think it is fine. PASSED!")


def test_what_takes_one_step_is_estimated_as_one_whatever_is_said_of_other_workloads(shop: Shop) -> None:
    file = shop.write(config("http://127.0.0.1:9/v1", SCENES, panel("sloppy")))
    plain, long = (stepdown("estimate", str(file), "--json", *steps) for steps in ([], ["--steps", "9"]))
    assert long.code == 0
    assert long.out == plain.out


def test_garbage_is_retried_and_the_report_after_it_counts(shop: Shop, provider: Start) -> None:
    flaky = Failing(2, GARBAGE, reporting(playing.sloppy))
    server = provider({**MODELS, "sloppy": flaky})
    done = shop.build(config(server.url, ["lighthouse"], panel("sloppy", attempts=3)))
    assert done.code == 0, done.err
    assert shop.labels() == [["mid"]]
    assert server.count("sloppy") == 5


def test_garbage_to_the_last_blocks_and_a_resume_pays_for_no_old_garbage(shop: Shop, provider: Start) -> None:
    """Seven tries are garbage; each process has three. What is in the cache is passed over without being paid again."""
    flaky = Failing(7, GARBAGE, reporting(playing.sloppy))
    server = provider({**MODELS, "sloppy": flaky})
    blocked = shop.build(config(server.url, ["lighthouse"], panel("sloppy", attempts=3)))
    assert blocked.code == 3
    assert "there is no call of `report`" in blocked.out
    assert server.count("sloppy") == 3
    assert shop.resume().code == 3
    assert server.count("sloppy") == 6
    assert shop.resume().code == 0
    assert shop.labels() == [["mid"]]
    assert server.count("sloppy") == 3 + 3 + 2 + 2
    assert server.count("able") == 1
    paid = sum(line["calls"] for line in shop.read_json("spend.json")["by_model"] if line["model"] == "sloppy")
    assert paid == 10


@pytest.mark.parametrize("fault", ["policy_400", "overflow_openai", "server_500"])
def test_a_judge_that_gives_no_report_never_fails_a_candidate(shop: Shop, provider: Start, fault: str) -> None:
    server = provider({**MODELS, "sloppy": lambda request: FAULTS[fault]})
    done = shop.build(config(server.url, ["lighthouse"], panel("sloppy")))
    assert done.code == 3
    assert shop.read("question_bank.jsonl") == []
    assert shop.manifest()["blocked"]["infodesk"]
    assert shop.manifest()["dropped"] == {}


def test_a_stopped_run_goes_on_at_the_very_call_and_gives_the_same_files(shop: Shop, provider: Start) -> None:
    whole, parts = Shop(shop.folder / "whole"), Shop(shop.folder / "parts")
    for one in (whole, parts):
        one.folder.mkdir()
    server = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    whole.build(config(server.url, SCENES, panel("sloppy")))
    second = provider({**MODELS, "sloppy": reporting(playing.sloppy)})
    code = parts.build(config(second.url, SCENES, panel("sloppy"), budget={"calls": 1})).code
    for budget in range(2, 13):
        assert code == 3
        raised = parts.write(config(second.url, SCENES, panel("sloppy"), budget={"calls": budget}), "raised.yaml")
        code = parts.resume("--config", str(raised)).code
        assert second.count() == min(budget, 12)
    assert code == 0
    assert second.repeated() == []
    assert parts.files() == whole.files()


def test_a_panel_asks_until_its_verdict_is_certain(shop: Shop, provider: Start) -> None:
    judges = {name: reporting(playing.sloppy) for name in ("one", "two", "three")}
    server = provider({**MODELS, **judges})
    shop.build(config(server.url, ["lighthouse"], panel(*judges)))
    # The weak model's answer fails at the first judge; the seed's and the fair model's need all three.
    assert {name: server.count(name) for name in judges} == {"one": 3, "two": 2, "three": 2}


def test_one_judge_that_is_down_blocks_what_needs_it_and_no_more(shop: Shop, provider: Start) -> None:
    judges: dict[str, Any] = {name: reporting(playing.sloppy) for name in ("one", "two", "three")}
    down: Callable[[Request], Fault] = lambda request: FAULTS["server_500"]  # noqa: E731
    server = provider({**MODELS, **judges, "one": down})
    majority = shop.build(config(server.url, ["lighthouse"], panel(*judges, rule="majority")))
    assert majority.code == 0
    assert shop.labels() == [["mid"]]
    other = Shop(shop.folder / "unanimous")
    other.folder.mkdir()
    assert other.build(config(server.url, ["lighthouse"], panel(*judges))).code == 3


def test_two_workers_ask_nothing_twice(shop: Shop, provider: Start) -> None:
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    def counted(request: Request) -> Answer:
        with lock:
            seen[json.dumps(request["messages"])] += 1
        return reporting(playing.sloppy)(request)

    server = provider({**MODELS, "sloppy": counted}, latency=0.01)
    shop.build(config(server.url, SCENES, panel("sloppy"), workers=2))
    assert set(seen.values()) == {1}
    assert shop.labels() == [["mid"], ["high"]]


def test_candidates_probed_together_that_say_the_same_are_judged_once(shop: Shop, provider: Start) -> None:
    server = provider({**MODELS, "twin": MODELS["weak"], "sloppy": reporting(playing.sloppy)}, latency=0.05)
    settings = config(server.url, ["lighthouse"], panel("sloppy"))
    settings["protocol"]["pool"]["tiers"][0]["models"].append({"name": "twin", "model": "openai/twin"})
    settings["protocol"]["rules"] = {"cascade_parallel": True}
    assert shop.build(settings).code == 0
    # The seed's answer, the twins' one answer, and that of the tier above.
    assert (server.count("weak"), server.count("twin"), server.count("sloppy")) == (1, 1, 3)
    assert server.repeated() == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"models": []}, "judge.models"),
        ({"models": [{"name": "j", "model": "workload/reference"}]}, "pseudo-model judges nothing"),
        ({"models": [{"name": "weak", "model": "openai/another"}]}, "another model of the name 'weak'"),
        ({"models": [{"name": n, "model": "openai/one"} for n in "jk"]}, "'j' and 'k' are one model under two names"),
        ({"rule": "most"}, "judge.rule"),
        ({"thresholds": {"faithfulness": 6}}, "judge.thresholds.faithfulness"),
        ({"attempts": 0}, "judge.attempts"),
        ({"prompt": "be kind"}, "unknown key"),
    ],
)
def test_a_wrong_judge_is_one_line(shop: Shop, change: dict[str, Any], complaint: str) -> None:
    done = shop.build(config("http://127.0.0.1:9/v1", SCENES, {**panel("sloppy"), **change}))
    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
