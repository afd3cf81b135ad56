"""Answers that people rated, with their evidence and recorded scores, in MTRAG's calibration format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stepdown.builder.config.validation import read_jsonl, validated
from stepdown.builder.errors import BadInput
from stepdown.judges.case import Case, Piece, Turn
from stepdown.judges.guards import items_of
from stepdown.judges.report import RATINGS

GUARDS = "guards"
"""The score that the deterministic guards give: 1 / (1 + items that are in no source)."""

Rates = Annotated[tuple[float, ...], Field(min_length=1)]


class _Loose(BaseModel):
    """A record of somebody else's format: fields that are not named here are left alone."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class _Said(_Loose):
    speaker: str = Field(min_length=1)
    text: str


class _Context(_Loose):
    document_id: str = ""
    text: str


class _Human(_Loose):
    faithfulness: Rates
    appropriateness: Rates
    completeness: Rates


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Line(_Loose):
    task_id: str = Field(min_length=1)
    answerability: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ("ANSWERABLE",)
    input: tuple[_Said, ...] = Field(min_length=1)
    contexts: tuple[_Context, ...]
    reference: str = ""
    answer: str
    human: _Human


@dataclass(frozen=True, slots=True)
class Rated:
    """One answer: its conversation, people's median ratings in the order of `RATINGS`, its scores by name."""

    line: int
    task: str
    group: str
    """The conversation: whole conversations are held out, since their turns share passages and people."""
    case: Case
    ratings: tuple[float, ...]
    scores: dict[str, float]

    def is_good(self, least: float) -> bool:
        """Whether every median rating is at least `least`."""
        return min(self.ratings) >= least


@dataclass(frozen=True, slots=True)
class RatedAnswers:
    """The answers of a file that can be judged, and how many were left out, by reason."""

    rated: tuple[Rated, ...]
    left_out: dict[str, int]


def read(path: Path, scores: Sequence[str] = ()) -> RatedAnswers:
    """The answerable answers of a JSONL file, each with the named scores, or all that its first line records.

    A score is a number under `judges`, or a field of the line itself. Raises BadInput, naming the line and the field.
    """
    rated: list[Rated] = []
    left_out: dict[str, int] = {}
    names = list(scores)
    for number, data in read_jsonl(path):
        line = validated(_Line, data, file=path, line=number)
        names = names or [GUARDS, *_recorded(data)]
        if reason := _why_not(line):
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        case = _case(line)
        found = {name: _score(data, name, path, number) for name in names if name != GUARDS}
        if GUARDS in names:
            found = {GUARDS: 1 / (1 + len(items_of(case))), **found}
        group = line.task_id.partition("<::>")[0]
        medians = tuple(float(median(getattr(line.human, name))) for name in RATINGS)
        rated.append(Rated(number, line.task_id, group, case, medians, found))
    if not rated:
        raise BadInput("it holds no answerable answer with passages", file=path)
    return RatedAnswers(tuple(rated), left_out)


def _why_not(line: _Line) -> str | None:
    if line.answerability != ("ANSWERABLE",):
        return "not answerable"
    if not any(context.text for context in line.contexts):
        return "no passages"
    return None if line.answer else "an empty answer"


def _case(line: _Line) -> Case:
    return Case(
        kind="rag",
        turns=tuple(Turn(speaker=said.speaker, text=said.text) for said in line.input),
        evidence=tuple(Piece(text=part.text) for part in line.contexts if part.text),
        references=(line.reference,) if line.reference else (),
        answer=line.answer,
    )


def _recorded(data: Any) -> list[str]:
    judges = data.get("judges")
    return sorted(judges) if isinstance(judges, dict) else []


def _score(data: Any, name: str, path: Path, line: int) -> float:
    judges = data.get("judges")
    value = judges[name] if isinstance(judges, dict) and name in judges else data.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        known = ", ".join([GUARDS, *_recorded(data)])
        raise BadInput(f"no number of the name {name!r} ({known})", file=path, line=line, field=f"judges.{name}")
    return float(value)
