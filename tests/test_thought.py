"""Thought that a server left in the text of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.actions.thought import separated

ANSWERS = [
    ("<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>b<|end_of_solution|>", "b"),
    ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "b"),
    ("<|START_RESPONSE|>b", "b"),
    ("<|think_start|>a<|think_end|>b", "b"),
    ("<|thinking|>a<|/thinking|>b", "b"),
    ("<|thought_start|>a", ""),
    ("<ifm|think>a</ifm|think>b", "b"),
    ("analysisLet me think.assistantfinalb is B", "b is B"),
    ("a\n</think>\n\nCanberra", "Canberra"),
    ("\n<think>\n17\n</think>\n\n42", "42"),
    ("<think>\nLet me see", ""),
    ("thought.</think>Answer", "Answer"),
    ("so 42</think>42", "42"),
    ("so 42 is it. </think> 42", "42"),
    ("Use the `</think>` tag to close.", "Use the `</think>` tag to close."),
    ("The tag </think> ends a thought.", "The tag </think> ends a thought."),
    ("Write <think>plan</think> before the answer.", "Write <think>plan</think> before the answer."),
    ("It ends with </think>.", "It ends with </think>."),
    ("Example:\n```\n<think>\nfoo\n</think>\nDone\n```\nok", "Example:\n```\n<think>\nfoo\n</think>\nDone\n```\nok"),
    ("Example:\n<think>\nfoo\n</think>\nDone", "Example:\n<think>\nfoo\n</think>\nDone"),
    ("<think>a</think>Use the `</think>` tag", "Use the `</think>` tag"),
    ("<think>a</think>The tag </think> ends it.", "The tag </think> ends it."),
    ("<think></think>\n\nhi", "hi"),
    ("<thinking>a</thinking>\nb", "b"),
    ("[THINK]a[/THINK]b", "b"),
    ("a[/THINK]b", "b"),
    ("<seed:think>a</seed:think>b", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "b"),
    ("<|channel|>analysis<|message|>a", ""),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
    ("analysisWe think.assistantfinalThe answer", "The answer"),
    ("analysis of the final Answer", "analysis of the final Answer"),
    ("\u25c1think\u25b7a\u25c1/think\u25b7b", "b"),
    ("<|START_THINKING|>a<|END_THINKING|>b", "b"),
    ("<THINK>a</THINK>b", "b"),
    ("<think>a</think>\n<think>b</think>\nc", "c"),
    ("<think>I use <think> tags</think>\nx", "x"),
    ("</think>\n\nx", "x"),
    ("</think>", ""),
    ("<think>a</think>", ""),
    ("x < 3 and y > 2", "x < 3 and y > 2"),
    (
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
    ),
    ("<thought>a</thought>b", "b"),
    ("<|channel>thought\nfoo<channel|>bar", "bar"),
    ("no tags", "no tags"),
    ("  spaced ", "  spaced "),
    ("<answer>x</answer>", "<answer>x</answer>"),
    ("I said: '</think>' is it\nok", "I said: '</think>' is it\nok"),
    ("The user asks. I could write code:\n```py\nx\n```\nDone.\n</think>\nfinal", "final"),
    ("<think>\nThe tag `</think>` is odd.\n</think>\nok", "ok"),
    ("<reasoning>a</reasoning><answer>b</answer>", "<answer>b</answer>"),
    ("Thinking about it\n</thinking>\nok", "ok"),
    ("</think> is the closing tag.", "</think> is the closing tag."),
]


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_the_answer_is_what_follows_the_thought(text: str, answer: str) -> None:
    assert separated(text).answer == answer


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>a</think>b", "a"),
        ("a\n</think>\nb", "a"),
        ("<think>\na", "a"),
        ("<think>a</think>\n<think>b</think>c", "a\nb"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "a"),
        ("b", ""),
    ],
)
def test_the_thought_is_kept(text: str, thought: str) -> None:
    assert separated(text).thought == thought


def test_what_is_put_to_a_tool_is_no_thought() -> None:
    call = '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
    assert separated(f"<|channel|>analysis<|message|>a<|end|>{call}") == ("a", call)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_closed_thought_is_apart_from_any_answer(thought: str, answer: str) -> None:
    if not {"<", "[", "\u25c1"} & {*thought, *answer}:
        found = separated(f"<think>\n{thought}\n</think>\n\n{answer}")
        assert (found.thought, found.answer) == (thought.strip(), answer.lstrip())


@given(st.text(alphabet="<|>[]/`\n .thinkTHINKsemag", max_size=80))
def test_any_text_is_separated_without_a_crash(text: str) -> None:
    assert len(separated(text).answer) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 20_000,
        "<think></think>" * 50_000,
        "`</think>`" * 50_000,
        "the </think> a " * 50_000,
        "```\n</think> a" * 50_000,
    ],
)
def test_a_hostile_text_is_separated_in_time(text: str) -> None:
    separated(text)
