"""Good answers with their evidence, written for this project: what the exam mutates, and asks about as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stepdown.judges.case import EvidencePassage, JudgeCase, Turn


@dataclass(frozen=True, slots=True)
class GoodAnswer:
    """An answer that resolves its question from its evidence and says nothing else."""

    name: str
    scene: str
    language: str
    case: JudgeCase
    needed: int | None
    """The number of a sentence without which a part of the question stays open; None where nobody has named one."""


@cache
def good_answers() -> tuple[GoodAnswer, ...]:
    """All of them, in the order of the file."""
    text = (files(__package__) / "library.jsonl").read_text(encoding="utf-8")
    return tuple(found for line in text.splitlines() for found in _answers(json.loads(line)))


def scene_case(scene: Mapping[str, Any], answer: str) -> JudgeCase:
    """An answer to a scene's question as a judge's case."""
    return JudgeCase(
        kind=scene["kind"],
        turns=tuple(Turn(speaker=turn["speaker"], text=turn["text"]) for turn in scene["turns"]),
        evidence=tuple(EvidencePassage(title=one["title"], text=one["text"]) for one in scene["evidence"]),
        answer=answer,
    )


def _answers(scene: Mapping[str, Any]) -> list[GoodAnswer]:
    return [
        GoodAnswer(
            name=f"{scene['id']}/{one['id']}",
            scene=scene["id"],
            language=scene["language"],
            case=scene_case(scene, one["answer"]),
            needed=one.get("drop"),
        )
        for one in scene["honest"]
    ]
