"""What a variant shows of a prefix: the same length, in every message, and nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.config.pool import Model
from stepdown.builder.continuations.checkpoints import steps_json, steps_of
from stepdown.builder.continuations.executing import capped
from stepdown.builder.continuations.plan import Replacement
from stepdown.builder.continuations.variants import Shown, TooSlow, found_texts, neutral_text, with_neutral_texts
from stepdown.builder.errors import Technical
from stepdown.builder.records import Prefix, Reasoning, Response, Step, ToolCall, Usage

JAILBREAK = 'Be "free"\nnow.'
SIGNS = 'ab"\\\n '
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "note", "description": "", "parameters": {"type": "object"}}}
]


def prefix_with(*contents: str) -> Prefix:
    return Prefix.start([{"role": "user", "content": one} for one in contents], TOOLS)


def respond(prefix: Prefix, argument: str, result: str) -> Prefix:
    answer = Response("", (ToolCall("note", json.dumps({"text": argument, "n": 1})),))
    number = f"call_{prefix.calls + 1}"
    return prefix.respond(answer, [{"role": "tool", "tool_call_id": number, "content": result}])


@given(length=st.integers(0, 2000), text=st.text(min_size=1, max_size=40))
def test_a_neutral_text_has_exactly_the_length(length: int, text: str) -> None:
    assert len(neutral_text(length, text)) == len(neutral_text(length)) == length


@given(
    texts=st.lists(st.text('ab"\\\n ', min_size=1, max_size=8), min_size=1, max_size=4),
    body=st.text('ab"\\\n ', max_size=80),
)
def test_whatever_is_replaced_every_content_keeps_its_length(texts: list[str], body: str) -> None:
    prefix = prefix_with(body, "".join(texts))
    found = [(text, "zz") for wanted in texts for text in found_texts(prefix, Replacement(text=wanted), None)]
    shown = Shown(prefix, with_neutral_texts(found)).of(prefix)
    assert [len(m["content"]) for m in shown.messages] == [len(m["content"]) for m in prefix.messages]
    longest = max(texts, key=len)
    assert all(longest not in message["content"] for message in shown.messages)


def test_a_text_is_replaced_wherever_it_stands_now_and_later_and_in_arguments_too() -> None:
    start = prefix_with(f"Do it. {JAILBREAK} Thanks.")
    [found] = found_texts(start, Replacement(text=JAILBREAK), None)
    shown = Shown(start, with_neutral_texts([(found, None)]))
    later = respond(respond(start, f"heard: {JAILBREAK}", f"you said {JAILBREAK}"), "plain", "fine")
    seen = shown.of(later)
    assert "free" not in json.dumps(list(seen.messages))
    arguments = json.loads(seen.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert (arguments["n"], len(arguments["text"])) == (1, len(f"heard: {JAILBREAK}"))
    assert seen.messages[3:] == later.messages[3:], "what holds nothing of it stays as it is"
    assert later.messages[0]["content"].count(JAILBREAK) == 1
    assert seen.canonical != later.canonical, "another question"
    assert seen.tools == later.tools


def test_a_pattern_finds_texts_at_the_checkpoint_and_its_group_says_which_part() -> None:
    prefix = prefix_with("<attack>be free</attack> and <attack>be bold</attack>", "nothing")
    whole = Replacement(pattern="<attack>.*?</attack>")
    part = Replacement(pattern="<attack>(.*?)</attack>", by="calm")
    assert found_texts(prefix, whole, None) == ["<attack>be free</attack>", "<attack>be bold</attack>"]
    found = found_texts(prefix, part, None)
    shown = Shown(prefix, with_neutral_texts([(text, part.by) for text in found])).of(prefix)
    assert shown.messages[0]["content"] == "<attack>calm ca</attack> and <attack>calm ca</attack>"
    assert found_texts(prefix, Replacement(), "and") == ["and"]
    assert found_texts(prefix, Replacement(pattern="x*"), None) == [], "an empty text is none"


def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TooSlow):
        found_texts(
            prefix_with("a" * 4000 + "!"), Replacement(pattern=r"(?:a|aa|aaa)+(?<=b)c|(a*)*(a*)*(a*)*\1b"), None
        )


def test_feedback_stands_after_the_checkpoint_for_good_and_reasoning_moves_with_its_messages() -> None:
    start = respond(prefix_with("go"), "a", "b")
    shown = Shown(start, said="Mind the policy.")
    later = respond(start, "c", "d")
    seen = shown.of(later)
    assert [message["role"] for message in seen.messages] == ["user", "assistant", "tool", "user", "assistant", "tool"]
    assert seen.messages[3] == {"role": "user", "content": "Mind the policy."}
    moved = shown.places({1: Reasoning("early"), 3: Reasoning("late")})
    assert {place: seen.messages[place]["role"] for place in moved} == {1: "assistant", 4: "assistant"}
    assert Shown(start).places({3: Reasoning("late")}) == {3: Reasoning("late")}
    with pytest.raises(Technical):
        shown.of(prefix_with("another chat"))


def test_long_results_of_tools_are_cut_off_and_nothing_else_is() -> None:
    start = respond(prefix_with("a long order"), "a long argument", "a long result")
    seen = Shown(start, longest_result=6).of(start)
    assert [message["content"] for message in seen.messages] == ["a long order", "", "a long"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {"max_tokens": 100}),
        ({"max_tokens": 50, "temperature": 0}, {"max_tokens": 50, "temperature": 0}),
        ({"max_tokens": 500}, {"max_tokens": 100}),
        ({"max_completion_tokens": 500}, {"max_completion_tokens": 100}),
    ],
)
def test_an_answer_is_capped_where_the_model_does_not_say_less(parameters: dict[str, Any], expected: Any) -> None:
    model = Model(name="m", model="openai/m", parameters=parameters)
    asked = model.asked
    assert capped(model, 100).parameters == expected
    assert (capped(model, 100).asked == asked) is (parameters == expected), "the cache's key knows the cap"


def test_a_trajectory_is_the_same_after_json() -> None:
    start = prefix_with("go")
    second = respond(start, "a", "b")
    third = second.with_tools([*TOOLS, {**TOOLS[0], "function": {**TOOLS[0]["function"], "name": "other"}}])
    other = prefix_with("a chat that was begun anew")
    steps = tuple(
        Step(prefix, Response(f"answer {n}", usage=Usage(1, 2, 3, 4), extra={"reasoning": "so"}), f"m{n}")
        for n, prefix in enumerate((start, second, third, other))
    )
    again = steps_of(json.loads(json.dumps(steps_json(steps))), None)
    assert [(one.prefix.exact, one.response, one.model) for one in again] == [
        (one.prefix.exact, one.response, one.model) for one in steps
    ]
