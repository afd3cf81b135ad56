"""A program's work as a case for the judge."""

from __future__ import annotations

from pathlib import Path

from stepdown.builder.actions.forms import plain_text
from stepdown.harnesses.agent.grading import JudgeRule
from stepdown.harnesses.agent.program import Content
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn

LONGEST = 200_000
"""Bytes of a file that a judge is shown."""


def case_of(rule: JudgeRule, prompt: str, given: Content, workspace: Path, last_words: str) -> JudgeCase | None:
    """The case; None where there is no answer to judge. `given` is the workspace as the task gave it."""
    answer = last_words if rule.answer is None else _text_of(workspace, rule.answer)
    if not answer.strip():
        return None
    passages = [EvidencePassage(title=name, label="a file", text=_given(given, name)) for name in rule.evidence]
    return JudgeCase(
        kind="question",
        turns=(Turn(speaker="user", text=prompt),),
        evidence=tuple(passages) or (EvidencePassage(label="the task", text=prompt),),
        references=rule.references,
        answer=answer,
        note=rule.note,
    )


def _given(content: Content, name: str) -> str:
    """A file of the workspace as it was at the start: the user's own."""
    if name in content.files:
        return content.files[name]
    return (content.folder / name).read_text(encoding="utf-8") if content.folder is not None else ""


def _text_of(workspace: Path, name: str) -> str:
    """A file that the program wrote; empty where there is none inside of the workspace. Links lead nowhere."""
    path = workspace / name
    if not path.is_file() or not path.resolve().is_relative_to(workspace.resolve()):
        return ""
    with path.open("rb") as file:
        return plain_text(file.read(LONGEST).decode(errors="replace"))
