"""A case as a judge model is shown it: the rubric, then every foreign text between marks that no such text contains."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from stepdown.builder.records import Prefix
from stepdown.judges.case import JudgeCase, RefusalCase
from stepdown.judges.guards import UnsourcedItem
from stepdown.judges.prompts import prompt
from stepdown.judges.report import TOOL_NAME, report_tool
from stepdown.judges.text import visible


def rendered(case: JudgeCase, items: Sequence[UnsourcedItem]) -> Prefix:
    """The messages and the tool that a judge model gets."""
    blocks = list(_blocks(case, items))
    mark = fence(case, [text for _, text in blocks])
    parts = [f"Every block begins and ends with a line that starts with {mark}"]
    parts += [f"{mark} {name}\n{text}\n{mark} end of {name}" for name, text in blocks]
    parts.append(f"Examine the candidate's answer above and call `{TOOL_NAME}` once.")
    return Prefix.start(
        [
            {"role": "system", "content": f"{prompt('rubric')}\n{prompt(case.kind)}"},
            {"role": "user", "content": "\n\n".join(parts)},
        ],
        tools=[report_tool()],
    )


def fence(case: JudgeCase | RefusalCase, texts: Sequence[str]) -> str:
    """A mark that looks random, is always the same for the same case, and occurs in none of the texts.

    It is a digest of the whole case, so nobody can write a text that contains its own mark.
    """
    number = 0
    while True:
        mark = f"==={hashlib.sha256(f'{case.digest}{number}'.encode()).hexdigest()[:24]}"
        if not any(mark in text for text in texts):
            return mark
        number += 1


def _blocks(case: JudgeCase, items: Sequence[UnsourcedItem]) -> Iterator[tuple[str, str]]:
    """What is shown, as (name, text). Every text is somebody else's."""
    for number, turn in enumerate(case.turns[:-1], 1):
        yield f"earlier turn {number}", f"{visible(turn.speaker)}: {visible(turn.text)}"
    last = case.turns[-1]
    yield "query" if case.kind != "rag" else "current turn", f"{visible(last.speaker)}: {visible(last.text)}"
    for number, passage in enumerate(case.evidence, 1):
        name = f"evidence {number} ({passage.label})" if passage.label else f"evidence {number}"
        yield name, "\n".join(part for part in (visible(passage.title), visible(passage.text)) if part)
    for number, reference in enumerate(case.references, 1):
        yield f"reference answer {number} (a hint at coverage, no evidence)", visible(reference)
    if case.note:
        yield "about answers of this workload", visible(case.note)
    yield "candidate's answer", visible(case.answer)
    if items:
        yield "items of the answer to settle", "\n".join(_item(number, item) for number, item in enumerate(items, 1))


def _item(number: int, item: UnsourcedItem) -> str:
    said = " (the user said it)" if item.said_by_user else ""
    return f"{number}. {item.kind} {item.text!r}{said} in: {item.context!r}"
