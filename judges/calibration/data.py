"""Answers that people rated, with their evidence and recorded scores (judges/README.md has an example)."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stepdown.builder.config.validation import read_jsonl, validated
from stepdown.builder.errors import BadInput
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn
from stepdown.judges.guards import unsourced_items
from stepdown.judges.guards.novelty import mean_novelty
from stepdown.judges.report import RATINGS
from stepdown.judges.text import words

GUARD_SCORE = "guards"
"""The name of the score that the deterministic guards give: 1 / (1 + number of items)."""

NOVELTY_SCORE = "novelty"
"""The name of a score that the words alone give: the share of stems and pairs of stems that some passage has."""
OWN_SCORES = frozenset({GUARD_SCORE, NOVELTY_SCORE})

Ratings = Annotated[tuple[float, ...], Field(min_length=1)]


class _OpenRecord(BaseModel):
    """A record in somebody else's format: fields that are not named here are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class _InputTurn(_OpenRecord):
    speaker: str = Field(min_length=1)
    text: str


class _Context(_OpenRecord):
    document_id: str = ""
    text: str


class _HumanRatings(_OpenRecord):
    faithfulness: Ratings
    appropriateness: Ratings
    completeness: Ratings


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Line(_OpenRecord):
    task_id: str = Field(min_length=1)
    answerability: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ("ANSWERABLE",)
    input: tuple[_InputTurn, ...] = Field(min_length=1)
    contexts: tuple[_Context, ...]
    reference: str = ""
    answer: str
    human: _HumanRatings


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """One answer with people's ratings and with scores.

    `ratings` are the medians in the order of `RATINGS`; `scores` are by name.
    """

    line: int
    task: str
    group: str
    """The conversation. Whole conversations are held out, since their turns share passages and people."""
    case: JudgeCase
    ratings: tuple[float, ...]
    scores: dict[str, float]
    is_reference: bool = False
    """Whether the answer is the reference, word for word: a judge that is shown references finds it easy."""

    def is_good(self, least: float) -> bool:
        """Whether every median rating is at least `least`."""
        return min(self.ratings) >= least


@dataclass(frozen=True, slots=True)
class RatedAnswers:
    """The answers of a file that can be judged, and how many were left out, by reason."""

    rated: tuple[RatedAnswer, ...]
    left_out: dict[str, int]
    without_verdict: int = 0
    """Answers on which the judge that was asked came to no verdict. They count as not passed."""

    @property
    def groups(self) -> list[str]:
        """The conversations, in the file's order."""
        return list(dict.fromkeys(one.group for one in self.rated))

    def of_groups(self, groups: Container[str]) -> RatedAnswers:
        """The answers of some conversations."""
        return replace(self, rated=tuple(one for one in self.rated if one.group in groups))


def read_rated_answers(path: Path, scores: Sequence[str] = ()) -> RatedAnswers:
    """Read the answerable answers of a JSONL file, each with the named scores, or all that its first line records.

    A score is a number under `judges`, or a field of the line itself. Raises BadInput, naming the line and the field.
    """
    rated: list[RatedAnswer] = []
    left_out: dict[str, int] = {}
    names = list(scores)
    for number, data in read_jsonl(path):
        line = validated(_Line, data, file=path, line=number)
        names = names or [GUARD_SCORE, *_recorded_scores(data)]
        if reason := _reason_to_leave_out(line):
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        case = _case(line)
        found = {name: _score(data, name, path, number) for name in names if name not in OWN_SCORES}
        if GUARD_SCORE in names:
            found = {GUARD_SCORE: 1 / (1 + len(unsourced_items(case))), **found}
        if NOVELTY_SCORE in names:
            found = {NOVELTY_SCORE: 1 - mean_novelty(case), **found}
        is_reference = bool(line.reference) and words(line.reference) == words(line.answer)
        group = line.task_id.partition("<::>")[0]
        medians = tuple(float(median(getattr(line.human, name))) for name in RATINGS)
        rated.append(RatedAnswer(number, line.task_id, group, case, medians, found, is_reference))
    if not rated:
        raise BadInput("it holds no answerable answer with passages", file=path)
    return RatedAnswers(tuple(rated), left_out)


def _reason_to_leave_out(line: _Line) -> str | None:
    if line.answerability != ("ANSWERABLE",):
        return "not answerable"
    if not any(context.text for context in line.contexts):
        return "no passages"
    return None if line.answer else "an empty answer"


def _case(line: _Line) -> JudgeCase:
    return JudgeCase(
        kind="rag",
        turns=tuple(Turn(speaker=said.speaker, text=said.text) for said in line.input),
        evidence=tuple(EvidencePassage(text=part.text) for part in line.contexts if part.text),
        references=(line.reference,) if line.reference else (),
        answer=line.answer,
    )


def _recorded_scores(data: Any) -> list[str]:
    judges = data.get("judges")
    return sorted(judges) if isinstance(judges, dict) else []


def _score(data: Any, name: str, path: Path, line: int) -> float:
    judges = data.get("judges")
    value = judges[name] if isinstance(judges, dict) and name in judges else data.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        known = ", ".join([GUARD_SCORE, *_recorded_scores(data)])
        raise BadInput(f"no number of the name {name!r} ({known})", file=path, line=line, field=f"judges.{name}")
    return float(value)
