"""A build against a loopback provider whose models are scripted by skill: the labels are what the skills imply."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stepdown.builder.engine.replay import UNREPEATABLE
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Answer, Failing, Provider, Request
from tests.workshop import ABILITIES, Workshop, apprentice, config, worked

Start = Callable[..., Provider]
CASCADE = {"low": ["novice", "clerk"], "mid": ["hand", "fitter"], "high": ["master"]}
SKILLED = {**ABILITIES, "clerk": apprentice(0, manner=" or so"), "fitter": apprentice(1, manner=" or so")}


def test_every_step_gets_the_cheapest_tier_whose_skill_is_enough(shop: Shop, provider: Start) -> None:
    result = shop.build(config(provider().url, [[0, 1, 0], [2, 0], [5, 5, 1, 0]]))
    assert result.code == 0
    assert shop.labels() == [["low", "mid", "low"], ["high", "low"], ["high", "high", "mid", "low"]]


def test_the_trials_are_those_of_the_protocol_and_no_call_is_made_twice(shop: Shop, provider: Start) -> None:
    one = provider(SKILLED)
    shop.build(config(one.url, [[0, 1, 2]], models=CASCADE))
    assert shop.trials() == [
        "job-0/1:novice:pass",
        "job-0/2:novice:fail",
        "job-0/2:clerk:fail",
        "job-0/2:hand:pass",
        "job-0/3:novice:fail",
        "job-0/3:clerk:fail",
        "job-0/3:hand:fail",
        "job-0/3:fitter:fail",
    ]
    # The seed: 3. A trial at step i of 3: 1 + (3 - i).
    assert one.count() == 3 + 1 * 3 + 3 * 2 + 4 * 1
    assert one.repeated() == []


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_step_that_can_not_be_replayed_is_no_lock_and_the_search_goes_on(
    shop: Shop, provider: Start, checkpoints: bool
) -> None:
    """What a gambler throws is shown after its step, and is another number at each replay."""
    models = {"low": ["gambler"], "mid": ["hand"], "high": ["master"]}
    one = provider({**ABILITIES, "gambler": apprentice(0, manner=" and throws")})
    result = shop.build(config(one.url, [[0, 0, 1, 0]], models=models, options={"checkpoints": checkpoints}))
    assert result.code == 0, result.err
    assert shop.labels() == [["mid", "mid", "mid", "low"]], "nothing follows its last step"
    reasons = [
        trial["reason"]
        for row in shop.read("evidence.jsonl")
        for trial in row["trials"]
        if trial["model"] == "gambler" and trial["verdict"] == "fail"
    ]
    assert reasons[:2] == [UNREPEATABLE] * 2
    assert one.repeated() == []
    # The seed: 4. Two candidates at each step but the last, 1 + (4 - i) each; one at the last.
    assert one.count() == 4 + 2 * (4 + 3 + 2) + 1


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_run_whose_later_steps_can_not_be_replayed_is_no_lock_either(
    shop: Shop, provider: Start, checkpoints: bool
) -> None:
    """What is random may be the strong model's: it stays in the trajectory where no candidate takes its place."""

    def led_on(request: Request) -> Answer:
        messages = request["messages"]
        manner = " and throws" if any("tempts" in message["content"] for message in messages) else ""
        return Answer(worked(9, messages, manner=manner))

    models = {"low": ["tempter"], "mid": ["hand"], "high": ["master"]}
    one = provider({**ABILITIES, "tempter": apprentice(0, manner=" and tempts"), "master": led_on})
    result = shop.build(config(one.url, [[0, 9, 0, 0]], models=models, options={"checkpoints": checkpoints}))
    assert result.code == 0, result.err
    assert shop.labels() == [["mid", "high", "low", "low"]], "nothing follows the last step"
    assert one.repeated() == []


def test_two_candidates_that_say_the_same_share_what_comes_after_them(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "clerk": ABILITIES["novice"]})
    shop.build(config(one.url, [[0, 1, 2]], models=CASCADE))
    assert one.count() == 3 + 1 * 3 + 3 * 2 + 4 * 1 - 1


def test_an_early_verdict_costs_the_candidates_call_alone(shop: Shop, provider: Start) -> None:
    one = provider()
    shop.build(config(one.url, [[2, 2, 2, 2]], options={"early": True}))
    assert one.count() == 4 + 4 * 2


def test_cascade_1_probes_the_first_model_of_each_tier(shop: Shop, provider: Start) -> None:
    shop.build(config(provider(SKILLED).url, [[1]], models=CASCADE, protocol={"rules": {"cascade": 1}}))
    assert shop.trials() == ["job-0/1:novice:fail", "job-0/1:hand:pass"]


def test_probing_a_cascade_together_asks_more_and_labels_the_same(shop: Shop, provider: Start) -> None:
    needs = [[0, 1, 2, 0], [1, 0]]
    one = provider(SKILLED)
    shop.build(config(one.url, needs, models=CASCADE))
    together = Shop(shop.folder)
    together.run = shop.folder / "together"
    other = provider(SKILLED, latency=0.01)
    parallel = {"rules": {"cascade_parallel": True}}
    assert together.build(config(other.url, needs, models=CASCADE, protocol=parallel)).code == 0
    assert together.read("question_bank.jsonl") == shop.read("question_bank.jsonl")
    assert other.count() > one.count()
    # Every model of a probed tier, in the cascade's order however they ended.
    assert together.trials()[:2] == ["job-0/1:novice:pass", "job-0/1:clerk:pass"]
    again = Shop(shop.folder)
    again.run = shop.folder / "again"
    assert again.build(config(provider(SKILLED).url, needs, models=CASCADE, protocol=parallel)).code == 0
    assert again.files() == together.files()


def test_models_that_are_probed_together_pay_for_a_shared_question_once(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "clerk": ABILITIES["novice"]}, latency=0.02)
    parallel = {"rules": {"cascade_parallel": True}}
    assert shop.build(config(one.url, [[0, 1, 2], [1, 1]], models=CASCADE, protocol=parallel)).code == 0
    assert one.repeated() == []
    assert shop.read_json("spend.json")["calls"] == one.count()


def hints(shop: Shop, *lines: str) -> dict[str, Any]:
    (shop.folder / "hints.jsonl").write_text("\n".join(lines))
    return {"hints": {"source": "file", "file": "hints.jsonl"}}


def test_hints_move_the_start_and_never_a_label(shop: Shop, provider: Start) -> None:
    given = hints(
        shop,
        '{"id": "workshop/job-0/1", "tier": "mid"}',
        '{"id": "workshop/job-0/2", "tier": "high"}',
        '{"id": "workshop/job-0/3", "tier": "mid"}',
    )
    assert shop.build(config(provider().url, [[0, 5, 1]], protocol=given)).code == 0
    assert shop.labels() == [["low", "high", "mid"]]
    assert shop.trials() == [
        "job-0/1:hand:pass",
        "job-0/1:novice:pass",
        "job-0/2:hand:fail",
        "job-0/3:hand:pass",
        "job-0/3:novice:fail",
    ]
    assert [row["hint"] for row in shop.read("evidence.jsonl")] == ["mid", "high", "mid"]


@pytest.mark.parametrize(("said", "hint"), [('{"tier": "mid"}', "mid"), ("dunno", None), ('{"tier": 7}', None)])
def test_a_model_may_give_hints_and_one_that_says_nothing_is_no_hint(
    shop: Shop, provider: Start, said: str, hint: str | None
) -> None:
    one = provider({**ABILITIES, "adviser": lambda request: Answer(said)})
    asked = {"hints": {"source": "model", "model": {"name": "adviser", "model": "openai/adviser"}}}
    assert shop.build(config(one.url, [[1]], protocol=asked)).code == 0
    assert shop.labels() == [["mid"]]
    assert shop.read("evidence.jsonl")[0]["hint"] == hint
    assert one.count("adviser") == 1


def test_a_shorter_passing_trajectory_replaces_the_current_one(shop: Shop, provider: Start) -> None:
    """A novice that makes two pieces at once shortens the job, and the next limit with it."""
    one = provider({**ABILITIES, "novice": apprentice(0, pace=2)})
    shop.build(config(one.url, [[0, 1, 0, 1]]))
    assert shop.labels() == [["low", "low"]]
    assert [row["total_steps"] for row in shop.read("question_bank.jsonl")] == [2, 2]
    assert [trial["limit"] for row in shop.read("evidence.jsonl") for trial in row["trials"]] == [4, 3]


def test_under_the_same_rule_the_shorter_trajectory_is_not_accepted(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": apprentice(0, pace=2)})
    shop.build(config(one.url, [[0, 1, 0]], protocol={"rules": {"step_rule": "same"}}))
    assert shop.labels() == [["mid", "mid", "low"]]
    assert shop.trials()[0] == "job-0/1:novice:pass"


def test_a_trial_stops_at_the_limit_and_is_incomplete(shop: Shop, provider: Start) -> None:
    """After a slow piece the master would need one call more than the seed did."""

    def dawdler(request: Request) -> Answer:
        return Answer("made 0 so far")

    one = provider({**ABILITIES, "novice": dawdler})
    shop.build(config(one.url, [[0, 0]]))
    assert shop.trials()[0] == "job-0/1:novice:incomplete"
    assert one.count("novice") == 2
    assert shop.labels() == [["mid", "mid"]]


def test_later_prefixes_hold_what_the_locked_models_really_said(shop: Shop, provider: Start) -> None:
    shop.build(config(provider().url, [[0, 1, 2]]))
    last = shop.read("question_bank.jsonl")[-1]["messages"]
    said = [message["content"] for message in last if message["role"] == "assistant"]
    assert [text.split(" after")[0] for text in said] == ["made 1 with skill 0", "made 1 with skill 1"]


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("volatile", [True, False])
def test_checkpoints_and_volatile_text_change_no_label(
    shop: Shop, provider: Start, checkpoints: bool, volatile: bool
) -> None:
    needs = [[0, 1, 2, 0]]
    shop.build(config(provider().url, needs, options={"checkpoints": checkpoints, "volatile": volatile}))
    assert shop.labels() == [["low", "mid", "high", "low"]]


def test_models_are_served_the_recorded_text_of_locked_steps(shop: Shop, provider: Start) -> None:
    """The clock moves at every replay; what a candidate sees of earlier steps does not."""
    one = provider()
    shop.build(config(one.url, [[0, 0, 2]], options={"volatile": True, "checkpoints": False}))
    rows = shop.read("question_bank.jsonl")
    for earlier, later in itertools.pairwise(rows):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    for row in rows:
        step = [seen.body["messages"] for seen in one.requests if len(seen.body["messages"]) == len(row["messages"])]
        assert row["messages"] in step


# What goes wrong, and what it must not do to a label

TECHNICAL = [
    "payload_200",
    "rate_limit",
    "server_500",
    "server_503",
    "drop",
    "cut",
    "not_json",
    "no_choices",
]


@pytest.mark.parametrize("fault", TECHNICAL)
def test_a_technical_fault_is_retried_then_blocks_the_step_and_never_raises_its_label(
    shop: Shop, provider: Start, fault: str
) -> None:
    one = provider({**ABILITIES, "novice": Failing(4, FAULTS[fault], apprentice(0))})
    result = shop.build(config(one.url, [[0, 0], [0]]))
    assert result.code == 3
    # Three requests for job-0, then two more for job-1, of which the second is answered.
    assert one.count("novice") == 3 + 2
    assert one.count("hand") == 0
    assert shop.labels() == [["low"]]
    assert sum(shop.manifest()["blocked"]["workshop"].values()) == 1
    assert "stepdown resume" in result.err
    told = stepdown("status", str(shop.run)).out.splitlines()
    assert told[2].startswith("blocked: 1 of workshop; a resume tries again: ")
    assert told[3] == "  workshop/job-0"

    assert shop.resume().code == 0
    assert shop.labels() == [["low", "low"], ["low"]]
    assert shop.manifest()["blocked"] == {}


def test_blocked_instances_can_be_given_up_and_are_counted(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": lambda request: FAULTS["server_500"]})
    shop.build(config(one.url, [[0], [0]]))
    before = one.count()
    assert shop.resume("--drop-blocked").code == 0
    assert one.count() == before
    (reason,) = shop.manifest()["dropped"]["workshop"]
    assert reason.startswith("given up: ")


def test_an_unknown_candidate_is_passed_over_where_another_of_its_tier_passes(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLED, "novice": lambda request: FAULTS["server_500"]})
    assert shop.build(config(one.url, [[0]], models=CASCADE)).code == 0
    assert shop.trials() == ["job-0/1:novice:technical", "job-0/1:clerk:pass"]
    assert shop.read("evidence.jsonl")[0]["lock"]["model"] == "clerk"


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (Answer("", finish="content_filter"), "refused"),
        (FAULTS["policy_400"], "refused"),
        (FAULTS["overflow_openai"], "fail"),
    ],
)
def test_a_content_filter_is_a_refusal_and_a_full_context_a_failure(
    shop: Shop, provider: Start, fault: Any, verdict: str
) -> None:
    one = provider({**ABILITIES, "novice": lambda request: fault})
    assert shop.build(config(one.url, [[0]])).code == 0
    assert shop.trials() == [f"job-0/1:novice:{verdict}", "job-0/1:hand:pass"]
    assert one.count("novice") == 1


def test_a_later_prefix_that_overflows_because_of_the_candidate_fails_the_candidate(
    shop: Shop, provider: Start
) -> None:
    def small_master(request: Request) -> Any:
        said = sum(len(message["content"]) for message in request["messages"])
        return FAULTS["overflow_openai"] if said > 5000 else apprentice(9)(request)

    def talker(request: Request) -> Answer:
        return Answer(worked(0, request["messages"]) + " and on" * 1000)

    one = provider({**ABILITIES, "novice": talker, "master": small_master})
    shop.build(config(one.url, [[0, 0]]))
    assert shop.trials()[0] == "job-0/1:novice:fail"
    # At the last step nothing comes after it.
    assert shop.labels() == [["mid", "low"]]


@pytest.mark.parametrize("fault", ["unauthorized", "no_credit", "forbidden", "unknown_model"])
def test_a_rejected_key_or_an_unknown_model_stops_the_run_without_a_verdict(
    shop: Shop, provider: Start, fault: str
) -> None:
    one = provider({**ABILITIES, "hand": Failing(1, FAULTS[fault], apprentice(1))})
    result = shop.build(config(one.url, [[1], [1], [1]]))
    assert result.code == 2
    assert "hand" in result.err
    assert len(result.err.strip().splitlines()[-1]) < 500
    assert one.count("hand") == 1
    # Once it is mended, the run goes on; nothing is asked twice but the rejected request.
    assert shop.resume().code == 0
    assert shop.labels() == [["mid"], ["mid"], ["mid"]]
    assert len(one.repeated()) == 1


def test_a_harness_that_breaks_blocks_its_instance_and_no_other(shop: Shop, provider: Start) -> None:
    result = shop.build(config(provider().url, [[0], [1]], options={"breaks_on": "spoilt with skill 0"}))
    assert result.code == 3
    assert shop.labels() == [["low"]]
    (reason,) = shop.manifest()["blocked"]["workshop"]
    assert "the workbench collapsed" in reason


def test_an_observation_that_is_not_the_recorded_one_is_technical(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volatile text without a mask: the replay shows another clock than the record."""
    monkeypatch.setattr(Workshop, "mask", None, raising=False)
    one = provider()
    settings = config(one.url, [[0, 0]], options={"volatile": True, "checkpoints": False})
    settings["protocol"]["workloads"][0]["harness"] = "tests.test_build:Unmasked"
    assert shop.build(settings).code == 3
    (reason,) = shop.manifest()["blocked"]["workshop"]
    assert "replay diverged" in reason


class Unmasked(Workshop):
    """A workshop that forgets to mask its clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.mask = None


def test_a_seed_that_does_not_pass_drops_its_instance_with_the_reason(shop: Shop, provider: Start) -> None:
    shop.build(config(provider({**ABILITIES, "master": apprentice(3)}).url, [[5], [0]]))
    assert shop.manifest()["dropped"] == {"workshop": {"no seed passed: fail": 1}}
    assert shop.labels() == [["low"]]


def test_seeds_are_tried_again_as_often_as_the_config_says_each_a_draw_of_its_own(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "master": Failing(2, Answer("spoilt"), apprentice(9))})
    settings = config(one.url, [[0]], options={"early": True})
    settings["protocol"]["workloads"][0]["seeds"]["attempts"] = 3
    assert shop.build(settings).code == 0
    assert one.count("master") == 3


def test_of_several_strong_models_the_one_that_made_the_seed_goes_on_and_the_other_is_not_probed(
    shop: Shop, provider: Start
) -> None:
    models = {"low": ["novice"], "high": ["deputy", "master"]}
    one = provider({**ABILITIES, "deputy": apprentice(3)})
    shop.build(config(one.url, [[5, 0], [1, 0]], models=models))
    assert shop.labels() == [["high", "low"], ["high", "low"]]
    assert [row["lock"]["model"] for row in shop.read("evidence.jsonl")] == ["master", "novice", "deputy", "novice"]


def test_pseudo_models_of_a_workload_need_no_provider(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0, 1]])
    for tier, name in zip(settings["protocol"]["pool"]["tiers"], ("skill-0", "skill-1", "reference"), strict=True):
        tier["models"] = [{"name": name, "model": f"workload/{name}"}]
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "reference"}
    assert shop.build(settings).code == 0
    assert shop.labels() == [["low", "mid"]]
    assert "not comparable" in shop.manifest()["seeds"]["note"]


def test_the_manifest_counts_what_the_protocol_needed_and_spend_what_was_paid(shop: Shop, provider: Start) -> None:
    one = provider()
    settings = config(one.url, [[0, 1]])
    for tier in settings["protocol"]["pool"]["tiers"]:
        tier["models"][0]["price"] = {"input": 10.0, "output": 100.0}
    shop.build(settings)
    needed = shop.manifest()["needed"]
    assert needed["calls"] == Counter(seen.model for seen in one.requests)
    # The loopback provider reports 11 prompt and 3 completion tokens a call.
    assert needed["list_price_usd"] == pytest.approx(one.count() * (11 * 10 + 3 * 100) / 1e6)
    spent = shop.read_json("spend.json")
    assert spent["usd"] == needed["list_price_usd"]
    assert spent["calls"] == one.count()


def test_one_cache_serves_many_runs(shop: Shop, provider: Start) -> None:
    one = provider()
    shared = {"operation": {"cache": "shared-cache", "workers": 1, "endpoints": {"default": {"api_base": one.url}}}}
    shop.build({**config(one.url, [[0, 1, 2]]), **shared})
    asked = one.count()
    again = Shop(shop.folder)
    again.run = shop.folder / "again"
    assert again.build({**config(one.url, [[0, 1, 2]]), **shared}).code == 0
    assert one.count() == asked
    assert again.files() == shop.files()
    assert again.read_json("spend.json")["calls"] == 0
    assert again.read_json("spend.json")["calls_paid_by_earlier_runs"] == asked


def test_what_was_unknown_when_the_run_stopped_is_tried_again(shop: Shop, provider: Start) -> None:
    """The first of the tier is down, the second's key is rejected: neither has been passed over."""
    one = provider(
        {
            **SKILLED,
            "novice": Failing(3, FAULTS["server_500"], apprentice(0)),
            "clerk": Failing(1, FAULTS["unauthorized"], apprentice(0)),
        }
    )
    assert shop.build(config(one.url, [[0]], models=CASCADE)).code == 2
    assert shop.resume().code == 0
    assert shop.trials() == ["job-0/1:novice:pass"]


@pytest.mark.parametrize("said", ["", " \n\t"])
def test_an_empty_answer_is_the_models_own_failure(shop: Shop, provider: Start, said: str) -> None:
    """Sent on in the history, it might look like a provider that is down."""
    one = provider({**ABILITIES, "novice": lambda request: Answer(said)})
    assert shop.build(config(one.url, [[0, 0]])).code == 0
    assert shop.trials()[0] == "job-0/1:novice:fail"


def test_a_reviewer_is_not_shown_what_befell_an_api(shop: Shop, provider: Start) -> None:
    """A technical sample among accepted and failed ones: its reason names a model."""
    one = provider({**ABILITIES, "novice": Failing(3, FAULTS["server_500"], apprentice(0))})
    rules = {"rules": {"acceptance": {"passes": 3, "of": 3}}, "audit": {"rate": 1.0}}
    assert shop.build(config(one.url, [[1]], protocol=rules)).code == 0
    assert "technical" in str(shop.trials())
    for entry in shop.read("audit_queue.jsonl"):
        assert "novice" not in str(entry)
        assert {trial["verdict"] for trial in entry["lower"]} == {"fail"}


def test_hints_are_paid_for_at_their_own_price(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "adviser": lambda request: Answer('{"tier": "mid"}')})
    adviser = {"name": "adviser", "model": "openai/adviser", "price": {"input": 1e6}}
    shop.build(config(one.url, [[1]], protocol={"hints": {"source": "model", "model": adviser}}))
    assert shop.read_json("spend.json")["usd"] == pytest.approx(11.0)
    assert shop.manifest()["needed"]["list_price_usd"] == pytest.approx(11.0)


def test_two_workloads_of_one_harness_are_told_apart_in_the_manifest(shop: Shop, provider: Start) -> None:
    settings = config(provider().url, [[0]])
    other = {**settings["protocol"]["workloads"][0], "harness": "tests.test_build:Annex", "options": {"early": True}}
    settings["protocol"]["workloads"].append(other)
    assert shop.build(settings).code == 0
    assert [entry["version"] for entry in shop.manifest()["workloads"]] == ["1-False-True-False", "1-True-True-False"]


class Annex(Workshop):
    """A second workshop, whose jobs have names of their own."""

    def instances(self, source: Any) -> Any:
        for instance in super().instances(source):
            yield replace(instance, id=f"annex-{instance.id}")


def test_control_characters_in_names_reach_no_terminal(shop: Shop, provider: Start) -> None:
    models = {"low\x1b]0;x": ["novice"], "[/x]": ["hand"], "high": ["master"]}
    result = shop.build(config(provider().url, [[0, 1]], models=models))
    assert result.code == 0
    assert "\x1b" not in result.out + result.err
    assert "[/x]" in result.out


def test_every_line_of_the_rows_is_a_record_for_any_reader(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": lambda r: Answer(worked(0, r["messages"]) + "\u2028\x85\u2029.")})
    assert shop.build(config(one.url, [[0, 0]])).code == 0
    text = (shop.run / "question_bank.jsonl").read_text()
    assert len(text.splitlines()) == 2
    assert "\u2028\x85\u2029." in shop.read("question_bank.jsonl")[1]["messages"][-2]["content"]
