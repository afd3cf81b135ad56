"""What the review page makes of a text: all of it is there, in order, and nothing in it is lost or added."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepdown.audit.cases import ReviewCase
from stepdown.audit.web.outline import Outline, outline
from stepdown.builder.pages.blocks import blocks, laid_out, regions
from stepdown.builder.pages.styled import search_pattern, styled
from stepdown.builder.pages.turns import text_windows, texts_of
from stepdown.builder.pages.windows import PORTION, portion_end, windows
from stepdown.builder.records import Message
from tests.audit.gallery import DIFF

WORDS = st.sampled_from(
    """```|```diff¶|~~~¶|¶|¶¶|@@ -1,2 +1 @@¶|@@ -1 +1 @@ x¶|+a¶|-b¶| c¶|\\ No¶|--- a¶|+++ b¶|*** Begin Patch¶
    |*** Add File: x¶|diff --git a b¶|word |é|a long line that is longer than others are""".replace("¶", "\n").split(
        "|"
    )
)
TEXTS = st.lists(WORDS | st.text(max_size=5), max_size=40).map("".join)


def case(messages: list[Message], **more: Any) -> ReviewCase:
    return ReviewCase(
        id="w/i/1",
        benchmark="w",
        instance_id="i",
        step_index=1,
        total_steps=1,
        messages=tuple(messages),
        tools=more.get("tools", ()),
        prefix_digest="0f",
        tier="mid",
        tier_id=1,
        below="low",
        response={"role": "assistant", "content": "done"},
        lower=(),
    )


@given(TEXTS, st.booleans(), st.integers(6, 400), st.sampled_from(["", "a", "word", "@@", "\n"]))
@example("```\n```", False, 6, "")
def test_the_windows_and_lines_of_a_text_are_the_text(text: str, mono: bool, limit: int, query: str) -> None:
    pattern = search_pattern(query)
    found = regions(text, mono)
    assert "".join(text[r.start : r.end] for r in found) == text
    cut = windows(text, limit, pattern)
    assert "".join(text[w.start : w.end] for w in cut) == text
    assert all(w.size > 0 for w in cut) or text == ""
    for window in cut:
        shown = blocks(text, found, window.start, window.end, pattern)
        said = [piece for block in shown for _, run in block.runs for piece in run]
        if not any(piece.kind == "unseen" for piece in said):
            assert "".join(piece.text for piece in said) == text[window.start : window.end]


@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_character_that_could_hide_or_turn_text_reaches_the_page_as_itself(text: str) -> None:
    shown = "".join(piece.text for piece in styled(text))
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]", shown
    )
    shown.encode()


def test_unseen_characters_are_named_and_runs_of_them_counted() -> None:
    found = list(styled("a\x1b[2J\u202e" + "\x00" * 900 + "\U000e0041b\r\n", search_pattern("A")))
    assert [(piece.kind, piece.text) for piece in found] == [
        ("mark", "a"),
        ("unseen", "ESC"),
        ("", "[2J"),
        ("unseen", "U+202E"),
        ("unseen", "NUL×900"),
        ("unseen", "U+E0041"),
        ("", "b"),
        ("unseen", "CR"),
        ("", "\n"),
    ]
    assert found[3].title == "U+202E RIGHT-TO-LEFT OVERRIDE"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
)


@given(JSON, st.sampled_from([None, 2]))
def test_json_is_laid_out_token_by_token(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    laid = laid_out(text)
    if not text.startswith(("{", "[")):
        assert laid is None
        return
    assert laid is not None
    assert json.loads(laid) == value
    strings = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
    assert strings.findall(laid) == strings.findall(text)
    assert re.sub(r"\s", "", strings.sub("", laid)) == re.sub(r"\s", "", strings.sub("", text))


@pytest.mark.parametrize("text", ["{", "[1,]", "[" * 100_000, "{}x", '{"a": 1', "[1] [2]"])
def test_what_is_no_json_is_left_as_it_is(text: str) -> None:
    assert laid_out(text) is None


def kinds(text: str) -> list[tuple[str, str]]:
    return [(region.kind, text[region.start : region.end]) for region in regions(text, mono=True)]


def test_a_diff_is_known_line_by_line() -> None:
    assert kinds(f"see:\n{DIFF}after\n") == [
        ("", "see:\n"),
        ("meta", "diff --git a/bench.py b/bench.py\n--- a/bench.py\n+++ b/bench.py\n"),
        ("hunk", "@@ -1,3 +1,3 @@ class Bench:\n"),
        ("", " def make(piece):\n"),
        ("del", "-    return piece\n"),
        ("add", "+    return shaped(piece)\n"),
        ("", " # end\n"),
        ("", "after\n"),
    ]


def test_a_removed_line_that_looks_like_a_file_header_is_a_removed_line() -> None:
    assert ("del", "--- a comment\n") in kinds("@@ -1,2 +1,1 @@\n--- a comment\n x\n")
    assert ("meta", "--- a\n+++ b\n") in kinds("@@ -1 +1 @@\n-x\n+y\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n")


def test_text_with_dashes_and_pluses_is_no_diff() -> None:
    assert kinds("- one\n+ two\n--- three\n") == [("", "- one\n+ two\n--- three\n")]


def arguments(given: str) -> list[tuple[str, str]]:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": given}}]
    call = outline(case([{"role": "assistant", "content": "", "tool_calls": calls}])).turns[0].calls[0]
    return [(one.name, one.text.text) for one in call.arguments] if call.whole is None else [("?", call.whole.text)]


def test_arguments_of_a_call_are_shown_as_they_were_written() -> None:
    assert arguments('{"command": "a\\nb", "n": 1.50, "big": 12345678901234567890, "s": "1.50", "none": null}') == [
        ("command", "a\nb"),
        ("n", "1.50"),
        ("big", "12345678901234567890"),
        ("s", '"1.50"'),
        ("none", "null"),
    ]
    assert arguments('{"a": {"b": [1e2, {"c": "é"}]}}') == [("a", '{\n  "b": [\n    1e2,\n    {"c": "é"}\n  ]\n}')]
    for odd in ('{"a": 1, "a": 2}', "[1]", "{not json", "", '{"a": ' + "[" * 100_000):
        assert [name for name, _ in arguments(odd)] == ["?"]


@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]), JSON), max_size=4))
@settings(max_examples=60)
def test_no_message_is_too_odd_to_be_shown(messages: list[dict[str, Any]]) -> None:
    made = outline(case(messages), search_pattern("a"))
    assert len(made.turns) == len(messages)
    for turn in made.turns:
        for text in texts_of(turn):
            assert made.texts[text.number].text == text.text
            text_windows(text)


def folding(made: Outline) -> list[int]:
    return [turn.number for turn in made.turns if turn.is_open]


def test_old_turns_of_a_long_prefix_are_folded_but_for_the_task_and_what_is_searched_for() -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}]
    messages += [{"role": "assistant", "content": f"turn {number}"} for number in range(3, 21)]
    assert folding(outline(case(messages))) == [2, 17, 18, 19, 20]
    assert folding(outline(case(messages), search_pattern("TURN 9"))) == [2, 9, 17, 18, 19, 20]
    assert folding(outline(case(messages[:8]))) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_a_page_shows_at_once_is_bounded_however_long_the_prefix() -> None:
    made = outline(case([{"role": "tool", "content": f"{number} " * 20_000} for number in range(300)]))
    shown = [sum(w.size for w in windows(t.text, t.limit) if w.shown) for turn in made.turns for t in turn.texts]
    assert sum(shown) < 800_000
    assert shown[-1] > 7_000
    assert min(shown) > 400


def test_a_text_of_one_line_is_cut_into_portions_too() -> None:
    text = "x" * (3 * PORTION + 7)
    at, ends = 0, []
    while at < len(text):
        at = portion_end(text, at, len(text))
        ends.append(at)
    assert ends == [PORTION, 2 * PORTION, 3 * PORTION, len(text)]
