"""A program's work as a case for the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stepdown.builder.actions.forms import plain_text
from stepdown.harnesses.agent.grading import JudgeRule
from stepdown.harnesses.agent.program import Content
from stepdown.judges.case import EvidencePassage, JudgeCase, Turn

LONGEST = 200_000
"""Bytes of a file that a judge is shown."""


def case_of(rule: JudgeRule, prompt: str, given: Content, workspace: Path, last_words: str) -> JudgeCase | None:
    """The case; None where there is no answer to judge. `given` is the workspace as the task gave it."""
    answer = _answer(rule, given, workspace, last_words)
    if not answer.strip():
        return None
    texts = {name: _given(given, name) for name in rule.evidence}
    passages = [EvidencePassage(title=name, label="a file", text=text) for name, text in texts.items() if text]
    return JudgeCase(
        kind="question",
        turns=(Turn(speaker="user", text=prompt),),
        evidence=tuple(passages) or (EvidencePassage(label="the task", text=prompt),),
        references=rule.references,
        answer=answer,
        note=rule.note,
    )


def _answer(rule: JudgeRule, given: Content, workspace: Path, last_words: str) -> str:
    if rule.made:
        made = dict(_made(given, workspace))
        told = [f"{name}:\n{text}" for name, text in made.items()] if len(made) > 1 else [*made.values()]
        return "\n\n".join(told) or last_words
    return last_words if rule.answer is None else _text_of(workspace, rule.answer)


def _made(given: Content, workspace: Path) -> Iterator[tuple[str, str]]:
    """The text files that a program made or changed, by name, as far as a judge is shown them; no hidden ones."""
    left = LONGEST
    for path in sorted(workspace.rglob("*")):
        name = path.relative_to(workspace)
        if any(part.startswith(".") for part in name.parts) or path.is_symlink() or not path.is_file():
            continue
        text = _text_of(workspace, str(name))
        if text.strip() and "\N{REPLACEMENT CHARACTER}" not in text and text != _given(given, str(name)):
            text = text[:left]
            left -= len(text)
            if not text:
                return
            yield str(name), text


def _given(content: Content, name: str) -> str:
    """A file of the workspace as it was at the start: the user's own. Empty where there was none."""
    if name in content.files:
        return content.files[name]
    path = content.copies.get(name, content.folder / name if content.folder is not None else None)
    return path.read_text(encoding="utf-8", errors="replace") if path is not None and path.is_file() else ""


def _text_of(workspace: Path, name: str) -> str:
    """A file that the program wrote; empty where there is none inside of the workspace. Links lead nowhere."""
    path = workspace / name
    if not path.is_file() or not path.resolve().is_relative_to(workspace.resolve()):
        return ""
    with path.open("rb") as file:
        return plain_text(file.read(LONGEST).decode(errors="replace"))
