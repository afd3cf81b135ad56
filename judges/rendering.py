"""A case as a judge model is shown it: the rubric, then every foreign text between marks that it cannot contain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from stepdown.builder.records import Prefix
from stepdown.judges.case import Case
from stepdown.judges.guards import Item
from stepdown.judges.prompts import prompt
from stepdown.judges.report import NAME, tool
from stepdown.judges.text import visible


def rendered(case: Case, items: Sequence[Item]) -> Prefix:
    """The question that is put to a judge model."""
    blocks = list(_blocks(case, items))
    mark = fence(case, [text for _, text in blocks])
    parts = [f"Every block begins and ends with a line that starts with {mark}"]
    parts += [f"{mark} {name}\n{text}\n{mark} end of {name}" for name, text in blocks]
    parts.append(f"Examine the candidate's answer above and call `{NAME}` once.")
    return Prefix.start(
        [
            {"role": "system", "content": f"{prompt('rubric')}\n{prompt(case.kind)}"},
            {"role": "user", "content": "\n\n".join(parts)},
        ],
        tools=[tool()],
    )


def fence(case: Case, texts: Sequence[str]) -> str:
    """A mark that looks random, is the same whenever the case is, and occurs in none of the texts.

    It depends on all of them, so nobody can write a text that holds its own.
    """
    number = 0
    while True:
        mark = f"==={hashlib.sha256(f'{case.digest}{number}'.encode()).hexdigest()[:24]}"
        if not any(mark in text for text in texts):
            return mark
        number += 1


def _blocks(case: Case, items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """What is shown, by name; everything in it is foreign."""
    for number, turn in enumerate(case.turns[:-1], 1):
        yield f"earlier turn {number}", f"{visible(turn.speaker)}: {visible(turn.text)}"
    last = case.turns[-1]
    yield "query" if case.kind != "rag" else "current turn", f"{visible(last.speaker)}: {visible(last.text)}"
    for number, piece in enumerate(case.evidence, 1):
        name = f"evidence {number} ({piece.label})" if piece.label else f"evidence {number}"
        yield name, "\n".join(part for part in (visible(piece.title), visible(piece.text)) if part)
    for number, reference in enumerate(case.references, 1):
        yield f"reference answer {number} (a hint at coverage, no evidence)", visible(reference)
    if case.note:
        yield "about answers of this workload", visible(case.note)
    yield "candidate's answer", visible(case.answer)
    if items:
        yield "items of the answer to settle", "\n".join(_item(number, item) for number, item in enumerate(items, 1))


def _item(number: int, item: Item) -> str:
    return f"{number}. {item.kind} {item.text!r} in: {item.context!r}"
