"""What servers really send, each in one whole run: the labels are those that the models' abilities give."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from stepdown.builder.records import Instance, Response
from tests.conftest import Result, Shop, stepdown
from tests.provider import Ability, Answer, Fault, Provider, error
from tests.test_reasoning import Round, Sums
from tests.test_reported_cost import silent
from tests.workshop import ABILITIES, config, worked

Start = Callable[..., Provider]
NEEDS = [[0, 1], [1], [9, 0]]
LABELS = [["low", "mid"], ["mid"], ["high", "low"]]
"""The apprentices' skills are 0, 1 and 9: a piece is labelled with the first that is skilled enough."""


def saying(skill: int, text: Callable[[str], str], **fields: Any) -> Ability:
    """An apprentice whose server sends his words in a form of its own."""
    return lambda request: Answer(text(worked(skill, request["messages"])), **fields)


def test_a_thought_in_the_text_is_not_graded_however_its_tags_stand(shop: Shop, provider: Start) -> None:
    """The thought of who can not make the piece says that he made it, and of who can that he did not."""
    one = provider(
        {
            "novice": saying(0, lambda said: f"made 1, I think.\n</think>\n\n{said}"),
            "hand": saying(1, lambda said: f"\n<think>\nspoilt?\n</think>\n\n{said}"),
            "master": saying(9, lambda said: f"<think>spoilt</think>{said}"),
        }
    )
    assert shop.build(config(one.url, NEEDS)).code == 0
    assert shop.labels() == LABELS
    assert "think" not in (shop.run / "question_bank.jsonl").read_text()


def test_a_thought_that_never_ends_is_no_answer(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": saying(9, lambda said: f"<think>\n{said}", finish="length")})
    assert shop.build(config(one.url, [[0]])).code == 0
    assert shop.labels() == [["mid"]]


SUMS: dict[str, Any] = {"harness": "tests.test_reasoning:Sums", "source": {}, "seeds": {"source": "collect"}}
ADDING = Answer(None, (("math_add", '{"a": 1}'),))


class _Strict(Round):
    """Adds with the one tool that there is."""

    def advance(self, response: Response) -> bool:
        made_up = any(call.name != "math.add" for call in response.tool_calls)
        return super().advance(replace(response, tool_calls=()) if made_up else response)


class OnlyReal(Sums):
    """Sums in which a call of a tool that does not exist fails."""

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Round]:
        yield _Strict()


def sums(shop: Shop, one: Provider) -> Result:
    """A build of a task of three tool calls."""
    settings = config(one.url, [])
    settings["protocol"]["workloads"] = [SUMS]
    return shop.build(settings)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "math_add", "arguments": {"a": 1}}\n</tool_call>',
        '[TOOL_CALLS]math_add{"a": 1',
        '<|python_tag|>{"name": "math_add", "parameters": {"a": 1}}',
        "<function=math_add>\n<parameter=a>\n1\n</parameter>",
    ],
)
def test_calls_left_as_text_fail_and_one_warning_names_the_cure(shop: Shop, provider: Start, text: str) -> None:
    one = provider({"novice": lambda request: Answer(text), "hand": lambda request: ADDING, "master": lambda _: ADDING})
    result = sums(shop, one)
    assert result.code == 0
    assert shop.labels() == [["mid"] * 3]
    (warning,) = [line for line in result.err.splitlines() if "leaves tool calls as text" in line]
    assert "tool parser" in warning


def test_a_pseudo_tool_is_not_unpacked_into_calls_that_pass(shop: Shop, provider: Start) -> None:
    uses = {"tool_uses": [{"recipient_name": "functions.math_add", "parameters": {"a": 1}}]}
    parallel = Answer(None, (("multi_tool_use.parallel", json.dumps(uses)),))
    one = provider({"novice": lambda _: parallel, "hand": lambda _: ADDING, "master": lambda _: ADDING})
    settings = config(one.url, [])
    settings["protocol"]["workloads"] = [SUMS | {"harness": "tests.test_whole_runs:OnlyReal"}]
    assert shop.build(settings).code == 0
    assert shop.labels() == [["mid"] * 3]


def test_with_a_proxy_set_a_whole_run_asks_loopback_directly(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, proxy = provider(), provider({})
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert shop.build(config(one.url, NEEDS)).code == 0
    assert shop.labels() == LABELS
    assert proxy.count() == 0


def test_a_budget_in_dollars_ends_a_run_whose_server_never_tells_its_usage(shop: Shop, provider: Start) -> None:
    one = provider({"novice": silent(0), "hand": silent(1), "master": silent(9)})
    settings = config(one.url, [[0, 1, 9]] * 20, operation={"budget": {"usd": 0.01}})
    for tier in settings["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = {"input": 20, "output": 60}
    result = shop.build(settings)
    assert result.code == 3
    assert "budget of usd is reached" in result.err
    spend = shop.read_json("spend.json")
    paid = spend["usd"] + spend["unbooked"]["usd"]
    dearest = 0.005
    assert 0.01 <= paid < 0.01 + dearest, "at most by the one call in hand"
    assert spend["estimated_calls"] == spend["calls"] > 0
    assert 0 < one.count() < 60, "the seeds alone would take as many"
    asked = one.count()
    assert shop.resume().code == 3
    assert one.count() == asked
    settings["operation"]["budget"]["usd"] = 100
    assert shop.resume("--config", str(shop.write(settings, "more.yaml"))).code == 0
    assert shop.labels() == [["low", "mid", "high"]] * 20


def test_cached_tokens_cost_as_input_where_no_price_is_stated_for_them(shop: Shop, provider: Start) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "cached_tokens": 900}
    one = provider(
        {name: saying(skill, str, usage=usage) for name, skill in (("novice", 0), ("hand", 1), ("master", 9))}
    )
    settings = config(one.url, NEEDS)
    for tier in settings["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = {"input": 1000, "output": 0}
    assert shop.build(settings).code == 0
    assert shop.read_json("spend.json")["usd"] == pytest.approx(one.count())


TOO_LONG = {
    "its own words": error(400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"),
    "a gateway's": Fault(
        502,
        {
            "error": {
                "message": "Provider returned error",
                "code": 502,
                "metadata": {"raw": '{"error":{"message":"invalid params, context window exceeds limit (2013)"}}'},
            }
        },
    ),
    "n_keep": Fault(400, {"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}),
    "finish reason": Answer("made", finish="model_context_window_exceeded"),
}


@pytest.mark.parametrize("given", TOO_LONG.values(), ids=TOO_LONG)
def test_a_prompt_too_long_is_the_candidate_s_own_failure(shop: Shop, provider: Start, given: Answer | Fault) -> None:
    one = provider({**ABILITIES, "novice": lambda request: given})
    assert shop.build(config(one.url, [[0], [1]])).code == 0
    assert shop.labels() == [["mid"], ["mid"]]


NEVER = {
    "parameter": (error(400, "Unsupported parameter: 'max_tokens' is not supported with this model."), "`max_tokens`"),
    "tools": (error(400, "m does not support tools"), "`actions: json_schema`"),
    "parser": (
        error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        "parser",
    ),
}


@pytest.mark.parametrize(("fault", "cure"), NEVER.values(), ids=NEVER)
def test_a_request_that_can_never_succeed_stops_the_run_at_the_first(
    shop: Shop, provider: Start, fault: Fault, cure: str
) -> None:
    one = provider({"novice": lambda _: fault, "hand": lambda _: ADDING, "master": lambda _: ADDING})
    settings = config(one.url, [])
    settings["protocol"]["workloads"] = [SUMS]
    for tier in settings["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["parameters"] = {"max_tokens": 100}
    result = shop.build(settings)
    assert result.code == 2
    assert cure in result.err
    assert one.count("novice") == 1


@pytest.mark.parametrize("text", [None, ""])
def test_an_answer_of_nothing_blocks_and_makes_no_label_high(shop: Shop, provider: Start, text: str | None) -> None:
    usage = {"prompt_tokens": 56447, "completion_tokens": 0, "total_tokens": 56447}
    abilities: Mapping[str, Ability] = {**ABILITIES, "novice": lambda request: Answer(text, usage=usage)}
    one = provider(abilities)
    assert shop.build(config(one.url, [[0], [1]])).code == 3
    assert not shop.read("question_bank.jsonl")
    assert "nothing was generated" in stepdown("status", str(shop.run)).out
