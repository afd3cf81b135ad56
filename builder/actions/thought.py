"""A thought that a server left in the text of an answer, where others send it apart as `reasoning_content`."""

from __future__ import annotations

import re
from bisect import bisect
from typing import NamedTuple

_TAGS = (
    *(
        (rf"<{name}>", rf"</{name}>")
        for name in (r"(?:[\w-]+:)?think", "thinking", "thoughts?", "reasoning", "longcat_think", r"think_\w+")
    ),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|think\|>", r"<\|/think\|>"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (
        r"<\|(?:thinking|(?:think(?:ing)?|thought|reasoning)_(?:start|begin))\|>",
        r"<\|(?:/thinking|(?:think(?:ing)?|thought|reasoning)_end)\|>",
    ),
    (r"<\w+\|think>", r"</\w+\|think>"),
    (r"<\|channel>thought", r"<channel\|>"),
    (r"<unused94>", r"<unused95>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
)
"""What begins a thought and what ends it, by family of models."""
_PAIRS = tuple((re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE)) for begin, end in _TAGS)

_CHANNEL = re.compile(r"(?:<\|start\|>\w*)?<\|channel\|>([^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start)\|>")
_BARE_CHANNELS = re.compile(
    r"\s*analysis(?=[A-Z])(?P<thought>.*?)(?:assistantfinal|final(?=[^a-z\s]))(?P<answer>.*)", re.DOTALL
)
"""The same where the server has dropped the special tokens."""

_ANSWER = re.compile(
    r"\s*<\|(?:START_RESPONSE|begin_of_solution)\|>(.*?)(?:<\|(?:END_RESPONSE|end_of_solution)\|>\s*|\Z)", re.DOTALL
)
"""What some families put around the answer itself."""

_QUOTES = "`'\""
_NEAR = 80
"""Characters around a tag that say whether it divides."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


class Separated(NamedTuple):
    """A text as thought and answer; the answer is the text itself where there is no thought in it."""

    thought: str
    answer: str


def separated(text: str) -> Separated:
    """What a model thought, and what it answered.

    A thought stands before the answer. Its opening tag may be missing, since many chat templates write it into the
    prompt; without the closing one there is no answer. A tag that an answer only mentions is a word like another.

    >>> separated("The capital is no harbour.\\n</think>\\n\\nCanberra")
    Separated(thought='The capital is no harbour.', answer='Canberra')
    >>> separated("The tag </think> ends a thought.").answer
    'The tag </think> ends a thought.'
    """
    if "<|channel|>" in text and _CHANNEL.match(text.lstrip()):
        return _channels(text)
    if bare := _BARE_CHANNELS.fullmatch(text):
        return Separated(bare["thought"].strip(), bare["answer"].strip())
    thoughts: list[str] = []
    rest = text
    while (cut := _opened(rest)) is not None:
        thoughts.append(cut.thought)
        rest = cut.answer
    if not thoughts and (cut := _unopened(rest)) is not None:
        thoughts.append(cut.thought)
        rest = cut.answer
    if wrapped := _ANSWER.fullmatch(rest):
        rest = wrapped[1].strip()
    return Separated("\n".join(filter(None, thoughts)), rest) if rest is not text else Separated("", text)


def _opened(text: str) -> Separated | None:
    """The thought that a text begins with; all of it where it never ends."""
    bare = text.lstrip()
    for begin, end in _PAIRS:
        if opening := begin.match(bare):
            closing = next((each for each in end.finditer(bare) if not _is_quoted(bare, each)), None)
            if closing is None:
                return Separated(bare[opening.end() :].strip(), "")
            return Separated(bare[opening.end() : closing.start()].strip(), bare[closing.end() :].lstrip())
    return None


def _unopened(text: str) -> Separated | None:
    """The thought before a closing tag that nothing opened."""
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    for begin, end in _PAIRS:
        opening = next((each.start() for each in begin.finditer(text) if not _is_quoted(text, each)), len(text))
        for closing in end.finditer(text, 0, opening):
            in_code = bisect(fences, closing.start()) % 2
            if not in_code and _ends_a_thought(text, closing):
                return Separated(text[: closing.start()].strip(), text[closing.end() :].lstrip())
    return None


def _ends_a_thought(text: str, closing: re.Match[str]) -> bool:
    """Whether a closing tag divides a text: within a sentence or in quotes it is only mentioned."""
    before = text[max(0, closing.start() - _NEAR) : closing.start()]
    after = text[closing.end() : closing.end() + _NEAR]
    if _is_quoted(text, closing):
        return False
    said = before.rstrip(" \t")
    alone = said.endswith("\n") or not after.strip(" \t") or after.lstrip(" \t").startswith("\n")
    sentence_ends = said != "" and said[-1] in ".!?]}*\u2026\u3002\uff01\uff1f"
    attached = said == before and not after.startswith((" ", ".", ",", ";", ":", ")"))
    return alone or sentence_ends or attached


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    before, after = text[max(0, tag.start() - 1) : tag.start()], text[tag.end() : tag.end() + 1]
    return before != "" and before in _QUOTES and before == after


def _channels(text: str) -> Separated:
    """An answer in channels: `analysis` is thought, `final` the answer. What is put to a tool stays as it is."""
    thoughts: list[str] = []
    answers: list[str] = []
    heads = list(_CHANNEL.finditer(text))
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.end() : after.start() if after else len(text)]
        channel = head[1].strip()
        if " to=" in f" {channel}":
            answers.append(f"{head[0]}{body}")
        else:
            (thoughts if channel.startswith("analysis") else answers).append(_CHANNEL_END.split(body)[0].strip())
    return Separated("\n".join(filter(None, thoughts)), "\n".join(filter(None, answers)))
